//! The exchange with machines elsewhere: whom a call means, which way it goes, who a caller is.
//!
//! It owns nothing: the parts that a look-up touches are lent to it for one use.

#[cfg(feature = "mesh")]
mod in_mesh;
#[cfg(feature = "discovery")]
mod nearby;

use alloc::vec::Vec;

use tenure_crypto::machine_id;
use tenure_directory::Entry;
use tenure_hal::{Flash, Instant};
use tenure_kernel::{CallId, OutgoingCall, Standing};
use tenure_wire::directory::{ListFrom, Listing, Query, function};
use tenure_wire::{Address, NoResult, PublicKey, Target};

use crate::clock::Clock;
use crate::directory::Directory;
use crate::hub::Registration;
#[cfg(feature = "mesh")]
use crate::mesh::Mesh;
use crate::moment::Moment;
#[cfg(feature = "discovery")]
use crate::neighbours::Neighbours;
use crate::outbound::{Gathering, Outbound, Purpose, Route, Waiter};
use crate::peers::Peers;
use crate::services::Services;
use crate::serving::{Arrival, Serving};

/// How often one attempt to reach a machine sends, so that a few lost datagrams aren't a failure.
const SENDS_PER_ATTEMPT: u8 = 4;

/// The most keys that one listing gathers.
const LISTED_MAX: usize = 512;

/// The parts of a node that calls to and from elsewhere concern.
pub(crate) struct Exchange<'a, F> {
    pub(crate) services: &'a mut Services<F>,
    pub(crate) clock: &'a mut Clock,
    pub(crate) directory: &'a mut Directory,
    pub(crate) hub: &'a mut Registration,
    pub(crate) outbound: &'a mut Outbound,
    pub(crate) peers: &'a mut Peers,
    pub(crate) serving: &'a mut Serving,
    #[cfg(feature = "mesh")]
    pub(crate) mesh: Option<&'a mut Mesh>,
    #[cfg(feature = "discovery")]
    pub(crate) neighbours: &'a mut Neighbours,
}

