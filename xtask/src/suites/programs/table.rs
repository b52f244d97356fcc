//! The table of programs, `programs.toml`: where each comes from, how it is built, and what it is run with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tenure_wire::Name;

const TEXT: &str = include_str!("programs.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    program: Vec<Program>,
}

/// A program by others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    /// Its name here, which is its machine's, too.
    pub(super) name: Name,
    /// What it does, in a few words for the page.
    pub(super) kind: String,
    pub(super) registry: Registry,
    pub(super) package: String,
    /// The version, exactly.
    pub(super) version: String,
    /// The registry's digest of the package: SHA-256 in hexadecimal.
    pub(super) digest: String,
    /// The package's licence, as an SPDX expression.
    pub(super) licence: String,
    /// The program's first file, if it is in Rust.
    #[serde(default)]
    main: Option<String>,
    /// The edition of Rust that the package is in.
    #[serde(default = "edition")]
    pub(super) edition: String,
    /// Features that the program's own text asks for.
    #[serde(default)]
    pub(super) features: Vec<String>,
    /// Further features of the package.
    #[serde(default)]
    pub(super) package_features: Vec<String>,
    /// Whether the package has its default features.
    #[serde(default = "yes")]
    pub(super) default_features: bool,
    /// Other packages that it needs, as lines of a manifest.
    #[serde(default)]
    pub(super) beside: toml::Table,
    /// Whether one of the packages compiles C.
    #[serde(default)]
    pub(super) has_c: bool,
    /// The program's files, if it is in C.
    #[serde(default)]
    sources: Vec<String>,
    /// Folders of headers.
    #[serde(default)]
    include: Vec<String>,
    /// Options of both C compilers.
    #[serde(default)]
    flags: Vec<String>,
    /// Options of the C compiler for WASI.
    #[serde(default)]
    wasi_flags: Vec<String>,
    #[serde(default)]
    pub(super) arguments: Vec<String>,
    /// Its standard input.
    #[serde(default)]
    pub(super) input: String,
    /// Files that it needs, by the names under which it finds them where it runs: `PATH` in its package, or
    /// `PACKAGE:PATH` in another one that it's built with.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) output: Output,
    /// Texts behind which the rest of a line isn't compared: times, speeds, names of compilers.
    #[serde(default)]
    pub(super) varies: Vec<String>,
    /// What its memory may grow to.
    #[serde(default = "memory_bytes")]
    pub(super) memory_bytes: u32,
    /// The room in its memory for variables that don't fit in registers.
    #[serde(default = "stack_bytes")]
    pub(super) stack_bytes: u32,
    /// Why it can't be run, if it can't.
    #[serde(default)]
    pub(super) fails: Option<String>,
}

/// Where packages are fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Registry {
    #[serde(rename = "crates.io")]
    CratesIo,
}

/// Where a machine's standard output goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Output {
    /// It is the result of the call, as it is: up to 8,192 bytes.
    #[default]
    Result,
    /// It goes to the log: any number of lines, each of up to 256 bytes.
    Log,
}

/// What a program is built of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source<'a> {
    Rust {
        main: &'a str,
    },
    C {
        sources: &'a [String],
        include: &'a [String],
        flags: &'a [String],
        wasi_flags: &'a [String],
    },
}

fn yes() -> bool {
    true
}

fn edition() -> String {
    "2021".into()
}

fn memory_bytes() -> u32 {
    8 << 20
}

fn stack_bytes() -> u32 {
    128 << 10
}

/// The programs, in the table's order.
pub(super) fn read() -> Result<Vec<Program>> {
    parse(TEXT).context("in programs.toml")
}

fn parse(text: &str) -> Result<Vec<Program>> {
    let table: Table = toml::from_str(text)?;
    let mut names = BTreeSet::new();
    for program in &table.program {
        program.check().with_context(|| program.name.to_string())?;
        ensure!(names.insert(program.name.clone()), "{} is there twice", program.name);
    }
    Ok(table.program)
}

