//! `mutants`: takes away one check after the other of those that decide who may and who pays, and runs the
//! tests of the crate that it is in, which must fail.
//!
//! With `--of CRATE` it tries every small change of a crate instead ([`every`]).
//!
//! The mutants are made in a copy of the sources under `target/mutants`; the workspace stays as it is, and so
//! does what cargo compiled of it. What both depend on isn't compiled again.

mod changes;
mod every;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{process, workspace};

/// The list, by this crate's folder.
const LIST: &str = include_str!("../mutants.toml");
/// Tests that take long and look for something else.
const SKIPPED: [&str; 2] = ["fifty_thousand", "nor_do_as_many"];

/// Take away each check of who may and who pays, and see that a test of its own crate fails.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask mutants\n  cargo xtask mutants renewal\n  \
                        cargo xtask mutants --sample\n  \
                        cargo xtask mutants --of package\n  cargo xtask mutants --of kernel --draw 200\n  \
                        cargo xtask mutants --generated crates/kernel/src/authority.rs")]
pub(crate) struct Arguments {
    /// Only mutants whose names hold this.
    only: Option<String>,
    /// Only the few of the sample, which take seconds each.
    #[arg(long, conflicts_with = "only")]
    sample: bool,
    /// Run what cargo-mutants makes of this file instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "sample"])]
    generated: Option<PathBuf>,
    /// Try every small change of this crate of `crates` instead; the crate's tests must find 95 % of those that
    /// xtask/survivors.toml doesn't list.
    #[arg(long, value_name = "CRATE", conflicts_with_all = ["only", "sample", "generated"])]
    of: Option<String>,
    /// So many of its changes, drawn the same way each time.
    #[arg(long, value_name = "N", requires = "of")]
    draw: Option<usize>,
}

/// A change that a test must find.
#[derive(Deserialize)]
struct Mutant {
    name: String,
    package: String,
    file: PathBuf,
    old: String,
    new: String,
    /// The test that finds it and the target that it is in, `lib` or a file of `tests`; by default all of the
    /// crate's tests look for it.
    found_by: Option<(String, String)>,
    /// Whether `cargo xtask test` tries it.
    #[serde(default)]
    sample: bool,
}

#[derive(Deserialize)]
struct List {
    mutant: Vec<Mutant>,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    if let Some(file) = &arguments.generated {
        return generated(file, root);
    }
    if let Some(name) = &arguments.of {
        return every::run(name, arguments.draw, root);
    }
    let wanted = |mutant: &Mutant| {
        let is_named = |only: &String| mutant.name.contains(only.as_str());
        arguments.only.as_ref().is_none_or(is_named) && (mutant.sample || !arguments.sample)
    };
    let mutants: Vec<Mutant> = list()?.into_iter().filter(wanted).collect();
    ensure!(!mutants.is_empty(), "no mutant has such a name");
    let copy = copy_of(root)?;
    let (mut survivors, mut stale) = (0, 0);
    for mutant in &mutants {
        match try_mutant(mutant, &copy) {
            Ok(true) => println!("killed   {}", mutant.name),
            Ok(false) => {
                survivors += 1;
                println!("SURVIVED {}", mutant.name);
            }
            Err(error) => {
                stale += 1;
                println!("STALE    {}: {error:#}", mutant.name);
            }
        }
    }
    println!("{} mutants, {survivors} survived, {stale} are stale", mutants.len());
    ensure!(survivors == 0, "a check has no test in its own crate");
    ensure!(stale == 0, "xtask/mutants.toml has mutants of code that has changed");
    Ok(())
}

/// Tries the mutants of the sample, for `cargo xtask test`.
pub(crate) fn sample(root: &Path) -> Result<()> {
    run(&Arguments { only: None, sample: true, generated: None, of: None, draw: None }, root)
}

fn list() -> Result<Vec<Mutant>> {
    Ok(toml::from_str::<List>(LIST).context("xtask/mutants.toml")?.mutant)
}

