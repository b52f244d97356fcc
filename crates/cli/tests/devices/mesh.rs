//! Devices that reach each other by mesh alone, over a device that relays.

use crate::harness::{Process, User, on};

/// Starts a device that knows no hub, and whose neighbours in the mesh are `peers`; gives its place
/// in the mesh too.
fn device(user: &User, name: &str, peers: &[&str]) -> (Process, String) {
    let fixed = ["device", "--data", name, "--listen", "127.0.0.1:0", "--json"];
    let mut command = user.command(&fixed);
    command.args(["--survives", "kill", "--mesh", "127.0.0.1:0"]);
    for peer in peers {
        command.args(["--mesh-peer", peer]);
    }
    let mut device = Process::start(command);
    let entered = device.wait_for_event("mesh");
    assert!(entered["node"].is_string(), "the owner's keys are here: {entered}");
    let address = entered["address"].as_str().unwrap().to_string();
    (device, address)
}

#[test]
fn a_call_by_name_needs_no_hub_and_no_common_link() {
    let user = User::new();
    let (_stairs, relay) = device(&user, "stairs", &[]);
    let (attic, _) = device(&user, "attic", &[&relay]);
    let (cellar, _) = device(&user, "cellar", &[&relay]);
    user.install(&attic, &["thermostat"]);
    user.install(&cellar, &["probe"]);
    // The record of what was just installed takes a moment to cross the mesh.
    let ask = ["probe", "call", "thermostat@attic read"];
    let answered = (0..50).any(|_| user.call(on(&cellar), &ask) == "21.0");
    assert!(answered, "cellar reaches attic by way of stairs");
}

#[test]
fn a_mesh_peer_without_a_mesh_is_a_mistake() {
    let user = User::new();
    let output = user.command(&["device", "--data", "x", "--mesh-peer", "127.0.0.1:1"]).output();
    let error = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(error.contains("--mesh <ADDR>"), "{error}");
}
