//! The key schedule (RFC 8446 §7) and the transcript that it is bound to (§4.4.1).

use tenure_crypto::{AgreedSecret, Hash, HashAlgorithm, HashValue};

use crate::record::Protection;
use crate::suite::Suite;

/// `HKDF-Expand-Label`: fills `output`.
pub(crate) fn expand_label(
    hash: HashAlgorithm,
    secret: &[u8],
    label: &[u8],
    context: &[u8],
    output: &mut [u8],
) {
    const PREFIX: &[u8] = b"tls13 ";
    let length = (output.len() as u16).to_be_bytes();
    let label_length = [(PREFIX.len() + label.len()) as u8];
    let context_length = [context.len() as u8];
    let info: [&[u8]; 6] = [&length, &label_length, PREFIX, label, &context_length, context];
    hash.hkdf_expand(secret, &info, output);
}

/// `HKDF-Expand-Label` of as many bytes as a digest has.
pub(crate) fn expand_secret(
    hash: HashAlgorithm,
    secret: &[u8],
    label: &[u8],
    context: &[u8],
) -> HashValue {
    let mut output = HashValue::zeros(hash);
    expand_label(hash, secret, label, context, &mut output);
    output
}

/// A stage of the schedule: the early, the handshake or the master secret.
#[derive(Clone)]
pub(crate) struct Schedule {
    hash: HashAlgorithm,
    secret: HashValue,
}

impl Schedule {
    /// The early secret of `key`, a pre-shared key, or of none.
    pub(crate) fn early(hash: HashAlgorithm, key: Option<&[u8]>) -> Self {
        let zeros = HashValue::zeros(hash);
        let secret = hash.hkdf_extract(&zeros, key.unwrap_or(&zeros));
        Self { hash, secret }
    }

    /// The handshake secret.
    pub(crate) fn handshake(self, agreed: Option<&AgreedSecret>) -> Self {
        self.next(agreed.map(AgreedSecret::as_bytes))
    }

    /// The master secret.
    pub(crate) fn master(self) -> Self {
        self.next(None)
    }

    fn next(self, input: Option<&[u8]>) -> Self {
        let salt = self.derive_from_nothing(b"derived");
        let zeros = HashValue::zeros(self.hash);
        let secret = self.hash.hkdf_extract(&salt, input.unwrap_or(&zeros));
        Self { hash: self.hash, secret }
    }

    /// `Derive-Secret` with the transcript up to here, hashed.
    pub(crate) fn derive(&self, label: &[u8], transcript: &[u8]) -> HashValue {
        expand_secret(self.hash, &self.secret, label, transcript)
    }

    /// `Derive-Secret` with no messages.
    pub(crate) fn derive_from_nothing(&self, label: &[u8]) -> HashValue {
        self.derive(label, &self.hash.digest(&[]))
    }
}

/// The keys of one direction that follow from `secret`.
pub(crate) fn traffic_keys(suite: Suite, secret: &[u8]) -> Protection {
    let (mut key, mut iv) = ([0; 32], [0; 12]);
    let key = &mut key[..suite.aead().key_bytes()];
    expand_label(suite.hash(), secret, b"key", &[], key);
    expand_label(suite.hash(), secret, b"iv", &[], &mut iv);
    let protection = Protection::new(suite.aead(), key, &iv);
    zeroize::Zeroize::zeroize(key);
    protection
}

/// The `verify_data` of a `Finished` message or a binder, from the secret of whoever sends it.
pub(crate) fn finished(hash: HashAlgorithm, secret: &[u8], transcript: &[u8]) -> HashValue {
    let key = expand_secret(hash, secret, b"finished", &[]);
    hash.hmac(&key, &[transcript])
}

/// The hash of all handshake messages so far, under each hash that may still be chosen.
#[allow(clippy::large_enum_variant, reason = "there is one, and no heap to put it on")]
#[derive(Clone)]
pub(crate) enum Transcript {
    /// The suite isn't chosen.
    Open {
        sha256: Hash,
        #[cfg(feature = "sha512")]
        sha384: Hash,
    },
    Chosen(Hash),
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self::Open {
            sha256: Hash::new(HashAlgorithm::Sha256),
            #[cfg(feature = "sha512")]
            sha384: Hash::new(HashAlgorithm::Sha384),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Open { .. } => self.each(|hash| hash.update(bytes)),
            Self::Chosen(hash) => hash.update(bytes),
        }
    }

    fn each(&mut self, mut change: impl FnMut(&mut Hash)) {
        match self {
            Self::Open {
                sha256,
                #[cfg(feature = "sha512")]
                sha384,
            } => {
                change(sha256);
                #[cfg(feature = "sha512")]
                change(sha384);
            }
            Self::Chosen(hash) => change(hash),
        }
    }

    /// Goes on with `algorithm` alone.
    pub(crate) fn choose(&mut self, algorithm: HashAlgorithm) {
        let mut chosen = None;
        self.each(|hash| {
            if hash.algorithm() == algorithm {
                chosen = Some(hash.clone());
            }
        });
        if let Some(hash) = chosen {
            *self = Self::Chosen(hash);
        }
    }

    /// The digest so far under `algorithm`, the chosen one or one that may still be.
    pub(crate) fn digest(&self, algorithm: HashAlgorithm) -> HashValue {
        let mut copy = self.clone();
        let mut digest = HashValue::EMPTY;
        copy.each(|hash| {
            if hash.algorithm() == algorithm {
                digest = hash.clone().finish();
            }
        });
        digest
    }

    /// Replaces the first `ClientHello` by its hash, as a `HelloRetryRequest` wants (§4.4.1).
    pub(crate) fn restart(&mut self) {
        self.each(|hash| {
            let algorithm = hash.algorithm();
            let digest = core::mem::replace(hash, Hash::new(algorithm)).finish();
            hash.update(&[254, 0, 0, digest.len() as u8]);
            hash.update(&digest);
        });
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
