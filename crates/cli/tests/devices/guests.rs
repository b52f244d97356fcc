//! The packages that the tests install, built once by the real command.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tenure_testbed::fill_in_place;

/// The examples whose packages tests share, and the tests' own machines.
const EXAMPLES: [&str; 10] = [
    "climate",
    "counter",
    "crasher",
    "dashboard",
    "doorbell",
    "nihilo-a",
    "nihilo-b",
    "panel",
    "spinner",
    "thermostat",
];
const OWN: [&str; 2] = ["dear", "probe"];

/// Where the package of an example machine, or of `probe`, stands.
pub(crate) fn package(name: &str) -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(build_all);
    let path = folder.join(format!("{name}.tenure"));
    assert!(path.exists(), "no test builds {name}");
    path.into_os_string().into_string().unwrap()
}

/// `cargo xtask test` runs it before the others, so that none of them waits.
#[test]
fn machines_that_tests_share_are_built() {
    let built = |name: &&str| Path::new(&package(name)).is_file();
    assert!(EXAMPLES.iter().chain(&OWN).all(built));
}

/// Builds them once for all runs of the same command from the same sources.
fn build_all() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = EXAMPLES.map(|name| (name, here.join("../../examples").join(name)));
    let own = OWN.map(|name| (name, here.join("tests/devices").join(name)));
    let machines: Vec<_> = examples.into_iter().chain(own).collect();
    let mut state = DefaultHasher::new();
    let built = std::fs::metadata(env!("CARGO_BIN_EXE_tenure")).unwrap();
    (built.len(), built.modified().unwrap()).hash(&mut state);
    machines.iter().for_each(|(_, source)| hash_files(source, &mut state));
    let among = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
    let folder = among.join(format!("{:016x}", state.finish()));
    let filled = fill_in_place(&folder, |folder| {
        // The first makes the tenant's key.
        let (first, others) = machines.split_first().unwrap();
        build(&first.1, folder, first.0);
        std::thread::scope(|scope| {
            for (name, source) in others {
                scope.spawn(|| build(source, folder, name));
            }
        });
        Ok(())
    });
    filled.unwrap();
    folder
}

/// Takes in what [`copy`] copies.
fn hash_files(folder: &Path, state: &mut DefaultHasher) {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_file() {
            (&path, std::fs::read(&path).unwrap()).hash(state);
        } else if !path.ends_with("target") && !path.ends_with(".tenure") {
            hash_files(&path, state);
        }
    }
}

/// The path of the package of an example machine, or of `dear` or `probe`, with its wasm compiled for that kind of
/// processor.
pub(crate) fn package_for(name: &str, kind: &str) -> String {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
    let parent = if OWN.contains(&name) { "tests/devices" } else { "../../examples" };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(parent).join(name);
    build_as(&source, &folder, name, &["--compile", kind]);
    folder.join(format!("{name}.tenure")).into_os_string().into_string().unwrap()
}

/// Where the package of the example `weather` in that language stands.
pub(crate) fn weather(language: &str) -> String {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/weather").join(language);
    build_once(&source, "weather", "")
}

/// Where the package of the native machine that breaks every rule stands.
pub(crate) fn renegade() -> String {
    static BUILT: OnceLock<String> = OnceLock::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devices/renegade");
    BUILT.get_or_init(|| build_once(&source, "renegade", "")).clone()
}

/// Where the package of `probe` stands, built with this line in its project besides.
pub(crate) fn probe_with(line: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devices/probe");
    build_once(&source, "probe", line)
}

fn build_once(source: &Path, name: &str, line: &str) -> String {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
    let changed = folder.join("sources").join(name);
    copy(source, &changed);
    let project = changed.join("tenure.toml");
    let text = std::fs::read_to_string(&project).unwrap();
    std::fs::write(&project, format!("{line}\n{text}")).unwrap();
    build(&changed, &folder, name);
    folder.join(format!("{name}.tenure")).into_os_string().into_string().unwrap()
}

/// Builds a machine of the tests' own, `tests/devices/NAME`, into `folder`.
pub(crate) fn build_own(name: &str, folder: &Path, package: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    build(&here.join("tests/devices").join(name), folder, package);
}

/// Builds a copy, so that nothing appears in the sources.
pub(crate) fn build(source: &Path, folder: &Path, name: &str) {
    build_as(source, folder, name, &[]);
}

fn build_as(source: &Path, folder: &Path, name: &str, arguments: &[&str]) {
    copy(source, &folder.join(name));
    let package = format!("{name}.tenure");
    let output = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["build", name, "-o", &package])
        .args(arguments)
        .current_dir(folder)
        .env("TENURE_HOME", folder.join("tenant"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{name} can't be built; `cargo xtask test` installs what building takes.\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(&name)).unwrap();
        } else if name != "target" && name != ".tenure" {
            copy(&entry.path(), &to.join(&name));
        }
    }
}
