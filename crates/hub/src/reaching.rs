//! How devices are reached: directly, or by this hub, which relays to them.

use core::time::Duration;

use tenure_directory::{Entry, check_asker};
use tenure_wire::directory::{Asker, NotRelayed, Reach, Reached};
use tenure_wire::{PublicKey, VerifyingKey};

use crate::looks::{Judged, Verdict};
use crate::relay::Caller;
use crate::{Hub, Moment, Notice, Reachable, Storage};

/// The most askers whose word is remembered.
const ASKERS_MAX: usize = 1024;
/// How many askers' words are checked in a second: each is a signature.
pub(crate) const ASKERS_PER_SECOND: u32 = 50;

impl<S: Storage> Hub<S> {
    /// Says how a device can be reached, and opens the way there for whom this hub relays.
    pub(crate) fn reach(
        &mut self,
        moment: &mut Moment<'_>,
        caller: Caller,
        reach: &Reach,
    ) -> Reached {
        let Reach { query, asker } = reach;
        let Some(entry) = self.find(moment, &caller.0, query) else {
            return Reached { found: None, answers_others: None, relayed: Err(NotRelayed::Away) };
        };
        let answers_others = match self.looks.verdict(&entry.record.device_machine, &entry.seen_at)
        {
            Verdict::Open => Some(true),
            Verdict::Shut => Some(false),
            Verdict::Unknown => None,
        };
        let relayed = self.relay_to(moment, caller, asker.as_ref(), &entry);
        Reached { found: Some(entry.found()), answers_others, relayed }
    }

    /// The way by which this hub relays between `caller` and a device of the same owner.
    pub(crate) fn relay_to(
        &mut self,
        moment: &mut Moment<'_>,
        caller: Caller,
        asker: Option<&Asker>,
        entry: &Entry,
    ) -> Result<[u8; 8], NotRelayed> {
        if !self.relay.is_on() {
            return Err(NotRelayed::Never);
        }
        let (owner, device) = (entry.record.owner, entry.record.device_machine);
        if self.owner_of(moment, &caller.0, asker)? != owner {
            return Err(NotRelayed::Stranger);
        }
        if self.endpoint.shown_route(moment.now, &self.machine, &device, None).is_none() {
            // One that is there shows it before the next look.
            self.endpoint.ask_where(moment.now, &self.machine, &device);
            return Err(NotRelayed::Away);
        }
        self.relay.open(moment.now, moment.entropy, owner, (caller, device))
    }

    /// Whose the session of `peer` is: by its record if it is a device, else by its own signed word.
    fn owner_of(
        &mut self,
        moment: &Moment<'_>,
        peer: &PublicKey,
        asker: Option<&Asker>,
    ) -> Result<VerifyingKey, NotRelayed> {
        let device = self.listed.of_device_machine(peer);
        if let Some(entry) = device.filter(|entry| entry.is_in_force(moment.unix_time.seconds)) {
            return Ok(entry.record.owner);
        }
        let asker = asker.ok_or(NotRelayed::Stranger)?;
        if self.askers.get(peer) == Some(&asker.owner) {
            return Ok(asker.owner);
        }
        self.askers_pace.fill(moment.now, ASKERS_PER_SECOND, Duration::from_secs(1));
        if self.askers_pace.tokens() < 1 {
            return Err(NotRelayed::Busy);
        }
        self.askers_pace.take(1);
        check_asker(asker, self.key, *peer).map_err(|_| NotRelayed::Signature)?;
        if self.askers.len() >= ASKERS_MAX {
            self.askers.clear();
        }
        self.askers.insert(*peer, asker.owner);
        Ok(asker.owner)
    }

    /// Takes note whether a device answers others than this hub.
    pub(crate) fn judge(&mut self, judged: &Judged) {
        let Some(entry) = self.listed.of_device_machine(&judged.device) else { return };
        let (device, address) = (entry.record.enrolment.device.clone(), entry.seen_at.clone());
        let reachable = match (judged.is_open, self.relay.is_on()) {
            (true, _) => Reachable::Directly,
            (false, true) => Reachable::ByHub,
            (false, false) => Reachable::ByNobody,
        };
        self.is_dirty = true;
        // If that fails, so does the commit, which says why.
        let _ = self.storage.judged(&device, reachable);
        if judged.is_news && reachable != Reachable::Directly {
            let is_relayed = reachable == Reachable::ByHub;
            self.notify(Notice::Shut { device, address, is_relayed });
        }
    }
}
