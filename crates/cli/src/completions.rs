//! `tenure completions`, and the words that a shell gets to complete: commands, options, and by asking the
//! device, machines and functions.

mod words;

use std::any::TypeId;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Elvish, EnvCompleter, Powershell, Shells, Zsh};
use tenure_package::{PACKAGE_BYTES_MAX, Package};
use tenure_wire::LogLevel;
use tenure_wire::control::MachineStatus;

use self::words::{Shell, Whole};
use crate::home::Home;
use crate::home::known::Known;
use crate::machine::grant;
use crate::machine::list::completable;
use crate::reach::client::Client;
use crate::reach::whom::{Where, machines};
use crate::terminal::output::Output;
use crate::whole_file;

/// The variable by which a shell asks for words instead of running a command.
const VARIABLE: &str = "TENURE_COMPLETE";
/// The words that a line takes where something is begun.
type Words = fn(&Line, &str) -> Vec<String>;
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
        clap_complete::Shell::Bash => &Shell::Bash,
        clap_complete::Shell::Elvish => &Elvish,
        clap_complete::Shell::Fish => &Shell::Fish,
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
    // It is taken from the environment before words are asked for.
    let shell = std::env::var(VARIABLE).unwrap_or_default();
    let with_words = move || {
        let command = command();
        let whole = Asked { command: command.clone(), shell: shell.clone() };
        lively(command, &Arc::new(whole))
    };
    const SHELLS: Shells<'static> =
        Shells(&[&Shell::Bash, &Elvish, &Shell::Fish, &Powershell, &Zsh]);
    CompleteEnv::with_factory(with_words).var(VARIABLE).bin("tenure").shells(SHELLS).complete();
}

/// The words that an argument takes, if they are of a known kind: by the type of its values, or by their name.
fn words_of(argument: &Arg) -> Option<Words> {
    let takes = |id: TypeId| argument.get_value_parser().type_id() == id;
    if takes(TypeId::of::<LogLevel>()) {
        return Some(levels);
    }
    let names = argument.get_value_names().unwrap_or_default();
    let [name] = names else { return None };
    match (name.as_str(), argument.get_id().as_str()) {
        ("MACHINE", _) | (_, "machine") => Some(machine_names),
        ("FUNCTION", _) => Some(functions),
        ("DEVICE" | "MEMBER", _) | (_, "device" | "devices" | "via" | "forget") => {
            Some(device_names)
        }
        (_, "grant") => Some(grants),
        _ => None,
    }
}

/// A whole command line, and the shell that asks for words of it.
struct Asked {
    command: Command,
    shell: String,
}

/// `command`, a part of the `whole` command line, with arguments that know their words.
fn lively(command: Command, whole: &Arc<Asked>) -> Command {
    let with_words = |argument: Arg, words: Words| {
        let whole = Arc::clone(whole);
        let matching = move |begun: &OsStr| matching(begun, &Line::of_shell(&whole), words);
        argument.add(ArgValueCompleter::new(matching))
    };
    let command = command.mut_args(|argument| match words_of(&argument) {
        Some(words) => with_words(argument, words),
        None => argument,
    });
    command.mut_subcommands(|command| lively(command, whole))
}

/// The words that go on what is begun; of a list behind commas, its last part alone is.
fn matching(begun: &OsStr, line: &Line, words: Words) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    let (list, begun) = begun.rsplit_once(',').unwrap_or(("", &begun));
    let comma = if list.is_empty() { "" } else { "," };
    let words = words(line, begun).into_iter().filter(|word| word.starts_with(begun));
    words.map(|word| CompletionCandidate::new(format!("{list}{comma}{word}"))).collect()
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
    /// Those behind it: somebody went back.
    behind: Vec<String>,
}

impl Line {
    /// The line that a shell hands over: after `--`, and cut at the word with the number that it says.
    fn of_shell(Asked { command, shell }: &Asked) -> Self {
        let words = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
        let mut whole = Whole::of_shell(words, shell);
        if shell == "fish" {
            whole.words.truncate(whole.index + 1);
            whole.words.extend(words::behind_in_fish(&whole.words));
        }
        Self::of(&whole, command)
    }

