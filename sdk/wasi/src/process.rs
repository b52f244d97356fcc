//! A program's run: its arguments and variables, how it begins and how it ends.

use core::cell::UnsafeCell;

use crate::errno::Errno;
use crate::files::Files;
use crate::host;
use crate::layout;
use crate::settings::{self, Texts};
use crate::stdio;
use crate::user::{Range, item, put_word};

/// How a program came to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its machine started.
    Start,
    /// It was called: the parameter is its last arguments, or its input.
    Call,
    /// It is a library, whose functions are called.
    Library,
}

struct Run {
    cause: Cause,
    exit_code: u32,
}

struct Single(UnsafeCell<Run>);

// SAFETY: a machine has one thread.
unsafe impl Sync for Single {}

static RUN: Single = Single(UnsafeCell::new(Run { cause: Cause::Library, exit_code: 0 }));

fn run() -> &'static mut Run {
    // SAFETY: no caller keeps it, and none of them calls another.
    unsafe { &mut *RUN.0.get() }
}

/// A run begins.
pub(crate) fn begin(cause: u32) {
    let cause = match cause {
        0 => Cause::Start,
        1 => Cause::Call,
        _ => Cause::Library,
    };
    *run() = Run { cause, exit_code: 0 };
    stdio::begin();
}

/// The program asks to end. What is in the middle of it returns without doing anything more, which `tenure build` sees to; a
/// library can't be ended so, and stops its machine.
pub(crate) fn exit(code: u32) {
    let run = run();
    run.exit_code = code;
    if run.cause == Cause::Library {
        stdio::end();
        let text = ExitText::new(code);
        // SAFETY: the text is there.
        unsafe { host::abort(text.as_bytes().as_ptr(), text.as_bytes().len()) };
    }
}

/// A run has ended, with its files kept or not.
pub(crate) fn end(kept: bool) {
    stdio::end();
    let (code, cause) = (run().exit_code, run().cause);
    if code != 0 {
        let text = ExitText::new(code);
        return fail(cause, text.as_bytes());
    }
    if !kept {
        return fail(cause, b"not all files could be kept; the log says which");
    }
    match stdio::result() {
        // SAFETY: the result is there.
        Some(Ok(result)) => unsafe {
            host::reply(result.as_ptr(), result.len());
        },
        Some(Err(())) => fail(cause, b"the result is longer than 8192 bytes"),
        None => {}
    }
}

/// Logs these words, and fails the call with them, if there is one.
fn fail(cause: Cause, words: &[u8]) {
    stdio::complain(words);
    if cause != Cause::Call {
        return;
    }
    // SAFETY: the words are there.
    unsafe {
        host::reply(words.as_ptr(), words.len());
        host::fail();
    }
}

/// Logs which file couldn't be kept.
pub(crate) fn complain_of_file(files: &Files, node: usize) {
    let mut text = Text { length: 0, bytes: [0; 160] };
    text.push(b"not kept: ");
    text.push(files.nodes.path_of(node));
    stdio::complain(text.as_bytes());
}

struct Text {
    length: usize,
    bytes: [u8; 160],
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The words `exit code 33`.
struct ExitText(Text);

impl ExitText {
    fn new(code: u32) -> Self {
        let mut text = Text { length: 0, bytes: [0; 160] };
        text.push(b"exit code ");
        let mut power = 1_000_000_000;
        while power > 1 && code < power {
            power /= 10;
        }
        while power > 0 {
            text.push(&[b'0' + (code / power % 10) as u8]);
            power /= 10;
        }
        Self(text)
    }

    fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Writes how many arguments there are, and their bytes with a zero byte at the end of each.
pub(crate) fn argument_sizes(count: u32, bytes: u32) -> Result<(), Errno> {
    let mut sizes = Sizes { count: 0, bytes: 0 };
    each_argument(|piece| sizes.add(piece));
    put_word(count, sizes.count)?;
    put_word(bytes, sizes.bytes)
}

/// Writes the arguments, and where each begins.
pub(crate) fn arguments(places: u32, bytes: u32) -> Result<(), Errno> {
    let mut writer = Writer { places, bytes, is_new: true, index: 0, result: Ok(()) };
    each_argument(|piece| writer.add(piece));
    writer.result
}

/// Writes how many variables there are, and their bytes.
pub(crate) fn variable_sizes(count: u32, bytes: u32) -> Result<(), Errno> {
    put_word(count, settings::word(layout::WORD_VARIABLES))?;
    put_word(bytes, settings::word(layout::WORD_VARIABLE_BYTES))
}

/// Writes the variables, and where each begins.
pub(crate) fn variables(places: u32, bytes: u32) -> Result<(), Errno> {
    let mut writer = Writer { places, bytes, is_new: true, index: 0, result: Ok(()) };
    each_text(settings::variables(), |piece| writer.add(piece));
    writer.result
}

/// A part of a row of texts.
#[derive(Clone, Copy)]
pub(crate) enum Piece {
    Byte(u8),
    End,
}

fn each_text(texts: Texts, mut each: impl FnMut(Piece)) {
    for text in texts {
        text.iter().for_each(|byte| each(Piece::Byte(*byte)));
        each(Piece::End);
    }
}

/// The arguments of the settings, and those that the call's parameter adds.
pub(crate) fn each_argument(mut each: impl FnMut(Piece)) {
    each_text(settings::arguments(), &mut each);
    if run().cause == Cause::Call && !settings::has(layout::FLAG_PARAMETER_IS_INPUT) {
        each_word(each);
    }
}

/// The words of the parameter: spaces part them, quotes hold them together, and what follows a backslash is taken as it is,
/// but for single quotes, as in a shell.
fn each_word(mut each: impl FnMut(Piece)) {
    let (mut quote, mut is_word, mut is_escaped) = (None, false, false);
    let (mut offset, mut chunk) = (0, [0; 64]);
    loop {
        // SAFETY: the room is there.
        let read = unsafe { host::parameter_read(offset, chunk.as_mut_ptr(), chunk.len()) };
        let Some(bytes) = usize::try_from(read).ok().and_then(|read| chunk.get(..read)) else {
            break;
        };
        if bytes.is_empty() {
            break;
        }
        offset += bytes.len() as u32;
        for byte in bytes {
            let is_space = byte.is_ascii_whitespace() && quote.is_none() && !is_escaped;
            if is_space {
                if core::mem::take(&mut is_word) {
                    each(Piece::End);
                }
                continue;
            }
            is_word = true;
            match (byte, quote) {
                _ if is_escaped => {
                    is_escaped = false;
                    each(Piece::Byte(*byte));
                }
                (b'\\', None | Some(b'"')) => is_escaped = true,
                (b'"' | b'\'', None) => quote = Some(*byte),
                (b'"' | b'\'', Some(open)) if open == *byte => quote = None,
                (b'\0', _) => {}
                _ => each(Piece::Byte(*byte)),
            }
        }
    }
    if is_word {
        each(Piece::End);
    }
}

struct Sizes {
    count: u32,
    bytes: u32,
}

impl Sizes {
    fn add(&mut self, piece: Piece) {
        self.bytes += 1;
        if let Piece::End = piece {
            self.count += 1;
        }
    }
}

/// Writes texts to the program's memory.
struct Writer {
    places: u32,
    /// Where the next byte goes.
    bytes: u32,
    /// Whether that is a text's first.
    is_new: bool,
    index: u32,
    result: Result<(), Errno>,
}

impl Writer {
    fn add(&mut self, piece: Piece) {
        if self.result.is_ok() {
            self.result = self.try_add(piece);
        }
    }

    fn try_add(&mut self, piece: Piece) -> Result<(), Errno> {
        if core::mem::take(&mut self.is_new) {
            put_word(item(self.places, self.index, 4)?, self.bytes)?;
            self.index += 1;
        }
        let byte = match piece {
            Piece::Byte(byte) => byte,
            Piece::End => {
                self.is_new = true;
                0
            }
        };
        Range::new(self.bytes, 1)?.write(&[byte]);
        self.bytes = self.bytes.checked_add(1).ok_or(Errno::FAULT)?;
        Ok(())
    }
}
