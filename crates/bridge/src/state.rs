//! The state of a bridge: its thread writes it, its device reads it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The state of a bridge. Numbers count since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When the broker accepted the connection that there is.
    pub connected_at: Option<Instant>,
    /// How many connections the broker has accepted.
    pub connections: u64,
    /// How many TLS handshakes the broker resumed by a ticket of an earlier connection.
    pub resumed: u64,
    /// The messages for the broker that it hasn't acknowledged.
    pub queued_messages: usize,
    /// The bytes of these, as they count against the queue's limit.
    pub queued_bytes: usize,
    /// The events that were dropped for want of room.
    pub dropped: u64,
    /// The last error, in words, and when it happened.
    pub last_error: Option<(Instant, String)>,
}

/// The same state at both ends.
#[derive(Clone, Default)]
pub(crate) struct SharedState(Arc<Mutex<State>>);

impl SharedState {
    /// The state; a thread that panicked left it whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
