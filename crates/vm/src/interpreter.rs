//! Executes image code: the only hot loop, and the only unsafe code but for `memory`'s.
//!
//! Unsafe pays here: checking operands against the stack's end costs 10 to 22 % (`docs/vm.md`).
//! Every handler relies on these facts:
//! - code was accepted by `image::verify`: instructions are whole, branches lead to instructions, slots
//!   lie in the frame, indices name what exists;
//! - the frame at `frame` lies in the stack: `call` compares with the stack's end before it enters, and
//!   `Instance` checks the frames that it makes or rebuilds;
//! - links in the stack are written by `call` alone, or were checked by `Instance::resume`;
//! - linear memory is reached only through `State::locate`, which checks.
//!
//! Fuel. An instruction costs as many units as it is long. Nothing is counted: `limit` is the position at
//! which, going straight on, fuel would be used up; a branch moves `limit` along with `pc`, and looks
//! whether `pc` has passed it. The translator puts a `check` into every straight line that is as long as
//! a window of `WINDOW_UNITS`: no more than that is used beyond the fuel, and the caller takes it from
//! the next. To stop at a certain instruction, the caller has them executed one at a time: in place with a
//! budget of nothing if they look themselves, else from a copy with a `check` behind it.

mod behind;
#[cfg(feature = "float")]
mod float;
mod handlers;
mod state;
#[cfg(any(compact, test))]
#[cfg_attr(not(compact), allow(dead_code))]
mod wide;

pub(crate) use behind::{IMPOSSIBLE, OVERRUN_BYTES};
pub(crate) use handlers::{Entry, Exit, Run, execute_one};
pub(crate) use state::{Flow, METERED, STRICT_ALIGNMENT, entry_units, function_entry};
