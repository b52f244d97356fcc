//! Calls that leave the device: whom they mean, which way they go, what comes back.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tenure_crypto::machine_id;
use tenure_hal::{Flash, Instant};
use tenure_kernel::{CallId, IncomingCall, Kernel, OutgoingCall, Standing};
use tenure_rpc::{CallHandle, IncomingCallHandle};
use tenure_wire::NoResult;
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::Query;
use tenure_wire::{Address, MachineId, PublicKey, Target};

use crate::node::{Moment, Node};

/// How often one attempt to reach a machine sends, so that a few lost datagrams aren't a failure.
const SENDS_PER_ATTEMPT: u8 = 4;

/// What has left the device and is not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    under_way: BTreeMap<CallHandle, Purpose>,
}

/// What a call is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The machine `from` made it, to call the one with the key `to`.
    Machine { id: CallId, from: MachineId, to: PublicKey },
    /// To be listed in the directory.
    Register,
    /// To find a device's record.
    Query(Query),
    /// To list machines.
    List,
}

/// Who waits for a record.
#[derive(Clone, Debug)]
pub(crate) enum Waiter {
    /// A call to be sent.
    Call(OutgoingCall),
    /// A machine that wants to know the key.
    Resolve(CallId, Target),
    /// A call from outside, whose caller's name decides whether it is let in.
    Caller(IncomingCallHandle, IncomingCall),
}

/// A machine elsewhere and the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) key: PublicKey,
    pub(crate) address: Address,
    pub(crate) epoch: Option<Epoch>,
}

impl Waiter {
    /// Whether it still waits. One that waits to be let in is among those calls that the sessions
    /// bound, and holds its place there until it is answered.
    pub(crate) fn is_waiting<F: Flash>(&self, now: Instant, kernel: &Kernel<F>) -> bool {
        match self {
            Self::Call(call) => kernel.awaits(call.id),
            Self::Resolve(id, _) => kernel.awaits(*id),
            Self::Caller(_, call) => call.deadline > now,
        }
    }
}

/// How many of the calls that a device has under way are kept for its own: to the directory.
const CALLS_FOR_DEVICE: usize = 3;

impl Outbound {
    /// Whether `machine` may have one more call under way: no more than are still free, so that
    /// however many are hogged, others find some.
    fn has_room_for(&self, machine: MachineId, calls_max: usize) -> bool {
        let callers = self.under_way.values().filter_map(|purpose| match purpose {
            Purpose::Machine { from, .. } => Some(*from),
            _ => None,
        });
        let (held, taken) = callers
            .fold((0, 0), |(held, taken), from| (held + usize::from(from == machine), taken + 1));
        held < calls_max.saturating_sub(CALLS_FOR_DEVICE).max(1).saturating_sub(taken)
    }

    /// What has left the device.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = (&CallHandle, &Purpose)> {
        self.under_way.iter()
    }

    pub(crate) fn insert(&mut self, handle: CallHandle, purpose: Purpose) {
        self.under_way.insert(handle, purpose);
    }
}

impl<F: Flash> Node<F> {
    /// Sends a machine's call on its way, by way of the directory if its target isn't known.
    pub(crate) fn route(&mut self, moment: &mut Moment<'_>, call: OutgoingCall) {
        match self.locate(moment, &call.target) {
            Some(route) => self.send(moment, call, route),
            None => match query_of(&call.target) {
                Some(query) => self.ask_directory(moment, query, Waiter::Call(call)),
                None => self.kernel.complete(moment.now, call.id, Err(NoResult::NotFound)),
            },
        }
    }

    /// Finds the key that `target` stands for.
    pub(crate) fn resolve(&mut self, moment: &mut Moment<'_>, id: CallId, target: Target) {
        match (self.locate(moment, &target), query_of(&target)) {
            (Some(route), _) => self.resolved(moment, id, &route),
            (None, Some(query)) => self.ask_directory(moment, query, Waiter::Resolve(id, target)),
            (None, None) => self.kernel.complete(moment.now, id, Err(NoResult::NotFound)),
        }
    }

    /// Lets whoever waited for a record go on, now that `answered` says whether the directory did.
    pub(crate) fn record_arrived(
        &mut self,
        moment: &mut Moment<'_>,
        waiter: Waiter,
        answered: bool,
    ) {
        if !waiter.is_waiting(moment.now, &self.kernel) {
            return;
        }
        let reason = if answered { NoResult::NotFound } else { NoResult::Unreachable };
        match waiter {
            Waiter::Call(call) => match self.locate(moment, &call.target) {
                Some(route) => self.send(moment, call, route),
                None => self.kernel.complete(moment.now, call.id, Err(reason)),
            },
            Waiter::Resolve(id, target) => match self.locate(moment, &target) {
                Some(route) => self.resolved(moment, id, &route),
                None => self.kernel.complete(moment.now, id, Err(reason)),
            },
            Waiter::Caller(handle, mut call) => {
                if let Some(caller) = &call.caller {
                    call.standing = self.standing_of(moment, caller);
                }
                if !answered && call.standing == Standing::Stranger {
                    return self.endpoint.reply(moment.now, handle, Err(NoResult::Busy));
                }
                self.deliver(moment, handle, call);
            }
        }
    }

