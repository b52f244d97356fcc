//! Journals as files, what a device signs of them, and how a tenant fetches one.
//!
//! A device chains the pages of a machine's journal by SHA-256 over its own key, the machine, the head before and the page,
//! and signs the head after the last. So a page can't be changed, moved, or put into another machine's journal, and a
//! receipt that holds a head commits to all pages before it.
//!
//! A tenant asks for pages with a signed [`JournalQuery`], which names a key. The device seals its answer to that key: who
//! carries it can't read it.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_crypto::{
    Context, Encapsulated, SealToError, SigningKey, StaticSecret, TAG_BYTES, open_sealed, seal_to,
    sha256,
};
use tenure_hal::Entropy;
use tenure_journal::{Page, PageError};
use tenure_wire::{Digest, MachineId, Name, PublicKey, VerifyingKey};

use crate::signed::{Kind, SignedError};

/// The start of a journal's file. Its last byte is the version of all that follows, pages included.
const MAGIC: [u8; 8] = *b"tenurjl\x01";
const HEAD: Kind = Kind {
    magic: *b"tenurjh\x01",
    context: Context::new("journal"),
    bytes_max: 8 + 32 + 12 + 10 + 32 + 64,
};
const QUERY: Kind =
    Kind { magic: *b"tenurjq\x01", context: Context::new("journal query"), bytes_max: 512 };
/// The purpose of the sealing (RFC 9180 `info`).
const INFO: &[u8] = b"tenure 1 journal for its tenant";
/// The purpose of the hashes in a journal's chain.
const PAGE_LABEL: &[u8] = b"tenure 1 page of a journal";

/// The most pages of a journal that is read. A device keeps half of them; each may begin with a machine's state, which takes
/// the reader's time.
const PAGES_MAX: usize = 1024;

/// The head of a journal that has no page.
pub const NO_PAGES: Digest = Digest([0; 32]);

/// The head of a journal of `machine` on `device` whose head was `previous`, after `page`.
pub fn head_after(
    device: &VerifyingKey,
    machine: &MachineId,
    previous: &Digest,
    page: &[u8],
) -> Digest {
    sha256(&[PAGE_LABEL, &device.0, &machine.0, &previous.0, page])
}

/// A receipt's word on the journal of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commitment {
    /// The head of the journal after the page with which the period ended.
    pub head: Digest,
    /// The number of the page after that.
    pub pages: u64,
    /// The digest of the machine's state when the period began, if the device took it.
    pub began: Option<Digest>,
    /// The digest of its state when the period ended.
    pub ended: Option<Digest>,
}

/// The head of a journal, for its device to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalHead {
    /// The machine.
    pub machine: MachineId,
    /// The number of the page after the last one.
    pub pages: u64,
    /// The head after the last page.
    pub head: Digest,
}

impl JournalHead {
    /// The head as bytes, signed by the device that holds `key`.
    ///
    /// # Errors
    /// [`JournalError::Form`] if it can't be encoded.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, JournalError> {
        HEAD.sign(self, key).map_err(|_| JournalError::Form)
    }
}

/// A machine's journal, or the part of it that its device still has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// The device.
    pub device: VerifyingKey,
    /// The machine.
    pub machine: MachineId,
    /// The head before the first page; [`NO_PAGES`] if that is page 0.
    pub previous: Digest,
    /// The pages, one after the other.
    pub pages: Vec<Vec<u8>>,
    /// The head after the last, as [`JournalHead::sign`] made it.
    pub head: Vec<u8>,
}

impl Journal {
    /// The journal in `bytes`, of which each page, their order and the device's signature have been checked.
    ///
    /// # Errors
    /// As [`JournalError`] says.
    pub fn parse(bytes: &[u8]) -> Result<Self, JournalError> {
        let (magic, body) = bytes.split_first_chunk::<8>().ok_or(JournalError::NotAJournal)?;
        if magic[..7] != MAGIC[..7] {
            return Err(JournalError::NotAJournal);
        }
        if *magic != MAGIC {
            return Err(JournalError::FormatVersion);
        }
        let journal = match postcard::take_from_bytes::<Self>(body) {
            Ok((journal, [])) => journal,
            _ => return Err(JournalError::Form),
        };
        journal.check()?;
        Ok(journal)
    }

