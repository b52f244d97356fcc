//! `tenure new`: makes a project that builds, of a machine or of a protocol for the mesh.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tenure_wire::Name;

use crate::make::sdk;
use crate::terminal::output::Output;

/// Make a machine project in a new folder, or a project of a protocol for the mesh.
#[derive(clap::Args)]
#[command(
    after_help = "Example: tenure new thermostat --lang rust\nExample: tenure new --protocol leader"
)]
pub struct Arguments {
    /// The name of the machine, its package and the folder.
    name: Name,
    /// The language.
    #[arg(long, value_enum, default_value = "rust")]
    lang: Kind,
    /// Make a protocol for the mesh instead, in Rust: with a test, a scenario, and a program that runs it in the
    /// simulator and on devices.
    #[arg(long, conflicts_with = "lang")]
    protocol: bool,
    /// The folder of Tenure's sources that a protocol is built with; by default the one that this command was built from.
    #[arg(long, value_name = "FOLDER", requires = "protocol")]
    sources: Option<PathBuf>,
}

/// The kinds of projects that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Rust.
    Rust,
    /// C, with the SDK's small library.
    C,
    /// C++, with the standard library.
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
    /// C or C++ with the API of the 2020 Nihilo, and budgets that its programs fit into.
    Nihilo,
}

/// The files of a new project: where they go, and what they hold.
type Template = &'static [(&'static str, &'static str)];

const RUST: Template = &[
    ("tenure.toml", include_str!("../../templates/rust/tenure.toml")),
    ("Cargo.toml", include_str!("../../templates/rust/Cargo.toml")),
    (".cargo/config.toml", include_str!("../../templates/rust/.cargo/config.toml")),
    ("src/lib.rs", include_str!("../../templates/rust/src/lib.rs")),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

const C: Template = &[
    ("tenure.toml", include_str!("../../templates/c/tenure.toml")),
    ("src/main.c", include_str!("../../templates/c/src/main.c")),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

const CPP: Template = &[
    ("tenure.toml", include_str!("../../templates/cpp/tenure.toml")),
    ("src/main.cpp", include_str!("../../templates/cpp/src/main.cpp")),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

const ASSEMBLY_SCRIPT: Template = &[
    ("tenure.toml", include_str!("../../templates/assemblyscript/tenure.toml")),
    ("assembly/index.ts", include_str!("../../templates/assemblyscript/assembly/index.ts")),
    (
        "assembly/tsconfig.json",
        include_str!("../../templates/assemblyscript/assembly/tsconfig.json"),
    ),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

const ZIG: Template = &[
    ("tenure.toml", include_str!("../../templates/zig/tenure.toml")),
    ("src/main.zig", include_str!("../../templates/zig/src/main.zig")),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

const JAVASCRIPT: Template = &[
    ("tenure.toml", include_str!("../../templates/javascript/tenure.toml")),
    ("src/main.js", include_str!("../../templates/javascript/src/main.js")),
    ("jsconfig.json", include_str!("../../templates/javascript/jsconfig.json")),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

const LUA: Template = &[
    ("tenure.toml", include_str!("../../templates/lua/tenure.toml")),
    ("src/main.lua", include_str!("../../templates/lua/src/main.lua")),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

const NIHILO: Template = &[
    ("tenure.toml", include_str!("../../templates/nihilo/tenure.toml")),
    ("src/root.cpp", include_str!("../../templates/nihilo/src/root.cpp")),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

const PROTOCOL: Template = &[
    ("Cargo.toml", include_str!("../../templates/protocol/Cargo.toml")),
    ("src/lib.rs", include_str!("../../templates/protocol/src/lib.rs")),
    ("src/main.rs", include_str!("../../templates/protocol/src/main.rs")),
    ("tests/elects.rs", include_str!("../../templates/protocol/tests/elects.rs")),
    ("scenario.toml", include_str!("../../templates/protocol/scenario.toml")),
    ("README.md", include_str!("../../templates/protocol/README.md")),
    (".gitignore", "/target\n"),
];

/// Runs `tenure new` in the current folder.
///
/// # Errors
/// The folder is there already, or can't be written.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let (name, parent) = (&arguments.name, Path::new("."));
    let (folder, next) = if arguments.protocol {
        let sources = sources(arguments.sources.as_deref())?;
        (create_protocol(parent, name, &sources)?, "cargo run -- sim scenario.toml")
    } else {
        (create(parent, name, arguments.lang)?, "tenure build")
    };
    output.line(
        &format!("made {}; next: cd {name} && {next}", folder.display()),
        &serde_json::json!({ "project": folder, "name": name }),
    );
    Ok(())
}

/// Makes the project `name` in a folder of that name in `parent`.
///
/// # Errors
/// The folder is there already, or can't be written.
pub fn create(parent: &Path, name: &Name, kind: Kind) -> anyhow::Result<PathBuf> {
    let template = match kind {
        Kind::Rust => RUST,
        Kind::C => C,
        Kind::Cpp => CPP,
        Kind::AssemblyScript => ASSEMBLY_SCRIPT,
        Kind::Zig => ZIG,
        Kind::JavaScript => JAVASCRIPT,
        Kind::Lua => LUA,
        Kind::Nihilo => NIHILO,
    };
    let folder = write(parent, name, template, &[])?;
    sdk::install(&folder).with_context(|| format!("can't write to {}", folder.display()))?;
    Ok(folder)
}

/// Makes the project of the protocol `name`, built with Tenure's sources in `sources`.
///
/// # Errors
/// The folder is there already, or can't be written.
pub fn create_protocol(parent: &Path, name: &Name, sources: &Path) -> anyhow::Result<PathBuf> {
    let text = sources.to_str().context("the path of Tenure's sources isn't UTF-8")?;
    if text.contains(['"', '\\']) {
        bail!("{text}: a path with quotes or backslashes can't stand in Cargo.toml");
    }
    let folder = write(parent, name, PROTOCOL, &[("{{sources}}", text)])?;
    // The versions that Tenure is tested with; cargo leaves out those that the project doesn't need.
    let (from, to) = (sources.join("Cargo.lock"), folder.join("Cargo.lock"));
    fs::copy(&from, &to).with_context(|| format!("can't copy {}", from.display()))?;
    Ok(folder)
}

/// The folder of Tenure's sources: the one that is named, or the one that this command was built from.
fn sources(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = named.map_or(built_from, Path::to_owned);
    if !folder.join("crates/protocols/src/plug_in.rs").is_file() {
        bail!(
            "{} doesn't hold Tenure's sources, which no registry has; get them, and name their folder: --sources FOLDER",
            folder.display()
        );
    }
    fs::canonicalize(&folder).with_context(|| folder.display().to_string())
}

/// Writes the files of a project, with its name and `words` put in.
fn write(
    parent: &Path,
    name: &Name,
    template: Template,
    words: &[(&str, &str)],
) -> anyhow::Result<PathBuf> {
    let folder = parent.join(name.as_str());
    if folder.exists() {
        bail!("{} is there already; choose another name or remove it", folder.display());
    }
    for (file, text) in template {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).with_context(|| format!("can't make {}", parent.display()))?;
        let named = text.replace("{{name}}", name.as_str());
        let text = words.iter().fold(named, |text, (word, with)| text.replace(word, with));
        fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(folder)
}
