//! Rollouts over real devices: by the devices themselves, and by the command.

use serde_json::Value;

use crate::harness::{Process, User, any_address, on};

/// A package in C that fails when it is told to.
pub(crate) fn built(user: &User, version: &str) -> String {
    built_with(user, version, "")
}

/// The same with more in it.
fn built_with(user: &User, version: &str, more: &str) -> String {
    let folder = user.path("served");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let toml = format!(
        "name = \"served\"\nversion = \"{version}\"\nlanguage = \"c\"\n[capabilities]\ncallers = [\"*@*\"]\n"
    );
    std::fs::write(folder.join("tenure.toml"), toml).unwrap();
    let source = "#include <tenure.h>\nTENURE_EXPORT(ping) { tenure_reply_text(\"pong\"); }\n\
                  TENURE_EXPORT(fail) { __builtin_trap(); }\n";
    std::fs::write(folder.join("src/main.c"), format!("{source}{more}\n")).unwrap();
    let file = format!("served-{version}.tenure");
    user.ok(&["build", "served", "-o", &file]);
    file
}

struct House {
    user: User,
    hub: Process,
    attic: Process,
    cellar: Process,
}

impl House {
    /// Two devices with version 0.1.0, which the hub keeps.
    fn new() -> Self {
        let user = User::new();
        let mut hub = Process::start(user.own_hub(any_address()));
        let (attic, cellar) = (user.device("attic", Some(&hub)), user.device("cellar", Some(&hub)));
        let old = built(&user, "0.1.0");
        user.ok(&["push", &old, "--hub", &hub.address]);
        for device in [&attic, &cellar] {
            user.ok(&["install", &old, "--grant", "all", "--device", &device.address]);
        }
        hub.wait_until_listed("attic", 1);
        hub.wait_until_listed("cellar", 1);
        Self { user, hub, attic, cellar }
    }

    /// `tenure rollout` with these arguments; the last thing that it prints.
    fn rollout(&self, arguments: &[&str]) -> Value {
        let at = ["--hub", &self.hub.address, "--json"];
        let text = self.user.ok(&[&["rollout"], arguments, &at[..]].concat());
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }

    /// As [`Self::rollout`], of a rollout that is rolled back: the command says so by its exit code, too.
    fn rolled_back(&self, arguments: &[&str]) -> Value {
        let at = ["--hub", &self.hub.address, "--json"];
        let output = self.user.command(&[&["rollout"], arguments, &at[..]].concat()).output();
        let output = output.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains("is over: rolled back"), "{error}");
        let text = String::from_utf8(output.stdout).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(last["state"], "rolled back", "{last}");
        last
    }

    fn start(&self, package: &str, more: &[&str]) -> Value {
        let start = ["start", package, "--devices", "attic,cellar", "--stages", "1"];
        self.rollout(&[&start[..], more].concat())
    }

    /// One that the command carries out.
    fn start_by_command(&self, package: &str, more: &[&str]) -> Value {
        self.start(package, &[&["--by-command"], more].concat())
    }

    fn versions(&self) -> [String; 2] {
        [&self.attic, &self.cellar].map(|device| {
            let list = self.user.json(&["list", "--device", &device.address]);
            list["machines"][0]["version"].as_str().unwrap().to_string()
        })
    }
}

#[test]
fn devices_fetch_and_install_a_version_themselves_and_put_a_bad_one_back() {
    let house = House::new();
    let good = built(&house.user, "0.2.0");
    let id = house.start(&good, &["--soak", "1s", "--no-run"])["id"].to_string();
    let done = house.rollout(&["run", &id]);
    assert_eq!((&done["state"], &done["carried_out_by"]), (&"done".into(), &"devices".into()));
    assert_eq!(house.versions(), ["0.2.0", "0.2.0"]);

    let bad = built_with(&house.user, "0.3.0", "TENURE_EXPORT(entry) { __builtin_trap(); }");
    let start = ["start", &bad, "--devices", "attic,cellar", "--stages", "1", "--soak", "1h"];
    house.rolled_back(&start);
    assert_eq!(house.versions(), ["0.2.0", "0.2.0"]);
    assert_eq!(house.user.call(on(&house.attic), &["served", "ping"]), "pong");
}

#[test]
fn machine_is_placed_on_devices_that_have_none_by_one_word_of_the_owner() {
    let house = House::new();
    let good = built(&house.user, "0.2.0");
    let removed = ["remove", "served", "--for-good", "--device", &house.cellar.address];
    house.user.ok(&removed);
    let start = ["--soak", "1s", "--install", "--grant", "all", "--for", "30d", "--tier", "4"];
    let done = house.start(&good, &start);
    assert_eq!(
        (&done["state"], &done["devices"]["healthy"]),
        (&"done".into(), &2.into()),
        "{done}"
    );
    assert_eq!(house.versions(), ["0.2.0", "0.2.0"]);
    assert_eq!(house.user.call(on(&house.cellar), &["served", "ping"]), "pong");
    let tier_and_end = |device: &Process| {
        let list = house.user.json(&["list", "--device", &device.address]);
        let machine = &list["machines"][0];
        (machine["share"]["tier"].as_u64(), machine["term"]["ends_unix_s"].is_u64())
    };
    assert_eq!(tier_and_end(&house.cellar), (Some(4), true));
    assert_eq!(tier_and_end(&house.attic), (Some(1), false), "an update leaves both as they were");
    let error =
        house.user.error(&["rollout", "start", &good, "--devices", "attic", "--for", "30d"]);
    assert!(error.contains("with --install"), "{error}");
}

