//! The command `tenure`: makes, builds, installs and watches machines.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tenure_cli::main_with(&[])
}
