//! Machines on a device: installed, called, stopped, looked into and leased.

pub mod call;
pub(crate) mod down;
pub mod grant;
pub mod halt;
pub mod inspect;
pub mod install;
pub mod journal;
pub(crate) mod kept_packages;
pub mod lease;
pub mod list;
pub mod pages;
pub mod pass;
pub mod rollback;
pub mod secret;
pub mod snapshot;
pub mod trash;
pub mod tree;
