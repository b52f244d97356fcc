//! A machine's changing state, and how it is driven from outside.

mod access;
mod fuel;
#[cfg(feature = "profile")]
mod history;
mod outer;
mod parts;
mod segments;
mod stack;
mod start;
#[cfg(feature = "profile")]
mod step;
mod tables;

use alloc::vec::Vec;
use core::fmt;

use crate::{
    image::{FunctionEntry, FunctionIndex, Image, ImageToken},
    interpreter::{self, Exit, Flow, Run},
    isa,
    value::Value,
    wall::{Breach, Wall},
};
pub(crate) use fuel::Debt;
use fuel::{UNIT_BYTES, moving_bytes};
#[cfg(feature = "profile")]
pub use history::{Change, Standing};
pub(crate) use parts::{Parts, Position, Shortage};
pub(crate) use stack::Stack;
pub(crate) use tables::Tables;

/// The resources that an instance may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceConfig {
    /// Bytes of the stack of frames, and of all that an instance has beside it from its start on: global
    /// variables, tables and marks of dropped segments ([`Image::fixed_bytes`]).
    pub stack_bytes: usize,
    /// Bytes of linear memory, and of what tables grow by, whatever the module declares.
    pub memory_bytes_max: usize,
}

impl Default for InstanceConfig {
    fn default() -> InstanceConfig {
        InstanceConfig { stack_bytes: 4096, memory_bytes_max: 64 * 1024 }
    }
}

/// Why an instance could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// A data segment does not fit the declared memory.
    DataOutOfBounds,
    /// An element segment does not fit its table.
    ElementsOutOfBounds,
    /// The data needs more memory than the budget allows.
    MemoryBudget,
    /// Globals, tables and the start function's frame do not fit the stack's bytes.
    StackBudget,
    /// The allocator had no room.
    OutOfMemory,
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            StartError::DataOutOfBounds => "a data segment does not fit the memory",
            StartError::ElementsOutOfBounds => "an element segment does not fit its table",
            StartError::MemoryBudget => "the data needs more memory than the budget allows",
            StartError::StackBudget => "globals, tables and start function do not fit the stack",
            StartError::OutOfMemory => "no room for the instance",
        })
    }
}

impl core::error::Error for StartError {}

/// Why a call could not be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// A call is under way: run it to its end, or abandon it.
    Busy,
    /// The instance belongs to another image.
    ForeignImage,
    /// There is no such function.
    UnknownFunction,
    /// Number or types of the arguments are not the parameters'.
    Arguments,
    /// The function's frame does not fit the stack.
    StackBudget,
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            CallError::Busy => "a call is under way",
            CallError::ForeignImage => "the instance belongs to another image",
            CallError::UnknownFunction => "unknown function",
            CallError::Arguments => "arguments do not match the parameters",
            CallError::StackBudget => "the function does not fit the stack",
        })
    }
}

impl core::error::Error for CallError {}

/// Why a host call could not be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostResultError {
    /// No host call is waiting.
    NotWaiting,
    /// Number or types of the values are not the function's results.
    Results,
}

impl fmt::Display for HostResultError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            HostResultError::NotWaiting => "no host call is waiting",
            HostResultError::Results => "values do not match the function's results",
        })
    }
}

impl core::error::Error for HostResultError {}

/// How a slice of execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call returned; `Instance::results` has its results. Also if there was nothing to run.
    Done,
    /// The fuel is used up. Run again with more.
    OutOfFuel,
    /// The program calls the host's function of this number; `Instance::host_arguments` has the
    /// arguments. Finish it with `Instance::finish_host_call`, then run on.
    HostCall {
        /// As `HostFunctions::resolve` numbered it.
        function: u16,
    },
    /// The call failed. Memory, globals and tables keep what was written.
    Trap(Trap),
}

/// A failure of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The event.
    pub kind: TrapKind,
    /// Function in which it happened.
    pub function: u32,
    /// Offset of the instruction in the function's image code; `SourceMap` knows where it came from.
    pub offset: u32,
}

impl fmt::Display for Trap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} in function {} at offset {}", self.kind, self.function, self.offset)
    }
}

