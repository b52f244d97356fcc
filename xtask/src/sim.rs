//! `sim`: runs the simulator, optimised, with the arguments it is given.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{planted, process};

/// Run many nodes under one seeded clock, radio and flash.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask sim -- --help")]
pub(crate) struct Arguments {
    /// Arguments for the simulator.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    if !root.join("crates/sim/Cargo.toml").is_file() {
        bail!("this version has no simulator (crates/sim)");
    }
    let mut command = process::cargo(root);
    // In a build of its own, which watches each nonce and can plant weaknesses.
    planted::plant(&mut command, "planted")?;
    command.args(["run", "--quiet", "--release", "--package", "tenure-sim", "--"]);
    process::run(command.args(&arguments.rest))
}
