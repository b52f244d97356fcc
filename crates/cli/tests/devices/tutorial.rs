//! The tutorial's own commands, as they stand in docs/tutorial.md, on real processes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::harness::{PATIENCE, free_address};

/// Commands that change nothing: given again until they print what the page says, as machines need a moment.
const LOOKING: [&str; 8] = [
    "tenure call diary",
    "tenure call tank left",
    "tenure call alarm",
    "tenure call bed",
    "tenure list",
    "tenure log",
    "tenure tree tank",
    "tenure call forecast tomorrow",
];

/// A command of the page, and the lines that it prints.
struct Step {
    command: String,
    expected: Vec<String>,
}

/// The commands of a page: the lines that begin with `$` in its blocks of the console.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            steps.push(Step { command: command.to_string(), expected: Vec::new() });
        } else if is_console {
            steps.last_mut().unwrap().expected.push(line.to_string());
        }
    }
    steps
}

/// Whether text is as a page has it, where `…` stands for any text, and as a line of its own for any lines.
fn matches(expected: &str, text: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A shell that runs one command after the other, and ends all it has started when the test does.
struct Bash {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Bash {
    fn in_folder(folder: &Path) -> Self {
        let tenure = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut child = Command::new("bash")
            .current_dir(folder)
            .env("PATH", format!("{}:{path}", tenure.display()))
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"))
            .env_remove("TENURE_HUB")
            .env_remove("TENURE_DEVICE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut bash = Self { child, stdin: Some(stdin), stdout };
        bash.run("trap 'kill -9 $(jobs -p) 2> /dev/null' EXIT");
        bash
    }

    /// Runs a command to its end; returns what it printed, errors too.
    fn run(&mut self, command: &str) -> String {
        // A command in the background is no member of a group, so that `$!` and `jobs` know it.
        let text = match command.ends_with('&') {
            true => format!("{command}\necho; echo ---\n"),
            false => format!("{{ {command}\n}} < /dev/null 2>&1; echo; echo ---\n"),
        };
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        let mut printed = String::new();
        while !printed.ends_with("\n---\n") {
            assert_ne!(self.stdout.read_line(&mut printed).unwrap(), 0, "bash ended: {printed}");
        }
        printed.trim_end_matches("---\n").trim_end().to_string()
    }
}

impl Drop for Bash {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn every_command_of_the_tutorial_prints_what_the_page_says() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(repository.join("docs/tutorial.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    crate::guests::copy(
        &repository.join("apps/greenhouse"),
        &folder.path().join("apps/greenhouse"),
    );
    // Tests run side by side: each has an address of its own.
    let address = free_address();
    let host = address.split(':').next().unwrap();
    let mut bash = Bash::in_folder(folder.path());
    let steps = steps(&page.replace("127.0.0.1", host));
    assert!(steps.len() > 30, "{}", steps.len());
    for Step { command, expected } in &steps {
        let expected = expected.join("\n");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let printed = bash.run(command);
            if matches(&expected, &printed) {
                break;
            }
            let is_look = LOOKING.iter().any(|look| command.starts_with(look));
            assert!(
                is_look && Instant::now() < deadline,
                "$ {command}\nprints:\n{printed}\nand should print:\n{expected}"
            );
        }
    }
}

#[test]
fn dots_of_a_page_stand_for_any_text_and_nothing_else_does() {
    for (expected, text) in [
        ("", ""),
        ("a b", "a b"),
        ("key …", "key 123"),
        ("… b …\nc", "1 b 2\nc"),
        ("…\nwarning no water\n…", "x\ny\nwarning no water\nz"),
    ] {
        assert!(matches(expected, text), "{expected:?} {text:?}");
    }
    for (expected, text) in [("", "x"), ("a", "b"), ("a", "a b"), ("a … c", "a b"), ("… b", "b c")]
    {
        assert!(!matches(expected, text), "{expected:?} {text:?}");
    }
}
