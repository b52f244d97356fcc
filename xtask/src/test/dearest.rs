//! How long each test of a program took, by when it ended: libtest tells no more.
//!
//! It starts tests in the order of their names, at first as many as it has threads, and the next one whenever one ends.

use std::cmp::Reverse;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A test, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dear {
    /// The program's and the test's.
    pub(crate) name: String,
    pub(crate) duration: Duration,
}

/// A program's tests, in the order in which they ended.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// The program's name.
    program: String,
    /// When its first tests began.
    began: Duration,
    ended: Vec<(String, Duration)>,
}

impl Course {
    /// A program's, by cargo's line `Running tests/pair.rs (target/debug/deps/pair-0123)`; none of tests in docs.
    pub(super) fn of(line: &str) -> Option<Self> {
        let file = line.trim_end().strip_suffix(')')?.rsplit_once('(')?.1;
        let name = file.rsplit('/').next()?;
        let program = name.rsplit_once('-').map_or(name, |(program, _)| program).to_owned();
        Some(Self { program, ..Self::default() })
    }

    /// Reads a line that the program prints `at` a time.
    pub(super) fn read(&mut self, line: &str, at: Duration) {
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.began = at;
        } else if let Some(name) = parse_end(line) {
            self.ended.push((name.to_owned(), at));
        }
    }

    /// How long each took in a program of that many threads.
    pub(super) fn durations(&self, threads: usize) -> Vec<Dear> {
        let mut names: Vec<&str> = self.ended.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        // The first begin together, and the others when one ends.
        let begins = std::iter::repeat_n(self.began, threads)
            .chain(self.ended.iter().map(|(_, at)| *at))
            .zip(&names)
            .map(|(begin, name)| (*name, begin))
            .collect::<std::collections::BTreeMap<_, _>>();
        let taken = |(name, end): &(String, Duration)| Dear {
            name: format!("{} {name}", self.program),
            duration: end.saturating_sub(begins.get(name.as_str()).copied().unwrap_or(*end)),
        };
        self.ended.iter().map(taken).collect()
    }
}

/// Reads the name in libtest's `test NAME ... ok`.
fn parse_end(line: &str) -> Option<&str> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let is_end = ["ok", "FAILED", "ignored"].iter().any(|word| outcome.starts_with(word));
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    is_end.then_some(name)
}

/// The dearest of them, at most `count`, dearest first.
pub(crate) fn dearest(mut tests: Vec<Dear>, count: usize) -> Vec<Dear> {
    tests.sort_by_key(|test| Reverse(test.duration));
    tests.truncate(count);
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(u64, &str)]) -> Course {
        let start = "     Running tests/devices/main.rs (target/debug/deps/devices-0123ab)";
        let mut course = Course::of(start).unwrap();
        lines.iter().for_each(|(s, line)| course.read(line, Duration::from_secs(*s)));
        course
    }

    #[test]
    fn tests_that_wait_for_a_thread_are_not_charged_with_the_wait() {
        let course = read(&[
            (100, "running 5 tests"),
            // c begins when a ends, at 107, d at 110, and e at 111.
            (107, "test a::one ... ok"),
            (110, "test b - should panic ... ok"),
            (111, "test c ... ignored, for another step"),
            (140, "test d has been running for over 60 seconds"),
            (150, "test e ... FAILED"),
            (170, "test d ... ok"),
        ]);
        let taken = course.durations(2).into_iter();
        let taken: Vec<_> = taken.map(|it| (it.name, it.duration.as_secs())).collect();
        let expected = [("a::one", 7), ("b", 10), ("c", 4), ("e", 39), ("d", 60)];
        assert_eq!(taken, expected.map(|(name, s)| (format!("devices {name}"), s)));
    }

    #[test]
    fn dearest_come_first_and_are_few() {
        let course = read(&[(0, "running 2 tests"), (1, "test a ... ok"), (9, "test b ... ok")]);
        let dearest = dearest(course.durations(6), 1);
        assert_eq!(dearest[0].name, "devices b");
        assert_eq!(dearest.len(), 1);
        assert!(Course::of("   Doc-tests tenure_tls").is_none());
    }
}
