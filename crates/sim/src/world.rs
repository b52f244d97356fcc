//! The world: one clock, one network, and the places in it, event by event.

mod still;

use tenure_hal::simulated::{Random, place_at};
use tenure_wire::Address;

use self::still::Waiting;
use crate::agenda::Agenda;
use crate::checker::{Checker, Invariant};
use crate::network::Network;
use crate::place::{HUB, Keys, Place, Polled, Shown};
use crate::scenario::Scenario;
use crate::trace::Trace;
use crate::trouble::Trouble;

/// How often the checker looks for what is overdue.
const WATCH_US: u64 = 500_000;
/// The most events in one simulated second for each place; beyond that something runs hot.
const EVENTS_MAX: u64 = 5_000;
/// The most flash operations that a torn failure lets succeed before.
const OPERATIONS_BEFORE_CUT: u64 = 60;

/// Something that is to happen.
enum Occurrence {
    /// A datagram arrives.
    Arrival { from: usize, to: usize, datagram: Vec<u8> },
    /// A place wanted to be polled, by its plan of that number.
    Poll { place: usize, plan: u64 },
    /// A place is switched on.
    Boot { place: usize },
    /// A place fails, unless it was switched on anew since.
    Crash { place: usize, booted_us: u64 },
    /// A device goes to sleep, unless it was switched on anew since.
    Sleep { place: usize, booted_us: u64 },
    /// A device that sleeps wakes.
    Wake { place: usize },
    /// A machine of a device is updated, if the device is on.
    Update { place: usize },
    /// The network parts or is whole again.
    Partition,
    /// The checker looks.
    Watch,
    /// A device stands still, unless it was switched on anew since.
    StandStill { place: usize, booted_us: u64 },
    /// A device that stands still goes on, unless it was switched on anew since.
    GoOn { place: usize, booted_us: u64 },
    /// The trouble is over.
    Quiet,
}

/// A world under way.
pub(crate) struct World<'a> {
    scenario: Scenario,
    keys: Keys,
    now_us: u64,
    to_come: Agenda<Occurrence>,
    places: Vec<Place>,
    network: Network,
    random: Random,
    trouble: Trouble,
    has_been_on: Vec<bool>,
    /// What waits for each place that stands still.
    still: Vec<Option<Vec<Waiting>>>,
    is_quiet: bool,
    hot: (u64, u64),
    checker: &'a mut Checker,
    trace: &'a mut Trace,
}

impl<'a> World<'a> {
    /// The world of `scenario`, in which nothing has happened yet.
    pub(crate) fn new(scenario: Scenario, checker: &'a mut Checker, trace: &'a mut Trace) -> Self {
        let mut random = Random::new(scenario.seed ^ 0x5EED);
        let keys = Keys::draw(&mut random);
        let mut places = vec![Place::new(HUB, None, random.branch())];
        for (index, plan) in scenario.devices.iter().enumerate() {
            places.push(Place::new(index + 1, Some(plan), random.branch()));
        }
        let count = places.len();
        let network = Network::new(scenario.network.clone(), places.len(), random.branch());
        let mut world = Self {
            keys,
            now_us: 0,
            to_come: Agenda::default(),
            places,
            network,
            random: random.branch(),
            trouble: Trouble::default(),
            has_been_on: vec![false; count],
            still: vec![None; count],
            is_quiet: false,
            hot: (0, 0),
            checker,
            trace,
            scenario,
        };
        world.begin();
        world
    }

    /// Runs to the end, or until an invariant doesn't hold; gives what it was put through.
    pub(crate) fn run(&mut self) -> Trouble {
        let end_us = self.scenario.end().as_micros() as u64;
        while let Some((at_us, occurrence)) = self.to_come.next() {
            if at_us > end_us || self.checker.violation().is_some() {
                break;
            }
            self.now_us = at_us;
            self.check_heat();
            self.occur(occurrence);
        }
        self.checker.finish(end_us);
        Trouble { calls: self.checker.outcomes().calls, ..self.trouble }
    }

    fn begin(&mut self) {
        self.plan(0, Occurrence::Boot { place: HUB });
        for (index, plan) in self.scenario.devices.clone().iter().enumerate() {
            let at_us = plan.first_boot.as_micros() as u64;
            self.plan(at_us, Occurrence::Boot { place: index + 1 });
            self.plan_update(index + 1);
        }
        self.plan(WATCH_US, Occurrence::Watch);
        self.plan(self.scenario.trouble.as_micros() as u64, Occurrence::Quiet);
        if let Some(span) = self.network.partition_span() {
            self.plan(span, Occurrence::Partition);
        }
    }

