//! Joining by the mesh alone: how a device that nobody but its neighbours hears asks to be let in, and
//! how its owner's word comes back to it.
//!
//! A stranger can say two things to members, and they to it, each in one plain frame, which nobody sealed:
//! its [`Knock`], and the [`Admission`] that answers it. An admission is the owner's invitation
//! ([`network_key`](crate::network_key)), encrypted to the device and signed, with the enrolment that
//! gives it its name; so whoever carries it can't read the key, change it, or let in anybody else. A knock
//! proves to the owner, and to nobody else, that the device itself said it: by a key that only the two can
//! agree on (static-static X25519, as HPKE's authenticated mode, RFC 9180 §5.1.3).
//!
//! ```text
//!  stranger                    member                              member with the owner
//!      │ knock, at times          │                                       │
//!      ├─────────────────────────►│  Who? ◄───────────────────────────────┤ ◄── tenure invite
//!      │                          ├─ Heard ──────────────────────────────►│ ──► checks the proof, signs
//!      │   admission, once now    │◄──────────────────────────── Admit ───┤ ◄──
//!      │◄─────────────────────────┤
//!      │ and once for each knock, but no more than a few times
//! ```
//!
//! A member says nothing to a stranger that its owner didn't sign for that very device, so nobody makes it
//! talk; what strangers can fill is a short list, in which one that the owner asked for isn't displaced.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_crypto::{StaticSecret, hkdf_sha256, machine_id};
use tenure_hal::Instant;
use tenure_mesh::{NodeId, Random};
use tenure_wire::control::Admission;
use tenure_wire::{Name, PublicKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::network_key::{INVITATION_BYTES, addressee};

#[cfg(test)]
mod tests;

const PROOF_LABEL: &[u8] = b"tenure 1 mesh knock";
/// How long a stranger waits after its first knock, and at most.
const KNOCK_AGAIN: Duration = Duration::from_secs(2);
const KNOCK_AGAIN_MAX: Duration = Duration::from_secs(30);
/// The most strangers that are remembered, and how long after their last knock.
const HEARD_MAX: usize = 8;
const HEARD_LASTS: Duration = Duration::from_secs(120);
/// The most admissions that are under way, for how long, and how often each is said.
const ADMISSIONS_MAX: usize = 4;
const ADMISSION_LASTS: Duration = Duration::from_secs(300);
const ANSWERS_MAX: u8 = 12;
/// The shortest time between two answers, whoever knocks.
const ANSWER_AGAIN: Duration = Duration::from_millis(500);

/// The messages of a stranger and a member to each other, in plain frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// Of the stranger.
    Knock(Knock),
    /// Of the member, for the stranger.
    Admission(Admission),
}

/// Says: here is a device that wants to be let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knock {
    /// The device's own machine, to which its invitation is encrypted.
    pub device: PublicKey,
    /// The key that its owner enrols.
    pub key: VerifyingKey,
    /// Its name.
    pub name: Name,
    proof: [u8; 16],
}

/// The messages of members to each other about strangers, as datagrams within the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// A question for strangers that have knocked. The owner waits for that one, if for any.
    Who(Option<PublicKey>),
    /// These have, so many seconds ago.
    Heard(Vec<(Knock, u16)>),
    /// Say this to the stranger that it is for.
    Admit(Admission),
}

impl Knock {
    /// The knock of the device whose own machine has that secret and public key, for the owner whose machine is
    /// `owner`; `None` if that is nobody's key.
    pub fn new(
        (secret, device): (&StaticSecret, PublicKey),
        key: VerifyingKey,
        name: Name,
        owner: &PublicKey,
    ) -> Option<Self> {
        let mut knock = Self { device, key, name, proof: [0; 16] };
        knock.proof = knock.proof_by(secret, owner)?;
        Some(knock)
    }

    /// Whether the device itself made it, for the owner whose machine is `owner`.
    pub fn is_proven_to(&self, owner: &StaticSecret) -> bool {
        self.proof_by(owner, &self.device) == Some(self.proof)
    }

    /// The device's name in the mesh.
    pub fn node(&self) -> NodeId {
        NodeId::from(&machine_id(&self.device))
    }

    fn proof_by(&self, own: &StaticSecret, peer: &PublicKey) -> Option<[u8; 16]> {
        let shared = own.agree(peer).ok()?;
        let mut proof = Zeroizing::new([0; 16]);
        let content = [PROOF_LABEL, &self.device.0, &self.key.0, self.name.as_str().as_bytes()];
        hkdf_sha256(&[], shared.as_bytes(), &content, &mut *proof);
        Some(*proof)
    }
}

/// The device that an admission is for, whoever signed it; `None` if there is no invitation in it.
pub fn admitted(admission: &Admission) -> Option<PublicKey> {
    let invitation = &admission.invitation;
    addressee(invitation).filter(|_| invitation.len() == INVITATION_BYTES)
}

