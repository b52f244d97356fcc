//! A serial line as a link: [`SerialLine`] over a terminal device.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use rustix::io::Errno;
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcsetattr};
use tenure_hal::{Link, LinkError};
use tenure_mesh::{Port, SerialLine};

#[cfg(test)]
mod tests;

/// The longest frame that is carried: that of the mesh's framer.
pub const SERIAL_FRAME_BYTES_MAX: usize = 1232;
/// The most frames of the longest kind that wait for a line.
const FRAMES_WAITING_MAX: usize = 4;

/// A serial line that never blocks.
#[derive(Debug)]
pub struct SerialLink {
    line: SerialLine<Terminal>,
    name: String,
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
        let line = SerialLine::new(Terminal(line), SERIAL_FRAME_BYTES_MAX, FRAMES_WAITING_MAX);
        Self { line, name }
    }

    /// What the line is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether something waits that the line didn't take yet.
    pub fn is_sending(&self) -> bool {
        self.line.is_sending()
    }

    /// How many frames came damaged.
    pub fn damaged(&self) -> u64 {
        self.line.damaged()
    }
}

impl AsFd for SerialLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.port().0.as_fd()
    }
}

impl Link for SerialLink {
    type Address = ();

    fn datagram_bytes_max(&self) -> usize {
        self.line.datagram_bytes_max()
    }

    fn send(&mut self, to: &(), datagram: &[u8]) -> Result<(), LinkError> {
        self.line.send(to, datagram)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, ())>, LinkError> {
        self.line.receive(into)
    }
}

/// A terminal device that doesn't block.
#[derive(Debug)]
struct Terminal(OwnedFd);

impl Port for Terminal {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        match rustix::io::read(&self.0, into) {
            // None: nobody holds the other end of a pseudo-terminal; it may be opened again.
            Ok(length) => Ok(length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(_) => Err(LinkError::Hardware),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        match rustix::io::write(&self.0, bytes) {
            Ok(written) => Ok(written),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(_) => Err(LinkError::Hardware),
        }
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
