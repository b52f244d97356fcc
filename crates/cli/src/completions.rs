//! `tenure completions`, and the words that a shell gets to complete: commands, options, and by asking the
//! device, machines and functions.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use tenure_package::Package;
use tenure_wire::control::MachineStatus;

use crate::home::Home;
use crate::home::known::Known;
use crate::machine::grant;
use crate::machine::list::completable;
use crate::reach::client::Client;
use crate::reach::whom::{Where, machines};
use crate::terminal::output::Output;

/// The variable by which a shell asks for words instead of running a command.
const VARIABLE: &str = "TENURE_COMPLETE";
/// How long somebody who has pressed Tab waits for a device.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Print the completions for a shell.
///
/// They complete machines and functions by asking the device that the command line means, and devices by those
/// that commands have met.
#[derive(clap::Args)]
#[command(
    after_help = "Example: tenure completions bash > ~/.local/share/bash-completion/completions/tenure"
)]
pub struct Arguments {
    /// The shell.
    shell: clap_complete::Shell,
}

/// Prints what makes a shell ask this command.
///
/// # Errors
/// This version knows the shell only to complete commands.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let shell: &dyn EnvCompleter = match arguments.shell {
        clap_complete::Shell::Bash => &Bash,
        clap_complete::Shell::Elvish => &Elvish,
        clap_complete::Shell::Fish => &Fish,
        clap_complete::Shell::PowerShell => &Powershell,
        clap_complete::Shell::Zsh => &Zsh,
        other => anyhow::bail!("there are no completions for {other}"),
    };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "tenure", "tenure", "tenure", &mut script)?;
    output.words(&String::from_utf8_lossy(&script));
    Ok(())
}

/// Answers a shell that asks for words, and ends the process then.
pub fn answer(command: impl Fn() -> Command) {
    let with_words = move || {
        let command = command();
        lively(command.clone(), &Arc::new(command))
    };
    CompleteEnv::with_factory(with_words).var(VARIABLE).bin("tenure").complete();
}

/// `command`, a part of the `whole` command line, with arguments that know their words.
fn lively(command: Command, whole: &Arc<Command>) -> Command {
    let with_words = |argument: Arg, words: fn(&Line) -> Vec<String>| {
        let whole = Arc::clone(whole);
        let matching = move |begun: &OsStr| matching(begun, &Line::of_shell(&whole), words);
        argument.add(ArgValueCompleter::new(matching))
    };
    let command = command.mut_args(|argument| match argument.get_id().as_str() {
        "machine" => with_words(argument, machine_names),
        "function" => with_words(argument, functions),
        "device" | "via" => with_words(argument, device_names),
        "grant" => with_words(argument, grants),
        _ => argument,
    });
    command.mut_subcommands(|command| lively(command, whole))
}

fn matching(
    begun: &OsStr,
    line: &Line,
    words: fn(&Line) -> Vec<String>,
) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    let words = words(line).into_iter();
    words.filter(|word| word.starts_with(&*begun)).map(CompletionCandidate::new).collect()
}

/// The options that no value follows, with their dashes: those of `command` and of the subcommands that `words` name.
fn flags(command: &Command, words: &[String]) -> BTreeSet<String> {
    let own = command.get_arguments().filter(|argument| !argument.get_action().takes_values());
    let names = own.flat_map(|flag| {
        let long = flag.get_long().map(|name| format!("--{name}"));
        long.into_iter().chain(flag.get_short().map(|letter| format!("-{letter}")))
    });
    let below = words.iter().enumerate().find_map(|(at, word)| {
        command.find_subcommand(word).map(|command| flags(command, &words[at + 1..]))
    });
    names.chain(below.into_iter().flatten()).collect()
}

/// A command line that isn't finished.
#[derive(Debug)]
struct Line {
    /// The options in it that no value follows.
    flags: BTreeSet<String>,
    /// The words before the one to be completed, after the command's own.
    words: Vec<String>,
}

