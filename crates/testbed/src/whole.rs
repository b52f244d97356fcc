//! Folders that are filled once: one appears under its name only when it is whole, and one process at a time fills it.
//!
//! Tests run side by side in many processes, and a run may be broken off. Whoever comes second waits and finds the folder;
//! what a broken run left behind is a draft, which nobody takes for the folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// Fills the folder `place` with `fill`, unless it is there. `fill` gets an empty folder beside it to write to.
///
/// # Errors
/// Those of `fill`, and of the file system; `place` isn't there then.
pub fn fill_once(place: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let _alone = lock(place)?;
    if place.is_dir() {
        return Ok(());
    }
    // A child of a process that was killed may write to that one's draft still.
    let draft = beside(place, &format!(".draft-{}", process::id()));
    make_empty(&draft)?;
    let filled = fill(&draft).and_then(|()| fs::rename(&draft, place));
    if filled.is_err() {
        let _ = fs::remove_dir_all(&draft);
    }
    filled
}

/// As [`fill_once`], for products that name their folder: `fill` writes to `place` itself, and a file beside it, `.whole`,
/// says when that is done.
///
/// # Errors
/// Those of `fill`, and of the file system; who comes next fills it anew then.
pub fn fill_in_place(place: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let _alone = lock(place)?;
    let whole = beside(place, ".whole");
    if whole.exists() {
        return Ok(());
    }
    make_empty(place)?;
    fill(place)?;
    File::create(whole).map(drop)
}

/// Waits until nobody else fills `place`, and keeps others from it as long as the file is open: the system closes it however
/// this process ends.
fn lock(place: &Path) -> io::Result<File> {
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    let file = File::create(beside(place, ".lock"))?;
    file.lock()?;
    Ok(file)
}

fn beside(place: &Path, ending: &str) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn make_empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir(folder),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    /// A new folder of this test's own.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tenure-whole-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn many_that_want_a_folder_at_once_fill_it_once_and_all_find_it_whole() {
        let parent = folder("many");
        let place = parent.join("packages");
        let filled = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let fill = |draft: &Path| {
                        filled.fetch_add(1, Ordering::Relaxed);
                        (0..50).try_for_each(|number| fs::write(draft.join(number.to_string()), ""))
                    };
                    fill_once(&place, fill).unwrap();
                    assert_eq!(fs::read_dir(&place).unwrap().count(), 50);
                });
            }
        });
        assert_eq!(filled.into_inner(), 1);
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn folder_that_was_half_filled_is_no_folder_and_is_filled_by_who_comes_next() {
        let parent = folder("half");
        let place = parent.join("packages");
        // Broken off: a draft with this process's number, as after a restart of the computer.
        let left = parent.join(format!("packages.draft-{}", process::id()));
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("half"), "").unwrap();
        let failed = fill_once(&place, |draft| {
            fs::write(draft.join("half"), "")?;
            Err(io::Error::other("no network"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no network");
        assert!(!place.exists() && !left.exists());
        fill_once(&place, |draft| fs::write(draft.join("whole"), "")).unwrap();
        assert!(place.join("whole").exists() && !place.join("half").exists());
        fill_once(&place, |_| panic!("it is there")).unwrap();
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn folder_that_is_filled_in_place_counts_when_its_filling_has_ended() {
        let parent = folder("place");
        let place = parent.join("machines");
        let failed = fill_in_place(&place, |place| {
            fs::write(place.join("half"), "")?;
            Err(io::Error::other("no compiler"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no compiler");
        fill_in_place(&place, |place| fs::write(place.join("whole"), "")).unwrap();
        assert!(place.join("whole").exists() && !place.join("half").exists());
        fill_in_place(&place, |_| panic!("it is there")).unwrap();
        fs::remove_dir_all(parent).unwrap();
    }
}