/// A fault in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TrapKind {
    /// The program executed `unreachable`.
    Unreachable = 1,
    /// A memory access beyond the memory's size.
    OutOfBounds,
    /// A memory access that the module may make, beyond the machine's memory budget.
    MemoryBudget,
    /// Division by zero.
    DivideByZero,
    /// A result that its integer type cannot hold.
    IntegerOverflow,
    /// Conversion of a NaN to an integer.
    InvalidConversion,
    /// Calls nested deeper than the stack allows.
    StackOverflow,
    /// A table access beyond the table's size.
    TableOutOfBounds,
    /// A call through a null reference.
    UninitializedElement,
    /// A call through a reference to a function of another type.
    SignatureMismatch,
    /// The host refused a call.
    Host,
    /// The device had no room for memory within the budget.
    OutOfMemory,
    /// The image is not the one that the instance was made from.
    ForeignImage,
}

impl TrapKind {
    pub(crate) fn from_byte(byte: u8) -> Option<TrapKind> {
        use TrapKind::*;
        [
            Unreachable,
            OutOfBounds,
            MemoryBudget,
            DivideByZero,
            IntegerOverflow,
            InvalidConversion,
            StackOverflow,
            TableOutOfBounds,
            UninitializedElement,
            SignatureMismatch,
            Host,
            OutOfMemory,
            ForeignImage,
        ]
        .get((byte as usize).checked_sub(1)?)
        .copied()
    }
}

impl fmt::Display for TrapKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            TrapKind::Unreachable => "unreachable executed",
            TrapKind::OutOfBounds => "out of bounds memory access",
            TrapKind::MemoryBudget => "memory access beyond the machine's budget",
            TrapKind::DivideByZero => "integer divide by zero",
            TrapKind::IntegerOverflow => "integer overflow",
            TrapKind::InvalidConversion => "invalid conversion to integer",
            TrapKind::StackOverflow => "call stack exhausted",
            TrapKind::TableOutOfBounds => "out of bounds table access",
            TrapKind::UninitializedElement => "uninitialized element",
            TrapKind::SignatureMismatch => "indirect call type mismatch",
            TrapKind::Host => "the host refused a call",
            TrapKind::OutOfMemory => "the device is out of memory",
            TrapKind::ForeignImage => "the instance belongs to another image",
        })
    }
}

/// One call of a backtrace, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: u32,
    /// Offset in its image code: of the failed instruction, or behind the call.
    pub offset: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Idle,
    Running,
    /// For the host; how many arguments there are, and which results it must give.
    Waiting {
        function: u16,
        arguments: u16,
        results: u32,
    },
    Done,
    Trapped {
        kind: TrapKind,
    },
}

impl Status {
    /// Waiting for the host that the stub at `pc` calls; nothing if there is no stub.
    #[inline(always)]
    pub(crate) fn waiting(image: &Image<'_>, stub: u32, pc: u32) -> Option<Status> {
        let signature = image.signature(FunctionIndex(stub))?;
        Some(Status::Waiting {
            function: isa::unit_at(image.bytes(), pc as usize + 2).unwrap_or(0),
            arguments: signature.params().len() as u16,
            results: fingerprint(signature.results()),
        })
    }
}

/// Tells lists of types apart without keeping them.
fn fingerprint(types: impl Iterator<Item = crate::value::ValueType>) -> u32 {
    types.fold(1, |sum: u32, value_type| sum.wrapping_mul(0x0100_0193) ^ value_type as u32)
}

/// A running program: memory, globals, tables and a stack of frames, without any reference to its image.
#[cfg_attr(feature = "profile", derive(Clone))]
pub struct Instance {
    pub(crate) token: ImageToken,
    pub(crate) status: Status,
    /// The function that was called from outside.
    pub(crate) entry: u32,
    pub(crate) debt: Debt,
    pub(crate) parts: Parts,
}

const WINDOW_BYTES: i32 = isa::WINDOW_UNITS as i32 * UNIT_BYTES as i32;

/// Units of fuel that a stay behind a [`Wall`] may use beyond those it was given. No honest one uses more.
pub const OVERRUN_UNITS: u32 = interpreter::OVERRUN_BYTES as u32 / UNIT_BYTES;

/// How long the instruction is that calls the host.
const HOST_BYTES: u32 = 4;

