//! Which Rust builds for a target: the one that runs us, or Debian's with `-Zbuild-std`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The targets that stand for "no operating system": a RISC-V and an ARM microcontroller.
pub(crate) const BARE_METAL_TARGETS: [&str; 2] =
    ["riscv32imac-unknown-none-elf", "thumbv7m-none-eabi"];

/// The smallest core that a board has: no compare and swap, no division.
pub(crate) const SMALLEST_TARGET: &str = "thumbv6m-none-eabi";

/// A RISC-V core without atomic instructions: an ESP32-C3.
pub(crate) const WITHOUT_ATOMICS_TARGET: &str = "riscv32imc-unknown-none-elf";

/// Further cores, for whose assembly the cipher engine has tests.
pub(crate) const CIPHER_TARGETS: [&str; 3] =
    [SMALLEST_TARGET, "aarch64-unknown-none", "riscv64imac-unknown-none-elf"];

/// The target of guests written in Rust.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// The targets of programs for WASI written in Rust, modules and components, whose standard library rustup alone has.
pub(crate) const WASI_TARGETS: [&str; 2] = ["wasm32-wasip1", "wasm32-wasip2"];

/// The target of programs that run where nothing else is: this machine's processor, and musl in the place of the system's C
/// library.
pub(crate) const STATIC_TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-musl"
} else {
    "x86_64-unknown-linux-musl"
};

/// A Rust toolchain that can build for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// The active one; it has the target's `core`.
    Active,
    /// Debian's `rustc-web`, which has the source of `core` and builds it on the way.
    Debian {
        /// LLVM's; Debian's Rust brings none.
        linker: PathBuf,
    },
}

/// The toolchain that can build for `target`, if there is one.
pub(crate) fn for_target(target: &str) -> Option<Toolchain> {
    if active_has(target) {
        Some(Toolchain::Active)
    } else if debian_has_source() {
        debian_linker(target).map(|linker| Toolchain::Debian { linker })
    } else {
        None
    }
}

/// Whether the active toolchain has a compiled `core` for `target`.
pub(crate) fn active_has(target: &str) -> bool {
    process::quiet_capture(Command::new("rustc").args([
        "--print",
        "target-libdir",
        "--target",
        target,
    ]))
    .is_some_and(|folder| Path::new(folder.trim()).is_dir())
}

/// Whether the active toolchain can link the address sanitizer on this machine.
pub(crate) fn has_address_sanitizer() -> bool {
    let folder = process::quiet_capture(Command::new("rustc").args(["--print", "target-libdir"]));
    folder.is_some_and(|folder| Path::new(folder.trim()).join(SANITIZER_LIBRARY).is_file())
}

/// The parts that rustup's stable toolchains bring along on Linux.
const SANITIZER_LIBRARY: &str = "librustc-stable_rt.asan.a";

fn debian_has_source() -> bool {
    let sysroot = process::quiet_capture(
        debian_environment(&mut Command::new("/usr/bin/rustc")).args(["--print", "sysroot"]),
    );
    sysroot.is_some_and(|folder| {
        Path::new("/usr/bin/cargo").is_file()
            && Path::new(folder.trim()).join("lib/rustlib/src/rust/library/core").is_dir()
    })
}

fn debian_linker(target: &str) -> Option<PathBuf> {
    process::find_newest(if target == WASM_TARGET { "wasm-ld" } else { "ld.lld" })
}

impl Toolchain {
    /// `cargo VERB` for `target`, to be run in `folder`.
    pub(crate) fn cargo(&self, folder: &Path, verb: &str, target: &str) -> Command {
        let mut command = self.cargo_for(folder, target);
        command.args([verb, "--target", target]).env("CARGO_TARGET_DIR", self.products(folder));
        command
    }

    /// `cargo`, set up for `target`; what follows are the verb and its arguments.
    pub(crate) fn cargo_for(&self, folder: &Path, target: &str) -> Command {
        let mut command = match self {
            Toolchain::Active => process::cargo(folder),
            Toolchain::Debian { .. } => Command::new("/usr/bin/cargo"),
        };
        command.current_dir(folder);
        if let Toolchain::Debian { linker } = self {
            debian_environment(&mut command)
                .arg("-Zbuild-std=core,alloc")
                .args(["--config", &format!("target.{target}.linker={linker:?}")]);
        }
        command
    }

    /// Where its products go of what is built in `folder`: another compiler's are of no use to ours, nor
    /// ours to it.
    pub(crate) fn products(&self, folder: &Path) -> PathBuf {
        match self {
            Toolchain::Active => target_folder(folder),
            Toolchain::Debian { .. } => target_folder(folder).join("debian"),
        }
    }

    /// Whether it has clippy.
    pub(crate) fn has_clippy(&self) -> bool {
        match self {
            Toolchain::Active => true,
            Toolchain::Debian { .. } => Path::new("/usr/bin/cargo-clippy").is_file(),
        }
    }
}

/// Hides rustup, which put itself first in the environment of whatever cargo runs.
fn debian_environment(command: &mut Command) -> &mut Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = vec![PathBuf::from("/usr/bin")];
    folders.extend(std::env::split_paths(&path));
    if let Ok(joined) = std::env::join_paths(folders) {
        command.env("PATH", joined);
    }
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
        command.env_remove(variable);
    }
    command.env("RUSTC_BOOTSTRAP", "1")
}

/// The `cargo` of nightly, whichever runs us.
pub(crate) fn nightly_cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]);
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command
}

/// The target triple of this machine.
pub(crate) fn host() -> Result<String> {
    let text = process::capture(Command::new("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// Where the tests of the workspace keep files for longer than a test: cargo's `CARGO_TARGET_TMPDIR`.
pub(crate) fn temporary_folder(root: &Path) -> PathBuf {
    let folder = target_folder(root).join("tmp");
    // Tests run in folders of their packages.
    std::path::absolute(&folder).unwrap_or(folder)
}

/// Where cargo puts what it builds in `folder`.
pub(crate) fn target_folder(folder: &Path) -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    chosen.unwrap_or_else(|| folder.join("target"))
}
