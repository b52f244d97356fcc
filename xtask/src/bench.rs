//! `bench`: runs the benchmark programs of the crates and shows their figures.
//!
//! A benchmark is a `[[bench]]` with `harness = false` of a crate in the main workspace, or a
//! workspace of its own in `benches/`, where its peers take long to build. With `--json` it writes
//! [`Measurement`] lines to standard output, and anything else to standard error.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::measurement::{self, Measurement};
use crate::tenure::{self, Profile};
use crate::{process, size, toolchain, workspace};

/// Run benchmarks and show their figures.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask bench --list\n  cargo xtask bench store --json\n  \
    cargo xtask bench hub --database postgres"
)]
pub(crate) struct Arguments {
    /// The benchmark to run; all, if none is named.
    name: Option<String>,
    /// With `hub`: put processes of the command `tenure hub` under load that keep their records there, instead.
    #[arg(long, value_name = "ENGINE", value_enum, requires = "name")]
    database: Option<Database>,
    /// One JSON object a line: bench, target, subject, metric, unit, value.
    #[arg(long)]
    json: bool,
    /// Only list the benchmarks.
    #[arg(long)]
    list: bool,
    /// Arguments for the benchmark itself.
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Where the processes of a hub that is put under load keep their records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Database {
    /// One process on SQLite.
    Sqlite,
    /// One process on PostgreSQL, and two.
    Postgres,
}

/// The benchmark that needs the command `tenure`, and its name for whoever asks.
const LOAD: &str = "hub-load";
const HUB: &str = "hub";

impl Database {
    fn targets(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &["sqlite"],
            Self::Postgres => &["postgres", "postgres-2"],
        }
    }
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    if let Some(database) = arguments.database {
        return put_under_load(database, arguments, root);
    }
    let mut benches = find(root)?;
    benches.retain(|bench| bench.name != LOAD);
    if let Some(name) = &arguments.name {
        let mut names: Vec<_> = benches.iter().map(|bench| bench.name.clone()).collect();
        names.dedup();
        benches.retain(|bench| bench.name == *name);
        if benches.is_empty() {
            bail!("no benchmark is called {name}; there are: {}", names.join(", "));
        }
    }
    if arguments.list {
        benches.iter().for_each(|bench| println!("{:<12} {}", bench.name, bench.place));
        return Ok(());
    }
    let mut failed = Vec::new();
    for bench in &benches {
        if let Err(error) = measure(bench, arguments, root) {
            eprintln!("{}: {error:#}", bench.name);
            failed.push(&*bench.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Puts processes of the command under load, as somebody runs it who built it for use.
fn put_under_load(database: Database, arguments: &Arguments, root: &Path) -> Result<()> {
    if arguments.name.as_deref() != Some(HUB) {
        bail!("--database is for the benchmark {HUB}");
    }
    let tenure = tenure::built(root, Profile::Release)?;
    let bench = find(root)?.into_iter().find(|bench| bench.name == LOAD);
    let bench = bench.with_context(|| format!("no benchmark is called {LOAD}"))?;
    let targets = database.targets().iter().map(ToString::to_string);
    let targets: Vec<String> = targets.chain(arguments.rest.iter().cloned()).collect();
    let mut command = bench.command(root);
    command.env("TENURE", tenure);
    show(command, &targets, arguments.json)
}

#[derive(Debug)]
struct Bench {
    name: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A `[[bench]]` of this package of the main workspace.
    Package {
        name: String,
        /// The needs that its manifest names.
        features: Vec<String>,
    },
    /// A workspace of its own in this folder.
    Folder(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Package { name, .. } => write!(f, "in the crate {name}"),
            Place::Folder(folder) => write!(f, "with its peers, in {}", folder.display()),
        }
    }
}

/// A crate's benchmark and the comparison with its peers may share a name: both are run then.
fn find(root: &Path) -> Result<Vec<Bench>> {
    let mut found = Vec::new();
    for package in workspace::packages(root)? {
        let names = package.targets.iter().filter(|target| target.kind == ["bench"]);
        found.extend(names.map(|target| Bench {
            name: target.name.clone(),
            place: Place::Package {
                name: package.name.clone(),
                features: target.required_features.clone(),
            },
        }));
    }
    for folder in workspace::other_workspaces(root)? {
        let is_bench = folder.parent() == Some(&root.join("benches"));
        if is_bench && folder != size::probes_folder(root) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(Bench { name, place: Place::Folder(folder) });
        }
    }
    found.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(found)
}

impl Bench {
    fn command(&self, root: &Path) -> Command {
        match &self.place {
            Place::Package { name, features } => {
                let mut command = process::cargo(root);
                command.args(["bench", "--quiet", "--package", name, "--bench", &self.name]);
                if !features.is_empty() {
                    command.args(["--features", &features.join(",")]);
                }
                command
            }
            Place::Folder(folder) => {
                let mut command = process::cargo(folder);
                command.env("CARGO_TARGET_DIR", toolchain::target_folder(root));
                command.args(["run", "--quiet", "--release"]);
                command
            }
        }
    }
}

/// Runs the benchmark `name` with `arguments`, which fails if it exceeds a budget of its own, and returns its figures.
pub(crate) fn figures(name: &str, arguments: &[&str], root: &Path) -> Result<Vec<Measurement>> {
    let bench = find(root)?.into_iter().find(|bench| bench.name == name);
    let bench = bench.with_context(|| format!("no benchmark is called {name}"))?;
    let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
    collect(bench.command(root), &arguments, |_| {})
}

fn measure(bench: &Bench, arguments: &Arguments, root: &Path) -> Result<()> {
    show(bench.command(root), &arguments.rest, arguments.json)
}

/// Runs a benchmark's command and shows its figures, as lines of JSON or as tables.
fn show(command: Command, arguments: &[String], is_json: bool) -> Result<()> {
    let measurements = collect(command, arguments, |measurement| {
        if is_json {
            println!("{}", measurement.to_json());
        }
    });
    if let (false, Ok(measurements)) = (is_json, &measurements) {
        print!("{}", measurement::tables(measurements));
    }
    measurements.map(|_| ())
}

/// The figures of a benchmark, which `see` sees one by one.
fn collect(
    mut command: Command,
    arguments: &[String],
    see: impl Fn(&Measurement),
) -> Result<Vec<Measurement>> {
    command.args(["--", "--json"]).args(arguments);
    let mut measurements = Vec::new();
    let status = process::each_line(&mut command, |line| match Measurement::parse(line) {
        Some(measurement) => {
            see(&measurement);
            measurements.push(measurement);
        }
        None => eprintln!("{line}"),
    })?;
    process::succeeded(&command, status)?;
    if measurements.is_empty() {
        bail!("it measured nothing");
    }
    Ok(measurements)
}
