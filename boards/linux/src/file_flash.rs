//! A file that behaves as NOR flash: an image of the device, byte for byte.
//!
//! Invariants:
//! - The file is mapped, so that reading costs no system call, and memory only for the pages that are read. It is written by
//!   system calls, which say what failed. Only the holder of the file's lock writes it; who cuts it short all the same ends
//!   the process (`SIGBUS`), as whoever takes the flash out of a device does.
//! - When a write returns, the file has the bytes: killing the process loses nothing. With
//!   [`Durability::PowerLoss`] they have reached the disk as well.
//! - When a write fails, the flash refuses everything until it is opened anew: the system doesn't
//!   say what became of the bytes, least of all after a failed `fdatasync`.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use tenure_hal::{Flash, FlashError, FlashGeometry};

mod error;
#[allow(unsafe_code)] // a file that is mapped, which nobody else may change
mod map;
#[cfg(test)]
mod tests;

pub use error::{OpenError, OpenProblem, SplitError};
use map::map;

/// The size of an erasable sector, as most NOR flashes have it.
pub const SECTOR_BYTES: u32 = 4096;

/// How much of a new file is written at once. A large flash in memory would make the allocator keep as much for long.
const PIECE_BYTES: usize = 16 * 1024;

/// The permissions of a new flash file: it holds the device's keys.
const OWNER_ONLY: u32 = 0o600;
/// The permissions that no flash file may give: those of the group and of everybody.
const OTHERS: u32 = 0o077;

/// The events that acknowledged writes survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Killing the process and a loss of power: every write waits for the disk (`fdatasync`). This
    /// is what [`Flash`] promises, and the default.
    #[default]
    PowerLoss,
    /// Killing the process. When the machine itself goes down, writes of the last seconds may be
    /// lost or reordered. For demonstrations, tests and benchmarks: a write takes microseconds.
    ProcessKill,
}

/// A NOR flash kept in a file, locked against every other process as long as it is open.
#[derive(Debug)]
pub struct FileFlash {
    file: Arc<LockedFile>,
    durability: Durability,
    /// Where this flash begins in the file, in bytes: not 0 in a part of one.
    base: u64,
    contents: Mmap,
    /// Set when a write failed: what the disk will have in the end is unknown from then on.
    failed: bool,
}

impl FileFlash {
    /// Opens the flash in the file at `path`, or makes one there of `bytes` bytes, all erased. Its
    /// folder must exist.
    ///
    /// # Errors
    /// [`OpenError`], also if there is a file of another size; it is left as it is.
    pub fn open_or_create(
        path: &Path,
        bytes: u32,
        durability: Durability,
    ) -> Result<Self, OpenError> {
        let fail = |problem| OpenError { path: path.to_path_buf(), problem };
        if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(fail(OpenProblem::BadSize { bytes: u64::from(bytes) }));
        }
        let file = lock(path, true).map_err(fail)?;
        complete(&file.0, path, bytes).map_err(fail)?;
        Self::load(file, durability).map_err(fail)
    }

    /// Opens the flash in the file at `path`, whatever its size.
    ///
    /// # Errors
    /// [`OpenError`], also if there is no such file.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, OpenError> {
        let fail = |problem| OpenError { path: path.to_path_buf(), problem };
        let file = lock(path, false).map_err(fail)?;
        Self::load(file, durability).map_err(fail)
    }

    fn load(file: LockedFile, durability: Durability) -> Result<Self, OpenProblem> {
        let metadata = file.0.metadata()?;
        let bytes = metadata.len();
        if metadata.permissions().mode() & OTHERS != 0 {
            return Err(OpenProblem::Exposed);
        }
        if bytes == 0 || bytes > u64::from(u32::MAX) || !bytes.is_multiple_of(SECTOR_BYTES.into()) {
            return Err(OpenProblem::BadSize { bytes });
        }
        let contents = map(&file, 0, bytes as usize).map_err(OpenProblem::Unmapped)?;
        Ok(Self { file: Arc::new(file), durability, base: 0, contents, failed: false })
    }

    /// Cuts the flash into parts of so many sectors each, one behind the other; they are flashes
    /// of their own, may be used side by side, and share the file's lock. What is left at the end
    /// belongs to none.
    ///
    /// # Errors
    /// [`SplitError`]: there are fewer sectors, or the system maps no more.
    pub fn split<const PARTS: usize>(
        self,
        sector_counts: [u32; PARTS],
    ) -> Result<[Self; PARTS], SplitError> {
        let asked = sector_counts.iter().map(|count| u64::from(*count)).sum();
        let present = self.geometry().sector_count;
        if asked > u64::from(present) {
            return Err(SplitError::TooFewSectors { asked, present });
        }
        let Self { file, durability, mut base, failed, .. } = self;
        let mut parts = Vec::with_capacity(PARTS);
        for count in sector_counts {
            let bytes = count as usize * SECTOR_BYTES as usize;
            let contents = map(&file, base, bytes).map_err(SplitError::Unmapped)?;
            parts.push(Self { file: Arc::clone(&file), durability, base, contents, failed });
            base += bytes as u64;
        }
        Ok(parts.try_into().expect("a part for each count"))
    }

    fn range(&self, offset: u32, length: usize) -> Result<std::ops::Range<usize>, FlashError> {
        let start = offset as usize;
        let end = start.checked_add(length).filter(|end| *end <= self.contents.len());
        Ok(start..end.ok_or(FlashError::OutOfRange)?)
    }

    /// Writes `bytes` to the file, which is what is mapped.
    fn store(&mut self, start: usize, bytes: &[u8]) -> Result<(), FlashError> {
        self.check_sound()?;
        let written = self.file.0.write_all_at(bytes, self.base + start as u64);
        let settled = written.and_then(|()| match self.durability {
            Durability::PowerLoss => self.file.0.sync_data(),
            Durability::ProcessKill => Ok(()),
        });
        if settled.is_err() {
            self.failed = true;
            return Err(FlashError::Hardware);
        }
        Ok(())
    }

    fn check_sound(&self) -> Result<(), FlashError> {
        if self.failed { Err(FlashError::Hardware) } else { Ok(()) }
    }
}

