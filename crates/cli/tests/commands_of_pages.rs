//! Each command `tenure` that a page names, in a block or in a sentence, is one that the command line takes.
//!
//! The blocks of README, guide and tutorial are run as well (`devices`); those of other pages want boards, radios or a
//! fleet. Here no page names a subcommand or an option that has another name by now.

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

#[test]
fn commands_that_pages_name_are_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut tried, mut refused) = (0, Vec::new());
    for path in pages(&root) {
        let page = std::fs::read_to_string(&path).unwrap();
        for Named { line, words, is_whole } in named(&page) {
            tried += 1;
            if let Err(why) = takes(&words, is_whole) {
                let path = path.strip_prefix(&root).unwrap().display();
                refused.push(format!("{path}:{line}: {}: {why}", words.join(" ")));
            }
        }
    }
    assert!(refused.is_empty(), "{} of {tried}:\n{}", refused.len(), refused.join("\n"));
    assert!(tried > 300, "{tried}");
}

/// The crates whose texts people read: helps, errors, proposals, pages of the hub.
const SPEAKING: [&str; 9] =
    ["bridge", "cli", "coap", "hub", "hub-server", "kernel", "node", "package", "pages"];

#[test]
fn commands_that_helps_errors_and_pages_of_the_hub_propose_are_taken() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut tried, mut refused) = (0, Vec::new());
    for path in SPEAKING.iter().flat_map(|name| sources(&crates.join(name).join("src"))) {
        let source = std::fs::read_to_string(&path).unwrap();
        for Named { line, words, .. } in proposed(without_tests(&source)) {
            tried += 1;
            if let Err(why) = takes(&words, false) {
                let path = path.strip_prefix(&crates).unwrap().display();
                refused.push(format!("{path}:{line}: {}: {why}", words.join(" ")));
            }
        }
    }
    assert!(refused.is_empty(), "{} of {tried}:\n{}", refused.len(), refused.join("\n"));
    assert!(tried > 200, "{tried}");
}

#[test]
fn proposals_with_wrong_words_are_found_wherever_they_stand_in_a_text() {
    let source = concat!(
        "fn f() {\n    // `tenure nothing` is no text.\n    bail!(\"gone; see `tenure lst`\");\n",
        "    bail!(\"start one: tenure device --dir {data}, then go on\");\n",
        "    x(\"it is `tenure \\\n        list --devise {name}`\");\n    y(\"tenure list --device {name}\");\n}\n"
    );
    let found: Vec<_> =
        proposed(source).into_iter().map(|n| (n.line, takes(&n.words, false).is_ok())).collect();
    assert_eq!(found, [(3, false), (4, false), (5, false), (7, true)]);
}

#[test]
fn commands_with_wrong_words_are_refused() {
    let page = "Say `tenure lst`, `tenure list --devise attic` or `tenure install --watch`.\n\n```sh\n\
                tenure list --jsn | jq    # no such option\nkill %1; tenure call\ntenure install x.tenure \\\n  --fr 3d\n```\n";
    let found: Vec<_> =
        named(page).into_iter().map(|n| (n.line, takes(&n.words, n.is_whole).is_ok())).collect();
    assert_eq!(found, [(1, false), (1, false), (1, true), (4, false), (5, false), (6, false)]);
}

/// Code that begins as a command does: labels of the session protocol.
const NO_COMMANDS: [&str; 6] = [
    "tenure kept keys",
    "tenure rpc 1",
    "tenure rpc proof",
    "tenure mesh name",
    "tenure mesh start",
    "tenure mesh record",
];

/// A command that a page names.
struct Named {
    line: usize,
    words: Vec<String>,
    /// It stands in a block, to be typed as it is; in a sentence, arguments may be left out.
    is_whole: bool,
}

fn pages(root: &Path) -> Vec<PathBuf> {
    let mut folders =
        ["docs", "examples", "boards", "sdk"].map(|folder| root.join(folder)).to_vec();
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
            .map(|page| root.join(page))
            .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// A source up to its tests, which hold lines that nobody is told.
fn without_tests(source: &str) -> &str {
    source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(source)
}

/// The sources below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut folders, mut sources) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(extension) if extension == "rs" => sources.push(path),
                _ => {}
            }
        }
    }
    sources.sort();
    sources
}

