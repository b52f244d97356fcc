//! Running: timers, the choice of the next machine, one slice, and what follows from it.

use alloc::boxed::Box;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_vm::{Instance, InstanceConfig, Outcome, TrapKind, Wall};
use tenure_wire::host_call::{HostCall, HostError};

use crate::breadcrumb;
use crate::cost;
use crate::effect::LogLevel;
use crate::host::Verdict;
use crate::kernel::{Kernel, Ran, World};
use crate::lifecycle::{Event, State};
use crate::machine::{Fault, FaultKind, Running, Wait, Woken};
use crate::policy::{Slots, Turn};
use crate::program::{Code, EngineError, EngineInstance, Program};
use crate::timer;

/// The part of its fuel that a machine may use in critical sections, and for how many turns that can
/// be saved up.
const CRITICAL_PART: u64 = 4;
const CRITICAL_TURNS: u64 = 32;

/// How long a machine's start waits for its compiler, at most.
const COMPILER_WAIT_MAX: Duration = Duration::from_secs(10);
/// How often the compiler is asked meanwhile.
const COMPILER_ASKED_EVERY: Duration = Duration::from_millis(20);

/// A turn that a machine had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTurn {
    /// Whose.
    pub slot: usize,
    /// The fuel it took.
    pub fuel: u64,
    /// Whether all of that was the vm's, for the machine's own instructions: no host call, no engine.
    pub is_plain: bool,
    /// How long the machine had been ready.
    pub waited: Duration,
}

/// The fuel of a turn.
struct Meter {
    left: u64,
    /// What host calls took beyond it.
    over: u64,
}

impl Meter {
    fn charge(&mut self, cost: u64) {
        let paid = cost.min(self.left);
        self.left -= paid;
        self.over += cost - paid;
    }

    /// A mark from which to count.
    fn mark(&self) -> (u64, u64) {
        (self.left, self.over)
    }

    /// What was used since a mark.
    fn since(&self, (left, over): (u64, u64)) -> u64 {
        left - self.left + self.over - over
    }
}

/// How a slice ended.
enum End {
    /// The slice's fuel is spent.
    Slice,
    /// The machine gave the rest of its slice away.
    Yielded,
    /// The machine waits.
    Blocked(Wait),
    /// The task is done.
    Done,
    /// The machine is stopped.
    Faulted(Fault),
}

impl<F: Flash> Kernel<F> {
    /// Does what is due, then gives the machine whose turn it is its turn.
    pub fn run(&mut self, world: &mut World<'_>) -> Ran {
        self.count_run_time(world.now);
        self.hear_time_of_day(world.now, world.unix_time.map(|unix| unix.seconds));
        self.attend_to_timers(world.now);
        let ready = self.ready(world.now);
        let Some(turn) = self.policy.pick(world.now, ready) else {
            self.turn_began = None;
            self.no_timer_before = None;
            return Ran::Idle { until: self.next_event(world.now) };
        };
        let waited = self.begin_turn(turn.slot, world.now);
        self.drop_breadcrumb(turn.slot);
        self.turn_began = Some(world.now);
        self.turn_is_plain = true;
        let critical = self.machine(turn.slot).and_then(|machine| machine.critical);
        let limit = critical.map_or(u64::MAX, |(_, left)| left);
        let fuel = self.run_turn(Turn { fuel: turn.fuel.min(limit), ..turn }, world);
        self.policy.ran(turn, fuel);
        self.account(turn.slot, world.now, fuel, critical.is_some());
        self.count_turn(turn.slot, fuel);
        if let Some(retained) = &mut self.retained {
            breadcrumb::wipe(&mut **retained);
        }
        let is_plain = core::mem::take(&mut self.turn_is_plain);
        self.last_turn = Some(LastTurn { slot: turn.slot, fuel, is_plain, waited });
        Ran::Slice
    }

    /// The last turn that a machine had.
    pub fn last_turn(&self) -> Option<LastTurn> {
        self.last_turn
    }

