//! Owners who change their keys, hand devices over and revoke, by the commands for it.

use crate::guests::package;
use crate::harness::{Process, User, free_address};

/// The names of the machines on a device.
fn machines(user: &User, device: &str) -> Vec<String> {
    let list = user.json(&["list", "--device", device]);
    let machines = list["machines"].as_array().unwrap();
    machines.iter().map(|machine| machine["name"].as_str().unwrap().to_string()).collect()
}

fn own_keys(user: &User) -> String {
    let keys = user.json(&["key", "--own"]);
    let key = |which: &str| keys[which].as_str().unwrap().to_string();
    key("owner_signing_key") + "/" + &key("owner_machine_key")
}

#[test]
fn revoked_tenants_machines_go_from_all_devices_and_from_one_that_was_away_at_the_next_command() {
    let user = User::new();
    let attic = user.device("attic", None);
    let at = free_address();
    let cellar = user.device_at("cellar", &at, None);
    user.install(&attic, &["thermostat"]);
    user.install(&cellar, &["thermostat"]);
    let list = user.json(&["list", "--device", &attic.address]);
    let tenant = list["machines"][0]["tenant"].as_str().unwrap().to_string();
    cellar.kill();
    let revoke = ["revoke", "tenant", &tenant];
    let error = user.error(&revoke);
    assert!(error.contains("say so with --yes"), "{error}");
    let done = user.json(&[&revoke[..], &["--yes"]].concat());
    assert_eq!((&done["told"][0], &done["away"][0]["device"]), (&"attic".into(), &"cellar".into()));
    assert_eq!(machines(&user, &attic.address), Vec::<String>::new());
    let install = ["install", &package("thermostat"), "--grant", "all", "--device", &attic.address];
    let error = user.error(&install);
    assert!(error.contains(&tenant) && error.contains("was revoked"), "{error}");
    let cellar = user.device_at("cellar", &at, None);
    assert_eq!(machines(&user, &cellar.address), Vec::<String>::new(), "told by this very command");
    assert!(user.ok(&["revoke", "list"]).contains(&tenant));
    user.ok(&["revoke", "tenant", &tenant, "--undo", "--yes"]);
    user.ok(&["trash", "restore", "thermostat", "--device", &cellar.address]);
    user.ok(&install);
}

#[test]
fn device_whose_owner_revoked_it_is_given_no_command() {
    let user = User::new();
    let attic = user.device("attic", None);
    user.install(&attic, &["thermostat"]);
    user.ok(&["revoke", "device", "attic", "--yes"]);
    let named = ["--device", &attic.address];
    for command in [&["list"][..], &["log"], &["remove", "thermostat"]] {
        let error = user.error(&[command, &named].concat());
        assert!(error.contains("you revoked the device attic"), "{error}");
    }
    user.ok(&["revoke", "device", "attic", "--undo", "--yes"]);
    user.ok(&[&["list"], &named[..]].concat());
    let error = user.error(&["revoke", "device", "attic", "--undo", "--yes"]);
    assert!(error.contains("isn't revoked"), "{error}");
}

#[test]
fn revocation_reaches_every_hub_that_was_met_and_one_that_is_away_is_named() {
    let user = User::new();
    let serve = |data: &str, listen: &str| {
        let arguments = ["hub", "--data", data, "--owner", "own", "--listen", listen, "--json"];
        Process::start(user.command(&arguments))
    };
    let (house, garden) = (serve("house", "127.0.0.1:0"), serve("garden", "127.0.0.1:0"));
    let _attic = user.device("attic", Some(&house));
    for hub in [&house, &garden] {
        user.ok(&["list", "--all", "--hub", &hub.address]);
    }
    let told = |answer: &serde_json::Value, hub: &Process| {
        let name = format!("the hub at {}", hub.address);
        let told = answer["told"].as_array().unwrap().contains(&name.as_str().into());
        let away =
            answer["away"].as_array().unwrap().iter().any(|one| one["device"] == name.as_str());
        (told, away)
    };
    let revoke = ["revoke", "device", "attic", "--yes", "--hub", &house.address];
    let answer = user.json(&revoke);
    assert_eq!([&house, &garden].map(|hub| told(&answer, hub)), [(true, false); 2], "{answer}");
    let away = garden.address.clone();
    garden.kill();
    let answer = user.json(&[&revoke[..], &["--undo"]].concat());
    assert_eq!(told(&answer, &house), (true, false), "{answer}");
    let missed = answer["away"].as_array().unwrap();
    assert!(missed.iter().any(|one| one["device"] == format!("the hub at {away}")), "{answer}");
}

