//! Invariants of every run, whatever fails.
//!
//! The checker sits outside the world: it sees what machines log, what flash holds after a power
//! cut, and the identities that devices report. It outlives every crash.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use tenure_hal::simulated::RamFlash;
use tenure_store::{Store, TreeId};
use tenure_wire::host_call::HostError;

use crate::guests::TICK_MS;
use crate::line::{CallId, Line, mark_of};
use crate::place::{HUB, Identity};
use crate::scenario::{Calling, Role, Scenario};

#[cfg(test)]
mod tests;

/// The path of a counter's number.
const NUMBER_PATH: &str = "n";
/// How long before the end a caller must have had an answer.
const RECOVERED_WITHIN: Duration = Duration::from_secs(40);

/// How much later than its caller's deadline a call may begin where devices stand still: a first message isn't judged by
/// when it was wanted, but by whether its device stood still for more than five seconds.
const LATE_AT_MOST: Duration = Duration::from_secs(12);

/// An invariant of every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// A call runs at most once.
    AtMostOnce,
    /// A call that is reported not to have run has not.
    NotRunIsTrue,
    /// A call doesn't begin long after its caller has stopped waiting; where devices stand still.
    NothingIsLate,
    /// A reply belongs to its request.
    ReplyBelongs,
    /// A write that was acknowledged to a machine survives every loss of power.
    WritesAreKept,
    /// A device, a machine and the hub are who they were.
    IdentityIsKept,
    /// A caller hears what became of its call, soon after its deadline at the latest.
    EveryCallEnds,
    /// A machine beside others that never rest has its turn in bounded time.
    NobodyStarves,
    /// Only machines that fail by themselves lose their good repute, whatever loses its power.
    ReputeIsEarned,
    /// A place starts from what a loss of power left, and takes its machines.
    PlacesStart,
    /// When the trouble is over, calls succeed again.
    TroubleEnds,
    /// Nothing panics.
    NoPanic,
    /// The world doesn't run hot: events per simulated second are bounded.
    NoStorm,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtMostOnce => "a call runs at most once",
            Self::NotRunIsTrue => "a call reported as not run has not run",
            Self::NothingIsLate => "a call doesn't begin long after its deadline",
            Self::ReplyBelongs => "a reply belongs to its request",
            Self::WritesAreKept => "an acknowledged write survives",
            Self::IdentityIsKept => "identities survive",
            Self::EveryCallEnds => "a caller hears what became of its call",
            Self::NobodyStarves => "nobody starves",
            Self::ReputeIsEarned => "a loss of power is held against nobody",
            Self::PlacesStart => "places start after a loss of power",
            Self::TroubleEnds => "calls succeed again when the trouble is over",
            Self::NoPanic => "nothing panics",
            Self::NoStorm => "the world doesn't run hot",
        })
    }
}

/// An invariant that didn't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// When, in microseconds after the start.
    pub at_us: u64,
    /// How it was seen.
    pub what: String,
}

/// Results of calls, for the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Calls that were made.
    pub calls: u64,
    /// Executions.
    pub runs: u64,
    /// Successes that callers heard of.
    pub successes: u64,
    /// Failures that straight callers heard of, by status.
    pub failures: BTreeMap<i32, u64>,
    /// Failures that queueing callers heard of.
    pub failed_callbacks: u64,
    /// Lines of tickers.
    pub ticks: u64,
}

/// The invariants' watch.
#[derive(Debug)]
pub(crate) struct Checker {
    scenario: Scenario,
    places: Vec<Watched>,
    ran: BTreeMap<CallId, Run>,
    surely_not_run: BTreeSet<CallId>,
    /// When each call must have begun, in microseconds, where devices stand still.
    latest_us: BTreeMap<CallId, u64>,
    outcomes: Outcomes,
    violation: Option<Violation>,
}

/// A call that ran.
#[derive(Clone, Copy, Debug)]
struct Run {
    device: usize,
    number: u32,
}

