//! Rust files, and the functions and methods in them.

use std::path::Path;

use anyhow::Result;

use crate::files;

/// A Rust file without the tests within it.
pub(super) struct Source {
    /// From the repository's root on.
    pub(super) path: String,
    /// The folder of its package, from the root on.
    pub(super) package: String,
    /// Whether the whole file is tests.
    pub(super) is_test: bool,
    pub(super) lines: Vec<String>,
}

/// A function with a body.
pub(super) struct Function {
    /// `path:line name`.
    pub(super) name: String,
    /// From its `fn` to its closing brace.
    pub(super) lines: usize,
}

/// All Rust files of the repository.
pub(super) fn all(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for file in files::with_ending(root, &[".rs"])? {
        let path = files::shown(&file, root).to_string();
        sources.push(Source::new(path, &files::read(&file)?));
    }
    Ok(sources)
}

impl Source {
    pub(super) fn new(path: String, text: &str) -> Self {
        let is_test = path.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
        let package = path.split("/src/").next().unwrap_or_default().to_owned();
        Self { path, package, is_test, lines: without_tests(text) }
    }

    pub(super) fn functions(&self) -> Vec<Function> {
        let starts =
            self.lines.iter().enumerate().filter(|(_, line)| function_name(line).is_some());
        starts
            .filter_map(|(start, line)| {
                let end = self.end_of_body(start)?;
                let name = format!("{}:{} {}", self.path, start + 1, function_name(line)?);
                Some(Function { name, lines: end - start + 1 })
            })
            .collect()
    }

    /// The types of the blocks of methods that aren't a trait's, each with how many stand in the block.
    pub(super) fn implementations(&self) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        for (start, line) in self.lines.iter().enumerate() {
            let Some(name) = inherent_type(line) else { continue };
            let end = self.end_of_block(start, indent(line)).unwrap_or(start);
            let methods = self.lines[start..end].iter().filter(|it| function_name(it).is_some());
            found.push((name.to_owned(), methods.count()));
        }
        found
    }

    /// The names of the types that are declared here.
    pub(super) fn declared(&self) -> Vec<String> {
        self.lines.iter().filter_map(|line| declared_type(line)).map(str::to_owned).collect()
    }

    /// The last line of the function that begins at `start`; `None` if it has no body.
    fn end_of_body(&self, start: usize) -> Option<usize> {
        let head = (start..self.lines.len())
            .find(|index| self.lines[*index].trim_end().ends_with(['{', ';', '}']))?;
        match self.lines[head].trim_end().chars().last()? {
            '{' => self.end_of_block(head, indent(&self.lines[start])),
            '}' => Some(head),
            _ => None,
        }
    }

    fn end_of_block(&self, start: usize, indent: usize) -> Option<usize> {
        let is_end = |line: &String| line.trim() == "}" && line.find('}') == Some(indent);
        let length = self.lines[start..].iter().position(is_end)?;
        Some(start + length)
    }
}

/// Leaves out `#[cfg(test)] mod … { … }`, which stands last in a file, so that lines keep their numbers.
fn without_tests(text: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_module = line == "#[cfg(test)]"
            && lines.peek().is_some_and(|next| next.contains("mod ") && next.ends_with('{'));
        if !is_module {
            kept.push(line.to_owned());
            continue;
        }
        for line in lines.by_ref() {
            if line == "}" {
                break;
            }
        }
    }
    kept
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The name of the function that begins in this line.
fn function_name(line: &str) -> Option<&str> {
    const WORDS: [&str; 6] = ["pub ", "const ", "async ", "unsafe ", "extern \"C\" ", "default "];
    let mut rest = line.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix("fn ") {
            return after.split(['(', '<']).next();
        }
        let visibility = rest.strip_prefix("pub(").and_then(|after| after.split_once(") "));
        rest = match visibility {
            Some((_, after)) => after,
            None => WORDS.iter().find_map(|word| rest.strip_prefix(word))?,
        };
    }
}

/// The name of the type that is declared in this line.
fn declared_type(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let rest = match rest.strip_prefix("pub(") {
        Some(after) => after.split_once(") ")?.1,
        None => rest.strip_prefix("pub ").unwrap_or(rest),
    };
    let rest = ["struct ", "enum ", "union "].iter().find_map(|word| rest.strip_prefix(word))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// The type's name in `impl<…> Type<…> {`; `None` for a trait's implementation.
fn inherent_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generics) => after_generics(generics)?,
        None => rest.strip_prefix(' ')?,
    };
    if rest.contains(" for ") {
        return None;
    }
    let path = rest.trim_start().split(['<', ' ', '{']).next()?;
    path.rsplit("::").next().filter(|name| !name.is_empty())
}

/// The rest behind the `>` that closes a list of generics, which began before `text`.
fn after_generics(text: &str) -> Option<&str> {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        depth += match c {
            '<' => 1,
            '>' if !text[..at].ends_with('-') => -1,
            _ => 0,
        };
        if depth == 0 {
            return Some(&text[at + 1..]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Source;

    const TEXT: &str = "\
impl<F: Fn(u8) -> u8> Node<F> {
    pub(crate) fn one(&self) -> u8 {
        1
    }

    fn two(&self) {}
}

impl Clone for Node<u8> {
    fn clone(&self) -> Self {
        todo()
    }
}

trait Bare {
    fn declared(&self);
}

pub const fn last(
    long: u8,
) -> u8 {
    long
}

#[cfg(test)]
mod tests {
    fn hidden() {
        nothing()
    }
}
";

    #[test]
    fn functions_have_bodies_and_end_where_they_begin() {
        let source = Source::new("crates/a/src/b.rs".into(), TEXT);
        let found: Vec<_> = source.functions().into_iter().map(|it| (it.lines, it.name)).collect();
        let expected = [(3, ":2 one"), (1, ":6 two"), (3, ":10 clone"), (5, ":19 last")];
        assert_eq!(
            found,
            expected.map(|(lines, name)| (lines, format!("crates/a/src/b.rs{name}")))
        );
    }

    #[test]
    fn methods_are_a_type_s_own() {
        let source = Source::new("crates/a/src/b.rs".into(), TEXT);
        assert_eq!(source.implementations(), [("Node".to_owned(), 2)]);
    }

    #[test]
    fn a_declared_type_has_a_name_whoever_may_see_it() {
        let text =
            "pub(crate) struct One<T>(T);\n    enum Two {\npub union Three {\nlet structure = 1;\n";
        let source = Source::new("crates/a/src/b.rs".into(), text);
        assert_eq!(source.declared(), ["One", "Two", "Three"]);
    }
}
