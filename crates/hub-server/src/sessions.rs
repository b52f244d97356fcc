//! The hub as sessions reach it: the directory's storage, and the functions beside the directory.

mod desk;
mod directory;
mod renewals;
mod services;
mod touches;

pub use desk::answer_beside;