/// Facts about one place.
#[derive(Debug, Default)]
struct Watched {
    is_on: bool,
    /// Since when it sleeps.
    asleep_us: Option<u64>,
    /// From when until when it slept since it lost its power last.
    naps: Vec<(u64, u64)>,
    identity: Option<Identity>,
    machines: BTreeMap<String, Machine>,
    /// The highest number that its counter said it stored.
    stored: u32,
}

/// Facts about one machine.
#[derive(Debug, Default)]
struct Machine {
    key: Option<[u8; 32]>,
    /// Calls that it made since it started and has not heard of, oldest first.
    open: Vec<(CallId, u64)>,
    /// Failures it heard of without being told of which call.
    failures: usize,
    ticked_us: Option<u64>,
    succeeded_us: Option<u64>,
}

impl Checker {
    /// A checker of a world that has not begun.
    pub(crate) fn new(scenario: Scenario) -> Self {
        let places = (0..=scenario.devices.len()).map(|_| Watched::default()).collect();
        Self {
            scenario,
            places,
            ran: BTreeMap::new(),
            surely_not_run: BTreeSet::new(),
            latest_us: BTreeMap::new(),
            outcomes: Outcomes::default(),
            violation: None,
        }
    }

    /// The first invariant that didn't hold, if any.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Results of calls so far.
    pub(crate) fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Notes that an invariant didn't hold. The first one counts.
    pub(crate) fn violated(&mut self, at_us: u64, invariant: Invariant, what: String) {
        self.violation.get_or_insert(Violation { invariant, at_us, what });
    }

    /// A place started, as `identity`.
    pub(crate) fn started(&mut self, at_us: u64, place: usize, identity: Identity) {
        let watched = &mut self.places[place];
        watched.is_on = true;
        let known = *watched.identity.get_or_insert(identity);
        if known != identity {
            let what = format!("place {place} was {known:?} and is {identity:?}");
            self.violated(at_us, Invariant::IdentityIsKept, what);
        }
    }

    /// A place lost its power; `store` is what its store's flash holds now.
    pub(crate) fn stopped(&mut self, at_us: u64, place: usize, store: RamFlash) {
        let watched = &mut self.places[place];
        watched.is_on = false;
        (watched.asleep_us, watched.naps) = (None, Vec::new());
        for machine in watched.machines.values_mut() {
            machine.forget_what_it_did();
        }
        if place != HUB && self.places[place].identity.is_some() {
            self.check_store(at_us, place, store);
        }
    }

    /// A place sleeps: nothing is due while it does.
    pub(crate) fn sleeps(&mut self, at_us: u64, place: usize) {
        self.places[place].is_on = false;
        self.places[place].asleep_us = Some(at_us);
    }

    /// A place has woken; nobody had a turn meanwhile.
    pub(crate) fn slept(&mut self, at_us: u64, place: usize) {
        let watched = &mut self.places[place];
        watched.is_on = true;
        watched.naps.extend(watched.asleep_us.take().map(|since| (since, at_us)));
        for machine in watched.machines.values_mut() {
            machine.ticked_us = None;
        }
    }

    /// A machine is started anew by an installation.
    pub(crate) fn installed(&mut self, place: usize, machine: &str) {
        let machines = &mut self.places[place].machines;
        machines.entry(machine.to_string()).or_default().forget_what_it_did();
    }

    /// A machine on `place` logs `text`.
    pub(crate) fn logged(&mut self, at_us: u64, place: usize, machine: &str, text: &str) {
        if text.starts_with("banned") || text.starts_with("on probation") {
            self.check_repute(at_us, place, machine);
        }
        let Some(line) = Line::parse(text) else { return };
        match line {
            Line::Key(key) => self.on_key(at_us, place, machine, key),
            Line::Have(number) => {
                let stored = self.places[place].stored;
                if number < stored {
                    let what = format!("{} stored {stored} and has {number}", self.name(place));
                    self.violated(at_us, Invariant::WritesAreKept, what);
                }
            }
            Line::Ran(id, number) => self.on_ran(at_us, place, id, number),
            Line::Twice(id) => {
                let what = format!("call {id:016x} ran on {} again", self.name(place));
                self.violated(at_us, Invariant::AtMostOnce, what);
            }
            Line::WriteFailed(status) => {
                let what = format!("a write on {} failed with {status}", self.name(place));
                self.violated(at_us, Invariant::WritesAreKept, what);
            }
            Line::Called(id) | Line::Queued(id) => {
                self.outcomes.calls += 1;
                self.note_latest(at_us, place, machine, id);
                self.machine(place, machine).open.push((id, at_us));
            }
            Line::NotQueued(id) => {
                let machine = self.machine(place, machine);
                machine.open.retain(|(open, _)| *open != id);
            }
            Line::Done(id, status, result) => {
                self.on_done(at_us, place, machine, id, status, result);
            }
            Line::Succeeded(id, number) => {
                self.on_success(at_us, place, machine, id, number);
                self.check_open(at_us, place, machine);
            }
            Line::Failed => {
                self.outcomes.failed_callbacks += 1;
                self.machine(place, machine).failures += 1;
                self.check_open(at_us, place, machine);
            }
            Line::Tick => self.on_tick(at_us, place, machine),
        }
    }

