//! The mesh under a node: sessions and directory records without infrastructure.
//!
//! A device joins by its owner's invitation, which brings the network's key. From then on it
//! announces its record in the mesh, learns those of others, and calls machines on them by name:
//! the sessions' datagrams are the mesh's payload, so that who relays them sees ciphertext.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_directory::check_enrolment;
use tenure_hal::{Flash, Instant};
use tenure_mesh::{NodeId, Satellite, decode};
use tenure_protocols::interface::{Port, SendLarge};
use tenure_protocols::joining::{Word, admitted};
use tenure_protocols::network_key::NetworkKey;
use tenure_rpc::{Endpoint, IncomingCallHandle};
use tenure_wire::Address;
use tenure_wire::control::{Admission, Answer, ControlError};
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::Query;

use crate::boot_error::BootError;
use crate::carriage::Carrying;
use crate::clock::Clock;
use crate::directory::{Directory, EPOCH_PERIOD};
use crate::doorstep::{Doorstep, Lost, Outside};
#[cfg(feature = "experiments")]
use crate::experiment::{Experimenting, takes_no_part};
use crate::hub::Registration;
use crate::lookup::Lookup;
use crate::membership::{
    JoinError, MeshLimits, MeshStack, RECORD_LIFETIME, RecordsTime, Replica, accept_invitation,
    key_of, satellite_of, start_stack,
};
use crate::moment::Moment;
use crate::notice::Notice;
use crate::services::Services;

/// How long a device goes on with the mesh's key after it has the next one: it relays that to others.
const CHANGE_KEY_AFTER: Duration = Duration::from_secs(10);

/// The mesh of a device that has joined one.
pub(crate) struct Mesh {
    pub(crate) stack: MeshStack,
    /// The sessions' epoch in the record that was published last, and when that was.
    published: Option<(Epoch, Instant)>,
    /// The names that some device's record is expected to tell, and until when.
    pub(crate) wanted: Vec<(Query, Instant)>,
    pub(crate) lookup: Lookup,
    pub(crate) doorstep: Doorstep,
    /// Whether the device stands outside, since the mesh has another key.
    lost: Lost,
    /// The owner's next key of the mesh, and when this device changes to it.
    next_key: Option<(Instant, NetworkKey)>,
    pub(crate) carrying: Carrying,
    /// The device's part in experiments, if it takes part.
    #[cfg(feature = "experiments")]
    pub(crate) experimenting: Option<Experimenting>,
}

/// A device's part in a mesh: in one, at its door, or neither.
#[derive(Default)]
pub(crate) struct Member {
    pub(crate) mesh: Option<Box<Mesh>>,
    /// A device that waits to be let into a mesh.
    outside: Option<Box<Outside>>,
    /// Datagrams that the mesh doesn't carry, for the board.
    outbox: VecDeque<(Address, Vec<u8>)>,
}

/// The parts that a start in a mesh touches, beside the member itself.
pub(crate) struct Ground<'a, F> {
    pub(crate) services: &'a mut Services<F>,
    pub(crate) clock: &'a mut Clock,
    pub(crate) hub: &'a mut Registration,
}

impl Member {
    /// Joins the mesh that the owner's `invitation` is for, now and after every boot to come.
    ///
    /// # Errors
    /// [`JoinError`]; then the device is where it was before.
    pub(crate) fn join<F: Flash>(
        &mut self,
        ground: &mut Ground<'_, F>,
        now: Instant,
        invitation: &[u8],
    ) -> Result<(), JoinError> {
        let Services { identity, config, kernel, .. } = &mut *ground.services;
        let owner = config.owner.verifying_key;
        let (key, was_known) = accept_invitation(identity, kernel.store(), &owner, invitation)?;
        if !(was_known && self.mesh.is_some()) {
            self.start(ground, now, key);
        }
        Ok(())
    }

    /// Joins again the mesh that was joined before.
    ///
    /// # Errors
    /// The network's key can't be read.
    pub(crate) fn resume<F: Flash>(
        &mut self,
        ground: &mut Ground<'_, F>,
        now: Instant,
    ) -> Result<(), BootError> {
        let Services { identity, kernel, .. } = &mut *ground.services;
        if let Some((_, key)) = identity.network(kernel.store())? {
            self.start(ground, now, NetworkKey::from_bytes(&key));
        }
        Ok(())
    }

