//! A mesh under way: its nodes on one medium, under one clock, event by event.

mod connections;
mod plug_ins;

use std::collections::{BTreeMap, BTreeSet};

use tenure_hal::simulated::Random;
use tenure_mesh::NodeId;
use tenure_protocols::interface::{
    ANY_LIFE, DatagramArrived, Published, PublishedReliably, RouteChanged,
};

use super::fleet::{CallEvent, Fleet, OPERATIONS_BEFORE_CUT};
use super::layout::{self, Walk};
use super::measure::{Bytes, Datagrams, Metrics, Second};
use super::occupant::Occupant;
use super::options::Options;
use super::participant::{Participant, id_of, number_of};
use super::playback::Playback;
use super::recovery::Recovery;
use super::scenario::{LiarPlan, Scenario, ScenarioError, What, micros};
use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::place::Place;
use crate::radio::{AirCounts, Frame, Medium, Moment, SetLink, Spot};

/// How often those that move are placed anew.
const STEP_US: u64 = 250_000;
/// How often it is looked whether all nodes have ways to all others, until they have.
const LOOK_US: u64 = 50_000;
/// In larger meshes it is not looked every second who reaches whom.
const WATCHED_NODES_MAX: usize = 200;
/// The bytes of a datagram that say which one it is.
const NUMBER_BYTES: usize = 8;
/// Datagrams are sent up to so long before the end, so that the last can arrive.
const LAST_BEFORE_END_S: f64 = 3.0;
/// How long the power lasts at most that is about to fail in the middle of a flash operation.
const TORN_WITHIN_US: u64 = 5_000_000;
/// How often a node may want to run again at the same instant.
const TURNS_MAX: u32 = 1_000;
const NEVER: u64 = u64::MAX;
/// A receiver that nobody is.
const NOBODY: u32 = u32::MAX;

/// An event of the queue. It is small, since a run spends its time in that queue.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A node wanted to run.
    Wake(u32),
    /// Something happens on the air.
    Air(Moment),
    /// A node is switched on.
    Boot(u32),
    /// A device that sleeps wakes, unless it has lost its power.
    Rouse(u32),
    /// The scenario's fault of that number.
    Fault(u32),
    /// The scenario's traffic of that number sends.
    Traffic(u32),
    /// The scenario's link of that number is set.
    Link(u32),
    /// Those that move do.
    Step,
    /// It is looked who reaches whom.
    Look,
    /// A second is over.
    Second,
    /// A device's power fails, unless it has failed before.
    PowerOff(u32),
    /// An attacker sends again what it recorded.
    Replay,
    /// The scenario's liar of that number lies.
    Lie(u32),
    /// The scenario's further protocol of that number starts.
    PlugIn(u32),
}

/// A node's place, on or off.
struct Seat {
    occupant: Option<Occupant>,
    /// The place of a device that is off: its flash and its clock.
    place: Option<Box<Place>>,
    /// When a device's power fails, if that is planned.
    power_off_us: u64,
    /// The next hops that were seen last, by destination; kept of devices, which don't tell.
    hops: Vec<Option<u32>>,
    boots: u32,
    clock: Clock,
    /// When it is to run next; an event at another time is an old plan.
    planned_us: u64,
    walk: Option<Walk>,
}

/// Something that was sent to everybody.
#[derive(Debug)]
struct Broadcasted {
    /// Nodes that were on and haven't received it yet.
    missing: BTreeSet<u32>,
    /// Nodes that received it, each with the life in which it did.
    reached: BTreeMap<u32, u32>,
}

/// A mesh under way.
pub(super) struct World {
    scenario: Scenario,
    options: Options,
    now_us: u64,
    end_us: u64,
    agenda: Agenda<Event>,
    medium: Medium,
    seats: Vec<Seat>,
    /// State that devices share, if the nodes are devices.
    fleet: Option<Box<Fleet>>,
    field: (Spot, Spot),
    random: Random,
    heard: Vec<u32>,
    datagrams: Datagrams,
    broadcasts: Vec<Broadcasted>,
    recovery: Recovery,
    seconds: Vec<Second>,
    traffic: Bytes,
    /// The counts when the present second began.
    before: (Bytes, AirCounts),
    metrics: Metrics,
    loop_seen: Option<String>,
    /// Which of the scenario's further protocols have begun to start.
    plugged_in: Vec<bool>,
    playback: Playback,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The numbers.
    pub metrics: Metrics,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// The first loop that was seen, in words.
    pub first_loop: Option<String>,
    /// The invariant that devices broke, in words.
    pub violation: Option<String>,
    /// The last events that devices logged before that.
    pub last_events: Vec<String>,
    /// Events with their places, to play the run back.
    pub playback: Playback,
}

