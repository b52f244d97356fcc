//! What records of a device are made of, and records of one with one machine.

#[path = "../../../node/tests/node/leases.rs"]
#[allow(dead_code)]
pub(crate) mod leases;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_crypto::{Seed, SigningKey};
use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_node::{Config, Door as _, Moment, Notice, Owner, Parts};
use tenure_replay::{Recorded, Tape};
use tenure_wire::control::{Client as _, Enrol};
use tenure_wire::directory::Enrolment;

use leases::Lease;

/// The owner's key, by which the settings name the owner.
pub(crate) const KEY: [u8; 32] = [7; 32];

/// A file in memory that outlives who writes it.
#[derive(Clone, Default)]
pub(crate) struct Paper(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The configuration of the recorded device, from the record's settings.
pub(crate) fn config(settings: &[u8]) -> Result<Config, String> {
    let owner = SigningKey::from_bytes(settings.first_chunk().ok_or("no key")?);
    let machine = Seed::from_bytes(&owner.to_bytes()).device_secret().public_key();
    let owner = Owner { verifying_key: owner.verifying_key(), machine };
    Ok(Config::new("attic".parse().unwrap(), owner))
}

pub(crate) fn moment(now: Instant, entropy: &mut Sequence) -> Moment<'_> {
    let unix_time = Some(UnixTime { seconds: 1_800_000_000 + now.as_millis() / 1000 });
    Moment { now, unix_time, entropy }
}

/// The record of a device with a machine of the module that `text` is in WebAssembly's text form. The device is polled each
/// `step` for as long as `goes_on` says so, which is told the time and what the device noticed since the step before.
pub(crate) fn record(
    machine: &str,
    text: &str,
    step: Duration,
    goes_on: &mut dyn FnMut(Instant, &[Notice]) -> bool,
) -> Vec<u8> {
    let (mut entropy, key, paper) = (Sequence(1), SigningKey::from_bytes(&KEY), Paper::default());
    let flash = |sector_count| {
        RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
    };
    let mut parts = Parts { store: flash(32), code: flash(64), staging: flash(8) };
    let tape = Tape::begin(Box::new(paper.clone()), &KEY, &mut parts).unwrap();
    let mut now = Instant::BOOT;
    let booted =
        Recorded::boot(config(&KEY).unwrap(), parts, &mut moment(now, &mut entropy), Some(tape));
    let mut device = booted.unwrap();
    let device_key = device.node().device_key();
    let enrolment = Enrolment { device: "attic".parse().unwrap(), device_key, number: 1 };
    let signature = tenure_directory::enrol(&key, &enrolment);
    let begin = &mut moment(now, &mut entropy);
    device.as_owner(begin).enrol(Enrol { enrolment, signature }).unwrap();
    let mut lease = Lease::of(machine, text, leases::anybody());
    lease.budget.memory_bytes = 64 * 1024;
    lease.budget.task_fuel = 0;
    lease.budget.fuel_per_second = 0;
    let signed = lease.sign(&key, device_key);
    device.install(begin, &signed.package, &signed.placement).unwrap();
    let mut notices = Vec::new();
    while goes_on(now, &notices) {
        now = now + step;
        device.poll(&mut moment(now, &mut entropy));
        while device.transmit().is_some() {}
        notices = std::iter::from_fn(|| device.notice()).collect();
    }
    device.finish();
    let record = paper.0.lock().unwrap();
    record.clone()
}
