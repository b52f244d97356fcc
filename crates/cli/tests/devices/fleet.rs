//! A fleet that a file describes, on real devices.

use serde_json::Value;
use tenure_testbed::wait_until;

use crate::harness::{Process, User, any_address, finish, on};
use crate::rollouts::built;

struct Fleet {
    user: User,
    hub: Process,
    attic: Process,
    cellar: Process,
}

impl Fleet {
    /// The attic, whose site is north, and the cellar, both without machines.
    fn new() -> Self {
        let user = User::new();
        let hub = Process::start(user.own_hub(any_address()));
        let mut attic = Process::start(attic(&user, &hub));
        attic.wait_for_event("registered");
        let cellar = user.device("cellar", Some(&hub));
        Self { user, hub, attic, cellar }
    }

    fn describe(&self, text: &str) {
        std::fs::write(self.user.path("fleet.toml"), text).unwrap();
    }

    /// `tenure fleet` with that verb; how many changes there were.
    fn fleet(&self, verb: &str) -> i64 {
        // The hub hears of labels a moment after it lists a device.
        let words = ["fleet", verb, "--hub", &self.hub.address, "--json", "--yes"];
        let said = if verb == "apply" { words.len() } else { words.len() - 1 };
        let text = self.user.ok_once_there(&words[..said]);
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(last["applied"], verb == "apply");
        last["changes"].as_i64().unwrap()
    }

    fn drift(&self, more: &[&str]) -> (Option<i32>, Vec<String>, Value) {
        drift(&self.user, &self.hub, more)
    }

    /// The machines of both devices with their versions.
    fn machines(&self) -> [Vec<String>; 2] {
        [&self.attic, &self.cellar].map(|device| {
            let list = self.user.json(&["list", "--device", &device.address]);
            let machines = list["machines"].as_array().unwrap().iter();
            let word = |machine: &Value, name: &str| machine[name].as_str().unwrap().to_string();
            let line = |one| format!("{} {}", word(one, "name"), word(one, "version"));
            let mut lines: Vec<String> = machines.map(line).collect();
            lines.sort();
            lines
        })
    }
}

/// `tenure fleet drift`: its exit status, each difference in a line, and what it says in the end.
fn drift(user: &User, hub: &Process, more: &[&str]) -> (Option<i32>, Vec<String>, Value) {
    let words = ["fleet", "drift", "--hub", &hub.address, "--json"];
    let output = finish(user.command(&[&words[..], more].concat()));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut objects: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("error"), "a difference is no error: {error}");
    let last = objects.pop().unwrap();
    let line = |object: Value| {
        let word = |name: &str| object[name].as_str().unwrap_or("-").to_string();
        let [what, machine, device] = ["difference", "machine", "device"].map(word);
        let [there, wanted] = ["there", "wanted"].map(word);
        format!("{what} {machine} {device} {there} {wanted}")
    };
    (output.status.code(), objects.into_iter().map(line).collect(), last)
}

fn attic(user: &User, hub: &Process) -> std::process::Command {
    let mut command =
        user.command(&["device", "--data", "attic", "--listen", any_address(), "--json"]);
    command.args(["--hub", &hub.address, "--label", "site=north", "--survives", "kill"]);
    command
}

