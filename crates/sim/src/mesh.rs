//! Meshes: bare protocols on a shared radio, as a scenario describes them.
//!
//! [`run`] runs a [`Scenario`], which [`Scenario::parse`] reads from a file, and gives what came of it
//! as an [`Outcome`].

mod device;
#[cfg(test)]
mod device_tests;
mod fleet;
pub mod hunt;
mod layout;
mod liar;
mod many;
mod measure;
mod motion;
mod occupant;
mod options;
mod participant;
mod playback;
mod recovery;
mod report;
mod scenario;
#[cfg(test)]
mod tests;
mod verdict;
mod wall_map;
mod world;

pub use fleet::DeviceFigures;
pub use many::{Figure, run_many};
pub use measure::{FigureRange, GivenUp, Metrics, Second};
pub use motion::{Motion, MotionFormat, MotionPlan};
pub use options::{Defect, Options};
pub use playback::Playback;
pub use scenario::{
    Aggregation, Broadcasting, CallPlan, DEVICES_MAX, Devices, DutyCycle, Expectation, Fault,
    Figured, Files, HopRepair, LiarPlan, Lie, LinkPlan, Movement, NODES_MAX, PlugInPlan, Protocols,
    Replayer, Router, SECONDS_MAX, Scenario, ScenarioError, Topology, Traffic, What,
};
pub use verdict::Verdict;
pub use wall_map::WallMap;
pub use world::Outcome;

use world::World;

/// How many steps a run is cut into, to say how far it is.
const STEPS: u64 = 200;

/// Runs a scenario; `progress` hears now and then which share is done.
///
/// # Errors
/// The scenario's first mistake.
pub fn run(
    scenario: &Scenario,
    options: Options,
    mut progress: impl FnMut(f64),
) -> Result<Outcome, ScenarioError> {
    let mut world = World::new(scenario.clone(), options)?;
    let step_us = (scenario.end_us() / STEPS).max(1);
    let mut until_us = 0;
    while world.run(until_us) {
        progress(until_us as f64 / scenario.end_us() as f64);
        until_us += step_us;
    }
    progress(1.0);
    Ok(world.outcome())
}
