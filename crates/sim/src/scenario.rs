//! The parts of a run, drawn from its seed.

use std::ops::RangeInclusive;
use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_node::SleepPolicy;

use crate::guests::CRASHES;
use crate::peripherals::PeripheralPlan;

/// A world to be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// From which everything is drawn.
    pub seed: u64,
    /// The devices, by number from 1; number 0 is the hub.
    pub devices: Vec<DevicePlan>,
    /// The network while there is trouble.
    pub network: NetworkPlan,
    /// How places fail while there is trouble.
    pub crashes: CrashPlan,
    /// How long there is trouble.
    pub trouble: Duration,
    /// How long there is none after that.
    pub quiet: Duration,
    /// How long one slice of a machine takes.
    pub slice: Duration,
    /// The fuel of one slice.
    pub slice_fuel: u64,
    /// How long a record in the directory lasts.
    pub record_lifetime: Duration,
    /// How devices sleep with their power off, while there is trouble.
    pub sleeps: Option<SleepPlan>,
    /// How devices stand still, while there is trouble.
    pub stops: Option<StopPlan>,
    /// Limits of the devices' sessions that are not the usual ones.
    pub sessions: Option<SessionsPlan>,
}

/// Limits of sessions that make an endpoint forget, rekey and begin epochs often.
#[derive(Clone, Debug)]
pub struct SessionsPlan {
    /// Sessions at a time.
    pub sessions_max: usize,
    /// Callers of whose calls it is remembered which were executed.
    pub callers_max: usize,
    /// Accepted initiations before a new epoch begins.
    pub accepted_initiations_max: usize,
    /// The age at which a session is replaced; at twice that it ends.
    pub rekey_after: Duration,
}

/// A device to be.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    /// Its name.
    pub name: String,
    /// Whether it has a wall clock.
    pub has_clock: bool,
    /// When it is switched on first.
    pub first_boot: Duration,
    /// How many sectors its store has.
    pub store_sectors: u32,
    /// The program unit of its flash.
    pub program_bytes: u32,
    /// Its machines, in the order in which they are installed.
    pub machines: Vec<MachinePlan>,
    /// Its peripherals.
    pub peripherals: Vec<PeripheralPlan>,
    /// When it sleeps by itself; [`SleepPlan`] is what is done to it.
    pub sleep: SleepPolicy,
    /// The most devices whose records it remembers; by default as many as a device on Linux.
    pub records_max: Option<usize>,
}

/// A machine to be.
#[derive(Clone, Debug)]
pub struct MachinePlan {
    /// Its name.
    pub name: String,
    /// The machine's behaviour.
    pub role: Role,
}

/// The behaviour of a machine.
#[derive(Clone, Debug)]
pub enum Role {
    /// Counts calls in its tree.
    Counter,
    /// Calls in straight-line code.
    Straight(Calling),
    /// As straight, and each call is to another device: the target ends with `*`, for the numbers of all but its own.
    Round {
        /// The machine that it calls, and how.
        calling: Calling,
        /// Its own number.
        own: u32,
        /// How many there are.
        count: u32,
    },
    /// Calls by the queue.
    Queueing {
        /// The machine that it calls, and how.
        calling: Calling,
        /// How many calls at a time.
        width: u32,
        /// How many further attempts each call has.
        retries: u32,
    },
    /// Spins.
    Spinner,
    /// Fails when it is called.
    Crasher,
    /// Runs at a steady pace.
    Ticker,
    /// Tells what it hears of peripherals.
    Listener,
    /// Reads a secret again and again, and tells it.
    Reader {
        /// Which.
        secret: String,
        /// How long it rests before each read.
        pause_ms: u32,
    },
}

/// The calls that a machine makes: their target and their pace.
#[derive(Clone, Debug)]
pub struct Calling {
    /// The machine, as machines name it.
    pub target: String,
    /// The function.
    pub function: String,
    /// When it stops waiting.
    pub deadline_ms: u32,
    /// How long it rests before each call.
    pub pause_ms: u32,
}

/// A network's troubles. Shares are in thousandths of all datagrams.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// How long a datagram takes, in milliseconds.
    pub delay_ms: RangeInclusive<u64>,
    /// Lost.
    pub lost: u64,
    /// Delivered twice.
    pub doubled: u64,
    /// Delivered once more, much later, by somebody who kept it.
    pub replayed: u64,
    /// Delivered with a bit flipped.
    pub flipped: u64,
    /// How long it is whole between partitions, in milliseconds; `None` if it is never partitioned.
    pub partition_every_ms: Option<RangeInclusive<u64>>,
}

/// How devices sleep with their power off, whatever their machines do.
#[derive(Clone, Debug)]
pub struct SleepPlan {
    /// How long a device is awake, in milliseconds.
    pub awake_ms: RangeInclusive<u64>,
    /// How long it sleeps then, in milliseconds.
    pub asleep_ms: RangeInclusive<u64>,
}

/// How devices stand still, as processes that are stopped: they do nothing, and what comes for them waits.
#[derive(Clone, Debug)]
pub struct StopPlan {
    /// How long a device goes, in milliseconds.
    pub every_ms: RangeInclusive<u64>,
    /// How long it stands still then, in milliseconds.
    pub for_ms: RangeInclusive<u64>,
}