    /// Takes the end of a call.
    pub(crate) fn call_done(
        &mut self,
        moment: &mut Moment<'_>,
        handle: CallHandle,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        match self.outbound.under_way.remove(&handle) {
            None => {}
            Some(Purpose::Machine { id, to, .. }) => {
                if let Err(failure) = &result {
                    self.doubt(&to, *failure);
                }
                self.kernel.complete(moment.now, id, result);
            }
            Some(Purpose::Register) => self.registration_done(moment, result.ok().flatten()),
            Some(Purpose::Query(query)) => {
                self.query_done(moment, &query, result.map_err(|_| ()));
            }
            Some(Purpose::List) => self.list_done(moment, result.ok().flatten()),
        }
    }

    /// The way to `target` as far as is known here.
    fn locate(&self, moment: &Moment<'_>, target: &Target) -> Option<Route> {
        match target {
            Target::Own | Target::Local(_) => None,
            Target::Remote { machine, device } => {
                let entry = self.record_or_last(moment, &Query::Device(device.clone()))?;
                let named = |(name, _): &&(_, _)| name == machine;
                let (_, key) = entry.record.machines.iter().find(named)?;
                self.way_to(moment, key)
            }
            Target::Id(id) => {
                let known = self.peers.key_of(*id).or_else(|| {
                    let entry = self.record_or_last(moment, &Query::Id(*id))?;
                    let keys = entry.record.machines.iter().map(|(_, key)| *key);
                    keys.into_iter().find(|key| machine_id(key) == *id)
                });
                self.way_to(moment, &known?)
            }
            Target::Key(key) => self.way_to(moment, key),
        }
    }

    /// The way to the machine with `key`: as the directory's record says, or where it was heard, or as
    /// the last record said.
    fn way_to(&self, moment: &Moment<'_>, key: &PublicKey) -> Option<Route> {
        if let Some(entry) = self.record(moment, &Query::Key(*key)) {
            let (address, epoch) = (entry.seen_at.clone(), Some(entry.record.epoch));
            return Some(Route { key: *key, address, epoch });
        }
        if let Some(peer) = self.peers.get(key) {
            return Some(Route { key: *key, address: peer.address.clone(), epoch: peer.epoch });
        }
        let entry = self.record_or_last(moment, &Query::Key(*key))?;
        Some(Route { key: *key, address: entry.seen_at.clone(), epoch: Some(entry.record.epoch) })
    }

    fn send(&mut self, moment: &mut Moment<'_>, call: OutgoingCall, route: Route) {
        if !self.outbound.has_room_for(call.from, self.config.rpc.calls_max) {
            return self.kernel.complete(moment.now, call.id, Err(NoResult::Busy));
        }
        let outgoing = tenure_rpc::OutgoingCall {
            function: call.function,
            parameter: call.parameter,
            deadline: call.deadline,
            attempts: call.attempts.saturating_mul(SENDS_PER_ATTEMPT),
        };
        let sent = self.endpoint.call(
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
            Err(error) => self.kernel.complete(moment.now, call.id, Err(error.into())),
        }
    }

    fn resolved(&mut self, moment: &Moment<'_>, id: CallId, route: &Route) {
        self.kernel.complete(moment.now, id, Ok(Some(route.key.0.to_vec())));
    }

    /// Doubts where a machine was thought to be if it isn't there. A deadline that passed shows
    /// nothing: a tenant could choose it too short and make the device forget what others need.
    fn doubt(&mut self, peer: &PublicKey, failure: NoResult) {
        if matches!(
            failure,
            NoResult::Unreachable | NoResult::AllegedlyGone | NoResult::NoSuchMachine
        ) {
            // Where nobody tells a newer address, the last one known may be right again.
            if self.directory.hub_answers()
                || self.directory.last_record(&Query::Key(*peer)).is_some()
            {
                self.peers.forget(peer);
            }
            self.directory.doubt(peer);
        }
    }
}

/// What to ask the directory for, if it can know.
fn query_of(target: &Target) -> Option<Query> {
    match target {
        Target::Own | Target::Local(_) => None,
        Target::Remote { device, .. } => Some(Query::Device(device.clone())),
        Target::Id(id) => Some(Query::Id(*id)),
        Target::Key(key) => Some(Query::Key(*key)),
    }
}
