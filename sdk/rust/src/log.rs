//! The machine's log.

use core::fmt::{self, Write as _};

use crate::host;

/// How serious a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// Something failed.
    Error = 0,
    /// Something is not as it should be.
    Warning = 1,
    /// Facts for an owner.
    Info = 2,
    /// Help to find a mistake.
    Debug = 3,
}

/// Writes a line to the machine's log, formatted as by `format!` and cut at 256 bytes.
///
/// ```no_run
/// # let degrees = 21;
/// tenure::log!("it is {degrees} degrees");
/// tenure::log!(tenure::Level::Warning, "{degrees} degrees is too warm");
/// ```
#[macro_export]
macro_rules! log {
    ($format:literal $($rest:tt)*) => {
        $crate::private::write($crate::Level::Info, ::core::format_args!($format $($rest)*))
    };
    ($level:expr, $($format:tt)+) => {
        $crate::private::write($level, ::core::format_args!($($format)+))
    };
}

/// Writes a line.
pub fn write(level: Level, message: fmt::Arguments<'_>) {
    let mut line = Line::default();
    let _ = line.write_fmt(message);
    write_line(level, &line);
}

/// Writes a line that was made.
pub(crate) fn write_line(level: Level, line: &Line) {
    let text = line.as_str();
    // SAFETY: pointer and length are of a slice that lives until the call returns.
    unsafe { host::log(level as u32, text.as_ptr(), text.len()) }
}

/// Ends a line that was cut: an ellipsis, as the device has it.
const CUT: &[u8] = "…".as_bytes();

/// A line in the making, on the stack, so that logging needs no heap.
pub(crate) struct Line {
    bytes: [u8; Self::BYTES_MAX],
    length: usize,
}

impl Line {
    /// The host cuts at the same length.
    const BYTES_MAX: usize = 256;

    /// The text so far; it is cut between characters.
    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Default for Line {
    fn default() -> Self {
        Self { bytes: [0; Self::BYTES_MAX], length: 0 }
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let fitting = text.len().min(room.len());
        let taken = (0..=fitting).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        room[..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        if taken == text.len() {
            return Ok(());
        }
        let mut at = self.length.min(Self::BYTES_MAX - CUT.len());
        while self.bytes[at] & 0xC0 == 0x80 {
            at -= 1;
        }
        self.length = at + CUT.len();
        self.bytes[at..self.length].copy_from_slice(CUT);
        Err(fmt::Error)
    }
}