    /// Whether `bytes` begin as a journal does, of whatever version.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC[..7])
    }

    /// The journal as a file; `None` if it can't be encoded.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        postcard::to_extend(self, MAGIC.to_vec()).ok()
    }

    /// Its pages, read.
    ///
    /// # Errors
    /// [`JournalError::Page`], or [`JournalError::Order`].
    pub fn pages(&self) -> Result<Vec<Page>, JournalError> {
        let mut pages: Vec<Page> = Vec::new();
        for (place, bytes) in self.pages.iter().enumerate() {
            let place = place as u64;
            let page = Page::parse(bytes).map_err(|error| JournalError::Page { place, error })?;
            if let Some(last) = pages.last() {
                let expected = last.number.saturating_add(1);
                if page.number != expected {
                    return Err(JournalError::Order { expected, found: page.number });
                }
            }
            pages.push(page);
        }
        Ok(pages)
    }

    /// The head after each page, in order.
    pub fn heads(&self) -> Vec<Digest> {
        let mut head = self.previous;
        let heads = self.pages.iter().map(|page| {
            head = head_after(&self.device, &self.machine, &head, page);
            head
        });
        heads.collect()
    }

    fn check(&self) -> Result<(), JournalError> {
        if self.pages.len() > PAGES_MAX {
            return Err(JournalError::TooLong);
        }
        let pages = self.pages()?;
        let (signed, signer) =
            HEAD.verify::<JournalHead>(&self.head).map_err(|error| match error {
                SignedError::Version => JournalError::FormatVersion,
                SignedError::Signature => JournalError::Signature,
                _ => JournalError::Form,
            })?;
        if signer != self.device {
            return Err(JournalError::OtherDevice);
        }
        if signed.machine != self.machine {
            return Err(JournalError::OtherMachine);
        }
        if pages.first().is_some_and(|page| page.number == 0) && self.previous != NO_PAGES {
            return Err(JournalError::Chain);
        }
        if let Some(last) = pages.last()
            && last.number.checked_add(1) != Some(signed.pages)
        {
            return Err(JournalError::Cut { pages: signed.pages });
        }
        let head = self.heads().last().copied().unwrap_or(self.previous);
        if head != signed.head {
            return Err(JournalError::Chain);
        }
        Ok(())
    }
}

/// A tenant asks for the journal of one of its machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalQuery {
    /// The only device for which it counts.
    pub device: VerifyingKey,
    /// The machine.
    pub machine: Name,
    /// The key that answers are sealed to.
    pub key: PublicKey,
}

/// A request for one piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRequest {
    /// The query, as [`JournalQuery::sign`] made it: the same for all pieces.
    pub query: Vec<u8>,
    /// Where the piece begins.
    pub from: JournalPlace,
}

/// A place in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalPlace {
    /// The number of the page; of an older one than there is, the oldest is meant.
    pub page: u64,
    /// From which byte of the page on.
    pub offset: u32,
}

impl JournalRequest {
    /// The request as bytes; `None` if it can't be encoded.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        postcard::to_allocvec(self).ok()
    }

    /// The request in `bytes`.
    ///
    /// # Errors
    /// [`JournalError::Form`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, JournalError> {
        postcard::from_bytes(bytes).map_err(|_| JournalError::Form)
    }
}

impl JournalQuery {
    /// The query as bytes, signed by the tenant who holds `key`.
    ///
    /// # Errors
    /// [`JournalError::Form`] if it can't be encoded.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, JournalError> {
        QUERY.sign(self, key).map_err(|_| JournalError::Form)
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    ///
    /// # Errors
    /// They don't begin as a query does.
    pub fn signer(bytes: &[u8]) -> Result<VerifyingKey, JournalError> {
        QUERY.signer(bytes).map_err(|error| match error {
            SignedError::Version => JournalError::FormatVersion,
            _ => JournalError::Form,
        })
    }

    /// The query in `bytes`, and the tenant who signed it.
    ///
    /// # Errors
    /// [`JournalError::Signature`] or [`JournalError::Form`], or another version.
    pub fn verify(bytes: &[u8]) -> Result<(Self, VerifyingKey), JournalError> {
        QUERY.verify(bytes).map_err(|error| match error {
            SignedError::Version => JournalError::FormatVersion,
            SignedError::Signature => JournalError::Signature,
            _ => JournalError::Form,
        })
    }
}

/// A piece of a journal, as a device answers with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalPiece {
    /// The machine.
    pub machine: MachineId,
    /// The number of the page that it is of.
    pub page: u64,
    /// The head before that page.
    pub previous: Digest,
    /// How long that page is, in bytes.
    pub page_bytes: u32,
    /// Its bytes from the offset on that was asked for.
    pub bytes: Vec<u8>,
    /// The head after the last page, signed, with the end of that page; else empty.
    pub head: Vec<u8>,
    /// The number of the page after the last one.
    pub pages: u64,
}

