//! `tenure key`: shows keys, and makes those that a user can't do without outlive this computer.

mod age;
mod backup;
mod pair;
mod passphrase;
mod proof;
mod recover;
mod sealed;
mod words;

use crate::home::Home;
use crate::machine::list::{self, KeyArguments};
use crate::reach::client::Client;
use crate::terminal::output::Output;

/// Show keys, or back up your own and recover them.
///
/// Shows the keys of a device, those of a machine on it, or with --own yours. A machine that is called as a command below is named
/// behind `--`.
///
/// Example: tenure key thermostat
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    show: KeyArguments,
}

#[derive(clap::Subcommand)]
enum Action {
    Backup(backup::Arguments),
    Recover(recover::Arguments),
}

/// Runs `tenure key`.
///
/// # Errors
/// The keys can't be had, kept or put back, or the device named can't be reached.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    match &arguments.action {
        None => list::key(&arguments.show, &mut Client::new(&home)?, output),
        Some(Action::Backup(arguments)) => backup::run(arguments, &home, output),
        Some(Action::Recover(arguments)) => recover::run(arguments, &home, output),
    }
}
