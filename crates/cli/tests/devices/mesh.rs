//! Devices that reach each other by mesh alone, over a device that relays.

use tenure_board_linux::NullModem;

use crate::guests::package;
use crate::harness::{Process, User, any_address};
use crate::secrets::{tell, tenant_of};

/// Starts a device that knows no hub, and meshes as the flags in `meshing` say; gives the address of
/// its link too.
fn device_by(user: &User, name: &str, meshing: &[&str]) -> (Process, String) {
    let (device, entered) = enter(user, name, meshing);
    assert!(entered["node"].is_string(), "the owner's keys are here: {entered}");
    let address = entered["address"].as_str().unwrap().to_string();
    (device, address)
}

fn enter(user: &User, name: &str, more: &[&str]) -> (Process, serde_json::Value) {
    let fixed = ["device", "--data", name, "--listen", any_address(), "--json"];
    let mut command = user.command(&fixed);
    command.args(["--survives", "kill"]).args(more);
    let mut device = Process::start(command);
    let entered = device.wait_for_event("mesh");
    (device, entered)
}

/// By UDP, with `peers` for neighbours.
fn device(user: &User, name: &str, peers: &[&str]) -> (Process, String) {
    let mut meshing = vec!["--mesh", any_address()];
    meshing.extend(peers.iter().flat_map(|peer| ["--mesh-peer", peer]));
    device_by(user, name, &meshing)
}

/// Whether a machine on `cellar` comes to reach one on `attic` by name.
#[track_caller]
fn check_reach(user: &User, attic: &Process, cellar: &Process) {
    user.install(attic, &["thermostat"]);
    user.install(cellar, &["probe"]);
    user.call_until(cellar, &["probe", "call", "thermostat@attic read"], "21.0");
}

#[test]
fn a_call_by_name_needs_no_hub_and_no_common_link() {
    let user = User::new();
    let (_stairs, relay) = device(&user, "stairs", &[]);
    let (attic, _) = device(&user, "attic", &[&relay]);
    let (cellar, _) = device(&user, "cellar", &[&relay]);
    check_reach(&user, &attic, &cellar);
}

#[test]
fn datagrams_are_carried_on_a_thread_of_their_own_where_the_owner_wants_that() {
    let user = User::new();
    let threads = |device: &Process| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", device.id())).unwrap();
        let names =
            tasks.map(|it| std::fs::read_to_string(it.unwrap().path().join("comm")).unwrap());
        names.filter(|name| name.trim() == "mesh satellite").count()
    };
    let own_thread = ["--mesh", any_address(), "--mesh-own-thread"];
    let (stairs, relay) = device_by(&user, "stairs", &own_thread);
    let (attic, _) = device(&user, "attic", &[&relay]);
    let at_relay = [&own_thread[..], &["--mesh-peer", &relay]].concat();
    let (cellar, _) = device_by(&user, "cellar", &at_relay);
    check_reach(&user, &attic, &cellar);
    assert_eq!([&stairs, &cellar, &attic].map(threads), [1, 1, 0]);
    cellar.interrupt();
    let (cellar, _) = device_by(&user, "cellar", &[]);
    wait_until("it is remembered", || threads(&cellar) == 1);
}

#[test]
fn a_mesh_peer_without_a_mesh_is_a_mistake() {
    let user = User::new();
    let output = user.command(&["device", "--data", "x", "--mesh-peer", "127.0.0.1:1"]).output();
    let error = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(error.contains("--mesh <ADDR>"), "{error}");
}

