//! The mesh scenarios against their goals, and how fast meshes are simulated.
//!
//! Each figure is the worst of all seeds, but where it says median or mean. `--seeds N` runs fewer,
//! `--only routes|routers|broadcasts|aggregates|speed` one part, `--only speed --nodes N` one size,
//! `--seconds S` of it, and `--peek` prints every run. Speed is by the time that the processor gave
//! this program, so that it doesn't matter what else it does.

use serde_json::json;
use tenure_protocols::plug_in::Registry;
use tenure_sim::mesh::{
    Aggregation, Broadcasting, Metrics, Options, Outcome, Router, Scenario, run,
};

const WATCHED: Options = Options {
    watches_loops: true,
    watches_ways: true,
    records: false,
    prints: false,
    defect: None,
    registry: Registry::OWN,
};

/// When the member of `hole.toml` turns bad.
const HOLE_FROM_S: f64 = 30.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|it| it == name)?;
        arguments.get(at + 1)?.parse::<u32>().ok()
    };
    let bench = Bench {
        seeds: number("--seeds").map_or(u64::MAX, u64::from),
        nodes: number("--nodes"),
        seconds: number("--seconds"),
        peeks: arguments.iter().any(|it| it == "--peek"),
    };
    let only = arguments.iter().position(|it| it == "--only");
    let only = only.and_then(|at| arguments.get(at + 1));
    let parts: [(&str, Part); 5] = [
        ("routes", Bench::routes),
        ("routers", Bench::routers),
        ("broadcasts", Bench::broadcasts),
        ("aggregates", Bench::aggregates),
        ("speed", Bench::speed),
    ];
    for (name, part) in parts {
        if only.is_none_or(|only| only == name) {
            part(&bench);
        }
    }
}

/// One table of figures.
type Part = fn(&Bench);

struct Bench {
    seeds: u64,
    /// Of the sizes that speed is measured at, this one only.
    nodes: Option<u32>,
    /// How long that is, instead of what is usual.
    seconds: Option<u32>,
    peeks: bool,
}

impl Bench {
    fn routes(&self) {
        let line = self.runs(include_str!("../../../scenarios/line.toml"), 10);
        show("line of 6: converge", "s", worst(&line, converged), 1.0);
        let lossy = self.runs(include_str!("../../../scenarios/lossy-line.toml"), 3);
        show("line of 6, 20 % loss: delivery", "", least(&lossy, Metrics::delivery), 0.95);
        let cut = self.runs(include_str!("../../../scenarios/cut.toml"), 100);
        show("link cut: delivery again, median", "s", median(&cut, recovered), 3.0);
        show("link cut: delivery again, worst", "s", worst(&cut, recovered), 5.0);
        let village = self.runs(include_str!("../../../scenarios/village.toml"), 10);
        show("24 nodes: converge, median", "s", median(&village, converged), 8.0);
        show("24 nodes: converge, worst", "s", worst(&village, converged), 8.0);
        show("24 nodes: control, worst", "B/s a node", worst(&village, control), 131.0);
        show("24 nodes: delivery, mean", "", mean(&village, Metrics::delivery), 0.999);
        show("24 nodes: delivery, worst", "", least(&village, Metrics::delivery), 0.999);
        let grid = self.runs(include_str!("../../../scenarios/grid.toml"), 3);
        show("grid of 100: converge", "s", worst(&grid, converged), 28.0);
        show("grid of 100: control", "B/s a node", worst(&grid, control), 220.0);
        show("grid of 100: delivery", "", least(&grid, Metrics::delivery), 1.0);
        let hole = self.runs(include_str!("../../../scenarios/hole.toml"), 10);
        let left = hole.iter().map(left_after).fold(0.0, f64::max);
        show("a black hole among several ways: left within, worst", "s", left, 10.0);
        let all = [&line, &lossy, &cut, &village, &grid, &hole];
        let loops: u64 = all.into_iter().flatten().map(|it| it.metrics.loops).sum();
        show("all of these: loops", "", loops as f64, 0.0);
    }

