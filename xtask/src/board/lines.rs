//! A serial line of an emulated device: two pseudo-terminals, and whoever carries bytes between them.
//!
//! The emulator holds one end, which it opens anew at each start; the other stays as long as the supply
//! does, under a name in the device's folder.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// A line, as long as the process lives.
pub(super) struct Lines {
    chip_end: PathBuf,
}

impl Lines {
    /// Lays a line whose outer end is called `name`.
    pub(super) fn lay(name: &Path) -> Result<Self> {
        let what = || format!("can't lay the line {}", name.display());
        let (inner, chip_end) = terminal().with_context(what)?;
        let (outer, end) = terminal().with_context(what)?;
        match std::fs::remove_file(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(what);
            }
            _ => {}
        }
        std::os::unix::fs::symlink(&end, name).with_context(what)?;
        carry(inner.try_clone()?, outer.try_clone()?, raw(&chip_end).with_context(what)?);
        carry(outer, inner, raw(&end).with_context(what)?);
        Ok(Self { chip_end })
    }

    /// The terminal device that is the chip's UART.
    pub(super) fn chip_end(&self) -> &Path {
        &self.chip_end
    }
}

/// A pseudo-terminal, and the path of its other side.
fn terminal() -> Result<(File, PathBuf)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    let name = OsString::from_vec(ptsname(&terminal, Vec::new())?.into_bytes());
    Ok((File::from(terminal), name.into()))
}

/// Opens a terminal device and lets it pass every byte as it is.
fn raw(path: &Path) -> Result<File> {
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