#[test]
fn a_serial_line_and_a_multicast_group_are_links_too_and_a_device_remembers_its_own() {
    let user = User::new();
    let line = NullModem::lay().unwrap();
    let [one, other] = line.ends().map(|end| end.to_str().unwrap());
    let port = std::net::UdpSocket::bind(any_address()).unwrap().local_addr().unwrap().port();
    let group = format!("239.73.71.2:{port}");
    let by_group = ["--mesh-multicast", &group, "--mesh-multicast-on", "127.0.0.1"];
    let by_line = [["--mesh-serial", one], ["--mesh-serial", other]];
    for links in [[&by_line[0][..], &by_line[1][..]], [&by_group[..], &by_group[..]]] {
        let user_of_these = User::new();
        let (attic, _) = device_by(&user_of_these, "attic", links[0]);
        let (cellar, _) = device_by(&user_of_these, "cellar", links[1]);
        check_reach(&user_of_these, &attic, &cellar);
        attic.interrupt();
        let (attic, address) = device_by(&user_of_these, "attic", &[]);
        assert!(address == group || address == one, "{address}");
        attic.interrupt();
    }
    let wrong = ["device", "--data", "x", "--listen", any_address(), "--mesh-serial", "/dev/null"];
    let error = user.error(&wrong);
    assert!(error.contains("/dev/null") && error.contains("no terminal device"), "{error}");
}

#[test]
fn a_device_waits_for_its_serial_line_and_meshes_by_the_next_one_of_that_name_when_it_is_unplugged()
{
    let user = User::new();
    let [left, right] = ["left", "right"].map(|name| user.path(name));
    let plug = || {
        let line = NullModem::lay().unwrap();
        for (end, name) in line.ends().iter().zip([&left, &right]) {
            let _ = std::fs::remove_file(name);
            std::os::unix::fs::symlink(end, name).unwrap();
        }
        line
    };
    let (mut attic, _) = device_by(&user, "attic", &["--serial", left.to_str().unwrap()]);
    assert_eq!(attic.wait_for_event("unplugged")["line"], left.to_str().unwrap());
    let line = plug();
    attic.wait_for_event("plugged-in");
    let (cellar, _) = device_by(&user, "cellar", &["--serial", right.to_str().unwrap()]);
    check_reach(&user, &attic, &cellar);
    line.unplug().unwrap();
    assert_eq!(attic.wait_for_event("unplugged")["line"], left.to_str().unwrap());
    user.ok(&["list", "--device", &attic.address]);
    let _line = plug();
    attic.wait_for_event("plugged-in");
    user.call_until(&cellar, &["probe", "call", "thermostat@attic read"], "21.0");
}

#[test]
fn a_revoked_device_is_out_of_the_mesh_and_the_others_stay_in_it() {
    let user = User::new();
    let (stairs, relay) = device(&user, "stairs", &[]);
    let (attic, _) = device(&user, "attic", &[&relay]);
    let (cellar, _) = device(&user, "cellar", &[&relay]);
    let ways = |device: &Process| {
        let status = user.json(&["mesh", &device.address]);
        let ways = status["ways"].as_array().unwrap().iter();
        let mut names: Vec<String> = ways.map(|way| way["device"].to_string()).collect();
        names.sort();
        names
    };
    for device in [&stairs, &attic, &cellar] {
        user.ok(&["list", "--device", &device.address]);
    }
    let (attic_name, cellar_name, stairs_name) = ("\"attic\"", "\"cellar\"", "\"stairs\"");
    wait_until("all know all", || ways(&attic) == [cellar_name, stairs_name]);
    let said = user.ok(&["revoke", "device", "cellar", "--yes"]);
    assert!(said.contains("another key; told: attic, stairs"), "{said}");
    wait_until("cellar is out", || ways(&attic) == [stairs_name] && ways(&stairs) == [attic_name]);
    let kept = user.ok(&["revoke", "mesh-key", "--older-than", "30d"]);
    assert!(kept.contains("0 days old; it is replaced after 30 days"), "{kept}");
    let said = user.ok(&["revoke", "mesh-key"]);
    assert!(said.contains("another key; told: attic, stairs"), "{said}");
}