    /// The other routers where the one above is measured. AODV knows ways only while they are used.
    fn routers(&self) {
        for (name, router) in [("B.A.T.M.A.N.", Router::Batman), ("AODV", Router::Aodv)] {
            for (scenario, text, seeds) in [
                ("line of 6", include_str!("../../../scenarios/line.toml"), 3),
                ("line of 6, 20 % loss", include_str!("../../../scenarios/lossy-line.toml"), 3),
                ("link cut", include_str!("../../../scenarios/cut.toml"), 10),
                ("24 nodes", include_str!("../../../scenarios/village.toml"), 3),
                ("grid of 100", include_str!("../../../scenarios/grid.toml"), 1),
            ] {
                let runs = self.runs_as(text, seeds, |it| it.protocols.router = router);
                let subject = format!("{scenario}, {name}");
                show(&format!("{subject}: converge, median"), "s", median(&runs, converged), 0.0);
                show(&format!("{subject}: control, mean"), "B/s a node", mean(&runs, control), 0.0);
                let delivery = mean(&runs, Metrics::delivery);
                show(&format!("{subject}: delivery, mean"), "", delivery, 1.0);
                if scenario == "link cut" {
                    let again = median(&runs, recovered);
                    show(&format!("{subject}: delivery again, median"), "s", again, 0.0);
                }
                show(&format!("{subject}: loops"), "", mean(&runs, |it| it.loops as f64), 0.0);
            }
        }
    }

    fn broadcasts(&self) {
        let text = include_str!("../../../scenarios/broadcast.toml");
        let complete = |it: &Metrics| it.broadcasts_complete as f64 / it.broadcasts as f64;
        let each = |it: &Metrics| it.transmissions_per_broadcast;
        for (name, broadcast) in [
            ("flooding", Broadcasting::Flooding),
            ("counter", Broadcasting::Counter),
            ("distance", Broadcasting::Distance),
            ("gossip", Broadcasting::Gossip),
            ("coverage", Broadcasting::Coverage),
            ("reliable", Broadcasting::Reliable),
        ] {
            let runs = self.runs_as(text, 10, |it| it.protocols.broadcast = Some(broadcast));
            show(&format!("broadcast, {name}: reach all, mean"), "", mean(&runs, complete), 0.99);
            show(&format!("broadcast, {name}: transmissions, mean"), "", mean(&runs, each), 12.0);
        }
    }

    fn aggregates(&self) {
        let error = |it: &Metrics| it.aggregate_error.unwrap_or(f64::INFINITY);
        let exact = self.runs(include_str!("../../../scenarios/aggregation.toml"), 10);
        show("average by GAP, no loss: error", "", worst(&exact, error), 0.0);
        let text = include_str!("../../../scenarios/aggregation.toml");
        let repeated = self.runs_as(text, 10, |it| {
            it.protocols.aggregation = Some(Aggregation::PushSum);
            it.radio.unicast_retries = 7;
            it.seconds = 180.0;
        });
        show("average by Push-Sum, repeated by the radio: error", "", worst(&repeated, error), 0.1);
        let text = include_str!("../../../scenarios/lossy-aggregation.toml");
        for (name, aggregation) in [
            ("GAP", Aggregation::Gap),
            ("Flow Updating", Aggregation::FlowUpdating),
            ("LiMoSense", Aggregation::LimoSense),
            ("Push-Sum", Aggregation::PushSum),
        ] {
            let runs = self.runs_as(text, 10, |it| it.protocols.aggregation = Some(aggregation));
            let metric = format!("average by {name}, 20 % loss, two leave: error");
            show(&metric, "", worst(&runs, error), 0.1);
        }
    }

    /// Simulated seconds per second, with discovery and routing, from the boot of all nodes on; how
    /// fast the slowest two-hundredth of the run was; and the most memory that it took.
    fn speed(&self) {
        let sizes = [
            (24, 20_000, 10_000),
            (100, 5_000, 3_000),
            (300, 200, 1),
            (1_000, 3_000, 300),
            (10_000, 60, 15),
        ];
        for (nodes, seconds, goal) in sizes {
            let seconds = self.seconds.unwrap_or(seconds);
            if self.nodes.is_some_and(|only| only != nodes) {
                continue;
            }
            let text = format!(
                "name = 'speed'\nseconds = {seconds}\n\
                 topology = {{ shape = 'random', nodes = {nodes}, may_be_parted = true }}\n\
                 radio = {{ loss = {{ far = 0.1 }} }}\n"
            );
            let mut scenario = Scenario::parse(&text).expect("a scenario");
            // Ten thousand tables of ten thousand lines are no network that anybody runs.
            scenario.protocols.destinations = (nodes == 10_000).then_some(10);
            let started_s = processor_s();
            let (mut before, mut slowest) = ((0.0, started_s), f64::INFINITY);
            let outcome = run(&scenario, Options::default(), |share| {
                let now = (share * f64::from(seconds), processor_s());
                if now.0 > before.0 {
                    let speed = (now.0 - before.0) / (now.1 - before.1).max(1e-6);
                    slowest = slowest.min(speed);
                    if self.peeks {
                        eprintln!("{nodes} nodes, up to {:.1} s: {speed:.1}", now.0);
                    }
                }
                before = now;
            });
            let outcome = outcome.expect("it can be run");
            let speed = f64::from(seconds) / (processor_s() - started_s);
            self.peek(&scenario, &outcome);
            show(&format!("simulator, {nodes} nodes"), "simulated s/s", speed, f64::from(goal));
            show(&format!("simulator, {nodes} nodes, slowest"), "simulated s/s", slowest, 1.0);
            let memory = memory_bytes_max() / 1e6;
            show(&format!("simulator, {nodes} nodes: memory"), "MB", memory, 8_000.0);
        }
    }

