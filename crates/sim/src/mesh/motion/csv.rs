//! Traces as lines of `time,node,x,y`: seconds, a number from 0 on, and metres east and north.
//!
//! Lines of different nodes come in any order, those of one in the order of time.

use super::{Motion, WrongLine, fields, number, time};

const NAMES: [&str; 4] = ["time", "node", "x", "y"];

pub(super) fn parse(text: &str) -> Result<Motion, WrongLine> {
    let mut motion = Motion::default();
    for read in fields(text, NAMES) {
        let (line, [at, node, x, y]) = read?;
        let at_s = time(at, line)?;
        let node = node
            .parse::<u32>()
            .map_err(|_| WrongLine::new(line, format!("`{node}` is no node's number")))?;
        let spot = [number(x, line)?, number(y, line)?];
        let path = motion.paths.entry(node).or_default();
        match path.marks.last() {
            None => path.line = line,
            Some((before_s, _)) if at_s < *before_s => {
                let what = format!("node {node} was at {before_s} s already, and this is {at_s} s");
                return Err(WrongLine::new(line, what));
            }
            Some(_) => {}
        }
        path.marks.push((at_s, spot));
    }
    Ok(motion)
}
