//! How a device without a network comes in by way of its neighbours, and lets others in: see
//! `tenure_protocols::joining`.
//!
//! Invariants:
//! - A device that isn't in a mesh says nothing but knocks, and takes nothing but an admission that its
//!   owner signed for it; it tries one a second at most.
//! - A member passes on nothing to a stranger but what the owner signed for it.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use serde::Serialize;
use tenure_directory::check_enrolment;
use tenure_hal::{Flash, Instant};
use tenure_mesh::{Framer, FramerConfig, NodeId, Random, Stack, StackConfig, decode, encode};
use tenure_protocols::babel::Babel;
use tenure_protocols::interface::{Port, SendLarge};
use tenure_protocols::joining::{Doorway, Knock, Knocking, Note, Word, admitted};
use tenure_protocols::network_key::{NetworkKey, check_signature};
use tenure_wire::PublicKey;
use tenure_wire::control::{Admission, Answer, ControlError, MeshStranger, StrangersQuery};

use crate::membership::{JoinError, MeshStack};
use crate::node::{Moment, Node, Notice};

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
}

impl Outside {
    /// The stack, which sends knocks.
    pub(crate) fn stack(&mut self) -> &mut MeshStack {
        &mut self.stack
    }

    fn wakes_at(&self, now: Instant) -> Instant {
        self.stack.poll_at(now).map_or(self.knocking.at(), |at| at.min(self.knocking.at()))
    }
}

impl<F: Flash> Node<F> {
    /// Asks whoever is in reach to be let in, from now on until that happens; for a device that has a link
    /// into the mesh and no network yet. One that is in the mesh has nothing to ask.
    pub fn knock(&mut self, moment: &mut Moment<'_>) {
        if self.mesh.is_some() || self.outside.is_some() {
            return;
        }
        let (owner, name) = (self.config.owner.machine, self.config.name.clone());
        let device = self.identity.device_secret();
        let knock = Knock::new(&device, self.identity.verifying_key(), name, &owner);
        // Without an owner that can be, or randomness, nobody is there to be asked.
        let Some(knock) = knock else { return };
        let Ok(alone) = NetworkKey::generate(moment.entropy) else { return };
        let node = knock.node();
        let framer = Framer::new(
            FramerConfig::new(node, self.identity.boots, self.identity.next_mesh_salt()),
            alone,
        );
        let mut stack = Stack::new(StackConfig::default(), framer);
        stack.hear_plain_frames();
        let mut random = Random::new(node.number() ^ u64::from(self.identity.boots) << 32);
        let knocking = Knocking::new(moment.now, &mut random);
        let knock = encoded(&Word::Knock(knock));
        let heeds_at = moment.now;
        self.outside = Some(Box::new(Outside { stack, knock, knocking, random, heeds_at }));
    }

    /// Moves along what is said at the doorstep, on whichever side of it the device is.
    pub(crate) fn attend_to_doorstep(&mut self, moment: &Moment<'_>) {
        let now = moment.now;
        if let Some(outside) = &mut self.outside {
            if outside.knocking.is_due(now, &mut outside.random) {
                // One that waits already will do.
                let _ = outside.stack.send_plain(&outside.knock);
            }
            outside.stack.poll(now);
        }
        while let Some(word) = self.mesh().and_then(|stack| stack.plain_frame()) {
            match decode::<Word>(&word) {
                Some((Word::Knock(knock), [])) => self.hear_knock(now, knock),
                Some((Word::Admission(admission), [])) => self.heed(now, &admission),
                _ => {}
            }
        }
    }

    /// When the doorstep wants to be attended to.
    pub(crate) fn doorstep_wakes_at(&self, now: Instant) -> Option<Instant> {
        self.outside.as_ref().map(|outside| outside.wakes_at(now))
    }

    /// Takes what another member says of strangers.
    pub(crate) fn take_note(&mut self, now: Instant, from: NodeId, note: &[u8]) {
        let Some(mesh) = &mut self.mesh else { return };
        let doorway = &mut mesh.doorstep.doorway;
        match decode::<Note>(note) {
            Some((Note::Who(awaited), [])) => {
                awaited.into_iter().for_each(|device| doorway.expect(now, device));
                if let Some(note) = doorway.note(now, mesh.stack.node()) {
                    say(&mut mesh.stack, from, &note);
                }
            }
            Some((Note::Heard(strangers), [])) => {
                for (knock, age_s) in strangers.into_iter().take(NOTED_MAX) {
                    let at = now - Duration::from_secs(age_s.into());
                    doorway.hear(now, knock, from, at);
                }
            }
            Some((Note::Admit(admission), [])) => _ = self.admit_here(now, admission),
            _ => {}
        }
    }

