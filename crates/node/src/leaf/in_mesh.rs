//! A leaf in its owner's mesh: its record, those of others, and who calls.

use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_mesh::NodeId;
use tenure_protocols::interface::{DatagramArrived, Port, RecordArrived, SendDatagram, SendLarge};
use tenure_protocols::network_key::NetworkKey;
use tenure_rpc::Epoch;
use tenure_wire::Name;
use tenure_wire::NoResult;
use tenure_wire::PublicKey;
use tenure_wire::directory::{DeviceRecord, Query, SignedRecord};

use super::{Ask, Leaf, LeafNotice, Place, Unplaced, limits};
use crate::directory::EPOCH_PERIOD;
use crate::identity::RecordContents;
use crate::lookup::{Lookup, Mark, nodes_of};
use crate::membership::{
    JoinError, RECORD_LIFETIME, Replica, accept_invitation, answers, introduce, key_of, node_of,
    start_stack,
};
use crate::moment::Moment;

/// How many events of the mesh one poll takes.
const EVENTS_PER_POLL: usize = 16;

impl<F: Flash> Leaf<F> {
    /// Joins the mesh that the owner's `invitation` is for, now and after every boot to come.
    ///
    /// # Errors
    /// [`JoinError`]; then the device is where it was before.
    pub fn join_mesh(&mut self, now: Instant, invitation: &[u8]) -> Result<(), JoinError> {
        let owner = self.config.owner.verifying_key;
        let (key, was_known) =
            accept_invitation(&self.identity, &mut self.store, &owner, invitation)?;
        if !(was_known && self.mesh.is_some()) {
            self.start_mesh(now, key);
        }
        Ok(())
    }

    pub(super) fn start_mesh(&mut self, now: Instant, key: NetworkKey) {
        let owner = self.config.owner.verifying_key;
        self.mesh = Some(start_stack(now, &mut self.identity, owner, key, limits::mesh()));
        self.lookup = Lookup::new(now);
        self.publish_at = now;
        self.notices.push_back(LeafNotice::Joined);
    }

    /// Lets protocols run, takes what came for this device, and announces it when that is due.
    pub(super) fn attend_to_mesh(&mut self, moment: &mut Moment<'_>) {
        self.publish(moment);
        let unix_s = self.records_time.at(moment.now).seconds;
        // Outside a mesh no protocol runs.
        let Some(stack) = &mut self.mesh else { return };
        stack.act::<Replica, _>(moment.now, |replica, _| {
            replica.records_mut().tell_time(Some(unix_s), false);
        });
        self.lookup.attend(stack, moment.now);
        stack.poll(moment.now);
        for _ in 0..EVENTS_PER_POLL {
            let Some(event) = self.mesh.as_mut().and_then(|stack| stack.host_event()) else {
                break;
            };
            if let Some((arrived, datagram)) = event.notification::<DatagramArrived>() {
                match arrived.port {
                    Port::RPC => {
                        let from = Place::Mesh(arrived.from);
                        self.endpoint.receive(moment.now, moment.entropy, from, datagram);
                    }
                    Port::RECORD_WANTED => {
                        let device = self.identity.verifying_key();
                        if let Some(stack) = &mut self.mesh {
                            introduce(stack, &device, arrived.from);
                        }
                    }
                    Port::LOOKUP => {
                        if let Some(stack) = &mut self.mesh {
                            self.lookup.hear(stack, moment.now, arrived.from, datagram);
                        }
                    }
                    _ => {}
                }
            } else if let Some((arrived, _)) = event.notification::<RecordArrived>() {
                let replica = self.mesh.as_ref().and_then(|stack| stack.protocol::<Replica>());
                let held = replica.and_then(|replica| replica.records().held.get(&arrived.key));
                if let Some(held) = held {
                    self.lookup.found(held.mark);
                }
                let is_behind =
                    held.is_some_and(|held| self.records_time.learn(moment.now, &held.record));
                if is_behind {
                    // By the time that others have, its own record is over, or nearly.
                    self.publish_at = moment.now;
                }
                self.let_known_callers_in(moment);
            }
        }
    }

    /// Whether a device of the same owner lists the machine with `key`.
    pub(super) fn knows(&self, key: &PublicKey) -> bool {
        self.record_that_answers(&Query::Key(*key)).is_some()
    }

    /// The key of a machine that is to be asked, where it is, and its device's epoch.
    pub(super) fn find(&self, ask: &Ask) -> Option<(PublicKey, NodeId, Epoch)> {
        let record = self.record_that_answers(&Query::Device(ask.device.clone()))?;
        let (_, key) = record.machines.iter().find(|(name, _)| *name == ask.machine)?;
        Some((*key, node_of(record), record.epoch))
    }

