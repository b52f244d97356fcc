//! Reads what `cargo test` prints: how many tests passed, and which failed with which words.

use std::collections::BTreeMap;
use std::time::Duration;

use super::dearest::{Course, Dear};
use crate::failure::Failure;
use crate::process::LastLines;
use crate::report::Tally;

/// The lines that cargo and the test programs have printed so far.
#[derive(Default)]
pub(super) struct Transcript {
    tally: Tally,
    failures: Vec<Failure>,
    program: Program,
    /// When the tests of each program ended, but of those in docs.
    courses: Vec<Course>,
}

/// The program that runs.
#[derive(Default)]
struct Program {
    /// The end of all that it printed before it listed its failures.
    last: LastLines,
    part: Part,
    /// The end of what each failed test printed.
    printed: BTreeMap<String, LastLines>,
    failed: Vec<String>,
}

/// libtest prints `failures:` twice: before what each failed test printed, and before their names.
#[derive(Default, PartialEq)]
enum Part {
    #[default]
    Running,
    /// The output of failed tests, and of which of them the lines are.
    Printed(Option<String>),
    Names,
}

impl Transcript {
    /// Reads a line that was printed `at` a time.
    pub(super) fn read(&mut self, line: &str, at: Duration) {
        if let Some(program) = parse_rerun(line) {
            self.fail(program);
        } else if let Some(tally) = parse_result(line) {
            self.tally += tally;
            self.program.part = Part::Running;
        } else if is_start(line) {
            self.program = Program::default();
            self.courses.push(Course::of(line).unwrap_or_default());
        } else if let Some(cause) = line.strip_prefix("  process didn't exit successfully: ") {
            let dead = self.failures.last_mut().filter(|failure| failure.test.is_none());
            dead.into_iter().for_each(|failure| failure.last.push(cause.to_owned()));
        } else {
            self.program.read(line);
            self.courses.last_mut().into_iter().for_each(|course| course.read(line, at));
        }
    }

    /// How long each test took in programs of that many threads.
    pub(super) fn durations(&self, threads: usize) -> Vec<Dear> {
        self.courses.iter().flat_map(|course| course.durations(threads)).collect()
    }

    /// The program has ended, and something in it failed.
    fn fail(&mut self, program: &str) {
        let Program { last, mut printed, failed, .. } = std::mem::take(&mut self.program);
        let last = last.into_vec();
        let failure = |test: Option<String>, last| Failure {
            test,
            program: program.to_owned(),
            last,
            passed_alone: false,
        };
        if failed.is_empty() {
            // It died before it could count.
            self.tally.failed += 1;
            self.failures.push(failure(None, last));
            return;
        }
        for test in failed {
            // Nothing is kept of a test by itself where tests print as they run.
            let own = printed.remove(&test).map(LastLines::into_vec).unwrap_or_default();
            let own = if own.is_empty() { last.clone() } else { own };
            self.failures.push(failure(Some(test), own));
        }
    }

    pub(super) fn end(self) -> (Tally, Vec<Failure>) {
        (self.tally, self.failures)
    }
}

impl Program {
    fn read(&mut self, line: &str) {
        if line == "failures:" {
            self.part = match self.part {
                Part::Running => Part::Printed(None),
                Part::Printed(_) | Part::Names => Part::Names,
            };
            return;
        }
        match &mut self.part {
            Part::Running => self.last.push(line),
            Part::Printed(test) => {
                if let Some(name) = parse_heading(line) {
                    *test = Some(name.to_owned());
                } else if let Some(test) = test
                    && !line.is_empty()
                {
                    self.printed.entry(test.clone()).or_default().push(line);
                }
            }
            Part::Names => self.failed.extend(line.strip_prefix("    ").map(str::to_owned)),
        }
    }
}

/// Whether cargo starts the next program with this line.
fn is_start(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("Running ") && line.ends_with(')')) || line.starts_with("Doc-tests ")
}

/// Reads cargo's ``error: test failed, to rerun pass `-p PACKAGE --lib` ``.
fn parse_rerun(line: &str) -> Option<&str> {
    let (_, program) = line.strip_prefix("error: ")?.split_once(", to rerun pass `")?;
    program.strip_suffix('`')
}

/// Reads the name in libtest's `---- NAME stdout ----`.
fn parse_heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Tally, Vec<Failure>) {
        let mut transcript = Transcript::default();
        text.lines().for_each(|line| transcript.read(line, Duration::ZERO));
        transcript.end()
    }

    #[test]
    fn result_lines_of_libtest_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        let expected = Tally { passed: 12, failed: 3, ignored: 1, skipped: 0 };
        assert_eq!(parse_result(line), Some(expected));
        assert_eq!(parse_result("test result: ok."), None);
        assert_eq!(parse_result("test wire::name ... ok"), None);
    }

    const CAPTURED: &str = "\
     Running tests/pair.rs (target/debug/deps/pair-0123)

running 3 tests
test one ... FAILED
test two ... ok
test a::three ... FAILED

failures:

---- one stdout ----

thread 'one' panicked at crates/tls/tests/pair.rs:5:5:
one is not two

---- a::three stdout ----
    indented, and no name


failures:
    a::three
    one

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `-p tenure-tls --test pair`
   Doc-tests tenure_tls

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: 1 target failed:
    `-p tenure-tls --test pair`
";

    #[test]
    fn failed_tests_have_their_program_and_what_they_printed() {
        let (tally, failures) = read(CAPTURED);
        assert_eq!(tally, Tally { passed: 1, failed: 2, ignored: 0, skipped: 0 });
        let failure = |test: &str, last: &[&str]| Failure {
            test: Some(test.into()),
            program: "-p tenure-tls --test pair".into(),
            last: last.iter().map(ToString::to_string).collect(),
            passed_alone: false,
        };
        let panic = ["thread 'one' panicked at crates/tls/tests/pair.rs:5:5:", "one is not two"];
        let three = failure("a::three", &["    indented, and no name"]);
        assert_eq!(failures, [three, failure("one", &panic)]);
    }

    #[test]
    fn tests_that_print_as_they_run_have_the_last_lines_of_their_program() {
        let text = "running 1 test\ntest chip ... lines\nof a chip\nFAILED\n\nfailures:\n\nfailures:\n    chip\n\n\
                    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n\n\
                    error: test failed, to rerun pass `--test node`\n";
        let (_, failures) = read(text);
        assert_eq!(failures[0].test.as_deref(), Some("chip"));
        assert_eq!(failures[0].last[1..4], ["test chip ... lines", "of a chip", "FAILED"]);
    }

    #[test]
    fn a_program_that_dies_is_one_failure_without_the_name_of_a_test() {
        let text = "     Running unittests src/lib.rs (target/debug/deps/tenure_vm-4)\nrunning 2 tests\n\
                    error: test failed, to rerun pass `-p tenure-vm --lib`\n\nCaused by:\n  \
                    process didn't exit successfully: `vm-4` (signal: 11)\n\
                    \x20    Running tests/spec.rs (target/debug/deps/spec-5)\nrunning 1 test\n\
                    test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let (tally, failures) = read(text);
        assert_eq!(tally, Tally { passed: 1, failed: 1, ignored: 0, skipped: 0 });
        let [failure] = &failures[..] else { panic!("{failures:?}") };
        assert_eq!((&failure.test, failure.program.as_str()), (&None, "-p tenure-vm --lib"));
        assert_eq!(failure.last, ["running 2 tests", "`vm-4` (signal: 11)"]);
    }
}