    fn of(whole: &Whole, command: &Command) -> Self {
        let text = |words: &[OsString]| -> Vec<String> {
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let all = text(&whole.words);
        let index = whole.index.min(all.len());
        let words: Vec<_> = all[..index].iter().skip(1).cloned().collect();
        let behind = all.get(index + 1..).unwrap_or_default().to_vec();
        Self { flags: flags(command, &words), words, behind }
    }

    /// The value of an option, or of the variable that stands for it.
    fn option(&self, name: &str, variable: &str) -> Option<String> {
        let mut words = self.words.iter().chain(&self.behind);
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
        let (mut is_value, mut are_all) = (false, false);
        self.words.iter().map(String::as_str).filter(move |word| {
            let was_value = std::mem::replace(&mut is_value, false);
            if are_all || was_value {
                return are_all;
            }
            are_all = *word == "--";
            if word.starts_with('-') {
                is_value = !are_all && !word.contains('=') && !self.flags.contains(*word);
                return false;
            }
            true
        })
    }

    /// The machine that the line names after its command, and the device, if that stands there as well.
    fn machine(&self) -> Option<(&str, Option<&str>)> {
        let named = self.positional().nth(1)?;
        Some(named.split_once('@').map_or((named, None), |(name, device)| (name, Some(device))))
    }

    /// The machines on the device that the line means, if not on the one that is `named`; none if it doesn't answer soon.
    fn machines(&self, named: Option<&str>) -> Vec<MachineStatus> {
        let place = Where {
            device: named.map(str::to_string).or_else(|| self.option("--device", "TENURE_DEVICE")),
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

/// The machines on the line's device; behind an `@` the devices that one may be on.
fn machine_names(line: &Line, begun: &str) -> Vec<String> {
    if let Some((machine, _)) = begun.split_once('@') {
        let devices = device_names(line, begun).into_iter();
        return devices.map(|device| format!("{machine}@{device}")).collect();
    }
    line.machines(None).iter().map(|machine| machine.name.to_string()).collect()
}

fn levels(_: &Line, _: &str) -> Vec<String> {
    LogLevel::ALL.iter().map(LogLevel::to_string).collect()
}

/// The functions of the machine that the line names after its command.
fn functions(line: &Line, _: &str) -> Vec<String> {
    let Some((named, device)) = line.machine() else { return Vec::new() };
    let machines = line.machines(device);
    let machine = machines.iter().find(|machine| machine.name.as_str() == named);
    machine.into_iter().flat_map(completable).map(str::to_string).collect()
}

fn device_names(_: &Line, _: &str) -> Vec<String> {
    let known = Home::from_environment().ok().and_then(|home| Known::of(&home).ok());
    let names = known.iter().flat_map(Known::devices).map(|(name, _, _)| name.to_string());
    names.collect()
}

/// The words for `--grant`: rights by the list that they stand in, as the packages on the line ask for them.
fn grants(line: &Line, _: &str) -> Vec<String> {
    let mut words = ["all", "none", "same"].map(str::to_string).to_vec();
    let packages = line.positional().skip(1).map(Path::new).filter(|path| path.is_file());
    for bytes in packages.filter_map(|path| whole_file::read(path, PACKAGE_BYTES_MAX as u64).ok()) {
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
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        let index = index.unwrap_or(words.len() - 1);
        Line::of(&Whole { words, index }, &CommandLine::command())
    }

    #[test]
    fn line_that_is_not_finished_is_cut_at_the_word_to_be_completed() {
        let words = |text, index| line(text, index).words;
        assert_eq!(words("tenure call m f", Some(2)), ["call"], "bash and zsh count");
        assert_eq!(words("tenure call m ", None), ["call", "m"], "fish cuts itself");
        assert_eq!(words("", None), Vec::<String>::new());
    }

    #[test]
    fn machine_of_a_line_is_found_among_its_options_and_their_values() {
        let named = |text| line(text, None).positional().nth(1).map(str::to_string);
        for text in [
            "tenure call m ",
            "tenure --json call --device attic m ",
            "tenure call -q m ",
            "tenure call --quiet m ",
            "tenure devices --quiet call m ",
            "tenure call --device=attic m --timeout 3 ",
            "tenure call --device attic -- m ",
        ] {
            assert_eq!(named(text).as_deref(), Some("m"), "{text}");
        }
        assert_eq!(named("tenure call --device m "), None);
        assert_eq!(line("tenure call m@attic ", None).machine(), Some(("m", Some("attic"))));
    }

    #[test]
    fn device_of_a_line_is_found_before_and_behind_the_word_to_be_completed() {
        let device = |text, index| line(text, index).option("--device", "");
        assert_eq!(device("tenure call --device attic m ", None).as_deref(), Some("attic"));
        assert_eq!(device("tenure call --device=attic m ", None).as_deref(), Some("attic"));
        assert_eq!(device("tenure call  --device attic", Some(2)).as_deref(), Some("attic"));
        assert_eq!(device("tenure call c get --device=attic", Some(2)).as_deref(), Some("attic"));
        assert_eq!(device("tenure call m ", None), None);
    }

    /// Judged by clap's own description of each argument of each command.
    #[test]
    fn each_argument_that_takes_a_word_of_a_known_kind_is_completed() {
        fn look(command: &Command, path: &str, counts: &mut [usize; 2]) {
            for argument in command.get_arguments().filter(|it| it.get_action().takes_values()) {
                let names = argument.get_value_names().unwrap_or_default().join(" ");
                let id = argument.get_id().as_str();
                let is_known = ["MACHINE", "DEVICE", "FUNCTION", "MEMBER", "LEVEL"]
                    .contains(&names.as_str())
                    || ["machine", "device", "devices", "function", "via"].contains(&id);
                let is_completed =
                    words_of(argument).is_some() || !argument.get_possible_values().is_empty();
                assert!(is_completed || !is_known, "{path} {id} <{names}>");
                counts[usize::from(is_completed)] += 1;
            }
            for below in command.get_subcommands() {
                look(below, &format!("{path} {}", below.get_name()), counts);
            }
        }
        let mut counts = [0; 2];
        look(&crate::command_line::command(), "tenure", &mut counts);
        assert!(counts[1] > 100, "{counts:?}");
    }

    #[test]
    fn last_part_of_a_list_is_completed() {
        let line = line("tenure call ", None);
        let matched = |begun: &str| {
            let found = matching(OsStr::new(begun), &line, levels);
            let words = found.iter().map(|it| it.get_value().to_string_lossy().into_owned());
            words.collect::<Vec<_>>()
        };
        assert_eq!(matched("f"), ["fault"]);
        assert_eq!(matched("info,deb"), ["info,debug"]);
        assert!(matched("nothing").is_empty());
    }
}
