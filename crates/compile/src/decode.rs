//! Reads a function's code in an image as a list of instructions.

use std::collections::HashMap;

use tenure_vm::{FunctionIndex, Image, instruction_set};

use crate::Unreadable;

/// Bytes of a unit of code.
pub(crate) const UNIT_BYTES: u32 = 2;
/// An opcode unit is the opcode times this.
const OPCODE_SCALE: u16 = 4;

/// An opcode's row of the instruction set.
struct Form {
    mnemonic: &'static str,
    layout: &'static str,
    units: usize,
    surcharge: u32,
}

/// The instruction set by opcode.
pub(crate) struct InstructionSet(Vec<Form>);

/// An instruction.
#[derive(Debug)]
pub(crate) struct Instruction {
    /// Where it begins and what follows it, counted from the image's first byte.
    pub(crate) at: u32,
    pub(crate) end: u32,
    pub(crate) mnemonic: &'static str,
    /// A letter for each operand: the letters of `docs/vm-instructions.md`.
    pub(crate) layout: &'static str,
    /// In the order of its layout; slots, reaches and indices as they stand, constants sign-extended.
    pub(crate) operands: Vec<i64>,
    /// Where branches lead.
    pub(crate) targets: Vec<u32>,
    /// Bytes of code that executing it costs without its surcharge, and the surcharge in bytes.
    pub(crate) cost: u32,
    pub(crate) surcharge: u32,
}

impl Instruction {
    /// The slots that it reads, by its operands.
    pub(crate) fn sources(&self) -> impl Iterator<Item = u32> + '_ {
        let letters = self.layout.chars().filter(|letter| !"tTn".contains(*letter));
        let slots = letters.zip(&self.operands).filter(|(letter, _)| *letter == 's');
        slots.map(|(_, operand)| *operand as u32 / 8)
    }

    /// An operand as an unsigned number.
    pub(crate) fn operand(&self, n: usize) -> u32 {
        self.operands.get(n).copied().unwrap_or(0) as u32
    }
}

impl InstructionSet {
    pub(crate) fn new() -> InstructionSet {
        let forms = instruction_set().map(|(mnemonic, layout, units, surcharge)| Form {
            mnemonic,
            layout,
            units,
            surcharge,
        });
        InstructionSet(forms.collect())
    }

    /// The instructions of a function whose code begins at `at` of the image.
    pub(crate) fn function(
        &self,
        image: &Image<'_>,
        function: FunctionIndex,
        at: u32,
    ) -> Result<Vec<Instruction>, Unreadable> {
        let code = image.code(function).ok_or(Unreadable)?;
        let mut list = Vec::new();
        let mut from = 0;
        while from < code.len() {
            let instruction = self.instruction(code, from, at).ok_or(Unreadable)?;
            from = (instruction.end - at) as usize;
            list.push(instruction);
        }
        let starts: HashMap<u32, ()> = list.iter().map(|one| (one.at, ())).collect();
        let all_lead = list.iter().flat_map(|one| &one.targets).all(|to| starts.contains_key(to));
        if all_lead { Ok(list) } else { Err(Unreadable) }
    }

    fn instruction(&self, code: &[u8], from: usize, base: u32) -> Option<Instruction> {
        let mut units = Units { code, at: from };
        let form = self.0.get((units.next()? / OPCODE_SCALE) as usize)?;
        let (mut operands, mut targets) = (Vec::new(), Vec::new());
        let mut table = 0;
        for letter in form.layout.chars() {
            match letter {
                'i' => operands.push(units.next()? as i16 as i64),
                'j' => operands.push(units.wide()? as i32 as i64),
                'k' => operands.push((units.wide()? as u64 | (units.wide()? as u64) << 32) as i64),
                't' => targets.push(units.target(false, base)?),
                'T' => targets.push(units.target(true, base)?),
                'n' => table = units.next()?,
                _ => operands.push(units.next()? as i64),
            }
        }
        for _ in 0..table {
            targets.push(units.target(form.mnemonic.contains("_far"), base)?);
        }
        Some(Instruction {
            at: base + from as u32,
            end: base + units.at as u32,
            mnemonic: form.mnemonic,
            layout: form.layout,
            operands,
            targets,
            cost: form.units as u32 * UNIT_BYTES,
            surcharge: form.surcharge * UNIT_BYTES,
        })
    }
}

/// The rest of a function's code.
struct Units<'c> {
    code: &'c [u8],
    at: usize,
}

impl Units<'_> {
    fn next(&mut self) -> Option<u16> {
        let bytes = self.code.get(self.at..self.at + 2)?;
        self.at += 2;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn wide(&mut self) -> Option<u32> {
        Some(self.next()? as u32 | (self.next()? as u32) << 16)
    }

    /// Where a displacement from its own end leads.
    fn target(&mut self, far: bool, base: u32) -> Option<u32> {
        let displacement = if far { self.wide()? as i32 } else { self.next()? as i16 as i32 };
        (base + self.at as u32).checked_add_signed(displacement)
    }
}
