//! Suites of the hub's storage once more on a way to PostgreSQL on which statements fail, as by other transactions, and
//! connections break: whoever is told to try again does so, and the outcomes are the same.
//!
//! Each test prints its seed, and `TENURE_TEST_SEED` repeats it.

mod fleet;
mod life;
#[path = "../registry.rs"]
mod registry;
// Of their own: its place tells by its path whether the way to the database is disturbed.
#[path = "../world/mod.rs"]
mod world;
