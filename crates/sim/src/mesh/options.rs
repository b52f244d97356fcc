//! Options of a mesh's run: the checks, the recordings and the planted defect.

use tenure_protocols::plug_in::Registry;

/// Options of a run beside its scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Look for loops at every change of a route.
    pub watches_loops: bool,
    /// Look who has ways to whom: often until all have, then every second.
    pub watches_ways: bool,
    /// Keep what a page needs to play the run back.
    pub records: bool,
    /// Print what devices log.
    pub prints: bool,
    /// A defect that every node has, to see whether it is found.
    pub defect: Option<Defect>,
    /// The protocols that the scenario may name in `[[protocol]]`.
    pub registry: Registry,
}

/// A defect that is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Defect {
    /// Of bare protocols: a node that restarts takes its life for the one before.
    LivesOnce,
    /// Of bare protocols: forwarding remembers only the last datagram that came, to know copies by.
    ForgetsDatagrams,
    /// Of whole devices: a node forgets calls that ended, and runs them again if they are repeated.
    ForgetsCalls,
    /// Of whole devices: what the store wrote last is acknowledged, and lost with the power.
    AcknowledgesEarly,
}
