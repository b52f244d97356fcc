//! Files of age under a passphrase (<https://age-encryption.org/v1>), as far as a backup needs them. The crate `age` does the
//! same and more, with forty others behind it (`docs/dependencies.md`).
//!
//! Invariants:
//! - A file has one recipient, a passphrase by scrypt, and one chunk: 64 KiB of text at most.
//! - A file is read in one spelling alone: base64 without padding and without spare bits, numbers without a sign or leading zeros.
//! - No text comes out of a file that was changed anywhere: its head has a code, and its text a tag.

use anyhow::{Context as _, anyhow};
use data_encoding::BASE64_NOPAD;
use scrypt::{Params, scrypt};
use tenure_crypto::{AeadKey, Nonce, TAG_BYTES, equal, hkdf_sha256, hmac_sha256};
use zeroize::Zeroizing;

/// The first line.
const VERSION: &str = "age-encryption.org/v1\n";
/// The name of the recipient that is a passphrase.
const SCRYPT: &str = "scrypt";
/// The mark before the code of the head, which covers it.
const HEAD_END: &str = "---";
/// The beginning of scrypt's salt.
const LABEL: &[u8] = b"age-encryption.org/v1/scrypt";
/// The bytes of a file's key, of the rest of scrypt's salt and of that of the text.
const RANDOM_BYTES: usize = 16;
/// The nonce of a file's key: the key that seals it seals nothing else.
const NONCE_OF_KEY: Nonce = Nonce::from_bytes([0; 12]);
/// The nonce of the first chunk, which is the last one.
const NONCE_OF_TEXT: Nonce = Nonce::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/// The reasons why a file isn't opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is no file of age, version 1.
    NotAge,
    /// It is for the holder of a key.
    NoPassphrase,
    /// It asks for more work, as a power of two.
    Work(u8),
    /// The passphrase is another one, or the head was changed where it depends on that.
    Passphrase,
    /// It isn't whole, or as it was written.
    Changed,
}

/// Encrypts `text` under `passphrase`, each guess of which costs 2^`work` KiB of memory.
///
/// # Errors
/// The system has no random bytes.
pub(super) fn encrypt(text: &[u8], passphrase: &str, work: u8) -> anyhow::Result<Vec<u8>> {
    let mut drawn = Drawn::default();
    for bytes in [&mut *drawn.file_key, &mut drawn.salt, &mut drawn.text_salt] {
        getrandom::fill(bytes).map_err(|error| anyhow!("no random bytes: {error}"))?;
    }
    encrypt_with(&drawn, text, passphrase, work)
}

/// Decrypts the text in `bytes`, if that takes work of 2^`work_max` at most.
///
/// # Errors
/// See [`Refused`].
pub(super) fn decrypt(
    bytes: &[u8],
    passphrase: &str,
    work_max: u8,
) -> Result<Zeroizing<Vec<u8>>, Refused> {
    let file = File::parse(bytes)?;
    let too_much = Refused::Work(file.work);
    if file.work > work_max {
        return Err(too_much);
    }
    let key = key_of_passphrase(passphrase, &file.salt, file.work).ok_or(too_much)?;
    let mut sealed_key = Zeroizing::new(file.sealed_key);
    let opened = key.open(&NONCE_OF_KEY, &[], &mut sealed_key[..]);
    let file_key: &[u8] = opened.map_err(|_| Refused::Passphrase)?;
    if !equal(&code_of(file_key, file.head), &file.code) {
        return Err(Refused::Changed);
    }

    let (text_salt, sealed) = file.rest.split_first_chunk().ok_or(Refused::Changed)?;
    let mut text = Zeroizing::new(sealed.to_vec());
    let opened = key_of_text(file_key, text_salt).open(&NONCE_OF_TEXT, &[], &mut text[..]);
    let length = opened.map_err(|_| Refused::Changed)?.len();
    text.truncate(length);
    Ok(text)
}

/// All of a file that is drawn at random.
#[derive(Default)]
struct Drawn {
    file_key: Zeroizing<[u8; RANDOM_BYTES]>,
    salt: [u8; RANDOM_BYTES],
    text_salt: [u8; RANDOM_BYTES],
}

