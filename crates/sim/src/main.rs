//! `tenure-sim`: hunts for seeds whose runs break an invariant, and replays them.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use serde_json::json;
use tenure_hal::planted::Weakness;
use tenure_sim::mesh::hunt::{self, Finding};
use tenure_sim::mesh::{Defect, Metrics, Options, Scenario, run_many};
use tenure_sim::siege::{self, Cast};
use tenure_sim::tenancy::{self, Tally};
use tenure_sim::{Outcomes, Report, Trouble, run};

/// Prints a line. Whoever closes the pipe has read enough.
macro_rules! say {
    ($($text:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Run many nodes under one seeded clock, network and flash.
///
/// Each seed is a world of its own: how many devices, what they run, what is lost and when the
/// power fails; a mesh of its own, of bare protocols in a radio; one of real nodes; two tenants whose
/// leases end and whose secrets change; and a device that everybody attacks at once. The first seed that breaks an invariant ends the hunt
/// with exit status 1; of a mesh, the least that still breaks it is printed as a scenario for `tenure
/// sim`.
///
/// Example: tenure-sim --seeds 1000
#[derive(Parser)]
#[command(name = "tenure-sim")]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100, conflicts_with = "seed")]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1, conflicts_with = "seed")]
    from: u64,
    /// Run this seed alone.
    #[arg(long)]
    seed: Option<u64>,
    /// Print every event.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Run only real nodes and a hub, only meshes of bare protocols, only meshes of real nodes, only
    /// tenants with leases and secrets on one device, or only a device under siege.
    #[arg(long, value_enum)]
    only: Option<Kind>,
    /// Print a mesh that fails as it was drawn, without looking for the least of it that still does.
    #[arg(long)]
    as_drawn: bool,
    /// Plant a defect in every node of a mesh, to see that the hunt finds it.
    #[arg(long, value_enum, requires = "only")]
    plant: Option<Defect>,
    /// Plant a weakness that was mended in the device of a siege, such as `h2`, or of tenants (`restore`), to see that
    /// the hunt finds it.
    #[arg(long, value_parser = siege::weakness, requires = "only")]
    weakness: Option<Weakness>,
    /// Go on after a failure.
    #[arg(long)]
    keep_going: bool,
    /// Run the mesh in this file with each seed instead, and print the mean of each figure.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "plant", "trace"])]
    scenario: Option<std::path::PathBuf>,
    /// Print one JSON object a seed, and one for the summary.
    #[arg(long)]
    json: bool,
}

/// The kind of world that is drawn from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Real nodes and a hub.
    Nodes,
    /// A mesh of bare protocols.
    Meshes,
    /// A mesh of real nodes.
    Devices,
    /// Two tenants on one device: leases, receipts and secrets.
    Tenants,
    /// A device that strangers, a tenant, a member of its mesh and a false hub attack.
    Siege,
}

/// Runs a scenario with many seeds.
fn run_scenario(path: &std::path::Path, seeds: std::ops::Range<u64>, is_json: bool) -> ExitCode {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let folder = path.parent().unwrap_or(std::path::Path::new(""));
    let scenario =
        text.and_then(|it| Scenario::parse_in(&it, folder).map_err(|error| error.to_string()));
    let done = scenario.and_then(|scenario| {
        let options = Options { watches_loops: true, watches_ways: true, ..Options::default() };
        let progress = |seed: u64, metrics: &Metrics| {
            if is_json {
                say!("{}", json!({ "seed": seed, "metrics": metrics }));
            }
        };
        run_many(&scenario, seeds, options, progress).map_err(|error| error.to_string())
    });
    match done {
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
        Ok((figures, missed)) => {
            if is_json {
                say!("{}", json!({ "figures": figures, "missed": missed }));
            } else {
                for (name, figure) in &figures {
                    let sure = figure.confidence.map_or(String::new(), |by| format!(" ± {by:.4}"));
                    let (mean, least, most) = (figure.mean, figure.least, figure.most);
                    say!("{name:<20} {mean:.4}{sure}   {least:.4} to {most:.4}");
                }
            }
            missed.iter().for_each(|seed| eprintln!("seed {seed}: an expectation isn't met"));
            if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds = match arguments.seed {
        Some(seed) => seed..seed.saturating_add(1),
        None => arguments.from..arguments.from.saturating_add(arguments.seeds),
    };
    if let Some(path) = &arguments.scenario {
        return run_scenario(path, seeds, arguments.json);
    }
    let started = Instant::now();
    let mut sum = Sum::default();
    for seed in seeds {
        sum.seeds += 1;
        let mut failed = false;
        let runs_kind = |kind| arguments.only.is_none_or(|only| only == kind);
        if runs_kind(Kind::Nodes) {
            let report = run(seed, arguments.trace);
            sum.add(report.trouble);
            add(&mut sum.outcomes, &report.outcomes);
            failed |= report.failure.is_some();
            show(&report, &arguments);
        }
        for kind in [Kind::Meshes, Kind::Devices].into_iter().filter(|kind| runs_kind(*kind)) {
            let options =
                Options { prints: arguments.trace, defect: arguments.plant, ..Options::default() };
            let scenario = match kind {
                Kind::Devices => hunt::draw_devices(seed),
                _ => hunt::draw(seed),
            };
            let finding = hunt::try_as(scenario, options);
            sum.add(finding.trouble);
            failed |= finding.failure.is_some();
            show_mesh(finding, kind, &arguments);
        }
        if runs_kind(Kind::Tenants) {
            let outcome = tenancy::run(seed, arguments.weakness);
            failed |= outcome.is_err();
            sum.add(outcome.as_ref().map_or_else(|_| Trouble::default(), Tally::trouble));
            show_tenants(seed, &outcome, &arguments);
        }
        if runs_kind(Kind::Siege) {
            let outcome = siege::run(seed, Cast::of(seed), arguments.weakness);
            failed |= outcome.is_err();
            sum.add(Trouble::default());
            show_siege(seed, &outcome, &arguments);
        }
        sum.failures += u64::from(failed);
        if failed && !arguments.keep_going {
            break;
        }
        if sum.seeds.is_multiple_of(100) && !arguments.json {
            eprintln!("{} seeds, {} failures, {:.1?}", sum.seeds, sum.failures, started.elapsed());
        }
    }
    sum.show(&arguments);
    if sum.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(report: &Report, arguments: &Arguments) {
    let Report { seed, trace_hash, events, outcomes, failure, trouble } = report;
    if arguments.json {
        let violation = failure.as_ref().map(|(violation, tail)| {
            json!({
                "invariant": violation.invariant.to_string(),
                "at_us": violation.at_us,
                "what": violation.what,
                "last_events": tail,
            })
        });
        let line = json!({
            "seed": seed,
            "trace_hash": format!("{trace_hash:016x}"),
            "events": events,
            "calls": outcomes.calls,
            "trouble": trouble,
            "violation": violation,
        });
        say!("{line}");
        return;
    }
    if let Some((violation, tail)) = failure {
        if !arguments.trace {
            tail.iter().for_each(|event| say!("{event}"));
        }
        say!("seed {seed} breaks: {}", violation.invariant);
        say!("at {:.6} s: {}", violation.at_us as f64 / 1e6, violation.what);
        say!("repeat with: cargo xtask sim --seed {seed} --trace");
    } else if arguments.seed.is_some() {
        say!("seed {seed}: {events} events, trace {trace_hash:016x}; {trouble}");
    }
}

fn show_mesh(finding: Finding, kind: Kind, arguments: &Arguments) {
    let name = if kind == Kind::Devices { "devices" } else { "mesh" };
    let (seed, is_failed) = (finding.scenario.seed, finding.failure.is_some());
    let is_wanted = is_failed && !arguments.as_drawn;
    let least = if is_wanted { hunt::minimise(finding.clone()) } else { finding.clone() };
    let scenario = least.scenario.to_toml();
    if arguments.json {
        let violation = finding.failure.map(|what| json!({ "what": what, "scenario": scenario }));
        let line = json!({
            name: seed,
            "events": finding.events,
            "trouble": finding.trouble,
            "violation": violation,
        });
        say!("{line}");
    } else if let Some(what) = finding.failure {
        if !arguments.trace {
            finding.last_events.iter().for_each(|event| say!("{event}"));
        }
        say!("{name} {seed} breaks: {what}");
        if is_wanted {
            say!("the least that was found to do so: {}", least.failure.unwrap_or_default());
        }
        say!("# run by: tenure sim FILE");
        say!("{scenario}");
        let only = if kind == Kind::Devices { "devices" } else { "meshes" };
        say!("repeat the whole with: cargo xtask sim --only {only} --seed {seed}");
    } else if arguments.seed.is_some() {
        say!("{name} {seed}: {} events; {}", finding.events, finding.trouble);
    }
}

fn show_tenants(seed: u64, outcome: &Result<Tally, String>, arguments: &Arguments) {
    match outcome {
        _ if arguments.json => {
            let violation = outcome.as_ref().err();
            say!("{}", json!({ "tenants": seed, "violation": violation }));
        }
        Ok(tally) if arguments.seed.is_some() => say!("tenants {seed}: {tally}"),
        Ok(_) => {}
        Err(what) => {
            say!("tenants {seed} breaks: {what}");
            say!("repeat with: cargo xtask sim --only tenants --seed {seed}");
        }
    }
}

fn show_siege(seed: u64, outcome: &Result<siege::Tally, String>, arguments: &Arguments) {
    match outcome {
        _ if arguments.json => {
            let (tally, violation) = (outcome.as_ref().ok(), outcome.as_ref().err());
            say!("{}", json!({ "siege": seed, "tally": tally, "violation": violation }));
        }
        Ok(tally) if arguments.seed.is_some() => say!("siege {seed}: {tally}"),
        Ok(_) => {}
        Err(what) => {
            say!("siege {seed} breaks: {what}");
            say!("repeat with: cargo xtask sim -- --only siege --seed {seed}");
        }
    }
}

/// The sum of a hunt's results.
#[derive(Default)]
struct Sum {
    seeds: u64,
    worlds: u64,
    failures: u64,
    trouble: Trouble,
    /// Results of calls, where nodes reach each other by a hub.
    outcomes: Outcomes,
}

impl Sum {
    fn add(&mut self, trouble: Trouble) {
        self.worlds += 1;
        self.trouble += trouble;
    }

    fn show(&self, arguments: &Arguments) {
        let Self { seeds, worlds, failures, trouble, outcomes } = self;
        let Outcomes { runs, successes, failures: failed, failed_callbacks, ticks, .. } = outcomes;
        if arguments.json {
            let line = json!({
                "seeds": seeds,
                "worlds": worlds,
                "failures": failures,
                "trouble": trouble,
                "executions": runs,
                "successes": successes,
                "failed_calls": failed,
                "failed_callbacks": failed_callbacks,
            });
            say!("{line}");
            return;
        }
        say!("{seeds} seeds, {worlds} worlds, {failures} seeds broke an invariant");
        say!("{trouble}");
        if outcomes.calls > 0 {
            say!("by a hub: {runs} executions, {successes} successes, {ticks} ticks");
            say!("failures by status: {failed:?}, by callback: {failed_callbacks}");
        }
    }
}

fn add(total: &mut Outcomes, one: &Outcomes) {
    total.calls += one.calls;
    total.runs += one.runs;
    total.successes += one.successes;
    total.failed_callbacks += one.failed_callbacks;
    total.ticks += one.ticks;
    for (status, count) in &one.failures {
        *total.failures.entry(*status).or_default() += count;
    }
}
