//! The node: its parts, and how an event or a moment in time moves through them.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_crypto::machine_id;
use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Entropy, Flash, Instant, Retained, UnixTime};
use tenure_kernel::{Effect, Engine, IncomingCall, Kernel, Ran, Standing, Ticket, World};
use tenure_rpc::{Endpoint, Event, IncomingCallHandle};
use tenure_store::{MountReport, Store};
use tenure_wire::NoResult;
use tenure_wire::control::LogLine;
use tenure_wire::directory::{Enrolment, Query, Refusal};
use tenure_wire::{Address, MachineId, Name, PublicKey, Signature, VerifyingKey};

use crate::boot_error::BootError;
use crate::calibration::Calibration;
use crate::config::{Config, Owner};
use crate::directory::Directory;
use crate::firmware::Firmware;
use crate::identity::Identity;
use crate::install::Transfer;
use crate::kept_owner::Ownership;
use crate::log::Log;
use crate::meter::Meter;
use crate::outbound::{Outbound, Waiter};
use crate::peers::Peers;
use crate::peripherals::Peripherals;
use crate::sealing::seal_store;
use crate::secrets::SecretTolls;
use crate::sleep::{Rhythm, take_asleep};
use crate::time::{HUB_JUMP_S_MAX, ToldTime};

/// The flash that a board gives its node, in three parts of any size.
pub struct Parts<F> {
    /// For the store: what devices and machines keep.
    pub store: F,
    /// For images; must be mapped into memory.
    pub code: F,
    /// For a package while it arrives; must be mapped into memory.
    pub staging: F,
}

/// What a board tells its node at each call.
pub struct Moment<'a> {
    /// The time since boot.
    pub now: Instant,
    /// The wall clock, on boards that have one.
    pub unix_time: Option<UnixTime>,
    /// Randomness.
    pub entropy: &'a mut dyn Entropy,
}

/// When a node wants to be polled again, unless a datagram comes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At once.
    Now,
    /// At that instant.
    At(Instant),
    /// Not by itself.
    Never,
}

impl Wake {
    /// When the first of these timers is due.
    fn for_first(timers: impl Iterator<Item = Option<Instant>>, now: Instant) -> Self {
        match timers.flatten().min() {
            Some(at) if at <= now => Self::Now,
            Some(at) => Self::At(at),
            None => Self::Never,
        }
    }

    /// At `at`, or when it is said, whichever comes first.
    #[cfg(feature = "mesh")]
    fn or_at(self, at: Option<Instant>, now: Instant) -> Self {
        match self {
            Self::Now => Self::Now,
            Self::At(first) => Self::for_first([Some(first), at].into_iter(), now),
            Self::Never => Self::for_first([at].into_iter(), now),
        }
    }
}

/// Something that whoever watches the device may want to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A line of a machine's log.
    Log(LogLine),
    /// The directory lists this device now.
    Registered,
    /// The directory refuses to list this device.
    Refused(Refusal),
    /// The directory doesn't answer.
    HubSilent,
    /// The directory's address shows a key that the device doesn't trust, and isn't spoken to.
    HubKeyDiffers {
        /// The key that it shows.
        key: PublicKey,
    },
    /// The firmware that was on trial is well, and stays.
    FirmwareConfirmed {
        /// Its number.
        number: u32,
    },
    /// The device was let into its owner's mesh, over the mesh.
    #[cfg(feature = "mesh")]
    InMesh {
        /// What it is called there.
        node: tenure_mesh::NodeId,
    },
}

/// The shortest wait for an answer, however fast the last ones came: a device that is busy for a
/// second isn't gone.
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
/// The most notices that wait to be taken; older ones make room.
const NOTICES_MAX: usize = 256;

/// A call from outside that a machine is serving.
struct Served {
    handle: IncomingCallHandle,
    by: MachineId,
}