    fn record_that_answers(&self, query: &Query) -> Option<&DeviceRecord> {
        let replica = self.mesh.as_ref()?.protocol::<Replica>()?;
        let mut held = replica.records().held.values().map(|held| &held.record);
        held.find(|record| answers(record, query))
    }

    /// Looks up the record of the device with that name; `false` where the mesh is so small that it would be here.
    pub(super) fn look_up(&mut self, now: Instant, device: &Name) -> bool {
        let is_large =
            self.mesh.as_ref().is_some_and(|it| nodes_of(it) > limits::mesh().records_max);
        if is_large {
            self.lookup.seek(now, Mark::of(device), None);
        }
        is_large
    }

    /// Makes the calls that waited for a record which has come, and gives up those that waited too long.
    pub(super) fn go_on_with_unplaced(&mut self, moment: &mut Moment<'_>) {
        let now = moment.now;
        let is_over =
            |it: &Self, wanted: &Unplaced| wanted.until <= now || it.find(&wanted.ask).is_some();
        while let Some(at) = self.unplaced.iter().position(|wanted| is_over(self, wanted)) {
            let wanted = self.unplaced.remove(at);
            self.ask(moment, wanted);
        }
    }

    /// Asks the device at `node` who it is.
    pub(super) fn ask_for_record(&mut self, node: NodeId) {
        if let Some(stack) = &mut self.mesh {
            stack.request(&SendDatagram { to: node, port: Port::RECORD_WANTED }, &[]);
        }
    }

    /// Hands a session's datagram to the mesh.
    pub(super) fn send_by_mesh(&mut self, to: NodeId, datagram: &[u8]) {
        if let Some(stack) = &mut self.mesh {
            stack.request(&SendLarge { to, port: Port::RPC }, datagram);
        }
    }

    /// Serves those calls that waited for a record which has come.
    fn let_known_callers_in(&mut self, moment: &mut Moment<'_>) {
        while let Some(at) = self.waiting.iter().position(|(call, _)| self.knows(&call.caller)) {
            let (call, _) = self.waiting.remove(at);
            self.serve(moment, call);
        }
    }

    /// Refuses those that nobody has vouched for in time.
    pub(super) fn give_up_on_callers(&mut self, moment: &Moment<'_>) {
        let Self { waiting, endpoint, .. } = self;
        waiting.retain(|(call, until)| {
            let waits = *until > moment.now;
            if !waits {
                endpoint.reply(moment.now, call.handle, Err(NoResult::Denied));
            }
            waits
        });
    }

    /// The device's statement about itself, signed; `None` if it isn't enrolled. It is signed anew once a
    /// minute at most, so that strangers who ask for it cost no signatures.
    pub(super) fn signed_record(&mut self, now: Instant) -> Option<SignedRecord> {
        match &self.signed {
            Some((record, fresh_until)) if *fresh_until > now => Some(record.clone()),
            _ => self.sign_record(now),
        }
    }

    fn sign_record(&mut self, now: Instant) -> Option<SignedRecord> {
        self.records = self.records.saturating_add(1);
        let services = self.services.iter();
        let machines = services.map(|offered| (offered.name.clone(), offered.key)).collect();
        let unix_s = self.records_time.at(now).seconds;
        let record = self.identity.sign_record(RecordContents {
            number: self.records,
            expires_unix_s: unix_s.saturating_add(RECORD_LIFETIME.as_secs()),
            epoch: self.endpoint.epoch_to_publish(now),
            addresses: Vec::new(),
            machines,
            succession: None,
        })?;
        self.signed = Some((record.clone(), now + EPOCH_PERIOD));
        Some(record)
    }

    fn publish(&mut self, moment: &Moment<'_>) {
        let epoch = self.endpoint.epoch();
        let epoch_is_due = |(published, at): (Epoch, Instant)| {
            published != epoch && moment.now >= at + EPOCH_PERIOD
        };
        let is_due = self.publish_at <= moment.now || self.published.is_none_or(epoch_is_due);
        if self.mesh.is_none() || !is_due {
            return;
        }
        self.publish_at = moment.now + RECORD_LIFETIME / 3;
        let epoch = self.endpoint.epoch_to_publish(moment.now);
        self.published = Some((epoch, moment.now));
        // A device without a name has no record; it is told when it is enrolled.
        let Some(signed) = self.sign_record(moment.now) else { return };
        let record = postcard::to_allocvec(&signed).unwrap_or_default();
        let key = key_of(&self.identity.verifying_key());
        let unix_s = self.records_time.at(moment.now).seconds;
        if let Some(stack) = &mut self.mesh {
            stack.act::<Replica, _>(moment.now, |replica, context| {
                replica.records_mut().tell_time(Some(unix_s), false);
                replica.publish(key, &record, context);
            });
        }
    }
}
