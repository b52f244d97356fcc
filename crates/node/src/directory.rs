//! The directory as this device uses it: being listed, finding others, listing them.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_directory::{Entry, Table};
use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Flash, Instant, UnixTime};
use tenure_kernel::CallId;
use tenure_rpc::OutgoingCall;
use tenure_wire::control::HubTrust;
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::{
    Found, ListFrom, Listing, Query, Refusal, Registered, SignedRecord, function,
};
use tenure_wire::{Name, PublicKey, VerifyingKey};

use crate::config::Config;
use crate::hub::KnownHub;
use crate::identity::RecordContents;
use crate::kept_hub::KeptHub;
use crate::node::{Moment, Node, Notice};
use crate::outbound::{Purpose, Waiter};

/// How long the directory may take to answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);
/// How often it is tried within that time.
const ATTEMPTS: u8 = 4;
/// The shortest time between two records that tell the directory, or the mesh, of nothing but a new epoch.
/// Strangers set the pace of epochs, and a peer that knows an old one loses one round trip alone.
pub(crate) const EPOCH_PERIOD: Duration = Duration::from_secs(60);
/// How soon to try again after it refused, which waiting alone seldom mends.
const RETRY_REFUSED: Duration = Duration::from_secs(10);
/// The most keys that one listing gathers.
const LISTED_MAX: usize = 512;

/// What this device knows of the directory and through it.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) hub: Option<KnownHub>,
    table: Table,
    /// The records, by device and number, whose device wasn't where they say.
    doubted: Vec<(Name, u64)>,
    pub(crate) standing: Standing,
    /// When to register next; `None` while a registration is under way.
    pub(crate) register_at: Option<Instant>,
    /// The epoch in the record that was sent last, and when it was sent.
    published: Option<(Epoch, Instant)>,
    /// Whether something changed while a registration was under way.
    is_stale: bool,
    /// The record that was signed last.
    signed: Option<Signed>,
    /// Records made since boot.
    records: u32,
    queries: Vec<(Query, Vec<Waiter>)>,
    listing: Option<Gathering>,
}

/// A record as it was signed, and until when it is shown to whoever asks.
#[derive(Clone, Debug)]
struct Signed {
    record: SignedRecord,
    machines: Vec<(Name, PublicKey)>,
    fresh_until: Instant,
}

/// How this device stands with the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has not answered yet.
    Unknown,
    /// It lists this device.
    Listed,
    /// It refuses to.
    Refused(Refusal),
    /// It doesn't answer.
    Silent,
    /// Its address shows this key, which isn't the one that this device trusts.
    OtherKey(PublicKey),
}

/// A listing under way.
#[derive(Debug, Default)]
struct Gathering {
    keys: Vec<PublicKey>,
    seen: u32,
    waiters: Vec<CallId>,
}

impl Directory {
    pub(crate) fn new(config: &Config, kept: Option<KeptHub>, now: Instant) -> Self {
        Self {
            hub: config.hub.as_ref().map(|hub| KnownHub::new(hub, kept)),
            table: Table::new([config.owner.verifying_key].to_vec(), config.records_max),
            doubted: Vec::new(),
            standing: Standing::Unknown,
            register_at: Some(now),
            published: None,
            is_stale: false,
            signed: None,
            records: 0,
            queries: Vec::new(),
            listing: None,
        }
    }

    pub(crate) fn is_hub(&self, key: &PublicKey) -> bool {
        self.hub.as_ref().and_then(KnownHub::trusted_key) == Some(*key)
    }

    /// Those who wait for what `query` asks for; they wait no longer.
    pub(crate) fn take_waiters(&mut self, query: &Query) -> Vec<Waiter> {
        let position = self.queries.iter().position(|(asked, _)| asked == query);
        position.map_or_else(Vec::new, |position| self.queries.swap_remove(position).1)
    }

    /// How many calls wait for the name of who made them.
    pub(crate) fn callers_waiting(&self) -> usize {
        let waiters = self.queries.iter().flat_map(|(_, waiters)| waiters);
        waiters.filter(|waiter| matches!(waiter, Waiter::Caller(..))).count()
    }

