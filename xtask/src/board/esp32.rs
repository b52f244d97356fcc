//! The ESP32s: no emulator stands for them, so their maker's own tool judges the image that would be flashed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use tenure_testbed::Packages;

use super::Board;
use crate::report::{Tally, Verdict};
use crate::setup::{self, Need};
use crate::{process, toolchain};

/// The flash of the smallest modules.
const FLASH_BYTES: u32 = 4 << 20;
/// Behind the chip's own loader and the table of partitions.
const PARTITIONS_AT: u32 = 0x9000;
const SECTOR_BYTES: u32 = 4096;
/// The page that an entry of the memory management unit maps: a mapped segment has its place within it in flash, too.
const PAGE_BYTES: u32 = 64 * 1024;
/// The header before each segment of an image.
const SEGMENT_HEADER_BYTES: u32 = 8;

/// A row of `partitions.csv`.
struct Partition {
    name: String,
    kind: String,
    offset: u32,
    bytes: u32,
}

/// Builds the firmware, makes the image of it, and checks that the chip's loader would take it.
pub(crate) fn test(board: Board, root: &Path) -> Result<Verdict> {
    setup::ensure(&[Need::BareMetal, Need::Node])?;
    let tool = Esptool::prepare(board, root)?;
    let image = tool.make_image(&board.build(root)?)?;
    let shown = tool.show(&image)?;
    let table = std::fs::read_to_string(board.folder(root).join("partitions.csv"))?;
    let partitions = partitions(&table)?;
    let image_bytes = std::fs::metadata(&image)?.len();
    let checks = [
        ("partitions lie in the flash, side by side", check_partitions(&partitions)),
        ("firmware fits its partition", check_length(&partitions, image_bytes)),
        ("image is whole, and for this chip", check_header(&shown, board)),
        ("segments lie in memory that the chip has", check_segments(&shown)),
        ("description of the application is there", check_description(&shown)),
    ];
    let mut tally = Tally::default();
    for (promise, outcome) in checks {
        match outcome {
            Ok(()) => tally.passed += 1,
            Err(_) => tally.failed += 1,
        }
        let word = outcome.map_or_else(|error| format!("FAILED: {error}"), |()| "ok".to_owned());
        println!("{}: {promise} ... {word}", board.name());
    }
    Ok(Verdict::Tests(tally.into()))
}

/// As [`test`], as a command.
pub(super) fn check(board: Board, root: &Path) -> Result<()> {
    match test(board, root)? {
        Verdict::Tests(tests) if tests.tally.failed > 0 => {
            bail!("{} tests failed", tests.tally.failed)
        }
        _ => Ok(()),
    }
}

/// The maker's tool, fetched once.
struct Esptool {
    modules: PathBuf,
    chip: &'static str,
}

impl Esptool {
    fn prepare(board: Board, root: &Path) -> Result<Self> {
        let folder = Packages::Esptool.fetch(&toolchain::temporary_folder(root));
        let folder = folder.context("esptool can't be fetched from PyPI")?;
        Ok(Self { modules: Packages::python(&folder), chip: board.name() })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", &self.modules).args(["-m", "esptool", "--chip", self.chip]);
        command
    }

    /// Makes the image that the chip's loader starts of a program.
    fn make_image(&self, program: &Path) -> Result<PathBuf> {
        let image = program.with_extension("bin");
        let mut command = self.command();
        command.args(["elf2image", "--flash-mode", "dio", "--flash-size", "4MB", "--output"]);
        process::capture(command.arg(&image).arg(program))?;
        Ok(image)
    }

    /// The tool's description of an image.
    fn show(&self, image: &Path) -> Result<String> {
        process::capture(self.command().arg("image-info").arg(image))
    }
}

/// The rows of a table of partitions.
fn partitions(table: &str) -> Result<Vec<Partition>> {
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    rows.map(|row| {
        let columns: Vec<&str> = row.split(',').map(str::trim).collect();
        let [name, kind, _, offset, bytes] = columns[..] else { bail!("no partition: {row}") };
        let (name, kind) = (name.into(), kind.into());
        Ok(Partition { name, kind, offset: hexadecimal(offset)?, bytes: hexadecimal(bytes)? })
    })
    .collect()
}

fn check_partitions(partitions: &[Partition]) -> Result<()> {
    let mut end = PARTITIONS_AT;
    for Partition { name, kind, offset, bytes } in partitions {
        let grain = if kind == "app" { PAGE_BYTES } else { SECTOR_BYTES };
        ensure!(offset % grain == 0 && bytes % SECTOR_BYTES == 0, "{name} isn't aligned");
        ensure!(*offset >= end, "{name} begins before the one before it ends");
        end = offset.checked_add(*bytes).context("it ends nowhere")?;
    }
    ensure!(end <= FLASH_BYTES, "they end at {end:#x}, behind the flash");
    Ok(())
}

