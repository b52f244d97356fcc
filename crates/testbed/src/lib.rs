//! The parts that tests of several crates share; no product uses it.
#![forbid(unsafe_code)]

mod family;
mod frozen;
mod packages;
mod patience;
mod postgres;
mod skip;
mod tools;
mod whole;

pub use family::{FAMILY, any_address, free_address, free_ipv4_address};
pub use frozen::frozen;
pub use packages::{Packages, fetch_from_pypi};
pub use patience::{patience, wait_until};
pub use postgres::{Cluster, Shaken, Trouble, has_postgres};
pub use skip::{skip_without_compiler, skip_without_part, skip_without_right, skip_without_tool};
pub use tools::{Watching, find_server};
pub use whole::{fill_in_place, fill_once};
