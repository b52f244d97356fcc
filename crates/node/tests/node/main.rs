//! Nodes with real machines, wired to one another and to hostile strangers in memory.

mod hostile;
mod sleep;
mod snapshots;
mod world;
