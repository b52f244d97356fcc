//! The RP2040: its flash image from the second stage on, and the rig that runs it from the boot ROM on.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tenure_boot::map;
use tenure_testbed::Packages;

use super::flash::{Flash, Place};
use super::{Arguments, Board, image, lay_line, settings_text, supply};
use crate::report::{Tally, Tests, Verdict};
use crate::setup::{self, Need};
use crate::test::tests_with;
use crate::{process, toolchain};

/// The emulator and the chip's boot ROM, as packages that are fetched once.
struct Rig {
    folder: PathBuf,
    bootrom: PathBuf,
}

impl Rig {
    fn prepare(root: &Path) -> Result<Self> {
        setup::ensure(&[Need::Node])?;
        let folder = Packages::Rp2040.fetch(&toolchain::temporary_folder(root));
        let folder = folder.context("the chip's emulator and boot ROM can't be fetched")?;
        Ok(Self { bootrom: folder.join("bootrom.bin"), folder })
    }
}

/// Whose a device in the tests is: keys like any other, of which nobody needs the secret half.
const TEST_OWNER: &str = "6ecd8-bt2z5-dkw1f-mprdb-7nnf3-bkyn8-7xf2f-yskwj-5ewc0-tzzv1-w0/\
                          00s24-zjqaa-wafh1-qx633-2mxk6-a0b2v-9ak9j-a172p-6p66f-749gn-c7";

/// Writes the file that a Pico takes as a drive beside the firmware's flat image: loader, log and firmware.
pub(super) fn write_uf2(image: &Path, number: u32, root: &Path) -> Result<PathBuf> {
    let board = Board::Rp2040;
    let path = image.with_file_name("tenure-pico.uf2");
    let image = std::fs::read(image)?;
    let folder = tempfile::tempdir()?;
    let mut flash = Flash::open(folder.path(), board.flash_bytes(), Place::NODE)?;
    flash.flash_loader(&image::program(&board.product("loader", root), map::LOADER.bytes())?)?;
    flash.flash_firmware(&image, number)?;
    std::fs::write(&path, flash.uf2(image.len()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Builds the firmware, and runs its flash image in the emulator from the boot ROM on.
pub(crate) fn test(root: &Path) -> Result<Verdict> {
    let rig = Rig::prepare(root)?;
    let board = Board::Rp2040;
    let file = write_uf2(&image::write(&board.build(root)?)?, 1, root)?;
    let folder = tempfile::tempdir()?;
    let mut flash = Flash::open(folder.path(), board.flash_bytes(), Place::NODE)?;
    flash.flash_uf2(&std::fs::read(file)?)?;
    flash.write_settings(&format!("name=pico\nowner={TEST_OWNER}\n"))?;
    let files = [
        ("RIG", rig.folder.as_path()),
        ("BOOTROM", rig.bootrom.as_path()),
        ("FLASH", flash.path()),
    ];
    // Each keeps a processor busy for a minute.
    let (alone, joined) = std::thread::scope(|scope| {
        let joined = scope.spawn(|| test_joined(&files, root));
        (test_alone(&rig, &files), joined.join().expect("the thread returns"))
    });
    let mut tests = joined?;
    tests.tally += alone?;
    Ok(Verdict::Tests(tests))
}

/// The tests of one chip, in the emulator's own language.
fn test_alone(rig: &Rig, files: &[(&str, &Path)]) -> Result<Tally> {
    let mut command = Command::new("node");
    command.arg("--test").arg(&rig.folder).envs(files.iter().copied());
    let mut tally = Tally::default();
    let status = process::each_line(&mut command, |line| {
        println!("{line}");
        let count = |what: &str| line.strip_prefix(what).and_then(|it| it.trim().parse().ok());
        tally.passed += count("# pass ").unwrap_or(0);
        tally.failed += count("# fail ").unwrap_or(0);
        tally.skipped += count("# skipped ").unwrap_or(0);
    })?;
    if tally.failed == 0 {
        process::succeeded(&command, status)?;
    }
    if tally.passed + tally.failed == 0 {
        bail!("the emulator's tests counted none");
    }
    Ok(tally)
}

/// The tests of chips among others: installed, called, and joined by their lines.
fn test_joined(files: &[(&str, &Path)], root: &Path) -> Result<Tests> {
    let mut command = process::cargo(root);
    command.args(["test", "--workspace", "--test", "node"]).envs(files.iter().copied());
    tests_with(&mut command, &["pico::", "--ignored", "--nocapture"])
}

/// As [`test`], as a command.
pub(super) fn check(root: &Path) -> Result<()> {
    match test(root)? {
        Verdict::Tests(tests) if tests.tally.failed > 0 => {
            bail!("{} tests failed", tests.tally.failed)
        }
        _ => Ok(()),
    }
}

/// Runs a device whose image of slot A is `firmware`; the ends of its lines are in `data`.
pub(super) fn run(data: &Path, firmware: &Path, arguments: &Arguments, root: &Path) -> Result<()> {
    let board = Board::Rp2040;
    let rig = Rig::prepare(root)?;
    let mut flash = Flash::open(data, board.flash_bytes(), Place::NODE)?;
    let loader = image::program(&board.product("loader", root), map::LOADER.bytes())?;
    let image = std::fs::read(firmware)
        .with_context(|| format!("cannot read the firmware {}", firmware.display()))?;
    if flash.firmware()?.is_none() || arguments.flash {
        flash.flash_loader(&loader)?;
        flash.flash_firmware(&image, arguments.number)?;
    }
    if let Some(mut text) = settings_text(data, &arguments.settings, &flash)? {
        let settings = &arguments.settings;
        let lines = [
            ("maker", &settings.maker),
            ("deep-sleep-after", &settings.deep_sleep_after),
            ("duty-cycle", &settings.duty_cycle),
        ];
        for (key, value) in lines {
            text += &value.as_ref().map(|it| format!("{key}={it}\n")).unwrap_or_default();
        }
        if settings.hub.is_some() {
            bail!("this board has no network of its own, and so no hub; the mesh carries it");
        }
        flash.write_settings(&text)?;
    }
    let service = lay_line(&data.join("service"))?;
    let mesh = match &arguments.mesh_line {
        Some(line) => line.canonicalize().with_context(|| line.display().to_string())?,
        None => lay_line(&data.join("mesh"))?,
    };
    let emulator = || {
        let mut command = Command::new("node");
        command.arg(rig.folder.join("run.mjs")).arg(&rig.bootrom).arg(flash.path());
        command.args([&mesh, &service]);
        command
    };
    supply::power(emulator, board.memory(), &data.join("ram.img"))
}
