//! The parts of the command `tenure`, each usable by a test or another tool.
//!
//! Each command is a module with its `Arguments` and a `run` function, in the room of what it is about: [`make`] a machine,
//! put a [`machine`] on a device and use it, run a [`device`], direct many by a [`hub`], join them to a [`mesh`], say whose
//! [`keys`] count, try machines on this computer ([`trial`]), speak [`tls`]. Below the rooms lie what all of them use:
//! [`reach`] finds devices and speaks with them, [`home`] keeps this user's keys, [`terminal`] speaks with the person. A room
//! imports those below it alone, in the order `terminal`, `home`, `reach`, `make`, `machine`, `device`, `hub` and `mesh`,
//! `keys`, `trial`.
//!
//! A command's findings go to standard output, as text or with `--json` as one object; an error names the cause and the
//! way out.
#![forbid(unsafe_code)]

#[cfg(any(forgetful, planted, unchecked_memory, unmetered))]
compile_error!("a deliberate mistake for tests can't be compiled into the command `tenure`");

pub mod command_line;
pub mod completions;
pub mod device;
pub mod help;
pub mod home;
pub mod hub;
pub mod keys;
pub mod machine;
pub mod make;
pub mod mesh;
pub mod reach;
pub mod terminal;
pub mod tls;
pub mod trial;
mod written_file;
