//! Which compilers of this computer make WebAssembly, and code for devices' processors.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::program_folders;
pub(crate) use super::programs::{NEUTRAL, command, neutral};
use crate::whole_file;

/// The target that Rust machines are built for.
pub const RUST_TARGET: &str = "wasm32-unknown-unknown";
/// The target that Rust programs for WASI are built for.
pub const RUST_WASI_TARGET: &str = "wasm32-wasip1";
/// The names of folders for WebAssembly with a system interface.
const WASI_TARGETS: [&str; 2] = ["wasm32-wasi", "wasm32-wasip1"];
/// The names that clang goes by, and the oldest that is known to do.
const CLANG_VERSIONS: std::ops::RangeInclusive<u32> = 15..=30;

/// A Rust toolchain that makes WebAssembly.
#[derive(Clone, Debug)]
pub enum Rust {
    /// The active one; it has the target's standard library.
    Active {
        /// Whether its linker makes memories that aren't whole pages of 64 KiB.
        exact_memory: bool,
    },
    /// Debian's, which has the library's source and builds it on the way.
    Debian {
        /// The linker.
        linker: Linker,
    },
}

/// A clang and the linker it uses.
#[derive(Clone, Debug)]
pub struct Clang {
    /// The compiler.
    pub program: PathBuf,
    /// The linker.
    pub linker: Linker,
}

/// A linker for WebAssembly.
#[derive(Clone, Debug)]
pub struct Linker {
    /// Its path.
    pub program: PathBuf,
    /// Whether it makes memories that aren't whole pages of 64 KiB.
    pub exact_memory: bool,
}

/// There is no compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolchainError {
    /// For Rust, with rustup to get it.
    #[error("Rust can't build that here yet; run: rustup target add {target}")]
    RustTarget {
        /// The target it lacks.
        target: &'static str,
    },
    /// For Rust, and nothing to get it with.
    #[error(
        "there is no Rust that builds for machines; on Debian run: apt-get install rustc-web \
         cargo-web rust-web-src lld-22 (elsewhere, install Rust from https://rustup.rs and run: \
         rustup target add {target})"
    )]
    Rust {
        /// The target it lacks.
        target: &'static str,
    },
    /// For C.
    #[error(
        "there is no clang (version {} or newer) with its linker wasm-ld; on Debian run: apt-get \
         install clang-22 lld-22",
        CLANG_VERSIONS.start()
    )]
    Clang,
    /// For C and C++ with the standard library.
    #[error(
        "there is no standard library for WebAssembly; on Debian run: apt-get install wasi-libc \
         libc++-22-dev-wasm32 libc++abi-22-dev-wasm32 libclang-rt-22-dev-wasm32 (elsewhere, install the \
         WASI SDK and set WASI_SYSROOT to its share/wasi-sysroot)"
    )]
    Library,
    /// For native machines.
    #[error(
        "there is no linker for native machines, LLVM's ld.lld; on Debian run: apt-get install \
         lld-22"
    )]
    Linker,
}

impl Rust {
    /// Looks for the one that is active in `folder`: rustup goes by a project's `rust-toolchain.toml`.
    ///
    /// # Errors
    /// [`ToolchainError`] says how to get one.
    pub fn find(target: &'static str, folder: &Path) -> Result<Self, ToolchainError> {
        let is_wasm = target == RUST_TARGET;
        if libraries_for(target, folder).is_some() {
            return Ok(Self::Active { exact_memory: is_wasm && bundled_linker_is_exact(folder) });
        }
        let linker = if is_wasm { Linker::find() } else { native_linker() };
        if debian_has_source()
            && let Some(linker) = linker
        {
            return Ok(Self::Debian { linker });
        }
        let rustup = find_program("rustup").is_some();
        Err(match rustup {
            true => ToolchainError::RustTarget { target },
            false => ToolchainError::Rust { target },
        })
    }

    /// Whether its linker makes memories that aren't whole pages of 64 KiB.
    pub fn exact_memory(&self) -> bool {
        match self {
            Self::Active { exact_memory } => *exact_memory,
            Self::Debian { linker } => linker.exact_memory,
        }
    }

