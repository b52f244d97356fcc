//! The hub: as a process, signed in to, packages and rollouts for many devices, and what they owe.

pub mod devices;
pub mod faults;
pub mod fleet;
pub mod login;
pub mod netcheck;
pub mod packages;
pub mod people;
pub mod process;
pub mod receipts;
pub mod rollout;
pub mod session;
pub mod trust;
