//! Native machines: from a project to a binary of a processor's own code that runs at any address.
//!
//! The program is linked twice, at two addresses that differ in their highest byte alone. Whatever
//! differs between the two are the words that hold addresses, which the device's loader changes when
//! it has chosen the machine's place. So neither compiler nor library need know of relocation: what
//! Rust's own library was compiled to will do.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use tenure_kernel::NativeParts;
use tenure_package::CodeKind;

use crate::make::c_project::{C_FLAGS, CPP_FLAGS, NO_BUILTIN, is_cpp, own_flags, sources};
use crate::make::fence;
use crate::make::project::name_of;
use crate::make::project_file::{Code, Language, Library, ProjectFile};
use crate::make::rust_project::compile_as;
use crate::make::sdk;
use crate::make::toolchain::{Clang, Rust, builtins, command, program_linker};
use crate::whole_file;

/// The prefix of an exported function's name in a native program.
const EXPORT_PREFIX: &str = "tenure_export_";
/// How far apart the two places are that a program is linked at.
const STEP: u32 = 0x1000_0000;
/// The place in a word of the byte that differs then, and by how much.
const STEP_BYTE: usize = 3;
const STEP_IN_BYTE: u8 = 0x10;

/// A program, linked.
#[derive(Clone, Debug)]
pub struct Program {
    /// At address 0, with all that debuggers want to know.
    pub file: Vec<u8>,
    /// At [`STEP`].
    moved: Vec<u8>,
}

/// The tools' words for a kind of code.
struct Target {
    rust: &'static str,
    clang: &'static [&'static str],
    emulation: &'static str,
    /// Code ends at a multiple of this, so that memory protection can divide memory there.
    code_alignment: u32,
}

fn target(kind: CodeKind) -> anyhow::Result<Target> {
    Ok(match kind {
        CodeKind::Rv32 => Target {
            rust: "riscv32imac-unknown-none-elf",
            clang: &["--target=riscv32-unknown-elf", "-march=rv32imc", "-mabi=ilp32", "-mno-relax"],
            emulation: "elf32lriscv",
            code_alignment: 16,
        },
        CodeKind::Thumb => Target {
            rust: "thumbv6m-none-eabi",
            clang: &["--target=thumbv6m-none-eabi"],
            emulation: "armelf",
            code_alignment: 1024,
        },
        CodeKind::WebAssembly => bail!("wasm is no native code"),
    })
}

/// Compiles and links the project in `folder`.
///
/// # Errors
/// It doesn't compile, or no compiler or linker is there; the error says which.
pub fn build(folder: &Path, project: &ProjectFile, kind: CodeKind) -> anyhow::Result<Program> {
    let target = target(kind)?;
    let output = fence::made_folder(folder, &format!("target/{kind}"))?;
    let objects = match project.written()? {
        Code::In(Language::Rust) => {
            let mut command = Rust::find(target.rust, folder)?.cargo_rustc(target.rust);
            vec![compile_as(&mut command, folder, "staticlib", &[])?]
        }
        Code::In(Language::C) => compile_c(folder, project, &target, &output)?,
        Code::In(
            Language::Zig | Language::AssemblyScript | Language::JavaScript | Language::Lua,
        ) => {
            bail!("native machines are written in Rust and C; leave {kind} out of `code`")
        }
        Code::Made(_) => bail!("`module` is WebAssembly; leave {kind} out of `code`"),
    };
    let link = |base: u32| link(&objects, project, &target, &output, base);
    Ok(Program { file: link(0)?, moved: link(STEP)? })
}

/// Compiles a C or C++ project; gives its object files, and the library of what the processor lacks.
fn compile_c(
    folder: &Path,
    project: &ProjectFile,
    target: &Target,
    output: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    ensure!(
        project.build.library == Library::Small,
        "native machines have no `library = \"standard\"`; leave {} out of `code`, or do without",
        project.code.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    );
    let clang = Clang::find()?;
    let sdk = sdk::c_sources(sdk::Beside::Small).map(PathBuf::from);
    let mut objects = Vec::new();
    for (number, source) in sources(folder, project)?.into_iter().chain(sdk).enumerate() {
        let object = output.join(format!("{number}.o"));
        let mut command = command(&clang.program);
        command.current_dir(folder).args(target.clang).args(C_FLAGS).arg(NO_BUILTIN);
        command.args(["-ffreestanding", "-ffunction-sections", "-fdata-sections"]);
        command.arg(format!("-I{}/c/include", sdk::FOLDER));
        if is_cpp(&source) {
            command.args(CPP_FLAGS);
        }
        command.args(own_flags(project));
        let object_path = std::path::absolute(&object).context("can't tell the current folder")?;
        let status = command.arg("-c").arg(&source).arg("-o").arg(&object_path).status();
        let status = status.with_context(|| format!("can't run {}", clang.program.display()))?;
        if !status.success() {
            bail!("{} doesn't compile; see what clang says above", name_of(folder));
        }
        objects.push(object);
    }
    objects.push(builtins(target.rust, output)?);
    Ok(objects)
}

