//! The common part of both ends' hello messages: extensions, limits, marks (RFC 8446 §4.1, §4.2).

use crate::error::{Error, Misbehaviour};
use crate::record::PLAINTEXT_BYTES_MAX;
use crate::wire::{Full, Reader, Writer};

/// The `random` that makes a `ServerHello` a `HelloRetryRequest` (§4.1.3).
pub(crate) const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Whether a `random` of a server says that somebody talked it into an older version (§4.1.3).
pub(crate) fn is_downgrade(random: &[u8]) -> bool {
    matches!(random.strip_prefix(&random[..24]), Some(b"DOWNGRD\x01" | b"DOWNGRD\x00"))
}

/// The version of SSL 3.0, which no hello names (§D.5).
pub(crate) const SSL: u16 = 0x0300;

/// Extensions' numbers.
pub(crate) mod extension {
    pub(crate) const SERVER_NAME: u16 = 0;
    pub(crate) const MAX_FRAGMENT_LENGTH: u16 = 1;
    pub(crate) const SUPPORTED_GROUPS: u16 = 10;
    pub(crate) const SIGNATURE_ALGORITHMS: u16 = 13;
    pub(crate) const APPLICATION_PROTOCOLS: u16 = 16;
    pub(crate) const SERVER_CERTIFICATE_TYPE: u16 = 20;
    pub(crate) const RECORD_SIZE_LIMIT: u16 = 28;
    pub(crate) const PRE_SHARED_KEY: u16 = 41;
    pub(crate) const EARLY_DATA: u16 = 42;
    pub(crate) const SUPPORTED_VERSIONS: u16 = 43;
    pub(crate) const COOKIE: u16 = 44;
    pub(crate) const PSK_KEY_EXCHANGE_MODES: u16 = 45;
    pub(crate) const KEY_SHARE: u16 = 51;

    /// All that are known here.
    pub(super) const ALL: u64 = set(&[
        SERVER_NAME,
        MAX_FRAGMENT_LENGTH,
        SUPPORTED_GROUPS,
        SIGNATURE_ALGORITHMS,
        APPLICATION_PROTOCOLS,
        SERVER_CERTIFICATE_TYPE,
        RECORD_SIZE_LIMIT,
        PRE_SHARED_KEY,
        EARLY_DATA,
        SUPPORTED_VERSIONS,
        COOKIE,
        PSK_KEY_EXCHANGE_MODES,
        KEY_SHARE,
    ]);

    /// The set of `numbers`, a bit for each.
    pub(crate) const fn set(numbers: &[u16]) -> u64 {
        let (mut set, mut index) = (0, 0);
        while index < numbers.len() {
            set |= 1 << numbers[index];
            index += 1;
        }
        set
    }
}

/// Writes the extension with `number`, whose content `body` writes.
pub(crate) fn extension<E: From<Full>>(
    writer: &mut Writer<'_>,
    number: u16,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), E>,
) -> Result<(), E> {
    writer.u16(number)?;
    writer.vector(2, body)
}

/// The extensions of a message of the peer, each taken at most once.
#[derive(Clone, Copy)]
pub(crate) struct Extensions<'a> {
    all: Reader<'a>,
    count: u8,
    taken: u8,
}

/// The extensions that a message is looked at for.
const EXTENSIONS_MAX: u8 = 128;

impl<'a> Extensions<'a> {
    /// Reads a list, which has no extension twice (§4.2).
    pub(crate) fn parse(body: &mut Reader<'a>) -> Result<Self, Error> {
        let all = body.vector16()?;
        let mut count = 0;
        let mut rest = all;
        while !rest.is_empty() {
            let number = rest.u16()?;
            rest.vector16()?;
            count += 1;
            if count > EXTENSIONS_MAX {
                return Err(Misbehaviour::Malformed.into());
            }
            if find(rest, number).is_some() {
                return Err(Misbehaviour::IllegalParameter.into());
            }
        }
        Ok(Self { all, count, taken: 0 })
    }

    /// Reads a list that may be missing altogether, as it was before TLS 1.3.
    pub(crate) fn parse_or_none(body: &mut Reader<'a>) -> Result<Self, Error> {
        if body.is_empty() {
            return Ok(Self { all: Reader::new(&[]), count: 0, taken: 0 });
        }
        Self::parse(body)
    }

