//! Compiled code of packages: from a machine's wasm, by way of its image and C, to a processor's own code.
//!
//! The module is hostile as far as this computer is concerned: a C compiler runs for it with bounded time
//! and memory, on text that this project writes. Devices don't trust what comes out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use tenure_compile::{C_FLAGS, Options, to_c};
use tenure_kernel::{COMPILED_STACK_BYTES, CompiledParts, host_functions};
use tenure_package::CodeKind;
use tenure_vm::{Image, Limits, translate};

use crate::make::toolchain::{Clang, builtins, command, program_linker};
use crate::whole_file;

/// Bounds of the C compiler: seconds of processor time, and kilobytes of address space.
const SECONDS_MAX: u32 = 120;
const KILOBYTES_MAX: u32 = 3 << 20;

/// Bytes of native stack on which calls nest, and that one function may take on top. The rest of what devices
/// have is for the entry, and for the arithmetic that the processor can't do.
const NESTING_BYTES: u32 = 1024;
const FRAME_BYTES_MAX: u32 = 448;
const REST_BYTES: u32 = 448;
const _: () =
    assert!((NESTING_BYTES + FRAME_BYTES_MAX + REST_BYTES) as usize <= COMPILED_STACK_BYTES);

/// The entry's name.
const ENTRY: &str = "tenure_compiled";
/// How far apart the two places are that the code is linked at; it must be the same at both.
const STEP: u32 = 0x1000_0000;

/// A kind of processor, in the words of the tools.
struct Target {
    rust: &'static str,
    clang: &'static [&'static str],
    emulation: &'static str,
}

fn target(kind: CodeKind) -> anyhow::Result<Target> {
    Ok(match kind {
        CodeKind::Rv32 => Target {
            rust: "riscv32imac-unknown-none-elf",
            // Cores behind a wall read words anywhere.
            clang: &[
                "--target=riscv32-unknown-elf",
                "-march=rv32imac",
                "-mabi=ilp32",
                "-mcmodel=medany",
                "-mno-strict-align",
                "-mno-relax",
            ],
            emulation: "elf32lriscv",
        },
        // The cores behind a wall are ARMv7-M's; they read words anywhere too.
        CodeKind::Thumb => Target {
            rust: "thumbv7m-none-eabi",
            clang: &["--target=thumbv7m-none-eabi", "-mfloat-abi=soft", "-munaligned-access"],
            emulation: "armelf",
        },
        CodeKind::WebAssembly => bail!("wasm is compiled for rv32 and thumb, and not for {kind}"),
    })
}

/// Compiles `wasm` for processors of that kind; files that come up on the way lie in `folder`, which is there.
///
/// # Errors
/// The module can't be compiled within bounds, or no compiler is there; the error says which.
pub(crate) fn compile(wasm: &[u8], kind: CodeKind, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let target = target(kind)?;
    let mut image = Vec::new();
    translate(wasm, &host_functions(), &Limits::default(), &mut image)
        .context("boards don't run this code")?;
    let image = Image::parse(&image).map_err(|error| anyhow::anyhow!("its image: {error}"))?;
    let mut options =
        Options { entry: ENTRY.into(), stack_bytes: NESTING_BYTES, ..Options::default() };
    // Functions with too much on the native stack are left to the interpreter.
    loop {
        let text = to_c(&image, &options)?;
        let deep = compile_c(&text, &target, folder)?;
        if deep.is_subset(&options.interpreted) {
            break;
        }
        options.interpreted.extend(deep);
    }
    let library = builtins(target.rust, folder)?;
    let (here, moved) =
        (link(0, &target, folder, &library)?, link(STEP, &target, folder, &library)?);
    let (code, entry) = code_of(&here)?;
    ensure!(code == code_of(&moved)?.0, "the compiled code depends on its address");
    let parts = CompiledParts { kind, module_checksum: image.module_checksum(), entry, code };
    parts.to_bytes().context("the compiled code")
}

/// Compiles C to `compiled.o`; returns the functions whose frames are too large.
fn compile_c(text: &str, target: &Target, folder: &Path) -> anyhow::Result<BTreeSet<u32>> {
    let clang = Clang::find()?;
    whole_file::write(&folder.join("compiled.c"), text)
        .with_context(|| format!("can't write to {}", folder.display()))?;
    let mut command = bounded(&clang.program, SECONDS_MAX, KILOBYTES_MAX);
    command.current_dir(folder).args(target.clang);
    command.args(C_FLAGS).args(["-O2", "-w", "-fpie", "-fvisibility=hidden"]);
    command.args(["-ffunction-sections", "-fstack-usage"]);
    command.args(["-c", "compiled.c", "-o", "compiled.o"]).stdin(Stdio::null());
    let output = command.output().with_context(|| "can't run sh, which bounds the C compiler")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} can't compile the module in {SECONDS_MAX} seconds and {} MB; leave `--compile` out. It says: {}",
            clang.program.display(),
            KILOBYTES_MAX >> 10,
            said.lines().next().unwrap_or("nothing")
        );
    }
    let usage = fs::read_to_string(folder.join("compiled.su"));
    Ok(deep_functions(&usage.context("what clang says of its stacks")?))
}

