//! Places in a machine's source, and the trace of calls that led to one.

use std::fmt;
use std::path::{Path, PathBuf};

use tenure_wire::printable::printable;

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The function it belongs to, if the compiler said.
    pub function: Option<String>,
    /// The file, as the compiler was told of it.
    pub file: PathBuf,
    /// The line, from 1 on.
    pub line: u32,
}

/// The function and line of a piece of a machine's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function's name, if known.
    pub function: Option<String>,
    /// The source line, and behind it those into which it was inlined; empty if not known.
    pub lines: Vec<SourceLine>,
}

impl Place {
    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        self.function.is_some() || !self.lines.is_empty()
    }

    /// As an object for `--json`.
    pub fn to_json(&self) -> serde_json::Value {
        let line = |line: &SourceLine| serde_json::json!({ "function": line.function, "file": line.file, "line": line.line });
        let lines: Vec<_> = self.lines.iter().map(line).collect();
        serde_json::json!({ "function": self.function, "lines": lines })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, outer)) = self.lines.split_first() else {
            return f.write_str(&printable(self.function.as_deref().unwrap_or("unknown code")));
        };
        let write = |f: &mut fmt::Formatter<'_>, line: &SourceLine, whole: Option<&str>| {
            let name = whole.or(line.function.as_deref()).unwrap_or("a function without name");
            let file = shortened(&line.file);
            write!(f, "{} ({}:{})", printable(name), printable(&file), line.line)
        };
        let whole = |last: bool| self.function.as_deref().filter(|_| last);
        write(f, first, whole(outer.is_empty()))?;
        for (index, line) in outer.iter().enumerate() {
            f.write_str(", inlined into ")?;
            write(f, line, whole(index + 1 == outer.len()))?;
        }
        Ok(())
    }
}

/// A path as a person here would write it.
fn shortened(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// A fault's place and the calls that led there, a line each.
pub fn trace_lines(trace: &[Place]) -> Vec<String> {
    let lines = trace.iter().enumerate().map(|(position, place)| match position {
        0 => format!("  in {place}"),
        _ => format!("  called from {place}"),
    });
    lines.collect()
}

/// How often one function stands among the calls that led to a fault until it counts as a recursion.
const RECURSION_AT: usize = 4;

/// The likeliest cause of a fault that its text tells, where its own words don't name it: compilers of C, Rust and Zig keep a
/// stack below all else in memory, and what overruns that leaves the memory.
pub fn hint_of(fault: &str) -> Option<&'static str> {
    let (before, callers) = fault.split_once(", called from ")?;
    if !before.contains("out of bounds memory access") {
        return None;
    }
    let (_, first) = before.rsplit_once("in function ")?;
    let first = first.split(' ').next().unwrap_or_default();
    let callers = callers.split(", ").filter_map(|site| site.split_once(':'));
    let mut functions: Vec<&str> = callers.map(|(function, _)| function).chain([first]).collect();
    functions.sort_unstable();
    let is_recursion =
        functions.chunk_by(|one, next| one == next).any(|same| same.len() >= RECURSION_AT);
    is_recursion.then_some(
        "a recursion: the stack in its memory is likely used up; set stack_bytes below [build] to more, or recurse less deep",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_that_leaves_the_memory_is_told_as_a_stack_that_is_used_up() {
        let fault = |callers: &str| {
            format!(
                "stopped while serving `down`: trap: out of bounds memory access in function 7 at offset 0x8{callers}"
            )
        };
        let deep = fault(", called from 7:0x20, 7:0x20, 7:0x20, 3:0x4");
        assert!(hint_of(&deep).is_some_and(|hint| hint.contains("stack_bytes")), "{deep}");
        // Two functions that call each other, too.
        assert!(
            hint_of(&fault(", called from 9:0x20, 7:0x20, 9:0x20, 7:0x20, 9:0x20, 7:0x20"))
                .is_some()
        );
        for other in ["", ", called from 6:0x20, 5:0x20, 4:0x20, 3:0x4"] {
            assert_eq!(hint_of(&fault(other)), None, "a wild pointer");
        }
        let division = deep.replace("out of bounds memory access", "integer divide by zero");
        assert_eq!(hint_of(&division), None);
    }
}