/// How often the interpreter may be called in a row without having used anything: memory that is
/// committed at the first access to it is such a case.
const STANDING_MAX: u32 = 8;

impl Instance {
    /// Sets up a call from outside, of any function that is no import.
    pub fn prepare(
        &mut self,
        image: &Image<'_>,
        function: FunctionIndex,
        arguments: &[Value],
    ) -> Result<(), CallError> {
        if self.is_busy() {
            return Err(CallError::Busy);
        }
        if !self.is_of(image) {
            return Err(CallError::ForeignImage);
        }
        let entry = image.function_entry(function.0).ok_or(CallError::UnknownFunction)?;
        if arguments.len() != entry.params as usize {
            return Err(CallError::Arguments);
        }
        if !arguments.is_empty() {
            return self.begin_with(image, function, arguments);
        }
        self.begin(function, &entry)
    }

    #[inline(never)]
    fn begin_with(
        &mut self,
        image: &Image<'_>,
        function: FunctionIndex,
        arguments: &[Value],
    ) -> Result<(), CallError> {
        let entry = image.function_entry(function.0).ok_or(CallError::UnknownFunction)?;
        let signature = image.signature_of(&entry).ok_or(CallError::UnknownFunction)?;
        if !signature.params().eq(arguments.iter().map(|argument| argument.value_type())) {
            return Err(CallError::Arguments);
        }
        self.begin(function, &entry)?;
        for (slot, argument) in self.parts.stack.frames_from_mut(0).iter_mut().zip(arguments) {
            *slot = argument.to_slot();
        }
        Ok(())
    }

    /// Makes a function the outermost one; its arguments go to the stack's first slots.
    #[inline(always)]
    fn begin(&mut self, function: FunctionIndex, entry: &FunctionEntry) -> Result<(), CallError> {
        // A link of zero ends the call.
        self.parts.stack.enter(0, entry, 0).ok_or(CallError::StackBudget)?;
        self.entry = function.0;
        self.parts.position = Position { pc: entry.code, frame: 0, accumulator: 0 };
        self.debt.owe(interpreter::entry_units(entry.zeros as usize) as u32 * UNIT_BYTES);
        self.status = Status::Running;
        Ok(())
    }

    /// Runs until the call ends, the host is called, or the fuel is used up; deducts what was used.
    ///
    /// Use beyond the fuel is owed, and taken from the next fuel first: less than the window
    /// between two looks at the fuel. A call that ends so is [`Outcome::OutOfFuel`] until that is paid. With less fuel than a window, execution stops at the first
    /// instruction for which there is none.
    #[cfg_attr(not(small), inline(always))]
    pub fn run(&mut self, image: &Image<'_>, fuel: &mut u64) -> Outcome {
        if !matches!(self.status, Status::Running) || !self.is_of(image) {
            return self.stand(image, fuel);
        }
        let budget = self.debt.budget(*fuel);
        if budget < WINDOW_BYTES || budget as usize > image.room {
            return self.run_on(image, fuel, None).unwrap_or_else(|_| self.stand(image, fuel));
        }
        let Some(entry) = self.parts.entry(image) else { return self.stand(image, fuel) };
        let mut run = Run::with_budget(entry, budget as u32);
        let mut context = run.context();
        let flow = run.start(&mut context);
        // The shortest way for the shortest calls.
        if flow == Flow::Done && run.used(&context) <= budget as u32 {
            self.debt.pay(fuel, run.used(&context));
            self.status = Status::Done;
            return Outcome::Done;
        }
        let exit = run.exit(&context, flow);
        if flow == Flow::Outer && is_host_call(image, exit.pc) {
            return self.stop_at_host(image, &exit, fuel);
        }
        match self.stop(image, &exit, fuel) {
            Some(outcome) => outcome,
            None => self.run_on(image, fuel, None).unwrap_or_else(|_| self.stand(image, fuel)),
        }
    }

