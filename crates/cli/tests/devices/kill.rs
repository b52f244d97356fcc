//! Processes are killed at random moments: what was acknowledged stays, and so does who they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tenure_cli::home::Home;
use tenure_cli::reach::client::{Client, Device};
use tenure_cli::reach::whom::machines;
use tenure_testbed::patience;
use tenure_wire::PublicKey;

use crate::harness::{Chance, Process, User, any_address, by, free_address, on};

/// The longest wait for an answer of a device that may be dead by then.
const NO_ANSWER: Duration = Duration::from_secs(2);

/// Calls `counter add` on a device again and again, in a thread of its own.
pub(crate) struct Writer {
    /// The count after each call that was answered.
    acknowledged: Receiver<u32>,
    enough: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

/// A writer's knowledge of a device that is dead.
pub(crate) struct Written {
    /// The last count that was acknowledged.
    pub(crate) last: u32,
    /// How many calls weren't answered: each may have counted.
    pub(crate) unanswered: u32,
}

impl Writer {
    pub(crate) fn start(user: &User, device: &Process) -> Self {
        let (home, address) = (Home::at(user.home()), device.socket_address());
        let (sender, acknowledged) = channel();
        let enough = Arc::new(AtomicBool::new(false));
        let is_enough = enough.clone();
        let thread = std::thread::spawn(move || {
            let mut client = Client::new(&home).unwrap();
            let Device { mut route, .. } = client.device(&address.into()).unwrap();
            route.key = key_of_counter(&mut client, address);
            let mut unanswered = 0;
            while !is_enough.load(Ordering::Relaxed) {
                match client.call(&route, "add", None, NO_ANSWER) {
                    Ok(Some(count)) => {
                        let count = String::from_utf8(count).unwrap().parse().unwrap();
                        let _ = sender.send(count);
                    }
                    _ => unanswered += 1,
                }
            }
            unanswered
        });
        Self { acknowledged, enough, thread }
    }

    /// Lets `count` more calls be answered, and kills the device in the middle of the next.
    pub(crate) fn kill_after(self, count: usize, kill: impl FnOnce()) -> Written {
        let answer = || self.acknowledged.recv_timeout(patience()).unwrap();
        let last = (0..count).fold(0, |_, _| answer());
        kill();
        self.enough.store(true, Ordering::Relaxed);
        let unanswered = self.thread.join().unwrap();
        Written { last: self.acknowledged.try_iter().last().unwrap_or(last), unanswered }
    }
}

impl Written {
    /// Whether a device that has this count has lost nothing and made nothing up.
    #[track_caller]
    pub(crate) fn check(&self, kept: u32) {
        let Self { last, unanswered } = self;
        let is_right = (*last..=last + unanswered).contains(&kept);
        assert!(is_right, "acknowledged {last}, kept {kept}, {unanswered} were not answered");
    }
}

pub(crate) fn key_of_counter(client: &mut Client, address: std::net::SocketAddr) -> PublicKey {
    let device = client.device(&address.into()).unwrap();
    let machines = machines(client, &device).unwrap();
    machines.iter().find(|machine| machine.name.as_str() == "counter").unwrap().key
}

/// The identities of the device and its machines.
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
    let mut device = user.device_at("attic", &free_address(), Some(&hub.address));
    let caller = user.device("cellar", Some(&hub));
    user.install(&caller, &["probe"]);
    user.install(&device, &["counter", "thermostat"]);
    hub.wait_until_listed("attic", 2);
    let before = identity(&user, &device);
    for round in 0..5 {
        let writer = Writer::start(&user, &device);
        // On the same port, and on another.
        let moves = round == 3;
        let listen = if moves { free_address() } else { device.address.clone() };
        let written = writer.kill_after(1 + chance.below(60), || device.kill());
        device = user.device_at("attic", &listen, Some(&hub.address));
        written.check(user.call(on(&device), &["counter", "value"]).parse().unwrap());
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
    let mut hub = user.hub_at(&free_address());
    let device = user.device("attic", Some(&hub));
    user.install(&device, &["thermostat"]);
    hub.wait_until_listed("attic", 1);
    let address = hub.address.clone();
    hub.kill();
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "21.0", "devices go on without it");
    let mut hub = user.hub_at(&address);
    // The hub still knows the device that it listed, before the device says a word.
    assert_eq!(user.call(by(&hub), &["thermostat@attic", "read"]), "21.0");
    user.install(&device, &["counter"]);
    hub.wait_until_listed("attic", 2);
    assert_eq!(user.call(by(&hub), &["counter@attic", "add"]), "1");
}

#[test]
fn devices_go_on_while_the_hub_is_down_and_register_when_it_comes() {
    let user = User::new();
    let address = free_address();
    let mut device = Process::start(user.command(&[
        "device",
        "--data",
        "attic",
        "--listen",
        any_address(),
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
