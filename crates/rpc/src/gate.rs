//! The right to make this device compute a handshake, and how often: epochs, cookies and budgets.
//!
//! Invariants:
//! - Two epochs are accepted at most: the current one and, for a while, the one before. An initiation
//!   that was accepted is in `accepted` as long as the epoch that it names is accepted. So none is
//!   accepted twice: before that end it is found, after it the epoch doesn't match.
//! - No epoch is accepted for longer than twice `epoch_lifetime`, used or not.
//! - Handshakes are computed at most `handshakes_per_second_max` times a second; of those at most
//!   `handshakes_per_second` for senders who haven't shown their address, and at most a fair share
//!   for those of one host (`shares`). The owner has `handshakes_per_second` beside that.
//! - Nothing that is sent from here is longer than what it answers.

mod shares;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::time::Duration;

use tenure_crypto::{Hmac, equal};
use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Entropy, EntropyError, Instant};
use tenure_wire::datagram::{Cookie, Echo, Epoch, Initiation, SessionIndex};
use zeroize::Zeroizing;

use crate::budget::Budget;
use crate::noise::proof;
use crate::places::{Index, beginning};
use crate::{Config, PeerAddress};
use shares::{HOSTS, REHASH_PERIOD, Share, Shares};

/// How long a cookie is given out; it is accepted for up to twice that.
const COOKIE_PERIOD: Duration = Duration::from_secs(120);

/// One in so many handshakes is kept for hosts that had none lately.
const NEWCOMERS_SHARE: u32 = 4;

/// The responder's door.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Gate {
    secret: Zeroizing<[u8; 32]>,
    drawn: u64,
    epoch: Epoch,
    epoch_began: Instant,
    epoch_lifetime: Duration,
    previous: Option<PreviousEpoch>,
    accepted: VecDeque<Accepted>,
    /// The numbers of those in [`Self::accepted`], by the beginning of what tells them apart: a part of a public key,
    /// which nobody chooses at will. Anybody's datagram is looked up here.
    by_echo: Index,
    /// How many were forgotten, which is the number of the first.
    forgotten: u64,
    /// How many of them were forgotten for want of room, and ended an epoch.
    epochs_cut: u64,
    accepted_max: usize,
    for_anybody: Budget,
    shares: Shares,
    for_owner: Budget,
    in_all: Budget,
    /// Handshakes of [`Self::in_all`] that are left to hosts that had none lately.
    for_newcomers: u32,
    refusals: Budget,
}

/// The epoch before the current one, while initiations that name it are still accepted.
#[cfg_attr(test, derive(Clone))]
struct PreviousEpoch {
    epoch: Epoch,
    began: Instant,
    accepted_until: Instant,
}

#[cfg_attr(test, derive(Clone))]
struct Accepted {
    /// The epoch that the initiation names.
    epoch: Epoch,
    echo: Echo,
    /// Where the initiation came from, as a code under the secret of this boot.
    from: [u8; 16],
    session: SessionIndex,
    response: Vec<u8>,
}

/// An initiation that was accepted.
pub(crate) struct Acceptance<'a, A> {
    /// The epoch that it names.
    pub(crate) epoch: Epoch,
    /// The mark that tells it from others.
    pub(crate) echo: Echo,
    /// Where it came from.
    pub(crate) from: &'a A,
    /// The session that came of it.
    pub(crate) session: SessionIndex,
    /// The answer that it got.
    pub(crate) response: Vec<u8>,
}

/// The answer to an initiation that was accepted before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repeated {
    /// Answer it as the first time.
    Answer(Vec<u8>),
    /// Answer it as the first time, though it comes from another address, whose holder has shown
    /// that it receives there. The response is known at two addresses from now on.
    AnswerElsewhere(Vec<u8>, SessionIndex),
    /// It comes from another address: ask its sender to show that it receives there.
    Challenge,
}

