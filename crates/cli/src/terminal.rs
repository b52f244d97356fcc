//! The person or program at the other end of a command: output, questions, and Ctrl-C.

pub mod clock;
pub mod confirm;
pub mod input;
pub mod output;
pub(crate) mod secret_input;
pub mod stop;
pub mod trace;
pub mod verdict;