    /// Takes note that the device that holds the machine with `key` isn't where its record says: whoever
    /// looks for it next asks for a newer record, and uses this one if there is none.
    pub(crate) fn doubt(&mut self, key: &PublicKey) {
        let Some(entry) = self.table.find_whenever(&Query::Key(*key)) else { return };
        let doubted = (entry.record.enrolment.device.clone(), entry.record.sequence);
        if self.doubted.contains(&doubted) {
            return;
        }
        // One a device: what is here of records that were replaced goes.
        let table = &self.table;
        self.doubted.retain(|(device, sequence)| {
            let known = table.find_whenever(&Query::Device(device.clone()));
            known.is_some_and(|entry| entry.record.sequence == *sequence)
        });
        self.doubted.push(doubted);
    }

    /// Takes note that no newer record can be had of the device that `query` asks for.
    fn trust_again(&mut self, query: &Query) {
        let Some(entry) = self.table.find_whenever(query) else { return };
        let device = &entry.record.enrolment.device;
        self.doubted.retain(|(doubted, _)| doubted != device);
    }

    /// Forgets the record that was signed last: the device goes by another name now.
    pub(crate) fn forget_signed(&mut self) {
        self.signed = None;
    }

    /// Takes records of that owner's devices alone from now on.
    pub(crate) fn change_owner(&mut self, owner: VerifyingKey) {
        self.table.trust_only([owner].to_vec());
        self.doubted.clear();
        self.signed = None;
    }

    /// Forgets the record of the device that signs with `key`; returns the machines that it listed.
    pub(crate) fn forget_device(&mut self, key: &VerifyingKey) -> Vec<PublicKey> {
        let of_it = self.table.entries().filter(|entry| entry.record.enrolment.device_key == *key);
        let known: Vec<(Name, Vec<PublicKey>)> = of_it
            .map(|entry| {
                let machines = entry.record.machines.iter().map(|(_, machine)| *machine);
                (entry.record.enrolment.device.clone(), machines.collect())
            })
            .collect();
        known.iter().for_each(|(name, _)| self.table.forget(name));
        known.into_iter().flat_map(|(_, machines)| machines).collect()
    }

    /// Whether the device of `entry` wasn't where it says.
    fn doubts(&self, entry: &Entry) -> bool {
        let of = |(device, sequence): &(Name, u64)| {
            *device == entry.record.enrolment.device && *sequence == entry.record.sequence
        };
        self.doubted.iter().any(of)
    }

    /// The last record that answers `query`, however old it is.
    pub(crate) fn last_record(&self, query: &Query) -> Option<&Entry> {
        self.table.find_whenever(query)
    }

    /// Whether `key` is that of the own machine of a device that is known.
    pub(crate) fn is_device(&self, key: &PublicKey) -> bool {
        self.table.entries().any(|entry| entry.record.device_machine == *key)
    }

    /// Whether a newer record can be had from the hub, as far as is known.
    pub(crate) fn hub_answers(&self) -> bool {
        self.standing == Standing::Listed
    }

    /// Has a silent hub tried again soon: its owner is there, and may have started it.
    pub(crate) fn retry_soon(&mut self, now: Instant) {
        let soon = now + RETRY_REFUSED;
        let is_silent = self.hub.as_ref().is_some_and(|hub| hub.silences > 0);
        if is_silent && let Some(at) = &mut self.register_at {
            *at = (*at).min(soon);
        }
    }

    /// How the hub's last silences and the next try go over a deep sleep.
    pub(crate) fn pace(&self) -> (u32, Option<Instant>) {
        (self.hub.as_ref().map_or(0, |hub| hub.silences), self.register_at)
    }

    /// Goes on in the pace that an earlier boot had when it fell asleep.
    pub(crate) fn keep_pace(&mut self, (silences, register_at): (u32, Option<Instant>)) {
        let Some(hub) = &mut self.hub else { return };
        if silences > 0 {
            hub.silences = silences;
            self.standing = Standing::Silent;
            self.register_at = register_at.or(self.register_at);
        }
    }
}

impl<F: Flash> Node<F> {
    /// Whether the directory lists this device.
    pub(crate) fn is_registered(&self) -> bool {
        self.directory.standing == Standing::Listed
    }

    /// Lets the directory know soon that something changed.
    pub(crate) fn register_soon(&mut self, now: Instant) {
        #[cfg(feature = "mesh")]
        self.announce_soon(now);
        match &mut self.directory.register_at {
            // A hub that is silent isn't asked sooner because something changed.
            Some(_) if self.directory.hub.as_ref().is_some_and(|hub| hub.silences > 0) => {}
            Some(at) => *at = now,
            None => self.directory.is_stale = true,
        }
    }

