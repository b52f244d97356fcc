//! A turn: one machine runs, out of its slot, and its host calls are served.
//!
//! Host calls are methods of the [`Turn`] (`host`, and the modules below it). What they see of other
//! machines are those in the table; the machine itself is in the turn's hands. A call to be sent on its way
//! ends the turn's hold on the machine, so that it can reach its caller, too; the machine goes on in the
//! same slice.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_hal::{Entropy, Flash, Instant, UnixTime};
use tenure_vm::{Outcome, TrapKind, Value};
use tenure_wire::NoResult;
use tenure_wire::host_call::HostCall;

use crate::calls::CallId;
use crate::cost;
use crate::fault::{Fault, FaultKind};
use crate::host::Door;
use crate::lifecycle::{Event, State};
use crate::machine::{Machine, Running, Wait};
use crate::parts::Parts;
use crate::program::Program;
use crate::slot::Slot;

/// The kernel's knowledge of the world for the length of one call.
pub struct World<'a> {
    /// The time since boot.
    pub now: Instant,
    /// The wall clock, if known.
    pub unix_time: Option<UnixTime>,
    /// Randomness for machines.
    pub entropy: &'a mut dyn Entropy,
}

/// The fuel of a turn, and what it was spent on.
pub(crate) struct Meter {
    left: u64,
    /// Fuel of host calls beyond it.
    over: u64,
    /// Whether all of it was the vm's so far, for the machine's own instructions.
    pub(crate) is_plain: bool,
}

impl Meter {
    /// A turn's fuel, of which the turn itself has taken its price.
    pub(crate) fn new(fuel: u64) -> Self {
        let mut meter = Self { left: fuel, over: 0, is_plain: true };
        meter.charge(cost::TURN);
        meter
    }

    fn charge(&mut self, cost: u64) {
        let paid = cost.min(self.left);
        self.left -= paid;
        self.over += cost - paid;
    }

    /// A mark from which to count.
    fn mark(&self) -> (u64, u64) {
        (self.left, self.over)
    }

    /// Fuel used since a mark.
    fn since(&self, (left, over): (u64, u64)) -> u64 {
        left - self.left + self.over - over
    }

    /// The fuel that is left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The fuel that a turn of `fuel` has used.
    pub(crate) fn used_of(&self, fuel: u64) -> u64 {
        fuel - self.left + self.over
    }
}

/// How a turn ended, or why it lets go of the machine.
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
    /// A call is to be sent on its way, while the machine goes on.
    Called(CallId),
}

/// The fate of a machine that made a host call.
pub(crate) enum Verdict {
    /// It goes on with this result.
    Continue(HostResult),
    /// It goes on with this result, and a call is sent on its way.
    Send(HostResult, CallId),
    /// It goes on at its next turn.
    Yield,
    /// The call goes on with its next piece, at the machine's next turn if this one's fuel is used.
    More,
    /// It waits.
    Wait(Wait),
    /// It is stopped.
    Fault(FaultKind),
}

/// The result of a host call: nothing, or one value.
pub(crate) struct HostResult(pub(crate) Option<[Value; 1]>);

impl HostResult {
    fn as_slice(&self) -> &[Value] {
        self.0.as_ref().map_or(&[], |value| value.as_slice())
    }
}

/// A machine that runs, with what its host calls need.
pub(crate) struct Turn<'a, 'w, F> {
    pub(crate) machine: Box<Machine>,
    pub(crate) program: Program,
    pub(crate) parts: &'a mut Parts<F>,
    pub(crate) world: &'a mut World<'w>,
    /// Fuel that the host call under way costs beside the known part.
    pub(crate) extra_cost: u64,
    /// What the host call under way asks of the device.
    #[cfg(feature = "journal")]
    pub(crate) asks: crate::host::Asks,
    meter: &'a mut Meter,
}

/// Runs the task under way in `slot`, or the next one, as far as the fuel lasts; returns whether it was
/// done and there is another.
pub(crate) fn run_task<F: Flash>(
    parts: &mut Parts<F>,
    slot: Slot,
    meter: &mut Meter,
    world: &mut World<'_>,
) -> bool {
    let now = world.now;
    let mut swap_cost = 0;
    let has_room = parts.residence(now).make_room(slot, &mut swap_cost);
    meter.charge(swap_cost);
    if !has_room {
        return false;
    }
    let mark = meter.mark();
    let mut begins = take_task(parts, slot, now);
    let mut program = match parts.residence(now).take_program(slot) {
        Ok(program) => program,
        Err(fault) => {
            parts.fault(now, slot, fault);
            return false;
        }
    };
    let end = loop {
        let Some(machine) = parts.machines.take(slot) else {
            debug_assert!(false, "slot {slot} has a turn and is empty");
            return false;
        };
        let mut turn = Turn {
            machine,
            program,
            parts,
            world,
            extra_cost: 0,
            #[cfg(feature = "journal")]
            asks: crate::host::Asks::default(),
            meter,
        };
        let end = turn.begin(core::mem::take(&mut begins)).unwrap_or_else(|| turn.run());
        let Turn { machine, program: paused, .. } = turn;
        program = paused;
        parts.machines.put(machine);
        match end {
            End::Called(id) => parts.exchange(now).dispatch(id),
            end => break end,
        }
    };
    let end = put_back(parts, slot, program, meter.since(mark), end);
    conclude(parts, slot, now, end)
}

