//! The fence of a project's folder: what a build writes, and what it reads for a package, lies inside.
//!
//! A project may be a stranger's, and version control keeps links. So a build writes to no place that a link leads out to,
//! and packs no file from outside. What a compiler opens because a source or a flag of the project says so is its author's
//! say: building is running, and docs/guide.md tells users.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::whole_file;

/// The folders of a project that building fills.
const MADE: [&str; 2] = [".tenure", "target"];
/// The file that cargo writes.
const CARGO_LOCK: &str = "Cargo.lock";

/// Why a place is none of the project's own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FenceError {
    /// Building would write through a link.
    #[error("{} is a link that leads away, and building writes there; remove it", .0.display())]
    Link(PathBuf),
    /// Building would write into a pipe or device, or wait for one.
    #[error("{} is neither a file nor a folder, and building writes there; remove it", .0.display())]
    Special(PathBuf),
    /// The file that is to be read lies outside.
    #[error("{} lies outside the project's folder, or is a link that leads there; a project is built of what lies in it", .0.display())]
    Outside(PathBuf),
    /// A file is wanted.
    #[error("{} is no file", .0.display())]
    NoFile(PathBuf),
    /// The file system refused.
    #[error("can't read {}: {}", .0.display(), .1)]
    File(PathBuf, #[source] io::Error),
}

/// Checks all places that building the project in `folder` writes to: the folders that it fills, and `outputs` where they lie
/// in the project.
///
/// # Errors
/// A link leads out of one, or a pipe or a device lies there.
pub(crate) fn check_outputs(folder: &Path, outputs: &[PathBuf]) -> Result<(), FenceError> {
    let project = canonical(folder)?;
    for made in MADE {
        check_tree(&folder.join(made))?;
    }
    let lock = folder.join(CARGO_LOCK);
    if is_link(&lock) && !lock.canonicalize().is_ok_and(|file| file.starts_with(&project)) {
        return Err(FenceError::Link(lock));
    }
    outputs.iter().try_for_each(|output| check_output(&project, output))
}

/// Checks a folder that building fills, and all that is in it. Links that stay in it are its own: build scripts make some.
///
/// # Errors
/// As [`check_outputs`].
pub(crate) fn check_tree(root: &Path) -> Result<(), FenceError> {
    let Ok(metadata) = root.symlink_metadata() else { return Ok(()) };
    if metadata.is_symlink() {
        return Err(FenceError::Link(root.to_path_buf()));
    }
    if !metadata.is_dir() {
        return Err(FenceError::Special(root.to_path_buf()));
    }
    let own = canonical(root)?;
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let failed = |error| FenceError::File(folder.clone(), error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                if !path.canonicalize().is_ok_and(|place| place.starts_with(&own)) {
                    return Err(FenceError::Link(path));
                }
            } else if !kind.is_file() {
                return Err(FenceError::Special(path));
            }
        }
    }
    Ok(())
}

/// Checks a path to write to: from where it is in the project on, no part of it is a link.
fn check_output(project: &Path, output: &Path) -> Result<(), FenceError> {
    let failed = |error| FenceError::File(output.to_path_buf(), error);
    let mut so_far = PathBuf::new();
    for component in std::path::absolute(output).map_err(failed)?.components() {
        let is_inside = so_far.canonicalize().is_ok_and(|place| place.starts_with(project));
        so_far.push(component);
        if is_inside && component != Component::ParentDir {
            let Ok(metadata) = so_far.symlink_metadata() else { continue };
            if metadata.is_symlink() {
                return Err(FenceError::Link(so_far));
            }
            if !metadata.is_file() && !metadata.is_dir() {
                return Err(FenceError::Special(so_far));
            }
        }
    }
    Ok(())
}

/// The folder `below` of a project's folder, made if it isn't there, for the files of a tool. Those that have a further name
/// (hard links) are removed: tools write into files.
///
/// # Errors
/// A link leads out of it, or the file system refuses.
pub(crate) fn made_folder(folder: &Path, below: &str) -> Result<PathBuf, FenceError> {
    let place = folder.join(below);
    let failed = |error| FenceError::File(place.clone(), error);
    check_output(&canonical(folder)?, &place)?;
    fs::create_dir_all(&place).map_err(failed)?;
    check_tree(&place)?;
    for entry in fs::read_dir(&place).map_err(failed)? {
        vacate(&entry.map_err(failed)?.path())?;
    }
    Ok(place)
}

/// Removes a file that has a further name, before a tool writes into it.
fn vacate(path: &Path) -> Result<(), FenceError> {
    let has_further_name = |metadata: fs::Metadata| metadata.is_file() && metadata.nlink() > 1;
    if path.symlink_metadata().is_ok_and(has_further_name) {
        fs::remove_file(path).map_err(|error| FenceError::File(path.to_path_buf(), error))?;
    }
    Ok(())
}

/// The path from `folder` on of the module that a tool is to write, below `target`.
///
/// # Errors
/// As [`made_folder`].
pub(crate) fn module_to_make(folder: &Path, name: &str) -> Result<String, FenceError> {
    made_folder(folder, "target")?;
    Ok(format!("target/{name}.wasm"))
}

/// Where `path`, which the project names from its folder on, is.
///
/// # Errors
/// It isn't there, or lies outside: by its name, or by a link.
pub(crate) fn inside(folder: &Path, path: &Path) -> Result<PathBuf, FenceError> {
    let place = canonical(&folder.join(path))?;
    match place.starts_with(canonical(folder)?) {
        true => Ok(place),
        false => Err(FenceError::Outside(path.to_path_buf())),
    }
}

