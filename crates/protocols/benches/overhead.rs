//! The framework's overhead in sending: from the creation of a message to the system call, bare and
//! through a stack, alternating in the same run; and the same in instructions, counted by valgrind.
//!
//! `cargo bench -p tenure-protocols --bench overhead -- [--json]`

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant as Clock};

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Context, Covers, Declared, Framer, FramerConfig, Handles, Intercepts, NodeId, Outgoing,
    Passage, PriorityQueues, Protocol, Reception, Seal, Stack, StackConfig, TimerList, Unsealed,
    Verdict, encode,
};
use tenure_protocols::discovery::{self, Discovery};
use tenure_protocols::forwarding::{self, Forwarding};
use tenure_protocols::network_key::NetworkKey;
use tenure_protocols::reliable::{self, Reliable};
use tenure_protocols::timeout_detector::{self, TimeoutDetector};

const ROUNDS: usize = 20_000;
const BODY: [u8; 64] = [7; 64];

/// Sends what it is told to.
struct Speaker;

#[derive(Serialize, Deserialize)]
struct Speech {
    sequence: u32,
}

tenure_mesh::protocol! {
    Speaker = 200, "speaker";
    messages { Speech = 1 }
}

impl Protocol for Speaker {}

impl Handles<Speech> for Speaker {
    fn handle(&mut self, _: Speech, _: Reception<'_>, _: &mut Context<'_, Self>) {}
}

/// Stands between, and counts what passes.
#[derive(Default)]
struct Listener {
    bytes: u64,
}

tenure_mesh::protocol! {
    Listener = 201, "listener";
    intercepts;
}

impl Protocol for Listener {}

impl Intercepts for Listener {
    fn intercept(
        &mut self,
        _: &Passage,
        message: &mut Vec<u8>,
        _: &mut Context<'_, Self>,
    ) -> Verdict {
        self.bytes += message.len() as u64;
        Verdict::Pass
    }
}

/// The ways of sending that are compared.
const WAYS: [&str; 5] = ["bare", "framework", "idle protocol beside", "intercepted", "sealed"];

/// Something that turns a number into a frame.
trait Sender {
    fn frame(&mut self, sequence: u32, frame: &mut Vec<u8>);
}

struct Bare;

impl Sender for Bare {
    fn frame(&mut self, sequence: u32, frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend_from_slice(&[0x10; 18]);
        encode(&Speech { sequence }, frame);
        frame.extend_from_slice(&BODY);
    }
}

struct Through<S: Seal>(Stack<Framer<S>, PriorityQueues, TimerList>);

impl<S: Seal> Through<S> {
    fn new(seal: S) -> Self {
        let framer = Framer::new(FramerConfig::new(NodeId::from_number(1), 1, [0; 8]), seal);
        let mut stack = Stack::new(StackConfig::default(), framer);
        stack.start(Instant::BOOT, Speaker);
        Self(stack)
    }
}

impl<S: Seal> Sender for Through<S> {
    fn frame(&mut self, sequence: u32, frame: &mut Vec<u8>) {
        let now = Instant::from_micros(sequence.into());
        self.0.act::<Speaker, _>(now, |_, context| {
            let outgoing = Outgoing { body: &BODY, ..Outgoing::default() };
            context.transmit(&Speech { sequence }, outgoing);
        });
        self.0.poll(now);
        let sent = self.0.transmit(now, frame);
        assert!(sent.is_some());
    }
}

