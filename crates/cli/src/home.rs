//! The user's folder of keys: `$TENURE_HOME`, or `tenure` below the configuration folder (XDG).
//!
//! Invariants:
//! - A key file is created complete, readable by its user alone, and never overwritten.
//! - A file that commands change is changed under the folder's lock, beginning with what is on the disk then, and replaced
//!   or added to as a whole ([`crate::home::private_file`]). Who changes one takes a [`HomeLock`] or makes one.

pub mod authority;
pub mod backup;
pub mod known;
pub mod numbers;
pub mod private_file;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::DumpableBehavior;
use tenure_crypto::SigningKey;
use tenure_node::Owner;
use tenure_wire::{PublicKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::whole_file;

/// The folder in which a user's keys lie.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
}

/// The right to change the files of a folder of keys. Other commands of the user's wait until it is dropped.
#[derive(Debug)]
pub struct HomeLock {
    _file: fs::File,
}

/// The file that a command locks which changes something in the folder.
const LOCK: &str = "lock";

/// The file of the owner's key.
const OWNER: &str = "owner.key";
/// The file of the tenant's key.
const TENANT: &str = "tenant.key";

/// Why a key could not be had.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The environment names no folder.
    #[error("no place for keys is known: set TENURE_HOME to a folder, or HOME")]
    NoFolder,
    /// The system had no random bytes.
    #[error("the system gave no random bytes for a new key: {0}")]
    Random(getrandom::Error),
    /// The file system refused.
    #[error("can't {action} {path}: {source}")]
    File {
        /// The attempt.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{0} is not a key file (64 hexadecimal digits); move it away to have a new key made")]
    NotAKey(PathBuf),
    /// Others could read the secret.
    #[error("{0} can be read by other users; make it yours alone with: chmod 600 {0}")]
    Exposed(PathBuf),
    /// Another key is there than the one to be put there.
    #[error(
        "{path} holds another key than the backup, {present}, and stays as it is; move it away, or name another \
         folder by TENURE_HOME"
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// The public half of what it holds.
        present: VerifyingKey,
    },
}

