//! Trials of machines on this computer, on devices that are in memory or end with the command.

pub mod run;
pub mod test;
