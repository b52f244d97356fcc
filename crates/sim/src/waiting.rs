//! How long machines wait for their turn beside others that never rest.
//!
//! [`run`] puts sixteen machines on one real kernel: one spins for ever, one computes without
//! yielding, one floods the others with calls, and thirteen sleep, work, store, and call one another.
//! Time is what their fuel takes. Every turn's wait is kept, from the moment the machine wanted the
//! processor (a sleeper: from when its sleep was over) until it had it, and stands beside the bound
//! that the policy promised.

use std::time::Duration;

use tenure_hal::simulated::{RamFlash, Random};
use tenure_hal::{FlashGeometry, Instant};
use tenure_kernel::policy::PolicyKind;
use tenure_kernel::{
    Config, Draft, Installation, Kernel, MachineRecord, Ran, Slot, World, host_functions,
};
use tenure_store::Store;
use tenure_vm::{Limits, translate_bound};
use tenure_wire::capability::PeerPattern;
use tenure_wire::{
    Budget, Capabilities, CodeKind, Digest, MachineId, Name, PublicKey, Share, Term, VerifyingKey,
};

/// The fuel that the device burns in a microsecond: an RV32 of some 100 MHz.
const FUEL_PER_US: u64 = 10;
/// How many machines there are.
pub const MACHINES: usize = 16;
const GEOMETRY: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 128, program_bytes: 4 };

/// The behaviour of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// It does nothing, for ever, as fast as it can.
    Spins,
    /// It works on its memory and never yields.
    Computes,
    /// It queues calls to the others as fast as it is let.
    Floods,
    /// It sleeps, works a little, and sleeps again.
    Sleeps,
    /// It sleeps, stores something, calls another one and waits for the answer.
    Asks,
}

impl Habit {
    /// Whether it leaves the processor to others by itself.
    pub fn is_modest(self) -> bool {
        matches!(self, Self::Sleeps | Self::Asks)
    }

    fn of(slot: usize) -> Self {
        match slot {
            3 => Self::Spins,
            7 => Self::Computes,
            11 => Self::Floods,
            slot if slot % 3 == 0 => Self::Asks,
            _ => Self::Sleeps,
        }
    }
}

/// How one machine fared.
#[derive(Clone, Debug)]
pub struct Fared {
    /// The machine's behaviour.
    pub habit: Habit,
    /// Its share.
    pub share: Share,
    /// The longest wait that the policy allows.
    pub bound: Duration,
    /// Its waits, one a turn, in the order in which they came.
    pub waits: Vec<Duration>,
    /// The fuel it used.
    pub fuel: u64,
}

/// Runs sixteen machines under a policy for `span`, and says how each fared.
///
/// # Panics
/// If a machine in this file is wrong.
pub fn run(policy: PolicyKind, seed: u64, span: Duration) -> Vec<Fared> {
    let mut random = Random::new(seed);
    let config = Config {
        policy,
        fuel_per_second: FUEL_PER_US * 1_000_000,
        memory_bytes_max: 512 * 1024,
        ..Config::default()
    };
    let mut kernel = boot(config);
    let mut fared: Vec<Fared> = (0..MACHINES).map(|slot| fared(policy, slot)).collect();
    for (slot, machine) in fared.iter().enumerate() {
        install(&mut kernel, slot, machine, &mut random);
    }
    let (mut fuel_burnt, mut now) = (0, Instant::BOOT);
    while now.since(Instant::BOOT) < span {
        let mut world = World { now, unix_time: None, entropy: &mut random };
        match kernel.run(&mut world) {
            Ran::Slice => {
                let turn = kernel.last_turn().expect("there was a turn");
                fuel_burnt += turn.fuel;
                fared[turn.slot.index()].waits.push(turn.waited);
                fared[turn.slot.index()].fuel += turn.fuel;
            }
            Ran::Idle { until } => {
                let until = until.expect("sleepers wake").since(Instant::BOOT);
                fuel_burnt = fuel_burnt.max(until.as_micros() as u64 * FUEL_PER_US);
            }
        }
        now = Instant::from_micros(fuel_burnt.div_ceil(FUEL_PER_US));
        while kernel.effect().is_some() {}
    }
    for (slot, machine) in fared.iter_mut().enumerate() {
        let slot = Slot::new(slot).expect("a slot for each machine");
        machine.bound = Duration::from_micros(kernel.wait_fuel_max(slot).div_ceil(FUEL_PER_US));
    }
    fared
}

/// Tiers of one to four; and under earliest deadline first every fourth machine has a reservation.
fn fared(policy: PolicyKind, slot: usize) -> Fared {
    let tier = 1 + slot as u16 % 4;
    let reserves = policy == PolicyKind::EarliestDeadline && slot.is_multiple_of(4);
    let share = Share {
        tier,
        tier_max: tier,
        period_ms: if reserves { 20 + 5 * slot as u32 } else { 0 },
        bandwidth_permille: if reserves { 100 } else { 0 },
    };
    let (bound, waits) = (Duration::ZERO, Vec::new());
    Fared { habit: Habit::of(slot), share, bound, waits, fuel: 0 }
}