impl World {
    /// The world of a scenario, in which nothing has happened yet.
    ///
    /// # Errors
    /// The scenario's first mistake.
    pub(super) fn new(scenario: Scenario, options: Options) -> Result<Self, ScenarioError> {
        scenario.check()?;
        plug_ins::check(&scenario, options.registry)?;
        let mut random = Random::new(scenario.seed ^ 0xAE7);
        let motion = &scenario.files.motion;
        let range_m = scenario.radio.range_m;
        let spots = layout::spots(&scenario.topology, motion, range_m, &mut random.branch())?;
        let field = corners(&spots);
        let walls = scenario.all_walls();
        let playback = Playback::new(options.records, range_m, &walls);
        let mut medium = Medium::new(scenario.radio.clone(), walls, random.branch());
        let drift = u64::from(scenario.clock_drift_ppm);
        let mut seats = Vec::with_capacity(spots.len());
        for spot in &spots {
            let number = medium.add(*spot);
            let moves = scenario.movement.as_ref().is_some_and(|movement| {
                movement.nodes.is_empty() || movement.nodes.contains(&number)
            });
            let moves = moves && motion.spot(number, 0.0).is_none();
            seats.push(Seat {
                occupant: None,
                place: None,
                power_off_us: NEVER,
                hops: Vec::new(),
                boots: 0,
                clock: Clock {
                    booted_us: 0,
                    drift_ppm: random.between(0..=2 * drift) as i64 - drift as i64,
                },
                planned_us: NEVER,
                walk: moves.then(|| Walk::new(*spot)),
            });
        }
        let fleet = scenario.devices.as_ref().map(|devices| {
            let fleet = Fleet::new(&scenario, devices, options, &mut random);
            for (seat, number) in seats.iter_mut().zip(0..) {
                seat.place = Some(fleet.place(number, &mut random));
                seat.hops = vec![None; spots.len()];
            }
            Box::new(fleet)
        });
        if let Some(replayer) = &scenario.replayer {
            let [x, y] = replayer.at;
            let station = medium.add(Spot { x, y });
            medium.set_power(station, true);
        }
        let mut world = Self {
            options,
            now_us: 0,
            end_us: scenario.end_us(),
            agenda: Agenda::default(),
            medium,
            seats,
            fleet,
            field,
            random: random.branch(),
            heard: Vec::new(),
            datagrams: Datagrams::default(),
            broadcasts: Vec::new(),
            recovery: Recovery::default(),
            seconds: Vec::new(),
            traffic: Bytes::default(),
            before: (Bytes::default(), AirCounts::default()),
            metrics: Metrics::default(),
            loop_seen: None,
            plugged_in: vec![false; scenario.plug_ins.len()],
            playback,
            scenario,
        };
        world.begin();
        Ok(world)
    }

    fn begin(&mut self) {
        for number in 0..self.seats.len() as u32 {
            let within_us = self.scenario.boot_within_ms * 1000;
            let at_us = self.random.between(0..=within_us);
            self.agenda.plan(at_us, Event::Boot(number));
        }
        for (index, link) in self.scenario.links.iter().enumerate() {
            self.agenda.plan(micros(link.at_s), Event::Link(index as u32));
        }
        for (index, fault) in self.scenario.faults.iter().enumerate() {
            self.agenda.plan(micros(fault.at_s), Event::Fault(index as u32));
        }
        for (index, traffic) in self.scenario.traffic.iter().enumerate() {
            self.agenda.plan(micros(traffic.from_s), Event::Traffic(index as u32));
        }
        if self.scenario.moves() {
            self.agenda.plan(STEP_US, Event::Step);
        }
        if let Some(replayer) = &self.scenario.replayer {
            self.agenda.plan(replayer.every_ms * 1000, Event::Replay);
        }
        for (index, liar) in self.scenario.liars.iter().enumerate() {
            self.agenda.plan(micros(liar.from_s), Event::Lie(index as u32));
        }
        for (index, plan) in self.scenario.plug_ins.iter().enumerate() {
            self.agenda.plan(micros(plan.at_s), Event::PlugIn(index as u32));
        }
        if self.options.watches_ways {
            self.agenda.plan(LOOK_US, Event::Look);
        }
        self.agenda.plan(0, Event::Second);
    }

