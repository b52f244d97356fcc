//! `test`: sets up what is missing, builds everything and runs every test.

mod ahead;
mod beside;
mod changed;
pub(crate) mod dearest;
pub(crate) mod firmware;
mod transcript;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::failure::{Failure, Recipe};
use crate::report::{DEAREST, Report, Tally, Tests, Verdict};
use crate::setup::{self, Need};
use crate::suites::oci;
use crate::tenure::{self, Profile};
use crate::{check, demo, files, mesh, mutants, paint, planted, process, toolchain};
use ahead::Ahead;
use beside::Beside;
use transcript::Transcript;

/// Set up this machine, build everything, run every test.
///
/// A test that fails is run once more, alone, at the end; one that passes then is no failure, but is named as unsteady.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask test --quick\n  cargo xtask test --changed\n  \
                  cargo xtask test --only 'the demo'\n  \
                  cargo xtask test --until-failure 50 calls_over_a_rough_network")]
pub(crate) struct Arguments {
    /// Only the tests that run on this machine: no lints, no docs, no bare-metal builds.
    #[arg(long)]
    quick: bool,
    /// Only the steps whose name contains this.
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// Only the tests of packages that depend on what changed since BASE, by default since main was left,
    /// and the checks that take seconds.
    #[arg(long, value_name = "BASE", num_args = 0..=1, conflicts_with_all = ["quick", "only"])]
    changed: Option<Option<String>>,
    /// Only the tests, again and again until one fails, at most N times.
    #[arg(long, value_name = "N", conflicts_with_all = ["quick", "only", "changed"])]
    until_failure: Option<u32>,
    /// Of those that are repeated, only the tests whose name contains this.
    #[arg(requires = "until_failure")]
    filter: Option<String>,
    /// Only the steps that run beside the tests, and write the report to this file.
    #[arg(long, value_name = "FILE", hide = true)]
    beside: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let only = arguments.only.as_deref();
    if let Some(file) = &arguments.beside {
        return beside::run(file, only, root);
    }
    let is_whole =
        !arguments.quick && arguments.changed.is_none() && arguments.until_failure.is_none();
    let needs: &[Need] = if is_whole { &setup::TESTS } else { &setup::QUICK_TESTS };
    let ahead = if is_whole && only.is_none() { Some(Ahead::start(root)?) } else { None };
    setup::ensure(needs)?;
    setup::ensure_languages()?;
    if let Err(error) = setup::fetch_packages(root) {
        // The tests that take them try again, and fail; all others run.
        println!("{} {error:#}", paint::stdout().bad("failed:"));
    }
    let mut report = Report::new("test", only);
    if let Some(rounds) = arguments.until_failure {
        until_failure(&mut report, rounds, arguments.filter.as_deref(), root);
        return report.finish(root);
    }
    check::quick_steps(&mut report, root, false);
    if let Some(base) = &arguments.changed {
        changed_steps(&mut report, base.as_deref(), root)?;
    } else {
        let beside = if is_whole { Some(Beside::start(only)?) } else { None };
        host_steps(&mut report, ahead, root);
        if let Some(beside) = beside {
            beside.finish(&mut report)?;
        }
    }
    report.try_again(passes_alone);
    report.finish(root)
}

/// Runs the tests until one fails.
fn until_failure(report: &mut Report, rounds: u32, filter: Option<&str>, root: &Path) {
    let options: Vec<_> = filter.into_iter().collect();
    for round in 1..=rounds {
        report.step(&format!("round {round} of {rounds}"), || {
            Ok(Verdict::Tests(tests_with(&mut workspace_tests(root), &options)?))
        });
        if report.tally().failed > 0 {
            return;
        }
    }
}

/// Runs the tests of the packages that depend on what changed.
fn changed_steps(report: &mut Report, base: Option<&str>, root: &Path) -> Result<()> {
    let chosen = changed::packages(base, root)?;
    if chosen.is_empty() {
        println!("no package depends on what changed");
        return Ok(());
    }
    println!("{}", paint::stdout().strong("== packages that depend on what changed"));
    for (package, reason) in &chosen {
        println!("{package}: {reason}");
    }
    report.step("tests of what changed", || {
        let mut command = process::cargo(root);
        if chosen.contains_key(OF_DEVICES) {
            command.env(firmware::LIST, firmware::build(root)?);
        }
        command.arg("test").args(chosen.keys().flat_map(|package| ["--package", package]));
        tests(with_threads(&mut command))
    });
    Ok(())
}

