//! Endpoints over a simulated network: calls, losses, restarts, attacks.

mod amplification;
mod attacks;
mod calls;
mod floods;
#[cfg(feature = "deadlines")]
mod late;
mod restarts;
mod sleep;
mod world;
