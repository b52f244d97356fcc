//! The node: its parts, and the order in which an event or a moment in time moves through them.

mod control;
#[cfg(feature = "reports")]
mod report;

use alloc::boxed::Box;
#[cfg(feature = "reach")]
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_boot::LogError;
use tenure_crypto::machine_id;
use tenure_hal::{Flash, Instant, Peripheral, Retained, UnixTime};
#[cfg(feature = "bridge")]
use tenure_kernel::Bridged;
use tenure_kernel::{Effect, Engine, IncomingCall, Kernel, MachineInfo, Ran, World};
#[cfg(feature = "reach")]
use tenure_kernel::{OutgoingVisit, Visited};
#[cfg(feature = "mesh")]
use tenure_mesh::{Rejected, Satellite, SatelliteNumber};
#[cfg(feature = "mesh")]
use tenure_protocols::interface::{DatagramArrived, Port, RecordArrived};
use tenure_rpc::{CallHandle, Endpoint, Event};
use tenure_store::MountReport;
#[cfg(feature = "bridge")]
use tenure_wire::control::{DateStatus, DateTeller, OutsideStatus};
use tenure_wire::datagram::Relayed;
use tenure_wire::{Address, LogLevel, Name, NoResult, PublicKey, VerifyingKey};

use crate::boot_error::BootError;
use crate::calibration::Calibration;
#[cfg(feature = "mesh")]
use crate::carriage::take_datagram;
use crate::clock::Clock;
#[cfg(feature = "bridge")]
use crate::clock::Teller;
use crate::config::{Config, Owner, Parts};
use crate::directory::Directory;
use crate::door::{Door, Input, Outlet, Output, Taken};
use crate::exchange::Exchange;
use crate::firmware::{FirmwareParts, Updates};
use crate::handover::Handover;
#[cfg(feature = "touches")]
use crate::hub::Outcome;
use crate::hub::Registration;
use crate::identity::{Identity, kept_keys};
use crate::kept_owner::Ownership;
#[cfg(feature = "reports")]
use crate::live_log::LiveLog;
use crate::log::{self, Log};
#[cfg(feature = "rollouts")]
use crate::mandated::{Director, Mandated};
#[cfg(feature = "mesh")]
use crate::membership::{JoinError, MeshStack, introduce};
#[cfg(feature = "mesh")]
use crate::mesh::{Ground, Member, Mesh};
use crate::meter::Meter;
use crate::moment::{Moment, Wake};
#[cfg(feature = "discovery")]
use crate::neighbours::Neighbours;
use crate::notice::{Notice, Notices};
use crate::outbound::{Outbound, Purpose};
use crate::peers::Peers;
use crate::peripherals::{AttachError, Peripherals};
#[cfg(feature = "reports")]
use crate::reporting::Reporting;
use crate::sealing::seal_store;
use crate::secrets::{self, Secrets};
use crate::services::Services;
use crate::serving::{Arrival, Serving};
use crate::sleep::{Bedtime, Doings, Rhythm, SleepError, Sleeper, take_asleep};
use crate::tenancy::Tenancy;
use crate::transfer::Transfer;
use crate::trees::mount_or_format;

/// The shortest wait for an answer, however fast the last ones came: a device that is busy for a
/// second isn't gone.
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
/// How many events of the mesh one poll of the node takes.
#[cfg(feature = "mesh")]
const EVENTS_PER_POLL: usize = 64;