fn boot(config: Config) -> Kernel<RamFlash> {
    let mut flash = RamFlash::new(GEOMETRY);
    Store::format(&mut flash).expect("a blank flash");
    let (store, _) = Store::mount(flash).expect("a store");
    let code = RamFlash::new(GEOMETRY);
    Kernel::boot(store, code, config, Instant::BOOT, id_of).expect("an empty store")
}

fn install(kernel: &mut Kernel<RamFlash>, slot: usize, machine: &Fared, random: &mut Random) {
    let wasm = wat::parse_str(text(slot, machine.habit, random)).expect("valid text");
    let mut image = Vec::new();
    translate_bound(&wasm, &host_functions(), &Limits::default(), &[0; 32], &mut image)
        .expect("a valid module");
    let mut draft = Draft::new(kernel.code().reserve(image.len() as u32).expect("room"));
    kernel.code().append(&mut draft, &image).expect("room");
    let image = kernel.code().finish(draft).expect("sound flash");
    let public_key = PublicKey([slot as u8; 32]);
    let anybody = vec![PeerPattern::Any];
    let record = MachineRecord {
        name: name_of(slot),
        public_key,
        salt: [0; 16],
        package: Digest([0; 32]),
        package_name: name_of(slot),
        package_version: tenure_wire::Version { major: 1, minor: 0, patch: 0 },
        tenant: VerifyingKey([1; 32]),
        exports: vec!["work".to_string()],
        timers: Vec::new(),
        budget: Budget {
            fuel_per_second: 0,
            messages_per_second: 1_000_000,
            message_bytes_per_second: 1 << 30,
            flash_bytes_per_day: u32::MAX,
            ..Budget::default()
        },
        share: machine.share,
        grants: Capabilities { calls: anybody.clone(), callers: anybody, ..Default::default() },
        errors: tenure_wire::Audience::default(),
        log: tenure_wire::LogLevel::default(),
        term: Term::default(),
        placement: 1,
        code: CodeKind::WebAssembly,
        faster: None,
        base: None,
        image,
    };
    let id = id_of(&public_key);
    let installation = Installation { record, id };
    kernel.tenancy(Instant::BOOT).install(installation).expect("room for a machine");
}

fn name_of(slot: usize) -> Name {
    format!("m{slot:02}").parse().expect("a name")
}

fn id_of(key: &PublicKey) -> MachineId {
    MachineId([key.0[0]; 12])
}

fn text(slot: usize, habit: Habit, random: &mut Random) -> String {
    let (pause, work) = (random.between(3..=90), random.between(100..=6_000));
    let other = (slot + random.between(1..=15) as usize) % MACHINES;
    let body = match habit {
        Habit::Spins => "(loop $again (br $again))".to_string(),
        Habit::Computes => "(loop $again (call $churn (i32.const 100000)) (br $again))".to_string(),
        Habit::Floods => r#"(loop $again
            (i32.store8 (i32.const 101) (i32.add (i32.const 48) (local.get $digit)))
            (local.set $digit (i32.rem_u (i32.add (local.get $digit) (i32.const 1)) (i32.const 10)))
            (drop (call $queue (i32.const 99) (i32.const 3) (i32.const 96) (i32.const 4)
              (i32.const 256) (i32.const 2000) (i32.const 0) (i32.const 0)
              (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0)))
            (br $again))"#
            .replace("(i32.const 96)", "(i32.const 104)"),
        Habit::Sleeps => format!(
            "(loop $again (call $sleep (i32.const {pause})) (call $churn (i32.const {work}))
               (br $again))"
        ),
        Habit::Asks => format!(
            r#"(loop $again (call $sleep (i32.const {pause}))
            (drop (call $tree_set (i32.const 104) (i32.const 4) (i32.const 0) (i32.const 256)
              (i32.const 40)))
            (drop (call $call (i32.const 112) (i32.const 3) (i32.const 104) (i32.const 4)
              (i32.const 256) (i32.const 100) (i32.const 500)))
            (drop (call $random (i32.const 256) (i32.const 8192)))
            (br $again))"#
        ),
    };
    format!(
        r#"(module
        (import "tenure" "sleep_ms" (func $sleep (param i32)))
        (import "tenure" "tree_set" (func $tree_set (param i32 i32 i32 i32 i32) (result i32)))
        (import "tenure" "random" (func $random (param i32 i32) (result i32)))
        (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
        (import "tenure" "queue" (func $queue
          (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
        (memory 1)
        (data (i32.const 99) "m00") (data (i32.const 104) "work") (data (i32.const 112) "m{other:02}")
        (func $churn (param $left i32)
          (loop $again
            (i32.store (i32.const 64) (i32.mul (local.get $left) (i32.load (i32.const 64))))
            (local.set $left (i32.sub (local.get $left) (i32.const 1)))
            (br_if $again (local.get $left))))
        (func (export "work") (call $churn (i32.const {work})))
        (func (export "entry") (local $digit i32) {body}))"#
    )
}