/// How many of the calls that a device serves at a time are kept for its own machine, so that no
/// machine and no caller can lock the owner out.
const SERVED_FOR_OWNER: usize = 2;

/// One device.
pub struct Node<F> {
    pub(crate) config: Config,
    pub(crate) identity: Identity,
    pub(crate) kernel: Kernel<F>,
    pub(crate) endpoint: Endpoint<Address>,
    pub(crate) transfer: Transfer<F>,
    pub(crate) peers: Peers,
    pub(crate) directory: Directory,
    pub(crate) told_time: Option<ToldTime>,
    /// How far the hub may still move the time that leases go by, in seconds.
    pub(crate) hub_jump_left_s: u64,
    pub(crate) outbound: Outbound,
    pub(crate) log: Log,
    pub(crate) meter: Meter,
    pub(crate) peripherals: Peripherals,
    pub(crate) calibration: Calibration,
    pub(crate) rhythm: Rhythm,
    pub(crate) secret_tolls: SecretTolls,
    pub(crate) firmware: Option<Firmware<F>>,
    /// The owner by succession, and the list of revoked keys in force.
    pub(crate) ownership: Ownership,
    /// What the last poll said.
    pub(crate) next_wake: Wake,
    /// Calls that came in and are being served, by the number the kernel knows them by.
    served: BTreeMap<Ticket, Served>,
    tickets: u64,
    notices: VecDeque<Notice>,
    mount_report: MountReport,
    /// What of the heap was used before it booted.
    pub(crate) heap_bytes_before: usize,
    #[cfg(feature = "mesh")]
    pub(crate) mesh: Option<Box<crate::mesh::Mesh>>,
    /// A device that waits to be let into a mesh.
    #[cfg(feature = "mesh")]
    pub(crate) outside: Option<Box<crate::doorstep::Outside>>,
    /// Datagrams that the mesh doesn't carry, for the board.
    #[cfg(feature = "mesh")]
    pub(crate) outbox: VecDeque<(Address, Vec<u8>)>,
}

impl<F: Flash> Node<F> {
    /// Starts a node on its flash. A blank store is made ready; one that holds something else is
    /// left alone.
    ///
    /// # Errors
    /// As [`BootError`] says; nothing was overwritten.
    pub fn boot(
        mut config: Config,
        parts: Parts<F>,
        moment: &mut Moment<'_>,
    ) -> Result<Self, BootError> {
        let heap_bytes_before = config.heap.map_or(0, |usage| usage().used_bytes);
        config.kernel.device = Some(config.name.clone());
        config.rpc.machines_max = config.rpc.machines_max.max(config.kernel.machines_max + 1);
        config.rpc.timeout_min = config.rpc.timeout_min.max(TIMEOUT_MIN);
        let (mut store, mount_report) = mount_or_format(parts.store, moment.entropy)?;
        let ownership = Ownership::take_up(&mut store, &mut config.owner, moment.now)?;
        config.rpc.owner = Some(config.owner.machine);
        let identity = Identity::take_up(&mut store, moment.entropy)?;
        let hub = Identity::hub(&mut store)?;
        let keys = identity.sealing_keys();
        seal_store(&mut store, &keys).map_err(BootError::Read)?;
        let asleep = take_asleep(&mut store);
        let kernel_config = config.kernel.clone();
        let mut kernel = Kernel::boot(store, parts.code, kernel_config, moment.now, machine_id)
            .map_err(BootError::Read)?;
        kernel.seal_with(Box::new(keys));
        kernel.started_by(moment.now, config.reset_cause, config.breadcrumb);
        let endpoint = Endpoint::new(config.rpc.clone(), moment.now, moment.entropy)
            .map_err(BootError::Endpoint)?;
        let mut node = Self {
            transfer: Transfer::new(parts.staging),
            peers: Peers::new(config.peers_max),
            directory: Directory::new(&config, hub, moment.now),
            told_time: None,
            hub_jump_left_s: HUB_JUMP_S_MAX,
            outbound: Outbound::default(),
            log: Log::new(config.log_lines_max),
            meter: Meter::new(moment.now),
            peripherals: Peripherals::default(),
            calibration: Calibration::new(config.kernel.fuel_per_second),
            rhythm: Rhythm::new(moment.now),
            secret_tolls: SecretTolls::new(moment.now, config.kernel.machines_max),
            firmware: None,
            ownership,
            next_wake: Wake::Now,
            served: BTreeMap::new(),
            tickets: 0,
            notices: VecDeque::new(),
            mount_report,
            heap_bytes_before,
            #[cfg(feature = "mesh")]
            mesh: None,
            #[cfg(feature = "mesh")]
            outside: None,
            #[cfg(feature = "mesh")]
            outbox: VecDeque::new(),
            config,
            identity,
            kernel,
            endpoint,
        };
        if let Some(asleep) = asleep {
            node.wake_up(&asleep, moment);
        }
        node.bar_hub(moment);
        node.speak_for_all();
        node.take_up_ledgers(moment);
        #[cfg(feature = "mesh")]
        node.resume_mesh(moment.now)?;
        Ok(node)
    }

