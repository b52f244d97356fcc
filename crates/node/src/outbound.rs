//! Calls that have left the device, and what waits for a record before it can leave.

use alloc::vec::Vec;
use litemap::LiteMap;

use tenure_hal::{Flash, Instant};
use tenure_kernel::{CallId, Kernel, OutgoingCall};
use tenure_rpc::CallHandle;
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::Query;
use tenure_wire::{Address, MachineId, PublicKey, Target};

use crate::serving::Arrival;

/// The calls and questions that have left the device and aren't answered yet.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    under_way: LiteMap<CallHandle, Purpose>,
    /// The questions to the directory, and who waits for each answer.
    pub(crate) queries: Vec<(Query, Vec<Waiter>)>,
    pub(crate) listing: Option<Gathering>,
}

/// A listing under way.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) seen: u32,
    pub(crate) waiters: Vec<CallId>,
}

/// The purpose of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The machine `from` made it, to call the one with the key `to`.
    Machine { id: CallId, from: MachineId, to: PublicKey },
    /// To be listed in the directory.
    Register,
    /// To say that it is there, and its record still holds.
    #[cfg(feature = "touches")]
    Touch,
    /// To find a device's record.
    Query(Query),
    /// To list machines.
    List,
    /// To be shown the record of the device at that address, which has that key.
    #[cfg(feature = "discovery")]
    Record { address: Address, key: PublicKey },
    /// To ask for a step of a rollout.
    #[cfg(feature = "rollouts")]
    Work,
    /// To fetch a part of a package.
    #[cfg(feature = "rollouts")]
    Part,
    /// To tell how the device is.
    #[cfg(feature = "reports")]
    Report,
    /// To show the device's log at the hub.
    #[cfg(feature = "reports")]
    Log,
}

/// The one that waits for a record.
#[derive(Clone, Debug)]
pub(crate) enum Waiter {
    /// A call to be sent.
    Call(OutgoingCall),
    /// A machine that wants to know the key.
    Resolve(CallId, Target),
    /// A call from outside, whose caller's name decides whether it is let in.
    Caller(Arrival),
}

/// A machine elsewhere and the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) key: PublicKey,
    pub(crate) address: Address,
    pub(crate) epoch: Option<Epoch>,
}

impl Purpose {
    /// Whether the hub is called for it.
    pub(crate) fn is_hubs(&self) -> bool {
        #[cfg(feature = "discovery")]
        if matches!(self, Self::Record { .. }) {
            return false;
        }
        !matches!(self, Self::Machine { .. })
    }
}

impl Waiter {
    /// Whether it still waits. One that waits to be let in is among those calls that the sessions
    /// bound, and holds its place there until it is answered.
    pub(crate) fn is_waiting<F: Flash>(&self, now: Instant, kernel: &Kernel<F>) -> bool {
        match self {
            Self::Call(call) => kernel.awaits(call.id),
            Self::Resolve(id, _) => kernel.awaits(*id),
            Self::Caller(arrival) => arrival.call.deadline > now,
        }
    }
}

/// How many of the calls that a device has under way are kept for its own: to the directory.
const CALLS_FOR_DEVICE: usize = 3;

impl Outbound {
    /// Whether `machine` may have one more call under way: no more than are still free, so that
    /// however many are hogged, others find some.
    pub(crate) fn has_room_for(&self, machine: MachineId, calls_max: usize) -> bool {
        let callers = self.under_way.values().filter_map(|purpose| match purpose {
            Purpose::Machine { from, .. } => Some(*from),
            _ => None,
        });
        let (held, taken) = callers
            .fold((0, 0), |(held, taken), from| (held + usize::from(from == machine), taken + 1));
        held < calls_max.saturating_sub(CALLS_FOR_DEVICE).max(1).saturating_sub(taken)
    }

    /// The calls and questions that have left the device.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = (&CallHandle, &Purpose)> {
        self.under_way.iter()
    }

    /// The machines elsewhere that are being called.
    #[cfg(feature = "mesh")]
    pub(crate) fn called(&self) -> Vec<PublicKey> {
        let called = self.under_way.values().filter_map(|purpose| match purpose {
            Purpose::Machine { to, .. } => Some(*to),
            _ => None,
        });
        called.collect()
    }

    pub(crate) fn insert(&mut self, handle: CallHandle, purpose: Purpose) {
        self.under_way.insert(handle, purpose);
    }

    /// Forgets a call that ended; returns what it was for.
    pub(crate) fn take(&mut self, handle: CallHandle) -> Option<Purpose> {
        self.under_way.remove(&handle)
    }

    /// Those who wait for what `query` asks for; they wait no longer.
    pub(crate) fn take_waiters(&mut self, query: &Query) -> Vec<Waiter> {
        let position = self.queries.iter().position(|(asked, _)| asked == query);
        position.map_or_else(Vec::new, |position| self.queries.swap_remove(position).1)
    }

    /// The calls that wait for the name of who made them.
    pub(crate) fn callers_waiting<'a>(&'a self) -> Vec<&'a Arrival> {
        let waiters = self.queries.iter().flat_map(|(_, waiters)| waiters);
        let arrival = |waiter: &'a Waiter| match waiter {
            Waiter::Caller(arrival) => Some(arrival),
            Waiter::Call(_) | Waiter::Resolve(..) => None,
        };
        waiters.filter_map(arrival).collect()
    }
}
