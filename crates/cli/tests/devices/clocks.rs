//! Devices with wrong clocks: they judge no certificate by one, and learn the date from their owner.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tenure_testbed::{free_ipv4_address, skip_without_tool};

use crate::bridge::{LAMP, Mosquitto, bridge, certificates, command};
use crate::guests::package;
use crate::harness::{Process, User, any_address, finish, on};

/// The library that shows processes another time, for those with several threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Lets `command` run under a clock that begins at this time. The time since the computer's start is the real one.
fn at_time(command: &mut Command, time: &str) -> bool {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let libraries = folders.map(|folder| folder.path().join(LIBRARY));
    let Some(library) = libraries.into_iter().find(|path: &PathBuf| path.exists()) else {
        skip_without_tool("faketime (Debian: faketime)");
        return false;
    };
    command.env("LD_PRELOAD", library).env("FAKETIME", format!("@{time}"));
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("TZ", "UTC");
    true
}

/// A device whose clock begins at this time, bridged to a broker over TLS; `None` if a tool is missing.
fn device_at(user: &User, time: &str) -> Option<(Process, Mosquitto)> {
    let address = free_ipv4_address();
    if !certificates(&user.path(""), address.split(':').next().unwrap()) {
        return None;
    }
    let lines = "allow_anonymous true\ncertfile server.pem\nkeyfile server.key";
    let broker = Mosquitto::start(&user.path(""), &address, lines)?;
    bridge(user, &format!("mqtts://{address}"), &format!("ca = [\"ca.pem\"]\n{LAMP}"));
    let mut device = command(user, "attic", &[]);
    at_time(&mut device, time).then(|| (Process::start(device), broker))
}

#[test]
fn clock_that_was_never_set_judges_no_certificate_until_the_owner_tells_the_date() {
    let user = User::new();
    let Some((mut device, _broker)) = device_at(&user, "1970-01-01 00:00:10") else { return };
    let refused = device.wait_for_log("attic", "does not know the time");
    assert!(refused.contains("any command of its owner"), "{refused}");
    // Any command of the owner's tells the device what time it is.
    user.ok(&["status", "--device", &device.address]);
    device.wait_for_log("attic", "bridge: connected to mqtts://");
    let status = user.json(&["status", "--device", &device.address]);
    assert_eq!(status["outside"]["date"]["teller"], "its owner", "{status}");
    let told = status["outside"]["date"]["unix_s"].as_u64().unwrap();
    assert_eq!(status["unix_s"].as_u64().unwrap().abs_diff(told) / 60, 0, "{status}");
    let text = user.ok(&["status", "--device", &device.address]);
    assert!(text.contains(", by its owner\n"), "{text}");
}

#[test]
fn clock_that_is_years_ahead_is_named_in_the_refusal_and_the_owners_word_counts_more() {
    let user = User::new();
    let Some((mut device, _broker)) = device_at(&user, "2039-06-01 12:00:00") else { return };
    let refused = device.wait_for_log("attic", "it has expired");
    assert!(refused.contains("; by its own clock it is 2039-06-01T"), "{refused}");
    user.ok(&["status", "--device", &device.address]);
    device.wait_for_log("attic", "bridge: connected to mqtts://");
    let status = user.json(&["status", "--device", &device.address]);
    assert_eq!(status["outside"]["date"]["teller"], "its owner", "{status}");
}

#[test]
fn lease_that_a_clock_years_ahead_ended_goes_on_when_the_owner_tells_the_time() {
    let user = User::new();
    let device = user.device("attic", None);
    let install = ["install", &package("counter"), "--grant", "all", "--for", "30d"];
    user.ok(&[&install[..], &["--device", &device.address]].concat());
    device.kill();
    let mut ahead = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    ahead.args(["--json", "--survives", "kill"]);
    if !at_time(&mut ahead, "2028-06-01 12:00:00") {
        return;
    }
    let mut device = Process::start(ahead);
    device.wait_for_log("counter", "its lease is over");
    // Any command of the owner's tells the device what time it is, and the clock goes on being wrong.
    user.ok(&["status", "--device", &device.address]);
    device.wait_for_log("counter", "its lease goes on");
    let at = ["--device", device.address.as_str()];
    assert_eq!(user.call(on(&device), &["counter", "add"]), "1");
    user.ok(&[&["renew", "counter", "--for", "20d"][..], &at].concat());
    assert_eq!(user.call(on(&device), &["counter", "add"]), "2");
    let status = user.json(&[&["status"][..], &at].concat());
    let told = status["outside"]["date"]["unix_s"].as_u64().unwrap();
    assert!(status["unix_s"].as_u64().unwrap().abs_diff(told) < 60, "{status}");
}

#[test]
fn device_that_is_made_anew_replaces_one_that_was_enrolled_under_a_clock_years_ahead() {
    let user = User::new();
    let hub = user.hub();
    let mut ahead = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    if !at_time(ahead.arg("--json"), "2028-06-01 12:00:00") {
        return;
    }
    let device = Process::start(ahead);
    user.ok(&["status", "--device", &device.address]);
    device.kill();
    std::fs::remove_dir_all(user.path("attic")).unwrap();
    let device = user.device("attic", Some(&hub));
    user.ok(&["status", "--device", "attic", "--hub", &hub.address]);
    user.ok(&["enrol", &device.address]);
    device.kill();
    let _device = user.device("attic", Some(&hub));
    user.ok(&["status", "--device", "attic", "--hub", &hub.address]);
}

#[test]
fn clock_that_can_not_be_right_is_told_by_netcheck_as_it_is_shown() {
    let user = User::new();
    let hub = user.hub();
    let mut netcheck = user.command(&["netcheck", "--hub", &hub.address, "--json"]);
    if !at_time(&mut netcheck, "2025-10-01 12:00:00") {
        return;
    }
    let output = finish(netcheck);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut findings = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let clock = findings.find(|finding| finding["finding"] == "clock").expect(&text);
    assert_eq!(clock["own_unix_s"].as_u64().unwrap() / 3_600, 1_759_320_000 / 3_600, "{clock}");
    assert!(clock["said"].as_str().unwrap().ends_with(" days behind the hub's"), "{clock}");
    assert!(!output.status.success() && clock["ok"] == false, "{clock}");
}
