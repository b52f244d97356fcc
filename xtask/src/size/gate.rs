//! Measured figures against the recorded ones, and against the chip's hard limit.
//!
//! A figure may grow by [`GROWTH_PERCENT_MAX`] over the recorded one, or by some bytes where that is less, as with
//! variables of crates that have none. It must leave [`ROOM_PERCENT_MIN`] below the
//! hard limit. A figure beyond either fails, and one that shrank as much is worth recording.

use std::fmt::Write as _;

use crate::measurement::Measurement;

/// By how much a figure may be over the recorded one.
pub(super) const GROWTH_PERCENT_MAX: u64 = 2;
/// By how many bytes a figure may be over the recorded one, however small that is.
const GROWTH_BYTES_MAX: u64 = 256;
/// How much of a hard limit stays free. The leaf's firmware, with the mesh's look-ups, is within 1.2 % of its limit.
pub(super) const ROOM_PERCENT_MIN: u64 = 1;

/// A measured figure with what it is held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The board, whose name the commands take.
    pub(super) board: &'static str,
    /// The budget or cost, by its name in the file.
    pub(super) name: String,
    pub(super) quantity: Quantity,
    pub(super) measured: u64,
    pub(super) recorded: Option<u64>,
    pub(super) limit: Option<u64>,
}

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Flash,
    Ram,
    Instructions,
}

impl Quantity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Flash => "flash",
            Self::Ram => "RAM",
            Self::Instructions => "instructions",
        }
    }

    /// The unit behind a number.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Flash => "bytes of flash",
            Self::Ram => "bytes of RAM",
            Self::Instructions => "instructions",
        }
    }
}

impl Row {
    /// By how much the figure may differ from the recorded one.
    fn tolerance(&self, recorded: u64) -> u64 {
        let percent = recorded * GROWTH_PERCENT_MAX / 100;
        match self.quantity {
            Quantity::Flash | Quantity::Ram => percent.max(GROWTH_BYTES_MAX),
            Quantity::Instructions => percent,
        }
    }

    /// The command that writes down the board's figures of today.
    fn command(&self) -> String {
        format!("cargo xtask size {} --record", self.board)
    }

    /// The percentage of the hard limit that is free; below zero if the figure is over it.
    fn room_percent(&self) -> Option<f64> {
        let limit = self.limit? as f64;
        Some((limit - self.measured as f64) / limit * 100.0)
    }

    /// The figure and what it is held to, as lines of JSON; `target` is the board's.
    pub(super) fn measurements(&self, target: &str) -> Vec<Measurement> {
        let values = [
            ("measured", Some(self.measured)),
            ("recorded", self.recorded),
            ("hard limit", self.limit),
        ];
        let line = |(what, value): (&str, Option<u64>)| {
            let unit = match self.quantity {
                Quantity::Flash | Quantity::Ram => "bytes",
                Quantity::Instructions => "instructions",
            };
            Some(Measurement {
                bench: format!("size of {}", self.board),
                target: target.split('-').next().unwrap_or_default().into(),
                subject: self.quantity.name().into(),
                metric: format!("{}: {what}", self.name),
                unit: unit.into(),
                value: value? as f64,
            })
        };
        values.into_iter().filter_map(line).collect()
    }

    /// The reasons why this figure doesn't pass, in words.
    pub(super) fn faults(&self) -> Vec<String> {
        let Self { board, name, quantity, measured, .. } = self;
        let subject = format!("{board}: {name}: {measured} {}", quantity.unit());
        let mut faults = Vec::new();
        match self.recorded {
            None => faults.push(format!(
                "{subject}, and nothing is recorded; to record it: {}",
                self.command()
            )),
            Some(recorded) if *measured > recorded + self.tolerance(recorded) => {
                let over = measured - recorded;
                let percent = over as f64 / recorded.max(1) as f64 * 100.0;
                faults.push(format!(
                    "{subject}, {over} ({percent:.1} %) over the recorded {recorded}, and more than \
                     {GROWTH_PERCENT_MAX} % over it; if the growth is wanted, record it in the commit that says why: {}",
                    self.command()
                ));
            }
            Some(_) => {}
        }
        if let (Some(limit), Some(room)) = (self.limit, self.room_percent())
            && measured * 100 > limit * (100 - ROOM_PERCENT_MIN)
        {
            let most = limit * (100 - ROOM_PERCENT_MIN) / 100;
            faults.push(format!(
                "{subject}, {} more than leaves {ROOM_PERCENT_MIN} % of the hard limit {limit} free ({room:.1} % are); \
                 recording doesn't help",
                measured - most
            ));
        }
        faults
    }

