//! `tenure shell`: commands about one device, line by line: at a prompt, or from a pipe.

mod completer;
mod history;

use std::cell::RefCell;
use std::io::{BufRead as _, IsTerminal as _};
use std::rc::Rc;

use anyhow::Context as _;
use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use rustyline::error::ReadlineError;
use serde_json::Value;

use self::completer::Words;
use self::history::History;
use crate::device::{events, status, top};
use crate::home::Home;
use crate::machine::{call, halt, list, tree};
use crate::reach::client::{Client, Device};
use crate::reach::whom::{Where, machines};
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;

/// The fate of a line that Ctrl-C ended.
const INTERRUPTED: &str = "interrupted; a call that was under way may have been executed";

/// Give commands to one device, line by line: call, tree, log, events, list, status and others.
///
/// At a terminal there is a prompt with a history, and Tab completes commands, machines and functions. From a
/// pipe or a file it runs each line; a line that fails ends it, with the exit code of its command. A word with
/// spaces stands in quotes; what follows a # is a comment. One session with the device serves all lines; Ctrl-C
/// ends the line that is under way.
///
/// Example: tenure shell attic
#[derive(clap::Args)]
pub struct Arguments {
    /// The device, as for --device.
    #[arg(value_name = "DEVICE", conflicts_with = "device")]
    name: Option<String>,
    #[command(flatten)]
    place: Where,
}

/// One line, without the word `tenure`.
#[derive(Parser)]
#[command(multicall = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Call(call::Arguments),
    Tree(tree::Arguments),
    List(list::ListArguments),
    Log(list::LogArguments),
    Events(events::Arguments),
    Status(status::Arguments),
    Top(top::Arguments),
    Key(list::KeyArguments),
    Restart(halt::RestartArguments),
    Stop(halt::StopArguments),
    Start(halt::StartArguments),
    /// End the shell; so does Ctrl-D.
    #[command(visible_alias = "quit")]
    Exit,
}

/// Whether there are more lines to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

/// Runs `tenure shell`.
///
/// # Errors
/// The device can't be reached, or a line that doesn't come from a terminal fails.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let Arguments { name, place } = arguments;
    let place = Where { device: name.clone().or(place.device.clone()), ..place.clone() };
    let device = place.connect(&mut client)?;
    let output = &output.by_lines();
    let shell = Shell { commands: commands_at(Line::command(), &Defaults::of(&place)), output };
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return shell.at_terminal(&home, place, (client, device));
    }
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.context("standard input")?;
        match shell.execute(&line, &mut client).with_context(|| format!("line {}", number + 1))? {
            Done::Ran(Next::Line) => {}
            Done::Ran(Next::End) => break,
            // It says so itself, and exits as the command does outside of a shell.
            Done::Misread(error) => error.exit(),
        }
    }
    Ok(())
}

struct Shell<'a> {
    commands: clap::Command,
    output: &'a Output,
}

/// The fate of a line.
enum Done {
    Ran(Next),
    /// It is none, as clap says.
    Misread(clap::Error),
}

