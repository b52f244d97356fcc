//! The kernel with real wasm on a simulated flash.

mod budgets;
mod calls;
mod faults;
mod keeping;
mod world;
