//! Programs that others published, unmodified: each is fetched from its registry, compiled for WASI and for this machine, and
//! run with the same arguments, files and input as a machine on a device and natively. What both print must be the same.
//! Those that fit are run on an emulated board, too.
//!
//! A program that fails stays in the table, with the reason.

mod build;
mod machine;
mod page;
mod table;
mod verdict;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::report::Reported;
use crate::tenure::{self, Profile};
use crate::toolchain;
use build::{Absent, Built, Fetched};
use machine::Firmware;
use table::{Output, Program};
use verdict::{Figures, OnBoard, Outcome, Verdict};

/// Runs all programs, or those whose names contain `filter`, and fails if one fails for a reason that the table doesn't say.
/// With `with_board` those that fit are run on an emulated board, too; with `write` the table of docs/programs.md is what
/// came of them.
pub(super) fn run(root: &Path, filter: Option<&str>, with_board: bool, write: bool) -> Result<()> {
    let mut programs = table::read()?;
    programs.retain(|program| filter.is_none_or(|filter| program.name.as_str().contains(filter)));
    ensure!(!programs.is_empty(), "no program has such a name");
    let bench = Bench {
        tenure: tenure::built(root, Profile::Debug)?,
        products: std::path::absolute(toolchain::target_folder(root))?.join("programs-by-others"),
        host: toolchain::host()?,
        firmware: with_board.then(|| Firmware::build(root)).transpose()?,
    };
    let mut outcomes = Vec::new();
    for program in &programs {
        let outcome = match bench.compared(program) {
            Ok(figures) => Outcome::Same(figures),
            Err(error) => match error.downcast_ref::<Absent>() {
                Some(absent) => Outcome::Skipped(absent.to_string()),
                None => Outcome::Failed(format!("{error:#}")),
            },
        };
        println!("{}", line(program, &outcome));
        outcomes.push(outcome);
    }
    if write {
        page::write(root, &programs, &outcomes)?;
    } else {
        println!("{}", page::table(&programs, &outcomes));
    }
    judge(&programs, &outcomes)
}

/// What programs are built and run with.
struct Bench {
    tenure: PathBuf,
    /// The folder that all programs are built in.
    products: PathBuf,
    /// This machine's target triple.
    host: String,
    /// A board's, if programs are run there, too.
    firmware: Option<Firmware>,
}

impl Bench {
    /// What the program takes, if it prints as a machine what it prints natively.
    fn compared(&self, program: &Program) -> Result<Figures> {
        let fetched = build::fetch(program, &self.products)?;
        let built = fetched.build(&self.host)?;
        let native = machine::natively(program, &built)?;
        let (output, figures) = machine::as_machine(&self.tenure, program, &built)?;
        check(program, &native, &output)?;
        let board = self.on_board(program, &fetched, &built, &figures, &native)?;
        Ok(Figures { board, ..figures })
    }

    /// What becomes of the program on the board. Long output isn't tried there: a board's log keeps its last lines.
    fn on_board(
        &self,
        program: &Program,
        fetched: &Fetched<'_>,
        built: &Built,
        figures: &Figures,
        native: &[u8],
    ) -> Result<OnBoard> {
        let Some(firmware) = &self.firmware else { return Ok(OnBoard::NotTried) };
        if program.output == Output::Log {
            return Ok(OnBoard::NotTried);
        }
        if machine::is_too_large_for_board(figures.image_bytes) {
            return Ok(OnBoard::MoreFlash);
        }
        let wasm = fetched.for_wasi(machine::BOARD_STACK_BYTES)?;
        let (outcome, output) =
            machine::on_board(&self.tenure, program, &wasm, &built.files, firmware)?;
        if let OnBoard::Same { .. } = outcome {
            check(program, native, &output).context("on the board")?;
        }
        Ok(outcome)
    }
}

/// Whether a machine's output is the native one.
fn check(program: &Program, native: &[u8], output: &[u8]) -> Result<()> {
    match verdict::difference(native, output, &program.varies) {
        None => Ok(()),
        Some(difference) => bail!(difference),
    }
}

/// The line that is said of a program as soon as it has been run.
fn line(program: &Program, outcome: &Outcome) -> String {
    let name = &program.name;
    let error: &str = match outcome {
        Outcome::Same(Figures { board: OnBoard::Fails(reason), .. }) => reason,
        Outcome::Same(_) => "",
        Outcome::Failed(error) | Outcome::Skipped(error) => error,
    };
    match (outcome.verdict(program), program.fails.as_deref().unwrap_or_default()) {
        (Verdict::Passed, _) if error.is_empty() => format!("ok      {name}"),
        (Verdict::Passed, _) => format!("ok      {name}, but not on the board: {error}"),
        (Verdict::FailsForReason, reason) => format!("fails   {name}: {reason}\n    {error}"),
        (Verdict::Failed, _) => format!("FAILED  {name}: {error}"),
        (Verdict::NeedlesslyNamed, _) => {
            format!("FAILED  {name}: is named as a failure, and is none")
        }
        (Verdict::Skipped, _) => format!("skipped {name}: {error}"),
    }
}

/// Prints the sums, and fails if a program failed.
fn judge(programs: &[Program], outcomes: &[Outcome]) -> Result<()> {
    let verdicts = programs.iter().zip(outcomes).map(|(program, it)| it.verdict(program));
    let (mut passed, mut named, mut failed, mut skipped) = (0, 0, 0, 0);
    for verdict in verdicts {
        match verdict {
            Verdict::Passed => passed += 1,
            Verdict::FailsForReason => named += 1,
            Verdict::Failed | Verdict::NeedlesslyNamed => failed += 1,
            Verdict::Skipped => skipped += 1,
        }
    }
    let all = programs.len();
    println!(
        "{all} programs: {passed} passed, {named} fail for a reason, {failed} failed, {skipped} skipped"
    );
    if failed == 0 { Ok(()) } else { Err(Reported.into()) }
}

#[cfg(test)]
mod tests {
    use super::table::tests::program;
    use super::verdict::tests::figures;
    use super::*;

    #[test]
    fn one_program_that_fails_fails_the_whole() {
        let (same, failed) = (Outcome::Same(figures()), Outcome::Failed("no".into()));
        let skipped = Outcome::Skipped("no clang".into());
        let good = program("main = \"a.rs\"");
        let known = program("main = \"a.rs\"\nfails = \"it needs a terminal\"");
        let programs = [good, known];
        assert!(judge(&programs, &[same.clone(), failed.clone()]).is_ok());
        assert!(judge(&programs, &[skipped.clone(), failed.clone()]).is_ok());
        assert!(judge(&programs, &[failed.clone(), failed.clone()]).is_err());
        assert!(judge(&programs, &[same.clone(), same.clone()]).is_err());
        assert_eq!(line(&programs[0], &failed), "FAILED  sums: no");
        assert_eq!(line(&programs[0], &skipped), "skipped sums: no clang");
        assert!(line(&programs[1], &failed).contains("it needs a terminal"));
    }

    #[test]
    fn a_program_that_fails_on_the_board_alone_is_none_that_fails() {
        let figures = Figures { board: OnBoard::Fails("no memory".into()), ..figures() };
        let (programs, outcome) = ([program("main = \"a.rs\"")], Outcome::Same(figures));
        assert_eq!(line(&programs[0], &outcome), "ok      sums, but not on the board: no memory");
        assert!(judge(&programs, &[outcome]).is_ok());
    }
}
