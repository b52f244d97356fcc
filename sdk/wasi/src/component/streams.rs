//! `wasi:io/streams` and `wasi:io/error`: a stream is a descriptor that is read or written where it stands.
//!
//! All of them are ready at once, so that a call that may wait does the same as the one that mayn't.

use super::lower::{
    allocate, behind, descriptor, must, put_byte, put_bytes, put_list, put_long, put_word,
};
use crate::errno::Errno;
use crate::stdio;
use crate::user::Range;

/// The most bytes that are read or written by one call.
const CHUNK_BYTES: u32 = 65_536;
/// Bytes that go from one stream to another at once.
const SPLICE_BYTES: usize = 256;

/// The streams that a program has.
pub(crate) trait Streams {
    /// How many bytes are left to read.
    fn left(&mut self, fd: u32) -> Result<u32, Errno>;
    fn read(&mut self, fd: u32, range: Range) -> Result<u32, Errno>;
    fn skip(&mut self, fd: u32, bytes: u32) -> Result<(), Errno>;
    /// Whether it can be written to.
    fn check(&mut self, fd: u32) -> Result<(), Errno>;
    fn write(&mut self, fd: u32, range: Range) -> Result<u32, Errno>;
}

/// Standard streams alone: 0 is the input, 1 the output, 2 that for errors.
pub(crate) struct Standard;

const INPUT: u32 = 0;
const ERROR: u32 = 2;

impl Streams for Standard {
    fn left(&mut self, fd: u32) -> Result<u32, Errno> {
        if fd == INPUT { Ok(stdio::left()) } else { Err(Errno::BADF) }
    }

    fn read(&mut self, fd: u32, range: Range) -> Result<u32, Errno> {
        if fd == INPUT { stdio::read(range) } else { Err(Errno::BADF) }
    }

    fn skip(&mut self, _fd: u32, bytes: u32) -> Result<(), Errno> {
        stdio::skip(bytes);
        Ok(())
    }

    fn check(&mut self, fd: u32) -> Result<(), Errno> {
        if fd == INPUT || fd > ERROR { Err(Errno::BADF) } else { Ok(()) }
    }

    fn write(&mut self, fd: u32, range: Range) -> Result<u32, Errno> {
        self.check(fd)?;
        stdio::write(range, fd == ERROR)
    }
}

/// A `stream-error`.
enum StreamError {
    /// The last operation failed.
    Failed(Errno),
    /// There is no more.
    Closed,
}

impl From<Errno> for StreamError {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}

/// The case of a `result<T, stream-error>`, and the error, which lies where a value would.
fn settle(into: u32, offset: u32, result: Result<(), StreamError>) {
    put_byte(into, result.is_err().into());
    let at = behind(into, offset);
    match result {
        Ok(()) => {}
        Err(StreamError::Failed(error)) => {
            put_byte(at, 0);
            put_word(behind(at, 4), error_handle(error));
        }
        Err(StreamError::Closed) => put_byte(at, 1),
    }
}

/// The resource that an error is: its number, and one.
fn error_handle(error: Errno) -> u32 {
    u32::from(error.0) + 1
}

/// The error that a resource is.
pub(crate) fn error_of(handle: u32) -> Errno {
    Errno(handle.wrapping_sub(1) as u16)
}

/// `to-debug-string`: the number that preview 1 has for the error.
pub(crate) fn describe(error: Errno, into: u32) {
    let mut text = *b"errno 00";
    let [.., tens, ones] = &mut text;
    *tens += (error.0 / 10 % 10) as u8;
    *ones += (error.0 % 10) as u8;
    put_bytes(into, &text);
}

fn chunk(length: u64) -> u32 {
    u32::try_from(length).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES)
}

/// How many bytes a reader gets that asks for so many; an end is one where it asks for any.
fn readable(streams: &mut impl Streams, fd: u32, length: u64) -> Result<u32, StreamError> {
    let left = streams.left(fd)?.min(chunk(length));
    if left == 0 && length > 0 { Err(StreamError::Closed) } else { Ok(left) }
}

/// `read` and `blocking-read`: `result<list<u8>, stream-error>`.
pub(crate) fn read(streams: &mut impl Streams, stream: u32, length: u64, into: u32) {
    const AT: u32 = 4;
    let result = readable(streams, descriptor(stream), length).and_then(|length| {
        let start = allocate(length, 1);
        let read = streams.read(descriptor(stream), must(Range::new(start, length)))?;
        put_list(behind(into, AT), start, read);
        Ok(())
    });
    settle(into, AT, result);
}

/// `skip` and `blocking-skip`: `result<u64, stream-error>`.
pub(crate) fn skip(streams: &mut impl Streams, stream: u32, length: u64, into: u32) {
    const AT: u32 = 8;
    let result = readable(streams, descriptor(stream), length).and_then(|length| {
        streams.skip(descriptor(stream), length)?;
        put_long(behind(into, AT), length.into());
        Ok(())
    });
    settle(into, AT, result);
}

/// `check-write`: `result<u64, stream-error>`.
pub(crate) fn check(streams: &mut impl Streams, stream: u32, into: u32) {
    const AT: u32 = 8;
    let result = streams.check(descriptor(stream)).map_err(StreamError::from);
    settle(into, AT, result.map(|()| put_long(behind(into, AT), CHUNK_BYTES.into())));
}

/// `write` and `blocking-write-and-flush`: `result<_, stream-error>`.
pub(crate) fn write(streams: &mut impl Streams, stream: u32, start: u32, length: u32, into: u32) {
    let range = must(Range::new(start, length));
    settle(into, 4, write_all(streams, descriptor(stream), range));
}

fn write_all(streams: &mut impl Streams, fd: u32, range: Range) -> Result<(), StreamError> {
    let mut done = 0;
    streams.check(fd)?;
    while done < range.length() {
        done += streams.write(fd, range.part(done, u32::MAX))?;
    }
    Ok(())
}

/// `flush` and `blocking-flush`: what was written is where it goes.
pub(crate) fn flush(streams: &mut impl Streams, stream: u32, into: u32) {
    settle(into, 4, streams.check(descriptor(stream)).map_err(StreamError::from));
}

/// `write-zeroes` and `blocking-write-zeroes-and-flush`: `result<_, stream-error>`.
pub(crate) fn write_zeroes(streams: &mut impl Streams, stream: u32, length: u64, into: u32) {
    let mut zeroes = [0; SPLICE_BYTES];
    let range = Range::own(&mut zeroes);
    let (mut left, mut result) = (length, Ok(()));
    while left > 0 && result.is_ok() {
        let part = range.part(0, chunk(left));
        result = write_all(streams, descriptor(stream), part);
        left -= u64::from(part.length());
    }
    settle(into, 4, result);
}

/// `splice` and `blocking-splice`: `result<u64, stream-error>`. A program asks again for the rest.
pub(crate) fn splice(streams: &mut impl Streams, to: u32, from: u32, length: u64, into: u32) {
    const AT: u32 = 8;
    let mut bytes = [0; SPLICE_BYTES];
    let range = Range::own(&mut bytes);
    let result = readable(streams, descriptor(from), length).and_then(|length| {
        streams.check(descriptor(to))?;
        let read = streams.read(descriptor(from), range.part(0, length))?;
        write_all(streams, descriptor(to), range.part(0, read))?;
        put_long(behind(into, AT), read.into());
        Ok(())
    });
    settle(into, AT, result);
}