#[test]
fn new_keys_hold_all_devices_and_a_stolen_copy_of_the_old_ones_holds_none() {
    let (user, thief) = (User::new(), User::new());
    let attic = user.device("attic", None);
    let at = free_address();
    let cellar = user.device_at("cellar", &at, None);
    user.install(&attic, &["thermostat"]);
    user.install(&cellar, &["thermostat"]);
    std::fs::create_dir_all(thief.home()).unwrap();
    std::fs::copy(user.home().join("owner.key"), thief.home().join("owner.key")).unwrap();
    thief.ok(&["list", "--device", &attic.address]);
    cellar.kill();
    let before = own_keys(&user);
    let done = user.json(&["owner", "change", "--yes"]);
    assert_eq!((&done["told"][0], &done["away"][0]["device"]), (&"attic".into(), &"cellar".into()));
    assert_ne!(own_keys(&user), before);
    let cellar = user.device_at("cellar", &at, None);
    for device in [&attic, &cellar] {
        assert_eq!(machines(&user, &device.address), ["thermostat"]);
        let error = thief.error(&["list", "--device", &device.address]);
        assert!(error.contains("another owner"), "{error}");
    }
    let to = own_keys(&thief);
    let hand_over = ["owner", "hand-over", &attic.address, "--to", &to, "--yes"];
    assert!(thief.error(&hand_over).contains("another owner"));
    // The device is the new keys' after a restart, too.
    attic.kill();
    let attic = user.device("attic", None);
    user.ok(&["renew", "thermostat", "--for", "30d", "--device", &attic.address]);
}

#[test]
fn device_that_is_handed_over_is_the_new_owners_alone() {
    let (user, other) = (User::new(), User::new());
    let attic = user.device("attic", None);
    user.install(&attic, &["thermostat"]);
    let to = own_keys(&other);
    let done = user.json(&["owner", "hand-over", &attic.address, "--to", &to, "--yes"]);
    let place = format!("{}#{}", attic.address, done["key"].as_str().unwrap());
    assert!(user.error(&["list", "--device", &attic.address]).contains("another owner"));
    other.ok(&["enrol", &place]);
    assert_eq!(machines(&other, &place), Vec::<String>::new());
    other.ok(&["trash", "restore", "thermostat", "--device", &place]);
    assert_eq!(machines(&other, &place), ["thermostat"]);
    // The former owner's computer starts the process again: the device stays the new owner's.
    attic.kill();
    let attic = user.device("attic", None);
    assert_eq!(machines(&other, &attic.address), ["thermostat"]);
}

/// The names in a list of an answer.
fn names(answer: &serde_json::Value, list: &str, field: &str) -> Vec<String> {
    let entries = answer[list].as_array().unwrap().iter();
    let name = |entry: &serde_json::Value| match field {
        "" => entry.as_str().unwrap().to_string(),
        field => entry[field].as_str().unwrap().to_string(),
    };
    entries.map(name).collect()
}

#[test]
fn device_that_this_computer_has_started_is_told_though_no_command_spoke_with_it() {
    // C2-1: `tenure device`, and `tenure mesh` alone.
    let user = User::new();
    let fresh = user.device("fresh", None);
    let known = user.json(&["devices", "--quiet"]);
    assert_eq!(names(&known, "devices", "device"), ["fresh"]);
    let stranger = own_keys(&User::new());
    let tenant = stranger.split('/').next().unwrap();
    let done = user.json(&["revoke", "tenant", tenant, "--yes"]);
    assert_eq!(names(&done, "told", ""), ["fresh"]);
    let said = user.ok(&["revoke", "tenant", tenant, "--yes"]);
    assert!(said.contains("isn't named here"), "no list reads complete: {said}");
    // One that was started elsewhere, by the same owner.
    let elsewhere = User::new();
    let owner = own_keys(&user);
    let listen = free_address();
    let words = ["device", "--data", "far", "--listen", &listen, "--owner", &owner, "--json"];
    let far = Process::start(elsewhere.command(&words));
    user.ok(&["enrol", &listen]);
    user.ok(&["devices", "--forget", "far"]);
    // It is in no mesh, and refuses; that it was asked is enough.
    user.error(&["mesh", &listen]);
    let stolen = user.json(&["owner", "change", "--yes"]);
    assert_eq!(names(&stolen, "told", ""), ["far", "fresh"]);
    drop((fresh, far));
}
