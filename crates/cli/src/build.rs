//! `tenure build`: compiles a machine project, packs it and signs the package.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use tenure_package::{CodeKind, Package};

use crate::c_project;
use crate::home::Home;
use crate::module::Module;
use crate::native;
use crate::output::Output;
use crate::pack::{CompiledCode, pack};
use crate::project_file::{Code, Language, ProjectFile};
use crate::sdk;
use crate::symbols::debug_path;
use crate::toolchain::{RUST_TARGET, Rust};

/// Compile a machine project, pack it and sign the package with the tenant's key.
#[derive(clap::Args)]
#[command(after_help = "Example: tenure build apps/hello -o hello.tenure")]
pub struct Arguments {
    /// The project's folder.
    #[arg(default_value = ".")]
    project: PathBuf,
    /// Where to write the package; by default to NAME.tenure in the project's folder.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A package that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Runs `tenure build`.
///
/// # Errors
/// The project is not well formed, doesn't compile, or no compiler is there; the error says which.
pub fn run(arguments: &Arguments, home: &Home, output: &Output) -> anyhow::Result<()> {
    let built = build(&arguments.project, arguments.output.as_deref(), home)?;
    let package = Package::parse(&built.bytes)?;
    let (manifest, code_bytes) = (package.manifest(), package.code_bytes());
    if output.is_json() {
        let report = serde_json::json!({
            "package": built.path,
            "name": manifest.name,
            "version": manifest.version,
            "digest": package.digest().to_string(),
            "tenant": package.tenant().to_string(),
            "exports": manifest.exports,
            "code": manifest.code,
            "code_bytes": code_bytes,
        });
        output.line("", &report);
    } else {
        let kinds: Vec<_> = manifest.code.iter().map(|kind| kind.as_str()).collect();
        let (path, kinds) = (built.path.display(), kinds.join(" and "));
        let (offers, digest) = (manifest.exports.join(", "), package.digest());
        output.line(
            &format!(
                "built {path}: {code_bytes} bytes of code, {kinds}\n  offers  {offers}\n  digest  {digest}"
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
    let project = ProjectFile::read(folder)?;
    sdk::install(folder).with_context(|| format!("can't put the SDK into {}", folder.display()))?;
    let default = || folder.join(format!("{}.tenure", project.name));
    let path = output.map_or_else(default, Path::to_path_buf);
    // The package has neither names nor DWARF: who explains a fault finds them beside it.
    let mut compiled = Vec::new();
    let mut beside = Vec::new();
    for kind in &project.code {
        let (code, program, debug_path) = match kind {
            CodeKind::WebAssembly => {
                let (wasm, exact_memory) = compile_wasm(folder, &project)?;
                let module = fs::read(&wasm);
                let module = module.with_context(|| format!("can't read {}", wasm.display()))?;
                let code = CompiledCode::module(Module::read(&module)?, exact_memory);
                (code, module, debug_path(&path))
            }
            kind => {
                let program = native::build(folder, &project, *kind)?;
                let code = CompiledCode::native(native::binary(&program, *kind)?)?;
                (code, program.file, path.with_extension(format!("{kind}.elf")))
            }
        };
        compiled.push(code);
        beside.push((debug_path, program));
    }
    let bytes = pack(&project, compiled, &home.tenant_key()?)?;
    for (path, bytes) in [(path.clone(), bytes.clone())].into_iter().chain(beside) {
        fs::write(&path, &bytes).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(Built { path, bytes })
}

/// Compiles a project to wasm; gives the module's path, and whether its memory is as small as can be.
fn compile_wasm(folder: &Path, project: &ProjectFile) -> anyhow::Result<(PathBuf, bool)> {
    match project.written()? {
        Code::In(Language::Rust) => {
            let rust = Rust::find(RUST_TARGET)?;
            // Rust's own allocator takes memory in whole pages of 64 KiB; the SDK's takes what it needs.
            let exact_memory = rust.exact_memory() && uses_sdk(folder)?;
            let mut command = rust.cargo_rustc(RUST_TARGET);
            let arguments = link_arguments(project, exact_memory);
            let flags = arguments.iter().map(|argument| format!("-Clink-arg={argument}"));
            let flags: Vec<String> = flags.collect();
            let wasm = compile_rust(&mut command, folder, "cdylib", &flags)?;
            Ok((wasm, exact_memory))
        }
        Code::In(Language::C) => c_project::compile(folder, project),
        Code::Made(path) => {
            let path = folder.join(path);
            anyhow::ensure!(path.is_file(), "there is no {}; make it first", path.display());
            Ok((path, true))
        }
    }
}

/// Whether a Rust project is built with the crate `tenure`, or with Rust's standard library.
fn uses_sdk(folder: &Path) -> anyhow::Result<bool> {
    let path = folder.join("Cargo.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
    let manifest: toml::Table =
        toml::from_str(&text).with_context(|| path.display().to_string())?;
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let is_sdk = |(name, value): (&String, &toml::Value)| {
        let package = value.get("package").and_then(toml::Value::as_str);
        package.unwrap_or(name) == "tenure"
    };
    Ok(dependencies.is_some_and(|dependencies| dependencies.iter().any(is_sdk)))
}

/// What the linker is told, beside what to link.
pub(crate) fn link_arguments(project: &ProjectFile, exact_memory: bool) -> Vec<String> {
    let mut arguments = vec![
        // Below all else, so that what overruns the stack leaves the memory and traps.
        "--stack-first".to_owned(),
        format!("-zstack-size={}", project.build.stack_bytes.next_multiple_of(16)),
    ];
    if exact_memory {
        arguments.push("--page-size=1".to_owned());
    }
    arguments
}

/// Compiles a Rust project to a crate of this type with the compiler's `flags`; gives its path.
pub(crate) fn compile_rust(
    command: &mut Command,
    folder: &Path,
    crate_type: &str,
    flags: &[String],
) -> anyhow::Result<PathBuf> {
    command.current_dir(folder).args(["--crate-type", crate_type]);
    command.arg("--message-format=json-render-diagnostics").arg("--").args(flags);
    let mut cargo = command.stdout(Stdio::piped()).spawn().context("can't run cargo")?;
    let mut library = None;
    if let Some(messages) = cargo.stdout.take() {
        for message in BufReader::new(messages).lines() {
            library = artifact(&message.context("can't read what cargo says")?).or(library);
        }
    }
    if !cargo.wait().context("can't wait for cargo")?.success() {
        bail!("{} doesn't compile; see what cargo says above", folder.display());
    }
    library
        .with_context(|| format!("{} is no library crate; it needs a src/lib.rs", folder.display()))
}

/// The module or library that a message of cargo tells of, if it does.
fn artifact(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let files = message.get("filenames")?.as_array()?;
    files
        .iter()
        .filter_map(|file| file.as_str())
        .find(|file| file.ends_with(".wasm") || file.ends_with(".a"))
        .map(Into::into)
}