#[test]
fn fleet_becomes_what_its_file_says_and_the_same_file_again_changes_nothing() {
    let fleet = Fleet::new();
    built(&fleet.user, "0.1.0");
    built(&fleet.user, "0.2.0");
    fleet.describe(
        "[[machine]]\npackage = \"served-0.1.0.tenure\"\ndevices = [\"attic\", \"cellar\"]\ngrant = [\"all\"]\n\
         [[machine]]\nname = \"north\"\npackage = \"served-0.2.0.tenure\"\nlabels = [\"site=north\"]\n",
    );
    assert_eq!(fleet.fleet("plan"), 3);
    assert_eq!(fleet.machines(), [vec![], Vec::<String>::new()], "a plan changes nothing");
    assert_eq!(fleet.fleet("apply"), 3);
    assert_eq!(fleet.machines(), [vec!["north 0.2.0", "served 0.1.0"], vec!["served 0.1.0"]]);
    assert_eq!(fleet.user.call(on(&fleet.attic), &["served", "ping"]), "pong");
    assert_eq!((fleet.fleet("plan"), fleet.fleet("apply")), (0, 0));

    // A new version here, none there, and a right taken away; what isn't named stays.
    fleet.describe(
        "[[machine]]\npackage = \"served-0.2.0.tenure\"\ndevices = [\"attic\"]\ngrant = [\"none\"]\n\
         [[machine]]\nname = \"served\"\nabsent = true\ndevices = [\"cellar\"]\n",
    );
    let text = fleet.user.ok(&["fleet", "plan", "--hub", &fleet.hub.address]);
    assert!(
        text.contains("~ served on attic: 0.1.0 to 0.2.0; granted: nothing (was: callers *@*)"),
        "{text}"
    );
    assert!(text.contains("- served on cellar: to the trash"), "{text}");
    // Desk 9: nothing goes, and nothing else is changed, before somebody has said so.
    // Nor is anything told as done.
    let error = fleet.user.error(&["fleet", "apply", "--hub", &fleet.hub.address]);
    assert_eq!(error, "remove the machine served on cellar? say so with --yes");
    assert_eq!(
        fleet.machines(),
        [["north 0.2.0", "served 0.1.0"], ["served 0.1.0", ""]].map(|them| {
            them.into_iter().filter(|one| !one.is_empty()).map(String::from).collect::<Vec<_>>()
        })
    );
    assert_eq!(fleet.fleet("apply"), 2);
    assert_eq!(fleet.machines(), [vec!["north 0.2.0", "served 0.2.0"], vec![]]);
    assert_eq!(fleet.fleet("apply"), 0);
}

#[test]
fn device_that_is_away_is_named_and_brought_there_by_the_same_command_later() {
    let mut fleet = Fleet::new();
    built(&fleet.user, "0.1.0");
    fleet.describe(
        "[[machine]]\npackage = \"served-0.1.0.tenure\"\ndevices = [\"attic\", \"cellar\"]\ngrant = [\"all\"]\n",
    );
    let (user, hub) = (&fleet.user, &fleet.hub);
    fleet.attic.kill();
    let error = user.error_after(&["fleet", "apply", "--hub", &hub.address]);
    assert!(error.contains("not all devices are as the file says: attic"), "{error}");
    let mut attic = Process::start(attic(user, hub));
    attic.wait_for_event("registered");
    fleet.attic = attic;
    assert_eq!(fleet.fleet("apply"), 1, "the cellar was done already");
    assert_eq!(fleet.machines(), [["served 0.1.0"], ["served 0.1.0"]]);
}

#[test]
fn drift_is_told_by_device_and_machine_and_by_an_exit_status_of_its_own() {
    let fleet = Fleet::new();
    built(&fleet.user, "0.1.0");
    built(&fleet.user, "0.2.0");
    fleet.describe(
        "[[machine]]\npackage = \"served-0.1.0.tenure\"\ndevices = [\"attic\", \"cellar\"]\ngrant = [\"all\"]\n\
         [[machine]]\nname = \"north\"\npackage = \"served-0.2.0.tenure\"\nlabels = [\"site=north\"]\n\
         [[machine]]\nname = \"spare\"\nabsent = true\ndevices = [\"cellar\"]\n",
    );
    assert_eq!(fleet.fleet("plan"), 3, "the hub knows the labels");
    let (status, lines, last) = fleet.drift(&[]);
    let missing = [
        "missing north attic - 0.2.0",
        "missing served attic - 0.1.0",
        "missing served cellar - 0.1.0",
    ];
    assert_eq!((status, lines), (Some(2), missing.map(String::from).to_vec()));
    assert_eq!((&last["differences"], &last["devices"]), (&3.into(), &2.into()));
    assert_eq!(fleet.machines(), [vec![], Vec::<String>::new()], "it changes nothing");
    assert_eq!(fleet.fleet("apply"), 3);
    let (status, lines, last) = fleet.drift(&["--whole"]);
    assert_eq!((status, lines, &last["differences"]), (Some(0), vec![], &0.into()));

    // Somebody changes it by hand.
    let by_hand = |device: &Process, words: &[&str]| {
        fleet.user.ok(&[words, &["--device", &device.address]].concat());
    };
    by_hand(&fleet.cellar, &["install", "served-0.2.0.tenure", "--grant", "none"]);
    by_hand(&fleet.cellar, &["install", "served-0.1.0.tenure", "--as", "spare", "--grant", "none"]);
    by_hand(&fleet.attic, &["remove", "north"]);
    by_hand(&fleet.attic, &["install", "served-0.1.0.tenure", "--as", "other", "--grant", "none"]);
    let expected = [
        "missing north attic - 0.2.0",
        "version served cellar 0.2.0 0.1.0",
        "lease served cellar nothing callers *@*",
        "extra spare cellar 0.1.0 -",
    ];
    let (status, lines, _) = fleet.drift(&[]);
    assert_eq!((status, lines), (Some(2), expected.map(String::from).to_vec()));
    let (_, lines, last) = fleet.drift(&["--whole"]);
    assert!(lines.contains(&"unnamed other attic 0.1.0 -".to_string()), "{lines:?}");
    assert_eq!(last["differences"], 5);

    // A device that is away isn't as the file says for all that anybody knows.
    assert_eq!(fleet.fleet("apply"), 3);
    let Fleet { user, hub, attic, .. } = fleet;
    attic.kill();
    let (status, lines, last) = drift(&user, &hub, &[]);
    assert_eq!((status, lines), (Some(2), vec!["unreachable - attic - -".to_string()]));
    assert_eq!((&last["differences"], &last["unreachable"][0]), (&0.into(), &"attic".into()));
    let text = finish(user.command(&["fleet", "drift", "--hub", &hub.address]));
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("! attic: not reachable; the hub heard it last at 20"), "{text}");
    assert!(text.contains("2 devices, nothing differs; not reachable: attic"), "{text}");
}