impl Line {
    /// The line that a shell hands over: after `--`, and cut at the word with the number that it says.
    fn of_shell(command: &Command) -> Self {
        let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|text| text.parse().ok());
        Self::of(std::env::args_os(), index, command)
    }

    fn of(words: impl Iterator<Item = OsString>, index: Option<usize>, command: &Command) -> Self {
        let words = words.skip_while(|word| word != "--").skip(1);
        let mut words: Vec<String> =
            words.map(|word| word.to_string_lossy().into_owned()).collect();
        words.truncate(index.unwrap_or(words.len().saturating_sub(1)));
        let words: Vec<_> = words.into_iter().skip(1).collect();
        Self { flags: flags(command, &words), words }
    }

    /// The value of an option, or of the variable that stands for it.
    fn option(&self, name: &str, variable: &str) -> Option<String> {
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            if word == name {
                return words.next().cloned();
            }
            if let Some(value) = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                return Some(value.to_string());
            }
        }
        std::env::var(variable).ok().filter(|value| !value.is_empty())
    }

    /// The words that are neither options nor their values.
    fn positional(&self) -> impl Iterator<Item = &str> {
        let mut is_value = false;
        self.words.iter().map(String::as_str).filter(move |word| {
            let was_value = std::mem::replace(&mut is_value, false);
            if word.starts_with('-') {
                is_value = !word.contains('=') && !self.flags.contains(*word);
                return false;
            }
            !was_value
        })
    }

    /// The machines on the device that the line means; none if it doesn't answer soon.
    fn machines(&self) -> Vec<MachineStatus> {
        let place = Where {
            device: self.option("--device", "TENURE_DEVICE"),
            hub: self.option("--hub", "TENURE_HUB"),
            via: self.option("--via", ""),
        };
        let (sender, answer) = channel();
        std::thread::spawn(move || sender.send(machines_at(&place).unwrap_or_default()));
        answer.recv_timeout(PATIENCE).unwrap_or_default()
    }
}

fn machines_at(place: &Where) -> anyhow::Result<Vec<MachineStatus>> {
    let home = Home::from_environment()?;
    // Pressing Tab makes no keys.
    anyhow::ensure!(home.has_owner_key(), "there are no keys yet");
    let mut client = Client::new(&home)?;
    let device = place.connect(&mut client)?;
    machines(&mut client, &device)
}

fn machine_names(line: &Line) -> Vec<String> {
    line.machines().iter().map(|machine| machine.name.to_string()).collect()
}

/// The functions of the machine that the line names after its command.
fn functions(line: &Line) -> Vec<String> {
    let Some(named) = line.positional().nth(1) else { return Vec::new() };
    let machines = line.machines();
    let machine = machines.iter().find(|machine| machine.name.as_str() == named);
    machine.into_iter().flat_map(completable).map(str::to_string).collect()
}

fn device_names(_: &Line) -> Vec<String> {
    let known = Home::from_environment().ok().and_then(|home| Known::of(&home).ok());
    let names = known.iter().flat_map(Known::devices).map(|(name, _, _)| name.to_string());
    names.collect()
}

/// The words for `--grant`: rights by the list that they stand in, as the packages on the line ask for them.
fn grants(line: &Line) -> Vec<String> {
    let mut words = ["all", "none", "same"].map(str::to_string).to_vec();
    let packages = line.positional().skip(1).map(Path::new).filter(|path| path.is_file());
    for bytes in packages.filter_map(|path| std::fs::read(path).ok()) {
        let Ok(package) = Package::parse(&bytes) else { continue };
        for (list, names) in grant::lists(&package.manifest().capabilities) {
            words.extend(names.iter().map(|name| format!("{list}={name}")));
        }
    }
    // A tenant chose them, and they will stand in the owner's line.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=@*#._-".contains(&byte);
    words.retain(|word| word.bytes().all(is_plain));
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[derive(clap::Parser)]
    struct CommandLine {
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: Subcommand,
    }

    #[derive(clap::Subcommand)]
    enum Subcommand {
        Call {
            #[arg(long, short)]
            quiet: bool,
            #[arg(long)]
            device: Option<String>,
        },
        Devices {
            #[arg(long)]
            quiet: Option<String>,
        },
    }

    fn line(text: &str, index: Option<usize>) -> Line {
        Line::of(text.split(' ').map(OsString::from), index, &CommandLine::command())
    }

    #[test]
    fn line_that_is_not_finished_is_cut_at_the_word_to_be_completed() {
        let words = |text, index| line(text, index).words;
        assert_eq!(words("tenure -- tenure call m f", Some(2)), ["call"], "bash and zsh count");
        assert_eq!(words("tenure -- tenure call m ", None), ["call", "m"], "fish cuts itself");
        assert_eq!(words("tenure --", None), Vec::<String>::new());
    }

    #[test]
    fn machine_of_a_line_is_found_among_its_options_and_their_values() {
        let named = |text| line(text, None).positional().nth(1).map(str::to_string);
        for text in [
            "tenure -- tenure call m ",
            "tenure -- tenure --json call --device attic m ",
            "tenure -- tenure call -q m ",
            "tenure -- tenure call --quiet m ",
            "tenure -- tenure devices --quiet call m ",
            "tenure -- tenure call --device=attic m --timeout 3 ",
        ] {
            assert_eq!(named(text).as_deref(), Some("m"), "{text}");
        }
        assert_eq!(named("tenure -- tenure call --device m "), None);
        let device = |text| line(text, None).option("--device", "");
        assert_eq!(device("tenure -- tenure call --device attic m ").as_deref(), Some("attic"));
        assert_eq!(device("tenure -- tenure call --device=attic m ").as_deref(), Some("attic"));
        assert_eq!(device("tenure -- tenure call m "), None);
    }
}
