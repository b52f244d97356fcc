//! Journals of machines that did all that a machine can do, replayed; and bills that were held against them.

mod bills;
mod device;
mod replays;
