//! Many real nodes and a hub under one seeded clock, network and flash.
//!
//! [`run`] draws a [`Scenario`] from a seed, runs it in simulated time, and watches the
//! [`Invariant`]s all the while. Devices run the real kernel, vm, store, sessions and directory;
//! only time, randomness, datagrams and flash are the simulator's. [`tenancy`] is a world of its own.
//!
//! Invariants of the simulator itself:
//! - The same seed and the same code give the same events, bit for bit, whatever runs beside.
//! - Nothing waits: when nothing is due, the clock jumps to what comes next.
//! - A place that loses its power loses everything but its flash; what it meant to send or show
//!   in the same moment is lost too.
#![forbid(unsafe_code)]

mod agenda;
mod checker;
mod clock;
mod flash;
mod guests;
mod line;
pub mod mesh;
mod network;
mod panics;
mod peripherals;
mod place;
pub mod radio;
mod scenario;
pub mod siege;
pub mod tenancy;
mod trace;
mod trouble;
pub mod waiting;
mod world;

pub use checker::{Invariant, Outcomes, Violation};
pub use peripherals::{Heard, PeripheralPlan, Script};
pub use scenario::{
    Calling, CrashPlan, DevicePlan, MachinePlan, NetworkPlan, Role, Scenario, SessionsPlan,
    SleepPlan, StopPlan,
};
pub use trouble::Trouble;

use checker::Checker;
use trace::Trace;
use world::World;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed that repeats it.
    pub seed: u64,
    /// A hash of all that happened.
    pub trace_hash: u64,
    /// How many events there were.
    pub events: u64,
    /// Results of calls.
    pub outcomes: Outcomes,
    /// The faults and the traffic of the run.
    pub trouble: Trouble,
    /// The invariant that didn't hold, if any, and the last events before.
    pub failure: Option<(Violation, Vec<String>)>,
}

/// Runs the scenario of `seed`; prints each event if `printed`.
pub fn run(seed: u64, printed: bool) -> Report {
    run_scenario(Scenario::draw(seed), printed)
}

/// Runs a scenario; prints each event if `printed`.
pub fn run_scenario(scenario: Scenario, printed: bool) -> Report {
    let seed = scenario.seed;
    let mut checker = Checker::new(scenario.clone());
    let mut trace = Trace::new(printed);
    let mut trouble = Trouble::default();
    let outcome = panics::catch(|| trouble = World::new(scenario, &mut checker, &mut trace).run());
    if let Err(what) = outcome {
        checker.violated(0, Invariant::NoPanic, what);
    }
    let failure = checker.violation().cloned();
    Report {
        seed,
        trace_hash: trace.hash(),
        events: trace.events(),
        outcomes: checker.outcomes().clone(),
        trouble,
        failure: failure.map(|violation| (violation, trace.tail().map(String::from).collect())),
    }
}
