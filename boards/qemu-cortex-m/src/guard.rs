//! Memory protection by the MPU of an ARMv7-M core, and the switch to unprivileged programs and back.
//!
//! The firmware runs privileged in thread mode, with interrupts off. A program runs unprivileged in thread
//! mode, with the alarm's interrupt on; whatever it stops for is an exception whose handler goes back to
//! the firmware (ARMv7-M manual, B1.5). "Manual" is that one.

use core::alloc::Layout;
use core::arch::global_asm;

use tenure_board_common::{Block, STEP_BYTES, is_store};
use tenure_board_qemu_cortex_m::registers::Registers;
use tenure_hal::{ARGUMENTS, Call, Cause, Context, Exit, Guard, RETURNED, Region, Violation};

use crate::clock;
use crate::mpu;

// SAFETY: the system control block (manual, B3.2.2).
const SYSTEM: Registers = unsafe { Registers::at(0xE000_ED00) };
const HANDLERS: usize = 0x24;
const FAULT_STATUS: usize = 0x28;
const MEMORY_FAULT_ADDRESS: usize = 0x34;
const BUS_FAULT_ADDRESS: usize = 0x38;

/// Faults of memory, bus and usage have handlers of their own, and nothing waits for one (B3.2.13).
const FAULTS_ENABLED: u32 = 0b111 << 16;

/// Places in a context: eight registers as an exception stacks them (B1.5.6), eight more, where the
/// stacked ones are, the exception, and the number of the call.
const R0: usize = 0;
const R1: usize = 1;
const R3: usize = 3;
const LR: usize = 5;
const PC: usize = 6;
const STATUS: usize = 7;
const R4: usize = 8;
const R5: usize = 9;
const FRAME: usize = 16;
const EXCEPTION: usize = 17;
const NUMBER: usize = 18;
const FRAME_WORDS: usize = 8;
const WORD_BYTES: usize = 4;
/// What a stack's pointer is a multiple of when an exception stacks registers, and how much it takes.
const FRAME_ALIGNMENT: usize = 8;
const FRAME_BYTES: usize = FRAME_WORDS * WORD_BYTES;

/// The bit of the status register that says that the instructions are Thumb.
const THUMB: usize = 1 << 24;

/// Numbers of exceptions (B1.5.2).
const HARD_FAULT: usize = 3;
const SUPERVISOR_CALL: usize = 11;
const DEBUG_MONITOR: usize = 12;

/// Bits of the fault status (B3.2.15).
const NO_FETCH: u32 = 1 << 8 | 1;
const MEMORY: u32 = 1 << 1;
const DATA: u32 = MEMORY | 1 << 9 | 1 << 10;
const STACKING: u32 = 1 << 3 | 1 << 4 | 1 << 11 | 1 << 12;
const MEMORY_ADDRESS_VALID: u32 = 1 << 7;
const BUS_ADDRESS_VALID: u32 = 1 << 15;

/// A handle of the core's memory protection, for each of those who run programs behind it.
#[derive(Clone)]
pub(crate) struct Mpu(());

impl Mpu {
    /// Takes the hardware: the image can't be written from now on, by the firmware either.
    pub(crate) fn take() -> Self {
        SYSTEM.write(HANDLERS, FAULTS_ENABLED);
        mpu::start();
        Self(())
    }
}

unsafe extern "C" {
    /// Runs a program from `context` on until an exception; its stacked registers are in place.
    fn enter_user(context: *mut Context);
    /// Where functions that a program calls return to.
    fn user_return();
}

