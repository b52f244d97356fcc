//! What walls and calls cost, in instructions: what `cargo xtask board qemu-riscv32 --costs` runs
//! instead of a device, with an emulator that counts.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::arch::{asm, global_asm};
use core::fmt::Write as _;

use tenure_board_common::{GuardedVm, NativeMachines};
use tenure_board_qemu_riscv32::console::Uart;
use tenure_hal::simulated::RamFlash;
use tenure_hal::{Entropy, EntropyError, FlashGeometry, Guard as _, Instant, Region};
use tenure_kernel::{
    Code, Config, Draft, Engine as _, Extent, IncomingCall, Installation, Kernel, MachineRecord,
    NativeBinary, NativeParts, Ran, Standing, Ticket, World, host_functions,
};
use tenure_store::Store;
use tenure_vm::{InstanceConfig, Limits, Outcome, Value, translate_bound};
use tenure_wire::host_call::HostCall;
use tenure_wire::{
    Budget, Capabilities, CodeKind, Digest, MachineId, PublicKey, Share, VerifyingKey,
};

use crate::clock::MachineTimer;
use crate::guard::Pmp;

/// Host calls of one task.
const CALLS: u32 = 100;
/// Turns that are counted together.
const TURNS: u32 = 200;
const MEMORY_BYTES: u32 = 8192;
const LONG_MICROSECONDS: u32 = 1_000_000;

global_asm!(
    ".section .rodata",
    ".balign 16",
    ".option push",
    ".option norvc",
    "cost_program:",
    // nothing
    "ret",
    // ask: parameter_length, a hundred times
    "li s0, 100",
    "1: li a7, 5",
    "ecall",
    "addi s0, s0, -1",
    "bnez s0, 1b",
    "ret",
    // give_way: yield_now, for good
    "2: li a7, 15",
    "ecall",
    "j 2b",
    ".balign 16",
    "cost_program_end:",
    ".option pop",
    ".section .text",
);

/// Where the program's functions begin.
const FUNCTIONS: [(&str, u32); 3] = [("nothing", 0), ("ask", 4), ("give_way", 28)];

/// The same functions:
///
/// ```wat
/// (module
///   (import "tenure" "parameter_length" (func $ask (result i32)))
///   (import "tenure" "yield_now" (func $give_way))
///   (memory 0)
///   (func (export "nothing"))
///   (func (export "ask") (local $left i32)
///     (local.set $left (i32.const 100))
///     (loop (drop (call $ask))
///       (br_if 0 (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
///   (func (export "give_way") (loop (call $give_way) (br 0))))
/// ```
const MODULE: &[u8] = b"\0asm\x01\0\0\0\x01\x08\x02`\0\x01\x7f`\0\0\x02.\x02\x06tenure\x10\
parameter_length\0\0\x06tenure\x09yield_now\0\x01\x03\x04\x03\x01\x01\x01\x05\x03\x01\0\0\x07\x1c\
\x03\x07nothing\0\x02\x03ask\0\x03\x08give_way\0\x04\x0a'\x03\x02\0\x0b\x18\x01\x01\x7fA\xe4\0!\0\
\x03@\x10\0\x1a \0A\x01k\x22\0\x0d\0\x0b\x0b\x09\0\x03@\x10\x01\x0c\0\x0b\x0b";

unsafe extern "C" {
    static cost_program: u8;
    static cost_program_end: u8;
}

fn program() -> Vec<u8> {
    let (start, end) = (&raw const cost_program, &raw const cost_program_end);
    // SAFETY: the range of constants between the two labels.
    let code = unsafe { core::slice::from_raw_parts(start, end.addr() - start.addr()) };
    let parts = NativeParts {
        kind: CodeKind::Rv32,
        code: code.to_vec(),
        stack_bytes: 256,
        data: vec![0; 16],
        zero_bytes: 0,
        relocations: Vec::new(),
        exports: FUNCTIONS.map(|(name, offset)| (name.to_string(), offset)).to_vec(),
    };
    parts.to_bytes().unwrap_or_default()
}

/// Instructions executed since reset; the low word is enough for differences.
fn instructions() -> u32 {
    let count;
    // SAFETY: reads a counter.
    unsafe { asm!("csrr {}, minstret", out(reg) count) };
    count
}