    /// Who has knocked, here or as other members told so far; those are asked again.
    ///
    /// # Errors
    /// [`ControlError::Refused`] if the device is in no mesh.
    pub fn strangers(&mut self, now: Instant, query: &StrangersQuery) -> Answer<Vec<MeshStranger>> {
        let Some(mesh) = &mut self.mesh else { return Err(in_no_mesh()) };
        let doorway = &mut mesh.doorstep.doorway;
        query.awaited.into_iter().for_each(|device| doorway.expect(now, device));
        if mesh.doorstep.asks_at.is_none_or(|at| at <= now) {
            mesh.doorstep.asks_at = Some(now + ASK_AGAIN);
            let own = mesh.stack.node();
            let others = mesh.stack.protocol::<Babel>().map(|router| {
                router.table().destinations().filter(|to| *to != own).take(ASKED_MAX).collect()
            });
            let others: Vec<NodeId> = others.unwrap_or_default();
            for to in others {
                say(&mut mesh.stack, to, &Note::Who(query.awaited));
            }
        }
        let strangers = mesh.doorstep.doorway.strangers(now).iter();
        let strangers = strangers.map(|stranger| MeshStranger {
            knock: encoded(&stranger.knock),
            by: stranger.by.to_string(),
            age_s: now.since(stranger.at).as_secs() as u32,
        });
        Ok(strangers.collect())
    }

    /// Sees to it that the stranger for whom the owner's `admission` is hears of it.
    ///
    /// # Errors
    /// [`ControlError`] if the device is in no mesh, the owner didn't sign it, or nobody has heard that
    /// stranger lately.
    pub fn admit(&mut self, now: Instant, admission: Admission) -> Answer<()> {
        let Some(mesh) = &mut self.mesh else { return Err(in_no_mesh()) };
        let device = admitted(&admission).ok_or(ControlError::Malformed)?;
        let own = mesh.stack.node();
        let strangers = mesh.doorstep.doorway.strangers(now).iter();
        let strangers = strangers.filter(|stranger| stranger.knock.device == device);
        let members: Vec<NodeId> = strangers.map(|stranger| stranger.by).collect();
        if members.is_empty() {
            let unheard = "no member has heard that device knock lately";
            return Err(ControlError::Refused(unheard.to_string()));
        }
        for member in members {
            if member == own {
                self.admit_here(now, admission.clone())
                    .map_err(|error| ControlError::Refused(error.to_string()))?;
            } else if let Some(mesh) = &mut self.mesh {
                say(&mut mesh.stack, member, &Note::Admit(admission.clone()));
            }
        }
        Ok(())
    }

    /// Lets a stranger that has knocked here have its admission, if the owner signed it.
    fn admit_here(&mut self, now: Instant, admission: Admission) -> Result<(), JoinError> {
        let Some(mesh) = &mut self.mesh else { return Ok(()) };
        let Some(device) = admitted(&admission) else { return Ok(()) };
        let own = mesh.stack.node();
        let mut strangers = mesh.doorstep.doorway.strangers(now).iter();
        if !strangers.any(|stranger| stranger.knock.device == device && stranger.by == own) {
            return Ok(());
        }
        let owner = &self.config.owner.verifying_key;
        check_signature(&admission.invitation, owner).map_err(JoinError::Invitation)?;
        mesh.doorstep.doorway.admit(now, admission);
        self.answer(now, &device);
        Ok(())
    }

    fn hear_knock(&mut self, now: Instant, knock: Knock) {
        let Some(mesh) = &mut self.mesh else { return };
        let device = knock.device;
        mesh.doorstep.doorway.hear(now, knock, mesh.stack.node(), now);
        self.answer(now, &device);
    }

    fn answer(&mut self, now: Instant, device: &PublicKey) {
        let Some(mesh) = &mut self.mesh else { return };
        if let Some(word) = mesh.doorstep.doorway.answer(now, device) {
            // What isn't said now is when it knocks again.
            let _ = mesh.stack.send_plain(&encoded(&word));
        }
    }

    /// Comes in, if that is what the owner says.
    fn heed(&mut self, now: Instant, admission: &Admission) {
        let own = admitted(admission) == Some(self.identity.machine_key);
        let Some(outside) = self.outside.as_mut().filter(|outside| own && outside.heeds_at <= now)
        else {
            return;
        };
        outside.heeds_at = now + HEED_AGAIN;
        let enrol = &admission.enrol;
        let owner = &self.config.owner.verifying_key;
        // Both count, or neither: a member without a name can't be called.
        if check_enrolment(owner, &enrol.enrolment, &enrol.signature).is_err()
            || self.enrol(enrol.enrolment.clone(), enrol.signature).is_err()
            || self.join_mesh(now, &admission.invitation).is_err()
        {
            return;
        }
        self.register_soon(now);
        let node = NodeId::from(&self.identity.machine);
        self.notify(Notice::InMesh { node });
    }
}

fn in_no_mesh() -> ControlError {
    ControlError::Refused("the device is in no mesh".to_string())
}

fn say(stack: &mut MeshStack, to: NodeId, note: &Note) {
    stack.request(&SendLarge { to, port: Port::JOINING }, &encoded(note));
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes);
    bytes
}
