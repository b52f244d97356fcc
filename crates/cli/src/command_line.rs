//! The command line: each command with its arguments, and what runs it.

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::client::Client;
use crate::home::Home;
use crate::output::Output;
use crate::{
    build, call, completions, contexts, device, enrol, events, experiment, firmware, flash, fleet,
    halt, help, hub, inspect, install, invite, lease, list, login, owner, packages, pass, project,
    receipts, replay, revoke, rollback, rollout, run, secret, serial, shell, sim, snapshot, status,
    test, tls, top, trash, tree, trust_hub,
};

/// Runs many tenants' programs on small computers.
#[derive(Parser)]
#[command(name = "tenure", version, propagate_version = true)]
pub struct CommandLine {
    /// Print the outcome, or the error, as JSON: one object a line.
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(project::Arguments),
    Build(build::Arguments),
    Inspect(inspect::Arguments),
    Run(run::Arguments),
    Device(Box<device::Arguments>),
    Replay(replay::Arguments),
    Use(contexts::UseArguments),
    Devices(contexts::DevicesArguments),
    Enrol(enrol::Arguments),
    Invite(invite::Arguments),
    Mesh(invite::MeshArguments),
    Experiment(experiment::Arguments),
    Hub(hub::Arguments),
    TrustHub(trust_hub::Arguments),
    Owner(owner::Arguments),
    Revoke(revoke::Arguments),
    Serial(serial::Arguments),
    Push(packages::PushArguments),
    Pull(packages::PullArguments),
    Rollback(rollback::Arguments),
    Rollout(rollout::Arguments),
    Fleet(fleet::Arguments),
    Install(install::Arguments),
    Remove(install::RemoveArguments),
    Trash(trash::Arguments),
    Renew(lease::Arguments),
    Pass(pass::Arguments),
    Unban(install::UnbanArguments),
    Restart(halt::RestartArguments),
    Stop(halt::StopArguments),
    Start(halt::StartArguments),
    Shell(shell::Arguments),
    Status(status::Arguments),
    Top(top::Arguments),
    List(list::ListArguments),
    Call(call::Arguments),
    Tree(tree::Arguments),
    Log(list::LogArguments),
    Events(events::Arguments),
    Firmware(firmware::Arguments),
    Flash(flash::Arguments),
    Snapshot(snapshot::Arguments),
    Restore(snapshot::RestoreArguments),
    Key(list::KeyArguments),
    Secret(secret::Arguments),
    Test(test::Arguments),
    Tls(tls::Arguments),
    Receipts(receipts::Arguments),
    Bill(receipts::BillArguments),
    Sim(sim::Arguments),
    Login(login::Arguments),
    Completions(completions::Arguments),
}

/// The whole command line as clap describes it, its commands by what they are for.
pub fn command() -> clap::Command {
    help::grouped(CommandLine::command())
}

impl CommandLine {
    /// Does what the line says.
    ///
    /// # Errors
    /// The command's.
    pub fn execute(&self) -> anyhow::Result<()> {
        let Self { json, command } = self;
        let output = Output::new(*json);
        let client = || Client::new(&Home::from_environment()?);
        match command {
            Command::New(arguments) => project::run(arguments, &output),
            Command::Build(arguments) => build::run(arguments, &Home::from_environment()?, &output),
            Command::Inspect(arguments) => inspect::run(arguments, &output),
            Command::Run(arguments) => run::run(arguments, &output),
            Command::Device(arguments) => device::run(arguments, &output),
            Command::Replay(arguments) => replay::run(arguments, &output),
            Command::Use(arguments) => contexts::run(arguments, &output),
            Command::Devices(arguments) => contexts::devices(arguments, &output),
            Command::Enrol(arguments) => enrol::run(arguments, &output),
            Command::Invite(arguments) => invite::run(arguments, &output),
            Command::Mesh(arguments) => invite::show(arguments, &output),
            Command::Hub(arguments) => hub::run(arguments, &output),
            Command::Serial(arguments) => serial::run(arguments, &output),
            Command::Push(arguments) => packages::push(arguments, &output),
            Command::Pull(arguments) => packages::pull(arguments, &output),
            Command::Rollback(arguments) => rollback::run(arguments, &output),
            Command::Fleet(arguments) => fleet::run(arguments, &output),
            Command::Rollout(arguments) => rollout::run(arguments, &output),
            Command::Install(arguments) => install::run(arguments, &output),
            Command::Remove(arguments) => install::remove(arguments, &output),
            Command::Trash(arguments) => trash::run(arguments, &output),
            Command::TrustHub(arguments) => trust_hub::run(arguments, &output),
            Command::Owner(arguments) => owner::run(arguments, &output),
            Command::Revoke(arguments) => revoke::run(arguments, &output),
            Command::Renew(arguments) => lease::run(arguments, &output),
            Command::Pass(arguments) => pass::run(arguments, &output),
            Command::Unban(arguments) => install::unban(arguments, &output),
            Command::Restart(arguments) => halt::restart(arguments, &mut client()?, &output),
            Command::Stop(arguments) => halt::stop(arguments, &mut client()?, &output),
            Command::Start(arguments) => halt::start(arguments, &mut client()?, &output),
            Command::Shell(arguments) => shell::run(arguments, &output),
            Command::Status(arguments) => status::run(arguments, &mut client()?, &output),
            Command::Top(arguments) => top::run(arguments, &mut client()?, &output),
            Command::List(arguments) => list::list(arguments, &mut client()?, &output),
            Command::Call(arguments) => call::run(arguments, &mut client()?, &output),
            Command::Tree(arguments) => tree::run(arguments, &mut client()?, &output),
            Command::Log(arguments) => list::log(arguments, &mut client()?, &output),
            Command::Events(arguments) => events::run(arguments, &mut client()?, &output),
            Command::Flash(arguments) => flash::run(arguments, &output),
            Command::Firmware(arguments) => firmware::run(arguments, &output),
            Command::Snapshot(arguments) => snapshot::run(arguments, &output),
            Command::Experiment(arguments) => experiment::run(arguments, &output),
            Command::Restore(arguments) => snapshot::restore(arguments, &output),
            Command::Key(arguments) => list::key(arguments, &mut client()?, &output),
            Command::Receipts(arguments) => receipts::run(arguments, &output),
            Command::Bill(arguments) => receipts::bill(arguments, &output),
            Command::Login(arguments) => login::run(arguments, &output),
            Command::Test(arguments) => test::run(arguments, &output),
            Command::Tls(arguments) => tls::run(arguments, &output),
            Command::Secret(arguments) => secret::run(arguments, &output),
            Command::Sim(arguments) => sim::run(arguments, &output),
            Command::Completions(arguments) => completions::run(arguments, &output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group_of_the_help() {
        let command = CommandLine::command();
        assert_eq!(help::misplaced(&command), Vec::<String>::new());
        let text = help::grouped(command).render_help().to_string();
        assert!(text.contains("Hold devices:") && text.contains("--json"), "{text}");
    }
}
