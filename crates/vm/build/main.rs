//! Generates the instruction set's tables and handlers, and chooses the dispatcher.

use std::{env, fmt::Write, fs, path::Path};

mod isa;
mod sequences;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-check-cfg=cfg(tail_dispatch)");
    // For tests on cores that would not need it: RUSTFLAGS="--cfg strict_alignment".
    println!("cargo::rustc-check-cfg=cfg(strict_alignment)");
    if tail_dispatch() {
        println!("cargo::rustc-cfg=tail_dispatch");
    }
    println!("cargo::rustc-check-cfg=cfg(unmetered, unchecked_memory)");
    println!("cargo::rustc-check-cfg=cfg(compact)");
    let compact = compact();
    if compact {
        println!("cargo::rustc-cfg=compact");
    }
    println!("cargo::rustc-check-cfg=cfg(small)");
    if compact && optimised_for_size() {
        println!("cargo::rustc-cfg=small");
    }
    let float = env::var_os("CARGO_FEATURE_FLOAT").is_some();
    let instructions = isa::instructions();
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name: &str, text: String| {
        fs::write(Path::new(&out).join(name), text).expect("OUT_DIR is writable")
    };
    write("isa.rs", tables(&instructions));
    write("handlers.rs", handlers(&instructions, float, compact));
}

/// Handlers end in a tail call where LLVM makes one of a call in tail position: with optimisation, and
/// where all of a handler's arguments travel in registers. Elsewhere one `match` dispatches.
fn tail_dispatch() -> bool {
    let target = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let optimised = !matches!(env::var("OPT_LEVEL").as_deref(), Ok("0" | "1") | Err(_));
    let forced = env::var_os("CARGO_FEATURE_BECOME").is_some();
    let portable = env::var_os("CARGO_FEATURE_PORTABLE_DISPATCH").is_some()
        || env::var_os("CARGO_CFG_MIRI").is_some();
    let registers = matches!(target.as_str(), "x86_64" | "aarch64" | "riscv32" | "riscv64");
    !portable && registers && (optimised || forced)
}

/// Where size counts, what runs now and then is small as well.
fn optimised_for_size() -> bool {
    matches!(env::var("OPT_LEVEL").as_deref(), Ok("s" | "z"))
}

/// Microcontrollers without floats in 64 bits: flash is short, and speed of what is rare is not.
fn compact() -> bool {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let features = variable("CARGO_CFG_TARGET_FEATURE");
    let has_floats = features.split(',').any(|feature| matches!(feature, "d" | "vfp2" | "fp64"));
    let small = matches!(variable("CARGO_CFG_TARGET_ARCH").as_str(), "riscv32" | "arm");
    small && !has_floats
}

fn constant_name(mnemonic: &str) -> String {
    mnemonic.replace('.', "_").to_uppercase()
}

fn function_name(mnemonic: &str) -> String {
    format!("op_{}", mnemonic.replace('.', "_"))
}

