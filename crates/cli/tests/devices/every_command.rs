//! The table of all commands, as clap describes them: what each of them owes its user.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use expect_test::expect_file;
use serde_json::Value;

use crate::harness::User;

/// The words of every command and subcommand, the command itself first.
fn table() -> Vec<Vec<String>> {
    fn below(command: &clap::Command, words: &[String], table: &mut Vec<Vec<String>>) {
        table.push(words.to_vec());
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            below(sub, &[words, &[sub.get_name().to_string()]].concat(), table);
        }
    }
    let mut table = Vec::new();
    below(&tenure_cli::command_line::command(), &[], &mut table);
    assert!(table.len() > 80, "{table:?}");
    table
}

/// Runs each command of the table with `more` words behind it, as `change` has it, and lets `check` see how it ends.
/// Says of all that fail what they did.
fn each(
    more: &[&str],
    change: impl Fn(&mut Command) + Sync,
    check: impl Fn(&[String], &Output) -> Result<(), String> + Sync,
) {
    let user = User::new();
    let left = Mutex::new(table());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let Some(words) = left.lock().unwrap().pop() else { return };
                    let own: Vec<&str> = words.iter().map(String::as_str).collect();
                    let mut command = user.command(&[&own, more].concat());
                    command.stdout(Stdio::piped()).stderr(Stdio::piped());
                    change(&mut command);
                    let output = command.output().unwrap();
                    let error = String::from_utf8_lossy(&output.stderr).into_owned();
                    let is_panic = error.contains("panicked") || output.status.code().is_none();
                    let checked = match is_panic {
                        true => Err("panics".to_string()),
                        false => check(&words, &output),
                    };
                    if let Err(why) = checked {
                        let words = words.join(" ");
                        failures
                            .lock()
                            .unwrap()
                            .push(format!("tenure {words} {more:?}: {why}: {error}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Takes all folders of the user away.
fn homeless(command: &mut Command) {
    for name in ["HOME", "XDG_CONFIG_HOME", "TENURE_HOME"] {
        command.env_remove(name);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn expect(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_string()) }
}

#[test]
fn help_of_every_command_fits_a_narrow_terminal_and_needs_no_folder() {
    let narrow = |command: &mut Command| {
        homeless(command);
        command.env("COLUMNS", "40").env("LC_ALL", "C").env("NO_COLOR", "1");
    };
    each(&["--help"], narrow, |words, output| {
        let text = String::from_utf8(output.stdout.clone()).map_err(|error| error.to_string())?;
        expect(output.status.success(), "fails")?;
        let usage = format!("Usage: {}", [&["tenure".to_string()], words].concat().join(" "));
        expect(text.contains(&usage), &format!("has no `{usage}`"))?;
        expect(!text.contains('\x1b'), "has colours")?;
        let is_long = |line: &&str| line.chars().count() > 40 && line.trim().contains(' ');
        // A usage is one line.
        let is_usage = |line: &&str| line.contains("tenure ");
        let long = text.lines().filter(is_long).find(|line| !is_usage(line));
        expect(long.is_none(), &format!("has the line {long:?}"))?;
        // The commands by groups, below a line of usage.
        let listed = text.lines().skip_while(|line| !is_usage(line)).skip(1);
        let is_at_edge =
            |line: &&str| !(line.is_empty() || line.starts_with("  ") || line.ends_with(':'));
        let loose = listed.take_while(|line| *line != "Options:").find(is_at_edge);
        expect(!words.is_empty() || loose.is_none(), &format!("wraps to the edge: {loose:?}"))
    });
}

/// The help as a file has it in which no terminal says how wide it is: a file of each command in `help`.
#[test]
fn help_of_every_command_is_as_it_was_reviewed() {
    let texts = Mutex::new(BTreeMap::new());
    let plain = |command: &mut Command| {
        homeless(command);
        command.env_remove("COLUMNS").env_remove("SSLKEYLOGFILE");
        command.env("LC_ALL", "C").env("NO_COLOR", "1");
    };
    each(&["--help"], plain, |words, output| {
        let text = String::from_utf8(output.stdout.clone()).map_err(|error| error.to_string())?;
        let name = [&["tenure".to_string()], words].concat().join("-") + ".txt";
        texts.lock().unwrap().insert(name, text);
        expect(output.status.success(), "fails")
    });
    let texts = texts.into_inner().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devices/help");
    for (name, text) in &texts {
        expect_file![folder.join(name)].assert_eq(text);
    }
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let gone: Vec<String> = files.filter(|file| !texts.contains_key(file)).collect();
    assert!(gone.is_empty(), "no command has the help in {gone:?}");
}

#[test]
fn help_that_nobody_reads_is_no_failure() {
    let unread = |command: &mut Command| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.stdout(writer);
    };
    each(&["-h"], unread, |_, output| {
        expect(output.status.success() && output.stderr.is_empty(), "fails")
    });
}

#[test]
fn option_that_no_command_has_is_an_error_of_usage() {
    each(
        &["--nosuch"],
        |_| {},
        |_, output| {
            let error = stderr(output);
            expect(output.status.code() == Some(2), "ends with another code than 2")?;
            expect(output.stdout.is_empty(), "prints")?;
            expect(error.starts_with("error: unexpected argument '--nosuch'"), "begins otherwise")
        },
    );
    each(
        &["--nosuch", "--json"],
        |_| {},
        |_, output| {
            let error: Value =
                serde_json::from_slice(&output.stderr).map_err(|error| error.to_string())?;
            expect(output.status.code() == Some(2), "ends with another code than 2")?;
            let error = error["error"].as_str().unwrap_or_default();
            expect(error.starts_with("unexpected argument '--nosuch'"), "begins otherwise")
        },
    );
}

/// How a command without words ends where it has no folder, or one that can't be made.
fn ends_with_a_reason(output: &Output) -> Result<(), String> {
    let error = stderr(output);
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) => {
            expect(error.starts_with("error: "), "begins otherwise")?;
            expect(error.trim_end().lines().count() == 1, "isn't one line")
        }
        Some(2) => {
            let is_help = error.contains("Usage: tenure");
            expect(error.starts_with("error: ") || is_help, "begins otherwise")
        }
        code => Err(format!("ends with {code:?}")),
    }
}

#[test]
fn command_without_words_and_folder_says_what_is_missing() {
    each(&[], homeless, |_, output| ends_with_a_reason(output));
}

#[test]
fn command_whose_folder_cannot_be_made_says_so() {
    let nowhere = |command: &mut Command| {
        command.env("TENURE_HOME", "/dev/null/tenure");
    };
    each(&[], nowhere, |_, output| ends_with_a_reason(output));
}