/// One device.
///
/// It puts parts together that own their state, and lends them to `Tenancy` (leases and machines),
/// `Exchange` (calls to and from elsewhere), `Handover` (changes of owner) and `Sleeper` (deep
/// sleep) for one use.
pub struct Node<F> {
    services: Services<F>,
    clock: Clock,
    directory: Directory,
    hub: Registration,
    outbound: Outbound,
    peers: Peers,
    serving: Serving,
    meter: Meter,
    secrets: Secrets,
    transfer: Transfer<F>,
    firmware: Updates<F>,
    #[cfg(feature = "rollouts")]
    mandated: Mandated,
    #[cfg(feature = "reports")]
    reporting: Reporting,
    #[cfg(feature = "reports")]
    live_log: LiveLog,
    peripherals: Peripherals,
    /// Questions of machines to servers outside, until the board takes them.
    #[cfg(feature = "reach")]
    visits: VecDeque<OutgoingVisit>,
    /// The state of what the board runs beside the node, as the board said last.
    #[cfg(feature = "bridge")]
    outside: Box<OutsideStatus>,
    log: Log,
    calibration: Calibration,
    rhythm: Rhythm,
    #[cfg(feature = "mesh")]
    member: Member,
    #[cfg(feature = "discovery")]
    neighbours: Neighbours,
    /// The moment of the last input.
    now: Instant,
    /// The result of the last turn.
    next_wake: Wake,
    mount_report: MountReport,
    /// Bytes of the heap that were used before it booted.
    heap_bytes_before: usize,
    /// Sectors that the store had taken into use before it booted.
    sectors_opened_before: u32,
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
        let identity = Identity::take_up(&mut store, moment.entropy, kept_keys)?;
        let hub = Identity::hub(&mut store)?;
        let keys = identity.sealing_keys();
        let sectors_opened_before = store.occupancy().sectors_opened;
        seal_store(&mut store, &keys).map_err(BootError::Read)?;
        let asleep = take_asleep(&mut store);
        let kernel_config = config.kernel.clone();
        let mut kernel = Kernel::boot(store, parts.code, kernel_config, moment.now, machine_id)
            .map_err(BootError::Read)?;
        kernel.seal_with(Box::new(keys));
        kernel.started_by(moment.now, config.reset_cause, config.breadcrumb);
        if mount_report.changes_lost > 0 {
            // As a fault it reaches the hub, and whom its alarms tell.
            let lost = mount_report.changes_lost;
            let what = "damaged flash: acknowledged changes that can't be read any more: ";
            let message = alloc::format!("{what}{lost}");
            kernel.remark(moment.now, LogLevel::Fault, message);
        }
        let endpoint = Endpoint::new(config.rpc.clone(), moment.now, moment.entropy)
            .map_err(BootError::Endpoint)?;
        let mut node = Self {
            clock: Clock::new(),
            directory: Directory::new(&config),
            hub: Registration::new(&config, &identity.machine, hub, moment.now),
            outbound: Outbound::default(),
            peers: Peers::new(config.peers_max),
            serving: Serving::default(),
            meter: Meter::new(moment.now),
            secrets: Secrets::new(moment.now, config.kernel.machines_max),
            transfer: Transfer::new(parts.staging),
            firmware: Updates(None),
            #[cfg(feature = "rollouts")]
            mandated: Mandated::new(moment.now),
            #[cfg(feature = "reports")]
            reporting: Reporting::new(moment.now),
            #[cfg(feature = "reports")]
            live_log: LiveLog::new(config.shares_log, moment.now),
            peripherals: Peripherals::default(),
            #[cfg(feature = "reach")]
            visits: VecDeque::new(),
            #[cfg(feature = "bridge")]
            outside: Box::default(),
            log: Log::new(config.log_lines_max, identity.boots),
            calibration: Calibration::new(config.kernel.fuel_per_second),
            rhythm: Rhythm::new(moment.now),
            #[cfg(feature = "mesh")]
            member: Member::default(),
            #[cfg(feature = "discovery")]
            neighbours: Neighbours::default(),
            now: moment.now,
            next_wake: Wake::Now,
            mount_report,
            heap_bytes_before,
            sectors_opened_before,
            services: Services {
                config,
                identity,
                ownership,
                kernel,
                endpoint,
                notices: Notices::default(),
                #[cfg(feature = "journals")]
                journals: crate::journals::Journals::default(),
            },
        };
        log::take_up(&mut node.log, &mut node.services);
        #[cfg(feature = "journals")]
        crate::journals::take_up(&mut node.services);
        if let Some(asleep) = asleep {
            let (rhythm, mut state) = node.sleeper();
            rhythm.wake_up(&mut state, &asleep, moment);
        }
        #[cfg(feature = "bridge")]
        node.bridge(moment.now);
        let Self { services, clock, hub, meter, .. } = &mut node;
        hub.bar(services, clock, moment.now);
        services.speak_for_all();
        meter.take_up_ledgers(services, clock, moment);
        #[cfg(feature = "mesh")]
        {
            let Self { services, clock, hub, member, .. } = &mut node;
            member.resume(&mut Ground { services, clock, hub }, moment.now)?;
        }
        Ok(node)
    }

    /// The date by which the board judges certificates: its own clock's, unless that shows what can't be or its owner contradicts
    /// it; else the owner's word, or that of a hub whose key is pinned. `None` if none of them told it.
    #[cfg(feature = "bridge")]
    pub fn date(&self, moment: &Moment<'_>) -> Option<DateStatus> {
        let vouched = self.clock.vouched_time(moment)?;
        let teller = match self.clock.voucher(moment) {
            None => DateTeller::Clock,
            Some(Teller::Owner) => DateTeller::Owner,
            Some(Teller::PinnedHub | Teller::Hub) => DateTeller::Hub,
        };
        // The owner's word may set the time back. Another teller's is no earlier than the last lease was signed.
        let latest_s = match teller {
            DateTeller::Owner => 0,
            _ => self.meter.latest_unix_s(moment.now).unwrap_or(0),
        };
        Some(DateStatus { unix_s: vouched.seconds.max(latest_s), teller })
    }

    /// Ends it, and gives its flash back, to boot it anew for instance.
    pub fn into_parts(self) -> Parts<F> {
        let (store, code) = self.services.kernel.into_flash();
        Parts { store, code, staging: self.transfer.into_flash() }
    }

    /// Lends the node memory that outlasts resets, in which it says whose turn it is.
    pub fn use_retained(&mut self, retained: Box<dyn Retained>) {
        self.services.kernel.use_retained(retained);
    }

    /// Lets the vm run machines behind the board's memory protection from now on.
    pub fn use_wall(&mut self, wall: Box<dyn tenure_vm::Wall>) {
        self.services.kernel.use_wall(wall);
    }

    /// Lets machines run code that was compiled for the processor `kind`, which the wall confines, from
    /// `now` on.
    pub fn use_compiled_code(&mut self, kind: tenure_wire::CodeKind, now: Instant) {
        self.services.kernel.use_compiled_code(kind, now);
    }

    /// Lends the node an engine for machines that ask for speed; before, the vm runs them. Belongs
    /// before the first poll: what runs already goes on as it is.
    pub fn use_engine(&mut self, engine: Box<dyn Engine>) {
        self.services.kernel.use_engine(engine);
    }

    /// Tells `profiler` from now on what machines spend their fuel on.
    #[cfg(feature = "profile")]
    pub fn use_profiler(&mut self, profiler: Box<dyn tenure_kernel::Profiler>) {
        self.services.kernel.use_profiler(profiler);
    }

    /// The device's name.
    pub fn name(&self) -> &Name {
        &self.services.config.name
    }

    /// The result of mounting the store.
    pub fn mount_report(&self) -> &MountReport {
        &self.mount_report
    }

    /// The device's own key, which an owner enrols.
    pub fn device_key(&self) -> VerifyingKey {
        self.services.identity.verifying_key()
    }

    /// The key of the device's own machine, which the owner talks to.
    pub fn device_machine(&self) -> PublicKey {
        self.services.identity.machine_key
    }

    /// The device's owner.
    pub fn owner(&self) -> Owner {
        self.services.config.owner
    }

    /// The machines of this device, without those in the trash.
    pub fn machines(&self) -> impl Iterator<Item = MachineInfo<'_>> {
        self.services.kernel.machines()
    }

    /// Whether the hub lists this device.
    #[cfg(feature = "hub-addresses")]
    pub fn is_listed(&self) -> bool {
        self.hub.is_listed()
    }

    /// Whether the owner has given this device its name.
    pub fn is_enrolled(&self) -> bool {
        self.services.is_enrolled()
    }

    fn take_datagram(&mut self, moment: &mut Moment<'_>, from: Address, datagram: &[u8]) {
        self.rhythm.stay_awake(&mut self.services);
        self.calibration.disturb();
        self.rhythm.heard(moment.now);
        let (from, datagram) = match Relayed::parse(datagram) {
            Some(relayed) if self.hub.address() == Some(&from) => {
                (Address::Relayed(relayed.way), relayed.datagram)
            }
            _ => (from, datagram),
        };
        self.services.endpoint.receive(moment.now, moment.entropy, from, datagram);
        self.attend_to_sessions(moment);
    }

    /// The next datagram for the board. What the hub is to relay goes to the hub.
    fn transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        #[cfg(feature = "mesh")]
        let (to, bytes) = self.member.transmit(&mut self.services)?;
        #[cfg(not(feature = "mesh"))]
        let (to, bytes) = self.services.endpoint.transmit()?;
        match (to, self.hub.address()) {
            (Address::Relayed(way), Some(hub)) => {
                Some((hub.clone(), Relayed { way, datagram: &bytes }.to_bytes()))
            }
            (to, _) => Some((to, bytes)),
        }
    }

    /// Does what is due and runs one slice of one machine.
    fn turn(&mut self, moment: &mut Moment<'_>) -> Wake {
        self.rhythm.stay_awake(&mut self.services);
        if let Some(fuel_per_second) = self.calibration.poll(moment.now) {
            self.services.kernel.calibrate(fuel_per_second);
        }
        self.services.endpoint.poll(moment.now, moment.entropy);
        #[cfg(feature = "mesh")]
        self.attend_to_mesh(moment);
        self.attend_to_sessions(moment);
        #[cfg(feature = "discovery")]
        self.exchange().attend_to_neighbours(moment);
        let Self { services, clock, directory, hub, outbound, .. } = self;
        hub.attend(services, clock, (directory, outbound), moment);
        #[cfg(feature = "rollouts")]
        self.director().attend(moment);
        #[cfg(feature = "reports")]
        {
            self.report(moment);
            self.share_log(moment);
        }
        self.peripherals.attend(&mut self.services.kernel, moment.now);
        if moment.now >= self.meter.checkpoint_at {
            log::keep(&mut self.log, &mut self.services, moment.now);
            #[cfg(feature = "journals")]
            crate::journals::checkpoint(&mut self.services, moment.now);
        }
        let mut tenancy = self.tenancy();
        tenancy.attend_to_ledgers(moment);
        tenancy.settle_ownership(moment);
        #[cfg(feature = "journals")]
        crate::journals::attend(&mut self.services, moment.now);
        let ran = self.services.kernel.run(&mut World {
            now: moment.now,
            unix_time: self.clock.unix_time(moment),
            entropy: moment.entropy,
        });
        #[cfg(feature = "journals")]
        crate::journals::attend(&mut self.services, moment.now);
        self.attend_to_effects(moment);
        #[cfg(feature = "mesh")]
        self.member.send(&mut self.services, moment.now);
        self.next_wake = match ran {
            Ran::Slice => {
                match self.services.kernel.last_turn() {
                    Some(turn) if turn.is_plain => self.calibration.turn(moment.now, turn.fuel),
                    _ => self.calibration.disturb(),
                }
                Wake::Now
            }
            Ran::Idle { until } => self.wake_for(until, moment.now),
        };
        // A device outside a mesh knocks while it is awake, and doesn't wake from deep sleep for that.
        let wake = self.next_wake;
        #[cfg(feature = "mesh")]
        let wake = wake.or_at(self.member.doorstep_wakes_at(moment.now), moment.now);
        wake
    }

    /// When the node wants to be polled, where the machines want to be at `machines_at`.
    fn wake_for(&self, machines_at: Option<Instant>, now: Instant) -> Wake {
        let timers = [
            machines_at,
            self.services.endpoint.poll_at(),
            self.rhythm.wakes_at(now, self.services.config.sleep),
            self.hub.wakes_at(),
            self.peripherals.wake_at(),
            self.firmware.restart_at(),
            self.meter.wakes_at(),
        ];
        let timers = timers.into_iter();
        #[cfg(feature = "discovery")]
        let timers = timers.chain([self.neighbours.wakes_at()]);
        #[cfg(feature = "rollouts")]
        let timers = timers.chain([self.mandated.wakes_at(&self.hub)]);
        #[cfg(feature = "reports")]
        let timers =
            timers.chain([self.reporting.wakes_at(&self.hub), self.live_log.wakes_at(&self.hub)]);
        #[cfg(feature = "mesh")]
        let timers = timers.chain([self.member.wakes_at(&self.hub, now)]);
        Wake::for_first(timers, now)
    }

    /// Forgets calls that ended: a deliberate mistake, by which they run again if their callers repeat
    /// them.
    #[cfg(forgetful)]
    pub fn forget_ended_calls(&mut self) {
        self.services.endpoint.forget_ended_calls();
    }

    /// Takes a peripheral into use: machines hear of its readings as `device.NAME`, and reach it as
    /// `command.NAME`.
    ///
    /// # Errors
    /// As [`AttachError`] says.
    pub fn attach(
        &mut self,
        now: Instant,
        peripheral: Box<dyn Peripheral + Send>,
    ) -> Result<(), AttachError> {
        self.peripherals.attach(&mut self.services.kernel, now, peripheral)
    }

    /// Gives all peripherals back, to be attached to the node that comes after this one.
    pub fn detach_all(&mut self) -> Vec<Box<dyn Peripheral + Send>> {
        self.peripherals.detach_all()
    }

    /// Gives the node its own firmware, on boards that a loader starts.
    ///
    /// # Errors
    /// The loader's log can't be read.
    pub fn use_firmware(&mut self, parts: FirmwareParts<F>) -> Result<(), LogError> {
        self.firmware.open(parts)
    }

    /// Whether the firmware is on trial: the board leaves its watchdog hungry then.
    pub fn is_on_trial(&self) -> bool {
        self.firmware.is_on_trial()
    }

    /// Asked when everything is transmitted.
    fn wants_to_sleep(&mut self) -> Option<Bedtime> {
        #[cfg(feature = "mesh")]
        let is_holding = self.member.is_holding();
        #[cfg(not(feature = "mesh"))]
        let is_holding = false;
        let doings = Doings {
            next_wake: self.next_wake,
            is_updating: self.firmware.is_busy(),
            is_serving: is_holding || !self.serving.is_idle(),
        };
        self.rhythm.bedtime(&mut self.services, self.now, doings)
    }

    /// See [`Input::Checkpoint`].
    fn checkpoint(&mut self, moment: &Moment<'_>) {
        log::keep(&mut self.log, &mut self.services, moment.now);
        #[cfg(feature = "journals")]
        crate::journals::checkpoint(&mut self.services, moment.now);
        self.tenancy().checkpoint(moment);
    }

    /// See [`Input::FallAsleep`].
    fn prepare_sleep(&mut self, moment: &mut Moment<'_>) -> Result<(), SleepError> {
        self.rhythm.prepare(&mut self.services, moment.now);
        self.checkpoint(moment);
        let (rhythm, mut state) = self.sleeper();
        let has_announced = rhythm.fall_asleep(&mut state, moment)?;
        #[cfg(feature = "mesh")]
        if has_announced {
            self.member.send(&mut self.services, moment.now);
        }
        #[cfg(not(feature = "mesh"))]
        let _ = has_announced;
        Ok(())
    }

    /// How long the deep sleep was that this node has woken from, if it has.
    pub fn slept(&self) -> Option<Duration> {
        self.rhythm.slept()
    }

    fn attend_to_sessions(&mut self, moment: &mut Moment<'_>) {
        while let Some(event) = self.services.endpoint.event() {
            match event {
                Event::IncomingCall { handle, to, peer, function, parameter, deadline, from } => {
                    let standing = self.exchange().standing_of(moment, &peer);
                    let caller = Some(peer);
                    let call = IncomingCall { to, caller, standing, function, parameter, deadline };
                    self.take_call(moment, peer, Arrival { handle, from, call });
                }
                Event::CallDone { handle, result, words } => {
                    self.call_done(moment, handle, (result, words));
                }
                Event::PeerSeen { peer, from, .. } => {
                    if self.exchange().peer_seen(moment.now, peer, from) {
                        self.firmware.confirm(&mut self.services);
                    }
                }
                Event::Identified { handle, identity } => {
                    #[cfg(feature = "discovery")]
                    if self.exchange().neighbour_identified(moment, handle, identity) {
                        continue;
                    }
                    self.hub.identified(&mut self.services, moment.now, handle, identity);
                }
            }
        }
    }

    fn take_call(&mut self, moment: &mut Moment<'_>, peer: PublicKey, arrival: Arrival) {
        let Arrival { handle, ref call, .. } = arrival;
        if self.services.ownership.revoked.has_device_machine(&peer) {
            return self.services.endpoint.reply(moment.now, handle, Err(NoResult::Denied));
        }
        if call.to == self.services.identity.machine {
            let parameter = call.parameter.as_deref().unwrap_or_default();
            let caller = (&peer, Some(handle));
            let answer = control::serve(self, moment, caller, (&call.function, parameter));
            #[cfg(feature = "mesh")]
            if self.member.holds(handle) {
                return;
            }
            return self.services.endpoint.reply(moment.now, handle, Ok(Some(answer)));
        }
        self.exchange().take_call(moment, peer, arrival);
    }

    /// Takes the end of a call that left the device.
    fn call_done(
        &mut self,
        moment: &mut Moment<'_>,
        handle: CallHandle,
        (result, words): (Result<Option<Vec<u8>>, NoResult>, Vec<u8>),
    ) {
        let purpose = self.outbound.take(handle);
        if result.is_ok() && purpose.as_ref().is_some_and(Purpose::is_hubs) {
            self.hub.spoke(moment.now, self.services.config.record_lifetime);
        }
        match purpose {
            // The call of a machine that is gone.
            None => {}
            Some(Purpose::Machine { id, to, .. }) => {
                self.exchange().call_done(moment.now, (id, to), (result, words));
            }
            Some(Purpose::Register) => match result {
                Err(NoResult::Deferred { again_in }) => self.hub.deferred(moment.now, again_in),
                Err(NoResult::OutcomeUnknown) => {
                    self.hub.forgotten(&mut self.services.notices, moment.now);
                }
                Err(NoResult::NoSuchFunction) if self.hub.takes_no_touches(moment.now) => {}
                result => self.registration_done(moment, result.ok().flatten()),
            },
            #[cfg(feature = "touches")]
            Some(Purpose::Touch) => self.touched(moment, result),
            Some(Purpose::Query(query)) => self.exchange().query_done(moment, &query, result),
            #[cfg(feature = "discovery")]
            Some(Purpose::Record { address, key }) => {
                let place = (&address, &key);
                self.exchange().record_shown(moment, place, result.ok().flatten());
            }
            Some(Purpose::List) => self.exchange().list_done(moment, result.ok().flatten()),
            #[cfg(feature = "rollouts")]
            Some(Purpose::Work) => self.director().work_done(moment, result),
            #[cfg(feature = "rollouts")]
            Some(Purpose::Part) => self.director().part_done(moment, result),
            #[cfg(feature = "reports")]
            Some(Purpose::Report) => self.reporting.done(moment.now, result),
            #[cfg(feature = "reports")]
            Some(Purpose::Log) => self.live_log.done(moment.now, result),
        }
    }

    fn registration_done(&mut self, moment: &Moment<'_>, answer: Option<Vec<u8>>) {
        let knew_the_time = self.clock.unix_time(moment).is_some();
        let answer = self.hub.answer(&mut self.services, moment.now, answer);
        if let Some(answer) = answer {
            self.tenancy().hub_told_time(moment, UnixTime { seconds: answer.unix_s });
            self.hub.settle(&mut self.services, moment.now, answer, knew_the_time);
        }
    }

    /// Takes the hub's answer to a touch.
    #[cfg(feature = "touches")]
    fn touched(&mut self, moment: &Moment<'_>, result: Result<Option<Vec<u8>>, NoResult>) {
        let outcome = Outcome::of(result);
        let is_heard = self.hub.touched(&mut self.services, moment.now, outcome);
        let Outcome::Heard { unix_s, may_have_work } = outcome else { return };
        if !is_heard {
            return;
        }
        self.tenancy().hub_told_time(moment, UnixTime { seconds: unix_s });
        #[cfg(feature = "rollouts")]
        if !may_have_work {
            self.mandated.put_off(moment.now);
        }
        #[cfg(not(feature = "rollouts"))]
        let _ = may_have_work;
    }

    fn attend_to_effects(&mut self, moment: &mut Moment<'_>) {
        while let Some(effect) = self.services.kernel.effect() {
            match effect {
                Effect::Call(call) => self.exchange().route(moment, call),
                Effect::Resolve { id, target } => self.exchange().resolve(moment, id, target),
                #[cfg(feature = "reach")]
                Effect::Visit(visit) => self.visit(moment.now, visit),
                Effect::Secret { id, tenant, name } => {
                    secrets::read(&mut self.services, moment, id, &tenant, &name);
                }
                Effect::Peers { id } => self.exchange().list_peers(moment, id),
                Effect::Reply { ticket, result, words } => {
                    let Self { serving, services, .. } = self;
                    let answer = (result, words.as_slice());
                    serving.answer(&mut services.endpoint, moment.now, ticket, answer);
                }
                Effect::Log(entry) => {
                    let failed = (entry.level == LogLevel::Fault).then(|| entry.machine.clone());
                    let line = self.log.push(entry, self.clock.unix_time(moment));
                    #[cfg(feature = "reports")]
                    if failed.is_some() {
                        self.reporting.faulted(&line, moment.now);
                    }
                    self.services.notices.push(Notice::Log(line));
                    // A fault may be the last that is heard of a device. Back-off bounds how many there are.
                    if let Some(machine) = failed {
                        log::keep_of(&mut self.log, &mut self.services, moment.now, &machine);
                    }
                }
            }
        }
    }

    /// Listens for the events that the board carries outside. Where there is no room for that, the device's log says so.
    #[cfg(feature = "bridge")]
    fn bridge(&mut self, now: Instant) {
        let Services { kernel, config, .. } = &mut self.services;
        if let Err(error) = kernel.events_mut().bridge(&config.bridged) {
            let message = alloc::format!("some topics aren't bridged: {error}");
            kernel.remark(now, LogLevel::Error, message);
        }
    }

    /// Has the board ask a server outside, if it does that.
    #[cfg(feature = "reach")]
    fn visit(&mut self, now: Instant, visit: OutgoingVisit) {
        if self.services.config.reaches {
            self.visits.push_back(visit);
            return;
        }
        let words = b"this device reaches no servers".to_vec();
        let result = Err(NoResult::Unreachable);
        let unreached = Visited { id: visit.id, result, words, traffic: (0, 0) };
        unreached.complete(&mut self.services.kernel, now);
    }

    /// Lends the parts that leases concern.
    fn tenancy(&mut self) -> Tenancy<'_, F> {
        self.tenancy_and_transfer().0
    }

    fn tenancy_and_transfer(&mut self) -> (Tenancy<'_, F>, &mut Transfer<F>) {
        let Self { services, clock, meter, serving, hub, log, transfer, .. } = self;
        (Tenancy { services, clock, meter, serving, hub, log }, transfer)
    }

    /// Lends the parts that a step of a rollout concerns.
    #[cfg(feature = "rollouts")]
    fn director(&mut self) -> Director<'_, F> {
        let Self {
            services, clock, meter, serving, hub, log, transfer, outbound, mandated, ..
        } = self;
        let tenancy = Tenancy { services, clock, meter, serving, hub, log };
        Director { state: mandated, tenancy, transfer, outbound }
    }

    /// Lends the parts that calls to and from elsewhere concern.
    fn exchange(&mut self) -> Exchange<'_, F> {
        Exchange {
            services: &mut self.services,
            clock: &mut self.clock,
            directory: &mut self.directory,
            hub: &mut self.hub,
            outbound: &mut self.outbound,
            peers: &mut self.peers,
            serving: &mut self.serving,
            #[cfg(feature = "mesh")]
            mesh: self.member.mesh.as_deref_mut(),
            #[cfg(feature = "discovery")]
            neighbours: &mut self.neighbours,
        }
    }

    /// Lends the parts that a change of owner concerns.
    fn handover(&mut self) -> Handover<'_, F> {
        let Self { services, clock, meter, serving, hub, log, .. } = self;
        Handover {
            tenancy: Tenancy { services, clock, meter, serving, hub, log },
            secrets: &mut self.secrets,
            transfer: &mut self.transfer,
            directory: &mut self.directory,
            peers: &mut self.peers,
            #[cfg(feature = "mesh")]
            member: &mut self.member,
        }
    }

    /// Lends the parts whose state goes over a deep sleep.
    fn sleeper(&mut self) -> (&mut Rhythm, Sleeper<'_, F>) {
        let Self { services, clock, meter, hub, outbound, peers, serving, log, rhythm, .. } = self;
        (rhythm, Sleeper { services, clock, meter, hub, outbound, peers, serving, log })
    }
}

