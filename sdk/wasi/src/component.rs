//! WASI 0.2 and 0.3 for programs that are components, whose core module `tenure build` takes out: the interfaces' functions as the
//! canonical ABI lowers them, over the same files, streams and clocks as preview 1.
//!
//! - A resource is a number: a descriptor's, or that of a clock that is waited for. Nothing is kept for one that is always there.
//! - Strings and lists that a function returns lie in memory that the program's `cabi_realloc` gives, which is all of the program
//!   that is called from here. It calls nothing of this module's.

mod abi;
mod abi_3;
mod clocks;
mod descriptors;
mod environment;
mod filesystem;
mod host_calls;
mod lower;
mod pollables;
mod stats;
mod streams;
mod tasks;