impl Home {
    /// The folder that the environment names; it need not exist.
    ///
    /// # Errors
    /// Neither `TENURE_HOME` nor `XDG_CONFIG_HOME` nor `HOME` is set.
    pub fn from_environment() -> Result<Self, HomeError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = variable("TENURE_HOME")
            .map(PathBuf::from)
            .or_else(|| variable("XDG_CONFIG_HOME").map(|path| Path::new(&path).join("tenure")))
            .or_else(|| variable("HOME").map(|path| Path::new(&path).join(".config/tenure")))
            .ok_or(HomeError::NoFolder)?;
        Ok(Self { folder })
    }

    /// The folder `folder`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits until no other command changes what the folder keeps. One that holds the lock already would wait for
    /// itself.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn lock(&self) -> Result<HomeLock, HomeError> {
        let path = self.folder.join(LOCK);
        let failed = |source| HomeError::File { action: "lock", path: path.clone(), source };
        create_private_folder(&self.folder).map_err(failed)?;
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(HomeLock { _file: file })
    }

    /// The key with which this user signs packages, made at its first use.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn tenant_key(&self) -> Result<SigningKey, HomeError> {
        self.key(TENANT)
    }

    /// The key with which this user places machines on devices, made at its first use.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn owner_key(&self) -> Result<SigningKey, HomeError> {
        self.key(OWNER)
    }

    /// The key with which this user signs in where an owner invited it, made at its first use.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn person_key(&self) -> Result<SigningKey, HomeError> {
        self.key("person.key")
    }

    /// The key with which visitors of pages call machines, made at its first use.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn pages_key(&self) -> Result<SigningKey, HomeError> {
        self.key("pages.key")
    }

    /// Whether this user has an owner's key already.
    pub fn has_owner_key(&self) -> bool {
        self.folder.join(OWNER).exists()
    }

    /// The key that is to follow the owner's key, made at its first use: so a change that was broken off goes
    /// on with the same one.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn next_owner_key(&self) -> Result<SigningKey, HomeError> {
        self.key("next-owner.key")
    }

    /// Puts the next owner's key in the place of the owner's; returns where the former one is from then on.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn replace_owner_key(&self, _: &HomeLock) -> Result<PathBuf, HomeError> {
        let (next, own) = (self.folder.join("next-owner.key"), self.folder.join(OWNER));
        let former = (1..)
            .map(|number| self.folder.join(format!("former-owner-{number}.key")))
            .find(|path| !path.exists())
            .unwrap_or_else(|| self.folder.join("former-owner.key"));
        let failed = |path: &PathBuf| {
            let path = path.clone();
            move |source| HomeError::File { action: "replace", path, source }
        };
        fs::hard_link(&own, &former).map_err(failed(&former))?;
        fs::rename(&next, &own).map_err(failed(&own))?;
        Ok(former)
    }

    /// The key of this user's mesh, made at its first use.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn network_key(&self) -> Result<zeroize::Zeroizing<[u8; 32]>, HomeError> {
        Ok(self.key("network.key")?.to_bytes())
    }

    /// Whether this user has a mesh.
    pub fn has_network_key(&self) -> bool {
        self.folder.join("network.key").exists()
    }

    /// The age of the key of this user's mesh, by the clock of this computer.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn network_key_age(&self) -> Result<Duration, HomeError> {
        let path = self.folder.join("network.key");
        let made = fs::metadata(&path).and_then(|file| file.modified());
        let made = made.map_err(|source| HomeError::File { action: "look at", path, source })?;
        // A file of the future is new.
        Ok(SystemTime::now().duration_since(made).unwrap_or_default())
    }

    /// Makes another key for this user's mesh; the former one is kept nowhere.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn renew_network_key(&self) -> Result<(), HomeError> {
        let _lock = self.lock()?;
        let (path, next) = (self.folder.join("network.key"), self.folder.join("next-network.key"));
        // One that was made and not put in place by a command that was broken off does as well.
        self.key("next-network.key")?;
        fs::rename(&next, &path).map_err(|source| HomeError::File {
            action: "replace",
            path: path.clone(),
            source,
        })
    }

    /// Refuses keys of a backup where another one is in the place of either.
    ///
    /// # Errors
    /// [`HomeError::Other`], or what is there can't be read.
    pub fn check_vacant(&self, owner: &SigningKey, tenant: &SigningKey) -> Result<(), HomeError> {
        self.vacant([(OWNER, owner), (TENANT, tenant)]).map(drop)
    }

    /// Puts an owner's and a tenant's key in their places; returns whether any of both wasn't there yet. Both are there
    /// afterwards, or what was there before.
    ///
    /// # Errors
    /// As [`Self::check_vacant`], or the file system refuses.
    pub fn put_keys(
        &self,
        _: &HomeLock,
        owner: &SigningKey,
        tenant: &SigningKey,
    ) -> Result<bool, HomeError> {
        let missing = self.vacant([(OWNER, owner), (TENANT, tenant)])?;
        let is_any = !missing.is_empty();
        let mut put: Vec<PathBuf> = Vec::new();
        for (path, key) in missing {
            let done = match self.put(&path, key) {
                Ok(true) => Ok(()),
                // A command that takes no lock has made a key meanwhile.
                Ok(false) => self.check_vacant(owner, tenant),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                for path in put {
                    let _ = fs::remove_file(path);
                }
                return Err(error);
            }
            put.push(path);
        }
        Ok(is_any)
    }

    /// Those of `keys` whose files aren't there.
    fn vacant<'a>(
        &self,
        keys: [(&str, &'a SigningKey); 2],
    ) -> Result<Vec<(PathBuf, &'a SigningKey)>, HomeError> {
        let mut missing = Vec::new();
        for (name, key) in keys {
            let path = self.folder.join(name);
            match present_key(&path)?.map(|present| present.verifying_key()) {
                None => missing.push((path, key)),
                Some(present) if present == key.verifying_key() => {}
                Some(present) => return Err(HomeError::Other { path, present }),
            }
        }
        Ok(missing)
    }

    fn key(&self, name: &str) -> Result<SigningKey, HomeError> {
        let path = self.folder.join(name);
        match present_key(&path)? {
            Some(key) => Ok(key),
            None => self.create(&path),
        }
    }

    /// Makes a key. Two commands that start at once agree on one: whoever comes second reads what is there.
    fn create(&self, path: &Path) -> Result<SigningKey, HomeError> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret).map_err(HomeError::Random)?;
        let key = SigningKey::from_bytes(&secret);
        if self.put(path, &key)? {
            return Ok(key);
        }
        let text = read_key(path);
        let path = path.to_path_buf();
        match text {
            Ok(text) => parse_key(text.trim()).ok_or(HomeError::NotAKey(path)),
            Err(source) => Err(HomeError::File { action: "read", path, source }),
        }
    }

    /// Puts a key in a file of its own, which appears complete under its name; `false` if one is there already.
    fn put(&self, path: &Path, key: &SigningKey) -> Result<bool, HomeError> {
        let failed = |action, path: &Path| {
            let path = path.to_path_buf();
            move |source| HomeError::File { action, path, source }
        };
        create_private_folder(&self.folder).map_err(failed("create", &self.folder))?;
        let draft = path.with_extension(format!("key.{}", std::process::id()));
        if let Err(source) = write_private(&draft, &key_text(key)) {
            let _ = fs::remove_file(&draft);
            return Err(failed("write", path)(source));
        }
        let linked = fs::hard_link(&draft, path);
        fs::remove_file(&draft).map_err(failed("remove", &draft))?;
        match linked {
            Ok(()) => Ok(true),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(failed("create", path)(source)),
        }
    }
}

