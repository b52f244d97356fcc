//! Machines on one device: tasks, scheduling, budgets, faults, host calls.
//!
//! Invariants:
//! - The kernel knows no network. A call that leaves the device becomes an [`Effect`] that `node`
//!   routes; its answer comes back by [`Kernel::complete`].
//! - Nothing here blocks or calls back: [`Kernel::run`] runs one slice of one machine and returns.
//! - A machine can spend only its own budget: each queue and table that a machine can fill has a
//!   limit that stands in its [`Budget`](tenure_wire::Budget), and overspending is an error to that machine alone.
//! - A machine can do only what its [`Grants`](tenure_wire::Grants) allow, which are asked at each
//!   use; what isn't granted is an error to it, and a line in its log that names what.
//! - A failure tells a caller nothing of the callee's inside.
//!
//! The heap is used for: the machine table and each machine's instance (bounded by
//! [`Config::machines_max`] and the machines' budgets), queued tasks with their parameters
//! (bounded by [`Config::parameter_bytes_max`], and by `queue_length` a machine), and effects that
//! `node` has not taken yet (answers: one a task; log lines: [`Config::effects_max`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod amend;
#[cfg(feature = "reach")]
mod ask;
mod asleep;
mod breadcrumb;
mod bucket;
mod calls;
mod clock;
mod code;
mod compiled;
mod conduct;
mod config;
mod cost;
mod effect;
mod events;
mod exchange;
mod fault;
mod halt;
mod host;
mod install_error;
#[cfg(feature = "journal")]
mod journal;
mod kernel;
mod lifecycle;
mod log;
mod look;
mod machine;
mod machines;
mod moment;
mod native;
mod outbox;
mod parts;
pub mod policy;
mod processors;
#[cfg(feature = "profile")]
mod profile;
mod program;
mod record;
mod residence;
mod scheduler;
mod sealing;
mod slot;
mod storage;
mod task;
mod tenancy;
mod timer;
mod turn;
#[cfg(feature = "reach")]
mod visit;

#[cfg(feature = "reach")]
pub use ask::Ask;
pub use asleep::{NotAsleep, SleepError};
pub use breadcrumb::{BREADCRUMB_BYTES, Breadcrumb};
pub use calls::CallId;
pub use code::{CodeError, CodeRegion, Draft, Extent};
pub use compiled::{COMPILED_STACK_BYTES, CompiledCode, CompiledError, CompiledParts};
pub use conduct::Repute;
pub use config::Config;
pub use effect::{Effect, LogEntry, OutgoingCall};
pub use events::{COMMAND_TOPIC, DEVICE_TOPIC, Driver, Events, Listener, Subscribed};
pub use fault::{Fault, FaultKind, Limit};
pub use host::host_functions;
pub use install_error::InstallError;
#[cfg(feature = "journal")]
pub use journal::{
    Difference, Diverged, JournalPage, MachineJournals, Player, Step, Unplayable, fuel_of_turns,
};
#[cfg(feature = "bridge")]
pub use kernel::Bridged;
pub use kernel::{Kernel, Ran};
pub use lifecycle::{Event, State};
pub use look::{Look, LookError, MachineInfo, Serves, unreadable};
pub use native::{NativeBinary, NativeError, NativeParts};
#[cfg(feature = "profile")]
pub use profile::{Leg, Profiler};
pub use program::{Code, Engine, EngineError, EngineInstance};
pub use record::{MACHINE_FORMAT, MachineRecord};
pub use scheduler::LastTurn;
pub use sealing::{Sealer, seal_trees};
pub use slot::{KERNEL_TREE, Slot};
pub use task::{IncomingCall, Standing, Ticket};
pub use tenancy::{Installation, Tenancy};
pub use tenure_wire::{LogLevel, NoResult};
pub use turn::World;
#[cfg(feature = "reach")]
pub use visit::{OutgoingVisit, Visited};