    /// The most fuel that is burnt between a machine's being ready and its turn if the
    /// device's speed is as it was told.
    pub fn wait_fuel_max(&self, slot: usize) -> u64 {
        self.policy.wait_fuel_max(slot, self.turn_fuel_max())
    }

    /// The most fuel that one turn takes.
    pub fn turn_fuel_max(&self) -> u64 {
        self.config.slice_fuel + cost::HOST_CALL_MAX
    }

    /// Tells how much fuel the device was seen to burn in a second.
    pub fn calibrate(&mut self, fuel_per_second: u64) {
        self.fuel_per_second = fuel_per_second.max(1);
        self.policy.calibrate(fuel_per_second);
    }

    /// Who wants the processor, and since when: who began to want it during the last turn counts from
    /// its beginning.
    fn ready(&mut self, now: Instant) -> Slots {
        let mut ready = Slots::default();
        let turn_fuel = self.config.slice_fuel;
        let last = self.last_turn.map(|turn| turn.slot);
        let during_last_turn = self.turn_began.unwrap_or(now);
        for (slot, machine) in self.machines.iter_mut().enumerate() {
            if let Some(machine) = machine
                && machine.state == State::Ready
            {
                if machine.meters.throttles(now, turn_fuel) {
                    machine.ready_since = None;
                    continue;
                }
                ready.insert(slot);
                let since = if last == Some(slot) { now } else { during_last_turn };
                machine.ready_since.get_or_insert(since);
            }
        }
        let slots = if self.config.swap_bytes_max > 0 { ready } else { Slots::default() };
        for slot in slots.iter() {
            if self.waits_for_ram(slot, now).is_some() {
                ready.remove(slot);
                if let Some(machine) = self.machine_mut(slot) {
                    machine.ready_since = None;
                }
            }
        }
        for slot in ready.iter() {
            if self.waits_for_compiler(slot, now) {
                ready.remove(slot);
            }
        }
        ready
    }

    /// Whether the machine in `slot` doesn't start yet because the board's engine is being prepared for
    /// it. Once that has taken [`COMPILER_WAIT_MAX`], the vm runs the machine.
    fn waits_for_compiler(&mut self, slot: usize, now: Instant) -> bool {
        let Some(machine) = self.machine(slot) else { return false };
        let starts = machine.instance.is_none() && machine.suspended.is_none();
        let wanted = machine.record.wasm.filter(|_| starts && !machine.engine_refused);
        let package = machine.record.package;
        let prepared = match (wanted, &mut self.engine) {
            (Some(wasm), Some(engine)) => match self.code.view(wasm) {
                Ok(wasm) => engine.is_prepared(&package, Code::WebAssembly(wasm)),
                Err(_) => true,
            },
            _ => true,
        };
        let Some(machine) = self.machine_mut(slot) else { return false };
        if prepared {
            machine.compiling_since = None;
            return false;
        }
        let waits = now.since(*machine.compiling_since.get_or_insert(now)) < COMPILER_WAIT_MAX;
        if waits {
            machine.ready_since = None;
        }
        waits
    }

    /// How long the machine has waited for the turn that it has now.
    fn begin_turn(&mut self, slot: usize, now: Instant) -> Duration {
        let Some(machine) = self.machine_mut(slot) else { return Duration::ZERO };
        let waited = machine.ready_since.take().map_or(Duration::ZERO, |since| now.since(since));
        machine.waited_max = machine.waited_max.max(waited);
        machine.ran_at = now;
        waited
    }

    fn attend_to_timers(&mut self, now: Instant) {
        if self.no_timer_before.is_some_and(|at| now < at) {
            return;
        }
        for id in self.calls.expired(now) {
            self.complete(now, id, Err(HostError::Deadline.into()));
        }
        for id in self.calls.take_due_retries(now) {
            self.dispatch(now, id);
        }
        for slot in 0..self.machines.len() {
            while let Some(waiting) = self.machine_mut(slot).and_then(|one| one.take_overdue(now)) {
                self.answer(now, waiting, Err(HostError::Deadline.into()));
            }
            let due = self.machine(slot).and_then(|machine| machine.wakes_at());
            if due.is_some_and(|at| at <= now) {
                self.attend_to_machine(slot);
            }
            self.fire_timers(slot, now);
        }
        self.no_timer_before = Some(self.next_timer().unwrap_or(Instant::from_micros(u64::MAX)));
    }