    fn plan(&mut self, at_us: u64, occurrence: Occurrence) {
        self.to_come.plan(at_us, occurrence);
    }

    fn occur(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::Arrival { from, to, datagram } => self.arrive(from, to, &datagram),
            Occurrence::Poll { place, plan } if self.places[place].plan == plan => {
                self.poll(place);
            }
            Occurrence::Poll { .. } => {}
            Occurrence::Boot { place } => self.boot(place),
            Occurrence::Crash { place, booted_us } => self.crash(place, booted_us),
            Occurrence::Sleep { place, booted_us } => self.sleep(place, booted_us),
            Occurrence::Wake { place } => self.wake(place),
            Occurrence::StandStill { place, booted_us } => self.stand_still(place, booted_us),
            Occurrence::GoOn { place, booted_us } => self.go_on(place, booted_us),
            Occurrence::Update { place } => self.update(place),
            Occurrence::Partition if self.is_quiet => {}
            Occurrence::Partition => {
                let (what, span) = self.network.part();
                self.trouble.partitions += u64::from(self.network.is_parted());
                self.trace.note(self.now_us, format_args!("network {what}"));
                self.plan(self.now_us + span, Occurrence::Partition);
            }
            Occurrence::Watch => {
                self.checker.watch(self.now_us);
                self.plan(self.now_us + WATCH_US, Occurrence::Watch);
            }
            Occurrence::Quiet => {
                self.trace.note(self.now_us, format_args!("the trouble is over"));
                self.is_quiet = true;
                self.network.calm();
                for place in &self.places {
                    if place.running.is_some() {
                        place.flash.restore_power();
                    }
                }
            }
        }
    }

    fn check_heat(&mut self) {
        let (second, events) = self.hot;
        let now = self.now_us / 1_000_000;
        self.hot = if now == second { (second, events + 1) } else { (now, 0) };
        if self.hot.1 > EVENTS_MAX * self.places.len() as u64 {
            let what = format!("{} events within second {now}", self.hot.1);
            self.checker.violated(self.now_us, Invariant::NoStorm, what);
        }
    }

    fn arrive(&mut self, from: usize, to: usize, datagram: &[u8]) {
        if self.places[to].running.is_none() || self.waits(from, to, datagram) {
            return;
        }
        self.trace.mix(datagram);
        let has_clock = self.has_clock(to);
        self.places[to].receive(self.now_us, has_clock, from, datagram);
        self.after(to);
        self.plan_poll(to, self.now_us);
    }

    fn poll(&mut self, place: usize) {
        self.places[place].poll_us = None;
        if self.still[place].is_some() {
            return;
        }
        let has_clock = self.has_clock(place);
        let polled = self.places[place].poll(self.now_us, has_clock);
        self.after(place);
        let known = &mut self.places[place];
        if known.running.is_none() {
            return;
        }
        let at_us = match polled {
            Polled::Slice => {
                known.busy_us = self.now_us + self.scenario.slice.as_micros() as u64;
                known.busy_us
            }
            Polled::At(at_us) => at_us.max(self.now_us + 1),
            Polled::Idle => return,
        };
        self.plan_poll(place, at_us);
    }

    /// Plans a poll, unless one is planned that comes before it.
    fn plan_poll(&mut self, place: usize, at_us: u64) {
        let known = &mut self.places[place];
        let at_us = at_us.max(known.busy_us);
        if known.running.is_none() || known.poll_us.is_some_and(|planned| planned <= at_us) {
            return;
        }
        known.plan += 1;
        known.poll_us = Some(at_us);
        let plan = known.plan;
        self.plan(at_us, Occurrence::Poll { place, plan });
    }

    /// Takes what a place sends and shows, unless its power failed while it did.
    fn after(&mut self, place: usize) {
        if self.places[place].flash.is_off() {
            return self.switch_off(place, "power fails during a flash operation");
        }
        while let Some(shown) = self.places[place].notice() {
            match shown {
                Shown::Log(machine, message) => {
                    self.trace.note(self.now_us, format_args!("d{place} {machine}: {message}"));
                    self.checker.logged(self.now_us, place, &machine, &message);
                }
                Shown::Other(words) => {
                    self.trace.note(self.now_us, format_args!("place {place}: {words}"));
                }
            }
        }
        while let Some((to, datagram)) = self.places[place].transmit() {
            let Address::Udp(socket) = to else { continue };
            let to = place_at(socket).map(|to| to as usize);
            if let Some(to) = to.filter(|to| *to < self.places.len()) {
                self.send(place, to, datagram);
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, datagram: Vec<u8>) {
        let copies = self.network.carry(from, to, datagram);
        let length = copies.first().map_or(0, |(_, datagram)| datagram.len());
        let count = copies.len();
        self.trace.note(self.now_us, format_args!("{from} -> {to} {length} bytes, {count} copies"));
        for (delay_us, datagram) in copies {
            self.plan(self.now_us + delay_us, Occurrence::Arrival { from, to, datagram });
        }
    }

    fn boot(&mut self, place: usize) {
        if self.places[place].running.is_some() || self.places[place].asleep {
            return;
        }
        let crashes = self.scenario.crashes.clone();
        let flash = self.places[place].flash.clone();
        flash.restore_power();
        let may_fail = !self.is_quiet && (place != HUB || crashes.hub);
        if may_fail && self.random.chance(crashes.during_boot) {
            let operations = self.random.between(0..=OPERATIONS_BEFORE_CUT);
            flash.cut_power_after(operations, self.random.number());
        }
        self.trace.note(self.now_us, format_args!("place {place} is switched on"));
        let booted = self.places[place].boot(self.now_us, &self.scenario, &self.keys);
        match booted {
            _ if flash.is_off() => return self.switch_off(place, "power fails while it starts"),
            Err(error) => {
                let what = format!("place {place} doesn't start: {error}");
                return self.checker.violated(self.now_us, Invariant::PlacesStart, what);
            }
            Ok(identity) => {
                self.trouble.restarts += u64::from(self.has_been_on[place]);
                self.has_been_on[place] = true;
                self.checker.started(self.now_us, place, identity);
            }
        }
        if place != HUB {
            self.install_missing(place);
        }
        if self.places[place].running.is_none() {
            return;
        }
        self.after(place);
        self.plan_poll(place, self.now_us);
        self.plan_sleep(place);
        if place != HUB {
            self.plan_stop(place);
        }
        if let Some(up_ms) = crashes.up_ms.filter(|_| may_fail) {
            let up_us = self.random.millis(up_ms).as_micros() as u64;
            let crash = Occurrence::Crash { place, booted_us: self.now_us };
            self.plan(self.now_us + up_us, crash);
        }
    }

    fn plan_sleep(&mut self, place: usize) {
        let sleeps = self.scenario.sleeps.as_ref().filter(|_| place != HUB && !self.is_quiet);
        if let Some(awake_ms) = sleeps.map(|plan| plan.awake_ms.clone()) {
            let awake_us = self.random.millis(awake_ms).as_micros() as u64;
            let booted_us = self.places[place].clock.booted_us;
            self.plan(self.now_us + awake_us, Occurrence::Sleep { place, booted_us });
        }
    }

    fn sleep(&mut self, place: usize, booted_us: u64) {
        let known = &self.places[place];
        if self.is_quiet || known.running.is_none() || known.clock.booted_us != booted_us {
            return;
        }
        if self.still[place].is_some() {
            return self.plan_sleep(place);
        }
        let Some(plan) = &self.scenario.sleeps else { return };
        let asleep_ms = plan.asleep_ms.clone();
        self.after(place);
        if self.places[place].running.is_none() {
            return;
        }
        let has_clock = self.has_clock(place);
        let asleep_us = self.random.millis(asleep_ms).as_micros() as u64;
        if !self.places[place].fall_asleep(self.now_us, has_clock, Some(asleep_us)) {
            self.after(place);
            return self.plan_sleep(place);
        }
        if !self.places[place].flash.is_off() {
            self.after(place);
        }
        self.places[place].running = None;
        self.trace.note(self.now_us, format_args!("d{place} sleeps"));
        self.trouble.sleeps += 1;
        self.checker.sleeps(self.now_us, place);
        let known = &mut self.places[place];
        known.plan += 1;
        known.poll_us = None;
        if known.flash.is_off() {
            known.asleep = false;
            return self.switch_off(place, "power fails while it falls asleep");
        }
        self.plan(self.now_us + asleep_us, Occurrence::Wake { place });
    }

    fn wake(&mut self, place: usize) {
        if !self.places[place].asleep {
            return;
        }
        let booted = self.places[place].boot(self.now_us, &self.scenario, &self.keys);
        if self.places[place].flash.is_off() {
            return self.switch_off(place, "power fails while it wakes");
        }
        if let Err(error) = booted {
            let what = format!("d{place} doesn't wake: {error}");
            return self.checker.violated(self.now_us, Invariant::PlacesStart, what);
        }
        if !self.places[place].has_slept() {
            let what = format!("d{place} has lost what it did in its sleep");
            return self.checker.violated(self.now_us, Invariant::PlacesStart, what);
        }
        self.trace.note(self.now_us, format_args!("d{place} wakes"));
        self.checker.slept(self.now_us, place);
        self.after(place);
        self.plan_poll(place, self.now_us);
        self.plan_sleep(place);
    }

    fn install_missing(&mut self, place: usize) {
        for index in 0..self.places[place].installed.len() {
            if !self.places[place].installed[index] && !self.install(place, index) {
                return;
            }
        }
    }

    /// Installs a machine; `false` if the device is off after that.
    fn install(&mut self, place: usize, index: usize) -> bool {
        let plan = &self.scenario.devices[place - 1];
        let machine = plan.machines[index].name.clone();
        let known = &mut self.places[place];
        let installed = known.install(self.now_us, plan, index, &self.keys);
        if known.flash.is_off() {
            self.switch_off(place, "power fails during an installation");
            return false;
        }
        match installed {
            Ok(id) => {
                known.installed[index] = true;
                self.trace.note(self.now_us, format_args!("d{place} takes {machine}, {id}"));
                self.checker.installed(place, &machine);
            }
            Err(error) => {
                let what = format!("d{place} doesn't take {machine}: {error}");
                self.checker.violated(self.now_us, Invariant::PlacesStart, what);
            }
        }
        true
    }

    fn update(&mut self, place: usize) {
        if self.is_quiet {
            return;
        }
        self.plan_update(place);
        if self.places[place].running.is_none() || self.still[place].is_some() {
            return;
        }
        let count = self.places[place].installed.len() as u64;
        let index = self.random.between(0..=count - 1) as usize;
        if self.install(place, index) {
            self.after(place);
            self.plan_poll(place, self.now_us);
        }
    }

    fn plan_update(&mut self, place: usize) {
        if let Some(span) = self.scenario.crashes.update_ms.clone() {
            let span_us = self.random.millis(span).as_micros() as u64;
            self.plan(self.now_us + span_us, Occurrence::Update { place });
        }
    }

    fn crash(&mut self, place: usize, booted_us: u64) {
        let known = &self.places[place];
        if self.is_quiet || known.running.is_none() || known.clock.booted_us != booted_us {
            return;
        }
        if self.random.chance(self.scenario.crashes.torn) {
            let operations = self.random.between(0..=OPERATIONS_BEFORE_CUT);
            known.flash.cut_power_after(operations, self.random.number());
        } else {
            self.switch_off(place, "power fails");
        }
    }

    fn switch_off(&mut self, place: usize, why: &str) {
        self.trace.note(self.now_us, format_args!("place {place}: {why}"));
        self.trouble.power_cuts += 1;
        self.still[place] = None;
        let known = &mut self.places[place];
        self.trouble.torn_writes += u64::from(known.flash.is_off());
        known.flash.cut_power();
        known.running = None;
        known.plan += 1;
        known.poll_us = None;
        let store_sectors =
            self.scenario.devices.get(place.wrapping_sub(1)).map_or(0, |plan| plan.store_sectors);
        let store = known.flash.copy(0, store_sectors);
        self.checker.stopped(self.now_us, place, store);
        let off_us = self.random.millis(self.scenario.crashes.off_ms.clone()).as_micros() as u64;
        self.plan(self.now_us + off_us, Occurrence::Boot { place });
    }

    fn has_clock(&self, place: usize) -> bool {
        self.scenario.devices.get(place.wrapping_sub(1)).is_none_or(|plan| plan.has_clock)
    }
}
