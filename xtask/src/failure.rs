//! A test that failed: what it printed, and how to repeat it alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::process;
use crate::test::firmware;

/// A test that failed, or a test program that died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The name in its program; none if the program died, which took all its tests along.
    pub(crate) test: Option<String>,
    /// Cargo's words for the program: `-p PACKAGE --test NAME`.
    pub(crate) program: String,
    /// The end of what it printed.
    pub(crate) last: Vec<String>,
    /// It passed when it was run once more.
    pub(crate) passed_alone: bool,
}

impl Failure {
    /// The program and the test, for people.
    pub(crate) fn name(&self) -> String {
        match &self.test {
            Some(test) => format!("{} ({})", test, self.program),
            None => format!("the program {}", self.program),
        }
    }

    /// The part of `program` that chooses among the programs of a package.
    ///
    /// The parts that cargo compiles of a crate's dependencies differ by the packages that are asked for, so that a
    /// run of one package alone may compile anew what a run of all has compiled.
    fn target(&self) -> impl Iterator<Item = &str> {
        let words: Vec<_> = self.program.split_whitespace().collect();
        let from = if words.first() == Some(&"-p") { 2 } else { 0 };
        words.into_iter().skip(from)
    }

    /// libtest's words for this test of the program alone.
    ///
    /// rustdoc takes a blank for the end of a word, and the names of its tests have some: so all of the file are run.
    fn filter<'a>(&self, test: &'a str) -> impl Iterator<Item = &'a str> {
        let (exact, name) = if self.program.ends_with("--doc") {
            (None, test.split_whitespace().next().unwrap_or(test))
        } else {
            (Some("--exact"), test)
        };
        exact.into_iter().chain([name])
    }
}

/// A `cargo test` as it was started: where, with what, and with which options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recipe {
    folder: PathBuf,
    environment: Vec<(String, String)>,
    /// Cargo's, from `test` on.
    arguments: Vec<String>,
    /// libtest's, without the words that choose tests.
    switches: Vec<String>,
}

impl Recipe {
    pub(crate) fn new(command: &Command, options: &[&str]) -> Self {
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let set = |(name, value): (_, Option<_>)| Some((text(name), text(value?)));
        let switches = options.iter().filter(|option| option.starts_with('-'));
        Self {
            folder: command.get_current_dir().unwrap_or(Path::new(".")).to_path_buf(),
            environment: command.get_envs().filter_map(set).collect(),
            arguments: command.get_args().map(text).collect(),
            switches: switches.map(ToString::to_string).collect(),
        }
    }

    /// Compiles the tests, and runs none.
    pub(crate) fn build(&self) -> Command {
        let mut command = self.cargo();
        command.arg("--no-run");
        command
    }

    /// Runs that failed test again, with what was compiled for all.
    pub(crate) fn again(&self, failure: &Failure) -> Command {
        let mut command = self.cargo();
        command.args(failure.target()).arg("--").args(&self.switches);
        command.args(failure.test.iter().flat_map(|test| failure.filter(test)));
        command
    }

    fn cargo(&self) -> Command {
        let mut command = process::cargo(&self.folder);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.args(&self.arguments);
        command
    }

    /// The command that repeats it alone, as one would type it in the repository's folder.
    pub(crate) fn shown(&self, failure: &Failure, root: &Path) -> String {
        let mut words = Vec::new();
        if let Ok(folder) = self.folder.strip_prefix(root)
            && folder != Path::new("")
        {
            words.push(format!("cd {} &&", folder.display()));
        }
        // What was built for that run may be old by now.
        let kept = self.environment.iter().filter(|(name, _)| name != firmware::LIST);
        words.extend(kept.map(|(name, value)| format!("{name}={}", quoted(value))));
        words.push("cargo test".to_owned());
        if self.arguments.iter().any(|argument| argument == "--release") {
            words.push("--release".to_owned());
        }
        words.push(failure.program.clone());
        let mut options = self.switches.clone();
        if let Some(test) = &failure.test {
            options.extend(failure.filter(test).map(quoted));
        }
        if !options.is_empty() {
            words.push(format!("-- {}", options.join(" ")));
        }
        words.join(" ")
    }
}

/// As a shell takes it for one word.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-:/.,=+".contains(letter);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(program: &str, test: &str) -> Failure {
        Failure {
            test: Some(test.into()),
            program: program.into(),
            last: Vec::new(),
            passed_alone: false,
        }
    }

    fn recipe(folder: &str, arguments: &[&str], options: &[&str]) -> Recipe {
        let mut command = Command::new("cargo");
        command.current_dir(folder).args(arguments).env("KEY", "a b");
        Recipe::new(command.env(firmware::LIST, "target/tmp/firmware.list"), options)
    }

    #[test]
    fn test_is_run_again_among_the_packages_that_it_was_run_with() {
        let arguments = ["test", "--release", "--package", "tenure-vm", "--test", "emulated"];
        let recipe = recipe("/project", &arguments, &["some_tests", "--ignored", "--nocapture"]);
        let failure = failure("-p tenure-vm --test emulated", "machines");
        let command = recipe.again(&failure);
        let expected = "test --release --package tenure-vm --test emulated --test emulated \
                        -- --ignored --nocapture --exact machines";
        let shown = process::show(&command);
        assert_eq!(shown.split_once(' ').map(|(_, rest)| rest), Some(expected));
        assert_eq!(command.get_current_dir(), Some(Path::new("/project")));
        assert!(command.get_envs().any(|one| one == ("KEY".as_ref(), Some("a b".as_ref()))));
    }

    #[test]
    fn command_that_repeats_a_test_can_be_pasted() {
        let root = Path::new("/project");
        let all = recipe("/project/sdk/rust", &["test"], &[]);
        assert_eq!(
            all.shown(&failure("--doc", "src/lib.rs - (line 6)"), root),
            "cd sdk/rust && KEY='a b' cargo test --doc -- src/lib.rs"
        );
        let optimised = recipe("/project", &["test", "--release"], &["--ignored"]);
        let mut died = failure("-p tenure-vm --lib", "");
        died.test = None;
        assert_eq!(
            optimised.shown(&died, root),
            "KEY='a b' cargo test --release -p tenure-vm --lib -- --ignored"
        );
    }
}
