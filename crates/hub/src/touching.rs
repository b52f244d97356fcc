//! Touches: a session that lives proves that its device is there, so that its record needn't be signed, checked and stored again.
//! And what a hub that is late tells devices, which costs it no more.

use core::time::Duration;

use tenure_wire::directory::{DeviceRecord, Refusal, SignedRecord, Stay, Touch, Touched, function};
use tenure_wire::hub::function as service;
use tenure_wire::{NoResult, PublicKey, message};

use crate::lives::{Lives, STORED_AT_ONCE};
use crate::storage::{Answered, Heard, Storage};
use crate::{Call, Hub, Moment, Notice};

/// After so long a turn of the board, in which who came waited half of that, devices are told to ask again later for what they ask for
/// by themselves.
pub(crate) const LATE: Duration = Duration::from_millis(500);
/// After so long a turn, records that aren't urgent wait as well.
const VERY_LATE: Duration = Duration::from_secs(1);
/// How long a device has to be in force still for its record to wait, in seconds.
const IN_HAND_S: u64 = 30;
/// When it is to ask again: at the soonest, and up to so much later.
const AGAIN_MIN: Duration = Duration::from_secs(5);
const AGAIN_SPREAD: Duration = Duration::from_secs(5);

/// What devices said to a hub since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Touches that counted.
    pub touches: u64,
    /// Records that were taken.
    pub records: u64,
    /// Calls whose devices were told to come later, as the hub was late.
    pub later: u64,
}

/// A record as its device sent it.
pub(crate) struct Statement {
    pub(crate) signed: SignedRecord,
    /// How long the device may be silent, if it touches from now on.
    pub(crate) life_s: Option<u32>,
}

impl Statement {
    /// Reads it; nothing is checked yet.
    pub(crate) fn read(call: &Call) -> Result<Self, Refusal> {
        let malformed = |_| Refusal::Malformed;
        if call.function == function::STAY {
            let stay: Stay = postcard::from_bytes(&call.parameter).map_err(malformed)?;
            return Ok(Self { signed: stay.record, life_s: Some(stay.life_s) });
        }
        let signed = postcard::from_bytes(&call.parameter).map_err(malformed)?;
        Ok(Self { signed, life_s: None })
    }
}

/// Until when a device is in force that sends this record at that moment.
pub(crate) fn ends_of(record: &DeviceRecord, life_s: Option<u32>, unix_s: u64) -> u64 {
    let life = life_s.map(|life_s| Lives::end_of(life_s, unix_s));
    life.map_or(record.expires_unix_s, |end| end.min(record.expires_unix_s))
}

impl<S: Storage> Hub<S> {
    /// What devices said since the start.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes note of how long the board's last turn took, from the first datagram to the last: so long somebody may have waited.
    pub fn took(&mut self, turn: Duration) {
        self.turn = turn;
    }

    /// Takes a touch. It counts for the record that the hub has, from where that came.
    pub(crate) fn touch(&mut self, moment: &mut Moment<'_>, call: &Call) -> Answered {
        let Call { peer, from, parameter, .. } = call;
        let Touch { sequence } = message::decode(parameter).map_err(|_| NoResult::Execution)?;
        let unix_s = moment.unix_time.seconds;
        let known = self.listed.of_device_machine(peer).filter(|entry| {
            let is_same = entry.record.sequence == sequence && entry.seen_at == *from;
            is_same && entry.is_in_force(unix_s)
        });
        let device = known.map(|entry| entry.record.enrolment.device.clone());
        let counts = device.is_some_and(|device| self.listed.touch(&device, unix_s));
        if counts {
            self.counts.touches += 1;
            self.looks.note(moment.now, moment.entropy, *peer, from);
        }
        let may_have_work = self.storage.may_have_work();
        Ok(Some(message::encode(&Touched { unix_s, counts, may_have_work })))
    }

    /// Takes note that somebody said something in a session: a device that touches is there.
    pub(crate) fn spoke(&mut self, peer: &PublicKey, unix_s: u64) {
        let entry = self.listed.of_device_machine(peer);
        let device = entry.map(|entry| entry.record.enrolment.device.clone());
        if let Some(device) = device {
            self.listed.touch(&device, unix_s);
        }
    }

    /// In how long a device is to ask again for what a hub that is late does not look at now.
    pub(crate) fn put_off(&mut self, call: &Call, unix_s: u64) -> Option<Duration> {
        let is_put_off = match call.function.as_str() {
            service::WORK | service::PART | service::REPORT | service::LOG => self.turn >= LATE,
            function::REGISTER | function::STAY => {
                self.turn >= VERY_LATE && is_in_hand(self, call, unix_s)
            }
            _ => false,
        };
        if !is_put_off {
            return None;
        }
        self.counts.later += 1;
        // Each device at a moment of its own.
        Some(AGAIN_MIN + AGAIN_SPREAD * u32::from(call.peer.0[0]) / 256)
    }

    /// Stores that devices were heard of which that would end soon, many at once.
    pub(crate) fn store_heard(&mut self, unix_s: u64) {
        let heard = self.listed.heard(unix_s);
        if !heard.is_empty() {
            store(self, &heard);
        }
    }

    /// Stores until when all devices that touched are in force, as the hub ends: others on the same storage judge by that until
    /// these devices have turned to one of them.
    pub fn end(&mut self) {
        for heard in self.listed.unstored().chunks(STORED_AT_ONCE) {
            if !store(self, heard) {
                return;
            }
        }
    }
}

/// Stores that these devices were heard; returns whether that succeeded.
fn store<S: Storage>(hub: &mut Hub<S>, heard: &[Heard]) -> bool {
    let stored = hub.storage.heard(heard);
    // After a write that failed it fails, too, and has the storage begin anew.
    let committed = hub.storage.commit();
    let stored = stored.and(committed);
    let is_stored = stored.is_ok();
    hub.listed.stored(heard, is_stored);
    if let Err(error) = stored {
        hub.notify(Notice::NotStored { reason: error.reason });
    }
    is_stored
}

/// Whether the device that speaks is in force for long enough to wait, and listed where it is; as it speaks, it isn't overdue
/// meanwhile.
fn is_in_hand<S: Storage>(hub: &mut Hub<S>, call: &Call, unix_s: u64) -> bool {
    let Some(entry) = hub.listed.of_device_machine(&call.peer) else { return false };
    let is_in_hand = hub.listed.end_of(entry) >= unix_s.saturating_add(IN_HAND_S);
    if !is_in_hand || entry.seen_at != call.from {
        return false;
    }
    let device = entry.record.enrolment.device.clone();
    hub.listed.hear(&device, unix_s);
    true
}
