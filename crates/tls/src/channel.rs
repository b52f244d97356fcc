//! Records in and out of the one buffer that the caller lends.
//!
//! The buffer's front holds what came in, its end what is to go out, and the middle is free:
//!
//! ```text
//! | pinned | opened | …gap… | received, not opened | free | to be sent |
//! 0     pinned   opened.end  raw.start       raw.end   out           len
//! ```
//!
//! Records are opened where they lie; the content of handshake records is moved together, so that a
//! message in several records is read in one piece. What is pinned stays at the front while messages
//! behind it are consumed: the certificates of a chain that are still needed.

use core::ops::Range;

use tenure_crypto::{AEAD_TAG_BYTES, Security};
use zeroize::Zeroize;

use crate::error::{Alert, Error, Misbehaviour};
use crate::record::{
    CIPHERTEXT_BYTES_MAX, ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX, PROTECTION_BYTES,
    Protection, header,
};
use crate::wire::Writer;

/// Records without content, and warnings, that are taken in a row.
const EMPTY_RECORDS_MAX: u8 = 32;
/// `change_cipher_spec` records that are taken: a peer sends at most one per flight.
const CHANGE_CIPHER_SPECS_MAX: u8 = 2;

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// Content of handshake messages, which [`Channel::opened`] ends with.
    Handshake,
    /// Data, which [`Channel::opened`] is; it may be none.
    Data,
    /// An alert.
    Alert(Alert),
    /// Nothing that matters.
    Nothing,
}

pub(crate) struct Channel<'b> {
    buffer: &'b mut [u8],
    pinned: usize,
    opened: Range<usize>,
    opened_is_data: bool,
    raw: Range<usize>,
    out: usize,
    pub(crate) reading: Option<Protection>,
    pub(crate) writing: Option<Protection>,
    /// The longest plaintext with its content type that the peer takes.
    pub(crate) peer_limit: usize,
    /// The longest that the peer was asked to keep to.
    pub(crate) own_limit: usize,
    /// Whether `change_cipher_spec` is ignored, as it is from the first message to the peer's `Finished`.
    pub(crate) in_handshake: bool,
    /// How many bytes of early data that can't be read are skipped.
    pub(crate) skippable: usize,
    change_cipher_specs: u8,
    empty_records: u8,
}

impl<'b> Channel<'b> {
    /// Over `buffer`, with `change_cipher_spec` ignored already or not yet.
    pub(crate) fn new(buffer: &'b mut [u8], in_handshake: bool) -> Self {
        let out = buffer.len();
        Self {
            buffer,
            pinned: 0,
            opened: 0..0,
            opened_is_data: false,
            raw: 0..0,
            out,
            reading: None,
            writing: None,
            peer_limit: PLAINTEXT_BYTES_MAX + 1,
            own_limit: PLAINTEXT_BYTES_MAX + 1,
            in_handshake,
            skippable: 0,
            change_cipher_specs: 0,
            empty_records: 0,
        }
    }

    /// The longest record content that surely fits, while an answer of a few hundred bytes waits.
    pub(crate) fn comfortable_limit(&self) -> usize {
        const ANSWER_BYTES: usize = 256;
        let room = self.buffer.len().saturating_sub(ANSWER_BYTES + HEADER_BYTES + PROTECTION_BYTES);
        room.min(PLAINTEXT_BYTES_MAX)
    }

