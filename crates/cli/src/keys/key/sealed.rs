//! A backup as a file: both keys under a passphrase, encrypted as age does it, so that the command `age` opens it as well.

use anyhow::{Context as _, anyhow};
use zeroize::Zeroizing;

use super::age::{self, Refused};
use super::pair::Pair;

/// The longest file of a backup, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 16 * 1024;
/// How much each guess of a passphrase costs: 128 MiB of memory, and half a second of a computer of today, as a power of two.
const WORK: u8 = 17;
/// The most that opening a file may cost: eight times that.
const WORK_MAX: u8 = 20;

/// Encrypts `pair` under `passphrase`.
pub(super) fn seal(pair: &Pair, passphrase: &str) -> anyhow::Result<Vec<u8>> {
    age::encrypt(pair.to_text().as_bytes(), passphrase, WORK).context("the keys can't be encrypted")
}

/// Decrypts the keys in a file that is `bytes`.
pub(super) fn open(bytes: &[u8], passphrase: &str) -> anyhow::Result<Pair> {
    let text: Zeroizing<Vec<u8>> = age::decrypt(bytes, passphrase, WORK_MAX).map_err(told)?;
    let text = std::str::from_utf8(&text).ok();
    text.and_then(Pair::from_text)
        .context("it was opened, and holds something else than the keys of `tenure key backup`")
}

/// Why a file can't be opened, and what to do.
fn told(refused: Refused) -> anyhow::Error {
    match refused {
        Refused::NotAge => anyhow!("it is no backup, which would be a file of age, version 1"),
        Refused::NoPassphrase => {
            anyhow!("it is encrypted for a key of age, and not under a passphrase")
        }
        Refused::Work(work) => anyhow!(
            "it asks for more work than a backup of `tenure key backup` does (2^{work}, and not up to 2^{WORK_MAX})"
        ),
        Refused::Passphrase => anyhow!("the passphrase is not the one of this backup"),
        Refused::Changed => anyhow!("it is cut short or changed; take another copy of it"),
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
        let opened = open(&bytes, PASSPHRASE).unwrap();
        assert_eq!(*opened.owner.to_bytes(), [1; 32]);
        assert_eq!(*opened.tenant.to_bytes(), [2; 32]);
        let refused =
            |bytes: &[u8], passphrase: &str| open(bytes, passphrase).err().unwrap().to_string();
        let error = refused(&bytes, "another passphrase");
        assert_eq!(error, "the passphrase is not the one of this backup");
        assert!(refused(&bytes[..bytes.len() - 1], PASSPHRASE).contains("cut short"));
        assert!(refused(&bytes[..30], PASSPHRASE).contains("cut short"));
        assert!(refused(b"", PASSPHRASE).contains("cut short"));
        assert!(refused(b"keys of tenure, version 1\n", PASSPHRASE).contains("no backup"));
    }

    #[test]
    fn file_that_holds_something_else_or_asks_for_too_much_work_is_refused() {
        let refused = |bytes: &[u8]| open(bytes, PASSPHRASE).err().unwrap().to_string();
        for text in [&b"a letter"[..], b"\xff", b""] {
            let file = age::encrypt(text, PASSPHRASE, 2).unwrap();
            assert!(refused(&file).contains("holds something else"));
        }
        let file = age::encrypt(b"a letter", PASSPHRASE, 9).unwrap();
        let at = String::from_utf8_lossy(&file).find(" 9\n").unwrap();
        let greedy = [&file[..at], b" 21\n", &file[at + 3..]].concat();
        assert!(refused(&greedy).contains("more work"), "{}", refused(&greedy));
    }
}