/// Takes the next task if none is under way; returns whether it did.
fn take_task<F: Flash>(parts: &mut Parts<F>, slot: Slot, now: Instant) -> bool {
    let Some(machine) = parts.machines.known_mut(slot) else { return false };
    if machine.current.is_some() {
        return false;
    }
    let Some(mut task) = machine.queue.pop_front() else {
        debug_assert!(false, "{} has a turn and no task", machine.record.name);
        return false;
    };
    if task.is_event {
        parts.events.take(machine, &mut task);
    }
    let (starting, reply, words, fuel_used) = (false, Ok(None), Vec::new(), 0);
    #[cfg(feature = "journal")]
    {
        let held = parts.events.held(slot).filter(|_| task.is_event);
        let event = || held.map(crate::journal::event_record);
        machine.note(|| crate::journal::task_record(now, &task, event()));
    }
    let running = Running { task, starting, begun: now, reply, words, fuel_used };
    machine.current = Some(Box::new(running));
    true
}

/// Gives a machine its program back; returns how its turn ends, with its task's budget looked at.
fn put_back<F: Flash>(
    parts: &mut Parts<F>,
    slot: Slot,
    program: Program,
    fuel_used: u64,
    end: End,
) -> End {
    let Some(machine) = parts.machines.known_mut(slot) else { return end };
    machine.instance = Some(program);
    let Some(running) = &mut machine.current else { return end };
    running.fuel_used += fuel_used;
    let limit = machine.record.budget.task_fuel;
    if limit > 0 && running.fuel_used > limit && !matches!(end, End::Done) {
        return End::Faulted(Fault::of(FaultKind::TaskFuel));
    }
    end
}

/// Does what the end of a turn brings with it; returns whether the machine has another task.
fn conclude<F: Flash>(parts: &mut Parts<F>, slot: Slot, now: Instant, end: End) -> bool {
    match end {
        End::Slice | End::Yielded | End::Called(_) => {}
        End::Blocked(wait) => {
            if let Some(machine) = parts.machines.known_mut(slot) {
                machine.wait = Some(wait);
                machine.step(Event::Blocked);
                #[cfg(feature = "journal")]
                machine.note_wait(wait);
            }
            parts.clock.timers_changed();
            #[cfg(feature = "journal")]
            if parts.script.is_some() {
                return false;
            }
            if let Wait::Call(id) | Wait::Keys(id, _) | Wait::Secret(id, _) = wait {
                parts.exchange(now).dispatch(id);
            }
        }
        End::Done => return finish_task(parts, slot, now),
        End::Faulted(fault) => parts.fault(now, slot, fault),
    }
    false
}

fn finish_task<F: Flash>(parts: &mut Parts<F>, slot: Slot, now: Instant) -> bool {
    let Some(machine) = parts.machines.known_mut(slot) else { return false };
    machine.critical = None;
    machine.tasks_done += 1;
    let finished = machine.current.take();
    machine.settle_queue();
    #[cfg(feature = "journal")]
    if let Some(script) = &mut parts.script {
        script.task_done();
    }
    parts.settle_conduct(now, slot);
    if let Some(running) = finished {
        let Running { task, reply, words, .. } = *running;
        if task.is_event {
            parts.events.put_down(slot);
        }
        let result = reply.map_err(|_| NoResult::Execution);
        parts.exchange(now).answer_with(&task, result, words);
    }
    parts.machines.known(slot).is_some_and(|machine| machine.state == State::Ready)
}

