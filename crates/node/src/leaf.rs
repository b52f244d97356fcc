//! A leaf: the device for which a [`Node`](crate::Node) is too large. Sessions, a mesh and a store, and
//! [services](Service) that are part of its firmware in the place of machines: no kernel, no vm, no
//! packages, no directory.
//!
//! A caller sees no difference: the leaf is enrolled and invited as any device, announces a record,
//! relays for others, and its services are called by name, over sessions with keys of their own.
//!
//! Invariants, beside a node's:
//! - A service is called by the owner and by machines on the owner's devices, and by nobody else.
//! - What others can fill has a limit in `limits`.

mod control;
mod in_mesh;
mod limits;
mod service;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_mesh::NodeId;
use tenure_protocols::network_key::NetworkKey;
use tenure_rpc::{
    CallHandle, Endpoint, Epoch, Event, IncomingCallHandle, NoResult, OutgoingCall, PeerAddress,
};
use tenure_store::{Store, TreeId};
use tenure_wire::directory::SignedRecord;
use tenure_wire::{MachineId, Name, PublicKey, VerifyingKey};

use crate::boot_error::BootError;
use crate::config::{HeapUse, Owner};
use crate::identity::{Identity, computed_keys};
use crate::lookup::Lookup;
use crate::membership::{MeshStack, RecordsTime};
use crate::moment::{Moment, Wake};
use crate::trees::mount_or_format;

use self::service::Tree;
pub use self::service::{Ask, Outcome, Service, ServiceCall, ServiceTree};

/// How long a call waits for the record of the device that it comes from.
const CALLER_PATIENCE: Duration = Duration::from_secs(5);
/// How long a service's own call may take.
const ASK_PATIENCE: Duration = Duration::from_secs(8);
/// How often it is sent within that time.
const ASK_ATTEMPTS: u8 = 8;
/// The most calls that wait for their caller's record.
const WAITING_MAX: usize = 3;
/// The most datagrams that wait for the service line.
const LINE_MAX: usize = 3;

/// The choices of a board about a leaf.
#[derive(Clone, Debug)]
pub struct LeafConfig {
    /// The device's name.
    pub name: Name,
    /// The device's owner.
    pub owner: Owner,
    /// Asks how much of the heap is used.
    pub heap: Option<fn() -> HeapUse>,
}

/// Something that whoever watches the device may want to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafNotice {
    /// Its owner has given it its name.
    Enrolled,
    /// It is in its owner's mesh.
    Joined,
}

/// Where a session's other end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// At the other end of the service line.
    Line,
    /// In the mesh.
    Mesh(NodeId),
}

impl PeerAddress for Place {}

/// A service as it is offered.
struct Offered {
    name: Name,
    id: MachineId,
    key: PublicKey,
    tree: TreeId,
    service: Box<dyn Service>,
    calls: u64,
}

/// A call that came in.
struct Incoming {
    handle: IncomingCallHandle,
    to: MachineId,
    caller: PublicKey,
    function: String,
    parameter: Option<Vec<u8>>,
    deadline: Instant,
}

/// A call that a service wants to make, whose device is being looked up until then.
struct Unplaced {
    ask: Ask,
    by: MachineId,
    answers: IncomingCallHandle,
    deadline: Instant,
    until: Instant,
}

/// A call that a service made in order to answer one.
struct Asked {
    handle: CallHandle,
    by: MachineId,
    answers: IncomingCallHandle,
}

/// One device of the smallest kind.
pub struct Leaf<F> {
    config: LeafConfig,
    identity: Identity,
    store: Store<F>,
    endpoint: Endpoint<Place>,
    services: Vec<Offered>,
    mesh: Option<MeshStack>,
    lookup: Lookup,
    records_time: RecordsTime,
    publish_at: Instant,
    published: Option<(Epoch, Instant)>,
    /// The record that was signed last, and until when it is shown to whoever asks.
    signed: Option<(SignedRecord, Instant)>,
    /// How many records were signed in this boot.
    records: u32,
    /// Calls whose caller isn't known yet, and until when they wait.
    waiting: Vec<(Incoming, Instant)>,
    unplaced: Vec<Unplaced>,
    asked: Vec<Asked>,
    /// Datagrams for the service line.
    line: VecDeque<Vec<u8>>,
    notices: VecDeque<LeafNotice>,
    /// As the mount of its store found.
    changes_lost: u32,
}

