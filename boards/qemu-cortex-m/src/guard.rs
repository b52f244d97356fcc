//! Memory protection by the MPU of an ARMv7-M core, and the switch to unprivileged programs and back.
//!
//! The firmware runs privileged in thread mode, with interrupts off. A program runs unprivileged in thread
//! mode, with the alarm's interrupt on; whatever it stops for is an exception whose handler goes back to
//! the firmware (ARMv7-M manual, B1.5). "Manual" is that one.

use core::alloc::Layout;
use core::arch::global_asm;
use core::ops::RangeInclusive;

use tenure_board_common::{Block, Heap, STEP_BYTES, is_store};
use tenure_board_qemu_cortex_m::registers::Registers;
use tenure_hal::{ARGUMENTS, Call, Cause, Context, Exit, Guard, RETURNED, Region, Violation};

use crate::clock;
use crate::mpu::{self, Windows};

// SAFETY: the system control block (manual, B3.2.2).
const SYSTEM: Registers = unsafe { Registers::at(0xE000_ED00) };
const HANDLERS: usize = 0x24;
const FAULT_STATUS: usize = 0x28;
const MEMORY_FAULT_ADDRESS: usize = 0x34;
const BUS_FAULT_ADDRESS: usize = 0x38;

/// Faults of memory, bus and usage have handlers of their own, and nothing waits for one (B3.2.13).
const FAULTS_ENABLED: u32 = 0b111 << 16;

/// Places in a context: eight registers as an exception stacks them (B1.5.6), eight more, the
/// exception, where the stacked ones are, and the number of the call.
const R0: usize = 0;
const R1: usize = 1;
const R3: usize = 3;
const LR: usize = 5;
const PC: usize = 6;
const STATUS: usize = 7;
const R4: usize = 8;
const R5: usize = 9;
const EXCEPTION: usize = 16;
const FRAME: usize = 17;
const NUMBER: usize = 18;
const FRAME_WORDS: usize = 8;
const WORD_BYTES: usize = 4;
/// The alignment of a stack's pointer when an exception stacks registers, and how much that takes.
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

/// The board's memory of a program's memory.
pub(crate) struct Program {
    /// Where an exception may stack registers.
    frames: RangeInclusive<usize>,
    windows: Windows,
}

/// A handle of the core's memory protection, for each of those who run programs behind it.
#[derive(Clone)]
pub(crate) struct Mpu {
    /// Where programs' memory comes from.
    heap: &'static Heap,
}

impl Mpu {
    /// Takes the hardware: the image can't be written from now on, by the firmware either.
    pub(crate) fn take(heap: &'static Heap) -> Self {
        SYSTEM.write(HANDLERS, FAULTS_ENABLED);
        mpu::start();
        Self { heap }
    }
}

unsafe extern "C" {
    /// Runs a program from `context` on until an exception.
    fn enter_user(context: *mut Context);
    /// Where functions that a program calls return to.
    fn user_return();
}

