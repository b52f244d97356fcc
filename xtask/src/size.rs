//! `size`: how many bytes of flash and RAM each crate costs on a microcontroller.
//!
//! The crates' own object files would tell too much (nothing is dropped) and too little (generic
//! code is not there yet). So each crate has a probe in `benches/size`: a program for a board that
//! uses the crate's main entry points on inputs which the compiler cannot know, as a node does. It
//! is linked with link-time optimisation, and what the linker keeps is counted: the crate, and all
//! it brings along, but for what the empty probe costs too, and for tables to unwind by, which no
//! firmware keeps.
//!
//! Probes are built with the flags of a board with the same core: what is counted is what is flashed.
//!
//! A board's firmware is counted as it is, and held to the figures that its `board.toml` records.

mod board;
mod gate;
mod record;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};

use crate::board::Board;
use crate::measurement::{self, Measurement};
use crate::setup::{self, Need};
use crate::toolchain::{self, BARE_METAL_TARGETS};
use crate::{bench, process, workspace};

use self::gate::Row;

/// Count the flash and RAM that each crate costs on rv32imac and thumbv7m.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask size store --json\n  cargo xtask size qemu-riscv32\n  \
                        cargo xtask size qemu-leaf --record\n  cargo xtask size tls"
)]
pub(crate) struct Arguments {
    /// The crate, without `tenure-`, or the board to count; all, if none is named.
    name: Option<String>,
    /// One JSON object a line: bench, target, subject, metric, unit, value.
    #[arg(long)]
    json: bool,
    /// Write the boards' figures into their `board.toml`, over those that the check holds later ones to.
    #[arg(long)]
    record: bool,
}

/// The profiles of `benches/size`, by the level they optimise for.
const LEVELS: [(&str, &str); 2] = [(SMALLEST, "release"), ("s", "release-s")];
const SMALLEST: &str = "z";

/// The benchmark whose images are held to budgets too.
const TLS: &str = "tls";
/// Those of its images that the check builds: the smallest, and the one that also serves and must forget secrets.
const TLS_CHECKED: [&str; 2] = ["ec", "page"];

/// The probe that does nothing.
const EMPTY: &str = "empty";

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    if arguments.name.as_deref() == Some(TLS) {
        if arguments.record {
            bail!("only the figures of boards are recorded");
        }
        setup::ensure(&[Need::BareMetal, Need::Emulators, Need::Clients])?;
        let found = bench::figures(TLS, &[], root)?;
        if arguments.json {
            found.iter().for_each(|it| println!("{}", it.to_json()));
        } else {
            print!("{}", measurement::tables(&found));
        }
        return Ok(());
    }
    let mut probes = probes(root)?;
    let mut boards = Board::ALL.to_vec();
    if let Some(name) = &arguments.name {
        probes.retain(|probe| probe == name);
        boards.retain(|board| board.name() == name);
        if probes.is_empty() && boards.is_empty() {
            bail!("no crate with a probe and no board is called {name}");
        }
    }
    if arguments.record {
        // The figures of crates alone are recorded nowhere.
        probes.clear();
        if boards.is_empty() {
            bail!("only the figures of boards are recorded");
        }
    }
    let needs: &[Need] = if boards.iter().any(|board| board.counts()) {
        &[Need::BareMetal, Need::Emulators]
    } else {
        &[Need::BareMetal]
    };
    setup::ensure(needs)?;
    let mut measurements = Vec::new();
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for board in boards {
        let mut found = board::measure(board, root)?;
        if arguments.record {
            board::record(board, &found.rows, root)?;
            // The file has them now.
            found.rows.iter_mut().for_each(|row| row.recorded = Some(row.measured));
        }
        failed.extend(found.unknown);
        failed.extend(found.rows.iter().flat_map(Row::faults));
        if arguments.json {
            found.crates.iter().for_each(|it| println!("{}", it.to_json()));
            let lines = found.rows.iter().flat_map(|row| row.measurements(board.target()));
            lines.for_each(|it| println!("{}", it.to_json()));
        } else {
            measurements.extend(found.crates);
            rows.extend(found.rows);
        }
    }
    for probe in &probes {
        match measure(probe, root) {
            Ok(found) if arguments.json => found.iter().for_each(|it| println!("{}", it.to_json())),
            Ok(found) => measurements.extend(found),
            Err(error) => {
                eprintln!("{probe}: {error:#}");
                failed.push(probe.clone());
            }
        }
    }
    print!("{}", measurement::tables(&measurements));
    if !rows.is_empty() {
        print!("{}", gate::table(&rows));
    }
    rows.iter().filter_map(Row::hint).for_each(|hint| println!("{hint}"));
    if !failed.is_empty() {
        bail!("failed:\n  {}", failed.join("\n  "));
    }
    Ok(())
}

