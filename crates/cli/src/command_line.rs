//! The command line: each command with its arguments, and what runs it.

use clap::{CommandFactory as _, Parser, Subcommand};
use tenure_protocols::plug_in::Registry;

use crate::home::Home;
use crate::reach::client::Client;
use crate::terminal::output::Output;
use crate::{completions, device, help, hub, keys, machine, make, mesh, tls, trial};

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
    New(make::project::Arguments),
    Build(make::build::Arguments),
    Toolchain(make::toolchains::Arguments),
    Inspect(machine::inspect::Arguments),
    Run(trial::run::Arguments),
    Device(Box<device::process::Arguments>),
    Replay(device::replay::Arguments),
    Profile(device::profile::Arguments),
    Debug(device::debug::Arguments),
    Use(device::contexts::UseArguments),
    Devices(device::contexts::DevicesArguments),
    Enrol(device::enrol::Arguments),
    Invite(mesh::invite::Arguments),
    Mesh(mesh::invite::MeshArguments),
    Experiment(mesh::experiment::Arguments),
    Hub(hub::process::Arguments),
    TrustHub(hub::trust::Arguments),
    Owner(keys::owner::Arguments),
    Revoke(keys::revoke::Arguments),
    Serial(device::serial::Arguments),
    Push(hub::packages::PushArguments),
    Pull(hub::packages::PullArguments),
    Rollback(machine::rollback::Arguments),
    Rollout(hub::rollout::Arguments),
    Fleet(hub::fleet::Arguments),
    Install(machine::install::Arguments),
    Remove(machine::install::RemoveArguments),
    Trash(machine::trash::Arguments),
    Renew(machine::lease::Arguments),
    Pages(machine::pages::Arguments),
    Pass(machine::pass::Arguments),
    Unban(machine::install::UnbanArguments),
    Restart(machine::halt::RestartArguments),
    Stop(machine::halt::StopArguments),
    Start(machine::halt::StartArguments),
    Shell(device::shell::Arguments),
    Status(device::status::Arguments),
    Top(device::top::Arguments),
    Ping(device::ping::Arguments),
    Netcheck(hub::netcheck::Arguments),
    List(machine::list::ListArguments),
    Call(machine::call::Arguments),
    Tree(machine::tree::Arguments),
    Log(machine::list::LogArguments),
    Faults(hub::faults::Arguments),
    Events(device::events::Arguments),
    Firmware(device::firmware::Arguments),
    Flash(device::flash::Arguments),
    Snapshot(machine::snapshot::Arguments),
    Restore(machine::snapshot::RestoreArguments),
    Journal(machine::journal::Arguments),
    Key(keys::key::Arguments),
    Secret(machine::secret::Arguments),
    Test(trial::test::Arguments),
    Tls(tls::Arguments),
    Receipts(hub::receipts::Arguments),
    Bill(hub::receipts::BillArguments),
    Sim(mesh::sim::Arguments),
    Login(hub::login::Arguments),
    People(hub::people::Arguments),
    Completions(completions::Arguments),
}

/// The whole command line as clap describes it, its commands by what they are for.
pub fn command() -> clap::Command {
    help::grouped(CommandLine::command())
}

