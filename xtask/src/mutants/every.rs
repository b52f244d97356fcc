//! `mutants --of CRATE`: every small change of a crate ([`super::changes`]), tried by the tests of the crate.
//!
//! The crate is compiled once, with a switch for each change, which the environment turns on. A first run notes which
//! changes the tests reach; a change that they don't reach survives without being tried.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tenure_hal::simulated::Random;

use super::changes::{Change, changes, switched};
use super::{Copy, copy_of};
use crate::process;

/// The changes that no test finds, by this crate's folder.
const SURVIVORS: &str = include_str!("../../survivors.toml");
/// The share of changes that aren't listed as survivors of which tests find as many at least.
const FOUND_MIN: f64 = 0.95;
/// The switch, which a crate's root gets.
const SWITCH: &str = include_str!("switch.rs.txt");
/// The most attempts to compile, each without the changes that couldn't be compiled.
const BUILDS_MAX: usize = 12;
/// How much longer than without a change tests may take before they count as failed.
const SLOWER: u32 = 10;
const SLOWER_BY: Duration = Duration::from_secs(20);

/// A change that no test finds, and why that is so.
#[derive(Deserialize)]
struct Survivor {
    file: PathBuf,
    /// The change, as the report has it.
    change: String,
    /// Why no test finds it.
    #[allow(dead_code, reason = "it is for those who read the list")]
    because: String,
}

#[derive(Deserialize)]
struct List {
    survivor: Vec<Survivor>,
}

/// A source of the crate with its changes.
struct Source {
    /// By the workspace.
    file: PathBuf,
    text: String,
    changes: Vec<Change>,
}

/// A test program, and what a run without a change showed.
struct Tests {
    program: PathBuf,
    took: Duration,
    reaches: BTreeSet<u32>,
    /// Whether no test panics on purpose, so that the first panic ends the program.
    is_calm: bool,
}

/// Tries the changes of the crate, `drawn` of them or all.
pub(super) fn run(name: &str, drawn: Option<usize>, root: &Path) -> Result<()> {
    let folder = Path::new("crates").join(name);
    ensure!(root.join(&folder).is_dir(), "there is no crate {}", folder.display());
    let copy = copy_of(root)?;
    let sources = sources(&copy, &folder)?;
    let mut numbers = drawn_numbers(&sources, drawn);
    let found = compile(&copy, &folder, &sources, &mut numbers);
    for source in &sources {
        fs::write(copy.folder.join(&source.file), &source.text)?;
    }
    let place = copy.folder.join(&folder);
    let mut tests = Vec::new();
    for program in found? {
        tests.push(first_run(program, &place)?);
    }
    tests.sort_by_key(|tests| tests.took);

    let listed = toml::from_str::<List>(SURVIVORS).context("xtask/survivors.toml")?.survivor;
    let (mut tried, mut killed, mut known) = (0_u32, 0_u32, 0_u32);
    for source in &sources {
        for change in source.changes.iter().filter(|change| numbers.contains(&change.number)) {
            tried += 1;
            let mut by = tests.iter().filter(|tests| tests.reaches.contains(&change.number));
            let is_reached = by.clone().next().is_some();
            if by.any(|tests| !passes_with(tests, change.number, &place)) {
                killed += 1;
                continue;
            }
            let is_it = |it: &Survivor| it.file == source.file && it.change == change.text;
            if listed.iter().any(is_it) {
                known += 1;
                continue;
            }
            let word = if is_reached { "SURVIVED" } else { "UNTESTED" };
            println!("{word} {}:{} {}", source.file.display(), change.line, change.text);
        }
    }
    let share = f64::from(killed) / f64::from(tried - known).max(1.0);
    println!(
        "{tried} changes of {name}: tests find {killed}, {known} are listed in xtask/survivors.toml, {} aren't; \
         of those that aren't listed {:.1} % are found",
        tried - killed - known,
        share * 100.0
    );
    ensure!(share >= FOUND_MIN, "tests find less than {:.0} % of the changes", FOUND_MIN * 100.0);
    Ok(())
}

/// The crate's sources, without those of its tests.
fn sources(copy: &Copy, folder: &Path) -> Result<Vec<Source>> {
    let mut files = Vec::new();
    collect(&copy.folder.join(folder).join("src"), &mut files)?;
    let mut number = 1;
    let mut sources = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let changes =
            changes(&text, number).with_context(|| format!("can't read {}", path.display()))?;
        number += u32::try_from(changes.len())?;
        let file = path.strip_prefix(&copy.folder)?.to_owned();
        sources.push(Source { file, text, changes });
    }
    Ok(sources)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            // Tests, and what only they use.
            if name != "tests" && name != "simulated" {
                collect(&path, files)?;
            }
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "simulated.rs" {
            files.push(path);
        }
    }
    Ok(())
}

fn drawn_numbers(sources: &[Source], drawn: Option<usize>) -> BTreeSet<u32> {
    let all = || sources.iter().flat_map(|source| source.changes.iter().map(|it| it.number));
    let mut left: Vec<u32> = all().collect();
    let Some(drawn) = drawn else { return left.into_iter().collect() };
    let mut random = Random::new(1);
    let mut numbers = BTreeSet::new();
    while numbers.len() < drawn && !left.is_empty() {
        numbers.insert(left.swap_remove(random.below(left.len() as u64) as usize));
    }
    numbers
}

