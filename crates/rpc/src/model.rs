//! A model of the at-most-once protocol, checked in every order of events within small bounds.
//!
//! One machine calls another once, over a network that loses, repeats and reorders whatever it likes of
//! the few datagrams that it holds. The called side may restart, sleep or forget its caller, and time may
//! end epochs. The called side's tables are the code's own ([`Gate`], [`Callers`]), and so
//! are the rules by which a caller sends ([`may_send`], [`remembers_since`]); keys, fragments and
//! timers are left out. A session is a number that only its two ends can speak in.
//!
//! Each [`Leg`] can be cut, and the checker then finds a call that runs twice.

extern crate std;

use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

use stateright::{Checker, Model, Property};
use tenure_hal::Instant;
use tenure_hal::simulated::Sequence;
use tenure_wire::datagram::{Echo, Epoch, SessionIndex};
use tenure_wire::frame::{CallNumber, Fragment, Greeting};
use tenure_wire::{MachineId, PublicKey};

use crate::Config;
use crate::callers::{Allowance, Callers, Verdict};
use crate::calls::may_send;
use crate::config::Standing;
use crate::endpoint::opening::remembers_since;
use crate::gate::{Acceptance, Admission, Gate};
use crate::session::Pair;

const PAIR: Pair = Pair { local: MachineId([1; 12]), peer: PublicKey([2; 32]) };
const CALLER_PLACE: u32 = 1;
const NUMBER: CallNumber = CallNumber(1);
/// How much time passes when it does: more than half of the two epochs that are accepted.
const TICK: Duration = Duration::from_secs(130);

/// The rules that make a call run at most once; one of them may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    /// A caller compares a call's first sending with what its peer remembers.
    Horizon,
    /// Forgetting a caller ends the epochs in which it made calls.
    EpochEndsWithMemory,
    /// Forgetting a caller ends its sessions.
    SessionsEndWithMemory,
    /// A call travels in a first message only if it was never sent before.
    OnlyUnsentRides,
    /// Remembered calls go through a deep sleep.
    MemorySleepsToo,
}

/// How often each event may happen.
#[derive(Clone, Copy)]
struct Bounds {
    cut: Option<Leg>,
    initiations_max: u8,
    sendings_max: u8,
    called_restarts_max: u8,
    sleeps_max: u8,
    forgets_max: u8,
    ticks_max: u8,
}

/// The most datagrams that the network holds; what is sent beyond them is lost.
const NETWORK_MAX: usize = 3;

/// A datagram on the network, which delivers it any number of times until it is lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Sent {
    Initiation { serial: u8, epoch: [u8; 8], carries_call: bool },
    Challenge { epoch: [u8; 8] },
    Response { serial: u8, session: u32, remembers_ms: u64 },
    Call { session: u32, counter: u8 },
    Reply { session: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Happening {
    Arrives(Sent),
    IsLost(Sent),
    Initiates,
    SendsAgain,
    CalledEndsCall,
    CalledRestarts,
    CalledSleeps,
    CalledForgets,
    TimePasses,
}

/// How the one call stands with its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    Pending,
    Result,
    Unknown,
}

#[derive(Clone)]
struct World {
    now: Instant,
    sent: BTreeSet<Sent>,
    counts: Counts,
    // The caller.
    epoch: [u8; 8],
    first_sent: Option<Instant>,
    /// The initiation that is under way.
    opening: Option<u8>,
    /// The session that it opened last, and since when the peer remembers.
    session: Option<(u32, Instant)>,
    outcome: Outcome,
    // The called side.
    gate: Gate,
    callers: Callers,
    /// Sessions that it knows, with the counters that were seen.
    sessions: BTreeMap<u32, BTreeSet<u8>>,
    /// How often the call was executed, ever.
    executed: u8,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Counts {
    initiations: u8,
    sessions: u32,
    sendings: u8,
    called_restarts: u8,
    sleeps: u8,
    forgets: u8,
    ticks: u8,
}

impl World {
    fn send(&mut self, datagram: Sent) {
        if self.sent.len() < NETWORK_MAX {
            self.sent.insert(datagram);
        }
    }

