//! The hub's database: accepted records, and who did what, in SQLite.
//!
//! Invariants:
//! - A write that was acknowledged is on the disk: every commit waits for it (`synchronous = FULL`).
//! - The database holds no key that can place a machine on a device: the hub's own seed opens sessions
//!   as the hub, and nothing else in it is secret.
//! - A database of a newer version is refused and left as it is.
#![forbid(unsafe_code)]

mod audit;
mod database;
mod error;
mod migrations;
mod storage;

pub use crate::audit::{Broken, Entry as AuditEntry};
pub use crate::database::Database;
pub use crate::error::DatabaseError;