impl Flash for FileFlash {
    fn geometry(&self) -> FlashGeometry {
        FlashGeometry {
            sector_bytes: SECTOR_BYTES,
            sector_count: self.contents.len() as u32 / SECTOR_BYTES,
            program_bytes: 1,
        }
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        let range = self.range(offset, into.len())?;
        self.check_sound()?;
        into.copy_from_slice(&self.contents[range]);
        Ok(())
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let range = self.range(offset, bytes.len())?;
        let sets_a_bit = |(old, new): (&u8, &u8)| !old & new != 0;
        if self.contents[range.clone()].iter().zip(bytes).any(sets_a_bit) {
            return Err(FlashError::NotErased);
        }
        self.store(range.start, bytes)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        let start = sector.checked_mul(SECTOR_BYTES).ok_or(FlashError::OutOfRange)?;
        let range = self.range(start, SECTOR_BYTES as usize)?;
        self.store(range.start, &[0xFF; SECTOR_BYTES as usize])
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.contents)
    }
}

/// A file that no other process has locked.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing isn't enough: a process that is being started holds the file until it has become another program.
        // A lock that can't be let go of ends when both have closed it.
        let _ = self.0.unlock();
    }
}

/// Opens the file for reading and writing, and locks it.
fn lock(path: &Path, create: bool) -> Result<LockedFile, OpenProblem> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).truncate(false).mode(OWNER_ONLY);
    let file = options.open(path);
    let file = file.map_err(|error| OpenProblem::of_open(path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(LockedFile(file)),
        Err(TryLockError::WouldBlock) => Err(OpenProblem::InUse),
        Err(TryLockError::Error(error)) => Err(OpenProblem::Io(error)),
    }
}

/// Fills a file that was just made, or whose making was broken off, with erased bytes.
fn complete(file: &File, path: &Path, bytes: u32) -> Result<(), OpenProblem> {
    let present = file.metadata()?.len();
    if present == u64::from(bytes) {
        return Ok(());
    }
    if present > u64::from(bytes) || !is_erased(file, present)? {
        return Err(OpenProblem::WrongSize { bytes: present, asked: u64::from(bytes) });
    }
    let written = pieces(present..u64::from(bytes))
        .try_for_each(|(place, length)| file.write_all_at(&[0xFF; PIECE_BYTES][..length], place))
        .and_then(|()| file.sync_all());
    if let Err(error) = written {
        // A full disk gets its room back; the next start makes the rest.
        let _ = file.set_len(present);
        return Err(error.into());
    }
    sync_folder(path)?;
    Ok(())
}

fn is_erased(file: &File, bytes: u64) -> io::Result<bool> {
    let mut piece = [0; PIECE_BYTES];
    for (place, length) in pieces(0..bytes) {
        file.read_exact_at(&mut piece[..length], place)?;
        if piece[..length].iter().any(|byte| *byte != 0xFF) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where the pieces of that part of a file begin, and how long they are.
fn pieces(part: Range<u64>) -> impl Iterator<Item = (u64, usize)> {
    let length = move |place: u64| (part.end - place).min(PIECE_BYTES as u64) as usize;
    (part.start..part.end).step_by(PIECE_BYTES).map(move |place| (place, length(place)))
}

/// Makes the file's name survive a loss of power too.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}