/// Compiles the tests with the changes of `numbers`; takes away those that can't be compiled.
fn compile(
    copy: &Copy,
    folder: &Path,
    sources: &[Source],
    numbers: &mut BTreeSet<u32>,
) -> Result<Vec<PathBuf>> {
    for _ in 0..BUILDS_MAX {
        let mut places = Vec::new();
        for source in sources {
            let chosen = |number| numbers.contains(&number);
            let (mut text, at) = switched(&source.text, &source.changes, chosen);
            places.extend(at.into_iter().map(|(number, range)| (&source.file, number, range)));
            if source.file == folder.join("src/lib.rs") {
                text.push_str(SWITCH);
            }
            fs::write(copy.folder.join(&source.file), text)?;
        }
        let errors = match build(copy, folder)? {
            Built::Tests(tests) => return Ok(tests),
            Built::Errors(errors) => errors,
        };
        let before = numbers.len();
        for error in &errors {
            let is_around = |(file, _, range): &&(&PathBuf, u32, std::ops::Range<usize>)| {
                **file == error.file && range.start <= error.from && error.to <= range.end
            };
            // The innermost.
            let around = places.iter().filter(is_around).min_by_key(|(.., range)| range.len());
            if let Some((_, number, _)) = around {
                numbers.remove(number);
            }
        }
        if numbers.len() == before {
            let Some(first) = errors.first() else { bail!("the crate doesn't compile") };
            bail!("{}: {}, without a change there", first.file.display(), first.text);
        }
    }
    bail!("there are changes that can't be compiled after {BUILDS_MAX} attempts")
}

enum Built {
    Tests(Vec<PathBuf>),
    Errors(Vec<BuildError>),
}

/// A complaint of the compiler, in bytes of a file.
struct BuildError {
    file: PathBuf,
    from: usize,
    to: usize,
    text: String,
}

fn build(copy: &Copy, folder: &Path) -> Result<Built> {
    let mut command = process::cargo(&copy.folder);
    command.env("CARGO_TARGET_DIR", &copy.target).args(["test", "--lib", "--tests", "--no-run"]);
    command.args(["--message-format=json", "--all-features", "--manifest-path"]);
    command.arg(folder.join("Cargo.toml"));
    command.args(copy.settings.iter().flat_map(|setting| ["--config", setting]));
    let output = command.stderr(Stdio::null()).output()?;
    let (mut tests, mut errors) = (Vec::new(), Vec::new());
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        if message["profile"]["test"] == true
            && let Some(program) = message["executable"].as_str()
        {
            tests.push(program.into());
        }
        let message = &message["message"];
        let spans = message["spans"].as_array().filter(|_| message["level"] == "error");
        for span in spans.into_iter().flatten().filter(|span| span["is_primary"] == true) {
            let at = |name: &str| span[name].as_u64().unwrap_or_default() as usize;
            errors.push(BuildError {
                file: span["file_name"].as_str().unwrap_or_default().into(),
                from: at("byte_start"),
                to: at("byte_end"),
                text: message["message"].as_str().unwrap_or_default().into(),
            });
        }
    }
    Ok(if output.status.success() { Built::Tests(tests) } else { Built::Errors(errors) })
}

fn first_run(program: PathBuf, place: &Path) -> Result<Tests> {
    let notes = tempfile::NamedTempFile::new()?;
    let begun = Instant::now();
    let mut command = tests_at(&program, place);
    let status = command.env("TENURE_SWITCHES_REACHED", notes.path()).status()?;
    ensure!(status.success(), "{} fails without a change", program.display());
    let took = begun.elapsed();
    let is_calm = tests_at(&program, place).env("TENURE_SWITCHES_END", "true").status()?.success();
    let notes = fs::read_to_string(notes.path())?;
    let reaches = notes.lines().map(str::parse::<u32>).collect::<Result<_, _>>()?;
    Ok(Tests { program, took, reaches, is_calm })
}

/// Whether the tests pass with the change, in time.
fn passes_with(tests: &Tests, number: u32, place: &Path) -> bool {
    let mut command = tests_at(&tests.program, place);
    command.env("TENURE_SWITCH", number.to_string());
    if tests.is_calm {
        command.env("TENURE_SWITCHES_END", "true");
    }
    let Ok(mut child) = command.spawn() else { return true };
    let until = Instant::now() + tests.took * SLOWER + SLOWER_BY;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Ok(Some(status)) => return status.success(),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

fn tests_at(program: &Path, place: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(place).env("CARGO_MANIFEST_DIR", place);
    command.args(super::SKIPPED.iter().flat_map(|it| ["--skip", it]));
    // A property's counterexample isn't made small, nor kept.
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_survivor_that_is_listed_is_a_change_that_can_be_made() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut texts: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
        for Survivor { file, change, because } in
            toml::from_str::<List>(SURVIVORS).unwrap().survivor
        {
            let of_file = texts.entry(file.clone()).or_insert_with(|| {
                let source = fs::read_to_string(root.join(&file)).unwrap();
                changes(&source, 1).unwrap().into_iter().map(|change| change.text).collect()
            });
            assert!(of_file.contains(&change), "{}: {change}", file.display());
            assert!(!because.is_empty(), "{}: {change}", file.display());
        }
    }
}
