//! `tenure completions`: what a shell needs to complete the command's words.

use clap_complete::Shell;

use crate::output::Output;

/// Print the completions for a shell.
#[derive(clap::Args)]
#[command(
    after_help = "Example: tenure completions bash > ~/.local/share/bash-completion/completions/tenure"
)]
pub struct Arguments {
    /// The shell.
    shell: Shell,
}

/// Prints the completions of `command`.
pub fn run(arguments: &Arguments, mut command: clap::Command, output: &Output) {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "tenure", &mut script);
    output.words(String::from_utf8_lossy(&script).trim_end());
}
