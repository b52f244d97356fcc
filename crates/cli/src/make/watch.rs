//! Projects that are built again when they change: for `--watch` of `tenure run` and `tenure install`.
//!
//! The folders are looked at again and again. Notices of the system would come sooner, but not for files on
//! shared folders, and each system has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between two looks. An editor that saves several files is done in less.
pub const LOOK_EVERY: Duration = Duration::from_millis(300);
/// The most files that are looked at in one project.
const FILES_MAX: usize = 20_000;
/// The folder whose files are sources, whatever the names of the folders and files in it.
const SOURCES: &str = "src";
/// The folders in a project that hold what is made of it, beside those whose names begin with a dot.
const MADE_FOLDERS: [&str; 3] = ["target", "node_modules", "build"];
/// The ends of names of files that building makes beside `tenure.toml`.
const MADE_FILES: [&str; 3] = [".tenure", ".debug.wasm", ".elf"];
/// What editors leave beside a file while it is changed.
const EDITORS_FILES: [&str; 4] = [".swp", ".swo", ".swx", "~"];
/// The folder of settings of Cargo, the only one with a dot that holds any.
const CARGO_FOLDER: &str = ".cargo";
/// The longest list of what was read.
const LIST_BYTES_MAX: u64 = 1 << 20;
/// Where compilers say what they read: C's, and Cargo's for the machine and for the crates beside it.
const READ_BY_C: &str = "target/wasm";
const READ_BY_CARGO: [&str; 2] =
    ["target/wasm32-unknown-unknown/release", "target/wasm32-wasip1/release"];

/// Projects' folders and packages, and how they were when they were last looked at.
pub struct Watched {
    paths: Vec<PathBuf>,
    seen: Look,
}

/// The files as they are.
#[derive(Clone, Default, PartialEq, Eq)]
struct Look {
    /// The projects' own.
    own: Files,
    /// Those elsewhere that the last build read, as far as it said so.
    read: Files,
}

/// Files as they are; `None` if one isn't there.
type Files = BTreeMap<PathBuf, Option<Seen>>;

/// A file as it is looked at.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    /// When its content changed, and when anything of it did, in seconds and nanoseconds.
    times: [i64; 4],
    bytes: u64,
    /// Another one for a file that took its place.
    number: u64,
}

impl Look {
    /// Whether a file has changed since. That a build read another one is no change of that.
    fn differs(&self, before: &Self) -> bool {
        let is_other = |(path, file): (&PathBuf, &Option<Seen>)| {
            before.read.get(path).is_some_and(|seen| seen != file)
        };
        self.own != before.own || self.read.iter().any(is_other)
    }
}

impl Watched {
    /// Begins to watch folders of projects and packages. What changes from now on is a change.
    pub fn new(paths: &[PathBuf]) -> Self {
        let mut watched = Self { paths: paths.to_vec(), seen: Look::default() };
        watched.seen = watched.look();
        watched
    }

    /// Waits until something changes and then for a moment nothing does; `false` if `is_over` says so first.
    pub fn wait(&mut self, is_over: impl Fn() -> bool) -> bool {
        let mut changed = false;
        while !is_over() {
            std::thread::sleep(LOOK_EVERY);
            let is_change = self.has_changed();
            if changed && !is_change {
                return true;
            }
            changed |= is_change;
        }
        false
    }

    /// Looks again.
    fn has_changed(&mut self) -> bool {
        let now = self.look();
        let has_changed = now.differs(&self.seen);
        self.seen = now;
        has_changed
    }

    fn look(&self) -> Look {
        let mut look = Look::default();
        for path in &self.paths {
            if !path.is_dir() {
                note(path, &mut look.own);
                continue;
            }
            let mut folders = BTreeSet::new();
            look_into(path, Part::Project, &mut folders, &mut look.own);
            for file in read_by_build(path) {
                note(&file, &mut look.read);
            }
        }
        look
    }
}

/// A part of a project.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The folder of `tenure.toml`.
    Project,
    /// One beside its sources.
    Beside,
    /// Its sources.
    Sources,
}