    fn attend_to_machine(&mut self, slot: usize) {
        let Some(machine) = self.machine_mut(slot) else { return };
        if machine.state != State::BackedOff {
            machine.ready_since = machine.wakes_at();
            let woken = match machine.wait {
                Some(Wait::Event(_)) => Woken::with_status(HostError::Deadline.code()),
                _ => Woken::default(),
            };
            machine.wake(woken);
            return;
        }
        self.restart(slot);
    }

    /// When the first of all timers is due.
    fn next_timer(&self) -> Option<Instant> {
        let machines = self.machines.iter().flatten();
        let timers = machines.flat_map(|machine| {
            [machine.wakes_at(), machine.first_deadline(), timer::wakes_at(&machine.timers)]
        });
        timers.chain([self.calls.next_event()]).flatten().min()
    }

    fn next_event(&self, now: Instant) -> Option<Instant> {
        let turn_fuel = self.config.slice_fuel;
        let throttled = self.machines.iter().flatten().filter_map(|machine| {
            machine.meters.unthrottled_at(turn_fuel).filter(|_| machine.state == State::Ready)
        });
        let ready = self.machines.iter().enumerate().filter(|(_, machine)| {
            machine.as_ref().is_some_and(|machine| machine.state == State::Ready)
        });
        let swapped = ready.filter_map(|(slot, _)| self.waits_for_ram(slot, now));
        let compiling =
            self.machines.iter().flatten().filter(|machine| {
                machine.state == State::Ready && machine.compiling_since.is_some()
            });
        let compiling = compiling.map(|_| now + COMPILER_ASKED_EVERY);
        throttled.chain(swapped).chain(compiling).chain(self.next_timer()).min()
    }

    /// Lets a machine run until its turn is over; gives the fuel that this took.
    fn run_turn(&mut self, turn: Turn, world: &mut World<'_>) -> u64 {
        let mut meter = Meter { left: turn.fuel, over: 0 };
        meter.charge(cost::TURN);
        let keeps_turn = !self.policy.ends_turn_with_task();
        while self.run_task(turn.slot, &mut meter, world) && keeps_turn && meter.left > 0 {}
        turn.fuel - meter.left + meter.over
    }

    /// Puts the fuel of a turn down to its machine, and gives it the tier of its next turn: a critical
    /// section begins with the turn after the one that asked for it, and ends when its fuel is used.
    fn account(&mut self, slot: usize, now: Instant, used: u64, was_critical: bool) {
        let saved_max = CRITICAL_TURNS * self.config.slice_fuel;
        let Some(machine) = self.machine_mut(slot) else { return };
        machine.fuel_used += used;
        if let Some(fuel) = &mut machine.meters.fuel {
            fuel.charge(now, used);
        }
        if was_critical {
            machine.critical_fuel = machine.critical_fuel.saturating_sub(used);
            machine.critical =
                machine.critical.map(|(tier, left)| (tier, left.saturating_sub(used)));
        } else {
            machine.critical_fuel = (machine.critical_fuel + used / CRITICAL_PART).min(saved_max);
        }
        machine.critical = machine.critical.filter(|(_, left)| *left > 0);
        let tier = machine.critical.map_or(machine.record.share.tier, |(tier, _)| tier);
        self.policy.set_tier(slot, tier);
    }

