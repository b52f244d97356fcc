//! This user's word, as an owner, on keys: the list of revoked ones and the changes of the own ones,
//! kept in the folder of keys and told to devices at the next command.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tenure_crypto::SigningKey;
use tenure_directory::{open_succession, succeed};
use tenure_package::Revocations;
use tenure_wire::directory::DeviceRecord;
use tenure_wire::ownership::{SignedSuccession, Succession};
use tenure_wire::{PublicKey, VerifyingKey};

use crate::home::private_file;
use crate::home::{Home, HomeLock};

/// The file of the list, as it was signed.
const LIST_FILE: &str = "revoked.list";
/// The file of the changes of keys, first to last, as they were signed.
const CHANGES_FILE: &str = "owner.changes";

/// An owner's words on keys.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    revoked: Revocations,
    signed_list: Option<Vec<u8>>,
    changes: Vec<SignedSuccession>,
}

impl Authority {
    /// The word of the user in `home` so far.
    ///
    /// # Errors
    /// A file can't be read, or holds something else.
    pub fn of(home: &Home) -> anyhow::Result<Self> {
        Self::read(home.folder().to_path_buf())
    }

    fn read(folder: PathBuf) -> anyhow::Result<Self> {
        let signed_list = read(&folder.join(LIST_FILE))?;
        let list = signed_list.as_deref().map(Revocations::verify).transpose();
        let list = list.with_context(|| folder.join(LIST_FILE).display().to_string())?;
        let changes = read(&folder.join(CHANGES_FILE))?;
        let changes = changes.map(|bytes| postcard::from_bytes(&bytes)).transpose();
        let changes: Option<Vec<SignedSuccession>> =
            changes.with_context(|| folder.join(CHANGES_FILE).display().to_string())?;
        let revoked = list.map(|(list, _)| list).unwrap_or_default();
        Ok(Self { folder, revoked, signed_list, changes: changes.unwrap_or_default() })
    }

    /// Learns what other commands have written meanwhile. Until `_lock` is dropped, none writes more.
    ///
    /// # Errors
    /// A file can't be read, or holds something else.
    pub fn read_again(&mut self, _lock: &HomeLock) -> anyhow::Result<()> {
        *self = Self::read(self.folder.clone())?;
        Ok(())
    }

    /// The keys that the user revoked.
    pub fn revoked(&self) -> &Revocations {
        &self.revoked
    }

    /// The list as it was signed, if there is one.
    pub fn signed_list(&self) -> Option<&[u8]> {
        self.signed_list.as_deref()
    }

    /// Signs and keeps a list, which was made of the one that [`Self::read_again`] found under the same lock.
    ///
    /// # Errors
    /// It has too many entries, or the file can't be written.
    pub fn sign_list(
        &mut self,
        _lock: &HomeLock,
        list: Revocations,
        key: &SigningKey,
    ) -> anyhow::Result<()> {
        let signed = list.sign(key)?;
        private_file::replace(&self.folder.join(LIST_FILE), &signed)?;
        (self.revoked, self.signed_list) = (list, Some(signed));
        Ok(())
    }

    /// Keeps the list that a device has in force, if this user signed it and it is newer than the one kept.
    ///
    /// # Errors
    /// It proves nothing, or the file can't be written.
    pub fn learn_list(
        &mut self,
        lock: &HomeLock,
        signed: Vec<u8>,
        owner: &VerifyingKey,
    ) -> anyhow::Result<()> {
        self.read_again(lock)?;
        let (list, signer) = Revocations::verify(&signed)?;
        if !self.is_or_was(owner, &signer) {
            bail!("the device's list of revoked keys is by another owner");
        }
        if list.number > self.revoked.number {
            private_file::replace(&self.folder.join(LIST_FILE), &signed)?;
            (self.revoked, self.signed_list) = (list, Some(signed));
        }
        Ok(())
    }

