//! The compiled engine: from a machine's image to C, which any C compiler makes a processor's own code of.
//!
//! The source is the image and not the module, so that compiled code has the interpreter's fuel, frames and
//! places by construction: an instruction costs what it costs there, a stop leaves the frames that
//! the interpreter would, and each goes on where the other has stopped. [`tenure_vm::Compiled`] runs what comes out.
//!
//! The code is one entry of the type that [`tenure_vm::Stay::enter`] has, and needs nothing but its words: no
//! data to initialise, no library but the compiler's own. Compiled position-independent, it runs where it lies.
#![forbid(unsafe_code)]

mod bounds;
mod decode;
mod flow;
mod function;
mod lower;
mod lowered;
mod resume;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tenure_vm::{FunctionIndex, FunctionShape, Image, flow as reason, word};

use decode::InstructionSet;
use function::Convention;
pub use lower::Bounds;

/// An image that this crate can't read: no image of this version's translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the image has code that this compiler doesn't know")
    }
}

impl std::error::Error for Unreadable {}

/// How to compile.
#[derive(Clone, Debug)]
pub struct Options {
    /// The entry's name, as the linker will know it.
    pub entry: String,
    /// How memory's end is guarded.
    pub bounds: Bounds,
    /// Bytes of native stack after which calls stop nesting natively. What is deeper begins anew on an empty
    /// stack; one function's own frame, and the entry's, come on top.
    pub stack_bytes: u32,
    /// Functions that are left to the interpreter.
    pub interpreted: BTreeSet<u32>,
}

impl Default for Options {
    fn default() -> Options {
        let (entry, interpreted) = ("tenure_compiled".into(), BTreeSet::new());
        Options { entry, bounds: Bounds::Checked, stack_bytes: 1024, interpreted }
    }
}

/// Flags of the C compiler that the text relies on, whatever the processor.
pub const C_FLAGS: [&str; 7] = [
    "-std=gnu11",
    "-ffreestanding",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
];

/// How functions of one type are called through a table.
pub(crate) struct Indirect {
    convention: Convention,
    functions: Vec<u32>,
    link: u16,
}

/// An image, read.
pub(crate) struct Module<'m> {
    shapes: Vec<FunctionShape<'m>>,
    outermost: Vec<bool>,
    indirect: BTreeMap<u16, Indirect>,
    bounds: Bounds,
}

impl<'m> Module<'m> {
    fn new(image: &'m Image<'m>, bounds: Bounds) -> Result<Module<'m>, Unreadable> {
        let shapes: Vec<_> = (0..image.functions())
            .map(|n| image.shape(FunctionIndex(n)).ok_or(Unreadable))
            .collect::<Result<_, _>>()?;
        let mut outermost = vec![false; shapes.len()];
        let exported = image.exports().filter_map(|export| match export.kind {
            tenure_vm::ExportKind::Function(function) => Some(function),
            _ => None,
        });
        for function in exported.chain(image.start_function()) {
            if let Some(marked) = outermost.get_mut(function.0 as usize) {
                *marked = true;
            }
        }
        let mut indirect = BTreeMap::new();
        for (function, shape) in (0..).zip(&shapes) {
            let entry = indirect.entry(shape.type_number).or_insert_with(|| Indirect {
                convention: Convention::new(&shape.signature),
                functions: Vec::new(),
                link: shape.link,
            });
            entry.functions.push(function);
        }
        // Where the link lies follows from the type.
        indirect.retain(|_, entry| {
            entry.functions.iter().all(|&n| shapes[n as usize].link == entry.link)
        });
        Ok(Module { shapes, outermost, indirect, bounds })
    }

    /// A function that exists: a verified image names no others.
    pub(crate) fn shape(&self, function: u32) -> &FunctionShape<'m> {
        &self.shapes[function as usize]
    }

    pub(crate) fn convention(&self, function: u32) -> Convention {
        Convention::new(&self.shape(function).signature)
    }

    pub(crate) fn indirect(&self, type_number: u16) -> Option<&Indirect> {
        self.indirect.get(&type_number)
    }

    /// Whether a call from outside may begin with the function.
    pub(crate) fn is_outermost(&self, function: u32) -> bool {
        self.outermost.get(function as usize).copied().unwrap_or(false)
    }
}