    /// Looks for what has been due too long.
    pub(crate) fn watch(&mut self, at_us: u64) {
        for place in 1..self.places.len() {
            if !self.places[place].is_on {
                continue;
            }
            let machines: Vec<String> = self.places[place].machines.keys().cloned().collect();
            for machine in &machines {
                self.check_open(at_us, place, machine);
                self.check_tick(at_us, place, machine);
            }
        }
    }

    /// Checks at the end of a run what must have come about by then.
    pub(crate) fn finish(&mut self, at_us: u64) {
        self.watch(at_us);
        let since = at_us.saturating_sub(micros(RECOVERED_WITHIN));
        let mut silent = Vec::new();
        for (index, device) in self.scenario.devices.iter().enumerate() {
            for plan in &device.machines {
                let known = self.places[index + 1].machines.get(&plan.name);
                let succeeded_us = known.and_then(|machine| machine.succeeded_us);
                let expected =
                    calling(&plan.role).is_some_and(|calling| calling.function == "count");
                if expected && succeeded_us.is_none_or(|at| at < since) {
                    silent.push(format!("{}@{}", plan.name, device.name));
                }
            }
        }
        if !silent.is_empty() {
            let what = format!("no success in the last 40 s: {}", silent.join(", "));
            self.violated(at_us, Invariant::TroubleEnds, what);
        }
    }

    /// A device's name.
    fn name(&self, place: usize) -> &str {
        &self.scenario.devices[place - 1].name
    }

    fn machine(&mut self, place: usize, machine: &str) -> &mut Machine {
        self.places[place].machines.entry(machine.to_string()).or_default()
    }

    fn on_key(&mut self, at_us: u64, place: usize, machine: &str, key: [u8; 32]) {
        let known = *self.machine(place, machine).key.get_or_insert(key);
        if known != key {
            let what = format!("{machine}@{} has another key than before", self.name(place));
            self.violated(at_us, Invariant::IdentityIsKept, what);
        }
    }

    /// Notes when a call that was made now must have begun.
    fn note_latest(&mut self, at_us: u64, place: usize, machine: &str, id: CallId) {
        let plan = self.scenario.machine(place, machine).and_then(|plan| calling(&plan.role));
        if let Some(calling) = plan.filter(|_| self.scenario.stops.is_some()) {
            let deadline_us = u64::from(calling.deadline_ms) * 1000;
            self.latest_us.insert(id, at_us + deadline_us + micros(LATE_AT_MOST));
        }
    }

    fn on_ran(&mut self, at_us: u64, place: usize, id: CallId, number: u32) {
        self.outcomes.runs += 1;
        if self.ran.insert(id, Run { device: place, number }).is_some() {
            let what = format!("call {id:016x} ran on {} again", self.name(place));
            self.violated(at_us, Invariant::AtMostOnce, what);
        }
        if self.surely_not_run.contains(&id) {
            let what = format!("call {id:016x} ran after its caller heard that it had not");
            self.violated(at_us, Invariant::NotRunIsTrue, what);
        }
        if self.latest_us.get(&id).is_some_and(|latest| at_us > *latest) {
            let name = self.name(place);
            let what = format!("call {id:016x} ran on {name} long after its deadline");
            self.violated(at_us, Invariant::NothingIsLate, what);
        }
        let stored = self.places[place].stored;
        if number <= stored {
            let what = format!("{} stored {stored} and then {number}", self.name(place));
            self.violated(at_us, Invariant::WritesAreKept, what);
        } else {
            self.places[place].stored = number;
        }
    }

