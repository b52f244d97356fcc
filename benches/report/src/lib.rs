//! The common part of all benchmark programs: the command line, the table or JSON lines, and the lines
//! by which an image on a bare machine reports to it.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

mod line;
#[cfg(feature = "std")]
mod program;
#[cfg(feature = "std")]
mod row;

pub use line::line;
#[cfg(feature = "std")]
pub use program::{Program, Rows};
#[cfg(feature = "std")]
pub use row::Row;
