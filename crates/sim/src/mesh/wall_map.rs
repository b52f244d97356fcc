//! Maps of walls: lines of `x1,y1,x2,y2,db`, the ends of a wall in metres east and north, and by how much it weakens a signal.

use serde::{Deserialize, Serialize};

use super::motion::{WrongLine, fields, number};
use crate::radio::Wall;

const NAMES: [&str; 5] = ["x1", "y1", "x2", "y2", "db"];

/// Walls that a file describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WallMap {
    /// The file, beside the scenario's.
    pub file: String,
}

impl WallMap {
    /// The walls of a map.
    ///
    /// # Errors
    /// The first line that means nothing.
    pub(super) fn parse(text: &str) -> Result<Vec<Wall>, WrongLine> {
        let walls = fields(text, NAMES).map(|read| {
            let (line, texts) = read?;
            let mut figures = [0.0; NAMES.len()];
            for (figure, text) in figures.iter_mut().zip(texts) {
                *figure = number(text, line)? as f32;
            }
            let [x1, y1, x2, y2, db] = figures;
            if db < 0.0 {
                return Err(WrongLine::new(
                    line,
                    format!("{db} dB: no wall makes a signal stronger"),
                ));
            }
            Ok(Wall { from: [x1, y1], to: [x2, y2], db })
        });
        walls.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_wall() {
        let text = "x1, y1, x2, y2, db\n# the house\n0,0,10,0,12\n\n10,0,10,-8.5,3 # a door\n";
        let walls = [
            Wall { from: [0.0, 0.0], to: [10.0, 0.0], db: 12.0 },
            Wall { from: [10.0, 0.0], to: [10.0, -8.5], db: 3.0 },
        ];
        assert_eq!(WallMap::parse(text), Ok(walls.to_vec()));
    }

    #[test]
    fn what_is_wrong_with_a_map_is_said_with_its_line() {
        let wrong = |text: &str, line: usize, what: &str| {
            assert_eq!(WallMap::parse(text), Err(WrongLine::new(line, what)));
        };
        wrong("0,0,1,1,3\n0,0,1,1", 2, "4 fields instead of 5: x1, y1, x2, y2, db");
        wrong("0,0,1,one,3", 1, "`one` is no number");
        wrong("0,0,1,1,-3", 1, "-3 dB: no wall makes a signal stronger");
    }
}
