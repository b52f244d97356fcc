//! Cycles of Cortex-M cores, estimated from a trace of the instructions that QEMU ran; nothing was
//! measured on a chip.
//!
//! The timing is that of Arm's technical reference manuals with memory that never waits:
//! Cortex-M0+ r0p1 (DDI 0484C, §3.3), Cortex-M3 r2p1 (DDI 0337I, §3.3) and Cortex-M4 r0p1
//! (DDI 0439B, §3.3). Where a manual gives a range the slowest is taken: 3 cycles to refill the
//! pipeline, 5 for `umull` and 7 for `umlal` on the M3. Not modelled: that the M3 and M4 may fold
//! `it`, and fetches that wait because two wide instructions follow each other.

use std::path::Path;

use crate::elf::Image;

/// Bytes of the messages in `device/src/trace.rs`.
pub(crate) const LEN: usize = 4096;

/// A core whose timing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    /// Cortex-M0+ with the multiplier that takes one cycle.
    M0Plus,
    /// Cortex-M0+ with the small multiplier, which takes 32.
    M0PlusSmall,
    /// Cortex-M3.
    M3,
    /// Cortex-M4.
    M4,
}

impl Core {
    /// As in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::M0Plus => "cortex-m0+",
            Self::M0PlusSmall => "cortex-m0+ with 32-cycle muls",
            Self::M3 => "cortex-m3",
            Self::M4 => "cortex-m4",
        }
    }

    fn is_m0_plus(self) -> bool {
        matches!(self, Self::M0Plus | Self::M0PlusSmall)
    }
}

/// The instructions that QEMU ran, as addresses.
pub(crate) struct Trace {
    image: Image,
    addresses: Vec<u32>,
}

impl Trace {
    /// Reads what `-d exec,nochain` wrote with one instruction a block: lines such as
    /// `Trace 0: HOST [CS_BASE/PC/FLAGS/CFLAGS] SYMBOL`.
    pub(crate) fn parse(image: &Path, log: &str) -> Option<Self> {
        let image = Image::parse(&std::fs::read(image).ok()?)?;
        let address = |line: &str| {
            let (_, state) = line.strip_prefix("Trace ")?.split_once('[')?;
            u32::from_str_radix(state.split('/').nth(1)?, 16).ok()
        };
        Some(Self { image, addresses: log.lines().filter_map(address).collect() })
    }

    /// Instructions and cycles from the entry into `function` to its end.
    pub(crate) fn cost(&self, function: &str, core: Core) -> Option<(u64, u64)> {
        let start = self.image.address(function)? & !1;
        let end = self.image.address("trace_end")? & !1;
        let from = self.addresses.iter().position(|address| *address == start)?;
        let len = self.addresses[from..].iter().position(|address| *address == end)?;
        let path = &self.addresses[from..=from + len];
        let mut before = Instruction::default();
        let mut cycles = 0;
        for pair in path.windows(2) {
            let instruction = self.decode(pair[0])?;
            let jumped = pair[1] != pair[0] + instruction.size;
            cycles += instruction.cycles(core, &before, jumped);
            before = instruction;
        }
        Some((len as u64, cycles))
    }

    fn half(&self, address: u32) -> Option<u32> {
        let (start, bytes) = self
            .image
            .segments
            .iter()
            .find(|(start, bytes)| (*start..*start + bytes.len() as u32).contains(&address))?;
        let at = (address - start) as usize;
        Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
    }

    fn decode(&self, address: u32) -> Option<Instruction> {
        let first = self.half(address)?;
        if first >> 11 >= 0b11101 {
            Some(decode_wide(first, self.half(address + 2)?))
        } else {
            Some(decode_narrow(first))
        }
    }
}

/// As much of an instruction as its time depends on.
#[derive(Clone, Copy, Debug, Default)]
struct Instruction {
    size: u32,
    kind: Kind,
    /// The register that a load or a computation writes; a later address may wait for it.
    written: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Compute,
    Multiply,
    MultiplyAdd,
    LongMultiply,
    LongMultiplyAdd,
    Divide,
    Load {
        base: u32,
    },
    Store {
        base: u32,
        by_register: bool,
    },
    /// So many registers, two of them for `ldrd` and `strd`.
    Several(u32),
    Branch,
    Call,
}

impl Instruction {
    fn cycles(self, core: Core, before: &Self, jumped: bool) -> u64 {
        if core.is_m0_plus() {
            self.cycles_m0_plus(core, jumped)
        } else {
            self.cycles_m3(core, before, jumped)
        }
    }

    fn cycles_m0_plus(self, core: Core, jumped: bool) -> u64 {
        match self.kind {
            Kind::Multiply if core == Core::M0PlusSmall => 32,
            Kind::Load { .. } | Kind::Store { .. } => 2,
            // `pop` with the program counter: 3 + N.
            Kind::Several(count) => 1 + u64::from(count) + 2 * u64::from(jumped),
            Kind::Call => 3,
            _ => 1 + u64::from(jumped),
        }
    }

