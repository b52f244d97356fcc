//! How a device without a network comes in by way of its neighbours, and lets others in: see
//! `tenure_protocols::joining`.
//!
//! Invariants:
//! - A device that isn't in a mesh says nothing but knocks, and takes nothing but an admission that its
//!   owner signed for it; it tries one a second at most.
//! - A member passes on nothing to a stranger but what the owner signed for it.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use serde::Serialize;
use tenure_crypto::machine_id;
use tenure_hal::{Flash, Instant};
use tenure_mesh::{Framer, FramerConfig, NodeId, Random, Stack, StackConfig, decode, encode};
use tenure_protocols::babel::Babel;
use tenure_protocols::interface::{Port, SendLarge};
use tenure_protocols::joining::{Doorway, Knock, Knocking, Note, Word, admitted};
use tenure_protocols::network_key::{NetworkKey, check_signature};
use tenure_wire::control::{Admission, Answer, ControlError, MeshStranger, StrangersQuery};
use tenure_wire::{PublicKey, VerifyingKey};

use crate::membership::{JoinError, MeshStack};
use crate::moment::Moment;
use crate::services::Services;

/// The shortest time between two admissions that a stranger tries.
const HEED_AGAIN: Duration = Duration::from_secs(1);
/// The shortest time after which the others are asked again who has knocked.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The most members that are asked.
const ASKED_MAX: usize = 64;
/// The most strangers of which another member is believed to have heard them.
const NOTED_MAX: usize = 8;

/// A device with a link, and without a network.
pub(crate) struct Outside {
    /// Runs no protocol, and is alone with its key.
    stack: MeshStack,
    knock: Vec<u8>,
    knocking: Knocking,
    random: Random,
    heeds_at: Instant,
}

/// A member's part.
#[derive(Default)]
pub(crate) struct Doorstep {
    doorway: Doorway,
    asks_at: Option<Instant>,
    /// An invitation for this device that the owner signed, to be looked at; and when the next one may be.
    own: Option<Vec<u8>>,
    heeds_at: Option<Instant>,
}

impl Outside {
    /// Begins to ask whoever is in reach to let this device in; `None` where nobody can be asked.
    pub(crate) fn new<F: Flash>(
        services: &mut Services<F>,
        moment: &mut Moment<'_>,
    ) -> Option<Self> {
        let Services { identity, config, .. } = services;
        let (owner, name) = (config.owner.machine, config.name.clone());
        let device = identity.device_secret();
        // Without an owner that can be, or randomness, nobody is there to be asked.
        let knock = Knock::new(&device, identity.verifying_key(), name, &owner)?;
        let alone = NetworkKey::generate(moment.entropy).ok()?;
        let node = knock.node();
        let boots = identity.boots;
        let framer = Framer::new(FramerConfig::new(node, boots, identity.next_mesh_salt()), alone);
        let mut stack = Stack::new(StackConfig::default(), framer);
        stack.hear_plain_frames();
        let mut random = Random::new(node.number() ^ u64::from(boots) << 32);
        let knocking = Knocking::new(moment.now, &mut random);
        let knock = encoded(&Word::Knock(knock));
        Some(Self { stack, knock, knocking, random, heeds_at: moment.now })
    }

    /// Knocks when that is due.
    pub(crate) fn attend(&mut self, now: Instant) {
        if self.knocking.is_due(now, &mut self.random) {
            // One that waits already will do.
            let _ = self.stack.send_plain(&self.knock);
        }
        self.stack.poll(now);
    }

    /// Whether an admission may be tried now; the next one later.
    pub(crate) fn may_try(&mut self, now: Instant) -> bool {
        let may = self.heeds_at <= now;
        if may {
            self.heeds_at = now + HEED_AGAIN;
        }
        may
    }

    /// The stack, which sends knocks.
    pub(crate) fn stack(&mut self) -> &mut MeshStack {
        &mut self.stack
    }

    pub(crate) fn wakes_at(&self, now: Instant) -> Instant {
        self.stack.poll_at(now).map_or(self.knocking.at(), |at| at.min(self.knocking.at()))
    }
}

impl Doorstep {
    /// Takes what another member says of strangers.
    pub(crate) fn take_note(
        &mut self,
        stack: &mut MeshStack,
        owner: &VerifyingKey,
        now: Instant,
        (from, note): (NodeId, &[u8]),
    ) {
        let doorway = &mut self.doorway;
        match decode::<Note>(note) {
            Some((Note::Who(awaited), [])) => {
                awaited.into_iter().for_each(|device| doorway.expect(now, device));
                if let Some(note) = doorway.note(now, stack.node()) {
                    say(stack, from, &note);
                }
            }
            Some((Note::Heard(strangers), [])) => {
                for (knock, age_s) in strangers.into_iter().take(NOTED_MAX) {
                    let at = now - Duration::from_secs(age_s.into());
                    doorway.hear(now, knock, from, at);
                }
            }
            Some((Note::Admit(admission), [])) => _ = self.admit_here(stack, owner, now, admission),
            _ => {}
        }
    }

