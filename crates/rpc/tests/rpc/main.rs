//! Endpoints over a simulated network: calls, losses, restarts, attacks.

mod attacks;
mod calls;
mod restarts;
mod sleep;
mod world;
