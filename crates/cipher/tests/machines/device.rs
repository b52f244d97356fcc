//! Builds the image for a machine and runs it under QEMU.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenure_testbed::patience;

/// A machine that QEMU emulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// RV32IMAC with Zbb, QEMU's `virt`.
    Riscv32,
    /// The same, with everything built for Zbb.
    Riscv32Zbb,
    /// ARMv7-M, `mps2-an385`.
    Thumbv7m,
    /// ARMv6-M code on the same.
    Thumbv6m,
    /// AArch64, a Linux process.
    #[allow(dead_code, reason = "the benchmark counts nothing there")]
    Aarch64,
    /// RV64IMAC with Zbb, a Linux process.
    #[allow(dead_code, reason = "the benchmark counts nothing there")]
    Riscv64,
}

/// Why a machine could not be run.
#[derive(Debug)]
pub(crate) enum Missing {
    /// A tool or target that this host does not have, and where to get it.
    Tool(String),
    /// The build failed; what it said.
    Build(String),
}

impl Machine {
    /// As in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Riscv32 => "riscv32",
            Self::Riscv32Zbb => "riscv32+zbb",
            Self::Thumbv7m => "thumbv7m",
            Self::Thumbv6m => "thumbv6m",
            Self::Aarch64 => "aarch64",
            Self::Riscv64 => "riscv64",
        }
    }

    fn target(self) -> &'static str {
        match self {
            Self::Riscv32 | Self::Riscv32Zbb => "riscv32imac-unknown-none-elf",
            Self::Thumbv7m => "thumbv7m-none-eabi",
            Self::Thumbv6m => "thumbv6m-none-eabi",
            Self::Aarch64 => "aarch64-unknown-none",
            Self::Riscv64 => "riscv64imac-unknown-none-elf",
        }
    }

    fn qemu(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Riscv32 | Self::Riscv32Zbb => (
                "qemu-system-riscv32",
                &[
                    "-M",
                    "virt",
                    "-cpu",
                    "rv32,s=false,f=false,d=false,h=false",
                    "-m",
                    "32M",
                    "-bios",
                    "none",
                    "-serial",
                    "stdio",
                ],
            ),
            Self::Thumbv7m | Self::Thumbv6m => (
                "qemu-system-arm",
                &[
                    "-M",
                    "mps2-an385",
                    "-serial",
                    "null",
                    "-semihosting-config",
                    "enable=on,target=native",
                ],
            ),
            Self::Aarch64 => ("qemu-aarch64", &[]),
            Self::Riscv64 => ("qemu-riscv64", &["-cpu", "rv64,zbb=true"]),
        }
    }

    /// Whether the image is a Linux process, and not all there is on its machine.
    fn is_process(self) -> bool {
        matches!(self, Self::Aarch64 | Self::Riscv64)
    }

    /// Builds the image, into a folder under `target_folder`; with RustCrypto's ciphers if `peers`.
    pub(crate) fn build(self, target_folder: &Path, peers: bool) -> Result<PathBuf, Missing> {
        let mut features = if peers { vec!["peers"] } else { Vec::new() };
        let mut flags = "";
        match self {
            Self::Riscv32 => features.push("harts"),
            Self::Riscv32Zbb => flags = "-Ctarget-feature=+zbb",
            Self::Thumbv7m | Self::Thumbv6m => features.push("trace"),
            Self::Aarch64 | Self::Riscv64 => {}
        }
        let mut command = toolchain(self.target())?;
        command.env("RUSTFLAGS", flags);
        // Products of other flags stay apart.
        let folder = build(command, self.target(), &features, &target_folder.join(self.name()))?;
        Ok(folder.join("tenure-cipher-device"))
    }

    /// Runs an image, an instruction a nanosecond; what it printed, and whether it ended well.
    pub(crate) fn run(self, image: &Path) -> Result<(String, bool), Missing> {
        self.run_on(image, 1)
    }

    /// The same on this many cores; several run by the host's clock, as those that wait would eat
    /// up the instructions of those that work.
    pub(crate) fn run_on(self, image: &Path, cores: u32) -> Result<(String, bool), Missing> {
        let (qemu, arguments) = self.qemu();
        let mut command = Command::new("timeout");
        command.arg(patience().as_secs().to_string()).arg(qemu).args(arguments);
        if !self.is_process() {
            command.args(["-smp", &cores.to_string()]);
            if cores == 1 {
                command.args(["-icount", "shift=0,sleep=off"]);
            }
            command.args(["-nographic", "-monitor", "none", "-kernel"]);
        }
        let output = command
            .arg(image)
            .stdin(Stdio::null())
            .output()
            .map_err(|_| Missing::Tool(qemu.into()))?;
        if output.status.code() == Some(127) {
            return Err(Missing::Tool(format!(
                "{qemu} (Debian: qemu-system-arm, qemu-system-misc, qemu-user)"
            )));
        }
        // Semihosting writes to the standard error.
        let printed = [output.stdout, output.stderr].concat();
        Ok((String::from_utf8_lossy(&printed).into_owned(), output.status.success()))
    }
}