impl<F: Flash> Door for Node<F> {
    fn take(&mut self, moment: &mut Moment<'_>, input: Input<'_>) -> Taken {
        if self.next_wake.is_missed(self.now, moment.now) {
            self.services.endpoint.stood_still(moment.now);
        }
        self.now = moment.now;
        match input {
            Input::Time => {}
            Input::Turn => return Taken::Wake(self.turn(moment)),
            Input::Datagram { from, bytes } => self.take_datagram(moment, from, bytes),
            Input::Owner { function, request } => {
                let owner = self.services.config.owner.machine;
                let call = (function.name(), request);
                return Taken::Answer(control::serve(self, moment, (&owner, None), call));
            }
            Input::Install { package, placement } => {
                let installed = self.tenancy().install(moment, package, placement);
                let status =
                    installed.and_then(|id| control::status_of_installed(self, moment.now, id));
                return Taken::Installed(Box::new(status));
            }
            Input::Checkpoint => self.checkpoint(moment),
            #[cfg(feature = "discovery")]
            Input::Neighbour(address) => self.neighbours.hear(moment.now, address),
            #[cfg(feature = "hub-addresses")]
            Input::HubFound { addresses, key } => {
                let Tenancy { services, clock, hub, .. } = self.tenancy();
                hub.found_at(services, moment.now, &addresses, key);
                hub.bar(services, clock, moment.now);
                self.next_wake = Wake::Now;
            }
            #[cfg(feature = "reach")]
            Input::Visited(visited) => {
                visited.complete(&mut self.services.kernel, moment.now);
                self.next_wake = Wake::Now;
            }
            #[cfg(feature = "bridge")]
            Input::Event { topic, payload } => {
                // The board lets in none that is too long.
                let _ = Bridged { topic: &topic, payload }.publish(&mut self.services.kernel);
                self.next_wake = Wake::Now;
            }
            #[cfg(feature = "bridge")]
            Input::Remark { level, message } => {
                self.services.kernel.remark(moment.now, level, message.into());
                self.next_wake = Wake::Now;
            }
            #[cfg(feature = "bridge")]
            Input::Outside(status) => self.outside = status,
            Input::WillSleepUntil(until) => self.rhythm.will_sleep_until(until),
            Input::FallAsleep => return Taken::Asleep(self.prepare_sleep(moment)),
            #[cfg(feature = "mesh")]
            Input::Knock => self.member.knock(&mut self.services, moment),
            #[cfg(feature = "mesh")]
            Input::Frame { bytes, signal_dbm } => {
                let stack = self.member.stack().ok_or(Rejected::NotForUs);
                let taken = stack.and_then(|stack| stack.receive(moment.now, bytes, signal_dbm));
                return Taken::Frame(taken);
            }
            #[cfg(feature = "mesh")]
            Input::Undelivered(neighbour) => {
                if let Some(stack) = self.member.stack() {
                    stack.undelivered(neighbour);
                }
            }
            #[cfg(feature = "mesh")]
            Input::Parcel(parcel) => {
                if let Some(stack) = self.member.stack() {
                    stack.accept(moment.now, parcel);
                }
            }
        }
        Taken::Done
    }

