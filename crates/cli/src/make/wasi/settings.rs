//! `[wasi]` in `tenure.toml`: what a program is told, and the files that it finds.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use tenure_package::{TREE_BYTES_MAX, ValueKind};
use tenure_wire::limits::{PATH_BYTES_MAX, VALUE_BYTES_MAX};
use tenure_wire::path;

use super::{WasiError, layout};
use crate::make::fence;

/// The most files and folders that a program finds, and how deep folders lie in one another.
const FILES_MAX: usize = 4096;
const FOLDERS_DEEP_MAX: usize = 16;

/// How a program for WASI runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wasi {
    /// Its arguments, behind its name.
    pub arguments: Vec<String>,
    /// Its environment: variables by their names.
    pub environment: BTreeMap<String, String>,
    /// Whether it runs when its machine starts, too, and not for calls alone.
    pub start: bool,
    /// Its use of a call's parameter.
    pub parameter: ProgramParameter,
    /// Where its standard output goes.
    pub output: ProgramOutput,
    /// The folders that it finds open, by the names that it has for them: each is a place in the machine's tree, of which the
    /// empty one is the whole tree.
    pub folders: BTreeMap<String, String>,
    /// Files that it finds at the beginning: where, and which file or folder of the project that is.
    pub files: BTreeMap<String, PathBuf>,
}

/// The use of a call's parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramParameter {
    /// Its words are further arguments.
    #[default]
    Arguments,
    /// It is the standard input.
    Input,
}

/// The way of the standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramOutput {
    /// To the log, line by line.
    #[default]
    Log,
    /// It is the result of the call.
    Result,
}

impl Default for Wasi {
    fn default() -> Self {
        Self {
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            start: true,
            parameter: ProgramParameter::default(),
            output: ProgramOutput::default(),
            folders: BTreeMap::from([("/".to_owned(), String::new())]),
            files: BTreeMap::new(),
        }
    }
}

/// The settings as the adapter reads them; `name` is the program's first argument.
pub(super) fn encode(name: &str, wasi: &Wasi) -> Result<Vec<u8>, WasiError> {
    let arguments = std::iter::once(name.to_owned()).chain(wasi.arguments.iter().cloned());
    let variables = wasi.environment.iter().map(|(name, value)| format!("{name}={value}"));
    let mut folders = Vec::new();
    for (name, place) in &wasi.folders {
        check_folder(name, place)?;
        folders.extend([name.clone(), place.clone()]);
    }
    let (arguments, argument_count) = texts(arguments)?;
    let (variables, variable_count) = texts(variables)?;
    let (folders, folder_texts) = texts(folders.into_iter())?;
    let mut words = [0_u32; layout::SETTINGS_WORDS as usize];
    let mut set = |index: u32, word: usize| words[index as usize] = word as u32;
    if wasi.parameter == ProgramParameter::Input {
        set(layout::WORD_FLAGS, layout::FLAG_PARAMETER_IS_INPUT as usize);
    }
    set(layout::WORD_ARGUMENTS, argument_count);
    set(layout::WORD_ARGUMENT_BYTES, arguments.len());
    set(layout::WORD_VARIABLES, variable_count);
    set(layout::WORD_VARIABLE_BYTES, variables.len());
    set(layout::WORD_FOLDERS, folder_texts / 2);
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.extend(arguments.into_iter().chain(variables).chain(folders));
    Ok(bytes)
}

/// Texts one behind the other, each with a zero byte at its end, and how many there are.
fn texts(texts: impl Iterator<Item = String>) -> Result<(Vec<u8>, usize), WasiError> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    for text in texts {
        if text.contains('\0') {
            let text = text.escape_debug();
            return Err(WasiError::Settings(format!("\"{text}\" has a zero byte")));
        }
        bytes.extend(text.into_bytes());
        bytes.push(0);
        count += 1;
    }
    Ok((bytes, count))
}

/// The longest path in the tree of a file or folder: the rest is for the parts of a long one.
const FILE_PATH_BYTES_MAX: usize = PATH_BYTES_MAX - ".%.511.1".len();
/// The most folders that are open at the beginning: a program opens further files beside them.
const FOLDERS_MAX: usize = 8;