    /// Ends it, and gives its flash back, to boot it anew for instance.
    pub fn into_parts(self) -> Parts<F> {
        let (store, code) = self.kernel.into_flash();
        Parts { store, code, staging: self.transfer.into_flash() }
    }

    /// Lends the node memory that outlasts resets, in which it says whose turn it is.
    pub fn use_retained(&mut self, retained: Box<dyn Retained>) {
        self.kernel.use_retained(retained);
    }

    /// Lets the vm run machines behind the board's memory protection from now on.
    pub fn use_wall(&mut self, wall: Box<dyn tenure_vm::Wall>) {
        self.kernel.use_wall(wall);
    }

    /// Lends the node an engine for machines that ask for speed; before, the vm runs them. Belongs
    /// before the first poll: what runs already goes on as it is.
    pub fn use_engine(&mut self, engine: Box<dyn Engine>) {
        self.kernel.use_engine(engine);
    }

    /// The device's name.
    pub fn name(&self) -> &Name {
        &self.config.name
    }

    /// What mounting the store found.
    pub fn mount_report(&self) -> &MountReport {
        &self.mount_report
    }

    /// The device's own key, which an owner enrols.
    pub fn device_key(&self) -> VerifyingKey {
        self.identity.verifying_key()
    }

    /// The key of the device's own machine, which the owner talks to.
    pub fn device_machine(&self) -> PublicKey {
        self.identity.machine_key
    }

    /// Who holds the device.
    pub fn owner(&self) -> Owner {
        self.config.owner
    }

    /// Whether the owner has given this device its name.
    pub fn is_enrolled(&self) -> bool {
        self.identity.is_enrolled(&self.config.name, self.config.owner)
    }

    /// Takes the owner's word that this device carries its name.
    ///
    /// # Errors
    /// [`BootError::Enrolment`] if it is for another device or name or isn't signed by the owner,
    /// or the store's error.
    pub fn enrol(&mut self, enrolment: Enrolment, signature: Signature) -> Result<(), BootError> {
        let Self { kernel, identity, config, .. } = self;
        identity.enrol(kernel.store(), (&config.name, config.owner), enrolment, signature)
    }

    /// Takes a datagram that came from `from`.
    pub fn receive(&mut self, moment: &mut Moment<'_>, from: Address, datagram: &[u8]) {
        self.stay_awake();
        self.calibration.disturb();
        self.rhythm.heard(moment.now);
        self.endpoint.receive(moment.now, moment.entropy, from, datagram);
        self.attend_to_sessions(moment);
    }

