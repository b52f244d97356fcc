//! A hostile member of the mesh: it holds the network's key, and says whatever it likes.

use std::time::Duration;

use tenure_hal::Instant;
use tenure_hal::simulated::Random;
use tenure_mesh::{Destination, Dispatcher as _, Framer, FramerConfig, NodeId, ProtocolNumber};
use tenure_protocols::network_key::NetworkKey;

/// How many frames it remembers, to send them again.
const RECORDED_MAX: usize = 64;
/// How many lives it has at a time, each under a name of its own.
const NAMES: u64 = 6;

/// Several members in one, with the frames that they heard.
pub(super) struct Member {
    framers: Vec<Framer<NetworkKey>>,
    device: Option<NodeId>,
    recorded: Vec<Vec<u8>>,
    next_us: u64,
}

impl Member {
    pub(super) fn new(network: NetworkKey, random: &mut Random) -> Self {
        let framer = |name: u64| {
            let config = FramerConfig::new(NodeId::from_number(name + 1), 1, [name as u8; 8]);
            Framer::new(config, network.clone())
        };
        let framers = (0..NAMES).map(framer).collect();
        let next_us = random.between(1_000_000..=3_000_000);
        Self { framers, device: None, recorded: Vec::new(), next_us }
    }

    pub(super) fn next_us(&self) -> u64 {
        self.next_us
    }

    /// A frame of the device's.
    pub(super) fn receive(&mut self, now: Instant, frame: &[u8]) {
        if self.recorded.len() < RECORDED_MAX {
            self.recorded.push(frame.to_vec());
        }
        for framer in &mut self.framers {
            if let Ok(received) = framer.receive(now, frame) {
                self.device = Some(received.from);
            }
        }
    }

    /// The frames that it sends now, and how strong they seem.
    pub(super) fn attend(&mut self, now: Instant, random: &mut Random) -> Vec<(Vec<u8>, i8)> {
        if now.as_micros() < self.next_us {
            return Vec::new();
        }
        self.next_us = now.as_micros() + super::millis(random, 5..=200);
        let mut frames = Vec::new();
        let most = self.framers.len() as u64 - 1;
        let framer = &mut self.framers[random.between(0..=most) as usize];
        for _ in 0..random.between(0..=6) {
            let to = match self.device.filter(|_| random.chance(500)) {
                Some(device) => Destination::One(device),
                None => Destination::All,
            };
            let protocol = ProtocolNumber(random.between(0..=47) as u8);
            let mut message = vec![random.between(0..=4) as u8];
            message.extend(bytes(random));
            let _ = framer.send(now, protocol, to, Duration::ZERO, &message);
        }
        let mut frame = Vec::new();
        while framer.transmit(now, &mut frame).is_some() {
            frames.push(frame.clone());
        }
        if let Some(old) = self.recorded.get(random.between(0..=RECORDED_MAX as u64 - 1) as usize) {
            frames.push(old.clone());
        }
        frames.into_iter().map(|frame| (frame, random.number() as i8)).collect()
    }
}

/// Bytes that may stand in a message: small numbers are likelier, as lengths, counts and kinds are small.
fn bytes(random: &mut Random) -> Vec<u8> {
    let length = random.between(0..=120);
    let byte = |random: &mut Random| match random.between(0..=2) {
        0 => random.between(0..=3) as u8,
        1 => random.number() as u8,
        _ => random.between(0..=79) as u8,
    };
    (0..length).map(|_| byte(random)).collect()
}