    fn runs(&self, text: &str, seeds: u64) -> Vec<Outcome> {
        self.runs_as(text, seeds, |_| {})
    }

    fn runs_as(&self, text: &str, seeds: u64, change: impl Fn(&mut Scenario)) -> Vec<Outcome> {
        let mut scenario = Scenario::parse(text).expect("a scenario");
        change(&mut scenario);
        let seeds = 1..=seeds.min(self.seeds);
        seeds
            .map(|seed| {
                scenario.seed = seed;
                let outcome = run(&scenario, WATCHED, |_| {}).expect("it can be run");
                self.peek(&scenario, &outcome);
                outcome
            })
            .collect()
    }

    fn peek(&self, scenario: &Scenario, outcome: &Outcome) {
        if self.peeks {
            eprintln!("{}", outcome.to_json(scenario));
        }
    }
}

/// The processor time that this program has had, in seconds.
fn processor_s() -> f64 {
    let schedule =
        std::fs::read_to_string("/proc/self/schedstat").expect("Linux says what a process used");
    let busy_ns = schedule.split_whitespace().next().and_then(|field| field.parse::<u64>().ok());
    busy_ns.expect("the first field of schedstat") as f64 / 1e9
}

/// The most memory that this program has had at a time, in bytes.
fn memory_bytes_max() -> f64 {
    let status =
        std::fs::read_to_string("/proc/self/status").expect("Linux says what a process has");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = most.and_then(|most| most.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.expect("a line VmHWM in kB") * 1024.0
}

fn converged(metrics: &Metrics) -> f64 {
    metrics.converged_s.unwrap_or(f64::INFINITY)
}

fn recovered(metrics: &Metrics) -> f64 {
    metrics.recovered_s.iter().map(|it| it.unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
}

/// How long after the hole of `hole.toml` began datagrams were last lost, in seconds.
fn left_after(outcome: &Outcome) -> f64 {
    let last = outcome.seconds.iter().rposition(|second| second.delivered < second.sent);
    last.map_or(0.0, |second| (second as f64 + 1.0 - HOLE_FROM_S).max(0.0))
}

fn control(metrics: &Metrics) -> f64 {
    metrics.control_bytes_per_node_second
}

fn worst(runs: &[Outcome], figure: impl Fn(&Metrics) -> f64) -> f64 {
    runs.iter().map(|it| figure(&it.metrics)).fold(0.0, f64::max)
}

fn least(runs: &[Outcome], figure: impl Fn(&Metrics) -> f64) -> f64 {
    runs.iter().map(|it| figure(&it.metrics)).fold(f64::INFINITY, f64::min)
}

fn mean(runs: &[Outcome], figure: impl Fn(&Metrics) -> f64) -> f64 {
    runs.iter().map(|it| figure(&it.metrics)).sum::<f64>() / runs.len() as f64
}

fn median(runs: &[Outcome], figure: impl Fn(&Metrics) -> f64) -> f64 {
    let mut figures: Vec<f64> = runs.iter().map(|it| figure(&it.metrics)).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn show(metric: &str, unit: &str, value: f64, goal: f64) {
    for (subject, value) in [("tenure", value), ("goal", goal)] {
        let line = json!({
            "bench": "mesh", "target": "host", "subject": subject,
            "metric": metric, "unit": unit, "value": value,
        });
        println!("{line}");
    }
}
