//! Executes the directives of one file.

use super::linker::{Failure, Linker};
use tenure_vm::Value;
use wast::{
    QuoteWat, WastArg, WastDirective, WastExecute, WastInvoke, WastRet, Wat,
    core::{AbstractHeapType, HeapType, NanPattern, WastArgCore, WastRetCore},
    lexer::Lexer,
    parser::{self, ParseBuffer},
};

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) files: usize,
    pub(crate) passed: usize,
    pub(crate) failures: Vec<Failed>,
}

/// A directive that failed.
pub(crate) struct Failed {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) reason: String,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.files += other.files;
        self.passed += other.passed;
        self.failures.extend(other.failures);
    }
}

pub(crate) fn run(name: &str, text: &str) -> Tally {
    let mut tally = Tally { files: 1, ..Tally::default() };
    let mut lexer = Lexer::new(text);
    lexer.allow_confusing_unicode(true);
    let buffer = match ParseBuffer::new_with_lexer(lexer) {
        Ok(buffer) => buffer,
        Err(error) => {
            tally.failures.push(Failed { file: name.into(), line: 0, reason: error.to_string() });
            return tally;
        }
    };
    let script = match parser::parse::<wast::Wast>(&buffer) {
        Ok(script) => script,
        Err(error) => {
            tally.failures.push(Failed { file: name.into(), line: 0, reason: error.to_string() });
            return tally;
        }
    };
    let mut linker = Linker::new();
    for directive in script.directives {
        let line = directive.span().linecol_in(text).0 + 1;
        match execute(&mut linker, directive) {
            Ok(()) => tally.passed += 1,
            Err(reason) => tally.failures.push(Failed { file: name.into(), line, reason }),
        }
    }
    tally
}

fn execute(linker: &mut Linker, directive: WastDirective<'_>) -> Result<(), String> {
    match directive {
        WastDirective::Module(mut module) => {
            let name = module.name().map(|id| id.name().to_owned());
            let bytes = module.encode().map_err(|error| error.to_string())?;
            linker.instantiate(name, &bytes).map_err(|failure| format!("module: {failure:?}"))
        }
        WastDirective::Register { name, module, .. } => {
            linker.register(name, module.map(|id| id.name()));
            Ok(())
        }
        WastDirective::Invoke(invoke) => {
            call(linker, invoke).map(drop).map_err(|failure| format!("invoke: {failure:?}"))
        }
        WastDirective::AssertReturn { exec, results, .. } => {
            let found = perform(linker, exec).map_err(|failure| format!("{failure:?}"))?;
            let same = found.len() == results.len()
                && found.iter().zip(&results).all(|(&found, expected)| matches(found, expected));
            if same { Ok(()) } else { Err(format!("got {found:?}, not {results:?}")) }
        }
        WastDirective::AssertTrap { exec, message, .. } => match perform(linker, exec) {
            Err(Failure::Trap(trap)) if agrees(&trap, message) => Ok(()),
            other => Err(format!("trap '{message}' expected, got {other:?}")),
        },
        WastDirective::AssertExhaustion { call: invoke, .. } => match call(linker, invoke) {
            Err(Failure::Trap(trap)) if trap == "call stack exhausted" => Ok(()),
            other => Err(format!("exhaustion expected, got {other:?}")),
        },
        WastDirective::AssertMalformed { mut module, message, .. } => {
            // The text format's own errors are the parser's business.
            if matches!(&module, QuoteWat::QuoteModule(..)) {
                return match module.encode() {
                    Err(_) => Ok(()),
                    Ok(bytes) => refused(linker, &bytes, message),
                };
            }
            match module.encode() {
                Err(_) => Ok(()),
                Ok(bytes) => refused(linker, &bytes, message),
            }
        }
        WastDirective::AssertInvalid { mut module, message, .. } => match module.encode() {
            Err(_) => Ok(()),
            Ok(bytes) => refused(linker, &bytes, message),
        },
        WastDirective::AssertUnlinkable { mut module, message, .. } => {
            let bytes = module.encode().map_err(|error| error.to_string())?;
            match linker.instantiate(None, &bytes) {
                Err(Failure::Refused(_)) => Ok(()),
                other => Err(format!("unlinkable '{message}' expected, got {other:?}")),
            }
        }
        other => Err(format!("directive not known: {other:?}")),
    }
}