    /// All that tells one state from another.
    fn key(&self) -> Vec<u8> {
        let own = (self.epoch, self.first_sent.map(Instant::as_micros), self.opening);
        let session = self.session.map(|(session, since)| (session, since.as_micros()));
        let memory = postcard::to_allocvec(&self.callers.rest()).expect("serializable");
        let mut key = postcard::to_allocvec(&(own, session, memory, self.executed)).expect("plain");
        key.extend(self.gate.state_for_model());
        key
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        (self.now, &self.sent, self.counts, self.outcome, &self.sessions)
            == (other.now, &other.sent, other.counts, other.outcome, &other.sessions)
            && self.key() == other.key()
    }
}

impl Eq for World {}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let times = (self.now.as_micros(), &self.sent, self.counts, self.outcome, &self.sessions);
        times.hash(state);
        self.key().hash(state);
    }
}

impl core::fmt::Debug for World {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "at {:?}: {:?}, executed {}", self.now, self.sent, self.executed)
    }
}

fn config() -> Config {
    Config {
        handshakes_per_second: 1_000_000,
        handshakes_per_second_max: 1_000_000,
        ..Config::default()
    }
}

fn gate(now: Instant, boot: u8) -> Gate {
    Gate::new(&config(), now, &mut Sequence(u64::from(boot))).expect("randomness")
}

impl Bounds {
    fn is_cut(&self, leg: Leg) -> bool {
        self.cut == Some(leg)
    }

    /// The caller sends a first message; the call rides in it if it was never sent before.
    fn initiate(&self, world: &mut World) {
        world.counts.initiations += 1;
        let serial = world.counts.initiations;
        let is_pending = world.outcome == Outcome::Pending;
        let may_ride = world.first_sent.is_none() || self.is_cut(Leg::OnlyUnsentRides);
        let carries_call = is_pending && may_ride;
        if carries_call {
            world.first_sent.get_or_insert(world.now);
        }
        world.opening = Some(serial);
        world.send(Sent::Initiation { serial, epoch: world.epoch, carries_call });
    }

    /// The caller sends its call over the session that it opened last.
    fn send_call(&self, world: &mut World) {
        let Some((session, since)) = world.session else { return };
        if world.outcome != Outcome::Pending {
            return;
        }
        if !may_send(world.first_sent, since) && !self.is_cut(Leg::Horizon) {
            world.outcome = Outcome::Unknown;
            return;
        }
        world.first_sent.get_or_insert(world.now);
        world.counts.sendings += 1;
        world.send(Sent::Call { session, counter: world.counts.sendings });
    }

    fn arrives(&self, world: &mut World, sent: &Sent) {
        match *sent {
            Sent::Initiation { serial, epoch, carries_call } => {
                self.initiation_arrives(world, serial, epoch, carries_call);
            }
            Sent::Challenge { epoch } => world.epoch = epoch,
            Sent::Response { serial, session, remembers_ms } if world.opening == Some(serial) => {
                let greeting = Greeting { incarnation: 1, remembers_ms };
                world.opening = None;
                world.session = Some((session, remembers_since(world.now, &greeting)));
            }
            Sent::Response { .. } => {}
            Sent::Call { session, counter } => {
                let known = world.sessions.get_mut(&session);
                if known.is_some_and(|seen| seen.insert(counter)) {
                    self.call_arrives(world, session);
                }
            }
            Sent::Reply { session } => {
                let is_open = world.session.is_some_and(|(open, _)| open == session);
                if is_open && world.outcome == Outcome::Pending {
                    world.outcome = Outcome::Result;
                }
            }
        }
    }

