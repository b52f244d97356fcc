//! The command `tenure`, which knows this protocol by its name beside its own.

use std::process::ExitCode;

use protocol::Leader;
use tenure_protocols::plug_in::Entry;

const PROTOCOLS: &[Entry] = &[Entry::of::<Leader>()];

fn main() -> ExitCode {
    tenure_cli::main_with(PROTOCOLS)
}
