//! A serial line as a link: [`SerialLine`] over a terminal device, which may be unplugged and plugged in again.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
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
/// How often a terminal device that was unplugged is looked for.
pub const REOPEN_EVERY: Duration = Duration::from_millis(250);

/// A serial line that never blocks. While its terminal device is unplugged, nothing comes, and frames to send are
/// dropped.
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
        let line = open_raw(path, baud).map_err(fail)?;
        Ok(Self::of_device(Some(line), path, baud))
    }

    /// Opens the terminal device at `path` as [`SerialLink::open`] does. One that isn't there yet is unplugged: the link
    /// uses it once it is plugged in.
    ///
    /// # Errors
    /// [`SerialOpenError`], if there is something that can't be opened.
    pub fn open_or_await(path: &Path, baud: u32) -> Result<Self, SerialOpenError> {
        match Self::open(path, baud) {
            Err(error) if error.error.kind() == io::ErrorKind::NotFound => {
                Ok(Self::of_device(None, path, baud))
            }
            opened => opened,
        }
    }

    fn of_device(line: Option<OwnedFd>, path: &Path, baud: u32) -> Self {
        let device = Some(Device { path: path.to_owned(), baud, tried: Instant::now() });
        Self::new(Terminal { line, device }, path.display().to_string())
    }

    /// A link over a line that is set up already, and doesn't block. It is not opened again.
    pub fn over(line: OwnedFd, name: String) -> Self {
        Self::new(Terminal { line: Some(line), device: None }, name)
    }

    fn new(terminal: Terminal, name: String) -> Self {
        let line = SerialLine::new(terminal, SERIAL_FRAME_BYTES_MAX, FRAMES_WAITING_MAX);
        Self { line, name }
    }

    /// The line's name.
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

    /// Whether the terminal device is there.
    pub fn is_plugged_in(&self) -> bool {
        self.line.port().line.is_some()
    }

    /// The file to wait on; none while the line is unplugged.
    pub fn socket(&self) -> Option<&dyn AsFd> {
        self.line.port().line.as_ref().map(|line| line as &dyn AsFd)
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

/// Opens the terminal device at `path`, raw, and so that it doesn't block.
fn open_raw(path: &Path, baud: u32) -> io::Result<OwnedFd> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
    let line = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    if !isatty(&line) {
        return Err(Errno::NOTTY.into());
    }
    let mut settings = tcgetattr(&line)?;
    settings.make_raw();
    settings.set_speed(baud)?;
    tcsetattr(&line, OptionalActions::Flush, &settings)?;
    Ok(line.into())
}

/// A terminal device that doesn't block.
#[derive(Debug)]
struct Terminal {
    /// None while it is unplugged.
    line: Option<OwnedFd>,
    /// How it is opened again.
    device: Option<Device>,
}

/// The terminal device of a line.
#[derive(Debug)]
struct Device {
    path: PathBuf,
    baud: u32,
    /// When it was opened last, or missed last.
    tried: Instant,
}

impl Terminal {
    /// Opens an unplugged device again, if it is there and the time to look for it has come.
    fn reopen(&mut self) -> bool {
        let Some(device) = &mut self.device else { return false };
        if device.tried.elapsed() < REOPEN_EVERY {
            return false;
        }
        device.tried = Instant::now();
        self.line = open_raw(&device.path, device.baud).ok();
        // The frame that was cut off ends at the other end too.
        self.line.as_ref().is_some_and(|line| rustix::io::write(line, &[0]).is_ok())
    }

    /// Closes the device, so that it can come back by the same name.
    ///
    /// # Errors
    /// It can't be opened again.
    fn unplug(&mut self) -> Result<(), LinkError> {
        if self.device.is_none() {
            return Err(LinkError::Hardware);
        }
        self.line = None;
        Ok(())
    }
}

impl Port for Terminal {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let Some(line) = &self.line else {
            // A zero ends the frame that was cut off.
            return match (self.reopen(), into) {
                (true, [first, ..]) => {
                    *first = 0;
                    Ok(1)
                }
                _ => Ok(0),
            };
        };
        match rustix::io::read(line, into) {
            // Of a terminal that is raw (VMIN = 1), no byte is the end: the device is gone (POSIX 11.1.10).
            Ok(0) if self.device.is_some() => self.unplug().map(|()| 0),
            Ok(length) => Ok(length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(_) => self.unplug().map(|()| 0),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        // Frames aren't kept for a device that is gone: they would be old when it is back.
        let Some(line) = &self.line else { return Ok(bytes.len()) };
        match rustix::io::write(line, bytes) {
            Ok(written) => Ok(written),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(_) => self.unplug().map(|()| bytes.len()),
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
    /// The system's error.
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
