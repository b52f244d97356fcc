//! Projects in temporary folders, built by the real command, and a pretended device to run them on.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod component;
pub(crate) mod device;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tenure_testbed::skip_without_tool;

/// A folder for projects, with keys of its own.
pub(crate) struct Workbench {
    folder: TempDir,
}

impl Workbench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder for projects in a language; none without its compilers, and the test is left out by name.
    pub(crate) fn with_language(language: &str) -> Option<Self> {
        let workbench = Self::new();
        workbench.has_language(language).then_some(workbench)
    }

    /// The languages that are here, by `tenure toolchain list`.
    pub(crate) fn languages(&self) -> BTreeMap<String, Value> {
        let listed = self.tenure_ok(&["toolchain", "list", "--json"]);
        let lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| (line["language"].as_str().unwrap().to_owned(), line)).collect()
    }

    /// Whether the compiler of a language is here; if not, the test is left out by name.
    pub(crate) fn has_language(&self, language: &str) -> bool {
        let is_there = self.languages()[language]["is_there"] == true;
        if !is_there {
            skip_without_tool(language);
        }
        is_there
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `tenure` here. What Rust machines share is compiled once for all tests.
    pub(crate) fn tenure(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The command `tenure`, to be run here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("TENURE_HOME", self.path("home"))
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"));
        command
    }

    /// As [`Self::tenure`], which must go well; gives what it prints.
    pub(crate) fn tenure_ok(&self, arguments: &[&str]) -> String {
        let output = self.tenure(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tenure {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// As [`Self::tenure`], which must fail; gives what it complains of.
    pub(crate) fn tenure_error(&self, arguments: &[&str]) -> String {
        let output = self.tenure(arguments);
        assert_eq!(output.status.code(), Some(1), "tenure {arguments:?}");
        assert!(output.stdout.is_empty(), "an error goes to standard error");
        String::from_utf8(output.stderr).unwrap()
    }

    /// `tenure run` of a machine that fails, until it did; gives the line of the log that says so.
    pub(crate) fn first_fault(&self, package: &str) -> Value {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(["run", "--json", package])
            .current_dir(self.path("."))
            .env("TENURE_HOME", self.path("home"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let fault = lines
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .find(|line| line["level"] == "fault");
        child.kill().unwrap();
        child.wait().unwrap();
        fault.unwrap()
    }

    /// Writes files below the folder.
    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    /// Copies the example machine `name`, and builds it.
    pub(crate) fn build_example(&self, name: &str) -> Vec<u8> {
        self.copy_example(name);
        self.build(name)
    }

    /// Copies the example machine `name`.
    pub(crate) fn copy_example(&self, name: &str) {
        copy(&repository().join("examples").join(name), &self.path(name));
    }

    /// Builds the project `name`; gives its package.
    pub(crate) fn build(&self, name: &str) -> Vec<u8> {
        let package = format!("{name}.tenure");
        self.tenure_ok(&["build", name, "-o", &package]);
        std::fs::read(self.path(&package)).unwrap()
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Copies what belongs to a project, not what was built of it.
fn copy(from: &Path, to: &Path) {
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

/// A path below the folder in which `tenure toolchain` keeps what it has installed.
pub(crate) fn toolchain(below: &str) -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let data = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")));
    let folder = named("TENURE_TOOLCHAINS").or_else(|| Some(data?.join("tenure/toolchains")));
    Some(folder?.join(below))
}

/// A call's result that is a text.
pub(crate) fn text(value: &str) -> Result<Option<String>, String> {
    Ok(Some(value.to_owned()))
}

/// The line of a source that holds a text.
pub(crate) fn line_of(source: &str, part: &str) -> usize {
    1 + source.lines().position(|line| line.contains(part)).unwrap()
}

/// Zig's compiler: the one that `tenure toolchain` has installed, or another of this computer.
pub(crate) fn zig() -> Option<Command> {
    let installed = toolchain("zig-0.17.1/ziglang/zig").map(Command::new);
    let of_python = || {
        let mut command = Command::new("python3");
        command.args(["-m", "ziglang"]);
        command
    };
    let candidates = installed.into_iter().chain([Command::new("zig"), of_python()]);
    candidates.into_iter().find_map(|mut command| {
        let works = command.arg("version").output().is_ok_and(|output| output.status.success());
        let mut again = Command::new(command.get_program());
        again.args(command.get_args().filter(|word| *word != "version"));
        works.then_some(again)
    })
}
