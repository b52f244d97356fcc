//! `tenure --help`: the commands by what they are for.

use clap::Command;
use rustix::termios::{Winsize, tcgetwinsize};

/// Where what a command does begins in its line, and goes on in the next.
const INDENT: usize = 15;
/// The columns of what is no terminal.
const COLUMNS: usize = 100;

/// The commands, by what they are for; each is in one group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Write a machine", &["new", "build", "toolchain", "test", "run", "inspect", "key", "secret"]),
    (
        "Hold devices",
        &[
            "device",
            "replay",
            "profile",
            "debug",
            "hub",
            "login",
            "people",
            "trust-hub",
            "enrol",
            "owner",
            "revoke",
            "use",
            "devices",
            "firmware",
            "flash",
            "serial",
        ],
    ),
    (
        "Put machines on them",
        &[
            "fleet", "push", "pull", "rollout", "install", "rollback", "remove", "trash", "renew",
            "pass", "restart", "stop", "start", "unban", "snapshot", "restore", "journal",
        ],
    ),
    (
        "Look and call",
        &[
            "shell", "status", "top", "ping", "netcheck", "list", "call", "pages", "log", "faults",
            "tree", "events", "tls",
        ],
    ),
    ("Mesh and experiments", &["invite", "mesh", "experiment", "sim"]),
    ("Bills and the shell", &["receipts", "bill", "completions"]),
];

/// The template of the help: the commands stand in what comes last but for the options.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n{after-help}\n\nOptions:\n{options}";

/// `command` with its subcommands listed by group.
pub fn grouped(command: Command) -> Command {
    let mut text = String::new();
    let (columns, indented) = (columns(), format!("\n{:INDENT$}", ""));
    for (title, names) in GROUPS {
        text += &format!("\n{title}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(String::new, ToString::to_string);
            let lines = wrapped(first_line(&about), columns.saturating_sub(INDENT));
            text += &format!("  {name:<12} {}\n", lines.join(&indented));
        }
    }
    command.help_template(TEMPLATE).after_help(text.trim_end().to_owned())
}

/// The columns of the terminal that shows the help, looked for as clap does.
fn columns() -> usize {
    let of_terminal = |size: rustix::io::Result<Winsize>| size.ok().map(|size| size.ws_col);
    let columns = of_terminal(tcgetwinsize(std::io::stdout()))
        .or_else(|| of_terminal(tcgetwinsize(std::io::stderr())))
        .or_else(|| of_terminal(tcgetwinsize(std::io::stdin())))
        .or_else(|| std::env::var("COLUMNS").ok()?.parse().ok());
    columns.filter(|columns| *columns > 0).map_or(COLUMNS, usize::from)
}

/// The text in lines of at most `columns` characters, where its words allow that.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| {
            line.is_empty() || line.chars().count() + 1 + word.chars().count() <= columns
        });
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_string()),
        }
    }
    lines
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The commands that stand in no group, or in two.
pub fn misplaced(command: &Command) -> Vec<String> {
    let count = |name: &str| {
        GROUPS.iter().flat_map(|(_, names)| *names).filter(|one| **one == name).count()
    };
    let names = command.get_subcommands().map(Command::get_name);
    names.filter(|name| *name != "help" && count(name) != 1).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_on_in_the_next_line_where_one_is_full() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("longer than that", 4), ["longer", "than", "that"]);
        assert_eq!(wrapped("", 7), [""]);
    }
}
