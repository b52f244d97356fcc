//! `test`: sets up what is missing, builds everything and runs every test.

mod beside;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::report::{Report, Tally, Verdict};
use crate::setup::{self, Need};
use crate::{check, demo, files, mesh, mutants, paint, planted, process, toolchain};
use beside::Beside;

/// Set up this machine, build everything, run every test.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask test --quick")]
pub(crate) struct Arguments {
    /// Only the tests that run on this machine: no lints, no docs, no bare-metal builds.
    #[arg(long)]
    quick: bool,
    /// Only the steps that run beside the tests, and write the report to this file.
    #[arg(long, value_name = "FILE", hide = true)]
    beside: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    if let Some(file) = &arguments.beside {
        return beside::run(file, root);
    }
    let needs: &[Need] = if arguments.quick { &setup::QUICK_TESTS } else { &setup::TESTS };
    setup::ensure(needs)?;
    let mut report = Report::default();
    check::quick_steps(&mut report, root, false);
    let beside = if arguments.quick { None } else { Some(Beside::start()?) };
    host_steps(&mut report, root);
    if let Some(beside) = beside {
        beside.finish(&mut report)?;
    }
    report.finish()
}

/// The steps on this machine.
fn host_steps(report: &mut Report, root: &Path) {
    report.step("build", || {
        // With the features that the tests use, so that nothing is compiled twice.
        let mut command = process::cargo(root);
        process::run(command.args(["test", "--workspace", "--no-run"])).map(|()| Verdict::Passed)
    });
    report.step("tests", || {
        let mut command = process::cargo(root);
        // Those with devices wait for them two thirds of their time.
        let threads = 3 * std::thread::available_parallelism().map_or(1, |cores| cores.get());
        command.args(["test", "--workspace"]).env("RUST_TEST_THREADS", threads.to_string());
        tests(&mut command)
    });
    report.step("the demo", || {
        demo::run(&demo::Arguments::default(), root).map(|()| Verdict::Passed)
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
        tests_with(&mut command, &["are_found"])
    });
    report.step("mutants of the sample are found", || {
        mutants::sample(root).map(|()| Verdict::Passed)
    });
    report.step("tests of the SDK", || sdk_tests(root));
    report.step("a mesh of six devices on raw frames", || mesh::test(root));
}

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
    tests_with(command, &[])
}

/// As [`tests`]; `options` are libtest's.
pub(crate) fn tests_with(command: &mut Command, options: &[&str]) -> Result<Verdict> {
    command.arg("--no-fail-fast").arg("--").args(options);
    let mut sum = Tally::default();
    let mut failed = Vec::new();
    let skipped = tempfile::NamedTempFile::new()?;
    command.env(SKIPPED, skipped.path());
    let status = process::each_line(command, |line| {
        println!("{line}");
        if let Some(tally) = parse_result(line) {
            sum += tally;
        } else if let Some(test) = parse_failure(line) {
            failed.push(test.to_owned());
        }
    })?;
    for test in failed {
        println!("{} {test}", paint::stdout().bad("failed:"));
    }
    let skipped = files::read(skipped.path())?;
    for line in skipped.lines() {
        println!("{} {line}", paint::stdout().faint("skipped:"));
    }
    // The harness counted them as passed.
    let count = skipped_tests(&skipped);
    sum.passed = sum.passed.saturating_sub(count);
    sum.skipped += count;
    if sum.failed == 0 {
        // It did not build, or a test binary died before it could count.
        process::succeeded(command, status)?;
    }
    Ok(Verdict::Tests(sum))
}

/// Reads libtest's `test result: ok. 12 passed; 0 failed; …`.
fn parse_result(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        counts.split("; ").find_map(|part| part.strip_suffix(word)?.trim().parse().ok())
    };
    Some(Tally {
        passed: count("passed")?,
        failed: count("failed")?,
        ignored: count("ignored")?,
        skipped: 0,
    })
}

/// How many tests said `NAME (missing: …)`, some more than once.
fn skipped_tests(lines: &str) -> usize {
    let names = lines.lines().filter_map(|line| line.split_once(" (missing: "));
    names.map(|(name, _)| name).collect::<BTreeSet<_>>().len()
}

/// Reads the name in libtest's `test NAME ... FAILED`.
fn parse_failure(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn result_lines_of_libtest_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        let expected = Tally { passed: 12, failed: 3, ignored: 1, skipped: 0 };
        assert_eq!(parse_result(line), Some(expected));
        assert_eq!(parse_result("test result: ok."), None);
        assert_eq!(parse_result("test wire::name ... ok"), None);
    }

    #[test]
    fn a_test_that_lacks_two_things_is_skipped_once() {
        let lines =
            "machines (missing: valgrind)\nmachines (missing: QEMU)\nbits (missing: QEMU)\n";
        assert_eq!(skipped_tests(lines), 2);
    }

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(parse_failure("test wire::name ... FAILED"), Some("wire::name"));
        assert_eq!(parse_failure("test wire::name ... ok"), None);
    }
}
