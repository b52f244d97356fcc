//! The kernel: its parts put together, and what a node asks of them.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant, ResetCause, Retained};
use tenure_pipeline::{Published, TooLong};
use tenure_store::{ReadError, Store, ValueKind};
use tenure_vm::Wall;
use tenure_wire::usage::Usage;
use tenure_wire::{CodeKind, MachineId, Name, PublicKey, Share, Topic};
use tenure_wire::{LogLevel, NoResult};

use crate::asleep::{NotAsleep, ON_SLEEP, ON_WAKE, SleepError};
use crate::breadcrumb::Breadcrumb;
use crate::bucket::Bucket;
use crate::calls::{CallId, Calls};
use crate::clock::Clock;
use crate::code::{CodeError, CodeRegion};
use crate::conduct::{Conduct, Repute};
use crate::config::Config;
use crate::effect::Effect;
use crate::events::Events;
use crate::fault::{Fault, FaultKind};
use crate::install_error::InstallError;
use crate::lifecycle::{Event, State};
use crate::look::{self, Look, LookError, MachineInfo};
use crate::machine::Machine;
use crate::machines::Machines;
use crate::outbox::Outbox;
use crate::parts::Parts;
use crate::processors::Processors;
use crate::program::Engine;
use crate::record::MachineRecord;
use crate::scheduler::{LastTurn, Scheduler};
use crate::sealing::{Sealer, read_record, slot_of};
use crate::slot::{KERNEL_TREE, MACHINES_PATH, Slot};
use crate::storage::Storage;
use crate::task::{IncomingCall, ReplyTo, Ticket};
use crate::tenancy::{Tenancy, is_marked_as_trash, placement_before_removal};
use crate::turn::World;
#[cfg(feature = "reach")]
use crate::visit::Visited;

/// The work of [`Kernel::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// A machine had a slice; there may be more to do at once.
    Slice,
    /// Nothing is ready; until this instant nothing will be unless something comes from outside.
    Idle {
        /// When, if ever, the kernel has something to do by itself.
        until: Option<Instant>,
    },
}

/// Machines, their tasks, and what they keep.
pub struct Kernel<F> {
    pub(crate) parts: Parts<F>,
    pub(crate) scheduler: Scheduler,
}

impl<F: Flash> Kernel<F> {
    /// Takes up the machines that `store` has a record of; each one's `entry` is queued.
    ///
    /// A record that can't be read, or whose image is damaged, costs that machine alone: it is
    /// reported in the log and left out. Its slot is kept for it.
    ///
    /// # Errors
    /// The store's, if its own tree can't be listed.
    pub fn boot(
        store: Store<F>,
        code: F,
        config: Config,
        now: Instant,
        id_of: impl Fn(&PublicKey) -> MachineId,
    ) -> Result<Self, ReadError> {
        let policy = config.policy.build(config.slice_fuel, config.fuel_per_second);
        let code = CodeRegion::new(code, config.swap_bytes_max);
        let early_bytes_per_day =
            u64::from(config.swap_bytes_max) * u64::from(config.swap_erasures_per_day);
        let mut kernel = Self {
            scheduler: Scheduler::new(policy, config.slice_fuel),
            parts: Parts {
                machines: Machines::default(),
                calls: Calls::default(),
                events: Events::new(config.events),
                outbox: Outbox::new(config.effects_max, config.log_bytes_per_second),
                storage: Storage { store, code, sealer: None },
                clock: Clock::default(),
                processors: Processors::new(config.fuel_per_second),
                swap_again_at: Instant::default(),
                early_swaps: Bucket::of_day(early_bytes_per_day, now),
                #[cfg(feature = "journal")]
                pages: crate::journal::Pages::default(),
                #[cfg(feature = "journal")]
                script: None,
                config,
            },
        };
        for child in kernel.parts.storage.store.children(KERNEL_TREE, MACHINES_PATH)? {
            let Some(slot) = slot_of(&child) else { continue };
            match read_record(&mut kernel.parts.storage.store, slot) {
                Some(record) => {
                    let id = id_of(&record.public_key);
                    kernel.take_up(now, slot, record, id)?;
                }
                None => leave_out(&mut kernel, now, slot),
            }
        }
        // Of a record whose head is damaged not even the path is left; what the machine kept is.
        let kept: Vec<Slot> =
            kernel.parts.storage.store.trees().filter_map(Slot::of_tree).collect();
        for slot in kept {
            if kernel.parts.machines.get(slot).is_none() {
                leave_out(&mut kernel, now, slot);
            }
        }
        Ok(kernel)
    }

