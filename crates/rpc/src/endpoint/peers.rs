//! The peers that an endpoint calls, or opens sessions with.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::datagram::{Echo, Epoch, SessionIndex};
use tenure_wire::frame::{CallNumber, Finished};

use crate::calls::{Handshake, Peer, Step};
use crate::round_trip::RoundTrip;
use crate::session::Pair;

/// The peers of an endpoint.
pub(super) struct Peers<A> {
    pub(super) list: Vec<Peer<A>>,
    /// Higher than the number of any call that was made.
    pub(super) next_number: u64,
}

impl<A> Peers<A> {
    pub(super) fn new() -> Self {
        Self { list: Vec::new(), next_number: 1 }
    }

    pub(super) fn get(&self, pair: &Pair) -> Option<&Peer<A>> {
        self.list.iter().find(|peer| peer.pair == *pair)
    }

    pub(super) fn get_mut(&mut self, pair: &Pair) -> Option<&mut Peer<A>> {
        self.list.iter_mut().find(|peer| peer.pair == *pair)
    }

    /// The peer that was last sent what `echo` is of, to open a session.
    pub(super) fn opened_with(&mut self, echo: &Echo) -> Option<&mut Peer<A>> {
        self.list.iter_mut().find(|peer| peer.opened_with(echo))
    }

    /// The handshake with a peer that is under way.
    pub(super) fn handshake(&mut self, pair: &Pair) -> Option<&mut Handshake<A>> {
        self.get_mut(pair)?.handshake.as_mut()
    }

    pub(super) fn is_opening(&self, pair: &Pair) -> bool {
        self.list.iter().any(|peer| peer.pair == *pair && peer.handshake.is_some())
    }

    /// Whether a handshake under way is the one that `receiver` is the number of.
    pub(super) fn awaits_response(&self, receiver: SessionIndex) -> bool {
        self.list.iter().filter_map(|peer| peer.handshake.as_ref()).any(|handshake| {
            matches!(&handshake.step, Step::Initiating(initiating) if initiating.index == receiver)
        })
    }

    /// Ends a handshake without a session.
    pub(super) fn close_handshake(&mut self, pair: &Pair) {
        if let Some(peer) = self.get_mut(pair) {
            peer.handshake = None;
        }
    }

    /// Makes a peer known, in the place of one that isn't called (`is_called`) if need be: `most` are known at most.
    pub(super) fn know(
        &mut self,
        now: Instant,
        pair: Pair,
        hint: Option<Epoch>,
        most: usize,
        is_called: impl Fn(&Pair) -> bool,
    ) -> bool {
        if self.get(&pair).is_none() {
            if self.list.len() >= most {
                let idle = self
                    .list
                    .iter()
                    .enumerate()
                    .filter(|(_, peer)| !is_called(&peer.pair))
                    .min_by_key(|(_, peer)| peer.last_used)
                    .map(|(position, _)| position);
                let Some(position) = idle else { return false };
                self.list.swap_remove(position);
            }
            self.list.push(Peer::new(now, pair, CallNumber(self.next_number)));
        }
        if let Some(peer) = self.get_mut(&pair) {
            peer.last_used = now;
            // The peer's own word holds until something else is published.
            if hint.is_some() && hint != peer.hint {
                peer.hint = hint;
                peer.epoch = hint;
            }
        }
        true
    }

    /// The number of one more call to a peer.
    pub(super) fn draw_number(&mut self, pair: &Pair) -> Option<CallNumber> {
        let peer = self.get_mut(pair)?;
        let number = peer.next_number;
        peer.next_number = CallNumber(number.0 + 1);
        self.next_number = self.next_number.max(number.0 + 1);
        Some(number)
    }

    /// Which calls of this pair are over.
    pub(super) fn finished(&self, pair: &Pair) -> Finished {
        let peer = self.get(pair);
        peer.map_or(Finished::below(CallNumber(self.next_number)), |peer| peer.finished)
    }

    /// Takes note that the peer was just told which calls of this end's are over.
    pub(super) fn acknowledged(&mut self, pair: &Pair) {
        if let Some(peer) = self.get_mut(pair) {
            peer.acknowledge_at = None;
        }
    }

    /// The round trip to a peer, with one more that was measured.
    pub(super) fn sample(&mut self, pair: &Pair, measured: Option<Duration>) -> RoundTrip {
        let Some(peer) = self.get_mut(pair) else { return Default::default() };
        if let Some(measured) = measured {
            peer.round_trip.sample(measured);
        }
        peer.round_trip
    }
}

impl<A> Peer<A> {
    /// Whether `echo` is of what was last sent to open a session.
    fn opened_with(&self, echo: &Echo) -> bool {
        match self.handshake.as_ref().map(|handshake| &handshake.step) {
            Some(Step::Probing { nonce }) => nonce == echo,
            Some(Step::Initiating(initiating)) => initiating.echo == *echo,
            Some(Step::Idle) | None => false,
        }
    }
}
