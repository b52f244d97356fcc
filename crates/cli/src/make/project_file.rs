//! `tenure.toml`: what a machine project says of itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tenure_package::{CodeKind, Engine, Version};
use tenure_wire::timer::{LocalSchedule, PERIOD_MS_MIN, Schedule, ScheduleError, When, Zone};
use tenure_wire::{Audience, Budget, Capabilities, LogLevel, Name};

use crate::make::fence::{self, FenceError};
use crate::make::wasi::Wasi;
use crate::make::zones::{self, ZoneNameError};
use crate::{whole_file, written_file};

/// The file's name.
pub const FILE_NAME: &str = "tenure.toml";
/// The most bytes that it has: a tree of a package is far shorter.
const BYTES_MAX: u64 = 4 << 20;

/// A project's description.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectFile {
    /// The name of its package and, unless the owner says otherwise, of its machine.
    pub name: Name,
    /// Its version, `major.minor.patch`.
    pub version: Version,
    /// One line for those who choose among packages.
    #[serde(default)]
    pub description: String,
    /// The callers who are told why a call of its machine failed, in the machine's own words: the device's `owner`, or
    /// all its `callers`.
    #[serde(default)]
    pub errors: Audience,
    /// The least grave of its machine's lines that the log takes: `error`, `warning`, `info` or `debug`.
    #[serde(default)]
    pub log: LogLevel,
    /// The language; left out where another tool makes the module.
    #[serde(default)]
    language: Option<Language>,
    /// The WebAssembly module, relative to the project, that another tool has made.
    #[serde(default)]
    module: Option<PathBuf>,
    /// The functions that callers may call; without it, every function that the code exports.
    pub exports: Option<Vec<String>>,
    /// The functions that nobody may call but the device, for an event, a timer or a callback, and the
    /// machine itself.
    #[serde(default)]
    pub private: Vec<String>,
    /// The kinds of code that its package carries: `wasm`, which every device runs, and `rv32` and
    /// `thumb` for those whose processor has memory protection.
    #[serde(default = "wasm_alone")]
    pub code: Vec<CodeKind>,
    /// The engine that its machine would like: `vm`, or `native-speed` where a device has that.
    #[serde(default)]
    pub engine: Engine,
    /// The budget of its machine.
    #[serde(default)]
    pub budget: Budget,
    /// The rights that its machine asks for; it has no other.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The time zone whose clock its timers with times of day go by, unless they name another: `Europe/Berlin`; UTC
    /// without it.
    #[serde(default)]
    pub zone: Option<String>,
    /// Timers that its machine begins with, by the name of the function that is called.
    #[serde(default)]
    pub timers: BTreeMap<String, ProjectTimer>,
    /// The tree that its machine finds: texts, lists of numbers from 0 to 255 as bytes, and
    /// tables of those.
    #[serde(default)]
    pub tree: toml::Table,
    /// How it is compiled.
    #[serde(default)]
    pub build: BuildOptions,
    /// How it runs, if it was made for WASI.
    #[serde(default)]
    pub wasi: Option<Wasi>,
}

/// A timer of a function: either is said.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectTimer {
    /// The period: `500ms`, `10s`, `15min`, `2h`, `7d`.
    #[serde(default)]
    every: Option<String>,
    /// At which times: `06:30`, or as in crontab.
    #[serde(default)]
    at: Option<String>,
    /// The time zone of those times.
    #[serde(default)]
    zone: Option<String>,
}

/// Why a timer can't be set. Its author is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimerError {
    /// It says nothing, or two things.
    #[error("it says either `every = \"10s\"` or `at = \"06:30\"`, and `zone` beside `at` alone")]
    Form,
    /// Its period is none, or too short or too long.
    #[error("`every` is a time from {PERIOD_MS_MIN}ms to 49d, such as `10s`")]
    Period,
    /// It isn't at a time.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Its zone is none.
    #[error(transparent)]
    Zone(#[from] ZoneNameError),
}

impl ProjectTimer {
    /// When it fires; `zone` is its project's.
    ///
    /// # Errors
    /// See [`TimerError`].
    pub fn when(&self, zone: Option<&str>) -> Result<When, TimerError> {
        match (&self.every, &self.at) {
            (Some(period), None) if self.zone.is_none() => {
                let period = humantime::parse_duration(period).map_err(|_| TimerError::Period)?;
                let period_ms =
                    u32::try_from(period.as_millis()).map_err(|_| TimerError::Period)?;
                let when = When::Every(period_ms);
                when.is_possible().then_some(when).ok_or(TimerError::Period)
            }
            (None, Some(schedule)) => {
                let schedule: Schedule = schedule.parse()?;
                let zone = self.zone.as_deref().or(zone).map(zones::rules).transpose()?;
                let Some(zone) = zone.filter(|zone| Some(*zone) != Zone::fixed(0)) else {
                    return Ok(When::At(schedule));
                };
                Ok(When::AtLocal(LocalSchedule::new(schedule, zone)?))
            }
            _ => Err(TimerError::Form),
        }
    }
}

