//! Lua projects: their files become bytecode, which is linked with Lua's interpreter to a module.
//!
//! The interpreter, and the compiler as a program of this computer, are compiled once for as long as their source, the SDK and
//! clang stay the same, into the folder where their source lies. Lua's errors leave by longjmp, of which
//! [`unwinding`](super::unwinding) makes returns.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use crate::make::c_project::{NO_BUILTIN, SDK_FLAGS, SETJMP_FLAGS};
use crate::make::fence;
use crate::make::interpreter::{fingerprint, fit, installed, ready, run};
use crate::make::project_file::ProjectFile;
use crate::make::registry_tools::{LUA_SOURCES, RegistryTool};
use crate::make::sdk;
use crate::make::sources::gather;
use crate::make::toolchain::{Clang, Sysroot, command};

const LANGUAGE: &str = "Lua";

/// The file that a project begins with, unless `sources` says otherwise.
const ENTRY: &str = "src/main.lua";
/// The program as C, and compiled, in the project.
const PROGRAM: &str = "target/lua/program.c";
const OBJECT: &str = "target/lua/program.o";
/// The compiler of bytecode, in the engine's folder.
const COMPILER: &str = "compile";

/// The SDK's C files that the interpreter takes.
const SDK_PARTS: [&str; 4] = ["format.c", "heap.c", "setjmp.c", "tenure.c"];
/// The options of each C file.
const C_FLAGS: [&str; 11] = [
    "--target=wasm32-wasip1",
    "-nostdlib",
    "-Oz",
    "-g",
    "-mbulk-memory",
    "-fno-math-errno",
    "-ffunction-sections",
    "-fdata-sections",
    "-fvisibility=hidden",
    "-DNDEBUG",
    "-w",
];

/// The least that objects take: the libraries' own, before a script has any.
const OBJECTS_LEAST_BYTES: u32 = 12_288;
/// The room for variables in memory that C functions need which call one another as deep as Lua lets them.
const STACK_LEAST_BYTES: u32 = 10_240;

/// Compiles a Lua project; gives the module's path.
pub(crate) fn compile(folder: &Path, project: &ProjectFile) -> anyhow::Result<PathBuf> {
    if project.wasi.is_some() {
        bail!("Lua has no WASI of its own; leave [wasi] out, or name a `module`");
    }
    let mut project = project.clone();
    project.build.stack_bytes = project.build.stack_bytes.max(STACK_LEAST_BYTES);
    let clang = Clang::find()?;
    let engine = Engine::ready(&clang)?;
    fence::made_folder(folder, "target/lua")?;
    let entry = project.build.sources.first().map_or(Path::new(ENTRY), PathBuf::as_path);
    if !folder.join(entry).is_file() {
        bail!("there is no {} in {}", entry.display(), folder.display());
    }
    fence::file(folder, entry)?;
    let mut compiler = command(engine.folder.join(COMPILER));
    compiler.current_dir(folder).arg(PROGRAM);
    for (name, path) in files(folder, entry)? {
        compiler.arg(name).arg(path);
    }
    run(&mut compiler, "compile", folder, "Lua")?;

    let mut compiler = clang_for(&clang, &engine.sysroot, folder);
    run(compiler.args(["-c", PROGRAM, "-o", OBJECT]), "compile", folder, "clang")?;
    let wasm = fence::module_to_make(folder, project.name.as_str())?;
    let mut linker = command(&clang.linker.program);
    linker.current_dir(folder).args(["--no-entry", "--gc-sections", "--export=__heap_base"]);
    // Otherwise each exported function would begin with C's constructors and end with its streams.
    linker.arg("--export=__wasm_call_ctors");
    linker.args(project.link_arguments(clang.linker.exact_memory)).args(&project.build.flags);
    linker.arg(OBJECT).args(engine.objects());
    for folder in &engine.sysroot.library_folders {
        linker.arg("-L").arg(folder);
    }
    linker.args(["-lc", "-lm"]).arg(&engine.sysroot.builtins).args(["-o", &wasm]);
    run(&mut linker, "link", folder, "the linker")?;
    let wasm = folder.join(wasm);
    fit(&wasm, project.budget.memory_bytes, OBJECTS_LEAST_BYTES)?;
    Ok(wasm)
}