    /// Signs and keeps the word that the key `next` follows the key `by` on all devices. Returns its number:
    /// greater than that of the last one, and than the clock's milliseconds `now_ms`.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn change_keys(
        &mut self,
        lock: &HomeLock,
        by: &SigningKey,
        next: (VerifyingKey, PublicKey),
        now_ms: u64,
    ) -> anyhow::Result<()> {
        self.read_again(lock)?;
        let last = self.changes.last().and_then(|last| open_succession(last).ok());
        let succession = Succession {
            by: by.verifying_key(),
            next: next.0,
            next_machine: next.1,
            kind: tenure_wire::ownership::SuccessionKind::Change,
            device: None,
            number: now_ms.max(last.map_or(0, |last| last.number.saturating_add(1))),
        };
        self.changes.push(succeed(by, &succession));
        let bytes = postcard::to_allocvec(&self.changes)?;
        private_file::replace(&self.folder.join(CHANGES_FILE), &bytes)
    }

    /// The changes that lead from the owner whom a device has to the present keys; empty if none do.
    pub fn changes_since(&self, owner: &VerifyingKey) -> &[SignedSuccession] {
        let opened = |signed: &SignedSuccession| open_succession(signed).ok();
        let is_by = |signed: &SignedSuccession| opened(signed).is_some_and(|one| one.by == *owner);
        let first = self.changes.iter().position(is_by).unwrap_or(self.changes.len());
        &self.changes[first..]
    }

    /// Whether `key` is `owner`'s, or was before its keys changed.
    pub fn is_or_was(&self, owner: &VerifyingKey, key: &VerifyingKey) -> bool {
        owner == key || !self.changes_since(key).is_empty()
    }

    /// Refuses a record of a device that the user revoked.
    ///
    /// # Errors
    /// It did.
    pub fn check_device(&self, record: &DeviceRecord) -> anyhow::Result<()> {
        if self.revoked.has_device(&record.enrolment.device_key) {
            bail!(
                "you revoked the device {} (list {}); to take that back: tenure revoke device {} --undo",
                record.enrolment.device,
                self.revoked.number,
                record.enrolment.device
            );
        }
        Ok(())
    }

    /// Refuses a hub that the user revoked.
    ///
    /// # Errors
    /// It did.
    pub fn check_hub(&self, key: &PublicKey) -> anyhow::Result<()> {
        if self.revoked.has_hub(key) {
            bail!(
                "you revoked the hub {key} (list {}); name another one with --hub",
                self.revoked.number
            );
        }
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> SigningKey {
        SigningKey::from_bytes(&[number; 32])
    }

    fn change(home: &Home, by: u8, next: u8, now_ms: u64) {
        let next = (key(next).verifying_key(), PublicKey([next; 32]));
        let mut authority = Authority::of(home).unwrap();
        authority.change_keys(&home.lock().unwrap(), &key(by), next, now_ms).unwrap();
    }

    #[test]
    fn changes_lead_from_each_former_key_to_the_present_one() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        change(&home, 1, 2, 5_000);
        // A clock that was set back makes no number that a device has seen.
        change(&home, 2, 3, 10);
        let authority = Authority::of(&home).unwrap();
        let count = |by: u8| authority.changes_since(&key(by).verifying_key()).len();
        assert_eq!([count(1), count(2), count(3), count(4)], [2, 1, 0, 0]);
        let last = open_succession(&authority.changes[1]).unwrap();
        assert_eq!((last.number, last.next), (5_001, key(3).verifying_key()));
        let owner = key(3).verifying_key();
        assert!(authority.is_or_was(&owner, &key(1).verifying_key()));
        assert!(!authority.is_or_was(&owner, &key(4).verifying_key()));
    }

    #[test]
    fn list_that_a_device_has_is_kept_only_if_it_is_newer_and_by_this_user() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let list = |number: u64| Revocations { number, ..Revocations::default() };
        let owner = key(1).verifying_key();
        let mut authority = Authority::of(&home).unwrap();
        let lock = home.lock().unwrap();
        authority.sign_list(&lock, list(3), &key(1)).unwrap();
        authority.learn_list(&lock, list(2).sign(&key(1)).unwrap(), &owner).unwrap();
        assert_eq!(authority.revoked().number, 3);
        authority.learn_list(&lock, list(7).sign(&key(2)).unwrap(), &owner).unwrap_err();
        authority.learn_list(&lock, list(5).sign(&key(1)).unwrap(), &owner).unwrap();
        assert_eq!(Authority::of(&home).unwrap().revoked().number, 5);
    }
}