    /// Takes another owner's word, and records of that owner's devices alone; a hand-over takes the device
    /// out of the mesh.
    pub(crate) fn change_owner<F: Flash>(&mut self, ground: &mut Ground<'_, F>, now: Instant) {
        (self.mesh, self.outside) = (None, None);
        ground.clock.by_records = None;
        // A network key that can't be read now is read at the next boot.
        let _ = self.resume(ground, now);
    }

    /// Starts the protocols, once for each owner in a life of the node.
    fn start<F: Flash>(&mut self, ground: &mut Ground<'_, F>, now: Instant, key: NetworkKey) {
        let Services { identity, config, .. } = &mut *ground.services;
        let node = NodeId::from(&identity.machine);
        let limits = MeshLimits::new(node, config.records_max);
        let owner = config.owner.verifying_key;
        let mut stack = start_stack(now, identity, owner, key, limits);
        stack.hear_plain_frames();
        #[cfg(feature = "experiments")]
        let experimenting = ground.services.config.experiments.then(|| {
            let Services { identity, kernel, .. } = &mut *ground.services;
            // Where the numbers can't be read, no order counts.
            let floor = identity.orders(kernel.store()).unwrap_or(u64::MAX);
            Experimenting::start(now, owner, floor, ground.services.config.protocols, &mut stack)
        });
        let before = self.mesh.take().map(|mesh| (mesh.doorstep.after_change(now), mesh.carrying));
        let (doorstep, carrying) = before.unwrap_or_else(|| (Doorstep::default(), Carrying::new()));
        let mesh = Mesh {
            stack,
            #[cfg(feature = "experiments")]
            experimenting,
            published: None,
            wanted: Vec::new(),
            lookup: Lookup::new(now),
            doorstep,
            lost: Lost::default(),
            next_key: None,
            carrying,
        };
        ground.hub.announce_at = now;
        ground.clock.by_records = Some(RecordsTime::new(now));
        self.mesh = Some(mesh.into());
        self.outside = None;
    }

    /// The stack that the board's link carries frames for: that of the mesh, if the device has joined one,
    /// or the one by which it knocks.
    pub(crate) fn stack(&mut self) -> Option<&mut MeshStack> {
        match (&mut self.mesh, &mut self.outside) {
            (Some(mesh), _) => Some(&mut mesh.stack),
            (None, outside) => outside.as_mut().map(|outside| outside.stack()),
        }
    }

    /// The mesh that the device has joined.
    ///
    /// # Errors
    /// [`ControlError::Refused`] if it is in none.
    pub(crate) fn joined(&mut self) -> Answer<&mut Mesh> {
        let mesh = self.mesh.as_deref_mut();
        mesh.ok_or_else(|| ControlError::Refused("the device is in no mesh".to_string()))
    }

    /// Whether a call to have datagrams carried waits for what comes.
    pub(crate) fn holds(&self, call: IncomingCallHandle) -> bool {
        self.mesh.as_ref().is_some_and(|mesh| mesh.carrying.holds(call))
    }

    /// Whether there is such a call.
    pub(crate) fn is_holding(&self) -> bool {
        self.mesh.as_ref().is_some_and(|mesh| mesh.carrying.wakes_at().is_some())
    }

    /// Answers such calls for which something has come, or that have waited long enough.
    pub(crate) fn answer_held(&mut self, endpoint: &mut Endpoint<Address>, now: Instant) {
        if let Some(mesh) = &mut self.mesh {
            mesh.carrying.answer(endpoint, now);
        }
    }

    /// The mesh that the device has joined, and its part in experiments there.
    ///
    /// # Errors
    /// [`ControlError::Refused`] if it takes no part.
    #[cfg(feature = "experiments")]
    pub(crate) fn experimenting(&mut self) -> Answer<(&mut MeshStack, &mut Experimenting)> {
        let mesh = self.mesh.as_deref_mut().ok_or_else(takes_no_part)?;
        let experimenting = mesh.experimenting.as_mut().ok_or_else(takes_no_part)?;
        Ok((&mut mesh.stack, experimenting))
    }

