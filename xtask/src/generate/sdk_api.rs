//! The pages of what the libraries for Rust and C have, by the comments in their sources: a table for each part, with a row for
//! each name.

use std::fmt::Write as _;

use super::Description;

/// The library for Rust: the path of each part for its users, and its source. Of those without a path of their own, `lib.rs`
/// says what is there.
const RUST: [(&str, &str); 12] = [
    ("", include_str!("../../../sdk/rust/src/export.rs")),
    ("", include_str!("../../../sdk/rust/src/calls.rs")),
    ("", include_str!("../../../sdk/rust/src/log.rs")),
    ("", include_str!("../../../sdk/rust/src/machine.rs")),
    ("", include_str!("../../../sdk/rust/src/key.rs")),
    ("events", include_str!("../../../sdk/rust/src/events.rs")),
    ("http", include_str!("../../../sdk/rust/src/http.rs")),
    ("reach", include_str!("../../../sdk/rust/src/reach.rs")),
    ("secret", include_str!("../../../sdk/rust/src/secret.rs")),
    ("timers", include_str!("../../../sdk/rust/src/timers.rs")),
    ("tree", include_str!("../../../sdk/rust/src/tree.rs")),
    ("fields", include_str!("../../../sdk/rust/src/fields.rs")),
];
const RUST_ROOT: &str = include_str!("../../../sdk/rust/src/lib.rs");
const C_HEADER: &str = include_str!("../../../sdk/c/include/tenure.h");

/// A name that a library has.
struct Entry {
    /// How it is declared, in one line.
    form: String,
    /// What it does, in a paragraph.
    words: String,
}

/// The page of the library for Rust.
pub(super) fn rust_page(_: &Description) -> String {
    let mut page = page_head("Rust", "sdk/rust/src");
    page += "`cargo doc --open -p tenure` in a project shows them with all that they take and return. `tenure::host` has the raw\n\
             [host calls](host-calls.md).\n";
    let exported = exported_names();
    let mut all = Vec::new();
    for (path, source) in RUST {
        let is_root = path.is_empty();
        let is_there = RUST_ROOT.contains(&format!("pub mod {path};"));
        let entries = rust_entries(source, path, |name| {
            if is_root { exported.iter().any(|one| one == name) } else { is_there }
        });
        match all.iter_mut().find(|(known, _): &&mut (&str, Vec<Entry>)| *known == path) {
            Some((_, known)) => known.extend(entries),
            None => all.push((path, entries)),
        }
    }
    for (path, entries) in all.iter().filter(|(_, entries)| !entries.is_empty()) {
        let title = if path.is_empty() { "tenure".into() } else { format!("tenure::{path}") };
        add_table(&mut page, &format!("`{title}`"), entries);
    }
    page
}

/// The page of the library for C and C++.
pub(super) fn c_page(_: &Description) -> String {
    let mut page = page_head("C and C++", "sdk/c/include/tenure.h");
    page += "A project has the header as `.tenure/sdk/c/include/tenure.h`. The numbers of errors stand with the\n\
             [host calls](host-calls.md).\n";
    for (title, entries) in c_sections() {
        add_table(&mut page, &title, &entries);
    }
    page
}

fn page_head(language: &str, source: &str) -> String {
    format!(
        "<!-- Generated from {source} by `cargo xtask generate`. -->\n\n# What a machine in {language} can call\n\n"
    )
}

fn add_table(page: &mut String, title: &str, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    let _ = write!(page, "\n## {title}\n\n| | |\n|---|---|\n");
    for Entry { form, words } in entries {
        let cell = |text: &str| text.replace('|', "\\|");
        let _ = writeln!(page, "| `{}` | {} |", cell(form), cell(words));
    }
}