    /// Says, after a boot, how many bytes a machine wrote before it in the period under way: that much
    /// is missing from what it may write at once, and no more than all but a sixteenth.
    pub fn recall_flash_use(&mut self, id: MachineId, bytes: u64) {
        if let Some(machine) = self.parts.machines.with_id_mut(id) {
            machine.meters.recall_flash(bytes);
        }
    }

    /// Puts `bytes` that are written to flash for a machine down to its budget and its bill, if its budget
    /// has room for them; returns whether it has.
    pub fn spend_flash(&mut self, now: Instant, id: MachineId, bytes: usize) -> bool {
        let Some(machine) = self.parts.machines.with_id_mut(id) else { return false };
        if machine.meters.flash.level(now) < bytes as i64 {
            return false;
        }
        machine.charge_flash(now, bytes);
        #[cfg(feature = "journal")]
        machine.note_charge(bytes as u64);
        true
    }

    /// Code flash, for whoever writes images to it.
    pub fn code(&mut self) -> &mut CodeRegion<F> {
        &mut self.parts.storage.code
    }

    /// The store, for the node's own tree.
    pub fn store(&mut self) -> &mut Store<F> {
        &mut self.parts.storage.store
    }

    /// Ends it, and returns its flash: the store's and code's.
    pub fn into_flash(self) -> (F, F) {
        let Storage { store, code, .. } = self.parts.storage;
        (store.into_flash(), code.into_flash())
    }

    /// The kernel's configuration.
    pub fn config(&self) -> &Config {
        &self.parts.config
    }

    /// Lends the kernel an engine; before, the vm runs what it can.
    pub fn use_engine(&mut self, engine: Box<dyn Engine>) {
        self.parts.processors.engine = Some(engine);
    }

    /// Tells `profiler` from now on what machines spend their fuel on. What runs at native speed isn't told.
    #[cfg(feature = "profile")]
    pub fn use_profiler(&mut self, profiler: Box<dyn crate::Profiler>) {
        self.parts.processors.profile.profiler = Some(profiler);
    }

    /// Lets the vm run machines behind the board's memory protection from now on.
    pub fn use_wall(&mut self, wall: Box<dyn Wall>) {
        self.parts.processors.wall = Some(wall);
    }

    /// Lets machines run code that was compiled from their images for the processor `kind`, now and from
    /// now on; the wall confines it.
    pub fn use_compiled_code(&mut self, kind: CodeKind, now: Instant) {
        self.parts.processors.compiled_kind = Some(kind);
        for slot in self.parts.machines.slots() {
            self.parts.check_compiled(now, slot);
        }
    }

    /// The kind of processor that machines' compiled code is for, if they run any.
    pub fn compiled_kind(&self) -> Option<CodeKind> {
        self.parts.processors.compiled_kind
    }

    /// Lends the kernel memory that outlasts resets, to say there who runs.
    pub fn use_retained(&mut self, retained: Box<dyn Retained>) {
        self.scheduler.retained = Some(retained);
    }

    /// Seals what machines keep from now on. What the store holds has its seals already, by
    /// [`seal_trees`](crate::seal_trees).
    pub fn seal_with(&mut self, sealer: Box<dyn Sealer>) {
        self.parts.storage.sealer = Some(sealer);
    }

