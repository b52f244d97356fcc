//! Where nodes are at which time, as a file of somebody else's says: a trace of motion.
//!
//! A node moves straight and evenly from each of its marks to the next. Before its first mark it stands there, and after
//! its last one as well. Two marks at the same time are a jump. Heights aren't used.

mod csv;
mod ns2;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::radio::Spot;

/// Motion of nodes that a file describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MotionPlan {
    /// The file, beside the scenario's.
    pub file: String,
    /// Its format.
    pub format: MotionFormat,
}

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MotionFormat {
    /// What ns-2's `setdest` writes, and BonnMotion and SUMO for ns-2.
    Ns2,
    /// Lines of `time,node,x,y`.
    Csv,
}

/// A line that means nothing, by its number from 1 on, and why.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WrongLine {
    pub line: usize,
    pub what: String,
}

impl WrongLine {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// Where nodes are at which time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Motion {
    paths: BTreeMap<u32, Path>,
}

/// The way of one node.
#[derive(Clone, Debug, Default, PartialEq)]
struct Path {
    /// The line that names the node first.
    line: usize,
    /// Times in seconds, which don't decrease, and where the node is then, in metres.
    marks: Vec<(f64, [f64; 2])>,
}

impl Motion {
    /// The motion that a file describes.
    ///
    /// # Errors
    /// The first line that means nothing.
    pub(super) fn parse(text: &str, format: MotionFormat) -> Result<Self, WrongLine> {
        match format {
            MotionFormat::Ns2 => ns2::parse(text),
            MotionFormat::Csv => csv::parse(text),
        }
    }

    /// Nodes that move so.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.paths.keys().copied()
    }

    /// Where a node is at a time in seconds, if the file says so.
    pub(super) fn spot(&self, node: u32, at_s: f64) -> Option<Spot> {
        let [x, y] = self.paths.get(&node)?.at(at_s);
        Some(Spot { x: x as f32, y: y as f32 })
    }

    /// The first line that names a node from `count` on, and the node.
    pub(super) fn beyond(&self, count: usize) -> Option<(usize, u32)> {
        let beyond = self.paths.iter().filter(|(node, _)| **node as usize >= count);
        beyond.map(|(node, path)| (path.line, *node)).min()
    }
}

impl Path {
    /// Where the node is; `[0, 0]` without a mark, as in ns-2.
    fn at(&self, at_s: f64) -> [f64; 2] {
        let after = self.marks.partition_point(|(mark_s, _)| *mark_s <= at_s);
        let before = after.checked_sub(1).and_then(|before| self.marks.get(before));
        match (before, self.marks.get(after)) {
            (Some((from_s, from)), Some((to_s, to))) => {
                let share = (at_s - from_s) / (to_s - from_s);
                [0, 1].map(|axis| from[axis] + (to[axis] - from[axis]) * share)
            }
            (Some((_, spot)), None) | (None, Some((_, spot))) => *spot,
            (None, None) => [0.0, 0.0],
        }
    }
}

/// A number that a file gives.
pub(super) fn number(field: &str, line: usize) -> Result<f64, WrongLine> {
    let number = field.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| WrongLine::new(line, format!("`{}` is no number", field.trim())))
}

/// A time that a file gives, in seconds.
fn time(field: &str, line: usize) -> Result<f64, WrongLine> {
    let at_s = number(field, line)?;
    if at_s < 0.0 {
        return Err(WrongLine::new(line, format!("{at_s} s is before the start")));
    }
    Ok(at_s)
}

/// The fields of a line of a CSV file, as many as have names. Comments begin with `#`; a first line of the names is left out, and so
/// are empty lines.
pub(super) fn fields<'a, const N: usize>(
    text: &'a str,
    names: [&'static str; N],
) -> impl Iterator<Item = Result<(usize, [&'a str; N]), WrongLine>> {
    let lines = text.lines().zip(1..).filter_map(move |(line, number)| {
        let line = line.split('#').next().unwrap_or_default().trim();
        let is_header = number == 1 && line.split(',').map(str::trim).eq(names);
        (!line.is_empty() && !is_header).then_some((number, line))
    });
    lines.map(move |(number, line)| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let count = fields.len();
        let fields: [&str; N] = fields.try_into().map_err(|_| {
            let names = names.join(", ");
            WrongLine::new(number, format!("{count} fields instead of {N}: {names}"))
        })?;
        Ok((number, fields))
    })
}
