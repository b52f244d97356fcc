//! `tenure toolchain`: the compilers of the languages that machines are written in.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::json;

use crate::make::javascript_project;
use crate::make::lua_project;
use crate::make::registry_tools::{RegistryTool, asc, zig};
use crate::make::toolchain::{
    Clang, NEUTRAL, RUST_TARGET, RUST_WASI_TARGET, Rust, Sysroot, has_rust_target, neutral,
};
use crate::terminal::output::Output;

/// Install the compilers of languages for machines, or show which are there.
///
/// Compilers that a registry of packages has are stored in a folder of Tenure's own, at the version that the SDK is tested
/// with: `tenure/toolchains` in your folder of data, or `$TENURE_TOOLCHAINS`. For the others the error names the command that
/// installs them.
///
/// Example: tenure toolchain install zig
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Install the compilers of these languages.
    Install(Install),
    /// Show each language with its compiler, or how to get it.
    List,
}

#[derive(clap::Args)]
struct Install {
    /// The languages.
    #[arg(required = true, value_enum)]
    languages: Vec<Toolchain>,
    /// Let rustup and Debian's apt-get install, too, for all of this computer.
    #[arg(long)]
    system: bool,
}

/// The languages of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Toolchain {
    /// Rust, with programs for WASI.
    Rust,
    /// C, with the SDK's small library.
    C,
    /// C++, and C with the standard library.
    #[value(alias = "c++")]
    Cpp,
    /// AssemblyScript.
    #[value(name = "assemblyscript")]
    AssemblyScript,
    /// Zig.
    Zig,
    /// JavaScript.
    #[value(name = "javascript")]
    JavaScript,
    /// Lua.
    Lua,
    /// Go, by TinyGo.
    #[value(name = "tinygo")]
    TinyGo,
}

const ALL: [Toolchain; 8] = [
    Toolchain::Rust,
    Toolchain::C,
    Toolchain::Cpp,
    Toolchain::AssemblyScript,
    Toolchain::Zig,
    Toolchain::JavaScript,
    Toolchain::Lua,
    Toolchain::TinyGo,
];

/// Runs `tenure toolchain`.
///
/// # Errors
/// A compiler can't be installed; the error says by what else.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    match &arguments.action {
        Action::Install(install) => {
            install.languages.iter().try_for_each(|it| it.install(install.system, output))
        }
        Action::List => {
            ALL.into_iter().for_each(|toolchain| toolchain.show(output));
            Ok(())
        }
    }
}

impl Toolchain {
    fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::AssemblyScript => "assemblyscript",
            Self::Zig => "zig",
            Self::JavaScript => "javascript",
            Self::Lua => "lua",
            Self::TinyGo => "tinygo",
        }
    }

    /// The compiler that builds it here, or how to get one.
    fn found(self) -> anyhow::Result<String> {
        match self {
            Self::Rust => {
                Rust::find(RUST_TARGET, Path::new(NEUTRAL))?;
                let wasi = match has_rust_target(RUST_WASI_TARGET) {
                    true => "",
                    false => "; for programs for WASI run: rustup target add wasm32-wasip1",
                };
                Ok(format!("{}{wasi}", said(neutral("rustc").arg("--version"))?))
            }
            Self::C => said(neutral(Clang::find()?.program).arg("--version")),
            Self::Cpp => {
                let (clang, folder) = (Clang::find()?, tempfile::tempdir()?);
                let sysroot = Sysroot::find(&clang, folder.path())?;
                Ok(format!("{}, {}", said(neutral(clang.program).arg("--version"))?, sysroot.cpp_headers.display()))
            }
            // A project's own is used where that is built, and isn't asked here.
            Self::AssemblyScript => said(asc(None)?.arg("--version")),
            Self::Zig => Ok(format!("Zig {}", said(zig()?.arg("version"))?)),
            Self::JavaScript => javascript_project::found(),
            Self::Lua => lua_project::found(),
            Self::TinyGo => said(neutral("tinygo").arg("version")).context(
                "TinyGo is in no registry of packages: get it from tinygo.org; what `tinygo build -target=wasip1` makes is \
                 packed with `module` in tenure.toml",
            ),
        }
    }

    fn show(self, output: &Output) {
        let name = self.name();
        let found = self.found();
        let text = match &found {
            Ok(compiler) => compiler.clone(),
            Err(way) => format!("not here: {way}"),
        };
        let is_there = found.is_ok();
        let object = json!({ "language": name, "is_there": is_there, "compiler": text });
        output.line(&format!("{name:<15} {text}"), &object);
    }

    fn install(self, system: bool, output: &Output) -> anyhow::Result<()> {
        let name = self.name();
        let tool = match self {
            Self::AssemblyScript => RegistryTool::AssemblyScript,
            Self::Zig => RegistryTool::Zig,
            Self::JavaScript => RegistryTool::JavaScript,
            Self::Lua => RegistryTool::Lua,
            _ => return self.install_for_all(system, output),
        };
        let program = tool.install().with_context(|| format!("{name} isn't installed"))?;
        let version = tool.version();
        match self {
            Self::JavaScript => javascript_project::make_engine()?,
            Self::Lua => lua_project::make_engine()?,
            _ => {}
        }
        output.line(
            &format!("installed {name} {version}: {}", program.display()),
            &json!({ "language": name, "version": version, "compiler": program }),
        );
        Ok(())
    }

    /// By a program that installs for all of this computer, if that is wanted.
    fn install_for_all(self, system: bool, output: &Output) -> anyhow::Result<()> {
        let name = self.name();
        let words: &[&str] = match self {
            Self::Rust => &["rustup", "target", "add", RUST_TARGET, RUST_WASI_TARGET],
            Self::C => &["apt-get", "install", "-y", "--no-remove", "clang-22", "lld-22"],
            Self::Cpp => &[
                "apt-get",
                "install",
                "-y",
                "--no-remove",
                "clang-22",
                "lld-22",
                "wasi-libc",
                "libc++-22-dev-wasm32",
                "libc++abi-22-dev-wasm32",
                "libclang-rt-22-dev-wasm32",
            ],
            _ => {
                let compiler = self.found()?;
                output.line(&compiler, &json!({ "language": name, "compiler": compiler }));
                return Ok(());
            }
        };
        if !system {
            bail!(
                "{name} is installed for all of this computer; add --system, or run: {}",
                words.join(" ")
            );
        }
        let mut command = neutral(words.first().copied().unwrap_or_default());
        command.args(words.get(1..).unwrap_or_default()).env("DEBIAN_FRONTEND", "noninteractive");
        let status = command.stdin(Stdio::null()).status();
        let program = words.first().copied().unwrap_or_default();
        if !status.with_context(|| format!("can't run {program}"))?.success() {
            bail!("{program} can't install it; see what it says above");
        }
        let compiler = self.found()?;
        output.line(
            &format!("installed {name}: {compiler}"),
            &json!({ "language": name, "compiler": compiler }),
        );
        Ok(())
    }
}

/// The first line of what a compiler says of itself.
fn said(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.with_context(|| format!("can't run {program}"))?;
    anyhow::ensure!(output.status.success(), "{program} doesn't say its version");
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