/// The languages that `tenure build` compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Rust, by cargo.
    Rust,
    /// C or C++, by clang.
    #[serde(alias = "c++", alias = "cpp")]
    C,
    /// Zig.
    Zig,
    /// AssemblyScript, by asc.
    AssemblyScript,
    /// JavaScript, by the engine's compiler.
    JavaScript,
    /// Lua, by its compiler.
    Lua,
}

/// Where a project's code comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code<'a> {
    /// It is compiled here.
    In(Language),
    /// It was compiled by another tool, to a module at this place in the project.
    Made(&'a Path),
}

/// The libraries that a C or C++ project is built with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Library {
    /// The SDK's own: memory, strings, snprintf.
    #[default]
    Small,
    /// The standard library of C and of C++, by packages of this computer.
    Standard,
}

/// How a project is compiled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BuildOptions {
    /// The C and C++ files, relative to the project; by default all that lie in `src` and below it. In Zig,
    /// AssemblyScript, JavaScript and Lua the files that it begins with.
    pub sources: Vec<PathBuf>,
    /// Folders, relative to the project, in which C and C++ files find headers.
    pub include: Vec<PathBuf>,
    /// Definitions for C and C++ files: `NAME`, or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Further options of clang, zig or asc.
    pub flags: Vec<String>,
    /// The library that C and C++ files are linked with.
    pub library: Library,
    /// The room in memory for variables that don't fit in registers. What overruns it traps.
    pub stack_bytes: u32,
}

fn wasm_alone() -> Vec<CodeKind> {
    vec![CodeKind::WebAssembly]
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            include: Vec::new(),
            defines: Vec::new(),
            flags: Vec::new(),
            library: Library::default(),
            stack_bytes: 4096,
        }
    }
}

/// Why a project could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProjectFileError {
    /// There is no project.
    #[error("there is no {FILE_NAME} in {0}; make a project with `tenure new NAME`")]
    Missing(PathBuf),
    /// The file system refused.
    #[error("can't read {0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The file is not as it should be; the text shows where and what is allowed.
    #[error("in {0}: {1}")]
    Content(PathBuf, anyhow::Error),
    /// It doesn't say where its code comes from, or says it twice.
    #[error(
        "{FILE_NAME} says either `language` (rust, c, cpp, zig, assemblyscript, javascript, lua), or `module`, the WebAssembly file that another \
         tool makes"
    )]
    Code,
}

impl ProjectFile {
    /// The linker's options, beside the files to link.
    pub(crate) fn link_arguments(&self, exact_memory: bool) -> Vec<String> {
        let mut arguments = vec![
            // Below all else, so that what overruns the stack leaves the memory and traps.
            "--stack-first".to_owned(),
            format!("-zstack-size={}", self.build.stack_bytes.next_multiple_of(16)),
        ];
        if exact_memory {
            arguments.push("--page-size=1".to_owned());
        }
        arguments
    }

    /// Where its code comes from.
    ///
    /// # Errors
    /// [`ProjectFileError::Code`].
    pub fn written(&self) -> Result<Code<'_>, ProjectFileError> {
        match (self.language, &self.module) {
            (Some(language), None) => Ok(Code::In(language)),
            (None, Some(module)) => Ok(Code::Made(module)),
            _ => Err(ProjectFileError::Code),
        }
    }

    /// Looks whether the sources that it names are files of its folder, and its folders of headers lie in it.
    ///
    /// # Errors
    /// [`FenceError`].
    pub(crate) fn check_sources(&self, folder: &Path) -> Result<(), FenceError> {
        // A missing one is the compiler's to complain of: asc finds a source without its `.ts`.
        let is_there = |path: &&PathBuf| folder.join(path).exists();
        let mut sources = self.build.sources.iter().filter(is_there);
        sources.try_for_each(|path| fence::file(folder, path).map(drop))?;
        let mut include = self.build.include.iter().filter(is_there);
        include.try_for_each(|path| fence::inside(folder, path).map(drop))
    }

    /// Reads the project in `folder`.
    ///
    /// # Errors
    /// See [`ProjectFileError`].
    pub fn read(folder: &Path) -> Result<Self, ProjectFileError> {
        let path = folder.join(FILE_NAME);
        let text = match whole_file::read_text(&path, BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(ProjectFileError::Missing(folder.to_path_buf()));
            }
            Err(error) => return Err(ProjectFileError::File(path, error)),
        };
        written_file::parse(&text).map_err(|error| ProjectFileError::Content(path, error))
    }
}