#[test]
fn good_version_goes_through_and_bad_one_is_pulled_back_by_its_gate() {
    let house = House::new();
    let good = built(&house.user, "0.2.0");
    let done = house.start_by_command(&good, &["--soak", "1s"]);
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!(house.versions(), ["0.2.0", "0.2.0"]);

    let bad = built(&house.user, "0.3.0");
    let started = house.start_by_command(&bad, &["--soak", "1h", "--no-run"]);
    let id = started["id"].to_string();
    house.rollout(&["run", &id, "--once"]);
    assert_eq!(house.versions(), ["0.3.0", "0.2.0"], "the canary alone");
    house.user.call_error(on(&house.attic), &["served", "fail"]);
    let over = house.rolled_back(&["run", &id]);
    assert!(over["reason"].as_str().unwrap().starts_with("attic: 1 fault "), "{over}");
    assert_eq!(house.versions(), ["0.2.0", "0.2.0"]);
    assert_eq!(house.user.call(on(&house.attic), &["served", "ping"]), "pong");
}

#[test]
fn rollout_is_paused_resumed_and_aborted_and_goes_on_after_its_hub_was_killed() {
    let house = House::new();
    let new = built(&house.user, "0.2.0");
    let id = house.start_by_command(&new, &["--soak", "1h", "--no-run"])["id"].to_string();
    assert_eq!(house.rollout(&["pause", &id])["state"], "paused");
    house.rollout(&["run", &id, "--once"]);
    assert_eq!(house.versions(), ["0.1.0", "0.1.0"]);
    assert_eq!(house.rollout(&["resume", &id])["state"], "running");
    house.rollout(&["run", &id, "--once"]);
    assert_eq!(house.versions(), ["0.2.0", "0.1.0"]);
    let House { user, hub, attic, cellar } = house;
    let address = hub.address.clone();
    hub.kill();
    let hub = Process::start(user.own_hub(&address));
    let house = House { user, hub, attic, cellar };
    let status = house.rollout(&["status", &id]);
    assert_eq!((&status["state"], &status["devices"]["soaking"]), (&"running".into(), &1.into()));
    assert_eq!(house.rollout(&["roll-back", &id])["state"], "rolling back");
    house.rolled_back(&["run", &id]);
    assert_eq!(house.versions(), ["0.1.0", "0.1.0"]);
    let again = house.user.error(&["rollout", "abort", &id, "--hub", &address]);
    assert!(again.ends_with("the rollout is rolled back; it can't abort"), "{again}");
}

#[test]
fn false_hub_gets_the_command_no_further_than_its_owners_plan() {
    let house = House::new();
    let (good, other) = (built(&house.user, "0.2.0"), built(&house.user, "0.9.0"));
    house.user.ok(&["push", &other, "--hub", &house.hub.address]);
    let start = ["start", &good, "--devices", "attic", "--by-command", "--no-run", "--soak", "1h"];
    let id = house.rollout(&start)["id"].to_string();
    let database = rusqlite::Connection::open(house.user.path("hub/hub.sqlite")).unwrap();
    let run = ["rollout", "run", &id, "--once", "--hub", &house.hub.address];
    let refused = |change: &str| {
        assert!(database.execute(change, []).unwrap() > 0, "{change}");
        let error = house.user.error_after(&run);
        assert_eq!(house.versions(), ["0.1.0", "0.1.0"], "{change}");
        error
    };
    let error = refused("UPDATE rollout_devices SET device = 'cellar'");
    assert!(error.contains("the plan has no device cellar"), "{error}");
    database.execute("UPDATE rollout_devices SET device = 'attic'", []).unwrap();
    let error = refused(
        "UPDATE rollouts SET package_digest = (SELECT package_digest FROM manifests WHERE version = '0.9.0')",
    );
    assert!(error.contains("the plan is of another package"), "{error}");
    let error = refused("UPDATE rollouts SET plan = replace(plan, 'attic', 'cellar')");
    assert!(error.contains("isn't signed by its owner"), "{error}");
}

#[test]
fn old_plan_takes_no_device_back_to_an_older_version() {
    let house = House::new();
    let (older, newer) = (built(&house.user, "0.2.0"), built(&house.user, "0.3.0"));
    let start = ["start", &older, "--devices", "attic", "--by-command", "--no-run", "--soak", "1h"];
    let id = house.rollout(&start)["id"].to_string();
    house.user.ok(&["install", &newer, "--grant", "same", "--device", &house.attic.address]);
    house.rollout(&["run", &id, "--once"]);
    assert_eq!(house.versions(), ["0.3.0", "0.1.0"]);
    let database = rusqlite::Connection::open(house.user.path("hub/hub.sqlite")).unwrap();
    let reason = "SELECT reason FROM rollout_devices WHERE device = 'attic'";
    let reason: String = database.query_row(reason, [], |row| row.get(0)).unwrap();
    assert_eq!(reason, "it has 0.3.0, which is newer than 0.2.0");
}
