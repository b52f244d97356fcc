//! Counts what the kernel costs on a bare RV32: instructions of turns, switches, tasks and host calls, and
//! bytes of RAM. Prints `METRIC SUBJECT VALUE` lines.
#![no_std]
#![no_main]

extern crate alloc;

#[path = "../../../vm/device/src/heap.rs"]
mod heap;
#[path = "../../../vm/device/src/machine.rs"]
mod machine;

use alloc::string::ToString;
use alloc::vec::Vec;

use tenure_bench_report::line;
use tenure_hal::simulated::RamFlash;
use tenure_hal::{Entropy, EntropyError, FlashGeometry, Instant, UnixTime};
use tenure_kernel::policy::PolicyKind;
use tenure_kernel::{
    Config, Draft, IncomingCall, Installation, Kernel, MachineRecord, Ran, Standing, Ticket, World,
    host_functions,
};
use tenure_store::Store;
use tenure_vm::{Limits, translate_bound};
use tenure_wire::{
    Budget, Capabilities, CodeKind, Digest, MachineId, PublicKey, Share, Term, VerifyingKey,
};

#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

static GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.wasm"));
const STORE: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 16, program_bytes: 4 };
/// Guest functions that make the host call of that name a hundred times.
const HOST_CALLS: [&str; 13] = [
    "uptime_us",
    "parameter_length",
    "public_key",
    "log",
    "tree_set",
    "tree_get",
    "tree_list",
    "tree_delete",
    "publish",
    "event_next",
    "random",
    "queue",
    "timer_schedule",
];
/// 1 March 2096, of which 29 February is eight years away.
const UNIX_S: u64 = 3_981_398_400;
/// Guest functions of one host call each that goes through a hundred values.
const LONG_CALLS: [(&str, &str); 2] =
    [("names", "a_name_listed"), ("delete_many", "a_value_deleted")];
const TURNS: u32 = 100;
const SLICE: u64 = 1_000;
/// The kernel's charge for a turn, in fuel (`TURN` in `crates/kernel/src/cost.rs`).
const TURN_FUEL: u32 = 444;

fn run() {
    // In this order, because the heap is never reused.
    ram();
    host_calls();
    tasks();
    for policy in PolicyKind::ALL {
        turns(policy);
    }
}

fn report(metric: &str, subject: &str, value: u32) {
    line(machine::write, &[metric, " ", subject], &[value]);
}

/// A turn that is used up, less what its fuel takes; and a turn that is given away at once.
fn turns(policy: PolicyKind) {
    let of_slice = |slice_fuel| {
        let mut kernel = kernel(policy, slice_fuel, 16);
        call_all(&mut kernel, 16, "spin");
        turn(&mut kernel, 32);
        machine::instructions(|| turn(&mut kernel, TURNS)) / TURNS
    };
    let (one, two) = (of_slice(SLICE), of_slice(2 * SLICE));
    if policy == PolicyKind::RoundRobin {
        report("of_1000_fuel", "empty_loop", two - one);
    }
    // The kernel's charge for the turn itself isn't there for the loop.
    let charged = (two - one) * TURN_FUEL / SLICE as u32;
    report("turn_of_16_machines_beside_its_fuel", policy.as_str(), 2 * one + charged - two);
    let switch = |machines| {
        let mut kernel = kernel(policy, SLICE, machines);
        call_all(&mut kernel, machines, "give_way");
        turn(&mut kernel, 32);
        machine::instructions(|| turn(&mut kernel, TURNS)) / TURNS
    };
    report("switch_between_2_machines_that_yield", policy.as_str(), switch(2));
}

fn host_calls() {
    let mut kernel = kernel(PolicyKind::RoundRobin, 10_000_000, 1);
    let mut of = |function: &str| {
        call_all(&mut kernel, 1, function);
        let before = kernel.machines().next().map_or(0, |machine| machine.fuel_used);
        let instructions = machine::instructions(|| turn(&mut kernel, 1));
        while kernel.effect().is_some() {}
        let after = kernel.machines().next().map_or(0, |machine| machine.fuel_used);
        (instructions, (after - before) as u32)
    };
    of("fill");
    for (function, subject) in LONG_CALLS {
        let (instructions, fuel) = of(function);
        report("host_call", subject, instructions / 100);
        report("host_call_fuel", subject, fuel / 100);
    }
    let (loops, loops_fuel) = of("loops");
    for function in HOST_CALLS {
        let (instructions, fuel) = of(function);
        report("host_call", function, (instructions - loops) / 100);
        report("host_call_fuel", function, (fuel - loops_fuel) / 100);
    }
}

fn tasks() {
    let mut kernel = kernel(PolicyKind::RoundRobin, SLICE, 1);
    call_all(&mut kernel, 1, "nothing");
    turn(&mut kernel, 1);
    while kernel.effect().is_some() {}
    let task = machine::instructions(|| {
        call_all(&mut kernel, 1, "nothing");
        turn(&mut kernel, 1);
        while kernel.effect().is_some() {}
    });
    report("task_delivered_run_answered", "nothing", task);
}