fn refused(linker: &mut Linker, bytes: &[u8], message: &str) -> Result<(), String> {
    match linker.validate(bytes) {
        Err(Failure::Refused(_)) => Ok(()),
        other => Err(format!("'{message}' expected, got {other:?}")),
    }
}

/// The suite's trap messages, by their beginning.
fn agrees(trap: &str, message: &str) -> bool {
    let message = match message {
        "undefined element" => "out of bounds table access",
        "unreachable" => "unreachable executed",
        other if other.starts_with("uninitialized element") => "uninitialized element",
        other if other.starts_with("out of bounds table access") => "out of bounds table access",
        "out of bounds memory access" => "out of bounds memory access",
        other => other,
    };
    trap == message
}

fn perform(linker: &mut Linker, execute: WastExecute<'_>) -> Result<Vec<Value>, Failure> {
    match execute {
        WastExecute::Invoke(invoke) => call(linker, invoke),
        WastExecute::Wat(mut wat) => {
            let bytes = match &mut wat {
                Wat::Module(module) => {
                    module.encode().map_err(|error| Failure::Refused(error.to_string()))?
                }
                Wat::Component(_) => return Err(Failure::Refused("component".into())),
            };
            linker.instantiate(None, &bytes).map(|()| Vec::new())
        }
        WastExecute::Get { module, global, .. } => {
            linker.global(module.map(|id| id.name()), global).map(|value| vec![value])
        }
    }
}

fn call(linker: &mut Linker, invoke: WastInvoke<'_>) -> Result<Vec<Value>, Failure> {
    let arguments: Option<Vec<Value>> = invoke.args.iter().map(argument).collect();
    let arguments = arguments.ok_or_else(|| Failure::Refused("argument".into()))?;
    linker.invoke(invoke.module.map(|id| id.name()), invoke.name, &arguments)
}

fn argument(argument: &WastArg<'_>) -> Option<Value> {
    let WastArg::Core(argument) = argument else { return None };
    Some(match argument {
        WastArgCore::I32(value) => Value::I32(*value),
        WastArgCore::I64(value) => Value::I64(*value),
        WastArgCore::F32(value) => Value::F32(value.bits),
        WastArgCore::F64(value) => Value::F64(value.bits),
        WastArgCore::RefNull(HeapType::Abstract { ty: AbstractHeapType::Func, .. }) => {
            Value::FuncRef(None)
        }
        WastArgCore::RefNull(_) => Value::ExternRef(None),
        WastArgCore::RefExtern(value) => Value::ExternRef(Some(*value)),
        _ => return None,
    })
}

fn matches(found: Value, expected: &WastRet<'_>) -> bool {
    let WastRet::Core(expected) = expected else { return false };
    match (found, expected) {
        (found, WastRetCore::Either(choices)) => {
            choices.iter().any(|choice| core_matches(found, choice))
        }
        (found, expected) => core_matches(found, expected),
    }
}

fn core_matches(found: Value, expected: &WastRetCore<'_>) -> bool {
    match (found, expected) {
        (Value::I32(found), WastRetCore::I32(expected)) => found == *expected,
        (Value::I64(found), WastRetCore::I64(expected)) => found == *expected,
        (Value::F32(found), WastRetCore::F32(expected)) => match expected {
            NanPattern::CanonicalNan => found & 0x7FFF_FFFF == 0x7FC0_0000,
            NanPattern::ArithmeticNan => found & 0x7FC0_0000 == 0x7FC0_0000,
            NanPattern::Value(expected) => found == expected.bits,
        },
        (Value::F64(found), WastRetCore::F64(expected)) => match expected {
            NanPattern::CanonicalNan => found & !(1 << 63) == 0x7FF8_0000_0000_0000,
            NanPattern::ArithmeticNan => found & 0x7FF8_0000_0000_0000 == 0x7FF8_0000_0000_0000,
            NanPattern::Value(expected) => found == expected.bits,
        },
        (Value::FuncRef(None) | Value::ExternRef(None), WastRetCore::RefNull(_)) => true,
        (Value::FuncRef(Some(_)), WastRetCore::RefFunc(_)) => true,
        (Value::ExternRef(Some(found)), WastRetCore::RefExtern(expected)) => {
            expected.is_none_or(|expected| expected == found)
        }
        _ => false,
    }
}
