//! One figure, as a line of JSON or of a table.

use std::fmt::{self, Display, Formatter};
use std::format;
use std::string::String;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The work, and on how many bytes: `vm/fib`, `cipher/aead/1024`.
    pub bench: String,
    /// Where: `host`, `riscv32`, …
    pub target: String,
    /// The worker: `tenure`, or a peer.
    pub subject: String,
    /// The quantity.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// The number.
    pub value: f64,
}

impl Row {
    /// As `cargo xtask bench` reads it. No name holds a quote or a backslash.
    pub fn to_json(&self) -> String {
        let Self { bench, target, subject, metric, unit, value } = self;
        format!(
            "{{\"bench\":\"{bench}\",\"target\":\"{target}\",\"subject\":\"{subject}\",\
             \"metric\":\"{metric}\",\"unit\":\"{unit}\",\"value\":{value:.4}}}"
        )
    }
}

impl Display for Row {
    /// As a line of the table under the benchmark's name.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { subject, metric, unit, value, .. } = self;
        write!(f, "  {subject:<28} {value:>10.3} {unit:<12} {metric}")
    }
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn row_is_a_line_of_json() {
        let row = Row {
            bench: "store-peers".into(),
            target: "host".into(),
            subject: "ekv".into(),
            metric: "write, 10 keys".into(),
            unit: "ns",
            value: 12.5,
        };
        assert_eq!(
            row.to_json(),
            r#"{"bench":"store-peers","target":"host","subject":"ekv","metric":"write, 10 keys","unit":"ns","value":12.5000}"#
        );
    }
}