    /// The owner's invitation of this device, if one came.
    pub(crate) fn own_invitation(&mut self) -> Option<Vec<u8>> {
        self.own.take()
    }

    /// Who has knocked, here or as other members told so far; those are asked again.
    pub(crate) fn strangers(
        &mut self,
        stack: &mut MeshStack,
        now: Instant,
        query: &StrangersQuery,
    ) -> Vec<MeshStranger> {
        let doorway = &mut self.doorway;
        query.awaited.into_iter().for_each(|device| doorway.expect(now, device));
        if self.asks_at.is_none_or(|at| at <= now) {
            self.asks_at = Some(now + ASK_AGAIN);
            let own = stack.node();
            let others = stack.protocol::<Babel>().map(|router| {
                router.table().destinations().filter(|to| *to != own).take(ASKED_MAX).collect()
            });
            let others: Vec<NodeId> = others.unwrap_or_default();
            for to in others {
                say(stack, to, &Note::Who(query.awaited));
            }
        }
        let strangers = self.doorway.strangers(now).iter();
        let strangers = strangers.map(|stranger| MeshStranger {
            knock: encoded(&stranger.knock),
            by: stranger.by.to_string(),
            age_s: now.since(stranger.at).as_secs() as u32,
        });
        strangers.collect()
    }

    /// Sees to it that the stranger for whom the owner's `admission` is hears of it.
    ///
    /// # Errors
    /// [`ControlError`] if the owner didn't sign it, or nobody has heard that
    /// stranger lately.
    pub(crate) fn admit(
        &mut self,
        stack: &mut MeshStack,
        owner: &VerifyingKey,
        now: Instant,
        admission: Admission,
    ) -> Answer<()> {
        let device = admitted(&admission).ok_or(ControlError::Malformed)?;
        let (own, node) = (stack.node(), NodeId::from(&machine_id(&device)));
        let strangers = self.doorway.strangers(now).iter();
        let strangers = strangers.filter(|stranger| stranger.knock.device == device);
        let mut members: Vec<NodeId> = strangers.map(|stranger| stranger.by).collect();
        let router = stack.protocol::<Babel>();
        if node == own || router.is_some_and(|router| router.next_hop(node).is_some()) {
            // It is in the mesh, and its owner has another key for it.
            members = [node].into();
        }
        if members.is_empty() {
            let unheard = "no member has heard that device knock lately";
            return Err(ControlError::Refused(unheard.to_string()));
        }
        for member in members {
            if member == own {
                self.admit_here(stack, owner, now, admission.clone())
                    .map_err(|error| ControlError::Refused(error.to_string()))?;
            } else {
                say(stack, member, &Note::Admit(admission.clone()));
            }
        }
        Ok(())
    }

    /// Lets a stranger that has knocked here have its admission, if the owner signed it. One for this device
    /// brings it another key.
    fn admit_here(
        &mut self,
        stack: &mut MeshStack,
        owner: &VerifyingKey,
        now: Instant,
        admission: Admission,
    ) -> Result<(), JoinError> {
        let Some(device) = admitted(&admission) else { return Ok(()) };
        let own = stack.node();
        if NodeId::from(&machine_id(&device)) == own {
            // Members could have signatures checked all day.
            if self.heeds_at.is_none_or(|at| at <= now) {
                self.heeds_at = Some(now + HEED_AGAIN);
                check_signature(&admission.invitation, owner).map_err(JoinError::Invitation)?;
                self.own = Some(admission.invitation);
            }
            return Ok(());
        }
        let mut strangers = self.doorway.strangers(now).iter();
        if !strangers.any(|stranger| stranger.knock.device == device && stranger.by == own) {
            return Ok(());
        }
        check_signature(&admission.invitation, owner).map_err(JoinError::Invitation)?;
        self.doorway.admit(now, admission);
        self.answer(stack, now, &device);
        Ok(())
    }

    /// Hears a stranger knock, and answers if its admission is here.
    pub(crate) fn hear_knock(&mut self, stack: &mut MeshStack, now: Instant, knock: Knock) {
        let device = knock.device;
        self.doorway.hear(now, knock, stack.node(), now);
        self.answer(stack, now, &device);
    }

    fn answer(&mut self, stack: &mut MeshStack, now: Instant, device: &PublicKey) {
        if let Some(word) = self.doorway.answer(now, device) {
            // What isn't said now is when it knocks again.
            let _ = stack.send_plain(&encoded(&word));
        }
    }
}

fn say(stack: &mut MeshStack, to: NodeId, note: &Note) {
    stack.request(&SendLarge { to, port: Port::JOINING }, &encoded(note));
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes);
    bytes
}
