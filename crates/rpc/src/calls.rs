//! The calling side: calls that are under way, and what is known of the peers they go to.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_hal::Instant;
use tenure_wire::datagram::{Cookie, Echo, Epoch, PROOF_BYTES, SessionIndex};
use tenure_wire::frame::{CallNumber, Finished, FragmentSet};

use crate::CallHandle;
use crate::assembly::Assembly;
use crate::budget::Budget;
use crate::noise::Initiated;
use crate::round_trip::RoundTrip;
use crate::session::Pair;

/// One call that is under way.
pub(crate) struct Call<A> {
    /// Its name to its caller, among all calls of this endpoint.
    pub(crate) handle: CallHandle,
    /// Its name to the peer, among all calls of this pair.
    pub(crate) number: CallNumber,
    pub(crate) pair: Pair,
    /// Where its caller believes the peer to be.
    pub(crate) route: A,
    /// The call's message.
    pub(crate) body: Vec<u8>,
    pub(crate) deadline: Instant,
    /// Until when the peer takes it, as far as it was told.
    pub(crate) wanted_until: Instant,
    /// How often something may be sent without an answer, in all and from now on.
    pub(crate) attempts: u8,
    pub(crate) attempts_left: u8,
    /// When any part of it was first sent, by whichever way.
    pub(crate) first_sent: Option<Instant>,
    pub(crate) stage: Stage,
    /// When something about it was last sent, and whether that was the only thing since the last
    /// answer, so that the answer measures the round trip.
    pub(crate) sent_at: Instant,
    pub(crate) sent_once: bool,
    /// How often something was sent since the last answer.
    pub(crate) unanswered: u32,
    /// How many answers in a row said no more than that it runs.
    pub(crate) still_running: u32,
    /// When to send something again in [`Stage::Sent`], or to look for a session in
    /// [`Stage::Waiting`] while none is being opened.
    pub(crate) next_at: Instant,
    /// Fragments of the body that the peer isn't known to have.
    pub(crate) missing: FragmentSet,
    /// Fragments of the body that were sent last.
    pub(crate) in_flight: FragmentSet,
    /// Fragments of the body that were sent at all, and how often such a one is sent again because the
    /// peer says that it is missing.
    pub(crate) sent: FragmentSet,
    pub(crate) repeats: Budget,
    /// Whether something couldn't be sent because the peer hasn't shown where it receives.
    pub(crate) withheld: bool,
    /// The reply, as far as it is here.
    pub(crate) reply: Option<Assembly>,
    /// When the last part of it came that was new.
    pub(crate) reply_grew_at: Instant,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for a session.
    Waiting,
    /// It is part of the initiation that is under way.
    Riding,
    /// It was sent over this session.
    Sent {
        /// This end's number of the session.
        over: SessionIndex,
    },
}

impl<A> Call<A> {
    /// Takes note of an answer about this call; gives the round trip if it measures one.
    pub(crate) fn answered(&mut self, now: Instant) -> Option<core::time::Duration> {
        let measured = self.sent_once.then(|| now.since(self.sent_at));
        self.sent_once = false;
        self.unanswered = 0;
        self.attempts_left = self.attempts;
        measured
    }

    /// Takes note that something was sent that is to be answered by `now + timeout`.
    pub(crate) fn was_sent(&mut self, now: Instant, timeout: core::time::Duration) {
        self.first_sent.get_or_insert(now);
        self.sent_once = self.unanswered == 0;
        self.unanswered += 1;
        self.sent_at = now;
        self.next_at = now + timeout;
    }

    /// Whether it has never left this device, not even in part.
    pub(crate) fn is_unsent(&self) -> bool {
        self.first_sent.is_none()
    }
}

/// Whether a call may be sent over a session whose peer remembers all calls that were first sent after
/// `peer_remembers_since`: the peer still knows then whether it executed it.
pub(crate) fn may_send(first_sent: Option<Instant>, peer_remembers_since: Instant) -> bool {
    first_sent.is_none_or(|first| first > peer_remembers_since)
}

