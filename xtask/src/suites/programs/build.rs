//! Fetches a program's package and compiles it, for WASI and for this machine.
//!
//! Cargo fetches it, as a dependency of a project that is made here, and checks that what came is what its lock file says. That
//! digest must be the table's. A program in Rust is the first file of that project, so that of its dependencies those are built
//! that it needs, and not what its package needs for its own tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fmt, fs};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::table::{Program, Source, package_and_path};
use crate::process;
use crate::toolchain;

/// The target of Rust that programs are compiled for.
const WASI_TARGET: &str = toolchain::WASI_TARGETS[0];
/// The name of the target in Debian's wasi-libc.
const WASI_OF_CLANG: &str = "--target=wasm32-wasi";
/// A header of wasi-libc, by which it is known to be here.
const WASI_LIBC: &str = "/usr/include/wasm32-wasi/stdio.h";
/// Others' lints are no errors of ours. `allow` would hide from cargo which kinds of products the target doesn't have.
const NO_LINTS: &str = "--cap-lints=warn";
/// How many of a compiler's last lines tell of its failure.
const LAST_LINES: usize = 6;

/// A program that was compiled for this machine and for WASI.
pub(super) struct Built {
    pub(super) native: PathBuf,
    pub(super) wasm: PathBuf,
    /// The files that it needs, by the names under which it finds them.
    pub(super) files: BTreeMap<String, PathBuf>,
}

/// Something isn't here that building a program takes: no fault of the program's.
#[derive(Debug)]
pub(super) struct Absent(String);

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Absent {}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// None of a package that is in no registry.
    checksum: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// A program that was fetched.
pub(super) struct Fetched<'a> {
    program: &'a Program,
    /// The folder of the project around it.
    folder: PathBuf,
    /// The folder that all programs share.
    products: &'a Path,
    packages: Packages,
}

/// The packages that a program is built of.
struct Packages {
    /// The folder of its own.
    own: PathBuf,
    /// Those of all, by their names.
    all: BTreeMap<String, PathBuf>,
}

/// Fetches a program; `products` is a folder that all programs share.
///
/// # Errors
/// [`Absent`]: the registry can't be reached, or a tool is missing. Else the registry has another package by that name.
pub(super) fn fetch<'a>(program: &'a Program, products: &'a Path) -> Result<Fetched<'a>> {
    check_tools(program)?;
    let folder = products.join(program.name.as_str());
    fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    let packages = fetch_packages(program, &folder)?;
    if let Source::Rust { main } = program.source()? {
        let main = packages.own.join(main);
        ensure!(main.is_file(), "the package has no {}", main.display());
        write_manifest(program, &folder, Some(&main))?;
    }
    Ok(Fetched { program, folder, products, packages })
}

/// Whether the tools are here that compile the program.
fn check_tools(program: &Program) -> Result<()> {
    let is_rust = matches!(program.source()?, Source::Rust { .. });
    let absent = |what: &str| Absent(format!("{what} isn't here; `cargo xtask setup` installs it"));
    if is_rust && !toolchain::active_has(WASI_TARGET) {
        return Err(absent(&format!("the Rust target {WASI_TARGET}")).into());
    }
    if !is_rust || program.has_c {
        process::find_newest("clang").ok_or_else(|| absent("clang"))?;
        if !Path::new(WASI_LIBC).is_file() {
            return Err(absent("wasi-libc").into());
        }
    }
    Ok(())
}

