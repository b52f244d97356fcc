//! Memory protection by PMP, and the switch to user mode and back (privileged specification, 3.7).
//!
//! Entries 0 to 13 are the regions of whoever runs in user mode; what no entry matches, user mode
//! doesn't reach. Entry 14 decides whether the firmware is among them, and 15, which is locked and
//! holds in machine mode too, makes the image what it is on a chip: readable, executable, not
//! writable.

use core::alloc::Layout;
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;

use riscv::register::{mcause, mepc, mstatus, mtval};
use tenure_board_common::{Block, Heap, Told};
use tenure_hal::{ARGUMENTS, Call, Cause, Context, Exit, Guard, RETURNED, Region, Violation};

use crate::clock;

/// The step in which PMP divides memory, in bytes.
const GRAIN: usize = 4;
/// Binaries' code is relocated in steps of this: the part of an address that `lui` sets.
const BLOCK_ALIGNMENT: usize = 4096;
/// Entries for regions: two each, the first for where it begins.
const ENTRIES: usize = 14;
const IMAGE_BASE: usize = 0x8000_0000;
const IMAGE_BYTES: usize = 4 << 20;

/// Nanoseconds of an instruction: the emulator counts them (`cargo xtask board`, `-icount shift=3`), and each takes that.
const INSTRUCTION_NS: u32 = 1 << 3;
/// The most instructions that a unit of fuel takes, a tenth above what `cargo xtask bench fuel` counts of the vm's
/// operations (docs/vm.md, "Fuel").
const UNIT_INSTRUCTIONS: u32 = 14;

const READ: u8 = 1;
const WRITE: u8 = 2;
const EXECUTE: u8 = 4;
const TOP_OF_RANGE: u8 = 1 << 3;
const NAPOT: u8 = 3 << 3;
const LOCKED: u8 = 1 << 7;

/// The bit of `mstatus` that makes `wfi` in user mode a mistake (TW).
const TIMEOUT_WAIT: usize = 1 << 21;

/// Places in a context: the registers by their numbers, the program counter in the place of `x0`.
const PC: usize = 0;
const RA: usize = 1;
const SP: usize = 2;
const A0: usize = 10;
const A1: usize = 11;
const A7: usize = 17;

/// The last settings of PMP, so that it isn't set again to the same.
struct Protection {
    told: Told,
    addresses: [usize; ENTRIES],
    rules: [u8; 16],
}

/// The uses of PMP's address registers for a program: where its code begins, where its own memory does, and
/// where that ends.
type Bounds = [usize; 3];

struct OneHart(UnsafeCell<Protection>);

// SAFETY: one hart, and nothing that interrupts it looks at this.
unsafe impl Sync for OneHart {}

static TOLD: OneHart = OneHart(UnsafeCell::new(Protection {
    told: Told::nothing(),
    addresses: [0; ENTRIES],
    rules: [0; 16],
}));

/// A handle of the hart's memory protection, for each of those who run programs behind it.
#[derive(Clone)]
pub(crate) struct Pmp {
    /// Where programs' memory comes from.
    heap: &'static Heap,
}

impl Pmp {
    /// Takes the hardware: the image can't be written from now on, by the firmware either.
    pub(crate) fn take(heap: &'static Heap) -> Self {
        let image = napot(IMAGE_BASE, IMAGE_BYTES);
        // SAFETY: machine mode reaches everything but for the image's write protection, and nothing
        // writes there.
        unsafe {
            asm!("csrw pmpaddr14, {0}", "csrw pmpaddr15, {0}", in(reg) image);
            // User mode neither waits for interrupts nor reads counters.
            asm!("csrs mstatus, {0}", "csrw mcounteren, zero", in(reg) TIMEOUT_WAIT);
        }
        // A trap of user mode leaves the way back to it as it is, and so does that way.
        // SAFETY: nothing returns from a trap but to user mode.
        unsafe { mstatus::set_mpp(mstatus::MPP::User) };
        told().tell();
        Self { heap }
    }
}