/// Whether a test that failed passes when nothing else runs.
fn passes_alone(recipe: &Recipe, failure: &Failure) -> Result<bool> {
    let (status, transcript) = follow(&mut recipe.again(failure))?;
    let (tally, _) = transcript.end();
    Ok(status.success() && tally.passed > 0)
}

/// What the step *build* leaves for the steps behind it.
struct Built {
    /// The list of [`firmware`].
    firmware: PathBuf,
    /// The command `tenure` as its own tests take it, beyond the reach of later builds.
    tenure: PathBuf,
}

/// The steps on this machine, of which the build may have begun.
fn host_steps(report: &mut Report, ahead: Option<Ahead>, root: &Path) {
    // None if the step is left out; who needs something of it builds that then.
    let built = OnceLock::new();
    report.step("build", || build(ahead, &built, root));
    let built = built.get();
    let workspace_tests = |root| {
        let mut command = workspace_tests(root);
        command.envs(built.map(|built| (firmware::LIST, &built.firmware)));
        command
    };
    report.step("tests", || tests(&mut workspace_tests(root)));
    report.step("a sample of devices and hubs on IPv6", || {
        if std::net::UdpSocket::bind("[::1]:0").is_err() {
            return Ok(Verdict::Skipped("this computer has no IPv6".into()));
        }
        // With the features of the tests above, so that nothing is compiled twice.
        let mut command = workspace_tests(root);
        command.args(["--test", "devices"]).env(tenure_testbed::FAMILY, "6");
        tests_with(&mut command, &IPV6_SAMPLE).map(Verdict::Tests)
    });
    further_steps(report, built, root);
}

/// What isn't a test of the workspace.
fn further_steps(report: &mut Report, built: Option<&Built>, root: &Path) {
    let tenure = || match built {
        Some(built) => Ok(built.tenure.clone()),
        None => tenure::built(root, Profile::Debug),
    };
    report.step("the demo", || {
        demo::set_up()?;
        demo::show(&tenure()?, root).map(|_| Verdict::Passed)
    });
    report.step("planted mistakes are found", || {
        let mut command = process::cargo(root);
        planted::plant(&mut command, "forgetful,planted")?;
        command.args([
            "test",
            "--package",
            "tenure-sim",
            "--test",
            "worlds",
            "--test",
            "weaknesses",
        ]);
        tests_with(&mut command, &["are_found"]).map(Verdict::Tests)
    });
    report.step("mutants of the sample are found", || {
        mutants::sample(root).map(|()| Verdict::Passed)
    });
    report.step("the OCI conformance suite", || oci::run_if_there(&tenure()?));
    report.step("tests of the SDK", || sdk_tests(root));
    report.step("a mesh of six devices on raw frames", || mesh::test(&tenure()?, root));
}

/// Compiles the tests, the firmware that they start, and the machines that those with devices share.
fn build(ahead: Option<Ahead>, built: &OnceLock<Built>, root: &Path) -> Result<Verdict> {
    let start = Instant::now();
    // Side by side, as linking a firmware keeps one processor busy.
    let (programs, list) = std::thread::scope(|scope| {
        let list = scope.spawn(|| firmware::build(root));
        let ahead = ahead.map_or(Ok(()), Ahead::finish);
        let programs = ahead.and_then(|()| process::run(&mut ahead::command(root)));
        (programs, list.join().expect("the thread returns"))
    });
    programs?;
    let tenure = tenure::kept(root)?;
    let _ = built.set(Built { firmware: list?, tenure });
    let mut machines = workspace_tests(root);
    machines.args(["--test", "devices", "--", "--exact", MACHINES]);
    process::run(&mut machines).context("the machines of the tests with devices")?;
    let compiled = start.elapsed();
    Ok(Verdict::Tests(Tests { compiled, ..Tests::from(Tally::ONE_PASSED) }))
}

