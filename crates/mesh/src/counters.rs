//! The counts of a stack.

use crate::dispatcher::Rejected;

/// The counts of a stack since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that were given to links.
    pub frames_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Frames that were taken.
    pub frames_taken: u64,
    /// Frames that weren't: too short, or with lengths that lie.
    pub malformed_frames: u64,
    /// Frames that weren't taken because the network's key didn't make them.
    pub forged: u64,
    /// Frames that weren't taken because they came before.
    pub replayed: u64,
    /// Frames that weren't taken because their sender hasn't proved yet that it lives.
    pub unproven: u64,
    /// Frames of other versions, for other nodes, and this node's own.
    pub foreign: u64,
    /// Plain frames that were kept for the host.
    pub plain_frames: u64,
    /// Events whose bytes aren't what their protocol declares.
    pub malformed_events: u64,
    /// Messages and answers for protocols that don't run.
    pub unclaimed: u64,
    /// Requests that nobody serves.
    pub unserved: u64,
    /// Timers that didn't fit.
    pub timers_lost: u64,
    /// Notifications that didn't fit their queue.
    pub notifications_lost: u64,
    /// Messages that came and didn't fit their queue, and frames that the heap had no room for.
    pub messages_lost: u64,
    /// Requests and answers that didn't fit their queues.
    pub requests_lost: u64,
    /// Orders of handlers that the heap had no room for.
    pub orders_lost: u64,
    /// Messages that were to be sent, and were too long or too many.
    pub sends_refused: u64,
    /// Messages over the budget of air, which weren't sent: see [`crate::Air`].
    pub over_budget: u64,
    /// Messages and events that an interceptor stopped.
    pub stopped: u64,
    /// Actions of interceptors that were dropped because each caused the next, in a circle.
    pub circular: u64,
}

impl Counters {
    pub(crate) fn rejected(&mut self, rejected: Rejected) {
        *match rejected {
            Rejected::Malformed => &mut self.malformed_frames,
            Rejected::Forged => &mut self.forged,
            Rejected::Replayed => &mut self.replayed,
            Rejected::Unproven => &mut self.unproven,
            Rejected::Plain => &mut self.plain_frames,
            Rejected::NoRoom => &mut self.messages_lost,
            Rejected::Version | Rejected::Own | Rejected::NotForUs => &mut self.foreign,
        } += 1;
    }
}