impl Part {
    /// The part that a folder of that name is in this one, if it is looked into.
    fn below(self, name: &str) -> Option<Self> {
        match self {
            Self::Sources => Some(Self::Sources),
            Self::Project if name == SOURCES => Some(Self::Sources),
            Self::Project if name == CARGO_FOLDER => Some(Self::Beside),
            _ if name.starts_with('.') || MADE_FOLDERS.contains(&name) => None,
            Self::Project | Self::Beside => Some(Self::Beside),
        }
    }

    /// Whether a build may read the file of that name.
    fn has(self, name: &str) -> bool {
        let is_editors =
            name.starts_with(".#") || EDITORS_FILES.iter().any(|end| name.ends_with(end));
        let is_made = match self {
            // The first build makes a Cargo.lock where there is none.
            Self::Project => {
                name == "Cargo.lock" || MADE_FILES.iter().any(|end| name.ends_with(end))
            }
            Self::Beside | Self::Sources => false,
        };
        !is_editors && !is_made && (self == Self::Sources || !name.starts_with('.'))
    }
}

/// Notes the sources in a folder and below, through links as well, each folder once.
fn look_into(folder: &Path, part: Part, folders: &mut BTreeSet<PathBuf>, files: &mut Files) {
    if !folder.canonicalize().is_ok_and(|folder| folders.insert(folder)) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if files.len() >= FILES_MAX {
            return;
        }
        if !path.is_dir() {
            if part.has(&name) {
                note(&path, files);
            }
        } else if let Some(part) = part.below(&name) {
            look_into(&path, part, folders, files);
        }
    }
}

/// The files outside of a project that its last build read, by what compilers left beside their objects.
fn read_by_build(project: &Path) -> BTreeSet<PathBuf> {
    let folders = [READ_BY_C].into_iter().chain(READ_BY_CARGO);
    let entries = folders.filter_map(|folder| std::fs::read_dir(project.join(folder)).ok());
    let lists = entries.flat_map(|entries| entries.flatten()).map(|entry| entry.path());
    let lists = lists.filter(|path| path.extension().is_some_and(|end| end == "d"));
    let is_list = |path: &PathBuf| {
        let found = std::fs::symlink_metadata(path);
        found.is_ok_and(|found| found.is_file() && found.len() <= LIST_BYTES_MAX)
    };
    let texts = lists.filter(is_list).filter_map(|path| std::fs::read_to_string(path).ok());
    let own = project.canonicalize().unwrap_or_default();
    let is_foreign = |path: &PathBuf| {
        path.canonicalize().is_ok_and(|path| !path.starts_with(&own)) || !path.exists()
    };
    let files = texts.flat_map(|text| dependencies(&text)).map(|path| project.join(path));
    files.filter(is_foreign).take(FILES_MAX).collect()
}

/// The files behind the colon of each rule for `make`, as compilers write them: a space in a name has a backslash.
fn dependencies(rules: &str) -> Vec<PathBuf> {
    const SPACE: &str = "\0";
    let rules = rules.replace("\\\n", " ").replace("\\ ", SPACE);
    let files = rules.lines().filter_map(|rule| rule.split_once(": ")).flat_map(|(_, files)| {
        files.split_whitespace().map(|file| PathBuf::from(file.replace(SPACE, " ")))
    });
    files.collect()
}