impl Program {
    /// What it is built of.
    ///
    /// # Errors
    /// It says neither, or both.
    pub(super) fn source(&self) -> Result<Source<'_>> {
        let Self { main, sources, include, flags, wasi_flags, .. } = self;
        match main {
            Some(main) if [sources, include, flags, wasi_flags].iter().all(|it| it.is_empty()) => {
                Ok(Source::Rust { main })
            }
            None if !sources.is_empty() => Ok(Source::C { sources, include, flags, wasi_flags }),
            _ => anyhow::bail!("it says either `main`, for Rust, or `sources`, for C"),
        }
    }

    fn check(&self) -> Result<()> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        ensure!(
            self.digest.len() == 64 && self.digest.bytes().all(is_digit),
            "its digest is no SHA-256 in small hexadecimal digits"
        );
        ensure!(
            self.version.starts_with(|first: char| first.is_ascii_digit()),
            "its version is no exact one"
        );
        ensure!(
            self.varies.iter().all(|text| !text.is_empty()),
            "an empty text in `varies` compares nothing"
        );
        let own = [&self.main].into_iter().flatten().chain(&self.sources).chain(&self.include);
        let own = own.chain(self.files.keys()).map(String::as_str);
        for path in own.chain(self.files.values().map(|file| package_and_path(file).1)) {
            let mut parts = Path::new(path).components();
            ensure!(
                parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir)),
                "{path} leads out of its folder"
            );
        }
        self.source().map(drop)
    }
}

/// The package that a file is in, if it isn't the program's, and its path there.
pub(super) fn package_and_path(file: &str) -> (Option<&str>, &str) {
    match file.split_once(':') {
        Some((package, path)) => (Some(package), path),
        None => (None, file),
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CratesIo => f.write_str("crates.io"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A table of one program in Rust, with further lines.
    fn table(lines: &str) -> String {
        format!(
            "[[program]]\nname = \"sums\"\nkind = \"sums\"\nregistry = \"crates.io\"\npackage = \"sums\"\n\
             version = \"1.2.3\"\ndigest = \"{}\"\nlicence = \"MIT\"\n{lines}\n",
            "0a".repeat(32)
        )
    }

    /// A program that was parsed of a table with these lines.
    pub(in super::super) fn program(lines: &str) -> Program {
        parse(&table(lines)).unwrap().remove(0)
    }

    fn error(text: &str) -> String {
        format!("{:#}", parse(text).unwrap_err())
    }

    #[test]
    fn every_program_of_the_table_is_well_said() {
        let programs = read().unwrap();
        assert!(programs.len() >= 12, "{}", programs.len());
    }

    #[test]
    fn a_program_is_in_rust_or_in_c_and_not_in_both() {
        let rust = program("main = \"examples/sum.rs\"");
        assert_eq!(rust.source().unwrap(), Source::Rust { main: "examples/sum.rs" });
        let c = program("sources = [\"sum.c\"]\ninclude = [\".\"]");
        assert!(matches!(c.source().unwrap(), Source::C { sources: [_], include: [_], .. }));
        for lines in ["", "main = \"sum.rs\"\nsources = [\"sum.c\"]", "flags = [\"-w\"]"] {
            assert!(error(&table(lines)).contains("either `main`"), "{lines}");
        }
    }

    #[test]
    fn a_file_may_be_in_another_package() {
        assert_eq!(package_and_path("data/list"), (None, "data/list"));
        assert_eq!(package_and_path("images:a/b.png"), (Some("images"), "a/b.png"));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let program = program("main = \"sum.rs\"");
        assert_eq!((program.output, program.edition.as_str()), (Output::Result, "2021"));
        assert_eq!((program.memory_bytes, program.stack_bytes), (8_388_608, 131_072));
        assert_eq!((program.registry.to_string().as_str(), program.fails), ("crates.io", None));
    }

    #[test]
    fn what_is_wrong_is_refused_with_the_name_of_its_program() {
        let good = table("main = \"sum.rs\"");
        for (text, words) in [
            (good.replace("0a0a", "0A0A"), "sums: its digest"),
            (good.replace("1.2.3", "^1"), "sums: its version"),
            (table("main = \"../sum.rs\""), "sums: ../sum.rs leads out"),
            (table("main = \"sum.rs\"\nfiles = { \"/a\" = \"a\" }"), "sums: /a leads out"),
            (table("main = \"sum.rs\"\nfiles = { a = \"b:../a\" }"), "sums: ../a leads out"),
            (table("main = \"sum.rs\"\nvaries = [\"\"]"), "sums: an empty text"),
            (good.replace("crates.io", "elsewhere"), "unknown variant"),
            (good.replace("licence", "license"), "unknown field"),
            (good.replace("\"sums\"", "\"Sums\""), "name"),
            (good.repeat(2), "sums is there twice"),
        ] {
            let error = error(&text);
            assert!(error.contains(words), "{error}");
        }
    }
}
