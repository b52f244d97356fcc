//! Peripherals that follow a script, machines that hear and command them, and what the owner sees.

use serde_json::Value;

use crate::harness::{Process, User, any_address, on};

const PERIPHERALS: &str = r#"
[temperature]
kind = "thermometer"
period_ms = 20
points = [[0.0, 15.0]]
[heater]
kind = "lamp"
[button]
kind = "button"
presses = [0.2, 0.6]
[camera]
kind = "camera"
width = 64
height = 48
period_ms = 50
"#;

fn device_with_peripherals(user: &User, more: &[&str]) -> Process {
    std::fs::write(user.path("peripherals.toml"), PERIPHERALS).unwrap();
    let mut command = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    command.args(["--json", "--survives", "kill", "--peripherals", "peripherals.toml"]);
    command.args(more);
    Process::start(command)
}

/// How often something was published under a topic.
fn published(events: &Value, topic: &str) -> u64 {
    let mut topics = events["topics"].as_array().unwrap().iter();
    let found = topics.find(|one| one["topic"] == topic);
    found.map_or(0, |one| one["published"].as_u64().unwrap())
}

#[test]
fn a_machine_hears_a_sensor_and_commands_a_peripheral() {
    let user = User::new();
    let mut device = device_with_peripherals(&user, &[]);
    user.install(&device, &["climate"]);
    device.wait_for_log("climate", "15.0 degrees: heater on");
    let shown = user.call(on(&device), &["climate", "show"]);
    assert!(shown.starts_with("15.0 degrees after "), "{shown}");
    let mut events = user.json(&["events", "--device", &device.address]);
    // One each 50 ms.
    while published(&events, "device.camera.frame") <= 3 {
        events = user.json(&["events", "--device", &device.address]);
    }
    assert_eq!(published(&events, "command.heater"), 1);
    assert_eq!(published(&events, "device.heater"), 2, "off at first, then on");
    assert!(published(&events, "device.temperature") > 0);
    let subscriptions = events["subscriptions"].as_array().unwrap();
    let climate = subscriptions.iter().find(|one| one["subscriber"] == "climate").unwrap();
    assert_eq!(climate["policy"], "latest-only");
    assert_eq!(climate["handler"], "on_temperature");
    let heater = subscriptions.iter().find(|one| one["subscriber"] == "heater").unwrap();
    assert_eq!((&heater["is_peripheral"], &heater["delivered"]), (&true.into(), &1.into()));
    let text = user.ok(&["events", "--device", &device.address]);
    assert!(text.contains("device.temperature") && text.contains("latest-only"), "{text}");
}

#[test]
fn a_machine_in_c_waits_for_a_button() {
    let user = User::new();
    std::fs::write(user.path("peripherals.toml"), PERIPHERALS).unwrap();
    let package = crate::guests::package("doorbell");
    let mut command = user.command(&["run", &package, "--keep", "--json"]);
    command.args(["--peripherals", "peripherals.toml"]);
    let mut device = Process::start(command);
    device.wait_for_log("doorbell", "rung 1 times, heard by 0");
    device.wait_for_log("doorbell", "rung 2 times, heard by 0");
}

#[test]
fn peripherals_that_cannot_be_are_refused() {
    let user = User::new();
    std::fs::write(user.path("peripherals.toml"), "[kettle]\nkind = \"kettle\"").unwrap();
    let arguments = ["device", "--data", "attic", "--peripherals", "peripherals.toml"];
    let error = user.error(&arguments);
    assert!(error.contains("peripherals.toml") && error.contains("kettle"), "{error}");
}

#[test]
fn a_device_that_was_recorded_runs_again_without_itself() {
    let user = User::new();
    let mut device = device_with_peripherals(&user, &["--record", "attic.tape"]);
    user.install(&device, &["climate"]);
    let line = device.wait_for_log("climate", "15.0 degrees: heater on");
    user.call(on(&device), &["climate", "show"]);
    assert_eq!(device.interrupt().code(), Some(0));
    let replayed = user.ok(&["replay", "attic.tape"]);
    assert!(replayed.contains(&line), "{replayed}");
    assert!(replayed.contains("the flash is the same at the end"), "{replayed}");
    let tape = std::fs::read(user.path("attic.tape")).unwrap();
    std::fs::write(user.path("half.tape"), &tape[..tape.len() * 3 / 4]).unwrap();
    let half = user.ok(&["replay", "half.tape"]);
    assert!(half.contains("where the record breaks off"), "{half}");
    let refused = user.error(&["replay", "peripherals.toml"]);
    assert!(refused.contains("no record"), "{refused}");
}

#[test]
fn fuel_of_a_recorded_run_is_shown_by_function_and_line_and_drawn() {
    let user = User::new();
    let mut device = device_with_peripherals(&user, &["--record", "attic.tape"]);
    user.install(&device, &["climate"]);
    device.wait_for_log("climate", "15.0 degrees: heater on");
    user.call(on(&device), &["climate", "show"]);
    assert_eq!(device.interrupt().code(), Some(0));
    let package = crate::guests::package("climate");
    let profile = ["profile", "attic.tape", "--rows", "1000"];
    let named = [&profile[..], &["--package", &package, "--svg", "attic.svg"]].concat();
    let shown = user.ok(&named);
    assert!(shown.starts_with("climate: ") && shown.contains("lib.rs:"), "{shown}");
    let object = user.json(&named[..named.len() - 2]);
    assert_eq!(object["machine"], "climate");
    let sum = |list: &str| -> u64 {
        let list = object[list].as_array().unwrap();
        list.iter().map(|one| one["itself"].as_u64().unwrap()).sum()
    };
    assert_eq!(object["units"].as_u64().unwrap(), sum("functions"));
    assert!(sum("lines") > 0 && sum("lines") < sum("functions"));
    let function = |name: &str| {
        let functions = object["functions"].as_array().unwrap();
        let found = functions.iter().find(|one| one["function"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {functions:?}"))["with_calls"].as_u64().unwrap()
    };
    // The handler has what its host calls took.
    let handler = function("on_temperature");
    assert!(handler > function("tree_get") + function("publish"), "{object}");
    let svg = std::fs::read_to_string(user.path("attic.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("<title>on_temperature: "), "{svg}");
    let unnamed = user.ok(&profile);
    assert!(unnamed.contains("function ") && !unnamed.contains("on_temperature"), "{unnamed}");
    let other = crate::guests::package("counter");
    let refused = user.error(&["profile", "attic.tape", "--package", &other]);
    assert!(refused.contains("no machine of exactly this build"), "{refused}");
    let refused = user.error(&["profile", "attic.tape", "--machine", "nobody"]);
    assert!(refused.contains("no machine nobody"), "{refused}");
}