/// Measures, and prints a line for each figure.
pub(crate) fn print(guard: &Pmp) {
    let line = |what: &str, count: u32| {
        // A console that takes nothing has nobody who reads it.
        let _ = writeln!(Uart, "{count:>6} instructions  {what}");
    };
    line("system call and back, at the wall", wall_call(guard));
    line("switch between two native machines, at the wall", wall_switch(guard));
    line("host call of a native machine, up to the kernel and back", engine_call(guard));
    let native = Kind::Native;
    line("host call of a native machine, done by the kernel", kernel_call(native, guard));
    line(
        "host call of a wasm machine behind the wall, done by the kernel",
        kernel_call(Kind::Wasm { wall: true }, guard),
    );
    line(
        "host call of a wasm machine without the wall, done by the kernel",
        kernel_call(Kind::Wasm { wall: false }, guard),
    );
    line(
        "turn of one of two native machines that yield, scheduling included",
        kernel_turn(native, guard),
    );
    line(
        "turn of one of two wasm machines that yield, scheduling included",
        kernel_turn(Kind::Wasm { wall: true }, guard),
    );
}

/// From the firmware to a machine that makes a system call, and back.
fn wall_call(guard: &Pmp) -> u32 {
    let mut guard = guard.clone();
    let (mut memory, mut context) = loaded(&guard);
    let mut run = |guard: &mut Pmp| {
        let (code, own) = memory.split_at_mut(CODE_BYTES);
        let began = instructions();
        let _ =
            guard.run(&mut context, &mut [Region::Code(code), Region::Own(own)], LONG_MICROSECONDS);
        instructions().wrapping_sub(began)
    };
    (0..8).map(|_| run(&mut guard)).last().unwrap_or_default()
}

/// As above, each time another machine.
fn wall_switch(guard: &Pmp) -> u32 {
    let mut guard = guard.clone();
    let mut machines = [loaded(&guard), loaded(&guard)];
    let mut last = 0;
    for turn in 0..8 {
        let (memory, context) = &mut machines[turn % 2];
        let (code, own) = memory.split_at_mut(CODE_BYTES);
        let began = instructions();
        let _ = guard.run(context, &mut [Region::Code(code), Region::Own(own)], LONG_MICROSECONDS);
        last = instructions().wrapping_sub(began);
    }
    last
}

/// How long the program is.
const CODE_BYTES: usize = 48;

fn loaded(guard: &Pmp) -> (<Pmp as tenure_hal::Guard>::Memory, tenure_hal::Context) {
    let bytes = program();
    let (Ok(binary), Some(mut memory)) =
        (NativeBinary::parse(&bytes), guard.memory(MEMORY_BYTES as usize, CODE_BYTES))
    else {
        panic!("no memory")
    };
    assert_eq!(binary.code_bytes() as usize, CODE_BYTES);
    let base = memory.as_ptr().expose_provenance();
    let _ = binary.load(&mut memory, base as u32);
    let context = guard.enter(base + FUNCTIONS[2].1 as usize, 0, base + binary.data_at() as usize);
    (memory, context)
}

/// A host call by way of the engine: metered, its arguments checked and decoded, its result given.
fn engine_call(guard: &Pmp) -> u32 {
    let bytes = program();
    let mut engine =
        NativeMachines::new(CodeKind::Rv32, guard.clone(), MachineTimer::started_at(0));
    let limits = InstanceConfig { stack_bytes: 0, memory_bytes_max: MEMORY_BYTES as usize };
    let Ok(binary) = NativeBinary::parse(&bytes) else { panic!("no binary") };
    let Ok(mut machine) = engine.start(&Digest([0; 32]), Code::Native(binary), &limits) else {
        panic!("no memory")
    };
    machine.prepare("ask");
    let mut last = 0;
    for _ in 0..8 {
        let mut fuel = 20_000;
        let began = instructions();
        if let Outcome::HostCall { function } = machine.run(&mut fuel, 10_000)
            && let Some(HostCall::parameter_length {}) =
                HostCall::decode(function, machine.host_arguments())
        {
            machine.finish_host_call(&[Value::I32(0)]);
        }
        last = instructions().wrapping_sub(began);
    }
    last
}

/// What the machines of a kernel are.
#[derive(Clone, Copy)]
enum Kind {
    Native,
    Wasm { wall: bool },
}

fn kernel_call(kind: Kind, guard: &Pmp) -> u32 {
    let mut kernel = kernel(kind, guard);
    let mut task = |function: &str| {
        deliver(&mut kernel, 1, function);
        let began = instructions();
        while run(&mut kernel) == Ran::Slice {}
        let count = instructions().wrapping_sub(began);
        while kernel.effect().is_some() {}
        count
    };
    let (_, nothing) = (task("nothing"), task("nothing"));
    (task("ask") - nothing) / CALLS
}

