//! The devices and hubs that commands talk to: keys that are known decide, and addresses never.

use crate::guests::package;
use crate::harness::{Process, User, any_address, by, free_address};

/// Starts a device that doesn't register, at an address.
fn at_address(user: &User, name: &str, address: &str) -> Process {
    user.device_at(name, address, None)
}

#[test]
fn device_that_answers_at_anothers_address_is_not_acted_on_in_its_name() {
    let user = User::new();
    let hub = user.hub();
    let address = free_address();
    let kitchen = user.device_at("kitchen", &address, Some(&hub.address));
    let named = ["--device", "kitchen", "--hub", &hub.address];
    let package = package("thermostat");
    let install = [&["install", &package, "--grant", "all"], &named[..]].concat();
    assert!(user.ok(&install).contains("on kitchen"));
    kitchen.kill();
    let attic = at_address(&user, "attic", &address);
    user.install(&attic, &["thermostat"]);
    let remove = [&["remove", "thermostat"], &named[..]].concat();
    let list = [&["list"], &named[..]].concat();
    for command in [install, remove, list] {
        let error = user.error(&command);
        assert!(error.contains("another one than you mean, not kitchen"), "{error}");
    }
    // Without a hub the name stands for the key that was met under it.
    let error = user.error(&["list", "--device", "kitchen"]);
    assert!(error.contains("not kitchen"), "{error}");
    let here = user.json(&["list", "--device", &address]);
    assert_eq!((&here["device"], here["machines"].as_array().unwrap().len()), (&"attic".into(), 1));
    let pinned = format!(
        "{address}#{}",
        user.json(&["key", "--device", &address])["machine_key"].as_str().unwrap()
    );
    user.json(&["list", "--device", &pinned]);
    drop(attic);
    let kitchen = user.device("kitchen", None);
    let pinned = format!("{}#{}", kitchen.address, pinned.split_once('#').unwrap().1);
    let error = user.error(&["list", "--device", &pinned]);
    assert!(error.contains("another one than you mean"), "{error}");
}

#[test]
fn network_key_goes_to_no_device_that_was_named_by_its_address_alone() {
    let (owner, attacker) = (User::new(), User::new());
    let keys = owner.json(&["key", "--own"]);
    let key = |which: &str| keys[which].as_str().unwrap().to_string();
    let keys = key("owner_signing_key") + "/" + &key("owner_machine_key");
    let evil = ["device", "--data", "evil", "--listen", any_address(), "--json", "--owner", &keys];
    let evil = Process::start(attacker.command(&[&evil[..], &["--mesh", any_address()]].concat()));
    let error = owner.error(&["invite", &evil.address]);
    assert!(
        error.starts_with("only a device that you enrolled is invited by its address"),
        "{error}"
    );
    let other = owner.json(&["key", "--own"])["owner_machine_key"].as_str().unwrap().to_string();
    let error = owner.error(&["invite", &evil.address, "--key", &other]);
    assert!(error.contains("another one than you mean"), "{error}");
    evil.kill();
    let flash = std::fs::read(attacker.path("evil/flash.bin")).unwrap();
    let network_key = std::fs::read_to_string(owner.home().join("network.key"));
    // The key may not even have been made.
    let Ok(digits) = network_key else { return };
    let bytes: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect();
    assert!(!flash.windows(32).any(|window| window == bytes));
}

#[test]
fn hub_that_took_anothers_address_is_refused_until_its_key_is_named() {
    let user = User::new();
    let address = free_address();
    let hub = user.hub_at(&address);
    user.ok(&["list", "--all", "--hub", &address]);
    drop(hub);
    let start = ["hub", "--data", "other", "--open", "--listen", &address, "--json"];
    let other = Process::start(user.command(&start));
    let error = user.error(&["list", "--all", "--hub", &address]);
    assert!(error.contains("it is another hub"), "{error}");
    let named = error.split("--hub ").nth(1).unwrap().to_string();
    user.ok(&["list", "--all", "--hub", &named]);
    assert!(user.call_error(by(&other), &["x@nowhere", "read"]).contains("knows no device"));
}

#[test]
fn hub_starts_only_if_it_is_said_whose_devices_it_lists() {
    let user = User::new();
    let bare = ["hub", "--data", "hub", "--listen", any_address()];
    let output = user.command(&bare).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a wrong command line");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--owner"), "{error}");
    let own = [&bare[..], &["--owner", "own", "--json"]].concat();
    let hub = Process::start(user.command(&own));
    let _listed = user.device_at("attic", any_address(), Some(&hub.address));
    let stranger = User::new();
    let start =
        ["device", "--data", "shed", "--listen", any_address(), "--hub", &hub.address, "--json"];
    let mut shed = Process::start(stranger.command(&start));
    let refused = shed.wait_for_event("refused");
    assert!(refused["reason"].as_str().unwrap().contains("isn't trusted"), "{refused}");
}
