//! The hub's database: its engines, its versions, its audit log, and the figures and limits that stand in it.
//!
//! Invariant: a room above writes in a transaction of [`Database`] alone.

pub(crate) mod audit;
mod backup;
mod database;
pub(crate) mod desk;
mod engine;
mod error;
pub(crate) mod figures;
pub(crate) mod forgetting;
mod health;
mod location;
mod lock;
mod migrations;
mod moving;
mod never;
mod opening;
mod postgres;
mod reserve;
mod schema;
mod served;
pub(crate) mod shared;
pub(crate) mod space;
pub(crate) mod sql;
mod sqlite;
pub(crate) mod steady;

pub use database::Database;
pub(crate) use database::at_a_desk;
pub use error::DatabaseError;
pub(crate) use error::failed;
pub use location::Location;
pub use moving::{Copied, MoveError};
pub use postgres::{LocationError, Server};
pub use sql::Error as SqlError;