/// Bytes that are alive for a kernel, and for each machine beyond its memory and stack.
fn ram() {
    let flash = store_flash();
    let code = RamFlash::new(code_geometry());
    let before = HEAP.live();
    let (store, _) = Store::mount(flash).unwrap();
    let kernel =
        Kernel::boot(store, code, config(PolicyKind::RoundRobin, SLICE), Instant::BOOT, id_of);
    let mut kernel = kernel.unwrap();
    let live = HEAP.live() - before;
    report("kernel_without_machines_ram", "kernel", (live + size_of_val(&kernel)) as u32);
    for number in 0..16 {
        install(&mut kernel, number);
    }
    call_all(&mut kernel, 16, "nothing");
    turn(&mut kernel, 16);
    while kernel.effect().is_some() {}
    let memory: usize = kernel.machines().map(|info| info.memory_bytes).sum();
    let stacks = 16 * Budget::default().stack_bytes as usize;
    let beyond = HEAP.live() - before - live - memory - stacks;
    report("machine_beyond_its_memory_ram", "machine", beyond as u32 / 16);
}

fn turn(kernel: &mut Kernel<RamFlash>, turns: u32) {
    for _ in 0..turns {
        let ran = kernel.run(&mut World {
            now: Instant::from_millis(1),
            unix_time: Some(UnixTime { seconds: UNIX_S }),
            entropy: &mut Zeros,
        });
        assert!(ran == Ran::Slice);
    }
}

fn call_all(kernel: &mut Kernel<RamFlash>, machines: u8, function: &str) {
    for number in 0..machines {
        let call = IncomingCall {
            to: id_of(&PublicKey([number; 32])),
            caller: None,
            standing: Standing::Owner,
            function: function.to_string(),
            parameter: None,
            deadline: Instant::from_millis(100_000),
        };
        kernel.deliver(Instant::BOOT, call, Ticket(number.into())).unwrap();
    }
}

fn config(policy: PolicyKind, slice_fuel: u64) -> Config {
    Config { policy, slice_fuel, memory_bytes_max: 2 << 20, ..Config::default() }
}

fn code_geometry() -> FlashGeometry {
    FlashGeometry { sector_count: 20, ..STORE }
}

fn store_flash() -> RamFlash {
    let mut flash = RamFlash::new(STORE);
    Store::format(&mut flash).unwrap();
    flash
}

fn kernel(policy: PolicyKind, slice_fuel: u64, machines: u8) -> Kernel<RamFlash> {
    let (store, _) = Store::mount(store_flash()).unwrap();
    let code = RamFlash::new(code_geometry());
    let config = config(policy, slice_fuel);
    let mut kernel = Kernel::boot(store, code, config, Instant::BOOT, id_of).ok().unwrap();
    for number in 0..machines {
        install(&mut kernel, number);
    }
    while kernel.effect().is_some() {}
    kernel
}

fn install(kernel: &mut Kernel<RamFlash>, number: u8) {
    let mut image = Vec::new();
    translate_bound(GUEST, &host_functions(), &Limits::default(), &[0; 32], &mut image).unwrap();
    let mut draft = Draft::new(kernel.code().reserve(image.len() as u32).unwrap());
    kernel.code().append(&mut draft, &image).unwrap();
    let image = kernel.code().finish(draft).unwrap();
    let public_key = PublicKey([number; 32]);
    let functions = ["nothing", "spin", "give_way", "loops", "fill", "names", "delete_many"];
    let functions = functions.iter().chain(&HOST_CALLS);
    let record = MachineRecord {
        name: alloc::format!("m{number}").parse().unwrap(),
        public_key,
        salt: [0; 16],
        package: Digest([0; 32]),
        package_name: "guest".parse().unwrap(),
        package_version: tenure_wire::Version { major: 1, minor: 0, patch: 0 },
        tenant: VerifyingKey([1; 32]),
        exports: functions.map(|name| name.to_string()).collect(),
        timers: alloc::vec::Vec::new(),
        budget: Budget {
            fuel_per_second: 0,
            messages_per_second: 100_000,
            message_bytes_per_second: 1 << 24,
            queue_length: 200,
            ..Budget::default()
        },
        share: Share::default(),
        grants: Capabilities {
            publish: alloc::vec!["*".parse().unwrap()],
            ..Capabilities::default()
        },
        errors: tenure_wire::Audience::default(),
        log: tenure_wire::LogLevel::default(),
        term: Term::default(),
        placement: 1,
        code: CodeKind::WebAssembly,
        image,
        faster: None,
        base: None,
    };
    let installation = Installation { record, id: id_of(&public_key) };
    kernel.tenancy(Instant::BOOT).install(installation).unwrap();
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

/// Ends the run.
fn finish(good: bool) -> ! {
    machine::exit(good)
}

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    let place = panic.location().map_or(("", 0), |place| (place.file(), place.line()));
    line(machine::write, &["failed at ", place.0], &[place.1]);
    finish(false)
}
