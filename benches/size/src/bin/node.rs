//! A whole device but for its drivers: what a board's firmware is made of.
#![no_std]
#![no_main]

use tenure_hal::Instant;
use tenure_node::{Config, Door as _, Moment, Node, Owner, Parts};
use tenure_size::{UnknownEntropy, UnknownFlash, keep, probe, unknown, unknown_bytes};
use tenure_wire::{Address, PublicKey, VerifyingKey};

probe!({
    let bytes = unknown_bytes();
    let owner = Owner { verifying_key: VerifyingKey(unknown()), machine: PublicKey(unknown()) };
    let parts = Parts { store: UnknownFlash, code: UnknownFlash, staging: UnknownFlash };
    let now = Instant::from_micros(bytes.len() as u64);
    let mut moment = Moment { now, unix_time: None, entropy: &mut UnknownEntropy };
    if let Ok(name) = core::str::from_utf8(bytes).unwrap_or_default().parse()
        && let Ok(mut node) = Node::boot(Config::new(name, owner), parts, &mut moment)
    {
        node.receive(&mut moment, Address::Line(1), bytes);
        keep(node.poll(&mut moment));
        keep(node.transmit());
        keep(node.notice());
    }
});