    /// `cargo rustc` for a machine in the current folder, to be run on `target`; what follows goes to
    /// the compiler of the machine's own crate.
    pub fn cargo_rustc(&self, target: &str) -> Command {
        let mut command = match self {
            Self::Active { .. } => command("cargo"),
            Self::Debian { .. } => debian(command("/usr/bin/cargo")),
        };
        // Flags for the computer's own programs don't suit machines.
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        command.args(["rustc", "--lib", "--release", "--target", target]);
        // Whatever the project's profile says: names, lines and the machine's own variables go to
        // NAME.debug.wasm, and the package doesn't carry them.
        for setting in ["strip=false", "debug=\"full\"", "package.\"*\".debug=\"line-tables-only\""]
        {
            command.args(["--config", &format!("profile.release.{setting}")]);
        }
        if let Self::Debian { linker } = self {
            command.arg("-Zbuild-std=core,alloc");
            let linker = linker.program.display();
            let config = format!("target.{target}.linker=\"{linker}\"");
            command.args(["--config", &config]);
        }
        command
    }
}

/// `cargo build` for programs for WASI in `folder`, to be linked with the linker's `arguments`.
///
/// # Errors
/// [`ToolchainError::RustTarget`]: no Rust here has the target.
pub fn cargo_build_for_wasi(
    folder: &Path,
    arguments: &[String],
) -> Result<Command, ToolchainError> {
    if libraries_for(RUST_WASI_TARGET, folder).is_none() {
        return Err(ToolchainError::RustTarget { target: RUST_WASI_TARGET });
    }
    let mut command = command("cargo");
    command.current_dir(folder);
    // Flags for the computer's own programs don't suit machines.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.args(["build", "--bins", "--release", "--target", RUST_WASI_TARGET]);
    for setting in ["strip=false", "debug=\"line-tables-only\""] {
        command.args(["--config", &format!("profile.release.{setting}")]);
    }
    let flags: Vec<_> = arguments.iter().map(|argument| format!("-Clink-arg={argument}")).collect();
    let flags = toml::Value::from(flags);
    command.args(["--config", &format!("target.{RUST_WASI_TARGET}.rustflags={flags}")]);
    Ok(command)
}

impl Clang {
    /// Looks for one; one whose linker makes exact memories is preferred.
    ///
    /// # Errors
    /// [`ToolchainError::Clang`] if there is none.
    pub fn find() -> Result<Self, ToolchainError> {
        let numbered = CLANG_VERSIONS.rev().map(|version| format!("clang-{version}"));
        let mut fallback = None;
        for name in std::iter::once("clang".to_owned()).chain(numbered) {
            let Some(program) = find_program(&name) else { continue };
            let own = output(neutral(&program).arg("-print-prog-name=wasm-ld"))
                .map(|path| PathBuf::from(path.trim()))
                .filter(|path| path.is_absolute())
                .and_then(|path| Linker::at(&path));
            let Some(linker) = own.or_else(Linker::find) else { continue };
            let exact_memory = linker.exact_memory;
            let clang = Self { program, linker };
            if exact_memory {
                return Ok(clang);
            }
            fallback = fallback.or(Some(clang));
        }
        fallback.ok_or(ToolchainError::Clang)
    }
}

/// Headers and libraries of C and C++ for WebAssembly, as Debian or the WASI SDK has them.
#[derive(Clone, Debug)]
pub struct Sysroot {
    /// C's headers.
    pub headers: PathBuf,
    /// C++'s headers.
    pub cpp_headers: PathBuf,
    /// Where the libraries lie.
    pub library_folders: Vec<PathBuf>,
    /// The functions that clang calls for what WebAssembly can't.
    pub builtins: PathBuf,
}

