//! The cost of walls and calls on a board, in instructions: a firmware that counts, in an emulator in which
//! each takes a nanosecond, so that what it counts is the same each time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::flash::{Flash, Place};
use super::{Board, Variant, escaped, image};
use crate::process;

/// The feature of a firmware that counts instead of being a device.
pub(super) const FEATURE: &str = "costs";

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The name of the cost.
    pub(crate) what: String,
    pub(crate) instructions: u32,
}

impl Board {
    /// Whether its emulator counts instructions.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::QemuRiscv32 | Self::QemuCortexM)
    }

    /// The costs of walls and calls there.
    pub(crate) fn costs(self, root: &Path) -> Result<Vec<Cost>> {
        let mut command = match self {
            Self::QemuRiscv32 => riscv32(root)?,
            Self::QemuCortexM => cortex_m(root)?,
            _ => bail!("only qemu-riscv32 and qemu-cortex-m count instructions"),
        };
        command.args(["-icount", "shift=0,sleep=off", "-display", "none", "-monitor", "none"]);
        let output = process::capture(command.args(["-serial", "stdio"]))?;
        let costs: Vec<_> = output.lines().filter_map(Cost::parse).collect();
        if costs.is_empty() {
            bail!("the firmware of {} counted nothing: {output}", self.name());
        }
        Ok(costs)
    }
}

impl Cost {
    /// Reads `   147 instructions  system call and back`.
    fn parse(line: &str) -> Option<Self> {
        let (count, what) = line.split_once(" instructions  ")?;
        Some(Self { what: what.trim_end().into(), instructions: count.trim().parse().ok()? })
    }
}

fn riscv32(root: &Path) -> Result<Command> {
    let firmware = Board::QemuRiscv32.build_variant(Variant::Costs, root)?;
    let mut command = Command::new("qemu-system-riscv32");
    command
        .args(["-M", "virt", "-m", "8M", "-cpu", "rv32,s=false,h=false,f=false,d=false"])
        .args(["-bios", "none", "-device"])
        .arg(format!("loader,file={},cpu-num=0", escaped(&firmware)));
    Ok(command)
}

/// A core of this kind starts with its loader, which finds the firmware in flash.
fn cortex_m(root: &Path) -> Result<Command> {
    let board = Board::QemuCortexM;
    board.build(root)?;
    let firmware = image::write(&board.build_variant(Variant::Costs, root)?)?;
    let image = std::fs::read(&firmware).context("cannot read the firmware")?;
    let folder = board.products(root).join("costs");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove what was counted last")?;
    }
    Flash::open(&folder, board.flash_bytes(), Place::NODE)?.flash_firmware(&image, 1)?;
    let loader = std::path::absolute(board.product("loader", root)).context("no current folder")?;
    let mut command = Command::new("qemu-system-arm");
    command
        .args(["-M", "mps2-an385", "-nic", "none"])
        .args(["-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(loader)
        .current_dir(folder);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::Cost;

    #[test]
    fn lines_of_a_firmware_that_counts_are_figures_and_others_are_not() {
        let cost = Cost::parse("  1043 instructions  host call, up to the kernel\r").unwrap();
        assert_eq!((cost.instructions, &*cost.what), (1043, "host call, up to the kernel"));
        assert_eq!(Cost::parse("loader: firmware 1 in slot A"), None);
        assert_eq!(Cost::parse("many instructions  for nothing"), None);
    }
}
