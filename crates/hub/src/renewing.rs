//! Renewals: the next records of devices which say what the ones before said, but for how long and from where. They are nearly
//! all that a fleet says, and a storage that others write to as well takes those of a turn at once, each if the record before
//! stands there still.

use alloc::vec::Vec;
use core::mem;

use tenure_directory::Entry;
use tenure_rpc::IncomingCallHandle;
use tenure_wire::directory::{DeviceRecord, Refusal, Registered, SignedRecord};

use crate::storage::{Failure, Kept, LATER, Renewal, Storage};
use crate::touching::ends_of;
use crate::{Call, Hub, Moment, Notice, encode};

/// A renewal that waits for the end of the turn.
pub(crate) struct Renewing {
    pub(crate) handle: IncomingCallHandle,
    pub(crate) call: Call,
    pub(crate) signed: SignedRecord,
    pub(crate) record: DeviceRecord,
    /// How long the device may be silent, if it touches from now on.
    pub(crate) life_s: Option<u32>,
}

impl<S: Storage> Hub<S> {
    /// Whether a record may be stored with the other renewals of this turn: by what this hub remembers, it is a good one that
    /// says what the one before says.
    pub(crate) fn may_renew(&self, record: &DeviceRecord) -> bool {
        let device = &record.enrolment.device;
        let Some(Entry { record: before, .. }) = self.listed.device(device) else { return false };
        let is_alike = before.owner == record.owner
            && before.enrolment == record.enrolment
            && before.enrolment_signature == record.enrolment_signature
            && before.device_machine == record.device_machine
            && before.machines == record.machines
            && before.succession == record.succession;
        is_alike && self.listed.table().assess(record) == Ok(true)
    }

    /// Whether a device has a renewal that waits.
    pub(crate) fn is_renewing(&self, record: &DeviceRecord) -> bool {
        let device = &record.enrolment.device;
        self.renewing.iter().any(|renewing| renewing.record.enrolment.device == *device)
    }

    /// Stores the renewals of this turn, and answers them. Those whose device isn't in the storage as this hub remembers it are
    /// registered like any other record.
    pub(crate) fn renew(&mut self, moment: &mut Moment<'_>) {
        if self.renewing.is_empty() {
            return;
        }
        let (renewing, mut others): (Vec<_>, Vec<_>) = mem::take(&mut self.renewing)
            .into_iter()
            .partition(|renewing| self.may_renew(&renewing.record));
        let unix_s = moment.unix_time.seconds;
        let renewals: Vec<Renewal> =
            renewing.iter().filter_map(|one| self.renewal(one, unix_s)).collect();
        let kept = if renewals.is_empty() {
            Ok(Vec::new())
        } else {
            self.storage.renew(&renewals, unix_s)
        };
        match kept {
            Ok(kept) => {
                let are_kept = kept.into_iter().chain(core::iter::repeat(false));
                for (one, is_kept) in renewing.into_iter().zip(are_kept) {
                    if is_kept { self.renewed(moment, one) } else { others.push(one) }
                }
            }
            Err(error) if error.failure == Failure::Conflict => others.extend(renewing),
            Err(error) => {
                self.notify(Notice::NotStored { reason: error.reason });
                let full = encode(&self.registered(Some(Refusal::Full), unix_s));
                for Renewing { handle, .. } in renewing {
                    let result = match error.failure {
                        Failure::Refused => Ok(Some(full.clone())),
                        _ => Err(LATER),
                    };
                    self.endpoint.reply(moment.now, handle, result);
                }
            }
        }
        for Renewing { handle, call, record, .. } in others {
            self.pace.give_back(&record.enrolment.device);
            self.is_careful = true;
            self.take_call(moment, handle, call);
            self.is_careful = false;
        }
        self.commit(moment);
    }

    fn renewal(&self, renewing: &Renewing, unix_s: u64) -> Option<Renewal> {
        let Renewing { call, signed, record, life_s, .. } = renewing;
        let device = record.enrolment.device.clone();
        let Entry { signed: before, seen_at, .. } = self.listed.device(&device)?.clone();
        Some(Renewal {
            device,
            before: Kept { record: before, seen_at },
            kept: Kept { record: signed.clone(), seen_at: call.from.clone() },
            ends_unix_s: ends_of(record, *life_s, unix_s),
        })
    }

    fn registered(&self, refusal: Option<Refusal>, unix_s: u64) -> Registered {
        let takes_touches = self.config.takes_touches;
        Registered { refusal, unix_s, devices_max: None, takes_touches }
    }

    fn renewed(&mut self, moment: &mut Moment<'_>, renewing: Renewing) {
        let Renewing { handle, call, signed, record, life_s } = renewing;
        let unix_s = moment.unix_time.seconds;
        let device = record.enrolment.device.clone();
        if let Some(notice) = self.announcement(unix_s, &record, &call.from) {
            self.notify(notice);
        }
        let (machine, address) = (record.device_machine, call.from.clone());
        self.listed.put(record, signed, call.from);
        self.listed.live(&device, life_s, unix_s);
        self.listed.hear(&device, unix_s);
        self.looks.note(moment.now, moment.entropy, machine, &address);
        self.counts.records += 1;
        let answer = encode(&self.registered(None, unix_s));
        self.endpoint.reply(moment.now, handle, Ok(Some(answer)));
    }
}
