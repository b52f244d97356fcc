//! Meshes made up at random, to find one that breaks what must hold; and the least of it that still
//! does.

use tenure_hal::simulated::Random;

use super::options::{Defect, Options};
use super::scenario::{
    Aggregation, Broadcasting, CallPlan, Devices, DutyCycle, Expectation, Fault, Files, LiarPlan,
    Lie, Movement, Protocols, Replayer, Router, Scenario, Topology, Traffic, What,
};
use super::{Outcome, run};
use crate::panics;
use crate::radio::{Loss, RadioPlan};
use crate::trouble::Trouble;

/// Trouble ends so long before the end, in seconds: time for sums to come right again.
const QUIET_S: f64 = 150.0;
/// The same of whole devices, whose calls come right sooner than sums do.
const DEVICES_QUIET_S: f64 = 60.0;
/// How long a device is off at most that loses its power alone, in seconds.
const CUT_FOR_S: f64 = 5.0;
/// The most runs that a failing scenario is made smaller by.
const TRIALS_MAX: usize = 60;

/// The result of a mesh that was drawn from a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The scenario that was run.
    pub scenario: Scenario,
    /// The defect that was planted.
    pub defect: Option<Defect>,
    /// The invariant that failed, in words; `None` if all held.
    pub failure: Option<String>,
    /// The last events that devices logged before that.
    pub last_events: Vec<String>,
    /// Events of the run.
    pub events: u64,
    /// The faults and the traffic of the run.
    pub trouble: Trouble,
}

/// Runs a scenario, and says what didn't hold.
pub fn try_scenario(scenario: Scenario) -> Finding {
    try_as(scenario, Options::default())
}

/// Runs a scenario whose nodes have a defect.
pub fn try_with(scenario: Scenario, defect: Option<Defect>) -> Finding {
    try_as(scenario, Options { defect, ..Options::default() })
}

/// Runs a scenario with these options, and looks for all that must hold.
pub fn try_as(scenario: Scenario, options: Options) -> Finding {
    let options = Options { watches_loops: true, watches_ways: true, ..options };
    let defect = options.defect;
    let mut outcome = None;
    let caught = panics::catch(|| outcome = run(&scenario, options, |_| {}).ok());
    let (events, trouble) = outcome.as_ref().map_or_else(Default::default, |outcome: &Outcome| {
        (outcome.metrics.events, outcome.metrics.trouble)
    });
    let verdicts = outcome.as_ref().map(|outcome| outcome.verdicts(&scenario));
    let unmet = verdicts.into_iter().flatten().find(|verdict| !verdict.is_met);
    let unmet = unmet.map(|verdict| format!("{}: {}", verdict.expected, verdict.was));
    let failure = caught.err().map(|panic| format!("nothing panics: {panic}")).or(unmet);
    let last_events = outcome.map_or_else(Vec::new, |outcome| outcome.last_events);
    Finding { scenario, defect, failure, last_events, events, trouble }
}

/// The smallest scenario found that fails as `finding` does.
pub fn minimise(finding: Finding) -> Finding {
    let kind = |finding: &Finding| {
        let failure = finding.failure.as_deref()?;
        Some(failure.split(':').next().unwrap_or_default().to_string())
    };
    let wanted = kind(&finding);
    let mut least = finding;
    let mut trials = 0;
    'smaller: loop {
        for candidate in smaller(&least.scenario) {
            trials += 1;
            if trials > TRIALS_MAX {
                return least;
            }
            let tried = try_with(candidate, least.defect);
            if tried.failure.is_some() && kind(&tried) == wanted {
                least = tried;
                continue 'smaller;
            }
        }
        return least;
    }
}

