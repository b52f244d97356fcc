//! An established session: keys, counters and the way back.
//!
//! Invariants: a counter is sealed with once; nothing is believed of a datagram before its tag has
//! been checked, and its counter is recorded only after.

use alloc::vec::Vec;

use tenure_crypto::{Nonce, Undecryptable};
use tenure_hal::Instant;
use tenure_wire::datagram::{Data, Echo, SessionIndex};
use tenure_wire::frame::{Frame, Message};
use tenure_wire::{MachineId, PublicKey};

use crate::Config;
use crate::lateness::Clocks;
use crate::noise::Established;
use crate::window::ReplayWindow;

/// The two machines that speak to each other, seen from one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The machine of this endpoint.
    pub(crate) local: MachineId,
    /// The other one.
    pub(crate) peer: PublicKey,
}

/// No end counts that far in a session (Noise §5.1 reserves 2^64 - 1).
const COUNTER_MAX: u64 = 1 << 60;
/// How many of the last datagrams sent are remembered, to tell whether a refusal answers one.
const ECHOES: usize = 4;

/// One end of a session.
pub(crate) struct Session<A> {
    /// This end's number for it.
    pub(crate) index: SessionIndex,
    /// Between whom.
    pub(crate) pair: Pair,
    /// Which incarnation of the peer.
    pub(crate) incarnation: u64,
    /// Whether the peer has shown that it has the keys, by a message or by the response.
    pub(crate) confirmed: bool,
    /// Whether this end opened it: then what the peer says it remembers is meant for this
    /// incarnation of this end, and not the least that holds for all.
    pub(crate) opened_here: bool,
    /// Since when.
    pub(crate) created: Instant,
    /// When the peer was last heard in it.
    pub(crate) last_heard: Instant,
    /// Where the peer was last heard from.
    pub(crate) route: A,
    /// The peer remembers all calls of this end's that were first sent after this.
    pub(crate) peer_remembers_since: Instant,
    /// What this end knows of both ends' clocks.
    pub(crate) clocks: Clocks,
    /// Whether the peer has shown that it receives at `route`, and how many bytes it may be sent
    /// until it has.
    reaches: Reach,
    /// Whether the response that opened it went to another address than `route` as well, so that
    /// knowing the keys shows nothing of `route`.
    response_elsewhere: bool,
    remote: SessionIndex,
    keys: Established,
    sent: u64,
    window: ReplayWindow,
    echoes: [Option<Echo>; ECHOES],
}

/// Whether a peer receives where it seems to be. Somebody who forges its sender's address would
/// otherwise have long replies sent to a third party (compare RFC 9000 §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It does.
    Shown,
    /// Not known: it may be sent so many bytes.
    Unknown {
        /// How many.
        credit_bytes: usize,
    },
}

/// How many bytes are sent, for each that came, to an address that nobody may receive at.
const CREDIT_FACTOR: usize = 3;

impl Reach {
    /// The facts about an address that one datagram has come from.
    pub(crate) fn of_one_datagram(length: usize) -> Self {
        Self::Unknown { credit_bytes: length.saturating_mul(CREDIT_FACTOR) }
    }

    /// Whether so many bytes may be sent; if so they are counted.
    pub(crate) fn spend(&mut self, bytes: usize) -> bool {
        match self {
            Self::Shown => true,
            Self::Unknown { credit_bytes } => match credit_bytes.checked_sub(bytes) {
                Some(rest) => {
                    *credit_bytes = rest;
                    true
                }
                None => false,
            },
        }
    }
}

/// The result of a handshake.
pub(crate) struct Opening<'a, A> {
    pub(crate) index: SessionIndex,
    pub(crate) remote: SessionIndex,
    pub(crate) pair: Pair,
    pub(crate) incarnation: u64,
    pub(crate) opened_here: bool,
    pub(crate) route: A,
    pub(crate) reaches: Reach,
    pub(crate) peer_remembers_since: Instant,
    /// The subject of the peer's first message.
    pub(crate) first: Frame<'a>,
    pub(crate) keys: Established,
}

