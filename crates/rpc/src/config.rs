//! The limits of an endpoint, with strict defaults.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use tenure_wire::PublicKey;
use tenure_wire::datagram::{DATA_OVERHEAD, INITIATION_OVERHEAD};
use tenure_wire::frame::{CallBody, FRAGMENT_OVERHEAD, FRAGMENTS_MAX, Finished, Greeting};
use tenure_wire::limits::{FUNCTION_BYTES_MAX, MACHINES_MAX, PARAMETER_BYTES_MAX};

/// The limits of an endpoint, and its patience.
///
/// The defaults are for the smallest class of device. Its tables take at most so much RAM when
/// everything is full, on a 64-bit CPU with addresses of 32 bytes (less on 32 bits):
///
/// | what | KB |
/// |---|---|
/// | sessions: 24 of 370 bytes | 9 |
/// | callers: 16 of 136 bytes, 8 calls each of 88 | 13 |
/// | own calls: 16 of 312 bytes | 5 |
/// | peers: 12 of 250 bytes, and one datagram each while a session is opened | 20 |
/// | accepted initiations: 24 of 120 bytes | 3 |
/// | parameters and results | 56 |
/// | datagrams that wait to be sent: 24 of 1200 bytes | 28 |
#[derive(Clone, Debug)]
pub struct Config {
    /// The longest datagram to send, in bytes.
    pub datagram_bytes_max: usize,
    /// The longest parameter or result, in bytes.
    pub parameter_bytes_max: usize,
    /// The key that the device's owner calls with. What strangers can use up is kept for it or given
    /// back to it: handshakes, sessions, memory for calls, room among those that are executed.
    pub owner: Option<PublicKey>,
    /// Peers that are known: where there is no room, strangers make room for strangers alone. In order, each once;
    /// [`Endpoint::favour`](crate::Endpoint::favour) changes them.
    pub favoured: Vec<PublicKey>,
    /// Machines that this endpoint speaks for.
    pub machines_max: usize,
    /// Sessions, with whomever and whoever opened them.
    pub sessions_max: usize,
    /// Sessions whose opener has not yet shown that it got the response.
    pub half_open_max: usize,
    /// Peers that are called, with what is known of the way to them.
    pub peers_max: usize,
    /// Callers of whose calls it is remembered which were executed.
    pub callers_max: usize,
    /// Own calls that are under way.
    pub calls_max: usize,
    /// Bytes of the parameters of own calls and of their results as they come in; one result of
    /// the greatest length always has room.
    pub calls_bytes_max: usize,
    /// Questions who is at an address that are under way.
    pub questions_max: usize,
    /// Others' calls that are being executed, of all callers together.
    pub running_max: usize,
    /// Others' calls that are being executed, of one caller.
    pub running_per_caller_max: usize,
    /// Calls of one caller that are remembered until it has acknowledged their results.
    pub remembered_per_caller_max: usize,
    /// Bytes of parameters and results that are assembled or kept, for all callers together.
    pub buffer_bytes_max: usize,
    /// Bytes of parameters and results that are assembled or kept for one caller.
    pub buffer_bytes_per_caller_max: usize,
    /// Datagrams that wait to be sent; further ones are lost.
    pub queued_datagrams_max: usize,
    /// Accepted initiations that are remembered before a new epoch begins.
    pub accepted_initiations_max: usize,
    /// The age at which an epoch makes place for the next. Initiations that name it are accepted for
    /// as long again: a first message that is held back longer isn't executed.
    pub epoch_lifetime: Duration,
    /// Handshakes a second that are computed for anybody who asks. One takes about 18 million
    /// instructions on a 32-bit CPU, and a fifth of that if it is a forgery.
    pub handshakes_per_second: u32,
    /// Handshakes a second that are computed in all; beyond [`Self::handshakes_per_second`] only
    /// for those who have shown that they receive at their address.
    pub handshakes_per_second_max: u32,
    /// Refusals a second that are sent in all. One costs no more than a datagram, and tells a peer at once that its
    /// session is gone.
    pub refusals_per_second: u32,
    /// How long to wait for an answer before anything is known of the peer.
    pub timeout_initial: Duration,
    /// The shortest time to wait for an answer.
    pub timeout_min: Duration,
    /// The longest time to wait for an answer, and between questions whether a call still runs.
    pub timeout_max: Duration,
    /// How long the receipt of a result may go unacknowledged while there is nothing else to say.
    pub acknowledge_after: Duration,
    /// How long a call in fragments may stand still, without a fragment that is new, before its
    /// fragments are dropped.
    pub assembly_timeout: Duration,
    /// How long a call may take to come in, however it proceeds.
    pub assembly_lifetime: Duration,
    /// The age at which a session is replaced by whoever wants to call over it.
    pub rekey_after: Duration,
    /// The age at which a session ends.
    pub session_lifetime: Duration,
    /// The messages in one direction after which a session is replaced; at twice that it ends.
    pub rekey_after_messages: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            datagram_bytes_max: 1200,
            parameter_bytes_max: PARAMETER_BYTES_MAX,
            owner: None,
            favoured: Vec::new(),
            machines_max: MACHINES_MAX,
            sessions_max: 24,
            half_open_max: 8,
            peers_max: 12,
            callers_max: 16,
            calls_max: 16,
            calls_bytes_max: 32 * 1024,
            questions_max: 8,
            running_max: 12,
            running_per_caller_max: 4,
            remembered_per_caller_max: 8,
            buffer_bytes_max: 24 * 1024,
            buffer_bytes_per_caller_max: 16 * 1024,
            queued_datagrams_max: 24,
            accepted_initiations_max: 24,
            epoch_lifetime: Duration::from_secs(2 * 60),
            handshakes_per_second: 2,
            handshakes_per_second_max: 8,
            refusals_per_second: 8,
            timeout_initial: Duration::from_millis(500),
            timeout_min: Duration::from_millis(50),
            timeout_max: Duration::from_secs(4),
            acknowledge_after: Duration::from_millis(500),
            assembly_timeout: Duration::from_secs(15),
            assembly_lifetime: Duration::from_secs(60),
            rekey_after: Duration::from_secs(2 * 60 * 60),
            session_lifetime: Duration::from_secs(3 * 60 * 60),
            rekey_after_messages: 1 << 32,
        }
    }
}