    /// The kind of code of the engine that the board lends, if it lends one.
    pub fn engine_kind(&self) -> Option<CodeKind> {
        self.parts.processors.engine_kind()
    }

    /// The operations that change which machines there are, and for how long, at `now`.
    pub fn tenancy(&mut self, now: Instant) -> Tenancy<'_, F> {
        Tenancy { parts: &mut self.parts, policy: &mut *self.scheduler.policy, now }
    }

    /// The queues of events, to see who has subscribed to what.
    pub fn events(&self) -> &Events {
        &self.parts.events
    }

    /// The same, for drivers that listen to commands.
    pub fn events_mut(&mut self) -> &mut Events {
        &mut self.parts.events
    }

    /// Publishes what the device itself has to say.
    ///
    /// # Errors
    /// [`TooLong`] if it is longer than an event's payload may be.
    pub fn publish(&mut self, topic: &Topic, payload: &[u8]) -> Result<Published, TooLong> {
        self.parts.events.publish(&mut self.parts.machines, topic, payload)
    }

    /// Queues a call from outside. At its deadline, or after [`Config::deadline_max`], it is
    /// answered by [`HostError::Deadline`](tenure_wire::host_call::HostError::Deadline) at the latest, and doesn't begin any more.
    ///
    /// # Errors
    /// As [`NoResult`] says; nothing is queued then.
    pub fn deliver(
        &mut self,
        now: Instant,
        call: IncomingCall,
        ticket: Ticket,
    ) -> Result<(), NoResult> {
        self.parts.exchange(now).deliver(call, ticket)
    }

    /// Whether a call from outside to machine `to` can only be judged once the caller's name is
    /// known, which its key alone doesn't tell.
    pub fn needs_name_of(&self, caller: &PublicKey, to: MachineId) -> bool {
        let callee = self.parts.machines.with_id(to);
        callee.is_some_and(|machine| machine.grants.depends_on_name(caller))
    }

    /// Takes the answer to a call or a resolution that left the device. An answer that nobody
    /// waits for any more is dropped.
    pub fn complete(
        &mut self,
        now: Instant,
        id: CallId,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        self.parts.exchange(now).complete(id, result);
    }

    /// As [`Kernel::complete`], for a call that failed and on which the called machine says `words`.
    pub fn complete_failed(&mut self, now: Instant, id: CallId, reason: NoResult, words: Vec<u8>) {
        self.parts.exchange(now).complete_with(id, Err(reason), words);
    }

    /// Whether a machine still waits for the answer to call `id`.
    pub fn awaits(&self, id: CallId) -> bool {
        self.parts.calls.get(id).is_some()
    }

    /// The calls from outside that machines have in their queues or serve.
    pub fn serving(&self) -> impl Iterator<Item = Ticket> {
        let tasks = self.parts.machines.iter().flat_map(Machine::tasks);
        tasks.filter_map(|task| match task.reply_to {
            ReplyTo::Outside(ticket) => Some(ticket),
            _ => None,
        })
    }

    /// The next thing the node has to do for the kernel.
    pub fn effect(&mut self) -> Option<Effect> {
        self.parts.outbox.pop()
    }

    /// How many log lines were dropped because nobody took them, or their machine said too much.
    pub fn logs_dropped(&self) -> u64 {
        self.parts.outbox.lines_dropped()
    }

    /// Does what is due, then gives the machine whose turn it is its turn.
    pub fn run(&mut self, world: &mut World<'_>) -> Ran {
        let now = world.now;
        self.scheduler.bill_last_turn(&mut self.parts, now);
        self.parts.hear_time_of_day(now, world.unix_time.map(|unix| unix.seconds));
        self.parts.attend_to_timers(now);
        if self.scheduler.run_turn(&mut self.parts, world) {
            return Ran::Slice;
        }
        self.parts.clock.timers_changed();
        Ran::Idle { until: self.scheduler.next_event(&mut self.parts, now) }
    }

    /// Whether a machine has something to do at once.
    pub fn is_busy(&self) -> bool {
        self.parts.machines.iter().any(|machine| machine.state == State::Ready)
    }

    /// The last turn that a machine had.
    pub fn last_turn(&self) -> Option<LastTurn> {
        self.scheduler.last_turn
    }

    /// The most fuel that is burnt between a machine's being ready and its turn if the
    /// device's speed is as it was told.
    pub fn wait_fuel_max(&self, slot: Slot) -> u64 {
        self.scheduler.wait_fuel_max(slot)
    }

    /// The most fuel that one turn takes.
    pub fn turn_fuel_max(&self) -> u64 {
        self.scheduler.turn_fuel_max()
    }

    /// Tells how much fuel the device was seen to burn in a second.
    pub fn calibrate(&mut self, fuel_per_second: u64) {
        self.parts.processors.fuel_per_second = fuel_per_second.max(1);
        self.scheduler.policy.calibrate(fuel_per_second);
    }

    /// Says why the device started, right after boot. If the watchdog bit while a machine ran, as the
    /// `breadcrumb` tells that was found in retained memory, that is a fault of this machine. Any
    /// other cause is nobody's fault.
    pub fn started_by(&mut self, now: Instant, cause: ResetCause, breadcrumb: Option<Breadcrumb>) {
        let Some(Breadcrumb(id)) = breadcrumb.filter(|_| cause == ResetCause::Watchdog) else {
            return;
        };
        let guilty = self.parts.machines.with_id(id).filter(|machine| !machine.is_stopped());
        // Nobody is guilty: the machine was removed, or stopped, since its turn.
        let Some(slot) = guilty.map(|machine| machine.slot) else { return };
        self.parts.fault(now, slot, Fault::of(FaultKind::Watchdog));
        if let Some(machine) = self.parts.machines.known(slot) {
            self.parts.storage.keep_conduct(machine);
        }
    }

    /// Lifts a ban, or ends a probation; a machine that was banned starts at once.
    ///
    /// # Errors
    /// [`LookError::NoSuchMachine`].
    pub fn pardon(&mut self, now: Instant, name: &Name) -> Result<(), LookError> {
        let Parts { machines, storage, .. } = &mut self.parts;
        let machine = machines.with_name_mut(name).ok_or(LookError::NoSuchMachine)?;
        let was_good = machine.conduct.repute() == Repute::Good;
        machine.conduct = Conduct::default();
        if !was_good {
            storage.keep_conduct(machine);
        }
        let slot = machine.slot;
        // Nothing is held against it any more, so nothing keeps it from running: neither a ban nor a back-off.
        let lifted = match machine.state {
            State::Banned => "the ban was lifted",
            State::BackedOff => "its back-off was ended by its owner",
            _ => return Ok(()),
        };
        self.parts.restart(slot);
        self.parts.log(now, slot, LogLevel::Info, lifted);
        Ok(())
    }

    /// The machine's use since this was last asked, without the bytes that its device sent for it.
    pub fn take_usage(&mut self, now: Instant, id: MachineId) -> Option<Usage> {
        let machine = self.parts.machines.with_id_mut(id)?;
        self.parts.storage.bill(machine, now);
        let next = Usage { memory_bytes_peak: machine.memory_bytes() as u64, ..Usage::default() };
        Some(core::mem::replace(&mut machine.usage, next))
    }

    /// The machines on this device but for those in the trash, in the order of their slots.
    pub fn machines(&self) -> impl Iterator<Item = MachineInfo<'_>> {
        self.occupied().filter(|info| !info.is_removed)
    }

    /// The machines that may publish under a topic, as a number that is another one for each set of them; 0 if none may, as where
    /// the device itself does. Who may publish under another's topics shares that one's part by his owner's word.
    #[cfg(feature = "bridge")]
    pub fn publishers_of(&self, topic: &Topic) -> u64 {
        let machines = self.parts.machines.iter();
        let may = machines.filter(|machine| crate::events::may_publish(&machine.grants, topic));
        may.fold(0, |set, machine| set | 1_u64.rotate_left(machine.slot.index() as u32))
    }

    /// The machines in the trash, in the order of their slots.
    pub fn trash(&self) -> impl Iterator<Item = MachineInfo<'_>> {
        self.occupied().filter(|info| info.is_removed)
    }

    /// The highest number of a placement or a renewal that counts for a machine of that name, or did before
    /// it was removed; 0 if none did.
    ///
    /// # Errors
    /// The store's.
    pub fn last_placement(&mut self, name: &Name) -> Result<u64, InstallError> {
        let Parts { machines, storage, .. } = &mut self.parts;
        match machines.with_name(name) {
            Some(machine) => Ok(machine.record.placement),
            None => Ok(placement_before_removal(&mut storage.store, name)?.unwrap_or(0)),
        }
    }

    /// The name of the machine in `slot`.
    pub fn name_of(&self, slot: Slot) -> Option<&Name> {
        self.parts.machines.get(slot).map(|machine| &machine.record.name)
    }

    /// Hands over every value in the tree of machine `name`, in the order of their paths.
    ///
    /// # Errors
    /// [`LookError`]; some values may have been handed over.
    pub fn each_value(
        &mut self,
        name: &Name,
        each: impl FnMut(&str, ValueKind, &[u8]),
    ) -> Result<(), LookError> {
        look::each_value(&mut self.parts, name, each)
    }

    /// The value at `path` in the tree of machine `name`, for the owner's eyes.
    ///
    /// # Errors
    /// [`LookError`].
    pub fn look(&mut self, name: &Name, path: &str) -> Result<Look, LookError> {
        look::look(&mut self.parts, name, path)
    }

    /// Suspends every machine to flash; each returns by itself when it runs next.
    ///
    /// # Errors
    /// As [`CodeError`] says; some machines may be in flash and some in RAM then, and all run on.
    pub fn suspend_all(&mut self) -> Result<(), CodeError> {
        self.parts.residence(Instant::default()).suspend_all()
    }

    /// Suspends all machines, or writes down where they stand, and returns everything that is to be kept
    /// beside them. Until the device is off, the kernel can go on as if nothing had been.
    ///
    /// # Errors
    /// As [`SleepError`] says; nothing is lost.
    pub fn fall_asleep(&mut self) -> Result<Vec<u8>, SleepError> {
        self.parts.fall_asleep()
    }

    /// Takes up what [`Kernel::fall_asleep`] returned, right after boot. `under_way` are the calls off
    /// the device that are still being carried; those that nobody carries any more are sent again,
    /// which they never were. A machine that isn't the same any more starts afresh.
    ///
    /// # Errors
    /// [`NotAsleep`]; all machines have started afresh then.
    pub fn wake_up(
        &mut self,
        bytes: &[u8],
        now: Instant,
        under_way: &[CallId],
    ) -> Result<(), NotAsleep> {
        self.parts.wake_up(bytes, now, under_way)
    }

    /// Tells all machines that care, by a call of their `on_sleep`, that the device is about to sleep.
    pub fn announce_sleep(&mut self) {
        self.parts.call_all(ON_SLEEP, None);
    }

    /// Tells all machines that care, by a call of their `on_wake` with the milliseconds for which it
    /// slept, that the device has woken.
    pub fn announce_wake(&mut self, slept: Duration) {
        self.parts.call_all(ON_WAKE, Some(&slept.as_millis().to_string()));
    }

    /// All machines that have a slot.
    fn occupied(&self) -> impl Iterator<Item = MachineInfo<'_>> {
        self.parts.machines.iter().map(|machine| {
            let stored_bytes = self.parts.storage.stored_bytes(machine.slot);
            MachineInfo::of(machine, stored_bytes, self.scheduler.wait_fuel_max(machine.slot))
        })
    }

    /// Takes up a machine that the store has a record of, at boot.
    fn take_up(
        &mut self,
        now: Instant,
        slot: Slot,
        record: MachineRecord,
        id: MachineId,
    ) -> Result<(), ReadError> {
        let storage = &mut self.parts.storage;
        storage.code.claim_all(record.extents());
        let is_removed = is_marked_as_trash(&mut storage.store, slot)?;
        if !is_removed {
            self.admit_at_boot(now, slot, &record);
        }
        let log_rate = self.parts.config.log_bytes_per_second;
        let mut machine = Machine::new(record, id, slot, now, log_rate);
        let storage = &mut self.parts.storage;
        machine.meters = machine.meters.at_boot();
        machine.is_removed = is_removed;
        machine.hidden = storage.recall_hidden(slot)?;
        machine.conduct = storage.recall_conduct(slot, &machine.record, now);
        machine.stay_down();
        self.parts.recall_timers(now, &mut machine);
        self.parts.storage.recall_halt(&mut machine);
        if is_removed {
            machine.step(Event::Ended);
        }
        self.parts.occupy(now, machine);
        Ok(())
    }

    /// Lets the policy know of a machine. One whose reservation doesn't fit, because the device has
    /// another policy now, runs without.
    fn admit_at_boot(&mut self, now: Instant, slot: Slot, record: &MachineRecord) {
        let policy = &mut self.scheduler.policy;
        if policy.admit(slot.index(), &record.share).is_err() {
            let unreserved = Share { period_ms: 0, bandwidth_permille: 0, ..record.share };
            let _ = policy.admit(slot.index(), &unreserved);
            let message = "its reservation doesn't fit beside the others': it runs without";
            self.parts.outbox.log(now, &record.name, LogLevel::Error, message.to_string());
        }
    }

    /// Writes a line into the device's own log.
    pub fn remark(&mut self, now: Instant, level: LogLevel, message: String) {
        let device: Option<Name> =
            self.parts.config.device.clone().or_else(|| "device".parse().ok());
        debug_assert!(device.is_some(), "`device` is a name");
        if let Some(device) = device {
            self.parts.outbox.log(now, &device, level, message);
        }
    }
}

