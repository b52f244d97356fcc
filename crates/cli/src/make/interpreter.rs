//! What the languages share whose scripts are linked with an interpreter: it is compiled once, and the module gets all of its
//! memory.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use wasmparser::{Operator, Parser, Payload};

use crate::make::assembly_script_project::with_exact_memory;
use crate::make::project::name_of;
use crate::make::registry_tools::RegistryTool;
use crate::make::sdk;
use crate::make::toolchain::Clang;
use crate::whole_file;

/// Memory is a multiple of it.
const STEP_BYTES: u32 = 16;

/// The folder of what registries have of `language`.
///
/// # Errors
/// It isn't installed; the error says how it is.
pub(super) fn installed(tool: RegistryTool, language: &str) -> anyhow::Result<PathBuf> {
    tool.installed().with_context(|| {
        let name = language.to_lowercase();
        format!("there is no {language} here; run: tenure toolchain install {name}")
    })?;
    let place = tool.place()?;
    std::path::absolute(&place).with_context(|| place.display().to_string())
}

/// The folder below `place` of the interpreter with that fingerprint, which `make` fills if it isn't there.
///
/// # Errors
/// The folder can't be written, or `make` fails.
pub(super) fn ready(
    place: &Path,
    fingerprint: &str,
    make: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let folder = place.join(format!("engine-{fingerprint}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    // Who else builds at the same time waits, and finds it made.
    let place_error = || format!("can't write to {}", place.display());
    let lock = fs::File::create(place.join("engine.lock")).with_context(place_error)?;
    lock.lock().with_context(place_error)?;
    if !folder.is_dir() {
        let draft = tempfile::tempdir_in(place).with_context(place_error)?;
        make(draft.path())?;
        fs::rename(draft.path(), &folder).with_context(place_error)?;
    }
    Ok(folder)
}

/// Changes with the SDK, its files below `sdk_folder`, the flags and the compiler. The interpreter's source has its version in
/// the name of its folder.
pub(super) fn fingerprint(clang: &Clang, sdk_folder: &str, flags: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    sdk::hash(&mut hasher);
    sdk::hash_below(sdk_folder, &mut hasher);
    (flags, &clang.program, &clang.linker.program).hash(&mut hasher);
    let modified = fs::metadata(&clang.program).and_then(|metadata| metadata.modified());
    modified.ok().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// How the SDK's own compilers end that have said by themselves, with its place, what is wrong with a project.
const MISTAKE: i32 = 3;

/// Runs a tool that is to do `what` with the project or interpreter in `folder`.
///
/// # Errors
/// It can't be run, or fails.
pub(super) fn run(
    command: &mut Command,
    what: &str,
    folder: &Path,
    tool: &str,
) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("can't run {tool}"))?;
    if status.code() == Some(MISTAKE) {
        bail!("{} doesn't {what}", name_of(folder));
    }
    if !status.success() {
        bail!("{} doesn't {what}; see what {tool} says above", name_of(folder));
    }
    Ok(())
}

/// Gives the module at `path` all of its memory at once, in which the interpreter's objects, of which there are so many bytes at
/// least, lie behind the constants.
///
/// # Errors
/// The module can't be read or written, or has no room for them.
pub(super) fn fit(path: &Path, memory_bytes: u32, objects_least: u32) -> anyhow::Result<()> {
    let bytes = memory_bytes / STEP_BYTES * STEP_BYTES;
    let module = fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    let least = heap_base(&module)?.context("the module has no heap")? + objects_least;
    ensure!(
        least <= bytes,
        "the engine's constants, its stack, the script and the least room for objects take {least} bytes of memory, but \
         tenure.toml asks for {bytes}; set memory_bytes in [budget] to more"
    );
    let module = with_exact_memory(&module, bytes)?;
    whole_file::write(path, module).with_context(|| format!("can't write {}", path.display()))
}

/// Where a module's constants end, by the linker's word.
fn heap_base(module: &[u8]) -> anyhow::Result<Option<u32>> {
    let (mut values, mut index) = (Vec::new(), None);
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::GlobalSection(globals) => {
                for global in globals {
                    let mut operators = global?.init_expr.get_operators_reader();
                    values.push(match operators.read()? {
                        Operator::I32Const { value } => Some(value as u32),
                        _ => None,
                    });
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    if export.name == "__heap_base" {
                        index = Some(export.index as usize);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(index.and_then(|index| values.get(index).copied().flatten()))
}