    fn on_done(
        &mut self,
        at_us: u64,
        place: usize,
        machine: &str,
        id: CallId,
        status: i32,
        (answered, number): (CallId, u32),
    ) {
        self.check_open(at_us, place, machine);
        if status == 12 {
            if answered != id {
                let what = format!("call {id:016x} got the reply to {answered:016x}");
                self.violated(at_us, Invariant::ReplyBelongs, what);
            }
            return self.on_success(at_us, place, machine, id, number);
        }
        self.machine(place, machine).open.retain(|(open, _)| *open != id);
        *self.outcomes.failures.entry(status).or_default() += 1;
        if status >= 0 {
            let what = format!("call {id:016x} got a reply of {status} bytes");
            self.violated(at_us, Invariant::ReplyBelongs, what);
        }
        let surely_not_run = [HostError::NotFound, HostError::Full].map(HostError::code);
        if surely_not_run.contains(&status) {
            self.surely_not_run.insert(id);
            if self.ran.contains_key(&id) {
                let what = format!("call {id:016x} ran, and its caller hears {status}");
                self.violated(at_us, Invariant::NotRunIsTrue, what);
            }
        }
    }

    fn on_success(&mut self, at_us: u64, place: usize, machine: &str, id: CallId, number: u32) {
        self.outcomes.successes += 1;
        let plan = self.scenario.machine(place, machine).and_then(|plan| calling(&plan.role));
        let target = plan.map_or(String::new(), |calling| calling.target.clone());
        let known = self.machine(place, machine);
        let was_open = known.open.iter().any(|(open, _)| *open == id);
        known.open.retain(|(open, _)| *open != id);
        known.succeeded_us = Some(at_us);
        let run = self.ran.get(&id).copied();
        let right = run.is_some_and(|run| {
            let meant = target
                .split_once('@')
                .map_or(self.name(place).to_string(), |(_, on)| on.to_string());
            let name = self.name(run.device);
            let is_meant = meant.strip_suffix('*').map_or(meant == name, |it| name.starts_with(it));
            run.number == number && is_meant
        });
        if !(was_open && right) {
            let what = format!("call {id:016x} to {target} got {number}; it ran as {run:?}");
            self.violated(at_us, Invariant::ReplyBelongs, what);
        }
    }

    fn check_repute(&mut self, at_us: u64, place: usize, machine: &str) {
        let plan = self.scenario.machine(place, machine);
        if !plan.is_some_and(|plan| matches!(plan.role, Role::Crasher)) {
            let what =
                format!("{machine}@{} is no crasher and lost its good repute", self.name(place));
            self.violated(at_us, Invariant::ReputeIsEarned, what);
        }
    }

    fn on_tick(&mut self, at_us: u64, place: usize, machine: &str) {
        self.outcomes.ticks += 1;
        self.check_tick(at_us, place, machine);
        self.machine(place, machine).ticked_us = Some(at_us);
    }

    fn check_tick(&mut self, at_us: u64, place: usize, machine: &str) {
        let bound = u64::from(TICK_MS) * 1000 + 4 * self.round_us(place);
        let ticked_us = self.machine(place, machine).ticked_us;
        if let Some(gap) = ticked_us.map(|ticked| at_us - ticked).filter(|gap| *gap > bound) {
            let what = format!(
                "{machine}@{} had no turn for {gap} us, allowed are {bound}",
                self.name(place)
            );
            self.violated(at_us, Invariant::NobodyStarves, what);
        }
    }

