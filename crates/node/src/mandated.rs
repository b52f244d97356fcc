//! Rollouts: the device asks its hub what to do, checks the owner's mandate for it, fetches the package in parts
//! and puts it in the place of the machine, with nobody at a keyboard.
//!
//! Invariants:
//! - The hub chooses when; [`check`](mod@check) decides whether. A step that the mandate doesn't allow changes nothing.
//! - What the machine had is in flash before it is replaced, so that it can be put back.
//! - A package that isn't the one that the mandate names, byte for byte, is dropped.
//! - One fetch at a time, in the staging flash, which the owner's tool takes whenever it wants to. Fetches in vain, which
//!   wear it as others do, are ever further apart.

mod check;
mod followed;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::de::DeserializeOwned;
use tenure_hal::{Flash, Instant};
use tenure_kernel::MachineInfo;
use tenure_wire::control::ControlError;
use tenure_wire::hub::{Answer, function};
use tenure_wire::limits::LABELS_MAX;
use tenure_wire::rollout::{
    Delivery, Labels, PART_BYTES_MAX, Part, PartQuery, Seen, Sight, Step, Task, Work, WorkQuery,
};
use tenure_wire::{Name, NoResult};

use self::check::Errand;
use crate::hub::Registration;
use crate::moment::Moment;
use crate::notice::Notice;
use crate::outbound::{Outbound, Purpose};
use crate::tenancy::Tenancy;
use crate::transfer::Transfer;

/// How long to wait after the hub gave no answer, and while the owner's tool uses the staging flash.
const RETRY: Duration = Duration::from_secs(30);
/// How long to wait after a hub said that it directs no rollouts.
const RETRY_UNSERVED: Duration = Duration::from_secs(60 * 60);
/// The shortest wait that a hub asks for which makes its word at a touch, that it has no work, worth more than the question: it is
/// touched more often then. And how long to wait at most since the last question.
#[cfg(feature = "touches")]
const IDLE_MIN: Duration = Duration::from_secs(25);
#[cfg(feature = "touches")]
const ASKED_ANYWAY: Duration = Duration::from_secs(60 * 60);
/// The shortest and the longest wait that the hub may ask for.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60 * 60));
/// How often the owner's transfer is found as it was before it counts as given up.
const IDLE_LOOKS_MAX: u8 = 10;
/// The fetches in vain, one after the other, of which the last makes the next one wait: half a minute, then twice as long each.
const VAIN_MAX: u32 = 4;
/// The longest wait after fetches in vain.
const VAIN_WAIT_MAX: Duration = Duration::from_secs(60 * 60);
/// The longest reason that is told to the hub, in characters.
const REASON_CHARS_MAX: usize = 160;

/// The steps that the hub directs, and how far they are.
#[derive(Debug)]
pub(crate) struct Mandated {
    /// When to turn to the hub next; `None` while an answer is on its way.
    ask_at: Option<Instant>,
    /// When it was turned to last, and for how long a wait it asked.
    #[cfg(feature = "touches")]
    asked_at: Instant,
    #[cfg(feature = "touches")]
    again: Duration,
    /// The outcome of the last step.
    seen: Option<Seen>,
    /// Whether the hub has to be told of the device's labels.
    tells_labels: bool,
    /// The package that is fetched, and for what.
    errand: Option<Errand>,
    /// The owner's transfer that is in the way, and how often it was found as it is.
    in_the_way: (Option<u32>, u8),
    /// How many fetches in a row led to nothing.
    in_vain: u32,
    /// When a package may be fetched again.
    fetch_at: Instant,
}

/// The parts of a node that a step of a rollout concerns.
pub(crate) struct Director<'a, F> {
    pub(crate) state: &'a mut Mandated,
    pub(crate) tenancy: Tenancy<'a, F>,
    pub(crate) transfer: &'a mut Transfer<F>,
    pub(crate) outbound: &'a mut Outbound,
}

impl Mandated {
    /// Nothing under way.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            ask_at: Some(now),
            #[cfg(feature = "touches")]
            asked_at: now,
            #[cfg(feature = "touches")]
            again: Duration::ZERO,
            seen: None,
            tells_labels: true,
            errand: None,
            in_the_way: (None, 0),
            in_vain: 0,
            fetch_at: now,
        }
    }

    /// When the hub is to be asked next.
    pub(crate) fn wakes_at(&self, hub: &Registration) -> Option<Instant> {
        self.ask_at.filter(|_| hub.is_listed())
    }
}

