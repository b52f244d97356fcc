//! The cost of walls and calls, in instructions: a firmware with the feature `costs` prints it instead of being
//! a device. `cargo xtask board BOARD --costs` runs it in an emulator that counts.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use tenure_hal::{
    Clock, Context, Entropy, EntropyError, FlashError, Guard, Instant, Medium, NorFlash,
};
use tenure_kernel::{
    Code, Config, Draft, Engine as _, Extent, IncomingCall, Installation, Kernel, MachineRecord,
    NativeBinary, NativeParts, Ran, Standing, Ticket, World, host_functions,
};
use tenure_store::Store;
use tenure_vm::{InstanceConfig, Limits, Outcome, Value, translate_bound};
use tenure_wire::host_call::HostCall;
use tenure_wire::{
    Budget, Capabilities, CodeKind, Digest, MachineId, PublicKey, Share, Term, VerifyingKey,
};

use crate::{GuardedVm, NativeMachines};

/// Host calls of one task.
const CALLS: u32 = 100;
/// Turns that are counted together, and those before them.
const TURNS: u32 = 200;
const TURNS_BEFORE: u32 = 8;
const MEMORY_BYTES: u32 = 8192;
/// Of each of two flashes: eight sectors.
const FLASH_BYTES: usize = 8 * 4096;
const LONG_MICROSECONDS: u32 = 1_000_000;

/// The functions of the program that is run.
const NOTHING: &str = "nothing";
const ASK: &str = "ask";
const GIVE_WAY: &str = "give_way";

/// The same program:
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

