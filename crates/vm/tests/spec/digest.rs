//! Turns a script of the suite into bytes that `script` executes: the text format stays on this machine.
//!
//! All integers are little-endian. A script is a row of directives: line u32, kind u8, and what `kind`
//! needs. Bytes and texts are a length u32 and so many bytes; an optional text has a byte 0 or 1 before
//! it; a value is its type's byte and a u64.

use tenure_vm::{Value, ValueType};
use wast::{
    WastArg, WastDirective, WastExecute, WastInvoke, WastRet, Wat,
    core::{AbstractHeapType, HeapType, NanPattern, WastArgCore, WastRetCore},
    lexer::Lexer,
    parser::{self, ParseBuffer},
};

use super::format::{Kind, Pattern, Task};

/// The directives of a file.
pub(crate) fn digest(text: &str) -> Vec<u8> {
    let mut lexer = Lexer::new(text);
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer).expect("the suite's tokens");
    let script = parser::parse::<wast::Wast>(&buffer).expect("the suite's grammar");
    let mut out = Digest(Vec::new());
    for directive in script.directives {
        let line = directive.span().linecol_in(text).0 as u32 + 1;
        out.0.extend_from_slice(&line.to_le_bytes());
        out.directive(directive);
    }
    out.0
}

struct Digest(Vec<u8>);