    fn give(&mut self, outlet: Outlet) -> Option<Output> {
        match outlet {
            Outlet::Datagrams => self.transmit(),
            #[cfg(feature = "mesh")]
            Outlet::Frames => {
                let mut bytes = Vec::new();
                let to = self.member.stack()?.transmit(self.now, &mut bytes)?;
                return Some(Output::Frame { to, bytes });
            }
            #[cfg(feature = "mesh")]
            Outlet::Parcels(satellite) => {
                return self.member.stack()?.parcel_for(satellite).map(Output::Parcel);
            }
            Outlet::Notices => return self.services.notices.pop().map(Output::Notice),
            Outlet::Restart => {
                let is_due = self.firmware.restart_at().is_some_and(|at| at <= self.now);
                return is_due.then_some(Output::Restart);
            }
            #[cfg(feature = "reach")]
            Outlet::Visits => return self.visits.pop_front().map(Output::Visit),
            #[cfg(feature = "bridge")]
            Outlet::Events => {
                let (topic, payload) = self.services.kernel.events_mut().bridged()?;
                let publishers = self.services.kernel.publishers_of(&topic);
                return Some(Output::Event { topic, payload, publishers });
            }
            Outlet::Bedtime => return self.wants_to_sleep().map(Output::Bedtime),
        }
        .map(|(to, bytes)| Output::Datagram { to, bytes })
    }
}

