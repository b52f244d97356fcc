//! Touches of a device whose hub takes them: each says, in the session, that the record which the hub has still holds. So that
//! lasts for long, and the device signs and sends another one when something changes, or before it ends.
//!
//! Invariants:
//! - Only a hub that said so is touched; at one that doesn't know what that is, records are renewed as before.
//! - Other calls to the hub put a touch off, and no longer than until twice the time between two.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_wire::directory::{Registered, SignedRecord, Stay, Touch, Touched, function};
use tenure_wire::{NoResult, message};

use super::Registration;
use crate::directory::Directory;
use crate::known_hub::KnownHub;
use crate::moment::Moment;
use crate::outbound::{Outbound, Purpose};
use crate::services::Services;

/// How long a record lasts whose device touches: less than any may by two hours, by which clocks may differ.
const LASTS: Duration = Duration::from_secs(22 * 60 * 60);

/// How a device stands with its hub's touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touching {
    /// Whether the hub said that it takes touches.
    is_offered: bool,
    /// Whether it refused a record that lasts for so long.
    is_given_up: bool,
    /// Whether the registration that is under way, or was answered last, says that the device stays.
    stays: bool,
    /// The number of the record that was sent last.
    sequence: u64,
    /// When to touch next; `None` while a touch is under way, and where none counts.
    at: Option<Instant>,
    /// When the hub was touched last.
    touched_at: Instant,
}

/// The hub's answer to a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The hub heard it.
    Heard {
        /// The hub's clock, in seconds since 1970 UTC.
        unix_s: u64,
        /// Whether it may have work.
        may_have_work: bool,
    },
    /// It wants the record.
    WantsRecord,
    /// It is crowded, and gives the device a turn in that time.
    Later(Duration),
    /// It forgot the session, or what touches are.
    Forgotten,
    /// There is none that counts.
    Silent,
}

impl Touching {
    /// Nothing known of the hub yet.
    pub(super) const NONE: Self = Self {
        is_offered: false,
        is_given_up: false,
        stays: false,
        sequence: 0,
        at: None,
        touched_at: Instant::BOOT,
    };

    /// How long the next record lasts, of a device that may be silent for `life`.
    pub(super) fn lasts(&self, life: Duration) -> Duration {
        if self.is_offered { LASTS.max(life) } else { life }
    }

    /// The call by which a record of that number is sent.
    pub(super) fn registration(
        &mut self,
        record: SignedRecord,
        sequence: u64,
        life: Duration,
    ) -> (&'static str, Vec<u8>) {
        (self.stays, self.sequence, self.at) = (self.is_offered, sequence, None);
        if !self.stays {
            return (function::REGISTER, message::encode(&record));
        }
        let life_s = u32::try_from(life.as_secs()).unwrap_or(u32::MAX);
        (function::STAY, message::encode(&Stay { record, life_s }))
    }

    /// Whether the record that was sent last lasts for long, as the device touches meanwhile.
    pub(super) fn stays(&self) -> bool {
        self.stays
    }

    /// Takes note of a record that is in force; returns when to send the next one.
    pub(super) fn registered(
        &mut self,
        answer: Registered,
        now: Instant,
        hub: &KnownHub,
        life: Duration,
    ) -> Duration {
        self.is_offered = answer.takes_touches && !self.is_given_up;
        if !self.stays {
            return hub.renew_in(life);
        }
        self.heard(now, hub.renew_in(life));
        // After nine tenths of its life, and up to a tenth sooner on some devices than on others.
        hub.renew_in(LASTS.max(life)) * 27 / 10
    }

    /// Sends records as before from now on, if the one that was refused lasts longer than those.
    pub(super) fn give_up(&mut self) -> bool {
        self.is_given_up |= self.stays;
        self.is_refused()
    }

    /// Whether a hub was sent what one of before doesn't know; the next record is sent as before.
    fn is_refused(&mut self) -> bool {
        (self.is_offered, self.at) = (false, None);
        core::mem::take(&mut self.stays)
    }

    /// When to touch.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        self.at
    }

    /// The touch that is due, if the record that the device signed last is the one that it sent: the hub needs a newer one, too.
    fn next(&mut self, signed: u64) -> Option<Vec<u8>> {
        self.at = None;
        let touch = Touch { sequence: self.sequence };
        (signed == self.sequence).then(|| message::encode(&touch))
    }

    fn heard(&mut self, now: Instant, every: Duration) {
        (self.touched_at, self.at) = (now, Some(now + every));
    }
}

