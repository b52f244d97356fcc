//! A benchmark's command line: `[--json] [TARGET]…`.

use std::process::ExitCode;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{env, eprintln, print, println};

use crate::Row;

/// A benchmark program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The text that `--help` prints.
    pub help: &'static str,
    /// The names that can be asked for; all of them, if nothing is.
    pub targets: &'static [&'static str],
}

impl Program {
    /// Reads the arguments, and has `measure` measure each target that they ask for. An error is
    /// reported, and the next target measured.
    pub fn run(self, measure: impl FnMut(&str, &mut Rows) -> Result<(), String>) -> ExitCode {
        self.run_with(env::args().skip(1), measure)
    }

    /// As [`Program::run`], with arguments that a program with options of its own leaves.
    pub fn run_with(
        self,
        arguments: impl IntoIterator<Item = String>,
        mut measure: impl FnMut(&str, &mut Rows) -> Result<(), String>,
    ) -> ExitCode {
        let mut rows = Rows { json: false, bench: String::new() };
        let mut targets = Vec::new();
        for argument in arguments {
            match argument.as_str() {
                "--json" => rows.json = true,
                // `cargo bench` adds it.
                "--bench" => {}
                "-h" | "--help" => {
                    print!("{}", self.help);
                    return ExitCode::SUCCESS;
                }
                target if self.targets.contains(&target) => targets.push(argument),
                _ => {
                    eprintln!("unknown argument `{argument}`\n\n{}", self.help);
                    return ExitCode::from(2);
                }
            }
        }
        if targets.is_empty() {
            targets = self.targets.iter().map(ToString::to_string).collect();
        }
        let mut failed = false;
        for target in &targets {
            if let Err(error) = measure(target, &mut rows) {
                eprintln!("{target}: {error}");
                failed = true;
            }
        }
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// Where figures go: standard output, as soon as they are there.
#[derive(Debug)]
pub struct Rows {
    json: bool,
    /// The benchmark whose heading was printed last.
    bench: String,
}

impl Rows {
    /// Prints one figure.
    pub fn push(&mut self, row: Row) {
        if self.json {
            println!("{}", row.to_json());
            return;
        }
        if row.bench != self.bench {
            println!("\n{} on {}", row.bench, row.target);
            self.bench.clone_from(&row.bench);
        }
        println!("{row}");
    }
}

impl Extend<Row> for Rows {
    fn extend<T: IntoIterator<Item = Row>>(&mut self, rows: T) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}
