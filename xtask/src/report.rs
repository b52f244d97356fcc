//! Steps of a verb: each has a name, a duration and an outcome; a failed one does not stop the rest.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{files, paint, process};

/// How many tests passed and failed, and how many weren't run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Marked `#[ignore]`: another step or command runs them.
    pub(crate) ignored: usize,
    /// A tool or a right is missing on this machine.
    pub(crate) skipped: usize,
}

impl Tally {
    /// A step that is no test suite counts as one test.
    pub(crate) const ONE_PASSED: Tally = Tally { passed: 1, ..Tally::NONE };
    const ONE_FAILED: Tally = Tally { failed: 1, ..Tally::NONE };
    const ONE_SKIPPED: Tally = Tally { skipped: 1, ..Tally::NONE };
    const NONE: Tally = Tally { passed: 0, failed: 0, ignored: 0, skipped: 0 };
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        for (count, word) in [(self.ignored, "ignored"), (self.skipped, "skipped")] {
            if count > 0 {
                write!(f, ", {count} {word}")?;
            }
        }
        Ok(())
    }
}

/// The finding of a step that could run.
#[derive(Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// All is well.
    Passed,
    /// It ran tests, which may have failed.
    Tests(Tally),
    /// It could not or need not run, and why.
    Skipped(String),
}

#[derive(Serialize, Deserialize)]
struct Step {
    name: String,
    duration: Duration,
    /// The time that its processes took of all processors together.
    processor: Duration,
    /// The text of an error, with its causes.
    result: Result<Verdict, String>,
}

/// The steps so far, in the order in which they ended.
pub(crate) struct Report {
    start: Instant,
    steps: Vec<Step>,
    /// Only steps whose name contains this are run.
    only: Option<String>,
}

impl Default for Report {
    fn default() -> Self {
        Self { start: Instant::now(), steps: Vec::new(), only: None }
    }
}

impl Report {
    /// A report of the steps whose name contains `words`.
    pub(crate) fn only(words: Option<&str>) -> Self {
        Self { only: words.map(str::to_owned), ..Self::default() }
    }

    /// Runs one step, says how it went, and keeps it for the summary.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Verdict>) {
        if self.only.as_deref().is_some_and(|words| !name.contains(words)) {
            return;
        }
        let paint = paint::stdout();
        println!("{}", paint.strong(format!("== {name}")));
        let (start, processor_start) = (Instant::now(), process::children_time());
        let result = work().map_err(|error| format!("{error:#}"));
        match &result {
            Err(error) => println!("{} {error}", paint.bad("failed:")),
            Ok(Verdict::Skipped(reason)) => println!("{} {reason}", paint.faint("skipped:")),
            Ok(_) => {}
        }
        let duration = start.elapsed();
        let processor = process::children_time().saturating_sub(processor_start);
        let times =
            format!("{:.1} s, processor {:.1} s", duration.as_secs_f64(), processor.as_secs_f64());
        println!("{}", paint.faint(format!("-- {name}: {times}")));
        self.steps.push(Step { name: name.to_owned(), duration, processor, result });
    }

    /// Writes the steps for [`Self::join`].
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        std::fs::write(file, serde_json::to_vec(&self.steps)?)
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Adds the steps that another process wrote.
    pub(crate) fn join(&mut self, file: &Path) -> Result<()> {
        let steps: Vec<Step> = serde_json::from_str(&files::read(file)?)?;
        self.steps.extend(steps);
        Ok(())
    }

    /// All tests of all steps together.
    pub(crate) fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for step in &self.steps {
            sum += step.tally();
        }
        sum
    }

    /// Prints a line per step, and the sum as the last line; fails if any step failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n{:<44} {:>9} {:>9}", "", "clock", "processor");
        for step in &self.steps {
            step.print();
        }
        let processor: Duration = self.steps.iter().map(|step| step.processor).sum();
        println!("{}", line("total", self.start.elapsed(), processor));
        let tally = self.tally();
        println!("{tally}");
        if tally.failed > 0 { Err(Reported.into()) } else { Ok(()) }
    }
}

/// Something failed, and the report has said what: there is nothing to add.
#[derive(Debug)]
pub(crate) struct Reported;

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed, as reported")
    }
}

impl std::error::Error for Reported {}

impl Step {
    fn tally(&self) -> Tally {
        match &self.result {
            Ok(Verdict::Passed) => Tally::ONE_PASSED,
            Ok(Verdict::Tests(tally)) => *tally,
            Ok(Verdict::Skipped(_)) => Tally::ONE_SKIPPED,
            Err(_) => Tally::ONE_FAILED,
        }
    }

    fn print(&self) {
        let paint = paint::stdout();
        let outcome = match &self.result {
            Ok(Verdict::Passed) => paint.good("ok"),
            Ok(Verdict::Tests(tally)) if tally.failed == 0 => paint.good(tally),
            Ok(Verdict::Tests(tally)) => paint.bad(tally),
            Ok(Verdict::Skipped(reason)) => paint.faint(format!("skipped: {reason}")),
            Err(error) => {
                paint.bad(format!("FAILED: {}", error.lines().next().unwrap_or_default()))
            }
        };
        println!("{}  {outcome}", line(&self.name, self.duration, self.processor));
    }
}

/// A line of the summary: how long something took, and how much of the processors.
fn line(name: &str, duration: Duration, processor: Duration) -> String {
    let (duration, processor) = (duration.as_secs_f64(), processor.as_secs_f64());
    format!("{name:<44} {duration:>7.1} s {processor:>7.1} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_run_is_counted_in_the_last_line() {
        let mut report = Report::default();
        let tests = Tally { passed: 5, failed: 0, ignored: 2, skipped: 1 };
        report.step("tests", || Ok(Verdict::Tests(tests)));
        report.step("licences", || Ok(Verdict::Skipped("no tool".into())));
        report.step("links", || Ok(Verdict::Passed));
        assert_eq!(report.tally().to_string(), "6 passed, 0 failed, 2 ignored, 2 skipped");
    }

    #[test]
    fn steps_of_another_process_count_with_its_failures() {
        let mut beside = Report::default();
        beside.step("lints", || Err(anyhow::anyhow!("a lint")));
        beside.step("docs", || Ok(Verdict::Passed));
        let file = tempfile::NamedTempFile::new().unwrap();
        beside.write(file.path()).unwrap();
        let mut report = Report::default();
        report.step("links", || Ok(Verdict::Passed));
        report.join(file.path()).unwrap();
        assert_eq!(report.tally().to_string(), "2 passed, 1 failed");
    }

    #[test]
    fn a_failed_step_counts_as_a_failed_test() {
        let mut report = Report::default();
        report.step("links", || Err(anyhow::anyhow!("a link leads nowhere")));
        assert_eq!(report.tally().to_string(), "0 passed, 1 failed");
        assert!(report.finish().is_err());
    }
}
