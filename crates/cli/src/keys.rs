//! The owner's word on keys: other keys for the owner, and those that are trusted no more.

pub mod all_devices;
pub mod owner;
pub mod revoke;