/// Scenarios that are a little less than this one.
fn smaller(scenario: &Scenario) -> Vec<Scenario> {
    let mut candidates = Vec::new();
    let mut less = |change: &dyn Fn(&mut Scenario)| {
        let mut candidate = scenario.clone();
        change(&mut candidate);
        if candidate != *scenario && candidate.check().is_ok() {
            candidates.push(candidate);
        }
    };
    less(&|it| it.faults.clear());
    for index in 0..scenario.faults.len() {
        less(&|it| without_fault(&mut it.faults, index));
    }
    less(&|it| it.traffic.clear());
    less(&|it| it.movement = None);
    less(&|it| it.clock_drift_ppm = 0);
    less(&|it| it.replayer = None);
    less(&|it| it.liars.truncate(it.liars.len().saturating_sub(1)));
    less(&|it| it.sleeps.clear());
    less(&|it| it.calls.truncate(it.calls.len().saturating_sub(1)));
    less(&|it| it.devices.iter_mut().for_each(|devices| devices.without_clock.clear()));
    if !scenario.expectations.iter().any(|it| matches!(it, Expectation::AggregateWithin(_))) {
        less(&|it| it.protocols.aggregation = None);
    }
    less(&|it| it.traffic.retain(|traffic| !traffic.broadcast));
    less(&|it| it.radio.loss = Loss::even(0.0));
    less(&|it| it.radio.contention = false);
    if !scenario.expectations.iter().any(is_of_the_end) {
        less(&|it| it.seconds /= 2.0);
    }
    less(&|it| match &mut it.topology {
        Topology::Line { nodes, .. }
        | Topology::Random { nodes, .. }
        | Topology::Motion { nodes } => *nodes = *nodes * 2 / 3,
        Topology::Grid { rows, .. } => *rows = *rows * 2 / 3,
        Topology::Places { places } => drop(places.pop()),
    });
    candidates
}

/// Takes a fault away, and what ended it: what is never over makes another scenario of it.
fn without_fault(faults: &mut Vec<Fault>, index: usize) {
    let end = match &faults[index].what {
        What::Crash(nodes) => What::Restart(nodes.clone()),
        What::Cut(ends) => What::Mend(*ends),
        What::Part(_) => What::Unite(true),
        What::Restart(_) | What::Mend(_) | What::Unite(_) => return,
        What::CutWay(_) => return drop(faults.remove(index)),
    };
    let begun_s = faults.remove(index).at_s;
    if let Some(at) = faults.iter().position(|it| it.what == end && it.at_s >= begun_s) {
        faults.remove(at);
    }
}

/// Whether an expectation needs its time: a run that is cut short doesn't meet it either.
fn is_of_the_end(expectation: &Expectation) -> bool {
    matches!(expectation, Expectation::DeliveryInTheEndAtLeast(_) | Expectation::AggregateWithin(_))
}

/// The mesh that belongs to `seed`.
pub fn draw(seed: u64) -> Scenario {
    let mut random = Random::new(seed ^ 0x3E5);
    let topology = draw_topology(&mut random);
    let nodes = topology.nodes() as u64;
    let is_still = random.chance(700);
    let protocols = draw_protocols(&mut random);
    let trouble_s = random.between(20..=90) as f64;
    let radio = draw_radio(&mut random);
    let mut scenario = Scenario {
        name: format!("mesh {seed}"),
        about: String::new(),
        seed,
        seconds: trouble_s + QUIET_S,
        topology,
        radio,
        movement: (!is_still).then(|| Movement {
            speed_m_s: [1.0, random.between(2..=30) as f32],
            rest_s: [0.0, 10.0],
            nodes: (0..random.between(1..=nodes) as u32).collect(),
        }),
        motion: None,
        walls: Vec::new(),
        wall_map: None,
        files: Files::default(),
        plug_ins: Vec::new(),
        protocols,
        links: Vec::new(),
        traffic: vec![draw_traffic(&mut random, false)],
        faults: draw_faults(&mut random, nodes, trouble_s),
        expectations: Vec::new(),
        devices: None,
        calls: Vec::new(),
        sleeps: Vec::new(),
        peripherals: Vec::new(),
        replayer: None,
        liars: Vec::new(),
        clock_drift_ppm: *random.pick(&[0, 50, 1_000]),
        boot_within_ms: *random.pick(&[0, 100, 5_000]),
    };
    if scenario.protocols.broadcast.is_some() {
        scenario.traffic.push(draw_traffic(&mut random, true));
    }
    if is_still {
        if scenario.protocols.router == Router::Babel {
            scenario.expectations.push(Expectation::DeliveryInTheEndAtLeast(0.9));
        }
        if scenario.protocols.aggregation.is_some() {
            scenario.expectations.push(Expectation::AggregateWithin(0.5));
        }
    }
    if scenario.protocols.router == Router::Babel && random.chance(400) {
        let count = random.between(1..=3);
        scenario.liars = (0..count).map(|_| draw_liar(&mut random, nodes, trouble_s)).collect();
    }
    scenario
}

