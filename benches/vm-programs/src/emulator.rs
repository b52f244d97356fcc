//! QEMU, which counts: each instruction takes a nanosecond.

use std::path::Path;
use std::process::Command;

/// What an image reports of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What it came to the first and the second time.
    pub results: [u32; 2],
    /// Instructions of the second time.
    pub instructions: u32,
    /// Units of fuel, where they are counted.
    pub fuel: u32,
}

/// Runs an image.
pub fn run(image: &Path) -> Result<Run, String> {
    let output = Command::new("qemu-system-riscv32")
        .args(["-M", "virt", "-cpu", "rv32,s=false,f=false,d=false,h=false", "-m", "128M"])
        .args(["-bios", "none", "-nographic", "-monitor", "none", "-icount", "shift=0,sleep=off"])
        .arg("-kernel")
        .arg(image)
        .output()
        .map_err(|error| format!("qemu-system-riscv32: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("ran "));
    line.and_then(parsed).ok_or_else(|| format!("the image says {:?}", text.trim()))
}

fn parsed(line: &str) -> Option<Run> {
    let numbers: Result<Vec<u32>, _> = line.split(' ').map(str::parse).collect();
    let [first, second, instructions, fuel] = numbers.ok()?.try_into().ok()?;
    Some(Run { results: [first, second], instructions, fuel })
}
