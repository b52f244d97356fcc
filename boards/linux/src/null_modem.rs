//! Two terminal devices that are the ends of one serial line: what one writes the other reads.
//!
//! Each is a pseudo-terminal; threads carry the bytes from one to the other until the line is unplugged.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// A line between two terminal devices. Its ends may be opened and closed as often as one likes. It stays for as long
/// as the process lives, also without this value, unless it is unplugged.
#[derive(Debug)]
pub struct NullModem {
    ends: [PathBuf; 2],
    /// A byte in it ends the threads.
    unplugged: PipeWriter,
}

impl NullModem {
    /// Lays a line.
    ///
    /// # Errors
    /// The system has no more terminals.
    pub fn lay() -> std::io::Result<Self> {
        let ((one, one_end), (other, other_end)) = (terminal()?, terminal()?);
        let (end, unplugged) = std::io::pipe()?;
        carry([one.try_clone()?, other.try_clone()?], raw(&one_end)?, end.try_clone()?);
        carry([other, one], raw(&other_end)?, end);
        Ok(Self { ends: [one_end, other_end], unplugged })
    }

    /// Takes the line away, as if an adapter were unplugged: its terminal devices hang up, and are no more.
    ///
    /// # Errors
    /// The system refuses.
    pub fn unplug(mut self) -> std::io::Result<()> {
        self.unplugged.write_all(&[0])
    }

    /// The terminal devices at its ends.
    pub fn ends(&self) -> [&Path; 2] {
        self.ends.each_ref().map(PathBuf::as_path)
    }
}

/// A pseudo-terminal, and the path of its other side.
fn terminal() -> std::io::Result<(File, PathBuf)> {
    // A child process that had it too would keep the line plugged in.
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
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

/// Carries bytes one way until `end` has something. `held` keeps the terminal there while nobody else has it open.
fn carry([mut from, mut to]: [File; 2], held: File, end: PipeReader) {
    std::thread::spawn(move || {
        let (_held, mut bytes) = (held, [0; 1024]);
        while !ends_before(&from, &end)
            && let Ok(length @ 1..) = from.read(&mut bytes)
        {
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
    });
}

/// Whether `end` has something before `from` does.
fn ends_before(from: &File, end: &PipeReader) -> bool {
    let mut waited =
        [from.as_fd(), end.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    // An interrupted wait is as good as one for `from`, whose read waits again.
    let _ = poll(&mut waited, None);
    waited[1].revents().contains(PollFlags::IN)
}