impl<'a, 'w, F: Flash> Turn<'a, 'w, F> {
    /// The door through which what the device knows enters the machine.
    pub(crate) fn door(&mut self) -> Door<'_, 'a, 'w, F> {
        Door::new(self)
    }

    /// Hands the program what its last host call waited for, and readies it for a task that `is_new`;
    /// returns how the turn ends if it does with that.
    fn begin(&mut self, is_new: bool) -> Option<End> {
        self.door().note_woken();
        if let Some(woken) = self.machine.woken.take()
            && woken.hand_to(&mut self.program).is_none()
        {
            return Some(End::Faulted(Fault::of(FaultKind::Suspended)));
        }
        if !is_new {
            return None;
        }
        self.meter.charge(cost::TASK);
        if self.program.is_busy() {
            self.set_starting(true);
            return None;
        }
        self.prepare_task().err().map(End::Faulted)
    }

    /// Runs the machine until the turn ends, or lets go of it.
    fn run(&mut self) -> End {
        loop {
            let call = match self.machine.long_call.as_ref().map(|under_way| under_way.call) {
                Some(call) => call,
                None => match self.run_program() {
                    Ok(call) => call,
                    Err(Some(end)) => return end,
                    Err(None) => continue,
                },
            };
            if let Some(end) = self.serve_call(&call) {
                return end;
            }
        }
    }

    /// Lets the program run as far as the fuel lasts.
    ///
    /// # Errors
    /// How the turn ends if the program made no host call; nothing if it only ended its start.
    fn run_program(&mut self) -> Result<HostCall, Option<End>> {
        let Parts { storage, processors, .. } = &mut *self.parts;
        let image = storage.image(&self.machine);
        let compiled = storage.compiled(&self.machine);
        // Compiled code leaves other bytes in slots that nothing reads any more, and a journal has the digest of all.
        #[cfg(feature = "journal")]
        let compiled = compiled.filter(|_| self.machine.journal.is_none());
        self.meter.is_plain &= matches!(self.program, Program::Image(_)) && compiled.is_none();
        let left = &mut self.meter.left;
        #[cfg(feature = "profile")]
        let (copy, before) = (processors.profile.copy(&self.program), *left);
        let outcome = processors.run(&mut self.program, image.as_ref(), compiled, left);
        #[cfg(feature = "profile")]
        processors.profile.ran(
            &self.machine,
            image.as_ref(),
            (copy, &self.program),
            (before, *left),
        );
        Err(Some(match outcome.map_err(|fault| Some(End::Faulted(fault)))? {
            Outcome::Done if self.is_starting() => {
                self.set_starting(false);
                return Err(self.prepare_task().err().map(End::Faulted));
            }
            Outcome::Done => End::Done,
            Outcome::OutOfFuel => End::Slice,
            Outcome::Trap(trap) => End::Faulted(Fault {
                function: Some(trap.function),
                offset: Some(trap.offset),
                by_engine: matches!(self.program, Program::Engine(_)),
                ..Fault::of(FaultKind::Trap(trap.kind))
            }),
            Outcome::HostCall { function } => {
                match HostCall::decode(function, self.program.host_arguments()) {
                    Some(call) => return Ok(call),
                    None => End::Faulted(Fault::of(FaultKind::Trap(TrapKind::Unreachable))),
                }
            }
        }))
    }

    /// Serves a host call, or the next piece of one, and takes its price; returns how the turn ends if
    /// it does with that.
    fn serve_call(&mut self, call: &HostCall) -> Option<End> {
        self.meter.is_plain = false;
        #[cfg(feature = "journal")]
        let taken = self.door().records_taken();
        let verdict = self.serve(call);
        // The next record may stand right behind the one that the call took.
        #[cfg(feature = "journal")]
        let took = self.door().records_taken() != taken;
        #[cfg(not(feature = "journal"))]
        let took = false;
        let price = cost::of(call) + core::mem::take(&mut self.extra_cost);
        self.meter.charge(price);
        #[cfg(feature = "profile")]
        self.parts.profile_call(&self.machine, &self.program, price);
        match verdict {
            Verdict::Continue(results) => match self.go_on_with(&results) {
                None if took => Some(End::Slice),
                end => end,
            },
            Verdict::Send(results, id) => {
                Some(self.go_on_with(&results).unwrap_or(End::Called(id)))
            }
            Verdict::Yield => {
                let _ = self.program.finish_host_call(&[]);
                Some(End::Yielded)
            }
            Verdict::More => (took || self.meter.left == 0).then_some(End::Slice),
            Verdict::Wait(wait) => Some(End::Blocked(wait)),
            Verdict::Fault(kind) => {
                let by_engine = matches!(self.program, Program::Engine(_));
                Some(End::Faulted(Fault { by_engine, ..Fault::of(kind) }))
            }
        }
    }

    fn go_on_with(&mut self, results: &HostResult) -> Option<End> {
        let went_on = self.program.finish_host_call(results.as_slice());
        (!went_on).then_some(End::Faulted(Fault::of(FaultKind::Image)))
    }

    /// Gets the program ready to run the task that the machine has taken.
    fn prepare_task(&mut self) -> Result<(), Fault> {
        let image = self.parts.storage.image(&self.machine);
        let function = self.machine.current.as_ref().map_or("", |one| one.task.function.as_str());
        let is_ready = self.program.prepare(image.as_ref(), function);
        is_ready.then_some(()).ok_or(Fault::of(FaultKind::Function))
    }

    fn is_starting(&self) -> bool {
        self.machine.current.as_ref().is_some_and(|running| running.starting)
    }

    fn set_starting(&mut self, starting: bool) {
        if let Some(running) = &mut self.machine.current {
            running.starting = starting;
        }
    }
}
