//! The flash and RAM of a board's firmware, crate by crate, and the budgets of its `board.toml`.
//!
//! Each symbol of the linked program counts for the crate in whose path it stands: a function of
//! `store` that the optimiser merged into one of `node` counts for `node`. What has no name
//! (strings, tables) is the rest.
//!
//! The cost of walls and calls there stands in the same file, where the board's emulator counts.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, elf};
use serde::Deserialize;

use crate::board::{Board, Cost};
use crate::files;
use crate::measurement::Measurement;

use super::gate::{Quantity, Row};
use super::record;

/// `board.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// Budgets of the sum of some crates, or of all.
    budget: Vec<Budget>,
    /// The costs of walls and calls; a board that counts has one for each figure.
    #[serde(default)]
    cost: Vec<CostBudget>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostBudget {
    /// Its name in the firmware.
    name: String,
    /// The figures that were recorded last, by the board's name.
    #[serde(default)]
    recorded: BTreeMap<String, RecordedCost>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedCost {
    instructions: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    /// The limited thing, in a word or two.
    name: String,
    /// The crates, without `tenure-`; all of the firmware if there are none.
    #[serde(default)]
    crates: Vec<String>,
    /// The chip's hard limit: a slot of flash.
    flash_bytes_max: Option<u64>,
    /// The chip's hard limit on variables; what the heap holds is limited by the node's configuration.
    ram_bytes_max: Option<u64>,
    /// The figures that were recorded last, by the board's name.
    #[serde(default)]
    recorded: BTreeMap<String, RecordedBytes>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedBytes {
    flash_bytes: u64,
    ram_bytes: u64,
}

/// A board's figures.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Flash and RAM of each crate.
    pub(super) crates: Vec<Measurement>,
    /// Figures with what they are held to.
    pub(super) rows: Vec<Row>,
    /// Names in `board.toml` that nothing was measured for, in words.
    pub(super) unknown: Vec<String>,
}

/// Flash and RAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bytes {
    flash: u64,
    ram: u64,
}

/// Flash and RAM by crate.
#[derive(Debug, Default)]
struct Sizes {
    crates: BTreeMap<String, Bytes>,
    all: Bytes,
}

/// The figures of a board's firmware, and what its walls and calls cost where its emulator counts.
pub(super) fn measure(board: Board, root: &Path) -> Result<Found> {
    let manifest = manifest(board, root)?;
    let file = board.build(root)?;
    let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let sizes = sizes(&bytes)?;
    let mut found = Found::default();
    let mut line = |what: &str, bytes: Bytes| {
        for (kind, value) in [("flash", bytes.flash), ("RAM", bytes.ram)] {
            found.crates.push(Measurement {
                bench: format!("size of {}", board.name()),
                target: board.target().split('-').next().unwrap_or_default().into(),
                subject: kind.into(),
                metric: what.into(),
                unit: "bytes".into(),
                value: value as f64,
            });
        }
    };
    sizes.crates.iter().for_each(|(name, bytes)| line(name, *bytes));
    line("strings, tables and stack, without a name", sizes.nameless());
    for budget in &manifest.budget {
        found.unknown.extend(budget.unknown(&sizes));
        found.rows.extend(budget.rows(board.name(), &sizes));
    }
    if board.counts() {
        let costs = board.costs(root)?;
        found.unknown.extend(manifest.idle_costs(&costs));
        found.rows.extend(manifest.cost_rows(board.name(), &costs));
    }
    found.unknown.iter_mut().for_each(|what| *what = format!("{}: {what}", board.name()));
    Ok(found)
}

