//! Modules as toolchains make them: each of a folder is packed as it is, and run by `tenure test`, or refused in the words
//! that its author is to read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::judged::{Outcome, Record};
use crate::tenure::{self, Profile};

/// The file of the folder that says what must come of each module.
const LIST: &str = "modules.toml";
/// Anybody's modules: none of them is known to fail.
const RECORD: Record = Record { named: &[], passed_min: 0 };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    module: Vec<Listed>,
}

/// A module, and one of `expect` and `refused`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    file: String,
    #[serde(default = "run_function")]
    call: String,
    /// The result of the call.
    expect: Option<String>,
    /// Words of the refusal.
    refused: Option<String>,
    #[serde(default = "memory_bytes")]
    memory_bytes: i64,
    #[serde(default = "stack_bytes")]
    stack_bytes: i64,
}

fn run_function() -> String {
    "run".into()
}

fn memory_bytes() -> i64 {
    4 << 20
}

fn stack_bytes() -> i64 {
    256 << 10
}

pub(super) fn run(root: &Path, from: &Path, verbose: bool) -> Result<()> {
    let path = from.join(LIST);
    let text =
        fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
    let list: List = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let program = tenure::built(root, Profile::Debug)?;
    let mut outcomes = BTreeMap::new();
    for module in &list.module {
        let outcome = module.outcome(&program, from).with_context(|| module.file.clone())?;
        ensure!(
            outcomes.insert(module.file.clone(), outcome).is_none(),
            "{} is listed twice",
            module.file
        );
    }
    RECORD.judge(&outcomes, verbose)
}

impl Listed {
    fn outcome(&self, program: &Path, from: &Path) -> Result<Outcome> {
        ensure!(
            self.expect.is_some() != self.refused.is_some(),
            "it takes one of `expect` and `refused`"
        );
        let folder = tempfile::tempdir()?;
        let project = folder.path().join("project");
        fs::create_dir(&project)?;
        fs::copy(from.join(&self.file), project.join("module.wasm"))?;
        fs::write(project.join("tenure.toml"), self.description())?;
        let expected = toml::Value::String(self.expect.clone().unwrap_or_default());
        let call = toml::Value::String(self.call.clone());
        let test = format!("[[test]]\nname = \"the call\"\ncall = {call}\nexpect = {expected}\n");
        fs::write(project.join("tests.toml"), test)?;
        let mut command = Command::new(program);
        tenure::alone_in(command.args(["test", "project"]), folder.path()).stdin(Stdio::null());
        let output = command.output().context("can't run tenure test")?;
        let said = [output.stdout, output.stderr].concat();
        Ok(self.judged(output.status.success(), &String::from_utf8_lossy(&said)))
    }

    /// The outcome, by what `tenure test` said.
    fn judged(&self, is_good: bool, said: &str) -> Outcome {
        let is_expected = match &self.refused {
            None => is_good,
            // A refusal, and no result that isn't the expected one.
            Some(words) => !is_good && said.contains(words.as_str()) && !said.contains("FAILED "),
        };
        if is_expected { Outcome::Passed } else { Outcome::Failed(said.trim().to_owned()) }
    }

    fn description(&self) -> String {
        let Self { memory_bytes, stack_bytes, .. } = self;
        format!(
            "name = \"module\"\nversion = \"1.0.0\"\nmodule = \"module.wasm\"\n[budget]\nmemory_bytes = {memory_bytes}\n\
             stack_bytes = {stack_bytes}\ntask_fuel = 0\nfuel_per_second = 0\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Listed {
        toml::from_str(&format!("file = \"a.wasm\"\n{text}")).unwrap()
    }

    #[test]
    fn a_module_must_give_its_result_or_be_refused_in_these_words() {
        let expected = listed("expect = \"5\"");
        assert_eq!(expected.judged(true, "ok      the call"), Outcome::Passed);
        assert_eq!(expected.judged(false, " FAILED  it "), Outcome::Failed("FAILED  it".into()));
        let refused = listed("refused = \"needs SIMD\"");
        assert_eq!(refused.judged(false, "error: `f` needs SIMD, which …"), Outcome::Passed);
        assert_ne!(refused.judged(false, "error: `f` needs threads"), Outcome::Passed);
        assert_ne!(refused.judged(true, "ok      needs SIMD"), Outcome::Passed);
        assert_ne!(refused.judged(false, "FAILED  there was needs SIMD"), Outcome::Passed);
    }

    #[test]
    fn a_list_is_read_strictly() {
        assert_eq!(listed("call = \"go\"\nexpect = \"\"").call, "go");
        assert!(toml::from_str::<Listed>("file = \"a.wasm\"\nexpects = \"\"").is_err());
    }
}
