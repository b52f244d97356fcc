//! `tenure new`: makes a project that builds, of a machine or of a protocol for the mesh.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tenure_wire::Name;

use crate::make::sdk;
use crate::make::toolchain::{Clang, Linker, RUST_TARGET, Rust};
use crate::terminal::output::Output;
use crate::whole_file;

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
    let mut words = vec![("{{reference}}", reference(kind))];
    if !has_exact_linker(kind, parent) {
        words.push(IN_PAGES);
    }
    made(parent, name, |folder| {
        write(folder, name, template, &words)?;
        sdk::install(folder).with_context(|| format!("can't write to {}", folder.display()))
    })
}

/// The memory that a template asks for, and what it asks for where the linker makes memories of whole pages alone.
const IN_PAGES: (&str, &str) = (
    "memory_bytes = 16384",
    "memory_bytes = 65536    # the linker of the computer that made this project makes whole pages of 64 KiB",
);

/// Whether what is made of a project below `parent` can be smaller than a page of 64 KiB. Where there is no compiler yet, the
/// one that its absence is told with can.
fn has_exact_linker(kind: Kind, parent: &Path) -> bool {
    match kind {
        Kind::Rust => Rust::find(RUST_TARGET, parent).map_or(true, |rust| rust.exact_memory()),
        Kind::C => Clang::find().map_or(true, |clang| clang.linker.exact_memory),
        // Without another linker Zig's own is taken.
        Kind::Zig => Linker::find().is_some_and(|linker| linker.exact_memory),
        Kind::Cpp | Kind::AssemblyScript | Kind::JavaScript | Kind::Lua | Kind::Nihilo => true,
    }
}

/// Where the names stand that a program of that kind may call.
fn reference(kind: Kind) -> &'static str {
    match kind {
        Kind::Rust => "`cargo doc --open -p tenure`, or docs/generated/api-rust.md of Tenure",
        Kind::C | Kind::Cpp => {
            "`.tenure/sdk/c/include/tenure.h`, or docs/generated/api-c.md of Tenure"
        }
        Kind::Nihilo => "`.tenure/sdk/c/include/nihilo.h`",
        Kind::AssemblyScript => "`.tenure/sdk/assemblyscript/tenure`",
        Kind::Zig => "`.tenure/sdk/zig`",
        Kind::JavaScript => "`.tenure/sdk/javascript/tenure.d.ts`",
        Kind::Lua => "docs/languages.md of Tenure, \"Lua\"",
    }
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
    made(parent, name, |folder| {
        write(folder, name, PROTOCOL, &[("{{sources}}", text)])?;
        // The versions that Tenure is tested with; cargo leaves out those that the project doesn't need.
        let (from, to) = (sources.join("Cargo.lock"), folder.join("Cargo.lock"));
        let failed = || format!("can't copy {}", from.display());
        whole_file::write(&to, fs::read(&from).with_context(failed)?).with_context(failed)
    })
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

/// What a project is called in words: the name of its folder, also if that is the one at hand, or its path.
pub(crate) fn name_of(folder: &Path) -> String {
    let whole = folder.file_name().is_none().then(|| fs::canonicalize(folder).ok()).flatten();
    let named = whole.as_deref().and_then(Path::file_name).map(|name| name.display().to_string());
    named.unwrap_or_else(|| folder.display().to_string())
}

/// Makes the folder of the project `name` in `parent` and fills it, or leaves nothing: half a project would be in the way of
/// the next one of that name.
fn made(
    parent: &Path,
    name: &Name,
    fill: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let folder = parent.join(name.as_str());
    // A link that leads to nothing is there, too.
    if folder.symlink_metadata().is_ok() {
        bail!("{} is there already; choose another name or remove it", folder.display());
    }
    fs::create_dir(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    match fill(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => {
            let _ = fs::remove_dir_all(&folder);
            Err(error)
        }
    }
}

/// Writes the files of a project, with its name and `words` put in.
fn write(
    folder: &Path,
    name: &Name,
    template: Template,
    words: &[(&str, &str)],
) -> anyhow::Result<()> {
    for (file, text) in template {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("can't make {}", parent.display()))?;
        let named = text.replace("{{name}}", name.as_str());
        let text = words.iter().fold(named, |text, (word, with)| text.replace(word, with));
        whole_file::write(&path, text)
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    /// The lists that readers copy from name each kind of project, so that a new one isn't forgotten there.
    #[test]
    fn lists_of_languages_in_the_docs_are_those_of_the_command() {
        let kinds: Vec<String> = Kind::value_variants()
            .iter()
            .filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_string()))
            .collect();
        for (page, text) in [
            ("README.md", include_str!("../../../../README.md")),
            ("docs/guide.md", include_str!("../../../../docs/guide.md")),
        ] {
            let line = text.lines().find(|line| line.starts_with("tenure new ")).expect(page);
            let words: Vec<&str> = line.split(|letter: char| !letter.is_alphanumeric()).collect();
            let missing =
                kinds.iter().filter(|kind| *kind != "rust" && !words.contains(&kind.as_str()));
            assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new(), "{page}: {line}");
        }
    }

    #[test]
    fn project_in_the_folder_at_hand_goes_by_that_folders_name() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("greeter/.");
        fs::create_dir(folder.path().join("greeter")).unwrap();
        assert_eq!(
            name_of(&here.join("..")),
            folder.path().file_name().unwrap().display().to_string()
        );
        assert_eq!(name_of(Path::new("some/greeter")), "some/greeter");
        let own = std::env::current_dir().unwrap();
        assert_eq!(name_of(Path::new(".")), own.file_name().unwrap().display().to_string());
    }
}