impl Registration {
    /// Touches the hub when it is time to.
    pub(super) fn touch<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        (directory, outbound): (&mut Directory, &mut Outbound),
        moment: &mut Moment<'_>,
    ) {
        let is_due = self.touching.at.is_some_and(|at| at <= moment.now);
        if !is_due || !self.is_listed() || self.register_at.is_none() {
            return;
        }
        let Some(touch) = self.touching.next(directory.sequence(services)) else {
            self.register_at = Some(moment.now);
            return;
        };
        let call = (function::TOUCH, touch, Purpose::Touch);
        if !self.call(services, outbound, moment, call) {
            self.silent(&mut services.notices, moment.now);
        }
    }

    /// Takes the hub's answer to a touch; returns whether it counts.
    pub(crate) fn touched<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        outcome: Outcome,
    ) -> bool {
        if self.is_revoked() {
            // It was asked before it was revoked.
            return false;
        }
        match outcome {
            Outcome::Heard { .. } => {
                self.answered(services);
                let life = services.config.record_lifetime;
                let every = self.hub.as_ref().map_or(life / 3, |hub| hub.renew_in(life));
                self.touching.heard(now, every);
            }
            Outcome::WantsRecord => {
                self.answered(services);
                // One that is under way is what it wants.
                self.register_at = self.register_at.map(|_| now);
            }
            Outcome::Later(again_in) => self.deferred(now, again_in),
            Outcome::Forgotten if self.register_at.is_some() => {
                self.forgotten(&mut services.notices, now);
            }
            Outcome::Forgotten => {}
            Outcome::Silent => self.missed(&mut services.notices, now),
        }
        matches!(outcome, Outcome::Heard { .. })
    }

    /// Puts the next touch off, as the hub heard the device, which may be silent for `life`.
    pub(crate) fn spoke(&mut self, now: Instant, life: Duration) {
        let every = self.hub.as_ref().map_or(life / 3, |hub| hub.renew_in(life));
        let Touching { at, touched_at, .. } = &mut self.touching;
        if let Some(at) = at {
            *at = (*at).max((now + every).min(*touched_at + 2 * every));
        }
    }

    /// Whether a registration failed as the hub takes no touches any more; it is sent a record as before then, at once.
    pub(crate) fn takes_no_touches(&mut self, now: Instant) -> bool {
        let is_refused = self.touching.is_refused();
        if is_refused {
            self.register_at = Some(now);
        }
        is_refused
    }
}

impl Outcome {
    /// What a hub answered.
    pub(crate) fn of(result: Result<Option<Vec<u8>>, NoResult>) -> Self {
        let bytes = match result {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(NoResult::Deferred { again_in }) => return Self::Later(again_in),
            Err(NoResult::OutcomeUnknown | NoResult::NoSuchFunction) => return Self::Forgotten,
            Err(_) => return Self::Silent,
        };
        match message::decode::<Touched>(&bytes) {
            Ok(Touched { counts: false, .. }) => Self::WantsRecord,
            Ok(Touched { unix_s, may_have_work, .. }) => Self::Heard { unix_s, may_have_work },
            Err(_) => Self::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touch_and_its_answer_take_thirty_two_bytes_at_most() {
        let touch = message::encode(&Touch { sequence: u64::MAX });
        // With the function's name, its length, and those of the parameter.
        let call = 1 + function::TOUCH.len() + 2 + touch.len();
        let answer = Touched { unix_s: u64::MAX, counts: true, may_have_work: true };
        let sizes = [call, message::encode(&answer).len()];
        assert!(sizes.iter().all(|size| *size <= 32), "{sizes:?}");
    }

    #[test]
    fn answers_that_do_not_count_are_told_apart() {
        let touched = |counts, may_have_work| {
            Ok(Some(message::encode(&Touched { unix_s: 7, counts, may_have_work })))
        };
        let later = Duration::from_secs(3);
        for (answer, outcome) in [
            (touched(true, false), Outcome::Heard { unix_s: 7, may_have_work: false }),
            (touched(false, true), Outcome::WantsRecord),
            (Err(NoResult::Deferred { again_in: later }), Outcome::Later(later)),
            (Err(NoResult::OutcomeUnknown), Outcome::Forgotten),
            (Err(NoResult::NoSuchFunction), Outcome::Forgotten),
            (Err(NoResult::Unreachable), Outcome::Silent),
            (Ok(None), Outcome::Silent),
            (Ok(Some([1].to_vec())), Outcome::Silent),
        ] {
            assert_eq!(Outcome::of(answer.clone()), outcome, "{answer:?}");
        }
        // A later version of the hub says more.
        let mut longer = touched(true, true).ok().flatten().unwrap_or_default();
        longer.push(9);
        let heard = Outcome::Heard { unix_s: 7, may_have_work: true };
        assert_eq!(Outcome::of(Ok(Some(longer))), heard);
    }
}
