//! The cost of a call to the two CPUs at its ends, and to the network between them; no network is used.
//!
//! `cargo bench -p tenure-rpc -- [--json]`. Each figure is the median of several rounds.

use std::time::{Duration, Instant as Clock};

use tenure_crypto::StaticSecret;
use tenure_hal::Instant;
use tenure_hal::simulated::Sequence;
use tenure_rpc::{Config, Endpoint, Event, OutgoingCall};
use tenure_wire::{MachineId, PublicKey};

const ROUNDS: usize = 15;

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let report = |metric: &str, unit: &str, value: f64| {
        let target = "host";
        if json {
            println!(
                "{{\"bench\":\"rpc\",\"target\":\"{target}\",\"subject\":\"tenure\",\
                 \"metric\":\"{metric}\",\"unit\":\"{unit}\",\"value\":{value:.1}}}"
            );
        } else {
            println!("{metric:<44} {value:>12.1} {unit}");
        }
    };
    let first = median(|| {
        let mut ends = Ends::new();
        ends.call(20)
    });
    report("first call of 20 bytes, both ends", "us", micros(first.spent));
    report("first call of 20 bytes, datagrams", "datagrams", first.datagrams as f64);
    report("first call of 20 bytes, sent", "bytes", first.bytes as f64);
    for length in [20, 1_000, 8_000] {
        let mut ends = Ends::new();
        ends.call(20);
        let later = median(|| ends.calls(length, 200));
        let metric = |what: &str| format!("later call of {length} bytes, {what}");
        report(&metric("both ends"), "us", micros(later.spent) / 200.0);
        report(&metric("datagrams"), "datagrams", later.datagrams as f64 / 200.0);
        report(&metric("sent"), "bytes", later.bytes as f64 / 200.0);
    }
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

fn median(mut round: impl FnMut() -> Cost) -> Cost {
    let mut costs: Vec<Cost> = (0..ROUNDS).map(|_| round()).collect();
    costs.sort_by_key(|cost| cost.spent);
    costs[ROUNDS / 2]
}

#[derive(Clone, Copy)]
struct Cost {
    spent: Duration,
    datagrams: usize,
    bytes: usize,
}

/// Two endpoints whose datagrams are handed over as function arguments.
struct Ends {
    now: Instant,
    entropy: Sequence,
    caller: Endpoint<u8>,
    called: Endpoint<u8>,
    id: MachineId,
    key: PublicKey,
}

impl Ends {
    fn new() -> Self {
        let mut entropy = Sequence(7);
        let now = Instant::from_millis(1_000);
        let mut end = || {
            let mut endpoint =
                Endpoint::new(Config::default(), now, &mut entropy).expect("valid limits");
            let secret = StaticSecret::generate(&mut entropy).expect("randomness");
            let key = secret.public_key();
            let id = endpoint.add_machine(secret).expect("room");
            (endpoint, id, key)
        };
        let (caller, id, _) = end();
        let (called, _, key) = end();
        Self { now, entropy, caller, called, id, key }
    }

    fn calls(&mut self, length: usize, count: usize) -> Cost {
        (0..count).map(|_| self.call(length)).fold(
            Cost { spent: Duration::ZERO, datagrams: 0, bytes: 0 },
            |sum, one| Cost {
                spent: sum.spent + one.spent,
                datagrams: sum.datagrams + one.datagrams,
                bytes: sum.bytes + one.bytes,
            },
        )
    }

    /// One call there and back, the parameter returned.
    fn call(&mut self, length: usize) -> Cost {
        let parameter = Some(vec![7; length]);
        let (mut datagrams, mut bytes) = (0, 0);
        let hint = Some(self.called.epoch());
        let begun = Clock::now();
        let call = OutgoingCall {
            function: "echo".to_owned(),
            parameter,
            deadline: self.now + Duration::from_secs(10),
            attempts: 5,
        };
        let Self { now, entropy, caller, called, id, key } = self;
        caller.call(*now, entropy, id, key, 1, hint, call).expect("a call that can be made");
        loop {
            while let Some((_, datagram)) = caller.transmit() {
                (datagrams, bytes) = (datagrams + 1, bytes + datagram.len());
                called.receive(*now, entropy, 0, &datagram);
            }
            while let Some(event) = called.event() {
                if let Event::IncomingCall { handle, parameter, .. } = event {
                    called.reply(*now, handle, Ok(parameter));
                }
            }
            while let Some((_, datagram)) = called.transmit() {
                (datagrams, bytes) = (datagrams + 1, bytes + datagram.len());
                caller.receive(*now, entropy, 1, &datagram);
            }
            while let Some(event) = caller.event() {
                if let Event::CallDone { result, .. } = event {
                    let spent = begun.elapsed();
                    assert_eq!(result.expect("a result").map(|value| value.len()), Some(length));
                    return Cost { spent, datagrams, bytes };
                }
            }
        }
    }
}
