//! The base of calls in both directions: the machines that an endpoint speaks for, its sessions and peers, and what
//! goes out of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tenure_hal::{Entropy, Instant};
use tenure_wire::PublicKey;
use tenure_wire::datagram::{Challenge, Echo, Epoch, Refusal, RefusalReason, SessionIndex};
use tenure_wire::frame::{CallNumber, Frame, Greeting, Message};

use super::machines::Machines;
use super::outbox::Outbox;
use super::peers::Peers;
use crate::gate::Gate;
use crate::session::{Pair, Session};
use crate::sessions::Sessions;
use crate::{Config, EndpointError, Event, NoResult, PeerAddress};

/// The base of calls in both directions, lent to each part that sends, receives or opens something.
pub(super) struct Station<A> {
    pub(super) config: Config,
    pub(super) machines: Machines,
    pub(super) incarnation: u64,
    pub(super) gate: Gate,
    pub(super) sessions: Sessions<A>,
    pub(super) peers: Peers<A>,
    pub(super) outbox: Outbox<A>,
    pub(super) events: VecDeque<Event<A>>,
}

/// The means to open a session at a moment.
pub(super) struct Means<'a> {
    pub(super) now: Instant,
    pub(super) entropy: &'a mut dyn Entropy,
    /// Since when this end remembers everybody who calls it.
    pub(super) remembers_since: Instant,
}

/// Whether a datagram went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Sent,
    /// The session is gone or used up, or the peer must first show that it receives at its address.
    Withheld,
}

