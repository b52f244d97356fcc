//! Signed, numbered, expiring records of which device holds which machines.
//!
//! Invariants:
//! - A record proves itself: [`open`] checks the device's signature and the owner's enrolment, so
//!   that whoever passes it on can withhold it and not forge it.
//! - A [`Table`] never goes back: not to a lower enrolment of a name, nor to a lower record of an
//!   enrolment, nor to an expired one; and a name stays with the owner who first had it, or with whom
//!   that owner named as successor in a record that shows it.
//! - Time is an argument, in seconds since 1970 UTC.
//!
//! The heap is used by [`Table`], bounded by its `devices_max` and by the limits of a record.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod asker;
mod record;
mod succession;
mod table;

pub use asker::{check_asker, sign_asker};
pub use record::{
    LIFETIME_S_MAX, check_enrolment, claims, enrol, open, open_whenever, read_device, seal,
};
pub use succession::{open_succession, read_succession, succeed};
pub use table::{Entry, Table};
