//! Clients that send anything to a server of CoAP, while its machines answer, events come and time passes.
#![no_main]
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tenure_coap::{Config, Entry, NoAnswer, Server};
use tenure_hal::Instant;

/// The longest message that a server sends (RFC 7252 §4.6).
const MESSAGE_BYTES_MAX: usize = 1152;

fn server(now: Instant) -> Server {
    let events = vec!["e".parse().expect("a topic")];
    let mut server = Server::new(Config { events, secret: [7; 32] });
    let functions = vec!["r".into(), "l".into()];
    let open =
        Entry { name: "m".parse().expect("a name"), functions, is_open: true, publishes: true };
    let closed = Entry { name: "c".parse().expect("a name"), is_open: false, ..open.clone() };
    server.machines(now, vec![open, closed]);
    server
}

// The input is steps, each of a byte that says what happens, a length and so many bytes.
fuzz_target!(|bytes: &[u8]| {
    let (mut now, mut rest) = (Instant::BOOT, bytes);
    let mut server = server(now);
    while let Some((&[act, length], more)) = rest.split_first_chunk() {
        let (step, left) = more.split_at(usize::from(length).min(more.len()));
        rest = left;
        let peer: SocketAddr = ([192, 0, 2, act & 3], 1).into();
        match act >> 4 {
            0 => now = now + Duration::from_millis(100 * u64::from(length)),
            1 => server.event(now, &"e".parse().expect("a topic"), step),
            2 => server.stirred(now, &"m".parse().expect("a name")),
            3 => {
                while let Some(call) = server.call() {
                    let result = step.repeat(usize::from(act & 15) * 8);
                    let outcome =
                        if step.is_empty() { Err(NoAnswer::Away) } else { Ok(Some(result)) };
                    server.answered(now, call.number, outcome);
                }
            }
            _ => server.receive(now, peer, step),
        }
        server.poll(now);
        while let Some((to, message)) = server.transmit() {
            assert!((4..=MESSAGE_BYTES_MAX).contains(&message.len()));
            // Some acknowledge what must be.
            if act & 4 != 0 && message[0] >> 4 & 3 == 0 {
                server.receive(now, to, &[0x60, 0, message[2], message[3]]);
            }
        }
        assert!(server.poll_at().is_none_or(|at| at > now), "it rests until something is due");
    }
});
