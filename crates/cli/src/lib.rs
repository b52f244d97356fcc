//! The parts of the command `tenure`, each usable by a test or another tool.
//!
//! Each command is a module with its `Arguments` and a `run` function, in the room of what it is about: [`make`] a machine,
//! put a [`machine`] on a device and use it, run a [`device`], direct many by a [`hub`], join them to a [`mesh`], say whose
//! [`keys`] count, try machines on this computer ([`trial`]), speak [`tls`]. Below the rooms lie what all of them use:
//! [`reach`] finds devices and speaks with them, [`home`] keeps this user's keys, [`terminal`] speaks with the person. A room
//! imports those below it alone, in the order `terminal`, `home`, `reach`, `make`, `machine`, `device`, `hub` and `mesh`,
//! `keys`, `trial`.
//!
//! A command's findings go to standard output, as text or with `--json` as one object; an error names the cause and the
//! way out.
#![forbid(unsafe_code)]

#[cfg(any(forgetful, planted, unchecked_memory, unmetered))]
compile_error!("a deliberate mistake for tests can't be compiled into the command `tenure`");

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use tenure_protocols::plug_in::{Entry, Registry};

use command_line::CommandLine;
use terminal::output::{Output, lost};
use terminal::verdict::Verdict;

pub mod command_line;
pub mod completions;
pub mod device;
pub mod help;
pub mod home;
pub mod hub;
pub mod keys;
pub mod machine;
pub mod make;
pub mod mesh;
pub mod reach;
pub mod terminal;
pub mod tls;
pub mod trial;
mod whole_file;
mod written_file;

/// Runs the command `tenure`, which knows these protocols of the mesh by name beside its own: scenarios of `tenure sim`,
/// orders of `tenure experiment` and devices that it runs take them.
pub fn main_with(protocols: &'static [Entry]) -> ExitCode {
    #[cfg(feature = "native-speed")]
    if std::env::args_os().nth(1).is_some_and(|word| word == device::process::COMPILE) {
        return if tenure_board_linux::compile_for_a_device() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    completions::answer(CommandLine::command);
    let registry = match Registry::new(protocols) {
        Ok(registry) => registry,
        Err(error) => {
            Output::new(false).failure(&error.into());
            return ExitCode::FAILURE;
        }
    };
    let matches = command_line::command().try_get_matches();
    let line = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
    let line = match line {
        Ok(line) => line,
        Err(error) => return misread(&error),
    };
    let done = line.execute(registry);
    let done = done.and_then(|()| match lost() {
        Some(reason) => Err(anyhow::anyhow!("standard output: {reason}")),
        None => Ok(()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<Verdict>() {
            Some(verdict) => ExitCode::from(verdict.status),
            None => {
                // Devices, hubs and packages have a hand in what an error says.
                Output::new(line.json).failure(&error);
                ExitCode::FAILURE
            }
        },
    }
}

/// Says why the command line can't be read, or shows the help that it asks for.
fn misread(error: &clap::Error) -> ExitCode {
    let asks_for_json =
        std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json");
    if !error.use_stderr() {
        // Help or the version is a command's outcome as any other: it must have been printed.
        return match error.print().and_then(|()| std::io::stdout().flush()) {
            Err(failure) if failure.kind() != ErrorKind::BrokenPipe => {
                Output::new(asks_for_json).failure(&anyhow::anyhow!("standard output: {failure}"));
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        };
    }
    if !asks_for_json {
        error.exit()
    }
    let text = error.render().to_string();
    Output::new(true)
        .failure(&anyhow::anyhow!("{}", text.trim_start_matches("error: ").trim_end()));
    // As clap has it.
    ExitCode::from(2)
}
