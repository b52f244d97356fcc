//! State that the devices of a mesh share: their owner, the machines on them, the checker that watches
//! them, and the attacker that sends recorded frames again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::Serialize;
use tenure_crypto::sha256;
use tenure_hal::simulated::Random;
use tenure_mesh::frame::{Header, records_of};
use tenure_mesh::{NodeId, Seal as _};
use tenure_node::SleepPolicy;

use super::device::Device;
use super::options::{Defect, Options};
use super::scenario::{CallPlan, Devices, Scenario};
use crate::checker::{Checker, Invariant};
use crate::clock::Clock;
use crate::line::{CallId, Line, heard};
use crate::peripherals::Heard;
use crate::place::{Keys, Place, Shown};
use crate::trace::Trace;
use crate::{Calling, CrashPlan, DevicePlan, MachinePlan, NetworkPlan, Role, Scenario as World};

/// The store of each device, in sectors.
const STORE_SECTORS: u32 = 64;
const PROGRAM_BYTES: u32 = 4;
/// How many records a small board remembers (`small_class` of `boards/common`).
const SMALL_RECORDS_MAX: usize = 12;
/// The fuel of a slice.
const SLICE_FUEL: u64 = 4_000;
/// The most flash operations that a torn failure lets succeed before.
pub(super) const OPERATIONS_BEFORE_CUT: u64 = 8;

/// Figures of a run's devices, beside the results of their calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceFigures {
    /// How often a counter counted.
    pub executions: u64,
    /// Calls that failed, by what their callers were told.
    pub failed_calls: BTreeMap<i32, u64>,
    /// Frames that a device took a second time.
    pub replays_taken: u64,
    /// Events of peripherals that machines received, by device and topic: `node0 device.door`.
    pub heard: BTreeMap<String, Heard>,
}

/// State that devices share.
pub(super) struct Fleet {
    /// The devices as [`Place`] and [`Checker`] know them: numbered from 1.
    world: World,
    keys: Keys,
    checker: Checker,
    trace: Trace,
    torn: f32,
    defect: Option<Defect>,
    ids: Vec<Option<NodeId>>,
    stations: BTreeMap<NodeId, u32>,
    /// Calls under way, by their numbers as datagrams.
    calls: BTreeMap<CallId, u64>,
    /// Frames that the attacker has recorded.
    recorded: VecDeque<Vec<u8>>,
    /// Pairs of a device and a frame that it accepted; kept only in runs with a replayer.
    taken: BTreeSet<(u32, [u8; 8])>,
    pub(super) figures: DeviceFigures,
}

/// The meaning of a device's log line for the calls of a run.
pub(super) enum CallEvent {
    /// A call of device `to` is made; of the caller itself where only the machine knows whom it calls.
    Made { id: CallId, to: u32 },
    /// It was answered by device `to`; its number as a datagram.
    Answered { number: u64, to: u32 },
}

impl Fleet {
    /// The devices of a scenario.
    pub(super) fn new(
        scenario: &Scenario,
        devices: &Devices,
        options: Options,
        random: &mut Random,
    ) -> Self {
        let count = scenario.topology.nodes();
        let world = world_of(scenario, devices, count as u32);
        Self {
            checker: Checker::new(world.clone()),
            keys: Keys::draw(random).with_network(random),
            trace: Trace::new(options.prints),
            torn: devices.torn,
            defect: options.defect,
            ids: vec![None; count],
            stations: BTreeMap::new(),
            calls: BTreeMap::new(),
            recorded: VecDeque::new(),
            taken: BTreeSet::new(),
            figures: DeviceFigures::default(),
            world,
        }
    }

    /// A device that was never switched on.
    pub(super) fn place(&self, number: u32, random: &mut Random) -> Box<Place> {
        let plan = &self.world.devices[number as usize];
        let mut place = Place::new(number as usize + 1, Some(plan), random.branch());
        if self.defect == Some(Defect::AcknowledgesEarly) {
            place.flash.acknowledge_early();
        }
        Box::new(place)
    }