impl Fetched<'_> {
    /// Compiles it for the target triple `host` and for WASI.
    ///
    /// # Errors
    /// It doesn't compile, or lacks a file.
    pub(super) fn build(&self, host: &str) -> Result<Built> {
        let native = match self.program.source()? {
            Source::Rust { .. } => self.compile_rust(host, &[])?,
            Source::C { sources, include, flags, .. } => {
                let mut command = Command::new("cc");
                self.add_c(command.arg("-O2"), sources, include, flags);
                command.args(["-lm", "-lpthread", "-ldl"]);
                self.compile_c(command, "program")?
            }
        };
        let wasm = self.for_wasi(self.program.stack_bytes)?;
        Ok(Built { native, wasm, files: self.files()? })
    }

    /// Compiles it for WASI, with a stack of so many bytes in its memory; gives the file, which the next call overwrites.
    ///
    /// # Errors
    /// It doesn't compile.
    pub(super) fn for_wasi(&self, stack_bytes: u32) -> Result<PathBuf> {
        match self.program.source()? {
            Source::Rust { .. } => {
                let stack = format!("-Clink-arg=-zstack-size={stack_bytes}");
                self.compile_rust(WASI_TARGET, &[&stack])
            }
            Source::C { sources, include, flags, wasi_flags } => {
                let clang = process::find_newest("clang").context("there is no clang here")?;
                let mut command = Command::new(clang);
                self.add_c(command.args([WASI_OF_CLANG, "-Os"]), sources, include, flags);
                command.args(wasi_flags).arg(format!("-Wl,-z,stack-size={stack_bytes}"));
                command.arg("-lm");
                self.compile_c(command, "program.wasm")
            }
        }
    }

    /// Compiles a program in Rust for a target, with further options for its own part alone: what it depends on is compiled
    /// once, whatever they are.
    fn compile_rust(&self, target: &str, options: &[&str]) -> Result<PathBuf> {
        let products = self.products.join("products");
        let mut command = process::cargo(&self.folder);
        command.args(["rustc", "--quiet", "--release", "--target", target, "--target-dir"]);
        command.arg(&products).env("RUSTFLAGS", "").env_remove("CARGO_ENCODED_RUSTFLAGS");
        command.args(["--", NO_LINTS]).args(options);
        if target == WASI_TARGET {
            // As `-Os` in C.
            command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s");
            // For packages that compile C, such as SQLite's.
            for (variable, tool) in [("CC_wasm32_wasip1", "clang"), ("AR_wasm32_wasip1", "llvm-ar")]
            {
                if let Some(path) = process::find_newest(tool) {
                    command.env(variable, path);
                }
            }
            command.env("CFLAGS_wasm32_wasip1", WASI_OF_CLANG);
        }
        said(&mut command)?;
        let ending = if target == WASI_TARGET { ".wasm" } else { std::env::consts::EXE_SUFFIX };
        let name = format!("{}{ending}", project_name(self.program));
        Ok(products.join(target).join("release").join(name))
    }

    /// Compiles a program in C to a file of that name, unless the same command has: several programs of the table are one with
    /// other arguments.
    fn compile_c(&self, mut command: Command, name: &str) -> Result<PathBuf> {
        let Program { package, version, .. } = self.program;
        let folder = self.products.join(format!("{package}-{version}"));
        fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        let (product, note) = (folder.join(name), folder.join(format!("{name}.command")));
        command.arg("-o").arg(&product);
        let text = format!("{command:?}");
        if !fs::read_to_string(&note).is_ok_and(|it| it == text) {
            said(&mut command)?;
            fs::write(&note, text)?;
        }
        Ok(product)
    }

    /// Adds what both C compilers are told.
    fn add_c(
        &self,
        command: &mut Command,
        sources: &[String],
        include: &[String],
        flags: &[String],
    ) {
        let package = &self.packages.own;
        command.arg("-w").args(flags);
        command.args(include.iter().map(|folder| format!("-I{}", package.join(folder).display())));
        command.args(sources.iter().map(|source| package.join(source)));
    }

    fn files(&self) -> Result<BTreeMap<String, PathBuf>> {
        let files = self.program.files.iter();
        files.map(|(name, file)| Ok((name.clone(), self.packages.file(file)?))).collect()
    }
}

impl Packages {
    /// Where a file is that the table names.
    fn file(&self, file: &str) -> Result<PathBuf> {
        let (package, path) = package_and_path(file);
        let folder = match package {
            None => &self.own,
            Some(name) => {
                self.all.get(name).with_context(|| format!("it isn't built with {name}"))?
            }
        };
        let place = folder.join(path);
        ensure!(place.is_file(), "there is no {}", place.display());
        Ok(place)
    }
}

/// Fetches the packages.
fn fetch_packages(program: &Program, folder: &Path) -> Result<Packages> {
    fs::write(folder.join("nothing.rs"), "")?;
    write_manifest(program, folder, None)?;
    let mut command = process::cargo(folder);
    let metadata = said(command.args(["metadata", "--format-version=1"]))
        .map_err(|error| Absent(format!("it can't be fetched: {error:#}")))?;
    let metadata: Metadata = serde_json::from_slice(&metadata)?;
    let lock = fs::read_to_string(folder.join("Cargo.lock")).context("cargo wrote no lock file")?;
    check_digest(program, &lock)?;
    let mut own = None;
    let mut all = BTreeMap::new();
    for Listed { name, version, manifest_path } in metadata.packages {
        let folder = manifest_path.parent().context("a package in no folder")?.to_path_buf();
        if name == program.package && version == program.version {
            own = Some(folder.clone());
        }
        all.insert(name, folder);
    }
    Ok(Packages { own: own.context("cargo's metadata don't name the package")?, all })
}

/// Whether cargo's lock file has the package with the table's digest.
fn check_digest(program: &Program, lock: &str) -> Result<()> {
    let lock: Lock = toml::from_str(lock)?;
    let is_it = |it: &&Locked| it.name == program.package && it.version == program.version;
    let locked = lock.package.iter().find(is_it).context("the lock file lacks the package")?;
    let digest = locked.checksum.as_deref().unwrap_or("none");
    ensure!(digest == program.digest, "the package's digest is {digest}, not the table's");
    Ok(())
}

/// Writes the manifest of a project around the program, or around nothing while its place isn't known.
fn write_manifest(program: &Program, folder: &Path, main: Option<&Path>) -> Result<()> {
    let path = folder.join("Cargo.toml");
    fs::write(&path, manifest(program, main).to_string())
        .with_context(|| format!("can't write {}", path.display()))
}

