//! The parts that tests of several crates share; no product uses it.
#![forbid(unsafe_code)]

mod frozen;
mod patience;
mod skip;

pub use frozen::frozen;
pub use patience::{patience, wait_until};
pub use skip::{skip_without_right, skip_without_tool};
