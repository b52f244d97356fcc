//! Devices of one owner that find each other on their network, without a hub, and commands that find them there.

use tenure_testbed::wait_until;

use crate::harness::{Process, User};

/// Starts a device that announces itself on loopback, where one does so only if told to: on that of IPv4, as Linux'
/// carries no multicast of IPv6.
fn device(user: &User, name: &str) -> Process {
    let mut command = user.command(&[
        "device",
        "--data",
        name,
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--discover",
    ]);
    command.args(["--survives", "kill"]);
    Process::start(command)
}

#[test]
fn devices_without_a_hub_find_each_other_on_their_network_and_call_by_name() {
    let user = User::new();
    let (attic, cellar) = (device(&user, "attic"), device(&user, "cellar"));
    user.install(&attic, &["thermostat"]);
    user.install(&cellar, &["probe"]);
    user.call_until(&cellar, &["probe", "call", "thermostat@attic read"], "21.0");
    // Elsewhere on the next day, as by DHCP.
    drop(attic);
    let _attic = device(&user, "attic");
    user.call_until(&cellar, &["probe", "call", "thermostat@attic read"], "21.0");
}

#[test]
fn command_finds_a_device_by_its_name_that_it_never_met() {
    let user = User::new();
    let attic = device(&user, "attic");
    let list = user.ok_once_there(&["list", "--device", "attic", "--json"]);
    assert!(list.contains("\"device\":\"attic\""), "{list}");
    user.install(&attic, &["thermostat"]);
    assert_eq!(user.ok(&["call", "thermostat@attic", "read"]), "21.0");
    drop(attic);
    let moved = device(&user, "attic");
    user.ok_once_there(&["list", "--device", "attic"]);
    let devices = user.json(&["devices"]);
    assert_eq!(devices["devices"][0]["address"], moved.address.as_str());
    assert_eq!(devices["devices"][0]["answers"], true);
}

#[test]
fn devices_lists_what_is_on_the_network_and_says_whose_it_is() {
    let (user, other) = (User::new(), User::new());
    let (attic, theirs) = (device(&user, "attic"), device(&other, "shed"));
    wait_until(|| {
        let found = user.json(&["devices"]);
        let has = |list: &str, address: &str| found[list].to_string().contains(address);
        if !has("devices", &attic.address) || !has("strangers", &theirs.address) {
            return Err(found);
        }
        assert!(!has("devices", &theirs.address) && !has("strangers", &attic.address));
        Ok(())
    });
}

#[test]
fn device_that_is_told_not_to_is_silent_and_remembers_it() {
    let user = User::new();
    assert_eq!(device(&user, "attic").interrupt().code(), Some(0));
    let told = std::fs::read_to_string(user.path("attic/device.toml")).unwrap();
    assert!(told.contains("discover = true"), "{told}");
    let command = ["device", "--data", "attic", "--listen", "127.0.0.1:0", "--json"];
    let silent = Process::start(user.command(&[&command[..], &["--discover", "false"]].concat()));
    let threads = std::fs::read_dir(format!("/proc/{}/task", silent.id())).unwrap();
    let names = threads.map(|it| std::fs::read_to_string(it.unwrap().path().join("comm")).unwrap());
    assert!(!names.into_iter().any(|name| name.trim() == "mDNS_daemon"));
    assert_eq!(silent.interrupt().code(), Some(0));
    let told = std::fs::read_to_string(user.path("attic/device.toml")).unwrap();
    assert!(told.contains("discover = false"), "{told}");
}
