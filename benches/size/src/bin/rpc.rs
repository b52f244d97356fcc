//! An endpoint that is called and calls.
#![no_std]
#![no_main]

use tenure_crypto::StaticSecret;
use tenure_hal::Instant;
use tenure_rpc::{Config, Endpoint, Event, OutgoingCall};
use tenure_size::{UnknownEntropy, keep, probe, unknown, unknown_bytes};
use tenure_wire::PublicKey;

extern crate alloc;
use alloc::string::String;

probe!({
    let now = Instant::from_micros(unknown_bytes().len() as u64);
    if let Ok(mut endpoint) = Endpoint::<u32>::new(Config::default(), now, &mut UnknownEntropy) {
        if let Ok(machine) = endpoint.add_machine(StaticSecret::from_bytes(&unknown())) {
            let call = OutgoingCall {
                function: String::new(),
                parameter: None,
                deadline: now,
                attempts: 5,
            };
            let peer = PublicKey(unknown());
            keep(endpoint.call(now, &mut UnknownEntropy, &machine, &peer, 1, None, call).is_ok());
        }
        endpoint.receive(now, &mut UnknownEntropy, 1, unknown_bytes());
        endpoint.poll(now, &mut UnknownEntropy);
        keep(endpoint.poll_at());
        while let Some(event) = endpoint.event() {
            if let Event::IncomingCall { handle, parameter, .. } = event {
                endpoint.reply(now, handle, Ok(parameter));
            }
        }
        keep(endpoint.transmit());
    }
});