fn manifest(program: &Program, main: Option<&Path>) -> toml::Table {
    let name = project_name(program);
    let mut manifest = toml::Table::new();
    let mut package = toml::Table::new();
    package.insert("name".into(), name.clone().into());
    package.insert("version".into(), "0.0.0".into());
    package.insert("edition".into(), program.edition.clone().into());
    package.insert("publish".into(), false.into());
    manifest.insert("package".into(), package.into());
    // It lies below our own workspace, and isn't of it.
    manifest.insert("workspace".into(), toml::Table::new().into());
    let mut target = toml::Table::new();
    let main = main.map(|main| main.to_string_lossy().into_owned());
    let is_known = main.is_some();
    target.insert("path".into(), main.unwrap_or_else(|| "nothing.rs".into()).into());
    if is_known {
        target.insert("name".into(), name.into());
        manifest.insert("bin".into(), toml::Value::Array(vec![target.into()]));
    } else {
        manifest.insert("lib".into(), target.into());
    }
    let mut features: toml::Table = program
        .features
        .iter()
        .map(|feature| (feature.clone(), toml::Value::Array(Vec::new())))
        .collect();
    features.insert("default".into(), program.features.clone().into());
    manifest.insert("features".into(), features.into());
    let mut dependencies = program.beside.clone();
    let mut itself = toml::Table::new();
    itself.insert("version".into(), format!("={}", program.version).into());
    itself.insert("default-features".into(), program.default_features.into());
    itself.insert("features".into(), program.package_features.clone().into());
    dependencies.insert(program.package.clone(), itself.into());
    manifest.insert("dependencies".into(), dependencies.into());
    manifest
}

/// The name of the project around a program, which no dependency has.
fn project_name(program: &Program) -> String {
    format!("program-{}", program.name)
}

/// What a command wrote to standard output; its errors are ours if it fails.
pub(super) fn said(command: &mut Command) -> Result<Vec<u8>> {
    command.stdin(Stdio::null());
    ended(command)
}

/// As [`said`], of a command that has its standard input.
pub(super) fn ended(command: &mut Command) -> Result<Vec<u8>> {
    let shown = process::show(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n    ");
    bail!("`{shown}` failed ({}): {last}", output.status)
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::program;
    use super::*;

    #[test]
    fn another_package_than_the_tables_is_refused() {
        let program = program("main = \"sum.rs\"");
        let lock = |digest: &str| {
            format!(
                "version = 4\n[[package]]\nname = \"program-sums\"\nversion = \"0.0.0\"\n\
                 [[package]]\nname = \"sums\"\nversion = \"1.2.3\"\nchecksum = \"{digest}\"\n"
            )
        };
        check_digest(&program, &lock(&program.digest)).unwrap();
        let error = check_digest(&program, &lock("11")).unwrap_err().to_string();
        assert!(error.contains("digest is 11"), "{error}");
        let other = lock(&program.digest).replace("1.2.3", "1.2.4");
        assert!(check_digest(&program, &other).is_err(), "another version");
    }

    #[test]
    fn file_of_another_package_is_found_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        for package in [&own, &other] {
            fs::create_dir(package).unwrap();
            fs::write(package.join("list"), "").unwrap();
        }
        let packages = Packages { own: own.clone(), all: [("other".into(), other.clone())].into() };
        assert_eq!(packages.file("list").unwrap(), own.join("list"));
        assert_eq!(packages.file("other:list").unwrap(), other.join("list"));
        assert!(packages.file("third:list").unwrap_err().to_string().contains("third"));
        assert!(packages.file("other:no").is_err());
    }

    #[test]
    fn project_around_a_program_is_its_file_and_its_package() {
        let program = program(
            "main = \"sum.rs\"\nfeatures = [\"std\"]\npackage_features = [\"fast\"]\nbeside = { words = \"2\" }",
        );
        let project = manifest(&program, Some(Path::new("/sums/sum.rs")));
        assert_eq!(project["bin"][0]["path"].as_str(), Some("/sums/sum.rs"));
        assert_eq!(project["bin"][0]["name"].as_str(), Some("program-sums"));
        assert_eq!(project["features"]["default"][0].as_str(), Some("std"));
        assert!(project["features"]["std"].as_array().is_some_and(Vec::is_empty));
        assert_eq!(project["dependencies"]["sums"]["version"].as_str(), Some("=1.2.3"));
        assert_eq!(project["dependencies"]["sums"]["features"][0].as_str(), Some("fast"));
        assert_eq!(project["dependencies"]["words"].as_str(), Some("2"));
        let unknown = manifest(&program, None);
        assert_eq!(unknown["lib"]["path"].as_str(), Some("nothing.rs"));
        assert!(!unknown.contains_key("bin"));
    }

    #[test]
    fn a_command_that_fails_gives_its_last_lines() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 1 9 >&2; exit 3"]);
        let error = said(&mut command).unwrap_err().to_string();
        assert!(error.contains(": 4\n    5") && !error.contains("3\n"), "{error}");
        let mut command = Command::new("sh");
        command.args(["-c", "echo good"]);
        assert_eq!(said(&mut command).unwrap(), b"good\n");
    }
}
