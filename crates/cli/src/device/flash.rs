//! `tenure flash`: a firmware with its settings in it, for a board that takes files as a drive.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde_json::json;
use tenure_boot::map;
use tenure_boot::uf2::{self, Block};
use tenure_node::{Owner, SleepPolicy};
use tenure_wire::{Name, VerifyingKey};

use crate::device::deep_sleep::Sleeping;
use crate::home::Home;
use crate::home::parse_owner;
use crate::reach::client::OwnerKeys;
use crate::terminal::output::Output;
use crate::whole_file;

#[cfg(test)]
mod tests;

/// The file on the drive of a board that waits for firmware.
const DRIVE_MARK: &str = "INFO_UF2.TXT";
/// The board's line in that file.
const PICO_MARK: &str = "Board-ID: RPI-RP2";
/// Where desktops mount drives: folders that hold them, or a folder a user that holds them.
const MOUNTS: [&str; 3] = ["/media", "/run/media", "/mnt"];
/// The largest file of UF2 that is read: twice a flash of 16 MiB.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// The bytes of an erased sector of the settings.
const ERASED: u8 = 0xFF;

/// Write a firmware, and whose the device is, to a board that is a drive while its button is held.
///
/// A Raspberry Pi Pico is such a drive when it is plugged in with BOOTSEL pressed. What is written names the
/// device and its owner; machines and what they store on a board that ran Tenure before stay.
///
/// Example: tenure flash pico tenure-pico.uf2 --name attic
#[derive(clap::Args)]
pub struct Arguments {
    /// Which board.
    board: Board,
    /// The firmware, as `cargo xtask board rp2040 --build-only` makes it.
    firmware: PathBuf,
    /// The device's name.
    #[arg(long)]
    name: Name,
    /// The owner's keys as `tenure key --own` prints them, if the owner is somebody else.
    #[arg(long, value_name = "SIGNING-KEY/MACHINE-KEY", value_parser = parse_owner)]
    owner: Option<Owner>,
    /// Whose firmware the device takes beside its owner's.
    #[arg(long, value_name = "SIGNING-KEY")]
    maker: Option<VerifyingKey>,
    #[command(flatten)]
    sleeping: Sleeping,
    /// Write the file there instead of to the board's drive.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The folder where the board's drive is mounted, if it isn't found.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    drive: Option<PathBuf>,
}

/// A board that takes files of UF2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Board {
    /// Raspberry Pi Pico, and boards like it.
    Pico,
}

/// Runs `tenure flash`.
///
/// # Errors
/// The firmware isn't one for the board, no drive of a board is mounted, or it can't be written to.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let Board::Pico = arguments.board;
    let owner = match arguments.owner {
        Some(owner) => owner,
        None => OwnerKeys::of(&Home::from_environment()?)?.owner(),
    };
    let settings = settings(&arguments.name, &owner, arguments.maker.as_ref(), arguments.sleeping);
    let file = read(&arguments.firmware)?;
    let flashed = with_settings(&file, &settings)
        .with_context(|| arguments.firmware.display().to_string())?;
    let to = match (&arguments.output, &arguments.drive) {
        (Some(file), _) => {
            whole_file::write_private(file, &flashed)
                .with_context(|| format!("can't write {}", file.display()))?;
            file.clone()
        }
        (None, drive) => {
            let drive = match drive {
                Some(folder) => checked(folder)?,
                None => found(&MOUNTS.map(PathBuf::from))?,
            };
            let to = drive.join("tenure.uf2");
            copy(&to, &flashed)?;
            to
        }
    };
    let name = &arguments.name;
    output.line(
        &format!(
            "{name} is in {}\nwhen it runs: tenure serial TTY --listen 127.0.0.1:7390, then tenure enrol 127.0.0.1:7390",
            to.display()
        ),
        &json!({
            "device": name.as_str(),
            "owner_signing_key": owner.verifying_key.to_string(),
            "file": to.display().to_string(),
            "bytes": flashed.len(),
        }),
    );
    Ok(())
}

