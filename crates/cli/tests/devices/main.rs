//! Devices, a hub and the command `tenure` as real processes on loopback.

mod addresses;
mod boards;
mod commands;
mod events;
mod faults;
mod firmware;
mod flash;
mod grants;
mod guests;
mod harness;
mod kill;
mod leaf;
mod mesh;
mod nat;
mod native;
mod native_speed;
mod packages;
mod peers;
mod power;
mod receipts;
mod secrets;
mod sixteen;
mod skeleton;
mod sleep;
mod snapshots;
mod wire_tap;
