//! Devices behind routers that let nobody in but the hub to which they speak.

use serde_json::Value;
use tenure_testbed::wait_until;

use crate::guests::package;
use crate::harness::{Process, User, any_address, by, finish, on};
use crate::nat::Nat;

/// A device behind a router of its own, as its hub has found out.
fn behind_router(user: &User, hub: &mut Process, name: &str) -> (Process, Nat) {
    let router = Nat::router(hub.socket_address());
    let device = user.device_at(name, any_address(), Some(&router.hub_address()));
    hub.wait_for(&format!("{name} to be shut"), |line| {
        line["event"] == "shut" && line["device"] == name
    });
    (device, router)
}

#[test]
fn device_behind_a_router_is_called_and_looked_after_by_its_name() {
    let user = User::new();
    let mut hub = Process::start(user.own_hub(any_address()));
    let (_attic, router) = behind_router(&user, &mut hub, "attic");
    let address = hub.address.clone();
    let at = ["--device", "attic", "--hub", &address];
    let install = ["install", &package("probe"), "--grant", "all"];
    user.ok(&[&install[..], &at].concat());
    hub.wait_until_listed("attic", 1);
    assert_eq!(user.call(by(&hub), &["probe@attic", "echo", "hello"]), "hello");
    let most = "x".repeat(8192);
    assert_eq!(user.call(by(&hub), &["probe@attic", "echo", &most]), most);
    let status = user.json(&[&["status"][..], &at].concat());
    assert_eq!(status["address"], "its hub's relay");
    user.ok(&[&["log"][..], &at].concat());
    let list = user.json(&[&["list"][..], &at].concat());
    assert_eq!(list["machines"][0]["name"], "probe");
    let seen = router.seen();
    let strangers = seen.iter().filter(|seen| seen.peer != hub.socket_address());
    assert_eq!(strangers.count(), 0, "nothing else came in or went out");
    let devices = user.json(&["devices", "--hub", &hub.address]);
    let attic = &devices["devices"][0];
    assert_eq!((&attic["state"], &attic["way"]), (&"reachable".into(), &"hub".into()));
    let listed = user.ok(&["devices", "--hub", &hub.address]);
    assert!(listed.contains("by its hub"), "{listed}");
}

#[test]
fn machines_behind_two_routers_call_each_other() {
    let user = User::new();
    let mut hub = user.hub();
    let (attic, _router) = behind_router(&user, &mut hub, "attic");
    let (cabin, _other) = behind_router(&user, &mut hub, "cabin");
    user.install(&attic, &["probe"]);
    user.install(&cabin, &["thermostat"]);
    hub.wait_until_listed("cabin", 1);
    let ask = ["probe", "call", "thermostat@cabin read"];
    assert_eq!(user.call(on(&attic), &ask), "21.0");
    assert_eq!(user.call(on(&attic), &ask), "21.0", "in the same session");
}

#[test]
fn device_is_called_again_after_its_router_or_its_hub_restarts() {
    let user = User::new();
    let mut hub = user.hub();
    let (attic, router) = behind_router(&user, &mut hub, "attic");
    user.install(&attic, &["probe"]);
    hub.wait_until_listed("attic", 1);
    let call = ["probe@attic", "echo", "hello"];
    assert_eq!(user.call(by(&hub), &call), "hello");
    router.restart();
    // It asks its hub for a name, and so the hub hears it at its new address; else that takes until it registers again.
    user.call(on(&attic), &["probe", "call", "thermostat@nowhere read"]);
    let calls = |hub: &Process| {
        wait_until(|| {
            let arguments = [&["call", "--hub", &hub.address, "--timeout", "4"][..], &call[..]];
            let output = finish(user.command(&arguments.concat()));
            match output.stdout == b"hello" {
                true => Ok(()),
                false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            }
        });
    };
    calls(&hub);
    let listen = hub.address.clone();
    hub.interrupt();
    let hub = user.hub_at(&listen);
    calls(&hub);
}

#[test]
fn hub_that_relays_nothing_says_what_stands_in_the_way() {
    let user = User::new();
    let mut command = user.own_hub(any_address());
    command.args(["--relay", "none"]);
    let mut hub = Process::start(command);
    let (_attic, _router) = behind_router(&user, &mut hub, "attic");
    for words in [&["status", "--device", "attic"][..], &["ping", "attic"]] {
        assert_eq!(
            user.error(&[words, &["--hub", &hub.address]].concat()),
            "attic keeps in touch with its hub, but its router or firewall lets nobody else in, and this hub was started \
             with --relay none"
        );
    }
    let devices = user.json(&["devices", "--hub", &hub.address]);
    assert_eq!(devices["devices"][0]["state"], "shut");
    let refused = finish(user.command(&["hub", "--data", "x", "--open", "--relay", "0"]));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("from 1 to 4294967 KB/s"), "{error}");
}

#[test]
fn ping_of_a_device_behind_a_router_goes_by_the_relay_and_says_when_nothing_comes_back() {
    let user = User::new();
    let mut hub = user.hub();
    let (attic, _router) = behind_router(&user, &mut hub, "attic");
    let hub = hub.address.as_str();
    let ping = ["ping", "attic", "--hub", hub, "--count", "2", "--interval", "10ms"];
    let events = user.ok(&[&ping[..], &["--timeout", "30s", "--json"]].concat());
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [one, two, summary] = &events[..] else { panic!("{events:?}") };
    for answer in [one, two] {
        assert_eq!((&answer["event"], &answer["way"]), (&"answer".into(), &"hub".into()));
        assert_eq!(answer["address"], "its hub's relay");
    }
    assert_eq!((&summary["event"], &summary["answered"]), (&"summary".into(), &2.into()));
    let text = user.ok(&[&ping[..], &["--timeout", "30s"]].concat());
    assert!(text.contains("by its hub's relay\nattic: 2 calls sent, 2 answered"), "{text}");
    attic.kill();
    let error = user.error(&ping);
    let is_gone = error.contains("answers neither directly nor by way of its hub")
        || error.contains("has no session with this one now");
    assert!(is_gone, "{error}");
}

#[test]
fn hub_relays_for_no_stranger() {
    let (owner, stranger) = (User::new(), User::new());
    let mut hub = owner.hub();
    let (attic, _router) = behind_router(&owner, &mut hub, "attic");
    owner.install(&attic, &["probe"]);
    hub.wait_until_listed("attic", 1);
    let keys = owner.json(&["key", "--own"]);
    let key = keys["owner_signing_key"].as_str().unwrap();
    let at = ["--device", "attic", "--hub", &hub.address, "--owner", key];
    let error = stranger.error_after(&[&["secret", "list"][..], &at].concat());
    assert!(error.contains("relays to a device for its owner alone"), "{error}");
}
