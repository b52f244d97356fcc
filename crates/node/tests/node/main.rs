//! Nodes with real machines, wired to one another and to hostile strangers in memory.

mod authority;
mod confidential;
mod failures;
mod hostile;
mod hostile_calls;
mod hostile_guest;
mod house;
#[cfg(feature = "hub-addresses")]
mod hub_addresses;
mod hubs;
#[cfg(feature = "journals")]
mod journals;
#[cfg(feature = "mesh")]
mod leaf;
mod leases;
mod logs;
#[cfg(feature = "mesh")]
mod mesh;
mod ownership;
#[cfg(feature = "mesh")]
mod pico;
mod rot;
mod sleep;
mod snapshots;
mod strangers;
mod terms;
#[cfg(feature = "touches")]
mod touches;
mod trash;
mod unforeseen;
mod world;
