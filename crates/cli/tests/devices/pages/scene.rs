//! A place where a page's commands run as its reader types them: a folder, an address, keys, a shell.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use tempfile::TempDir;
use tenure_testbed::{patience, wait_until};

use super::page::{Step, steps};
use crate::harness::free_address;

/// The address of this computer on pages, before a port.
const HERE: &str = "127.0.0.1:";
/// Commands that change nothing more when they are given again: given until they do as the page says, as devices
/// and machines need a moment.
const LOOKS: [&str; 10] = [
    "tenure devices",
    "tenure events",
    "tenure inspect",
    "tenure key",
    "tenure list",
    "tenure log",
    "tenure status",
    "tenure top",
    "tenure tree get",
    "tenure use",
];
/// The beginning of the line behind the output of a command; its exit code follows.
const END: &str = "--- the command ended: ";

/// The scene, with all that its commands have started; it ends when dropped.
pub(super) struct Scene {
    // Dropped in this order: processes end before their folder goes.
    bash: Bash,
    folder: TempDir,
    /// The addresses on pages so far, and ours that stand for them.
    places: BTreeMap<String, String>,
    looks: &'static [&'static str],
}

impl Scene {
    /// An empty folder; commands that begin as one of `looks` change nothing, beside those of which that is known.
    pub(super) fn new(looks: &'static [&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bash = Bash::in_folder(folder.path());
        Self { bash, folder, places: BTreeMap::new(), looks }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs each command of a page, or of a part of it, which must do as it says there; returns how many there are.
    #[track_caller]
    pub(super) fn play(&mut self, page: &str) -> usize {
        let steps = steps(&self.placed(page)).unwrap_or_else(|fault| panic!("{fault}"));
        for step in &steps {
            if self.is_look(&step.command) {
                wait_until(|| self.attempt(step));
            } else {
                self.attempt(step).unwrap_or_else(|fault| panic!("{fault}"));
            }
        }
        steps.len()
    }

    /// The page with our addresses in place of its own, which all have a port.
    fn placed(&mut self, page: &str) -> String {
        let mut parts = page.split(HERE);
        let mut placed = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let end = part.find(|next: char| !next.is_ascii_digit()).unwrap_or(part.len());
            let (port, rest) = part.split_at(end);
            let port = port.to_string();
            placed += self.places.entry(port).or_insert_with(free_address);
            placed += rest;
        }
        placed
    }

    fn is_look(&self, command: &str) -> bool {
        LOOKS.iter().chain(self.looks).any(|look| command.starts_with(look))
    }

    fn attempt(&mut self, Step { line, command, outcome }: &Step) -> Result<(), String> {
        let (printed, succeeded) = self.bash.run(command);
        match outcome.is(&printed, succeeded) {
            true => Ok(()),
            false => {
                Err(format!("line {line}: $ {command}\nprints:\n{printed}\nand should {outcome}"))
            }
        }
    }
}

/// A shell that runs one command after the other, and ends all it has started when the test does.
struct Bash {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Bash {
    fn in_folder(folder: &Path) -> Self {
        let tenure = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut child = Command::new("bash")
            .current_dir(folder)
            .env("PATH", format!("{}:{path}", tenure.display()))
            .env("TENURE_HOME", folder.join("home"))
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"))
            .env_remove("TENURE_HUB")
            .env_remove("TENURE_DEVICE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut bash = Self { child, stdin, lines };
        // If the test is killed, the shell reads no more, and ends.
        bash.run("trap 'kill -9 $(jobs -p) 2> /dev/null' EXIT");
        bash
    }

    /// Runs a command to its end; returns what it printed, errors too, and whether it succeeded.
    fn run(&mut self, command: &str) -> (String, bool) {
        // A command in the background is no member of a group, so that `$!` and `jobs` know it.
        let run = match command.ends_with('&') {
            true => command.to_string(),
            false => format!("{{ {command}\n}} < /dev/null 2>&1"),
        };
        let text = format!("{run}\ncode_of_the_step=$?; echo; echo \"{END}$code_of_the_step\"\n");
        self.stdin.write_all(text.as_bytes()).unwrap();
        let mut printed = Vec::new();
        loop {
            let line = self.lines.recv_timeout(patience()).unwrap_or_else(|error| {
                panic!("$ {command}\nprints:\n{}\nand: {error}", printed.join("\n"))
            });
            if let Some(code) = line.strip_prefix(END) {
                return (printed.join("\n").trim_end().to_string(), code == "0");
            }
            printed.push(line);
        }
    }
}

impl Drop for Bash {
    fn drop(&mut self) {
        let group = format!("kill -KILL -{}", self.child.id());
        let _ = Command::new("bash").args(["-c", &group]).status();
        let _ = self.child.wait();
    }
}