#[test]
fn a_device_away_from_its_owners_keys_waits_until_it_is_invited() {
    let (owner, elsewhere) = (User::new(), User::new());
    let keys = owner.json(&["key", "--own"]);
    let key = |which: &str| keys[which].as_str().unwrap().to_string();
    let keys = key("owner_signing_key") + "/" + &key("owner_machine_key");
    let (cellar, relay) = device(&owner, "cellar", &[]);
    let more = ["--owner", &keys, "--mesh", any_address(), "--mesh-peer", &relay];
    let (attic, entered) = enter(&elsewhere, "attic", &more);
    assert!(entered["node"].is_null(), "{entered}");
    owner.ok(&["enrol", &attic.address]);
    let refused = owner.error(&["mesh", &attic.address]);
    assert!(refused.contains("in no mesh"), "{refused}");
    let stranger = elsewhere.error(&["invite", &attic.address]);
    assert!(stranger.contains("another owner"), "{stranger}");
    let mistaken = owner.json(&["mesh", &cellar.address])["node"].as_str().unwrap().to_string();
    assert!(!mistaken.is_empty());
    owner.ok(&["invite", &attic.address]);
    check_reach(&owner, &attic, &cellar);
    let status = owner.json(&["mesh", &cellar.address]);
    assert_eq!(status["ways"][0]["device"], "attic", "{status}");
}

#[test]
fn a_device_that_only_a_neighbour_hears_is_let_in_by_way_of_any_member() {
    let (owner, elsewhere) = (User::new(), User::new());
    let keys = owner.json(&["key", "--own"]);
    let key = |which: &str| keys[which].as_str().unwrap().to_string();
    let keys = key("owner_signing_key") + "/" + &key("owner_machine_key");
    let (_stairs, relay) = device(&owner, "stairs", &[]);
    let (attic, _) = device(&owner, "attic", &[&relay]);
    let more = ["--owner", &keys, "--mesh", any_address(), "--mesh-peer", &relay];
    let (mut cellar, entered) = enter(&elsewhere, "cellar", &more);
    assert!(entered["node"].is_null(), "{entered}");
    // A person who isn't the owner sees no strangers, and lets nobody in.
    let refused = elsewhere.error(&["invite", "cellar", "--via", &attic.address]);
    assert!(refused.contains("another owner"), "{refused}");
    let refused = owner.error(&["invite", "cellar:7370", "--via", &attic.address]);
    assert!(refused.contains("by its key or its name"), "{refused}");
    let unheard = owner.error(&["invite", "shed", "--via", &attic.address, "--wait", "0"]);
    assert!(unheard.contains("no member of the mesh has heard"), "{unheard}");
    let invited = owner.json(&["invite", "cellar", "--via", &attic.address]);
    assert_eq!(invited["device"], "cellar", "{invited}");
    assert_eq!(cellar.wait_for_event("mesh-joined")["node"], invited["node"]);
    let strangers = owner.json(&["mesh", "--strangers", &attic.address]);
    assert_eq!(strangers["strangers"][0]["key"], invited["key"], "it knocked: {strangers}");
    check_reach(&owner, &attic, &cellar);
}