#[cfg(feature = "mesh")]
impl<F: Flash> Node<F> {
    fn join_mesh(&mut self, now: Instant, invitation: &[u8]) -> Result<(), JoinError> {
        let Self { services, clock, hub, member, .. } = self;
        member.join(&mut Ground { services, clock, hub }, now, invitation)
    }

    /// The mesh's stack, to look at, if the device has joined one.
    pub fn mesh_stack(&self) -> Option<&MeshStack> {
        self.member.mesh.as_ref().map(|mesh| &mesh.stack)
    }

    /// Takes the protocols that carry datagrams out of the mesh's stack, for a board that runs them on an
    /// executor of their own from now on, and attaches them to the stack again under the number that is returned;
    /// `None` if the device is in no mesh. A mesh that is joined anew has them in its stack again.
    pub fn mesh_satellite(&mut self, now: Instant) -> Option<(Satellite, SatelliteNumber)> {
        let satellite = self.member.satellite(&self.services, now)?;
        let number = self.member.stack()?.attach(&satellite.protocols());
        Some((satellite, number))
    }

    /// Lets protocols run, takes what came for this device, and announces it when that is due.
    fn attend_to_mesh(&mut self, moment: &mut Moment<'_>) {
        let Self { services, clock, hub, member, directory, .. } = self;
        let mut ground = Ground { services, clock, hub };
        member.attend_to_doorstep(&mut ground, moment.now);
        member.publish(&mut ground, directory, moment);
        member.poll(clock, moment);
        for _ in 0..EVENTS_PER_POLL {
            // A device in no mesh, or no longer in one: there is nobody to wait for either.
            let Some(mesh) = self.member.mesh.as_deref_mut() else { return };
            let Some(event) = mesh.stack.host_event() else { break };
            if let Some((arrived, datagram)) = event.notification::<DatagramArrived>() {
                let Services { endpoint, identity, config, .. } = &mut self.services;
                match arrived.port {
                    Port::RPC => {
                        let arrived = (arrived.from, datagram);
                        take_datagram(endpoint, &mut mesh.carrying, moment, arrived);
                    }
                    Port::RECORD_WANTED => {
                        introduce(&mut mesh.stack, &identity.verifying_key(), arrived.from);
                    }
                    Port::LOOKUP => {
                        let Mesh { lookup, stack, .. } = mesh;
                        lookup.hear(stack, moment.now, arrived.from, datagram);
                    }
                    Port::JOINING => {
                        let (owner, note) = (&config.owner.verifying_key, (arrived.from, datagram));
                        mesh.doorstep.take_note(&mut mesh.stack, owner, moment.now, note);
                    }
                    _ => {}
                }
            } else if let Some((arrived, _)) = event.notification::<RecordArrived>() {
                self.exchange().learn_from_mesh(moment, arrived.key);
            } else {
                #[cfg(feature = "experiments")]
                if let Some(experimenting) = &mut mesh.experimenting {
                    let (services, stack) = (&mut self.services, &mut mesh.stack);
                    experimenting.take_part(services, stack, moment.now, &event);
                }
            }
        }
        self.member.answer_held(&mut self.services.endpoint, moment.now);
        #[cfg(feature = "experiments")]
        if let Ok((stack, experimenting)) = self.member.experimenting() {
            experimenting.note_progress(stack, moment.now);
        }
        self.exchange().give_up_waiting(moment);
    }
}
