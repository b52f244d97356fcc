//! Compilers that come from registries of packages: which version, where Tenure keeps it, and which one is used.
//!
//! Each lies in a folder of its own with its version in the name, complete from the moment that it has that name. What
//! JavaScript and Lua take is pinned by its digests, too.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::programs::{NEUTRAL, command, neutral};

/// The folder for compilers, instead of `tenure/toolchains` in the user's folder of data (XDG).
const FOLDER_VARIABLE: &str = "TENURE_TOOLCHAINS";

/// JavaScript's engine in the folder of its installation: the C files of MicroQuickJS, as the crate `rmquickjs-sys` carries
/// them.
pub(crate) const ENGINE_SOURCES: &str = "engine/vendor/rmquickjs-sys/mquickjs";
/// TypeScript in the same folder, with which JavaScript of today becomes that of 2009.
pub(crate) const TYPESCRIPT: &str = "node_modules/typescript";

/// What tells cargo and npm which packages to fetch for JavaScript, by their digests. The crate's build script isn't run, and
/// so the crates that it takes are empty ones.
const JAVASCRIPT_FILES: [(&str, &str); 9] = [
    ("package.json", include_str!("javascript/package.json")),
    ("package-lock.json", include_str!("javascript/package-lock.json")),
    ("engine/Cargo.toml", include_str!("javascript/Cargo.toml.in")),
    ("engine/Cargo.lock", include_str!("javascript/Cargo.lock.in")),
    ("engine/src/lib.rs", ""),
    ("engine/bindgen/Cargo.toml", include_str!("javascript/bindgen.toml.in")),
    ("engine/bindgen/src/lib.rs", ""),
    ("engine/cc/Cargo.toml", include_str!("javascript/cc.toml.in")),
    ("engine/cc/src/lib.rs", ""),
];

/// Lua's C files in the folder of its installation, as the crate `lua-src` carries them.
pub(crate) const LUA_SOURCES: &str = "engine/vendor/lua-src/lua-5.5.1";

/// What tells cargo which package to fetch for Lua, by its digest. The crate's code isn't compiled, and so the crate that it
/// takes is an empty one.
const LUA_FILES: [(&str, &str); 5] = [
    ("engine/Cargo.toml", include_str!("lua/Cargo.toml.in")),
    ("engine/Cargo.lock", include_str!("lua/Cargo.lock.in")),
    ("engine/src/lib.rs", ""),
    ("engine/cc/Cargo.toml", include_str!("javascript/cc.toml.in")),
    ("engine/cc/src/lib.rs", ""),
];

/// A compiler that a registry has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegistryTool {
    /// npm's `assemblyscript`.
    AssemblyScript,
    /// PyPI's `ziglang`.
    Zig,
    /// The crate `rmquickjs-sys`, which carries MicroQuickJS, and npm's `typescript`.
    JavaScript,
    /// The crate `lua-src`, which carries Lua.
    Lua,
}