    fn cycles_m3(self, core: Core, before: &Self, jumped: bool) -> u64 {
        const REFILL: u64 = 3;
        let m4 = core == Core::M4;
        let cycles = match self.kind {
            Kind::Compute | Kind::Multiply | Kind::Branch | Kind::Call => 1,
            Kind::MultiplyAdd => {
                if m4 {
                    1
                } else {
                    2
                }
            }
            Kind::LongMultiply => {
                if m4 {
                    1
                } else {
                    5
                }
            }
            Kind::LongMultiplyAdd => {
                if m4 {
                    1
                } else {
                    7
                }
            }
            Kind::Divide => 12,
            Kind::Load { base } => 2 - before.makes_way_for(base) + before.delays(base),
            Kind::Store { base, by_register: false } => 1 + before.delays(base),
            Kind::Store { base, .. } => 2 - before.makes_way_for(base) + before.delays(base),
            Kind::Several(count) => 1 + u64::from(count),
        };
        cycles + if jumped { REFILL } else { 0 }
    }

    /// A load shares a cycle with the next, unless it brings that one's address.
    fn makes_way_for(&self, base: u32) -> u64 {
        u64::from(matches!(self.kind, Kind::Load { .. }) && self.written != Some(base))
    }

    /// A computed address comes a cycle late.
    fn delays(&self, base: u32) -> u64 {
        u64::from(self.kind == Kind::Compute && self.written == Some(base))
    }
}

/// ARMv6-M ARM, A5.2.
fn decode_narrow(word: u32) -> Instruction {
    let low = Some(word & 7);
    let registers = (word & 0xff).count_ones();
    let (kind, written) = match word >> 8 {
        0x00..=0x1f => (Kind::Compute, low),
        0x20..=0x3f => (Kind::Compute, Some(word >> 8 & 7)),
        0x43 if word & 0xffc0 == 0x4340 => (Kind::Multiply, low),
        0x40..=0x43 => (Kind::Compute, low),
        0x47 => (if word & 0x80 == 0 { Kind::Branch } else { Kind::Call }, None),
        0x44..=0x46 => (Kind::Compute, Some(word & 7 | word >> 4 & 8)),
        0x48..=0x4f => (Kind::Load { base: 15 }, Some(word >> 8 & 7)),
        0x50..=0x55 => (Kind::Store { base: word >> 3 & 7, by_register: true }, None),
        0x56..=0x5f => (Kind::Load { base: word >> 3 & 7 }, low),
        0x60..=0x8f if word & 0x0800 == 0 => {
            (Kind::Store { base: word >> 3 & 7, by_register: false }, None)
        }
        0x60..=0x8f => (Kind::Load { base: word >> 3 & 7 }, low),
        0x90..=0x97 => (Kind::Store { base: 13, by_register: false }, None),
        0x98..=0x9f => (Kind::Load { base: 13 }, Some(word >> 8 & 7)),
        0xa0..=0xaf => (Kind::Compute, Some(word >> 8 & 7)),
        0xb0 => (Kind::Compute, Some(13)),
        0xb4 | 0xb5 | 0xbc | 0xbd => (Kind::Several(registers + (word >> 8 & 1)), None),
        0xb1 | 0xb3 | 0xb9 | 0xbb => (Kind::Branch, None),
        0xc0..=0xcf => (Kind::Several(registers), None),
        0xd0..=0xe7 => (Kind::Branch, None),
        _ => (Kind::Compute, None),
    };
    Instruction { size: 2, kind, written }
}

/// ARMv7-M ARM, A5.3.
fn decode_wide(first: u32, second: u32) -> Instruction {
    let base = first & 15;
    let is_load = first & 0x10 != 0;
    let by_register = second & 0x0fc0 == 0 && first & 0x80 == 0;
    let (kind, written) = if first & 0xfe40 == 0xe800 {
        (Kind::Several(second.count_ones()), None)
    } else if first & 0xfe40 == 0xe840 {
        (Kind::Several(2), None)
    } else if first & 0xfe00 == 0xf800 {
        if is_load {
            (Kind::Load { base }, Some(second >> 12))
        } else {
            (Kind::Store { base, by_register }, None)
        }
    } else if first & 0xff80 == 0xfb00 {
        let kind = if second >> 12 == 15 { Kind::Multiply } else { Kind::MultiplyAdd };
        (kind, Some(second >> 8 & 15))
    } else if first & 0xff80 == 0xfb80 {
        let kind = match first >> 4 & 7 {
            0 | 2 => Kind::LongMultiply,
            1 | 3 => Kind::Divide,
            _ => Kind::LongMultiplyAdd,
        };
        (kind, None)
    } else if first & 0xf800 == 0xf000 && second & 0xd000 == 0xd000 {
        (Kind::Call, None)
    } else if first & 0xf800 == 0xf000 && second & 0x8000 != 0 {
        (Kind::Branch, None)
    } else {
        (Kind::Compute, Some(second >> 8 & 15))
    };
    Instruction { size: 4, kind, written }
}
