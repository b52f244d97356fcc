//! `tenure completions`: what a shell needs to complete the command's words.

use clap_complete::Shell;

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
pub fn run(arguments: &Arguments, mut command: clap::Command) {
    clap_complete::generate(arguments.shell, &mut command, "tenure", &mut std::io::stdout());
}