global_asm!(
    ".section .bss.user, \"aw\", %nobits",
    ".balign 4",
    "user_context: .space 4",
    "firmware_frame: .space 4",
    ".section .text.user, \"ax\"",
    ".global enter_user",
    ".type enter_user, %function",
    ".thumb_func",
    "enter_user:",
    "push {{r4-r11, lr}}",
    "ldr r1, =user_context",
    "str r0, [r1]",
    // Interrupts wait until the program runs; the call, whose priority is the highest, doesn't.
    "movs r1, #{alarm}",
    "msr basepri, r1",
    "cpsie i",
    "svc #0",
    // The way back ends here.
    "pop {{r4-r11, pc}}",
    ".global SVCall",
    ".type SVCall, %function",
    ".thumb_func",
    "SVCall:",
    "mrs r1, control",
    "lsls r1, r1, #31",
    "bne user_trap",
    // From the firmware.
    "ldr r0, =user_context",
    "ldr r0, [r0]",
    "mrs r1, psp",
    "ldr r2, =firmware_frame",
    "str r1, [r2]",
    "ldr r1, [r0, #64]",
    "msr psp, r1",
    "adds r0, #32",
    "ldmia r0, {{r4-r11}}",
    // Without privileges, and with the alarm's interrupt alone.
    "movs r1, #3",
    "msr control, r1",
    "movs r1, #{others}",
    "msr basepri, r1",
    "isb",
    "bx lr",
    ".global MemoryManagement",
    ".global BusFault",
    ".global UsageFault",
    ".global DebugMonitor",
    ".global HardFault",
    ".global DefaultHandler",
    ".type MemoryManagement, %function",
    ".type BusFault, %function",
    ".type UsageFault, %function",
    ".type DebugMonitor, %function",
    ".type HardFault, %function",
    ".type DefaultHandler, %function",
    ".thumb_func",
    "MemoryManagement:",
    ".thumb_func",
    "BusFault:",
    ".thumb_func",
    "UsageFault:",
    ".thumb_func",
    "DebugMonitor:",
    ".thumb_func",
    "HardFault:",
    ".thumb_func",
    "DefaultHandler:",
    "mrs r1, control",
    "lsls r1, r1, #31",
    "bne user_trap",
    "b firmware_faulted",
    ".thumb_func",
    "user_trap:",
    "ldr r0, =user_context",
    "ldr r0, [r0]",
    "adds r0, #32",
    "stmia r0!, {{r4-r11}}",
    "mrs r1, psp",
    "mrs r2, ipsr",
    "stmia r0!, {{r1, r2}}",
    "cpsid i",
    "movs r1, #2",
    "msr control, r1",
    "movs r1, #0",
    "msr basepri, r1",
    "ldr r1, =firmware_frame",
    "ldr r1, [r1]",
    "msr psp, r1",
    "isb",
    "bx lr",
    // The second time that the watchdog wasn't fed is the reset.
    ".global NonMaskableInt",
    ".type NonMaskableInt, %function",
    ".thumb_func",
    "NonMaskableInt:",
    "b NonMaskableInt",
    ".global user_return",
    ".type user_return, %function",
    ".thumb_func",
    "user_return:",
    "svc #0",
    ".ltorg",
    alarm = const crate::interrupts::ALARM_PRIORITY,
    others = const crate::interrupts::OTHER_PRIORITY,
);

impl Guard for Mpu {
    type Memory = Block;

    fn memory(&self, bytes: usize, code_bytes: usize) -> Option<Block> {
        if !code_bytes.is_multiple_of(STEP_BYTES) {
            return None;
        }
        let (alignment, taken) = mpu::room(bytes, code_bytes)?;
        Block::new(bytes, Layout::from_size_align(taken, alignment).ok()?)
    }

    fn enter(&self, entry: usize, argument: usize, stack_top: usize) -> Context {
        let mut context = Context::default();
        context.words[R0] = argument;
        context.words[LR] = user_return as *const () as usize | 1;
        context.words[PC] = entry & !1;
        context.words[STATUS] = THUMB;
        context.words[FRAME] = stack_top.wrapping_sub(FRAME_BYTES) & !(FRAME_ALIGNMENT - 1);
        context
    }

