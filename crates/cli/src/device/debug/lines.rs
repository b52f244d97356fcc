//! Which line of its author's source each instruction of a machine is of.
//!
//! Of an instruction that was put into a function from another one, the line is that of the innermost function that the
//! author wrote; lines of libraries and of the SDK don't count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Component, Path};

use tenure_vm::{FunctionIndex, Image, disassemble};

use crate::make::symbols::{Site, Symbols};

/// The line of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    file: usize,
    /// From 1 on.
    pub(super) line: u32,
    /// How many functions of the author's are there, one in the other.
    pub(super) depth: usize,
}

impl Spot {
    /// Whether both are of one line.
    pub(super) fn is_beside(self, other: Self) -> bool {
        (self.file, self.line) == (other.file, other.line)
    }
}

/// The lines of a machine's code.
#[derive(Default)]
pub(super) struct Lines {
    files: Vec<String>,
    /// By the instruction's offset in the image.
    spots: HashMap<u32, Spot>,
    /// Where in the image each line begins, in order.
    entries: BTreeMap<(usize, u32), Vec<u32>>,
}

/// A line that has code.
pub(super) struct Found<'a> {
    pub(super) file: &'a str,
    pub(super) line: u32,
    /// Where it begins, as offsets in the image.
    pub(super) entries: &'a [u32],
}

impl Lines {
    /// The lines of all instructions of an image, as far as DWARF says them.
    pub(super) fn of(image: &Image<'_>, symbols: &Symbols) -> Self {
        let mut lines = Self::default();
        if symbols.has_dwarf() {
            for function in 0..image.functions() {
                lines.add(function, image, symbols);
            }
        }
        lines
    }

    fn add(&mut self, function: u32, image: &Image<'_>, symbols: &Symbols) {
        let index = FunctionIndex(function);
        let (Some(shape), Some(code)) = (image.shape(index), image.code(index)) else { return };
        // A line begins once in a function, and once in each place where that was put into another: what a compiler moved
        // behind other lines, as what `?` does with a result, is no beginning.
        let mut begun = BTreeSet::new();
        let mut at = 0;
        while let Some((_, length)) = disassemble(code, at) {
            let place = symbols.place(Site { function, offset: at as u32, in_module: false });
            let own = place.lines.iter().filter(|line| line.line > 0 && is_own(&line.file));
            let own: Vec<_> = own.map(|line| (self.file(&line.file), line.line)).collect();
            let code_at = shape.code_at + at as u32;
            if let Some((file, line)) = own.first().copied() {
                self.spots.insert(code_at, Spot { file, line, depth: own.len() });
            }
            for (depth, line) in own.iter().enumerate() {
                if begun.insert(own[depth..].to_vec()) {
                    self.entries.entry(*line).or_default().push(code_at);
                }
            }
            at += length;
        }
    }

    fn file(&mut self, path: &Path) -> usize {
        let path = path.display().to_string();
        self.files.iter().position(|known| *known == path).unwrap_or_else(|| {
            self.files.push(path);
            self.files.len() - 1
        })
    }

    /// Whether no line is known.
    pub(super) fn is_empty(&self) -> bool {
        self.spots.is_empty()
    }

    /// The line of the instruction at an offset of the image.
    pub(super) fn at(&self, code_at: u32) -> Option<Spot> {
        self.spots.get(&code_at).copied()
    }

    /// A spot's file.
    pub(super) fn name(&self, spot: Spot) -> &str {
        self.files.get(spot.file).map_or("", String::as_str)
    }

    /// The files.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// That line of the file, or the next one below it that has code.
    ///
    /// # Errors
    /// No file or more than one is meant, or no line from there on has code.
    pub(super) fn find(&self, path: &str, line: u32) -> Result<Found<'_>, String> {
        let meant: Vec<usize> =
            (0..self.files.len()).filter(|file| is_meant(path, &self.files[*file])).collect();
        let file = match meant[..] {
            [file] => file,
            [] => {
                return Err(format!(
                    "the machine has no code of a file {path}; it has {}",
                    self.all()
                ));
            }
            [first, second, ..] => {
                let (first, second) = (&self.files[first], &self.files[second]);
                return Err(format!("{path} may be {first} or {second}; say more of its path"));
            }
        };
        let from = self.entries.range((file, line)..=(file, u32::MAX)).next();
        let Some(((_, line), entries)) = from else {
            return Err(format!("{path} has no code in line {line} or below"));
        };
        Ok(Found { file: &self.files[file], line: *line, entries })
    }

    fn all(&self) -> String {
        const SHOWN_MAX: usize = 8;
        let shown: Vec<&str> = self.files().take(SHOWN_MAX).collect();
        match shown.is_empty() {
            true => "none".to_owned(),
            false => shown.join(", "),
        }
    }
}

/// Whether a path that somebody wrote means that file: one of both ends with the other.
fn is_meant(path: &str, file: &str) -> bool {
    let plain = |path: &str| -> std::path::PathBuf {
        Path::new(path).components().filter(|part| *part != Component::CurDir).collect()
    };
    let (path, file) = (plain(path), plain(file));
    !path.as_os_str().is_empty() && (file.ends_with(&path) || path.ends_with(&file))
}

/// Whether a file is the author's: no library that came with a compiler or a registry, and no SDK.
pub(super) fn is_own(file: &Path) -> bool {
    const OTHERS: [&str; 4] = ["/rustc/", "/rustlib/", "/registry/src/", "/.tenure/"];
    let path = format!("/{}", file.display());
    !OTHERS.iter().any(|other| path.contains(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_meant_by_the_end_of_its_path() {
        for path in
            ["main.c", "src/main.c", "./src/main.c", "/a/m/src/main.c", "/work/a/m/src/main.c"]
        {
            assert_eq!(is_meant(path, "/a/m/src/main.c"), path != "/work/a/m/src/main.c", "{path}");
            assert!(is_meant(path, "src/main.c"), "{path}");
        }
        assert!(!is_meant("ain.c", "/a/src/main.c") && !is_meant("", "/a/src/main.c"));
    }

    #[test]
    fn libraries_and_the_sdk_are_not_the_authors() {
        assert!(is_own(Path::new("/home/me/clock/src/lib.rs")));
        for path in [
            "/rustc/59807616e/library/core/src/fmt/mod.rs",
            "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/alloc/src/vec/mod.rs",
            "/home/me/.cargo/registry/src/index/libm-0.2/src/lib.rs",
            "/home/me/clock/.tenure/sdk/rust/src/lib.rs",
        ] {
            assert!(!is_own(Path::new(path)), "{path}");
        }
    }
}
