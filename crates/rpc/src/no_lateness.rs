//! The twin of `lateness` for an end without the feature `deadlines`: it names no moment, and takes calls whenever they come.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::frame::Frame;

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

    pub(crate) fn until_ms(
        self,
        _at: (Instant, Instant),
        _timeouts: impl Iterator<Item = Duration>,
        _wanted_until: &mut Instant,
    ) -> Option<u32> {
        None
    }
}
