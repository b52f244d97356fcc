//! Suites of C libraries, musl's libc-test and picolibc's tests: each file is compiled with `sdk/c` and its small library,
//! and with the standard one, packed, and run as a machine by `tenure run`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;

use super::judged::{Outcome, Record};
use crate::tenure::{self, Profile};

/// The file that a suite's folder is known by, and the folder of its tests.
struct Suite {
    /// A file that no other suite has.
    mark: &'static str,
    folders: &'static [&'static str],
    /// Folders of headers.
    headers: &'static [&'static str],
    record: Record,
}

const SUITES: [Suite; 2] = [
    Suite {
        mark: "src/functional/snprintf.c",
        folders: &["src/functional", "src/regression"],
        headers: &[],
        record: Record { named: NAMED_OF_LIBC_TEST, passed_min: 77 },
    },
    Suite {
        mark: "test/libc-testsuite/snprintf.c",
        folders: &[
            "test/libc-testsuite",
            "test/test-stdio",
            "test/test-stdlib",
            "test/test-string",
            "test/testsuite/newlib.stdio",
            "test/testsuite/newlib.stdlib",
            "test/testsuite/newlib.string",
        ],
        headers: &["test/testsuite/include"],
        record: Record { named: NAMED_OF_PICOLIBC, passed_min: 33 },
    },
];

const NAMED_OF_LIBC_TEST: &[(&str, &[&str])] = &[(
    WASI_LIBC,
    &[
        "standard src/functional/strptime",
        "standard src/functional/strtold",
        "standard src/regression/iconv-roundtrips",
    ],
)];

const NAMED_OF_PICOLIBC: &[(&str, &[&str])] = &[
    (
        "a machine has no exit: what would end a process stops it as failed, and runs nothing besides",
        &[
            "* test/test-stdlib/test-abort",
            "standard test/test-stdlib/test-atexit",
            "standard test/test-stdlib/test-quick-exit",
        ],
    ),
    (
        WASI_LIBC,
        &[
            "standard test/libc-testsuite/fnmatch",
            "standard test/libc-testsuite/sscanf",
            "standard test/test-stdio/test-fmemopen",
            "standard test/test-stdio/test-fopencookie",
            "standard test/test-stdio/test-open_memstream",
            "standard test/test-stdio/test-printf",
            "standard test/test-stdio/test-printf-scanf",
            "standard test/test-stdlib/test-strtod",
        ],
    ),
];

const WASI_LIBC: &str = "the standard library is wasi-libc, here that of Debian 12, with its own faults and its own taste";

const LIBRARIES: [&str; 2] = ["small", "standard"];

/// The files around a test, in the folder of its project.
const FILES: [(&str, &str); 3] = [
    ("machine.c", include_str!("libc/machine.c")),
    ("headers/test.h", include_str!("libc/test.h")),
    ("headers/report.h", include_str!("libc/report.h")),
];

/// Words of compiler, linker and packer about a test that needs what isn't here.
const ABSENT: [&str; 8] = [
    "file not found",
    "call to undeclared function",
    "call to undeclared library function",
    "use of undeclared identifier",
    "unknown type name",
    "has incomplete type",
    "undefined symbol",
    "which no device has",
];

/// The last words of a machine's log about its test.
const PASSED: &str = "the test has passed";
const FAILED: &str = "the test has failed";
const LEFT_OUT: &str = "the test leaves itself out";

/// A line that `tenure run --json` prints.
#[derive(Deserialize)]
struct Line {
    event: String,
    #[serde(default)]
    message: String,
}

pub(super) fn run(root: &Path, from: &Path, verbose: bool) -> Result<()> {
    let from = fs::canonicalize(from).with_context(|| format!("can't read {}", from.display()))?;
    let suite = SUITES.iter().find(|suite| from.join(suite.mark).is_file()).with_context(|| {
        format!("{} is neither libc-test nor picolibc: see docs/suites.md", from.display())
    })?;
    let program = tenure::built(root, Profile::Debug)?;
    let tests = tests(suite, &from)?;
    let judge = |library| outcomes(&program, suite, &from, &tests, library);
    let outcomes = thread::scope(|scope| {
        let workers = LIBRARIES.map(|library| scope.spawn(move || judge(library)));
        let mut all = BTreeMap::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow!("a worker panicked"))??);
        }
        Ok::<_, anyhow::Error>(all)
    })?;
    suite.record.judge(&outcomes, verbose)
}

/// The files of a suite that are programs of their own.
fn tests(suite: &Suite, from: &Path) -> Result<Vec<PathBuf>> {
    let mut tests = Vec::new();
    for folder in suite.folders {
        let folder = from.join(folder);
        let entries =
            fs::read_dir(&folder).with_context(|| format!("can't read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension() == Some(OsStr::new("c")) {
                tests.push(path);
            }
        }
    }
    tests.sort();
    Ok(tests)
}

/// The outcomes of all tests with one of the libraries.
fn outcomes(
    program: &Path,
    suite: &Suite,
    from: &Path,
    tests: &[PathBuf],
    library: &str,
) -> Result<BTreeMap<String, Outcome>> {
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("project");
    for (path, text) in FILES {
        let path = project.join(path);
        fs::create_dir_all(path.parent().context("a file in no folder")?)?;
        fs::write(path, text)?;
    }
    let mut headers = vec![project.join("headers")];
    headers.extend(suite.headers.iter().map(|folder| from.join(folder)));
    let mut outcomes = BTreeMap::new();
    for test in tests {
        let source = fs::read(test).with_context(|| format!("can't read {}", test.display()))?;
        let description = description(test, &String::from_utf8_lossy(&source), &headers, library)?;
        fs::write(project.join("tenure.toml"), description)?;
        let name = test.strip_prefix(from)?.with_extension("");
        let name = format!("{library} {}", name.display());
        let outcome = outcome(program, folder.path()).with_context(|| name.clone())?;
        outcomes.insert(name, outcome);
    }
    Ok(outcomes)
}