impl CommandLine {
    /// Does what the line says, with the protocols of the mesh that `registry` knows by name.
    ///
    /// # Errors
    /// The command's.
    pub fn execute(&self, registry: Registry) -> anyhow::Result<()> {
        let Self { json, command } = self;
        let output = Output::new(*json);
        let client = || Client::new(&Home::from_environment()?);
        match command {
            Command::New(arguments) => make::project::run(arguments, &output),
            Command::Build(arguments) => {
                make::build::run(arguments, &Home::from_environment()?, &output)
            }
            Command::Toolchain(arguments) => make::toolchains::run(arguments, &output),
            Command::Inspect(arguments) => machine::inspect::run(arguments, &output),
            Command::Run(arguments) => trial::run::run(arguments, &output),
            Command::Device(arguments) => device::process::run(arguments, registry, &output),
            Command::Replay(arguments) => device::replay::run(arguments, registry, &output),
            Command::Profile(arguments) => device::profile::run(arguments, registry, &output),
            Command::Debug(arguments) => device::debug::run(arguments, registry, &output),
            Command::Use(arguments) => device::contexts::run(arguments, &output),
            Command::Devices(arguments) => match arguments.of_hub() {
                Some(hub) => hub::devices::list(hub, &output),
                None => device::contexts::devices(arguments, &output),
            },
            Command::Enrol(arguments) => device::enrol::run(arguments, &output),
            Command::Invite(arguments) => mesh::invite::run(arguments, &output),
            Command::Mesh(arguments) => mesh::invite::show(arguments, &output),
            Command::Hub(arguments) => hub::process::run(arguments, &output),
            Command::Serial(arguments) => device::serial::run(arguments, &output),
            Command::Push(arguments) => hub::packages::push(arguments, &output),
            Command::Pull(arguments) => hub::packages::pull(arguments, &output),
            Command::Rollback(arguments) => machine::rollback::run(arguments, &output),
            Command::Fleet(arguments) => hub::fleet::run(arguments, &output),
            Command::Rollout(arguments) => hub::rollout::run(arguments, &output),
            Command::Install(arguments) => machine::install::run(arguments, &output),
            Command::Remove(arguments) => machine::install::remove(arguments, &output),
            Command::Trash(arguments) => machine::trash::run(arguments, &output),
            Command::TrustHub(arguments) => hub::trust::run(arguments, &output),
            Command::Owner(arguments) => keys::owner::run(arguments, &output),
            Command::Revoke(arguments) => keys::revoke::run(arguments, &output),
            Command::Renew(arguments) => machine::lease::run(arguments, &output),
            Command::Pages(arguments) => machine::pages::run(arguments, &output),
            Command::Pass(arguments) => machine::pass::run(arguments, &output),
            Command::Unban(arguments) => machine::install::unban(arguments, &output),
            Command::Restart(arguments) => {
                machine::halt::restart(arguments, &mut client()?, &output)
            }
            Command::Stop(arguments) => machine::halt::stop(arguments, &mut client()?, &output),
            Command::Start(arguments) => machine::halt::start(arguments, &mut client()?, &output),
            Command::Shell(arguments) => device::shell::run(arguments, &output),
            Command::Status(arguments) => device::status::run(arguments, &mut client()?, &output),
            Command::Top(arguments) => device::top::run(arguments, &mut client()?, &output),
            Command::Ping(arguments) => device::ping::run(arguments, &mut client()?, &output),
            Command::Netcheck(arguments) => hub::netcheck::run(arguments, &mut client()?, &output),
            Command::List(arguments) => machine::list::list(arguments, &mut client()?, &output),
            Command::Call(arguments) => machine::call::run(arguments, &mut client()?, &output),
            Command::Tree(arguments) => machine::tree::run(arguments, &mut client()?, &output),
            Command::Log(arguments) => machine::list::log(arguments, &mut client()?, &output),
            Command::Faults(arguments) => hub::faults::run(arguments, &output),
            Command::Events(arguments) => device::events::run(arguments, &mut client()?, &output),
            Command::Flash(arguments) => device::flash::run(arguments, &output),
            Command::Firmware(arguments) => device::firmware::run(arguments, &output),
            Command::Snapshot(arguments) => machine::snapshot::run(arguments, &output),
            Command::Experiment(arguments) => mesh::experiment::run(arguments, registry, &output),
            Command::Journal(arguments) => machine::journal::run(arguments, &output),
            Command::Restore(arguments) => machine::snapshot::restore(arguments, &output),
            Command::Key(arguments) => keys::key::run(arguments, &output),
            Command::Receipts(arguments) => hub::receipts::run(arguments, &output),
            Command::Bill(arguments) => hub::receipts::bill(arguments, &output),
            Command::Login(arguments) => hub::login::run(arguments, &output),
            Command::People(arguments) => hub::people::run(arguments, &output),
            Command::Test(arguments) => trial::test::run(arguments, &output),
            Command::Tls(arguments) => tls::run(arguments, &output),
            Command::Secret(arguments) => machine::secret::run(arguments, &output),
            Command::Sim(arguments) => mesh::sim::run(arguments, registry, &output),
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
