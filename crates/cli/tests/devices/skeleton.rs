//! The main job: machines on two devices call each other by name, store, and read back.

use crate::harness::{User, by, on};

/// The example of the Nihilo design. A is started first and doesn't know B.
#[test]
fn nihilos_two_devices_say_hello_world() {
    let user = User::new();
    let mut hub = user.hub();
    let first = user.device("first", Some(&hub));
    user.install(&first, &["nihilo-a"]);
    hub.wait_until_listed("first", 1);
    let mut second = user.device("second", Some(&hub));
    user.install(&second, &["nihilo-b"]);
    second.wait_for_log("nihilo-b", "success");
    second.wait_for_log("nihilo-b", "hello, world");
    let tree = user.json(&["tree", "nihilo-a", "--device", &first.address]);
    assert_eq!(tree["tree"]["M.N"]["text"], "hello, world");
}

#[test]
fn machine_is_called_by_name_from_another_device_and_keeps_what_it_was_told() {
    let user = User::new();
    let mut hub = user.hub();
    let attic = user.device("attic", Some(&hub));
    let cellar = user.device("cellar", Some(&hub));
    user.install(&attic, &["thermostat"]);
    hub.wait_until_listed("attic", 1);
    user.install(&cellar, &["dashboard", "probe"]);
    assert_eq!(user.call(by(&hub), &["thermostat@attic", "read"]), "21.0");
    let set = ["probe", "call", "thermostat@attic set 19.5"];
    assert_eq!(user.call(on(&cellar), &set), "19.5");
    let page = user.call(on(&cellar), &["dashboard", "show"]);
    assert!(page.contains("attic: 19.5\n"), "{page}");
    assert!(page.contains("cellar: (not found)\n"), "a name that nobody has fails alone: {page}");
    assert_eq!(
        user.ok(&["tree", "thermostat", "target", "--device", &attic.address]),
        "target = \"19.5\"\n"
    );
    let all = user.ok(&["list", "--all", "--hub", &hub.address]);
    assert!(all.contains("thermostat@attic "), "{all}");
}