impl<F: Flash> Leaf<F> {
    /// Starts a leaf on its flash, all of which is its store. A blank one is made ready; one that holds
    /// something else is left alone.
    ///
    /// # Errors
    /// As [`BootError`] says; nothing was overwritten.
    pub fn boot(config: LeafConfig, flash: F, moment: &mut Moment<'_>) -> Result<Self, BootError> {
        let (mut store, report) = mount_or_format(flash, moment.entropy)?;
        let identity = Identity::take_up(&mut store, moment.entropy, computed_keys)?;
        let mut endpoint =
            Endpoint::new(limits::sessions(config.owner.machine), moment.now, moment.entropy)
                .map_err(BootError::Endpoint)?;
        let own = endpoint.add_machine_of(identity.device_secret(), identity.machine_key);
        debug_assert!(own.is_ok());
        endpoint.identify_as(&identity.machine);
        let mut leaf = Self {
            records_time: RecordsTime::new(moment.now),
            publish_at: moment.now,
            published: None,
            signed: None,
            records: 0,
            services: Vec::new(),
            mesh: None,
            lookup: Lookup::new(moment.now),
            waiting: Vec::new(),
            unplaced: Vec::new(),
            asked: Vec::new(),
            line: VecDeque::new(),
            notices: VecDeque::new(),
            config,
            changes_lost: report.changes_lost as u32,
            identity,
            store,
            endpoint,
        };
        if let Some((_, key)) = leaf.identity.network(&mut leaf.store)? {
            leaf.start_mesh(moment.now, NetworkKey::from_bytes(&key));
        }
        Ok(leaf)
    }

    /// Ends it, and gives its flash back, to boot it anew for instance.
    pub fn into_flash(self) -> F {
        self.store.into_flash()
    }

    /// Offers `service` under `name`. Its key and its tree follow from `number`, which stays the
    /// service's in later firmware.
    ///
    /// # Errors
    /// It comes back if there are too many, or one has that name or number.
    pub fn offer(
        &mut self,
        number: u8,
        name: Name,
        service: Box<dyn Service>,
    ) -> Result<(), Box<dyn Service>> {
        let tree = TreeId(u16::from(number));
        let taken = |other: &Offered| other.name == name || other.tree == tree;
        if self.services.len() >= limits::SERVICES_MAX || self.services.iter().any(taken) {
            return Err(service);
        }
        let mut salt = *b"leaf service    ";
        salt[15] = number;
        let secret = self.identity.machine_secret(&salt);
        let key = secret.public_key();
        let Ok(id) = self.endpoint.add_machine_of(secret, key) else { return Err(service) };
        self.store.seal_tree(tree, Some(self.identity.sealing_keys().service_tree(&salt)));
        self.services.push(Offered { name, id, key, tree, service, calls: 0 });
        Ok(())
    }

    /// The device's name.
    pub fn name(&self) -> &Name {
        &self.config.name
    }

    /// The device's own key, which an owner enrols.
    pub fn device_key(&self) -> VerifyingKey {
        self.identity.verifying_key()
    }

    /// The key of the device's own machine, which the owner talks to.
    pub fn device_machine(&self) -> PublicKey {
        self.identity.machine_key
    }

    /// Whether the owner has given this device its name.
    pub fn is_enrolled(&self) -> bool {
        self.identity.is_enrolled(&self.config.name, self.config.owner)
    }

    /// The mesh's stack, if the device has joined one.
    pub fn mesh(&mut self) -> Option<&mut MeshStack> {
        self.mesh.as_mut()
    }

    /// Takes a datagram that came by the service line.
    pub fn receive(&mut self, moment: &mut Moment<'_>, datagram: &[u8]) {
        self.endpoint.receive(moment.now, moment.entropy, Place::Line, datagram);
        self.attend_to_sessions(moment);
        self.send_all(moment.now);
    }

    /// The next datagram for the service line.
    pub fn transmit(&mut self) -> Option<Vec<u8>> {
        self.line.pop_front()
    }

    /// The next thing to show, if anybody watches.
    pub fn notice(&mut self) -> Option<LeafNotice> {
        self.notices.pop_front()
    }

    /// Does what is due.
    pub fn poll(&mut self, moment: &mut Moment<'_>) -> Wake {
        self.endpoint.poll(moment.now, moment.entropy);
        self.attend_to_mesh(moment);
        self.attend_to_sessions(moment);
        self.give_up_on_callers(moment);
        self.go_on_with_unplaced(moment);
        self.send_all(moment.now);
        let own = self.mesh.as_ref().map(|_| self.publish_at);
        let mesh = self.mesh.as_ref().and_then(|stack| stack.poll_at(moment.now));
        let unplaced = self.unplaced.iter().map(|wanted| wanted.until);
        let waiting = self.waiting.iter().map(|(_, until)| *until).chain(unplaced).min();
        let own = own.map(|at| at.min(self.lookup.wakes_at()));
        match [own, mesh, waiting, self.endpoint.poll_at()].into_iter().flatten().min() {
            Some(at) if at <= moment.now => Wake::Now,
            Some(at) => Wake::At(at),
            None => Wake::Never,
        }
    }

