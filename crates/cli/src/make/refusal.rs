//! Why devices don't run a module, in the words of its author: the limit, the figure, the function and the way out.

use std::collections::BTreeMap;
use std::fmt;

use tenure_package::CODE_BYTES_MAX;
use tenure_vm::{Feature, Limit, Limits, Malformed, TranslateError, TranslateErrorKind, translate};
use tenure_wire::printable::printable;
use wasmparser::{Parser, Payload, TypeRef};

use crate::make::proposals::{self, Proposal};

/// How the author of another tool's module makes its memory smaller, by the tool.
macro_rules! smaller_memory {
    () => {
    "give it a smaller stack or less memory at the start where it is built (clang: \
     -Wl,-z,stack-size=8192; Rust: -Clink-arg=-zstack-size=8192; Zig: --stack 8192, or exe.stack_size; \
     emscripten: -sSTACK_SIZE=8192 -sINITIAL_MEMORY=65536; AssemblyScript: --initialMemory 1)"
    };
}
pub(crate) use smaller_memory;

/// Names of functions by their indices.
pub type Names = BTreeMap<u32, String>;

/// A module that devices don't run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The function to blame, if the fault is in one, by its name or its number.
    pub function: Option<String>,
    /// The fault.
    pub cause: Cause,
}

/// The fault of a refused module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It passes a limit.
    Limit {
        /// Which.
        limit: Limit,
        /// Its own figure; the largest of all functions, where the limit is for each.
        figure: u64,
        /// The most that is taken.
        most: u64,
        /// By whom.
        by: Taker,
    },
    /// It needs a feature that devices don't have.
    Feature(Feature),
    /// It needs a proposal that devices don't have, and that the vm doesn't know by name.
    Proposal(Proposal),
    /// It is no module, or breaks a rule.
    Broken(TranslateError),
}

/// The devices whose limits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// Any device: those with megabytes take most.
    Device,
    /// A board with some hundred kilobytes.
    Board,
}

impl Taker {
    fn limits(self) -> Limits {
        match self {
            Self::Device => Limits { module_bytes: CODE_BYTES_MAX, ..Limits::ample() },
            Self::Board => Limits::default(),
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Device => "a device",
            Self::Board => "a board",
        }
    }
}

/// Translates the module as a device does when it is installed, so that its developer, and not its user, learns of a
/// mistake.
///
/// # Errors
/// [`Refusal`], with names out of `names`.
pub fn check(code: &[u8], names: &Names) -> Result<(), Refusal> {
    check_for(Taker::Device, code, names)
}

/// As [`check`], with the limits of these devices.
///
/// # Errors
/// [`Refusal`], with names out of `names`.
pub fn check_for(taker: Taker, code: &[u8], names: &Names) -> Result<(), Refusal> {
    translated(code, &taker.limits()).map_err(|error| Refusal::by(taker, code, names, error))
}

fn translated(code: &[u8], limits: &Limits) -> Result<(), TranslateError> {
    translate(code, &tenure_kernel::host_functions(), limits, &mut Vec::new()).map(drop)
}

impl Refusal {
    /// The refusal of a module that can't be translated within the limits of devices.
    pub fn of(code: &[u8], names: &Names, error: TranslateError) -> Self {
        Self::by(Taker::Device, code, names, error)
    }

    fn by(by: Taker, code: &[u8], names: &Names, error: TranslateError) -> Self {
        let most = &by.limits();
        let TranslateErrorKind::Limit(limit) = error.kind else {
            let cause = match error.kind {
                TranslateErrorKind::Unsupported(feature) => Cause::Feature(feature),
                _ => proposals::needed(code).map_or(Cause::Broken(error), Cause::Proposal),
            };
            return Self { function: function_at(code, names, error.offset), cause };
        };
        let least = |figure: u64| {
            let mut limits = Limits::widest();
            set(&mut limits, limit, figure);
            translated(code, &limits).err().filter(|error| error.kind == limit.into())
        };
        let (mut refused, mut taken) = (figure(most, limit), figure(&Limits::widest(), limit));
        let mut worst = least(refused).unwrap_or(error);
        while refused + 1 < taken {
            let middle = refused + (taken - refused) / 2;
            match least(middle) {
                Some(error) => (refused, worst) = (middle, error),
                None => taken = middle,
            }
        }
        let function = is_of_function(limit).then(|| function_at(code, names, worst.offset));
        let cause = Cause::Limit { limit, figure: taken, most: figure(most, limit), by };
        Self { function: function.flatten(), cause }
    }
}