global_asm!(
    ".section .bss.user, \"aw\", %nobits",
    ".balign 4",
    // The context of the program that runs, and where the firmware's stack is meanwhile.
    "user_context: .space 8",
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
    "ldr r2, =user_context",
    "mrs r1, control",
    "lsls r1, r1, #31",
    "bne user_stopped",
    // From the firmware. What the program's exception stacked goes back to its stack.
    "ldr r0, [r2]",
    "mrs r1, psp",
    "str r1, [r2, #4]",
    "ldr r1, [r0, #68]",
    "msr psp, r1",
    "ldmia r0!, {{r4-r11}}",
    "stmia r1, {{r4-r11}}",
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
    "ldr r2, =user_context",
    "mrs r1, control",
    "lsls r1, r1, #31",
    "bne user_faulted",
    "b firmware_faulted",
    ".thumb_func",
    "DefaultHandler:",
    "ldr r2, =user_context",
    "mrs r1, control",
    "lsls r1, r1, #31",
    "bne user_stopped",
    "b firmware_faulted",
    // By a call or an interrupt: what it stacked is there, and is taken along.
    ".thumb_func",
    "user_stopped:",
    "ldr r0, [r2]",
    "adds r3, r0, #32",
    "stmia r3!, {{r4-r11}}",
    "mrs r1, psp",
    "ldmia r1, {{r4-r11}}",
    "stmia r0!, {{r4-r11}}",
    "b user_left",
    // By a fault, which may be that stacking failed.
    ".thumb_func",
    "user_faulted:",
    "ldr r3, [r2]",
    "adds r3, #32",
    "stmia r3!, {{r4-r11}}",
    "mrs r1, psp",
    "user_left:",
    "mrs r0, ipsr",
    "stmia r3!, {{r0, r1}}",
    "cpsid i",
    "movs r1, #2",
    "msr control, r1",
    "movs r1, #0",
    "msr basepri, r1",
    "ldr r1, [r2, #4]",
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
    type Memory = Block<Program>;

    fn memory(&self, bytes: usize, code_bytes: usize, at: Option<usize>) -> Option<Self::Memory> {
        if !code_bytes.is_multiple_of(STEP_BYTES) {
            return None;
        }
        // It may be where another was, with other code.
        mpu::forget();
        let (alignment, taken) = mpu::room(bytes, code_bytes)?;
        let layout = Layout::from_size_align(taken, alignment).ok()?;
        Block::new(self.heap, (bytes, layout), at, |start| {
            let windows = mpu::windows_of(start, taken, code_bytes)?;
            let last_frame = (start + bytes).checked_sub(FRAME_BYTES)?;
            Some(Program { frames: start + code_bytes..=last_frame, windows })
        })
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

    fn run(&mut self, context: &mut Context, memory: &mut Self::Memory, microseconds: u32) -> Exit {
        let program = memory.rules();
        let frame = context.words[FRAME];
        if !program.frames.contains(&frame) {
            return no_stack(context);
        }
        mpu::allow_program(memory.as_ptr().expose_provenance(), &program.windows);
        clock::ring_in(microseconds);
        // SAFETY: the frame lies in the program's memory, which is lent.
        let exit = unsafe { stay(context) };
        clock::silence();
        exit
    }

    fn run_firmware(
        &mut self,
        context: &mut Context,
        regions: &mut [Region<'_>],
        microseconds: u32,
    ) -> Exit {
        let frame = context.words[FRAME];
        if !is_own(regions, frame) || !mpu::allow(regions, frame) {
            return no_stack(context);
        }
        clock::ring_in(microseconds);
        let exit = loop {
            // SAFETY: the frame lies in a region of its own: where it was in the beginning, or where the
            // processor has put one by its rights.
            match unsafe { stay(context) } {
                // Memory that it reaches by right, and that the MPU wasn't set to yet.
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

/// An exception's return takes registers from a stack which isn't the program's: nothing runs so.
#[cold]
fn no_stack(context: &Context) -> Exit {
    let (address, at) = (context.words[FRAME], context.words[PC]);
    Exit::Violation(Violation { cause: Cause::Write, address, at })
}

/// Whether the registers that are stacked at `frame` lie in memory that is written to.
fn is_own(regions: &[Region<'_>], frame: usize) -> bool {
    regions.iter().filter(|region| region.is_own()).any(|region| {
        let range = region.addresses();
        frame >= range.start && range.end.checked_sub(FRAME_BYTES).is_some_and(|last| frame <= last)
    })
}

/// Runs a program from `context` on until it stops; the MPU has been told what it reaches.
///
/// # Safety
/// Its frame lies in memory that it may write to.
unsafe fn stay(context: &mut Context) -> Exit {
    // SAFETY: the caller's promise. The program can't touch what the firmware relies on.
    unsafe { enter_user(context) };
    match context.words[EXCEPTION] {
        SUPERVISOR_CALL => {
            let call_at = context.words[PC].wrapping_sub(2);
            let returned = call_at == return_at();
            // SAFETY: it has just been executed.
            let call = unsafe { instruction_at(call_at) };
            context.words[NUMBER] = if returned { RETURNED } else { usize::from(call & 0xFF) };
            Exit::Call
        }
        exception if exception > DEBUG_MONITOR => Exit::Time,
        exception => fault(context, exception),
    }
}

/// The address that functions which a program calls return to.
fn return_at() -> usize {
    user_return as *const () as usize & !1
}

/// The fault of the program.
fn fault(context: &mut Context, exception: usize) -> Exit {
    let frame = context.words[FRAME];
    let status = SYSTEM.read(FAULT_STATUS);
    // Each bit is cleared by writing it.
    SYSTEM.write(FAULT_STATUS, status);
    // Later causes aren't the next program's.
    SYSTEM.write(HANDLERS, FAULTS_ENABLED);
    if status & STACKING != 0 {
        let at = context.words[PC];
        return Exit::Violation(Violation { cause: Cause::Write, address: frame, at });
    }
    // SAFETY: the processor has just written the registers there, by the program's rights.
    let stacked =
        unsafe { core::ptr::with_exposed_provenance::<[usize; FRAME_WORDS]>(frame).read() };
    context.words[..FRAME_WORDS].copy_from_slice(&stacked);
    let at = context.words[PC];
    if status & NO_FETCH != 0 && at == return_at() {
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
const _: () =
    assert!(R4 * WORD_BYTES == 32 && EXCEPTION * WORD_BYTES == 64 && FRAME * WORD_BYTES == 68);
const _: () = assert!(size_of::<Context>() > WORD_BYTES * NUMBER);