fn encrypt_with(drawn: &Drawn, text: &[u8], passphrase: &str, work: u8) -> anyhow::Result<Vec<u8>> {
    let key = key_of_passphrase(passphrase, &drawn.salt, work).context("too much work")?;
    let mut sealed_key = drawn.file_key.to_vec();
    let tag = key.seal(&NONCE_OF_KEY, &[], &mut sealed_key);
    sealed_key.extend_from_slice(&tag);
    let [salt, sealed_key] = [&drawn.salt[..], &sealed_key[..]].map(|one| BASE64_NOPAD.encode(one));
    let head = format!("{VERSION}-> {SCRYPT} {salt} {work}\n{sealed_key}\n{HEAD_END}");
    let code = BASE64_NOPAD.encode(&code_of(&drawn.file_key[..], head.as_bytes()));

    let mut file = format!("{head} {code}\n").into_bytes();
    file.extend_from_slice(&drawn.text_salt);
    let start = file.len();
    file.extend_from_slice(text);
    let key = key_of_text(&drawn.file_key[..], &drawn.text_salt);
    let tag = key.seal(&NONCE_OF_TEXT, &[], &mut file[start..]);
    file.extend_from_slice(&tag);
    Ok(file)
}

/// A file in its parts.
struct File<'a> {
    salt: [u8; RANDOM_BYTES],
    work: u8,
    sealed_key: [u8; RANDOM_BYTES + TAG_BYTES],
    /// The part that `code` covers.
    head: &'a [u8],
    code: [u8; 32],
    /// The salt of the text and the text, sealed.
    rest: &'a [u8],
}

impl<'a> File<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, Refused> {
        let Some(mut rest) = bytes.strip_prefix(VERSION.as_bytes()) else {
            // Its beginning alone is there.
            let is_cut = VERSION.as_bytes().starts_with(bytes);
            return Err(if is_cut { Refused::Changed } else { Refused::NotAge });
        };
        let recipient: Vec<&str> = line(&mut rest)?.split(' ').collect();
        let (salt, work) = match recipient[..] {
            ["->", SCRYPT, salt, work] => (decoded(salt)?, work_of(work)?),
            ["->", kind, ..] if kind != SCRYPT => return Err(Refused::NoPassphrase),
            _ => return Err(Refused::Changed),
        };
        let sealed_key = decoded(line(&mut rest)?)?;

        let length = bytes.len() - rest.len() + HEAD_END.len();
        let code = line(&mut rest)?.strip_prefix(HEAD_END).and_then(|code| code.strip_prefix(' '));
        let code = decoded(code.ok_or(Refused::Changed)?)?;
        Ok(Self { salt, work, sealed_key, head: &bytes[..length], code, rest })
    }
}

/// Takes a line off `rest`.
fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a str, Refused> {
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Refused::Changed)?;
    let (line, after) = rest.split_at(end);
    *rest = &after[1..];
    std::str::from_utf8(line).map_err(|_| Refused::Changed)
}

fn decoded<const N: usize>(text: &str) -> Result<[u8; N], Refused> {
    let bytes = BASE64_NOPAD.decode(text.as_bytes()).map_err(|_| Refused::Changed)?;
    bytes.try_into().map_err(|_| Refused::Changed)
}

fn work_of(text: &str) -> Result<u8, Refused> {
    let is_plain = !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| is_plain).ok_or(Refused::Changed)
}

/// The key that seals a file's key; `None` if this computer can't count the memory that it takes.
fn key_of_passphrase(passphrase: &str, salt: &[u8; RANDOM_BYTES], work: u8) -> Option<AeadKey> {
    let params = Params::new(work, 8, 1).ok()?;
    let mut key = Zeroizing::new([0_u8; 32]);
    let salt = [LABEL, &salt[..]].concat();
    scrypt(passphrase.as_bytes(), &salt, &params, &mut key[..]).ok()?;
    Some(AeadKey::from_bytes(&key))
}

/// The code of a head, under its file's key.
fn code_of(file_key: &[u8], head: &[u8]) -> [u8; 32] {
    let mut key = Zeroizing::new([0_u8; 32]);
    hkdf_sha256(&[], file_key, &[b"header"], &mut key[..]);
    hmac_sha256(&key[..], &[head])
}

/// The key that seals a file's text.
fn key_of_text(file_key: &[u8], salt: &[u8; RANDOM_BYTES]) -> AeadKey {
    let mut key = Zeroizing::new([0_u8; 32]);
    hkdf_sha256(salt, file_key, &[b"payload"], &mut key[..]);
    AeadKey::from_bytes(&key)
}

#[cfg(test)]
mod tests;
