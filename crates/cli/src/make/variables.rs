//! Variables of a machine's source by DWARF: which are visible at an address, and where they are.
//!
//! Addresses count from the start of the code section's content, and a variable may be in a local or global variable of
//! WebAssembly (tool conventions, "DWARF for WebAssembly": `DW_OP_WASM_location`).

mod types;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebuggingInformationEntry, DwAt, DwTag, Dwarf, Expression, Operation,
    Reader as _, Unit, UnitOffset,
};

use crate::make::symbols::Section;
pub(crate) use types::Number;

/// The most entries that are followed from one to the next, and children that are looked at. Damaged debug information
/// could go in circles.
const HOPS_MAX: usize = 16;
const CHILDREN_MAX: usize = 4096;
/// The longest piece of a value that lies in several places, in bytes.
const PIECE_BYTES_MAX: u64 = 4096;

/// A program that holds variables.
pub(crate) trait Program {
    /// So many bytes of memory; `None` if it has no such bytes.
    fn read(&self, address: u32, count: usize) -> Option<Vec<u8>>;

    /// A local variable of the call that is looked at; of 32-bit types only the low half counts.
    fn local(&self, index: u32) -> Option<u64>;

    /// A global variable, likewise.
    fn global(&self, index: u32) -> Option<u64>;
}

/// The DWARF of a module.
pub(crate) struct Variables {
    dwarf: Arc<Dwarf<Section>>,
    units: Vec<Unit<Section>>,
    /// The scopes of addresses that were asked for: conditions of breakpoints ask for the same ones again and again.
    scopes: RefCell<HashMap<u64, Arc<[Scope]>>>,
}

/// An entry of DWARF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    unit: usize,
    offset: UnitOffset,
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In memory, from this address on.
    Memory(u32),
    /// Nowhere in memory: these are its bytes, and there may be more than it has.
    Bytes(Vec<u8>),
    /// Nowhere here: the compiler needed it no more, or didn't say.
    Gone,
}

/// A value with its type, if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) of: Option<Entry>,
    pub(crate) place: Place,
}

/// A value with a name.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// A function that holds an address: the code's own, or one that was put into it; and its variables that are visible
/// there, those of inner blocks last.
struct Scope {
    function: Entry,
    variables: Vec<Entry>,
}

impl Variables {
    pub(crate) fn new(dwarf: Arc<Dwarf<Section>>) -> Self {
        let (mut units, mut headers) = (Vec::new(), dwarf.units());
        while let Ok(Some(header)) = headers.next() {
            units.extend(dwarf.unit(header));
        }
        Self { dwarf, units, scopes: RefCell::default() }
    }

    /// The variables that are visible at an address: in the innermost function that was put there first, in the code's own
    /// last. Those of inner blocks come last in each.
    pub(crate) fn visible(&self, address: u64, program: &dyn Program) -> Vec<Vec<Variable>> {
        let scopes = self.scopes(address);
        let Some(outermost) = scopes.first() else { return Vec::new() };
        let at = At { address: Some(address), base: None, program };
        let base = self.frame_base(outermost.function, &at);
        let at = At { base, ..at };
        let variables = |scope: &Scope| -> Vec<Variable> {
            scope.variables.iter().filter_map(|entry| self.variable(*entry, &at)).collect()
        };
        scopes.iter().rev().map(variables).collect()
    }

    /// A variable outside of functions, by its name, the first one there is.
    pub(crate) fn global(&self, name: &str, program: &dyn Program) -> Option<Variable> {
        let at = At { address: None, base: None, program };
        (0..self.units.len()).find_map(|unit| {
            let found = self.globals_in(unit, name).ok()?;
            found.into_iter().find_map(|entry| {
                self.variable(entry, &at).filter(|one| one.value.place != Place::Gone)
            })
        })
    }

    /// The line in which the function begins that holds an address.
    pub(crate) fn declared_in(&self, address: u64) -> Option<u32> {
        let function = self.scopes(address).first()?.function;
        let (_, line) = self.attribute(function, gimli::DW_AT_decl_line)?;
        line.udata_value().and_then(|line| u32::try_from(line).ok())
    }

    fn scopes(&self, address: u64) -> Arc<[Scope]> {
        if let Some(known) = self.scopes.borrow().get(&address) {
            return Arc::clone(known);
        }
        let mut units = 0..self.units.len();
        let scopes = units.find_map(|unit| {
            let scopes = self.scopes_in(unit, address).unwrap_or_default();
            (!scopes.is_empty()).then_some(scopes)
        });
        let scopes = Arc::<[Scope]>::from(scopes.unwrap_or_default());
        self.scopes.borrow_mut().insert(address, Arc::clone(&scopes));
        scopes
    }

