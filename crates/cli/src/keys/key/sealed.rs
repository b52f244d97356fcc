//! A backup as a file: both keys under a passphrase, encrypted as age does it (<https://age-encryption.org/v1>), so that the
//! command `age` opens it as well.

use std::io::Read as _;
use std::iter;

use age::secrecy::SecretString;
use age::{DecryptError, Decryptor, scrypt};
use anyhow::{Context as _, anyhow, ensure};
use zeroize::Zeroizing;

use super::pair::{Pair, TEXT_BYTES_MAX};

/// The longest file of a backup, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 16 * 1024;
/// How much each guess of a passphrase costs: 128 MiB of memory, and half a second of a computer of today, as a power of two.
const WORK: u8 = 17;
/// The most that opening a file may cost: eight times that.
const WORK_MAX: u8 = 20;

/// Encrypts `pair` under `passphrase`.
pub(super) fn seal(pair: &Pair, passphrase: &str) -> anyhow::Result<Vec<u8>> {
    let mut recipient = scrypt::Recipient::new(SecretString::from(passphrase));
    recipient.set_work_factor(WORK);
    age::encrypt(&recipient, pair.to_text().as_bytes()).context("the keys can't be encrypted")
}

/// Decrypts the keys in a file that is `bytes`.
pub(super) fn open(bytes: &[u8], passphrase: &str) -> anyhow::Result<Pair> {
    let mut identity = scrypt::Identity::new(SecretString::from(passphrase));
    identity.set_max_work_factor(WORK_MAX);
    let decryptor = Decryptor::new_buffered(bytes).map_err(told)?;
    ensure!(decryptor.is_scrypt(), "it is encrypted for a key of age, and not under a passphrase");
    let reader = decryptor.decrypt(iter::once(&identity as &dyn age::Identity)).map_err(told)?;
    // As long as it gets, or a shorter one would be left behind unwiped.
    let mut text = Zeroizing::new(Vec::with_capacity(2 * TEXT_BYTES_MAX));
    reader
        .take(TEXT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut text)
        .map_err(|error| told(DecryptError::Io(error)))?;
    let text = std::str::from_utf8(&text).ok();
    text.and_then(Pair::from_text)
        .context("it was opened, and holds something else than the keys of `tenure key backup`")
}

/// Why a file can't be opened, and what to do.
fn told(error: DecryptError) -> anyhow::Error {
    match error {
        DecryptError::DecryptionFailed
        | DecryptError::KeyDecryptionFailed
        | DecryptError::NoMatchingKeys => anyhow!("the passphrase is not the one of this backup"),
        DecryptError::ExcessiveWork { required, .. } => anyhow!(
            "it asks for more work than a backup of `tenure key backup` does (2^{required}, and not up to 2^{WORK_MAX})"
        ),
        DecryptError::UnknownFormat => anyhow!("it is no file of age, version 1"),
        _ => anyhow!("it is cut short or changed, or no backup; take another copy of it"),
    }
}

#[cfg(test)]
mod tests {
    use tenure_crypto::SigningKey;

    use super::*;

    const PASSPHRASE: &str = "correct horse battery staple";

    #[test]
    fn file_opens_with_its_passphrase_alone_and_only_whole() {
        let [owner, tenant] = [1, 2].map(|byte| SigningKey::from_bytes(&[byte; 32]));
        let pair = Pair { owner, tenant };
        let bytes = seal(&pair, PASSPHRASE).unwrap();
        assert!(bytes.starts_with(b"age-encryption.org/v1\n-> scrypt "));
        assert!(bytes.len() as u64 <= FILE_BYTES_MAX);
        assert!(open(&bytes, PASSPHRASE).unwrap().is(&pair));
        let refused = |bytes: &[u8], passphrase: &str| match open(bytes, passphrase) {
            Ok(_) => panic!("it opens"),
            Err(error) => error.to_string(),
        };
        let error = refused(&bytes, "another passphrase");
        assert!(error.contains("the passphrase is not the one"), "{error}");
        // In its header, in its payload's nonce, in the payload, and of nothing.
        for length in [0, 30, bytes.len() - 200, bytes.len() - 1] {
            let error = refused(&bytes[..length], PASSPHRASE);
            assert!(error.contains("cut short"), "{length}: {error}");
        }
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(refused(&changed, PASSPHRASE).contains("changed"));
        assert!(refused(b"-----BEGIN PGP MESSAGE-----\n\n", PASSPHRASE).contains("no backup"));
    }

    #[test]
    fn file_that_holds_something_else_or_asks_for_too_much_work_is_refused() {
        let sealed = |work: u8, text: &[u8]| {
            let mut recipient = scrypt::Recipient::new(SecretString::from(PASSPHRASE));
            recipient.set_work_factor(work);
            age::encrypt(&recipient, text).unwrap()
        };
        let refused = |bytes: &[u8]| open(bytes, PASSPHRASE).err().unwrap().to_string();
        assert!(refused(&sealed(2, b"a letter")).contains("holds something else"));
        let file = sealed(9, b"a letter");
        let at = String::from_utf8_lossy(&file).find(" 9\n").unwrap();
        let greedy = [&file[..at], b" 21\n", &file[at + 3..]].concat();
        assert!(refused(&greedy).contains("more work"), "{}", refused(&greedy));
    }
}