    fn run(
        &mut self,
        context: &mut Context,
        regions: &mut [Region<'_>],
        microseconds: u32,
    ) -> Exit {
        let (at, frame) = (context.words[PC], context.words[FRAME]);
        // An exception's return takes registers from the program's stack.
        if !is_own(regions, frame) || !mpu::allow(regions, frame) {
            return Exit::Violation(Violation { cause: Cause::Write, address: frame, at });
        }
        clock::ring_in(microseconds);
        let exit = loop {
            // SAFETY: the frame lies in the program's own memory, which `regions` borrows. The program
            // can't touch what the firmware relies on.
            unsafe {
                let frame = core::ptr::with_exposed_provenance_mut::<[usize; FRAME_WORDS]>(
                    context.words[FRAME],
                );
                frame.write(*context.words.first_chunk().unwrap_unchecked());
                enter_user(context);
            }
            match exit(context) {
                // What it reaches by right, and the MPU wasn't told of yet.
                Exit::Violation(violation) if mpu::admit(regions, &violation) => {}
                exit => break exit,
            }
        };
        clock::silence();
        exit
    }

    fn call(&self, context: &Context) -> Call {
        let words = &context.words;
        let arguments: [usize; ARGUMENTS] =
            [words[R0], words[R1], words[R1 + 1], words[R3], words[R4], words[R5]];
        Call { number: words[NUMBER], arguments }
    }

    fn position(&self, context: &Context) -> usize {
        context.words[PC]
    }

    fn finish_call(&self, context: &mut Context, [low, high]: [usize; 2]) {
        context.words[R0] = low;
        context.words[R1] = high;
    }
}

/// Whether the registers that are stacked at `frame` lie in memory that the program may write to.
fn is_own(regions: &[Region<'_>], frame: usize) -> bool {
    regions.iter().any(|region| match region {
        Region::Own(bytes) => {
            let offset = frame.wrapping_sub(bytes.as_ptr().addr());
            offset < bytes.len() && bytes.len() - offset >= FRAME_BYTES
        }
        _ => false,
    })
}

/// Why the program stopped, by the exception that stopped it.
fn exit(context: &mut Context) -> Exit {
    let frame = context.words[FRAME];
    let exception = context.words[EXCEPTION];
    let mut status = 0;
    if exception <= DEBUG_MONITOR && exception != SUPERVISOR_CALL {
        status = SYSTEM.read(FAULT_STATUS);
        // Each bit is cleared by writing it.
        SYSTEM.write(FAULT_STATUS, status);
        // What else came meanwhile isn't the next program's.
        SYSTEM.write(HANDLERS, FAULTS_ENABLED);
        if status & STACKING != 0 {
            let at = context.words[PC];
            return Exit::Violation(Violation { cause: Cause::Write, address: frame, at });
        }
    }
    // SAFETY: the processor has just written the registers there, by the program's rights.
    let stacked =
        unsafe { core::ptr::with_exposed_provenance::<[usize; FRAME_WORDS]>(frame).read() };
    context.words[..FRAME_WORDS].copy_from_slice(&stacked);
    let (at, return_at) = (context.words[PC], user_return as *const () as usize & !1);
    if exception == SUPERVISOR_CALL {
        // SAFETY: the instruction before has just been executed.
        let call = unsafe { instruction_at(at.wrapping_sub(2)) };
        let returned = at.wrapping_sub(2) == return_at;
        context.words[NUMBER] = if returned { RETURNED } else { usize::from(call & 0xFF) };
        return Exit::Call;
    }
    if exception > DEBUG_MONITOR {
        return Exit::Time;
    }
    if status & NO_FETCH != 0 && at == return_at {
        // To those who don't reach the firmware a return is a jump out of their code.
        context.words[NUMBER] = RETURNED;
        return Exit::Call;
    }
    let (cause, address) = match status {
        _ if exception == HARD_FAULT || exception == DEBUG_MONITOR => (Cause::Instruction, 0),
        _ if status & NO_FETCH != 0 => (Cause::Execute, at),
        _ if status & DATA != 0 => {
            let address = match status {
                _ if status & MEMORY_ADDRESS_VALID != 0 => SYSTEM.read(MEMORY_FAULT_ADDRESS),
                _ if status & BUS_ADDRESS_VALID != 0 => SYSTEM.read(BUS_FAULT_ADDRESS),
                _ => 0,
            };
            // SAFETY: it was executed until it reached for that address.
            let first = unsafe { instruction_at(at) };
            let cause = if is_store(first) { Cause::Write } else { Cause::Read };
            (cause, address as usize)
        }
        _ => (Cause::Instruction, 0),
    };
    Exit::Violation(Violation { cause, address, at })
}

/// The first half of the instruction at `at`.
///
/// # Safety
/// An instruction is there.
unsafe fn instruction_at(at: usize) -> u16 {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::with_exposed_provenance::<u16>(at).read_volatile() }
}

// The assembler counts on it.
const _: () = assert!(R4 * WORD_BYTES == 32 && FRAME * WORD_BYTES == 64 && EXCEPTION == FRAME + 1);
const _: () = assert!(size_of::<Context>() > WORD_BYTES * NUMBER);
