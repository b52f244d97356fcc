//! The hub's database in SQLite, and its pages and API over HTTP.
//!
//! Invariants:
//! - A write that was acknowledged is on the disk: every commit waits for it (`synchronous = FULL`).
//! - The database holds no key that can place a machine on a device: the hub's own seed opens sessions
//!   as the hub. Passes are stored as hashes.
//! - A database of a newer version is refused and left as it is.
#![forbid(unsafe_code)]

mod audit;
mod database;
mod error;
mod migrations;
mod receipts;
mod resource;
mod services;
mod sign_in;
mod storage;
mod web;

pub use crate::audit::{Broken, Entry as AuditEntry};
pub use crate::database::Database;
pub use crate::error::DatabaseError;
pub use crate::sign_in::request as sign_in_request;
pub use crate::web::serve;
