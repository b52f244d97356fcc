//! `miri`: the unsafe code of the engine and of boards' heap under Miri, which sees what goes wrong without a crash.
//!
//! The program in `crates/vm/tests/miri` translates modules, runs their exports in slices down to one
//! instruction, suspends them in between and resumes them; that in `boards/common/tests/miri` takes and gives
//! back memory. Miri is part of nightly Rust alone, and takes
//! seconds for what takes microseconds otherwise: so it looks for a while, not at everything.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::setup::{self, Need};
use crate::toolchain::{self, nightly_cargo};

/// Run modules in the engine, and the heap of boards, under Miri, for a while.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask miri\n  cargo xtask miri --seconds 600\n  \
                  cargo xtask miri crates/vm/tests/corpus/1000.wasm")]
pub(crate) struct Arguments {
    /// The modules, and nothing else; by default the corpus and the fuzzer's seeds, after the heap.
    modules: Vec<PathBuf>,
    /// Begin no further module after this time.
    #[arg(long, default_value_t = 120, value_name = "N")]
    seconds: u32,
}

const ENGINE: &str = "crates/vm/tests/miri";
const HEAP: &str = "boards/common/tests/miri";
/// How often the heap is asked for memory or given some back.
const HEAP_STEPS: &str = "400";
/// Where modules lie.
const FOLDERS: [&str; 2] = ["crates/vm/tests/corpus", "fuzz/seeds/vm"];

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    setup::ensure(&[Need::Miri])?;
    let mut modules = arguments.modules.clone();
    if modules.is_empty() {
        process::run(program(root, HEAP).arg(HEAP_STEPS))?;
        for folder in FOLDERS {
            modules.extend(modules_in(&root.join(folder))?);
        }
    }
    let mut engine = program(root, ENGINE);
    engine.arg(arguments.seconds.to_string());
    for module in modules {
        engine.arg(std::path::absolute(module)?);
    }
    process::run(&mut engine)
}

/// Runs the program in that folder under Miri; its arguments follow.
fn program(root: &Path, folder: &str) -> Command {
    let mut command = nightly_cargo();
    command
        .current_dir(root.join(folder))
        .env("CARGO_TARGET_DIR", toolchain::target_folder(root).join("miri"))
        // The programs read files and the clock, and a heap begins at an address.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance")
        .args(["miri", "run", "--quiet", "--"]);
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