/// A peer that is called: its epoch, the numbers of calls to it, and the handshake with it.
pub(crate) struct Peer<A> {
    pub(crate) pair: Pair,
    /// The number of the next call to it.
    pub(crate) next_number: CallNumber,
    /// The calls to it that are over.
    pub(crate) finished: Finished,
    /// Its epoch, as it said itself or as was published.
    pub(crate) epoch: Option<Epoch>,
    /// The epoch that was last published, as the caller said.
    pub(crate) hint: Option<Epoch>,
    pub(crate) round_trip: RoundTrip,
    /// How many fragments to send, or to ask for, at a time.
    pub(crate) burst: u8,
    pub(crate) handshake: Option<Handshake<A>>,
    /// The last turn that it gave this end, as far as that is believed.
    pub(crate) turn: Option<Instant>,
    /// When to say which results have arrived, if nothing else is said before.
    pub(crate) acknowledge_at: Option<Instant>,
    pub(crate) last_used: Instant,
    /// When it was last suspected to have lost its sessions.
    pub(crate) last_doubt: Option<Instant>,
}

/// The fewest and the most fragments that are sent at a time.
pub(crate) const BURST_MAX: u8 = 32;
/// How many fragments are sent at a time before anything is known of the way.
pub(crate) const BURST_INITIAL: u8 = 8;
/// How many fragments a second are sent again to one caller, or of one call, because the other end
/// asks for them: its questions are much shorter.
pub(crate) const REPEATS_PER_SECOND: u32 = 64;

impl<A> Peer<A> {
    /// A peer that nothing is known of. `first` is higher than the number of any call to it before.
    pub(crate) fn new(now: Instant, pair: Pair, first: CallNumber) -> Self {
        Self {
            pair,
            next_number: first,
            finished: Finished::below(first),
            epoch: None,
            hint: None,
            round_trip: RoundTrip::default(),
            burst: BURST_INITIAL,
            handshake: None,
            turn: None,
            acknowledge_at: None,
            last_used: now,
            last_doubt: None,
        }
    }

    /// Whether the peer can keep track of a call with that number beside those before it.
    pub(crate) fn may_send(&self, number: CallNumber) -> bool {
        number.0.saturating_sub(self.finished.floor().0) <= Finished::WINDOW
    }

    /// Adapts the burst to what became of the last one: additive increase when all of it arrived,
    /// halving when some was lost.
    pub(crate) fn adapt_burst(&mut self, lost: bool) {
        self.burst = if lost { (self.burst / 2).max(1) } else { self.burst + 4 }.min(BURST_MAX);
    }
}

/// A handshake that this end opened.
pub(crate) struct Handshake<A> {
    pub(crate) step: Step,
    pub(crate) route: A,
    /// Where the current message was sent.
    pub(crate) sent_to: SentTo<A>,
    /// The cookie that the device gave last, and whether the next message proves it.
    pub(crate) cookie: Option<Cookie>,
    pub(crate) cookie_is_next: bool,
    /// How often the current message was sent, when last, and when to send it again.
    pub(crate) transmissions: u32,
    pub(crate) sent_at: Instant,
    pub(crate) next_at: Instant,
    /// How often somebody said who saw it that the peer has no time for it yet.
    pub(crate) deferrals: u32,
    /// How many more responses are tried before the message is sent again: a false one costs as much
    /// as the true one.
    pub(crate) responses_left: u8,
    /// How many challenges were answered at once.
    pub(crate) challenges: u8,
    /// How often somebody said that the machine isn't there.
    pub(crate) absences: u32,
    /// How often more to send while no call waits for it.
    pub(crate) attempts_in_background: u8,
}

/// Where a message was sent, so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentTo<A> {
    /// Nowhere yet.
    Nobody,
    /// To this address only. Whoever answers receives there.
    One(A),
    /// To several addresses.
    Several,
}

impl<A: PartialEq> SentTo<A> {
    /// Takes note of one more address.
    pub(crate) fn add(&mut self, address: A) {
        *self = match self {
            Self::Nobody => Self::One(address),
            Self::One(before) if *before == address => return,
            Self::One(_) | Self::Several => Self::Several,
        };
    }
}

/// How far a handshake is.
pub(crate) enum Step {
    /// Nothing could be sent yet.
    Idle,
    /// The peer was asked for its epoch.
    Probing {
        /// The value that the answer must echo.
        nonce: Echo,
    },
    /// The first message was sent.
    Initiating(Box<Initiating>),
}

/// The handshake whose first message was sent.
pub(crate) struct Initiating {
    pub(crate) noise: Initiated,
    pub(crate) index: SessionIndex,
    pub(crate) datagram: Vec<u8>,
    pub(crate) echo: Echo,
    pub(crate) epoch: Epoch,
    /// The proof that shows the called machine who sends this.
    pub(crate) own_proof: [u8; PROOF_BYTES],
    /// The call that it carries.
    pub(crate) rider: Option<CallHandle>,
}
