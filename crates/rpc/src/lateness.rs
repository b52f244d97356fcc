//! Whether a call comes too late, by the clock of whoever receives it: the two ends of a session have no clock in common.
//!
//! Each end counts the milliseconds of a session from when it had the session itself. What its peer's clock shows it knows
//! by readings: one is taken when the peer must have the session, and one with each [`Frame::Late`]. On its way a reading
//! grows old, so the peer's clock never shows less than this end believes.
//!
//! An end says in its first message that it takes calls that name a moment. A peer that doesn't is sent calls without one, as
//! it would drop those with one.
//!
//! Invariants:
//! - A call isn't taken after the moment that its caller named, however long something on its way stood still, if neither
//!   clock is off by more than one part in [`CLOCK_DRIFT`].
//! - A caller whose belief is behind is told the right time, and sends again what is still wanted.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::frame::{CallNumber, Frame};

use crate::config::CLOCK_DRIFT;

/// The subject of this end's first message where it carries no call. It is about none, so that ends which don't know of it pass
/// it over.
pub(crate) const FIRST_FRAME: Frame<'static> = Frame::Later { number: CallNumber(0) };

/// The length of parts that a call in a first message names; its only part is shorter.
const FIRST_PART_BYTES: u16 = u16::MAX;

/// The length of parts that a call of so many bytes names in this end's first message, of which it is the only one.
pub(crate) fn first_part_bytes(_body_bytes: usize) -> Option<u16> {
    Some(FIRST_PART_BYTES)
}

/// Whether whoever says this in its first message takes calls that name a moment.
fn takes_moments(first: &Frame<'_>) -> bool {
    match first {
        Frame::Call { fragment, .. } => fragment.fragment_bytes() == FIRST_PART_BYTES,
        other => *other == FIRST_FRAME,
    }
}

/// What one end of a session knows of the clocks of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// When this end's began.
    began: Instant,
    /// The best reading of the peer's.
    peers: Option<Reading>,
    /// Whether the peer takes calls that name a moment.
    peer_takes_moments: bool,
}

/// A clock that at some moment showed so much at least.
#[derive(Clone, Copy, Debug)]
struct Reading {
    taken: Instant,
    shown: Duration,
}

impl Clocks {
    /// The clocks of a session that this end has from `now` on, with a peer whose first message had this subject. Whoever opened
    /// it knows that its peer has it, too.
    pub(crate) fn new(now: Instant, opened_here: bool, first: &Frame<'_>) -> Self {
        let peer_takes_moments = takes_moments(first);
        let mut clocks = Self { began: now, peers: None, peer_takes_moments };
        if opened_here {
            clocks.peer_has_session(now);
        }
        clocks
    }

    /// Takes note that the peer has the session.
    pub(crate) fn peer_has_session(&mut self, now: Instant) {
        self.peers.get_or_insert(Reading { taken: now, shown: Duration::ZERO });
    }

    /// Takes in what the peer's clock showed as it sent what came `now`. Returns whether that is more than was believed.
    pub(crate) fn learn(&mut self, now: Instant, clock_ms: u32) -> bool {
        let shown = Duration::from_millis(clock_ms.into());
        let is_news = self.peers.is_none_or(|reading| reading.shows(now) < shown);
        if is_news {
            self.peers = Some(Reading { taken: now, shown });
        }
        is_news
    }

    /// What the peer's clock shows at `moment` at least; `None` if nothing is known of it, or the peer wouldn't take it.
    fn peers_ms(&self, moment: Instant) -> Option<u32> {
        let shows = self.peers.filter(|_| self.peer_takes_moments)?.shows(moment);
        Some(u32::try_from(shows.as_millis()).unwrap_or(u32::MAX))
    }

    /// What this end's clock shows, if something is too late that is wanted until it shows `until_ms`.
    pub(crate) fn late_at_ms(&self, now: Instant, until_ms: Option<u32>) -> Option<u32> {
        let shows = now.since(self.began);
        let is_late = shows >= Duration::from_millis(until_ms?.into());
        is_late.then(|| u32::try_from(shows.as_millis()).unwrap_or(u32::MAX))
    }

    /// Until when a call is wanted that is sent `now`, by the peer's clock: until its deadline, or until its caller gives the
    /// peer up if it hears nothing for all of `timeouts`. From then on its caller may say that nobody can be reached.
    pub(crate) fn until_ms(
        &self,
        (now, deadline): (Instant, Instant),
        timeouts: impl Iterator<Item = Duration>,
        wanted_until: &mut Instant,
    ) -> Option<u32> {
        let until = deadline.min(now + timeouts.sum::<Duration>());
        *wanted_until = (*wanted_until).max(until);
        self.peers_ms(until)
    }
}

impl Reading {
    /// What the clock shows at `moment` at least.
    fn shows(self, moment: Instant) -> Duration {
        let since = moment.since(self.taken);
        self.shown + (since - since / CLOCK_DRIFT)
    }
}

#[cfg(test)]
mod tests;
