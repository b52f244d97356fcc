//! A machine's running program, whatever runs it: an image in the vm, or an engine that a board lends.
//!
//! The kernel drives both alike: prepare a call, run it with fuel, serve the host calls that it stops
//! for. An engine is what a board has beyond the vm: a compiler on a computer, or a processor with
//! memory protection for native binaries. What an engine runs stays in RAM until it ends; if the engine can
//! write it down in the middle of a call, it outlasts a deep sleep.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use tenure_vm::{Breach, Frame, Image, Instance, InstanceConfig, Outcome, Value, Wall};
use tenure_wire::{CodeKind, Digest, VerifyingKey};

use crate::fault::FaultKind;
use crate::native::NativeBinary;

/// Runs machines by other means than the vm: the wasm of those that ask for speed, or native binaries.
pub trait Engine: Send {
    /// The kind of code that it runs.
    fn kind(&self) -> CodeKind;

    /// Whether [`Engine::start`] has all it needs of `code`, or won't get more. What takes longer than a
    /// turn, such as compiling a module, goes on beside the device's work, and begins with the first
    /// question; tenants have turns in it.
    fn is_prepared(&mut self, package: &Digest, tenant: &VerifyingKey, code: Code<'_>) -> bool {
        let _ = (package, tenant, code);
        true
    }

    /// Makes a fresh instance of `code` in `package`: a module that the vm has validated, or a native
    /// binary of this kind whose form has been checked.
    ///
    /// # Errors
    /// As [`EngineError`] says; a module is run by the vm then.
    fn start(
        &mut self,
        package: &Digest,
        code: Code<'_>,
        limits: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, EngineError>;

    /// Goes on with what [`EngineInstance::suspend`] gave of an instance of that code.
    ///
    /// # Errors
    /// As [`EngineError`] says.
    fn resume(
        &mut self,
        code: Code<'_>,
        limits: &InstanceConfig,
        state: &[u8],
    ) -> Result<Box<dyn EngineInstance>, EngineError> {
        let _ = (code, limits, state);
        Err(EngineError::State)
    }
}

/// The state that changes while an engine runs a machine.
pub trait EngineInstance: Send {
    /// Gets ready to call the exported `function`, which takes and gives nothing; gives whether
    /// there is such a function and nothing under way.
    fn prepare(&mut self, function: &str) -> bool;

    /// Runs until the call ends, makes a host call or has spent `fuel`, which it takes from. Where time
    /// is what is measured, a millisecond is worth `fuel_per_ms`.
    fn run(&mut self, fuel: &mut u64, fuel_per_ms: u32) -> Outcome;

    /// The arguments of the host call that it waits in, a slot each.
    fn host_arguments(&self) -> &[u64];

    /// Gives the host call that it waits in its results; gives whether one was waiting.
    fn finish_host_call(&mut self, results: &[Value]) -> bool;

    /// How it tried to leave its memory, if that is what it trapped for.
    fn breach(&self) -> Option<Breach> {
        None
    }

    /// Where the calls stand that led to its last trap, innermost first, without the one that trapped, by
    /// offsets in the module; empty if that isn't known.
    fn callers(&self) -> &[Frame] {
        &[]
    }

    /// Where it stands, in a form that outlasts the power, with room behind it for `spare` bytes; `None`
    /// if its engine can't write it down.
    ///
    /// # Errors
    /// [`EngineError::Memory`] if there is no memory to do so.
    fn suspend(&self, spare: usize) -> Result<Option<Vec<u8>>, EngineError> {
        let _ = spare;
        Ok(None)
    }

    /// Linear memory, of which only the ranges that the waiting host call names need be up to date.
    fn memory(&self) -> &[u8];

    /// The same, to be written to.
    fn memory_mut(&mut self) -> &mut [u8];
}

/// The code that an engine is to run.
#[derive(Clone, Copy)]
pub enum Code<'a> {
    /// A WebAssembly module.
    WebAssembly(&'a [u8]),
    /// A native binary.
    Native(NativeBinary<'a>),
}

/// Why an engine doesn't run a machine's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// Its memory doesn't fit the machine's budget; an engine commits whole pages.
    Memory,
    /// The engine refuses the code.
    Module,
    /// The kept state isn't of this code and this firmware.
    State,
    /// It can go on only where it was in memory, and that place is taken.
    Place,
    /// It isn't prepared yet.
    Compiling,
    /// The module, or a function of it, is too much for the engine's compiler.
    TooLong,
    /// The engine can't compile for this processor, or has no room to.
    NoCompiler,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => {
                "there is too little memory for it, in the steps in which the engine has it"
            }
            Self::Module => "the engine refuses the code",
            Self::State => "what was kept of it isn't of this code and this firmware",
            Self::Place => "the place in memory where it was is taken",
            Self::Compiling => "it is still being compiled",
            Self::TooLong => "the module or a function of it is too much for the compiler",
            Self::NoCompiler => "the device has no compiler for its processor",
        })
    }
}

impl core::error::Error for EngineError {}

impl From<EngineError> for FaultKind {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Memory => Self::Memory,
            EngineError::Module
            | EngineError::Compiling
            | EngineError::TooLong
            | EngineError::NoCompiler => Self::Image,
            EngineError::State => Self::Suspended,
            EngineError::Place => Self::Place,
        }
    }
}

/// A machine's running program.
pub(crate) enum Program {
    /// An image, run by the vm. Where it stands, as it goes to and fro with each turn.
    Image(Box<Instance>),
    /// A module, run by the board's engine.
    Engine(Box<dyn EngineInstance>),
}

impl Program {
    /// Gets ready to call `function`, which `image` has if it is one; gives whether it can be called.
    pub(crate) fn prepare(&mut self, image: Option<&Image<'_>>, function: &str) -> bool {
        match self {
            Self::Image(instance) => image.is_some_and(|image| {
                callable(image, function)
                    .is_some_and(|index| instance.prepare(image, index, &[]).is_ok())
            }),
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
    /// [`FaultKind::Breach`] if the program tried to leave its memory, [`FaultKind::Image`] if it
    /// runs in the vm and its image isn't there.
    pub(crate) fn run(
        &mut self,
        image: Option<&Image<'_>>,
        fuel: &mut u64,
        fuel_per_ms: u32,
        wall: Option<&mut dyn Wall>,
    ) -> Result<Outcome, FaultKind> {
        match (self, image, wall) {
            (Self::Image(instance), Some(image), Some(wall)) => {
                instance.run_behind(image, fuel, wall).map_err(FaultKind::Breach)
            }
            (Self::Image(instance), Some(image), None) => Ok(instance.run(image, fuel)),
            (Self::Image(_), None, _) => Err(FaultKind::Image),
            (Self::Engine(instance), ..) => {
                let outcome = instance.run(fuel, fuel_per_ms);
                instance.breach().map_or(Ok(outcome), |breach| Err(FaultKind::Breach(breach)))
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