/// The verdict on an initiation.
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
            epoch_lifetime: config.epoch_lifetime,
            previous: None,
            accepted: VecDeque::new(),
            by_echo: Index::default(),
            forgotten: 0,
            epochs_cut: 0,
            accepted_max: config.accepted_initiations_max,
            for_anybody: Budget::new(now, config.handshakes_per_second),
            shares: Shares::new(config.handshakes_per_second_max),
            for_owner: Budget::new(now, config.handshakes_per_second),
            in_all: Budget::new(now, config.handshakes_per_second_max),
            for_newcomers: config.handshakes_per_second_max / NEWCOMERS_SHARE,
            refusals: Budget::new(now, config.refusals_per_second),
        };
        gate.begin_epoch(now);
        Ok(gate)
    }

    /// Remembers so many accepted initiations from now on.
    pub(crate) fn widen(&mut self, accepted_max: usize) {
        self.accepted_max = accepted_max;
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Initiations that were made before are not accepted.
    fn accepts_since(&self) -> Instant {
        self.previous.as_ref().map_or(self.epoch_began, |previous| previous.began)
    }

    /// Begins a new epoch: from now on no initiation that was made before is accepted.
    pub(crate) fn begin_epoch(&mut self, now: Instant) {
        self.epoch = Epoch(self.draw());
        self.epoch_began = now;
        self.previous = None;
    }

    /// Takes note that a caller was forgotten whose last call was executed then. No initiation is
    /// accepted any more that may carry a call of it.
    pub(crate) fn forgot(&mut self, now: Instant, last_call: Option<Instant>) {
        if last_call.is_some_and(|last| last >= self.accepts_since()) {
            self.begin_epoch(now);
        }
    }

    /// Ends the epochs whose time is over.
    pub(crate) fn end_epochs(&mut self, now: Instant) {
        self.previous.take_if(|previous| previous.accepted_until <= now);
        let is_young = now.since(self.epoch_began) < self.epoch_lifetime;
        if is_young || is_planted(Weakness::EpochsNeverEnd) {
            return;
        }
        let ended = PreviousEpoch {
            epoch: self.epoch,
            began: self.epoch_began,
            accepted_until: self.epoch_began + self.epoch_lifetime + self.epoch_lifetime,
        };
        self.begin_epoch(now);
        self.previous = Some(ended).filter(|ended| ended.accepted_until > now);
    }

    /// Decides about an initiation that was accepted before; `None` if it wasn't. `is_shown` says whether its
    /// sender has shown that it receives at `from`.
    pub(crate) fn repeated<A: PeerAddress>(
        &self,
        from: &A,
        echo: &Echo,
        is_shown: bool,
    ) -> Option<Repeated> {
        let accepted = self.by_echo.of(beginning(&echo.0)).find_map(|number| {
            let place = usize::try_from(number.checked_sub(self.forgotten)?).ok()?;
            self.accepted.get(place).filter(|accepted| accepted.echo == *echo)
        })?;
        let response = || accepted.response.clone();
        let goes_anywhere = is_planted(Weakness::ResponsesGoAnywhere);
        Some(if goes_anywhere || accepted.from == self.address_code(from) {
            Repeated::Answer(response())
        } else if is_shown {
            Repeated::AnswerElsewhere(response(), accepted.session)
        } else {
            Repeated::Challenge
        })
    }

    /// Decides on an initiation that isn't remembered. `is_shown` says whether its sender has shown
    /// that it receives at `from`, `is_owners` whether it proves to be the owner's; that is asked
    /// only if there is no time for others.
    pub(crate) fn admit<A: PeerAddress>(
        &mut self,
        now: Instant,
        from: &A,
        epoch: &Epoch,
        is_shown: bool,
        is_owners: impl FnOnce() -> bool,
    ) -> Admission {
        if !self.accepts(now, epoch) {
            return Admission::Challenge;
        }
        let admission = self.admit_anybody(now, from, is_shown);
        if is_planted(Weakness::OneHostTakesHandshakes) {
            return admission;
        }
        if admission != Admission::Admit && is_owners() && self.for_owner.take(now) {
            return Admission::Admit;
        }
        admission
    }

    /// Whether initiations that name that epoch are accepted.
    pub(crate) fn accepts(&mut self, now: Instant, epoch: &Epoch) -> bool {
        self.end_epochs(now);
        let is_previous = self.previous.as_ref().is_some_and(|previous| previous.epoch == *epoch);
        *epoch == self.epoch || is_previous
    }

    fn admit_anybody<A: PeerAddress>(
        &mut self,
        now: Instant,
        from: &A,
        is_shown: bool,
    ) -> Admission {
        let host = is_shown.then(|| self.host(now, from));
        self.shares.forget(now);
        let share = host.map_or(Share::Left, |host| self.shares.of(host));
        let is_fair = !is_planted(Weakness::OneHostTakesHandshakes);
        if is_fair && share == Share::Spent {
            return Admission::Drop;
        }
        if !is_shown && !self.for_anybody.take(now) {
            return Admission::Challenge;
        }
        let left = if is_fair && share != Share::Untouched { self.for_newcomers } else { 0 };
        if !self.in_all.take_and_leave(now, left) {
            return Admission::Drop;
        }
        self.shares.count(host);
        Admission::Admit
    }

    /// Whether the sender of an initiation has shown that it receives at `from`, by a cookie that was
    /// given out there not long ago.
    pub(crate) fn shows_address<A: PeerAddress>(
        &self,
        now: Instant,
        from: &A,
        initiation: &Initiation<'_>,
    ) -> bool {
        let Initiation { header, noise, proof: shown, .. } = initiation;
        self.cookies(now, from).any(|cookie| equal(&proof(&cookie.0, *header, noise), shown))
    }

    /// Remembers an initiation that was accepted. Where there is no room, the epoch of the oldest
    /// ends.
    pub(crate) fn accept<A: PeerAddress>(&mut self, now: Instant, acceptance: Acceptance<'_, A>) {
        let Acceptance { epoch, echo, from, session, response } = acceptance;
        let from = self.address_code(from);
        while self.accepted.len() >= self.accepted_max {
            let Some(oldest) = self.accepted.pop_front() else { break };
            self.by_echo.remove(beginning(&oldest.echo.0), self.forgotten);
            self.forgotten += 1;
            if oldest.epoch == self.epoch {
                self.epochs_cut += 1;
                self.begin_epoch(now);
            }
            self.previous.take_if(|previous| previous.epoch == oldest.epoch);
        }
        // An initiation of an epoch that just ended may stay here: it is refused anyway once it is
        // dropped.
        self.by_echo.insert(beginning(&echo.0), self.forgotten + self.accepted.len() as u64);
        self.accepted.push_back(Accepted { epoch, echo, from, session, response });
    }

    /// How many initiations are remembered, and how often one was forgotten while it counted.
    pub(crate) fn remembered(&self) -> (usize, u64) {
        (self.accepted.len(), self.epochs_cut)
    }

    /// The state that distinguishes gates in the model: epochs and remembered initiations.
    #[cfg(test)]
    pub(crate) fn state_for_model(&self) -> Vec<u8> {
        let mut state = self.epoch.0.to_vec();
        state.extend(self.epoch_began.as_micros().to_le_bytes());
        state.extend(self.previous.iter().flat_map(|previous| previous.epoch.0));
        for accepted in &self.accepted {
            state.extend(accepted.epoch.0);
            state.extend(accepted.echo.0);
        }
        state
    }

    /// Whether one more refusal may be sent.
    pub(crate) fn may_refuse(&mut self, now: Instant) -> bool {
        self.refusals.take(now)
    }

    /// The cookie for an address.
    pub(crate) fn cookie<A: PeerAddress>(&self, now: Instant, address: &A) -> Cookie {
        self.cookie_of_period(cookie_period(now), address)
    }

    /// Whether a cookie was given to that address, not long ago.
    pub(crate) fn cookie_is_valid<A: PeerAddress>(
        &self,
        now: Instant,
        address: &A,
        cookie: &Cookie,
    ) -> bool {
        self.cookies(now, address).any(|valid| equal(&valid.0, &cookie.0))
    }

    /// The cookies of an address that are accepted now.
    fn cookies<A: PeerAddress>(&self, now: Instant, address: &A) -> impl Iterator<Item = Cookie> {
        let period = cookie_period(now);
        let periods = [Some(period), period.checked_sub(1)].into_iter().flatten();
        periods.map(|period| self.cookie_of_period(period, address))
    }

    fn cookie_of_period<A: PeerAddress>(&self, period: u64, address: &A) -> Cookie {
        let mut mac = AddressMac(self.mac(b"cookie"));
        mac.write_u64(period);
        address.hash(&mut mac);
        Cookie(truncated(&mac.0.finish()))
    }

    fn address_code<A: PeerAddress>(&self, address: &A) -> [u8; 16] {
        let mut mac = AddressMac(self.mac(b"address"));
        address.hash(&mut mac);
        truncated(&mac.0.finish())
    }

    /// The place of an address's host among the [`Self::shares`].
    fn host<A: PeerAddress>(&self, now: Instant, address: &A) -> usize {
        let mut mac = AddressMac(self.mac(b"host"));
        mac.write_u64(now.as_micros() / REHASH_PERIOD.as_micros() as u64);
        address.hash_host(&mut mac);
        mac.finish() as usize % HOSTS
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

#[cfg(test)]
mod tests;
