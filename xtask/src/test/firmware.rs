//! The firmware that tests of the workspace start in emulators, built before them: no test waits for a compiler.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::board::{self, Board};
use crate::toolchain;

/// Names the file with a line `BOARD MISTAKE FILE` for each firmware; the mistake that is none is `-`. A test takes from
/// there alone what it starts.
pub(crate) const LIST: &str = "TENURE_FIRMWARE";

/// The mistake that an emulated board must contain.
const UNCHECKED: Option<&str> = Some(board::UNCHECKED_MEMORY);

/// What the tests of `crates/cli` ask for.
const OF_TESTS: [(Board, Option<&str>); 7] = [
    (Board::QemuRiscv32, None),
    (Board::QemuRiscv32, UNCHECKED),
    (Board::QemuCortexM, None),
    (Board::QemuCortexM, UNCHECKED),
    (Board::QemuCortexM0, None),
    (Board::QemuLeaf, None),
    (Board::QemuPublisher, None),
];

/// Builds all of it, and returns the list.
pub(super) fn build(root: &Path) -> Result<PathBuf> {
    let mut list = String::new();
    for (board, planted) in OF_TESTS {
        let name = board.name();
        let image = board::image(board, planted, root)
            .with_context(|| format!("the firmware of {name}"))?;
        let image = std::path::absolute(image)?;
        list += &format!("{name} {} {}\n", planted.unwrap_or("-"), image.display());
    }
    let folder = toolchain::temporary_folder(root);
    let path = std::path::absolute(folder.join("firmware.list"))?;
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, list))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