/// The lines of a device's settings sector.
fn settings(name: &Name, owner: &Owner, maker: Option<&VerifyingKey>, sleep: Sleeping) -> String {
    let mut text = format!("name={name}\nowner={}/{}\n", owner.verifying_key, owner.machine);
    if let Some(maker) = maker {
        text += &format!("maker={maker}\n");
    }
    let seconds =
        |span: std::time::Duration| format!("{}.{:03}", span.as_secs(), span.subsec_millis());
    match sleep.policy() {
        SleepPolicy::Never => {}
        SleepPolicy::WhenIdle { at_least } => {
            text += &format!("deep-sleep-after={}\n", seconds(at_least));
        }
        SleepPolicy::DutyCycle { run, sleep } => {
            text += &format!("duty-cycle={}/{}\n", seconds(run), seconds(sleep));
        }
    }
    text
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("can't read {}", path.display());
    let bytes = fs::metadata(path).with_context(failed)?.len();
    ensure!(bytes <= FILE_BYTES_MAX, "{} is too long for a firmware", path.display());
    fs::read(path).with_context(failed)
}

/// The file with the sector of the settings put in, or replaced.
fn with_settings(file: &[u8], settings: &str) -> anyhow::Result<Vec<u8>> {
    let (blocks, rest) = file.as_chunks::<{ uf2::BLOCK_BYTES }>();
    ensure!(!blocks.is_empty() && rest.is_empty(), "it isn't a whole file of UF2");
    let mut pages = BTreeMap::new();
    for (number, block) in blocks.iter().enumerate() {
        let block = Block::from_bytes(block).with_context(|| format!("its block {number}"))?;
        pages.insert(block.address, block.page);
    }
    let at = |sector: map::Run| uf2::RP2040_FLASH + sector.offset();
    if !pages.contains_key(&at(map::LOADER)) || !pages.contains_key(&at(map::SLOTS[0])) {
        bail!("it has no loader or no firmware of Tenure in it");
    }
    let mut sector = settings.as_bytes().to_vec();
    ensure!(
        sector.len() < map::SETTINGS.bytes() as usize,
        "the settings are longer than their sector"
    );
    sector.resize(map::SETTINGS.bytes() as usize, ERASED);
    let (settings, _) = sector.as_chunks::<{ uf2::PAGE_BYTES }>();
    pages.extend((at(map::SETTINGS)..).step_by(uf2::PAGE_BYTES).zip(settings.iter().copied()));
    let pages: Vec<_> = pages.into_iter().collect();
    Ok(uf2::blocks(&pages).flatten().collect())
}

/// The drive of the board that waits for firmware.
fn found(mounts: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let inside = |folder: &PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let near: Vec<_> = mounts.iter().flat_map(inside).collect();
    let far: Vec<_> = near.iter().flat_map(inside).collect();
    let drives: Vec<_> = near.into_iter().chain(far).filter(|folder| is_pico(folder)).collect();
    match &drives[..] {
        [drive] => Ok(drive.clone()),
        [] => bail!(
            "no board is mounted as a drive; plug it in with BOOTSEL pressed, or name its folder with --drive, \
             or a file with --output"
        ),
        [one, other, ..] => bail!(
            "two boards are mounted, {} and {}; name one with --drive",
            one.display(),
            other.display()
        ),
    }
}

fn checked(folder: &Path) -> anyhow::Result<PathBuf> {
    if !is_pico(folder) {
        bail!(
            "{} is no drive of a Pico: its {DRIVE_MARK} is missing or names another board",
            folder.display()
        );
    }
    Ok(folder.to_path_buf())
}

fn is_pico(folder: &Path) -> bool {
    let text = fs::read(folder.join(DRIVE_MARK)).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().any(|line| line.trim() == PICO_MARK)
}

/// Writes to the drive, and waits until all is there: the board starts as soon as it has the last block.
fn copy(to: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let failed = || format!("can't write {}", to.display());
    let mut file = fs::File::create(to).with_context(failed)?;
    file.write_all(bytes).with_context(failed)?;
    match file.sync_all() {
        // The drive goes when the board has all and starts.
        Err(error) if error.kind() != std::io::ErrorKind::StorageFull && is_gone(to) => Ok(()),
        done => done.with_context(failed),
    }
}

fn is_gone(file: &Path) -> bool {
    file.parent().is_none_or(|folder| !folder.join(DRIVE_MARK).exists())
}