#[cfg(feature = "reach")]
impl Visited {
    /// Lets the machine that asked go on, and bills it. An answer that nobody waits for any more is dropped.
    pub fn complete<F: Flash>(self, kernel: &mut Kernel<F>, now: Instant) {
        let mut exchange = kernel.parts.exchange(now);
        exchange.bill_visit(self.id, self.traffic);
        if self.result.is_err() {
            exchange.log_visit(self.id, &self.words);
        }
        exchange.complete_with(self.id, self.result, self.words);
    }
}

/// An event that comes by the bridge to topics outside.
#[cfg(feature = "bridge")]
pub struct Bridged<'a> {
    /// The topic that it is published under.
    pub topic: &'a Topic,
    /// Its payload.
    pub payload: &'a [u8],
}

#[cfg(feature = "bridge")]
impl Bridged<'_> {
    /// Publishes it; the bridge doesn't hear of it again.
    ///
    /// # Errors
    /// [`TooLong`] if it is longer than an event's payload may be.
    pub fn publish<F: Flash>(self, kernel: &mut Kernel<F>) -> Result<Published, TooLong> {
        let Parts { events, machines, .. } = &mut kernel.parts;
        events.publish_bridged(machines, self.topic, self.payload)
    }
}

/// Keeps the slot of a machine whose record can't be read, with all that it stored, until its owner clears it.
fn leave_out<F: Flash>(kernel: &mut Kernel<F>, now: Instant, slot: Slot) {
    if !kernel.parts.machines.unreadable().contains(&slot) {
        kernel.parts.machines.reserve(slot);
        let what = alloc::format!("the record of machine {slot} can't be read");
        kernel.remark(now, LogLevel::Fault, what + ": it is left out, and its slot kept");
    }
}