impl Protection {
    /// Lets a function reach `regions`, and the firmware if none of them is code, and nothing else; `false`
    /// if the hardware has too few entries, and then nobody reaches anything.
    fn allow(&mut self, regions: &[Region<'_>]) -> bool {
        match self.told.are_news(regions) {
            None => return false,
            Some(false) => return true,
            Some(true) => {}
        }
        self.rules = [0; 16];
        // Without a rule the locked one behind it would let user mode read and execute the firmware.
        let runs_firmware = !self.told.ranges().iter().any(|range| range.is_code);
        self.rules[14] = NAPOT | if runs_firmware { READ | EXECUTE } else { 0 };
        let mut entry = 0;
        for range in self.told.ranges() {
            if range.start == range.end {
                continue;
            }
            let rule = TOP_OF_RANGE
                | READ
                | if range.is_own { WRITE } else { 0 }
                | if range.is_code { EXECUTE } else { 0 };
            let (start, end) = (range.start / GRAIN, range.end.div_ceil(GRAIN));
            // Ranges that touch and are alike are one.
            if entry > 0 && self.addresses[entry - 1] == start && self.rules[entry - 1] == rule {
                self.addresses[entry - 1] = end;
                continue;
            }
            if entry == ENTRIES {
                self.rules = [0; 16];
                self.told.forget();
                self.tell();
                return false;
            }
            self.addresses[entry] = start;
            self.addresses[entry + 1] = end;
            self.rules[entry + 1] = rule;
            entry += 2;
        }
        self.tell();
        true
    }

    /// Tells PMP all there is to be told.
    fn tell(&mut self) {
        self.rules[15] = NAPOT | READ | EXECUTE | LOCKED;
        let Self { addresses: a, rules, .. } = &*self;
        let word = |n: usize| {
            u32::from_le_bytes([rules[4 * n], rules[4 * n + 1], rules[4 * n + 2], rules[4 * n + 3]])
        };
        macro_rules! write {
            ($($register:literal: $value:expr;)*) => {
                $(asm!(concat!("csrw ", $register, ", {}"), in(reg) $value);)*
            };
        }
        // SAFETY: rules for user mode alone; machine mode doesn't follow what isn't locked. While
        // they change nobody runs in user mode.
        unsafe {
            write! { "pmpaddr0": a[0]; "pmpaddr1": a[1]; "pmpaddr2": a[2]; "pmpaddr3": a[3]; }
            if rules[5..ENTRIES].iter().any(|rule| *rule != 0) {
                write! {
                    "pmpaddr4": a[4]; "pmpaddr5": a[5]; "pmpaddr6": a[6]; "pmpaddr7": a[7];
                    "pmpaddr8": a[8]; "pmpaddr9": a[9]; "pmpaddr10": a[10]; "pmpaddr11": a[11];
                    "pmpaddr12": a[12]; "pmpaddr13": a[13];
                }
            }
            write! {
                "pmpcfg0": word(0); "pmpcfg1": word(1); "pmpcfg2": word(2); "pmpcfg3": word(3);
            }
        }
    }
}

/// Lets a program reach its memory, and nothing else: the shortest way, since this is what a switch
/// between two of them takes.
fn tell_program(&[start, own, end]: &Bounds) {
    const CODE: usize = (TOP_OF_RANGE | READ | EXECUTE) as usize;
    const OWN: usize = (TOP_OF_RANGE | READ | WRITE) as usize;
    let fixed = usize::from(NAPOT) << 16 | usize::from(NAPOT | READ | EXECUTE | LOCKED) << 24;
    // SAFETY: as in `tell`.
    unsafe {
        asm!(
            "csrw pmpaddr0, {0}",
            "csrw pmpaddr1, {1}",
            "csrw pmpaddr2, {2}",
            "csrw pmpcfg0, {3}",
            "csrw pmpcfg1, zero",
            "csrw pmpcfg2, zero",
            "csrw pmpcfg3, {4}",
            ".word 0x0000100f",
            in(reg) start,
            in(reg) own,
            in(reg) end,
            in(reg) CODE << 8 | OWN << 16,
            in(reg) fixed,
        );
    }
}

fn told() -> &'static mut Protection {
    // SAFETY: whoever calls this lets go of it before anybody else can.
    unsafe { &mut *TOLD.0.get() }
}

/// Lets the hart fetch the instructions that memory holds now, where others may have been before.
fn fetch_anew() {
    // SAFETY: `fence.i`, which the target doesn't name; it changes nothing but what is cached.
    unsafe { asm!(".word 0x0000100f") }
}

/// A naturally aligned power of two, as an address register wants it.
const fn napot(base: usize, bytes: usize) -> usize {
    (base | (bytes / 2 - 1)) >> 2
}

unsafe extern "C" {
    /// Runs user mode from the context in a0 on until it traps; keeps sp, gp, s0 and s1 alone. The firmware
    /// has no use for tp.
    fn enter_user();
    /// Where functions that user mode calls return to.
    fn user_return();
}

global_asm!(
    ".section .text",
    // The context is in a0 and, while user mode runs, in mscratch; what the caller doesn't expect to
    // be changed, on the stack, whose pointer is behind the registers in the context.
    ".global enter_user",
    "enter_user:",
    "addi sp, sp, -16",
    "sw ra, 0(sp)",
    "sw gp, 4(sp)",
    "sw s0, 8(sp)",
    "sw s1, 12(sp)",
    "sw sp, 128(a0)",
    "csrw mscratch, a0",
    "lw t0, 0(a0)",
    "csrw mepc, t0",
    "lw x1, 4(a0)",
    "lw x2, 8(a0)",
    "lw x3, 12(a0)",
    "lw x4, 16(a0)",
    ".irp n,5,6,7,8,9,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
    "lw x\\n, 4*\\n(a0)",
    ".endr",
    "lw a0, 40(a0)",
    "mret",
    // Traps: of user mode if mscratch holds its context, else of the firmware.
    ".balign 4",
    ".global machine_trap",
    "machine_trap:",
    "csrrw a0, mscratch, a0",
    "beqz a0, 1f",
    ".irp n,1,2,3,4,5,6,7,8,9,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
    "sw x\\n, 4*\\n(a0)",
    ".endr",
    "csrrw t0, mscratch, zero",
    "sw t0, 40(a0)",
    "csrr t0, mepc",
    "sw t0, 0(a0)",
    "lw sp, 128(a0)",
    "lw ra, 0(sp)",
    "lw gp, 4(sp)",
    "lw s0, 8(sp)",
    "lw s1, 12(sp)",
    "addi sp, sp, 16",
    "ret",
    // The stack may be what is broken: begin a new one.
    "1: la sp, stack_top",
    "j firmware_trapped",
    ".global user_return",
    "user_return:",
    "li a7, -1",
    "ecall",
);

