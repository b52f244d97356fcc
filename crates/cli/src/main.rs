//! The command `tenure`: makes, builds, installs and watches machines.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use tenure_cli::command_line::{self, CommandLine};
use tenure_cli::completions;
use tenure_cli::terminal::output::{Output, lost};

fn main() -> ExitCode {
    completions::answer(CommandLine::command);
    let matches = command_line::command().try_get_matches();
    let line = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
    let line = match line {
        Ok(line) => line,
        Err(error) => return misread(&error),
    };
    let done = line.execute();
    let done = done.and_then(|()| match lost() {
        Some(reason) => Err(anyhow::anyhow!("standard output: {reason}")),
        None => Ok(()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Devices, hubs and packages have a hand in what an error says.
            Output::new(line.json).failure(&error);
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