/// The mutant's version of a source; none if the text that it changes doesn't stand there exactly once.
fn mutated(mutant: &Mutant, source: &str) -> Option<String> {
    let stands_once = source.matches(&mutant.old).count() == 1;
    stands_once.then(|| source.replace(&mutant.old, &mutant.new))
}

/// A copy of what git knows of the workspace, so that nobody's work is touched.
struct Copy {
    folder: PathBuf,
    /// Where cargo compiles it: where the workspace is, for the sake of the crates that both depend on.
    target: PathBuf,
    /// Settings by which cargo tells the copy's crates from the workspace's: it knows both by their paths below
    /// their roots. Without them it would take the one for the other, whatever was changed in between.
    settings: Vec<String>,
}

fn copy_of(root: &Path) -> Result<Copy> {
    let target = root.join("target");
    let copy = target.join("mutants/sources");
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    ensure!(listed.status.success(), "git doesn't list the sources");
    let names = String::from_utf8(listed.stdout)?;
    let names: BTreeSet<&Path> = names.split_terminator('\0').map(Path::new).collect();
    if copy.is_dir() {
        remove_others(&names, &copy, Path::new(""))?;
    }
    for name in names {
        let (from, to) = (root.join(name), copy.join(name));
        let Ok(bytes) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|before| before == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        fs::write(to, bytes)?;
    }
    // One less than cargo's own choice.
    let setting = |name| format!("profile.dev.package.{name}.codegen-units=255");
    let settings = workspace::packages(root)?.into_iter().map(|package| setting(package.name));
    Ok(Copy { folder: copy, target, settings: settings.collect() })
}

/// Removes what an earlier copy has in `folder` and the sources don't: cargo takes a file for a test or a module, too.
fn remove_others(names: &BTreeSet<&Path>, copy: &Path, folder: &Path) -> Result<()> {
    for entry in fs::read_dir(copy.join(folder))? {
        let entry = entry?;
        let name = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(names, copy, &name)?;
        } else if !names.contains(name.as_path()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether the tests of the mutant's crate fail with it.
fn try_mutant(mutant: &Mutant, copy: &Copy) -> Result<bool> {
    let path = copy.folder.join(&mutant.file);
    let source = fs::read_to_string(&path)?;
    let Some(changed) = mutated(mutant, &source) else {
        bail!("what `{}` changes doesn't stand in {} once", mutant.name, mutant.file.display());
    };
    fs::write(&path, changed)?;
    let built = tests_of(mutant, copy).arg("--no-run").status();
    let passed = tests_of(mutant, copy)
        .arg("--")
        .args(SKIPPED.iter().flat_map(|it| ["--skip", it]))
        .args(mutant.found_by.iter().map(|(_, test)| test))
        .status();
    fs::write(&path, source)?;
    ensure!(built?.success(), "`{}` doesn't compile", mutant.name);
    Ok(!passed?.success())
}

fn tests_of(mutant: &Mutant, copy: &Copy) -> Command {
    let mut command = process::cargo(&copy.folder);
    command.env("CARGO_TARGET_DIR", &copy.target);
    command.args(["test", "--quiet", "--package", &mutant.package]);
    command.args(copy.settings.iter().flat_map(|setting| ["--config", setting]));
    match mutant.found_by.as_ref().map(|(target, _)| target.as_str()) {
        None => command.args(["--lib", "--tests"]),
        Some("lib") => command.arg("--lib"),
        Some(target) => command.args(["--test", target]),
    };
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn generated(file: &Path, root: &Path) -> Result<()> {
    let mut version = process::cargo(root);
    let known = version.args(["mutants", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !known.status().is_ok_and(|status| status.success()) {
        bail!("cargo-mutants isn't here; `cargo install --locked cargo-mutants` installs it");
    }
    process::run(process::cargo(root).args(["mutants", "--file"]).arg(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_changes_what_stands_in_its_file_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for mutant in list().unwrap() {
            let source = fs::read_to_string(root.join(&mutant.file)).unwrap();
            assert!(mutated(&mutant, &source).is_some(), "{}", mutant.name);
        }
    }
}