/// Turns an image into C.
///
/// # Errors
/// The image holds what [`tenure_vm::translate`] of this version doesn't write.
pub fn to_c(image: &Image<'_>, options: &Options) -> Result<String, Unreadable> {
    let module = Module::new(image, options.bounds)?;
    let set = InstructionSet::new();
    let mut text = String::from(include_str!("prelude.h"));
    let _ = writeln!(
        text,
        "#define INTERPRET 0xFFFFFFFFu\n#define DEEP 0xFFFFFFFEu\n#define BEGIN 0xFFFFFFFFu"
    );
    text += "typedef __INTPTR_TYPE__ iptr;\n";
    text += "#if defined(__riscv) || defined(__arm__)\nregister uptr STACK __asm__(\"sp\");\n#else\n\
             #define STACK ((uptr)__builtin_frame_address(0))\n#endif\n";
    let functions = 0..image.functions();
    for function in functions.clone() {
        let _ = writeln!(text, "{};", function::signature(&module, function));
    }
    for &type_number in module.indirect.keys() {
        text += &function::indirect(&module, type_number).unwrap_or_default();
    }
    let mut points = Vec::new();
    for number in functions {
        let list = set.function(image, FunctionIndex(number), module.shape(number).code_at)?;
        let compiled = match options.interpreted.contains(&number) {
            true => function::interpreted(&module, number),
            false => function::compile(&module, number, list),
        };
        text += &compiled.text;
        points.extend(compiled.points.into_iter().map(|(at, point)| (at, number, point)));
    }
    points.sort_unstable();
    text += &entry(&module, &points, options);
    Ok(text)
}

/// The table of points, and the entry that begins and goes on with functions.
fn entry(module: &Module<'_>, points: &[(u32, u32, u32)], options: &Options) -> String {
    let mut text = format!("static const struct point points[{}] = {{\n", points.len().max(1));
    for (at, function, point) in points {
        let _ = writeln!(text, "{{{at}u, {function}, {point}}},");
    }
    text += "};\nstatic u64 start(struct context *c, u8 *frame, i32 fuel, u32 function, u32 point) {\nswitch (function) {\n";
    for (function, _) in module.shapes.iter().enumerate() {
        let words = module.convention(function as u32).words;
        let arguments =
            words.iter().fold(String::new(), |text, half| format!("{text}, SLOT({})", half * 4));
        let _ = writeln!(
            text,
            "case {function}: return f{function}(c, frame, fuel, point{arguments});"
        );
    }
    text += "}\nreturn RESULT(STOPPED, 0);\n}\n";
    // Of each function: where its return link lies; then bits: it may be outermost, its result comes by value.
    let _ = writeln!(
        text,
        "static const struct {{ u16 link, bits; }} shapes[{}] = {{",
        module.shapes.len().max(1)
    );
    for (function, shape) in module.shapes.iter().enumerate() {
        let by_value = module.convention(function as u32).is_by_value();
        let bits = module.is_outermost(function as u32) as u32 | (by_value as u32) << 1;
        let _ = writeln!(text, "{{{}, {bits}}},", shape.link);
    }
    text += "};\n";
    for (name, place) in [
        ("IMAGE", word::IMAGE),
        ("FUNCTIONS", word::FUNCTIONS),
        ("FUNCTION_COUNT", word::FUNCTION_COUNT),
        ("GLOBALS", word::GLOBALS),
        ("STACK_END", word::STACK_END),
        ("TABLE", word::TABLE),
        ("TABLE_COUNT", word::TABLE_COUNT),
        ("MEMORY", word::MEMORY),
        ("MEMORY_BYTES", word::MEMORY_BYTES),
        ("PC", word::PC),
        ("FRAME", word::FRAME),
        ("ACCUMULATOR", word::ACCUMULATOR),
        ("LIMIT", word::LIMIT),
        ("FLOW", word::FLOW),
        ("CHECK", reason::CHECK),
        ("DONE", reason::DONE),
    ] {
        let _ = writeln!(text, "#define WORD_{name} {place}");
    }
    let _ = writeln!(
        text,
        "#define POINTS {}u\n#define NATIVE_BYTES {}",
        points.len(),
        options.stack_bytes
    );
    let _ = writeln!(text, "#define NEAR_BYTES {}u", bounds::NEAR_BYTES);
    text + &include_str!("entry.h").replace("ENTRY_NAME", &options.entry)
}