impl Guard for Pmp {
    type Memory = Block<Bounds>;

    // No interrupt but the alarm's is taken while a program runs, and PMP is told of all regions before.
    const UNIT_NS: Option<u32> = Some(UNIT_INSTRUCTIONS * INSTRUCTION_NS);

    fn memory(&self, bytes: usize, code_bytes: usize, at: Option<usize>) -> Option<Self::Memory> {
        if !bytes.is_multiple_of(GRAIN) || !code_bytes.is_multiple_of(GRAIN) || code_bytes > bytes {
            return None;
        }
        // It may be where another was, with other code.
        told().told.forget();
        let layout = Layout::from_size_align(bytes, BLOCK_ALIGNMENT).ok()?;
        Block::new(self.heap, (bytes, layout), at, |start| {
            Some([start, start + code_bytes, start + bytes].map(|address| address / GRAIN))
        })
    }

    fn enter(&self, entry: usize, argument: usize, stack_top: usize) -> Context {
        let mut context = Context::default();
        context.words[PC] = entry;
        context.words[RA] = user_return as *const () as usize;
        context.words[SP] = stack_top;
        context.words[A0] = argument;
        context
    }

    fn run(&mut self, context: &mut Context, memory: &mut Self::Memory, microseconds: u32) -> Exit {
        if told().told.is_news(memory.as_ptr().expose_provenance()) {
            tell_program(memory.rules());
        }
        stay(context, microseconds)
    }

    fn run_firmware(
        &mut self,
        context: &mut Context,
        regions: &mut [Region<'_>],
        microseconds: u32,
    ) -> Exit {
        if !told().allow(regions) {
            // More regions than the hardware has: nothing runs unprotected.
            let at = context.words[PC];
            return Exit::Violation(Violation { cause: Cause::Execute, address: at, at });
        }
        // Regions that were told already may hold other code by now: a package took another's place in flash.
        fetch_anew();
        stay(context, microseconds)
    }

    fn call(&self, context: &Context) -> Call {
        let mut arguments = [0; ARGUMENTS];
        arguments.copy_from_slice(&context.words[A0..A0 + ARGUMENTS]);
        Call { number: context.words[A7], arguments }
    }

    fn position(&self, context: &Context) -> usize {
        context.words[PC]
    }

    fn finish_call(&self, context: &mut Context, [low, high]: [usize; 2]) {
        context.words[A0] = low;
        context.words[A1] = high;
    }
}

/// Runs user mode from `context` on; PMP has been told what it reaches.
fn stay(context: &mut Context, microseconds: u32) -> Exit {
    clock::alarm_in(microseconds);
    let context = &raw mut *context;
    // SAFETY: user mode can't touch what the firmware relies on; its own memory is borrowed by whoever
    // calls this. No interrupt but the timer's is enabled while nobody waits for one.
    unsafe {
        asm!(
            "call {enter}",
            enter = sym enter_user,
            inout("a0") context => _,
            out("s2") _, out("s3") _, out("s4") _, out("s5") _, out("s6") _, out("s7") _,
            out("s8") _, out("s9") _, out("s10") _, out("s11") _,
            clobber_abi("C"),
        );
    }
    // SAFETY: as it was lent; user mode is left.
    exit(unsafe { &mut *context })
}

/// Why user mode was left.
fn exit(context: &mut Context) -> Exit {
    const ECALL_BYTES: usize = 4;
    const CALLED: usize = 8;
    let cause = mcause::read();
    if cause.bits() == CALLED {
        context.words[PC] += ECALL_BYTES;
        return Exit::Call;
    }
    if cause.is_interrupt() {
        return Exit::Time;
    }
    let (at, address) = (mepc::read(), mtval::read());
    if at == user_return as *const () as usize && cause.code() <= 1 {
        // To those who don't reach the firmware a return is a jump out of their code.
        context.words[A7] = RETURNED;
        return Exit::Call;
    }
    let cause = match cause.code() {
        0 | 1 => Cause::Execute,
        4 | 5 => Cause::Read,
        6 | 7 => Cause::Write,
        _ => Cause::Instruction,
    };
    Exit::Violation(Violation { cause, address, at })
}

// The stack pointer of the firmware lies behind 32 words.
const _: () = assert!(size_of::<Context>() == 4 * 33);