fn tables(instructions: &[isa::Instruction]) -> String {
    let mut text = String::new();
    for (opcode, instruction) in instructions.iter().enumerate() {
        let name = constant_name(&instruction.mnemonic);
        writeln!(text, "pub(crate) const {name}: u16 = {opcode};").unwrap();
    }
    let count = instructions.len();
    writeln!(text, "pub(crate) const COUNT: usize = {count};").unwrap();
    // Tables are longer, but none of them is counted here.
    let units = instructions.iter().map(|instruction| instruction.units()).max().unwrap_or(0);
    writeln!(text, "pub(crate) const UNITS_MAX: usize = {units};").unwrap();
    writeln!(text, "pub(crate) static MNEMONICS: [&str; COUNT] = [").unwrap();
    for instruction in instructions {
        writeln!(text, "    {:?},", instruction.mnemonic).unwrap();
    }
    text += "];\n";
    text += &surcharges(instructions);
    let layout_of = |instruction: &isa::Instruction| -> String {
        instruction.operands.iter().map(|operand| operand.letter()).collect()
    };
    // Few layouts serve many instructions: flash is short.
    let mut layouts: Vec<(String, usize)> = Vec::new();
    writeln!(text, "static LAYOUT_OF: [u8; COUNT] = [").unwrap();
    for instruction in instructions {
        let layout = (layout_of(instruction), instruction.units());
        let index = layouts.iter().position(|known| *known == layout).unwrap_or(layouts.len());
        if index == layouts.len() {
            layouts.push(layout);
        }
        writeln!(text, "    {index},").unwrap();
    }
    // One text, and where each layout begins and ends in it.
    let all: String = layouts.iter().map(|(layout, _)| layout.as_str()).collect();
    let mut ends = vec![0];
    for (layout, _) in &layouts {
        ends.push(ends[ends.len() - 1] + layout.len());
    }
    let all_length = all.len();
    let units: Vec<usize> = layouts.iter().map(|(_, units)| *units).collect();
    let count = layouts.len();
    writeln!(text, "];\nstatic LAYOUTS: [u8; {all_length}] = *b{all:?};").unwrap();
    writeln!(text, "static LAYOUT_ENDS: [u8; {}] = {ends:?};", count + 1).unwrap();
    writeln!(text, "static LAYOUT_UNITS: [u8; {count}] = {units:?};").unwrap();
    text.push_str(
        "/// Letters of an instruction's operands: see `Operand::letter`.\n\
         pub(crate) fn layout(opcode: u16) -> &'static [u8] {\n\
             let end = |layout| LAYOUT_ENDS.get(layout).map_or(0, |&end| end as usize);\n\
             let layout = layout_of(opcode);\n\
             LAYOUTS.get(end(layout)..end(layout + 1)).unwrap_or(&[])\n\
         }\n\
         /// Units of an instruction, without a table's displacements.\n\
         pub(crate) fn units(opcode: u16) -> usize {\n\
             LAYOUT_UNITS.get(layout_of(opcode)).map_or(0, |&units| units as usize)\n\
         }\n\
         // None of these panics, which takes flash; opcodes are below `COUNT` wherever this is asked.\n\
         fn layout_of(opcode: u16) -> usize {\n\
             LAYOUT_OF.get(opcode as usize).map_or(0, |&layout| layout as usize)\n\
         }\n",
    );
    text
}

/// A function that finds the surcharge of an opcode in bytes of code: most instructions have none.
fn surcharges(instructions: &[isa::Instruction]) -> String {
    let mut text = String::from(
        "/// Fuel that an instruction takes beside its length, in bytes of code.\n\
         pub(crate) fn surcharge_bytes(opcode: u16) -> u32 {\nmatch opcode {\n",
    );
    let mut from = 0;
    while from < instructions.len() {
        let units = instructions[from].surcharge;
        let alike = instructions[from..].iter().take_while(|one| one.surcharge == units).count();
        if units > 0 {
            writeln!(text, "{from}..={} => {},", from + alike - 1, units * 2).unwrap();
        }
        from += alike;
    }
    text + "_ => 0,\n}\n}\n"
}

/// The body of each function, and which of them each instruction has.
#[derive(Default)]
struct Functions {
    names: Vec<String>,
    bodies: Vec<String>,
    of: Vec<usize>,
}

impl Functions {
    fn add(&mut self, name: String, body: String) {
        let known = self.names.iter().position(|known| *known == name);
        self.of.push(known.unwrap_or(self.names.len()));
        if known.is_none() {
            self.names.push(name);
            self.bodies.push(body);
        }
    }

    /// A function that others call, and no instruction has.
    fn define(&mut self, name: String, body: String) {
        if !self.names.contains(&name) {
            self.names.push(name);
            self.bodies.push(body);
        }
    }

    /// Calls of the functions by comparing `op` with where their rows end: for few rows, without a table. Integers come first.
    fn rows(&self, opcodes: &[usize]) -> String {
        let mut text = String::new();
        for (at, of) in self.of.iter().enumerate() {
            let name = &self.names[*of];
            match self.of.get(at + 1) {
                None => writeln!(text, "{name}(s)").unwrap(),
                Some(next) if next == of => {}
                Some(_) => {
                    let end = opcodes[at + 1];
                    writeln!(text, "if op < {end} {{ return {name}(s); }}").unwrap();
                }
            }
        }
        text
    }

    /// The arms of a `match` over opcodes.
    fn arms(&self, opcodes: &[usize]) -> String {
        let mut arms = String::new();
        for (function, name) in self.names.iter().enumerate() {
            let own: Vec<String> = opcodes
                .iter()
                .zip(&self.of)
                .filter(|&(_, of)| *of == function)
                .map(|(opcode, _)| opcode.to_string())
                .collect();
            if !own.is_empty() {
                writeln!(arms, "    {} => {name}(s),", own.join(" | ")).unwrap();
            }
        }
        arms
    }

