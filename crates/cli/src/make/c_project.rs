//! C and C++ projects: which files they have, and what compiles and links them to a module.
//!
//! Each file is compiled for itself, the SDK's once for as long as SDK, compiler and flags stay the same.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::make::fence;
use crate::make::project::name_of;
use crate::make::project_file::{Library, ProjectFile};
use crate::make::sdk::{self, Beside};
use crate::make::sources::gather;
use crate::make::toolchain::{Clang, Sysroot, command};
use crate::whole_file;

/// The options of every C file.
pub(crate) const C_FLAGS: [&str; 6] = [
    "-nostdlib",
    "-Oz",
    // For what debuggers want to know; the package doesn't carry it.
    "-g",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
];

/// A further option for the SDK's files, and for a project's with the small library: the SDK's own
/// memcpy and the like must not be compiled to calls of themselves.
pub(crate) const NO_BUILTIN: &str = "-fno-builtin";

/// What lets clang compile `setjmp` and `longjmp` as for emscripten, from which [`unwinding`](super::unwinding) makes plain
/// WebAssembly. Other code it leaves as it is.
pub(crate) const SETJMP_FLAGS: [&str; 2] = ["-mllvm", "-enable-emscripten-sjlj"];

/// The further options of every C++ file.
pub(crate) const CPP_FLAGS: [&str; 4] =
    ["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-Wno-writable-strings"];

/// Further options for the SDK's files with the standard library: the SDK formats its log lines by
/// its own small snprintf, so that the large one is linked only if the project uses it.
pub(crate) const SDK_FLAGS: [&str; 2] =
    ["-Dvsnprintf=tenure_vsnprintf", "-Dsnprintf=tenure_snprintf"];

/// Compiles a C or C++ project; gives the module's path, and whether its memory is as small as can be.
pub(crate) fn compile(folder: &Path, project: &ProjectFile) -> anyhow::Result<(PathBuf, bool)> {
    let clang = Clang::find()?;
    let build = Build::new(folder, project, &clang)?;
    let mut objects = build.sdk()?;
    for (number, source) in sources(folder, project)?.iter().enumerate() {
        let object = format!("target/wasm/{number}.o");
        let mut command = build.clang();
        if build.beside() == Beside::Small {
            command.arg(NO_BUILTIN);
        }
        build.add_language(&mut command, source);
        command.args(own_flags(project)).arg("-c").arg(source).args(["-o", &object]);
        // What it includes counts as a source; the list of it is written through no link that lies there.
        let list = format!("target/wasm/{number}.d");
        let _ = fs::remove_file(folder.join(&list));
        command.args(["-MMD", "-MF", &list]);
        if !run(&mut command)? {
            let advice = match build.beside() {
                Beside::Small => {
                    "; if a header of the standard library is missing, ask for it in tenure.toml: \
                     library = \"standard\" below [build]"
                }
                Beside::Standard | Beside::Wasi => "",
            };
            bail!("{} doesn't compile; see what clang says above{advice}", name_of(folder));
        }
        objects.push(object);
    }
    let wasm = build.link(&objects)?;
    Ok((wasm, clang.linker.exact_memory))
}

/// The flags that the project asks for.
pub(crate) fn own_flags(project: &ProjectFile) -> impl Iterator<Item = String> {
    let options = &project.build;
    let include = options.include.iter().map(|folder| format!("-I{}", folder.display()));
    let defines = options.defines.iter().map(|define| format!("-D{define}"));
    include.chain(defines).chain(options.flags.iter().cloned())
}

/// The project's C files: those it names, or all in `src` and the folders in it, in order.
pub(crate) fn sources(folder: &Path, project: &ProjectFile) -> anyhow::Result<Vec<PathBuf>> {
    if !project.build.sources.is_empty() {
        return Ok(project.build.sources.clone());
    }
    let found = gather(folder, Path::new("src"), |path| is_c(path) || is_cpp(path))?;
    if found.is_empty() {
        bail!("there is no .c or .cpp file in {}/src", folder.display());
    }
    Ok(found)
}

fn is_c(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "c")
}

pub(crate) fn is_cpp(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| ["cpp", "cc", "cxx"].iter().any(|one| extension == *one))
}

/// One build of a project.
struct Build<'a> {
    folder: &'a Path,
    project: &'a ProjectFile,
    clang: &'a Clang,
    sysroot: Option<Sysroot>,
}

impl<'a> Build<'a> {
    fn new(folder: &'a Path, project: &'a ProjectFile, clang: &'a Clang) -> anyhow::Result<Self> {
        let target = fence::made_folder(folder, "target/wasm")?;
        let is_small = project.build.library == Library::Small && project.wasi.is_none();
        let sysroot = (!is_small).then(|| Sysroot::find(clang, &target)).transpose()?;
        Ok(Self { folder, project, clang, sysroot })
    }

