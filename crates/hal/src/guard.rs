//! Memory protection: unprivileged programs that reach what they are given and nothing else.

use core::ops::DerefMut;

/// A board's memory protection and its switch to unprivileged programs.
///
/// Each implementation guarantees:
/// - While a program runs it reaches the regions it was given and nothing else: no other memory, no
///   device, no privileged instruction. Where the hardware protects in coarser steps, what the steps
///   add is nobody's.
/// - Whatever the program does, [`Guard::run`] comes back: at its call, at its mistake, or when its
///   time is over; and the program's registers are all in its context then.
/// - A program starts with nothing of another's in its registers.
pub trait Guard {
    /// Memory that programs can be given, in the steps in which the hardware protects.
    type Memory: DerefMut<Target = [u8]> + Send;

    /// Nanoseconds that the dearest unit of fuel takes this processor, if the time of [`Guard::run_firmware`] is its function's
    /// alone: nothing interrupts it, no memory is told anew meanwhile, and the clock counts nothing else. By that time
    /// compiled code is billed that counts too little.
    const UNIT_NS: Option<u32> = None;

    /// Memory of `bytes` bytes, all zero, for a program that reads and executes its first `code_bytes`
    /// bytes, and reads and writes the others; it is wiped when it is dropped. It begins at `at`, if that
    /// is said: where memory of that kind was before the device was off. `None` if there is no such
    /// room, or the hardware can't divide it there.
    fn memory(&self, bytes: usize, code_bytes: usize, at: Option<usize>) -> Option<Self::Memory>;

    /// The registers of a program that calls the function at `entry` with `argument`; its stack grows
    /// down from `stack_top`, a multiple of 16. When the function returns, that is a call with the
    /// number [`RETURNED`].
    fn enter(&self, entry: usize, argument: usize, stack_top: usize) -> Context;

    /// Runs a program that reaches `memory` and nothing else, from `context` on, for at most
    /// `microseconds`.
    fn run(&mut self, context: &mut Context, memory: &mut Self::Memory, microseconds: u32) -> Exit;

    /// As [`Guard::run`], for a function of the firmware, which reads the firmware's constants, executes
    /// its code, and beside that reaches `regions`; or for a function in a region of code, which reaches
    /// nothing of the firmware. Hardware that has too few windows for the regions runs nothing, and says
    /// that the function jumped to where it begins.
    fn run_firmware(
        &mut self,
        context: &mut Context,
        regions: &mut [Region<'_>],
        microseconds: u32,
    ) -> Exit;

    /// A number for the addresses of the firmware that programs have in their registers and on their stacks, such as
    /// where functions return to: a context is good for firmware of which this is the same.
    fn firmware(&self) -> usize {
        let fresh = self.enter(0, 0, 0);
        fresh.words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }

    /// The call that the program stopped for.
    fn call(&self, context: &Context) -> Call;

    /// The address of the instruction that the program executes next.
    fn position(&self, context: &Context) -> usize;

    /// Gives that call its results.
    fn finish_call(&self, context: &mut Context, results: [usize; 2]);
}

/// A call that a program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: usize,
    /// The contents of its six argument registers.
    pub arguments: [usize; ARGUMENTS],
}

/// How many arguments of a call are in registers.
pub const ARGUMENTS: usize = 6;

/// The number of the call that a function's return stands for.
pub const RETURNED: usize = usize::MAX;

/// The registers of a program, as its board lays them out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Context {
    /// Words; how many of them count and for what, the board knows.
    pub words: [usize; 33],
}

impl Default for Context {
    fn default() -> Self {
        Self { words: [0; 33] }
    }
}

/// A range of memory that a function reaches.
#[derive(Debug)]
pub enum Region<'a> {
    /// It reads.
    Readable(&'a [u8]),
    /// It reads and writes.
    Own(&'a mut [u8]),
    /// It executes and reads: the function itself, which isn't the firmware's.
    Code(&'a [u8]),
}

impl Region<'_> {
    /// The addresses from its first to behind its last byte.
    pub fn addresses(&self) -> core::ops::Range<usize> {
        let range = match self {
            Self::Readable(bytes) | Self::Code(bytes) => bytes.as_ptr_range(),
            Self::Own(bytes) => bytes.as_ptr_range(),
        };
        range.start.expose_provenance()..range.end.expose_provenance()
    }

    /// Whether it is written to.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Whether it is executed.
    pub fn is_code(&self) -> bool {
        matches!(self, Self::Code(_))
    }
}

/// Why a program stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It made a call.
    Call,
    /// Its time is over; it can go on.
    Time,
    /// It tried what it may not.
    Violation(Violation),
}

/// An access or instruction of a program that it may not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its kind.
    pub cause: Cause,
    /// The address that it tried to reach, where the hardware tells.
    pub address: usize,
    /// The address of the instruction.
    pub at: usize,
}

/// Kinds of violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Jumping.
    Execute,
    /// An instruction that is privileged or none.
    Instruction,
}