/// A piece that only its tenant opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedPiece {
    ephemeral: PublicKey,
    ciphertext: Vec<u8>,
    tag: [u8; TAG_BYTES],
}

impl SealedPiece {
    /// Seals a piece to the key of a query by `tenant`, who asked for that place.
    ///
    /// # Errors
    /// [`JournalError::Seal`], or [`JournalError::Form`] if it can't be encoded.
    pub fn seal(
        entropy: &mut dyn Entropy,
        (query, tenant): (&JournalQuery, &VerifyingKey),
        from: JournalPlace,
        piece: &JournalPiece,
    ) -> Result<Self, JournalError> {
        let mut ciphertext = postcard::to_allocvec(piece).map_err(|_| JournalError::Form)?;
        let place = bound_to(query, tenant, from);
        let Encapsulated { key, tag } = seal_to(entropy, &query.key, INFO, &place, &mut ciphertext)
            .map_err(JournalError::Seal)?;
        Ok(Self { ephemeral: key, ciphertext, tag })
    }

    /// The piece, by the holder of the key that the query named.
    ///
    /// # Errors
    /// [`JournalError::Sealed`] if it is the answer to another query, or was changed.
    pub fn open(
        &self,
        (query, tenant): (&JournalQuery, &VerifyingKey),
        from: JournalPlace,
        secret: &StaticSecret,
    ) -> Result<JournalPiece, JournalError> {
        let mut bytes = self.ciphertext.clone();
        let encapsulated = Encapsulated { key: self.ephemeral, tag: self.tag };
        open_sealed(secret, &encapsulated, INFO, &bound_to(query, tenant, from), &mut bytes)
            .map_err(|_| JournalError::Sealed)?;
        postcard::from_bytes(&bytes).map_err(|_| JournalError::Form)
    }
}

/// The facts that an answer is bound to: from where, for whom, and what was asked.
fn bound_to(query: &JournalQuery, tenant: &VerifyingKey, from: JournalPlace) -> Vec<u8> {
    let mut place = Vec::new();
    place.extend(query.device.0);
    place.extend(tenant.0);
    place.extend(from.page.to_le_bytes());
    place.extend(from.offset.to_le_bytes());
    place.extend(query.machine.as_str().as_bytes());
    place
}

/// Why bytes are no journal, or no part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalError {
    /// They don't begin as a journal does.
    NotAJournal,
    /// They are in a version of the format that isn't read here.
    FormatVersion,
    /// They are cut, or damaged.
    Form,
    /// They have more pages than a device keeps.
    TooLong,
    /// A page can't be read.
    Page {
        /// Its place in the file, the first is 0.
        place: u64,
        /// Why.
        error: PageError,
    },
    /// A page is missing, or they are in another order.
    Order {
        /// The number of the page that belongs there.
        expected: u64,
        /// The number of the page that is there.
        found: u64,
    },
    /// The last page isn't the last one that the device signed for.
    Cut {
        /// The number of the page after that one.
        pages: u64,
    },
    /// The pages aren't those that the device signed for.
    Chain,
    /// Nobody with that key signed.
    Signature,
    /// Another device signed.
    OtherDevice,
    /// Another machine's journal was signed.
    OtherMachine,
    /// It can't be sealed.
    Seal(SealToError),
    /// It was sealed for another query.
    Sealed,
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAJournal => f.write_str("not a journal"),
            Self::FormatVersion => f.write_str(
                "the journal is in another version of its format; read it with a `tenure` of the device's version",
            ),
            Self::Form => f.write_str("the journal is cut or damaged"),
            Self::TooLong => {
                write!(f, "the journal has more than {PAGES_MAX} pages; no device keeps so many")
            }
            Self::Page { place, error } => write!(f, "page {place} of the journal: {error}"),
            Self::Order { expected, found } => write!(
                f,
                "page {found} of the journal stands where page {expected} belongs: pages are missing or in another order"
            ),
            Self::Cut { pages } => {
                write!(f, "the journal is cut: its device signed for pages up to number {pages}")
            }
            Self::Chain => {
                f.write_str("the journal's pages aren't those that its device signed for: they were changed")
            }
            Self::Signature => f.write_str("the journal's head isn't signed by the device it names"),
            Self::OtherDevice => f.write_str("another device signed the journal's head"),
            Self::OtherMachine => f.write_str("the signed head is of another machine's journal"),
            Self::Seal(error) => write!(f, "the journal can't be sealed: {error}"),
            Self::Sealed => f.write_str("the device's answer doesn't open: it is for another question"),
        }
    }
}

impl core::error::Error for JournalError {}

#[cfg(test)]
mod tests;
