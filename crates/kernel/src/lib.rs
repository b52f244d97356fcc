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

mod asleep;
mod authority;
mod breadcrumb;
mod bucket;
mod calls;
mod code;
mod conduct;
mod config;
mod cost;
mod effect;
mod events;
mod failed;
mod faults;
mod host;
mod install;
mod kernel;
mod lease;
mod lifecycle;
mod log;
mod look;
mod machine;
mod metering;
mod moment;
mod native;
pub mod policy;
mod program;
mod record;
mod route;
mod run;
mod sealing;
mod suspended;
mod swap;
mod task;
mod timer;
mod timers;
mod trash;
mod tree;

pub use asleep::{NotAsleep, SleepError};
pub use breadcrumb::{BREADCRUMB_BYTES, Breadcrumb};
pub use calls::CallId;
pub use code::{CodeError, CodeRegion, Draft, Extent};
pub use conduct::Repute;
pub use config::Config;
pub use effect::{Effect, LogEntry, LogLevel, OutgoingCall};
pub use events::{COMMAND_TOPIC, DEVICE_TOPIC, Driver, Listener, Subscribed};
pub use failed::Failed;
pub use host::host_functions;
pub use install::{InstallError, Installation};
pub use kernel::{DeliverError, KERNEL_TREE, Kernel, Ran, World};
pub use lifecycle::{Event, State};
pub use look::{Look, LookError, MachineInfo, Serves};
pub use machine::{Fault, FaultKind};
pub use native::{NativeBinary, NativeError, NativeParts};
pub use program::{Code, Engine, EngineError, EngineInstance};
pub use record::{MACHINE_FORMAT, MachineRecord};
pub use run::LastTurn;
pub use sealing::{Sealer, seal_trees};
pub use task::{IncomingCall, Standing, Ticket};