/// The files of a project, by the names that `require` finds them by, the one that it begins with first.
fn files(folder: &Path, entry: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let root = entry.parent().unwrap_or(Path::new(""));
    let is_lua = |path: &Path| path.extension().is_some_and(|end| end == "lua");
    let mut found = gather(folder, root, is_lua)?;
    found.retain(|path| path != entry);
    let named = std::iter::once(entry.to_path_buf()).chain(found).map(|path| {
        let below = path.strip_prefix(root).unwrap_or(&path).with_extension("");
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        (parts.join("."), path)
    });
    Ok(named.collect())
}

/// The compilers that are here, in a line.
///
/// # Errors
/// One is missing; the error says how to get it.
pub(crate) fn found() -> anyhow::Result<String> {
    let clang = Clang::find()?;
    let place = installed(RegistryTool::Lua, LANGUAGE)?;
    Sysroot::find(&clang, &place)?;
    let source = RegistryTool::Lua.version();
    Ok(format!("Lua 5.5.1 (lua-src {source}), by {}", clang.program.display()))
}

/// Compiles the interpreter, if it isn't yet.
///
/// # Errors
/// There is no clang or no library, or clang fails.
pub(crate) fn make_engine() -> anyhow::Result<()> {
    Engine::ready(&Clang::find()?).map(drop)
}

/// The interpreter and the compiler, compiled.
struct Engine {
    folder: PathBuf,
    sysroot: Sysroot,
}

impl Engine {
    /// The ones that fit this SDK and this clang; they are made if they aren't there.
    fn ready(clang: &Clang) -> anyhow::Result<Self> {
        let place = installed(RegistryTool::Lua, LANGUAGE)?;
        let sysroot = Sysroot::find(clang, &place)?;
        let fingerprint = fingerprint(clang, "lua/", (C_FLAGS, SETJMP_FLAGS));
        let sources = place.join(LUA_SOURCES);
        let folder = ready(&place, &fingerprint, |folder| make(clang, &sysroot, &sources, folder))?;
        Ok(Self { folder, sysroot })
    }

    /// What a program is linked with.
    fn objects(&self) -> Vec<PathBuf> {
        let parts = ["engine.c"].into_iter().chain(SDK_PARTS);
        parts.map(|part| self.folder.join(part).with_extension("o")).collect()
    }
}

/// Makes the interpreter's object files and the compiler in `folder`, of Lua's sources.
fn make(clang: &Clang, sysroot: &Sysroot, sources: &Path, folder: &Path) -> anyhow::Result<()> {
    sdk::install(folder)?;
    let sdk = Path::new(sdk::FOLDER);
    let mut host = command(&clang.program);
    host.current_dir(folder).args(["-O1", "-w"]).arg("-I").arg(sources);
    host.arg(sdk.join("lua/compile.c")).args(["-lm", "-o", COMPILER]);
    run(&mut host, "compile", folder, "clang, for programs of this computer,")?;
    let mut compiler = clang_for(clang, sysroot, folder);
    compiler.arg("-I").arg(sources).arg("-c").arg(sdk.join("lua/engine.c"));
    run(compiler.args(["-o", "engine.o"]), "compile", folder, "clang")?;
    for part in SDK_PARTS {
        let mut compiler = clang_for(clang, sysroot, folder);
        compiler.arg(NO_BUILTIN).arg("-c").arg(sdk.join("c/src").join(part));
        compiler.arg("-o").arg(Path::new(part).with_extension("o"));
        run(&mut compiler, "compile", folder, "clang")?;
    }
    Ok(())
}

/// Clang for a C file of the interpreter or of a program, in `folder`. All that is formatted is so by the SDK's own snprintf.
fn clang_for(clang: &Clang, sysroot: &Sysroot, folder: &Path) -> Command {
    let mut command = command(&clang.program);
    command.current_dir(folder).args(C_FLAGS).args(SETJMP_FLAGS).args(SDK_FLAGS);
    command.arg(format!("-I{}/c/standard", sdk::FOLDER));
    // The computer's own headers are for its own programs.
    command.arg("-nostdlibinc").arg("-isystem").arg(&sysroot.headers);
    command
}
