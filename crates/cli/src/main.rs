//! The command `tenure`: makes, builds, installs and watches machines.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tenure_cli::client::Client;
use tenure_cli::home::Home;
use tenure_cli::output::{Output, lost};
use tenure_cli::{
    build, call, completions, contexts, device, enrol, events, experiment, firmware, flash, fleet,
    halt, help, hub, inspect, install, invite, lease, list, login, owner, packages, pass, project,
    receipts, replay, revoke, rollback, rollout, run, secret, serial, shell, sim, snapshot, status,
    test, tls, top, trash, tree, trust_hub,
};

/// Runs many tenants' programs on small computers.
#[derive(Parser)]
#[command(name = "tenure", version, propagate_version = true)]
struct CommandLine {
    /// Print the outcome, or the error, as JSON: one object a line.
    #[arg(long, global = true)]
    json: bool,

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

fn main() -> ExitCode {
    completions::answer(CommandLine::command);
    let matches = help::grouped(CommandLine::command()).try_get_matches();
    let line = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
    let CommandLine { json, command } = match line {
        Ok(line) => line,
        Err(error) => return misread(&error),
    };
    let done = execute(json, &command);
    let done = done.and_then(|()| match lost() {
        Some(reason) => Err(anyhow::anyhow!("standard output: {reason}")),
        None => Ok(()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Devices, hubs and packages have a hand in what an error says.
            Output::new(json).failure(&error);
            ExitCode::FAILURE
        }
    }
}

/// Says why the command line can't be read, or shows the help that it asks for.
fn misread(error: &clap::Error) -> ExitCode {
    let asks_for_json =
        std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json");
    if !error.use_stderr() || !asks_for_json {
        error.exit()
    }
    let text = error.render().to_string();
    Output::new(true)
        .failure(&anyhow::anyhow!("{}", text.trim_start_matches("error: ").trim_end()));
    // As clap has it.
    ExitCode::from(2)
}

fn execute(json: bool, command: &Command) -> anyhow::Result<()> {
    let output = Output::new(json);
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
