//! Machines on one device: boot, calls, slices, what they ask for.
#![no_std]
#![no_main]

use tenure_hal::Instant;
use tenure_kernel::{Config, Kernel, World};
use tenure_size::{UnknownEntropy, UnknownFlash, keep, probe, unknown, unknown_bytes};
use tenure_store::Store;
use tenure_wire::{MachineId, PublicKey};

probe!({
    let now = Instant::from_micros(unknown_bytes().len() as u64);
    if let Ok((store, _)) = Store::mount(UnknownFlash)
        && let Ok(mut kernel) = Kernel::boot(store, UnknownFlash, Config::default(), now, id_of)
    {
        let mut world = World { now, unix_time: None, entropy: &mut UnknownEntropy };
        keep(kernel.run(&mut world));
        while let Some(effect) = kernel.effect() {
            keep(effect);
        }
        if let Ok(name) = core::str::from_utf8(unknown_bytes()).unwrap_or_default().parse() {
            keep(kernel.look(&name, "a").is_ok());
            keep(kernel.tenancy(now).remove(&name).is_ok());
        }
        keep(kernel.machines().count());
    }
});

fn id_of(_: &PublicKey) -> MachineId {
    MachineId(unknown())
}