/// The limit's figure in `limits`.
fn figure(limits: &Limits, limit: Limit) -> u64 {
    match limit {
        Limit::ModuleBytes => limits.module_bytes as u64,
        Limit::Types => limits.types.into(),
        Limit::Imports => limits.imports.into(),
        Limit::Functions => limits.functions.into(),
        Limit::Locals => limits.locals.into(),
        Limit::FrameBytes => limits.frame_bytes.into(),
        Limit::Nesting => limits.nesting.into(),
        Limit::FunctionBytes => limits.function_bytes.into(),
        Limit::Globals => limits.globals.into(),
        Limit::Tables => limits.tables.into(),
        Limit::TableElements => limits.table_elements.into(),
        Limit::Segments => limits.segments.into(),
        Limit::Exports => limits.exports.into(),
        Limit::MemoryBytes => limits.memory_bytes,
        // The format's own.
        Limit::ImageBytes => 1 << 31,
    }
}

fn set(limits: &mut Limits, limit: Limit, figure: u64) {
    let small = u32::try_from(figure).unwrap_or(u32::MAX);
    match limit {
        Limit::ModuleBytes => limits.module_bytes = small as usize,
        Limit::Types => limits.types = small,
        Limit::Imports => limits.imports = small,
        Limit::Functions => limits.functions = small,
        Limit::Locals => limits.locals = small,
        Limit::FrameBytes => limits.frame_bytes = small,
        Limit::Nesting => limits.nesting = small,
        Limit::FunctionBytes => limits.function_bytes = small,
        Limit::Globals => limits.globals = small,
        Limit::Tables => limits.tables = small,
        Limit::TableElements => limits.table_elements = small,
        Limit::Segments => limits.segments = small,
        Limit::Exports => limits.exports = small,
        Limit::MemoryBytes => limits.memory_bytes = figure,
        Limit::ImageBytes => {}
    }
}

fn is_of_function(limit: Limit) -> bool {
    use Limit::{FrameBytes, FunctionBytes, Locals, Nesting};
    matches!(limit, FrameBytes | FunctionBytes | Locals | Nesting)
}

/// The function in whose code the offset lies, by its name or its number.
fn function_at(code: &[u8], names: &Names, offset: usize) -> Option<String> {
    let mut index = 0;
    for payload in Parser::new(0).parse_all(code) {
        match payload.ok()? {
            Payload::ImportSection(imports) => {
                let functions = imports.into_iter().filter_map(Result::ok);
                index += functions.filter(|it| matches!(it.ty, TypeRef::Func(_))).count() as u32;
            }
            // An error of the whole body may lie at its end.
            Payload::CodeSectionEntry(body) if offset <= body.range().end => {
                let name = names.get(&index).map(|name| format!("`{}`", printable(name)));
                return (offset + BODY_SIZE_BYTES >= body.range().start)
                    .then(|| name.unwrap_or_else(|| format!("function {index}")));
            }
            Payload::CodeSectionEntry(_) => index += 1,
            _ => {}
        }
    }
    None
}

