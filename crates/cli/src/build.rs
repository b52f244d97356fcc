//! `tenure build`: compiles a machine project, packs it and signs the package.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use tenure_package::{CodeKind, Package};

use crate::c_project;
use crate::compiled;
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
    /// Compile the wasm for these processors besides (rv32, thumb); boards with memory protection run that, and
    /// all others interpret.
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = processor)]
    compile: Vec<CodeKind>,
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
}

/// Runs `tenure build`.
///
/// # Errors
/// The project is not well formed, doesn't compile, or no compiler is there; the error says which.
pub fn run(arguments: &Arguments, home: &Home, output: &Output) -> anyhow::Result<()> {
    let to = arguments.output.as_deref();
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
        output.line(
            &format!(
                "built {path}: {code_bytes} bytes of code, {kinds}{compiled}\n  offers  {offers}\n  digest  {digest}"
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
    sdk::install(folder).with_context(|| format!("can't put the SDK into {}", folder.display()))?;
    let default = || folder.join(format!("{}.tenure", project.name));
    let path = output.map_or_else(default, Path::to_path_buf);
    // The package has neither names nor DWARF: who explains a fault finds them beside it.
    let mut code = Vec::new();
    let mut beside = Vec::new();
    for kind in &project.code {
        let (one, program, debug_path) = match kind {
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
        code.push(one);
        beside.push((debug_path, program));
    }
    let mut faster = Vec::new();
    for kind in processors {
        let wasm = code.iter().find_map(CompiledCode::wasm);
        let wasm = wasm.context("`--compile` compiles wasm, and the project's `code` has none")?;
        let files = folder.join("target").join(format!("compiled-{kind}"));
        faster.push((*kind, compiled::compile(wasm, *kind, &files)?));
    }
    let bytes = pack(&project, code, faster, &home.tenant_key()?)?;
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

/// The linker's options, beside the files to link.
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