    /// As [`Instance::run`], with the interpreter behind `wall`. What it does to the instance besides
    /// memory, globals and stack is done on this side, with numbers that were checked.
    ///
    /// # Errors
    /// [`Breach`] if the interpreter tried to leave. The call is over; nothing that the instance holds
    /// is worth keeping.
    pub fn run_behind(
        &mut self,
        image: &Image<'_>,
        fuel: &mut u64,
        wall: &mut dyn Wall,
    ) -> Result<Outcome, Breach> {
        if !matches!(self.status, Status::Running) || !self.is_of(image) {
            return Ok(self.stand(image, fuel));
        }
        let outcome = self.run_on(image, fuel, Some(wall));
        if outcome.is_err() {
            // Of the call nothing is kept; what it owes is paid as far as the fuel lasts.
            self.debt.charge(fuel, 0);
            self.abandon();
        }
        outcome
    }

    #[cold]
    #[inline(never)]
    fn run_on(
        &mut self,
        image: &Image<'_>,
        fuel: &mut u64,
        mut wall: Option<&mut dyn Wall>,
    ) -> Result<Outcome, Breach> {
        let mut standing = 0;
        loop {
            let budget = self.debt.budget(*fuel);
            let before = (*fuel, self.debt.bytes());
            let behind = wall.as_mut().map(|wall| &mut **wall as &mut dyn Wall);
            let ran = if budget <= 0 {
                self.debt.charge(fuel, 0);
                return Ok(Outcome::OutOfFuel);
            } else if budget < WINDOW_BYTES {
                // One instruction after the other.
                let entry = self.parts.entry(image).ok_or(interpreter::IMPOSSIBLE)?;
                interpreter::execute_one(entry, behind)
            } else {
                let budget = image.room.min(budget as usize) as u32;
                let entry = self.parts.entry(image).ok_or(interpreter::IMPOSSIBLE)?;
                Run::with_budget(entry, budget).end(behind, &[])
            };
            // Taken however the stay has ended: it is no other machine's.
            if let Some(wall) = &mut wall {
                self.debt.owe(wall.take_overdraft().saturating_mul(UNIT_BYTES));
            }
            let exit = ran?;
            if let Some(outcome) = self.stop(image, &exit, fuel) {
                return Ok(outcome);
            }
            // An interpreter that has gone wrong could have itself called again for ever.
            standing = if (*fuel, self.debt.bytes()) == before { standing + 1 } else { 0 };
            if standing > STANDING_MAX {
                return Err(interpreter::IMPOSSIBLE);
            }
        }
    }

    /// Whether the instance was made from the image. Its length goes into its checksum.
    fn is_of(&self, image: &Image<'_>) -> bool {
        image.token.checksum == self.token.checksum
    }

    /// The outcome of `run` for an instance that has nothing to execute: how its call ended, once what the call owes is
    /// paid. A call that ended with its last slice's fuel would else cost what the slice had left.
    #[cold]
    #[inline(never)]
    fn stand(&mut self, image: &Image<'_>, fuel: &mut u64) -> Outcome {
        self.debt.charge(fuel, 0);
        if !self.debt.is_paid() {
            return Outcome::OutOfFuel;
        }
        match self.status {
            Status::Running => {
                Outcome::Trap(Trap { kind: TrapKind::ForeignImage, function: 0, offset: 0 })
            }
            Status::Idle | Status::Done => Outcome::Done,
            Status::Waiting { function, .. } => Outcome::HostCall { function },
            Status::Trapped { kind } => Outcome::Trap(self.trap(image, kind)),
        }
    }

    /// Does what the interpreter stopped for, and says what came of it if that ends the run.
    #[cold]
    #[inline(never)]
    fn stop(&mut self, image: &Image<'_>, exit: &Exit, fuel: &mut u64) -> Option<Outcome> {
        self.debt.charge(fuel, exit.used);
        self.parts.note(exit);
        let mut left = self.debt.budget(*fuel);
        let before = left;
        let done = match exit.flow {
            Flow::Next | Flow::Check => Ok(false),
            Flow::Done => {
                self.status = Status::Done;
                return Some(self.stand(image, fuel));
            }
            Flow::Outer => self.parts.execute_outer(image, &mut left),
            Flow::Access => self.parts.finish_access(image, &mut left).map(|()| false),
            Flow::Unreachable => Err(TrapKind::Unreachable),
            Flow::DivideByZero => Err(TrapKind::DivideByZero),
            Flow::IntegerOverflow => Err(TrapKind::IntegerOverflow),
            Flow::InvalidConversion => Err(TrapKind::InvalidConversion),
            Flow::StackOverflow => Err(TrapKind::StackOverflow),
            Flow::TableOutOfBounds => Err(TrapKind::TableOutOfBounds),
            Flow::UninitializedElement => Err(TrapKind::UninitializedElement),
            Flow::SignatureMismatch => Err(TrapKind::SignatureMismatch),
        };
        self.debt.charge(fuel, (before - left) as u32);
        match done {
            Err(kind) => Some(self.fail(image, kind, fuel)),
            Ok(true) => Some(self.call_host(image, fuel)),
            Ok(false) if *fuel == 0 => Some(Outcome::OutOfFuel),
            Ok(false) => None,
        }
    }