    /// Does what is due and runs one slice of one machine.
    pub fn poll(&mut self, moment: &mut Moment<'_>) -> Wake {
        self.stay_awake();
        if let Some(fuel_per_second) = self.calibration.poll(moment.now) {
            self.kernel.calibrate(fuel_per_second);
        }
        self.endpoint.poll(moment.now, moment.entropy);
        #[cfg(feature = "mesh")]
        self.attend_to_mesh(moment);
        self.attend_to_sessions(moment);
        self.attend_to_directory(moment);
        self.attend_to_peripherals(moment);
        self.attend_to_ledgers(moment);
        self.settle_ownership(moment);
        let ran = self.kernel.run(&mut World {
            now: moment.now,
            unix_time: self.unix_time(moment),
            entropy: moment.entropy,
        });
        self.attend_to_effects(moment);
        #[cfg(feature = "mesh")]
        self.send_by_mesh(moment.now);
        self.next_wake = match ran {
            Ran::Slice => {
                match self.kernel.last_turn() {
                    Some(turn) if turn.is_plain => self.calibration.turn(moment.now, turn.fuel),
                    _ => self.calibration.disturb(),
                }
                Wake::Now
            }
            Ran::Idle { until } => {
                let own = [self.directory_wakes_at(), self.peripherals.wake_at()];
                let sleep = self.rhythm.wakes_at(moment.now, self.config.sleep);
                let restart = self.firmware.as_ref().and_then(Firmware::wakes_at);
                let own = own.into_iter().chain([restart, self.meter_wakes_at()]);
                let timers = [until, self.endpoint.poll_at(), sleep].into_iter().chain(own);
                #[cfg(feature = "mesh")]
                let timers = timers.chain([self.mesh_wakes_at(moment.now)]);
                Wake::for_first(timers, moment.now)
            }
        };
        // Who asks to be let in does so while it is awake, and doesn't wake from deep sleep for that.
        let wake = self.next_wake;
        #[cfg(feature = "mesh")]
        let wake = wake.or_at(self.doorstep_wakes_at(moment.now), moment.now);
        wake
    }

