//! Where the nodes of a topology stand, and how they move.

use std::f32::consts::PI;

use tenure_hal::simulated::Random;

use super::motion::Motion;
use super::scenario::{Movement, ScenarioError, Topology};
use crate::radio::Spot;

/// Neighbours in a line and a grid stand at this share of the range: the next one is heard, the one
/// after it, and the one across, is not.
const SPACING: f32 = 0.8;
/// How often a random topology is drawn until it is connected.
const DRAWS_MAX: u32 = 1_000;

/// The places of a topology's nodes. Nodes of a trace are where that has them.
///
/// # Errors
/// [`ScenarioError::Parted`].
pub(super) fn spots(
    topology: &Topology,
    motion: &Motion,
    range_m: f32,
    random: &mut Random,
) -> Result<Vec<Spot>, ScenarioError> {
    let mut spots = spots_of(topology, range_m, random)?;
    for (spot, number) in spots.iter_mut().zip(0..) {
        *spot = motion.spot(number, 0.0).unwrap_or(*spot);
    }
    Ok(spots)
}

fn spots_of(
    topology: &Topology,
    range_m: f32,
    random: &mut Random,
) -> Result<Vec<Spot>, ScenarioError> {
    let spacing = |given: &Option<f32>| given.unwrap_or(range_m * SPACING);
    match topology {
        Topology::Line { nodes, spacing_m } => {
            let step = spacing(spacing_m);
            Ok((0..*nodes).map(|number| Spot { x: number as f32 * step, y: 0.0 }).collect())
        }
        Topology::Grid { columns, rows, spacing_m } => {
            let step = spacing(spacing_m);
            let spot = |number: usize| Spot {
                x: (number % columns) as f32 * step,
                y: (number / columns) as f32 * step,
            };
            Ok((0..columns * rows).map(spot).collect())
        }
        Topology::Places { places } => {
            Ok(places.iter().map(|[x, y]| Spot { x: *x, y: *y }).collect())
        }
        Topology::Motion { nodes } => Ok(vec![Spot::default(); *nodes]),
        Topology::Random { nodes, side_m, neighbours, may_be_parted } => {
            let each_m2 = PI * range_m * range_m / neighbours.max(0.1);
            let side_m = side_m.unwrap_or((*nodes as f32 * each_m2).sqrt());
            for _ in 0..DRAWS_MAX {
                let spots: Vec<_> = (0..*nodes).map(|_| anywhere(side_m, random)).collect();
                if *may_be_parted || is_connected(&spots, range_m) {
                    return Ok(spots);
                }
            }
            Err(ScenarioError::Parted)
        }
    }
}

fn anywhere(side_m: f32, random: &mut Random) -> Spot {
    Spot { x: random.share() as f32 * side_m, y: random.share() as f32 * side_m }
}

/// Whether a way leads from the first to every other one over hops within range.
fn is_connected(spots: &[Spot], range_m: f32) -> bool {
    let mut left: Vec<Spot> = spots.to_vec();
    let mut frontier: Vec<Spot> = left.pop().into_iter().collect();
    while let Some(spot) = frontier.pop() {
        let (near, far) = left.into_iter().partition(|other| spot.distance(*other) <= range_m);
        left = far;
        frontier.extend::<Vec<Spot>>(near);
    }
    left.is_empty()
}

/// A node under way, by the random waypoint model (Johnson and Maltz 1996).
#[derive(Clone, Debug)]
pub(super) struct Walk {
    from: Spot,
    to: Spot,
    start_us: u64,
    end_us: u64,
    rest_until_us: u64,
}

impl Walk {
    /// A node that stands at `spot` and is about to leave.
    pub(super) fn new(spot: Spot) -> Self {
        Self { from: spot, to: spot, start_us: 0, end_us: 0, rest_until_us: 0 }
    }

    /// Where it is at `now_us`. It stays between the corners of `field`.
    pub(super) fn at(
        &mut self,
        now_us: u64,
        plan: &Movement,
        field: (Spot, Spot),
        random: &mut Random,
    ) -> Spot {
        if now_us >= self.rest_until_us {
            let (low, high) = field;
            let within = |low: f32, high: f32, share: f64| low + (high - low) * share as f32;
            self.from = self.to;
            self.to = Spot {
                x: within(low.x, high.x, random.share()),
                y: within(low.y, high.y, random.share()),
            };
            let [slow, fast] = plan.speed_m_s;
            let speed_m_s = within(slow, fast, random.share()).max(0.01);
            let [short, long] = plan.rest_s;
            let rest_s = within(short, long, random.share()).max(0.0);
            self.start_us = now_us;
            self.end_us = now_us + (self.from.distance(self.to) / speed_m_s * 1e6) as u64;
            self.rest_until_us = self.end_us + (rest_s * 1e6) as u64 + 1;
        }
        let span_us = (self.end_us - self.start_us).max(1) as f32;
        let share = (now_us.min(self.end_us) - self.start_us) as f32 / span_us;
        Spot {
            x: self.from.x + (self.to.x - self.from.x) * share,
            y: self.from.y + (self.to.y - self.from.y) * share,
        }
    }
}
