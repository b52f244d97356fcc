//! A machine at a moment of its history: calls, variables, memory.

use std::path::PathBuf;

use tenure_replay::Walk;
use tenure_vm::{FunctionIndex, Image, Value, ValueType};

use super::lines::Lines;
use crate::make::symbols::{Site, Symbols};
use crate::make::variables::{Program, Variable};

/// The most calls that are shown.
pub(super) const CALLS_MAX: usize = 1000;
/// The bytes of a page of memory, if the module doesn't say another size.
const PAGE_BYTES: u64 = 65_536;

/// A machine at a moment.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) walk: &'a Walk,
    pub(super) symbols: Option<&'a Symbols>,
    pub(super) lines: &'a Lines,
}

/// A call that is under way: of a function, or of one that the compiler has put into another.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) function: String,
    /// The file and the line, from 1 on, as far as they are known.
    pub(super) file: Option<PathBuf>,
    pub(super) line: Option<u32>,
    /// Where it stands; of calls that made others, at the instruction that called.
    pub(super) site: Site,
    /// The offset of its frame in the stack, in bytes.
    pub(super) frame: u32,
    /// How many functions were put into it there, one in the other.
    pub(super) level: usize,
}

/// A local or global variable of WebAssembly, or a parameter.
pub(super) struct Raw {
    pub(super) name: String,
    pub(super) text: String,
    /// Its bits.
    pub(super) bits: u64,
}

impl Raw {
    fn of(name: String, value_type: Option<ValueType>, slot: u64) -> Self {
        let low = slot as u32;
        let (text, bits) = match value_type {
            Some(ValueType::I32) => ((low as i32).to_string(), low.into()),
            Some(ValueType::I64) => ((slot as i64).to_string(), slot),
            Some(ValueType::F32) => (f32::from_bits(low).to_string(), low.into()),
            Some(ValueType::F64) => (f64::from_bits(slot).to_string(), slot),
            Some(ValueType::FuncRef | ValueType::ExternRef) => (format!("{low:#x}"), low.into()),
            // The image doesn't say of what type a local variable is, and of 32 bits the others mean nothing.
            None => (format!("{} or, of 64 bits, {slot:#x}", low as i32), low.into()),
        };
        Self { name, text, bits }
    }
}

impl<'a> View<'a> {
    pub(super) fn image(&self) -> Image<'a> {
        self.walk.history().image()
    }

    /// The calls that are under way, innermost first.
    pub(super) fn stack(&self) -> Vec<Call> {
        let frames = self.walk.program().frames(&self.image());
        let mut stack = Vec::new();
        for (number, (call, frame)) in frames.into_iter().enumerate().take(CALLS_MAX) {
            // The call itself, of those that made one: they go on behind it.
            let offset = call.offset.saturating_sub(u32::from(number > 0));
            let site = Site { function: call.function, offset, in_module: false };
            self.add_calls(site, frame, &mut stack);
        }
        stack
    }

    fn add_calls(&self, site: Site, frame: u32, stack: &mut Vec<Call>) {
        let place = self.symbols.map(|symbols| symbols.place(site));
        let unnamed = || format!("function {}", site.function);
        let (outer, lines) = match place {
            Some(place) => (place.function, place.lines),
            None => (None, Vec::new()),
        };
        let Some(last) = lines.len().checked_sub(1) else {
            let function = outer.unwrap_or_else(unnamed);
            stack.push(Call { function, file: None, line: None, site, frame, level: 0 });
            return;
        };
        for (level, line) in lines.into_iter().enumerate() {
            let whole = outer.clone().filter(|_| level == last);
            let function = whole.or(line.function).unwrap_or_else(unnamed);
            let (file, line) = (Some(line.file), Some(line.line));
            stack.push(Call { function, file, line, site, frame, level });
        }
    }

    /// The program as a call sees it.
    pub(super) fn of_call(&self, call: &Call) -> OfCall<'a> {
        let at = Some((call.site.function, call.frame));
        OfCall { walk: self.walk, image: self.image(), at }
    }

    /// The program where no call is under way: it has no local variables.
    pub(super) fn of_no_call(&self) -> OfCall<'a> {
        OfCall { walk: self.walk, image: self.image(), at: None }
    }

    /// The variables of a call that are visible where it stands; those of inner blocks come last.
    pub(super) fn variables(&self, call: &Call) -> Vec<Variable> {
        self.variables_outwards(call).into_iter().next().unwrap_or_default()
    }

    /// The same, and behind them those of each function that it was put into there.
    pub(super) fn variables_outwards(&self, call: &Call) -> Vec<Vec<Variable>> {
        let known = self.symbols.and_then(|symbols| {
            let address = symbols.address(call.site)?;
            Some(symbols.variables()?.visible(address, &self.of_call(call)))
        });
        known.unwrap_or_default().into_iter().skip(call.level).collect()
    }

    /// The call's parameters and local variables in WebAssembly.
    pub(super) fn locals(&self, call: &Call) -> Vec<Raw> {
        let of_call = self.of_call(call);
        let signature = of_call.image.signature(FunctionIndex(call.site.function));
        let params: Vec<ValueType> =
            signature.map(|signature| signature.params().collect()).unwrap_or_default();
        let local = |index| {
            let slot = of_call.local(index)?;
            Some(Raw::of(format!("${index}"), params.get(index as usize).copied(), slot))
        };
        (0..).map_while(local).collect()
    }

    /// The global variables of WebAssembly.
    pub(super) fn globals(&self) -> Vec<Raw> {
        let (program, image) = (self.walk.program(), self.image());
        let global = |index| {
            let value = program.global(&image, index)?;
            Some(Raw::of(format!("$g{index}"), Some(value.value_type()), bits(value)))
        };
        (0..).map_while(global).collect()
    }
}

/// The bits of a value, as a slot holds them.
fn bits(value: Value) -> u64 {
    match value {
        Value::I32(value) => u64::from(value as u32),
        Value::I64(value) => value as u64,
        Value::F32(bits) => bits.into(),
        Value::F64(bits) => bits,
        Value::FuncRef(reference) | Value::ExternRef(reference) => {
            reference.map_or(0, |index| u64::from(index) + 1)
        }
    }
}

/// A program as one of its calls sees it.
pub(super) struct OfCall<'a> {
    walk: &'a Walk,
    image: Image<'a>,
    /// The function, and the offset of its frame in the stack, in bytes.
    at: Option<(u32, u32)>,
}

impl Program for OfCall<'_> {
    fn read(&self, address: u32, count: usize) -> Option<Vec<u8>> {
        let program = self.walk.program();
        let page = self.image.memory_type().map_or(PAGE_BYTES, |memory| memory.page_bytes.into());
        let end = u64::from(address) + count as u64;
        if end > u64::from(program.memory_pages()) * page {
            return None;
        }
        // Memory that isn't committed yet is zero.
        let there = program.memory().get(address as usize..).unwrap_or(&[]);
        let mut bytes = there[..count.min(there.len())].to_vec();
        bytes.resize(count, 0);
        Some(bytes)
    }

    fn local(&self, index: u32) -> Option<u64> {
        let (function, frame) = self.at?;
        self.walk.program().local(&self.image, function, frame, index)
    }

    fn global(&self, index: u32) -> Option<u64> {
        self.walk.program().global(&self.image, index).map(bits)
    }
}