/// The commands in the texts of a source: between backticks, at a text's beginning, or behind a colon. Comments that don't
/// become a help are nobody's to read.
fn proposed(source: &str) -> Vec<Named> {
    let mut all = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    for (number, text) in (1..).zip(source.lines()) {
        let text = text.trim_start();
        if text.starts_with("//") && !text.starts_with("///") {
            continue;
        }
        let (first, before) = begun.take().unwrap_or((number, String::new()));
        match text.strip_suffix('\\') {
            Some(text) => begun = Some((first, before + text)),
            None => {
                let line = before + text;
                for begin in ["`tenure ", "\"tenure ", ": tenure "] {
                    for (at, _) in line.match_indices(begin) {
                        let rest = line[at + 1..].trim_start();
                        let ends = ["`", "\"", "\\n", ";", ", then"];
                        let end = ends.iter().filter_map(|end| rest.find(end)).min();
                        let command = &rest[..end.unwrap_or(rest.len())];
                        // Another text has the command's name; or it is a label, as of what is signed.
                        let name = command.strip_prefix("tenure ").unwrap_or_default();
                        let is_known = name.starts_with(|letter: char| letter.is_ascii_lowercase());
                        all.extend(
                            commands(command, first, false).into_iter().filter(|_| is_known),
                        );
                    }
                }
            }
        }
    }
    all
}

/// The commands that a page names, each with its first line.
fn named(page: &str) -> Vec<Named> {
    let mut all = Vec::new();
    // Whether the line stands in a block, and in one of commands.
    let (mut is_block, mut is_script) = (false, false);
    // What was begun: a line of a block behind which the next goes on, or a paragraph.
    let mut begun: Option<(usize, String)> = None;
    for (number, text) in (1..).zip(page.lines().chain([""])) {
        let is_fence = text.trim_start().starts_with("```");
        let (first, before) = begun.take().unwrap_or((number, String::new()));
        match text.strip_suffix('\\') {
            Some(text) if is_script => begun = Some((first, before + text)),
            _ if is_script => all.extend(commands(&(before + text), first, true)),
            _ if is_block => {}
            _ if is_fence || text.trim().is_empty() => {
                // Every other piece between backticks is code.
                let code = before.split('`').skip(1).step_by(2);
                all.extend(code.flat_map(|code| commands(code, first, false)));
            }
            _ => begun = Some((first, before + " " + text)),
        }
        if is_fence {
            is_block = !is_block;
            is_script = is_block && ["```sh", "```console"].contains(&text.trim());
        }
    }
    all
}

/// The commands `tenure` in a line as a shell reads it.
fn commands(text: &str, line: usize, is_whole: bool) -> Vec<Named> {
    let text = text.trim_start().trim_start_matches("$ ");
    let Some(words) = shlex::split(text) else { return Vec::new() };
    let separated =
        words.split(|word| ["&&", "|", ";", "&"].contains(&word.as_str()) || word.ends_with(';'));
    let commands = separated.filter_map(|words| {
        let words: Vec<&str> = words
            .iter()
            .map(|word| {
                word.rsplit_once("$(")
                    .map_or(word.as_str(), |(_, inner)| inner)
                    .trim_end_matches(')')
            })
            .skip_while(|word| *word == "sudo")
            .take_while(|word| !word.trim_start_matches('2').starts_with(['>', '<']))
            .collect();
        let is_command = words.first() == Some(&"tenure") && !NO_COMMANDS.contains(&text);
        is_command.then_some(words)
    });
    commands
        .map(|words| Named { line, words: words.into_iter().map(String::from).collect(), is_whole })
        .collect()
}

/// Whether the command line takes these words, of which `…` may stand for others, or for none.
fn takes(words: &[String], is_whole: bool) -> Result<(), String> {
    let without = words.iter().filter(|word| *word != "…").cloned();
    taken(words.to_vec(), is_whole).or_else(|_| taken(without.collect(), is_whole))
}

fn taken(words: Vec<String>, is_whole: bool) -> Result<(), String> {
    let Err(error) = tenure_cli::command_line::command().try_get_matches_from(words) else {
        return Ok(());
    };
    let is_taken = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => stands_for_others(&error, is_whole),
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::TooFewValues
        | ErrorKind::WrongNumberOfValues => !is_whole,
        _ => false,
    };
    if is_taken { Ok(()) } else { Err(error.to_string().lines().next().unwrap_or_default().into()) }
}

/// Whether the value that is refused stands for another, or, in a sentence, was left out.
fn stands_for_others(error: &Error, is_whole: bool) -> bool {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return false;
    };
    let mut letters = value.chars().filter(|letter| letter.is_alphabetic()).peekable();
    let is_upper = letters.peek().is_some() && letters.all(char::is_uppercase);
    is_upper || value.contains(['$', '<', '…', '|', '{']) || value.is_empty() && !is_whole
}
