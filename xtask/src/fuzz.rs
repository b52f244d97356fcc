//! `fuzz`: feeds parsers of hostile input what libFuzzer makes up, on stable Rust.
//!
//! The coverage that libFuzzer steers by is an LLVM pass that any compiler can be told to run. The
//! address sanitizer, which the few crates with `unsafe` want, is an unstable option; it is used where
//! the toolchain has its library, as rustup's does on Linux.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub(crate) mod compiler;

use crate::setup::{self, Need};
use crate::workspace::Target;
use crate::{process, toolchain, workspace};

/// Fuzz one parser of hostile input; without a name, list them.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask fuzz\n  cargo xtask fuzz datagram --seconds 60\n  \
                        cargo xtask fuzz datagram --input target/fuzz/datagram/crash-0badc0de"
)]
pub(crate) struct Arguments {
    /// The target, or `all`, one after the other.
    target: Option<String>,
    /// How long to look, for each target.
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u32,
    /// Run this one input again, which an earlier run found.
    #[arg(long, value_name = "FILE", conflicts_with = "seconds")]
    input: Option<PathBuf>,
    /// Begin with this seed, for targets that seeds drive and not inputs: hostile_guest.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// The flags of a target that seeds drive: it is a program of its own, without coverage.
const SEEDED: &str = "seeded";

/// The flags of a target that compares us with others.
const PEERS: &str = "engines";

/// Violations of our own assumptions end a run.
const CHECKS: [&str; 2] = ["-Cdebug-assertions", "-Coverflow-checks"];

/// Inline counters, the table of program counters and traced comparisons: what libFuzzer reads.
const COVERAGE: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let targets = targets(root)?;
    let chosen: Vec<_> = match arguments.target.as_deref() {
        None => {
            targets.iter().for_each(|target| println!("{}", target.name));
            return Ok(());
        }
        Some("all") => targets,
        Some(name) => {
            let names: Vec<_> = targets.iter().map(|target| target.name.clone()).collect();
            let chosen = targets.into_iter().find(|target| target.name == name);
            let Some(chosen) = chosen else {
                bail!("no target is called {name}; there are: {}", names.join(", "))
            };
            vec![chosen]
        }
    };
    setup::ensure(&[Need::CPlusPlus])?;
    let mut failed = Vec::new();
    for target in &chosen {
        println!("== {}", target.name);
        if let Err(error) = fuzz(target, arguments, root) {
            eprintln!("{error:#}");
            failed.push(&*target.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn targets(root: &Path) -> Result<Vec<Target>> {
    let packages = workspace::packages(&root.join("fuzz"))?;
    let targets = packages.into_iter().flat_map(|package| package.targets);
    Ok(targets.filter(|target| target.kind == ["bin"]).collect())
}

/// The findings of a run are kept below `target/fuzz`; the seeds in `fuzz/seeds` are only read.
fn fuzz(target: &Target, arguments: &Arguments, root: &Path) -> Result<()> {
    if is_seeded(target) {
        if toolchain::has_address_sanitizer() {
            check_sanitizer(target, root)?;
        } else {
            println!("without the address sanitizer, whose library this toolchain lacks");
        }
        let mut command = instrumented(target, root)?;
        command.args([arguments.seconds.to_string(), arguments.seed.to_string()]);
        return process::run(&mut command).with_context(|| {
            let name = &target.name;
            format!("{name} failed; run its seed again with --seed N (the seed is named above)")
        });
    }
    let corpus = toolchain::target_folder(root).join("fuzz").join(&target.name).join("corpus");
    std::fs::create_dir_all(&corpus)
        .with_context(|| format!("cannot make the folder {}", corpus.display()))?;
    let mut command = instrumented(target, root)?;
    if let Some(input) = &arguments.input {
        command.arg(std::path::absolute(input)?);
    } else {
        let findings = corpus.with_file_name("");
        let seeds = root.join("fuzz/seeds").join(&target.name);
        command
            .arg(&corpus)
            .args(seeds.is_dir().then_some(seeds))
            .arg(format!("-artifact_prefix={}", findings.display()))
            .arg(format!("-max_total_time={}", arguments.seconds))
            .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
    }
    process::run(&mut command).with_context(|| {
        let name = &target.name;
        format!("{name} failed; run its input again with --input FILE (the file is named above)")
    })
}

/// Lets the target read out of bounds once: a sanitizer that misses that proves nothing.
fn check_sanitizer(target: &Target, root: &Path) -> Result<()> {
    let output = instrumented(target, root)?
        .arg("planted")
        .output()
        .with_context(|| format!("{} can't be run", target.name))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !said.contains("AddressSanitizer") {
        bail!("the address sanitizer doesn't see what was planted: {said}");
    }
    println!("the address sanitizer sees a read out of bounds that was planted");
    Ok(())
}

fn is_seeded(target: &Target) -> bool {
    target.required_features.iter().any(|feature| feature == SEEDED)
}

fn has_peers(target: &Target) -> bool {
    target.required_features.iter().any(|feature| feature == PEERS)
}

/// `cargo run` with coverage, if inputs drive the target; a target is named so that build scripts stay
/// without.
fn instrumented(target: &Target, root: &Path) -> Result<Command> {
    let mut command = process::cargo(&root.join("fuzz"));
    let (mut flags, build) = match (is_seeded(target), has_peers(target)) {
        (true, _) => (CHECKS.to_vec(), "fuzz/build-seeded"),
        (false, true) => ([&COVERAGE[..], &CHECKS].concat(), "fuzz/build-beside-peers"),
        (false, false) => ([&COVERAGE[..], &CHECKS].concat(), "fuzz/build"),
    };
    if toolchain::has_address_sanitizer() {
        flags.push("-Zsanitizer=address");
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    if has_peers(target) {
        compiler::watch_own_crates(&mut command, &flags.join(" "))?;
    } else {
        command.env("RUSTFLAGS", flags.join(" "));
    }
    command
        .env("CARGO_TARGET_DIR", toolchain::target_folder(root).join(build))
        .args(["run", "--quiet", "--release", "--target", &toolchain::host()?])
        .args(["--features", &target.required_features.join(",")])
        .args(["--bin", &target.name, "--"]);
    Ok(command)
}