    /// When the directory wants attention by itself.
    pub(crate) fn directory_wakes_at(&self) -> Option<Instant> {
        let hub = self.directory.hub.as_ref().filter(|hub| hub.trust != HubTrust::Revoked)?;
        // The end of a question that is under way is the sessions' to watch.
        if hub.asked.is_some() { None } else { self.directory.register_at }
    }

    /// The record that answers `query`, if one is known and in force.
    pub(crate) fn record(&self, moment: &Moment<'_>, query: &Query) -> Option<&Entry> {
        let entry = self.directory.table.find(query, self.directory_time(moment)?.seconds)?;
        (!self.directory.doubts(entry)).then_some(entry)
    }

    /// As [`Self::record`], and the last one that was in force where no newer one can be had: the
    /// address in it is a hint, and the session proves the key.
    pub(crate) fn record_or_last(&self, moment: &Moment<'_>, query: &Query) -> Option<&Entry> {
        let last = || self.directory.last_record(query).filter(|_| !self.directory.hub_answers());
        self.record(moment, query).or_else(last)
    }

    /// The time by which records are judged.
    fn directory_time(&self, moment: &Moment<'_>) -> Option<UnixTime> {
        #[cfg(feature = "mesh")]
        return self.records_time(moment);
        #[cfg(not(feature = "mesh"))]
        self.unix_time(moment)
    }

    /// Registers when it is time to, and finds out the directory's key before that.
    pub(crate) fn attend_to_directory(&mut self, moment: &mut Moment<'_>) {
        let epoch = self.endpoint.epoch();
        // Nor is a silent hub asked sooner because of a new epoch.
        let is_silent = self.directory.hub.as_ref().is_some_and(|hub| hub.silences > 0);
        if let Some((published, at)) = self.directory.published
            && published != epoch
            && !is_silent
            && let Some(register_at) = &mut self.directory.register_at
        {
            let period = match is_planted(Weakness::StrangersSetThePace) {
                true => Duration::ZERO,
                false => EPOCH_PERIOD,
            };
            *register_at = (*register_at).min((at + period).max(moment.now));
        }
        let Some(hub) = &self.directory.hub else { return };
        if self.directory.register_at.is_none_or(|at| at > moment.now)
            || hub.asked.is_some()
            || hub.trust == HubTrust::Revoked
        {
            return;
        }
        if hub.key.is_none() || hub.epoch.is_none() {
            self.ask_who_is_the_hub(moment);
        } else if self.is_enrolled() {
            self.register(moment);
        } else {
            self.directory.register_at = Some(moment.now + RETRY_REFUSED);
        }
    }

    /// Takes the directory's answer to a registration.
    pub(crate) fn registration_done(&mut self, moment: &Moment<'_>, answer: Option<Vec<u8>>) {
        if self.directory.hub.as_ref().is_some_and(|hub| hub.trust == HubTrust::Revoked) {
            // It was asked before it was revoked.
            return;
        }
        let answer = answer.and_then(|bytes| postcard::from_bytes::<Registered>(&bytes).ok());
        let Some(Registered { refusal, unix_s }) = answer else {
            return self.hub_silent(moment.now);
        };
        let knew_the_time = self.unix_time(moment).is_some();
        self.hub_answered();
        self.hub_told_time(moment, UnixTime { seconds: unix_s });
        let is_stale = core::mem::take(&mut self.directory.is_stale);
        let wait = match refusal {
            None if is_stale => Duration::ZERO,
            None => self.config.record_lifetime / 3,
            Some(Refusal::Expired) if !knew_the_time => Duration::ZERO,
            Some(_) => RETRY_REFUSED,
        };
        self.directory.register_at = Some(moment.now + wait);
        match refusal {
            None => self.stand(Standing::Listed),
            Some(refusal) if knew_the_time => self.stand(Standing::Refused(refusal)),
            Some(_) => {}
        }
    }

