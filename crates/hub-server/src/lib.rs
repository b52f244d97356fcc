//! The hub's database in SQLite, its pages and API over HTTP, its registry of packages.
//!
//! Invariants:
//! - A write that was acknowledged is on the disk: every commit waits for it (`synchronous = FULL`).
//! - The database holds no key that can place a machine on a device: the hub's own seed opens sessions
//!   as the hub. Passes are stored as hashes.
//! - A database of a newer version is refused and left as it is.
#![forbid(unsafe_code)]

mod api;
mod audit;
mod database;
mod error;
mod exchange;
mod figures;
mod lists;
mod live_logs;
mod migrations;
mod once;
mod receipts;
mod registry;
mod reports;
mod resource;
mod revoked;
mod rollouts;
mod room;
mod running;
mod served;
mod services;
mod sign_in;
mod storage;
mod web;

pub use crate::audit::{Broken, Entry as AuditEntry};
pub use crate::database::Database;
pub use crate::error::DatabaseError;
pub use crate::registry::{Artifact, digest_of as registry_digest};
pub use crate::rollouts::{
    Gates, MetricGate, NoMetricGate, Plan, PlanError, SignedPlan,
    words_of as rollout_waits_in_words,
};
pub use crate::running::Running;
pub use crate::sign_in::request as sign_in_request;
pub use crate::web::{Pages, serve};