    /// Switches a device on, and puts its machines on it that aren't yet. It is off again if its
    /// power fails meanwhile.
    pub(super) fn boot(&mut self, now_us: u64, clock: Clock, mut place: Box<Place>) -> Device {
        let slept = place.asleep;
        let name = &self.world.devices[place.number - 1].name;
        let what = if slept { "wakes" } else { "is switched on" };
        self.trace.note(now_us, format_args!("{name} {what}"));
        place.flash.restore_power();
        place.clock.drift_ppm = clock.drift_ppm;
        let number = place.number;
        match place.boot(now_us, &self.world, &self.keys) {
            Ok(identity) if !slept => self.checker.started(now_us, number, identity),
            Ok(_) if place.has_slept() => self.checker.slept(now_us, number),
            Ok(_) => self.broken(now_us, number, "has lost what it did in its sleep"),
            Err(error) => self.broken(now_us, number, &format!("doesn't start: {error}")),
        }
        let plan = &self.world.devices[number - 1];
        for (index, machine) in plan.machines.iter().enumerate() {
            if place.running.is_none() || place.installed[index] {
                continue;
            }
            match place.install(now_us, plan, index, &self.keys) {
                Ok(_) => {
                    place.installed[index] = true;
                    self.checker.installed(number, &machine.name);
                }
                Err(error) => {
                    let what = format!("{} doesn't take {}: {error}", plan.name, machine.name);
                    self.checker.violated(now_us, Invariant::PlacesStart, what);
                }
            }
        }
        let id = place.mesh().map(|stack| stack.node());
        if let Some(id) = id {
            self.ids[number - 1] = Some(id);
            self.stations.insert(id, number as u32 - 1);
        }
        let has_clock = plan.has_clock;
        let forgets_calls = self.defect == Some(Defect::ForgetsCalls);
        Device::new(place, has_clock, self.world.slice, forgets_calls)
    }

    fn broken(&mut self, now_us: u64, number: usize, what: &str) {
        let what = format!("{} {what}", self.world.devices[number - 1].name);
        self.checker.violated(now_us, Invariant::PlacesStart, what);
    }

    /// The id of a device, once it has been on.
    pub(super) fn id(&self, number: u32) -> Option<NodeId> {
        self.ids.get(number as usize).copied().flatten()
    }

    /// The device of that id.
    pub(super) fn number(&self, id: NodeId) -> Option<u32> {
        self.stations.get(&id).copied()
    }

    /// Whether the next crash tears a flash operation.
    pub(super) fn tears(&self, random: &mut Random) -> bool {
        random.share() < f64::from(self.torn)
    }

    /// A device has lost its power: what its flash holds is looked at.
    pub(super) fn stopped(&mut self, now_us: u64, place: Option<&Place>) {
        let Some(place) = place else { return };
        let store = place.flash.copy(0, STORE_SECTORS);
        self.checker.stopped(now_us, place.number, store);
        let name = &self.world.devices[place.number - 1].name;
        self.trace.note(now_us, format_args!("{name} is off"));
    }

    /// A device has fallen asleep.
    pub(super) fn sleeps(&mut self, now_us: u64, number: u32) {
        let name = &self.world.devices[number as usize].name;
        self.trace.note(now_us, format_args!("{name} sleeps"));
        self.checker.sleeps(now_us, number as usize + 1);
    }

    /// Takes what a device shows.
    pub(super) fn shown(&mut self, now_us: u64, number: u32, shown: Shown) -> Option<CallEvent> {
        let name = &self.world.devices[number as usize].name;
        let Shown::Log(machine, message) = shown else { return None };
        self.trace.note(now_us, format_args!("{name} {machine}: {message}"));
        self.checker.logged(now_us, number as usize + 1, &machine, &message);
        if let Some((topic, payload)) = heard(&message) {
            self.figures.heard.entry(format!("{name} {topic}")).or_default().hear(&payload);
            return None;
        }
        let line = Line::parse(&message)?;
        let to = self.callee(number, &machine);
        match line {
            Line::Ran(..) => self.figures.executions += 1,
            Line::Called(id) | Line::Queued(id) => {
                return Some(CallEvent::Made { id, to: to? });
            }
            Line::Done(id, status, _) if status < 0 => {
                self.calls.remove(&id);
                *self.figures.failed_calls.entry(status).or_default() += 1;
            }
            Line::Done(id, ..) | Line::Succeeded(id, _) => {
                let number = self.calls.remove(&id)?;
                return Some(CallEvent::Answered { number, to: to? });
            }
            _ => {}
        }
        None
    }

    /// Counts a call as the datagram of that number.
    pub(super) fn is_made(&mut self, id: CallId, number: u64) {
        self.calls.insert(id, number);
    }

    /// The records of a frame, as a member of the network reads them.
    pub(super) fn open(&self, frame: &[u8]) -> Vec<u8> {
        let opened = || {
            let (header, header_bytes) = Header::parse(frame).ok()?;
            let mut sealed = frame[header_bytes..].to_vec();
            let network = self.keys.network.as_ref()?;
            let opened = network.open(&header.number, &frame[..header_bytes], &mut sealed)?;
            Some(records_of(&header, opened).ok()?.to_vec())
        };
        opened().unwrap_or_default()
    }

    /// The attacker hears a frame, and keeps it if there is room for `frames_max`.
    pub(super) fn record(&mut self, frame: &[u8], frames_max: usize) {
        if self.recorded.len() >= frames_max {
            self.recorded.pop_front();
        }
        self.recorded.push_back(frame.to_vec());
    }

    /// A frame that the attacker sends again.
    pub(super) fn replay(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        let last = self.recorded.len().checked_sub(1)?;
        Some(self.recorded[random.between(0..=last as u64) as usize].clone())
    }

