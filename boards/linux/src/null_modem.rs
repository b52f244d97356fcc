//! Two terminal devices that are the ends of one serial line: what one writes the other reads.
//!
//! Each is a pseudo-terminal; threads carry the bytes from one to the other, as long as the process lives.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// A line between two terminal devices. Its ends may be opened and closed as often as one likes.
#[derive(Debug)]
pub struct NullModem {
    ends: [PathBuf; 2],
}

impl NullModem {
    /// Lays a line.
    ///
    /// # Errors
    /// The system has no more terminals.
    pub fn lay() -> std::io::Result<Self> {
        let ((one, one_end), (other, other_end)) = (terminal()?, terminal()?);
        carry(one.try_clone()?, other.try_clone()?, raw(&one_end)?);
        carry(other, one, raw(&other_end)?);
        Ok(Self { ends: [one_end, other_end] })
    }

    /// The terminal devices at its ends.
    pub fn ends(&self) -> [&Path; 2] {
        self.ends.each_ref().map(PathBuf::as_path)
    }
}

/// A pseudo-terminal, and the path of its other side.
fn terminal() -> std::io::Result<(File, PathBuf)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    let name = OsString::from_vec(ptsname(&terminal, Vec::new())?.into_bytes());
    Ok((File::from(terminal), name.into()))
}

/// Opens a terminal device and lets it pass every byte as it is.
fn raw(path: &Path) -> std::io::Result<File> {
    let terminal = OpenOptions::new().read(true).write(true).open(path)?;
    let mut settings = tcgetattr(&terminal)?;
    settings.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &settings)?;
    Ok(terminal)
}

/// Carries bytes one way for good. `held` keeps the terminal there while nobody else has it open.
fn carry(mut from: File, mut to: File, held: File) {
    std::thread::spawn(move || {
        let (_held, mut bytes) = (held, [0; 1024]);
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
    });
}