/// Writes `rows`, all of this board, over the recorded figures in its `board.toml`.
pub(super) fn record(board: Board, rows: &[Row], root: &Path) -> Result<()> {
    let path = board.folder(root).join("board.toml");
    let text = record::rewritten(&files::read(&path)?, rows);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn manifest(board: Board, root: &Path) -> Result<Manifest> {
    let path = board.folder(root).join("board.toml");
    toml::from_str(&files::read(&path)?).with_context(|| format!("{} is damaged", path.display()))
}

impl Manifest {
    /// The costs with what they are held to.
    fn cost_rows(&self, board: &'static str, costs: &[Cost]) -> Vec<Row> {
        let named = |what: &str| self.cost.iter().find(|cost| cost.name == *what);
        let row = |Cost { what, instructions }: &Cost| Row {
            board,
            name: what.clone(),
            quantity: Quantity::Instructions,
            measured: u64::from(*instructions),
            recorded: named(what).and_then(|it| it.recorded.get(board)).map(|it| it.instructions),
            limit: None,
        };
        costs.iter().map(row).collect()
    }

    /// The costs that the firmware counts and the file doesn't name, and those that it names in vain, in words.
    fn idle_costs(&self, costs: &[Cost]) -> Vec<String> {
        let unnamed = costs.iter().filter(|cost| self.cost.iter().all(|it| it.name != cost.what));
        let unnamed = unnamed.map(|cost| format!("{}: counted, and not in board.toml", cost.what));
        let idle = self.cost.iter().filter(|it| costs.iter().all(|cost| cost.what != it.name));
        unnamed
            .chain(idle.map(|it| format!("{}: in board.toml, and nothing counts it", it.name)))
            .collect()
    }
}

impl Budget {
    /// The crates that it names and the firmware doesn't have, in words.
    fn unknown(&self, sizes: &Sizes) -> impl Iterator<Item = String> {
        let unknown = self.crates.iter().filter(|name| !sizes.crates.contains_key(*name));
        unknown.map(|crate_name| format!("{}: no symbol of {crate_name} was found", self.name))
    }

    /// Its flash and RAM with what they are held to.
    fn rows(&self, board: &'static str, sizes: &Sizes) -> [Row; 2] {
        let Bytes { flash, ram } = sizes.of(&self.crates);
        let recorded = self.recorded.get(board);
        let row = |quantity, measured, recorded, limit| Row {
            board,
            name: self.name.clone(),
            quantity,
            measured,
            recorded,
            limit,
        };
        [
            row(Quantity::Flash, flash, recorded.map(|it| it.flash_bytes), self.flash_bytes_max),
            row(Quantity::Ram, ram, recorded.map(|it| it.ram_bytes), self.ram_bytes_max),
        ]
    }
}

impl Sizes {
    fn of(&self, crates: &[String]) -> Bytes {
        if crates.is_empty() {
            return self.all;
        }
        sum(crates.iter().filter_map(|name| self.crates.get(name)))
    }

    fn nameless(&self) -> Bytes {
        let named = sum(self.crates.values());
        Bytes {
            flash: self.all.flash.saturating_sub(named.flash),
            ram: self.all.ram.saturating_sub(named.ram),
        }
    }
}

fn sum<'a>(sizes: impl Iterator<Item = &'a Bytes>) -> Bytes {
    sizes.fold(Bytes::default(), |sum, one| Bytes {
        flash: sum.flash + one.flash,
        ram: sum.ram + one.ram,
    })
}

fn sizes(bytes: &[u8]) -> Result<Sizes> {
    let header = elf::FileHeader32::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let mut sizes = Sizes::default();
    // The weight of a byte of each section.
    let mut weights = Vec::new();
    for section in sections.iter() {
        let flags = section.sh_flags(endian);
        let name = sections.section_name(endian, section)?;
        let allocated = flags & elf::SHF_ALLOC != 0;
        let in_flash = allocated && section.sh_type(endian) != elf::SHT_NOBITS;
        let in_ram = allocated && (flags & elf::SHF_WRITE != 0 || name == b".stack");
        let size = u64::from(section.sh_size(endian));
        let weight = Bytes { flash: in_flash.into(), ram: in_ram.into() };
        sizes.all.flash += weight.flash * size;
        sizes.all.ram += weight.ram * size;
        weights.push(weight);
    }
    let symbols = sections.symbols(endian, bytes, elf::SHT_SYMTAB)?;
    for symbol in symbols.iter() {
        let weight = weights.get(usize::from(symbol.st_shndx(endian)));
        let name = symbols.symbol_name(endian, symbol)?;
        let (Some(weight), Some(owner)) = (weight, owner(&String::from_utf8_lossy(name))) else {
            continue;
        };
        let size = u64::from(symbol.st_size(endian));
        let entry = sizes.crates.entry(owner).or_default();
        entry.flash += weight.flash * size;
        entry.ram += weight.ram * size;
    }
    sizes.crates.retain(|_, bytes| *bytes != Bytes::default());
    Ok(sizes)
}