    /// The next datagram to send, and where to.
    pub fn transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        #[cfg(feature = "mesh")]
        if self.mesh.is_some() {
            return self.outbox.pop_front();
        }
        self.endpoint.transmit()
    }

    /// Whether a machine serves a call from outside.
    pub(crate) fn serves_anybody(&self) -> bool {
        !self.served.is_empty()
    }

    /// How many calls from outside there were, by which the next one is numbered.
    pub(crate) fn tickets(&self) -> u64 {
        self.tickets
    }

    /// The calls from outside that are being served.
    pub(crate) fn served(&self) -> impl Iterator<Item = (Ticket, IncomingCallHandle, MachineId)> {
        self.served.iter().map(|(ticket, served)| (*ticket, served.handle, served.by))
    }

    /// Tells who waits for a machine that is going that its calls have failed, while its sessions stand.
    pub(crate) fn end_calls_of(&mut self, now: Instant, machine: MachineId) {
        let Self { served, endpoint, .. } = self;
        served.retain(|_, Served { handle, by }| {
            if *by == machine {
                endpoint.reply(now, *handle, Err(NoResult::Execution));
            }
            *by != machine
        });
    }

    /// Takes up the calls that were being served before a deep sleep. Those whose machine starts afresh
    /// may have run; those that no machine had yet didn't.
    pub(crate) fn serve_again(
        &mut self,
        now: Instant,
        tickets: u64,
        served: Vec<(Ticket, IncomingCallHandle, MachineId)>,
    ) {
        self.tickets = tickets;
        for (ticket, handle, by) in served {
            if self.kernel.serving().any(|known| known == ticket) {
                self.served.insert(ticket, Served { handle, by });
            } else {
                self.endpoint.reply(now, handle, Err(NoResult::OutcomeUnknown));
            }
        }
        let is_served = |handle: &IncomingCallHandle| {
            self.served.values().any(|served| served.handle == *handle)
        };
        let unserved: Vec<_> = self.endpoint.incoming().filter(|one| !is_served(one)).collect();
        for handle in unserved {
            self.endpoint.reply(now, handle, Err(NoResult::Busy));
        }
    }

    /// Forgets calls that ended: a deliberate mistake, by which they run again if their callers repeat
    /// them.
    #[cfg(forgetful)]
    pub fn forget_ended_calls(&mut self) {
        self.endpoint.forget_ended_calls();
    }

    /// The next thing to show, if anybody watches.
    pub fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    pub(crate) fn notify(&mut self, notice: Notice) {
        if self.notices.len() >= NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// Opens sessions in the name of a machine from now on.
    pub(crate) fn speak_for(&mut self, id: MachineId, salt: &[u8; 16]) {
        let added = self.endpoint.add_machine(self.identity.machine_secret(salt));
        debug_assert!(added.is_ok_and(|added| added == id), "the endpoint takes every machine");
    }

    fn speak_for_all(&mut self) {
        let own = self.endpoint.add_machine(self.identity.device_secret());
        debug_assert!(own.is_ok());
        self.endpoint.identify_as(&self.identity.machine);
        let salts: Vec<_> =
            self.kernel.machines().map(|info| (info.id, info.record.salt)).collect();
        for (id, salt) in salts {
            self.speak_for(id, &salt);
        }
    }

    fn attend_to_sessions(&mut self, moment: &mut Moment<'_>) {
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::IncomingCall { handle, to, peer, function, parameter, deadline, .. } => {
                    let (caller, standing) = (Some(peer), self.standing_of(moment, &peer));
                    let call = IncomingCall { to, caller, standing, function, parameter, deadline };
                    self.take_call(moment, handle, peer, call);
                }
                Event::CallDone { handle, result } => self.call_done(moment, handle, result),
                Event::PeerSeen { peer, from, .. } => self.peer_seen(moment, peer, from),
                Event::Identified { handle, identity } => {
                    self.hub_identified(moment.now, handle, identity);
                }
            }
        }
    }

    fn peer_seen(&mut self, moment: &Moment<'_>, peer: PublicKey, from: Address) {
        let is_own = peer == self.config.owner.machine || self.directory.is_hub(&peer);
        let is_known = is_own || self.is_of_this_owner(&peer);
        if is_known {
            self.confirm_firmware();
        }
        if peer == self.config.owner.machine {
            self.directory.retry_soon(moment.now);
        }
        if !is_own {
            self.peers.heard(moment.now, peer, from, None, is_known);
        }
    }

    fn attend_to_effects(&mut self, moment: &mut Moment<'_>) {
        while let Some(effect) = self.kernel.effect() {
            match effect {
                Effect::Call(call) => self.route(moment, call),
                Effect::Resolve { id, target } => self.resolve(moment, id, target),
                Effect::Secret { id, tenant, name } => {
                    self.read_secret(moment, id, &tenant, &name);
                }
                Effect::Peers { id } => self.list_peers(moment, id),
                Effect::Reply { ticket, result } => {
                    if let Some(Served { handle, .. }) = self.served.remove(&ticket) {
                        self.endpoint.reply(moment.now, handle, result);
                    }
                }
                Effect::Log(entry) => {
                    let line = self.log.push(entry);
                    self.notify(Notice::Log(line));
                }
            }
        }
    }

    fn take_call(
        &mut self,
        moment: &mut Moment<'_>,
        handle: IncomingCallHandle,
        peer: PublicKey,
        call: IncomingCall,
    ) {
        if self.ownership.revoked.has_device_machine(&peer) {
            return self.endpoint.reply(moment.now, handle, Err(NoResult::Denied));
        }
        if call.to == self.identity.machine {
            let parameter = call.parameter.unwrap_or_default();
            let answer = self.serve_control(moment, &peer, &call.function, &parameter);
            self.endpoint.reply(moment.now, handle, Ok(Some(answer)));
            return;
        }
        if call.standing == Standing::Stranger
            && self.kernel.needs_name_of(&peer, call.to)
            && self.has_directory()
        {
            let waiting = self.directory.callers_waiting();
            if waiting >= self.config.rpc.running_max / 4 || !self.has_room_for_caller() {
                return self.endpoint.reply(moment.now, handle, Err(NoResult::Busy));
            }
            let waiter = Waiter::Caller(handle, call);
            return self.ask_directory(moment, Query::Key(peer), waiter);
        }
        self.deliver(moment, handle, call);
    }

    /// Whether there is anybody to ask who a caller is.
    fn has_directory(&self) -> bool {
        #[cfg(feature = "mesh")]
        if self.mesh.is_some() {
            return true;
        }
        self.config.hub.is_some()
    }

    /// Hands a call to the machine that it is for.
    pub(crate) fn deliver(
        &mut self,
        moment: &mut Moment<'_>,
        handle: IncomingCallHandle,
        call: IncomingCall,
    ) {
        let by = call.to;
        if call.standing != Standing::Owner && !self.may_serve(by) {
            return self.endpoint.reply(moment.now, handle, Err(NoResult::Busy));
        }
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        match self.kernel.deliver(moment.now, call, ticket) {
            Ok(()) => {
                self.served.insert(ticket, Served { handle, by });
            }
            Err(error) => self.endpoint.reply(moment.now, handle, Err(error)),
        }
    }

    /// Who the holder of `peer` is, as far as is known here without asking.
    pub(crate) fn standing_of(&self, moment: &Moment<'_>, peer: &PublicKey) -> Standing {
        if *peer == self.config.owner.machine {
            return Standing::Owner;
        }
        let Some(entry) = self.record_or_last(moment, &Query::Key(*peer)) else {
            return Standing::Stranger;
        };
        let mut machines = entry.record.machines.iter();
        match machines.find(|(_, key)| key == peer) {
            Some((machine, _)) => {
                let device = entry.record.enrolment.device.clone();
                Standing::Named { machine: machine.clone(), device }
            }
            None => Standing::Stranger,
        }
    }

    /// Whether `peer` is a machine on a device of this owner's, or such a device's own, by a record that is
    /// known here.
    fn is_of_this_owner(&self, peer: &PublicKey) -> bool {
        // Records of other owners' devices are never taken.
        self.directory.last_record(&Query::Key(*peer)).is_some() || self.directory.is_device(peer)
    }

    /// Whether `machine` may serve one more call from outside: no more than are still free, so that
    /// however many are hogged, others find some (dynamic thresholds, Choudhury and Hahne 1998).
    fn may_serve(&self, machine: MachineId) -> bool {
        let held = self.served.values().filter(|served| served.by == machine).count();
        held < self.calls_free()
    }

    /// Whether one more caller may wait for the directory to say who it is.
    fn has_room_for_caller(&self) -> bool {
        self.calls_free() > 0
    }

    /// How many more calls from outside, served and waiting ones together, leave the owner's share free.
    fn calls_free(&self) -> usize {
        let in_all = self.config.rpc.running_max.saturating_sub(SERVED_FOR_OWNER).max(1);
        if is_planted(Weakness::WaitingCallersUncounted) {
            return in_all.saturating_sub(self.served.len());
        }
        in_all.saturating_sub(self.served.len() + self.directory.callers_waiting())
    }
}

/// Takes up the store on `flash`, or makes a blank flash one, with a salt that no tenant can know.
pub(crate) fn mount_or_format<F: Flash>(
    flash: F,
    entropy: &mut dyn Entropy,
) -> Result<(Store<F>, MountReport), BootError> {
    let mut salt = [0; 4];
    entropy.fill(&mut salt).map_err(|_| BootError::Entropy)?;
    Store::mount_or_format(flash, u32::from_le_bytes(salt)).map_err(BootError::Mount)
}