    /// Runs up to `until_us`, or to the end; whether there is more.
    pub(super) fn run(&mut self, until_us: u64) -> bool {
        let until_us = until_us.min(self.end_us);
        while self.agenda.next_at().is_some_and(|at_us| at_us <= until_us) && !self.is_broken() {
            let Some((at_us, event)) = self.agenda.next() else { break };
            self.now_us = at_us;
            self.metrics.events += 1;
            self.occur(event);
        }
        until_us < self.end_us && !self.is_broken()
    }

    /// Whether devices broke what must hold: what comes after that says nothing.
    fn is_broken(&self) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| fleet.is_broken())
    }

    /// Ends the run, and returns its result.
    pub(super) fn outcome(mut self) -> Outcome {
        let nodes = self.seats.len() as f64;
        let seconds = self.end_us as f64 / 1e6;
        let hops_max = self.hops_max();
        let aggregate = self.aggregate_errors();
        let figures = self.figures();
        let air = self.medium.counts();
        let datagrams = &self.datagrams;
        let metrics = &mut self.metrics;
        metrics.seconds = seconds;
        metrics.figures = figures;
        metrics.sent = datagrams.sent();
        metrics.delivered = datagrams.delivered;
        metrics.duplicates = datagrams.duplicates;
        metrics.hops_max = hops_max;
        for seat in &self.seats {
            if let Some(counters) = seat.occupant.as_ref().and_then(Occupant::forwarding) {
                metrics.given_up.add(counters);
            }
        }
        metrics.aggregate_error = aggregate.map(|(average, _)| average);
        metrics.aggregate_count_error = aggregate.map(|(_, count)| count);
        metrics.broadcasts = self.broadcasts.len() as u64;
        let is_of_calls = self.fleet.is_some();
        metrics.trouble.calls = if is_of_calls { metrics.sent } else { 0 };
        metrics.trouble.datagrams = if is_of_calls { 0 } else { metrics.sent };
        metrics.trouble.broadcasts = metrics.broadcasts;
        let complete = self.broadcasts.iter().filter(|it| it.missing.is_empty());
        metrics.broadcasts_complete = complete.count() as u64;
        metrics.transmissions_per_broadcast =
            self.traffic.broadcasts as f64 / self.broadcasts.len().max(1) as f64;
        metrics.latency_median_ms = datagrams.latency_ms(0.5);
        metrics.latency_99_ms = datagrams.latency_ms(0.99);
        metrics.control_bytes_per_node_second = self.traffic.control as f64 / nodes / seconds;
        metrics.payload_bytes_per_node_second = self.traffic.payload as f64 / nodes / seconds;
        metrics.by_message = self.traffic.by_message(self.options.registry);
        metrics.transmissions = air.transmissions;
        metrics.collisions = air.collisions;
        metrics.lost = air.lost;
        metrics.recovered_s = self.recovery.seconds();
        let violation = self.fleet.as_mut().and_then(|fleet| fleet.finish(self.now_us));
        let tail = self.fleet.as_ref().filter(|_| violation.is_some()).map(|fleet| fleet.tail());
        metrics.devices = self.fleet.map(|fleet| fleet.figures);
        Outcome {
            metrics: self.metrics,
            seconds: self.seconds,
            first_loop: self.loop_seen,
            violation,
            last_events: tail.unwrap_or_default(),
            playback: self.playback,
        }
    }

    fn occur(&mut self, event: Event) {
        match event {
            Event::Wake(number) if self.seats[number as usize].planned_us == self.now_us => {
                self.seats[number as usize].planned_us = NEVER;
                self.turn(number);
            }
            Event::Wake(_) => {}
            Event::Air(Moment::Attempt(number)) => {
                let next = self.medium.attempt(self.now_us, number);
                self.plan_air(next);
            }
            Event::Air(Moment::Finish(number)) => self.finish(number),
            Event::Boot(number) => self.boot(number),
            Event::Rouse(number) => {
                if self.seats[number as usize].place.as_ref().is_some_and(|place| place.asleep) {
                    self.boot(number);
                }
            }
            Event::Fault(index) => self.fail(index as usize),
            Event::Traffic(index) => self.send_datagram(index as usize),
            Event::Link(index) => self.set_link(index as usize),
            Event::Step => self.step(),
            Event::Look => self.look(),
            Event::Second => self.begin_second(),
            Event::PowerOff(number) if self.seats[number as usize].power_off_us == self.now_us => {
                self.switch_off(number);
            }
            Event::PowerOff(_) => {}
            Event::Replay => self.replay(),
            Event::Lie(index) => self.lie(index as usize),
            Event::PlugIn(index) => self.plug_in(index as usize),
        }
    }

    fn plan_air(&mut self, next: Option<(u64, Moment)>) {
        if let Some((at_us, moment)) = next {
            self.agenda.plan(at_us, Event::Air(moment));
        }
    }

    /// Hands a frame to those that heard it.
    fn finish(&mut self, from: u32) {
        let mut heard = std::mem::take(&mut self.heard);
        let (finished, next) = self.medium.finish(self.now_us, from, &mut heard);
        self.plan_air(next);
        if let Some(finished) = finished {
            self.approach(from, &heard);
            for number in &heard {
                let frame = &finished.frame.bytes;
                let signal_dbm = self.medium.signal(from, *number);
                let Some(seat) = self.seats.get_mut(*number as usize) else {
                    self.record(frame);
                    continue;
                };
                let now = seat.clock.local(self.now_us);
                if let Some(occupant) = &mut seat.occupant {
                    let is_taken = occupant.receive(now, frame, signal_dbm);
                    if let Some(fleet) = &mut self.fleet
                        && is_taken
                        && self.scenario.replayer.is_some()
                    {
                        fleet.took(*number, frame);
                    }
                    self.turn(*number);
                }
            }
            if let (Some(to), true, false) =
                (finished.frame.to, finished.is_over, finished.is_answered)
                && self.scenario.radio.unicast_retries > 0
                && let Some(to) = self.id(to)
                && let Some(seat) = self.seats.get_mut(from as usize)
                && let Some(occupant) = &mut seat.occupant
            {
                occupant.undelivered(seat.clock.local(self.now_us), to);
                self.turn(from);
            }
        }
        self.heard = heard;
    }

    /// Looks at all who take a frame before the first one does. In a large mesh none of their memory is
    /// in a cache, and so the processor waits for all of it at once, and not for one after the other.
    fn approach(&self, from: u32, heard: &[u32]) {
        for number in heard {
            if let Some(seat) = self.seats.get(*number as usize)
                && let Some(Occupant::Bare(participant)) = &seat.occupant
            {
                participant.approach(seat.clock.local(self.now_us), id_of(from));
            }
        }
    }

    /// Lets a node do what is due, takes what it sends, and plans when it runs next.
    fn turn(&mut self, number: u32) {
        let seat = &mut self.seats[number as usize];
        let now = seat.clock.local(self.now_us);
        let Some(occupant) = &mut seat.occupant else { return };
        let mut next = occupant.poll(now, self.now_us);
        for _ in 0..TURNS_MAX {
            if occupant.device().is_some_and(|device| device.has_failed()) {
                return self.switch_off(number);
            }
            while let Some((to, bytes)) = occupant.transmit(now) {
                let to = to.map(|to| match &self.fleet {
                    Some(fleet) => fleet.number(to).unwrap_or(NOBODY),
                    None => number_of(to),
                });
                match &self.fleet {
                    Some(fleet) => self.traffic.count(&fleet.open(&bytes), bytes.len()),
                    None => self.traffic.count_frame(&bytes),
                }
                let planned = self.medium.send(self.now_us, number, Frame { to, bytes });
                if let Some((at_us, moment)) = planned {
                    self.agenda.plan(at_us, Event::Air(moment));
                }
            }
            if next.is_none_or(|at| at > now) {
                break;
            }
            next = occupant.poll(now, self.now_us);
        }
        if let Some(at) = next {
            let at_us = seat.clock.world_us(at).max(self.now_us + 1);
            if at_us < seat.planned_us {
                seat.planned_us = at_us;
                self.agenda.plan(at_us, Event::Wake(number));
            }
        }
        if self.fleet.is_some() {
            self.attend_to_device(number);
        } else {
            self.take_events(number);
        }
    }

    /// Takes what a device shows, looks at its ways, and lets it sleep if it means to.
    fn attend_to_device(&mut self, number: u32) {
        loop {
            let seat = &mut self.seats[number as usize];
            let (Some(fleet), Some(device)) =
                (&mut self.fleet, seat.occupant.as_mut().and_then(Occupant::device))
            else {
                return;
            };
            let Some(shown) = device.notice() else { break };
            match fleet.shown(self.now_us, number, shown) {
                Some(CallEvent::Made { id, to }) => {
                    let datagram = self.depart(number, to);
                    if let Some(fleet) = &mut self.fleet {
                        fleet.is_made(id, datagram);
                    }
                }
                Some(CallEvent::Answered { number: datagram, to }) => {
                    self.arrive(number, number, to, datagram);
                }
                None => {}
            }
        }
        if self.options.watches_loops {
            self.watch_ways(number);
        }
        self.put_to_sleep(number);
    }

    /// Looks for loops at every next hop of a device that has changed.
    fn watch_ways(&mut self, number: u32) {
        for to in 0..self.seats.len() as u32 {
            let hop = self.next_hop(number, to);
            let seen = &mut self.seats[number as usize].hops[to as usize];
            if std::mem::replace(seen, hop) != hop {
                self.check_loop(number, to);
            }
        }
    }

    fn put_to_sleep(&mut self, number: u32) {
        let seat = &mut self.seats[number as usize];
        let now = seat.clock.local(self.now_us);
        let Some(device) = seat.occupant.as_mut().and_then(Occupant::device) else { return };
        let bedtime = device.sleeps_until(now, self.now_us);
        if device.has_failed() {
            return self.switch_off(number);
        }
        let Some(until_us) = bedtime else { return };
        if let (Some(fleet), Some(Occupant::Device(device))) =
            (&mut self.fleet, seat.occupant.take())
        {
            self.metrics.trouble.sleeps += 1;
            fleet.sleeps(self.now_us, number);
            seat.place = Some(device.into_place());
            self.lie_dormant(number);
            self.agenda.plan(until_us, Event::Rouse(number));
        }
    }

    /// The attacker hears a frame.
    fn record(&mut self, frame: &[u8]) {
        if let (Some(fleet), Some(replayer)) = (&mut self.fleet, &self.scenario.replayer) {
            fleet.record(frame, replayer.frames);
        }
    }

    /// The attacker sends a frame again.
    fn replay(&mut self) {
        let (Some(fleet), Some(replayer)) = (&mut self.fleet, &self.scenario.replayer) else {
            return;
        };
        self.agenda.plan(self.now_us + replayer.every_ms * 1000, Event::Replay);
        let station = self.seats.len() as u32;
        if let Some(bytes) = fleet.replay(&mut self.random) {
            self.metrics.trouble.replays += 1;
            let planned = self.medium.send(self.now_us, station, Frame { to: None, bytes });
            self.plan_air(planned);
        }
    }

    /// A member that turned bad lies, or is honest again.
    fn lie(&mut self, index: usize) {
        let LiarPlan { node, lie, from_s, until_s, every_ms } = self.scenario.liars[index];
        let number = (self.now_us.saturating_sub(micros(from_s)) / (every_ms * 1000)) as u32;
        let is_over = self.now_us >= micros(until_s);
        if !is_over {
            let next_us = self.now_us + every_ms * 1000;
            self.agenda.plan(next_us.min(micros(until_s)), Event::Lie(index as u32));
        }
        let lives: Vec<u32> = self.seats.iter().map(|seat| seat.boots).collect();
        let now = self.seats[node as usize].clock.local(self.now_us);
        let Some(participant) = self.bare(node) else { return };
        participant.swallow(now, (!is_over).then_some(lie));
        let frames = if is_over { Vec::new() } else { participant.lie(now, lie, number, &lives) };
        for bytes in frames {
            let planned = self.medium.send(self.now_us, node, Frame { to: None, bytes });
            self.plan_air(planned);
        }
        self.turn(node);
    }

    /// Takes what a node shows.
    fn take_events(&mut self, number: u32) {
        loop {
            let Some(occupant) = &mut self.seats[number as usize].occupant else { return };
            let Some(event) = occupant.event() else { return };
            if let Some((arrived, payload)) = event.notification::<DatagramArrived>() {
                if let Some(datagram) = payload.first_chunk() {
                    let datagram = u64::from_le_bytes(*datagram);
                    self.arrive(number, number_of(arrived.from), number, datagram);
                }
            } else if let Some((_, payload)) = event.notification::<Published>() {
                self.take_broadcast(number, payload);
            } else if let Some((_, payload)) = event.notification::<PublishedReliably>() {
                self.take_broadcast(number, payload);
            } else if let Some((changed, _)) = event.notification::<RouteChanged>() {
                self.check_loop(number, number_of(changed.destination));
            }
        }
    }

    /// A datagram from `from` is at `to`, or a call from `from` to `to` is answered; `by` was told.
    fn arrive(&mut self, by: u32, from: u32, to: u32, datagram: u64) {
        let life = self.seats[by as usize].boots;
        let arrived = self.datagrams.arrive(self.now_us, datagram, life);
        let Some((sent_us, second)) = arrived else { return };
        if let Some(second) = self.seconds.get_mut(second) {
            second.delivered += 1;
        }
        self.recovery.arrived(self.now_us, (from, to), sent_us);
        self.playback.delivered(sent_us, self.now_us, from, to);
    }

    /// Counts a datagram, or a call, that is made.
    fn depart(&mut self, from: u32, to: u32) -> u64 {
        if let Some(second) = self.seconds.last_mut() {
            second.sent += 1;
        }
        let Self { recovery, seats, medium, .. } = self;
        recovery.sent(self.now_us, (from, to), |pair| can_be_served(seats, medium, pair));
        self.datagrams.send(self.now_us, self.seconds.len().saturating_sub(1))
    }

    fn take_broadcast(&mut self, at: u32, payload: &[u8]) {
        let Some(number) = payload.first_chunk::<NUMBER_BYTES>() else { return };
        let number = u64::from_le_bytes(*number) as usize;
        let life = self.seats[at as usize].boots;
        if let Some(broadcast) = self.broadcasts.get_mut(number) {
            broadcast.missing.remove(&at);
            // A node that restarted can't know what it received before.
            let is_again = broadcast.reached.insert(at, life) == Some(life);
            self.datagrams.duplicates += u64::from(is_again);
        }
    }

    /// Follows next hops from `from` to `to`, and notes if they come back.
    fn check_loop(&mut self, from: u32, to: u32) {
        let Some(way) = self.way_back(from, to) else { return };
        self.metrics.loops += 1;
        let at_s = self.now_us as f64 / 1e6;
        self.loop_seen.get_or_insert_with(|| {
            format!("at {at_s:.6} s the way to {to} leads in a circle: {way:?}")
        });
    }

    /// The nodes on the way from `from` to `to`, if it comes back to `from`.
    fn way_back(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut way = vec![from];
        let mut at = from;
        while way.len() <= self.seats.len() {
            at = self.next_hop(at, to).filter(|next| *next != to)?;
            if at == from {
                return Some(way);
            }
            way.push(at);
        }
        // A circle that others form is found when one of them changes.
        None
    }

    /// The next hop of `from` towards `to`, if that hop accepts the datagram.
    fn next_hop(&self, from: u32, to: u32) -> Option<u32> {
        let occupant = |number: u32| self.seats.get(number as usize)?.occupant.as_ref();
        let (next, life) = occupant(from)?.next_hop(self.id(to)?)?;
        let next = self.number(next)?;
        if self.scenario.liars.iter().any(|liar| liar.misleads(from, self.now_us)) {
            return None;
        }
        // A node that is off passes nothing on, nor does one that began anew what is for the one before.
        let is_taken = next == to || life == ANY_LIFE || life == occupant(next)?.life();
        (occupant(next).is_some() && is_taken).then_some(next)
    }

    /// The id of a node; a device has none before it was on.
    fn id(&self, number: u32) -> Option<NodeId> {
        match &self.fleet {
            Some(fleet) => fleet.id(number),
            None => Some(id_of(number)),
        }
    }

    /// The node of that id.
    fn number(&self, id: NodeId) -> Option<u32> {
        match &self.fleet {
            Some(fleet) => fleet.number(id),
            None => Some(number_of(id)),
        }
    }

    fn boot(&mut self, number: u32) {
        let seat = &mut self.seats[number as usize];
        if seat.occupant.is_some() {
            if seat.power_off_us != NEVER {
                // It is as good as off, and switched on again once it is.
                self.agenda.plan(seat.power_off_us + 1, Event::Boot(number));
            }
            return;
        }
        let slept = seat.place.as_ref().is_some_and(|place| place.asleep);
        self.metrics.trouble.restarts += u64::from(seat.boots > 0 && !slept);
        seat.boots += 1;
        let occupant = match (&mut self.fleet, seat.place.take()) {
            (Some(fleet), Some(place)) => {
                // A clock that runs on through a sleep counts from the start before it.
                let booted_us = if slept { seat.clock.booted_us } else { self.now_us };
                seat.clock.booted_us = booted_us;
                Occupant::Device(fleet.boot(self.now_us, seat.clock, place))
            }
            _ => {
                seat.clock.booted_us = self.now_us;
                Occupant::Bare(Box::new(Participant::boot(
                    number,
                    seat.boots,
                    &self.scenario,
                    self.options,
                    self.random.number(),
                )))
            }
        };
        seat.occupant = Some(occupant);
        self.plug_in_all(number);
        self.medium.set_power(number, true);
        self.playback.power(self.now_us, number, true);
        self.turn(number);
    }

    fn fail(&mut self, index: usize) {
        let what = self.scenario.faults[index].what.clone();
        self.playback.fault(self.now_us, &what);
        match what {
            What::Crash(nodes) => nodes.iter().for_each(|number| self.crash(*number)),
            What::Restart(nodes) => {
                nodes.iter().for_each(|number| self.agenda.plan(self.now_us, Event::Boot(*number)));
            }
            What::Cut([one, other]) => self.cut(one, other),
            What::CutWay([from, to]) => {
                if let Some((one, other)) = self.middle_of_way(from, to) {
                    self.cut(one, other);
                }
            }
            What::Mend([one, other]) => {
                self.medium.set_link(one, other, None);
                self.medium.set_link(other, one, None);
            }
            What::Part(nodes) => {
                self.metrics.trouble.partitions += 1;
                nodes.iter().for_each(|number| self.medium.set_part(*number, index as u32 + 1));
            }
            What::Unite(_) => {
                (0..self.seats.len() as u32).for_each(|number| self.medium.set_part(number, 0));
            }
        }
        let Self { recovery, seats, medium, .. } = self;
        recovery.fault(self.now_us, |pair| can_be_served(seats, medium, pair));
    }

    /// A node's power fails: at once, or soon, in the middle of a flash operation.
    fn crash(&mut self, number: u32) {
        let seat = &mut self.seats[number as usize];
        if let Some(fleet) = &self.fleet
            && let Some(device) = seat.occupant.as_mut().and_then(Occupant::device)
            && fleet.tears(&mut self.random)
        {
            let operations = self.random.between(0..=OPERATIONS_BEFORE_CUT);
            device.fail_after(operations, self.random.number());
            seat.power_off_us = self.now_us + TORN_WITHIN_US;
            self.agenda.plan(seat.power_off_us, Event::PowerOff(number));
        } else {
            self.switch_off(number);
        }
    }

    /// A node is off from now on.
    fn switch_off(&mut self, number: u32) {
        let seat = &mut self.seats[number as usize];
        let slept = seat.place.as_ref().is_some_and(|place| place.asleep);
        self.metrics.trouble.power_cuts += u64::from(seat.occupant.is_some() || slept);
        if let Some(fleet) = &mut self.fleet {
            if let Some(Occupant::Device(device)) = seat.occupant.take() {
                self.metrics.trouble.torn_writes += u64::from(device.has_failed());
                seat.place = Some(device.switch_off());
                fleet.stopped(self.now_us, seat.place.as_deref());
            } else if let Some(place) = seat.place.as_mut().filter(|_| slept) {
                // A device that loses its power while it sleeps starts like any other.
                place.asleep = false;
                fleet.stopped(self.now_us, seat.place.as_deref());
            }
        }
        seat.power_off_us = NEVER;
        self.lie_dormant(number);
    }

    /// Nobody is at a seat any more.
    fn lie_dormant(&mut self, number: u32) {
        let seat = &mut self.seats[number as usize];
        seat.occupant = None;
        seat.planned_us = NEVER;
        seat.hops.fill(None);
        self.recovery.gone(number);
        self.medium.set_power(number, false);
        self.playback.power(self.now_us, number, false);
    }

    fn cut(&mut self, one: u32, other: u32) {
        self.metrics.trouble.cut_links += 1;
        self.medium.set_link(one, other, Some(SetLink::even(1.0)));
        self.medium.set_link(other, one, Some(SetLink::even(1.0)));
        self.playback.cut(self.now_us, one, other);
    }

    /// The ends of a link in the middle of the way that datagrams take.
    fn middle_of_way(&self, from: u32, to: u32) -> Option<(u32, u32)> {
        let mut way = vec![from];
        while *way.last()? != to && way.len() <= self.seats.len() {
            way.push(self.next_hop(*way.last()?, to)?);
        }
        let middle = way.len() / 2;
        Some((*way.get(middle.checked_sub(1)?)?, *way.get(middle)?))
    }

    fn set_link(&mut self, index: usize) {
        let link = &self.scenario.links[index];
        let set = SetLink {
            loss: link.loss,
            unicast_loss: link.unicast_loss.unwrap_or(link.loss),
            bursts: link.bursts,
        };
        self.medium.set_link(link.from, link.to, Some(set));
        if !link.one_way {
            self.medium.set_link(link.to, link.from, Some(set));
        }
    }

    fn send_datagram(&mut self, index: usize) {
        let traffic = self.scenario.traffic[index].clone();
        let until_s = traffic.until_s.unwrap_or(self.scenario.seconds - LAST_BEFORE_END_S);
        if self.now_us > micros(until_s) {
            return;
        }
        self.agenda.plan(self.now_us + traffic.every_ms * 1000, Event::Traffic(index as u32));
        let anybody = |random: &mut Random| random.between(0..=self.seats.len() as u64 - 1) as u32;
        let from = traffic.from.unwrap_or_else(|| anybody(&mut self.random));
        let to = traffic.to.unwrap_or_else(|| anybody(&mut self.random));
        let is_on = |number: u32| self.seats[number as usize].occupant.is_some();
        if traffic.broadcast && is_on(from) {
            return self.send_broadcast(from, traffic.bytes);
        }
        if from == to || !is_on(from) || !is_on(to) {
            return;
        }
        let is_watched = self.scenario.moves() && self.seats.len() <= WATCHED_NODES_MAX;
        if is_watched && !self.medium.is_connected(from, to) {
            self.metrics.sent_while_parted += 1;
        }
        let number = self.depart(from, to);
        let mut payload = number.to_le_bytes().to_vec();
        payload.resize(traffic.bytes.max(NUMBER_BYTES), 0);
        if let Some(participant) = self.bare(from) {
            participant.carry(to, &payload);
            self.turn(from);
        }
    }

    fn send_broadcast(&mut self, from: u32, bytes: usize) {
        let number = self.broadcasts.len() as u64;
        let mut payload = number.to_le_bytes().to_vec();
        payload.resize(bytes.max(NUMBER_BYTES), 0);
        let on = self.seats.iter().zip(0..).filter(|(seat, _)| seat.occupant.is_some());
        let missing = on.map(|(_, number)| number).filter(|it| *it != from).collect();
        self.broadcasts.push(Broadcasted { missing, reached: BTreeMap::new() });
        if let Some(participant) = self.bare(from) {
            participant.publish(&payload);
            self.turn(from);
        }
    }

    fn bare(&mut self, number: u32) -> Option<&mut Participant> {
        self.seats[number as usize].occupant.as_mut()?.bare()
    }

    fn step(&mut self) {
        self.agenda.plan(self.now_us + STEP_US, Event::Step);
        let now_s = self.now_us as f64 / 1e6;
        for number in self.scenario.files.motion.nodes() {
            let spot = self.scenario.files.motion.spot(number, now_s);
            if let Some(spot) = spot.filter(|spot| *spot != self.medium.spot(number)) {
                self.medium.place(number, spot);
            }
        }
        let Some(movement) = &self.scenario.movement else { return };
        for (number, seat) in self.seats.iter_mut().enumerate() {
            if let Some(walk) = &mut seat.walk {
                let spot = walk.at(self.now_us, movement, self.field, &mut self.random);
                self.medium.place(number as u32, spot);
            }
        }
    }

    fn begin_second(&mut self) {
        let air = self.medium.counts();
        let is_watched = self.options.watches_ways && self.seats.len() <= WATCHED_NODES_MAX;
        let reachable = is_watched.then(|| self.reachable());
        let aggregate = is_watched.then(|| self.aggregate_errors()).flatten();
        let aggregate_error = aggregate.map(|(average, _)| average).filter(|it| it.is_finite());
        if self.options.watches_loops && self.seats.len() <= WATCHED_NODES_MAX {
            self.look_for_loops();
        }
        let (bytes_before, air_before) = &self.before;
        if let Some(second) = self.seconds.last_mut() {
            second.control_bytes = self.traffic.control - bytes_before.control;
            second.payload_bytes = self.traffic.payload - bytes_before.payload;
            second.collisions = air.collisions - air_before.collisions;
            second.reachable = reachable;
            second.aggregate_error = aggregate_error;
        }
        self.before = (self.traffic.clone(), air);
        if self.now_us < self.end_us {
            self.seconds.push(Second::default());
            self.agenda.plan(self.now_us + 1_000_000, Event::Second);
        }
        if self.playback.records() {
            let spots = (0..self.seats.len() as u32).map(|number| self.medium.spot(number));
            self.playback.spots(spots.collect());
        }
    }
}

/// Whether both ends of a pair are on, and stations in range lead from one to the other; in large meshes, whether
/// they are on.
fn can_be_served(seats: &[Seat], medium: &Medium, (from, to): (u32, u32)) -> bool {
    let is_on = |number: u32| seats[number as usize].occupant.is_some();
    let is_watched = seats.len() <= WATCHED_NODES_MAX;
    is_on(from) && is_on(to) && (!is_watched || medium.is_connected(from, to))
}

fn corners(spots: &[Spot]) -> (Spot, Spot) {
    let fold = |pick: fn(f32, f32) -> f32, start: f32| {
        spots.iter().fold(Spot { x: start, y: start }, |corner, spot| Spot {
            x: pick(corner.x, spot.x),
            y: pick(corner.y, spot.y),
        })
    };
    (fold(f32::min, f32::INFINITY), fold(f32::max, f32::NEG_INFINITY))
}