/// Fails if a board takes more than the figures that its `board.toml` records by more than [`gate`] lets through, in
/// memory or in instructions, or has too little room below a hard limit, or if a TLS client takes more than its
/// benchmark lets it.
pub(crate) fn check_budgets(root: &Path) -> Result<()> {
    let mut over = Vec::new();
    for board in Board::ALL {
        let found = board::measure(board, root)?;
        over.extend(found.unknown);
        over.extend(found.rows.iter().flat_map(Row::faults));
        found.rows.iter().filter_map(Row::hint).for_each(|hint| println!("{hint}"));
    }
    if !over.is_empty() {
        bail!("over budget:\n  {}", over.join("\n  "));
    }
    bench::figures(TLS, &TLS_CHECKED, root).context("TLS on a Cortex-M").map(|_| ())
}

/// Where the probes lie.
pub(crate) fn probes_folder(root: &Path) -> PathBuf {
    root.join("benches/size")
}

fn probes(root: &Path) -> Result<Vec<String>> {
    let packages = workspace::packages(&probes_folder(root))?;
    let targets = packages.into_iter().flat_map(|package| package.targets);
    let bins = targets.filter(|target| target.kind == ["bin"]).map(|target| target.name);
    Ok(bins.filter(|name| name != EMPTY).collect())
}

fn measure(probe: &str, root: &Path) -> Result<Vec<Measurement>> {
    let mut found = Vec::new();
    for target in BARE_METAL_TARGETS {
        for (level, profile) in LEVELS {
            let baseline = footprint(&build(EMPTY, target, profile, root)?)?;
            let whole = footprint(&build(probe, target, profile, root)?)?;
            if whole.flash <= baseline.flash {
                bail!("for {target} the probe takes no more than the empty one");
            }
            let line = |what: &str, bytes: u64| Measurement {
                bench: "size".into(),
                target: short_name(target).into(),
                subject: "tenure".into(),
                metric: format!("{probe} {what} at opt-level {level}"),
                unit: "bytes".into(),
                value: bytes as f64,
            };
            found.push(line("flash", whole.flash.saturating_sub(baseline.flash)));
            if level == SMALLEST {
                found.push(line("static RAM", whole.ram.saturating_sub(baseline.ram)));
            }
        }
    }
    Ok(found)
}

/// `riscv32imac-unknown-none-elf` is `riscv32imac` to a reader.
fn short_name(target: &str) -> &str {
    target.split('-').next().unwrap_or(target)
}

/// Links a probe and gives its file.
fn build(probe: &str, target: &str, profile: &str, root: &Path) -> Result<PathBuf> {
    let toolchain = toolchain::for_target(target)
        .with_context(|| format!("no toolchain for {target}; run `cargo xtask setup`"))?;
    let mut command = toolchain.cargo(&probes_folder(root), "build", target);
    let products = toolchain::target_folder(root).join("size");
    let board = Board::ALL.into_iter().find(|board| board.target() == target);
    if let Some(board) = board {
        command.arg("--config").arg(board.folder(root).join(".cargo/config.toml"));
    }
    command
        .env("CARGO_TARGET_DIR", &products)
        .args(["--quiet", "--profile", profile, "--bin", probe])
        .args(["--no-default-features", "--features", probe]);
    process::run_for_firmware(&mut command)?;
    Ok(products.join(target).join(profile).join(probe))
}

/// The size of a linked program on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Footprint {
    /// Code, constants, and the initial values of variables.
    flash: u64,
    /// Variables, whether they have an initial value or not.
    ram: u64,
}

/// How the names of sections with unwinding tables begin.
const UNWINDING: [&[u8]; 3] = [b".eh_frame", b".ARM.exidx", b".ARM.extab"];

fn footprint(file: &Path) -> Result<Footprint> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let header = elf::FileHeader32::<Endianness>::parse(&*bytes)?;
    let endian = header.endian()?;
    let mut footprint = Footprint::default();
    let sections = header.sections(endian, &*bytes)?;
    for section in sections.iter() {
        let flags = section.sh_flags(endian);
        let size = u64::from(section.sh_size(endian));
        let name = sections.section_name(endian, section)?;
        if flags & elf::SHF_ALLOC == 0 || UNWINDING.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        if section.sh_type(endian) != elf::SHT_NOBITS {
            footprint.flash += size;
        }
        if flags & elf::SHF_WRITE != 0 {
            footprint.ram += size;
        }
    }
    Ok(footprint)
}