    /// The functions of a unit that hold an address, each within the one before.
    fn scopes_in(&self, number: usize, address: u64) -> gimli::Result<Vec<Scope>> {
        let unit = &self.units[number];
        let (mut depth, mut passed) = (0_isize, None::<isize>);
        // Functions and blocks that aren't over, by their depth, with the number of the scope that they are of.
        let mut open: Vec<(isize, usize)> = Vec::new();
        let mut scopes: Vec<Scope> = Vec::new();
        let mut entries = unit.entries();
        while let Some((delta, entry)) = entries.next_dfs()? {
            depth += delta;
            if passed.is_some_and(|limit| depth > limit) {
                continue;
            }
            passed = None;
            open.retain(|(of, _)| *of < depth);
            if !scopes.is_empty() && open.is_empty() {
                break;
            }
            let this = Entry { unit: number, offset: entry.offset() };
            let (tag, within) = (entry.tag(), open.last().copied());
            match tag {
                gimli::DW_TAG_subprogram
                | gimli::DW_TAG_inlined_subroutine
                | gimli::DW_TAG_lexical_block => {
                    if !self.covers(unit, entry, address) {
                        passed = Some(depth);
                    } else if tag != gimli::DW_TAG_lexical_block {
                        scopes.push(Scope { function: this, variables: Vec::new() });
                        open.push((depth, scopes.len() - 1));
                    } else if let Some((_, scope)) = within {
                        open.push((depth, scope));
                    }
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    if let Some((of, scope)) = within
                        && of + 1 == depth
                    {
                        scopes[scope].variables.push(this);
                    }
                }
                _ => {}
            }
        }
        Ok(scopes)
    }

    /// Variables of a unit, outside of functions, with this name.
    fn globals_in(&self, number: usize, name: &str) -> gimli::Result<Vec<Entry>> {
        let (mut depth, mut passed, mut found) = (0_isize, None::<isize>, Vec::new());
        let mut entries = self.units[number].entries();
        while let Some((delta, entry)) = entries.next_dfs()? {
            depth += delta;
            if passed.is_some_and(|limit| depth > limit) {
                continue;
            }
            passed = (entry.tag() == gimli::DW_TAG_subprogram).then_some(depth);
            let this = Entry { unit: number, offset: entry.offset() };
            if entry.tag() == gimli::DW_TAG_variable && self.name(this).as_deref() == Some(name) {
                found.push(this);
            }
        }
        Ok(found)
    }

