//! Builds the program in `tests/device` for a bare machine, and runs it there.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

pub(crate) struct Machine {
    pub(crate) name: &'static str,
    emulator: &'static str,
    arguments: &'static [&'static str],
    program: PathBuf,
    folder: PathBuf,
}

impl Machine {
    pub(crate) fn riscv() -> Machine {
        Machine::riscv_in("RV32", "release")
    }

    /// Optimised for size, where the engine is built another way.
    pub(crate) fn small_riscv() -> Machine {
        Machine::riscv_in("small RV32", "small")
    }

    fn riscv_in(name: &'static str, profile: &str) -> Machine {
        Machine::new(
            name,
            "riscv32imac-unknown-none-elf",
            profile,
            "qemu-system-riscv32",
            &["-M", "virt", "-cpu", "rv32,s=false,f=false,d=false,h=false", "-m", "512M"],
        )
    }

    pub(crate) fn thumb() -> Machine {
        let arguments = &["-M", "mps2-an385"];
        Machine::new("Thumb", "thumbv7m-none-eabi", "release", "qemu-system-arm", arguments)
    }

    /// The smallest core of a board: no division, every access at its multiple.
    pub(crate) fn small_thumb() -> Machine {
        let arguments = &["-M", "mps2-an385"];
        Machine::new("small Thumb", "thumbv6m-none-eabi", "small", "qemu-system-arm", arguments)
    }

    fn new(
        name: &'static str,
        target: &str,
        profile: &str,
        emulator: &'static str,
        arguments: &'static [&'static str],
    ) -> Machine {
        let place = format!("emulated-{}", name.replace(' ', "-"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
        fs::create_dir_all(&folder).expect("writable");
        Machine { name, emulator, arguments, program: build(target, profile), folder }
    }

    /// Executes a task; what it writes.
    pub(crate) fn run(&mut self, task: &str, input: &[u8]) -> Vec<u8> {
        self.run_with(task, input, &[])
    }

    /// As `run`, where instructions are counted: each takes a nanosecond.
    pub(crate) fn count(&mut self, task: &str, input: &[u8]) -> Vec<u8> {
        self.run_with(task, input, &["-icount", "shift=0,sleep=off"])
    }

    fn run_with(&mut self, task: &str, input: &[u8], more: &[&str]) -> Vec<u8> {
        // Each test has files of its own, as tests run side by side.
        let path = |what: &str| self.folder.join(format!("{task}.{what}"));
        let (from, to) = (path("input"), path("output"));
        fs::write(&from, input).expect("writable");
        let _ = fs::remove_file(&to);
        let semihosting = format!(
            "enable=on,target=native,arg={task},arg={},arg={}",
            from.display(),
            to.display()
        );
        let output = Command::new(self.emulator)
            .args(self.arguments)
            .args(more)
            .args(["-bios", "none", "-nographic", "-monitor", "none", "-serial", "null"])
            .args(["-semihosting-config", &semihosting, "-kernel"])
            .arg(&self.program)
            .output()
            .expect("QEMU is installed: cargo xtask setup");
        assert!(
            output.status.success(),
            "{}: {}{}",
            self.name,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        fs::read(&to).expect("the device writes its output")
    }
}

/// Builds with the active toolchain's target, or with Debian's toolchain and sources.
fn build(target: &str, profile: &str) -> PathBuf {
    let device = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device");
    let products = Path::new(env!("CARGO_TARGET_TMPDIR")).join("device").join(profile);
    let mut cargo = Command::new(env!("CARGO"));
    if !has_target(target) {
        cargo = Command::new("/usr/bin/cargo");
        let path = env::var("PATH").unwrap_or_default();
        cargo.env("PATH", format!("/usr/bin:{path}")).env("RUSTC_BOOTSTRAP", "1");
        for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
            cargo.env_remove(variable);
        }
        let linker = (15..30).rev().map(|release| format!("ld.lld-{release}"));
        let linker = linker.into_iter().find(|name| Path::new("/usr/bin").join(name).exists());
        let linker = linker.unwrap_or("ld.lld".into());
        cargo.args(["--config", &format!("target.{target}.linker={linker:?}")]);
        cargo.arg("-Zbuild-std=core,alloc");
    }
    cargo.args(["build", "--quiet", "--profile", profile, "--target", target]);
    // Flags for this machine are none for that. What the flag forbids goes wrong: see the board's.
    cargo.current_dir(&device).env("CARGO_TARGET_DIR", &products);
    cargo.env("RUSTFLAGS", "-Cllvm-args=-enable-machine-outliner=never");
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "the device's program could not be built for {target}");
    products.join(target).join(profile).join("tenure-vm-test-device")
}

fn has_target(target: &str) -> bool {
    let answer =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    answer.is_ok_and(|answer| {
        Path::new(String::from_utf8_lossy(&answer.stdout).trim()).join("").is_dir()
    })
}
