//! The line that every benchmark writes, and the table that a person reads.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// One figure: a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// The subject, for example `store`.
    pub(crate) bench: String,
    /// Where it ran: `host`, `riscv32`, `thumbv7m` …
    pub(crate) target: String,
    /// Whose it is: `tenure`, or a peer's name.
    pub(crate) subject: String,
    /// The quantity, for example `write_with_1000_keys`.
    pub(crate) metric: String,
    /// The unit of `value`, for example `ns` or `bytes`.
    pub(crate) unit: String,
    pub(crate) value: f64,
}

impl Measurement {
    /// Reads a line of a benchmark's output, if it is one.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a struct of strings and a number is JSON")
    }
}

/// A table per bench: a row per metric and target, a column per subject.
pub(crate) fn tables(measurements: &[Measurement]) -> String {
    let mut text = String::new();
    for bench in distinct(measurements.iter().map(|it| it.bench.as_str())) {
        let lines: Vec<_> = measurements.iter().filter(|it| it.bench == bench).collect();
        text += &table(bench, &lines);
    }
    text
}

fn table(bench: &str, lines: &[&Measurement]) -> String {
    let subjects = distinct(lines.iter().map(|it| it.subject.as_str()));
    let rows = distinct(lines.iter().map(|it| (&*it.metric, &*it.target, &*it.unit)));
    let label = |(metric, target, unit): (&str, &str, &str)| format!("{metric}, {target} ({unit})");
    let width = rows.iter().map(|row| label(*row).len()).chain([bench.len()]).max().unwrap_or(0);
    let columns: Vec<_> = subjects.iter().map(|subject| subject.len().max(12)).collect();

    let mut text = format!("\n{bench:<width$}");
    for (subject, column) in subjects.iter().zip(&columns) {
        let _ = write!(text, "  {subject:>column$}");
    }
    for row in &rows {
        let _ = write!(text, "\n{:<width$}", label(*row));
        for (subject, column) in subjects.iter().zip(&columns) {
            let cell = lines
                .iter()
                .find(|it| (&*it.metric, &*it.target, &*it.unit) == *row && it.subject == *subject)
                .map_or_else(|| "–".to_owned(), |it| number(it.value));
            let _ = write!(text, "  {cell:>column$}");
        }
    }
    text + "\n"
}

/// Whole from a hundred up, else three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        100.0.. => format!("{value:.0}"),
        size if value.fract() == 0.0 && size < 100.0 => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The different items, in the order in which they first come.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(subject: &str, metric: &str, value: f64) -> Measurement {
        let json = format!(
            r#"{{"bench":"store","target":"host","subject":"{subject}","metric":"{metric}","unit":"ns","value":{value}}}"#
        );
        Measurement::parse(&json).unwrap()
    }

    #[test]
    fn measurement_survives_json() {
        let one = line("tenure", "write", 12.5);
        assert_eq!(Measurement::parse(&one.to_json()), Some(one));
        assert_eq!(Measurement::parse("warming up"), None);
    }

    #[test]
    fn subjects_stand_side_by_side() {
        let lines = [
            line("tenure", "write", 1234.5),
            line("peer", "write", 0.5),
            line("tenure", "read", 7.0),
        ];
        let expected = "\nstore                   tenure          peer\
                        \nwrite, host (ns)          1234        0.5000\
                        \nread, host (ns)              7             –\n";
        assert_eq!(tables(&lines), expected);
    }
}