    fn initiation_arrives(
        &self,
        world: &mut World,
        serial: u8,
        epoch: [u8; 8],
        carries_call: bool,
    ) {
        let (echo, now) = (Echo([serial; 16]), world.now);
        if world.gate.repeated(&CALLER_PLACE, &echo, false).is_some() {
            return;
        }
        match world.gate.admit(now, &CALLER_PLACE, &Epoch(epoch), true, || false) {
            Admission::Admit => {}
            Admission::Challenge => {
                world.send(Sent::Challenge { epoch: world.gate.epoch().0 });
                return;
            }
            Admission::Drop => return,
        }
        world.counts.sessions += 1;
        let session = world.counts.sessions;
        world.sessions.insert(session, BTreeSet::new());
        let since = world.callers.complete_since(&PAIR, 1);
        let remembers_ms = now.since(since).as_millis() as u64;
        world.send(Sent::Response { serial, session, remembers_ms });
        {
            let acceptance = Acceptance {
                epoch: Epoch(epoch),
                echo,
                from: &CALLER_PLACE,
                session: SessionIndex(session),
                response: Vec::new(),
            };
            world.gate.accept(now, acceptance);
        }
        if carries_call {
            self.call_arrives(world, session);
        }
    }

    fn call_arrives(&self, world: &mut World, session: u32) {
        let (now, body) = (world.now, [0; 8]);
        let fragment = Fragment::of(&body, 100, 0, true).expect("one fragment");
        let caller = world.callers.know(now, PAIR, 1);
        let allowance = Allowance { may_run: true, may_assemble: true };
        let index = SessionIndex(session);
        let verdict = caller.take_fragment(&config(), now, index, NUMBER, &fragment, allowance);
        match verdict {
            Verdict::Execute(_) => world.executed += 1,
            Verdict::Reply => {
                world.send(Sent::Reply { session });
            }
            _ => {}
        }
    }

    fn called_forgets(&self, world: &mut World) {
        world.counts.forgets += 1;
        let Some(forgotten) = world.callers.forget_one(&config(), Standing::Stranger) else {
            return;
        };
        if !self.is_cut(Leg::EpochEndsWithMemory) {
            world.gate.forgot(world.now, forgotten.last_call);
        }
        if !self.is_cut(Leg::SessionsEndWithMemory) {
            world.sessions.clear();
        }
    }