    /// Takes the protocols that carry datagrams out of the mesh's stack; `None` if the device is in no mesh.
    pub(crate) fn satellite<F: Flash>(
        &mut self,
        services: &Services<F>,
        now: Instant,
    ) -> Option<Satellite> {
        let mesh = self.mesh.as_mut()?;
        let limits = MeshLimits::new(mesh.stack.node(), services.config.records_max);
        Some(satellite_of(now, &services.identity, &mut mesh.stack, limits))
    }

    /// Asks whoever is in reach to be let in, from now on until that happens. A member has nothing to ask.
    pub(crate) fn knock<F: Flash>(&mut self, services: &mut Services<F>, moment: &mut Moment<'_>) {
        if self.mesh.is_none() && self.outside.is_none() {
            self.outside = Outside::new(services, moment).map(Box::new);
        }
    }

    /// Moves along what is said at the doorstep, on whichever side of it the device is.
    pub(crate) fn attend_to_doorstep<F: Flash>(
        &mut self,
        ground: &mut Ground<'_, F>,
        now: Instant,
    ) {
        if let Some(outside) = &mut self.outside {
            outside.attend(now);
        }
        self.change_key(ground, now);
        if let Some(Mesh { stack, doorstep, lost, .. }) = self.mesh.as_deref_mut() {
            doorstep.seek(stack, now);
            lost.attend(ground.services, stack, now);
        }
        while let Some(word) = self.stack().and_then(|stack| stack.plain_frame()) {
            match decode::<Word>(&word) {
                Some((Word::Knock(knock), [])) => {
                    if let Some(Mesh { stack, doorstep, .. }) = self.mesh.as_deref_mut() {
                        doorstep.hear_knock(stack, now, knock);
                    }
                }
                Some((Word::Admission(admission), [])) => self.heed(ground, now, &admission),
                // Anybody can send a plain frame: what isn't a word is dropped.
                _ => {}
            }
        }
    }

    /// Takes the next key of the mesh from the owner's invitation, and changes to it when that is due. From when
    /// it came, a start after a loss of power is with the next one.
    fn change_key<F: Flash>(&mut self, ground: &mut Ground<'_, F>, now: Instant) {
        let Some(mesh) = &mut self.mesh else { return };
        if let Some(invitation) = mesh.doorstep.own_invitation() {
            let Services { identity, config, kernel, .. } = &mut *ground.services;
            let owner = config.owner.verifying_key;
            // One that came before, or is older than that, changes nothing.
            if let Ok((key, false)) =
                accept_invitation(identity, kernel.store(), &owner, &invitation)
            {
                mesh.next_key = Some((now + CHANGE_KEY_AFTER, key));
            }
        }
        if let Some((_, key)) = mesh.next_key.take_if(|(at, _)| *at <= now) {
            self.start(ground, now, key);
        }
    }

    /// Comes in, if the owner's admission is for this device.
    fn heed<F: Flash>(&mut self, ground: &mut Ground<'_, F>, now: Instant, admission: &Admission) {
        let is_own = admitted(admission) == Some(ground.services.identity.machine_key);
        let may_try = |it: &mut Self| match (&mut it.outside, &mut it.mesh) {
            (Some(outside), _) => outside.may_try(now),
            (None, Some(mesh)) => mesh.lost.may_try(now),
            (None, None) => false,
        };
        if !is_own || !may_try(self) {
            return;
        }
        let enrol = &admission.enrol;
        let owner = &ground.services.config.owner.verifying_key;
        // Both count, or neither: a member without a name can't be called.
        if check_enrolment(owner, &enrol.enrolment, &enrol.signature).is_err()
            || ground.services.enrol(enrol.enrolment.clone(), enrol.signature).is_err()
            || self.join(ground, now, &admission.invitation).is_err()
        {
            return;
        }
        ground.hub.register_soon(now);
        let node = NodeId::from(&ground.services.identity.machine);
        ground.services.notices.push(Notice::InMesh { node });
    }

