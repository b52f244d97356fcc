//! Projects that are built again when they change: for `--watch` of `tenure run` and `tenure install`.
//!
//! The folders are looked at again and again. Notices of the system would come sooner, but not for files on
//! shared folders, and each system has its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The time between two looks. An editor that saves several files is done in less.
pub const LOOK_EVERY: Duration = Duration::from_millis(300);
/// The most files that are looked at in one project.
const FILES_MAX: usize = 20_000;
/// The folders in a project that hold what is made of it, beside those whose names begin with a dot.
const MADE_FOLDERS: [&str; 3] = ["target", "node_modules", "build"];
/// The ends of names of files that building makes.
const MADE_FILES: [&str; 3] = [".tenure", ".debug.wasm", ".elf"];

/// Projects' folders and packages, and how they were when they were last looked at.
pub struct Watched {
    paths: Vec<PathBuf>,
    seen: Files,
}

/// The time of the last change and the length of each file.
type Files = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

impl Watched {
    /// Begins to watch folders of projects and packages. What changes from now on is a change.
    pub fn new(paths: &[PathBuf]) -> Self {
        let mut watched = Self { paths: paths.to_vec(), seen: Files::new() };
        watched.seen = watched.look();
        watched
    }

    /// Waits until something changes and then for a moment nothing does; `false` if `is_over` says so first.
    pub fn wait(&mut self, is_over: impl Fn() -> bool) -> bool {
        let mut changed = false;
        while !is_over() {
            std::thread::sleep(LOOK_EVERY);
            let now = self.look();
            if now == self.seen && changed {
                return true;
            }
            changed |= now != self.seen;
            self.seen = now;
        }
        false
    }

    fn look(&self) -> Files {
        let mut files = Files::new();
        for path in &self.paths {
            match path.is_dir() {
                true => look_into(path, &mut files),
                false => note(path, &mut files),
            }
        }
        files
    }
}

/// Notes the sources in `folder` and below.
fn look_into(folder: &Path, files: &mut Files) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if name.starts_with('.') || files.len() >= FILES_MAX {
            continue;
        }
        match is_folder {
            true if MADE_FOLDERS.contains(&name) => {}
            true => look_into(&entry.path(), files),
            // The first build makes a Cargo.lock where there is none.
            false if name == "Cargo.lock" || MADE_FILES.iter().any(|end| name.ends_with(end)) => {}
            false => note(&entry.path(), files),
        }
    }
}

fn note(path: &Path, files: &mut Files) {
    let metadata = std::fs::metadata(path);
    let seen = metadata.map_or((None, 0), |found| (found.modified().ok(), found.len()));
    files.insert(path.to_path_buf(), seen);
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let mut changed = || {
            let now = watched.look();
            std::mem::replace(&mut watched.seen, now.clone()) != now
        };
        assert!(!changed());
        let made =
            ["a.tenure", "a.debug.wasm", "a.rv32.elf", "Cargo.lock", "target/x", ".tenure/y"];
        for name in made {
            write(name, "made");
            assert!(!changed(), "{name}");
        }
        write("src/main.c", "longer");
        assert!(changed());
        write("src/below/more.c", "new");
        assert!(changed());
        fs::remove_file(path("src/main.c")).unwrap();
        assert!(changed());
        assert!(!changed());
    }
}
