//! Ways to devices and hubs: addresses, sessions, and the device and machine that a command is about.

pub mod client;
pub mod discovery;
pub mod hub_link;
pub mod network;
pub(crate) mod pages;
pub mod place;
pub mod visitor;
pub mod whom;