    fn definitions(&self) -> String {
        let mut text = String::new();
        for (name, body) in self.names.iter().zip(&self.bodies) {
            let body = body.trim();
            // An instruction that only stops execution touches nothing.
            let text_of = if body.starts_with("Flow::") {
                format!("unsafe fn {name}(_: &mut State) -> Flow {{\n{body}\n}}")
            } else {
                let op = if body.contains("op ") { "let op = s.opcode();\n" } else { "" };
                format!(
                    "unsafe fn {name}(s: &mut State) -> Flow {{\n// SAFETY: see the module: the image was \
                     verified, so every operand lies in its frame.\nunsafe {{\n{op}{body}\n}}\n}}"
                )
            };
            writeln!(text, "#[inline(always)]\n{text_of}").unwrap();
        }
        text
    }
}

/// With `compact`, rare instructions share code.
fn handlers(instructions: &[isa::Instruction], float: bool, compact: bool) -> String {
    let mut functions = Functions::default();
    let mut cold = Functions::default();
    let mut cold_opcodes = Vec::new();
    for (opcode, instruction) in instructions.iter().enumerate() {
        let is_shared = compact && instruction.usage >= isa::Usage::Cool;
        let is_cold = compact && instruction.usage == isa::Usage::Cold;
        let shared = instruction.shared.as_ref().or(instruction.alike.as_ref());
        let (name, body) = match shared {
            _ if instruction.float && !float => ("op_float".into(), "Flow::Unreachable".into()),
            Some(shared) if is_shared => (shared.name.clone(), shared.body.clone()),
            _ if instruction.body == "Flow::Outer" => ("op_outer".into(), "Flow::Outer".into()),
            _ => (function_name(&instruction.mnemonic), instruction.body.clone()),
        };
        let (name, body) = match instruction.surcharge {
            0 => (name, body),
            _ if body.starts_with("Flow::") => (name, body),
            units => {
                let charged = format!(
                    "match {name}(s) {{ Flow::Next => s.surcharge({units}), flow => flow }}"
                );
                let name_charged = format!("{name}_for_{units}");
                let of = if is_cold { &mut cold } else { &mut functions };
                of.define(name, body);
                (name_charged, charged)
            }
        };
        if is_cold && !body.starts_with("Flow::") {
            cold.add(name, body);
            cold_opcodes.push(opcode);
            functions.add("op_cold".into(), "cold(s)".into());
        } else {
            functions.add(name, body);
        }
    }
    let mut text = functions.definitions() + &cold.definitions();
    let safety = "// SAFETY: as for each instruction.";
    if !cold_opcodes.is_empty() {
        let rows = cold.rows(&cold_opcodes);
        write!(
            text,
            "#[inline(always)]\nunsafe fn cold(s: &mut State) -> Flow {{\n{safety}\n\
             unsafe {{\nlet op = s.opcode();\n{rows}}}\n}}\n"
        )
        .unwrap();
    }
    let followers = if compact { Vec::new() } else { sequences::followers(instructions) };
    for (index, name) in functions.names.iter().enumerate() {
        let Some(opcode) = functions.of.iter().position(|of| *of == index) else { continue };
        let followers = followers.get(opcode).map_or("", String::as_str);
        writeln!(
            text,
            "#[cfg(tail_dispatch)]\nconst HANDLER_{index}: Handler = handler!({name}, {followers});"
        )
        .unwrap();
    }
    text.push_str("#[cfg(tail_dispatch)]\npub(super) static HANDLERS: [Handler; isa::COUNT] = [\n");
    for index in &functions.of {
        writeln!(text, "    HANDLER_{index},").unwrap();
    }
    let opcodes: Vec<usize> = (0..instructions.len()).collect();
    let arms = functions.arms(&opcodes);
    write!(
        text,
        "];\n#[cfg(not(tail_dispatch))]\n#[inline(always)]\n\
         pub(super) unsafe fn dispatch(opcode: u16, s: &mut State) -> Flow {{\n{safety}\n\
         unsafe {{ match opcode {{\n{arms}    _ => core::hint::unreachable_unchecked(),\n}} }}\n}}\n"
    )
    .unwrap();
    text
}