fn check_folder(name: &str, place: &str) -> Result<(), WasiError> {
    let refuse = |why: String| Err(WasiError::Settings(format!("folders: {why}")));
    if name.is_empty() {
        return refuse("a folder has no name".into());
    }
    if let Err(error) = path::check_node(place) {
        return refuse(path::refusal(place, error));
    }
    if place.len() > FILE_PATH_BYTES_MAX {
        return refuse(format!("`{place}` is longer than {FILE_PATH_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// A value of a tree: its path, kind and bytes.
pub type TreeValue = (String, ValueKind, Vec<u8>);

impl Wasi {
    /// The values that make the files that the program finds; those of the project lie in `project`.
    pub(crate) fn values(&self, project: &Path) -> anyhow::Result<Vec<TreeValue>> {
        anyhow::ensure!(
            self.folders.len() <= FOLDERS_MAX,
            "tenure.toml, [wasi]: a program finds {FOLDERS_MAX} folders open at most"
        );
        let mut values = Vec::new();
        for (to, from) in &self.files {
            let place = self.place(to)?;
            let mut files = Files { project, rest: TREE_BYTES_MAX as u64, values: &mut values };
            files.add(&place, from, FOLDERS_DEEP_MAX).with_context(|| {
                format!("tenure.toml, [wasi.files], {to}: {}", project.join(from).display())
            })?;
        }
        Ok(values)
    }

    /// The place in the tree of what the program calls `to`.
    fn place(&self, to: &str) -> anyhow::Result<String> {
        let below = |folder: &str| {
            let rest = to.strip_prefix(folder)?;
            (folder.ends_with('/') || rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        let found = self.folders.iter().filter_map(|(name, place)| Some((below(name)?, place)));
        // The folder that names most of it.
        let Some((rest, place)) = found.min_by_key(|(rest, _)| rest.len()) else {
            bail!(
                "tenure.toml, [wasi.files]: {to} lies in none of the program's folders; name it from `/` on"
            );
        };
        let mut path = place.clone();
        for name in rest.split('/').filter(|name| !name.is_empty()) {
            append(&mut path, name);
        }
        Ok(path)
    }
}

/// Appends a file's name to a path in the tree, as `sdk/wasi/src/path.rs` has it.
fn append(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    for character in name.chars() {
        match character {
            '.' | '%' | '\0'..='\x1f' | '\x7f' => {
                path.push_str(&format!("%{:02X}", u32::from(character)));
            }
            _ => path.push(character),
        }
    }
}

/// Files of a project on their way into a tree.
struct Files<'a> {
    project: &'a Path,
    /// The bytes that may still come: a tree holds no more.
    rest: u64,
    values: &'a mut Vec<TreeValue>,
}

impl Files<'_> {
    /// Adds the file that the project names `from`, or all that is in that folder.
    fn add(&mut self, place: &str, from: &Path, depth: usize) -> anyhow::Result<()> {
        anyhow::ensure!(depth > 0, "folders lie too deep in one another, or in themselves");
        anyhow::ensure!(self.values.len() < FILES_MAX, "more than {FILES_MAX} files");
        let there = fence::inside(self.project, from)?;
        if !there.is_dir() {
            let content = fence::read(self.project, from, self.rest)
                .with_context(|| format!("a tree has {TREE_BYTES_MAX} bytes at most"))?;
            self.rest -= content.len() as u64;
            return add_file(place, &content, self.values);
        }
        // No more are read than may be added.
        let entries = fs::read_dir(&there)?.take(FILES_MAX + 1);
        let mut names =
            entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        if names.is_empty() && !place.is_empty() {
            // A folder's header: see `sdk/wasi/src/node.rs`.
            self.values.push((format!("{place}.%"), ValueKind::Bytes, vec![2]));
        }
        for name in names {
            let mut place = place.to_owned();
            append(&mut place, name.to_str().context("a name in it is no UTF-8")?);
            self.add(&place, &from.join(&name), depth - 1)?;
        }
        Ok(())
    }
}

fn add_file(place: &str, content: &[u8], values: &mut Vec<TreeValue>) -> anyhow::Result<()> {
    anyhow::ensure!(
        place.len() <= FILE_PATH_BYTES_MAX,
        "its path in the tree, `{place}`, is longer than {FILE_PATH_BYTES_MAX} bytes"
    );
    if content.len() <= VALUE_BYTES_MAX {
        let kind = match std::str::from_utf8(content) {
            Ok(_) => ValueKind::Text,
            Err(_) => ValueKind::Bytes,
        };
        values.push((place.to_owned(), kind, content.to_vec()));
        return Ok(());
    }
    // The header of a file in parts, whose first slots count: its length, and no times.
    let mut header = vec![1, 0, 0, 0];
    header.extend(u32::try_from(content.len())?.to_le_bytes());
    header.extend([0; 16]);
    values.push((format!("{place}.%"), ValueKind::Bytes, header));
    for (number, part) in content.chunks(VALUE_BYTES_MAX).enumerate() {
        values.push((format!("{place}.%.{number}.0"), ValueKind::Bytes, part.to_vec()));
    }
    Ok(())
}