/// How places fail.
#[derive(Clone, Debug)]
pub struct CrashPlan {
    /// How long a place stays up, in milliseconds; `None` if none ever fails.
    pub up_ms: Option<RangeInclusive<u64>>,
    /// How long it is off then, in milliseconds.
    pub off_ms: RangeInclusive<u64>,
    /// The share of failures in the middle of a flash operation, in thousandths.
    pub torn: u64,
    /// The share of boots during which the power fails again, in thousandths.
    pub during_boot: u64,
    /// How long a device runs between updates of one of its machines, in milliseconds.
    pub update_ms: Option<RangeInclusive<u64>>,
    /// Whether the hub fails too.
    pub hub: bool,
}

impl Scenario {
    /// The scenario that belongs to `seed`.
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = random.between(1..=6);
        let devices = (1..=count).map(|number| draw_device(&mut random, number, count)).collect();
        let trouble = random.millis(30_000..=120_000);
        Self {
            seed,
            devices,
            network: draw_network(&mut random),
            crashes: draw_crashes(&mut random),
            trouble,
            quiet: Duration::from_secs(60),
            slice: random.millis(1..=6),
            slice_fuel: random.between(500..=4_000),
            record_lifetime: Duration::from_secs(*random.pick(&[20, 60, 120])),
            sleeps: draw_sleeps(&mut Random::new(seed ^ 0x517EE9)),
            stops: None,
            sessions: random.chance(400).then(|| SessionsPlan {
                sessions_max: random.between(6..=24) as usize,
                callers_max: random.between(5..=24) as usize,
                accepted_initiations_max: random.between(2..=32) as usize,
                rekey_after: random.millis(3_000..=60_000),
            }),
        }
    }

    /// When everything is over.
    pub fn end(&self) -> Duration {
        self.trouble + self.quiet
    }

    /// The machine of that name on device `device`, counted from 1.
    pub(crate) fn machine(&self, device: usize, name: &str) -> Option<&MachinePlan> {
        let plan = self.devices.get(device.checked_sub(1)?)?;
        plan.machines.iter().find(|machine| machine.name == name)
    }
}

fn draw_device(random: &mut Random, number: u64, count: u64) -> DevicePlan {
    let machine = |name: &str, role| MachinePlan { name: name.to_string(), role };
    let mut machines = vec![machine("counter", Role::Counter)];
    if random.chance(300) {
        machines.push(machine("spinner", Role::Spinner));
    }
    machines.push(machine("crasher", Role::Crasher));
    for caller in 0..random.between(0..=3) {
        let calling = draw_calling(random, number, count);
        let role = if random.chance(500) {
            Role::Straight(calling)
        } else {
            let (width, retries) = (random.between(1..=3) as u32, random.between(0..=6) as u32);
            Role::Queueing { calling, width, retries }
        };
        machines.push(machine(&format!("caller{caller}"), role));
    }
    machines.push(machine("ticker", Role::Ticker));
    if random.chance(500) {
        machines.reverse();
    }
    DevicePlan {
        name: format!("d{number}"),
        has_clock: random.chance(500),
        first_boot: random.millis(0..=5_000),
        store_sectors: random.between(64..=128) as u32,
        program_bytes: *random.pick(&[1, 4, 8]),
        machines,
        peripherals: Vec::new(),
        sleep: SleepPolicy::Never,
        records_max: None,
    }
}

fn draw_calling(random: &mut Random, own: u64, count: u64) -> Calling {
    let device = random.between(1..=count);
    let crasher = random.chance(200);
    let machine = if crasher { "crasher" } else { "counter" };
    let target = if device == own && random.chance(500) {
        machine.to_string()
    } else {
        format!("{machine}@d{device}")
    };
    let function = if crasher { *random.pick(&CRASHES) } else { "count" };
    Calling {
        target,
        function: function.to_string(),
        deadline_ms: random.between(1_000..=15_000) as u32,
        pause_ms: random.between(100..=2_000) as u32,
    }
}

fn draw_network(random: &mut Random) -> NetworkPlan {
    let quick = random.between(0..=50);
    let up_to = |random: &mut Random, most: u64| *random.pick(&[0, most / 10, most / 3, most]);
    NetworkPlan {
        delay_ms: quick..=quick + random.between(1..=300),
        lost: up_to(random, 400),
        doubled: up_to(random, 200),
        replayed: up_to(random, 100),
        flipped: up_to(random, 100),
        partition_every_ms: random.chance(400).then(|| {
            let shortest = random.between(1_000..=10_000);
            shortest..=shortest * 4
        }),
    }
}

fn draw_sleeps(random: &mut Random) -> Option<SleepPlan> {
    random.chance(300).then(|| {
        let shortest = random.between(300..=5_000);
        SleepPlan { awake_ms: shortest..=shortest * 3, asleep_ms: 1..=random.between(50..=500) }
    })
}

fn draw_crashes(random: &mut Random) -> CrashPlan {
    CrashPlan {
        up_ms: random.chance(700).then(|| {
            let shortest = random.between(500..=10_000);
            shortest..=shortest * 5
        }),
        off_ms: 10..=random.between(100..=10_000),
        torn: *random.pick(&[0, 500, 900]),
        during_boot: *random.pick(&[0, 100, 500]),
        update_ms: random.chance(400).then(|| {
            let shortest = random.between(3_000..=20_000);
            shortest..=shortest * 3
        }),
        hub: random.chance(500),
    }
}
