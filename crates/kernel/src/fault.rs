//! Faults: what a machine is stopped for, and what its caller is told of that.

use alloc::vec::Vec;
use core::fmt;

use tenure_vm::{Breach, Frame, Image, TrapKind};
use tenure_wire::{Budget, NoResult};

use crate::program::Program;

/// The most calls that a fault's trace has beside the one in which it happened: enough to get from a
/// panic's own functions to the machine's.
const CALLERS_MAX: usize = 12;

/// The reason why a machine was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The function it happened in, as its index in the module, where known.
    pub function: Option<u32>,
    /// The offset in the function's image code, in bytes, where known; in the wasm module if an
    /// engine ran it.
    pub offset: Option<u32>,
    /// Whether an engine ran it.
    pub by_engine: bool,
    /// The limit of its budget that it ran into, where that is known.
    pub limit: Option<Limit>,
}

impl Fault {
    /// A fault of which only the kind is known.
    pub(crate) const fn of(kind: FaultKind) -> Self {
        Self { kind, function: None, offset: None, by_engine: false, limit: None }
    }

    /// The same fault with the limit of `budget` that it is about, by its kind and by how many bytes of
    /// memory were in use.
    pub(crate) fn within(self, budget: &Budget, memory_bytes_used: usize) -> Self {
        let memory = Limit::Memory { used: memory_bytes_used as u64, bytes: budget.memory_bytes };
        let is_full =
            memory_bytes_used as u64 >= u64::from(budget.memory_bytes) / FULL_OF * FULL_PARTS;
        let limit = match self.kind {
            FaultKind::TaskFuel => Some(Limit::TaskFuel(budget.task_fuel)),
            FaultKind::Trap(TrapKind::StackOverflow) => Some(Limit::Stack(budget.stack_bytes)),
            FaultKind::Memory | FaultKind::Trap(TrapKind::MemoryBudget) => Some(memory),
            // An engine's machine has all of its memory from the beginning.
            FaultKind::Aborted | FaultKind::Trap(TrapKind::Unreachable)
                if is_full && !self.by_engine =>
            {
                Some(memory)
            }
            _ => None,
        };
        Self { limit, ..self }
    }
}

/// A machine that gives up while it has committed so much of its memory is likely to have found no more:
/// seven eighths.
const FULL_PARTS: u64 = 7;
const FULL_OF: u64 = 8;

/// A limit of a budget, as its manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `memory_bytes`.
    Memory {
        /// How many bytes were in use.
        used: u64,
        /// The limit, in bytes.
        bytes: u32,
    },
    /// `stack_bytes`, in bytes.
    Stack(u32),
    /// `task_fuel`, in units of fuel.
    TaskFuel(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { used, bytes } => {
                write!(f, "{used} bytes used of memory_bytes = {bytes}")
            }
            Self::Stack(bytes) => write!(f, "stack_bytes = {bytes}"),
            Self::TaskFuel(fuel) => write!(f, "task_fuel = {fuel}"),
        }
    }
}

/// Where a fault happened, and the calls that led there.
pub(crate) struct Trace {
    /// The innermost call, where it is known.
    place: Option<Frame>,
    /// Those around it, innermost first.
    callers: Vec<Frame>,
}

impl Trace {
    /// The calls under way in `program`, which is of `image` if the vm runs it. Of a host call it is the
    /// function that makes it that comes first.
    pub(crate) fn of(program: Option<&Program>, image: Option<&Image<'_>>) -> Self {
        match (program, image) {
            (Some(Program::Image(instance)), Some(image)) => {
                let host = usize::from(instance.is_in_host_call());
                let frames = instance.innermost(image, host + 1 + CALLERS_MAX);
                let mut frames = frames.into_iter().enumerate().skip(host).map(|(depth, frame)| {
                    // All but the innermost stand behind a call.
                    let behind = if depth == 0 { 0 } else { CALL_UNIT_BYTES };
                    Frame { offset: frame.offset.saturating_sub(behind), ..frame }
                });
                Self { place: frames.next(), callers: frames.collect() }
            }
            (Some(Program::Engine(instance)), _) => {
                let callers = instance.callers().iter().take(CALLERS_MAX);
                Self { place: None, callers: callers.copied().collect() }
            }
            _ => Self { place: None, callers: Vec::new() },
        }
    }

    /// The fault, with the place of the innermost call where its own isn't known.
    pub(crate) fn place(&self, fault: Fault) -> Fault {
        match (fault.function, self.place) {
            (None, Some(Frame { function, offset })) => {
                Fault { function: Some(function), offset: Some(offset), ..fault }
            }
            _ => fault,
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, frame) in self.callers.iter().enumerate() {
            let before = if position == 0 { ", called from " } else { ", " };
            write!(f, "{before}{}:{:#x}", frame.function, frame.offset)?;
        }
        Ok(())
    }
}

/// The last unit of a call in an image's code, in bytes.
const CALL_UNIT_BYTES: u32 = 2;

impl FaultKind {
    /// The reason that a caller is told of the fault that ended its call: whether more budget would have helped.
    pub(crate) fn told(self) -> NoResult {
        match self {
            Self::TaskFuel
            | Self::Memory
            | Self::Trap(TrapKind::StackOverflow | TrapKind::MemoryBudget) => NoResult::Overspent,
            _ => NoResult::Execution,
        }
    }
}

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The vm trapped.
    Trap(TrapKind),
    /// It tried to leave its memory, and the board's memory protection stopped it.
    Breach(Breach),
    /// It passed a pointer outside its memory to a host call.
    BadPointer,
    /// It called `abort`.
    Aborted,
    /// One task used more fuel than the budget has for it.
    TaskFuel,
    /// It asks for more memory than its budget, or than the device has.
    Memory,
    /// Its image is damaged.
    Image,
    /// The running state in flash is damaged, or is good for other firmware alone.
    Suspended,
    /// It slept, and where it was in memory is another's now.
    Place,
    /// It isn't a callable function.
    Function,
    /// The watchdog bit while it ran.
    Watchdog,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FaultKind::Trap(kind) => write!(f, "trap: {kind}")?,
            FaultKind::Breach(breach) => write!(f, "memory protection: it {breach}")?,
            FaultKind::BadPointer => f.write_str("passed the host a pointer outside its memory")?,
            FaultKind::Aborted => f.write_str("aborted")?,
            FaultKind::TaskFuel => f.write_str("one task used more fuel than its budget has")?,
            FaultKind::Memory => f.write_str("needs more memory than its budget or the device")?,
            FaultKind::Image => f.write_str("its image in flash is damaged")?,
            FaultKind::Suspended => {
                f.write_str("its running state in flash is damaged, or of other firmware")?
            }
            FaultKind::Place => f.write_str("its place in memory was taken while it slept")?,
            FaultKind::Function => f.write_str("has no such function")?,
            FaultKind::Watchdog => f.write_str("the watchdog reset the device while it ran")?,
        }
        if let Some(limit) = self.limit {
            write!(f, " ({limit})")?;
        }
        if let (Some(function), Some(offset)) = (self.function, self.offset) {
            let place = if self.by_engine { "module offset" } else { "offset" };
            write!(f, ", in function {function} at {place} {offset:#x}")?;
        }
        Ok(())
    }
}