    /// Where received bytes go, moved together first.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        self.compact();
        &mut self.buffer[self.raw.end..self.out]
    }

    /// Says that the first `length` bytes of [`Self::space`] were received.
    pub(crate) fn received(&mut self, length: usize) {
        self.raw.end = self.raw.end.saturating_add(length).min(self.out);
    }

    /// The bytes to be sent.
    pub(crate) fn output(&self) -> &[u8] {
        &self.buffer[self.out..]
    }

    /// Says that the first `length` bytes of [`Self::output`] were sent.
    pub(crate) fn sent(&mut self, length: usize) {
        self.out = self.out.saturating_add(length).min(self.buffer.len());
    }

    /// Bytes that were opened and are not consumed, behind the pinned ones.
    pub(crate) fn opened(&self) -> &[u8] {
        &self.buffer[self.opened.clone()]
    }

    /// The data of the peer, if that is what was opened.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        let data = if self.opened_is_data { self.opened.clone() } else { 0..0 };
        &mut self.buffer[data]
    }

    /// The same, of which the pinned part comes first, and separately.
    pub(crate) fn pinned_and_opened(&self) -> (&[u8], &[u8]) {
        (&self.buffer[..self.pinned], &self.buffer[self.opened.clone()])
    }

    pub(crate) fn holds_data(&self) -> bool {
        self.opened_is_data && !self.opened.is_empty()
    }

    /// Consumes the first `length` bytes of [`Self::opened`].
    pub(crate) fn consume(&mut self, length: usize) {
        self.opened.start = self.opened.start.saturating_add(length).min(self.opened.end);
        if self.opened.is_empty() {
            self.opened_is_data = false;
        }
    }

    /// Keeps the first `length` bytes of [`Self::opened`] behind what is pinned already.
    pub(crate) fn pin(&mut self, length: usize) {
        let from = self.opened.start..self.opened.start + length;
        self.buffer.copy_within(from.clone(), self.pinned);
        self.pinned += length;
        self.opened.start = from.end.max(self.pinned);
    }

    /// Keeps only `range` of what is pinned, moved to the front.
    pub(crate) fn repin(&mut self, range: Range<usize>) {
        self.buffer.copy_within(range.clone(), 0);
        self.pinned = range.len();
    }

    /// Pins a copy of `range` of [`Self::output`], before anything came in: where the buffer leaves three times
    /// as much for the answer.
    pub(crate) fn pin_output(&mut self, range: Range<usize>) {
        let length = range.len();
        let is_first = self.raw.is_empty() && self.opened.is_empty();
        if is_first && length <= self.out && 4 * length <= self.buffer.len() {
            self.buffer.copy_within(self.out + range.start..self.out + range.end, 0);
            self.pinned = length;
            self.compact();
        }
    }

    /// The length of what is pinned.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.pinned
    }

    pub(crate) fn unpin(&mut self) {
        self.pinned = 0;
    }

    /// Makes `message` what was opened, as if a record had brought it.
    #[cfg(test)]
    pub(crate) fn inject(&mut self, message: &[u8]) {
        self.buffer[..message.len()].copy_from_slice(message);
        self.opened = 0..message.len();
        self.raw = message.len()..message.len();
    }

    fn compact(&mut self) {
        let start = self.pinned;
        if self.opened.start != start {
            self.buffer.copy_within(self.opened.clone(), start);
            self.opened = start..start + self.opened.len();
        }
        if self.raw.start != self.opened.end {
            self.buffer.copy_within(self.raw.clone(), self.opened.end);
            self.raw = self.opened.end..self.opened.end + self.raw.len();
        }
    }

    /// Opens the next record, if all of it is here; data that waits must be consumed first.
    pub(crate) fn next_record(
        &mut self,
        security: &mut impl Security,
    ) -> Result<Option<Incoming>, Error> {
        let raw = &self.buffer[self.raw.clone()];
        let kept = self.pinned + self.opened.len();
        let content = match raw.first() {
            // Not waited for: more of what is no record makes none.
            Some(kind) => Some(ContentType::from_number(*kind).ok_or(Misbehaviour::Unexpected)?),
            None => None,
        };
        let (Some(content), Some([_, version, _, high, low])) = (content, raw.first_chunk()) else {
            // A message that fills the buffer and isn't complete never will be.
            let is_full = kept + HEADER_BYTES > self.buffer.len();
            return if is_full { Err(Error::BufferTooSmall) } else { Ok(None) };
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        // Minor versions are to be ignored (§5.1); another major one is no TLS at all.
        if *version != 3 {
            return Err(Misbehaviour::Malformed.into());
        }
        let is_protected = self.reading.is_some() && content == ContentType::ApplicationData;
        if length > if is_protected { CIPHERTEXT_BYTES_MAX } else { PLAINTEXT_BYTES_MAX } {
            return Err(Misbehaviour::Oversized.into());
        }
        if raw.len() < HEADER_BYTES + length {
            if kept + HEADER_BYTES + length > self.buffer.len() {
                return Err(Error::BufferTooSmall);
            }
            return Ok(None);
        }
        let record = self.raw.start..self.raw.start + HEADER_BYTES + length;
        self.raw.start = record.end;
        if is_protected {
            self.open_protected(security, record)
        } else {
            self.take_unprotected(content, record)
        }
    }

    fn open_protected(
        &mut self,
        security: &mut impl Security,
        record: Range<usize>,
    ) -> Result<Option<Incoming>, Error> {
        let Some(reading) = &mut self.reading else { return Err(Misbehaviour::Unexpected.into()) };
        let opened = reading.open(security, &mut self.buffer[record.clone()]);
        let (content, length) = match opened {
            Ok(opened) => opened,
            // §4.2.10: a server that refuses early data skips what it can't open.
            Err(_) if record.len() <= self.skippable && reading.sequence() == 0 => {
                self.skippable -= record.len();
                return Ok(Some(Incoming::Nothing));
            }
            Err(error) => return Err(error.into()),
        };
        self.skippable = 0;
        // Padding and the type count as well (§5.4, RFC 8449 §4).
        if record.len() - HEADER_BYTES - AEAD_TAG_BYTES > self.own_limit {
            return Err(Misbehaviour::Oversized.into());
        }
        let start = record.start + HEADER_BYTES;
        match content {
            Some(ContentType::ChangeCipherSpec) | None => Err(Misbehaviour::Unexpected.into()),
            Some(content) => self.take(content, start..start + length).map(Some),
        }
    }

    fn take_unprotected(
        &mut self,
        content: ContentType,
        record: Range<usize>,
    ) -> Result<Option<Incoming>, Error> {
        let body = record.start + HEADER_BYTES..record.end;
        match content {
            ContentType::ChangeCipherSpec => {
                self.change_cipher_specs += 1;
                let is_due = self.in_handshake
                    && self.opened.is_empty()
                    && self.change_cipher_specs <= CHANGE_CIPHER_SPECS_MAX;
                if !is_due || self.buffer[body] != [1] {
                    return Err(Misbehaviour::Unexpected.into());
                }
                Ok(Some(Incoming::Nothing))
            }
            // A peer that fails before it has keys can only say so in the open.
            ContentType::Alert if self.reading.as_ref().is_none_or(|it| it.sequence() == 0) => {
                self.take(content, body).map(Some)
            }
            ContentType::Handshake if self.reading.is_none() => self.take(content, body).map(Some),
            ContentType::ApplicationData if record.len() <= self.skippable => {
                self.skippable -= record.len();
                Ok(Some(Incoming::Nothing))
            }
            _ => Err(Misbehaviour::Unexpected.into()),
        }
    }

    fn take(&mut self, content: ContentType, body: Range<usize>) -> Result<Incoming, Error> {
        let has_message_begun = !self.opened.is_empty();
        if has_message_begun && content != ContentType::Handshake {
            return Err(Misbehaviour::Unexpected.into());
        }
        // An alert that ends nothing brings no more than an empty record does.
        if !body.is_empty() && content != ContentType::Alert {
            self.empty_records = 0;
        } else {
            self.empty_records += 1;
            if self.empty_records > EMPTY_RECORDS_MAX {
                return Err(Misbehaviour::Flood.into());
            }
        }
        match content {
            // §5.4
            ContentType::Alert | ContentType::Handshake if body.is_empty() => {
                Err(Misbehaviour::Unexpected.into())
            }
            ContentType::Alert => match &self.buffer[body] {
                [1 | 2, description] => Ok(Incoming::Alert(Alert(*description))),
                [_, _] => Err(Misbehaviour::IllegalParameter.into()),
                _ => Err(Misbehaviour::Malformed.into()),
            },
            ContentType::Handshake => {
                if !has_message_begun {
                    self.opened = self.pinned..self.pinned;
                }
                self.buffer.copy_within(body.clone(), self.opened.end);
                self.opened.end += body.len();
                Ok(Incoming::Handshake)
            }
            _ if body.is_empty() => Ok(Incoming::Data),
            _ => {
                self.opened = body;
                self.opened_is_data = true;
                Ok(Incoming::Data)
            }
        }
    }

    /// How many bytes of content fit into the next record to be sent.
    pub(crate) fn content_room(&self) -> usize {
        self.free_room().min(self.content_limit())
    }

    /// The same, whatever the peer's limit is.
    fn free_room(&self) -> usize {
        let used = self.pinned + self.opened.len() + self.raw.len();
        let free = self.out.saturating_sub(used);
        free.saturating_sub(HEADER_BYTES + PROTECTION_BYTES)
    }

    fn content_limit(&self) -> usize {
        (self.peer_limit - 1).min(PLAINTEXT_BYTES_MAX)
    }

    /// Appends a record, protected once there are keys, with the content that `build` writes; what
    /// `build` returns comes back. It is lent what is pinned, with [`Self::opened`] behind that, beside the
    /// place to write to. A handshake message takes more records where the peer's limit asks for that.
    pub(crate) fn emit<S: Security, T>(
        &mut self,
        security: &mut S,
        content: ContentType,
        build: impl FnOnce(&mut S, &[u8], &mut Writer<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.compact();
        let start = self.raw.end;
        let room =
            if content == ContentType::Handshake { self.free_room() } else { self.content_room() };
        let (front, back) = self.buffer.split_at_mut(start);
        let built = back.get_mut(HEADER_BYTES..HEADER_BYTES + room).ok_or(Error::BufferTooSmall)?;
        let mut writer = Writer::new(built);
        let result = build(security, &front[..self.opened.end], &mut writer)?;
        let length = writer.len();
        if length <= self.content_limit() {
            self.append(security, content, start, length)?;
        } else {
            self.append_parts(security, content, start + HEADER_BYTES, length)?;
        }
        Ok(result)
    }

    /// Appends the `length` bytes at `start` in as many records as the peer's limit asks for: each is built
    /// behind what is left of them.
    fn append_parts(
        &mut self,
        security: &mut impl Security,
        content: ContentType,
        mut start: usize,
        length: usize,
    ) -> Result<(), Error> {
        let end = start + length;
        while start < end {
            let part = start..end.min(start + self.content_limit());
            if end + HEADER_BYTES + part.len() + PROTECTION_BYTES > self.out {
                return Err(Error::BufferTooSmall);
            }
            start = part.end;
            let length = part.len();
            self.buffer.copy_within(part, end + HEADER_BYTES);
            self.append(security, content, end, length)?;
        }
        Ok(())
    }

    /// Protects the record at `start` in the free middle, with `length` bytes of content behind room for its
    /// header, and moves it behind what is to be sent. A `change_cipher_spec` is always in the open (§5).
    fn append(
        &mut self,
        security: &mut impl Security,
        content: ContentType,
        start: usize,
        length: usize,
    ) -> Result<(), Error> {
        let mut record = start..start + HEADER_BYTES + length;
        match &mut self.writing {
            Some(writing) if content != ContentType::ChangeCipherSpec => {
                record.end += PROTECTION_BYTES;
                writing.seal(security, content, &mut self.buffer[record.clone()])?;
            }
            _ => self.buffer[start..start + HEADER_BYTES].copy_from_slice(&header(content, length)),
        }
        let length = record.len();
        let out = self.out - length;
        self.buffer.copy_within(record, out);
        self.buffer[out..].rotate_left(length);
        self.out = out;
        Ok(())
    }

    /// Appends a handshake message in `parts`, in as many records as the peer's limit asks for.
    pub(crate) fn emit_parts(
        &mut self,
        security: &mut impl Security,
        parts: &[&[u8]],
    ) -> Result<(), Error> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut done = 0;
        while done < total {
            let length = (total - done).min(self.content_limit());
            self.emit(security, ContentType::Handshake, |_, _, writer| {
                copy_parts(parts, done, length, writer)
            })?;
            done += length;
        }
        Ok(())
    }

    /// Replaces the keys for what comes in; a message that crosses the change is refused (§5.1).
    pub(crate) fn read_with(&mut self, keys: Protection) -> Result<(), Error> {
        if !self.opened.is_empty() {
            return Err(Misbehaviour::Unexpected.into());
        }
        self.reading = Some(keys);
        Ok(())
    }

    /// Drops what came in, so that there is room for an alert.
    pub(crate) fn drop_input(&mut self) {
        self.pinned = 0;
        self.opened = 0..0;
        self.opened_is_data = false;
        self.raw = 0..0;
    }

    /// Forgets all keys, and wipes what came in; what is to be sent stays.
    pub(crate) fn close(&mut self) {
        self.reading = None;
        self.writing = None;
        self.drop_input();
        self.buffer[..self.out].zeroize();
    }
}

/// Writes `length` bytes of `parts` put together, from `start` on.
fn copy_parts(
    parts: &[&[u8]],
    start: usize,
    length: usize,
    writer: &mut Writer<'_>,
) -> Result<(), Error> {
    let (mut position, end) = (0, start + length);
    for part in parts {
        let from = start.clamp(position, position + part.len()) - position;
        let to = end.clamp(position, position + part.len()) - position;
        writer.bytes(&part[from..to])?;
        position += part.len();
    }
    Ok(())
}

/// Wipes the stack below here, where a handshake left secrets: deeper than any operation with a secret goes, and less
/// deep than the verification of a chain.
#[inline(never)]
pub(crate) fn wipe_stack() {
    const STACK_BYTES: usize = 4 << 10;
    let mut stack = [0u8; STACK_BYTES];
    stack.zeroize();
    core::hint::black_box(&stack);
}

impl Drop for Channel<'_> {
    fn drop(&mut self) {
        self.buffer.zeroize();
        wipe_stack();
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