    /// Announces the device in the mesh when that is due.
    pub(crate) fn publish<F: Flash>(
        &mut self,
        ground: &mut Ground<'_, F>,
        directory: &mut Directory,
        moment: &Moment<'_>,
    ) {
        let Ground { services, clock, hub } = ground;
        // A device in no mesh has nobody to tell.
        let Some(mesh) = &mut self.mesh else { return };
        let epoch = services.endpoint.epoch();
        let epoch_is_due = |(published, at): (Epoch, Instant)| {
            published != epoch && moment.now >= at + EPOCH_PERIOD
        };
        if hub.announce_at > moment.now && !mesh.published.is_none_or(epoch_is_due) {
            return;
        }
        hub.announce_at = moment.now + RECORD_LIFETIME / 3;
        let epoch = services.endpoint.epoch_to_publish(moment.now);
        mesh.published = Some((epoch, moment.now));
        let signed = directory.sign_record_for(services, clock, moment, RECORD_LIFETIME);
        // A device without a name has no record; it is told when it is enrolled.
        let Some(signed) = signed else { return };
        let record = postcard::to_allocvec(&signed).unwrap_or_default();
        let key = key_of(&services.identity.verifying_key());
        let (unix_s, is_known) = time_for_records(clock, moment);
        mesh.stack.act::<Replica, _>(moment.now, |replica, context| {
            replica.records_mut().tell_time(unix_s, is_known);
            replica.publish(key, &record, context);
        });
    }

    /// Lets protocols run.
    pub(crate) fn poll(&mut self, clock: &Clock, moment: &Moment<'_>) {
        let (unix_s, is_known) = time_for_records(clock, moment);
        // Outside a mesh no protocol runs.
        let Some(mesh) = &mut self.mesh else { return };
        mesh.stack.act::<Replica, _>(moment.now, |replica, _| {
            replica.records_mut().tell_time(unix_s, is_known);
        });
        mesh.lookup.attend(&mut mesh.stack, moment.now);
        mesh.stack.poll(moment.now);
    }

    /// Gives the sessions' datagrams to the mesh that are for it, and keeps the others for the board.
    pub(crate) fn send<F: Flash>(&mut self, services: &mut Services<F>, now: Instant) {
        // Outside a mesh the board takes the datagrams from the sessions.
        let Some(mesh) = &mut self.mesh else { return };
        while let Some((to, datagram)) = services.endpoint.transmit() {
            match to {
                Address::Mesh(to) => {
                    let request = SendLarge { to: NodeId::from_bytes(to), port: Port::RPC };
                    mesh.stack.request(&request, &datagram);
                }
                to => self.outbox.push_back((to, datagram)),
            }
        }
        mesh.stack.poll(now);
    }

    /// The next datagram for the board.
    pub(crate) fn transmit<F: Flash>(
        &mut self,
        services: &mut Services<F>,
    ) -> Option<(Address, Vec<u8>)> {
        match self.mesh {
            Some(_) => self.outbox.pop_front(),
            None => services.endpoint.transmit(),
        }
    }

    /// When the mesh wants to run again.
    pub(crate) fn wakes_at(&self, hub: &Registration, now: Instant) -> Option<Instant> {
        let mesh = self.mesh.as_ref()?;
        let wanted = mesh.wanted.iter().map(|(_, until)| *until);
        let own = mesh.stack.poll_at(now).into_iter().chain([hub.announce_at]);
        #[cfg(feature = "experiments")]
        let notes = mesh.experimenting.as_ref().and_then(Experimenting::wakes_at);
        #[cfg(feature = "experiments")]
        let own = own.chain(notes);
        let next_key = mesh.next_key.iter().map(|(at, _)| *at);
        let own = own.chain([mesh.lookup.wakes_at()]);
        own.chain(wanted).chain(next_key).chain(mesh.carrying.wakes_at()).min()
    }

    /// When a device outside wants to knock again.
    pub(crate) fn doorstep_wakes_at(&self, now: Instant) -> Option<Instant> {
        self.outside.as_ref().map(|outside| outside.wakes_at(now))
    }
}

/// The time in seconds by which records are judged, and whether a clock told it.
fn time_for_records(clock: &Clock, moment: &Moment<'_>) -> (Option<u64>, bool) {
    let time = clock.records_time(moment).map(|time| time.seconds);
    (time, clock.unix_time(moment).is_some())
}
