//! Memory protection by PMP, and the switch to user mode and back (privileged specification, 3.7).
//!
//! Entries 0 to 13 are the regions of whoever runs in user mode; what no entry matches, user mode
//! doesn't reach. Entry 14 decides whether the firmware is among them, and 15, which is locked and
//! holds in machine mode too, makes the image what it is on a chip: readable, executable, not
//! writable.

use core::arch::{asm, global_asm};

use riscv::register::{mcause, mepc, mie, mstatus, mtval};
use tenure_hal::{Cause, Context, Exit, Guard, Region, Violation};

use crate::clock;

/// Entries for regions: two each, the first for where it begins.
const ENTRIES: usize = 14;
const IMAGE_BASE: usize = 0x8000_0000;
const IMAGE_BYTES: usize = 4 << 20;

const READ: u8 = 1;
const WRITE: u8 = 2;
const EXECUTE: u8 = 4;
const TOP_OF_RANGE: u8 = 1 << 3;
const NAPOT: u8 = 3 << 3;
const LOCKED: u8 = 1 << 7;

/// Places in a context: the registers by their numbers, the program counter in the place of `x0`.
const PC: usize = 0;
const RA: usize = 1;
const SP: usize = 2;
const A0: usize = 10;
const A1: usize = 11;
const A7: usize = 17;

/// What PMP is told.
#[derive(Clone, PartialEq, Eq)]
struct Protection {
    addresses: [usize; ENTRIES],
    rules: [u8; 16],
}

/// The hart's memory protection. There is one: it remembers what the hardware was told.
pub(crate) struct Pmp {
    told: Protection,
}

impl Pmp {
    /// Takes the hardware: the image can't be written from now on, by the firmware either.
    pub(crate) fn take() -> Self {
        let image = napot(IMAGE_BASE, IMAGE_BYTES);
        let mut rules = [0; 16];
        rules[14] = NAPOT;
        rules[15] = NAPOT | READ | EXECUTE | LOCKED;
        let told = Protection { addresses: [0; ENTRIES], rules };
        // SAFETY: machine mode reaches everything but for the image's write protection, and nothing
        // writes there.
        unsafe {
            asm!("csrw pmpaddr14, {0}", "csrw pmpaddr15, {0}", in(reg) image);
        }
        tell(&told);
        Self { told }
    }

