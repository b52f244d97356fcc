//! The hub as sessions reach it: the directory's storage, and the functions beside the directory.

mod directory;
mod renewals;
mod services;