/// The names that the root of the library for Rust hands on from its parts.
fn exported_names() -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = RUST_ROOT;
    while let Some((_, behind)) = rest.split_once("\npub use ") {
        let Some((used, behind)) = behind.split_once(';') else { break };
        let list = used.rsplit_once("::").map_or(used, |(_, list)| list);
        let list = list.trim_matches(['{', '}']).split(',').map(str::trim);
        names.extend(list.filter(|name| !name.is_empty()).map(str::to_owned));
        rest = behind;
    }
    names
}

/// The public names of a Rust file that are `there`, and the public functions of types that are.
fn rust_entries(source: &str, path: &str, is_there: impl Fn(&str) -> bool) -> Vec<Entry> {
    let mut entries = Vec::new();
    let (mut words, mut of_type) = (Vec::new(), None);
    // Wherever it stands, such a macro is the root's.
    let mut is_macro = false;
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        if let Some(comment) = text.strip_prefix("///") {
            words.push(comment.trim().to_owned());
            continue;
        }
        if text.starts_with("#[") {
            is_macro |= text == "#[macro_export]";
            continue;
        }
        if line.starts_with("impl") {
            of_type = implemented(line).filter(|name| is_there(name));
        } else if line == "}" {
            of_type = None;
        }

        let mut form = text.to_owned();
        while is_declaration(text) && !form.contains(['{', ';']) {
            let Some(next) = lines.next() else { break };
            form = format!("{form} {}", next.trim());
        }
        let is_inner = line.starts_with("    ");
        let entry = match (&of_type, is_inner) {
            (Some(of_type), true) => declared(&form, Some(of_type), path),
            (_, false) => {
                declared(&form, None, path).filter(|(name, _)| is_macro || is_there(name))
            }
            (None, true) => None,
        };
        if let Some((_, form)) = entry.filter(|_| !words.is_empty()) {
            entries.push(Entry { form, words: paragraph(&words) });
        }
        words.clear();
        is_macro = false;
    }
    entries
}

/// The type that an `impl` without a trait is of.
fn implemented(line: &str) -> Option<String> {
    let head = line.split(" {").next()?;
    if head.contains(" for ") {
        return None;
    }
    let behind = head.strip_prefix("impl")?;
    let behind = if behind.starts_with('<') { behind.split_once("> ")?.1 } else { behind.trim() };
    Some(behind.split(['<', ' ']).next()?.to_owned())
}

fn is_declaration(text: &str) -> bool {
    ["pub fn ", "pub const fn ", "pub struct ", "pub enum ", "pub trait "]
        .iter()
        .any(|start| text.starts_with(start))
}

/// The name of what a line declares in public, and its form for a reader.
fn declared(form: &str, of_type: Option<&String>, path: &str) -> Option<(String, String)> {
    let before = if path.is_empty() { String::new() } else { format!("{path}::") };
    if let Some(name) = form.strip_prefix("macro_rules! ") {
        let name = name.trim_end_matches([' ', '{']);
        return Some((name.to_owned(), format!("{name}!(…)")));
    }
    if !is_declaration(form) {
        return None;
    }
    let head = form.split([';', '{']).next()?.trim();
    let head = head.split(" where ").next()?.trim_end_matches(',');
    let (_, named) = head.split_once("pub ")?;
    let named = named.strip_prefix("const ").unwrap_or(named);
    let (kind, rest) = named.split_once(' ')?;
    let name: String = rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
    let plain = rest.replace("( ", "(").replace(", )", ")").replace(",)", ")");
    let form = match (kind, of_type) {
        ("fn", Some(of_type)) => format!("{before}{of_type}::{plain}"),
        ("fn", None) => format!("{before}{plain}"),
        (kind, _) => format!("{kind} {before}{name}"),
    };
    Some((name, form))
}

