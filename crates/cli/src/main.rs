//! The command `tenure`: makes, builds, installs and watches machines.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use tenure_cli::home::Home;
use tenure_cli::{build, completions, project};

/// Runs many tenants' programs on small computers.
#[derive(Parser)]
#[command(name = "tenure", version, propagate_version = true)]
struct CommandLine {
    /// Print the outcome as one JSON object.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(project::Arguments),
    Build(build::Arguments),
    Completions(completions::Arguments),
}

fn main() -> ExitCode {
    let CommandLine { json, command } = CommandLine::parse();
    match run(json, &command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(json: bool, command: &Command) -> anyhow::Result<()> {
    match command {
        Command::New(arguments) => project::run(arguments, json),
        Command::Build(arguments) => build::run(arguments, &Home::from_environment()?, json),
        Command::Completions(arguments) => {
            completions::run(arguments, CommandLine::command());
            Ok(())
        }
    }
}