    /// Power goes and comes back: nothing is left but what sleeps.
    fn called_boots(&self, world: &mut World, sleeps: bool) {
        let boots = world.counts.called_restarts + world.counts.sleeps;
        let rest = world.callers.rest();
        world.gate = gate(world.now, 50 + boots);
        world.sessions.clear();
        world.callers = if sleeps && !self.is_cut(Leg::MemorySleepsToo) {
            Callers::wake(world.now, rest)
        } else if sleeps {
            // A sleep that claims to remember all, and lost its memory.
            let mut slept = Callers::new(Instant::BOOT);
            slept.know(Instant::BOOT, PAIR, 1);
            slept
        } else {
            Callers::new(world.now)
        };
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Happening;

    fn init_states(&self) -> Vec<World> {
        let now = Instant::BOOT + Duration::from_secs(1_000);
        let mut gate = gate(Instant::BOOT, 1);
        gate.end_epochs(now);
        vec![World {
            now,
            sent: BTreeSet::new(),
            counts: Counts::default(),
            epoch: gate.epoch().0,
            first_sent: None,
            opening: None,
            session: None,
            outcome: Outcome::Pending,
            gate,
            callers: Callers::new(Instant::BOOT),
            sessions: BTreeMap::new(),
            executed: 0,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Happening>) {
        actions.extend(world.sent.iter().cloned().map(Happening::Arrives));
        if world.sent.len() == NETWORK_MAX {
            // Before that a loss changes nothing: what never arrives might as well be lost.
            actions.extend(world.sent.iter().cloned().map(Happening::IsLost));
        }
        let counts = &world.counts;
        let mut allow = |allowed: bool, happening| {
            if allowed {
                actions.push(happening);
            }
        };
        allow(counts.initiations < self.initiations_max, Happening::Initiates);
        let may_send = world.session.is_some() && counts.sendings < self.sendings_max;
        allow(may_send, Happening::SendsAgain);
        allow(world.callers.is_running(&PAIR, 1), Happening::CalledEndsCall);
        allow(counts.called_restarts < self.called_restarts_max, Happening::CalledRestarts);
        allow(counts.sleeps < self.sleeps_max, Happening::CalledSleeps);
        allow(counts.forgets < self.forgets_max, Happening::CalledForgets);
        allow(counts.ticks < self.ticks_max, Happening::TimePasses);
    }

    fn next_state(&self, before: &World, happening: Happening) -> Option<World> {
        let mut world = before.clone();
        match happening {
            Happening::Arrives(sent) => self.arrives(&mut world, &sent),
            Happening::IsLost(sent) => drop(world.sent.remove(&sent)),
            Happening::Initiates => self.initiate(&mut world),
            Happening::SendsAgain => self.send_call(&mut world),
            Happening::CalledEndsCall => {
                world.callers.know(world.now, PAIR, 1).finish(world.now, NUMBER, vec![0, 0]);
            }
            Happening::CalledRestarts => {
                world.counts.called_restarts += 1;
                self.called_boots(&mut world, false);
            }
            Happening::CalledSleeps => {
                world.counts.sleeps += 1;
                self.called_boots(&mut world, true);
            }
            Happening::CalledForgets => self.called_forgets(&mut world),
            Happening::TimePasses => {
                world.counts.ticks += 1;
                world.now = world.now + TICK;
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the call runs at most once", |_, world: &World| world.executed <= 1),
            Property::sometimes("the call runs and its result arrives", |_, world: &World| {
                world.executed == 1 && world.outcome == Outcome::Result
            }),
            Property::sometimes("the call runs and its outcome is unknown", |_, world: &World| {
                world.executed == 1 && world.outcome == Outcome::Unknown
            }),
        ]
    }
}

const NOTHING: Bounds = Bounds {
    cut: None,
    initiations_max: 2,
    sendings_max: 1,
    called_restarts_max: 0,
    sleeps_max: 0,
    forgets_max: 0,
    ticks_max: 0,
};

/// The events that are tried together, in bounds that are checked in seconds.
const SCENES: [Bounds; 4] = [
    Bounds { called_restarts_max: 1, ticks_max: 1, ..NOTHING },
    Bounds { forgets_max: 1, ticks_max: 1, ..NOTHING },
    Bounds { sleeps_max: 1, ticks_max: 1, ..NOTHING },
    Bounds { sleeps_max: 1, forgets_max: 1, ..NOTHING },
];

/// The states that were seen, or what was found against the promise.
fn check(bounds: Bounds) -> Result<usize, Vec<Happening>> {
    let checker = bounds.checker().threads(2).spawn_bfs().join();
    match checker.discovery("the call runs at most once") {
        Some(path) => Err(path.into_actions()),
        None => Ok(checker.unique_state_count()),
    }
}

#[test]
fn no_order_of_losses_restarts_sleeps_and_forgetting_runs_a_call_twice() {
    for bounds in SCENES {
        let states = check(bounds).expect("no order of events runs the call twice");
        assert!(states > 1_000, "only {states} states");
    }
}

#[test]
fn each_leg_of_the_protocol_is_needed() {
    for (leg, scene) in [
        (Leg::Horizon, 0),
        (Leg::EpochEndsWithMemory, 1),
        (Leg::SessionsEndWithMemory, 1),
        (Leg::OnlyUnsentRides, 0),
        (Leg::MemorySleepsToo, 2),
    ] {
        let found = check(Bounds { cut: Some(leg), ..SCENES[scene] });
        assert!(found.is_err(), "{leg:?} can be cut, and no call runs twice");
    }
}