impl RegistryTool {
    /// Its language, as commands take it.
    pub(crate) fn language(self) -> &'static str {
        match self {
            Self::AssemblyScript => "assemblyscript",
            Self::Zig => "zig",
            Self::JavaScript => "javascript",
            Self::Lua => "lua",
        }
    }

    /// The version that the SDK is tested with.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::AssemblyScript => "0.28.20",
            Self::Zig => "0.17.1",
            Self::JavaScript => "1.0.0",
            Self::Lua => "551.1.0",
        }
    }

    /// The files that it isn't without, below the folder of its installation; the compiler first.
    fn files(self) -> &'static [&'static str] {
        match self {
            Self::AssemblyScript => &["node_modules/assemblyscript/bin/asc.js"],
            Self::Zig => &["ziglang/zig"],
            Self::JavaScript => &[
                "node_modules/typescript/lib/typescript.js",
                "engine/vendor/rmquickjs-sys/mquickjs/mquickjs.c",
            ],
            Self::Lua => &["engine/vendor/lua-src/lua-5.5.1/lua.h"],
        }
    }

    /// The compiler below the folder of its installation.
    fn program(self) -> &'static str {
        self.files().first().copied().unwrap_or_default()
    }

    /// Where it is once it is installed.
    ///
    /// # Errors
    /// The environment names no folder.
    pub(crate) fn place(self) -> anyhow::Result<PathBuf> {
        Ok(folder()?.join(format!("{}-{}", self.language(), self.version())))
    }

    /// The one that Tenure has installed.
    pub(crate) fn installed(self) -> Option<PathBuf> {
        let place = self.place().ok()?;
        let is_whole = self.files().iter().all(|file| place.join(file).is_file());
        is_whole.then(|| place.join(self.program()))
    }

    /// Installs it, by the client of its registry.
    ///
    /// # Errors
    /// The client isn't there or fails, or the folder can't be written.
    pub(crate) fn install(self) -> anyhow::Result<PathBuf> {
        let place = self.place()?;
        if let Some(program) = self.installed() {
            return Ok(program);
        }
        let parent = folder()?;
        std::fs::create_dir_all(&parent)
            .with_context(|| format!("can't make {}", parent.display()))?;
        let draft = tempfile::tempdir_in(&parent)
            .with_context(|| format!("can't write to {}", parent.display()))?;
        for mut client in self.clients(draft.path())? {
            let name = client.get_program().to_string_lossy().into_owned();
            let status = client.stdin(Stdio::null()).stdout(Stdio::null()).status();
            let status =
                status.with_context(|| format!("can't run {name}; {}", self.prerequisite()))?;
            if !status.success() {
                bail!("{name} can't fetch it; see what it says above ({})", self.prerequisite());
            }
        }
        if let Some(missing) = self.files().iter().find(|file| !draft.path().join(file).is_file()) {
            bail!("no {missing} was fetched");
        }
        // One that lost a part is in the way. Another command's has that name when it is whole, so that it is looked for first.
        if place.exists() && self.installed().is_none() {
            std::fs::remove_dir_all(&place)
                .with_context(|| format!("can't replace {}", place.display()))?;
        }
        let moved = std::fs::rename(draft.path(), &place);
        // Another command may have been faster.
        if self.installed().is_none() {
            moved.with_context(|| format!("can't write {}", place.display()))?;
        }
        Ok(place.join(self.program()))
    }

    /// The commands that fetch it into `folder`.
    fn clients(self, folder: &Path) -> anyhow::Result<Vec<Command>> {
        let npm = |verb: &str| {
            let mut npm = command("npm");
            npm.current_dir(folder);
            npm.args([verb, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
            npm.arg("--prefix").arg(folder);
            npm
        };
        Ok(match self {
            Self::AssemblyScript => {
                let mut npm = npm("install");
                npm.arg(format!("assemblyscript@{}", self.version()));
                vec![npm]
            }
            Self::Zig => {
                let mut python = isolated_python();
                python.current_dir(folder).args(["-m", "pip", "install", "--quiet", "--no-deps"]);
                python.args(["--root-user-action=ignore", "--only-binary=:all:", "--target"]);
                python.arg(folder).arg(format!("ziglang=={}", self.version()));
                vec![python]
            }
            Self::JavaScript => {
                write(folder, &JAVASCRIPT_FILES)?;
                vec![vendor(folder), npm("ci")]
            }
            Self::Lua => {
                write(folder, &LUA_FILES)?;
                vec![vendor(folder)]
            }
        })
    }

    /// The way to its client.
    fn prerequisite(self) -> &'static str {
        match self {
            Self::AssemblyScript => {
                "it needs Node.js and npm; on Debian run: apt-get install nodejs npm"
            }
            Self::Zig => "it needs Python with pip; on Debian run: apt-get install python3-pip",
            Self::JavaScript => {
                "it needs cargo, from https://rustup.rs, and Node.js with npm; on Debian run: apt-get install nodejs npm"
            }
            Self::Lua => "it needs cargo, from https://rustup.rs",
        }
    }
}

/// Writes what tells the clients of registries what to fetch.
fn write(folder: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        // Into a folder that has just been made, and that nobody else knows.
        std::fs::write(&path, text)?;
    }
    Ok(())
}

/// The command that fetches an engine's crate.
fn vendor(folder: &Path) -> Command {
    let mut cargo = command("cargo");
    cargo.args(["vendor", "--quiet", "--locked", "--respect-source-config", "vendor"]);
    cargo.current_dir(folder.join("engine"));
    cargo
}

/// Python that takes modules from where they are installed alone: none of the folder that it runs in, and none that the
/// environment names.
fn isolated_python() -> Command {
    let mut python = command("python3");
    python.arg("-I");
    python
}

/// The folder for compilers, from `/` on.
fn folder() -> anyhow::Result<PathBuf> {
    let folder = folder_of_environment()?;
    std::path::absolute(&folder).with_context(|| folder.display().to_string())
}

fn folder_of_environment() -> anyhow::Result<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(folder) = named(FOLDER_VARIABLE) {
        return Ok(folder);
    }
    let data = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")));
    let data =
        data.with_context(|| format!("no place for compilers is known: set {FOLDER_VARIABLE}"))?;
    Ok(data.join("tenure/toolchains"))
}

/// AssemblyScript's compiler: that of the project that is built, else Tenure's, else the one of this computer.
///
/// # Errors
/// There is none.
pub(crate) fn asc(project: Option<&Path>) -> anyhow::Result<Command> {
    let own = project.map(|project| project.join(RegistryTool::AssemblyScript.program()));
    let own = own.filter(|own| own.is_file()).map(std::path::absolute).transpose()?;
    if let Some(script) = own.or_else(|| RegistryTool::AssemblyScript.installed()) {
        let mut node = neutral("node");
        node.arg(script);
        return Ok(node);
    }
    if runs(neutral("asc").arg("--version")) {
        return Ok(neutral("asc"));
    }
    bail!("there is no AssemblyScript here; run: tenure toolchain install assemblyscript")
}

/// Zig's compiler: Tenure's, else the one of this computer. Zig changes from version to version, so the one that the SDK is
/// tested with goes before others.
///
/// # Errors
/// There is none.
pub(crate) fn zig() -> anyhow::Result<Command> {
    if let Some(program) = RegistryTool::Zig.installed() {
        return Ok(neutral(program));
    }
    if runs(neutral("zig").arg("version")) {
        return Ok(neutral("zig"));
    }
    let python = || {
        let mut python = isolated_python();
        python.current_dir(NEUTRAL).args(["-m", "ziglang"]);
        python
    };
    if runs(python().arg("version")) {
        return Ok(python());
    }
    bail!("there is no Zig here; run: tenure toolchain install zig")
}

fn runs(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