impl Digest {
    fn kind(&mut self, kind: Kind) {
        self.0.push(kind as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn name(&mut self, name: Option<&str>) {
        self.0.push(name.is_some() as u8);
        if let Some(name) = name {
            self.bytes(name.as_bytes());
        }
    }

    fn directive(&mut self, directive: WastDirective<'_>) {
        match directive {
            WastDirective::Module(mut module) => {
                self.kind(Kind::Module);
                self.name(module.name().map(|id| id.name()));
                self.bytes(&module.encode().expect("a good module"));
            }
            WastDirective::Register { name, module, .. } => {
                self.kind(Kind::Register);
                self.bytes(name.as_bytes());
                self.name(module.map(|id| id.name()));
            }
            WastDirective::Invoke(invoke) => {
                self.kind(Kind::Invoke);
                self.invoke(invoke);
            }
            WastDirective::AssertReturn { exec, results, .. } => {
                self.kind(Kind::Return);
                self.execute(exec);
                self.0.push(results.len() as u8);
                results.iter().for_each(|result| self.expect(result));
            }
            WastDirective::AssertTrap { exec, message, .. } => {
                self.kind(Kind::Trap);
                self.execute(exec);
                self.bytes(trap_name(message).as_bytes());
            }
            WastDirective::AssertExhaustion { call, .. } => {
                self.kind(Kind::Trap);
                self.execute(WastExecute::Invoke(call));
                self.bytes(b"call stack exhausted");
            }
            WastDirective::AssertMalformed { mut module, .. }
            | WastDirective::AssertInvalid { mut module, .. } => match module.encode() {
                Ok(bytes) => {
                    self.kind(Kind::Refused);
                    self.bytes(&bytes);
                }
                // The text format's own errors are the assembler's business.
                Err(_) => self.kind(Kind::TextOnly),
            },
            WastDirective::AssertUnlinkable { mut module, .. } => {
                self.kind(Kind::Unlinkable);
                self.bytes(&module.encode().expect("a good module"));
            }
            other => panic!("directive not known: {other:?}"),
        }
    }

    fn execute(&mut self, execute: WastExecute<'_>) {
        match execute {
            WastExecute::Invoke(invoke) => {
                self.0.push(Task::Invoke as u8);
                self.invoke(invoke);
            }
            WastExecute::Wat(Wat::Module(mut module)) => {
                self.0.push(Task::Instantiate as u8);
                self.bytes(&module.encode().expect("a good module"));
            }
            WastExecute::Wat(Wat::Component(_)) => panic!("no components in the suite"),
            WastExecute::Get { module, global, .. } => {
                self.0.push(Task::Get as u8);
                self.name(module.map(|id| id.name()));
                self.bytes(global.as_bytes());
            }
        }
    }

    fn invoke(&mut self, invoke: WastInvoke<'_>) {
        self.name(invoke.module.map(|id| id.name()));
        self.bytes(invoke.name.as_bytes());
        self.0.push(invoke.args.len() as u8);
        for argument in &invoke.args {
            let WastArg::Core(argument) = argument else { panic!("no components in the suite") };
            self.value(match argument {
                WastArgCore::I32(value) => Value::I32(*value),
                WastArgCore::I64(value) => Value::I64(*value),
                WastArgCore::F32(value) => Value::F32(value.bits),
                WastArgCore::F64(value) => Value::F64(value.bits),
                WastArgCore::RefNull(HeapType::Abstract { ty: AbstractHeapType::Func, .. }) => {
                    Value::FuncRef(None)
                }
                WastArgCore::RefNull(_) => Value::ExternRef(None),
                WastArgCore::RefExtern(value) => Value::ExternRef(Some(*value)),
                other => panic!("argument not known: {other:?}"),
            });
        }
    }

    fn value(&mut self, value: Value) {
        let bits = match value {
            Value::I32(value) => value as u32 as u64,
            Value::I64(value) => value as u64,
            Value::F32(bits) => bits as u64,
            Value::F64(bits) => bits,
            Value::FuncRef(reference) | Value::ExternRef(reference) => {
                reference.map_or(0, |number| number as u64 + 1)
            }
        };
        self.0.push(value.value_type() as u8);
        self.0.extend_from_slice(&bits.to_le_bytes());
    }

    fn expect(&mut self, expected: &WastRet<'_>) {
        let WastRet::Core(expected) = expected else { panic!("no components in the suite") };
        self.core(expected);
    }

    fn pattern(&mut self, pattern: Pattern) {
        self.0.push(pattern as u8);
    }

    fn exactly(&mut self, value: Value) {
        self.pattern(Pattern::Value);
        self.value(value);
    }

    fn core(&mut self, expected: &WastRetCore<'_>) {
        match expected {
            WastRetCore::I32(value) => self.exactly(Value::I32(*value)),
            WastRetCore::I64(value) => self.exactly(Value::I64(*value)),
            WastRetCore::F32(NanPattern::Value(value)) => self.exactly(Value::F32(value.bits)),
            WastRetCore::F64(NanPattern::Value(value)) => self.exactly(Value::F64(value.bits)),
            WastRetCore::F32(NanPattern::CanonicalNan)
            | WastRetCore::F64(NanPattern::CanonicalNan) => self.pattern(Pattern::CanonicalNan),
            WastRetCore::F32(NanPattern::ArithmeticNan)
            | WastRetCore::F64(NanPattern::ArithmeticNan) => self.pattern(Pattern::ArithmeticNan),
            WastRetCore::RefNull(_) => self.pattern(Pattern::Null),
            WastRetCore::RefFunc(_) => {
                self.pattern(Pattern::Reference);
                self.0.push(ValueType::FuncRef as u8);
            }
            WastRetCore::RefExtern(None) => {
                self.pattern(Pattern::Reference);
                self.0.push(ValueType::ExternRef as u8);
            }
            WastRetCore::RefExtern(Some(value)) => self.exactly(Value::ExternRef(Some(*value))),
            WastRetCore::Either(choices) => {
                self.pattern(Pattern::Either);
                self.0.push(choices.len() as u8);
                choices.iter().for_each(|choice| self.core(choice));
            }
            other => panic!("result not known: {other:?}"),
        }
    }
}

/// The suite's trap messages, by their beginning, as this engine says them.
fn trap_name(message: &str) -> &str {
    match message {
        "undefined element" => "out of bounds table access",
        "unreachable" => "unreachable executed",
        other if other.starts_with("uninitialized element") => "uninitialized element",
        other if other.starts_with("out of bounds table access") => "out of bounds table access",
        other => other,
    }
}