/// The package whose tests start emulated boards.
const OF_DEVICES: &str = "tenure-cli";
/// The test with devices that builds the machines which others take.
const MACHINES: &str = "guests::machines_that_tests_share_are_built";

/// The words that choose the sample: calls between devices, kills, the mesh, the hub and its pages.
const IPV6_SAMPLE: [&str; 5] = [
    "skeleton::",
    "kill::killed_hub_comes_back",
    "mesh::a_call_by_name",
    "hub::",
    "pages::every_command_of_the_readme",
];

/// `cargo test` of the main workspace.
fn workspace_tests(root: &Path) -> Command {
    let mut command = process::cargo(root);
    with_threads(command.args(["test", "--workspace"]));
    command
}

/// In more threads than there are cores: tests with devices wait for them two thirds of their time.
fn with_threads(command: &mut Command) -> &mut Command {
    let threads = 3 * std::thread::available_parallelism().map_or(1, |cores| cores.get());
    command.env(THREADS, threads.to_string())
}

/// How many threads the programs of a `cargo test` have.
fn threads_of(command: &Command) -> usize {
    let set = command.get_envs().find(|(name, _)| *name == THREADS);
    let set = set.and_then(|(_, value)| value?.to_str()?.parse().ok());
    set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()))
}

/// libtest's name for its number of threads.
const THREADS: &str = "RUST_TEST_THREADS";

/// The part of the SDK that can be tested without a machine; the products go to our target folder.
fn sdk_tests(root: &Path) -> Result<Verdict> {
    let mut command = process::cargo(&root.join("sdk/rust"));
    command.env("CARGO_TARGET_DIR", toolchain::target_folder(root));
    tests(command.arg("test"))
}

/// Names the file to which `tenure-testbed` adds a line for each test that lacks something on this machine.
const SKIPPED: &str = "TENURE_SKIPPED";

/// Runs a `cargo test` to its end and counts its tests.
fn tests(command: &mut Command) -> Result<Verdict> {
    tests_with(command, &[]).map(Verdict::Tests)
}

/// As [`tests`]; `options` are libtest's.
pub(crate) fn tests_with(command: &mut Command, options: &[&str]) -> Result<Tests> {
    let recipe = Recipe::new(command, options);
    // Apart from the tests, so that a terminal sees cargo's progress.
    let start = Instant::now();
    process::run(&mut recipe.build())?;
    let compiled = start.elapsed();
    command.arg("--no-fail-fast").arg("--").args(options);
    let skipped = tempfile::NamedTempFile::new()?;
    command.env(SKIPPED, skipped.path());
    let (status, transcript) = follow(command)?;
    let all = transcript.durations(threads_of(command));
    let dearest = dearest::dearest(all, DEAREST);
    let (mut tally, failures) = transcript.end();
    let paint = paint::stdout();
    for failure in &failures {
        println!("{} {}", paint.bad("failed:"), failure.name());
    }
    let skipped = files::read(skipped.path())?;
    for line in skipped.lines() {
        println!("{} {line}", paint.faint("skipped:"));
    }
    // The harness counted them as passed.
    let count = skipped_tests(&skipped);
    tally.passed = tally.passed.saturating_sub(count);
    tally.skipped += count;
    if tally.failed == 0 {
        process::succeeded(command, status)?;
    }
    Ok(Tests { tally, failures, recipe, dearest, compiled })
}

/// Runs a `cargo test`, shows what it prints, and reads it.
fn follow(command: &mut Command) -> Result<(ExitStatus, Transcript)> {
    let mut transcript = Transcript::default();
    let start = Instant::now();
    command.env("CARGO_TERM_COLOR", "never");
    let status = process::each_line_of_both(command, |line| {
        println!("{line}");
        transcript.read(line, start.elapsed());
    })?;
    Ok((status, transcript))
}

/// How many tests said `NAME (missing: …)`, some more than once.
fn skipped_tests(lines: &str) -> usize {
    let names = lines.lines().filter_map(|line| line.split_once(" (missing: "));
    names.map(|(name, _)| name).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_test_that_lacks_two_things_is_skipped_once() {
        let lines =
            "machines (missing: valgrind)\nmachines (missing: QEMU)\nbits (missing: QEMU)\n";
        assert_eq!(skipped_tests(lines), 2);
    }
}
