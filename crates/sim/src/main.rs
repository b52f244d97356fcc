//! `tenure-sim`: hunts for seeds whose runs break an invariant, and replays them.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use serde_json::json;
use tenure_sim::{Outcomes, Report, run};

/// Prints a line. Whoever closes the pipe has read enough.
macro_rules! say {
    ($($text:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Run many nodes under one seeded clock, network and flash.
///
/// Each seed is a world of its own: how many devices, what they run, what is lost and when the
/// power fails. The first seed that breaks an invariant ends the hunt with exit status 1.
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
    /// Go on after a failure.
    #[arg(long)]
    keep_going: bool,
    /// Print one JSON object a seed, and one for the summary.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds = match arguments.seed {
        Some(seed) => seed..seed.saturating_add(1),
        None => arguments.from..arguments.from.saturating_add(arguments.seeds),
    };
    let started = Instant::now();
    let (mut runs, mut failures, mut total) = (0_u64, 0_u64, Outcomes::default());
    for seed in seeds {
        let report = run(seed, arguments.trace);
        runs += 1;
        add(&mut total, &report.outcomes);
        let failed = report.failure.is_some();
        failures += u64::from(failed);
        show(&report, &arguments);
        if failed && !arguments.keep_going {
            break;
        }
        if runs.is_multiple_of(100) && !arguments.json {
            eprintln!("{runs} seeds, {failures} failures, {:.1?}", started.elapsed());
        }
    }
    summarise(runs, failures, &total, &arguments);
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(report: &Report, arguments: &Arguments) {
    let Report { seed, trace_hash, events, outcomes, failure } = report;
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
        say!("seed {seed}: {events} events, trace {trace_hash:016x}");
    }
}

fn summarise(runs: u64, failures: u64, total: &Outcomes, arguments: &Arguments) {
    let Outcomes { calls, runs: executions, successes, failures: failed, failed_callbacks, ticks } =
        total;
    if arguments.json {
        let line = json!({
            "seeds": runs,
            "failures": failures,
            "calls": calls,
            "executions": executions,
            "successes": successes,
            "failed_calls": failed,
            "failed_callbacks": failed_callbacks,
        });
        say!("{line}");
        return;
    }
    say!("{runs} seeds, {failures} broke an invariant");
    say!("{calls} calls, {executions} executions, {successes} successes, {ticks} ticks");
    say!("failures by status: {failed:?}, by callback: {failed_callbacks}");
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