/// The first paragraph of a comment as one line, with links as plain code.
fn paragraph(words: &[String]) -> String {
    let first = words.iter().take_while(|line| !line.is_empty() && !line.starts_with('#'));
    let line = first.map(String::as_str).collect::<Vec<_>>().join(" ");
    let mut plain = String::new();
    let mut rest = line.as_str();
    while let Some((before, behind)) = rest.split_once("`](") {
        plain = plain + before + "`";
        rest = behind.split_once(')').map_or("", |(_, behind)| behind);
    }
    (plain + rest).replace("[`", "`").replace("`]", "`")
}

/// The parts of C's header: the title of each, and what it declares.
fn c_sections() -> Vec<(String, Vec<Entry>)> {
    let mut sections: Vec<(String, Vec<Entry>)> = vec![("Functions".to_owned(), Vec::new())];
    let mut words = String::new();
    let mut lines = C_HEADER.lines();
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("/* ") {
            let mut text = comment.to_owned();
            while !text.ends_with("*/") {
                let Some(next) = lines.next() else { break };
                let next = next.trim_start_matches(' ').trim_start_matches('*').trim();
                if next == "/" {
                    break;
                }
                text = format!("{text} {next}");
            }
            let text = text.trim_end_matches("*/").trim().to_owned();
            match text.strip_prefix("---- ") {
                Some(section) => {
                    let title = section.split(" ----").next().unwrap_or_default();
                    let mut letters = title.chars();
                    let first = letters.next().map(|it| it.to_uppercase().to_string());
                    sections.push((first.unwrap_or_default() + letters.as_str(), Vec::new()));
                    words.clear();
                }
                None => words = text,
            }
        } else if line.is_empty() {
            words.clear();
        } else if let Some(form) = c_declaration(line, &mut lines)
            && let Some((_, entries)) = sections.last_mut()
        {
            // The comment before several names is the first one's, and the others go with it.
            let next = if words.is_empty() { String::new() } else { "The same.".into() };
            let words = std::mem::replace(&mut words, next);
            if entries.iter().all(|known| known.form != form) {
                entries.push(Entry { form, words });
            }
        }
    }
    sections
}

/// What a line of C, and those behind it that belong to it, declare.
fn c_declaration<'a>(line: &str, lines: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    if let Some(definition) = line.strip_prefix("#define ") {
        let name = definition.split(' ').next()?;
        let is_call = name.contains('(');
        return (is_call && !line.contains("EXTERN_C")).then(|| name.to_owned());
    }
    let is_block = line.starts_with("struct tenure_") && line.ends_with('{')
        || line.starts_with("enum tenure_") && line.ends_with('{');
    if is_block {
        lines.by_ref().find(|line| line.starts_with('}'))?;
        return Some(line.trim_end_matches([' ', '{']).to_owned());
    }
    if line.starts_with(['#', ' ', '}']) || line.starts_with("extern") || !line.contains("tenure_")
    {
        return None;
    }
    let mut whole = line.to_owned();
    while !whole.ends_with(';') {
        whole = format!("{whole} {}", lines.next()?.trim());
    }
    let whole = whole.trim_end_matches(';');
    let whole = match whole.split_once("__attribute__((") {
        Some((_, behind)) => behind.split_once(")) ").map_or(whole, |(_, plain)| plain),
        None => whole,
    };
    Some(whole.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_what_a_newcomer_looks_for() {
        let description = Description { calls: &[], errors: &[] };
        let rust = rust_page(&description);
        for name in [
            "`uptime() -> Duration`",
            "`timers::every(",
            "`tree::set_text(",
            "`export!(…)`",
            "`sleep(",
        ] {
            assert!(rust.contains(name), "{name} in {rust}");
        }
        let c = c_page(&description);
        for name in [
            "`char *tenure_parameter(size_t *length)`",
            "`uint64_t tenure_uptime_us(void)`",
            "`void tenure_fail(const char *format, ...)`",
            "`TENURE_EXPORT(NAME)`",
            "`struct tenure_task`",
            "## Time and chance",
        ] {
            assert!(c.contains(name), "{name} in {c}");
        }
    }
}
