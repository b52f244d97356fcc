//! A machine's running program, whatever runs it: an image in the vm, or an engine that a board lends.
//!
//! The kernel drives both alike: prepare a call, run it with fuel, serve the host calls that it stops
//! for. An engine is what a board has beyond the vm, such as a compiler on a computer. What an
//! engine runs can't be written down in the middle of a call; it stays in RAM until it ends.

use alloc::boxed::Box;
use core::fmt;

use tenure_vm::{Breach, Image, Instance, InstanceConfig, Outcome, Value, Wall};
use tenure_wire::Digest;

/// Runs the wasm of machines that ask for speed, by other means than the vm.
pub trait Engine: Send {
    /// Makes a fresh instance of the module `wasm`, which the vm has validated, in `package`.
    ///
    /// # Errors
    /// As [`EngineError`] says; the machine is run by the vm then.
    fn start(
        &mut self,
        package: &Digest,
        wasm: &[u8],
        limits: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, EngineError>;
}

/// What changes while an engine runs a machine.
pub trait EngineInstance: Send {
    /// Gets ready to call the exported `function`, which takes and gives nothing; gives whether
    /// there is such a function and nothing under way.
    fn prepare(&mut self, function: &str) -> bool;

    /// Runs until the call ends, makes a host call or has spent `fuel`, which it takes from.
    fn run(&mut self, fuel: &mut u64) -> Outcome;

    /// The arguments of the host call that it waits in, a slot each.
    fn host_arguments(&self) -> &[u64];

    /// Gives the host call that it waits in its results; gives whether one was waiting.
    fn finish_host_call(&mut self, results: &[Value]) -> bool;

    /// How it tried to leave its memory, if that is what it trapped for.
    fn breach(&self) -> Option<Breach> {
        None
    }

    /// Linear memory, of which only the ranges that the waiting host call names need be up to date.
    fn memory(&self) -> &[u8];

    /// The same, to be written to.
    fn memory_mut(&mut self) -> &mut [u8];
}

/// Why an engine doesn't run a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// Its memory doesn't fit the machine's budget; an engine commits whole pages.
    Memory,
    /// The engine refuses the module.
    Module,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "its memory, in whole pages, is more than its budget",
            Self::Module => "the engine refuses the module",
        })
    }
}

impl core::error::Error for EngineError {}

/// A machine's running program.
pub(crate) enum Program {
    /// An image, run by the vm. Where it stands, as it goes to and fro with each turn.
    Image(Box<Instance>),
    /// A module, run by the board's engine.
    Engine(Box<dyn EngineInstance>),
}

impl Program {
    /// Gets ready to call `function`; gives whether it can be called.
    pub(crate) fn prepare(&mut self, image: &Image<'_>, function: &str) -> bool {
        match self {
            Self::Image(instance) => callable(image, function)
                .is_some_and(|index| instance.prepare(image, index, &[]).is_ok()),
            Self::Engine(instance) => instance.prepare(function),
        }
    }

    /// Whether the module's start function, which runs before the first call, is under way.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Image(instance) => instance.is_busy(),
            Self::Engine(_) => false,
        }
    }

    /// Runs with `fuel`, in the vm behind `wall` if the board has one.
    ///
    /// # Errors
    /// [`Breach`] if the program tried to leave its memory.
    pub(crate) fn run(
        &mut self,
        image: &Image<'_>,
        fuel: &mut u64,
        wall: Option<&mut dyn Wall>,
    ) -> Result<Outcome, Breach> {
        match (self, wall) {
            (Self::Image(instance), Some(wall)) => instance.run_behind(image, fuel, wall),
            (Self::Image(instance), None) => Ok(instance.run(image, fuel)),
            (Self::Engine(instance), _) => {
                let outcome = instance.run(fuel);
                instance.breach().map_or(Ok(outcome), Err)
            }
        }
    }

    pub(crate) fn host_arguments(&self) -> &[u64] {
        match self {
            Self::Image(instance) => instance.host_arguments(),
            Self::Engine(instance) => instance.host_arguments(),
        }
    }

    /// Gives the host call that it waits in its results; gives whether one was waiting for these.
    pub(crate) fn finish_host_call(&mut self, results: &[Value]) -> bool {
        match self {
            Self::Image(instance) => instance.finish_host_call(results).is_ok(),
            Self::Engine(instance) => instance.finish_host_call(results),
        }
    }

    pub(crate) fn memory(&self) -> &[u8] {
        match self {
            Self::Image(instance) => instance.memory(),
            Self::Engine(instance) => instance.memory(),
        }
    }

    pub(crate) fn memory_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Image(instance) => instance.memory_mut(),
            Self::Engine(instance) => instance.memory_mut(),
        }
    }

    /// Commits the memory that the machine's pointer names, as its own access to it would. What
    /// isn't the machine's stays uncommitted, and is found out where it is used.
    pub(crate) fn commit(&mut self, pointer: u32, length: u32) {
        if let Self::Image(instance) = self {
            let _ = instance.memory_range_mut(pointer, length);
        }
    }
}

/// The function of `image` by that name, if a task can be its call.
pub(crate) fn callable(image: &Image<'_>, function: &str) -> Option<tenure_vm::FunctionIndex> {
    let export = image.function(function)?;
    export.signature.is(&[], &[]).then_some(export.index)
}