fn note(path: &Path, files: &mut Files) {
    let seen = std::fs::metadata(path).map(|found| Seen {
        times: [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()],
        bytes: found.len(),
        number: found.ino(),
    });
    files.insert(path.to_path_buf(), seen.ok());
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_building_makes_is_no_change_and_a_source_that_comes_changes_or_goes_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| {
            fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            fs::write(path(name), text).unwrap();
        };
        write("tenure.toml", "name = \"a\"");
        write("src/main.c", "one");
        let mut watched = Watched::new(&[folder.path().to_path_buf()]);
        assert!(!watched.has_changed());
        let made =
            ["a.tenure", "a.debug.wasm", "a.rv32.elf", "Cargo.lock", "target/x", ".tenure/y"];
        for name in made {
            write(name, "made");
            assert!(!watched.has_changed(), "{name}");
        }
        write("src/.main.c.swp", "an editor's");
        assert!(!watched.has_changed());
        write("src/main.c", "longer");
        assert!(watched.has_changed());
        write("src/below/more.c", "new");
        assert!(watched.has_changed());
        fs::remove_file(path("src/main.c")).unwrap();
        assert!(watched.has_changed());
        assert!(!watched.has_changed());
    }

    /// A part of a path below `src`: names that elsewhere are those of made folders, and any other.
    fn folder_name() -> impl Strategy<Value = String> {
        let known = prop::sample::select(vec![
            "target",
            "build",
            "node_modules",
            ".hidden",
            ".tenure",
            ".git",
            "src",
            "a b",
            "\u{e9}t\u{e9}",
        ]);
        prop_oneof![known.prop_map(String::from), "[a-z.][a-zA-Z0-9_-]{0,8}"]
            .prop_filter("a folder of its own", |name| !matches!(name.as_str(), "." | ".."))
    }

    fn file_name() -> impl Strategy<Value = String> {
        let end = prop::sample::select(vec![
            ".c",
            ".rs",
            ".h",
            ".tenure",
            ".debug.wasm",
            ".elf",
            ".lock",
            ".json",
            "",
        ]);
        ("[a-z.][a-zA-Z0-9_]{0,8}", end)
            .prop_map(|(name, end)| name + end)
            .prop_filter("a file of its own", |name| !matches!(name.as_str(), "." | ".."))
    }

    /// What becomes of a file.
    #[derive(Clone, Copy, Debug)]
    enum Change {
        Write,
        Remove,
        /// Another file of its length and time takes its place.
        Replace,
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// A file below `src` is a source whatever it and its folders are called, also through a link.
        #[test]
        fn any_file_below_the_sources_that_changes_is_a_change(
            folders in prop::collection::vec(folder_name(), 0..4),
            name in file_name(),
            is_linked in any::<bool>(),
            change in prop::sample::select(vec![Change::Write, Change::Remove, Change::Replace]),
        ) {
            let (project, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let sources = project.path().join("src");
            fs::create_dir(&sources).unwrap();
            let below = if is_linked {
                std::os::unix::fs::symlink(elsewhere.path(), sources.join("link")).unwrap();
                // A link that leads in a ring is looked at once.
                std::os::unix::fs::symlink(&sources, elsewhere.path().join("ring")).unwrap();
                sources.join("link")
            } else {
                sources
            };
            let folder = folders.iter().fold(below, |folder, name| folder.join(name));
            fs::create_dir_all(&folder).unwrap();
            let path = folder.join(name);
            fs::write(&path, "one").unwrap();
            let mut watched = Watched::new(&[project.path().to_path_buf()]);
            prop_assert!(!watched.has_changed());
            match change {
                Change::Write => fs::write(&path, "longer").unwrap(),
                Change::Remove => fs::remove_file(&path).unwrap(),
                Change::Replace => {
                    let other = elsewhere.path().join("other");
                    fs::write(&other, "two").unwrap();
                    let modified = fs::metadata(&path).unwrap().modified().unwrap();
                    fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
                    fs::rename(&other, &path).unwrap();
                }
            }
            prop_assert!(watched.has_changed(), "{}", path.display());
            prop_assert!(!watched.has_changed());
        }
    }

    #[test]
    fn file_elsewhere_that_the_last_build_read_is_a_source() {
        let (project, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let header = elsewhere.path().join("a b.h");
        fs::write(&header, "one").unwrap();
        let mut watched = Watched::new(&[project.path().to_path_buf()]);
        let objects = project.path().join("target/wasm");
        fs::create_dir_all(&objects).unwrap();
        let escaped = header.display().to_string().replace(' ', "\\ ");
        let rule = format!("target/wasm/0.o: src/main.c \\\n  {escaped} \\\n  /nowhere/gone.h\n");
        fs::write(objects.join("0.d"), rule).unwrap();
        assert!(!watched.has_changed(), "to have read it is no change of it");
        fs::write(&header, "longer").unwrap();
        assert!(watched.has_changed());
        fs::remove_file(&header).unwrap();
        assert!(watched.has_changed());
    }
}