impl Sysroot {
    /// Looks for one in `WASI_SYSROOT`, then where Debian puts it; what has to be compiled for it goes into
    /// the folder `target`.
    ///
    /// # Errors
    /// [`ToolchainError::Library`] if there is none.
    pub fn find(clang: &Clang, target: &Path) -> Result<Self, ToolchainError> {
        let named = env::var_os("WASI_SYSROOT").map(PathBuf::from);
        let places = named.into_iter().chain([PathBuf::from("/usr")]);
        places
            .filter_map(|place| Self::at(&place, clang, target))
            .next()
            .ok_or(ToolchainError::Library)
    }

    fn at(place: &Path, clang: &Clang, target: &Path) -> Option<Self> {
        let names = || WASI_TARGETS.iter();
        let folder = |parent: &Path| names().map(|name| parent.join(name)).find(|at| at.is_dir());
        let headers = folder(&place.join("include")).filter(|at| at.join("stdlib.h").is_file())?;
        let beside = clang.program.canonicalize().ok()?;
        let llvm = beside.parent()?.parent()?.to_path_buf();
        // Its compiler's own version of the C++ library goes before another's.
        let roots = [&llvm, place];
        let find = |under: &str, file: &str| {
            let candidates = roots.iter().filter_map(|root| folder(&root.join(under)));
            candidates.filter(|at| at.join(file).exists()).collect::<Vec<_>>()
        };
        let cpp_headers = find("include", "c++/v1/vector").first()?.join("c++/v1");
        let mut library_folders = find("lib", "libc++.a");
        library_folders.extend(find("lib", "libc.a"));
        let words = ["--target=wasm32-wasip1", "--rtlib=compiler-rt", "-print-libgcc-file-name"];
        let own = output(neutral(&clang.program).args(words)).unwrap_or_default();
        let own = Some(PathBuf::from(own.trim())).filter(|path| path.is_file());
        let builtins = own.or_else(|| builtins(RUST_TARGET, target).ok())?;
        Some(Self { headers, cpp_headers, library_folders, builtins })
    }

    /// What a program begins with, and calls its `main`.
    pub fn program_start(&self) -> Option<PathBuf> {
        let starts = self.library_folders.iter().map(|folder| folder.join("crt1-command.o"));
        starts.into_iter().find(|path| path.is_file())
    }
}

impl Linker {
    /// Looks for one; one that makes exact memories is preferred.
    pub(crate) fn find() -> Option<Self> {
        let numbered = CLANG_VERSIONS.rev().map(|version| format!("wasm-ld-{version}"));
        let mut linkers = std::iter::once("wasm-ld".to_owned())
            .chain(numbered)
            .filter_map(|name| Self::at(&find_program(&name)?));
        let first = linkers.next()?;
        if first.exact_memory {
            return Some(first);
        }
        Some(linkers.find(|linker| linker.exact_memory).unwrap_or(first))
    }

    fn at(program: &Path) -> Option<Self> {
        let help = output(neutral(program).arg("--help"))?;
        Some(Self { program: program.into(), exact_memory: knows_page_size(&help) })
    }
}

/// LLVM's linker for programs, and the words that it wants first.
///
/// # Errors
/// [`ToolchainError::Linker`] if there is none.
pub fn program_linker() -> Result<Command, ToolchainError> {
    if let Some(linker) = native_linker() {
        return Ok(command(linker.program));
    }
    let folder = output(neutral("rustc").args(["--print", "target-libdir"])).unwrap_or_default();
    let bundled = Path::new(folder.trim()).join("../bin/rust-lld");
    if !bundled.is_file() {
        return Err(ToolchainError::Linker);
    }
    let mut command = command(bundled);
    command.args(["-flavor", "gnu"]);
    Ok(command)
}

fn native_linker() -> Option<Linker> {
    let numbered = CLANG_VERSIONS.rev().map(|version| format!("ld.lld-{version}"));
    let names = std::iter::once("ld.lld".to_owned()).chain(numbered);
    let program = names.filter_map(|name| find_program(&name)).next()?;
    Some(Linker { program, exact_memory: false })
}

