//! The calls that this device's machines have under way, whoever serves them.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use litemap::LiteMap;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_wire::NoResult;
use tenure_wire::host_call::HostError;
use tenure_wire::{Name, Target};

#[cfg(feature = "reach")]
use crate::ask::Ask;
use crate::policy::Slots;
use crate::slot::Slot;

/// The kernel's number for a call that one of its machines made. Not used again before four billion
/// others, by when its deadline has long passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId(pub u32);

/// The first wait before a call that found no way is tried again; doubles with each attempt.
const RETRY_FIRST: Duration = Duration::from_millis(250);

/// A call under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PendingCall {
    /// The slot of the machine that made it.
    pub(crate) caller: Slot,
    /// The call's content, kept while it may have to be sent again.
    pub(crate) request: Request,
    /// The reaction when it's done.
    pub(crate) completion: Completion,
    /// When it has failed at the latest.
    #[serde(with = "crate::moment")]
    pub(crate) deadline: Instant,
    /// How many further attempts it has.
    pub(crate) retries_left: u8,
    /// When to try it again, if it waits for that.
    #[serde(with = "crate::moment::optional")]
    pub(crate) retry_at: Option<Instant>,
    /// How long the next wait is.
    retry_wait: Duration,
}

/// The content of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Run a function.
    Call { target: Target, function: String, parameter: Option<Vec<u8>> },
    /// Find a key.
    Resolve { target: Target },
    /// Read a secret.
    Secret { name: Name },
    /// List the keys of this device's machines, of others', or both.
    Peers { own: bool, others: bool },
    /// Ask a server outside.
    #[cfg(feature = "reach")]
    Visit(Ask),
}

impl Request {
    /// Bytes that it counts as a message.
    pub(crate) fn message_bytes(&self) -> usize {
        match self {
            Self::Call { function, .. } => function.len() + self.parameter_bytes(),
            Self::Resolve { .. } | Self::Secret { .. } | Self::Peers { .. } => 0,
            #[cfg(feature = "reach")]
            Self::Visit(ask) => ask.bytes(),
        }
    }

    /// How long the parameter is, if there is one.
    pub(crate) fn parameter_bytes(&self) -> usize {
        match self {
            Self::Call { parameter: Some(parameter), .. } => parameter.len(),
            #[cfg(feature = "reach")]
            Self::Visit(ask) => ask.bytes(),
            _ => 0,
        }
    }
}

/// The reaction when a call is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Completion {
    /// The machine waits in straight-line code.
    Blocking,
    /// The machine goes on; these functions are called. Empty means none.
    Callbacks { on_success: String, on_failure: String },
}

/// Every call under way on this device.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Calls {
    last_id: u32,
    pending: LiteMap<CallId, PendingCall>,
}

impl Calls {
    pub(crate) fn insert(
        &mut self,
        caller: Slot,
        request: Request,
        completion: Completion,
        deadline: Instant,
        retries: u8,
    ) -> CallId {
        self.last_id = self.last_id.wrapping_add(1);
        let id = CallId(self.last_id);
        let call = PendingCall {
            caller,
            request,
            completion,
            deadline,
            retries_left: retries,
            retry_at: None,
            retry_wait: RETRY_FIRST,
        };
        self.pending.insert(id, call);
        id
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&PendingCall> {
        self.pending.get(&id)
    }

    pub(crate) fn remove(&mut self, id: CallId) -> Option<PendingCall> {
        self.pending.remove(&id)
    }

    /// The calls that were sent and are not waiting to be sent again.
    pub(crate) fn sent(&self) -> Vec<CallId> {
        self.select(|call| call.retry_at.is_none())
    }

    /// Forgets what the machines in slots other than `kept` have under way.
    pub(crate) fn keep_only(&mut self, kept: Slots) {
        self.pending.retain(|_, call| kept.contains(call.caller.index()));
    }

    /// How long the parameters of all calls are together.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.pending.values().map(|call| call.request.parameter_bytes()).sum()
    }

    /// How many calls of `caller` are under way.
    pub(crate) fn count_of(&self, caller: Slot) -> usize {
        self.pending.values().filter(|call| call.caller == caller).count()
    }

    /// How long the parameters of the calls of `caller` are together.
    pub(crate) fn parameter_bytes_of(&self, caller: Slot) -> usize {
        let calls = self.pending.values().filter(|call| call.caller == caller);
        calls.map(|call| call.request.parameter_bytes()).sum()
    }

    /// Takes out what `caller` has under way, in the order in which it was called.
    pub(crate) fn take_all_of(&mut self, caller: Slot) -> Vec<(CallId, PendingCall)> {
        let ids = self.select(|call| call.caller == caller);
        ids.into_iter().filter_map(|id| Some((id, self.pending.remove(&id)?))).collect()
    }

    /// Forgets what `caller` has under way; answers that still come are dropped.
    pub(crate) fn remove_all_of(&mut self, caller: Slot) {
        self.pending.retain(|_, call| call.caller != caller);
    }

    /// Puts a call that surely did not run aside for another attempt; `false` if it has none left
    /// or its deadline would pass before. A machine that lacks the function will lack it then.
    pub(crate) fn retry_later(&mut self, id: CallId, now: Instant, reason: NoResult) -> bool {
        let surely_not_run = matches!(reason.host_error(), HostError::NotFound | HostError::Full);
        let is_final = reason == NoResult::NoSuchFunction;
        let Some(call) = self.pending.get_mut(&id) else { return false };
        let retry_at = now + call.retry_wait;
        if !surely_not_run || is_final || call.retries_left == 0 || retry_at >= call.deadline {
            return false;
        }
        call.retries_left -= 1;
        call.retry_at = Some(retry_at);
        call.retry_wait *= 2;
        true
    }

    /// The calls whose deadline has passed.
    pub(crate) fn expired(&self, now: Instant) -> Vec<CallId> {
        self.select(|call| call.deadline <= now)
    }

    /// The calls that are due to be tried again; their wait ends with this.
    pub(crate) fn take_due_retries(&mut self, now: Instant) -> Vec<CallId> {
        let due = self.select(|call| call.retry_at.is_some_and(|at| at <= now));
        for id in &due {
            if let Some(call) = self.pending.get_mut(id) {
                call.retry_at = None;
            }
        }
        due
    }

    /// When the next deadline or retry comes.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.pending
            .values()
            .map(|call| call.retry_at.map_or(call.deadline, |retry| retry.min(call.deadline)))
            .min()
    }

    fn select(&self, wanted: impl Fn(&PendingCall) -> bool) -> Vec<CallId> {
        self.pending.iter().filter(|(_, call)| wanted(call)).map(|(id, _)| *id).collect()
    }
}
