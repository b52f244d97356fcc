//! Steps of a verb: each has a name, a duration and an outcome; a failed one does not stop the rest.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Recipe, quoted};
use crate::test::dearest::{Dear, dearest};
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

/// The tests that a step ran.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Tests {
    pub(crate) tally: Tally,
    /// Those that failed and can be run again, by the recipe.
    pub(crate) failures: Vec<Failure>,
    pub(crate) recipe: Recipe,
    /// The dearest of them.
    pub(crate) dearest: Vec<Dear>,
    /// What compiling them took before they ran.
    pub(crate) compiled: Duration,
}

impl From<Tally> for Tests {
    fn from(tally: Tally) -> Self {
        Self { tally, ..Self::default() }
    }
}

/// The finding of a step that could run.
#[derive(Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// All is well.
    Passed,
    /// It ran tests, which may have failed.
    Tests(Tests),
    /// It could not or need not run, and why.
    Skipped(String),
}

impl Verdict {
    fn tests(&self) -> Option<&Tests> {
        match self {
            Self::Tests(tests) => Some(tests),
            Self::Passed | Self::Skipped(_) => None,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Step {
    name: String,
    duration: Duration,
    /// The time that its processes took of all processors together.
    processor: Duration,
    result: Result<Verdict, Fault>,
}

/// An error that ended a step.
#[derive(Serialize, Deserialize)]
struct Fault {
    /// With its causes.
    text: String,
    /// The end of what the program printed that failed, where that was kept.
    last: Vec<String>,
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        let failed = error.downcast_ref::<process::Failed>();
        let last = failed.map(|failed| failed.last.clone()).unwrap_or_default();
        Self { text: format!("{error:#}"), last }
    }
}

/// At most so many failed tests are run once more: more don't fail by accident.
const AGAIN_MAX: usize = 10;

/// So many of the dearest tests are named.
pub(crate) const DEAREST: usize = 10;

/// The steps so far, in the order in which they ended.
pub(crate) struct Report {
    verb: &'static str,
    start: Instant,
    steps: Vec<Step>,
    /// Only steps whose name contains this are run.
    only: Option<String>,
}

impl Report {
    /// A report of the steps of `cargo xtask VERB` whose name contains `only`.
    pub(crate) fn new(verb: &'static str, only: Option<&str>) -> Self {
        Self { verb, start: Instant::now(), steps: Vec::new(), only: only.map(str::to_owned) }
    }

    /// Runs one step, says how it went, and keeps it for the summary.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Verdict>) {
        if self.only.as_deref().is_some_and(|words| !name.contains(words)) {
            return;
        }
        let paint = paint::stdout();
        println!("{}", paint.strong(format!("== {name}")));
        let (start, processor_start) = (Instant::now(), process::children_time());
        let result = work().map_err(Fault::from);
        match &result {
            Err(fault) => println!("{} {}", paint.bad("failed:"), fault.text),
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

    /// Runs each failed test once more by `pass`, which says whether it passed then. Such a test is no
    /// failure any more, but unsteady.
    pub(crate) fn try_again(&mut self, mut pass: impl FnMut(&Recipe, &Failure) -> Result<bool>) {
        let tests = self.steps.iter_mut().filter_map(Step::tests);
        let failed: usize = tests.map(|tests| tests.failures.len()).sum();
        if failed > AGAIN_MAX {
            println!("{failed} tests failed, too many to run them once more");
            return;
        }
        for tests in self.steps.iter_mut().filter_map(Step::tests) {
            // A failure that took a whole program along is no accident either.
            for failure in tests.failures.iter_mut().filter(|failure| failure.test.is_some()) {
                println!("{}", paint::stdout().strong(format!("== again: {}", failure.name())));
                failure.passed_alone = pass(&tests.recipe, failure).unwrap_or_else(|error| {
                    println!("{} {error:#}", paint::stdout().bad("failed:"));
                    false
                });
                if failure.passed_alone {
                    tests.tally.failed -= 1;
                    tests.tally.passed += 1;
                }
            }
        }
    }

    /// Prints what a person needs to know of each test that is unsteady or failed, and of each failed step.
    fn print_failures(&self, root: &Path) {
        let paint = paint::stdout();
        let print = |head: String, last: &[String], command: String| {
            println!("\n{head}");
            let skipped = last.len().saturating_sub(process::LAST_LINES);
            last.iter().skip(skipped).for_each(|line| println!("    {line}"));
            println!("  alone: {command}");
        };
        let mut failed = Vec::new();
        for step in &self.steps {
            let of_step = || format!("cargo xtask {} --only {}", self.verb, quoted(&step.name));
            match &step.result {
                Err(Fault { text, last }) => {
                    let head = format!("{} {}: {text}", paint.bad("failed:"), step.name);
                    failed.push((head, &last[..], of_step()));
                }
                Ok(Verdict::Tests(tests)) => {
                    let (unsteady, failures): (Vec<_>, Vec<_>) =
                        tests.failures.iter().partition(|failure| failure.passed_alone);
                    for one in unsteady {
                        let head = format!(
                            "{} {}, which passed when it was run once more; the first time it printed",
                            paint.bad("unsteady:"),
                            one.name()
                        );
                        print(head, &one.last, tests.recipe.shown(one, root));
                    }
                    for one in &failures {
                        let head = format!("{} {}", paint.bad("failed:"), one.name());
                        failed.push((head, &one.last[..], tests.recipe.shown(one, root)));
                    }
                    if tests.tally.failed > failures.len() {
                        let head = format!("{} tests of {}", paint.bad("failed:"), step.name);
                        failed.push((head, &[], of_step()));
                    }
                }
                Ok(Verdict::Passed | Verdict::Skipped(_)) => {}
            }
        }
        for (head, last, command) in failed {
            print(head, last, command);
        }
    }

    /// Prints the dearest tests of all steps, and what compiling took, where tests ran.
    fn print_times(&self) {
        let tests = || self.steps.iter().filter_map(|step| step.result.as_ref().ok()?.tests());
        let all = tests().flat_map(|tests| tests.dearest.iter().cloned()).collect();
        let dearest = dearest(all, DEAREST);
        if !dearest.is_empty() {
            println!("\nthe dearest tests:");
        }
        for Dear { name, duration } in dearest {
            println!("{:>9.1} s  {name}", duration.as_secs_f64());
        }
        let compiled: Duration = tests().map(|tests| tests.compiled).sum();
        if compiled > Duration::ZERO {
            println!("{:>9.1} s  compiling, before tests ran", compiled.as_secs_f64());
        }
    }

    /// Prints a line per step, what failed, the dearest tests, and the sum as the last line; fails if any step failed.
    pub(crate) fn finish(self, root: &Path) -> Result<()> {
        println!("\n{:<44} {:>9} {:>9}", "", "clock", "processor");
        for step in &self.steps {
            step.print();
        }
        let processor: Duration = self.steps.iter().map(|step| step.processor).sum();
        println!("{}", line("total", self.start.elapsed(), processor));
        self.print_failures(root);
        self.print_times();
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
            Ok(Verdict::Tests(tests)) => tests.tally,
            Ok(Verdict::Skipped(_)) => Tally::ONE_SKIPPED,
            Err(_) => Tally::ONE_FAILED,
        }
    }

    fn tests(&mut self) -> Option<&mut Tests> {
        match &mut self.result {
            Ok(Verdict::Tests(tests)) => Some(tests),
            _ => None,
        }
    }

    fn print(&self) {
        let paint = paint::stdout();
        let outcome = match &self.result {
            Ok(Verdict::Passed) => paint.good("ok"),
            Ok(Verdict::Tests(tests)) if tests.tally.failed == 0 => paint.good(tests.tally),
            Ok(Verdict::Tests(tests)) => paint.bad(tests.tally),
            Ok(Verdict::Skipped(reason)) => paint.faint(format!("skipped: {reason}")),
            Err(fault) => {
                paint.bad(format!("FAILED: {}", fault.text.lines().next().unwrap_or_default()))
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
        let mut report = Report::new("test", None);
        let tests = Tally { passed: 5, failed: 0, ignored: 2, skipped: 1 };
        report.step("tests", || Ok(Verdict::Tests(tests.into())));
        report.step("licences", || Ok(Verdict::Skipped("no tool".into())));
        report.step("links", || Ok(Verdict::Passed));
        assert_eq!(report.tally().to_string(), "6 passed, 0 failed, 2 ignored, 2 skipped");
    }

    #[test]
    fn steps_of_another_process_count_with_its_failures() {
        let mut beside = Report::new("test", None);
        beside.step("lints", || Err(anyhow::anyhow!("a lint")));
        beside.step("docs", || Ok(Verdict::Passed));
        let file = tempfile::NamedTempFile::new().unwrap();
        beside.write(file.path()).unwrap();
        let mut report = Report::new("test", None);
        report.step("links", || Ok(Verdict::Passed));
        report.join(file.path()).unwrap();
        assert_eq!(report.tally().to_string(), "2 passed, 1 failed");
    }

    #[test]
    fn a_failed_step_counts_as_a_failed_test() {
        let mut report = Report::new("test", None);
        report.step("links", || Err(anyhow::anyhow!("a link leads nowhere")));
        assert_eq!(report.tally().to_string(), "0 passed, 1 failed");
        assert!(report.finish(Path::new("/")).is_err());
    }

    fn failed(tests: &[&str]) -> Tests {
        let failure = |test: &&str| Failure {
            test: Some(test.to_string()),
            program: "--lib".into(),
            last: Vec::new(),
            passed_alone: false,
        };
        let tally = Tally { passed: 1, failed: tests.len(), ..Tally::default() };
        let failures = tests.iter().map(failure).collect();
        Tests { failures, ..Tests::from(tally) }
    }

    #[test]
    fn a_test_that_passes_alone_is_no_failure_and_one_that_fails_again_is() {
        let mut report = Report::new("test", None);
        report.step("tests", || Ok(Verdict::Tests(failed(&["unsteady", "broken"]))));
        report.try_again(|_, failure| Ok(failure.test.as_deref() == Some("unsteady")));
        assert_eq!(report.tally().to_string(), "2 passed, 1 failed");
        assert!(report.finish(Path::new("/")).is_err());
    }

    #[test]
    fn tests_that_cannot_be_run_again_stay_failed() {
        let mut report = Report::new("test", None);
        report.step("tests", || Ok(Verdict::Tests(failed(&["one"]))));
        report.try_again(|_, _| Err(anyhow::anyhow!("no cargo")));
        assert_eq!(report.tally().to_string(), "1 passed, 1 failed");
    }

    #[test]
    fn many_failures_are_no_accident_and_not_run_again() {
        let mut report = Report::new("test", None);
        let names = [""; AGAIN_MAX + 1];
        report.step("tests", || Ok(Verdict::Tests(failed(&names))));
        report.try_again(|_, _| panic!("it is run again"));
        assert_eq!(report.tally().failed, names.len());
    }
}