    /// A device has taken a frame, which it may do once, whatever happened to it meanwhile.
    pub(super) fn took(&mut self, number: u32, frame: &[u8]) {
        let [a, b, c, d, e, f, g, h, ..] = sha256(&[frame]).0;
        if !self.taken.insert((number, [a, b, c, d, e, f, g, h])) {
            self.figures.replays_taken += 1;
        }
    }

    /// Whether something didn't hold already.
    pub(super) fn is_broken(&self) -> bool {
        self.checker.violation().is_some()
    }

    /// The last events in words.
    pub(super) fn tail(&self) -> Vec<String> {
        self.trace.tail().map(String::from).collect()
    }

    /// Ends the run: gives what didn't hold.
    pub(super) fn finish(&mut self, now_us: u64) -> Option<String> {
        self.checker.watch(now_us);
        let violation = self.checker.violation()?;
        let (at_s, what) = (violation.at_us as f64 / 1e6, &violation.what);
        Some(format!("{}: at {at_s:.6} s {what}", violation.invariant))
    }

    fn callee(&self, number: u32, machine: &str) -> Option<u32> {
        let plan = self.world.machine(number as usize + 1, machine)?;
        let target = &crate::checker::calling(&plan.role)?.target;
        let (_, device) = target.split_once('@')?;
        if device.ends_with('*') {
            return Some(number);
        }
        let at = self.world.devices.iter().position(|plan| plan.name == device)?;
        Some(at as u32)
    }
}

/// A device's name.
fn name_of(number: u32) -> String {
    format!("node{number}")
}

/// The devices of a scenario as places know them.
fn world_of(scenario: &Scenario, devices: &Devices, count: u32) -> World {
    World {
        seed: scenario.seed,
        devices: (0..count).map(|number| device_of(scenario, devices, number, count)).collect(),
        network: NetworkPlan {
            delay_ms: 0..=0,
            lost: 0,
            doubled: 0,
            replayed: 0,
            flipped: 0,
            partition_every_ms: None,
        },
        crashes: CrashPlan {
            up_ms: None,
            off_ms: 0..=0,
            torn: 0,
            during_boot: 0,
            update_ms: None,
            hub: false,
        },
        trouble: Duration::ZERO,
        quiet: Duration::from_secs_f64(scenario.seconds),
        slice: Duration::from_millis(devices.slice_ms),
        slice_fuel: SLICE_FUEL,
        record_lifetime: Duration::from_secs(60),
        sleeps: None,
        stops: None,
        sessions: None,
    }
}

fn device_of(scenario: &Scenario, devices: &Devices, number: u32, count: u32) -> DevicePlan {
    let machine = |name: String, role| MachinePlan { name, role };
    let mut machines = vec![
        machine("counter".to_string(), Role::Counter),
        machine("ticker".to_string(), Role::Ticker),
    ];
    let calls = scenario.calls.iter().enumerate();
    for (index, call) in calls.filter(|(_, call)| call.from.is_none_or(|from| from == number)) {
        let to = call.to.unwrap_or((number + count / 2) % count);
        if call.each {
            machines.push(machine(format!("caller{index}"), round_of(call, number, count)));
        } else if to != number {
            machines.push(machine(format!("caller{index}"), role_of(call, to)));
        }
    }
    let own = scenario.peripherals.iter().filter(|one| one.node == number);
    let peripherals: Vec<_> = own.cloned().collect();
    if !peripherals.is_empty() {
        machines.push(machine("listener".to_string(), Role::Listener));
    }
    let duty = scenario.sleeps.iter().find(|sleep| sleep.nodes.contains(&number));
    DevicePlan {
        name: name_of(number),
        has_clock: !devices.without_clock.contains(&number),
        first_boot: Duration::ZERO,
        store_sectors: STORE_SECTORS,
        program_bytes: PROGRAM_BYTES,
        machines,
        peripherals,
        sleep: duty.map_or(SleepPolicy::Never, |duty| SleepPolicy::DutyCycle {
            run: Duration::from_millis(duty.run_ms),
            sleep: Duration::from_millis(duty.sleep_ms),
        }),
        records_max: devices.small.contains(&number).then_some(SMALL_RECORDS_MAX),
    }
}

fn calling_of(call: &CallPlan, device: &str) -> Calling {
    Calling {
        target: format!("counter@{device}"),
        function: "count".to_string(),
        deadline_ms: call.deadline_ms,
        pause_ms: call.pause_ms,
    }
}

fn round_of(call: &CallPlan, own: u32, count: u32) -> Role {
    Role::Round { calling: calling_of(call, "node*"), own, count }
}

fn role_of(call: &CallPlan, to: u32) -> Role {
    let calling = calling_of(call, &name_of(to));
    match call.retries {
        Some(retries) => Role::Queueing { calling, width: 1, retries },
        None => Role::Straight(calling),
    }
}
