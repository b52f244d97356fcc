//! The state that an endpoint keeps through a deep sleep: the calls that its machines have under way, the
//! numbers by which their peers know them, and the calls that it remembers from others.
//!
//! Sessions are not among it, so that no key is written down; they are opened anew. As incarnation and
//! numbers stay, a call that was sent before the sleep is the same call after it: its peer, which has
//! not slept, gives the reply that it kept and doesn't run it again. A call that came in before the
//! sleep is known after it as running or done, and its caller gets its reply over a new session. As
//! nothing is forgotten, the horizon stays where it was.
//!
//! The stored state must be restored once at most. A second endpoint with the same numbers would
//! make other calls by numbers that its peers know as done.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_wire::datagram::Epoch;
use tenure_wire::frame::{CallNumber, Finished};
use tenure_wire::{MachineId, PublicKey};

use crate::calls::{Call, Peer};
use crate::session::Pair;
use crate::{CallHandle, Config};

/// An endpoint at rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rest<A> {
    pub(crate) incarnation: u64,
    pub(crate) next_handle: u64,
    pub(crate) next_number: u64,
    pub(crate) peers: Vec<RestingPeer>,
    pub(crate) calls: Vec<RestingCall<A>>,
    pub(crate) callers: RestingCallers,
}

/// The called side's memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RestingCallers {
    pub(crate) callers: Vec<RestingCaller>,
    pub(crate) next_id: u64,
    pub(crate) horizon_us: u64,
}

/// The calls that are remembered of a caller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RestingCaller {
    pub(crate) id: u64,
    pub(crate) local: MachineId,
    pub(crate) peer: PublicKey,
    pub(crate) incarnation: u64,
    pub(crate) complete_since_us: u64,
    pub(crate) finished: Finished,
    pub(crate) last_call_us: Option<u64>,
    /// Its calls, with the replies of those that are over.
    pub(crate) calls: Vec<(CallNumber, Option<Vec<u8>>)>,
}

/// A peer that a call is under way to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RestingPeer {
    local: MachineId,
    peer: PublicKey,
    next_number: CallNumber,
    finished: Finished,
    epoch: Option<Epoch>,
    hint: Option<Epoch>,
}

/// A call that is under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RestingCall<A> {
    handle: u64,
    number: CallNumber,
    local: MachineId,
    peer: PublicKey,
    route: A,
    body: Vec<u8>,
    deadline_us: u64,
    attempts: u8,
    first_sent_us: Option<u64>,
}

impl RestingPeer {
    pub(crate) fn of<A>(peer: &Peer<A>) -> Self {
        Self {
            local: peer.pair.local,
            peer: peer.pair.peer,
            next_number: peer.next_number,
            finished: peer.finished,
            epoch: peer.epoch,
            hint: peer.hint,
        }
    }

    pub(crate) fn wake<A>(self, now: Instant) -> Peer<A> {
        let pair = Pair { local: self.local, peer: self.peer };
        let mut peer = Peer::new(now, pair, self.next_number);
        (peer.finished, peer.epoch, peer.hint) = (self.finished, self.epoch, self.hint);
        peer
    }
}

impl<A: Clone> RestingCall<A> {
    pub(crate) fn of(call: &Call<A>) -> Self {
        Self {
            handle: call.handle.0,
            number: call.number,
            local: call.pair.local,
            peer: call.pair.peer,
            route: call.route.clone(),
            body: call.body.clone(),
            deadline_us: call.deadline.as_micros(),
            attempts: call.attempts,
            first_sent_us: call.first_sent.map(Instant::as_micros),
        }
    }

    pub(crate) fn wake(self, now: Instant, config: &Config) -> Call<A> {
        let pair = Pair { local: self.local, peer: self.peer };
        let deadline = Instant::from_micros(self.deadline_us);
        let mut call = Call::new(
            now,
            CallHandle(self.handle),
            self.number,
            pair,
            self.route,
            self.body,
            config.fragment_bytes(),
            (deadline, self.attempts),
        );
        call.first_sent = self.first_sent_us.map(Instant::from_micros);
        call
    }
}
