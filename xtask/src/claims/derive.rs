//! Where the number of a claim comes from.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::constant;
use super::statement::Statement;
use crate::{files, process};

/// One number's source: exactly one of `constant`, `key`, `said`, `lines`, `code_lines`, `entries` and `command`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Source {
    /// The file or folder that has it.
    #[serde(rename = "in")]
    place: String,
    /// A constant of a Rust source, or a field where it is set.
    constant: Option<String>,
    /// The keys of a TOML file that lead to it, with dots between; of a list the entry whose `name` it is.
    key: Option<String>,
    /// Another page's words, with one `{}`: the number stands there, and here once more.
    said: Option<String>,
    /// The lines that begin with this, counted.
    lines: Option<String>,
    /// Whether its lines of code are counted: without comments, blanks, and tests in the file.
    code_lines: bool,
    /// The entries of a folder whose names end with this, counted.
    entries: Option<String>,
    /// A command and its arguments; the number is the one in the place of `{}` in `prints`.
    command: Option<String>,
    prints: String,
    /// The value of one, in the unit of the source: 1,024 if the page speaks of KiB and the source of bytes.
    per: Option<f64>,
}

impl Source {
    pub(super) fn is_costly(&self) -> bool {
        self.command.is_some()
    }

    /// The number, in the unit of the page.
    pub(super) fn derive(&self, root: &Path) -> Result<f64> {
        Ok(self.found(root)? / self.per.unwrap_or(1.0))
    }

    fn found(&self, root: &Path) -> Result<f64> {
        let place = root.join(&self.place);
        if let Some(command) = &self.command {
            let mut words = command.split_whitespace();
            let program = words.next().context("a command has a name")?;
            let output = process::capture(Command::new(program).args(words).current_dir(root))?;
            return in_text(&output, &self.prints).with_context(|| format!("`{command}`"));
        }
        if let Some(ending) = &self.entries {
            let entries = std::fs::read_dir(&place).with_context(|| self.place.clone())?;
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            let names = names.collect::<Result<Vec<String>>>()?;
            return Ok(names.iter().filter(|name| name.ends_with(ending)).count() as f64);
        }
        let text = files::read(&place)?;
        if let Some(name) = &self.constant {
            let value = constant::value(&text, name);
            return value.with_context(|| format!("{} sets no number {name}", self.place));
        }
        if let Some(key) = &self.key {
            let table: toml::Table = toml::from_str(&text).with_context(|| self.place.clone())?;
            let value = number_at(&toml::Value::Table(table), key);
            return value.with_context(|| format!("{} has no number at {key}", self.place));
        }
        if let Some(said) = &self.said {
            return in_text(&text, said).with_context(|| self.place.clone());
        }
        if self.code_lines {
            return Ok(code_lines(&text) as f64);
        }
        let Some(start) = &self.lines else {
            bail!("a source has one of constant, key, said, lines, code_lines, entries, command");
        };
        Ok(text.lines().filter(|line| line.trim_start().starts_with(start)).count() as f64)
    }
}

/// How many lines of a Rust source have code, up to the module with its tests.
fn code_lines(text: &str) -> usize {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().map(str::trim_start);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// The number in `text` in the place of the `{}` of `pattern`.
fn in_text(text: &str, pattern: &str) -> Result<f64> {
    let found = Statement::find(text, pattern).and_then(|found| found.values().next());
    found.with_context(|| format!("nowhere is {pattern:?} with a number"))
}

fn number_at(value: &toml::Value, path: &str) -> Option<f64> {
    let mut value = value;
    for key in path.split('.') {
        value = match value {
            toml::Value::Array(entries) => entries
                .iter()
                .find(|entry| entry.get("name").and_then(toml::Value::as_str) == Some(key))?,
            value => value.get(key)?,
        };
    }
    value.as_float().or(value.as_integer().map(|number| number as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_are_counted_without_comments_and_the_tests_of_the_file() {
        let code = "//! A page.\n\nuse a;\n\n/// B\nfn b() {\n    // why\n    c(); // d\n}\n";
        assert_eq!(code_lines(code), 4);
        let tests = "#[cfg(test)]\nmod tests {\n    fn e() {}\n}\n";
        assert_eq!(code_lines(&format!("{code}\n{tests}")), 4);
        assert_eq!(code_lines(&format!("#[cfg(test)]\nmod tests;\n{code}")), 6);
    }

    #[test]
    fn number_of_toml_is_found_by_keys_and_names() {
        let text = "[[budget]]\nname = \"firmware\"\nmax = 9\n[[budget]]\nname = \"core\"\nrecorded = { a = 1.5 }\n";
        let table = toml::Value::Table(toml::from_str(text).unwrap());
        assert_eq!(number_at(&table, "budget.firmware.max"), Some(9.0));
        assert_eq!(number_at(&table, "budget.core.recorded.a"), Some(1.5));
        assert_eq!(number_at(&table, "budget.core.max"), None);
    }
}