    /// Runs the task under way, or the next one, as far as the fuel lasts; gives whether it was done
    /// and there is another.
    fn run_task(&mut self, slot: usize, meter: &mut Meter, world: &mut World<'_>) -> bool {
        if !self.make_room(slot, world.now) {
            meter.charge(core::mem::take(&mut self.extra_cost));
            return false;
        }
        let mark = meter.mark();
        let begins = self.take_task(slot, world.now);
        let taken = self.take_instance(slot, world.now);
        meter.charge(core::mem::take(&mut self.extra_cost));
        let prepared = taken.and_then(|mut instance| {
            if begins {
                meter.charge(cost::TASK);
                match instance.is_busy() {
                    true => self.set_starting(slot, true),
                    false => self.prepare_task(slot, &mut instance)?,
                }
            }
            Ok(instance)
        });
        let mut instance = match prepared {
            Ok(instance) => instance,
            Err(fault) => {
                self.fault(slot, world.now, fault);
                return false;
            }
        };
        let mut end = self.run_until(slot, &mut instance, meter, world);
        if let Some(machine) = self.machine_mut(slot) {
            machine.instance = Some(instance);
            if let Some(running) = &mut machine.current {
                running.fuel_used += meter.since(mark);
                let limit = machine.record.budget.task_fuel;
                if limit > 0 && running.fuel_used > limit && !matches!(end, End::Done) {
                    end = End::Faulted(Fault::of(FaultKind::TaskFuel));
                }
            }
        }
        let done = matches!(end, End::Done);
        self.conclude(slot, world.now, end);
        done && self.machine(slot).is_some_and(|machine| machine.state == State::Ready)
    }

    /// The machine's instance, brought back from flash or made anew from its image if it isn't in
    /// RAM; with what its last host call waited for.
    fn take_instance(&mut self, slot: usize, now: Instant) -> Result<Program, Fault> {
        let kept = self.machine_mut(slot).and_then(|machine| machine.instance.take());
        let mut instance = match kept {
            Some(instance) => {
                // It didn't sleep after all.
                self.discard_state(slot);
                instance
            }
            None => {
                let resumed = self.bring_back(slot)?;
                if let Some(machine) = self.machine_mut(slot) {
                    machine.resident_since = now;
                }
                match resumed {
                    Some(program) => program,
                    None => self.new_program(slot, now)?,
                }
            }
        };
        let woken = self.machine_mut(slot).and_then(|machine| machine.woken.take());
        if let Some(woken) = woken {
            woken.hand_to(&mut instance).ok_or(Fault::of(FaultKind::Suspended))?;
        }
        Ok(instance)
    }

    fn new_program(&mut self, slot: usize, now: Instant) -> Result<Program, Fault> {
        let config = self.instance_config(slot).ok_or(Fault::of(FaultKind::Image))?;
        if self.binary(slot).is_some() {
            let started = self.start_binary(slot, &config);
            return started.map(Program::Engine).map_err(Fault::of);
        }
        if let Some(instance) = self.start_on_engine(slot, now, &config) {
            return Ok(Program::Engine(instance));
        }
        let image = self.image(slot).ok_or(Fault::of(FaultKind::Image))?;
        let instance = Instance::new_lazy(&image, &config);
        instance
            .map(|instance| Program::Image(Box::new(instance)))
            .map_err(|_| Fault::of(FaultKind::Memory))
    }

    /// An instance on the board's engine, if the machine asks for one and the engine takes it.
    fn start_on_engine(
        &mut self,
        slot: usize,
        now: Instant,
        config: &InstanceConfig,
    ) -> Option<Box<dyn EngineInstance>> {
        let machine = self.machine(slot)?;
        if machine.engine_refused {
            return None;
        }
        let (wasm, package) = (machine.record.wasm?, machine.record.package);
        let engine = self.engine.as_mut()?;
        let code = Code::WebAssembly(self.code.view(wasm).ok()?);
        let error = match engine.start(&package, code, config) {
            Ok(instance) => return Some(instance),
            Err(error) => error,
        };
        let machine = self.machine_mut(slot)?;
        machine.compiling_since = None;
        machine.engine_refused = error != EngineError::Compiling;
        let name = machine.record.name.clone();
        let until = if machine.engine_refused { "" } else { " until it starts again" };
        let message = alloc::format!("runs in the vm{until}, not at native speed: {error}");
        self.log(now, name, LogLevel::Warning, message);
        None
    }