    /// The shortest way for host calls.
    #[inline(never)]
    fn stop_at_host(&mut self, image: &Image<'_>, exit: &Exit, fuel: &mut u64) -> Outcome {
        self.debt.charge(fuel, exit.used + HOST_BYTES);
        self.parts.note(exit);
        self.call_host(image, fuel)
    }

    fn call_host(&mut self, image: &Image<'_>, fuel: &mut u64) -> Outcome {
        match self.wait_for_host(image) {
            Ok(function) => Outcome::HostCall { function },
            Err(kind) => self.fail(image, kind, fuel),
        }
    }

    fn fail(&mut self, image: &Image<'_>, kind: TrapKind, fuel: &mut u64) -> Outcome {
        self.status = Status::Trapped { kind };
        self.stand(image, fuel)
    }

    fn trap(&self, image: &Image<'_>, kind: TrapKind) -> Trap {
        let pc = self.parts.position.pc;
        let function = image.function_at(pc).unwrap_or(0);
        let start = image.code_range(function).map_or(0, |range| range.0 as u32);
        Trap { kind, function, offset: pc.saturating_sub(start) }
    }

    /// Waits for the host function whose number it gives. The call is charged when it is made; `pc` stays
    /// until it is finished.
    fn wait_for_host(&mut self, image: &Image<'_>) -> Result<u16, TrapKind> {
        let pc = self.parts.position.pc;
        let stub = image.stub_at(pc).ok_or(TrapKind::Unreachable)?;
        self.status = Status::waiting(image, stub, pc).ok_or(TrapKind::Unreachable)?;
        Ok(isa::unit_at(image.bytes(), pc as usize + 2).unwrap_or(0))
    }

    /// Linear memory, as far as it is committed; empty if there is none.
    pub fn memory(&self) -> &[u8] {
        self.parts.memory.bytes()
    }