/// The project of a test.
fn description(test: &Path, source: &str, headers: &[PathBuf], library: &str) -> Result<String> {
    let stem = test.file_stem().and_then(OsStr::to_str).context("a name that isn't UTF-8")?;
    let mut defines = vec![
        "_GNU_SOURCE".to_owned(),
        "main=suite_main".to_owned(),
        "exit=suite_exit".to_owned(),
        // The name by which picolibc's test of that file calls it.
        format!("TEST_NAME={stem}"),
    ];
    if ["main(int ", "main (int "].iter().any(|main| source.contains(main)) {
        defines.push("SUITE_ARGUMENTS".to_owned());
    }
    let mut flags = vec!["-w", "-ferror-limit=0"];
    if library == "small" {
        flags.extend(["-include", "headers/report.h"]);
    }
    let mut build = toml::Table::new();
    build.insert(
        "sources".into(),
        vec![test.to_str().context("a path that isn't UTF-8")?, "machine.c"].into(),
    );
    let headers: Vec<String> = headers.iter().map(|it| it.display().to_string()).collect();
    build.insert("include".into(), headers.into());
    build.insert("defines".into(), defines.into());
    build.insert("flags".into(), flags.into());
    build.insert("library".into(), library.into());
    build.insert("stack_bytes".into(), 65_536.into());
    let mut budget = toml::Table::new();
    budget.insert("memory_bytes".into(), 4_194_304.into());
    budget.insert("stack_bytes".into(), 65_536.into());
    budget.insert("task_fuel".into(), 5_000_000_000_i64.into());
    budget.insert("fuel_per_second".into(), 0.into());
    let mut description = toml::Table::new();
    description.insert("name".into(), "test".into());
    description.insert("version".into(), "1.0.0".into());
    description.insert("language".into(), "c".into());
    description.insert("build".into(), build.into());
    description.insert("budget".into(), budget.into());
    Ok(description.to_string())
}

/// Builds and runs the test that the project in `folder` is about.
fn outcome(program: &Path, folder: &Path) -> Result<Outcome> {
    let command = |words: &[&str]| {
        let mut command = Command::new(program);
        tenure::alone_in(command.args(words), folder).stdin(Stdio::null());
        command
    };
    let built = command(&["build", "project"]).output().context("can't run tenure build")?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        return Ok(unbuilt(&said));
    }
    let ran = command(&["run", "--json", "project/test.tenure"]).output();
    let ran = ran.context("can't run tenure run")?;
    Ok(ended(&String::from_utf8_lossy(&ran.stdout)))
}

/// The outcome of a test that can't be built, by what the compiler and the linker said.
fn unbuilt(said: &str) -> Outcome {
    if said.lines().any(|line| ABSENT.iter().any(|words| line.contains(words))) {
        return Outcome::Skipped;
    }
    let mut errors = said.lines().filter(|line| line.contains("error: "));
    Outcome::Failed(errors.next().unwrap_or("it can't be built").to_owned())
}

/// The outcome of a test that ran, by what `tenure run` says.
fn ended(said: &str) -> Outcome {
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let messages: Vec<String> =
        lines.filter(|line| line.event == "log").map(|line| line.message).collect();
    let has = |words: &str| messages.iter().any(|message| message == words);
    if has(PASSED) {
        return Outcome::Passed;
    }
    if has(LEFT_OUT) {
        return Outcome::Skipped;
    }
    let cause = messages.iter().find(|message| !["installed", FAILED].contains(&message.as_str()));
    Outcome::Failed(cause.map_or("it doesn't say why", String::as_str).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_lacks_is_no_failure_of_it() {
        let said = "a.c:1:10: fatal error: 'math.h' file not found\n1 error generated.\n";
        assert_eq!(unbuilt(said), Outcome::Skipped);
        let said = "wasm-ld: error: a.o: undefined symbol: qsort\nerror: p can't be linked\n";
        assert_eq!(unbuilt(said), Outcome::Skipped);
        let other = "a.c:3:1: error: conflicting types for 'strchr'";
        assert_eq!(
            unbuilt(&format!("{other}\nerror: p doesn't compile\n")),
            Outcome::Failed(other.into())
        );
    }

    #[test]
    fn the_end_of_a_test_is_what_its_log_says() {
        let log = |messages: &[&str]| -> String {
            let line =
                |message: &&str| format!("{{\"event\":\"log\",\"message\":\"{message}\"}}\n");
            messages.iter().map(line).collect()
        };
        assert_eq!(ended(&log(&["installed", PASSED])), Outcome::Passed);
        assert_eq!(ended(&log(&["installed", LEFT_OUT])), Outcome::Skipped);
        let failed = Outcome::Failed("line 7: not 3".into());
        assert_eq!(ended(&log(&["installed", "line 7: not 3", FAILED])), failed);
        let stopped = Outcome::Failed("stopped while serving `entry`".into());
        assert_eq!(ended(&log(&["installed", "stopped while serving `entry`"])), stopped);
        assert!(matches!(ended(&log(&["installed", FAILED])), Outcome::Failed(_)));
    }

    #[test]
    fn a_test_with_arguments_is_called_with_them() {
        let defines =
            |source| description(Path::new("/suite/abs.c"), source, &[], "small").unwrap();
        assert!(defines("int main(int argc, char **argv) {}").contains("SUITE_ARGUMENTS"));
        assert!(!defines("int main(void) {}").contains("SUITE_ARGUMENTS"));
    }
}