fn sender(way: &str) -> Box<dyn Sender> {
    let now = Instant::BOOT;
    match way {
        "bare" => Box::new(Bare),
        "framework" => Box::new(Through::new(Unsealed)),
        "idle protocol beside" => {
            let mut through = Through::new(Unsealed);
            let config = timeout_detector::Config {
                period: Duration::from_secs(1 << 30),
                ..timeout_detector::Config::default()
            };
            through.0.start(now, TimeoutDetector::new(config));
            Box::new(through)
        }
        "intercepted" => {
            let mut through = Through::new(Unsealed);
            through.0.start(now, Listener::default());
            let listener = Listener::DESCRIPTION.number;
            through.0.intercept(listener, None, Covers::Network).expect("it runs");
            Box::new(through)
        }
        _ => Box::new(Through::new(NetworkKey::from_bytes(&[7; 32]))),
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|it| it == "--only") {
        return only(&arguments[at + 1], arguments[at + 2].parse().expect("a number"));
    }
    let json = arguments.iter().any(|it| it == "--json");
    let report = |metric: &str, unit: &str, value: f64| {
        if json {
            println!(
                "{{\"bench\":\"overhead\",\"target\":\"host\",\"subject\":\"tenure\",\
                 \"metric\":\"{metric}\",\"unit\":\"{unit}\",\"value\":{value:.2}}}"
            );
        } else {
            println!("{metric:<52} {value:>12.2} {unit}");
        }
    };
    let spans = times();
    for (way, spans) in WAYS.iter().zip(&spans) {
        let (median, high) = (spans[spans.len() / 2], spans[spans.len() * 95 / 100]);
        report(&format!("{way}: message to system call done, median"), "ns", median as f64);
        report(&format!("{way}: 95th percentile"), "ns", high as f64);
    }
    let bare = spans[0][ROUNDS * 95 / 100] as f64;
    for (way, spans) in WAYS.iter().zip(&spans).skip(1) {
        let ratio = spans[ROUNDS * 95 / 100] as f64 / bare;
        report(&format!("{way}: 95th percentile over bare"), "times", ratio);
    }
    let bare = instructions("bare");
    for way in WAYS {
        if let Some(count) = instructions(way) {
            report(&format!("{way}: instructions a message"), "instructions", count);
            if let Some(bare) = bare.filter(|_| way != "bare") {
                report(&format!("{way}: beyond bare"), "instructions", count - bare);
            }
        }
    }
    report("memory of a node with 4 protocols", "bytes", memory());
}

/// How long each way takes, sorted; the ways alternate, so that what else the machine does hits all.
fn times() -> Vec<Vec<u64>> {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    receiver.set_nonblocking(true).expect("a socket");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let to = receiver.local_addr().expect("bound");
    let mut senders: Vec<_> = WAYS.iter().map(|way| sender(way)).collect();
    let mut spans = vec![Vec::with_capacity(ROUNDS); WAYS.len()];
    let (mut frame, mut sink) = (Vec::new(), [0; 2048]);
    for round in 0..ROUNDS as u32 {
        for (sender, spans) in senders.iter_mut().zip(&mut spans) {
            let start = Clock::now();
            sender.frame(round, &mut frame);
            let sent = socket.send_to(&frame, to);
            spans.push(start.elapsed().as_nanos() as u64);
            assert!(sent.is_ok());
            while receiver.recv(&mut sink).is_ok() {}
        }
    }
    spans.iter_mut().for_each(|spans| spans.sort_unstable());
    spans
}

/// Makes `count` frames one way, and sends none: what valgrind counts.
fn only(way: &str, count: u32) {
    let (mut sender, mut frame) = (sender(way), Vec::new());
    for sequence in 0..count {
        sender.frame(std::hint::black_box(sequence), &mut frame);
        std::hint::black_box(&frame);
    }
}

/// Instructions that one message takes; `None` where there is no valgrind.
fn instructions(way: &str) -> Option<f64> {
    let counted = |count: u32| {
        let program = std::env::current_exe().ok()?;
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args(["--only", way, &count.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8(output.stderr).ok()?;
        let (_, collected) = text.split_once("Collected : ")?;
        collected.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some((counted(3000)? - counted(1000)?) / 2000.0)
}

/// The memory of a node that has heard eight neighbours for a minute, from the size of a process that
/// holds a thousand of them.
fn memory() -> f64 {
    const NODES: u64 = 1000;
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = statm.split_whitespace().nth(1).and_then(|it| it.parse::<u64>().ok());
        pages.unwrap_or(0) * 4096
    };
    let node = |id: u64| {
        let framer = Framer::new(FramerConfig::new(NodeId::from_number(id), 1, [0; 8]), Unsealed);
        let mut stack: Stack = Stack::new(StackConfig { seed: id, ..Default::default() }, framer);
        stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
        stack.start(Instant::BOOT, Forwarding::new(forwarding::Config::default()));
        stack.start(Instant::BOOT, Reliable::new(reliable::Config::default()));
        stack.start(Instant::BOOT, TimeoutDetector::new(timeout_detector::Config::default()));
        stack
    };
    let before = resident();
    let mut nodes: Vec<_> = (1..=NODES).map(node).collect();
    let mut frame = Vec::new();
    for tick in 0..600 {
        let now = Instant::from_millis(tick * 100);
        for index in 0..nodes.len() {
            nodes[index].poll(now);
            while nodes[index].transmit(now, &mut frame).is_some() {
                let first = index / 9 * 9;
                for other in (first..(first + 9).min(nodes.len())).filter(|it| *it != index) {
                    let _ = nodes[other].receive(now, &frame, None);
                }
            }
        }
    }
    (resident() - before) as f64 / NODES as f64
}