/// The functions that compilers call for what a processor can't, as Rust brings them along.
///
/// Debian's Rust has them as source alone: they are compiled into `folder`.
///
/// # Errors
/// [`ToolchainError`] if no Rust here has them, or they don't compile.
pub fn builtins(target: &'static str, folder: &Path) -> Result<PathBuf, ToolchainError> {
    let libraries = match Rust::find(target, Path::new(NEUTRAL))? {
        Rust::Active { .. } => libraries_for(target, Path::new(NEUTRAL)),
        debian @ Rust::Debian { .. } => compiled_libraries(&debian, target, folder),
    };
    let files = libraries.and_then(|folder| std::fs::read_dir(folder).ok());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libcompiler_builtins-") && name.ends_with(".rlib")
    };
    let paths = files.into_iter().flatten().filter_map(Result::ok).map(|file| file.path());
    paths.into_iter().find(is_wanted).ok_or(ToolchainError::RustTarget { target })
}

/// Lets a Rust without compiled libraries make them, below an empty crate; where they are.
fn compiled_libraries(rust: &Rust, target: &str, folder: &Path) -> Option<PathBuf> {
    let project = folder.join("builtins");
    std::fs::create_dir_all(project.join("src")).ok()?;
    let manifest = "[package]\nname = \"builtins\"\nedition = \"2024\"\n\n[workspace]\n";
    whole_file::write(&project.join("Cargo.toml"), manifest).ok()?;
    whole_file::write(&project.join("src/lib.rs"), "#![no_std]\n").ok()?;
    let products = std::path::absolute(project.join("target")).ok()?;
    let mut cargo = rust.cargo_rustc(target);
    cargo.arg("--quiet").current_dir(&project).env("CARGO_TARGET_DIR", &products);
    let is_built = cargo.status().is_ok_and(|status| status.success());
    is_built.then(|| products.join(target).join("release/deps"))
}

/// Whether the Rust that is active outside of projects has the libraries for `target`.
pub(crate) fn has_rust_target(target: &str) -> bool {
    libraries_for(target, Path::new(NEUTRAL)).is_some()
}

/// Where the Rust that is active in `folder` keeps what it has compiled for `target`, if it has.
fn libraries_for(target: &str, folder: &Path) -> Option<PathBuf> {
    let mut rustc = command("rustc");
    rustc.current_dir(folder).args(["--print", "target-libdir", "--target", target]);
    let folder = output(&mut rustc)?;
    Some(PathBuf::from(folder.trim())).filter(|folder| folder.is_dir())
}

fn knows_page_size(help: &str) -> bool {
    help.contains("--page-size")
}

/// Whether the linker that comes with the Rust that is active in `folder` makes exact memories.
fn bundled_linker_is_exact(folder: &Path) -> bool {
    let mut rustc = command("rustc");
    rustc.current_dir(folder).args(["--print", "target-libdir"]);
    let Some(folder) = output(&mut rustc) else { return false };
    let linker = Path::new(folder.trim()).join("../bin/rust-lld");
    output(neutral(linker).args(["-flavor", "wasm", "--help"]))
        .is_some_and(|help| knows_page_size(&help))
}

fn debian_has_source() -> bool {
    let sysroot = output(debian(neutral("/usr/bin/rustc")).args(["--print", "sysroot"]));
    Path::new("/usr/bin/cargo").is_file()
        && sysroot.is_some_and(|folder| {
            Path::new(folder.trim()).join("lib/rustlib/src/rust/library/core").is_dir()
        })
}

/// The environment in which Debian's Rust builds its own library.
fn debian(mut command: Command) -> Command {
    let folders = std::iter::once(PathBuf::from("/usr/bin")).chain(program_folders());
    if let Ok(path) = env::join_paths(folders) {
        command.env("PATH", path);
    }
    command.env("RUSTC_BOOTSTRAP", "1");
    for variable in ["RUSTC", "RUSTUP_TOOLCHAIN", "CARGO"] {
        command.env_remove(variable);
    }
    command
}

fn find_program(name: &str) -> Option<PathBuf> {
    program_folders().map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The output of a program, if it can be run and ends well.
fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(std::process::Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