    /// As [`Instance::memory`], to write to.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.parts.memory.bytes_mut()
    }

    /// Pages of memory as the program sees them.
    pub fn memory_pages(&self) -> u32 {
        self.parts.memory.pages()
    }

    /// Sets the memory's size as another instance that shares it does, for hosts that link instances;
    /// commits all of it.
    pub fn grow_memory(&mut self, image: &Image<'_>, pages: u32) -> Option<u32> {
        let maximum = image.memory_bytes_max();
        let before = self.parts.memory.grow(pages, maximum)?;
        self.parts.memory.commit(self.parts.memory.declared()).ok()?;
        Some(before)
    }

    /// `length` bytes of memory at `address`, committed if the budget allows; `None` if not, or if the
    /// program has no such bytes. For pointers that a program hands to the host.
    pub fn memory_range_mut(&mut self, address: u32, length: u32) -> Option<&mut [u8]> {
        let end = address as u64 + length as u64;
        let moved = self.parts.memory.commit(end).ok()?;
        self.debt.owe(moving_bytes(moved));
        self.parts.memory.bytes_mut().get_mut(address as usize..end as usize)
    }

    /// Value of a global variable.
    pub fn global(&self, image: &Image<'_>, index: u32) -> Option<Value> {
        let entry = image.global(index)?;
        let slot = self.parts.stack.globals().get(index as usize)?;
        Some(Value::from_slot(*slot, entry.value_type))
    }

    /// Sets a global variable; false if there is none of this type.
    pub fn set_global(&mut self, image: &Image<'_>, index: u32, value: Value) -> bool {
        let fits = image.global(index).is_some_and(|entry| entry.value_type == value.value_type());
        match self.parts.stack.globals_mut().get_mut(index as usize) {
            Some(slot) if fits => {
                *slot = value.to_slot();
                true
            }
            _ => false,
        }
    }

    /// Number of a table's elements.
    pub fn table_size(&self, table: u32) -> Option<u32> {
        self.parts.tables.get(table as usize).map(|table| table.len() as u32)
    }

    /// Whether a call is under way.
    pub fn is_busy(&self) -> bool {
        matches!(self.status, Status::Running | Status::Waiting { .. })
    }

    /// Arguments of the waiting host call, one slot each; of 32-bit types only the low half counts.
    pub fn host_arguments(&self) -> &[u64] {
        let frame = self.parts.stack.frames_from(self.parts.position.frame);
        match self.status {
            Status::Waiting { arguments, .. } => frame.get(..arguments as usize).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// Gives the waiting host call its results.
    pub fn finish_host_call(&mut self, results: &[Value]) -> Result<(), HostResultError> {
        let Status::Waiting { results: expected, .. } = self.status else {
            return Err(HostResultError::NotWaiting);
        };
        if fingerprint(results.iter().map(|result| result.value_type())) != expected {
            return Err(HostResultError::Results);
        }
        let Parts { stack, position, .. } = &mut self.parts;
        for (slot, result) in stack.frames_from_mut(position.frame).iter_mut().zip(results) {
            *slot = result.to_slot();
        }
        self.leave_host();
        Ok(())
    }

    /// Goes on behind the instruction that called the host.
    fn leave_host(&mut self) {
        self.parts.position.pc += HOST_BYTES;
        self.status = Status::Running;
    }

    /// Lets the waiting host call fail: the program traps, as `Instance::run` will say.
    pub fn fail_host_call(&mut self) -> Result<(), HostResultError> {
        let Status::Waiting { .. } = self.status else {
            return Err(HostResultError::NotWaiting);
        };
        self.status = Status::Trapped { kind: TrapKind::Host };
        Ok(())
    }

    /// Results of the call that is done, in order; nothing before.
    pub fn results<'r>(&'r self, image: &Image<'r>) -> impl ExactSizeIterator<Item = Value> + 'r {
        let types = match self.status {
            Status::Done if self.is_of(image) => image.signature(FunctionIndex(self.entry)),
            _ => None,
        };
        let types = types.unwrap_or(crate::value::FunctionType::new(&[], &[]));
        let slots = self.parts.stack.frames_from(0);
        types.results().enumerate().map(|(index, value_type)| {
            Value::from_slot(slots.get(index).copied().unwrap_or(0), value_type)
        })
    }

    /// Drops the call that is under way; memory, globals and tables stay.
    pub fn abandon(&mut self) {
        self.status = Status::Idle;
        self.debt = Debt::NONE;
        self.parts.position.accumulator = 0;
    }

    /// The calls that are under way or failed, innermost first.
    pub fn backtrace(&self, image: &Image<'_>) -> Vec<Frame> {
        self.innermost(image, usize::MAX)
    }

    /// As [`Instance::backtrace`], `calls_max` at most.
    pub fn innermost(&self, image: &Image<'_>, calls_max: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Position { mut frame, mut pc, .. } = self.parts.position;
        if !self.is_of(image) || matches!(self.status, Status::Idle | Status::Done) {
            return frames;
        }
        while frames.len() < calls_max
            && let Some(function) = image.function_at(pc)
        {
            let Some(entry) = image.function_entry(function) else { break };
            frames.push(Frame { function, offset: pc - entry.code });
            let link = self.parts.stack.read(frame, entry.link);
            let Some(before) = link.checked_sub(2) else { break };
            let delta = isa::unit_at(image.bytes(), before as usize).unwrap_or(0);
            let Some(caller) = frame.checked_sub(delta as u32) else { break };
            if delta == 0 {
                break;
            }
            (frame, pc) = (caller, link);
        }
        frames
    }

    /// Whether a host call is under way: the innermost frame is its import's.
    pub fn is_in_host_call(&self) -> bool {
        matches!(self.status, Status::Waiting { .. })
    }
}

/// Whether the instruction at `pc` calls the host.
#[inline(always)]
fn is_host_call(image: &Image<'_>, pc: u32) -> bool {
    isa::unit_at(image.bytes(), pc as usize) == Some(isa::HOST * isa::OPCODE_SCALE)
}
