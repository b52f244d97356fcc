//! Names, ids and every message between devices, read and written.
#![no_std]
#![no_main]

use tenure_size::{keep, probe, unknown_bytes};
use tenure_wire::datagram::Datagram;
use tenure_wire::frame::{CallBody, Message, ReplyBody};
use tenure_wire::host_call::HostCall;
use tenure_wire::{MachineId, Target};

extern crate alloc;
use alloc::string::ToString;
use alloc::vec::Vec;

probe!({
    let bytes = unknown_bytes();
    keep(Datagram::parse(bytes));
    if let Ok(message) = Message::parse(bytes) {
        let mut emitted = Vec::new();
        message.emit(&mut emitted);
        keep(emitted);
    }
    keep(CallBody::parse(bytes).map(|body| body.to_bytes()));
    keep(ReplyBody::parse(bytes).map(|body| body.to_bytes()));
    if let Ok(text) = core::str::from_utf8(bytes) {
        keep(text.parse::<Target>().map(|target| target.to_string()));
        keep(text.parse::<MachineId>());
    }
    keep(HostCall::decode(bytes.len() as u16, &[0; 8]));
});
