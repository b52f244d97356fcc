//! The verdict over a suite's outcomes.
//!
//! A test that fails, unless it is named with a reason, has failed. So has a name that no test needs any more, and the
//! whole, if fewer tests pass than did before: what isn't here is skipped.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::report::Reported;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// It needs what isn't here.
    Skipped,
    /// It failed, in the suite's words.
    Failed(String),
}

/// The facts known of a suite.
pub(super) struct Record {
    /// The tests that fail, by their reasons, which stand in docs/suites.md as well. A star stands for any text.
    pub(super) named: &'static [(&'static str, &'static [&'static str])],
    /// The tests that pass.
    pub(super) passed_min: usize,
}

impl Record {
    /// Prints what fails, and fails if that isn't named.
    pub(super) fn judge(&self, outcomes: &BTreeMap<String, Outcome>, verbose: bool) -> Result<()> {
        let (mut passed, mut skipped) = (0, 0);
        let (mut failures, mut named) = (Vec::new(), BTreeMap::<&str, Vec<String>>::new());
        for (name, outcome) in outcomes {
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Skipped => skipped += 1,
                Outcome::Failed(error) => {
                    let line = format!("{name}: {}", error.trim());
                    match self.pattern_of(name) {
                        Some(pattern) => named.entry(pattern).or_default().push(line),
                        None => failures.push(line),
                    }
                }
            }
        }
        for (reason, patterns) in self.named {
            let of_reason = patterns.iter().filter_map(|pattern| named.get(pattern)).flatten();
            println!("{} fail: {reason}", of_reason.clone().count());
            if verbose {
                of_reason.for_each(|line| println!("  {line}"));
            }
            let unused = patterns.iter().filter(|pattern| !named.contains_key(**pattern));
            failures.extend(unused.map(|it| format!("{it}: is named as a failure, and is none")));
        }
        if outcomes.is_empty() {
            failures.push("no test was run".into());
        }
        if passed < self.passed_min {
            failures.push(format!("{passed} passed, and {} did before", self.passed_min));
        }
        failures.iter().for_each(|failure| println!("FAILED {failure}"));
        let differing: usize = named.values().map(Vec::len).sum();
        println!(
            "{} tests: {passed} passed, {differing} fail for a reason, {} failed, {skipped} need what isn't here",
            outcomes.len(),
            failures.len()
        );
        if failures.is_empty() { Ok(()) } else { Err(Reported.into()) }
    }

    /// The pattern that names a test.
    fn pattern_of(&self, name: &str) -> Option<&'static str> {
        let mut patterns = self.named.iter().flat_map(|(_, patterns)| *patterns);
        patterns.find(|pattern| matches(pattern, name)).copied()
    }
}

/// Whether `name` is what `pattern` says, in which a star stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).any(|at| name.is_char_boundary(at) && matches(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, is_match) in [
            ("Hello", "Hello", true),
            ("Hello", "HelloRetry", false),
            ("Hello*", "Hello", true),
            ("Hello*-TLS13", "HelloRetry-Cookie-TLS13", true),
            ("Hello*-TLS13", "HelloRetry-TLS13-Split", false),
            ("*-Server-*13", "EarlyData-Server-TLS13", true),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} and {name}");
        }
    }

    #[test]
    fn what_is_worse_than_the_record_fails() {
        let record = Record { named: &[("it is late", &["late-*"])], passed_min: 1 };
        let good = [("one", Outcome::Passed), ("late-1", Outcome::Failed("no".into()))];
        let judge = |outcomes: &[(&str, Outcome)]| {
            let outcomes = outcomes.iter().map(|(name, one)| ((*name).to_owned(), one.clone()));
            record.judge(&outcomes.collect(), true).is_ok()
        };
        assert!(judge(&good));
        let new = [&good[..], &[("two", Outcome::Failed("no".into()))]].concat();
        assert!(!judge(&new), "a failure without a name");
        assert!(!judge(&good[..1]), "a name without a failure");
        assert!(!judge(&good[1..]), "fewer that pass");
        let anything = Record { named: &[], passed_min: 0 };
        assert!(anything.judge(&BTreeMap::new(), true).is_err(), "nothing was run");
    }
}
