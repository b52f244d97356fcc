//! Places in the sources, `FILE#NAME`, looked for in the files' text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{files, test_names};

/// One place or several.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Places {
    #[default]
    None,
    One(String),
    Several(Vec<String>),
}

impl Places {
    pub(super) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::None => &[],
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places.as_slice(),
        };
        all.iter().map(String::as_str)
    }
}

/// The keywords before the name of an item.
const ITEMS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "macro_rules!"];

/// The sources, each read once.
pub(super) struct Sources<'r> {
    root: &'r Path,
    read: BTreeMap<PathBuf, Option<String>>,
}

impl<'r> Sources<'r> {
    pub(super) fn new(root: &'r Path) -> Self {
        Self { root, read: BTreeMap::new() }
    }

    /// The text of the file of `place`, and the name in it.
    fn find<'p>(&mut self, place: &'p str) -> Result<(&str, &'p str), String> {
        let (file, name) =
            place.split_once('#').ok_or_else(|| format!("{place} isn't `FILE#NAME`"))?;
        let path = self.root.join(file);
        let text = self.read.entry(path.clone()).or_insert_with(|| files::read(&path).ok());
        let text = text.as_deref().ok_or_else(|| format!("there is no file {file}"))?;
        Ok((text, name))
    }

    /// `place` names an item that its file declares.
    pub(super) fn code(&mut self, place: &str) -> Result<(), String> {
        let (text, name) = self.find(place)?;
        if declares(text, name) { Ok(()) } else { Err(format!("{place} declares no such item")) }
    }

    /// `place` names a test of its file.
    pub(super) fn test(&mut self, place: &str) -> Result<(), String> {
        let (text, name) = self.find(place)?;
        let is_there = test_names::tests_in(text).any(|it| it == name);
        if is_there { Ok(()) } else { Err(format!("{place} has no such test")) }
    }
}

/// Whether `text` declares an item with `name`: its keyword and its name stand outside comments.
fn declares(text: &str, name: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut words = code
        .flat_map(|line| line.split(|it: char| !(it.is_alphanumeric() || matches!(it, '_' | '!'))));
    let mut before = "";
    words.any(|word| {
        if word.is_empty() {
            return false;
        }
        let is_item = word == name && ITEMS.contains(&before);
        before = word;
        is_item
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_declared_by_their_keyword_and_name_outside_comments() {
        let text =
            "// fn remark\npub(crate) fn one<T>() { two() }\nstruct Three;\nmacro_rules! four {}";
        for name in ["one", "Three", "four"] {
            assert!(declares(text, name), "{name}");
        }
        for name in ["two", "remark", "on", "one_more", "Thre", ""] {
            assert!(!declares(text, name), "{name}");
        }
    }
}
