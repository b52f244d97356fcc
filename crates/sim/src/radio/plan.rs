//! Properties of a radio.

use serde::{Deserialize, Serialize};

/// The radio that all stations of a scenario have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RadioPlan {
    /// How far a frame reaches, in metres.
    pub range_m: f32,
    /// Which share of the frames a link loses.
    pub loss: Loss,
    /// Bits per second on the air.
    pub bit_rate: u64,
    /// Time on the air before the first bit of a frame, in microseconds.
    pub preamble_us: u64,
    /// How often a frame to one station is repeated that is not answered; with 0, nothing is
    /// answered on the air.
    pub unicast_retries: u32,
    /// Whether stations share the air: they wait until it is idle, and frames collide. Without it
    /// each link is a wire of its own.
    pub contention: bool,
}

/// A link whose loss doesn't come from the distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SetLink {
    /// The share of frames for everybody that is lost.
    pub loss: f32,
    /// The share of frames for one station that is lost.
    pub unicast_loss: f32,
    /// Times in which nothing arrives at all.
    pub bursts: Option<Bursts>,
}

impl SetLink {
    /// One that loses all kinds of frames alike.
    pub(crate) fn even(loss: f32) -> Self {
        Self { loss, unicast_loss: loss, bursts: None }
    }
}

/// A link that is bad by turns (Gilbert 1960, Elliott 1963): both kinds of turns last at random, with an
/// exponential distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// How long a bad turn lasts on average, in milliseconds.
    pub bad_ms: f32,
    /// How long a good one does.
    pub good_ms: f32,
    /// The share of frames that a bad turn loses.
    #[serde(default = "all")]
    pub loss: f32,
}

fn all() -> f32 {
    1.0
}

impl Default for RadioPlan {
    /// 802.11 in the 2.4 GHz band at its basic rate of 2 Mbit/s, short preamble.
    fn default() -> Self {
        Self {
            range_m: 100.0,
            loss: Loss::default(),
            bit_rate: 2_000_000,
            preamble_us: 96,
            unicast_retries: 7,
            contention: true,
        }
    }
}

/// The share of lost frames at a distance `d`: `near + (far - near) * (d / range)^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    /// At distance 0.
    pub near: f32,
    /// At the end of the range.
    pub far: f32,
    /// How suddenly it grows.
    pub exponent: f32,
}

impl Default for Loss {
    fn default() -> Self {
        Self { near: 0.0, far: 0.0, exponent: 4.0 }
    }
}

impl Loss {
    /// The same at every distance.
    pub fn even(share: f32) -> Self {
        Self { near: share, far: share, exponent: 1.0 }
    }

    /// At `distance` of a `range`.
    pub(crate) fn at(&self, distance_m: f32, range_m: f32) -> f32 {
        let share = (distance_m / range_m).clamp(0.0, 1.0).powf(self.exponent);
        (self.near + (self.far - self.near) * share).clamp(0.0, 1.0)
    }
}

impl RadioPlan {
    /// How long a frame of `bytes` takes.
    pub(crate) fn air_us(&self, bytes: u64) -> u64 {
        self.preamble_us + (bytes * 8 * 1_000_000).div_ceil(self.bit_rate.max(1))
    }
}
