//! JavaScript projects: their files become bytecode of MicroQuickJS, which is linked with its engine to a module.
//!
//! The engine is compiled once for as long as its source, the SDK and clang stay the same, into the folder where its source
//! lies. `build.cjs` of the SDK makes the bytecode, by Node.js.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::make::fence;
use crate::make::interpreter::{fingerprint, fit, installed, ready, run};
use crate::make::javascript_mends::{MENDS, mend};
use crate::make::project_file::ProjectFile;
use crate::make::registry_tools::{ENGINE_SOURCES, RegistryTool, TYPESCRIPT};
use crate::make::sdk;
use crate::make::toolchain::{Clang, command, neutral};
use crate::whole_file;

const LANGUAGE: &str = "JavaScript";

/// The files that a project may begin with, unless `sources` says otherwise.
const ENTRIES: [&str; 2] = ["src/main.js", "src/main.ts"];
/// The program as C, and compiled, in the project.
const PROGRAM: &str = "target/javascript/program.c";
const OBJECT: &str = "target/javascript/program.o";

/// The engine's files beside its main one, and the SDK's C files that it takes.
const ENGINE_PARTS: [&str; 3] = ["cutils.c", "dtoa.c", "libm.c"];
const SDK_PARTS: [&str; 4] = ["format.c", "heap.c", "string.c", "tenure.c"];
/// The compiler of bytecode, as WebAssembly for Node.js.
const COMPILER: &str = "compile.wasm";

/// The options of each C file. The engine prints where it is debugged alone, and clang would make calls of themselves of
/// the SDK's memcpy and the like.
const C_FLAGS: [&str; 13] = [
    "--target=wasm32",
    "-nostdlib",
    "-Oz",
    "-g",
    "-mbulk-memory",
    "-fno-builtin",
    "-fno-math-errno",
    "-ffunction-sections",
    "-fdata-sections",
    "-fvisibility=hidden",
    "-DNDEBUG",
    "-Dprintf(...)=0",
    "-w",
];

/// The least that objects take: 3,540 bytes are the engine's own, before a script has any.
const OBJECTS_LEAST_BYTES: u32 = 6144;
/// The stack of the compiler.
const COMPILER_STACK_BYTES: u32 = 1 << 20;

/// Compiles a JavaScript project; gives the module's path.
pub(crate) fn compile(folder: &Path, project: &ProjectFile) -> anyhow::Result<PathBuf> {
    if project.wasi.is_some() {
        bail!("JavaScript has no WASI of its own; leave [wasi] out, or name a `module`");
    }
    let clang = Clang::find()?;
    let engine = Engine::ready(&clang)?;
    fence::made_folder(folder, "target/javascript")?;
    let entry = match project.build.sources.first() {
        Some(source) => source.as_path(),
        None => {
            ENTRIES.iter().map(Path::new).find(|entry| folder.join(entry).is_file()).with_context(
                || format!("there is no {} in {}", ENTRIES.join(" and no "), folder.display()),
            )?
        }
    };
    fence::file(folder, entry)?;
    let mut node = command("node");
    node.current_dir(folder).arg(format!("{}/javascript/build.cjs", sdk::FOLDER)).arg(PROGRAM);
    node.arg(entry).arg(&engine.typescript).arg(engine.folder.join(COMPILER));
    run(&mut node, "compile", folder, "Node.js")?;

    let mut compiler = clang_for(&clang, folder);
    run(compiler.args(["-c", PROGRAM, "-o", OBJECT]), "compile", folder, "clang")?;
    let wasm = fence::module_to_make(folder, project.name.as_str())?;
    let mut linker = command(&clang.linker.program);
    linker.current_dir(folder).args(["--no-entry", "--gc-sections", "--export=__heap_base"]);
    linker.args(project.link_arguments(clang.linker.exact_memory)).args(&project.build.flags);
    linker.arg(OBJECT).args(engine.objects()).args(["-o", &wasm]);
    run(&mut linker, "link", folder, "the linker")?;
    let wasm = folder.join(wasm);
    fit(&wasm, project.budget.memory_bytes, OBJECTS_LEAST_BYTES)?;
    Ok(wasm)
}

/// The compilers that are here, in a line.
///
/// # Errors
/// One is missing; the error says how to get it.
pub(crate) fn found() -> anyhow::Result<String> {
    let clang = Clang::find()?;
    installed(RegistryTool::JavaScript, LANGUAGE)?;
    let node = neutral("node").arg("--version").stdin(Stdio::null()).output();
    let node = node.context("there is no Node.js; on Debian run: apt-get install nodejs npm")?;
    let version = String::from_utf8_lossy(&node.stdout).trim().to_owned();
    let source = RegistryTool::JavaScript.version();
    Ok(format!(
        "MicroQuickJS (rmquickjs-sys {source}), by {} and Node.js {version}",
        clang.program.display()
    ))
}

