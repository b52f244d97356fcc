//! A table of signed records, as a device keeps it.
#![no_std]
#![no_main]

extern crate alloc;
use alloc::vec::Vec;

use tenure_directory::Table;
use tenure_size::{keep, probe, unknown, unknown_bytes};
use tenure_wire::directory::{Query, SignedRecord};
use tenure_wire::{Address, MachineId, Signature};

probe!({
    let mut table = Table::new(Vec::new(), 16);
    let signed = SignedRecord {
        bytes: unknown_bytes().to_vec(),
        signature: Signature::from_bytes(&unknown()),
    };
    keep(table.accept(signed, Address::Line(0), 0));
    keep(table.find(&Query::Id(MachineId(unknown())), 0));
});