/// The crate that a symbol's path begins with; what has no path is C's or the assembler's.
fn owner(symbol: &str) -> Option<String> {
    // Without hashes, which newer symbol names have behind each crate's.
    let path = format!("{:#}", rustc_demangle::try_demangle(symbol).ok()?);
    let start = path.find(|first: char| first.is_ascii_alphanumeric() || first == '_')?;
    let path = path[start..].trim_start_matches("mut ").trim_start_matches("dyn ");
    let (name, _) = path.split_once("::")?;
    let name = name.trim_start_matches("tenure_").replace('_', "-");
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "
        [[budget]]
        name = \"core\"
        crates = [\"vm\", \"store\"]
        flash_bytes_max = 40
        [budget.recorded]
        attic = { flash_bytes = 30, ram_bytes = 7 }
        [[cost]]
        name = \"call\"
        [cost.recorded]
        attic = { instructions = 30 }
        [[cost]]
        name = \"switch\"
    ";

    #[test]
    fn a_budget_counts_its_crates_for_each_board_apart() {
        let manifest: Manifest = toml::from_str(MANIFEST).unwrap();
        let one = |name: &str, flash, ram| (name.to_owned(), Bytes { flash, ram });
        let crates = [one("vm", 20, 4), one("store", 10, 3), one("wire", 99, 99)];
        let sizes = Sizes { crates: crates.into(), all: Bytes { flash: 999, ram: 999 } };
        let of = |board| {
            let rows = manifest.budget[0].rows(board, &sizes);
            rows.map(|row| (row.measured, row.recorded, row.limit))
        };
        assert_eq!(of("attic"), [(30, Some(30), Some(40)), (7, Some(7), None)]);
        assert_eq!(of("cellar"), [(30, None, Some(40)), (7, None, None)]);
        assert_eq!(manifest.budget[0].unknown(&sizes).count(), 0);
        let nameless = Sizes { crates: BTreeMap::new(), all: Bytes { flash: 999, ram: 999 } };
        assert_eq!(
            manifest.budget[0].unknown(&nameless).collect::<Vec<_>>(),
            ["core: no symbol of vm was found", "core: no symbol of store was found"]
        );
    }

    #[test]
    fn each_counted_cost_is_named_and_each_named_cost_is_counted() {
        let manifest: Manifest = toml::from_str(MANIFEST).unwrap();
        let cost = |(what, instructions): (&str, u32)| Cost { what: what.into(), instructions };
        let costs = [("call", 31), ("turn", 9)].map(cost);
        let rows = manifest.cost_rows("attic", &costs);
        let figures = rows.iter().map(|row| (row.measured, row.recorded)).collect::<Vec<_>>();
        assert_eq!(figures, [(31, Some(30)), (9, None)]);
        assert_eq!(
            manifest.idle_costs(&costs),
            [
                "turn: counted, and not in board.toml",
                "switch: in board.toml, and nothing counts it"
            ]
        );
    }

    /// The files name each board that reads them, so that none has to record before it can be checked.
    #[test]
    fn each_board_has_recorded_figures_that_leave_room_below_the_hard_limits() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for board in Board::ALL {
            let manifest = manifest(board, &root).unwrap();
            for budget in &manifest.budget {
                let Some(recorded) = budget.recorded.get(board.name()) else {
                    panic!("{}: nothing recorded for {}", board.name(), budget.name);
                };
                let limits = [
                    (recorded.flash_bytes, budget.flash_bytes_max),
                    (recorded.ram_bytes, budget.ram_bytes_max),
                ];
                for (figure, limit) in limits {
                    let row = Row {
                        board: board.name(),
                        name: budget.name.clone(),
                        quantity: Quantity::Flash,
                        measured: figure,
                        recorded: Some(figure),
                        limit,
                    };
                    assert_eq!(row.faults(), [""; 0]);
                }
            }
            let is_recorded = |cost: &CostBudget| cost.recorded.contains_key(board.name());
            assert!(!board.counts() || manifest.cost.iter().all(is_recorded));
        }
    }

    #[test]
    fn symbols_count_for_the_crate_that_their_path_begins_with() {
        let check = |symbol: &str, expected: Option<&str>| {
            assert_eq!(owner(symbol).as_deref(), expected, "{symbol}");
        };
        check("_ZN12tenure_store5store5Store3get17h0123456789abcdefE", Some("store"));
        check(
            "_ZN54_$LT$tenure_vm..Trap$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
            Some("vm"),
        );
        check("_RNvNtCs1234_12tenure_store5store3get", Some("store"));
        check("_RNvXCs1234_9tenure_vmNtB2_4TrapNtNtCs5678_4core3fmt7Display3fmt", Some("vm"));
        check("memcpy", None);
        check(".Lanon.0123", None);
    }
}
