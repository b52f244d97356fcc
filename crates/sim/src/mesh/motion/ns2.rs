//! Movement files of ns-2: statements that set a node's place, and that send it to another one at a speed.
//!
//! ```text
//! $node_(0) set X_ 83.36
//! $ns_ at 2.0 "$node_(0) setdest 90.44 44.90 1.37"
//! $ns_ at 9.0 "$node_(0) set X_ 10.0"
//! ```
//!
//! Statements of a time are carried out in the order of time, and at the same time in that of the file; those without one at
//! the start, wherever they stand. A node that is sent elsewhere before it is there turns from where it is; at speed
//! 0 it stops. A coordinate that nothing sets is 0. What is for ns-2's `god`, who counts hops, and heights mean
//! nothing here.

use super::{Motion, Path, WrongLine, number, time};

/// What a statement does to a node.
enum Act {
    /// Puts it elsewhere along an axis.
    Set(usize, f64),
    /// Sends it there, at so many metres a second.
    Send([f64; 2], f64),
}

/// A statement about a node.
struct Statement {
    line: usize,
    node: u32,
    at_s: Option<f64>,
    act: Act,
}

pub(super) fn parse(text: &str) -> Result<Motion, WrongLine> {
    let mut statements = Vec::new();
    for (text, line) in text.lines().zip(1..) {
        let text = text.split('#').next().unwrap_or_default().trim();
        statements.extend(statement(text, line)?);
    }
    let mut motion = Motion::default();
    for Statement { line, node, at_s, act } in &statements {
        let path = motion
            .paths
            .entry(*node)
            .or_insert_with(|| Path { line: *line, marks: vec![(0.0, [0.0; 2])] });
        if let (None, Act::Set(axis, metres)) = (at_s, act) {
            path.marks[0].1[*axis] = *metres;
        }
    }
    statements.retain(|statement| statement.at_s.is_some());
    statements.sort_by(|one, other| {
        one.at_s.partial_cmp(&other.at_s).unwrap_or(std::cmp::Ordering::Equal)
    });
    for Statement { node, at_s, act, .. } in statements {
        if let (Some(path), Some(at_s)) = (motion.paths.get_mut(&node), at_s) {
            path.act(at_s, act);
        }
    }
    Ok(motion)
}

impl Path {
    /// Changes where the node goes from a time on, which isn't before that of any act so far.
    fn act(&mut self, at_s: f64, act: Act) {
        let here = self.at(at_s);
        self.marks.truncate(self.marks.partition_point(|(mark_s, _)| *mark_s <= at_s));
        self.marks.push((at_s, here));
        match act {
            Act::Set(axis, metres) => {
                let mut there = here;
                there[axis] = metres;
                self.marks.push((at_s, there));
            }
            Act::Send(there, metres_s) if metres_s > 0.0 => {
                let [east, north] = [0, 1].map(|axis| there[axis] - here[axis]);
                self.marks.push((at_s + east.hypot(north) / metres_s, there));
            }
            Act::Send(..) => {}
        }
    }
}

/// The statement on a line, if it is about where a node is.
fn statement(text: &str, line: usize) -> Result<Option<Statement>, WrongLine> {
    let wrong = || WrongLine::new(line, format!("`{text}` is no statement about where a node is"));
    let words: Vec<&str> = text.split_whitespace().collect();
    let (at_s, about) = match words[..] {
        [] | ["set", "god_", ..] => return Ok(None),
        [_, "at", at, ..] => {
            let at_s = time(at, line)?;
            let quoted = text.split_once('"').and_then(|(_, rest)| rest.strip_suffix('"'));
            (Some(at_s), quoted.ok_or_else(wrong)?)
        }
        _ => (None, text),
    };
    let words: Vec<&str> = about.split_whitespace().collect();
    let (name, act) = match words[..] {
        ["$god_", ..] => return Ok(None),
        [_, "set", "Z_", metres] => {
            number(metres, line)?;
            return Ok(None);
        }
        [name, "set", "X_", metres] => (name, Act::Set(0, number(metres, line)?)),
        [name, "set", "Y_", metres] => (name, Act::Set(1, number(metres, line)?)),
        [name, "setdest", x, y, speed] if at_s.is_some() => {
            let metres_s = number(speed, line)?;
            if metres_s < 0.0 {
                return Err(WrongLine::new(line, format!("a speed of {metres_s} m/s")));
            }
            (name, Act::Send([number(x, line)?, number(y, line)?], metres_s))
        }
        _ => return Err(wrong()),
    };
    Ok(Some(Statement { line, node: node(name, line)?, at_s, act }))
}

/// The number of `$node_(7)`, whatever the variable is called.
fn node(name: &str, line: usize) -> Result<u32, WrongLine> {
    let index = name.strip_prefix('$').and_then(|name| name.strip_suffix(')'));
    let index = index.and_then(|name| name.split_once('(')).map(|(_, index)| index);
    let node = index.and_then(|index| index.parse().ok());
    node.ok_or_else(|| WrongLine::new(line, format!("`{name}` is no node's number")))
}