/// When a stranger knocks: soon, and then ever more rarely.
#[derive(Clone, Copy, Debug)]
pub struct Knocking {
    next: Instant,
    wait: Duration,
}

impl Knocking {
    /// As of now.
    pub fn new(now: Instant, random: &mut Random) -> Self {
        Self { next: now + random.below_span(KNOCK_AGAIN), wait: KNOCK_AGAIN }
    }

    /// When it knocks next.
    pub fn at(&self) -> Instant {
        self.next
    }

    /// Whether it is to knock now.
    pub fn is_due(&mut self, now: Instant, random: &mut Random) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + random.around(self.wait);
        self.wait = (self.wait * 2).min(KNOCK_AGAIN_MAX);
        true
    }
}

/// A stranger, as a member knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Its statement.
    pub knock: Knock,
    /// The member that heard it.
    pub by: NodeId,
    /// When.
    pub at: Instant,
}

/// A member's side: who has knocked, here or elsewhere, and what strangers are to be told.
#[derive(Debug, Default)]
pub struct Doorway {
    strangers: Vec<Stranger>,
    /// The stranger that the owner waits for, and until when.
    wanted: Option<(PublicKey, Instant)>,
    admissions: Vec<UnderWay>,
    answer_at: Option<Instant>,
}

#[derive(Debug)]
struct UnderWay {
    device: PublicKey,
    admission: Admission,
    until: Instant,
    answers_left: u8,
}

impl Doorway {
    /// Those who have knocked lately.
    pub fn strangers(&mut self, now: Instant) -> &[Stranger] {
        self.strangers.retain(|stranger| now.since(stranger.at) < HEARD_LASTS);
        &self.strangers
    }

    /// Lets nobody displace that stranger for a while.
    pub fn expect(&mut self, now: Instant, device: PublicKey) {
        self.wanted = Some((device, now + HEARD_LASTS));
    }

    /// Takes a knock that the member `by` heard at `at`, at most a few of all members'.
    pub fn hear(&mut self, now: Instant, knock: Knock, by: NodeId, at: Instant) {
        self.strangers(now);
        let wanted = self.wanted.filter(|(_, until)| *until > now).map(|(device, _)| device);
        let same = |it: &Stranger| it.knock.device == knock.device && it.by == by;
        let place = self.strangers.iter().position(same);
        let place = place.or_else(|| {
            let oldest = self.strangers.iter().enumerate();
            let oldest = oldest.filter(|(_, it)| Some(it.knock.device) != wanted);
            let oldest = oldest.min_by_key(|(_, it)| it.at).map(|(place, _)| place);
            oldest.filter(|_| self.strangers.len() >= HEARD_MAX)
        });
        if let Some(place) = place {
            self.strangers.remove(place);
        }
        if self.strangers.len() < HEARD_MAX {
            self.strangers.push(Stranger { knock, by, at });
        }
    }

    /// The strangers that this member, `own`, has heard itself, to be told to others.
    pub fn note(&mut self, now: Instant, own: NodeId) -> Option<Note> {
        let heard = self.strangers(now).iter().filter(|stranger| stranger.by == own);
        let age = |stranger: &Stranger| now.since(stranger.at).as_secs() as u16;
        let heard: Vec<_> = heard.map(|it| (it.knock.clone(), age(it))).collect();
        (!heard.is_empty()).then_some(Note::Heard(heard))
    }

    /// Takes an admission that the owner signed, to be said to a stranger at once and whenever it knocks.
    pub fn admit(&mut self, now: Instant, admission: Admission) {
        let Some(device) = admitted(&admission) else { return };
        self.admissions.retain(|it| it.device != device && it.until > now);
        if self.admissions.len() >= ADMISSIONS_MAX {
            self.admissions.remove(0);
        }
        let until = now + ADMISSION_LASTS;
        let answers_left = ANSWERS_MAX;
        self.admissions.push(UnderWay { device, admission, until, answers_left });
    }

    /// As [`Self::admit`], unless the same one is under way: how often it is said counts on.
    pub fn offer(&mut self, now: Instant, admission: &Admission) {
        let is_same = |it: &UnderWay| it.admission == *admission && it.until > now;
        if !self.admissions.iter().any(is_same) {
            self.admit(now, admission.clone());
        }
    }

    /// The message for that stranger now, if any.
    pub fn answer(&mut self, now: Instant, device: &PublicKey) -> Option<Word> {
        self.admissions.retain(|it| it.until > now);
        if self.answer_at.is_some_and(|at| now < at) {
            return None;
        }
        let is_meant = |it: &&mut UnderWay| it.device == *device && it.answers_left > 0;
        let found = self.admissions.iter_mut().find(is_meant)?;
        found.answers_left -= 1;
        self.answer_at = Some(now + ANSWER_AGAIN);
        Some(Word::Admission(found.admission.clone()))
    }
}