impl<A> Session<A> {
    pub(crate) fn new(now: Instant, opening: Opening<'_, A>) -> Self {
        Self {
            index: opening.index,
            pair: opening.pair,
            incarnation: opening.incarnation,
            confirmed: opening.opened_here,
            opened_here: opening.opened_here,
            created: now,
            last_heard: now,
            route: opening.route,
            peer_remembers_since: opening.peer_remembers_since,
            clocks: Clocks::new(now, opening.opened_here, &opening.first),
            reaches: opening.reaches,
            response_elsewhere: false,
            remote: opening.remote,
            keys: opening.keys,
            sent: 0,
            window: ReplayWindow::default(),
            echoes: [None; ECHOES],
        }
    }

    /// Whether it may be used no longer.
    pub(crate) fn is_over(&self, config: &Config, now: Instant) -> bool {
        now.since(self.created) >= config.session_lifetime || self.is_used_up(config)
    }

    /// Whether it has sent as much as it may.
    pub(crate) fn is_used_up(&self, config: &Config) -> bool {
        self.sent >= messages_max(config)
    }

    /// Whether it is time for another.
    pub(crate) fn wants_successor(&self, config: &Config, now: Instant) -> bool {
        now.since(self.created) >= config.rekey_after || self.sent >= config.rekey_after_messages
    }

    /// The datagram that carries `message`; `None` if the session has sent as much as it may.
    pub(crate) fn seal(&mut self, config: &Config, message: &Message<'_>) -> Option<Vec<u8>> {
        if self.sent >= messages_max(config) {
            return None;
        }
        let header = Data::header(self.remote, self.sent);
        let mut datagram = Vec::with_capacity(config.datagram_bytes_max);
        datagram.extend_from_slice(&header);
        message.emit(&mut datagram);
        let nonce = Nonce::from_counter(self.sent);
        let tag = self.keys.send.seal(&nonce, &header, &mut datagram[header.len()..]);
        datagram.extend_from_slice(&tag);
        self.echoes[(self.sent % ECHOES as u64) as usize] = Some(Echo(tag));
        self.sent += 1;
        Some(datagram)
    }

    /// Decrypts a datagram of this session, and says whether it is the newest so far.
    ///
    /// # Errors
    /// [`Undecryptable`] if it isn't the peer's, or came before.
    pub(crate) fn open(&mut self, data: &Data<'_>) -> Result<(Vec<u8>, bool), Undecryptable> {
        if data.counter >= COUNTER_MAX || !self.window.is_new(data.counter) {
            return Err(Undecryptable);
        }
        let mut bytes = data.sealed.to_vec();
        let nonce = Nonce::from_counter(data.counter);
        let length = self.keys.receive.open(&nonce, data.header, &mut bytes)?.len();
        bytes.truncate(length);
        let newest = self.window.is_highest(data.counter);
        self.window.record(data.counter);
        Ok((bytes, newest))
    }

    /// Takes note of where an authentic datagram came from. Returns whether the peer has moved.
    pub(crate) fn heard(&mut self, now: Instant, from: &A, length: usize, newest: bool) -> bool
    where
        A: Clone + PartialEq,
    {
        self.last_heard = now;
        if *from == self.route {
            if !self.confirmed && !self.response_elsewhere {
                // It knows the keys, so it got the response, which was sent there and nowhere else.
                self.shown_to_reach();
            } else if let Reach::Unknown { credit_bytes } = &mut self.reaches {
                *credit_bytes = credit_bytes.saturating_add(length.saturating_mul(CREDIT_FACTOR));
            }
            return false;
        }
        if newest {
            self.route = from.clone();
            self.reaches = Reach::of_one_datagram(length);
        }
        newest
    }

    /// The response that opened the session was sent to another address as well.
    pub(crate) fn response_is_known_elsewhere(&mut self) {
        self.response_elsewhere = true;
    }

    /// Whether the peer has shown that it receives at [`Self::route`].
    pub(crate) fn reaches(&self) -> bool {
        self.reaches == Reach::Shown
    }

    /// The peer has shown that it receives at [`Self::route`].
    pub(crate) fn shown_to_reach(&mut self) {
        self.reaches = Reach::Shown;
    }

    /// Whether a datagram of that length may be sent to where the peer was last heard; if so it is
    /// counted.
    pub(crate) fn may_send(&mut self, length: usize) -> bool {
        self.reaches.spend(length)
    }

    /// Whether `echo` is of one of the last datagrams sent.
    pub(crate) fn sent_recently(&self, echo: &Echo) -> bool {
        self.echoes.contains(&Some(*echo))
    }
}

fn messages_max(config: &Config) -> u64 {
    config.rekey_after_messages.saturating_mul(2)
}
