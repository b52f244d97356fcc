//! A serial line as a link: frames between zeros with a checksum, as [`tenure_mesh::frame_for_serial`]
//! writes them, over a terminal device.
//!
//! Whoever is at the other end of the line gets everything, so the line has one address. What doesn't
//! fit the line's queue is refused, and a frame that was damaged on the way isn't handed out.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use rustix::io::Errno;
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcsetattr};
use tenure_hal::{Link, LinkError};
use tenure_mesh::{Deframer, frame_for_serial, line_bytes_max};

#[cfg(test)]
mod tests;

/// The longest frame that is carried: that of the mesh's framer.
pub const SERIAL_FRAME_BYTES_MAX: usize = 1232;
/// The most bytes that wait for a line: some frames of the longest kind.
const WAITING_BYTES_MAX: usize = 4 * line_bytes_max(SERIAL_FRAME_BYTES_MAX);
/// The most bytes that one call takes in, so that a line that never falls silent doesn't hold up
/// everything else.
const BYTES_PER_TURN: usize = 16 * 1024;

/// A serial line that never blocks.
#[derive(Debug)]
pub struct SerialLink {
    line: OwnedFd,
    name: String,
    deframer: Deframer,
    /// Frames that have come, and weren't taken yet.
    arrived: VecDeque<Vec<u8>>,
    /// What the line has yet to take.
    waiting: VecDeque<u8>,
    damaged: u64,
}

impl SerialLink {
    /// Opens the terminal device at `path`, raw, with `baud` bits a second, eight of them to a byte.
    ///
    /// # Errors
    /// [`SerialOpenError`].
    pub fn open(path: &Path, baud: u32) -> Result<Self, SerialOpenError> {
        let fail = |error: io::Error| SerialOpenError { path: path.to_owned(), baud, error };
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
        let line = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        let line = OwnedFd::from(line.map_err(fail)?);
        if !isatty(&line) {
            return Err(fail(Errno::NOTTY.into()));
        }
        let set_up = || {
            let mut settings = tcgetattr(&line)?;
            settings.make_raw();
            settings.set_speed(baud)?;
            tcsetattr(&line, OptionalActions::Flush, &settings)
        };
        set_up().map_err(|error| fail(error.into()))?;
        Ok(Self::over(line, path.display().to_string()))
    }

    /// A link over a line that is set up already, and doesn't block.
    pub fn over(line: OwnedFd, name: String) -> Self {
        Self {
            line,
            name,
            deframer: Deframer::new(SERIAL_FRAME_BYTES_MAX),
            arrived: VecDeque::new(),
            waiting: VecDeque::new(),
            damaged: 0,
        }
    }

    /// What the line is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many frames came damaged.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Gives the line as much of what waits as it takes now.
    fn flush(&mut self) -> Result<(), LinkError> {
        while !self.waiting.is_empty() {
            let (first, _) = self.waiting.as_slices();
            match rustix::io::write(&self.line, first) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(_) => return Err(LinkError::Hardware),
            }
        }
        Ok(())
    }

    /// Takes in what has come over the line.
    fn take_in(&mut self) -> Result<(), LinkError> {
        let mut bytes = [0; 1024];
        let mut taken = 0;
        while taken < BYTES_PER_TURN {
            let length = match rustix::io::read(&self.line, &mut bytes) {
                // Nobody holds the other end of a pseudo-terminal; it may be opened again.
                Ok(0) | Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Ok(length) => length,
                Err(_) => return Err(LinkError::Hardware),
            };
            taken += length;
            for byte in &bytes[..length] {
                match self.deframer.push(*byte) {
                    Some(Ok(frame)) => self.arrived.push_back(frame),
                    Some(Err(_)) => self.damaged += 1,
                    None => {}
                }
            }
        }
        Ok(())
    }
}

impl AsFd for SerialLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Link for SerialLink {
    type Address = ();

    fn datagram_bytes_max(&self) -> usize {
        SERIAL_FRAME_BYTES_MAX
    }

    fn send(&mut self, _: &(), datagram: &[u8]) -> Result<(), LinkError> {
        if datagram.len() > SERIAL_FRAME_BYTES_MAX {
            return Err(LinkError::TooLong);
        }
        self.flush()?;
        let mut line = Vec::with_capacity(line_bytes_max(datagram.len()));
        frame_for_serial(datagram, &mut line);
        if self.waiting.len() + line.len() > WAITING_BYTES_MAX {
            return Err(LinkError::Busy);
        }
        self.waiting.extend(line);
        self.flush()
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, ())>, LinkError> {
        self.flush()?;
        if self.arrived.is_empty() {
            self.take_in()?;
        }
        while let Some(frame) = self.arrived.pop_front() {
            if let Some(into) = into.get_mut(..frame.len()) {
                into.copy_from_slice(&frame);
                return Ok(Some((frame.len(), ())));
            }
        }
        Ok(None)
    }
}

/// A serial line that can't be opened.
#[derive(Debug)]
pub struct SerialOpenError {
    /// Which.
    pub path: PathBuf,
    /// How fast it was to be.
    pub baud: u32,
    /// What the system says.
    pub error: io::Error,
}

impl fmt::Display for SerialOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, baud, error } = self;
        write!(f, "can't open the serial line {} at {baud} baud: {error}", path.display())?;
        match error.raw_os_error() {
            Some(libc::EACCES) => f.write_str(
                "; on many systems it takes the group `dialout` (usermod -aG dialout USER)",
            ),
            Some(libc::ENOTTY) => f.write_str("; it is no terminal device"),
            Some(libc::EINVAL) => f.write_str("; it may not know that speed"),
            Some(libc::ENOENT) => f.write_str("; `ls /dev/tty*` lists those that there are"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for SerialOpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