impl Config {
    /// Limits for a device with megabytes to spare, such as a hub.
    pub fn large() -> Self {
        Self {
            machines_max: 1024,
            sessions_max: 2048,
            half_open_max: 256,
            peers_max: 1024,
            callers_max: 2048,
            calls_max: 1024,
            calls_bytes_max: 4 * 1024 * 1024,
            running_max: 256,
            running_per_caller_max: 16,
            remembered_per_caller_max: 32,
            buffer_bytes_max: 4 * 1024 * 1024,
            buffer_bytes_per_caller_max: 256 * 1024,
            queued_datagrams_max: 1024,
            accepted_initiations_max: 1024,
            handshakes_per_second: 200,
            handshakes_per_second_max: 1_000,
            refusals_per_second: 1_000,
            ..Self::default()
        }
    }

    /// Limits for a directory of that many devices and people who call it, so that none of them ends another's
    /// session: each has one session and the next, and as many strangers have room beside them.
    pub fn for_callers(callers: usize) -> Self {
        let large = Self::large();
        let as_many = |least: usize| least.max(callers.saturating_mul(2));
        Self {
            sessions_max: as_many(large.sessions_max).saturating_add(callers),
            callers_max: as_many(large.callers_max),
            accepted_initiations_max: as_many(large.accepted_initiations_max),
            ..large
        }
    }

    /// Has at least as much room as `other` for whatever peers fill: for sessions, callers and accepted initiations.
    pub fn widen(&mut self, other: &Self) {
        self.sessions_max = self.sessions_max.max(other.sessions_max);
        self.callers_max = self.callers_max.max(other.callers_max);
        self.accepted_initiations_max =
            self.accepted_initiations_max.max(other.accepted_initiations_max);
    }
}

/// Whose a peer is, in the order in which they keep their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Anybody.
    Stranger,
    /// One of [`Config::favoured`].
    Favoured,
    /// The owner.
    Owner,
}

impl Standing {
    /// Whether a peer of this standing may take the place of one of that. The owner's are the last to go, and a
    /// device whose places are all the owner's still answers others.
    pub(crate) fn may_end(self, whose: Self) -> bool {
        self >= whose || whose == Self::Owner
    }
}