    fn covers(
        &self,
        unit: &Unit<Section>,
        entry: &DebuggingInformationEntry<'_, '_, Section>,
        address: u64,
    ) -> bool {
        let Ok(mut ranges) = self.dwarf.die_ranges(unit, entry) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&address) {
                return true;
            }
        }
        false
    }

    fn variable(&self, entry: Entry, at: &At<'_>) -> Option<Variable> {
        let name = self.name(entry)?;
        let place = self.location(entry, at).unwrap_or(Place::Gone);
        Some(Variable { name, value: Value { of: self.type_of(entry), place } })
    }

    fn location(&self, entry: Entry, at: &At<'_>) -> Option<Place> {
        if let Some((unit, location)) = self.attribute(entry, gimli::DW_AT_location) {
            return self.locate(unit, location, at);
        }
        let (_, constant) = self.attribute(entry, gimli::DW_AT_const_value)?;
        Some(Place::Bytes(match &constant {
            AttributeValue::Block(bytes) => bytes.to_slice().ok()?.into_owned(),
            other => (whole(other)? as u64).to_le_bytes().to_vec(),
        }))
    }

    fn frame_base(&self, function: Entry, at: &At<'_>) -> Option<u64> {
        let (unit, location) = self.attribute(function, gimli::DW_AT_frame_base)?;
        match self.locate(unit, location, at)? {
            Place::Memory(address) => Some(address.into()),
            Place::Bytes(bytes) => bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
            Place::Gone => None,
        }
    }

    /// Where an attribute says that something is: by an expression, or a list of them by addresses.
    fn locate(&self, unit: usize, location: AttributeValue<Section>, at: &At<'_>) -> Option<Place> {
        if let AttributeValue::Exprloc(expression) = location {
            return self.evaluate(unit, expression, at);
        }
        let address = at.address?;
        let mut list = self.dwarf.attr_locations(self.units.get(unit)?, location).ok()??;
        while let Some(item) = list.next().ok()? {
            if (item.range.begin..item.range.end).contains(&address) {
                return self.evaluate(unit, item.data, at);
            }
        }
        None
    }

    /// Where an expression leads (DWARF 5 §2.5, §2.6), as far as compilers to WebAssembly write them.
    fn evaluate(&self, unit: usize, expression: Expression<Section>, at: &At<'_>) -> Option<Place> {
        let unit = self.units.get(unit)?;
        let mut operations = expression.operations(unit.encoding());
        let mut stack = Stack::default();
        let mut pieces = None;
        while let Some(operation) = operations.next().ok()? {
            match operation {
                Operation::Address { address } => stack.push(address),
                Operation::AddressIndex { index } | Operation::ConstantIndex { index } => {
                    stack.push(self.dwarf.address(unit, index).ok()?);
                }
                Operation::FrameOffset { offset } => {
                    stack.push(at.base?.wrapping_add_signed(offset));
                }
                // Without `DW_OP_stack_value` behind it, it is the value's address.
                Operation::WasmLocal { index } => stack.push(at.program.local(index)?),
                Operation::WasmGlobal { index } => stack.push(at.program.global(index)?),
                Operation::Deref { size, space: false, .. } => {
                    let bytes = at.program.read(stack.pop()? as u32, size.into())?;
                    stack.push(little_endian(&bytes));
                }
                Operation::ImplicitValue { data } => {
                    stack.bytes = Some(data.to_slice().ok()?.into_owned());
                }
                Operation::Piece { size_in_bits, .. } => {
                    let bytes = size_in_bits / 8;
                    if bytes > PIECE_BYTES_MAX {
                        return None;
                    }
                    let piece = stack.take().read(0, bytes, at.program)?;
                    pieces.get_or_insert_with(Vec::new).extend(piece);
                }
                other => stack.calculate(&other)?,
            }
        }
        Some(pieces.map_or_else(|| stack.take(), Place::Bytes))
    }

    /// An attribute of an entry or of the one that it is made of, with that one's unit.
    fn attribute(&self, entry: Entry, name: DwAt) -> Option<(usize, AttributeValue<Section>)> {
        let mut entry = entry;
        for _ in 0..HOPS_MAX {
            let this = self.units.get(entry.unit)?.entry(entry.offset).ok()?;
            if let Some(value) = this.attr_value(name).ok()? {
                return Some((entry.unit, value));
            }
            let origin = this.attr_value(gimli::DW_AT_abstract_origin).ok()?;
            let origin = match origin {
                Some(origin) => origin,
                None => this.attr_value(gimli::DW_AT_specification).ok()??,
            };
            entry = self.referred(entry.unit, &origin)?;
        }
        None
    }

    /// The entry that an attribute of this unit refers to.
    fn referred(&self, unit: usize, value: &AttributeValue<Section>) -> Option<Entry> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Entry { unit, offset: *offset }),
            AttributeValue::DebugInfoRef(offset) => {
                self.units.iter().enumerate().find_map(|(unit, it)| {
                    let offset = offset.to_unit_offset(&it.header)?;
                    Some(Entry { unit, offset })
                })
            }
            _ => None,
        }
    }

    fn name(&self, entry: Entry) -> Option<String> {
        let (unit, name) = self.attribute(entry, gimli::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.units.get(unit)?, name).ok()?;
        Some(name.to_string_lossy().ok()?.into_owned())
    }

    fn type_of(&self, entry: Entry) -> Option<Entry> {
        let (unit, of) = self.attribute(entry, gimli::DW_AT_type)?;
        self.referred(unit, &of)
    }

    fn tag(&self, entry: Entry) -> Option<DwTag> {
        Some(self.units.get(entry.unit)?.entry(entry.offset).ok()?.tag())
    }

    /// The children of an entry, with their tags.
    fn children(&self, entry: Entry) -> Vec<(Entry, DwTag)> {
        let mut found = Vec::new();
        // An entry that can't be read has no children.
        let _ = self.add_children(entry, &mut found);
        found
    }

    fn add_children(&self, of: Entry, found: &mut Vec<(Entry, DwTag)>) -> gimli::Result<()> {
        let Some(unit) = self.units.get(of.unit) else { return Ok(()) };
        let mut entries = unit.entries_at_offset(of.offset)?;
        let mut depth = 0_isize;
        while let Some((delta, entry)) = entries.next_dfs()?
            && found.len() < CHILDREN_MAX
        {
            depth += delta;
            let is_itself = entry.offset() == of.offset;
            if depth <= 0 && !is_itself {
                break;
            }
            if depth == 1 {
                found.push((Entry { unit: of.unit, offset: entry.offset() }, entry.tag()));
            }
        }
        Ok(())
    }
}