fn check_length(partitions: &[Partition], image_bytes: u64) -> Result<()> {
    let app = partitions.iter().find(|partition| partition.kind == "app");
    let room = app.context("there is none for a firmware")?.bytes;
    ensure!(image_bytes <= u64::from(room), "it takes {image_bytes} bytes of {room}");
    Ok(())
}

fn check_header(shown: &str, board: Board) -> Result<()> {
    let chip = match board {
        Board::Esp32c3 => "(ESP32-C3)",
        _ => "(ESP32-C6)",
    };
    for (field, end) in
        [("Chip ID:", chip), ("Checksum:", "(valid)"), ("Validation hash:", "(valid)")]
    {
        let line = shown.lines().find(|line| line.starts_with(field));
        let line = line.with_context(|| format!("there is no `{field}`"))?;
        ensure!(line.ends_with(end), "{line}");
    }
    Ok(())
}

/// Checks the rows of the table of segments: number, length, address, place in the file, kinds of memory.
fn check_segments(shown: &str) -> Result<()> {
    let rows = shown.lines().skip_while(|line| !line.starts_with("Segment ")).skip(2);
    let rows: Vec<&str> = rows.take_while(|line| !line.trim().is_empty()).collect();
    ensure!(rows.iter().any(|row| row.contains("IROM")), "none is code in flash");
    for row in rows {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let [_, _, address, place, ref memory @ ..] = columns[..] else {
            bail!("no segment: {row}")
        };
        ensure!(!memory.is_empty(), "no memory is there: {row}");
        let begins = hexadecimal(place)? + SEGMENT_HEADER_BYTES;
        let is_mapped = memory.iter().any(|kind| kind.contains("ROM"));
        let distance = hexadecimal(address)?.wrapping_sub(begins);
        ensure!(!is_mapped || distance % PAGE_BYTES == 0, "it can't be mapped: {row}");
    }
    Ok(())
}

/// The chip's loader reads the smallest revision of the chip and the size of pages there.
fn check_description(shown: &str) -> Result<()> {
    ensure!(shown.contains("Project name: tenure-board-esp32"), "it isn't ours");
    ensure!(shown.contains("MMU page size: 64 KB"), "it names other pages than the firmware maps");
    Ok(())
}

fn hexadecimal(text: &str) -> Result<u32> {
    let digits =
        text.strip_prefix("0x").with_context(|| format!("no hexadecimal number: {text}"))?;
    u32::from_str_radix(digits, 16).with_context(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "\
Chip ID: 5 (ESP32-C3)

Segments Information
====================
Segment   Length   Load addr   File offs  Memory types
-------  -------  ----------  ----------  ------------
      0  0x1e180  0x3c000020  0x00000018  DROM
      1  0x01e70  0x3fc89c80  0x0001e1a0  DRAM, BYTE_ACCESSIBLE
      2  0xf9958  0x42020020  0x00020018  IROM

Checksum: 0x6e (valid)
Validation hash: 2c58 (valid)
";

    fn table(rows: &[&str]) -> Result<()> {
        check_partitions(&partitions(&rows.join("\n"))?)
    }

    #[test]
    fn partitions_that_overlap_or_leave_the_flash_are_refused() {
        let app = "factory, app, factory, 0x10000, 0x170000";
        table(&["# Name", app, "tenure, data, 0x40, 0x180000, 0x280000"]).unwrap();
        for other in ["0x17F000, 0x1000", "0x180000, 0x281000", "0x180800, 0x1000", "x, y"] {
            assert!(table(&[app, &format!("tenure, data, 0x40, {other}")]).is_err(), "{other}");
        }
        let [app] = &partitions(app).unwrap()[..] else { panic!("one row") };
        check_length(std::slice::from_ref(app), 0x17_0000).unwrap();
        check_length(std::slice::from_ref(app), 0x17_0001).unwrap_err();
    }

    #[test]
    fn images_that_the_loader_would_refuse_are_refused() {
        check_header(SHOWN, Board::Esp32c3).unwrap();
        check_segments(SHOWN).unwrap();
        check_header(SHOWN, Board::Esp32c6).unwrap_err();
        check_header(&SHOWN.replace("0x6e (valid)", "0x6e (invalid)"), Board::Esp32c3).unwrap_err();
        check_segments(&SHOWN.replace("0x42020020", "0x42020120")).unwrap_err();
        check_segments(&SHOWN.replace("IROM", "")).unwrap_err();
        check_segments(&SHOWN.replace("DRAM, BYTE_ACCESSIBLE", "")).unwrap_err();
        check_description(SHOWN).unwrap_err();
    }
}
