//! Standard input, output and error: the parameter of a call, and lines of the log, or the call's result.

use core::cell::UnsafeCell;

use crate::errno::Errno;
use crate::host;
use crate::layout;
use crate::settings;
use crate::user::Range;

/// The longest line of a log.
const LINE_BYTES: usize = 256;
/// The levels of lines, as the host call `log` has them.
const LEVEL_INFO: u32 = 2;
const LEVEL_ERROR: u32 = 0;

/// A line that hasn't ended yet.
struct Line {
    length: usize,
    text: [u8; LINE_BYTES],
}

struct Streams {
    output: Line,
    error: Line,
    /// How much of the parameter was read.
    read: u32,
    /// How long the result is.
    result: u32,
    /// Whether more was written than a result holds.
    overflown: bool,
}

struct Single(UnsafeCell<Streams>);

// SAFETY: a machine has one thread.
unsafe impl Sync for Single {}

static STREAMS: Single = Single(UnsafeCell::new(Streams {
    output: Line { length: 0, text: [0; LINE_BYTES] },
    error: Line { length: 0, text: [0; LINE_BYTES] },
    read: 0,
    result: 0,
    overflown: false,
}));

fn streams() -> &'static mut Streams {
    // SAFETY: no caller keeps it, and none of them calls another.
    unsafe { &mut *STREAMS.0.get() }
}

/// As a program finds them when it begins.
pub(crate) fn begin() {
    let streams = streams();
    (streams.output.length, streams.error.length) = (0, 0);
    (streams.read, streams.result, streams.overflown) = (0, 0, false);
}

/// Logs what stands in lines that haven't ended.
pub(crate) fn end() {
    let streams = streams();
    for (line, level) in [(&mut streams.output, LEVEL_INFO), (&mut streams.error, LEVEL_ERROR)] {
        if line.length > 0 {
            line.end(level);
        }
    }
}

/// Writes to standard output, or to standard error.
pub(crate) fn write(range: Range, is_error: bool) -> Result<u32, Errno> {
    let streams = streams();
    if is_error {
        streams.error.put(range.bytes(), LEVEL_ERROR);
        return Ok(range.length());
    }
    let room = settings::word(layout::WORD_RESULT);
    if room == 0 {
        streams.output.put(range.bytes(), LEVEL_INFO);
        return Ok(range.length());
    }
    let part = range.part(0, layout::RESULT_BYTES - streams.result);
    if part.length() == 0 {
        streams.overflown = true;
        return Err(Errno::NOSPC);
    }
    let to = (room + streams.result) as *mut u8;
    // SAFETY: the room has `RESULT_BYTES` bytes, and is nobody else's.
    unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), to, part.length() as usize) };
    streams.result += part.length();
    Ok(part.length())
}

/// The call's result, if standard output is; nothing where it was too long.
pub(crate) fn result() -> Option<Result<&'static [u8], ()>> {
    let room = settings::word(layout::WORD_RESULT);
    let streams = streams();
    if room == 0 {
        return None;
    }
    if streams.overflown {
        return Some(Err(()));
    }
    // SAFETY: so much was written there, and nothing is written any more.
    Some(Ok(unsafe { core::slice::from_raw_parts(room as *const u8, streams.result as usize) }))
}

/// Reads from standard input; 0 is its end.
pub(crate) fn read(range: Range) -> Result<u32, Errno> {
    if !settings::has(layout::FLAG_PARAMETER_IS_INPUT) {
        return Ok(0);
    }
    let streams = streams();
    // SAFETY: the device checks the room.
    let read =
        unsafe { host::parameter_read(streams.read, range.as_mut_ptr(), range.length() as usize) };
    // A null parameter has an end alone.
    let read = u32::try_from(read).unwrap_or(0);
    streams.read += read;
    Ok(read)
}

/// How many bytes of standard input are left.
#[cfg(feature = "components")]
pub(crate) fn left() -> u32 {
    if !settings::has(layout::FLAG_PARAMETER_IS_INPUT) {
        return 0;
    }
    // SAFETY: it takes nothing.
    let length = unsafe { host::parameter_length() };
    u32::try_from(length).unwrap_or(0).saturating_sub(streams().read)
}

/// Leaves out bytes of standard input that are left.
#[cfg(feature = "components")]
pub(crate) fn skip(bytes: u32) {
    streams().read += bytes;
}

impl Line {
    fn put(&mut self, bytes: &[u8], level: u32) {
        for byte in bytes {
            if *byte == b'\n' {
                self.end(level);
                continue;
            }
            if self.length == LINE_BYTES {
                self.break_off(level, *byte);
            }
            if let Some(place) = self.text.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    /// Logs the line's beginning, and keeps what belongs to a character that goes on with `next`.
    fn break_off(&mut self, level: u32, next: u8) {
        const LONGEST_CHARACTER: usize = 4;
        let is_inner = |byte: u8| byte & 0xc0 == 0x80;
        let mut length = self.length;
        if is_inner(next) {
            while length > LINE_BYTES - LONGEST_CHARACTER
                && self.text.get(length - 1).is_some_and(|byte| is_inner(*byte))
            {
                length -= 1;
            }
            length -= 1;
        }
        let kept = self.length - length;
        log(level, self.text.get(..length).unwrap_or_default());
        self.text.copy_within(length..self.length, 0);
        self.length = kept;
    }

    fn end(&mut self, level: u32) {
        log(level, self.text.get(..self.length).unwrap_or_default());
        self.length = 0;
    }
}

fn log(level: u32, text: &[u8]) {
    // SAFETY: the text is there.
    unsafe { host::log(level, text.as_ptr(), text.len()) }
}

/// Logs an error of the program's surroundings.
pub(crate) fn complain(text: &[u8]) {
    log(LEVEL_ERROR, text);
}
