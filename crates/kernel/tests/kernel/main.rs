//! The kernel with real wasm on a simulated flash.

mod authority;
mod bills;
mod bounds;
mod budgets;
mod calls;
mod compiling;
mod conduct;
mod events;
mod faults;
mod halting;
mod hostile;
mod keeping;
mod native;
#[cfg(feature = "reach")]
mod reach;
mod starting;
mod suspending;
mod swapping;
mod timers;
mod trees;
mod world;
