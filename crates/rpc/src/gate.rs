//! Who may make this device compute a handshake, and how often: epochs, cookies and budgets.
//!
//! Invariants:
//! - An initiation that names the current epoch and was accepted is in `accepted` as long as the
//!   epoch lasts. So none is accepted twice: within an epoch it is found, after it the epoch
//!   doesn't match.
//! - Nobody makes the device do more than `handshakes_per_second_max`, and nobody who hides their
//!   address more than `handshakes_per_second`.
//! - Nothing that is sent from here is longer than what it answers.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use tenure_crypto::{Hmac, equal};
use tenure_hal::{Entropy, EntropyError, Instant, micros_of};
use tenure_wire::datagram::{Cookie, Echo, Epoch, SessionIndex};
use zeroize::Zeroizing;

use crate::Config;

/// How long a cookie is given out; it is accepted for up to twice that.
const COOKIE_PERIOD: Duration = Duration::from_secs(120);
/// Refusals a second that are sent in all.
const REFUSALS_PER_SECOND: u32 = 8;

/// The responder's door.
pub(crate) struct Gate {
    secret: Zeroizing<[u8; 32]>,
    drawn: u64,
    epoch: Epoch,
    epoch_began: Instant,
    accepted: VecDeque<Accepted>,
    accepted_max: usize,
    for_anybody: Budget,
    in_all: Budget,
    refusals: Budget,
}

struct Accepted {
    epoch: Epoch,
    echo: Echo,
    response: Vec<u8>,
}

/// What becomes of an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Compute it.
    Admit,
    /// Ask its sender to name this epoch and to show that it receives at its address.
    Challenge,
    /// The device has no time.
    Drop,
}

impl Gate {
    /// A gate in its first epoch.
    pub(crate) fn new(
        config: &Config,
        now: Instant,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, EntropyError> {
        let mut secret = Zeroizing::new([0; 32]);
        entropy.fill(&mut *secret)?;
        let mut gate = Self {
            secret,
            drawn: 0,
            epoch: Epoch([0; 8]),
            epoch_began: now,
            accepted: VecDeque::new(),
            accepted_max: config.accepted_initiations_max,
            for_anybody: Budget::new(now, config.handshakes_per_second),
            in_all: Budget::new(now, config.handshakes_per_second_max),
            refusals: Budget::new(now, REFUSALS_PER_SECOND),
        };
        gate.begin_epoch(now);
        Ok(gate)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn epoch_began(&self) -> Instant {
        self.epoch_began
    }

    /// Begins a new epoch: from now on no initiation that was made before is accepted.
    pub(crate) fn begin_epoch(&mut self, now: Instant) {
        self.epoch = Epoch(self.draw());
        self.epoch_began = now;
    }

    /// The response to an initiation that was accepted before, if it is remembered.
    pub(crate) fn response(&self, echo: &Echo) -> Option<&[u8]> {
        self.accepted
            .iter()
            .find(|accepted| accepted.echo == *echo)
            .map(|accepted| accepted.response.as_slice())
    }

    /// Decides on an initiation that isn't remembered.
    pub(crate) fn admit<A: Hash>(
        &mut self,
        now: Instant,
        from: &A,
        epoch: &Epoch,
        cookie: &Cookie,
    ) -> Admission {
        if *epoch != self.epoch {
            return Admission::Challenge;
        }
        let shown = *cookie != Cookie::NONE && self.cookie_is_valid(now, from, cookie);
        if !shown && !self.for_anybody.take(now) {
            return Admission::Challenge;
        }
        if self.in_all.take(now) { Admission::Admit } else { Admission::Drop }
    }

    /// Remembers an initiation that was accepted. Where there is no room, a new epoch begins.
    pub(crate) fn accept(&mut self, now: Instant, echo: Echo, response: Vec<u8>) {
        while self.accepted.len() >= self.accepted_max {
            if self.accepted.pop_front().is_some_and(|oldest| oldest.epoch == self.epoch) {
                self.begin_epoch(now);
            }
        }
        // An initiation of the epoch that just ended can stay here under it: it is refused anyway
        // once it is dropped.
        self.accepted.push_back(Accepted { epoch: self.epoch, echo, response });
    }

    /// Whether one more refusal may be sent.
    pub(crate) fn may_refuse(&mut self, now: Instant) -> bool {
        self.refusals.take(now)
    }

    /// The cookie for an address.
    pub(crate) fn cookie<A: Hash>(&self, now: Instant, address: &A) -> Cookie {
        self.cookie_of_period(cookie_period(now), address)
    }

    /// Whether a cookie was given to that address, not long ago.
    pub(crate) fn cookie_is_valid<A: Hash>(
        &self,
        now: Instant,
        address: &A,
        cookie: &Cookie,
    ) -> bool {
        let period = cookie_period(now);
        [Some(period), period.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|period| equal(&self.cookie_of_period(period, address).0, &cookie.0))
    }

    fn cookie_of_period<A: Hash>(&self, period: u64, address: &A) -> Cookie {
        let mut mac = AddressMac(self.mac(b"cookie"));
        mac.write_u64(period);
        address.hash(&mut mac);
        Cookie(truncated(&mac.0.finish()))
    }

    /// A number for a new session, unlikely to be guessed; the caller checks that it is free.
    pub(crate) fn draw_index(&mut self) -> SessionIndex {
        SessionIndex(u32::from_le_bytes(self.draw()))
    }

    /// A nonce for a probe.
    pub(crate) fn draw_nonce(&mut self) -> Echo {
        Echo(self.draw())
    }

    /// The number that this endpoint's calls are told from those of earlier boots by.
    pub(crate) fn draw_incarnation(&mut self) -> u64 {
        u64::from_le_bytes(self.draw())
    }

    /// Unpredictable bytes that are no key, so that they need no entropy of their own.
    fn draw<const N: usize>(&mut self) -> [u8; N] {
        self.drawn += 1;
        let mut mac = self.mac(b"draw");
        mac.update(&self.drawn.to_le_bytes());
        truncated(&mac.finish())
    }

    fn mac(&self, purpose: &[u8]) -> Hmac {
        let mut mac = Hmac::new(&*self.secret);
        mac.update(purpose);
        mac
    }
}

fn cookie_period(now: Instant) -> u64 {
    now.as_micros() / COOKIE_PERIOD.as_micros() as u64
}

fn truncated<const N: usize>(code: &[u8; 32]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&code[..N]);
    bytes
}

/// Feeds an address, by its `Hash`, to a MAC. That the bytes differ between CPUs doesn't matter:
/// a cookie comes back to the device that made it.
struct AddressMac(Hmac);

impl Hasher for AddressMac {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        u64::from_le_bytes(truncated(&self.0.clone().finish()))
    }
}

/// A token bucket that holds what one second gives.
struct Budget {
    per_second: u64,
    micro_tokens: u64,
    filled_at: Instant,
}

const MICRO: u64 = 1_000_000;

impl Budget {
    fn new(now: Instant, per_second: u32) -> Self {
        let per_second = u64::from(per_second);
        Self { per_second, micro_tokens: per_second * MICRO, filled_at: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let elapsed_us = micros_of(now.since(self.filled_at)).min(MICRO);
        self.filled_at = now;
        self.micro_tokens =
            (self.micro_tokens + elapsed_us * self.per_second).min(self.per_second * MICRO);
        match self.micro_tokens.checked_sub(MICRO) {
            Some(rest) => {
                self.micro_tokens = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests;