impl<A: PeerAddress> Station<A> {
    pub(super) fn new(
        config: Config,
        now: Instant,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, EndpointError> {
        config.check().map_err(EndpointError::Config)?;
        let mut config = config;
        config.favoured.sort_unstable();
        config.favoured.dedup();
        let mut gate = Gate::new(&config, now, entropy).map_err(EndpointError::Entropy)?;
        Ok(Self {
            machines: Machines::new(),
            incarnation: gate.draw_incarnation(),
            gate,
            sessions: Sessions::new(),
            peers: Peers::new(),
            outbox: Outbox::new(config.queued_datagrams_max),
            events: VecDeque::new(),
            config,
        })
    }

    /// Prefers a peer to strangers from now on, or no longer.
    pub(super) fn favour(&mut self, peer: &PublicKey, is_favoured: bool) {
        let favoured = &mut self.config.favoured;
        match (favoured.binary_search(peer), is_favoured) {
            (Err(position), true) => favoured.insert(position, *peer),
            (Ok(position), false) => drop(favoured.remove(position)),
            (Ok(_), true) | (Err(_), false) => {}
        }
    }

    /// Has at least as much room from now on as `config` says, for whatever peers fill.
    pub(super) fn widen(&mut self, config: &Config) {
        self.config.widen(config);
        self.gate.widen(self.config.accepted_initiations_max);
    }

    /// Sends a frame over a session, to where the peer was last heard.
    pub(super) fn send(&mut self, session: SessionIndex, frame: Frame<'_>) -> Delivery {
        let Some(pair) = self.sessions.get(session).map(|session| session.pair) else {
            return Delivery::Withheld;
        };
        let message = Message { finished: self.peers.finished(&pair), frame };
        let delivery =
            seal(&self.config, &mut self.sessions, &mut self.outbox, session, None, &message);
        if delivery == Delivery::Sent {
            self.peers.acknowledged(&pair);
        }
        delivery
    }

    /// Asks the peer of a session to show that it receives where it was last heard.
    pub(super) fn ask_for_proof(&mut self, now: Instant, index: SessionIndex, number: CallNumber) {
        let Some(session) = self.sessions.get(index) else { return };
        let cookie = self.gate.cookie(now, &session.route);
        self.send(index, Frame::Prove { number, cookie });
    }

    /// Tells whoever is at `to` what an initiation must name.
    pub(super) fn challenge(&mut self, now: Instant, to: A, echo: Echo) {
        let challenge = Challenge {
            echo,
            epoch: self.gate.epoch(),
            cookie: self.gate.cookie(now, &to),
            key: self.machines.identity(),
        };
        self.outbox.push_unasked(to, challenge.to_bytes().to_vec());
    }

    /// Tells whoever is at `to` that it is mistaken, though not too often.
    pub(super) fn refuse(&mut self, now: Instant, to: A, reason: RefusalReason, echo: Echo) {
        if self.gate.may_refuse(now) {
            self.outbox.push_unasked(to, Refusal { reason, echo }.to_bytes().to_vec());
        }
    }

    /// Reports where a peer is; while nobody takes the reports, only some are kept.
    pub(super) fn saw(&mut self, pair: &Pair, from: A) {
        if self.events.len() < self.config.sessions_max {
            self.events.push_back(Event::PeerSeen { machine: pair.local, peer: pair.peer, from });
        }
    }

    /// The greeting of this end to a peer, all whose calls since then it remembers.
    pub(super) fn greeting(&self, now: Instant, since: Instant) -> Greeting {
        let remembers_ms = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
        Greeting { incarnation: self.incarnation, remembers_ms }
    }

    /// The number of a session that doesn't exist yet.
    pub(super) fn unused_index(&mut self) -> SessionIndex {
        loop {
            let index = self.gate.draw_index();
            if self.sessions.get(index).is_none() && !self.peers.awaits_response(index) {
                return index;
            }
        }
    }

    /// The newest session with a peer that may be sent over.
    pub(super) fn newest_session(&self, now: Instant, pair: &Pair) -> Option<&Session<A>> {
        self.sessions
            .of_pair(pair)
            .filter(|session| session.confirmed && !session.is_over(&self.config, now))
            .max_by_key(|session| session.created)
    }

    /// The same with one incarnation of the peer.
    pub(super) fn newest_session_of(
        &self,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
    ) -> Option<&Session<A>> {
        self.sessions
            .of_pair(pair)
            .filter(|session| session.incarnation == incarnation && session.confirmed)
            .filter(|session| !session.is_over(&self.config, now))
            .max_by_key(|session| session.created)
    }

    /// Why a call gets no result that `failure` ends: the peer may have given it a turn, in which it waits a little for
    /// the response.
    pub(super) fn or_deferred(&self, now: Instant, pair: &Pair, failure: NoResult) -> NoResult {
        match self.peers.get(pair).and_then(|peer| peer.turn) {
            Some(turn) if turn + self.config.timeout_max > now => {
                NoResult::Deferred { again_in: turn.since(now) }
            }
            _ => failure,
        }
    }

    /// Tells peers which results have arrived, where it is due and nothing else was said since.
    pub(super) fn acknowledge(&mut self, now: Instant, is_due: impl Fn(Instant) -> bool) {
        let due: Vec<Pair> = self
            .peers
            .list
            .iter()
            .filter(|peer| peer.acknowledge_at.is_some_and(&is_due))
            .map(|peer| peer.pair)
            .collect();
        for pair in due {
            self.peers.acknowledged(&pair);
            if let Some(index) = self.newest_session(now, &pair).map(|session| session.index) {
                self.send(index, Frame::Acknowledge);
            }
        }
    }

    /// The epoch to publish now.
    pub(super) fn epoch_to_publish(&mut self, now: Instant) -> Epoch {
        self.gate.end_epochs(now);
        self.gate.epoch()
    }
}

/// Seals a message and queues it, to `route` if one is named, else to where the peer was last
/// heard.
pub(super) fn seal<A: PeerAddress>(
    config: &Config,
    sessions: &mut Sessions<A>,
    outbox: &mut Outbox<A>,
    index: SessionIndex,
    route: Option<&A>,
    message: &Message<'_>,
) -> Delivery {
    let Some(session) = sessions.get_mut(index) else { return Delivery::Withheld };
    let Some(datagram) = session.seal(config, message) else { return Delivery::Withheld };
    let to = match route {
        Some(route) => route.clone(),
        None if session.may_send(datagram.len()) => session.route.clone(),
        None => return Delivery::Withheld,
    };
    let Pair { local, peer } = session.pair;
    if session.is_used_up(config) {
        sessions.note_used_up(index);
    }
    outbox.push_for(&local, to, datagram, config.is_owner(&peer));
    Delivery::Sent
}