#[test]
fn fleet_whose_drift_nobody_can_tell_ends_with_an_error() {
    let fleet = Fleet::new();
    fleet.describe("[[machine]]\nname = \"a\"\nabsent = true\ndevices = [\"nowhere\"]\n");
    let error = fleet.user.error(&["fleet", "drift", "--hub", &fleet.hub.address]);
    assert!(error.contains("lists no device nowhere"), "{error}");
}

/// The words of a command that another one printed, without its name.
fn words_of(command: &Value) -> Vec<String> {
    let words = shlex::split(command.as_str().unwrap()).unwrap();
    assert_eq!(words[0], "tenure");
    words[1..].to_vec()
}

#[test]
fn faults_of_all_devices_and_the_state_of_the_fleet_are_told_with_commands_that_work() {
    let Fleet { user, mut hub, attic, cellar } = Fleet::new();
    let run = |command: &Value| {
        let words = words_of(command);
        user.ok(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let at = hub.address.clone();
    user.install(&attic, &["crasher"]);
    user.install(&cellar, &["counter"]);
    hub.wait_until_listed("attic", 1);
    let well = user.json(&["fleet", "status", "--hub", &at]);
    assert_eq!((&well["devices"], &well["counts"]["well"]), (&2.into(), &2.into()), "{well}");
    assert_eq!(well["first"], Value::Array(Vec::new()));
    let none = user.ok(&["faults", "--hub", &at]);
    assert_eq!(none.trim_end(), "no faults in the last 7 days");

    user.call_error(on(&attic), &["crasher", "unreachable"]);
    let told = wait_until(|| {
        let told = user.json(&["faults", "--hub", &at, "--since", "1h", "--package", "crasher"]);
        if told["issues"][0]["running"] == 1 { Ok(told) } else { Err(told.to_string()) }
    });
    let issue = &told["issues"][0];
    assert_eq!((&issue["faults"], &issue["devices"]), (&1.into(), &1.into()), "{told}");
    assert!(issue["version"].is_string() && issue["digest"].is_string(), "{told}");
    let text = user.ok(&["faults", "--hub", &at]);
    let place = issue["text"].as_str().unwrap();
    assert!(place.contains("unreachable") && text.contains(place), "{text}");
    assert!(text.contains("1 fault on 1 device (1 runs it now), the last "), "{text}");
    // The first one reads the log; the second one wants a journal, which isn't kept here.
    assert!(run(&issue["commands"][0]).contains("unreachable"));
    assert_eq!(issue["commands"][1], "tenure debug crasher@attic");
    let other = user.json(&["faults", "--hub", &at, "--package", "other"]);
    assert_eq!(other["issues"], Value::Array(Vec::new()));

    let status = user.json(&["fleet", "status", "--hub", &at]);
    assert_eq!(status["counts"]["unwell"], 1, "{status}");
    assert_eq!(status["states"][0]["device"], "attic");
    assert_eq!(status["faults"][0]["package"], "crasher");
    let steps = status["first"].as_array().unwrap();
    assert_eq!(steps.len(), 1, "{status}");
    assert!(run(&steps[0]["command"]).contains("crasher"));
    let text = user.ok(&["fleet", "status", "--hub", &at]);
    assert!(text.starts_with("2 devices: 1 well, 1 unwell\n"), "{text}");
    assert!(text.contains("! 1 unwell: faults in the last 24 hours: attic\n"), "{text}");
}