/// The most bytes that the size of a body takes before it.
const BODY_SIZE_BYTES: usize = 5;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function.as_deref().unwrap_or("the module");
        match self.cause {
            Cause::Limit { limit, figure, most, by } => {
                let (does, unit, way_out) = words(limit);
                let (figure, most, taker) = (grouped(figure), grouped(most), by.in_words());
                write!(f, "{function} {does} {figure}{unit}, and {taker} takes {most}; {way_out}")
            }
            Cause::Feature(feature) => {
                write!(f, "{function} needs {feature}, which no device has; {}", without(feature))
            }
            Cause::Proposal(Proposal { name, without, .. }) => {
                write!(f, "{function} needs {name}, which no device has; {without}")
            }
            Cause::Broken(error) => match error.kind {
                TranslateErrorKind::Malformed(Malformed::Opcode) => write!(
                    f,
                    "{function} has an instruction that no device knows ({error}); tell the compiler to \
                     keep to WebAssembly 2.0 (clang: -mcpu=mvp, rustc: -Ctarget-cpu=mvp)"
                ),
                _ => write!(f, "{function} is not valid WebAssembly: {error}"),
            },
        }
    }
}

impl std::error::Error for Refusal {}

/// The use that passes the limit, the figure's unit, and the way out.
fn words(limit: Limit) -> (&'static str, &'static str, &'static str) {
    const LESS_CODE: &str = "leave out what isn't used (-Wl,--gc-sections, lto = true; Go: build by \
                             TinyGo), and build for size (-Os, opt-level = \"s\")";
    const SPLIT: &str = "split it into several, and build for size, with less inlining (-Os -fno-inline, opt-level = \
                         \"s\")";
    match limit {
        Limit::ModuleBytes => ("has", " bytes without names and debug information", LESS_CODE),
        Limit::Types => ("has", " types of functions", LESS_CODE),
        Limit::Imports => ("imports", " functions", "it can call no others than those of Tenure"),
        Limit::Functions => ("has", " functions", LESS_CODE),
        Limit::Locals => ("has", " parameters and local variables", SPLIT),
        Limit::FrameBytes => {
            ("needs", " bytes for its variables and the values between them", SPLIT)
        }
        Limit::Nesting => (
            "nests its blocks",
            " deep",
            "split its largest `switch`, or build it for size (-Os, opt-level = \"s\")",
        ),
        Limit::FunctionBytes => ("has", " bytes of code", SPLIT),
        Limit::Globals => (
            "has",
            " global variables of WebAssembly",
            "link it as one module, not as position-independent code",
        ),
        Limit::Tables => ("has", " tables", "link it without those that it doesn't use"),
        Limit::TableElements => (
            "has a table with",
            " functions that are called by pointers",
            "leave out what isn't used, and let the table start no larger than it is",
        ),
        Limit::Segments => (
            "has",
            " segments of data or elements",
            "let the linker merge them (-O1 or more; wasm-ld without --no-merge-data-segments)",
        ),
        Limit::Exports => {
            ("has", " exports", "export only what callers call (no -Wl,--export-all)")
        }
        Limit::MemoryBytes => ("begins with", " bytes of memory", smaller_memory!()),
        Limit::ImageBytes => ("becomes an image of", " bytes", LESS_CODE),
    }
}

/// How to do without a feature.
fn without(feature: Feature) -> &'static str {
    match feature {
        Feature::Simd => "build without it (no -msimd128, no +simd128)",
        Feature::Threads => "build it for one thread (no -pthread, no +atomics)",
        Feature::Exceptions => {
            "build without it (-fno-exceptions, panic = \"abort\", no -fwasm-exceptions)"
        }
        Feature::GarbageCollection | Feature::FunctionReferences => {
            "build it with a compiler that brings its own memory management, as C, Rust, Zig, TinyGo and AssemblyScript do"
        }
        Feature::MultipleMemories => {
            "let it have one memory (no wasm-merge of modules that have their own; no -mmultimemory)"
        }
        Feature::Memory64 => "build it for wasm32",
        Feature::Floats => "use whole numbers",
        Feature::ImportedMemory => {
            "let it have its own (no --import-memory; AssemblyScript: no --importMemory)"
        }
        Feature::ImportedTable => {
            "let it have its own (no --import-table; AssemblyScript: no --importTable)"
        }
        Feature::ImportedGlobal => "link it as a whole program, not as position-independent code",
        Feature::ImportedTag => "build without exceptions (-fno-exceptions)",
        Feature::WideArithmetic => "build without it (no -mwide-arithmetic)",
        Feature::StackSwitching => {
            "build without it (no coroutines of the engine's; no --enable-stack-switching)"
        }
    }
}

