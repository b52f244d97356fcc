//! How a device without a network comes in by way of its neighbours, and lets others in: see
//! `tenure_protocols::joining`.
//!
//! Invariants:
//! - A device that isn't in a mesh says nothing but knocks, and takes nothing but an admission that its
//!   owner signed for it; it tries one a second at most.
//! - A member passes on nothing to a stranger but what the owner signed for it.
//!
//! A member that was away while the mesh got another key stands outside as well: what it hears is sealed by a key
//! that it doesn't have. It knocks as strangers do, and takes the owner's admission, which the member that the owner
//! told keeps for it.

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

/// The most admissions that a member keeps of devices that it can't reach, 300 bytes each.
const KEPT_MAX: usize = 32;
/// A device whose admission is kept is in the mesh by the key in it if it can be reached so long after; before, it
/// may be by the present one.
const KEPT_AT_LEAST: Duration = Duration::from_secs(60);
/// How long until members are asked whether a device has knocked that is kept for, and at most; it doubles.
const SEEK_AFTER: Duration = Duration::from_secs(15);
const SEEK_AFTER_MAX: Duration = Duration::from_secs(120);
/// A member knocks once it has heard for so long frames that it can't open, and so many of them: sooner if it has
/// no neighbour, and else so often at most. Beside an expelled device everybody hears such frames.
const LOST_AFTER: Duration = Duration::from_secs(20);
const LOST_AMONG_OTHERS_AFTER: Duration = Duration::from_secs(60);
const FRAMES_OF_OTHERS_MIN: u64 = 4;
const KNOCKS_AMONG_OTHERS: u8 = 6;

/// A device with a link, and without a network.
pub(crate) struct Outside {
    /// Runs no protocol, and is alone with its key.
    stack: MeshStack,
    knocker: Knocker,
}

/// A device's knocks: their content, and when they are due.
struct Knocker {
    knock: Vec<u8>,
    knocking: Knocking,
    random: Random,
    heeds_at: Instant,
    said: u8,
}

/// Whether a member stands outside, since the mesh has another key.
#[derive(Default)]
pub(crate) struct Lost {
    /// Since when it has heard frames that it can't open without a pause, how many it had by then, and has.
    since: Option<(Instant, u64)>,
    last: Option<(Instant, u64)>,
    knocker: Option<Knocker>,
}

/// A member's part.
#[derive(Default)]
pub(crate) struct Doorstep {
    doorway: Doorway,
    /// The owner's admissions of devices that weren't seen since, and when members are asked for them next.
    kept: Vec<Kept>,
    seeks_at: Option<Instant>,
    seek_after: Duration,
    asks_at: Option<Instant>,
    /// An invitation for this device that the owner signed, to be looked at; and when the next one may be.
    own: Option<Vec<u8>>,
    heeds_at: Option<Instant>,
}

/// An admission for a device that can't be told now.
struct Kept {
    device: PublicKey,
    admission: Admission,
    until_seen_from: Instant,
}

impl Knocker {
    /// The knocks of this device from now on; `None` where nobody can be asked.
    fn new<F: Flash>(services: &mut Services<F>, now: Instant) -> Option<Self> {
        let Services { identity, config, .. } = services;
        let (owner, name) = (config.owner.machine, config.name.clone());
        let (secret, device) = (identity.device_secret(), identity.machine_key);
        // Without an owner that can be, nobody is there to be asked.
        let knock = Knock::new((&secret, device), identity.verifying_key(), name, &owner)?;
        let mut random = Random::new(knock.node().number() ^ u64::from(identity.boots) << 32);
        let knocking = Knocking::new(now, &mut random);
        let knock = encoded(&Word::Knock(knock));
        Some(Self { knock, knocking, random, heeds_at: now, said: 0 })
    }

    /// Knocks by way of `stack` when that is due.
    fn attend(&mut self, stack: &mut MeshStack, now: Instant) {
        if self.knocking.is_due(now, &mut self.random) {
            self.said = self.said.saturating_add(1);
            // A knock that waits already will do.
            let _ = stack.send_plain(&self.knock);
        }
    }

    /// Whether an admission may be tried now; the next one later.
    fn may_try(&mut self, now: Instant) -> bool {
        let may = self.heeds_at <= now;
        if may {
            self.heeds_at = now + HEED_AGAIN;
        }
        may
    }
}

impl Lost {
    /// Looks whether this member hears frames that it can't open, and knocks if so.
    pub(crate) fn attend<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        stack: &mut MeshStack,
        now: Instant,
    ) {
        let unopened = stack.counters().forged;
        let (heard_at, before) = *self.last.get_or_insert((now, unopened));
        if unopened > before {
            self.last = Some((now, unopened));
            self.since.get_or_insert((now, before));
        } else if now.since(heard_at) >= LOST_AFTER {
            (self.since, self.knocker) = (None, None);
        }
        let Some((since, first)) = self.since else { return };
        let router = stack.protocol::<Babel>();
        let is_alone = router.is_none_or(|router| router.links().next().is_none());
        let after = if is_alone { LOST_AFTER } else { LOST_AMONG_OTHERS_AFTER };
        if now.since(since) < after || unopened - first < FRAMES_OF_OTHERS_MIN {
            return;
        }
        if self.knocker.is_none() {
            self.knocker = Knocker::new(services, now);
        }
        let knocker = self.knocker.as_mut();
        if let Some(knocker) = knocker.filter(|it| is_alone || it.said < KNOCKS_AMONG_OTHERS) {
            knocker.attend(stack, now);
        }
    }

    /// Whether an admission may be tried now; the next one later.
    pub(crate) fn may_try(&mut self, now: Instant) -> bool {
        self.knocker.as_mut().is_some_and(|knocker| knocker.may_try(now))
    }
}

