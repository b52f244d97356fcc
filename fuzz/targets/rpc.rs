//! Two devices that call each other over a network which the input drives: it loses, repeats,
//! reorders and bends datagrams, makes up its own, and lets time pass.
//!
//! Whatever it does, no call is handed out twice.
#![no_main]
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tenure_crypto::StaticSecret;
use tenure_hal::Instant;
use tenure_hal::simulated::Sequence;
use tenure_rpc::{Config, Endpoint, Event, OutgoingCall};
use tenure_wire::{MachineId, PublicKey};

fuzz_target!(|bytes: &[u8]| {
    let mut network = Network::new();
    let mut input = bytes.iter().copied();
    while let Some(step) = input.next() {
        network.step(step, &mut input);
        network.collect();
    }
});

struct Device {
    endpoint: Endpoint<usize>,
    machine: MachineId,
    key: PublicKey,
}

struct Network {
    now: Instant,
    entropy: Sequence,
    devices: [Device; 2],
    /// Receiver and bytes.
    under_way: Vec<(usize, Vec<u8>)>,
    calls_made: u32,
    calls_seen: HashSet<Vec<u8>>,
}

impl Network {
    fn new() -> Self {
        let mut entropy = Sequence(1);
        let now = Instant::from_millis(1000);
        let mut device = || {
            let mut endpoint =
                Endpoint::new(Config::default(), now, &mut entropy).expect("limits fit");
            let secret = StaticSecret::generate(&mut entropy).expect("a counter never fails");
            let key = secret.public_key();
            let machine = endpoint.add_machine(secret).expect("room for one");
            Device { endpoint, machine, key }
        };
        let devices = [device(), device()];
        let under_way = Vec::new();
        Self { now, entropy, devices, under_way, calls_made: 0, calls_seen: HashSet::new() }
    }

    fn step(&mut self, step: u8, input: &mut impl Iterator<Item = u8>) {
        let device = usize::from(step & 1);
        match step >> 1 & 7 {
            0 => self.call(device),
            1 => self.deliver(input.next().unwrap_or(0), |_| {}),
            2 => self.repeat(input.next().unwrap_or(0)),
            3 => {
                let (at, flip) = (input.next().unwrap_or(0), input.next().unwrap_or(1));
                self.deliver(0, |datagram| {
                    let at = usize::from(at) % datagram.len().max(1);
                    if let Some(byte) = datagram.get_mut(at) {
                        *byte ^= flip;
                    }
                });
            }
            4 => self.lose(input.next().unwrap_or(0)),
            5 => self.pass_time(device, input.next().unwrap_or(0)),
            6 => {
                let length = usize::from(input.next().unwrap_or(0));
                let made_up: Vec<u8> = input.take(length).collect();
                self.receive(device, &made_up);
            }
            _ => self.deliver(0, |_| {}),
        }
    }

    fn call(&mut self, device: usize) {
        self.calls_made += 1;
        let peer = self.devices[1 - device].key;
        let from = &mut self.devices[device];
        let call = OutgoingCall {
            function: "echo".into(),
            parameter: Some(self.calls_made.to_le_bytes().to_vec()),
            deadline: self.now + Duration::from_secs(20),
            attempts: 5,
        };
        let machine = from.machine;
        let _ = from.endpoint.call(
            self.now,
            &mut self.entropy,
            &machine,
            &peer,
            1 - device,
            None,
            call,
        );
    }

    fn deliver(&mut self, which: u8, bend: impl FnOnce(&mut Vec<u8>)) {
        if let Some(index) = self.index(which) {
            let (to, mut datagram) = self.under_way.remove(index);
            bend(&mut datagram);
            self.receive(to, &datagram);
        }
    }

    fn repeat(&mut self, which: u8) {
        if let Some(index) = self.index(which) {
            let (to, datagram) = self.under_way[index].clone();
            self.receive(to, &datagram);
        }
    }

    fn lose(&mut self, which: u8) {
        if let Some(index) = self.index(which) {
            self.under_way.remove(index);
        }
    }

    fn index(&self, which: u8) -> Option<usize> {
        usize::from(which).checked_rem(self.under_way.len())
    }

    fn pass_time(&mut self, device: usize, tenths: u8) {
        self.now = self.now + Duration::from_millis(u64::from(tenths) * 100);
        self.devices[device].endpoint.poll(self.now, &mut self.entropy);
    }

    fn receive(&mut self, to: usize, datagram: &[u8]) {
        self.devices[to].endpoint.receive(self.now, &mut self.entropy, 1 - to, datagram);
    }

    /// Takes out what the endpoints have to say, and answers what they were asked.
    fn collect(&mut self) {
        for device in &mut self.devices {
            while let Some(event) = device.endpoint.event() {
                if let Event::IncomingCall { handle, parameter, .. } = event {
                    let sent = parameter.clone().expect("every call was made with a parameter");
                    assert!(self.calls_seen.insert(sent), "a call was handed out twice");
                    device.endpoint.reply(self.now, handle, Ok(parameter));
                }
            }
            while let Some(outgoing) = device.endpoint.transmit() {
                if self.under_way.len() < 256 {
                    self.under_way.push(outgoing);
                }
            }
        }
    }
}
