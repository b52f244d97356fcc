//! Devices of one owner that find each other on their network, without a hub, and commands that find them there.

use crate::harness::{PATIENCE, Process, User};

/// Starts a device that announces itself on loopback, where one does so only if told to.
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

/// Gives a command again and again until it goes well: an announcement takes a second.
fn ok_once_found(user: &User, arguments: &[&str]) -> String {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let output = user.command(arguments).output().unwrap();
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap();
        }
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(std::time::Instant::now() < deadline, "tenure {arguments:?}: {error}");
    }
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
    let list = ok_once_found(&user, &["list", "--device", "attic", "--json"]);
    assert!(list.contains("\"device\":\"attic\""), "{list}");
    user.install(&attic, &["thermostat"]);
    assert_eq!(user.ok(&["call", "thermostat@attic", "read"]), "21.0");
    drop(attic);
    let moved = device(&user, "attic");
    ok_once_found(&user, &["list", "--device", "attic"]);
    let devices = user.json(&["devices"]);
    assert_eq!(devices["devices"][0]["address"], moved.address.as_str());
    assert_eq!(devices["devices"][0]["answers"], true);
}

#[test]
fn devices_lists_what_is_on_the_network_and_says_whose_it_is() {
    let (user, other) = (User::new(), User::new());
    let (attic, theirs) = (device(&user, "attic"), device(&other, "shed"));
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let found = user.json(&["devices"]);
        let has = |list: &str, address: &str| found[list].to_string().contains(address);
        if has("devices", &attic.address) && has("strangers", &theirs.address) {
            assert!(!has("devices", &theirs.address) && !has("strangers", &attic.address));
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{found}");
    }
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
