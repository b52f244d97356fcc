//! The steps for other machines than this one, in a process beside the tests.
//!
//! Linking a firmware keeps one processor busy, and tests with devices wait for half of their time: side by
//! side they take as long as the processors need. Tests come first, as some of them have deadlines.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command};

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

use super::{tests, tests_with};
use crate::board::{Board, esp32, rp2040};
use crate::report::{Report, Verdict};
use crate::{check, process};

/// How much these steps are nicer than the tests.
const NICENESS: i32 = 5;

/// `cargo test` of the engine, optimised with the crates that it calls. What it is tested by (a parser, a generator,
/// another engine) takes longer to optimise than to run as it is.
const OPTIMISED: [&str; 12] = [
    "test",
    "--release",
    "--package",
    "tenure-vm",
    "--config",
    r#"profile.release.package."*".opt-level=0"#,
    "--config",
    r#"profile.release.package."*".debug=false"#,
    "--config",
    "profile.release.package.libm.opt-level=3",
    "--config",
    "profile.release.package.zeroize.opt-level=3",
];

/// The process that runs these steps.
pub(super) struct Beside {
    child: Child,
    /// The output, so that the lines of both don't mix.
    output: NamedTempFile,
    report: NamedTempFile,
}

impl Beside {
    /// Starts them, or those whose name contains `only`.
    pub(super) fn start(only: Option<&str>) -> Result<Self> {
        let (output, report) = (NamedTempFile::new()?, NamedTempFile::new()?);
        let lines = output.reopen()?;
        let child = Command::new(std::env::current_exe()?)
            .args(["test", "--beside"])
            .arg(report.path())
            .args(only.into_iter().flat_map(|words| ["--only", words]))
            .stdout(lines.try_clone()?)
            .stderr(lines)
            .spawn()
            .context("cannot start the steps beside the tests")?;
        println!("lints, firmware and emulators run beside the tests; what they print follows");
        Ok(Self { child, output, report })
    }

    /// Waits for the steps, prints what they printed, and adds them to `report`.
    pub(super) fn finish(mut self, report: &mut Report) -> Result<()> {
        println!("== beside the tests");
        self.child.wait()?;
        io::copy(&mut File::open(self.output.path())?, &mut io::stdout())?;
        report.join(self.report.path()).context("the steps beside the tests ended early")
    }
}

/// Runs the steps, and writes their report to `file`.
pub(super) fn run(file: &Path, only: Option<&str>, root: &Path) -> Result<()> {
    rustix::process::nice(NICENESS)?;
    let mut report = Report::new("test", only);
    // First, as it takes nothing that the build of the tests holds. Optimised, the engine dispatches by tail calls; in
    // a debug build it can't.
    report.step("tests of the vm, optimised", || tests(process::cargo(root).args(OPTIMISED)));
    report.step("tests of the vm on emulated RV32 and Thumb", || {
        let mut command = process::cargo(root);
        command.args(OPTIMISED).args(["--test", "emulated"]);
        tests_with(&mut command, &["--ignored", "--nocapture"]).map(Verdict::Tests)
    });
    check::firmware_step(&mut report, root);
    check::slow_steps(&mut report, root, false, false);
    for board in [Board::Esp32c3, Board::Esp32c6] {
        let step = format!("the image of the {}, by its maker's tool", board.name());
        report.step(&step, || esp32::test(board, root));
    }
    report.step("an RP2040 from its boot ROM on", || rp2040::test(root));
    report.write(file)
}