fn kernel_turn(kind: Kind, guard: &Pmp) -> u32 {
    let mut kernel = kernel(kind, guard);
    deliver(&mut kernel, 1, "give_way");
    deliver(&mut kernel, 2, "give_way");
    for _ in 0..8 {
        run(&mut kernel);
    }
    let began = instructions();
    for _ in 0..TURNS {
        run(&mut kernel);
    }
    instructions().wrapping_sub(began) / TURNS
}

fn kernel(kind: Kind, guard: &Pmp) -> Kernel<RamFlash> {
    let geometry = FlashGeometry { sector_bytes: 4096, sector_count: 8, program_bytes: 4 };
    let mut flash = RamFlash::new(geometry);
    let Ok(()) = Store::format(&mut flash).map(|_| ()) else { panic!("no format") };
    let Ok((store, _)) = Store::mount(flash) else { panic!("no store") };
    let code = RamFlash::new(geometry);
    let Ok(mut kernel) = Kernel::boot(store, code, Config::default(), Instant::BOOT, id_of) else {
        panic!("no kernel")
    };
    match kind {
        Kind::Native => {
            let engine =
                NativeMachines::new(CodeKind::Rv32, guard.clone(), MachineTimer::started_at(0));
            kernel.use_engine(Box::new(engine));
        }
        Kind::Wasm { wall: true } => {
            let Some(wall) = GuardedVm::new(guard.clone()) else { panic!("no memory") };
            kernel.use_wall(Box::new(wall));
        }
        Kind::Wasm { wall: false } => {}
    }
    install(&mut kernel, kind, 1);
    install(&mut kernel, kind, 2);
    while kernel.effect().is_some() {}
    kernel
}

fn install(kernel: &mut Kernel<RamFlash>, kind: Kind, number: u8) {
    let (code, bytes) = match kind {
        Kind::Native => (CodeKind::Rv32, [&[0; 32][..], &program()].concat()),
        Kind::Wasm { .. } => {
            let mut image = Vec::new();
            let limits = Limits::default();
            let _ = translate_bound(MODULE, &host_functions(), &limits, &[0; 32], &mut image);
            (CodeKind::WebAssembly, image)
        }
    };
    let name = alloc::format!("machine-{number}");
    let (Ok(name), Ok(package_name)) = (name.parse(), "machine".parse()) else { panic!("no name") };
    let public_key = PublicKey([number; 32]);
    let record = MachineRecord {
        name,
        package_name,
        public_key,
        salt: [0; 16],
        package: Digest([0; 32]),
        tenant: VerifyingKey([1; 32]),
        exports: FUNCTIONS.map(|(name, _)| name.to_string()).to_vec(),
        budget: Budget { memory_bytes: MEMORY_BYTES, fuel_per_second: 0, ..Budget::default() },
        share: Share::default(),
        grants: Capabilities::default(),
        placement: 1,
        code,
        image: kept(kernel, &bytes),
        wasm: None,
    };
    let installation = Installation { record, id: id_of(&public_key), initial_tree: Vec::new() };
    if kernel.install(Instant::BOOT, installation).is_err() {
        panic!("no machine")
    }
}

fn kept(kernel: &mut Kernel<RamFlash>, bytes: &[u8]) -> Extent {
    let Ok(extent) = kernel.code().reserve(bytes.len() as u32) else { panic!("no room") };
    let mut draft = Draft::new(extent);
    match kernel.code().append(&mut draft, bytes).and_then(|()| kernel.code().finish(draft)) {
        Ok(extent) => extent,
        Err(_) => panic!("no flash"),
    }
}

fn deliver(kernel: &mut Kernel<RamFlash>, number: u8, function: &str) {
    let call = IncomingCall {
        to: MachineId([number; 12]),
        caller: None,
        standing: Standing::Owner,
        function: function.to_string(),
        parameter: None,
        deadline: Instant::from_millis(10_000_000),
    };
    if kernel.deliver(Instant::BOOT, call, Ticket(0)).is_err() {
        panic!("no such function")
    }
}

fn run(kernel: &mut Kernel<RamFlash>) -> Ran {
    kernel.run(&mut World { now: Instant::from_millis(1), unix_time: None, entropy: &mut Zeros })
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