impl Place {
    /// So many bytes of what is there, from an offset on.
    pub(crate) fn read(&self, offset: u64, count: u64, program: &dyn Program) -> Option<Vec<u8>> {
        let (offset, count) = (usize::try_from(offset).ok()?, usize::try_from(count).ok()?);
        match self {
            Self::Memory(address) => {
                program.read(address.checked_add(u32::try_from(offset).ok()?)?, count)
            }
            Self::Bytes(bytes) => Some(bytes.get(offset..offset.checked_add(count)?)?.to_vec()),
            Self::Gone => None,
        }
    }

    /// The part of what is there from an offset on.
    pub(crate) fn part(&self, offset: u64) -> Self {
        let part = match self {
            Self::Memory(address) => u32::try_from(offset)
                .ok()
                .and_then(|offset| address.checked_add(offset))
                .map(Self::Memory),
            Self::Bytes(bytes) => {
                let offset = usize::try_from(offset).ok();
                offset.and_then(|offset| bytes.get(offset..)).map(|part| Self::Bytes(part.to_vec()))
            }
            Self::Gone => None,
        };
        part.unwrap_or(Self::Gone)
    }
}

/// The circumstances on which places of variables depend: the address, the frame's place in memory, and the program.
struct At<'a> {
    address: Option<u64>,
    base: Option<u64>,
    program: &'a dyn Program,
}

/// The stack of an expression.
#[derive(Default)]
struct Stack {
    numbers: Vec<u64>,
    /// Whether the last number is the value itself, and not its address.
    is_value: bool,
    /// The value itself, if the expression has it.
    bytes: Option<Vec<u8>>,
}

impl Stack {
    fn push(&mut self, number: u64) {
        self.numbers.push(number);
        self.is_value = false;
    }

    fn pop(&mut self) -> Option<u64> {
        self.numbers.pop()
    }

    /// The place that it leads to.
    fn take(&mut self) -> Place {
        if let Some(bytes) = self.bytes.take() {
            return Place::Bytes(bytes);
        }
        let is_value = core::mem::take(&mut self.is_value);
        match self.numbers.pop() {
            Some(value) if is_value => Place::Bytes(value.to_le_bytes().to_vec()),
            Some(address) => Place::Memory(address as u32),
            None => Place::Gone,
        }
    }

    /// Does what needs nothing but the stack; `None` for what no compiler to WebAssembly writes.
    fn calculate(&mut self, operation: &Operation<Section>) -> Option<()> {
        let number = match operation {
            // Types of numbers count where the value is shown.
            Operation::Nop | Operation::Convert { .. } | Operation::Reinterpret { .. } => {
                return Some(());
            }
            Operation::StackValue => {
                self.is_value = true;
                return Some(());
            }
            Operation::Drop => {
                self.pop()?;
                return Some(());
            }
            Operation::Swap => {
                let (last, before) = (self.pop()?, self.pop()?);
                self.push(last);
                before
            }
            Operation::Pick { index } => {
                let at = self.numbers.len().checked_sub(usize::from(*index) + 1)?;
                self.numbers[at]
            }
            Operation::UnsignedConstant { value } => *value,
            Operation::SignedConstant { value } => *value as u64,
            Operation::PlusConstant { value } => self.pop()?.wrapping_add(*value),
            Operation::Neg => self.pop()?.wrapping_neg(),
            Operation::Not => !self.pop()?,
            two => {
                let (last, before) = (self.pop()?, self.pop()?);
                match two {
                    Operation::Plus => before.wrapping_add(last),
                    Operation::Minus => before.wrapping_sub(last),
                    Operation::Mul => before.wrapping_mul(last),
                    Operation::And => before & last,
                    Operation::Or => before | last,
                    Operation::Xor => before ^ last,
                    Operation::Shl => before.checked_shl(u32::try_from(last).ok()?).unwrap_or(0),
                    Operation::Shr => before.checked_shr(u32::try_from(last).ok()?).unwrap_or(0),
                    Operation::Shra => (before as i64 >> last.min(63)) as u64,
                    _ => return None,
                }
            }
        };
        self.push(number);
        Some(())
    }
}

/// A number that an attribute has; those without a sign of their own have none.
fn whole(value: &AttributeValue<Section>) -> Option<i128> {
    match value {
        AttributeValue::Sdata(value) => Some((*value).into()),
        other => other.udata_value().map(i128::from),
    }
}

/// A number of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
