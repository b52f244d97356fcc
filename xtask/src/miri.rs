//! `miri`: the engine's unsafe code under Miri, which sees what goes wrong without a crash.
//!
//! The program in `crates/vm/tests/miri` translates modules, runs their exports in slices down to one
//! instruction, suspends them in between and resumes them. Miri is part of nightly Rust alone, and takes
//! seconds for what takes microseconds otherwise: so it looks for a while, not at everything.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, toolchain};

/// Run modules in the engine under Miri, for a while.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask miri\n  cargo xtask miri --seconds 600\n  \
                  cargo xtask miri crates/vm/tests/corpus/1000.wasm")]
pub(crate) struct Arguments {
    /// The modules; by default the corpus and the fuzzer's seeds, all in one row.
    modules: Vec<PathBuf>,
    /// Begin no further module after this time.
    #[arg(long, default_value_t = 120, value_name = "N")]
    seconds: u32,
}

/// Where modules lie.
const FOLDERS: [&str; 2] = ["crates/vm/tests/corpus", "fuzz/seeds/vm"];

const INSTALL: &str = "rustup toolchain install nightly --profile minimal -c miri -c rust-src";

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    if !process::succeeds(nightly_cargo().args(["miri", "--version"])) {
        bail!("Miri comes with nightly Rust, which is not here: {INSTALL}");
    }
    let mut modules = arguments.modules.clone();
    if modules.is_empty() {
        for folder in FOLDERS {
            modules.extend(modules_in(&root.join(folder))?);
        }
    }
    let mut command = nightly_cargo();
    command
        .current_dir(root.join("crates/vm/tests/miri"))
        .env("CARGO_TARGET_DIR", toolchain::target_folder(root).join("miri"))
        // The program reads files and the clock.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .args(["miri", "run", "--quiet", "--", &arguments.seconds.to_string()]);
    for module in modules {
        command.arg(std::path::absolute(module)?);
    }
    process::run(&mut command)
}

/// The `cargo` of nightly, whichever runs us.
fn nightly_cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]);
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command
}

fn modules_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut modules = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    modules.retain(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    modules.sort();
    Ok(modules)
}