/// Where the hub says with each touch whether it has work.
#[cfg(feature = "touches")]
impl Mandated {
    /// Puts the next question off, as the hub has no work, if there is nothing to tell.
    pub(crate) fn put_off(&mut self, now: Instant) {
        let is_idle = self.seen.is_none() && !self.tells_labels && self.errand.is_none();
        if let Some(at) = self.ask_at.as_mut().filter(|_| is_idle && self.again >= IDLE_MIN) {
            *at = (*at).max((now + self.again).min(self.asked_at + ASKED_ANYWAY));
        }
    }
}

impl<F: Flash> Director<'_, F> {
    /// Asks the hub for a step, or for the next part of the package that a step is about, when it is time to.
    pub(crate) fn attend(&mut self, moment: &mut Moment<'_>) {
        let is_due = self.state.ask_at.is_some_and(|at| at <= moment.now);
        if !is_due || !self.tenancy.hub.is_listed() {
            return;
        }
        let (name, parameter, purpose) = match self.next_part() {
            Some(part) => (function::PART, encode(&part), Purpose::Part),
            None => {
                let labels = &self.tenancy.services.config.labels;
                let told = || Labels(labels.iter().take(LABELS_MAX).cloned().collect());
                let labels = self.state.tells_labels.then(told);
                let query = WorkQuery { seen: self.state.seen.clone(), labels };
                (function::WORK, encode(&query), Purpose::Work)
            }
        };
        let Tenancy { services, hub, .. } = &mut self.tenancy;
        let call = (name, parameter, purpose);
        #[cfg(feature = "touches")]
        {
            self.state.asked_at = moment.now;
        }
        let is_sent = hub.call(services, self.outbound, moment, call);
        self.state.ask_at = (!is_sent).then(|| moment.now + RETRY);
    }

    /// The part to fetch next; an errand whose package the owner's transfer displaced is over.
    fn next_part(&mut self) -> Option<PartQuery> {
        let package = self.state.errand.as_ref()?.package();
        match self.transfer.progress_of(&package) {
            Some((offset, _)) => Some(PartQuery { package, offset }),
            None => {
                self.state.errand = None;
                None
            }
        }
    }

    /// Takes the hub's answer to a question for a step.
    pub(crate) fn work_done(
        &mut self,
        moment: &mut Moment<'_>,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        if result == Err(NoResult::NoSuchFunction) {
            return self.ask_in(moment.now, RETRY_UNSERVED);
        }
        if let Err(NoResult::Deferred { again_in }) = result {
            return self.ask_in(moment.now, again_in.clamp(AGAIN.0, AGAIN.1));
        }
        let Some(Ok(work)) = read::<Work>(result) else {
            return self.ask_in(moment.now, RETRY);
        };
        self.state.seen = None;
        self.state.tells_labels = work.wants_labels;
        let (least, most) = AGAIN;
        let again = Duration::from_secs(work.again_s.into()).clamp(least, most);
        #[cfg(feature = "touches")]
        {
            self.state.again = again;
        }
        self.ask_in(moment.now, again);
        let Some(Step { rollout, machine, task }) = work.step else { return };
        match task {
            Task::Look => self.saw(rollout, &machine),
            Task::Update(delivery) => self.begin(moment, rollout, &machine, &delivery, false),
            Task::PutBack(delivery) => self.begin(moment, rollout, &machine, &delivery, true),
            Task::Remove { mandate } => {
                let done = self.take_away(moment, &machine, &mandate);
                self.tell(rollout, &machine, done);
                self.ask_in(moment.now, AGAIN.0);
            }
        }
    }

    /// Takes the hub's answer to a question for a part.
    pub(crate) fn part_done(
        &mut self,
        moment: &mut Moment<'_>,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        if let Err(NoResult::Deferred { again_in }) = result {
            return self.ask_in(moment.now, again_in.clamp(AGAIN.0, AGAIN.1));
        }
        // The owner took the staging flash, or the machine is gone: the answer is for nobody.
        let Some(errand) = self.state.errand.clone() else {
            return self.ask_in(moment.now, AGAIN.0);
        };
        let package = errand.package();
        let (part, progress) = (read::<Part>(result), self.transfer.progress_of(&package));
        let (Some(part), Some((offset, bytes))) = (part, progress) else {
            // It goes on where it stopped, as soon as the hub answers.
            return self.ask_in(moment.now, RETRY);
        };
        let left = (bytes - offset) as usize;
        let fits = part.as_ref().is_ok_and(|part| {
            !part.bytes.is_empty() && part.bytes.len() <= PART_BYTES_MAX.min(left)
        });
        let part = part.map(|part| part.bytes).unwrap_or_default();
        if !fits || self.transfer.take_part(&package, &part).is_err() {
            // The step was called off, or the hub's parts make no package: it says what to do now.
            self.drop_errand();
            self.fetched_in_vain(moment.now);
            return self.ask_in(moment.now, RETRY);
        }
        if part.len() < left {
            self.state.ask_at = Some(moment.now);
            return;
        }
        let done = self.finish(moment, &errand);
        self.drop_errand();
        match done {
            Ok(()) => self.state.in_vain = 0,
            Err(_) => self.fetched_in_vain(moment.now),
        }
        self.tell(errand.rollout, &errand.mandate.machine, done);
        self.ask_in(moment.now, AGAIN.0);
    }

    /// Checks a step, and begins to fetch its package.
    fn begin(
        &mut self,
        moment: &mut Moment<'_>,
        rollout: u64,
        machine: &Name,
        delivery: &Delivery,
        is_back: bool,
    ) {
        let checked = self.check(moment, rollout, machine, delivery, is_back);
        let errand = match checked {
            Ok(Some(errand)) => errand,
            // It was done already.
            Ok(None) => return self.saw(rollout, machine),
            Err(error) => {
                self.tell(rollout, machine, Err(error));
                return self.ask_in(moment.now, AGAIN.0);
            }
        };
        if self.is_in_the_way() {
            return self.ask_in(moment.now, RETRY);
        }
        if self.state.fetch_at > moment.now {
            return self.ask_in(moment.now, self.state.fetch_at.since(moment.now));
        }
        match self.transfer.begin_fetch(delivery.package, delivery.bytes) {
            Ok(()) => {
                self.state.errand = Some(errand);
                self.state.ask_at = Some(moment.now);
            }
            Err(error) => self.tell(rollout, machine, Err(error)),
        }
    }

    /// Whether the owner's tool uses the staging flash, as far as what stands there changed of late.
    fn is_in_the_way(&mut self) -> bool {
        let Some(owners) = self.transfer.owners() else {
            self.state.in_the_way = (None, 0);
            return false;
        };
        let (known, looks) = self.state.in_the_way;
        let looks = if known == Some(owners) { looks + 1 } else { 0 };
        self.state.in_the_way = (Some(owners), looks);
        looks < IDLE_LOOKS_MAX
    }

    /// Notes how the machine is, for the next question.
    fn saw(&mut self, rollout: u64, machine: &Name) {
        let mut machines = self.tenancy.services.kernel.machines();
        let found = machines.find(|info| info.record.name == *machine);
        let sight = found.as_ref().map_or(Sight::Missing, sight_of);
        drop(machines);
        self.state.seen = Some(Seen { rollout, sight });
    }

    /// Notes how a step went, for the next question and for who watches the device.
    fn tell(&mut self, rollout: u64, machine: &Name, done: Result<(), ControlError>) {
        let Err(error) = done else {
            self.saw(rollout, machine);
            if let Some(Seen { sight: Sight::Machine { version, .. }, .. }) = &self.state.seen {
                let (machine, version) = (machine.clone(), *version);
                let notice = Notice::Mandated { machine, version };
                self.tenancy.services.notices.push(notice);
            }
            return;
        };
        let reason: String = error.to_string().chars().take(REASON_CHARS_MAX).collect();
        let notice = Notice::StepRefused { machine: machine.clone(), reason: reason.clone() };
        self.tenancy.services.notices.push(notice);
        self.state.seen = Some(Seen { rollout, sight: Sight::Refused { reason } });
    }

    fn drop_errand(&mut self) {
        let errand = self.state.errand.take();
        if errand.is_some_and(|errand| self.transfer.progress_of(&errand.package()).is_some()) {
            self.transfer.forget();
        }
    }

    /// Counts a fetch that led to nothing, which took erasures of the staging flash.
    fn fetched_in_vain(&mut self, now: Instant) {
        self.state.in_vain = self.state.in_vain.saturating_add(1);
        if let Some(doublings) = self.state.in_vain.checked_sub(VAIN_MAX) {
            let wait = RETRY.saturating_mul(1 << doublings.min(16));
            self.state.fetch_at = now + wait.min(VAIN_WAIT_MAX);
        }
    }

    fn ask_in(&mut self, now: Instant, wait: Duration) {
        self.state.ask_at = Some(now + wait);
    }
}

fn sight_of(info: &MachineInfo<'_>) -> Sight {
    Sight::Machine {
        package: info.record.package,
        version: info.record.package_version,
        faults: info.faults.into(),
        state: info.state.as_str().to_string(),
        repute: info.repute.as_str().to_string(),
    }
}

fn encode(value: &impl serde::Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// The hub's answer; `None` if there is none that can be read.
fn read<T: DeserializeOwned>(result: Result<Option<Vec<u8>>, NoResult>) -> Option<Answer<T>> {
    postcard::from_bytes(&result.ok().flatten()?).ok()
}