/// How far apart two clocks run at most: one part in this many.
pub(crate) const CLOCK_DRIFT: u32 = 1_000;
/// The shortest datagram that an endpoint can be told to keep to.
const DATAGRAM_BYTES_MIN: usize = 256;
const _: () = assert!(DATAGRAM_BYTES_MIN > INITIATION_OVERHEAD + Greeting::BYTES + Finished::BYTES);
const _: () = assert!(DATAGRAM_BYTES_MIN > DATA_OVERHEAD + FRAGMENT_OVERHEAD);

impl Config {
    /// Checks that the limits fit one another.
    ///
    /// # Errors
    /// [`ConfigError`] names the first limit that doesn't.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let body_bytes_max = self.body_bytes_max();
        // Each by itself: a table of them would be built on the stack, by more code than the comparisons take.
        let require = |limit, holds| if holds { Ok(()) } else { Err(ConfigError { limit }) };
        require(
            "datagram_bytes_max",
            (DATAGRAM_BYTES_MIN..=65_507).contains(&self.datagram_bytes_max),
        )?;
        require(
            "parameter_bytes_max",
            body_bytes_max.div_ceil(self.fragment_bytes().into()) <= FRAGMENTS_MAX,
        )?;
        require("machines_max", self.machines_max >= 1)?;
        require("sessions_max", self.sessions_max > self.half_open_max)?;
        require("half_open_max", self.half_open_max >= 1)?;
        require("peers_max", self.peers_max >= 1)?;
        require("callers_max", self.callers_max > self.running_max)?;
        require("calls_max", self.calls_max >= 1)?;
        require("calls_bytes_max", self.calls_bytes_max / 2 >= body_bytes_max)?;
        require("running_max", self.running_max >= self.running_per_caller_max)?;
        require("running_per_caller_max", self.running_per_caller_max >= 1)?;
        require(
            "remembered_per_caller_max",
            self.remembered_per_caller_max >= self.running_per_caller_max,
        )?;
        require("buffer_bytes_max", self.buffer_bytes_max >= self.buffer_bytes_per_caller_max)?;
        require("buffer_bytes_per_caller_max", self.buffer_bytes_per_caller_max >= body_bytes_max)?;
        require("queued_datagrams_max", self.queued_datagrams_max >= 1)?;
        require("accepted_initiations_max", self.accepted_initiations_max >= 1)?;
        require("handshakes_per_second", self.handshakes_per_second >= 1)?;
        require(
            "handshakes_per_second_max",
            self.handshakes_per_second_max >= self.handshakes_per_second,
        )?;
        require("epoch_lifetime", !self.epoch_lifetime.is_zero())?;
        require("timeout_min", !self.timeout_min.is_zero())?;
        require("timeout_initial", self.timeout_initial >= self.timeout_min)?;
        require("timeout_max", self.timeout_max >= self.timeout_initial)?;
        require("assembly_lifetime", self.assembly_lifetime >= self.assembly_timeout)?;
        require("session_lifetime", self.session_lifetime > self.rekey_after)?;
        require("rekey_after_messages", (1..=1 << 48).contains(&self.rekey_after_messages))
    }

    /// The longest call or reply as it is fragmented, in bytes.
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.parameter_bytes_max
            .saturating_add(CallBody::OVERHEAD)
            .saturating_add(FUNCTION_BYTES_MAX)
    }

    /// The shortest time between two sendings that open a session: a handshake takes a small device longer than an
    /// answer, and what comes again meanwhile takes its time too.
    pub(crate) fn handshake_timeout_min(&self) -> Duration {
        self.timeout_initial / 2
    }

    /// Whether that is the owner's key.
    pub(crate) fn is_owner(&self, peer: &PublicKey) -> bool {
        self.owner.as_ref() == Some(peer)
    }

    /// Whose that peer is.
    pub(crate) fn standing(&self, peer: &PublicKey) -> Standing {
        if self.is_owner(peer) {
            Standing::Owner
        } else if self.favoured.binary_search(peer).is_ok() {
            Standing::Favoured
        } else {
            Standing::Stranger
        }
    }

    /// How long the fragments are that this endpoint sends.
    pub(crate) fn fragment_bytes(&self) -> u16 {
        let bytes = self.datagram_bytes_max.saturating_sub(DATA_OVERHEAD + FRAGMENT_OVERHEAD);
        u16::try_from(bytes).unwrap_or(u16::MAX).max(1)
    }
}

/// A limit that doesn't fit the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The name of the limit.
    pub limit: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the limit {} is out of range or doesn't fit the others", self.limit)
    }
}

impl core::error::Error for ConfigError {}