impl<F: Flash> Exchange<'_, F> {
    /// Sends a machine's call on its way, by way of the directory if its target isn't known.
    pub(crate) fn route(&mut self, moment: &mut Moment<'_>, call: OutgoingCall) {
        match self.locate(moment, &call.target, false) {
            Some(route) => self.send(moment, call, route),
            None => match query_of(&call.target) {
                Some(query) => self.ask_directory(moment, query, Waiter::Call(call)),
                None => self.services.kernel.complete(moment.now, call.id, Err(NoResult::NotFound)),
            },
        }
    }

    /// Finds the key that `target` stands for.
    pub(crate) fn resolve(&mut self, moment: &mut Moment<'_>, id: CallId, target: Target) {
        match (self.locate(moment, &target, false), query_of(&target)) {
            (Some(route), _) => self.resolved(moment, id, &route),
            (None, Some(query)) => self.ask_directory(moment, query, Waiter::Resolve(id, target)),
            (None, None) => self.services.kernel.complete(moment.now, id, Err(NoResult::NotFound)),
        }
    }

    /// Asks for a record in the name of `waiter`.
    pub(crate) fn ask_directory(&mut self, moment: &mut Moment<'_>, query: Query, waiter: Waiter) {
        #[cfg(feature = "mesh")]
        if self.find_in_mesh(moment, &query, &waiter) {
            return self.record_arrived(moment, waiter, true);
        }
        let asked = self.outbound.queries.iter_mut().find(|(asked, _)| *asked == query);
        if let Some((_, waiters)) = asked {
            // Those whose deadline passed meanwhile make room: so a machine's budget bounds this.
            waiters.retain(|waiter| waiter.is_waiting(moment.now, &self.services.kernel));
            waiters.push(waiter);
            return;
        }
        let parameter = postcard::to_allocvec(&query).unwrap_or_default();
        if self.call_hub(moment, function::RESOLVE, parameter, Purpose::Query(query.clone())) {
            self.outbound.queries.push((query, [waiter].to_vec()));
            return;
        }
        #[cfg(any(feature = "mesh", feature = "discovery"))]
        if self.await_others(moment, &query, &waiter) {
            self.outbound.queries.push((query, [waiter].to_vec()));
            return;
        }
        self.record_arrived(moment, waiter, false);
    }

    /// Has a look-up wait for a record that comes over the mesh, or from a device on this network; `false` if
    /// nobody is there who could show one.
    #[cfg(any(feature = "mesh", feature = "discovery"))]
    fn await_others(&mut self, moment: &Moment<'_>, query: &Query, waiter: &Waiter) -> bool {
        #[cfg(feature = "mesh")]
        let in_mesh = {
            let at = match waiter {
                Waiter::Caller(arrival) => {
                    let caller =
                        arrival.call.caller.as_ref().and_then(|caller| self.peers.get(caller));
                    caller.map(|peer| peer.address.clone())
                }
                _ => None,
            };
            self.await_in_mesh(moment.now, query, at.as_ref())
        };
        #[cfg(not(feature = "mesh"))]
        let (in_mesh, _) = (false, waiter);
        #[cfg(feature = "discovery")]
        let is_nearby = self.await_nearby(moment, query);
        #[cfg(not(feature = "discovery"))]
        let is_nearby = false;
        in_mesh || is_nearby
    }

    /// Lets whoever waited for a record go on, now that `answered` says whether the directory did.
    pub(crate) fn record_arrived(
        &mut self,
        moment: &mut Moment<'_>,
        waiter: Waiter,
        answered: bool,
    ) {
        if !waiter.is_waiting(moment.now, &self.services.kernel) {
            return;
        }
        let reason = if answered { NoResult::NotFound } else { NoResult::Unreachable };
        match waiter {
            Waiter::Call(call) => match self.locate(moment, &call.target, answered) {
                Some(route) => self.send(moment, call, route),
                None => self.services.kernel.complete(moment.now, call.id, Err(reason)),
            },
            Waiter::Resolve(id, target) => match self.locate(moment, &target, answered) {
                Some(route) => self.resolved(moment, id, &route),
                None => self.services.kernel.complete(moment.now, id, Err(reason)),
            },
            Waiter::Caller(mut arrival) => {
                if let Some(caller) = &arrival.call.caller {
                    arrival.call.standing = self.standing_of(moment, caller);
                }
                if !answered && arrival.call.standing == Standing::Stranger {
                    let busy = Err(NoResult::Busy);
                    return self.services.endpoint.reply(moment.now, arrival.handle, busy);
                }
                self.deliver(moment.now, arrival);
            }
        }
    }

    /// Takes the end of a machine's call.
    pub(crate) fn call_done(
        &mut self,
        now: Instant,
        (id, to): (CallId, PublicKey),
        (result, words): (Result<Option<Vec<u8>>, NoResult>, Vec<u8>),
    ) {
        let Err(failure) = result else {
            return self.services.kernel.complete(now, id, result);
        };
        self.doubt(&to, failure);
        self.services.kernel.complete_failed(now, id, failure, words);
    }

    /// Takes the directory's answer to a query.
    pub(crate) fn query_done(
        &mut self,
        moment: &mut Moment<'_>,
        query: &Query,
        answer: Result<Option<Vec<u8>>, NoResult>,
    ) {
        let answered = answer.is_ok();
        let is_crowded = matches!(answer, Err(NoResult::Deferred { .. }));
        if !answered && !is_crowded {
            self.hub.missed(&mut self.services.notices, moment.now);
        }
        let found = answer.ok().flatten().and_then(|bytes| postcard::from_bytes(&bytes).ok());
        if let (Some(found), Some(time)) = (found, self.clock.unix_time(moment)) {
            self.directory.learn(&self.services.ownership.revoked, found, time);
        }
        if answered {
            // The hub has no newer one.
            self.directory.trust_again(query);
        }
        #[cfg(feature = "discovery")]
        if !answered && self.await_nearby(moment, query) {
            return;
        }
        for waiter in self.outbound.take_waiters(query) {
            self.record_arrived(moment, waiter, answered);
        }
    }

    /// Gathers the keys of machines elsewhere for a machine that asked.
    pub(crate) fn list_peers(&mut self, moment: &mut Moment<'_>, id: CallId) {
        if let Some(gathering) = &mut self.outbound.listing {
            gathering.waiters.push(id);
            return;
        }
        self.outbound.listing = Some(Gathering { waiters: [id].to_vec(), ..Gathering::default() });
        self.list_from(moment, 0);
    }

    /// Takes a page of the directory's list.
    pub(crate) fn list_done(&mut self, moment: &mut Moment<'_>, answer: Option<Vec<u8>>) {
        let page = answer.and_then(|bytes| postcard::from_bytes::<Listing>(&bytes).ok());
        let Some(gathering) = &mut self.outbound.listing else {
            debug_assert!(false, "a page came without a listing under way");
            return;
        };
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

    /// The record that answers `query` and is in force, or the last one that was where no newer one can be
    /// had, as the hub is silent or was `asked`: the address in it is a hint, and the session proves the key. A hub
    /// that was away hasn't heard of all devices again when it answers.
    fn record_or_last(&self, moment: &Moment<'_>, query: &Query, asked: bool) -> Option<&Entry> {
        #[cfg(feature = "mesh")]
        let is_looked_up = self.is_looked_up_anew(moment.now, query);
        #[cfg(not(feature = "mesh"))]
        let is_looked_up = false;
        let last_counts = asked || !(self.hub.is_listed() || is_looked_up);
        let last = || self.directory.last_record(query).filter(|_| last_counts);
        self.directory.record(self.clock, moment, query).or_else(last)
    }

    /// The way to `target` as far as is known here, and as it was last known if the hub was `asked` for it.
    fn locate(&self, moment: &Moment<'_>, target: &Target, asked: bool) -> Option<Route> {
        match target {
            Target::Own | Target::Local(_) => None,
            Target::Remote { machine, device } => {
                let entry = self.record_or_last(moment, &Query::Device(device.clone()), asked)?;
                let named = |(name, _): &&(_, _)| name == machine;
                let (_, key) = entry.record.machines.iter().find(named)?;
                self.way_to(moment, key, asked)
            }
            Target::Id(id) => {
                let known = self.peers.key_of(*id).or_else(|| {
                    let entry = self.record_or_last(moment, &Query::Id(*id), asked)?;
                    let keys = entry.record.machines.iter().map(|(_, key)| *key);
                    keys.into_iter().find(|key| machine_id(key) == *id)
                });
                self.way_to(moment, &known?, asked)
            }
            Target::Key(key) => self.way_to(moment, key, asked),
        }
    }

    /// The way to the machine with `key`: as the directory's record says, or where it was heard, or as
    /// the last record said.
    fn way_to(&self, moment: &Moment<'_>, key: &PublicKey, asked: bool) -> Option<Route> {
        if let Some(entry) = self.directory.record(self.clock, moment, &Query::Key(*key)) {
            let (address, epoch) = (entry.seen_at.clone(), Some(entry.record.epoch));
            return Some(Route { key: *key, address, epoch });
        }
        if let Some(peer) = self.peers.get(key) {
            return Some(Route { key: *key, address: peer.address.clone(), epoch: peer.epoch });
        }
        let entry = self.record_or_last(moment, &Query::Key(*key), asked)?;
        Some(Route { key: *key, address: entry.seen_at.clone(), epoch: Some(entry.record.epoch) })
    }

    fn send(&mut self, moment: &mut Moment<'_>, call: OutgoingCall, route: Route) {
        if !self.outbound.has_room_for(call.from, self.services.config.rpc.calls_max) {
            return self.services.kernel.complete(moment.now, call.id, Err(NoResult::Busy));
        }
        let outgoing = tenure_rpc::OutgoingCall {
            function: call.function,
            parameter: call.parameter,
            deadline: call.deadline,
            attempts: call.attempts.saturating_mul(SENDS_PER_ATTEMPT),
        };
        let sent = self.services.endpoint.call(
            moment.now,
            moment.entropy,
            &call.from,
            &route.key,
            route.address,
            route.epoch,
            outgoing,
        );
        match sent {
            Ok(handle) => {
                let purpose = Purpose::Machine { id: call.id, from: call.from, to: route.key };
                self.outbound.insert(handle, purpose);
            }
            Err(error) => self.services.kernel.complete(moment.now, call.id, Err(error.into())),
        }
    }

    fn resolved(&mut self, moment: &Moment<'_>, id: CallId, route: &Route) {
        self.services.kernel.complete(moment.now, id, Ok(Some(route.key.0.to_vec())));
    }

    /// Doubts where a machine was thought to be if it isn't there. A deadline that passed shows
    /// nothing: a tenant could choose it too short and make the device forget what others need.
    fn doubt(&mut self, peer: &PublicKey, failure: NoResult) {
        if matches!(
            failure,
            NoResult::Unreachable | NoResult::AllegedlyGone | NoResult::NoSuchMachine
        ) {
            // Where nobody tells a newer address, the last one known may be right again.
            if self.hub.is_listed() || self.directory.last_record(&Query::Key(*peer)).is_some() {
                self.peers.forget(peer);
            }
            self.directory.doubt(peer);
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
        let Some(Gathering { mut keys, waiters, .. }) = self.outbound.listing.take() else {
            debug_assert!(false, "a listing ended that wasn't under way");
            return;
        };
        keys.extend(self.peers.keys());
        #[cfg(feature = "mesh")]
        keys.extend(self.mesh_machines());
        #[cfg(feature = "discovery")]
        if !self.hub.is_listed() {
            keys.extend(self.directory.machines());
        }
        tenure_hal::sort(&mut keys);
        keys.dedup();
        let own = |key: &PublicKey| {
            self.services.kernel.machines().any(|info| info.record.public_key == *key)
        };
        let others: Vec<u8> =
            keys.into_iter().filter(|key| !own(key)).flat_map(|key| key.0).collect();
        for id in waiters {
            self.services.kernel.complete(moment.now, id, Ok(Some(others.clone())));
        }
    }

    /// Takes a call from outside for a machine, and finds out first who the caller is if that matters.
    pub(crate) fn take_call(&mut self, moment: &mut Moment<'_>, peer: PublicKey, arrival: Arrival) {
        if arrival.call.standing == Standing::Stranger
            && self.services.kernel.needs_name_of(&peer, arrival.call.to)
            && self.has_directory()
        {
            let waiting = self.outbound.callers_waiting();
            let has_room = self.serving.has_room(self.services, &waiting, &arrival);
            if waiting.len() >= self.services.config.rpc.running_max / 4 || !has_room {
                let busy = Err(NoResult::Busy);
                return self.services.endpoint.reply(moment.now, arrival.handle, busy);
            }
            return self.ask_directory(moment, Query::Key(peer), Waiter::Caller(arrival));
        }
        self.deliver(moment.now, arrival);
    }

    /// The standing of the holder of `peer`, as far as is known here without asking.
    pub(crate) fn standing_of(&self, moment: &Moment<'_>, peer: &PublicKey) -> Standing {
        if *peer == self.services.config.owner.machine {
            return Standing::Owner;
        }
        let Some(entry) = self.record_or_last(moment, &Query::Key(*peer), false) else {
            return Standing::Stranger;
        };
        let mut machines = entry.record.machines.iter();
        match machines.find(|(_, key)| key == peer) {
            Some((machine, _)) => {
                let device = entry.record.enrolment.device.clone();
                Standing::Named { machine: machine.clone(), device }
            }
            None => Standing::Stranger,
        }
    }

    /// Takes note that the holder of `peer` was heard in a session; whether it is the owner, the hub or of
    /// a device of the owner's.
    pub(crate) fn peer_seen(&mut self, now: Instant, peer: PublicKey, from: Address) -> bool {
        let is_owner = peer == self.services.config.owner.machine;
        let is_own = is_owner || self.hub.is_hub(&peer);
        let is_known = is_own || self.is_of_this_owner(&peer);
        if is_owner {
            self.hub.retry_soon(now);
        }
        if !is_own {
            self.peers.heard(now, peer, from, None, is_known);
        }
        is_known
    }

    /// Whether `peer` is a machine on a device of this owner's, or such a device's own, by a record that is
    /// known here.
    fn is_of_this_owner(&self, peer: &PublicKey) -> bool {
        // Records of other owners' devices are never taken.
        self.directory.last_record(&Query::Key(*peer)).is_some() || self.directory.is_device(peer)
    }

    /// Whether there is anybody to ask who a caller is.
    fn has_directory(&self) -> bool {
        #[cfg(feature = "mesh")]
        if self.mesh.is_some() {
            return true;
        }
        #[cfg(feature = "discovery")]
        if !self.neighbours.is_empty() {
            return true;
        }
        self.services.config.hub.is_some()
    }

    /// Hands a call to the machine that it is for.
    fn deliver(&mut self, now: Instant, arrival: Arrival) {
        let waiting = self.outbound.callers_waiting();
        self.serving.deliver(self.services, now, &waiting, arrival);
    }

    fn call_hub(
        &mut self,
        moment: &mut Moment<'_>,
        name: &str,
        parameter: Vec<u8>,
        purpose: Purpose,
    ) -> bool {
        self.hub.call(self.services, self.outbound, moment, (name, parameter, purpose))
    }
}

/// The question for the directory, if it can know.
fn query_of(target: &Target) -> Option<Query> {
    match target {
        Target::Own | Target::Local(_) => None,
        Target::Remote { device, .. } => Some(Query::Device(device.clone())),
        Target::Id(id) => Some(Query::Id(*id)),
        Target::Key(key) => Some(Query::Key(*key)),
    }
}