    fn attend_to_sessions(&mut self, moment: &mut Moment<'_>) {
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::IncomingCall { handle, to, peer, function, parameter, deadline, from } => {
                    let caller = peer;
                    let call = Incoming { handle, to, caller, function, parameter, deadline };
                    self.take_call(moment, call, from);
                }
                Event::CallDone { handle, result, .. } => self.go_on(moment.now, handle, result),
                Event::PeerSeen { .. } | Event::Identified { .. } => {}
            }
        }
    }

    fn take_call(&mut self, moment: &mut Moment<'_>, call: Incoming, from: Place) {
        if call.to == self.identity.machine {
            let parameter = call.parameter.unwrap_or_default();
            let answer = self.serve_control(moment, &call.caller, &call.function, &parameter);
            return self.endpoint.reply(moment.now, call.handle, Ok(Some(answer)));
        }
        if call.caller == self.config.owner.machine || self.knows(&call.caller) {
            return self.serve(moment, call);
        }
        match from {
            Place::Mesh(node) if self.waiting.len() < WAITING_MAX => {
                self.ask_for_record(node);
                let until = call.deadline.min(moment.now + CALLER_PATIENCE);
                self.waiting.push((call, until));
            }
            Place::Mesh(_) => self.endpoint.reply(moment.now, call.handle, Err(NoResult::Busy)),
            Place::Line => self.endpoint.reply(moment.now, call.handle, Err(NoResult::Denied)),
        }
    }

    /// Serves a call whose caller is known.
    fn serve(&mut self, moment: &mut Moment<'_>, call: Incoming) {
        let Self { services, store, .. } = self;
        let offered = services.iter_mut().find(|offered| offered.id == call.to);
        let outcome = match offered {
            None => Outcome::Done(Err(NoResult::NoSuchMachine)),
            Some(offered) if !offered.service.functions().contains(&call.function.as_str()) => {
                Outcome::Done(Err(NoResult::NoSuchFunction))
            }
            Some(offered) => {
                offered.calls += 1;
                let of_service = ServiceCall {
                    function: &call.function,
                    parameter: call.parameter.as_deref(),
                    caller: call.caller,
                    now: moment.now,
                };
                offered.service.call(&of_service, &mut Tree { store, id: offered.tree })
            }
        };
        match outcome {
            Outcome::Done(result) => self.endpoint.reply(moment.now, call.handle, result),
            Outcome::Ask(ask) => {
                let (by, answers, deadline) = (call.to, call.handle, call.deadline);
                let until = deadline.min(moment.now + CALLER_PATIENCE);
                self.ask(moment, Unplaced { ask, by, answers, deadline, until });
            }
        }
    }

    /// Makes the call that a service wants answered before it answers another, or looks up where to.
    fn ask(&mut self, moment: &mut Moment<'_>, wanted: Unplaced) {
        let Unplaced { by, answers, deadline, until, .. } = wanted;
        let Some((key, node, epoch)) = self.find(&wanted.ask) else {
            let has_room = self.unplaced.len() < WAITING_MAX && until > moment.now;
            if has_room && self.look_up(moment.now, &wanted.ask.device) {
                return self.unplaced.push(wanted);
            }
            return self.resume(moment.now, by, answers, Err(NoResult::Unreachable));
        };
        let Ask { function, parameter, .. } = wanted.ask;
        let outgoing = OutgoingCall {
            function,
            parameter,
            deadline: deadline.min(moment.now + ASK_PATIENCE),
            attempts: ASK_ATTEMPTS,
        };
        let (now, place) = (moment.now, Place::Mesh(node));
        let made = self.endpoint.call(now, moment.entropy, &by, &key, place, Some(epoch), outgoing);
        match made {
            Ok(handle) => self.asked.push(Asked { handle, by, answers }),
            Err(_) => self.resume(now, by, answers, Err(NoResult::Busy)),
        }
    }

    /// Takes the end of a call that a service made.
    fn go_on(
        &mut self,
        now: Instant,
        handle: CallHandle,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        let position = self.asked.iter().position(|asked| asked.handle == handle);
        if let Some(Asked { by, answers, .. }) = position.map(|at| self.asked.swap_remove(at)) {
            self.resume(now, by, answers, result);
        }
    }

    /// Lets the service `by` go on with the call that it has to answer.
    fn resume(
        &mut self,
        now: Instant,
        by: MachineId,
        answers: IncomingCallHandle,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        let Self { services, store, .. } = self;
        let Some(offered) = services.iter_mut().find(|offered| offered.id == by) else {
            debug_assert!(false, "a service that asked is offered for good");
            return;
        };
        let result = offered.service.go_on(result, &mut Tree { store, id: offered.tree });
        self.endpoint.reply(now, answers, result);
    }

    /// Hands the sessions' datagrams to the mesh and to the line.
    fn send_all(&mut self, now: Instant) {
        while let Some((to, datagram)) = self.endpoint.transmit() {
            match to {
                Place::Mesh(node) => self.send_by_mesh(node, &datagram),
                Place::Line if self.line.len() < LINE_MAX => self.line.push_back(datagram),
                // As on any link: it is lost, and sent again.
                Place::Line => {}
            }
        }
        if let Some(stack) = &mut self.mesh {
            stack.poll(now);
        }
    }
}
