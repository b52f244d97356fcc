//! `tenure new`: makes a machine project that builds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tenure_wire::Name;

use crate::make::sdk;
use crate::terminal::output::Output;

/// Make a machine project in a new folder.
#[derive(clap::Args)]
#[command(after_help = "Example: tenure new thermostat --lang rust")]
pub struct Arguments {
    /// The name of the machine, its package and the folder.
    name: Name,
    /// The language.
    #[arg(long, value_enum, default_value = "rust")]
    lang: Kind,
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

const NIHILO: Template = &[
    ("tenure.toml", include_str!("../../templates/nihilo/tenure.toml")),
    ("src/root.cpp", include_str!("../../templates/nihilo/src/root.cpp")),
    ("tests.toml", include_str!("../../templates/tests.toml")),
    ("README.md", include_str!("../../templates/README.md")),
    (".gitignore", include_str!("../../templates/gitignore")),
];

/// Runs `tenure new` in the current folder.
///
/// # Errors
/// The folder is there already, or can't be written.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let folder = create(Path::new("."), &arguments.name, arguments.lang)?;
    let name = &arguments.name;
    output.line(
        &format!("made {}; next: cd {name} && tenure build", folder.display()),
        &serde_json::json!({ "project": folder, "name": name }),
    );
    Ok(())
}

/// Makes the project `name` in a folder of that name in `parent`.
///
/// # Errors
/// The folder is there already, or can't be written.
pub fn create(parent: &Path, name: &Name, kind: Kind) -> anyhow::Result<PathBuf> {
    let folder = parent.join(name.as_str());
    if folder.exists() {
        bail!("{} is there already; choose another name or remove it", folder.display());
    }
    let template = match kind {
        Kind::Rust => RUST,
        Kind::C => C,
        Kind::Cpp => CPP,
        Kind::Nihilo => NIHILO,
    };
    for (file, text) in template {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).with_context(|| format!("can't make {}", parent.display()))?;
        fs::write(&path, text.replace("{{name}}", name.as_str()))
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    sdk::install(&folder).with_context(|| format!("can't write to {}", folder.display()))?;
    Ok(folder)
}