    /// Advice to record a figure that became so small that growing back would be let through.
    pub(super) fn hint(&self) -> Option<String> {
        let Self { board, name, quantity, measured, .. } = self;
        let recorded = self.recorded?;
        (measured + self.tolerance(recorded) < recorded).then(|| {
            format!(
                "{board}: {name}: {measured} {}, {} under the recorded {recorded}; to keep the gain: {}",
                quantity.unit(),
                recorded - measured,
                self.command()
            )
        })
    }
}

/// A table with a line per figure.
pub(super) fn table(rows: &[Row]) -> String {
    let label = |row: &Row| format!("{}: {}, {}", row.board, row.name, row.quantity.name());
    let width = rows.iter().map(|row| label(row).len()).max().unwrap_or(0);
    let number = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), |it| it.to_string());
    let mut text = format!(
        "\n{:<width$}  {:>9}  {:>9}  {:>10}  {:>7}\n",
        "", "measured", "recorded", "hard limit", "room"
    );
    for row in rows {
        let room = row.room_percent().map_or_else(|| "–".to_owned(), |it| format!("{it:.1} %"));
        let _ = writeln!(
            text,
            "{:<width$}  {:>9}  {:>9}  {:>10}  {room:>7}",
            label(row),
            row.measured,
            number(row.recorded),
            number(row.limit)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured: u64, recorded: Option<u64>, limit: Option<u64>) -> Row {
        let (board, name) = ("attic", "firmware".to_owned());
        Row { board, name, quantity: Quantity::Flash, measured, recorded, limit }
    }

    #[test]
    fn growth_within_two_percent_passes_and_beyond_names_the_command() {
        for measured in [1, 100_000, 101_900, 102_000] {
            assert_eq!(row(measured, Some(100_000), None).faults(), [""; 0], "{measured}");
        }
        assert_eq!(
            row(102_100, Some(100_000), None).faults(),
            [
                "attic: firmware: 102100 bytes of flash, 2100 (2.1 %) over the recorded 100000, and more than 2 % over it; \
              if the growth is wanted, record it in the commit that says why: cargo xtask size attic --record"
            ]
        );
    }

    #[test]
    fn a_hard_limit_with_less_than_one_percent_of_room_fails_whatever_is_recorded() {
        assert_eq!(row(990, Some(990), Some(1000)).faults(), [""; 0]);
        assert_eq!(
            row(995, Some(995), Some(1000)).faults(),
            [
                "attic: firmware: 995 bytes of flash, 5 more than leaves 1 % of the hard limit 1000 free \
              (0.5 % are); recording doesn't help"
            ]
        );
        assert_eq!(row(1300, Some(1000), Some(1000)).faults().len(), 2);
    }

    #[test]
    fn a_few_bytes_more_pass_where_hardly_any_are_recorded_and_instructions_do_not() {
        assert_eq!(row(256, Some(0), None).faults(), [""; 0]);
        assert_eq!(row(257, Some(0), None).faults().len(), 1);
        let cost =
            |measured| Row { quantity: Quantity::Instructions, ..row(measured, Some(150), None) };
        assert_eq!(cost(153).faults(), [""; 0]);
        assert_eq!(cost(154).faults().len(), 1);
    }

    #[test]
    fn a_figure_without_a_record_fails() {
        assert_eq!(
            row(5, None, Some(1000)).faults(),
            ["attic: firmware: 5 bytes of flash, and nothing is recorded; to record it: \
              cargo xtask size attic --record"]
        );
    }

    #[test]
    fn shrinking_by_more_than_two_percent_is_worth_recording() {
        assert_eq!(row(98_100, Some(100_000), None).hint(), None);
        assert_eq!(
            row(97_900, Some(100_000), None).hint().unwrap(),
            "attic: firmware: 97900 bytes of flash, 2100 under the recorded 100000; to keep the gain: \
             cargo xtask size attic --record"
        );
    }

    #[test]
    fn a_row_shows_figure_record_limit_and_room() {
        let rows = [row(900, Some(880), Some(1000)), row(7, None, None)];
        let shown = table(&rows);
        let cells: Vec<Vec<_>> =
            shown.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[0], ["attic:", "firmware,", "flash", "900", "880", "1000", "10.0", "%"]);
        assert_eq!(cells[1], ["attic:", "firmware,", "flash", "7", "–", "–", "–"]);
    }
}