fn link(
    objects: &[PathBuf],
    project: &ProjectFile,
    target: &Target,
    output: &Path,
    base: u32,
) -> anyhow::Result<Vec<u8>> {
    let (script, program) = (output.join("memory.x"), output.join(format!("{base:x}.elf")));
    whole_file::write(&script, linker_script(project, target, base))
        .with_context(|| format!("can't write {}", script.display()))?;
    let mut command = program_linker()?;
    command.args(["-m", target.emulation, "--gc-sections", "--no-relax", "--build-id=none", "-e0"]);
    command.arg(format!("--undefined-glob={EXPORT_PREFIX}*"));
    command.arg("-T").arg(&script).args(objects).arg("-o").arg(&program);
    let status = command.status().context("can't run the linker")?;
    if !status.success() {
        bail!("the native program can't be linked; see what the linker says above");
    }
    fs::read(&program).with_context(|| format!("can't read {}", program.display()))
}

/// Code, above it the stack, above that variables: what overruns the stack meets the code, which the
/// machine can't write to.
fn linker_script(project: &ProjectFile, target: &Target, base: u32) -> String {
    let (alignment, stack) =
        (target.code_alignment, project.build.stack_bytes.max(16).next_multiple_of(16));
    format!(
        "SECTIONS {{
    . = {base:#x};
    .code : {{
        KEEP(*(.text.{EXPORT_PREFIX}*)) *(.text .text.*) *(.rodata .rodata.* .srodata .srodata.*) . = ALIGN({alignment});
    }}
    .constructors : {{ *(.init_array .init_array.* .ctors .ctors.*) }}
    . = . + {stack};
    .data : {{
        tenure_memory_end = .; LONG(0) *(.data .data.* .sdata .sdata.*) . = ALIGN(16);
    }}
    .bss (NOLOAD) : {{ *(.sbss .sbss.* .bss .bss.* COMMON) . = ALIGN(16); }}
    __heap_base = .;
    /DISCARD/ : {{ *(.eh_frame .eh_frame_hdr .ARM.exidx .ARM.exidx.*) }}
}}
"
    )
}

/// The binary that a device loads.
///
/// # Errors
/// The program has what native machines can't have.
pub fn binary(program: &Program, kind: CodeKind) -> anyhow::Result<Vec<u8>> {
    let file = object::File::parse(&*program.file).context("what the linker wrote")?;
    let moved = object::File::parse(&*program.moved).context("what the linker wrote")?;
    let section = |file: &object::File<'_>, name: &str| -> anyhow::Result<(u32, u32, Vec<u8>)> {
        let Some(section) = file.section_by_name(name) else { return Ok((0, 0, Vec::new())) };
        let address = u32::try_from(section.address())?;
        Ok((address, u32::try_from(section.size())?, section.data()?.to_vec()))
    };
    ensure!(
        section(&file, ".constructors")?.1 == 0,
        "the program has objects that are made before it starts, which native machines can't have; \
         make them in `entry`"
    );
    let (code_at, code_bytes, code) = section(&file, ".code")?;
    let (data_at, data_bytes, data) = section(&file, ".data")?;
    let (bss_at, bss_bytes, _) = section(&file, ".bss")?;
    ensure!(code_at == 0 && code_bytes > 0, "the program has no code; it must export functions");
    let mut relocations = differences(&code, &section(&moved, ".code")?.2, 0)?;
    relocations.extend(differences(&data, &section(&moved, ".data")?.2, data_at)?);
    let zero_bytes = match bss_bytes {
        0 => 0,
        bytes => bss_at + bytes - (data_at + data_bytes),
    };
    let mut exports: Vec<(String, u32)> = file
        .symbols()
        // A variable in a function is named after that.
        .filter(|symbol| symbol.is_global())
        .filter_map(|symbol| {
            let name = symbol.name().ok()?.strip_prefix(EXPORT_PREFIX)?;
            // A Thumb function's address is odd.
            Some((name.to_owned(), u32::try_from(symbol.address()).ok()? & !1))
        })
        .collect();
    exports.sort();
    exports.dedup();
    let stack_bytes = data_at - code_bytes;
    let parts = NativeParts { kind, code, stack_bytes, data, zero_bytes, relocations, exports };
    parts.to_bytes().context("what the linker made")
}

/// Where words differ between what was linked at 0 and what was linked at [`STEP`].
fn differences(here: &[u8], moved: &[u8], at: u32) -> anyhow::Result<Vec<u32>> {
    ensure!(here.len() == moved.len(), "the linker made two programs of different lengths");
    let mut offsets = Vec::new();
    for (place, (one, other)) in here.iter().zip(moved).enumerate() {
        if one == other {
            continue;
        }
        let word = place.checked_sub(STEP_BYTE);
        let (Some(word), true) = (word, other.wrapping_sub(*one) == STEP_IN_BYTE) else {
            bail!("the program holds an address in a form that can't be moved, at {place:#x}");
        };
        offsets.push(at + u32::try_from(word)?);
    }
    Ok(offsets)
}