/// The key in a file, if it is there.
fn present_key(path: &Path) -> Result<Option<SigningKey>, HomeError> {
    let not_a_key = || HomeError::NotAKey(path.to_path_buf());
    match read_key(path) {
        Ok(text) => {
            check_private(path)?;
            parse_key(text.trim()).map(Some).ok_or_else(not_a_key)
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) if source.kind() == io::ErrorKind::InvalidData => Err(not_a_key()),
        Err(source) => Err(HomeError::File { action: "read", path: path.to_path_buf(), source }),
    }
}

/// Lets no other process of this user's look into the memory of this one, and no core of it be written: keys are in there.
/// A system that refuses that changes nothing else.
pub(crate) fn keep_memory_private() {
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// A key as it stands in its file, with the line's end.
pub(crate) fn key_text(key: &SigningKey) -> Zeroizing<String> {
    // As long as it gets, or a shorter one would be left behind unwiped.
    let mut text = Zeroizing::new(String::with_capacity(KEY_DIGITS + 1));
    for byte in key.to_bytes().iter() {
        for digit in [byte >> 4, byte & 0xF] {
            text.extend(char::from_digit(digit.into(), 16));
        }
    }
    text.push('\n');
    text
}

/// The digits of a key in its file.
const KEY_DIGITS: usize = 64;
/// The most bytes of a key's file.
const KEY_FILE_BYTES_MAX: u64 = 4096;

/// The text of a key's file, which is wiped when it was read.
fn read_key(path: &Path) -> io::Result<Zeroizing<String>> {
    let bytes = Zeroizing::new(whole_file::read(path, KEY_FILE_BYTES_MAX)?);
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no text");
    std::str::from_utf8(&bytes).map(|text| Zeroizing::new(text.to_owned())).map_err(no_text)
}

/// The key that these digits are.
pub(crate) fn parse_key(text: &str) -> Option<SigningKey> {
    let digits = text.as_bytes();
    if digits.len() != KEY_DIGITS {
        return None;
    }
    let mut secret = Zeroizing::new([0; 32]);
    for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
    }
    Some(SigningKey::from_bytes(&secret))
}

#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), HomeError> {
    use std::os::unix::fs::PermissionsExt as _;
    match fs::metadata(path) {
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            Err(HomeError::Exposed(path.to_path_buf()))
        }
        Ok(_) => Ok(()),
        Err(source) => Err(HomeError::File { action: "read", path: path.to_path_buf(), source }),
    }
}

#[cfg(not(unix))]
fn check_private(_path: &Path) -> Result<(), HomeError> {
    Ok(())
}

/// Makes a folder, and those that it lies in, for this user alone; one that is there stays as it is.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// An owner's keys, as `tenure key --own` prints them.
///
/// # Errors
/// The text is no two keys with a slash between them.
pub fn parse_owner(text: &str) -> Result<Owner, String> {
    let (signing, machine) =
        text.split_once('/').ok_or("write both keys with a slash between them")?;
    let verifying_key: VerifyingKey =
        signing.parse().map_err(|error| format!("the signing key: {error}"))?;
    let machine: PublicKey =
        machine.parse().map_err(|error| format!("the machine key: {error}"))?;
    Ok(Owner { verifying_key, machine })
}

#[cfg(test)]
mod tests;