/// As [`inside`], of a file.
///
/// # Errors
/// As [`inside`], or it is a folder, a pipe or a device.
pub(crate) fn file(folder: &Path, path: &Path) -> Result<PathBuf, FenceError> {
    let place = inside(folder, path)?;
    match place.is_file() {
        true => Ok(place),
        false => Err(FenceError::NoFile(path.to_path_buf())),
    }
}

/// Reads a file of the project, of so many bytes at most.
///
/// # Errors
/// As [`file`], or it is longer.
pub(crate) fn read(folder: &Path, path: &Path, bytes_max: u64) -> Result<Vec<u8>, FenceError> {
    let place = file(folder, path)?;
    whole_file::read(&place, bytes_max).map_err(|error| FenceError::File(place, error))
}

fn canonical(path: &Path) -> Result<PathBuf, FenceError> {
    path.canonicalize().map_err(|error| FenceError::File(path.to_path_buf(), error))
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(place.at("project/target/deep")).unwrap();
            fs::create_dir(place.at("elsewhere")).unwrap();
            fs::write(place.at("elsewhere/key"), "secret").unwrap();
            place
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn check(&self, output: &str) -> Result<(), FenceError> {
            check_outputs(&self.at("project"), &[self.at(output)])
        }
    }

    #[test]
    fn link_that_leads_out_of_what_a_build_writes_is_refused_by_name() {
        // B-1: at each depth, of files, folders and what isn't there.
        for link in [
            ".tenure",
            "target",
            ".tenure/sdk/zig",
            "target/deep/0.o",
            "m.tenure",
            "m.debug.wasm",
            "Cargo.lock",
        ] {
            for goal in ["elsewhere", "elsewhere/key", "elsewhere/missing"] {
                let place = Place::new();
                if link == "target" {
                    fs::remove_dir_all(place.at("project/target")).unwrap();
                }
                let path = place.at("project").join(link);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                symlink(place.at(goal), &path).unwrap();
                let outputs = ["m.tenure", "m.debug.wasm"].map(|it| place.at("project").join(it));
                let error = check_outputs(&place.at("project"), &outputs).unwrap_err().to_string();
                assert!(error.contains(link) && error.contains("is a link"), "{link}: {error}");
            }
        }
    }

    #[test]
    fn link_within_target_and_one_on_the_way_to_the_project_are_taken() {
        let place = Place::new();
        fs::write(place.at("project/target/deep/library.so.1"), "").unwrap();
        symlink("library.so.1", place.at("project/target/deep/library.so")).unwrap();
        place.check("project/m.tenure").unwrap();
        symlink(place.at("project"), place.at("also")).unwrap();
        check_outputs(&place.at("also"), &[place.at("also/m.tenure")]).unwrap();
        place.check("elsewhere/m.tenure").unwrap();
    }

    #[test]
    fn output_below_a_folder_of_the_project_that_is_a_link_is_refused_however_it_is_named() {
        let place = Place::new();
        symlink(place.at("elsewhere"), place.at("project/out")).unwrap();
        symlink(place.at("project"), place.at("also")).unwrap();
        for output in
            ["project/out/m.tenure", "elsewhere/../project/out/m.tenure", "also/out/m.tenure"]
        {
            assert!(matches!(place.check(output), Err(FenceError::Link(_))), "{output}");
        }
    }

    #[test]
    fn pipe_where_a_build_writes_is_refused_and_a_further_name_of_a_file_is_given_up() {
        let place = Place::new();
        fs::hard_link(place.at("elsewhere/key"), place.at("project/target/deep/0.o")).unwrap();
        made_folder(&place.at("project"), "target/deep").unwrap();
        assert!(!place.at("project/target/deep/0.o").exists());
        assert!(place.at("elsewhere/key").exists());
        let pipe = place.at("project/target/deep/pipe");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(matches!(place.check("project/m.tenure"), Err(FenceError::Special(_))));
    }

    #[test]
    fn file_from_outside_is_not_read_by_whatever_name() {
        // B-7: an absolute path, one with `..`, a link, a link of a folder.
        let place = Place::new();
        symlink(place.at("elsewhere/key"), place.at("project/link")).unwrap();
        symlink(place.at("elsewhere"), place.at("project/folder")).unwrap();
        let key = place.at("elsewhere/key");
        let project = place.at("project");
        for path in [key.as_path(), Path::new("../elsewhere/key"), Path::new("link")] {
            let refused = read(&project, path, 100);
            assert!(matches!(refused, Err(FenceError::Outside(_))), "{}", path.display());
        }
        let below = read(&project, Path::new("folder/key"), 100);
        assert!(matches!(below, Err(FenceError::Outside(_))));
        // A folder whose name begins like the project's.
        fs::create_dir(place.at("project-of-others")).unwrap();
        fs::write(place.at("project-of-others/key"), "").unwrap();
        let beside = read(&project, Path::new("../project-of-others/key"), 100);
        assert!(matches!(beside, Err(FenceError::Outside(_))));
        fs::write(place.at("project/own"), "own").unwrap();
        symlink("own", place.at("project/to-own")).unwrap();
        assert_eq!(read(&project, Path::new("to-own"), 100).unwrap(), b"own");
        assert!(matches!(read(&project, Path::new("target"), 9), Err(FenceError::NoFile(_))));
    }
}
