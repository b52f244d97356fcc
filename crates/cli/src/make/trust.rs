//! Whose projects are built: building runs code of a project's author with the rights of who builds.
//!
//! A folder of the user's own is built without a question. One that belongs to somebody else, on a shared disk or in a place
//! for temporary files, may have been put there for that; the user is asked once, as git asks by `safe.directory`.

use std::fs;
use std::io::{ErrorKind, IsTerminal as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::home::{Home, private_file};
use crate::make::project_file::FILE_NAME;
use crate::terminal::confirm::confirm;
use crate::terminal::output::is_json_wanted;
use crate::whole_file;

/// The file of the folders that the user trusts, in the folder of keys: one a line.
const LIST: &str = "trusted-projects";
/// The most bytes of it.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// Whether a folder is to be trusted from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// If it is the user's, or the user says so.
    AsKnown,
    /// The user has said so.
    Given,
}

/// Looks whether the project in `folder` may be built.
///
/// # Errors
/// It belongs to another user, and this one doesn't trust it.
pub(crate) fn check(folder: &Path, trust: Trust, home: &Home) -> anyhow::Result<()> {
    let place = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let Some(stranger) = stranger(&place)? else { return Ok(()) };
    let line = place.to_str().filter(|path| !path.contains('\n'));
    let line = line.with_context(|| format!("{} has no name that is a line", place.display()))?;
    let list = home.folder().join(LIST);
    if trust == Trust::AsKnown {
        let known = whole_file::read_text(&list, LIST_BYTES_MAX).unwrap_or_default();
        if known.lines().any(|known| known == line) {
            return Ok(());
        }
        let why = format!(
            "{line} belongs to another user (uid {stranger}), and building runs code of who wrote it with your rights"
        );
        if is_json_wanted() || !std::io::stdin().is_terminal() {
            bail!("{why}; if you trust it, run once: tenure build --trust {}", shown(line));
        }
        confirm(&format!("{why}; trust this folder?"), false)?;
    }
    let _lock = home.lock()?;
    private_file::add_lines(&list, &[line.to_owned()])
}

/// A path as a shell takes it.
fn shown(path: &str) -> String {
    shlex::try_quote(path).map_or_else(|_| path.to_owned(), Into::into)
}

/// The user whose the folder or its project file is, if that is neither this user nor root.
fn stranger(folder: &Path) -> anyhow::Result<Option<u32>> {
    let this = rustix::process::geteuid().as_raw();
    let variable = |name: &str| std::env::var(name).ok();
    // By sudo, who asked for it; a service that builds checks out what it was told to.
    let asked = variable("SUDO_UID").and_then(|uid| uid.parse().ok()).filter(|_| this == 0);
    let is_service = variable("CI").is_some_and(|value| value == "true" || value == "1");
    for place in [folder.to_path_buf(), folder.join(FILE_NAME)] {
        let owner = match fs::metadata(&place) {
            Ok(seen) => seen.uid(),
            // Whoever reads the project says that there is none.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| place.display().to_string()),
        };
        if !is_known(owner, this, asked) && !is_service {
            return Ok(Some(owner));
        }
    }
    Ok(None)
}

/// Whether an owner's projects are built unasked: root's may do all anyway.
fn is_known(owner: u32, this: u32, asked: Option<u32>) -> bool {
    owner == this || owner == 0 || Some(owner) == asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_of_this_user_of_root_and_of_who_asked_root_are_built_unasked() {
        assert!(is_known(1000, 1000, None) && is_known(0, 1000, None));
        assert!(is_known(1000, 0, Some(1000)));
        assert!(!is_known(1001, 1000, None) && !is_known(1000, 0, None));
        assert!(!is_known(1001, 0, Some(1000)));
    }
}
