//! `first-call`: how long a new user takes from a fresh checkout to the first call of a machine of one's own, by language.
//!
//! Nothing that was compiled or fetched before is used but cargo's downloads and the system's packages: the checkout, its
//! products and the compilers of registries lie in a folder that goes again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::demo::Player;
use crate::setup::{self, Need};
use crate::{paint, process, tenure};

/// Time a new user's way to the first call of an own machine, from a fresh checkout, in each language.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask first-call\n  cargo xtask first-call lua zig")]
pub(crate) struct Arguments {
    /// Only these languages, by the names that `tenure new --lang` takes.
    languages: Vec<String>,
}

/// The languages, as `tenure new --lang` takes them.
const LANGUAGES: [&str; 7] = ["rust", "c", "cpp", "zig", "assemblyscript", "javascript", "lua"];
/// What every language's project answers to its first call.
const GREETING: &str = "Hello, you! You are number 1.";
/// How long all may take that is between the checkout and the answer.
const GOAL: Duration = Duration::from_secs(300);

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let languages = wanted(&arguments.languages)?;
    setup::ensure(&[Need::Wasm, Need::Clang, Need::GuestLibraries, Need::Registries])?;
    let folder = tempfile::tempdir().context("cannot make a folder for the checkout")?;
    let user = NewUser { folder: folder.path() };
    let (command, once) = timed(|| user.build_command(root))?;
    println!(
        "{:<16} {:>8}  once: checkout, and `cargo build --release` of the command",
        "",
        shown(once)
    );
    println!(
        "{:<16} {:>8} {:>8} {:>8} {:>8}",
        "language", "compiler", "machine", "call", "with all"
    );
    let mut late = Vec::new();
    for language in languages {
        let steps = user.first_call(&command, language).with_context(|| language.to_owned())?;
        let all = once + steps.iter().sum::<Duration>();
        let [compiler, machine, call] = steps.map(shown);
        println!("{language:<16} {compiler:>8} {machine:>8} {call:>8} {:>8}", shown(all));
        if all > GOAL {
            late.push(language);
        }
    }
    if !late.is_empty() {
        let goal = format!("more than {} s on this computer: {}", GOAL.as_secs(), late.join(", "));
        println!("{}", paint::stdout().bad(goal));
    }
    Ok(())
}

/// The languages of these names, or all if there is none.
fn wanted(names: &[String]) -> Result<Vec<&'static str>> {
    if let Some(unknown) = names.iter().find(|name| !LANGUAGES.contains(&name.as_str())) {
        bail!("no language is called {unknown}; there are: {}", LANGUAGES.join(", "));
    }
    let is_wanted = |language: &&str| names.is_empty() || names.iter().any(|name| name == language);
    Ok(LANGUAGES.into_iter().filter(is_wanted).collect())
}

/// Somebody on a computer that has what `cargo xtask setup` installs, and nothing of ours.
struct NewUser<'a> {
    folder: &'a Path,
}

impl NewUser<'_> {
    /// Clones the repository's last commit and builds the command, as `cargo install` would.
    fn build_command(&self, root: &Path) -> Result<PathBuf> {
        let checkout = self.folder.join("checkout");
        let mut clone = Command::new("git");
        process::run(
            clone.args(["clone", "--quiet", "--depth=1"]).arg(address(root)).arg(&checkout),
        )?;
        let mut build = process::cargo(&checkout);
        build.args(["build", "--quiet", "--release", "--package", "tenure-cli"]);
        build.env("CARGO_TARGET_DIR", self.folder.join("target"));
        process::run(&mut build)?;
        Ok(self.folder.join("target/release/tenure"))
    }

    /// How long it takes to have the language's compiler, to have a machine, and to have the answer of its first call from a
    /// device.
    fn first_call(&self, command: &Path, language: &str) -> Result<[Duration; 3]> {
        let tenure = |words: &[&str]| {
            let mut command = Command::new(command);
            tenure::alone_in(command.args(words), self.folder);
            command.env("TENURE_TOOLCHAINS", self.folder.join("toolchains"));
            command.env_remove("CARGO_TARGET_DIR");
            command
        };
        let ((), compiler) = timed(|| {
            if setup::is_in_a_registry(language) {
                process::capture(&mut tenure(&["toolchain", "install", language]))?;
            }
            Ok(())
        })?;
        let name = format!("my-{language}");
        let ((), machine) = timed(|| {
            process::capture(&mut tenure(&["new", &name, "--lang", language]))?;
            process::capture(&mut tenure(&["build", &name])).map(drop)
        })?;
        let package = format!("{name}/{name}.tenure");
        ensure!(fs::exists(self.folder.join(&package))?, "the build made no {package}");
        let (answer, call) = timed(|| {
            let data = format!("device-{language}");
            let mut device = tenure(&["device", "--listen", "127.0.0.1:0", "--data", &data]);
            let device = Player::start_silent(&mut device, "device")?;
            let address = device.address()?;
            let install = ["install", &package, "--grant", "all", "--device", &address];
            process::capture(&mut tenure(&install))?;
            process::capture(&mut tenure(&["call", &name, "greet", "you", "--device", &address]))
        })?;
        ensure!(answer.trim() == GREETING, "it answered {answer:?}");
        Ok([compiler, machine, call])
    }
}

/// A repository that git clones as one from elsewhere, and not by links to its files.
fn address(root: &Path) -> String {
    format!("file://{}", root.display())
}

/// What the work gives, and how long it took.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let begin = Instant::now();
    Ok((work()?, begin.elapsed()))
}

fn shown(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_taken_by_their_names_and_unknown_ones_refused() {
        assert_eq!(wanted(&[]).unwrap(), LANGUAGES);
        assert_eq!(wanted(&["lua".into(), "c".into()]).unwrap(), ["c", "lua"]);
        let error = wanted(&["c++".into()]).unwrap_err().to_string();
        assert!(error.starts_with("no language is called c++; there are: rust, c, "), "{error}");
    }
}