    /// Checks that no call of a machine is open that should have ended.
    fn check_open(&mut self, at_us: u64, place: usize, machine: &str) {
        let Some(plan) = self.scenario.machine(place, machine) else { return };
        let allowance = 1_000_000 + 20 * self.round_us(place);
        let (calling, bound) = match &plan.role {
            Role::Straight(calling) => (calling, allowance),
            Role::Queueing { calling, width, .. } => {
                let rest = u64::from(calling.pause_ms) * 1000 + allowance;
                (calling, u64::from(width + 1) * rest)
            }
            _ => return,
        };
        let deadline_us = u64::from(calling.deadline_ms) * 1000;
        let watched = &self.places[place];
        let Some(known) = watched.machines.get(machine) else { return };
        // A sleeping device hears nothing; it learns of a deadline that passed meanwhile when it has woken.
        let is_overdue = |since: u64| watched.awake_us(since + deadline_us, at_us) > bound;
        let overdue = known.open.iter().filter(|(_, since)| is_overdue(*since)).count();
        if overdue > known.failures {
            let (id, since) = known.open[0];
            let what = format!(
                "{machine}@{} has heard nothing of call {id:016x}, made at {since} us; awake it may \
                 take {bound} us beyond its deadline of {deadline_us} us",
                self.name(place)
            );
            self.violated(at_us, Invariant::EveryCallEnds, what);
        }
    }

    /// How long it takes until each machine of a device has had a slice.
    fn round_us(&self, place: usize) -> u64 {
        let machines = self.scenario.devices[place - 1].machines.len() as u64;
        (machines + 1) * micros(self.scenario.slice)
    }

    /// Checks that a store which lost its power holds all that was acknowledged.
    fn check_store(&mut self, at_us: u64, place: usize, flash: RamFlash) {
        let mut store = match Store::mount(flash) {
            Ok((store, _)) => store,
            Err(error) => {
                let what = format!("the store of {} can't be mounted: {error}", self.name(place));
                return self.violated(at_us, Invariant::WritesAreKept, what);
            }
        };
        if let Err(error) = tenure_node::unseal_store(&mut store) {
            let what = format!("the store of {} can't be unsealed: {error}", self.name(place));
            return self.violated(at_us, Invariant::WritesAreKept, what);
        }
        let acknowledged: Vec<CallId> =
            self.ran.iter().filter(|(_, run)| run.device == place).map(|(id, _)| *id).collect();
        if acknowledged.is_empty() {
            return;
        }
        let trees: Vec<TreeId> = store.trees().collect();
        let counter = trees.into_iter().find(|tree| store.exists(*tree, NUMBER_PATH) == Ok(true));
        let number = counter.and_then(|tree| store.get(tree, NUMBER_PATH).ok().flatten());
        let number = number.and_then(|value| value.bytes.try_into().ok()).map(u32::from_le_bytes);
        let stored = self.places[place].stored;
        if number.is_none_or(|number| number < stored) {
            let what =
                format!("{} stored {stored}, and its flash holds {number:?}", self.name(place));
            self.violated(at_us, Invariant::WritesAreKept, what);
        }
        for id in acknowledged {
            if counter.is_none_or(|tree| store.exists(tree, &mark_of(id)) != Ok(true)) {
                let what = format!(
                    "the mark of call {id:016x} is gone from the flash of {}",
                    self.name(place)
                );
                self.violated(at_us, Invariant::WritesAreKept, what);
            }
        }
    }
}

impl Watched {
    /// How much of the time between two moments it was awake, in microseconds.
    fn awake_us(&self, from_us: u64, to_us: u64) -> u64 {
        let asleep =
            |(since, until): &(u64, u64)| (*until.min(&to_us)).saturating_sub(*since.max(&from_us));
        to_us.saturating_sub(from_us).saturating_sub(self.naps.iter().map(asleep).sum())
    }
}

impl Machine {
    /// It is started anew: what it had under way is gone.
    fn forget_what_it_did(&mut self) {
        self.open.clear();
        self.failures = 0;
        self.ticked_us = None;
    }
}

/// The machine that a machine of this role calls, if any.
pub(crate) fn calling(role: &Role) -> Option<&Calling> {
    match role {
        Role::Straight(calling) | Role::Round { calling, .. } | Role::Queueing { calling, .. } => {
            Some(calling)
        }
        _ => None,
    }
}

fn micros(span: Duration) -> u64 {
    span.as_micros() as u64
}
