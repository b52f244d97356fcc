//! `tenure build`: compiles a machine project, packs it and signs the package.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tenure_package::{CodeKind, Package};

use crate::home::Home;
use crate::make::assembly_script_project;
use crate::make::c_project;
use crate::make::compiled;
use crate::make::fence;
use crate::make::javascript_project;
use crate::make::lua_project;
use crate::make::module::Module;
use crate::make::native;
use crate::make::pack::{CompiledCode, Linked, pack};
use crate::make::project_file::{Code, Language, ProjectFile};
use crate::make::refusal::Refusal;
use crate::make::rust_project;
use crate::make::sdk;
use crate::make::symbols::{debug_path, names};
use crate::make::trust::{self, Trust};
use crate::make::unwinding;
use crate::make::wasi::{self, WasiProgram};
use crate::make::zig_project;
use crate::terminal::output::Output;
use crate::whole_file;

/// The most bytes of a module with all that debuggers want to know.
const MODULE_BYTES_MAX: u64 = 256 << 20;

/// Compile a machine project, pack it and sign the package with the tenant's key.
#[derive(clap::Args)]
#[command(after_help = "Example: tenure build examples/hello -o hello.tenure")]
pub struct Arguments {
    /// The project's folder.
    #[arg(default_value = ".")]
    project: PathBuf,
    /// Where to write the package; by default to NAME.tenure in the project's folder.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compile the wasm for these processors besides (rv32, thumb); boards with memory protection run that, and
    /// all others interpret.
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = processor)]
    compile: Vec<CodeKind>,
    /// Trust the project's folder from now on, though it belongs to another user: building runs code of who wrote it.
    #[arg(long)]
    trust: bool,
}

fn processor(name: &str) -> Result<CodeKind, String> {
    let kinds = [CodeKind::Rv32, CodeKind::Thumb];
    let found = kinds.into_iter().find(|kind| kind.as_str() == name);
    found.ok_or_else(|| "wasm is compiled for rv32 and thumb".to_owned())
}

/// A package that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The functions that its code exports and that can't be called, since they have parameters or results.
    pub uncallable: Vec<String>,
    /// The functions of WASI that its code imports and that always fail, each with the reason.
    pub missing: Vec<(String, &'static str)>,
    /// The refusal by boards with some hundred kilobytes, if its code passes a limit of theirs.
    pub boards: Option<Refusal>,
}

/// Runs `tenure build`.
///
/// # Errors
/// The project is not well formed, doesn't compile, or no compiler is there; the error says which.
pub fn run(arguments: &Arguments, home: &Home, output: &Output) -> anyhow::Result<()> {
    let to = arguments.output.as_deref();
    let trust = if arguments.trust { Trust::Given } else { Trust::AsKnown };
    trust::check(&arguments.project, trust, home)?;
    let built = build_for(&arguments.project, to, home, &arguments.compile)?;
    let package = Package::parse(&built.bytes)?;
    let (manifest, code_bytes) = (package.manifest(), package.code_bytes());
    let compiled_bytes: usize =
        package.compiled_kinds().filter_map(|kind| package.compiled(kind)).map(<[u8]>::len).sum();
    if output.is_json() {
        let report = serde_json::json!({
            "package": built.path,
            "name": manifest.name,
            "version": manifest.version,
            "digest": package.digest().to_string(),
            "tenant": package.tenant().to_string(),
            "exports": manifest.exports,
            "uncallable": built.uncallable,
            "missing": built.missing.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "boards_refuse": built.boards.as_ref().map(ToString::to_string),
            "code": manifest.code,
            "code_bytes": code_bytes,
            "compiled": package.compiled_kinds().collect::<Vec<_>>(),
            "compiled_bytes": compiled_bytes,
        });
        output.line("", &report);
    } else {
        let kinds: Vec<_> = manifest.code.iter().map(|kind| kind.as_str()).collect();
        let (path, kinds) = (built.path.display(), kinds.join(" and "));
        let (offers, digest) = (manifest.exports.join(", "), package.digest());
        let compiled: Vec<_> = package.compiled_kinds().map(CodeKind::as_str).collect();
        let compiled = match compiled.is_empty() {
            true => String::new(),
            false => {
                format!("\n  compiled  {compiled_bytes} bytes, {}", compiled.join(" and "))
            }
        };
        let uncallable = match built.uncallable.is_empty() {
            true => String::new(),
            false => format!(
                "\n  exports {} too, which can't be called: a function that is called has no parameters and no result",
                built.uncallable.join(", ")
            ),
        };
        let missing: String =
            built.missing.iter().map(|(name, why)| format!("\n  misses  {name}: {why}")).collect();
        let boards = built.boards.as_ref().map_or_else(String::new, |refusal| {
            format!("\n  boards  refuse it, and larger devices take it: {refusal}")
        });
        output.line(
            &format!(
                "built {path}: {code_bytes} bytes of code, {kinds}{compiled}\n  offers  {offers}{uncallable}{missing}{boards}\n  \
                 digest  {digest}"
            ),
            &serde_json::Value::Null,
        );
    }
    Ok(())
}

/// Builds the project in `folder` and writes its package to `output`, or to NAME.tenure in the
/// folder, and what debuggers want to know to NAME.debug.wasm and NAME.KIND.elf beside it.
///
/// # Errors
/// As [`run`].
pub fn build(folder: &Path, output: Option<&Path>, home: &Home) -> anyhow::Result<Built> {
    trust::check(folder, Trust::AsKnown, home)?;
    build_for(folder, output, home, &[])
}