impl Outside {
    /// Begins to ask whoever is in reach to let this device in; `None` where nobody can be asked.
    pub(crate) fn new<F: Flash>(
        services: &mut Services<F>,
        moment: &mut Moment<'_>,
    ) -> Option<Self> {
        let knocker = Knocker::new(services, moment.now)?;
        let identity = &mut services.identity;
        // Without randomness nobody can be asked.
        let alone = NetworkKey::generate(moment.entropy).ok()?;
        let (node, boots) = (NodeId::from(&identity.machine), identity.boots);
        let framer = Framer::new(FramerConfig::new(node, boots, identity.next_mesh_salt()), alone);
        let mut stack = Stack::new(StackConfig::default(), framer);
        stack.hear_plain_frames();
        Some(Self { stack, knocker })
    }

    /// Knocks when that is due.
    pub(crate) fn attend(&mut self, now: Instant) {
        self.knocker.attend(&mut self.stack, now);
        self.stack.poll(now);
    }

    /// Whether an admission may be tried now; the next one later.
    pub(crate) fn may_try(&mut self, now: Instant) -> bool {
        self.knocker.may_try(now)
    }

    /// The stack, which sends knocks.
    pub(crate) fn stack(&mut self) -> &mut MeshStack {
        &mut self.stack
    }

    pub(crate) fn wakes_at(&self, now: Instant) -> Instant {
        let knocks_at = self.knocker.knocking.at();
        self.stack.poll_at(now).map_or(knocks_at, |at| at.min(knocks_at))
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
                    if let Some(kept) = self.kept.iter().find(|kept| kept.device == knock.device) {
                        say(stack, from, &Note::Admit(kept.admission.clone()));
                        // A second device may be behind it.
                        self.seek_after = SEEK_AFTER;
                        self.seeks_at = Some(now + SEEK_AFTER);
                    }
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

    /// The strangers that have knocked, here or as other members told so far; those are asked again.
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
            ask_members(stack, query.awaited);
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
        let is_of_owner = check_signature(&admission.invitation, owner).is_ok();
        if node != own && is_of_owner {
            self.keep(now, device, &admission);
        }
        if members.is_empty() {
            let unheard = "no member hears that device now; it is told once one does";
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

    /// Keeps the admission of a device until it is seen in the mesh; the oldest of too many gives its place.
    fn keep(&mut self, now: Instant, device: PublicKey, admission: &Admission) {
        self.kept.retain(|kept| kept.device != device);
        if self.kept.len() >= KEPT_MAX {
            self.kept.remove(0);
        }
        let (admission, until_seen_from) = (admission.clone(), now + KEPT_AT_LEAST);
        self.kept.push(Kept { device, admission, until_seen_from });
        self.seek_after = SEEK_AFTER;
        self.seeks_at = Some(now + self.seek_after);
    }

    /// The part that outlasts a change of the mesh's key.
    pub(crate) fn after_change(self, now: Instant) -> Self {
        let Self { kept, .. } = self;
        Self { kept, seek_after: SEEK_AFTER, seeks_at: Some(now + SEEK_AFTER), ..Self::default() }
    }

    /// Asks members now and then whether one whose admission is kept has knocked.
    pub(crate) fn seek(&mut self, stack: &mut MeshStack, now: Instant) {
        if self.kept.is_empty() || self.seeks_at.is_none_or(|at| now < at) {
            return;
        }
        if let Some(router) = stack.protocol::<Babel>() {
            self.kept.retain(|kept| {
                let node = NodeId::from(&machine_id(&kept.device));
                now < kept.until_seen_from || router.next_hop(node).is_none()
            });
        }
        self.seek_after = (self.seek_after * 2).min(SEEK_AFTER_MAX);
        self.seeks_at = Some(now + self.seek_after);
        if !self.kept.is_empty() {
            ask_members(stack, None);
        }
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
        self.doorway.offer(now, &admission);
        self.answer(stack, now, &device);
        Ok(())
    }

    /// Hears a stranger knock, and answers if its admission is here.
    pub(crate) fn hear_knock(&mut self, stack: &mut MeshStack, now: Instant, knock: Knock) {
        let device = knock.device;
        self.doorway.hear(now, knock, stack.node(), now);
        if let Some(kept) = self.kept.iter().find(|kept| kept.device == device) {
            self.doorway.offer(now, &kept.admission);
        }
        self.answer(stack, now, &device);
    }

    fn answer(&mut self, stack: &mut MeshStack, now: Instant, device: &PublicKey) {
        if let Some(word) = self.doorway.answer(now, device) {
            // A stranger that isn't told of now is when it knocks again.
            let _ = stack.send_plain(&encoded(&word));
        }
    }
}

/// Asks the other members who has knocked.
fn ask_members(stack: &mut MeshStack, awaited: Option<PublicKey>) {
    let own = stack.node();
    let others = stack.protocol::<Babel>().map(|router| {
        router.table().destinations().filter(|to| *to != own).take(ASKED_MAX).collect()
    });
    let others: Vec<NodeId> = others.unwrap_or_default();
    for to in others {
        say(stack, to, &Note::Who(awaited));
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
