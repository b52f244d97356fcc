//! Generates the instruction set's tables and handlers, and chooses the dispatcher.

use std::{env, fmt::Write, fs, path::Path};

mod isa;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-check-cfg=cfg(tail_dispatch)");
    // For tests on cores that would not need it: RUSTFLAGS="--cfg strict_alignment".
    println!("cargo::rustc-check-cfg=cfg(strict_alignment)");
    if tail_dispatch() {
        println!("cargo::rustc-cfg=tail_dispatch");
    }
    println!("cargo::rustc-check-cfg=cfg(unmetered)");
    println!("cargo::rustc-check-cfg=cfg(compact)");
    let compact = compact();
    if compact {
        println!("cargo::rustc-cfg=compact");
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
    let layout_of = |instruction: &isa::Instruction| -> String {
        instruction.operands.iter().map(|operand| operand.letter()).collect()
    };
    // Few layouts serve many instructions: flash is short.
    let mut layouts: Vec<(String, usize)> = Vec::new();
    writeln!(text, "];\nstatic LAYOUT_OF: [u8; COUNT] = [").unwrap();
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
    let units: Vec<usize> = layouts.iter().map(|(_, units)| *units).collect();
    let count = layouts.len();
    writeln!(text, "];\nstatic LAYOUTS: &str = {all:?};").unwrap();
    writeln!(text, "static LAYOUT_ENDS: [u8; {}] = {ends:?};", count + 1).unwrap();
    writeln!(text, "static LAYOUT_UNITS: [u8; {count}] = {units:?};").unwrap();
    text.push_str(
        "/// Letters of an instruction's operands: see `Operand::letter`.\n\
         pub(crate) fn layout(opcode: u16) -> &'static str {\n\
             let layout = LAYOUT_OF[opcode as usize] as usize;\n\
             &LAYOUTS[LAYOUT_ENDS[layout] as usize..LAYOUT_ENDS[layout + 1] as usize]\n\
         }\n\
         /// Units of an instruction, without a table's displacements.\n\
         pub(crate) fn units(opcode: u16) -> usize { LAYOUT_UNITS[LAYOUT_OF[opcode as usize] as usize] as usize }\n",
    );
    text
}

fn handlers(instructions: &[isa::Instruction], float: bool, compact: bool) -> String {
    let mut text = String::new();
    // Each function once, and which of them an instruction has.
    let mut functions: Vec<(String, String)> = Vec::new();
    let mut function_of = Vec::new();
    for instruction in instructions {
        let (name, body) = match &instruction.shared {
            _ if instruction.float && !float => ("op_float".into(), "Flow::Unreachable".into()),
            Some(shared) if compact => (shared.name.clone(), shared.body.clone()),
            _ if instruction.body == "Flow::Outer" => ("op_outer".into(), "Flow::Outer".into()),
            _ => (function_name(&instruction.mnemonic), instruction.body.clone()),
        };
        let known = functions.iter().position(|(known, _)| *known == name);
        function_of.push(known.unwrap_or(functions.len()));
        if known.is_none() {
            functions.push((name, body));
        }
    }
    for (name, body) in &functions {
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
    for (index, (name, _)) in functions.iter().enumerate() {
        writeln!(text, "#[cfg(tail_dispatch)]\nconst HANDLER_{index}: Handler = handler!({name});")
            .unwrap();
    }
    text.push_str("#[cfg(tail_dispatch)]\npub(super) static HANDLERS: [Handler; isa::COUNT] = [\n");
    for index in &function_of {
        writeln!(text, "    HANDLER_{index},").unwrap();
    }
    text.push_str("];\n#[cfg(not(tail_dispatch))]\n#[inline(always)]\npub(super) unsafe fn dispatch(opcode: u16, s: &mut State) -> Flow {\n// SAFETY: as for each instruction.\nunsafe { match opcode {\n");
    for (function, (name, _)) in functions.iter().enumerate() {
        let opcodes: Vec<String> = (0..instructions.len())
            .filter(|&opcode| function_of[opcode] == function)
            .map(|opcode| opcode.to_string())
            .collect();
        writeln!(text, "    {} => {name}(s),", opcodes.join(" | ")).unwrap();
    }
    text.push_str("    _ => core::hint::unreachable_unchecked(),\n} }\n}\n");
    text
}
