//! The WebAssembly community's tests of WASI preview 1: each program is packed as it is, and run by `tenure test`.
//!
//! The suite's branch `prod/testsuite-all` has the programs compiled, each with a description beside it: its arguments, its
//! variables, the folder that it finds as `/`, and how it must end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::judged::{Outcome, Record};
use crate::files;
use crate::tenure::{self, Profile};

/// Where the programs lie, by the languages that they are written in.
const LANGUAGES: [&str; 3] = ["assemblyscript", "c", "rust"];
const FOLDER: &str = "testsuite/wasm32-wasip1";

const RECORD: Record = Record {
    named: &[
        ("a value of a tree has one place, so that there are no hard links", &["rust/path_link"]),
        ("links keep no times of their own", &["rust/symlink_filestat"]),
    ],
    passed_min: 70,
};

/// A test's description. One that isn't there says nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Description {
    args: Vec<String>,
    env: BTreeMap<String, String>,
    root: Option<String>,
    /// Folders that it finds under their own names.
    dirs: Vec<String>,
    exit_code: i64,
    stdout: Option<String>,
    /// Standard error goes to the log, which tests don't see.
    stderr: Option<String>,
}

pub(super) fn run(root: &Path, from: &Path, verbose: bool) -> Result<()> {
    let program = tenure::built(root, Profile::Debug)?;
    let mut outcomes = BTreeMap::new();
    for language in LANGUAGES {
        let folder = from.join("tests").join(language).join(FOLDER);
        ensure!(
            folder.is_dir(),
            "there is no {}: is that the suite's branch `prod/testsuite-all`?",
            folder.display()
        );
        for module in files::with_ending(&folder, &["wasm"])? {
            let name = module.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{language}/{name}");
            let outcome = outcome(&program, &module).with_context(|| name.clone())?;
            outcomes.insert(name, outcome);
        }
    }
    RECORD.judge(&outcomes, verbose)
}

fn outcome(program: &Path, module: &Path) -> Result<Outcome> {
    let description = Description::beside(module)?;
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("project");
    fs::create_dir(&project)?;
    fs::copy(module, project.join("program.wasm"))?;
    fs::write(project.join("tenure.toml"), description.project(module))?;
    fs::write(project.join("tests.toml"), description.test())?;
    let mut command = Command::new(program);
    tenure::alone_in(command.args(["test", "project"]), folder.path()).stdin(Stdio::null());
    let output = command.output().context("can't run tenure test")?;
    if output.status.success() {
        return Ok(Outcome::Passed);
    }
    let said = [output.stdout, output.stderr].concat();
    Ok(Outcome::Failed(String::from_utf8_lossy(&said).trim().to_owned()))
}

impl Description {
    fn beside(module: &Path) -> Result<Self> {
        let path = module.with_extension("json");
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// The project of the program, beside which the folders lie that it finds.
    fn project(&self, module: &Path) -> String {
        let beside = |name: &String| {
            toml::Value::from(module.with_file_name(name).to_string_lossy().into_owned())
        };
        let mut wasi = toml::Table::new();
        wasi.insert("start".into(), false.into());
        wasi.insert("arguments".into(), self.args.clone().into());
        let variables = self.env.iter().map(|(name, value)| (name.clone(), value.clone().into()));
        wasi.insert("environment".into(), toml::Table::from_iter(variables).into());
        if self.stdout.is_some() {
            wasi.insert("output".into(), "result".into());
        }
        let mut files = toml::Table::new();
        files.extend(self.root.iter().map(|root| ("/".to_owned(), beside(root))));
        files.extend(self.dirs.iter().map(|folder| (folder.clone(), beside(folder))));
        wasi.insert("files".into(), files.into());
        if !self.dirs.is_empty() {
            let place = |name: &String| toml::Value::from(name.replace('.', "%2E"));
            let folders = self.dirs.iter().map(|folder| (folder.clone(), place(folder)));
            wasi.insert("folders".into(), toml::Table::from_iter(folders).into());
        }
        let wasi = toml::Table::from_iter([("wasi".into(), wasi.into())]);
        format!(
            "name = \"program\"\nversion = \"1.0.0\"\nmodule = \"program.wasm\"\nerrors = \"callers\"\n[budget]\n\
             memory_bytes = 4194304\nstack_bytes = 65536\nstored_bytes = 262144\nflash_bytes_per_day = 1000000000\n\
             task_fuel = 0\nfuel_per_second = 0\n{wasi}"
        )
    }

    fn test(&self) -> String {
        let expected = match (self.exit_code, &self.stdout) {
            (0, None) => "expect = \"\"\n".to_owned(),
            (0, Some(text)) => format!("expect = {}\n", toml::Value::from(text.clone())),
            // The code itself is in the log, which tests don't see.
            _ => "error = \"execution error\"\n".to_owned(),
        };
        format!("[[test]]\nname = \"the program\"\ncall = \"run\"\n{expected}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_becomes_a_project_and_a_test() {
        let text =
            r#"{ "args": ["a b"], "env": { "A": "1" }, "exit_code": 33, "dirs": ["a.dir"] }"#;
        let description: Description = serde_json::from_str(text).unwrap();
        let project: toml::Table =
            description.project(Path::new("/suite/it.wasm")).parse().unwrap();
        assert_eq!(project["wasi"]["arguments"][0].as_str(), Some("a b"));
        assert_eq!(project["wasi"]["files"]["a.dir"].as_str(), Some("/suite/a.dir"));
        assert_eq!(project["wasi"]["folders"]["a.dir"].as_str(), Some("a%2Edir"));
        assert!(description.test().contains("execution error"));
        let spoken: Description = serde_json::from_str(r#"{ "stdout": "hello\n" }"#).unwrap();
        let test: toml::Table = spoken.test().parse().unwrap();
        assert_eq!(test["test"][0]["expect"].as_str(), Some("hello\n"));
    }
}
