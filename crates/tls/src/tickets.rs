//! The content of a server's tickets, sealed, and its memory against replayed early data.

use core::sync::atomic::{AtomicU32, Ordering};

use tenure_crypto::{AEAD_TAG_BYTES, AeadAlgorithm, HashAlgorithm, HashValue, Security};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::Error;
use crate::suite::Suite;

const NONCE_BYTES: usize = 12;
/// Suite, age, time, early data, length of the key.
const HEAD_BYTES: usize = 2 + 4 + 8 + EARLY_SCOPE_BYTES + 1;
const EARLY_SCOPE_BYTES: usize = 8;
const KEY_BYTES_MAX: usize = 64;
/// The longest ticket, in bytes.
pub(crate) const TICKET_BYTES: usize = NONCE_BYTES + HEAD_BYTES + KEY_BYTES_MAX + AEAD_TAG_BYTES;

/// The key that a server seals its tickets with, so that it needs to remember none of them.
///
/// It is the server's own, and replaced when it starts or from time to time, and when the trust in
/// clients changes: a ticket vouches for what was checked when it was made. Tickets under an old one
/// lead to a full handshake.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct TicketKey([u8; 32]);

impl core::fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TicketKey(secret)")
    }
}

/// The contents of a ticket.
pub(crate) struct TicketContent {
    pub(crate) suite: Suite,
    pub(crate) key: HashValue,
    pub(crate) age_add: u32,
    /// When it was made, in milliseconds on the server's clock.
    pub(crate) made_ms: u64,
    /// The connections that early data is for; none if the ticket allows no early data.
    pub(crate) early_scope: EarlyScope,
}

/// A mark of the application protocol that early data is for: it is taken under no other (RFC 8446 §4.2.10).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EarlyScope([u8; EARLY_SCOPE_BYTES]);

impl EarlyScope {
    /// No connection.
    pub(crate) const NONE: Self = Self([0; EARLY_SCOPE_BYTES]);

    /// Connections with `protocol`, or those that agreed on none.
    pub(crate) fn of(protocol: Option<&[u8]>) -> Self {
        let digest = HashAlgorithm::Sha256.digest(&[protocol.unwrap_or_default()]);
        digest.first_chunk().map_or(Self::NONE, |mark| Self(*mark))
    }
}

impl TicketKey {
    /// For how long a ticket is good, in seconds.
    pub const LIFETIME_S: u32 = 24 * 3600;

    /// The key in `bytes`, which the caller wipes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(*bytes)
    }

    /// A new key.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn generate(security: &mut impl Security) -> Result<Self, Error> {
        let mut key = Self([0; 32]);
        security.random(&mut key.0)?;
        Ok(key)
    }

    /// Writes the ticket of `content` to the front of `into`, and returns its length.
    pub(crate) fn seal(
        &self,
        security: &mut impl Security,
        content: &TicketContent,
        into: &mut [u8; TICKET_BYTES],
    ) -> Result<usize, Error> {
        let (nonce, rest) =
            into.split_first_chunk_mut::<NONCE_BYTES>().ok_or(Error::BufferTooSmall)?;
        // Nonces of 96 random bits meet after 2^32 tickets with a chance of 2^-33.
        security.random(nonce)?;
        let end = HEAD_BYTES + content.key.len();
        rest[..2].copy_from_slice(&content.suite.number().to_be_bytes());
        rest[2..6].copy_from_slice(&content.age_add.to_be_bytes());
        rest[6..14].copy_from_slice(&content.made_ms.to_be_bytes());
        rest[14..HEAD_BYTES - 1].copy_from_slice(&content.early_scope.0);
        rest[HEAD_BYTES - 1] = content.key.len() as u8;
        rest[HEAD_BYTES..end].copy_from_slice(&content.key);
        let algorithm = AeadAlgorithm::ChaCha20Poly1305;
        let tag = security.seal(algorithm, &self.0, nonce, &[], &mut rest[..end])?;
        rest[end..end + AEAD_TAG_BYTES].copy_from_slice(&tag);
        Ok(NONCE_BYTES + end + AEAD_TAG_BYTES)
    }

    /// The content of `ticket`, if it is under this key.
    pub(crate) fn open(
        &self,
        security: &mut impl Security,
        ticket: &[u8],
    ) -> Option<TicketContent> {
        let mut copy = [0; TICKET_BYTES];
        let copy = copy.get_mut(..ticket.len())?;
        copy.copy_from_slice(ticket);
        let (nonce, rest) = copy.split_first_chunk_mut::<NONCE_BYTES>()?;
        let (content, tag) = rest.split_last_chunk_mut::<AEAD_TAG_BYTES>()?;
        let algorithm = AeadAlgorithm::ChaCha20Poly1305;
        security.open(algorithm, &self.0, nonce, &[], content, tag).ok()?;
        let (head, key) = content.split_first_chunk::<HEAD_BYTES>()?;
        let opened = TicketContent {
            suite: Suite::from_number(u16::from_be_bytes([head[0], head[1]]))?,
            age_add: u32::from_be_bytes(*head[2..].first_chunk()?),
            made_ms: u64::from_be_bytes(*head[6..].first_chunk()?),
            early_scope: EarlyScope(*head[14..].first_chunk()?),
            key: (key.len() == usize::from(head[HEAD_BYTES - 1]) && key.len() <= KEY_BYTES_MAX)
                .then(|| HashValue::from_slice(key))?,
        };
        content.zeroize();
        Some(opened)
    }
}

/// How many tickets' early data a guard remembers at once.
const REMEMBERED: usize = 64;

/// A server's memory of the tickets whose early data it took: each is taken once (RFC 8446 §8.1).
///
/// It is full after 64 and then refuses all until [`Self::forget`] is called, which is safe only when
/// older tickets are refused: when the [`TicketKey`] is replaced.
#[derive(Debug)]
pub struct EarlyDataGuard {
    /// Prefixes of the tickets' keys; zero is free.
    seen: [AtomicU32; REMEMBERED],
}

impl Default for EarlyDataGuard {
    fn default() -> Self {
        Self { seen: [const { AtomicU32::new(0) }; REMEMBERED] }
    }
}

impl EarlyDataGuard {
    /// A guard that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all, because the ticket key was replaced.
    pub fn forget(&self) {
        self.seen.iter().for_each(|it| it.store(0, Ordering::Relaxed));
    }

    /// Whether the ticket with `key` comes for the first time. Two with one prefix, a chance of
    /// 2^-26, cost the second one a round trip.
    pub(crate) fn admit(&self, key: &[u8]) -> bool {
        let Some(prefix) = key.first_chunk() else { return false };
        let mark = u32::from_be_bytes(*prefix) | 1;
        for place in &self.seen {
            match place.load(Ordering::Relaxed) {
                0 => {
                    place.store(mark, Ordering::Relaxed);
                    return true;
                }
                seen if seen == mark => return false,
                _ => {}
            }
        }
        false
    }
}
