//! The developer's commands, run as `cargo xtask VERB`.
//!
//! Each verb is a module with an `Arguments` type and a `run` function. A verb that checks several
//! things goes on after a failure, and says at the end what failed.
#![forbid(unsafe_code)]

mod bench;
mod board;
mod book;
mod c_compiler;
mod check;
mod claims;
mod clauses;
mod demo;
mod digits;
mod failure;
mod files;
mod first_call;
mod fuzz;
mod generate;
mod image;
mod interop;
mod link;
mod measure;
mod measurement;
mod mesh;
mod miri;
mod mutants;
mod paint;
mod planted;
mod process;
mod report;
mod setup;
mod sim;
mod size;
mod suites;
mod tenure;
mod test;
mod test_names;
mod toolchain;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The developer's commands of Tenure.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Setup(setup::Arguments),
    Check(check::Arguments),
    Claims(claims::Arguments),
    Clauses(clauses::Arguments),
    Demo(demo::Arguments),
    FirstCall(first_call::Arguments),
    Docs(book::Arguments),
    Test(test::Arguments),
    Generate(GenerateArguments),
    Bench(bench::Arguments),
    Board(Box<board::Arguments>),
    Image(image::Arguments),
    Interop(interop::Arguments),
    Link(link::Arguments),
    Size(size::Arguments),
    Fuzz(fuzz::Arguments),
    Measure(measure::Arguments),
    Mesh(mesh::Arguments),
    Miri(miri::Arguments),
    Mutants(mutants::Arguments),
    Sim(sim::Arguments),
    Suites(suites::Arguments),
}

/// Write the guest bindings and their page from the table of host calls.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask generate --check")]
struct GenerateArguments {
    /// Write nothing, and fail if a file is not current.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let as_compiler = fuzz::compiler::in_place_of_rustc().or_else(planted::in_place_of_rustc);
    if let Some(code) = as_compiler {
        return code;
    }
    match dispatch(CommandLine::parse().verb, &repository_root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<report::Reported>() => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{} {error:#}", paint::stderr().bad("error:"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(verb: Verb, root: &Path) -> Result<()> {
    match verb {
        Verb::Setup(arguments) => setup::run(&arguments, root),
        Verb::Check(arguments) => check::run(&arguments, root),
        Verb::Claims(arguments) => claims::run(&arguments, root),
        Verb::Clauses(arguments) => clauses::run(&arguments, root),
        Verb::Demo(arguments) => demo::run(&arguments, root),
        Verb::FirstCall(arguments) => first_call::run(&arguments, root),
        Verb::Docs(arguments) => book::run(&arguments, root),
        Verb::Test(arguments) => test::run(&arguments, root),
        Verb::Bench(arguments) => bench::run(&arguments, root),
        Verb::Board(arguments) => board::run(&arguments, root),
        Verb::Image(arguments) => image::run(&arguments, root),
        Verb::Interop(arguments) => interop::run(&arguments, root),
        Verb::Link(arguments) => link::run(&arguments, root),
        Verb::Size(arguments) => size::run(&arguments, root),
        Verb::Fuzz(arguments) => fuzz::run(&arguments, root),
        Verb::Measure(arguments) => measure::run(&arguments, root),
        Verb::Mesh(arguments) => mesh::run(&arguments, root),
        Verb::Miri(arguments) => miri::run(&arguments, root),
        Verb::Mutants(arguments) => mutants::run(&arguments, root),
        Verb::Sim(arguments) => sim::run(&arguments, root),
        Verb::Suites(arguments) => suites::run(&arguments, root),
        Verb::Generate(arguments) => generate::run(arguments.check, root),
    }
}

/// The folder of the main workspace, in which this crate is a folder.
///
/// Cargo says at run time where it found the crate: where several checkouts share a target folder,
/// the place of compilation may be another one's.
fn repository_root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().expect("xtask lies in a folder of the repository").to_path_buf()
}
