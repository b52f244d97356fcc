//! The twin of `lateness` for an end without the feature `deadlines`: it names no moment, and takes calls whenever they come.

use tenure_hal::Instant;
use tenure_wire::frame::Frame;

use crate::Config;
use crate::calls::Call;
use crate::round_trip::RoundTrip;

pub(crate) const FIRST_FRAME: Frame<'static> = Frame::Acknowledge;

pub(crate) fn first_part_bytes(body_bytes: usize) -> Option<u16> {
    u16::try_from(body_bytes).ok()
}

/// Nothing is known of clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks;

impl Clocks {
    pub(crate) fn new(_now: Instant, _opened_here: bool, _first: &Frame<'_>) -> Self {
        Self
    }

    pub(crate) fn peer_has_session(self, _now: Instant) {}

    pub(crate) fn learn(self, _now: Instant, _clock_ms: u32) -> bool {
        false
    }

    pub(crate) fn late_at_ms(self, _now: Instant, _until_ms: Option<u32>) -> Option<u32> {
        None
    }
}

pub(crate) fn until_ms<A>(
    _clocks: &Clocks,
    _call: &mut Call<A>,
    _round_trip: &RoundTrip,
    _at: (&Config, Instant),
) -> Option<u32> {
    None
}