    /// The content of the extension with `number`.
    pub(crate) fn take(&mut self, number: u16) -> Option<Reader<'a>> {
        let found = find(self.all, number)?;
        self.taken += 1;
        Some(found)
    }

    /// The number of the last extension.
    pub(crate) fn last(&self) -> Option<u16> {
        let (mut rest, mut last) = (self.all, None);
        while let Ok(number) = rest.u16() {
            rest.vector16().ok()?;
            last = Some(number);
        }
        last
    }

    /// Fails if there is one that is known and not in `due`, the set of this message (§4.2).
    pub(crate) fn refuse_misplaced(&self, due: u64) -> Result<(), Error> {
        let mut rest = self.all;
        while let Ok(number) = rest.u16() {
            rest.vector16()?;
            if number < 64 && (extension::ALL & !due) >> number & 1 != 0 {
                return Err(Misbehaviour::IllegalParameter.into());
            }
        }
        Ok(())
    }

    /// Fails if there are others than those that were taken: an answer has none that weren't asked
    /// for (§4.2). `due` is the set of this message.
    pub(crate) fn finish(self, due: u64) -> Result<(), Error> {
        self.refuse_misplaced(due)?;
        if self.taken == self.count {
            Ok(())
        } else {
            Err(Misbehaviour::UnsolicitedExtension.into())
        }
    }
}

fn find(mut list: Reader<'_>, number: u16) -> Option<Reader<'_>> {
    while let Ok(found) = list.u16() {
        let content = list.vector16().ok()?;
        if found == number {
            return Some(content);
        }
    }
    None
}

/// Checks that `server_name` is one name of a host (RFC 6066 §3). It changes nothing: a server has the
/// same certificates for all names.
pub(crate) fn check_server_name(mut content: Reader<'_>) -> Result<(), Error> {
    const HOST_NAME: u8 = 0;
    let mut names = content.vector16()?;
    content.finish()?;
    let kind = names.u8()?;
    let name = names.vector16()?.rest();
    names.finish()?;
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if kind != HOST_NAME || name.is_empty() || !name.iter().all(is_host) {
        return Err(Misbehaviour::IllegalParameter.into());
    }
    Ok(())
}

/// The smallest record size limit (RFC 8449 §4).
const RECORD_SIZE_LIMIT_MIN: u16 = 64;

/// Asks for records that fit a buffer in which content of `room` bytes does, where that is less than
/// the longest: by `record_size_limit` (RFC 8449), and, since some only know that, by
/// `max_fragment_length` (RFC 6066 §4).
pub(crate) fn offer_limits(writer: &mut Writer<'_>, room: usize) -> Result<(), Full> {
    if room >= PLAINTEXT_BYTES_MAX {
        return Ok(());
    }
    extension(writer, extension::RECORD_SIZE_LIMIT, |writer| writer.u16(limit_of(room)))?;
    match fragment_code(room) {
        Some(code) => extension(writer, extension::MAX_FRAGMENT_LENGTH, |writer| writer.u8(code)),
        None => Ok(()),
    }
}

/// The limit for content of `room` bytes, with its type.
pub(crate) const fn limit_of(room: usize) -> u16 {
    if room >= PLAINTEXT_BYTES_MAX {
        PLAINTEXT_BYTES_MAX as u16 + 1
    } else if room < RECORD_SIZE_LIMIT_MIN as usize {
        RECORD_SIZE_LIMIT_MIN
    } else {
        room as u16 + 1
    }
}

/// The code of the longest fragment of `max_fragment_length` that `room` holds.
fn fragment_code(room: usize) -> Option<u8> {
    (1..=4).rev().find(|code| fragment_bytes(*code) <= room)
}

/// The length that a code of `max_fragment_length` stands for, in bytes.
pub(crate) const fn fragment_bytes(code: u8) -> usize {
    1 << (8 + code)
}

/// Two limits of content with its type, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The peer's limit.
    pub(crate) peer: usize,
    /// The own limit.
    pub(crate) own: usize,
}

/// A server's answer to [`offer_limits`].
pub(crate) fn settle_limits(
    extensions: &mut Extensions<'_>,
    room: usize,
) -> Result<Option<Limits>, Error> {
    let fragment = extensions.take(extension::MAX_FRAGMENT_LENGTH);
    let limit = extensions.take(extension::RECORD_SIZE_LIMIT);
    if (fragment.is_some() || limit.is_some()) && room >= PLAINTEXT_BYTES_MAX {
        return Err(Misbehaviour::UnsolicitedExtension.into());
    }
    if let Some(limit) = limit {
        // A server that takes the one must not answer the other (RFC 8449 §5).
        if fragment.is_some() {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        return Ok(Some(Limits { peer: read_limit(limit)?, own: usize::from(limit_of(room)) }));
    }
    let Some(mut fragment) = fragment else { return Ok(None) };
    let code = fragment.u8()?;
    fragment.finish()?;
    if fragment_code(room) != Some(code) {
        return Err(Misbehaviour::IllegalParameter.into());
    }
    let bytes = fragment_bytes(code) + 1;
    Ok(Some(Limits { peer: bytes, own: bytes }))
}

/// A `record_size_limit`, in bytes.
pub(crate) fn read_limit(mut limit: Reader<'_>) -> Result<usize, Error> {
    let bytes = limit.u16()?;
    limit.finish()?;
    if bytes < RECORD_SIZE_LIMIT_MIN {
        return Err(Misbehaviour::IllegalParameter.into());
    }
    Ok(usize::from(bytes).min(PLAINTEXT_BYTES_MAX + 1))
}