impl Shell<'_> {
    /// Reads lines at a terminal until the user has had enough; a line that fails says why.
    fn at_terminal(
        &self,
        home: &Home,
        place: Where,
        (mut client, device): (Client, Device),
    ) -> anyhow::Result<()> {
        // Ctrl-C ends a line that is under way, and not the shell itself.
        let stop = Stop::on_interrupts()?;
        client.end_on(stop.clone());
        let present = machines(&mut client, &device)?.len();
        let prompt = format!("{}> ", device.status.name);
        let text = format!(
            "{} at {}, machines: {present}; `help` lists the commands, Ctrl-D ends",
            device.status.name, device.route.address
        );
        self.output.line(&text, &Value::Null);
        let mut history = History::of(home)?;
        let configuration = rustyline::Config::builder()
            .completion_type(rustyline::CompletionType::List)
            .auto_add_history(true)
            .build();
        let mut editor = rustyline::Editor::<Words, _>::with_history(
            configuration,
            rustyline::history::MemHistory::new(),
        )
        .context("the terminal")?;
        for line in history.lines() {
            editor.add_history_entry(line).context("the history")?;
        }
        // One session serves the lines and what Tab asks for between them.
        let client = Rc::new(RefCell::new(client));
        let words = Words::new(self.commands.clone(), place, client.clone(), device);
        editor.set_helper(Some(words));
        loop {
            stop.reset();
            match editor.readline(&prompt) {
                Ok(line) => {
                    history.append(&line);
                    // A signal that came late, to the line before or to the prompt, ends no other line.
                    stop.reset();
                    let done = self.execute(&line, &mut client.borrow_mut());
                    client.borrow_mut().acknowledge_all();
                    match done {
                        Ok(Done::Ran(Next::Line)) => {}
                        Ok(Done::Ran(Next::End)) => return Ok(()),
                        Ok(Done::Misread(error)) => drop(error.print()),
                        Err(_) if stop.is_requested() => {
                            self.output.failure(&anyhow::Error::msg(INTERRUPTED));
                        }
                        Err(error) => self.output.failure(&error),
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error).context("the terminal"),
            }
        }
    }

    /// Runs one line.
    fn execute(&self, line: &str, client: &mut Client) -> anyhow::Result<Done> {
        let words = shlex::split(line).context("a quote isn't closed")?;
        if words.is_empty() {
            return Ok(Done::Ran(Next::Line));
        }
        anyhow::ensure!(
            !words.iter().any(|word| word == "-"),
            "`-` stands for standard input, from which the shell reads its lines; use `tenure {}` itself",
            words[0]
        );
        let matched = self.commands.clone().try_get_matches_from(&words);
        let parsed = matched.and_then(|matches| Line::from_arg_matches(&matches));
        let command = match parsed {
            Ok(Line { command }) => command,
            Err(error) if is_answer(error.kind()) => {
                error.print().context("standard output")?;
                return Ok(Done::Ran(Next::Line));
            }
            Err(error) => return Ok(Done::Misread(error)),
        };
        let output = self.output;
        match &command {
            Command::Call(arguments) => call::run(arguments, client, output),
            Command::Tree(arguments) => tree::run(arguments, client, output),
            Command::List(arguments) => list::list(arguments, client, output),
            Command::Log(arguments) => list::log(arguments, client, output),
            Command::Events(arguments) => events::run(arguments, client, output),
            Command::Status(arguments) => status::run(arguments, client, output),
            Command::Top(arguments) => top::run(arguments, client, output),
            Command::Key(arguments) => list::key(arguments, client, output),
            Command::Restart(arguments) => halt::restart(arguments, client, output),
            Command::Stop(arguments) => halt::stop(arguments, client, output),
            Command::Start(arguments) => halt::start(arguments, client, output),
            Command::Exit => return Ok(Done::Ran(Next::End)),
        }?;
        Ok(Done::Ran(Next::Line))
    }
}

/// Whether clap's error is what the user asked for.
fn is_answer(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// The place that a line means which names none. It lasts as long as the process, as clap's defaults do.
struct Defaults {
    device: Option<&'static str>,
    hub: Option<&'static str>,
    via: Option<&'static str>,
}

impl Defaults {
    fn of(place: &Where) -> Self {
        let kept = |text: &Option<String>| text.clone().map(|text| &*text.leak());
        Self { device: kept(&place.device), hub: kept(&place.hub), via: kept(&place.via) }
    }
}

/// `command` and all below it, for which --device, --hub and --via are by default the shell's.
fn commands_at(command: clap::Command, place: &Defaults) -> clap::Command {
    let command = command.mut_args(|argument| {
        let default = match argument.get_id().as_str() {
            "device" => place.device,
            "hub" => place.hub,
            "via" => place.via,
            _ => return argument,
        };
        let argument = argument.env(Resettable::Reset);
        default.into_iter().fold(argument, clap::Arg::default_value)
    });
    command.mut_subcommands(|below| commands_at(below, place))
}

#[cfg(test)]
mod tests;