/// As [`build`], with the wasm compiled for processors of these kinds besides.
fn build_for(
    folder: &Path,
    output: Option<&Path>,
    home: &Home,
    processors: &[CodeKind],
) -> anyhow::Result<Built> {
    let project = ProjectFile::read(folder)?;
    let default = || folder.join(format!("{}.tenure", project.name));
    let path = output.map_or_else(default, Path::to_path_buf);
    let beside = |kind: &CodeKind| path_beside(&path, *kind);
    let outputs: Vec<_> = project.code.iter().map(beside).chain([path.clone()]).collect();
    fence::check_outputs(folder, &outputs)?;
    project.check_sources(folder)?;
    sdk::install(folder).with_context(|| format!("can't put the SDK into {}", folder.display()))?;
    let mut code = Vec::new();
    let (mut beside, mut missing) = (Vec::new(), Vec::new());
    for kind in &project.code {
        let (one, program) = match kind {
            CodeKind::WebAssembly => {
                let (wasm, linked) = compile_wasm(folder, &project)?;
                let module = whole_file::read(&wasm, MODULE_BYTES_MAX);
                let module = module.with_context(|| format!("can't read {}", wasm.display()))?;
                let module = unwinding::lower(&module)?.unwrap_or(module);
                let module = linked_with_wasi(module, &project, &mut missing)?;
                let code = CompiledCode::module(Module::read(&module)?, linked, names(&module));
                (code, module)
            }
            kind => {
                let program = native::build(folder, &project, *kind)?;
                let code = CompiledCode::native(native::binary(&program, *kind)?)?;
                (code, program.file)
            }
        };
        code.push(one);
        beside.push((path_beside(&path, *kind), program));
    }
    let mut faster = Vec::new();
    for kind in processors {
        let wasm = code.iter().find_map(CompiledCode::wasm);
        let wasm = wasm.context("`--compile` compiles wasm, and the project's `code` has none")?;
        let files = fence::made_folder(folder, &format!("target/compiled-{kind}"))?;
        faster.push((*kind, compiled::compile(wasm, *kind, &files)?));
    }
    let uncallable = code.iter().flat_map(|code| code.uncallable().to_vec()).collect();
    let boards = code.iter().find_map(CompiledCode::refusal_by_boards);
    let files = project.wasi.as_ref().map(|wasi| wasi.values(folder)).transpose()?;
    let bytes = pack(&project, code, faster, files.unwrap_or_default(), &home.tenant_key()?)?;
    // A build script may have made links meanwhile.
    fence::check_outputs(folder, &outputs)?;
    for (path, bytes) in beside.iter().map(|(path, bytes)| (path, bytes)).chain([(&path, &bytes)]) {
        whole_file::write(path, bytes)
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(Built { path, bytes, uncallable, missing, boards })
}

/// Where what debuggers want to know lies: a package has neither names nor DWARF, and who explains a fault finds them beside it.
fn path_beside(package: &Path, kind: CodeKind) -> PathBuf {
    match kind {
        CodeKind::WebAssembly => debug_path(package),
        kind => package.with_extension(format!("{kind}.elf")),
    }
}

/// A module with the functions of WASI that it imports, or as it is if it imports none.
fn linked_with_wasi(
    module: Vec<u8>,
    project: &ProjectFile,
    missing: &mut Vec<(String, &'static str)>,
) -> anyhow::Result<Vec<u8>> {
    let settings = project.wasi.clone().unwrap_or_default();
    match wasi::link(&module, project.name.as_str(), &settings)? {
        Some(WasiProgram { module, missing: misses }) => {
            missing.extend(misses);
            Ok(module)
        }
        None => {
            anyhow::ensure!(
                project.wasi.is_none(),
                "tenure.toml has [wasi], and the code imports nothing of WASI; build it for wasm32-wasip1, or leave \
                 [wasi] out"
            );
            Ok(module)
        }
    }
}

/// The package at `path`; a project's folder is built first.
///
/// # Errors
/// The project doesn't build.
pub fn package_at(path: &Path, home: &Home) -> anyhow::Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    Ok(build(path, None, home)?.path)
}

/// Compiles a project to wasm; gives the module's path, and how its memory was made.
fn compile_wasm(folder: &Path, project: &ProjectFile) -> anyhow::Result<(PathBuf, Linked)> {
    let linked = |exact_memory| if exact_memory { Linked::Exactly } else { Linked::InPages };
    match project.written()? {
        Code::In(Language::Rust) => {
            let (wasm, exact_memory) = rust_project::compile(folder, project)?;
            Ok((wasm, linked(exact_memory)))
        }
        Code::In(Language::C) => {
            let (wasm, exact_memory) = c_project::compile(folder, project)?;
            Ok((wasm, linked(exact_memory)))
        }
        Code::In(Language::Zig) => {
            let (wasm, exact_memory) = zig_project::compile(folder, project)?;
            Ok((wasm, linked(exact_memory)))
        }
        Code::In(Language::AssemblyScript) => {
            Ok((assembly_script_project::compile(folder, project)?, Linked::Elsewhere))
        }
        Code::In(Language::JavaScript) => {
            Ok((javascript_project::compile(folder, project)?, Linked::Elsewhere))
        }
        Code::In(Language::Lua) => Ok((lua_project::compile(folder, project)?, Linked::Elsewhere)),
        Code::Made(path) => {
            let place = folder.join(path);
            anyhow::ensure!(place.is_file(), "there is no {}; make it first", place.display());
            Ok((fence::file(folder, path)?, Linked::Elsewhere))
        }
    }
}
