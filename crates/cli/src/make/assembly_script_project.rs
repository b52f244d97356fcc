//! AssemblyScript projects: `asc` makes a module of them, and says which byte comes of which line.
//!
//! Its memory has whole pages of 64 KiB. A machine that asks for less is told how much it has (`--lowMemoryLimit`), by which
//! it never asks for more, and its memory is made that long.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use wasmparser::{BinaryReaderError, DataKind, Operator, Parser, Payload};

use crate::make::fence;
use crate::make::module::{append_number, append_section};
use crate::make::project::name_of;
use crate::make::project_file::ProjectFile;
use crate::make::registry_tools::asc;
use crate::make::sdk;
use crate::make::source_map::LineMap;
use crate::whole_file;

/// The file that a project begins with, unless `sources` says otherwise.
const SOURCE: &str = "assembly/index.ts";
/// A page of memory (wasm spec §4.2.8).
const PAGE_BYTES: u32 = 65_536;
/// The step in which `asc` allocates.
const STEP_BYTES: u32 = 16;
/// Bytes of memory for the heap's own tables, and a first block.
const HEAP_LEAST_BYTES: u32 = 2048;

/// The parts of a browser that AssemblyScript's library calls, and the SDK's functions for them: the seed of Math.random, and
/// the console.
const ALIASES: [&str; 3] = [
    "seed=~lib/tenure/seed",
    "console=~lib/tenure/consoleOfDevice",
    "trace=~lib/tenure/traceOfDevice",
];

/// Compiles an AssemblyScript project; gives the module's path.
pub(crate) fn compile(folder: &Path, project: &ProjectFile) -> anyhow::Result<PathBuf> {
    if project.wasi.is_some() {
        bail!("AssemblyScript has no WASI of its own; leave [wasi] out, or name a `module`");
    }
    let wasm = fence::module_to_make(folder, project.name.as_str())?;
    if project.build.sources.is_empty() {
        fence::file(folder, Path::new(SOURCE))?;
    }
    let mut asc = asc(Some(folder))?;
    asc.current_dir(folder);
    match project.build.sources.as_slice() {
        [] => asc.arg(SOURCE),
        sources => asc.args(sources),
    };
    asc.args(["--lib", &format!("{}/assemblyscript", sdk::FOLDER), "--outFile", &wasm]);
    // Names and lines go to NAME.debug.wasm, and the package doesn't carry them.
    asc.args(["-Oz", "--debug", "--sourceMap", "--noColors"]);
    let stack_bytes = project.build.stack_bytes.next_multiple_of(STEP_BYTES);
    asc.args(["--stackSize", &stack_bytes.to_string()]);
    for alias in ALIASES {
        asc.args(["--use", alias]);
    }
    let asked = project.budget.memory_bytes;
    let exact = (asked < PAGE_BYTES).then_some(asked - asked % STEP_BYTES);
    if let Some(bytes) = exact {
        asc.args(["--lowMemoryLimit", &bytes.to_string()]);
    }
    let status = asc.args(&project.build.flags).status().context("can't run asc")?;
    if !status.success() {
        bail!("{} doesn't compile; see what asc says above", name_of(folder));
    }
    let wasm = folder.join(wasm);
    let made = Made::read(&wasm).with_context(|| wasm.display().to_string())?;
    let made = match exact {
        Some(bytes) => made.with_memory_of(bytes, stack_bytes)?,
        None => made,
    };
    made.write(&wasm).with_context(|| format!("can't write {}", wasm.display()))?;
    Ok(wasm)
}

/// A module and the lines that it comes of.
struct Made {
    module: Vec<u8>,
    lines: LineMap,
}

impl Made {
    /// Reads a module, and the source map that lies beside it.
    fn read(path: &Path) -> anyhow::Result<Self> {
        let mut map = path.as_os_str().to_owned();
        map.push(".map");
        Ok(Self { module: fs::read(path)?, lines: LineMap::from_json(&fs::read(map)?)? })
    }

    /// The same with a memory of `bytes` instead of a page, of which `stack_bytes` are the stack's.
    fn with_memory_of(self, bytes: u32, stack_bytes: u32) -> anyhow::Result<Self> {
        let least = data_end(&self.module)? + stack_bytes + HEAP_LEAST_BYTES;
        ensure!(
            least <= bytes,
            "the code's constants, its stack and the least heap take {least} bytes of memory, but tenure.toml asks for \
             {bytes}; set memory_bytes in [budget] to more, or build.stack_bytes lower"
        );
        let module = with_exact_memory(&self.module, bytes)?;
        let further = code_at(&module)?.saturating_sub(code_at(&self.module)?);
        Ok(Self { module, lines: self.lines.further(further) })
    }

    /// Writes the module with its lines.
    fn write(mut self, path: &Path) -> std::io::Result<()> {
        self.lines.append_to(&mut self.module);
        whole_file::write(path, self.module)
    }
}

/// A module with a memory of so many bytes, and no more.
pub(crate) fn with_exact_memory(whole: &[u8], bytes: u32) -> Result<Vec<u8>, BinaryReaderError> {
    let mut module = whole.get(..8).unwrap_or_default().to_vec();
    for payload in Parser::new(0).parse_all(whole) {
        let payload = payload?;
        let Some((id, range)) = payload.as_section() else { continue };
        match payload {
            Payload::MemorySection(_) => {
                append_section(&mut module, id, &exact_memory_section(bytes));
            }
            _ => append_section(&mut module, id, whole.get(range).unwrap_or_default()),
        }
    }
    Ok(module)
}

/// A memory of so many pages of one byte, and no more (custom page sizes, "Binary format").
fn exact_memory_section(bytes: u32) -> Vec<u8> {
    const HAS_MAXIMUM_AND_PAGE_SIZE: u8 = 0x01 | 0x08;
    let mut content = vec![1, HAS_MAXIMUM_AND_PAGE_SIZE];
    append_number(&mut content, bytes as usize);
    append_number(&mut content, bytes as usize);
    content.push(0);
    content
}

/// Where the last of a module's constants ends in memory.
fn data_end(module: &[u8]) -> Result<u32, BinaryReaderError> {
    let mut end = 0;
    for payload in Parser::new(0).parse_all(module) {
        let Payload::DataSection(segments) = payload? else { continue };
        for segment in segments {
            let segment = segment?;
            let DataKind::Active { offset_expr, .. } = segment.kind else { continue };
            if let Operator::I32Const { value } = offset_expr.get_operators_reader().read()? {
                end = end.max((value as u32).saturating_add(segment.data.len() as u32));
            }
        }
    }
    Ok(end)
}

/// Where the content of a module's code section begins.
fn code_at(module: &[u8]) -> Result<u32, BinaryReaderError> {
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CodeSectionStart { range, .. } = payload? {
            return Ok(range.start as u32);
        }
    }
    Ok(0)
}