/// A board that counts.
pub struct Costs<G, C> {
    /// Its memory protection.
    pub guard: G,
    /// Its clock.
    pub clock: C,
    /// The code.
    pub kind: CodeKind,
    /// A program for it, and where its functions are: one that does nothing, one that asks for
    /// `parameter_length` a hundred times, one that makes way by `yield_now` for good.
    pub program: (&'static [u8], [u32; 3]),
    /// Instructions executed so far, of which it may tell differences alone.
    pub instructions: fn() -> u32,
}

/// The machines of a kernel.
#[derive(Clone, Copy)]
enum Kind {
    Native,
    Wasm { wall: bool },
}

impl<G, C> Costs<G, C>
where
    G: Guard + Clone + Send + 'static,
    C: Clock + Clone + Send + 'static,
{
    /// Measures, and prints a line for each figure.
    pub fn print(&self, console: &mut impl Write) {
        let mut line = |what: &str, count: u32| {
            // A console that takes nothing has nobody who reads it.
            let _ = writeln!(console, "{count:>6} instructions  {what}");
        };
        let native = Kind::Native;
        let [behind, without] = [true, false].map(|wall| Kind::Wasm { wall });
        line("system call and back, at the wall", self.wall_turn(1));
        line("switch between two native machines, at the wall", self.wall_turn(2));
        line("host call of a native machine, up to the kernel and back", self.engine_call());
        line("host call of a native machine, done by the kernel", self.kernel_call(native));
        line(
            "host call of a wasm machine behind the wall, done by the kernel",
            self.kernel_call(behind),
        );
        line(
            "host call of a wasm machine without the wall, done by the kernel",
            self.kernel_call(without),
        );
        line(
            "turn of one of two native machines that yield, scheduling included",
            self.kernel_turn(native),
        );
        line(
            "turn of one of two wasm machines that yield, scheduling included",
            self.kernel_turn(behind),
        );
    }

    /// Counts what each of many turns takes; the first ones come before.
    fn per_turn(&self, mut turn: impl FnMut()) -> u32 {
        (0..TURNS_BEFORE).for_each(|_| turn());
        let began = (self.instructions)();
        (0..TURNS).for_each(|_| turn());
        (self.instructions)().wrapping_sub(began) / TURNS
    }

    /// From the firmware to one of so many machines in turn, which makes a system call, and back.
    fn wall_turn(&self, machines: usize) -> u32 {
        let mut guard = self.guard.clone();
        let mut machines: Vec<_> = (0..machines).map(|_| self.loaded()).collect();
        let mut next = 0;
        self.per_turn(|| {
            next = if next + 1 < machines.len() { next + 1 } else { 0 };
            let (memory, context) = &mut machines[next];
            let _ = guard.run(context, memory, LONG_MICROSECONDS);
        })
    }

    fn binary(&self) -> Vec<u8> {
        let (code, [nothing, ask, give_way]) = self.program;
        let exports = [(NOTHING, nothing), (ASK, ask), (GIVE_WAY, give_way)];
        let parts = NativeParts {
            kind: self.kind,
            code: code.to_vec(),
            stack_bytes: 256,
            data: vec![0; 16],
            zero_bytes: 0,
            relocations: Vec::new(),
            exports: exports.map(|(name, at)| (name.to_string(), at)).to_vec(),
        };
        parts.to_bytes().unwrap_or_default()
    }

    fn loaded(&self) -> (G::Memory, Context) {
        let bytes = self.binary();
        let memory = self.guard.memory(MEMORY_BYTES as usize, self.program.0.len(), None);
        let (Ok(binary), Some(mut memory)) = (NativeBinary::parse(&bytes), memory) else {
            panic!("no memory")
        };
        let base = memory.as_ptr().expose_provenance();
        let _ = binary.load(&mut memory, base as u32);
        let entry = base + self.program.1[2] as usize;
        let context = self.guard.enter(entry, 0, base + binary.data_at() as usize);
        (memory, context)
    }

    fn engine(&self) -> NativeMachines<G, C> {
        NativeMachines::new(self.kind, self.guard.clone(), self.clock.clone())
    }

    /// A host call by way of the engine: metered, its arguments checked and decoded, its result given.
    fn engine_call(&self) -> u32 {
        let bytes = self.binary();
        let limits = InstanceConfig { stack_bytes: 0, memory_bytes_max: MEMORY_BYTES as usize };
        let Ok(binary) = NativeBinary::parse(&bytes) else { panic!("no binary") };
        let Ok(mut machine) = self.engine().start(&Digest([0; 32]), Code::Native(binary), &limits)
        else {
            panic!("no memory")
        };
        self.per_turn(|| {
            let mut fuel = 20_000;
            if let Outcome::HostCall { function } = machine.run(&mut fuel, 10_000)
                && let Some(HostCall::parameter_length {}) =
                    HostCall::decode(function, machine.host_arguments())
            {
                machine.finish_host_call(&[Value::I32(0)]);
            } else {
                // It begins, or has asked a hundred times.
                machine.prepare(ASK);
            }
        })
    }

    fn kernel_call(&self, kind: Kind) -> u32 {
        let mut kernel = self.kernel(kind);
        let mut task = |function: &str| {
            deliver(&mut kernel, 1, function);
            let began = (self.instructions)();
            while run(&mut kernel) == Ran::Slice {}
            let count = (self.instructions)().wrapping_sub(began);
            while kernel.effect().is_some() {}
            count
        };
        let (_, nothing) = (task(NOTHING), task(NOTHING));
        (task(ASK) - nothing) / CALLS
    }

    fn kernel_turn(&self, kind: Kind) -> u32 {
        let mut kernel = self.kernel(kind);
        deliver(&mut kernel, 1, GIVE_WAY);
        deliver(&mut kernel, 2, GIVE_WAY);
        self.per_turn(|| _ = run(&mut kernel))
    }

    fn kernel(&self, kind: Kind) -> Kernel<NorFlash<Ram>> {
        let mut flash = Ram::flash();
        let Ok(()) = Store::format(&mut flash).map(|_| ()) else { panic!("no format") };
        let Ok((store, _)) = Store::mount(flash) else { panic!("no store") };
        let code = Ram::flash();
        let Ok(mut kernel) = Kernel::boot(store, code, Config::default(), Instant::BOOT, id_of)
        else {
            panic!("no kernel")
        };
        match kind {
            Kind::Native => kernel.use_engine(Box::new(self.engine())),
            Kind::Wasm { wall: true } => {
                let Some(wall) = GuardedVm::new(self.guard.clone(), self.clock.clone()) else {
                    panic!("no memory")
                };
                kernel.use_wall(Box::new(wall));
            }
            Kind::Wasm { wall: false } => {}
        }
        for number in [1, 2] {
            self.install(&mut kernel, kind, number);
        }
        while kernel.effect().is_some() {}
        kernel
    }

    fn install(&self, kernel: &mut Kernel<NorFlash<Ram>>, kind: Kind, number: u8) {
        let (code, bytes) = match kind {
            Kind::Native => (self.kind, [&[0; 32][..], &self.binary()].concat()),
            Kind::Wasm { .. } => {
                let mut image = Vec::new();
                let limits = Limits::default();
                let _ = translate_bound(MODULE, &host_functions(), &limits, &[0; 32], &mut image);
                (CodeKind::WebAssembly, image)
            }
        };
        let name = alloc::format!("machine-{number}");
        let (Ok(name), Ok(package_name)) = (name.parse(), "machine".parse()) else {
            panic!("no name")
        };
        let public_key = PublicKey([number; 32]);
        let record = MachineRecord {
            name,
            package_name,
            package_version: tenure_wire::Version { major: 1, minor: 0, patch: 0 },
            public_key,
            salt: [0; 16],
            package: Digest([0; 32]),
            tenant: VerifyingKey([1; 32]),
            exports: [NOTHING, ASK, GIVE_WAY].map(ToString::to_string).to_vec(),
            timers: alloc::vec::Vec::new(),
            budget: Budget { memory_bytes: MEMORY_BYTES, fuel_per_second: 0, ..Budget::default() },
            errors: tenure_wire::Audience::default(),
            log: tenure_wire::LogLevel::default(),
            term: Term { signed_unix_s: 0, ends_unix_s: None, grace_s: 0, receipts_every_s: 0 },
            share: Share::default(),
            grants: Capabilities::default(),
            placement: 1,
            code,
            image: kept(kernel, &bytes),
            faster: None,
            base: None,
        };
        let installation = Installation { record, id: id_of(&public_key) };
        if kernel.tenancy(Instant::BOOT).install(installation).is_err() {
            panic!("no machine")
        }
    }
}

fn kept(kernel: &mut Kernel<NorFlash<Ram>>, bytes: &[u8]) -> Extent {
    let Ok(extent) = kernel.code().reserve(bytes.len() as u32) else { panic!("no room") };
    let mut draft = Draft::new(extent);
    match kernel.code().append(&mut draft, bytes).and_then(|()| kernel.code().finish(draft)) {
        Ok(extent) => extent,
        Err(_) => panic!("no flash"),
    }
}

fn deliver(kernel: &mut Kernel<NorFlash<Ram>>, number: u8, function: &str) {
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

fn run(kernel: &mut Kernel<NorFlash<Ram>>) -> Ran {
    kernel.run(&mut World { now: Instant::from_millis(1), unix_time: None, entropy: &mut Zeros })
}

fn id_of(key: &PublicKey) -> MachineId {
    MachineId([key.0[0]; 12])
}

/// What stands for a flash. The simulated one would do, but the feature that it takes is one more build of all that a
/// firmware is made of.
struct Ram(Vec<u8>);

impl Ram {
    /// An erased flash.
    fn flash() -> NorFlash<Self> {
        NorFlash::new(Self(vec![0xFF; FLASH_BYTES]))
    }
}

impl Medium for Ram {
    fn length(&self) -> usize {
        self.0.len()
    }

    fn read(&mut self, offset: usize, into: &mut [u8]) -> Result<(), FlashError> {
        into.copy_from_slice(&self.0[offset..][..into.len()]);
        Ok(())
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.0)
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), FlashError> {
        self.0[offset..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

struct Zeros;

impl Entropy for Zeros {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.fill(0);
        Ok(())
    }
}
