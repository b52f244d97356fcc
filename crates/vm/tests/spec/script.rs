//! Executes the directives that `digest` wrote down.
//!
//! Runs on a bare machine as well: see `tests/device`.

use alloc::{format, string::String, vec, vec::Vec};

use super::{
    format::{KINDS, Kind, PATTERNS, Pattern, Task},
    linker::{Failure, Linker},
};
use tenure_vm::{Value, ValueType};

/// Executes a file's directives; how many did what they should. Of the others the line and why.
pub(crate) fn run(script: &[u8], failed: &mut dyn FnMut(usize, String)) -> usize {
    let mut linker = Linker::new();
    let mut reader = Reader(script);
    let mut passed = 0;
    while !reader.0.is_empty() {
        let line = reader.word() as usize;
        match directive(&mut linker, &mut reader) {
            Ok(()) => passed += 1,
            Err(reason) => failed(line, reason),
        }
    }
    passed
}

fn directive(linker: &mut Linker, reader: &mut Reader<'_>) -> Result<(), String> {
    match KINDS[reader.byte() as usize] {
        Kind::Module => {
            let name = reader.name().map(String::from);
            let made = linker.instantiate(name, reader.bytes());
            made.map_err(|failure| format!("module: {failure:?}"))
        }
        Kind::Register => {
            let name = reader.text();
            linker.register(name, reader.name());
            Ok(())
        }
        Kind::Invoke => {
            invoke(linker, reader).map(drop).map_err(|failure| format!("invoke: {failure:?}"))
        }
        Kind::Return => {
            let found = task(linker, reader);
            let count = reader.byte() as usize;
            let mut same = found.as_ref().is_ok_and(|found| found.len() == count);
            for index in 0..count {
                let value = found.as_ref().ok().and_then(|found| found.get(index));
                same &= fits(value.copied(), reader);
            }
            if same { Ok(()) } else { Err(format!("got {found:x?}")) }
        }
        Kind::Trap => {
            let found = task(linker, reader);
            let expected = reader.text();
            match found {
                Err(Failure::Trap(trap)) if trap == expected => Ok(()),
                other => Err(format!("trap '{expected}' expected, got {other:?}")),
            }
        }
        Kind::Refused => match linker.validate(reader.bytes()) {
            Err(Failure::Refused(_)) => Ok(()),
            other => Err(format!("to be refused, got {other:?}")),
        },
        Kind::Unlinkable => match linker.instantiate(None, reader.bytes()) {
            Err(Failure::Refused(_)) => Ok(()),
            other => Err(format!("to be unlinkable, got {other:?}")),
        },
        Kind::TextOnly => Ok(()),
    }
}

fn task(linker: &mut Linker, reader: &mut Reader<'_>) -> Result<Vec<Value>, Failure> {
    match reader.byte() {
        task if task == Task::Invoke as u8 => invoke(linker, reader),
        task if task == Task::Instantiate as u8 => {
            linker.instantiate(None, reader.bytes()).map(|()| Vec::new())
        }
        _ => {
            let module = reader.name();
            linker.global(module, reader.text()).map(|value| vec![value])
        }
    }
}

fn invoke(linker: &mut Linker, reader: &mut Reader<'_>) -> Result<Vec<Value>, Failure> {
    let (module, function) = (reader.name(), reader.text());
    let count = reader.byte();
    let arguments: Vec<Value> = (0..count).map(|_| reader.value()).collect();
    linker.invoke(module, function, &arguments)
}

/// Whether a result is what the pattern that follows says.
fn fits(found: Option<Value>, reader: &mut Reader<'_>) -> bool {
    match PATTERNS[reader.byte() as usize] {
        Pattern::Value => found == Some(reader.value()),
        Pattern::CanonicalNan => match found {
            Some(Value::F32(bits)) => bits & 0x7FFF_FFFF == 0x7FC0_0000,
            Some(Value::F64(bits)) => bits & !(1 << 63) == 0x7FF8_0000_0000_0000,
            _ => false,
        },
        Pattern::ArithmeticNan => match found {
            Some(Value::F32(bits)) => bits & 0x7FC0_0000 == 0x7FC0_0000,
            Some(Value::F64(bits)) => bits & 0x7FF8_0000_0000_0000 == 0x7FF8_0000_0000_0000,
            _ => false,
        },
        Pattern::Null => {
            matches!(found, Some(Value::FuncRef(None) | Value::ExternRef(None)))
        }
        Pattern::Reference => {
            let expected = reader.byte();
            matches!(found, Some(value @ (Value::FuncRef(Some(_)) | Value::ExternRef(Some(_))))
                if value.value_type() as u8 == expected)
        }
        Pattern::Either => {
            let choices = reader.byte();
            // All of them are read.
            (0..choices).filter(|_| fits(found, reader)).count() > 0
        }
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn bytes(&mut self) -> &'b [u8] {
        let length = self.word();
        self.take(length as usize)
    }

    fn text(&mut self) -> &'b str {
        core::str::from_utf8(self.bytes()).expect("a name")
    }

    fn name(&mut self) -> Option<&'b str> {
        (self.byte() != 0).then(|| self.text())
    }

    fn value(&mut self) -> Value {
        let value_type = ValueType::from_byte(self.byte()).expect("a type");
        let bits = u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"));
        let reference = (bits as u32).checked_sub(1);
        match value_type {
            ValueType::I32 => Value::I32(bits as i32),
            ValueType::I64 => Value::I64(bits as i64),
            ValueType::F32 => Value::F32(bits as u32),
            ValueType::F64 => Value::F64(bits),
            ValueType::FuncRef => Value::FuncRef(reference),
            ValueType::ExternRef => Value::ExternRef(reference),
        }
    }
}