/// The command that runs `program`, with so many seconds of processor time and kilobytes of address space.
fn bounded(program: &Path, seconds: u32, kilobytes: u32) -> Command {
    let mut command = command("sh");
    let bounds = format!("ulimit -t {seconds} && ulimit -v {kilobytes} && exec \"$@\"");
    command.args(["-c", &bounds, "sh"]).arg(program);
    command
}

/// The functions of the module that take too much stack, by lines of `FILE:LINE:NAME<tab>BYTES<tab>KIND`.
fn deep_functions(usage: &str) -> BTreeSet<u32> {
    let too_large = |line: &str| {
        let mut columns = line.split('\t');
        let name = columns.next()?.rsplit(':').next()?;
        let bytes: u32 = columns.next()?.parse().ok()?;
        (bytes > FRAME_BYTES_MAX).then(|| name.strip_prefix('f')?.parse().ok()).flatten()
    };
    usage.lines().filter_map(too_large).collect()
}

fn link(base: u32, target: &Target, folder: &Path, library: &Path) -> anyhow::Result<Vec<u8>> {
    let program = format!("{base:x}.elf");
    let script = format!(
        "SECTIONS {{
    . = {base:#x};
    .code : {{ KEEP(*(.text.{ENTRY})) *(.text .text.*) *(.rodata .rodata.* .srodata .srodata.*) }}
    .variables : {{ *(.data .data.* .sdata .sdata.* .bss .bss.* .sbss .sbss.* COMMON .got .got.*) }}
    ASSERT(SIZEOF(.variables) == 0, \"compiled code has no variables\")
    /DISCARD/ : {{ *(.eh_frame .eh_frame_hdr .ARM.exidx .ARM.exidx.*) }}
}}
"
    );
    whole_file::write(&folder.join("compiled.x"), script)
        .with_context(|| format!("can't write to {}", folder.display()))?;
    let mut command = program_linker()?;
    command.current_dir(folder).args(["-m", target.emulation, "--gc-sections", "--no-relax"]);
    command.args(["--build-id=none", "-e", ENTRY, "-T", "compiled.x", "compiled.o"]);
    let library = std::path::absolute(library).context("can't tell the current folder")?;
    let status = command.arg(library).args(["-o", &program]).status();
    if !status.context("can't run the linker")?.success() {
        bail!("the compiled code can't be linked; see what the linker says above");
    }
    let path = folder.join(program);
    fs::read(&path).with_context(|| format!("can't read {}", path.display()))
}

/// Code with its constants, and where its entry is in it.
fn code_of(program: &[u8]) -> anyhow::Result<(Vec<u8>, u32)> {
    let file = object::File::parse(program).context("what the linker wrote")?;
    let section = file.section_by_name(".code").context("the compiled code isn't there")?;
    let entry = file.symbols().find(|symbol| symbol.name() == Ok(ENTRY));
    let entry = entry.context("the compiled code has no entry")?.address() - section.address();
    Ok((section.data()?.to_vec(), u32::try_from(entry)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_large_frames_are_found_by_their_numbers() {
        let usage = "compiled.c:9:f3\t449\tstatic\ncompiled.c:10:f4\t448\tstatic\n\
                     compiled.c:11:tenure_compiled\t4000\tstatic\ncompiled.c:12:f12\t600\tdynamic\n";
        assert_eq!(deep_functions(usage), BTreeSet::from([3, 12]));
    }

    #[test]
    fn compiler_that_takes_too_much_time_or_memory_is_ended() {
        let endless = ["-c", "while :; do :; done"];
        let status = bounded(Path::new("sh"), 1, KILOBYTES_MAX).args(endless).status().unwrap();
        assert!(!status.success() && status.code().is_none(), "a signal ends it: {status}");
        // It keeps a line that never ends.
        let line = ["-c", "tail -n 1 /dev/zero"];
        let output = bounded(Path::new("sh"), SECONDS_MAX, 64 << 10).args(line).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("memory"), "{said}");
        let modest =
            bounded(Path::new("sh"), SECONDS_MAX, KILOBYTES_MAX).args(["-c", ":"]).status();
        assert!(modest.unwrap().success());
    }
}