    /// An instance of the machine's native binary.
    fn start_binary(
        &mut self,
        slot: usize,
        config: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, FaultKind> {
        let Some(package) = self.machine(slot).map(|machine| machine.record.package) else {
            return Err(FaultKind::Image);
        };
        let mut engine = self.engine.take();
        let started = match (self.binary(slot), &mut engine) {
            (Some(binary), Some(engine)) if engine.kind() == binary.kind() => {
                engine.start(&package, Code::Native(binary), config)
            }
            _ => Err(EngineError::Module),
        };
        self.engine = engine;
        started.map_err(FaultKind::from)
    }

    /// The device's speed, as engines want it.
    fn fuel_per_ms(&self) -> u32 {
        u32::try_from(self.fuel_per_second / 1000).unwrap_or(u32::MAX).max(1)
    }

    /// What the machine's budget and the device's memory leave to an instance.
    pub(crate) fn instance_config(&self, slot: usize) -> Option<InstanceConfig> {
        let budget = self.machine(slot)?.record.budget;
        let stack_bytes = budget.stack_bytes as usize;
        let room = self.config.memory_bytes_max.saturating_sub(self.memory_in_use());
        Some(InstanceConfig {
            stack_bytes: stack_bytes.min(room),
            memory_bytes_max: (room - stack_bytes.min(room)).min(budget.memory_bytes as usize),
        })
    }

    pub(crate) fn memory_in_use(&self) -> usize {
        let with_memory = self.machines.iter().flatten().filter(|one| one.instance.is_some());
        usize::try_from(with_memory.map(|one| one.memory_promised()).sum::<u64>())
            .unwrap_or(usize::MAX)
    }

    /// Takes the next task if none is under way; gives whether it did.
    fn take_task(&mut self, slot: usize, now: Instant) -> bool {
        let Some(machine) = self.machine_mut(slot) else { return false };
        if machine.current.is_some() {
            return false;
        }
        let Some(mut task) = machine.queue.pop_front() else { return false };
        if task.is_event {
            self.take_event(slot, &mut task);
        }
        if let Some(machine) = self.machine_mut(slot) {
            let (starting, reply, fuel_used) = (false, Ok(None), 0);
            let begun = now;
            machine.current = Some(Box::new(Running { task, starting, begun, reply, fuel_used }));
        }
        true
    }

    /// Gets the machine ready to run the task that it has just taken.
    fn prepare_task(&self, slot: usize, instance: &mut Program) -> Result<(), Fault> {
        let image = self.image(slot);
        let running = self.machine(slot).and_then(|machine| machine.current.as_ref());
        let function = running.map_or("", |running| running.task.function.as_str());
        instance
            .prepare(image.as_ref(), function)
            .then_some(())
            .ok_or(Fault::of(FaultKind::Function))
    }

    fn is_starting(&self, slot: usize) -> bool {
        let current = self.machine(slot).and_then(|machine| machine.current.as_ref());
        current.is_some_and(|running| running.starting)
    }

    fn set_starting(&mut self, slot: usize, starting: bool) {
        if let Some(running) = self.machine_mut(slot).and_then(|one| one.current.as_mut()) {
            running.starting = starting;
        }
    }

    fn run_until(
        &mut self,
        slot: usize,
        instance: &mut Program,
        meter: &mut Meter,
        world: &mut World<'_>,
    ) -> End {
        loop {
            if let Some(call) = self.long_call(slot) {
                match self.serve_call(slot, instance, meter, world, &call) {
                    Some(end) => return end,
                    None => continue,
                }
            }
            let outcome = match self.run_program(slot, instance, meter) {
                Ok(outcome) => outcome,
                Err(fault) => return End::Faulted(fault),
            };
            match outcome {
                Outcome::Done if self.is_starting(slot) => {
                    self.set_starting(slot, false);
                    if let Err(fault) = self.prepare_task(slot, instance) {
                        return End::Faulted(fault);
                    }
                }
                Outcome::Done => return End::Done,
                Outcome::OutOfFuel => return End::Slice,
                Outcome::Trap(trap) => {
                    return End::Faulted(Fault {
                        kind: FaultKind::Trap(trap.kind),
                        function: Some(trap.function),
                        offset: Some(trap.offset),
                        by_engine: matches!(instance, Program::Engine(_)),
                    });
                }
                Outcome::HostCall { function } => {
                    let call = HostCall::decode(function, instance.host_arguments());
                    let Some(call) = call else {
                        return End::Faulted(Fault::of(FaultKind::Trap(TrapKind::Unreachable)));
                    };
                    if let Some(end) = self.serve_call(slot, instance, meter, world, &call) {
                        return end;
                    }
                }
            }
        }
    }

    /// The host call that the machine is in the middle of.
    fn long_call(&self, slot: usize) -> Option<HostCall> {
        self.machine(slot)?.long_call.as_ref().map(|under_way| under_way.call)
    }

    /// Lets the program run as far as the fuel lasts, behind the board's wall if there is one.
    fn run_program(
        &mut self,
        slot: usize,
        instance: &mut Program,
        meter: &mut Meter,
    ) -> Result<Outcome, Fault> {
        self.turn_is_plain &= matches!(instance, Program::Image(_));
        let mut wall = self.wall.take();
        let outcome = {
            let wall = wall.as_mut().map(|wall| &mut **wall as &mut dyn Wall);
            instance.run(self.image(slot).as_ref(), &mut meter.left, self.fuel_per_ms(), wall)
        };
        self.wall = wall;
        let by_engine = matches!(instance, Program::Engine(_));
        outcome.map_err(|kind| Fault { by_engine, ..Fault::of(kind) })
    }

    /// Serves a host call, or the next piece of one, and takes its price; gives how the turn ends if
    /// it does with that.
    fn serve_call(
        &mut self,
        slot: usize,
        instance: &mut Program,
        meter: &mut Meter,
        world: &mut World<'_>,
        call: &HostCall,
    ) -> Option<End> {
        self.turn_is_plain = false;
        let verdict = self.serve(slot, instance, world, call);
        meter.charge(cost::of(call) + core::mem::take(&mut self.extra_cost));
        match verdict {
            Verdict::Continue(results) => {
                let went_on = instance.finish_host_call(results.as_slice());
                (!went_on).then_some(End::Faulted(Fault::of(FaultKind::Image)))
            }
            Verdict::Yield => {
                let _ = instance.finish_host_call(&[]);
                Some(End::Yielded)
            }
            Verdict::More => (meter.left == 0).then_some(End::Slice),
            Verdict::Wait(wait) => Some(End::Blocked(wait)),
            Verdict::Fault(kind) => Some(End::Faulted(Fault::of(kind))),
        }
    }

    fn conclude(&mut self, slot: usize, now: Instant, end: End) {
        match end {
            End::Slice | End::Yielded => {}
            End::Blocked(wait) => {
                if let Some(machine) = self.machine_mut(slot) {
                    machine.wait = Some(wait);
                    machine.step(Event::Blocked);
                }
                self.no_timer_before = None;
                if let Wait::Call(id) | Wait::Keys(id, _) | Wait::Secret(id, _) = wait {
                    self.dispatch(now, id);
                }
            }
            End::Done => self.finish_task(slot, now),
            End::Faulted(fault) => self.fault(slot, now, fault),
        }
    }

    fn finish_task(&mut self, slot: usize, now: Instant) {
        let Some(machine) = self.machine_mut(slot) else { return };
        machine.critical = None;
        machine.tasks_done += 1;
        let finished = machine.current.take().map(|running| *running);
        if machine.queue.is_empty() {
            machine.step(Event::Drained);
        }
        self.settle_conduct(slot, now);
        if let Some(Running { task, reply, .. }) = finished {
            if task.is_event {
                self.event_handled(slot);
            }
            self.answer(now, task.reply_to, reply.map_err(Into::into));
        }
    }
}