    /// What the project is built with besides itself. One with `[wasi]` is a program, and begins with `main`.
    fn beside(&self) -> Beside {
        match (&self.sysroot, &self.project.wasi) {
            (None, _) => Beside::Small,
            (Some(_), None) => Beside::Standard,
            (Some(_), Some(_)) => Beside::Wasi,
        }
    }

    /// The compiler, with what all files have in common.
    fn clang(&self) -> Command {
        let mut command = command(&self.clang.program);
        command.current_dir(self.folder).arg(self.target()).arg("-mbulk-memory").args(C_FLAGS);
        command.args(SETJMP_FLAGS);
        // The computer's own headers are for its own programs: clang 15 includes them for this target, too.
        command.arg("-nostdlibinc");
        let headers = if self.sysroot.is_some() { "standard" } else { "include" };
        command.arg(format!("-I{}/c/{headers}", sdk::FOLDER));
        command
    }

    fn target(&self) -> &'static str {
        if self.sysroot.is_some() { "--target=wasm32-wasip1" } else { "--target=wasm32" }
    }

    /// The further options of a file's language.
    fn add_language(&self, command: &mut Command, source: &Path) {
        if is_cpp(source) {
            command.args(CPP_FLAGS);
        }
        let Some(sysroot) = &self.sysroot else { return };
        if is_cpp(source) {
            command.args(["-nostdinc++", "-isystem"]).arg(&sysroot.cpp_headers);
        }
        command.arg("-isystem").arg(&sysroot.headers);
    }

    /// The SDK's object files, made anew if anything that they are made of has changed.
    fn sdk(&self) -> anyhow::Result<Vec<String>> {
        let standard = self.sysroot.is_some();
        let sources: Vec<String> = sdk::c_sources(self.beside()).collect();
        let object = |number: usize| format!("target/wasm/sdk-{number}.o");
        let objects: Vec<String> = (0..sources.len()).map(object).collect();
        let stamp = self.folder.join("target/wasm/sdk.stamp");
        let wanted = self.fingerprint();
        let is_there = |object: &String| self.folder.join(object).is_file();
        let is_wanted = |made: Vec<u8>| made == wanted.as_bytes();
        if whole_file::read(&stamp, wanted.len() as u64).is_ok_and(is_wanted)
            && objects.iter().all(is_there)
        {
            return Ok(objects);
        }
        for (source, object) in sources.iter().zip(&objects) {
            let mut command = self.clang();
            command.arg(NO_BUILTIN);
            if standard {
                command.args(SDK_FLAGS);
            }
            self.add_language(&mut command, Path::new(source));
            if !run(command.arg("-c").arg(source).args(["-o", object]))? {
                bail!("the SDK doesn't compile here; see what clang says above");
            }
        }
        whole_file::write(&stamp, wanted)
            .with_context(|| format!("can't write {}", stamp.display()))?;
        Ok(objects)
    }

    /// Changes with the SDK, the compiler and its words.
    fn fingerprint(&self) -> String {
        let mut hasher = DefaultHasher::new();
        sdk::hash(&mut hasher);
        format!("{:?}", self.beside()).hash(&mut hasher);
        format!("{:?}", self.clang()).hash(&mut hasher);
        let modified = fs::metadata(&self.clang.program).and_then(|metadata| metadata.modified());
        modified.ok().hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    fn link(&self, objects: &[String]) -> anyhow::Result<PathBuf> {
        let wasm = fence::module_to_make(self.folder, self.project.name.as_str())?;
        let mut command = command(&self.clang.program);
        let mut linker = OsString::from("-fuse-ld=");
        linker.push(&self.clang.linker.program);
        command.current_dir(self.folder).args([self.target(), "-nostdlib"]).arg(linker);
        match self.sysroot.as_ref().filter(|_| self.beside() == Beside::Wasi) {
            Some(sysroot) => {
                command.arg(sysroot.program_start().context(
                    "the standard library for WebAssembly has no crt1-command.o, with which programs begin",
                )?);
            }
            // Exporting it makes the linker leave it to us when constructors run: once.
            None => {
                command.args(["-Wl,--no-entry", "-Wl,--export=__wasm_call_ctors"]);
            }
        }
        for argument in self.project.link_arguments(self.clang.linker.exact_memory) {
            command.arg(format!("-Wl,{argument}"));
        }
        command.args(objects);
        if let Some(sysroot) = &self.sysroot {
            for folder in &sysroot.library_folders {
                command.arg("-L").arg(folder);
            }
            command.args(["-lc++", "-lc++abi", "-lc", "-lm"]).arg(&sysroot.builtins);
        }
        if !run(command.args(["-o", &wasm]))? {
            bail!("{} can't be linked; see what the linker says above", name_of(self.folder));
        }
        Ok(self.folder.join(wasm))
    }
}

/// Whether a compiler ended well.
fn run(command: &mut Command) -> anyhow::Result<bool> {
    let program = command.get_program().to_owned();
    let status = command.status();
    let status = status.with_context(|| format!("can't run {}", Path::new(&program).display()))?;
    Ok(status.success())
}
