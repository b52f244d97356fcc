//! Steps of a verb: each has a name, a duration and an outcome; a failed one does not stop the rest.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::paint;

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Tally {
    /// A step that is no test suite counts as one test.
    pub(crate) const ONE_PASSED: Tally = Tally { passed: 1, failed: 0 };
    const ONE_FAILED: Tally = Tally { passed: 0, failed: 1 };
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// What a step that could run found out.
pub(crate) enum Verdict {
    /// All is well.
    Passed,
    /// It ran tests, which may have failed.
    Tests(Tally),
    /// It could not or need not run, and why.
    Skipped(String),
}

struct Step {
    name: String,
    duration: Duration,
    result: Result<Verdict>,
}

/// The steps so far, in the order in which they ran.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<Step>,
}

impl Report {
    /// Runs one step, says how it went, and keeps it for the summary.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Verdict>) {
        let paint = paint::stdout();
        println!("{}", paint.strong(format!("== {name}")));
        let start = Instant::now();
        let result = work();
        match &result {
            Err(error) => println!("{} {error:#}", paint.bad("failed:")),
            Ok(Verdict::Skipped(reason)) => println!("{} {reason}", paint.faint("skipped:")),
            Ok(_) => {}
        }
        self.steps.push(Step { name: name.to_owned(), duration: start.elapsed(), result });
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
        println!();
        for step in &self.steps {
            step.print();
        }
        let total: Duration = self.steps.iter().map(|step| step.duration).sum();
        println!("{:<24} {:>7.1} s", "total", total.as_secs_f64());
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
            Ok(Verdict::Skipped(_)) => Tally::default(),
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
                let text = error.to_string();
                paint.bad(format!("FAILED: {}", text.lines().next().unwrap_or_default()))
            }
        };
        println!("{:<24} {:>7.1} s  {outcome}", self.name, self.duration.as_secs_f64());
    }
}