/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        refusal_by(Taker::Device, text)
    }

    fn refusal_by(taker: Taker, text: &str) -> String {
        let module = wat::parse_str(text).unwrap();
        let names = Names::from([(0, "deep".to_owned())]);
        check_for(taker, &module, &names).unwrap_err().to_string()
    }

    /// A module whose second function nests more deeply than the first that is too deep.
    fn nested(first: usize, second: usize) -> String {
        let body = |depth: usize| "(block ".repeat(depth) + &")".repeat(depth);
        format!("(module (func {}) (func {}))", body(first), body(second))
    }

    #[test]
    fn the_worst_function_is_named_with_its_figure_and_the_limit() {
        let most = u64::from(Limits::ample().nesting);
        let deep = most as usize + 44;
        assert!(
            check(&wat::parse_str(nested(most as usize - 1, 1)).unwrap(), &Names::new()).is_ok()
        );
        let text = refusal(&nested(deep, 3));
        let expected = format!(
            "`deep` nests its blocks {} deep, and a device takes {}; ",
            grouped(deep as u64 + 1),
            grouped(most)
        );
        assert!(text.starts_with(&expected), "{text}");
        let text = refusal(&nested(deep, deep + 7));
        let expected = format!("function 1 nests its blocks {} deep", grouped(deep as u64 + 8));
        assert!(text.starts_with(&expected), "{text}");
    }

    #[test]
    fn each_limit_of_a_module_is_named_with_its_figure_and_what_boards_refuse_larger_devices_take()
    {
        let many = |count: usize, part: &str| format!("(module {})", part.repeat(count));
        for (module, words) in [
            (
                many(300, "(global i32 (i32.const 0))"),
                "300 global variables of WebAssembly, and a board takes 256",
            ),
            (many(5, "(table 1 funcref)"), "has 5 tables, and a board takes 4"),
            (many(4_097, "(func)"), "has 4,097 functions, and a board takes 4,096"),
            (
                "(module (memory 257))".to_owned(),
                "the module begins with 16,842,752 bytes of memory, and a board takes 16,777,216; give it a smaller stack",
            ),
            (
                "(module (table 5000 funcref))".to_owned(),
                "has a table with 5,000 functions that are called by pointers, and a board takes 4,096",
            ),
            (
                format!("(module (func (local {})))", "i32 ".repeat(1_100)),
                "`deep` has 1,100 parameters and local variables, and a board takes 1,024",
            ),
            (nested(600, 1), "`deep` nests its blocks 601 deep, and a board takes 512"),
        ] {
            let text = refusal_by(Taker::Board, &module);
            assert!(text.contains(words), "{text}");
            assert_eq!(check(&wat::parse_str(&module).unwrap(), &Names::new()), Ok(()), "{words}");
        }
        for (module, words) in [
            (
                many(65, "(table 1 funcref)"),
                "the module has 65 tables, and a device takes 64; link it without those",
            ),
            (
                "(module (table 70000 funcref))".to_owned(),
                "has a table with 70,000 functions that are called by pointers, and a device takes 65,536",
            ),
            (
                format!("(module (func (local {})))", "i32 ".repeat(5_000)),
                "`deep` has 5,000 parameters and local variables, and a device takes 4,096; split it",
            ),
        ] {
            let text = refusal(&module);
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_feature_is_named_with_the_function_and_the_way_out() {
        let text = refusal("(module (func (drop (v128.const i64x2 1 2))))");
        assert!(
            text.contains("`deep` needs SIMD, which no device has; build without it"),
            "{text}"
        );
        let text = refusal("(module (import \"env\" \"memory\" (memory 1 1 shared)))");
        assert!(text.starts_with("the module needs "), "{text}");
    }
}
