//! A machine's journal: everything that enters a machine, in canonical bytes.
//!
//! A journal is a row of [`Page`]s, each a number, the machine's state where one begins with it, and [`Record`]s. A
//! record is one byte for its kind and its flags, and fields as varints, texts and byte strings. What follows from the
//! machine's state, its code and the records before isn't written ([ADR 48](../../../docs/adr/0048-a-machines-journal.md)
//! has the table).
//!
//! Invariants:
//! - One row of records has one encoding: [`Page::parse`] takes no other.
//! - A page is read without those before it.
//! - No input makes this crate panic, and reading takes memory in proportion to the page.
//! - Numbers are whole: nothing is a float.
//!
//! This crate knows no hash and no key: who chains, signs and seals pages stands above it.
//!
//! The heap is used for the page that is written, bounded by whoever writes, and for what a page is read into.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod encoding;
mod memory;
mod page;
mod record;

pub use page::{PAGE_BYTES_MAX, Page, PageError, PageWriter, Start};
pub use record::{Event, Given, Mark, Record, Task, Why, Woken};
