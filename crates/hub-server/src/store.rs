//! The hub's database: the file, its versions, its audit log, and the figures and limits that stand in it.
//!
//! Invariant: a room above writes in a transaction of [`Database`] alone.

pub(crate) mod audit;
mod backup;
mod database;
mod error;
pub(crate) mod figures;
mod lock;
mod migrations;
mod served;
pub(crate) mod space;

pub use database::Database;
pub use error::DatabaseError;
pub(crate) use error::failed;