    /// Asks for a record in the name of `waiter`.
    pub(crate) fn ask_directory(&mut self, moment: &mut Moment<'_>, query: Query, waiter: Waiter) {
        #[cfg(feature = "mesh")]
        if self.find_in_mesh(moment, &query) {
            return self.record_arrived(moment, waiter, true);
        }
        let asked = self.directory.queries.iter_mut().find(|(asked, _)| *asked == query);
        if let Some((_, waiters)) = asked {
            // Those whose deadline passed meanwhile make room: so a machine's budget bounds this.
            waiters.retain(|waiter| waiter.is_waiting(moment.now, &self.kernel));
            waiters.push(waiter);
            return;
        }
        let parameter = postcard::to_allocvec(&query).unwrap_or_default();
        if self.call_hub(moment, function::RESOLVE, parameter, Purpose::Query(query.clone())) {
            self.directory.queries.push((query, [waiter].to_vec()));
            return;
        }
        #[cfg(feature = "mesh")]
        {
            let at = match &waiter {
                Waiter::Caller(_, call) => {
                    let caller = call.caller.as_ref().and_then(|caller| self.peers.get(caller));
                    caller.map(|peer| peer.address.clone())
                }
                _ => None,
            };
            if self.await_in_mesh(moment.now, &query, at.as_ref()) {
                self.directory.queries.push((query, [waiter].to_vec()));
                return;
            }
        }
        self.record_arrived(moment, waiter, false);
    }

    /// Takes the directory's answer to a query.
    pub(crate) fn query_done(
        &mut self,
        moment: &mut Moment<'_>,
        query: &Query,
        answer: Result<Option<Vec<u8>>, ()>,
    ) {
        let answered = answer.is_ok();
        if !answered && self.directory.register_at.is_some() {
            self.hub_silent(moment.now);
        }
        let found = answer.ok().flatten().and_then(|bytes| postcard::from_bytes(&bytes).ok());
        if let (Some(found), Some(time)) = (found, self.unix_time(moment)) {
            self.learn(found, time);
        }
        if answered {
            // The hub has no newer one.
            self.directory.trust_again(query);
        }
        for waiter in self.directory.take_waiters(query) {
            self.record_arrived(moment, waiter, answered);
        }
    }

    /// Gathers the keys of machines elsewhere for a machine that asked.
    pub(crate) fn list_peers(&mut self, moment: &mut Moment<'_>, id: CallId) {
        if let Some(gathering) = &mut self.directory.listing {
            gathering.waiters.push(id);
            return;
        }
        self.directory.listing = Some(Gathering { waiters: [id].to_vec(), ..Gathering::default() });
        self.list_from(moment, 0);
    }

    /// Takes a page of the directory's list.
    pub(crate) fn list_done(&mut self, moment: &mut Moment<'_>, answer: Option<Vec<u8>>) {
        let page = answer.and_then(|bytes| postcard::from_bytes::<Listing>(&bytes).ok());
        let Some(gathering) = &mut self.directory.listing else { return };
        let more = page.is_some_and(|page| {
            gathering.seen += page.machines.len() as u32;
            gathering.keys.extend(page.machines.iter().map(|machine| machine.key));
            !page.machines.is_empty()
                && gathering.seen < page.total
                && gathering.keys.len() < LISTED_MAX
        });
        if more {
            let skip = gathering.seen;
            self.list_from(moment, skip);
        } else {
            self.listing_complete(moment);
        }
    }

    /// Notes how the device stands with the directory, and says so if that is new.
    pub(crate) fn stand(&mut self, standing: Standing) {
        if self.directory.standing == standing {
            return;
        }
        self.directory.standing = standing;
        match standing {
            Standing::Unknown => {}
            Standing::Listed => self.notify(Notice::Registered),
            Standing::Refused(refusal) => self.notify(Notice::Refused(refusal)),
            Standing::Silent => self.notify(Notice::HubSilent),
            Standing::OtherKey(key) => self.notify(Notice::HubKeyDiffers { key }),
        }
    }

    fn register(&mut self, moment: &mut Moment<'_>) {
        let lifetime = self.config.record_lifetime;
        let Some(signed) = self.sign_record_for(moment, lifetime) else { return };
        // The one to publish, as it has just been signed.
        self.directory.published = Some((self.endpoint.epoch(), moment.now));
        self.directory.register_at = None;
        let parameter = postcard::to_allocvec(&signed).unwrap_or_default();
        if !self.call_hub(moment, function::REGISTER, parameter, Purpose::Register) {
            self.hub_silent(moment.now);
        }
    }

    /// What this device says of itself, signed; `None` if it isn't enrolled. It is signed anew when its
    /// machines change and otherwise once in a third of a record's life, so that strangers who ask for it
    /// cost no signatures.
    pub(crate) fn signed_record(&mut self, moment: &Moment<'_>) -> Option<SignedRecord> {
        let machines = self.listed_machines();
        let is_fresh =
            |signed: &&Signed| signed.fresh_until > moment.now && signed.machines == machines;
        let known = self.directory.signed.as_ref().filter(is_fresh);
        if let Some(signed) = known.filter(|_| !is_planted(Weakness::SignaturesWithoutLimit)) {
            return Some(signed.record.clone());
        }
        self.sign_record_for(moment, self.config.record_lifetime)
    }

