//! The flash and RAM of a board's firmware, crate by crate, against its `board.toml`.
//!
//! Each symbol of the linked program counts for the crate in whose path it stands: a function of
//! `store` that the optimiser merged into one of `node` counts for `node`. What has no name
//! (strings, tables) is the rest.
//!
//! The cost of walls and calls there is held to the same file, where the board's emulator counts.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, elf};
use serde::Deserialize;

use crate::board::{Board, Cost};
use crate::files;
use crate::measurement::Measurement;

/// `board.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// Limits on the sum of some crates, or of all.
    budget: Vec<Budget>,
    /// Limits on what walls and calls cost; a board that counts has one for each figure.
    #[serde(default)]
    cost: Vec<CostBudget>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostBudget {
    /// Its name in the firmware.
    name: String,
    instructions_max: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    /// The limited thing, in a word or two.
    name: String,
    /// The crates, without `tenure-`; all of the firmware if there are none.
    #[serde(default)]
    crates: Vec<String>,
    flash_bytes_max: u64,
    /// Variables; what the heap holds is limited by the node's configuration.
    ram_bytes_max: u64,
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

/// The figures of a board, and which budgets it exceeds.
pub(super) fn measure(board: Board, root: &Path) -> Result<(Vec<Measurement>, Vec<String>)> {
    let manifest = manifest(board, root)?;
    let file = board.build(root)?;
    let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let sizes = sizes(&bytes)?;
    let mut measurements = Vec::new();
    let mut over = Vec::new();
    let mut line = |what: &str, bytes: Bytes| {
        for (kind, value) in [("flash", bytes.flash), ("RAM", bytes.ram)] {
            measurements.push(Measurement {
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
        let Budget { name, crates, flash_bytes_max, ram_bytes_max } = budget;
        line(&format!("{name}: in all"), sizes.of(crates));
        line(&format!("{name}: at most"), Bytes { flash: *flash_bytes_max, ram: *ram_bytes_max });
        over.extend(budget.exceeded(&sizes).map(|what| format!("{}: {what}", board.name())));
    }
    Ok((measurements, over))
}

/// The costs of walls and calls over the limits of the board's `board.toml`.
pub(super) fn exceeded_costs(board: Board, root: &Path) -> Result<Vec<String>> {
    let over = manifest(board, root)?.exceeded_costs(&board.costs(root)?);
    Ok(over.into_iter().map(|what| format!("{}: {what}", board.name())).collect())
}

fn manifest(board: Board, root: &Path) -> Result<Manifest> {
    let path = board.folder(root).join("board.toml");
    toml::from_str(&files::read(&path)?).with_context(|| format!("{} is damaged", path.display()))
}

impl Manifest {
    /// The costs that are over their limit or have none, and the limits on nothing, in words.
    fn exceeded_costs(&self, costs: &[Cost]) -> Vec<String> {
        let mut faults = Vec::new();
        for Cost { what, instructions } in costs {
            match self.cost.iter().find(|limit| limit.name == *what) {
                None => faults.push(format!("{what}: {instructions} instructions, and no limit")),
                Some(CostBudget { instructions_max, .. }) if instructions > instructions_max => {
                    faults.push(format!(
                        "{what}: {instructions} instructions, {instructions_max} at most"
                    ));
                }
                Some(_) => {}
            }
        }
        let is_counted = |limit: &&CostBudget| costs.iter().any(|cost| cost.what == limit.name);
        let idle = self.cost.iter().filter(|limit| !is_counted(limit));
        faults.extend(idle.map(|limit| format!("{}: a limit, and nothing counts it", limit.name)));
        faults
    }
}

impl Budget {
    /// The budgets that these sizes exceed, or say nothing of, in words.
    fn exceeded(&self, sizes: &Sizes) -> impl Iterator<Item = String> {
        let unknown = self.crates.iter().filter(|name| !sizes.crates.contains_key(*name));
        let unknown = unknown
            .map(|crate_name| format!("{}: no symbol of {crate_name} was found", self.name))
            .collect::<Vec<_>>();
        let Bytes { flash, ram } = sizes.of(&self.crates);
        let kinds = [("flash", flash, self.flash_bytes_max), ("RAM", ram, self.ram_bytes_max)];
        let exceeded = kinds.into_iter().filter(|(_, value, most)| value > most);
        let exceeded = exceeded.map(|(kind, value, most)| {
            format!("{} takes {value} bytes of {kind}, {most} at most", self.name)
        });
        unknown.into_iter().chain(exceeded)
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

    #[test]
    fn a_byte_too_much_exceeds_a_budget() {
        let manifest = "[[budget]]\nname = \"core\"\ncrates = [\"vm\", \"store\"]\n\
                        flash_bytes_max = 30\nram_bytes_max = 7";
        let manifest: Manifest = toml::from_str(manifest).unwrap();
        let with = |flash, ram| {
            let one = |name: &str, flash, ram| (name.to_owned(), Bytes { flash, ram });
            let crates = [one("vm", flash, ram), one("store", 10, 3), one("wire", 99, 99)];
            let sizes = Sizes { crates: crates.into(), all: Bytes { flash: 999, ram: 999 } };
            manifest.budget[0].exceeded(&sizes).collect::<Vec<_>>()
        };
        assert_eq!(with(20, 4), [""; 0]);
        assert_eq!(with(21, 4), ["core takes 31 bytes of flash, 30 at most"]);
        assert_eq!(with(20, 5), ["core takes 8 bytes of RAM, 7 at most"]);
        let nameless = Sizes { crates: BTreeMap::new(), all: Bytes { flash: 999, ram: 999 } };
        assert_eq!(
            manifest.budget[0].exceeded(&nameless).collect::<Vec<_>>(),
            ["core: no symbol of vm was found", "core: no symbol of store was found"]
        );
    }

    #[test]
    fn an_instruction_too_much_exceeds_a_limit_and_each_figure_has_one() {
        let manifest = "budget = []\n[[cost]]\nname = \"call\"\ninstructions_max = 30\n\
                        [[cost]]\nname = \"switch\"\ninstructions_max = 40";
        let manifest: Manifest = toml::from_str(manifest).unwrap();
        let faults = |costs: &[(&str, u32)]| {
            let cost = |(what, instructions): &(&str, u32)| Cost {
                what: (*what).into(),
                instructions: *instructions,
            };
            manifest.exceeded_costs(&costs.iter().map(cost).collect::<Vec<_>>())
        };
        assert_eq!(faults(&[("call", 30), ("switch", 1)]), [""; 0]);
        assert_eq!(faults(&[("call", 31), ("switch", 1)]), ["call: 31 instructions, 30 at most"]);
        assert_eq!(
            faults(&[("call", 30), ("turn", 9)]),
            ["turn: 9 instructions, and no limit", "switch: a limit, and nothing counts it"]
        );
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
