//! The flash that one machine would take on a leaf, which has none: machines, sessions and packages, without
//! mesh, translator, directory and all that a node makes of them.
#![no_std]
#![no_main]

use tenure_crypto::StaticSecret;
use tenure_hal::Instant;
use tenure_kernel::{Config, Kernel, World};
use tenure_rpc::{Endpoint, Event};
use tenure_size::{
    UnknownEntropy, UnknownFlash, keep, probe, take_package, unknown, unknown_bytes,
};
use tenure_store::Store;
use tenure_wire::{MachineId, PublicKey};

probe!({
    let now = Instant::from_micros(unknown_bytes().len() as u64);
    let bytes = unknown_bytes();
    take_package(bytes);
    let config = tenure_rpc::Config::default();
    let endpoint = Endpoint::<u32>::new(config, now, &mut UnknownEntropy);
    if let Ok((store, _)) = Store::mount(UnknownFlash)
        && let Ok(mut kernel) = Kernel::boot(store, UnknownFlash, Config::default(), now, id_of)
        && let Ok(mut endpoint) = endpoint
    {
        keep(endpoint.add_machine(StaticSecret::from_bytes(&unknown())).is_ok());
        endpoint.receive(now, &mut UnknownEntropy, 1, bytes);
        endpoint.poll(now, &mut UnknownEntropy);
        while let Some(event) = endpoint.event() {
            if let Event::IncomingCall { handle, parameter, .. } = event {
                endpoint.reply(now, handle, Ok(parameter));
            }
        }
        keep(endpoint.transmit());
        let mut world = World { now, unix_time: None, entropy: &mut UnknownEntropy };
        keep(kernel.run(&mut world));
        while let Some(effect) = kernel.effect() {
            keep(effect);
        }
        keep(kernel.machines().count());
    }
});

fn id_of(_: &PublicKey) -> MachineId {
    MachineId(unknown())
}
