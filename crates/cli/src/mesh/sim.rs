//! `tenure sim`: runs a mesh that a file describes, and says what came of it.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::json;
use tenure_protocols::plug_in::Registry;
use tenure_sim::Trouble;
use tenure_sim::mesh::{
    FigureRange, GivenUp, Metrics, Options, Outcome, Scenario, run as run_scenario,
};
use tenure_wire::host_call::HostError;

use crate::terminal::output::Output;
use crate::whole_file;

/// How wide the progress bar is.
const BAR: usize = 40;
/// In larger meshes it isn't looked for loops at every change of a route.
const WATCHED_NODES_MAX: usize = 300;

/// Simulate a mesh of devices as a scenario file describes it.
///
/// Exits with status 1 if something that the scenario expects isn't met.
///
/// Example: tenure sim scenarios/cut.toml --html cut.html
#[derive(clap::Args)]
pub struct Arguments {
    /// The scenario, a TOML file.
    scenario: PathBuf,
    /// Draw everything that is left to chance from this number, instead of the scenario's.
    #[arg(long)]
    seed: Option<u64>,
    /// Write a page that plays the run back in a browser, and needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a line of figures for each second.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write all figures and what came of the expectations as JSON.
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Print what the scenario expects and what came of it, and no other figures.
    #[arg(long)]
    check: bool,
}

/// Runs `tenure sim`.
///
/// # Errors
/// The file can't be read or isn't a scenario, a file can't be written, or an expectation isn't met.
pub fn run(arguments: &Arguments, registry: Registry, output: &Output) -> anyhow::Result<()> {
    let path = &arguments.scenario;
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut scenario =
        Scenario::parse_in(&text, folder).with_context(|| format!("in {}", path.display()))?;
    scenario.seed = arguments.seed.unwrap_or(scenario.seed);
    let options = Options {
        watches_loops: scenario.topology.nodes() <= WATCHED_NODES_MAX,
        watches_ways: true,
        records: arguments.html.is_some(),
        registry,
        ..Options::default()
    };
    let outcome = run_scenario(&scenario, options, progress())
        .with_context(|| format!("in {}", path.display()))?;
    let object = outcome.to_json(&scenario);
    if let Some(file) = &arguments.html {
        write(file, &outcome.to_html(&scenario))?;
    }
    if let Some(file) = &arguments.csv {
        write(file, &outcome.to_csv())?;
    }
    if let Some(file) = &arguments.metrics {
        write(file, &format!("{object:#}\n"))?;
    }
    show(&scenario, &outcome, arguments.check, output);
    let missed = outcome.verdicts(&scenario).iter().filter(|verdict| !verdict.is_met).count();
    if missed > 0 {
        bail!("seed {}: {missed} of the expectations not met", scenario.seed);
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    whole_file::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// The progress of a run, on a terminal.
fn progress() -> impl FnMut(f64) {
    let is_shown = std::io::stderr().is_terminal();
    let mut shown = usize::MAX;
    move |share: f64| {
        let percent = (share * 100.0) as usize;
        if !is_shown || percent == shown {
            return;
        }
        shown = percent;
        let full = percent * BAR / 100;
        let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR - full));
        let end = if percent >= 100 { "\n" } else { "" };
        // A user who closes standard error doesn't want to see it.
        let _ = write!(std::io::stderr(), "\r[{bar}] {percent:>3} %{end}");
    }
}

fn show(scenario: &Scenario, outcome: &Outcome, is_brief: bool, output: &Output) {
    if output.is_json() {
        return output.line("", &outcome.to_json(scenario));
    }
    let print = |text: &str| output.line(text, &json!(null));
    let nodes = scenario.topology.nodes();
    let (name, seed, seconds) = (&scenario.name, scenario.seed, scenario.seconds);
    print(&format!("{name}: {nodes} nodes, {seconds} s, seed {seed}"));
    let figures = if is_brief { Vec::new() } else { figures(&outcome.metrics) };
    for (name, value) in figures {
        print(&format!("  {name:<34} {value}"));
    }
    let of_protocols = outcome.metrics.figures.iter().filter(|_| !is_brief);
    for (name, FigureRange { nodes, known, least, mean, most }) in of_protocols {
        let range = format!("{least} to {most}, mean {mean:.3}, on {known} of {nodes}");
        print(&format!("  {name:<34} {range}"));
    }
    for event in &outcome.last_events {
        print(event);
    }
    for verdict in outcome.verdicts(scenario) {
        let mark = if verdict.is_met { "ok  " } else { "MISS" };
        print(&format!("  {mark} {}: {}", verdict.expected, verdict.was));
    }
}

/// The figures that say something about this run.
fn figures(metrics: &Metrics) -> Vec<(&'static str, String)> {
    let mut figures = Vec::new();
    if let Some(at_s) = metrics.converged_s {
        figures.push(("every way known after", format!("{at_s:.2} s")));
    }
    if metrics.sent > 0 {
        let (delivered, sent) = (metrics.delivered, metrics.sent);
        let what = if metrics.devices.is_some() { "calls answered" } else { "datagrams delivered" };
        figures
            .push((what, format!("{delivered} of {sent} ({:.2} %)", 100.0 * metrics.delivery())));
        let (median, most) = (metrics.latency_median_ms, metrics.latency_99_ms);
        figures.push(("time on the way, median and 99 %", format!("{median:.1} ms, {most:.1} ms")));
    }
    let GivenUp { no_way, not_taken, full, too_far, overdue } = metrics.given_up;
    if no_way + not_taken + full + too_far + overdue > 0 {
        let why = format!(
            "{no_way} no way, {not_taken} not taken, {full} no room, {too_far} too far, {overdue} overdue"
        );
        figures.push(("datagrams given up", why));
    }
    if metrics.sent_while_parted > 0 {
        figures.push(("sent while nodes were parted", metrics.sent_while_parted.to_string()));
    }
    if metrics.broadcasts > 0 {
        let (complete, all) = (metrics.broadcasts_complete, metrics.broadcasts);
        figures.push(("broadcasts that reached all", format!("{complete} of {all}")));
        let each = metrics.transmissions_per_broadcast;
        figures.push(("transmissions each", format!("{each:.1}")));
    }
    if let Some(devices) = &metrics.devices {
        figures.push(("calls that ran", devices.executions.to_string()));
        for (status, count) in &devices.failed_calls {
            let why = HostError::from_code(*status)
                .map_or_else(|| format!("with {status}"), |error| error.to_string());
            figures.push(("calls that failed", format!("{count}: {why}")));
        }
        let Trouble { power_cuts: cuts, torn_writes: torn, sleeps, replays, .. } = metrics.trouble;
        figures.push(("power cuts, of those in a write", format!("{cuts}, {torn}")));
        figures.push(("deep sleeps", sleeps.to_string()));
        if replays > 0 {
            let taken = devices.replays_taken;
            figures.push(("frames replayed", format!("{replays}; {taken} were taken")));
        }
    }
    if let Some(error) = metrics.aggregate_error {
        figures.push(("average off by at most", format!("{error:.4}")));
    }
    figures.push(("longest way", format!("{} hops", metrics.hops_max)));
    let (control, payload) =
        (metrics.control_bytes_per_node_second, metrics.payload_bytes_per_node_second);
    figures.push(("bytes a node and second: control", format!("{control:.1}")));
    figures.push(("… and payload", format!("{payload:.1}")));
    let (sent, collided, lost) = (metrics.transmissions, metrics.collisions, metrics.lost);
    figures.push(("frames on the air", format!("{sent}; {collided} collided, {lost} were lost")));
    figures
}