#[test]
fn an_experiment_is_directed_from_one_device_and_its_logs_come_back_to_it() {
    let user = User::new();
    let enter = |name: &str, peers: &[&str]| {
        let mut meshing = vec!["--mesh", any_address(), "--experiments"];
        meshing.extend(peers.iter().flat_map(|peer| ["--mesh-peer", peer]));
        device_by(&user, name, &meshing)
    };
    let (stairs, relay) = enter("stairs", &[]);
    let (attic, _) = enter("attic", &[&relay]);
    let (_cellar, _) = enter("cellar", &[&relay]);
    let at = |device: &Process, words: &[&str]| -> Vec<serde_json::Value> {
        let mut all = vec!["experiment"];
        all.extend(words);
        all.extend(["--device", &device.address]);
        all.push("--json");
        let lines = user.ok(&all);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let knows_all = || user.json(&["mesh", &attic.address])["ways"].as_array().unwrap().len() == 2;
    wait_until("each knows a way to each", knows_all);
    let ordered = at(&attic, &["start", "gap", "--value", "machines", "--interval", "100ms"]);
    assert_eq!(ordered[0]["event"], "ordered", "{ordered:?}");
    let logs = || {
        let words = ["experiment", "logs", "--json", "--device", &attic.address];
        let output = user.command(&words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // A device that is slow is waited for by looking again.
        if !output.status.success() {
            return false;
        }
        let logs: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let said = |log: &serde_json::Value, text: &str| {
            let lines = log["lines"].as_array().unwrap();
            lines.iter().any(|line| line.as_str().unwrap().contains(text))
        };
        assert_eq!(logs.len(), 3, "{logs:?}");
        logs.iter().all(|log| said(log, "start gap with 0") && said(log, "count 3.000"))
    };
    wait_until("all have counted three", logs);
    at(&attic, &["stop", "gap"]);
    // The link between attic and stairs is cut at both ends, by an order that attic gives.
    let links = |device: &Process| user.json(&["mesh", &device.address])["neighbours"].clone();
    assert_eq!((links(&attic), links(&stairs)), (1.into(), 2.into()));
    at(&attic, &["shape", "attic", "stairs"]);
    wait_until("the link is down", || (links(&attic), links(&stairs)) == (0.into(), 1.into()));
    let output = user.command(&["experiment", "start", "babel"]).output();
    let error = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(error.contains("`babel`; there is gap, flow-updating"), "{error}");
    let (shed, _) = device(&user, "shed", &[]);
    let refused = user.error(&["experiment", "stop", "gap", "--device", &shed.address]);
    assert!(refused.contains("--experiments"), "{refused}");
}

/// Looks again until it is so.
#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    tenure_testbed::wait_until(|| is_so().then_some(()).ok_or(what));
}

#[test]
fn a_device_that_only_a_member_hears_is_managed_by_way_of_it() {
    let user = User::new();
    let (stairs, relay) = device(&user, "stairs", &[]);
    let (_cellar, beyond) = device(&user, "cellar", &[&relay]);
    let (_attic, _) = device(&user, "attic", &[&beyond]);
    let via = ["--device", "attic", "--via", &stairs.address];
    let run = |command: &[&str]| user.ok(&[command, &via[..]].concat());
    wait_until("the member knows it", || {
        let ways = user.json(&["mesh", &stairs.address]);
        ways["ways"].as_array().unwrap().iter().any(|way| way["device"] == "attic")
    });
    let package = package("thermostat");
    let installed = run(&["install", &package, "--grant", "all"]);
    assert!(installed.contains("installed thermostat") && installed.contains("on attic"));
    assert_eq!(run(&["call", "thermostat", "read"]), "21.0");
    let remote = ["call", "thermostat@attic", "read", "--via", &stairs.address];
    assert_eq!(user.ok(&remote), "21.0");
    assert!(run(&["list"]).contains("thermostat"));
    assert!(run(&["log", "thermostat"]).contains("holding 21.0 degrees"));
    assert!(run(&["tree", "thermostat"]).contains("target"));
    let updated = run(&["install", &package, "--grant", "same"]);
    assert!(updated.contains("installed again"), "{updated}");
    run(&["stop", "thermostat"]);
    run(&["start", "thermostat"]);
    run(&["remove", "thermostat"]);
    let ping = ["ping", "attic", "--via", &stairs.address, "--count", "1", "--timeout", "30s"];
    let pinged = user.ok(&ping);
    assert!(
        pinged.contains(&format!(", by way of {}\nattic: 1 call sent", stairs.address)),
        "{pinged}"
    );
    let missing = ["list", "--device", "nowhere", "--via", &stairs.address];
    let error = user.error(&missing);
    assert!(error.contains("the member knows no device `nowhere` in its mesh"), "{error}");
    let stranger = User::new();
    let error = stranger.error(&["list", "--device", "attic", "--via", &stairs.address]);
    assert!(error.contains("is not a device of yours") || error.contains("owner"), "{error}");
}

#[test]
fn carried_call_that_fails_names_the_relay_that_is_gone() {
    // Desk 19: after 27 seconds there was no word of which one.
    let user = User::new();
    let (stairs, relay) = device(&user, "stairs", &[]);
    let (_cellar, beyond) = device(&user, "cellar", &[&relay]);
    let (landing, far) = device(&user, "landing", &[&beyond]);
    let (_attic, _) = device(&user, "attic", &[&far]);
    wait_until("the member knows all", || {
        let ways = user.json(&["mesh", &stairs.address]);
        let ways = ways["ways"].as_array().unwrap();
        ["landing", "attic"].iter().all(|name| ways.iter().any(|way| way["device"] == **name))
    });
    let via = |name| ["--device", name, "--via", &stairs.address];
    user.ok(&[&["list"], &via("landing")[..]].concat());
    user.ok(&[&["install", &package("thermostat"), "--grant", "all"], &via("attic")[..]].concat());
    landing.kill();
    let call = ["call", "thermostat", "read", "--timeout", "3"];
    // The ways that lead over it are known to be gone sooner or later.
    let error = user.error(&[&call[..], &via("attic")].concat());
    let names_it = error.contains("to the relay landing, which doesn't answer")
        || error.contains("no longer attic, landing");
    assert!(names_it, "{error}");
    // Nor is a member waited for that is gone itself.
    let address = stairs.address.clone();
    stairs.kill();
    let error = user.error(&[&call[..], &["--device", "attic", "--via", &address]].concat());
    assert!(error.starts_with("the member of the mesh: no device answers at"), "{error}");
}

#[test]
fn a_tenant_keeps_secrets_and_calls_its_machine_by_way_of_a_member_with_the_owners_pass() {
    let owner = User::new();
    let (stairs, relay) = device(&owner, "stairs", &[]);
    let (_cellar, beyond) = device(&owner, "cellar", &[&relay]);
    let (_attic, _) = device(&owner, "attic", &[&beyond]);
    let tenant = tenant_of(&package("probe"));
    let session = tenant.json(&["key", "--own"])["owner_machine_key"].as_str().unwrap().to_string();
    let owner_key =
        owner.json(&["key", "--own"])["owner_signing_key"].as_str().unwrap().to_string();
    wait_until("the member knows it", || {
        let ways = owner.json(&["mesh", &stairs.address]);
        ways["ways"].as_array().unwrap().iter().any(|way| way["device"] == "attic")
    });
    let at = ["--device", "attic", "--via", &stairs.address];
    let grants = ["--grant", "secrets=wifi", "--grant", &format!("callers=#{session}")];
    owner.ok(&[&["install", &package("probe")], &grants[..], &at[..]].concat());
    let file = tenant.path("attic.pass").into_os_string().into_string().unwrap();
    let pass = ["pass", "probe", "--output", &file];
    let endless = owner.error(&[&pass[..], &at[..]].concat());
    assert!(endless.contains("--for 30d"), "{endless}");
    let written = owner.json(&[&pass[..], &["--for", "1d"], &at[..]].concat());
    assert_eq!(written["device"], "attic", "{written}");

    let by_pass = [&at[..], &["--pass", &file]].concat();
    let at_owner = [&by_pass[..], &["--owner", &owner_key]].concat();
    let set = tell(&tenant, &[&["set", "wifi"], &at_owner[..]].concat(), "open sesame").unwrap();
    assert_eq!((&set["set"], &set["device"]), (&"wifi".into(), &"attic".into()));
    let listed = tenant.json(&[&["secret", "list"], &at_owner[..]].concat());
    assert_eq!(listed["secrets"][0]["name"], "wifi");
    // The record that tells of the machine comes to the member in its time.
    let call =
        |arguments: &[&str]| tenant.command(&[&["call"], arguments].concat()).output().unwrap();
    let secret = ["probe@attic", "secret", "wifi"];
    // Each attempt costs the member a signature, of which it verifies a few a second.
    let told = tenure_testbed::wait_until(|| {
        let output = call(&[&secret[..], &by_pass[..]].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        output.status.success().then(|| text(&output.stdout)).ok_or_else(|| text(&output.stderr))
    });
    assert_eq!(told, "open sesame");

    // A pass opens nothing else.
    let refused = tenant.error(&[&["list"], &at[..]].concat());
    assert!(refused.contains("owner"), "{refused}");
    let without = tenant.error(&[&["secret", "list", "--owner", &owner_key], &at[..]].concat());
    assert!(without.contains("--pass"), "{without}");
    let elsewhere = ["--device", "cellar", "--via", &stairs.address, "--pass", &file];
    let elsewhere = [&["secret", "list", "--owner", &owner_key], &elsewhere[..]].concat();
    let elsewhere = tenant.error(&elsewhere);
    assert!(elsewhere.contains("the pass is for attic, and not for cellar"), "{elsewhere}");
    let thief = User::new();
    let stolen = thief.error(&[&["secret", "list"], &at_owner[..]].concat());
    assert!(stolen.contains("another tenant's"), "{stolen}");
}

#[test]
fn an_owner_who_is_its_own_tenant_keeps_secrets_by_way_of_a_member_without_a_pass() {
    let user = User::new();
    let (stairs, relay) = device(&user, "stairs", &[]);
    let (_attic, _) = device(&user, "attic", &[&relay]);
    // The packages of these tests are signed by a key of their own.
    let key = std::path::Path::new(&package("probe")).with_file_name("tenant").join("tenant.key");
    std::fs::copy(key, user.home().join("tenant.key")).unwrap();
    wait_until("the member knows it", || {
        let ways = user.json(&["mesh", &stairs.address]);
        ways["ways"].as_array().unwrap().iter().any(|way| way["device"] == "attic")
    });
    let at = ["--device", "attic", "--via", &stairs.address];
    user.ok(&[&["install", &package("probe"), "--grant", "all"], &at[..]].concat());
    let set = tell(&user, &[&["set", "wifi"], &at[..]].concat(), "open sesame").unwrap();
    assert_eq!(set["device"], "attic", "{set}");
    assert_eq!(user.ok(&[&["call", "probe", "secret", "wifi"], &at[..]].concat()), "open sesame");
}

#[test]
fn device_that_only_members_know_is_told_of_a_revocation_and_of_new_keys_by_way_of_them() {
    // C2-1: a device that no command has met, and that the mesh knows.
    let user = User::new();
    let (stairs, relay) = device(&user, "stairs", &[]);
    let (_cellar, beyond) = device(&user, "cellar", &[&relay]);
    let (_attic, _) = device(&user, "attic", &[&beyond]);
    wait_until("the member knows both", || {
        let ways = user.json(&["mesh", &stairs.address]);
        let ways = ways["ways"].as_array().unwrap();
        ["attic", "cellar"].iter().all(|name| ways.iter().any(|way| way["device"] == **name))
    });
    let forget = || {
        for name in ["attic", "cellar"] {
            if user.ok(&["devices", "--quiet"]).contains(name) {
                user.ok(&["devices", "--forget", name]);
            }
        }
    };
    let stranger = User::new().json(&["key", "--own"])["owner_signing_key"].clone();
    for words in [
        &["revoke", "tenant", stranger.as_str().unwrap(), "--yes"][..],
        &["owner", "change", "--yes"],
    ] {
        forget();
        let done = user.json(words);
        assert_eq!(done["told"], serde_json::json!(["attic", "cellar", "stairs"]), "{done}");
        assert_eq!(
            (&done["away"], &done["unknown"]),
            (&serde_json::json!([]), &serde_json::json!([]))
        );
        // They are known from then on, each with the member that led there.
        let known = user.json(&["devices", "--quiet"]);
        let met = known["devices"].as_array().unwrap();
        let attic = met.iter().find(|one| one["device"] == "attic").unwrap();
        assert_eq!(attic["via"], stairs.address, "{known}");
    }
}