    fn allow(&mut self, regions: &[Region<'_>]) -> bool {
        let mut wanted = Protection { addresses: [0; ENTRIES], rules: self.told.rules };
        wanted.rules[..ENTRIES].fill(0);
        wanted.rules[14] = NAPOT;
        let mut entry = 0;
        for region in regions {
            let Some(range) = region.addresses() else {
                wanted.rules[14] |= READ | EXECUTE;
                continue;
            };
            let rights = match region {
                Region::Firmware | Region::Readable(_) => READ,
                Region::Code(_) => READ | EXECUTE,
                Region::Own(_) | Region::OwnWords(_) => READ | WRITE,
            };
            if range.is_empty() {
                continue;
            }
            let (start, end) = (range.start / 4, range.end.div_ceil(4));
            // Ranges that touch and are alike are one.
            if entry > 0
                && wanted.addresses[entry - 1] == start
                && wanted.rules[entry - 1] == TOP_OF_RANGE | rights
            {
                wanted.addresses[entry - 1] = end;
                continue;
            }
            if entry == ENTRIES {
                return false;
            }
            wanted.addresses[entry] = start;
            wanted.addresses[entry + 1] = end;
            wanted.rules[entry + 1] = TOP_OF_RANGE | rights;
            entry += 2;
        }
        if wanted != self.told {
            tell(&wanted);
            self.told = wanted;
        }
        true
    }
}

/// A naturally aligned power of two, as an address register wants it.
const fn napot(base: usize, bytes: usize) -> usize {
    (base | (bytes / 2 - 1)) >> 2
}

fn tell(protection: &Protection) {
    let Protection { addresses: a, rules } = protection;
    let word = |n: usize| {
        u32::from_le_bytes([rules[4 * n], rules[4 * n + 1], rules[4 * n + 2], rules[4 * n + 3]])
    };
    macro_rules! write {
        ($($register:literal: $value:expr;)*) => {
            $(asm!(concat!("csrw ", $register, ", {}"), in(reg) $value);)*
        };
    }
    // SAFETY: rules for user mode alone; machine mode doesn't follow what isn't locked. While they
    // change nobody runs in user mode.
    unsafe {
        write! {
            "pmpaddr0": a[0]; "pmpaddr1": a[1]; "pmpaddr2": a[2]; "pmpaddr3": a[3];
            "pmpaddr4": a[4]; "pmpaddr5": a[5]; "pmpaddr6": a[6]; "pmpaddr7": a[7];
            "pmpaddr8": a[8]; "pmpaddr9": a[9]; "pmpaddr10": a[10]; "pmpaddr11": a[11];
            "pmpaddr12": a[12]; "pmpaddr13": a[13];
            "pmpcfg0": word(0); "pmpcfg1": word(1); "pmpcfg2": word(2); "pmpcfg3": word(3);
        }
    }
}

unsafe extern "C" {
    /// Runs user mode from `context` on until it traps.
    fn enter_user(context: *mut Context);
    /// Where functions that user mode calls return to.
    fn user_return();
}

global_asm!(
    ".section .text",
    // The context is in a0 and, while user mode runs, in mscratch; what a callee must keep, on the
    // stack, whose pointer is behind the registers in the context.
    ".global enter_user",
    "enter_user:",
    "addi sp, sp, -64",
    "sw ra, 0(sp)",
    "sw gp, 4(sp)",
    "sw tp, 8(sp)",
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11",
    "sw s\\n, 12+4*\\n(sp)",
    ".endr",
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
    "lw tp, 8(sp)",
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11",
    "lw s\\n, 12+4*\\n(sp)",
    ".endr",
    "addi sp, sp, 64",
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
    fn enter(&self, entry: usize, argument: usize, stack_top: usize) -> Context {
        let mut context = Context::default();
        context.words[PC] = entry;
        context.words[RA] = user_return as *const () as usize;
        context.words[SP] = stack_top;
        context.words[A0] = argument;
        context
    }

    fn run(
        &mut self,
        context: &mut Context,
        regions: &mut [Region<'_>],
        microseconds: u32,
    ) -> Exit {
        if !self.allow(regions) {
            // More regions than the hardware has: nothing runs unprotected.
            let at = context.words[PC];
            return Exit::Violation(Violation { cause: Cause::Execute, address: at, at });
        }
        clock::alarm_in(microseconds);
        // SAFETY: user mode can't touch what the firmware relies on; its own memory is borrowed in
        // `regions`. Interrupts other than the timer's wait, as they do in machine mode.
        unsafe {
            mie::clear_mext();
            mstatus::set_mpp(mstatus::MPP::User);
            enter_user(context);
            mie::set_mext();
        }
        self.exit(context)
    }

    fn call(&self, context: &Context) -> [usize; 3] {
        [context.words[A7], context.words[A0], context.words[A1]]
    }

    fn finish_call(&self, context: &mut Context, [low, high]: [usize; 2]) {
        context.words[A0] = low;
        context.words[A1] = high;
    }
}

impl Pmp {
    fn exit(&self, context: &mut Context) -> Exit {
        const ECALL_BYTES: usize = 4;
        let cause = mcause::read();
        if cause.is_interrupt() {
            return Exit::Time;
        }
        let (at, address) = (mepc::read(), mtval::read());
        let cause = match cause.code() {
            8 => {
                context.words[PC] += ECALL_BYTES;
                return Exit::Call;
            }
            0 | 1 => Cause::Execute,
            4 | 5 => Cause::Read,
            6 | 7 => Cause::Write,
            _ => Cause::Instruction,
        };
        Exit::Violation(Violation { cause, address, at })
    }
}

// The stack pointer of the firmware lies behind 32 words.
const _: () = assert!(size_of::<Context>() == 4 * 33);
