//! A question for a device's identity, asked until it is answered.

use alloc::vec::Vec;

use tenure_hal::Instant;
use tenure_wire::datagram::{Echo, Probe};

use crate::{Config, IdentifyHandle};

/// One question.
pub(crate) struct Question<A> {
    handle: IdentifyHandle,
    nonce: Echo,
    route: A,
    deadline: Instant,
    asked: u32,
    next_at: Instant,
}

impl<A> Question<A> {
    pub(crate) fn new(handle: IdentifyHandle, nonce: Echo, route: A, deadline: Instant) -> Self {
        Self { handle, nonce, route, deadline, asked: 0, next_at: deadline }
    }

    /// The datagram to send now.
    pub(crate) fn ask(&mut self, config: &Config, now: Instant) -> Vec<u8> {
        let wait = config.timeout_initial.saturating_mul(1 << self.asked.min(16));
        self.asked += 1;
        self.next_at = (now + wait.min(config.timeout_max)).min(self.deadline);
        Probe { nonce: self.nonce }.to_bytes().to_vec()
    }

    pub(crate) fn handle(&self) -> IdentifyHandle {
        self.handle
    }

    pub(crate) fn route(&self) -> &A {
        &self.route
    }

    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    pub(crate) fn is_answered_by(&self, echo: &Echo) -> bool {
        self.nonce == *echo
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.deadline
    }
}
