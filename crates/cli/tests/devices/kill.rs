//! Processes are killed at random moments: what was acknowledged stays, and so does who they are.

use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tenure_cli::client::{Client, Device};
use tenure_cli::home::Home;
use tenure_cli::whom::machines;
use tenure_wire::PublicKey;

use crate::harness::{Chance, Process, User, by, on};

/// The longest wait for an answer of a device that is then dead.
const NO_ANSWER: Duration = Duration::from_secs(2);

/// Calls `counter add` on a device again and again until one call isn't answered; tells the count
/// after each that is.
pub(crate) fn write_until_killed(user: &User, device: &Process) -> (Receiver<u32>, JoinHandle<()>) {
    let (home, address) = (Home::at(user.home()), device.socket_address());
    let (sender, acknowledged) = channel();
    let writer = std::thread::spawn(move || {
        let mut client = Client::new(&home).unwrap();
        let Device { mut route, .. } = client.device(address).unwrap();
        route.key = key_of_counter(&mut client, address);
        while let Ok(Some(count)) = client.call(&route, "add", None, NO_ANSWER) {
            let count = String::from_utf8(count).unwrap().parse().unwrap();
            let _ = sender.send(count);
        }
    });
    (acknowledged, writer)
}

fn key_of_counter(client: &mut Client, address: std::net::SocketAddr) -> PublicKey {
    let device = client.device(address).unwrap();
    let machines = machines(client, &device).unwrap();
    machines.iter().find(|machine| machine.name.as_str() == "counter").unwrap().key
}

/// Who the device and its machines are.
pub(crate) fn identity(user: &User, device: &Process) -> (Value, Vec<Value>) {
    let keys = user.json(&["key", "--device", &device.address]);
    let list = user.json(&["list", "--device", &device.address]);
    let machines = list["machines"].as_array().unwrap().iter();
    let names = |machine: &Value| {
        ["name", "id", "key", "digest", "functions"].map(|of| machine[of].clone())
    };
    (keys, machines.map(|machine| Value::from(names(machine).to_vec())).collect())
}

#[test]
fn device_killed_during_writes_keeps_what_it_acknowledged_and_who_it_is() {
    let user = User::new();
    let mut chance = Chance::new();
    let mut hub = user.hub();
    let mut device = user.device("attic", Some(&hub));
    let caller = user.device("cellar", Some(&hub));
    user.install(&caller, &["probe"]);
    user.install(&device, &["counter", "thermostat"]);
    hub.wait_until_listed("attic", 2);
    let before = identity(&user, &device);
    for round in 0..5 {
        let (acknowledged, writer) = write_until_killed(&user, &device);
        for _ in 0..1 + chance.below(60) {
            acknowledged.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        // On the same port, and on another.
        let moves = round == 3;
        let listen = if moves { "127.0.0.1:0".into() } else { device.address.clone() };
        device.kill();
        writer.join().unwrap();
        let last = acknowledged.try_iter().last();
        device = user.device_at("attic", &listen, Some(&hub.address));
        let kept: u32 = user.call(on(&device), &["counter", "value"]).parse().unwrap();
        if let Some(last) = last {
            assert!(kept == last || kept == last + 1, "acknowledged {last}, kept {kept}");
        }
        assert_eq!(identity(&user, &device), before);
        assert_eq!(user.call(by(&hub), &["thermostat@attic", "read"]), "21.0");
        let across = || user.call(on(&caller), &["probe", "call", "thermostat@attic read"]);
        // A caller that knows the old port alone may fail first, and learns the new one by that.
        let tries = if moves { 3 } else { 1 };
        let answers: Vec<String> = (0..tries).map(|_| across()).collect();
        assert_eq!(answers.last().unwrap(), "21.0", "round {round}: {answers:?}");
    }
}

#[test]
fn killed_hub_comes_back_as_the_same_hub() {
    let user = User::new();
    let mut hub = user.hub();
    let device = user.device("attic", Some(&hub));
    user.install(&device, &["thermostat"]);
    hub.wait_until_listed("attic", 1);
    let address = hub.address.clone();
    hub.kill();
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "21.0", "devices go on without it");
    let mut hub = user.hub_at(&address);
    // What it listed it still knows, before the device says a word.
    assert_eq!(user.call(by(&hub), &["thermostat@attic", "read"]), "21.0");
    user.install(&device, &["counter"]);
    hub.wait_until_listed("attic", 2);
    assert_eq!(user.call(by(&hub), &["counter@attic", "add"]), "1");
}

#[test]
fn devices_go_on_while_the_hub_is_down_and_register_when_it_comes() {
    let user = User::new();
    let hub = user.hub();
    let address = hub.address.clone();
    hub.kill();
    let mut device = Process::start(user.command(&[
        "device",
        "--data",
        "attic",
        "--listen",
        "127.0.0.1:0",
        "--hub",
        &address,
        "--json",
    ]));
    device.wait_for_event("hub-silent");
    user.install(&device, &["thermostat"]);
    assert_eq!(user.call(on(&device), &["thermostat", "set", "18"]), "18.0");
    let hub = user.hub_at(&address);
    device.wait_for_event("registered");
    assert_eq!(user.call(by(&hub), &["thermostat@attic", "read"]), "18.0");
}