/// The mesh of whole devices that belongs to `seed`: few, for each of them is a whole node.
pub fn draw_devices(seed: u64) -> Scenario {
    let mut random = Random::new(seed ^ 0xDE71CE);
    let nodes = random.between(2..=7);
    let some = |random: &mut Random, permille: u64| -> Vec<u32> {
        (0..nodes as u32).filter(|_| random.chance(permille)).collect()
    };
    let is_line = random.chance(500);
    let topology = if is_line {
        Topology::Line { nodes: nodes as usize, spacing_m: None }
    } else {
        let (neighbours, side_m) = (random.between(3..=8) as f32, None);
        Topology::Random { nodes: nodes as usize, side_m, neighbours, may_be_parted: false }
    };
    let trouble_s = random.between(20..=60) as f64;
    let clockless = *random.pick(&[0, 0, 500, 1_000]);
    let sleepers = if random.chance(400) { some(&mut random, 300) } else { Vec::new() };
    let sleeps = DutyCycle {
        nodes: sleepers,
        run_ms: random.between(1_000..=15_000),
        sleep_ms: random.between(100..=10_000),
    };
    let sleeps: Vec<_> = [sleeps].into_iter().filter(|it| !it.nodes.is_empty()).collect();
    let radio = draw_radio(&mut random);
    let calls = (0..random.between(1..=3)).map(|_| draw_call(&mut random, nodes)).collect();
    let mut faults = draw_faults(&mut random, nodes, trouble_s);
    faults.extend(draw_power_cuts(&mut random, nodes, trouble_s));
    faults.retain(|fault| fault.at_s < trouble_s);
    // A relay that sleeps parts the mesh, and a sleeper can't be called.
    let may_expect = sleeps.is_empty();
    Scenario {
        peripherals: Vec::new(),
        name: format!("devices {seed}"),
        about: String::new(),
        seed,
        seconds: trouble_s + DEVICES_QUIET_S,
        topology,
        radio,
        movement: None,
        motion: None,
        walls: Vec::new(),
        wall_map: None,
        files: Files::default(),
        liars: Vec::new(),
        plug_ins: Vec::new(),
        protocols: Protocols::default(),
        links: Vec::new(),
        traffic: Vec::new(),
        devices: Some(Devices {
            torn: *random.pick(&[0.0, 0.5, 0.9]),
            slice_ms: random.between(1..=6),
            without_clock: some(&mut random, clockless),
            small: Vec::new(),
        }),
        calls,
        sleeps,
        replayer: random.chance(500).then(|| Replayer {
            at: [random.between(0..=100) as f32, random.between(0..=20) as f32],
            every_ms: random.between(20..=500),
            frames: random.between(10..=2_000) as usize,
        }),
        faults,
        expectations: may_expect
            .then_some(Expectation::DeliveryInTheEndAtLeast(0.9))
            .into_iter()
            .collect(),
        clock_drift_ppm: *random.pick(&[0, 50, 1_000]),
        boot_within_ms: *random.pick(&[0, 100, 5_000]),
    }
}

fn draw_call(random: &mut Random, nodes: u64) -> CallPlan {
    let any =
        |random: &mut Random| random.chance(500).then(|| random.between(0..=nodes - 1) as u32);
    CallPlan {
        each: false,
        from: any(random),
        to: any(random),
        pause_ms: random.between(200..=3_000) as u32,
        deadline_ms: random.between(2_000..=15_000) as u32,
        retries: random.chance(400).then(|| random.between(0..=4) as u32),
    }
}