/// Builds the image that has a stand-in for GAP8's runtime, with this clang.
#[allow(dead_code, reason = "not for the benchmark")]
pub(crate) fn build_gap8(target_folder: &Path, clang: &Path) -> Result<PathBuf, Missing> {
    let target = Machine::Riscv32.target();
    let mut command = toolchain(target)?;
    command.env("RUSTFLAGS", "--cfg tenure_xpulp").env("CLANG", clang);
    command.args(["--bin", "tenure-cipher-gap8"]);
    let folder = build(command, target, &["gap8"], &target_folder.join("gap8"))?;
    Ok(folder.join("tenure-cipher-gap8"))
}

/// Runs a build of the image's crate; where its programs are.
fn build(
    mut command: Command,
    target: &str,
    features: &[&str],
    target_folder: &Path,
) -> Result<PathBuf, Missing> {
    command.current_dir(device_folder()).arg("--target").arg(target);
    command.arg("--target-dir").arg(target_folder).args(["--features", &features.join(",")]);
    let output = command.output().map_err(|error| Missing::Build(error.to_string()))?;
    if !output.status.success() {
        return Err(Missing::Build(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(target_folder.join(target).join("release"))
}

/// Runs an image on Arm's board and has QEMU write down each instruction's address.
pub(crate) fn trace(image: &Path) -> Result<String, Missing> {
    let (qemu, arguments) = Machine::Thumbv7m.qemu();
    let log = image.with_extension("trace");
    // The newer form, then that of QEMU before 8.1.
    for one_by_one in [&["-accel", "tcg,one-insn-per-tb=on"][..], &["-singlestep"]] {
        let output = Command::new("timeout")
            .arg(patience().as_secs().to_string())
            .arg(qemu)
            .args(arguments)
            .args(one_by_one)
            .args(["-d", "exec,nochain", "-nographic", "-monitor", "none", "-D"])
            .arg(&log)
            .arg("-kernel")
            .arg(image)
            .stdin(Stdio::null())
            .output()
            .map_err(|_| Missing::Tool(qemu.into()))?;
        if output.status.success() {
            let text = std::fs::read_to_string(&log);
            let _ = std::fs::remove_file(&log);
            return text.map_err(|error| Missing::Build(error.to_string()));
        }
    }
    Err(Missing::Tool(format!("a {qemu} that writes traces (Debian: qemu-system-arm)")))
}

/// The image's crate: this file serves the tests of `crates/cipher` and its benchmark.
fn device_folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap_or(here);
    root.join("crates/cipher/device")
}

/// `cargo build --release` for a target without std: rustup's, or else Debian's with its sources.
fn toolchain(target: &str) -> Result<Command, Missing> {
    if let Ok(sysroot) = Command::new("rustc").args(["--print", "sysroot"]).output() {
        let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_string();
        if Path::new(&sysroot).join("lib/rustlib").join(target).exists() {
            let mut command = Command::new("cargo");
            command.args(["build", "--release", "--quiet"]);
            clean(&mut command);
            return Ok(command);
        }
    }
    let sources = Path::new("/usr/lib/rustlib/src").exists() || Path::new("/usr/src").exists();
    let linker = newest("ld.lld");
    let (true, Some(linker)) = (sources && Path::new("/usr/bin/cargo").exists(), linker) else {
        return Err(Missing::Tool(format!(
            "the target {target}: `rustup target add {target}`, or Debian's rustc-web, cargo-web, \
             rust-web-src and lld"
        )));
    };
    let mut command = Command::new("/usr/bin/cargo");
    command.args(["build", "--release", "--quiet", "-Zbuild-std=core"]);
    clean(&mut command);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("/usr/bin:{path}")).env("RUSTC_BOOTSTRAP", "1");
    let variable = target.to_uppercase().replace('-', "_");
    command.env(format!("CARGO_TARGET_{variable}_LINKER"), linker);
    Ok(command)
}

/// Takes out what an outer cargo left in the environment.
fn clean(command: &mut Command) {
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_TARGET_DIR"] {
        command.env_remove(variable);
    }
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTC_WRAPPER");
}

/// A tool of LLVM under any of Debian's names.
pub(crate) fn newest(tool: &str) -> Option<PathBuf> {
    let mut names = vec![tool.to_string()];
    names.extend((14..40).rev().map(|version| format!("{tool}-{version}")));
    names.into_iter().map(|name| Path::new("/usr/bin").join(name)).find(|path| path.exists())
}
