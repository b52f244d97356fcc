//! The owner's word on keys: copies of them that last, other keys for the owner, and those that are trusted no more.

pub mod all_devices;
pub mod key;
pub mod owner;
pub mod revoke;
