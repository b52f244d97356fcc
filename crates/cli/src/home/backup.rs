//! Whether this user's keys were backed up: `backup.toml`, in the folder of keys. No secret stands in it.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tenure_wire::VerifyingKey;

use crate::home::private_file;
use crate::home::{Home, HomeLock};
use crate::whole_file;

/// The file's name.
const FILE: &str = "backup.toml";
/// The longest that the file is read of, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// The way to a backup, for those who have none.
pub const NONE_YET: &str =
    "none yet; if this folder is lost, so is every device. Make one: tenure key backup --to FILE";

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Kept {
    /// The owner's key that was backed up last.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The time of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    unix_s: Option<u64>,
    /// The owner's key whose user a device has told that there is no backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<String>,
}

/// When the owner's key `owner` was backed up last, in seconds since 1970; `None` if it wasn't, as after a change of keys.
///
/// # Errors
/// The file can't be read, or holds something else.
pub fn made_at(home: &Home, owner: &VerifyingKey) -> anyhow::Result<Option<u64>> {
    let kept = read(home)?;
    let is_this = kept.key.is_some_and(|key| key == owner.to_string());
    Ok(kept.unix_s.filter(|_| is_this))
}

/// Notes that the owner's key `owner` has a backup.
///
/// # Errors
/// The file can't be read or written.
pub fn note(home: &Home, lock: &HomeLock, owner: &VerifyingKey, unix_s: u64) -> anyhow::Result<()> {
    let kept = Kept { key: Some(owner.to_string()), unix_s: Some(unix_s), ..read(home)? };
    write(home, lock, &kept)
}

/// Whether the user with the owner's key `owner` is to be told by a device that there is no backup of it: once.
///
/// # Errors
/// The file can't be read or written.
pub fn is_to_be_told(home: &Home, owner: &VerifyingKey) -> anyhow::Result<bool> {
    let is_due = |kept: &Kept| {
        let key = Some(owner.to_string());
        kept.key != key && kept.told != key
    };
    if !is_due(&read(home)?) {
        return Ok(false);
    }
    let lock = home.lock()?;
    let kept = read(home)?;
    if !is_due(&kept) {
        return Ok(false);
    }
    write(home, &lock, &Kept { told: Some(owner.to_string()), ..kept })?;
    Ok(true)
}

fn path(home: &Home) -> PathBuf {
    home.folder().join(FILE)
}

fn read(home: &Home) -> anyhow::Result<Kept> {
    let path = path(home);
    match whole_file::read_text(&path, BYTES_MAX) {
        Ok(text) => toml::from_str(&text)
            .with_context(|| format!("{} can't be used; mend it", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Kept::default()),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

fn write(home: &Home, _: &HomeLock, kept: &Kept) -> anyhow::Result<()> {
    private_file::replace(&path(home), toml::to_string(kept)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backup_counts_for_its_own_key_alone_and_its_lack_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        let [old, new] = [1, 2].map(|number| VerifyingKey([number; 32]));
        let told = |key: &VerifyingKey| is_to_be_told(&home, key).unwrap();
        assert_eq!(made_at(&home, &old).unwrap(), None);
        assert_eq!([told(&old), told(&old)], [true, false]);
        note(&home, &home.lock().unwrap(), &old, 86_400).unwrap();
        assert_eq!(made_at(&home, &old).unwrap(), Some(86_400));
        // After a change of keys.
        assert_eq!(made_at(&home, &new).unwrap(), None);
        assert_eq!([told(&new), told(&new), told(&old)], [true, false, false]);
        std::fs::write(path(&home), "made = 1").unwrap();
        let error = made_at(&home, &old).unwrap_err().to_string();
        assert!(error.contains("backup.toml can't be used"), "{error}");
    }
}
