//! The cost of the kernel: a task from its creation to its clean-up, and a switch between machines.
//!
//! `cargo bench -p tenure-kernel -- [--json]`. Each figure is the median of several rounds, on RAM
//! flash, one core.

use std::time::Instant as Clock;

use tenure_hal::simulated::RamFlash;
use tenure_hal::{Entropy, EntropyError, FlashGeometry, Instant};
use tenure_kernel::{
    Config, Draft, Effect, IncomingCall, Installation, Kernel, MachineRecord, Ran, Standing,
    Ticket, World, host_functions,
};
use tenure_store::Store;
use tenure_vm::{Limits, translate_bound};
use tenure_wire::{
    Budget, Capabilities, CodeKind, Digest, MachineId, PublicKey, Share, Term, VerifyingKey,
};

const ROUNDS: usize = 15;
const TASKS: u64 = 2_000;
const SWITCHES: u64 = 20_000;
const GEOMETRY: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 64, program_bytes: 4 };

/// Takes its parameter, gives it back; or spins.
const MACHINE: &str = r#"(module
  (import "tenure" "parameter_length" (func $parameter_length (result i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "yield_now" (func $yield_now))
  (memory 1)
  (func (export "nothing"))
  (func (export "echo") (local $length i32)
    (local.set $length (call $parameter_length))
    (drop (call $parameter_read (i32.const 0) (i32.const 1024) (local.get $length)))
    (drop (call $reply (i32.const 1024) (local.get $length))))
  (func (export "give_way") (loop (call $yield_now) (br 0))))"#;

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let report = |metric: &str, unit: &str, value: f64| {
        if json {
            println!(
                "{{\"bench\":\"kernel\",\"target\":\"host\",\"subject\":\"tenure\",\
                 \"metric\":\"{metric}\",\"unit\":\"{unit}\",\"value\":{value:.1}}}"
            );
        } else {
            println!("{metric:<52} {value:>10.1} {unit}");
        }
    };
    report("task of no work: create, run, clean up", "ns", median(|| tasks("nothing", &[])));
    report(
        "task that returns 64 bytes: create, run, clean up",
        "ns",
        median(|| tasks("echo", &[7; 64])),
    );
    report("switch between two machines that yield", "ns", median(switches));
}

fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

/// Nanoseconds a task, from delivery to the reply being taken.
fn tasks(function: &str, parameter: &[u8]) -> f64 {
    let (mut kernel, machine) = kernel(1);
    let mut entropy = Zeros;
    let begun = Clock::now();
    for number in 0..TASKS {
        let parameter = Some(parameter.to_vec());
        deliver(&mut kernel, machine, function, parameter, number);
        while run(&mut kernel, &mut entropy) == Ran::Slice {}
        let effect = kernel.effect();
        assert!(matches!(effect, Some(Effect::Reply { result: Ok(_), .. })), "{effect:?}");
    }
    begun.elapsed().as_nanos() as f64 / TASKS as f64
}

/// Nanoseconds a slice of a machine that yields at once, of two that take turns.
fn switches() -> f64 {
    let (mut kernel, first) = kernel(2);
    let second = id_of(&PublicKey([2; 32]));
    for (number, machine) in [first, second].into_iter().enumerate() {
        deliver(&mut kernel, machine, "give_way", None, number as u64);
    }
    let mut entropy = Zeros;
    let begun = Clock::now();
    for _ in 0..SWITCHES {
        assert_eq!(run(&mut kernel, &mut entropy), Ran::Slice);
    }
    begun.elapsed().as_nanos() as f64 / SWITCHES as f64
}

fn deliver(
    kernel: &mut Kernel<RamFlash>,
    to: MachineId,
    function: &str,
    parameter: Option<Vec<u8>>,
    number: u64,
) {
    let (function, deadline) = (function.to_string(), Instant::from_millis(10_000));
    let call =
        IncomingCall { to, caller: None, standing: Standing::Owner, function, parameter, deadline };
    kernel.deliver(Instant::BOOT, call, Ticket(number)).expect("room");
}

fn run(kernel: &mut Kernel<RamFlash>, entropy: &mut Zeros) -> Ran {
    kernel.run(&mut World { now: Instant::from_millis(1), unix_time: None, entropy })
}

fn kernel(machines: u8) -> (Kernel<RamFlash>, MachineId) {
    let mut flash = RamFlash::new(GEOMETRY);
    Store::format(&mut flash).expect("a blank flash");
    let (store, _) = Store::mount(flash).expect("a store");
    let code = RamFlash::new(GEOMETRY);
    let mut kernel =
        Kernel::boot(store, code, Config::default(), Instant::BOOT, id_of).expect("an empty store");
    let wasm = wat::parse_str(MACHINE).expect("valid text");
    for number in 1..=machines {
        install(&mut kernel, &wasm, number);
    }
    while kernel.effect().is_some() {}
    (kernel, id_of(&PublicKey([1; 32])))
}

fn install(kernel: &mut Kernel<RamFlash>, wasm: &[u8], number: u8) {
    let mut image = Vec::new();
    translate_bound(wasm, &host_functions(), &Limits::default(), &[0; 32], &mut image)
        .expect("a valid module");
    let mut draft = Draft::new(kernel.code().reserve(image.len() as u32).expect("room"));
    kernel.code().append(&mut draft, &image).expect("room");
    let image = kernel.code().finish(draft).expect("sound flash");
    let name = format!("machine-{number}").parse().expect("a name");
    let public_key = PublicKey([number; 32]);
    let record = MachineRecord {
        package_name: "machine".parse().expect("a name"),
        package_version: tenure_wire::Version { major: 1, minor: 0, patch: 0 },
        name,
        public_key,
        salt: [0; 16],
        package: Digest([0; 32]),
        tenant: VerifyingKey([1; 32]),
        exports: ["nothing", "echo", "give_way"].map(String::from).to_vec(),
        timers: Vec::new(),
        budget: Budget::default(),
        share: Share::default(),
        grants: Capabilities::default(),
        errors: tenure_wire::Audience::default(),
        log: tenure_wire::LogLevel::default(),
        term: Term::default(),
        placement: 1,
        code: CodeKind::WebAssembly,
        image,
        faster: None,
        base: None,
    };
    let id = id_of(&public_key);
    kernel.tenancy(Instant::BOOT).install(Installation { record, id }).expect("room for a machine");
}

fn id_of(key: &PublicKey) -> MachineId {
    MachineId([key.0[0]; 12])
}

struct Zeros;

impl Entropy for Zeros {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.fill(0);
        Ok(())
    }
}