/// Compiles the engine, if it isn't yet.
///
/// # Errors
/// There is no clang, or it fails.
pub(crate) fn make_engine() -> anyhow::Result<()> {
    Engine::ready(&Clang::find()?).map(drop)
}

/// The engine, compiled.
struct Engine {
    /// Its object files, and the compiler of bytecode.
    folder: PathBuf,
    typescript: PathBuf,
}

impl Engine {
    /// The one that fits this SDK and this clang; it is made if it isn't there.
    fn ready(clang: &Clang) -> anyhow::Result<Self> {
        let place = installed(RegistryTool::JavaScript, LANGUAGE)?;
        let (fingerprint, sources) =
            (fingerprint(clang, "javascript/", (C_FLAGS, MENDS)), place.join(ENGINE_SOURCES));
        let folder = ready(&place, &fingerprint, |folder| make(clang, &sources, folder))?;
        Ok(Self { folder, typescript: place.join(TYPESCRIPT) })
    }

    /// What a program is linked with.
    fn objects(&self) -> Vec<PathBuf> {
        let parts = ["engine.c"].into_iter().chain(ENGINE_PARTS).chain(SDK_PARTS);
        parts.map(|part| self.folder.join(part).with_extension("o")).collect()
    }
}

/// Makes the engine's object files and its compiler in `folder`, of its sources.
fn make(clang: &Clang, sources: &Path, folder: &Path) -> anyhow::Result<()> {
    sdk::install(folder)?;
    let sdk = Path::new(sdk::FOLDER);
    // Beside the sources lie tables for processors of 64 bits, which an include finds first.
    for entry in fs::read_dir(sources).with_context(|| sources.display().to_string())? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|end| end == "c" || end == "h") {
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
    }
    mend(folder)?;
    let mut host = command(&clang.program);
    host.current_dir(folder).args(["-O1", "-w", "-I.", "mquickjs_build.c"]);
    host.arg(sdk.join("javascript/stdlib.c")).args(["-lm", "-o", "table"]);
    run(&mut host, "compile", folder, "clang, for programs of this computer,")?;
    for (file, words) in
        [("mqjs_stdlib.h", &["-m32"][..]), ("mquickjs_atom.h", &["-a", "-m32"][..])]
    {
        let mut table = command(folder.join("table"));
        // It says on standard error that some objects have many properties.
        let made = table.args(words).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let made = made.context("can't run the engine's own tool")?;
        ensure!(made.status.success(), "the engine's own tool makes no {file}");
        whole_file::write(&folder.join(file), made.stdout)?;
    }
    let own = |file: &str| sdk.join("javascript").join(file);
    let mut files = vec![own("engine.c"), own("compile.c")];
    files.extend(ENGINE_PARTS.map(PathBuf::from));
    files.extend(SDK_PARTS.map(|file| sdk.join("c/src").join(file)));
    for file in &files {
        let object = Path::new(file.file_name().unwrap_or(OsStr::new(""))).with_extension("o");
        let mut compiler = clang_for(clang, folder);
        compiler.arg("-c").arg(file).arg("-o").arg(object);
        run(&mut compiler, "compile", folder, "clang")?;
    }
    let mut linker = command(&clang.linker.program);
    linker.current_dir(folder).args(["--no-entry", "--gc-sections", "--stack-first"]);
    // Node.js gives what the compiler doesn't call, and longjmp.
    linker.arg("--allow-undefined").arg(format!("-zstack-size={COMPILER_STACK_BYTES}"));
    linker.arg("compile.o");
    linker.args(
        ENGINE_PARTS.iter().chain(&SDK_PARTS).map(|part| Path::new(part).with_extension("o")),
    );
    run(linker.args(["-o", COMPILER]), "link", folder, "the linker")
}

/// Clang for a C file of the engine or of a program, in `folder`.
fn clang_for(clang: &Clang, folder: &Path) -> Command {
    let mut command = command(&clang.program);
    command.current_dir(folder).args(C_FLAGS);
    for headers in ["javascript/include", "c/include", "javascript"] {
        command.arg(format!("-I{}/{headers}", sdk::FOLDER));
    }
    command.arg("-I.");
    command
}
