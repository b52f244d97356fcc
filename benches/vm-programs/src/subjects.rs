//! What runs the programs: the processor itself, wasm3, and tenure-vm built in two ways.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::{self, Target, here};
use crate::emulator::{self, Run};
use crate::programs::Program;

const TARGET: &str = "riscv32imac-unknown-none-elf";

/// The subjects by their names, in the order of the runs.
pub const SUBJECTS: [&str; 4] = ["native", "wasm3 -O3", "tenure as shipped", "tenure at 3"];

/// A result with this bit is a program's own complaint.
const COMPLAINT: u32 = 1 << 31;

/// Everything but the programs, compiled.
pub struct Subjects {
    folder: PathBuf,
    /// Of each subject what is linked with a program.
    parts: [Vec<PathBuf>; 4],
    /// The library of C in WebAssembly.
    libc: PathBuf,
}

impl Subjects {
    /// Compiles them into a folder, wasm3 from the folder of its sources.
    pub fn build(folder: &Path, wasm3: &Path) -> Result<Subjects, String> {
        let common = folder.join("common");
        fs::create_dir_all(&common).map_err(|error| error.to_string())?;
        let libc = |target, name: &str, heap: &str| {
            let object = common.join(name);
            let flags = ["-O2", "-ffreestanding", heap];
            compile::object(target, &here().join("c/libc.c"), &[], &flags, &object)?;
            Ok::<_, String>(object)
        };
        let of_programs = "-DHEAP_BYTES=(2u<<20)";
        let native = common.join("native.o");
        compile::object(Target::Native, &here().join("c/native.c"), &[], &["-O2"], &native)?;
        let mut interpreter = wasm3_objects(wasm3, &common)?;
        interpreter.push(libc(Target::Native, "libc-wasm3.o", "-DHEAP_BYTES=(8u<<20)")?);
        let linked = device(folder, "release", false)?;
        interpreter.push(linked.clone());
        Ok(Subjects {
            folder: folder.into(),
            parts: [
                vec![native, libc(Target::Native, "libc-native.o", of_programs)?, linked],
                interpreter,
                vec![device(folder, "shipped", true)?],
                vec![device(folder, "release", true)?],
            ],
            libc: libc(Target::Wasm, "libc-wasm.o", of_programs)?,
        })
    }

    /// Runs a program with each, if all come to the same.
    pub fn run(&self, program: &Program) -> Result<[Run; 4], String> {
        let folder = self.folder.join("programs").join(&program.name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let native = objects(Target::Native, program, &folder)?;
        let mut wasm = objects(Target::Wasm, program, &folder)?;
        wasm.push(self.libc.clone());
        compile::module(&wasm, &folder.join("program.wasm"))?;
        let module = embedded(&folder)?;
        let mut runs = [Run { results: [0; 2], instructions: 0, fuel: 0 }; 4];
        for (index, subject) in SUBJECTS.iter().enumerate() {
            let mut parts = if index == 0 { native.clone() } else { vec![module.clone()] };
            parts.extend_from_slice(&self.parts[index]);
            let image = folder.join(format!("{index}.elf"));
            compile::image(&parts, &image)?;
            let run = emulator::run(&image).map_err(|error| format!("{subject}: {error}"))?;
            runs[index] = run;
            if run.results.iter().any(|result| result & COMPLAINT != 0) {
                return Err(format!(
                    "{subject}: the program says that {:x?} is wrong",
                    run.results
                ));
            }
            if run.results != runs[0].results {
                let (here, native) = (run.results, runs[0].results);
                return Err(format!("{subject} comes to {here:x?}, natively it is {native:x?}"));
            }
        }
        Ok(runs)
    }
}

/// Compiles a program's sources.
fn objects(target: Target, program: &Program, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let suffix = if target == Target::Native { "native" } else { "wasm" };
    let mut flags = vec!["-O2"];
    flags.extend(program.flags);
    let object = |(index, source): (usize, &PathBuf)| {
        let to = folder.join(format!("{index}.{suffix}.o"));
        compile::object(target, source, &program.include, &flags, &to).map(|()| to)
    };
    program.sources.iter().enumerate().map(object).collect()
}

/// An object that holds the folder's module.
fn embedded(folder: &Path) -> Result<PathBuf, String> {
    let (source, object) = (folder.join("module.S"), folder.join("module.o"));
    let module = folder.join("program.wasm");
    let text = format!(".section .program, \"a\"\n.incbin {:?}\n", module.display().to_string());
    fs::write(&source, text).map_err(|error| error.to_string())?;
    compile::object(Target::Native, &source, &[], &[] as &[&str], &object).map(|()| object)
}

/// Compiles the interpreter of wasm3, without what it lends to programs.
fn wasm3_objects(sources: &Path, to: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("m3_") && name.ends_with(".c") && !name.starts_with("m3_api_")
    });
    files.sort();
    files.push(here().join("c/wasm3.c"));
    let flags = ["-O3", "-DNDEBUG", "-Dd_m3LogOutput=0", "-Dd_m3VerboseErrorMessages=0"];
    let object = |file: PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let object = to.join(format!("wasm3-{name}.o"));
        compile::object(Target::Native, &file, &[sources.into()], &flags, &object).map(|()| object)
    };
    files.into_iter().map(object).collect()
}

/// Builds the library that a program is linked with, with tenure-vm or without.
fn device(folder: &Path, profile: &str, vm: bool) -> Result<PathBuf, String> {
    let products = folder.join(if vm { "vm" } else { "linked" });
    let mut cargo = Command::new("cargo");
    cargo.current_dir(here().join("device")).env("CARGO_TARGET_DIR", &products);
    cargo.args(["build", "--quiet", "--profile", profile, "--target", TARGET]);
    if vm {
        cargo.args(["--features", "vm"]);
    }
    // As in the configuration of boards.
    cargo.env("RUSTFLAGS", "-Ctarget-feature=+relax");
    if Path::new("/usr/lib/rustlib/src/rust/library").exists() {
        // Debian's toolchain, which builds the target from its sources.
        let path = std::env::var("PATH").unwrap_or_default();
        cargo.env("PATH", format!("/usr/bin:{path}")).env("RUSTC_BOOTSTRAP", "1");
        cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
        cargo.args(["-Zbuild-std=core,alloc", "-Zbuild-std-features=compiler-builtins-mem"]);
    }
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the device's library could not be built as {profile}"));
    }
    Ok(products.join(TARGET).join(profile).join("libtenure_vm_programs_device.a"))
}
