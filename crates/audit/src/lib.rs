//! Runs a machine again from its journal, and holds its receipts against that.
//!
//! [`Replay`] is a kernel with the one machine, whose host calls are answered from the journal: the same code that the
//! device ran. Whoever drives it, a debugger for instance, takes one [`Step`](tenure_kernel::Step) after the other and looks at the
//! kernel in between. [`replay()`] drives it through a whole [`Journal`]. [`audit()`] does, too, and compares what the machine used with what its device signed.
//!
//! Invariants:
//! - A replay reads no clock, no entropy and no network: the journal has them.
//! - A journal is read with suspicion: one that is damaged or lies ends in an error, never in a panic, and after as much
//!   fuel as its reader allows.
#![forbid(unsafe_code)]

mod bill;
mod replay;

pub use bill::{AuditError, Audited, Finding, Item, Judgement, audit};
pub use replay::{Code, Replay, ReplayError, Replayed, Watcher, replay};
pub use tenure_package::{Journal, JournalError};
