//! Deep sleep of a device that is a process: machines go on in the middle of what they do.

use crate::guests::package;
use crate::harness::{Process, User, any_address, on};

/// A device that sleeps as `how` says, with a button that is pressed again and again.
fn device(user: &User, how: &[&str]) -> Process {
    let presses: Vec<f64> = (1..60).map(|number| f64::from(number) * 1.5).collect();
    let button = format!("[button]\nkind = \"button\"\npresses = {presses:?}\nheld_ms = 100\n");
    std::fs::write(user.path("peripherals.toml"), button).unwrap();
    let mut command = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    command.args(["--json", "--survives", "kill", "--peripherals", "peripherals.toml"]).args(how);
    Process::start(command)
}

#[test]
fn a_machine_that_waits_in_a_loop_counts_on_after_each_sleep() {
    let user = User::new();
    package("doorbell");
    let mut device = device(&user, &["--deep-sleep-after", "0.3"]);
    user.install(&device, &["doorbell"]);
    for rung in 1..=4 {
        device.wait_for_log("doorbell", &format!("rung {rung} times, heard by 0"));
    }
    device.wait_for_event("asleep");
    device.wait_for_event("awake");
}

#[test]
fn a_call_wakes_a_device_that_sleeps_when_idle() {
    let user = User::new();
    let mut device = device(&user, &["--deep-sleep-after", "0.1"]);
    user.install(&device, &["counter"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "5"]), "5");
    device.wait_for_event("asleep");
    assert_eq!(user.call(on(&device), &["counter", "add", "3"]), "8");
    device.wait_for_event("asleep");
    assert_eq!(device.interrupt().code(), Some(0));
}

#[test]
fn a_device_runs_and_sleeps_by_turns() {
    let user = User::new();
    let mut device = device(&user, &["--duty-cycle", "0.3/0.2"]);
    for _ in 0..3 {
        device.wait_for_event("asleep");
        device.wait_for_event("awake");
    }
    assert_eq!(device.interrupt().code(), Some(0));
}
