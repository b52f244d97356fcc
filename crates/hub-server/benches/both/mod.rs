//! Devices as both benchmarks of a hub have them: who owns them, their machines, and what they report.

use std::time::UNIX_EPOCH;

use tenure_crypto::{Seed, SigningKey};
use tenure_wire::Digest;
use tenure_wire::control::RoomStatus;
use tenure_wire::report::{DeviceReport, MachineReport, Report};

/// The machines of a device.
pub(crate) const MACHINES: [&str; 2] = ["thermostat", "counter"];

/// The key of all devices' owner.
pub(crate) fn owner() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

/// The seed of the device number `number`.
pub(crate) fn seed(number: u32) -> Seed {
    let mut bytes = [9; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Seed::from_bytes(&bytes)
}

/// The time, in seconds since 1970 UTC.
pub(crate) fn unix_s() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}

/// The report number `number` of a device.
pub(crate) fn report(number: u64) -> Report {
    let room = RoomStatus {
        memory_bytes_promised: 180_000,
        memory_bytes_max: 4_194_304,
        store_bytes_used: 200_000,
        store_bytes_max: 310_000,
        code_bytes_used: 41_000,
        code_bytes_max: 1_048_576,
        store_erases: 120,
    };
    let machine = |name: &&str| {
        Some(MachineReport {
            name: name.parse().ok()?,
            package: Digest([5; 32]),
            version: "1.0.0".parse().ok()?,
            state: "idle".into(),
            repute: "good".into(),
            queue_length: 0,
            tasks_done: number,
            fuel_used: 1_300 * number,
            waited_max_us: 240,
            memory_bytes: 65_536,
            memory_bytes_max: 131_072,
            stored_bytes: 512,
            metrics: vec![("temperature".parse().ok()?, 21)],
        })
    };
    Report {
        boot: 4,
        number,
        device: DeviceReport {
            version: "0.1.0".into(),
            uptime_s: 60 * number,
            room,
            heap: None,
            neighbours: Some(2),
        },
        machines: MACHINES.iter().filter_map(machine).collect(),
        faults: Vec::new(),
        faults_lost: 0,
    }
}