    /// Signs a record that is in force for `lifetime`.
    pub(crate) fn sign_record_for(
        &mut self,
        moment: &Moment<'_>,
        lifetime: Duration,
    ) -> Option<SignedRecord> {
        // A former owner's enrolment counts no more.
        let enrolled = self.identity.enrolled.as_ref();
        enrolled.filter(|enrolled| enrolled.owner == self.config.owner.verifying_key)?;
        self.directory.records = self.directory.records.saturating_add(1);
        let unix_s = self.directory_time(moment).map_or(0, |time| time.seconds);
        let machines = self.listed_machines();
        let record = self.identity.sign_record(RecordContents {
            number: self.directory.records,
            expires_unix_s: unix_s.saturating_add(lifetime.as_secs()),
            epoch: self.endpoint.epoch_to_publish(moment.now),
            addresses: self.config.addresses.clone(),
            machines: machines.clone(),
            succession: self.ownership.kept.as_ref().map(|kept| kept.succession.clone()),
        })?;
        let fresh_until = moment.now + self.config.record_lifetime / 3;
        self.directory.signed = Some(Signed { record: record.clone(), machines, fresh_until });
        Some(record)
    }

    fn listed_machines(&self) -> Vec<(Name, PublicKey)> {
        let machines = self.kernel.machines();
        machines.map(|info| (info.record.name.clone(), info.record.public_key)).collect()
    }

    /// Calls the directory in the name of the device; `false` if it can't be called now.
    fn call_hub(
        &mut self,
        moment: &mut Moment<'_>,
        name: &str,
        parameter: Vec<u8>,
        purpose: Purpose,
    ) -> bool {
        let Some(hub) = self.directory.hub.clone() else { return false };
        let Some(key) = hub.trusted_key() else { return false };
        let KnownHub { address, epoch, .. } = hub;
        let call = OutgoingCall {
            function: name.into(),
            parameter: Some(parameter),
            deadline: moment.now + ANSWER_TIMEOUT,
            attempts: ATTEMPTS,
        };
        let from = self.identity.machine;
        let sent =
            self.endpoint.call(moment.now, moment.entropy, &from, &key, address, epoch, call);
        sent.is_ok_and(|handle| {
            self.outbound.insert(handle, purpose);
            true
        })
    }

    /// Takes a record that the directory found, if it proves itself.
    pub(crate) fn learn(&mut self, found: Found, time: UnixTime) {
        let Found { record, seen_at } = found;
        let opened = tenure_directory::read_device(&record);
        if opened.is_none_or(|device| self.ownership.revoked.has_device(&device)) {
            return;
        }
        let table = &mut self.directory.table;
        let taken = table.accept(record.clone(), seen_at.clone(), time.seconds);
        if taken == Err(Refusal::Full) {
            let oldest = table.entries().min_by_key(|entry| entry.record.expires_unix_s);
            if let Some(device) = oldest.map(|entry| entry.record.enrolment.device.clone()) {
                table.forget(&device);
            }
            let _ = table.accept(record, seen_at, time.seconds);
        }
    }

    fn list_from(&mut self, moment: &mut Moment<'_>, skip: u32) {
        let parameter = postcard::to_allocvec(&ListFrom { skip }).unwrap_or_default();
        if !self.call_hub(moment, function::LIST, parameter, Purpose::List) {
            self.listing_complete(moment);
        }
    }

    /// Gives the keys that were gathered, and those of peers heard of otherwise, to who waits.
    fn listing_complete(&mut self, moment: &Moment<'_>) {
        let Some(Gathering { mut keys, waiters, .. }) = self.directory.listing.take() else {
            return;
        };
        keys.extend(self.peers.keys());
        #[cfg(feature = "mesh")]
        keys.extend(self.mesh_machines());
        keys.sort_unstable();
        keys.dedup();
        let own =
            |key: &PublicKey| self.kernel.machines().any(|info| info.record.public_key == *key);
        let others: Vec<u8> =
            keys.into_iter().filter(|key| !own(key)).flat_map(|key| key.0).collect();
        for id in waiters {
            self.kernel.complete(moment.now, id, Ok(Some(others.clone())));
        }
    }
}