fn draw_liar(random: &mut Random, nodes: u64, trouble_s: f64) -> LiarPlan {
    let lies = [Lie::Hole, Lie::Ways, Lie::Numbers, Lie::LastNumbers, Lie::Lives, Lie::Versions];
    let from_s = random.share() * trouble_s;
    LiarPlan {
        node: random.between(0..=nodes - 1) as u32,
        lie: *random.pick(&lies),
        from_s,
        until_s: from_s + random.share() * (trouble_s - from_s),
        every_ms: random.between(50..=1_000),
    }
}

fn draw_topology(random: &mut Random) -> Topology {
    match random.between(0..=3) {
        0 => Topology::Line { nodes: random.between(2..=8) as usize, spacing_m: None },
        1 => Topology::Grid {
            columns: random.between(2..=6) as usize,
            rows: random.between(2..=5) as usize,
            spacing_m: None,
        },
        _ => Topology::Random {
            nodes: random.between(3..=30) as usize,
            side_m: None,
            neighbours: random.between(8..=14) as f32,
            may_be_parted: false,
        },
    }
}

fn draw_protocols(random: &mut Random) -> Protocols {
    let aggregations = [
        None,
        Some(Aggregation::Gap),
        Some(Aggregation::FlowUpdating),
        Some(Aggregation::LimoSense),
    ];
    let broadcasts = [
        None,
        Some(Broadcasting::Flooding),
        Some(Broadcasting::Counter),
        Some(Broadcasting::Coverage),
        Some(Broadcasting::Gossip),
        Some(Broadcasting::Reliable),
    ];
    Protocols {
        router: *random.pick(&[Router::Babel, Router::Babel, Router::Batman, Router::Aodv]),
        aggregation: *random.pick(&aggregations),
        broadcast: *random.pick(&broadcasts),
        ..Protocols::default()
    }
}

fn draw_radio(random: &mut Random) -> RadioPlan {
    let near = *random.pick(&[0.0, 0.0, 0.05, 0.15]);
    RadioPlan {
        loss: Loss { near, far: near + *random.pick(&[0.0, 0.1, 0.3]), exponent: 3.0 },
        unicast_retries: *random.pick(&[0, 7]),
        contention: random.chance(800),
        ..RadioPlan::default()
    }
}

fn draw_traffic(random: &mut Random, broadcast: bool) -> Traffic {
    let slowest = if broadcast { 5_000 } else { 1_000 };
    Traffic {
        from: None,
        to: None,
        broadcast,
        every_ms: random.between(slowest / 10..=slowest),
        bytes: random.between(8..=400) as usize,
        from_s: random.share() * 10.0,
        until_s: None,
    }
}

/// Devices, one at a time, that lose their power for a moment: what they stored must be there after it.
fn draw_power_cuts(random: &mut Random, nodes: u64, trouble_s: f64) -> Vec<Fault> {
    let cuts = (0..random.between(0..=6)).flat_map(|_| {
        let device = vec![random.between(0..=nodes - 1) as u32];
        let at_s = random.share() * trouble_s;
        let over_s = (at_s + random.share() * CUT_FOR_S).min(trouble_s - 0.1);
        let restart = Fault { at_s: over_s.max(at_s), what: What::Restart(device.clone()) };
        [Fault { at_s, what: What::Crash(device) }, restart]
    });
    cuts.collect()
}

/// Faults, each of which is over when the trouble is.
fn draw_faults(random: &mut Random, nodes: u64, trouble_s: f64) -> Vec<Fault> {
    let mut faults = Vec::new();
    for _ in 0..random.between(0..=4) {
        let at_s = random.share() * trouble_s;
        let over_s = at_s + random.share() * (trouble_s - at_s);
        let some = |random: &mut Random| -> Vec<u32> {
            (0..nodes as u32).filter(|_| random.chance(300)).collect()
        };
        let (what, over) = match random.between(0..=2) {
            0 => {
                let crashed = some(random);
                (What::Crash(crashed.clone()), What::Restart(crashed))
            }
            1 => (What::Part(some(random)), What::Unite(true)),
            _ => {
                let ends = [0, 1].map(|_| random.between(0..=nodes - 1) as u32);
                (What::Cut(ends), What::Mend(ends))
            }
        };
        faults.push(Fault { at_s, what });
        faults.push(Fault { at_s: over_s, what: over });
    }
    faults
}
