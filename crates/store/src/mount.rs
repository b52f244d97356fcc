//! Making a store, and finding it again after a reboot.
//!
//! Mounting settles the end of the log first: what a power cut left between two states is made for good what it
//! reads as, by one program of a few bytes. Then it reads the sectors in use once, from the oldest to the newest,
//! and checks every record; what is not intact is passed over and counted.

use alloc::vec;
use alloc::vec::Vec;

use tenure_hal::{Flash, FlashError};

use crate::catalogue::Catalogue;
use crate::error::{FormatError, MountError};
use crate::index::Location;
use crate::layout::Layout;
use crate::log::{Condition, Entry, Log};
use crate::path;
use crate::record::{Action, Origin, SectorHeader};
use crate::store::Store;

#[cfg(test)]
mod tests;

/// The result of a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// Live values in all trees.
    pub keys: usize,
    /// Runs of bytes that are no intact record: a write that a power cut tore (which was never
    /// acknowledged, and is counted at one mount alone), or bits that rotted.
    pub damaged_records: usize,
    /// Records one bit of which flipped since they were written, and was turned back: nothing is lost.
    pub mended_records: usize,
    /// How many values are damaged, and how many records beside them that were acknowledged can't be read, as far as
    /// what stands around them shows it: if no later one of their keys followed, those have a value from before.
    pub changes_lost: usize,
    /// Sectors that are in use and whose header is damaged; their records were found without it, or with one bit of it
    /// turned back.
    pub damaged_headers: usize,
    /// Whether the last change was a batch that a power cut broke off: it is not done.
    pub batch_broken_off: bool,
    /// Sectors in use.
    pub sectors_used: u32,
}

impl<F: Flash> Store<F> {
    /// Finds the store on `flash`. Formats nothing: a flash that holds no store is an error.
    ///
    /// # Errors
    /// As [`MountError`] says. Damaged records are no error: each costs itself alone, and the
    /// report counts them.
    pub fn mount(flash: F) -> Result<(Self, MountReport), MountError> {
        let layout = Layout::new(flash.geometry()).ok_or(MountError::TooSmall)?;
        let mut log = Log::new(flash, layout, 0);
        if log.find()? { Self::of_log(log) } else { Err(MountError::Blank) }
    }

    /// Finds the store on `flash`, or makes one with this salt (see [`Store::format_with_salt`]) if
    /// the flash is blank. A flash that holds anything else is left alone.
    ///
    /// # Errors
    /// As [`Store::mount`].
    pub fn mount_or_format(flash: F, salt: u32) -> Result<(Self, MountReport), MountError> {
        let layout = Layout::new(flash.geometry()).ok_or(MountError::TooSmall)?;
        let mut log = Log::new(flash, layout, salt);
        if log.find()? {
            return Self::of_log(log);
        }
        let store = Self::begin(log)?;
        Ok((store, MountReport { sectors_used: 1, ..MountReport::default() }))
    }

    /// Makes an empty store on `flash`; all that it holds is lost.
    ///
    /// The store's salt is 0. Where values may come from someone who would profit from a damaged
    /// flash, use [`Store::format_with_salt`].
    ///
    /// # Errors
    /// As [`FormatError`] says. A format that a power cut broke off must be done again.
    pub fn format(flash: F) -> Result<Self, FormatError> {
        Self::format_with_salt(flash, 0)
    }

    /// As [`Store::format`], with a salt: a random number that nobody learns.
    ///
    /// When a record's head is damaged, the store looks for the next record byte by byte. Without
    /// the salt nobody can write a value that looks like a record there.
    ///
    /// # Errors
    /// As [`Store::format`].
    pub fn format_with_salt(mut flash: F, salt: u32) -> Result<Self, FormatError> {
        let layout = Layout::new(flash.geometry()).ok_or(FormatError::TooSmall)?;
        for sector in 1..layout.geometry.sector_count {
            flash.erase(sector)?;
        }
        Ok(Self::begin(Log::new(flash, layout, salt))?)
    }

    /// Makes an empty store where no sector but the first holds anything.
    fn begin(mut log: Log<F>) -> Result<Self, FlashError> {
        // Whatever a cut leaves of the first sector, this says of it that it was to be erased.
        let mark = vec![0; log.layout.unit() as usize];
        let second = log.layout.geometry.sector_bytes;
        log.flash_mut().program(second, &mark)?;
        log.open_sector()?;
        log.is_settled = true;
        log.end_format()?;
        Ok(Self::new(log, Catalogue::default()))
    }

    /// The store in a log that headers tell of.
    fn of_log(mut log: Log<F>) -> Result<(Self, MountReport), MountError> {
        while log.holds_records(log.newest + 1, true)? {
            log.newest += 1;
        }
        let count = log.layout.geometry.sector_count;
        log.oldest = log.oldest.max((log.newest + 1).saturating_sub(count));
        // With no sector free, a reclaim of the oldest into the newest was under way. If the newest
        // holds anything but copies, it was done, else it will be done anew.
        let mut is_given_up = false;
        if log.free_sectors() == 0 {
            is_given_up = !log.holds_records(log.newest, false)?;
            if is_given_up {
                log.newest -= 1;
            } else {
                log.oldest += 1;
            }
        }
        let broken = log.settle()?;
        if log.newest == count {
            // The format may have been cut right before that. A worn flash is read all the same.
            let _ = log.end_format();
        }
        let mut catalogue = Catalogue::default();
        let mut report = replay(&mut log, &mut catalogue)?;
        report.damaged_records += broken;
        if is_given_up {
            // What stands in the sector behind is erased before anything else is written.
            log.tail = log.layout.geometry.sector_bytes;
        }
        Ok((Self::new(log, catalogue), report))
    }
}

/// Reads the log from its oldest record to its newest and sets up everything in RAM.
fn replay<F: Flash>(
    log: &mut Log<F>,
    catalogue: &mut Catalogue,
) -> Result<MountReport, FlashError> {
    let mut report = MountReport::default();
    let mut replay = Replay {
        log,
        catalogue,
        pending: Vec::new(),
        suspect: None,
        rotten: Vec::new(),
        is_damaged: false,
        alternates: false,
    };
    for sequence in replay.log.oldest..=replay.log.newest {
        replay.sector(sequence, &mut report)?;
    }
    for location in core::mem::take(&mut replay.rotten) {
        report.changes_lost += usize::from(replay.catalogue.counts(replay.log, location)?);
    }
    report.keys = replay.catalogue.keys();
    report.batch_broken_off = !replay.pending.is_empty();
    report.sectors_used = replay.log.newest + 1 - replay.log.oldest;
    Ok(report)
}

/// A log that is read from its oldest record on.
struct Replay<'s, F> {
    log: &'s mut Log<F>,
    catalogue: &'s mut Catalogue,
    /// Records of a batch whose commit wasn't met yet.
    pending: Vec<Location>,
    /// The last record, if its value is damaged and no start found it intact: a write that a power cut tore, or one that
    /// was acknowledged.
    suspect: Option<Entry>,
    /// Records that count although their value is damaged.
    rotten: Vec<Location>,
    /// Whether what stands behind the last record is none.
    is_damaged: bool,
    /// Whether an odd record was met: those of the first stores are all even.
    alternates: bool,
}

impl<F: Flash> Replay<'_, F> {
    fn sector(&mut self, sequence: u32, report: &mut MountReport) -> Result<(), FlashError> {
        let position = self.log.layout.sector(sequence);
        let header = self.log.header(position, false)?;
        if header.is_none_or(|header| header.sequence != sequence) {
            report.damaged_headers += 1;
        }
        let mut walk = self.log.walk(sequence)?;
        let mut runs = 0;
        while let Some(entry) = self.log.next(&mut walk)? {
            self.is_damaged |= walk.damaged_runs > runs;
            runs = walk.damaged_runs;
            // A record after a write that a power cut tore took its place in the alternation. If
            // it didn't, the write was acknowledged: its key is lost, and not what it was before.
            if let Some(rotten) = self.suspect.take()
                && rotten.head.is_odd != entry.head.is_odd
            {
                self.log.odd = entry.head.is_odd;
                self.record(&rotten, true)?;
            }
            // So did the record that isn't read any more.
            if self.is_damaged && self.alternates && entry.head.is_odd != self.log.odd {
                report.changes_lost += 1;
            }
            self.is_damaged = false;
            self.alternates |= entry.head.is_odd;
            let (_, condition) = self.log.value(&entry)?;
            let is_mended =
                condition == Condition::Mended && self.log.was_programmed(&walk, walk.tail());
            report.mended_records += usize::from(is_mended);
            let is_sensible = is_sensible(&entry);
            let intact = is_sensible && (is_mended || condition == Condition::Intact);
            let was_intact = intact || self.log.is_at_zeros(&walk)?;
            self.log.odd = entry.head.is_odd ^ was_intact;
            report.damaged_records += usize::from(!intact);
            let sets = is_sensible && matches!(entry.head.action, Action::Set(_));
            // A commit comes only after the whole batch was written.
            if intact || (sets && (was_intact || entry.head.origin == Origin::Batched)) {
                self.record(&entry, !intact)?;
            } else if sets {
                self.suspect = Some(entry);
            }
        }
        self.is_damaged |= walk.damaged_runs > runs;
        report.damaged_records += walk.damaged_runs;
        report.mended_records += walk.mended_heads;
        self.log.tail = walk.tail();
        Ok(())
    }

    /// Makes a record count, or has it wait for its batch's commit.
    fn record(&mut self, entry: &Entry, is_rotten: bool) -> Result<(), FlashError> {
        if is_rotten {
            self.rotten.push(entry.location);
        }
        if entry.head.action == Action::Commit {
            let (value, _) = self.log.value(entry)?;
            if let Some(first) = value.first_chunk().copied().map(u64::from_le_bytes) {
                self.pending.retain(|location| self.log.position(*location) >= first);
                self.catalogue.apply(self.log, &self.pending)?;
            }
            self.pending.clear();
        } else if entry.head.origin == Origin::Batched {
            self.pending.push(entry.location);
        } else {
            self.pending.clear();
            self.catalogue.apply(self.log, &[entry.location])?;
        }
        Ok(())
    }
}

impl<F: Flash> Log<F> {
    /// Finds out of which sectors the log consists, as far as headers tell; `false` if the flash is blank.
    fn find(&mut self) -> Result<bool, MountError> {
        let geometry = self.layout.geometry;
        let (mut is_found, mut misfit) = (false, None);
        for position in 0..geometry.sector_count {
            let Some(header) = self.header(position, true)? else { continue };
            let SectorHeader { sector_bytes, sector_count, salt, sequence, oldest } = header;
            if (sector_bytes, sector_count) != (geometry.sector_bytes, geometry.sector_count) {
                misfit = Some(MountError::Geometry { sector_bytes, sector_count });
            } else if header.is_sensible()
                && self.layout.sector(sequence) == position
                && (!is_found || self.newest < sequence)
            {
                is_found = true;
                (self.salt, self.oldest, self.newest) = (salt, oldest, sequence);
            }
        }
        match misfit {
            _ if is_found => Ok(true),
            Some(misfit) => Err(misfit),
            None if self.is_blank()? => Ok(false),
            None => Err(MountError::Foreign),
        }
    }

    /// Says in the second sector that the first is in use: a store that has no other must not pass for a format that was
    /// broken off when its one header rots.
    fn end_format(&mut self) -> Result<(), FlashError> {
        let (second, unit) = (self.layout.geometry.sector_bytes, self.layout.unit());
        let at = second + unit;
        let is_begun = self.holds_only(0, second..at)?;
        if !is_begun || self.holds_only(0, at..at + unit)? {
            return Ok(());
        }
        self.flash_mut().program(at, &vec![0; unit as usize])
    }

    /// Whether nothing was ever written but what a format that was broken off leaves: its first mark in the second sector,
    /// and then anything in the first.
    fn is_blank(&mut self) -> Result<bool, FlashError> {
        let second = self.layout.geometry.sector_bytes;
        let mark_end = second + self.layout.unit();
        Ok(self.holds_only(0xFF, mark_end..self.layout.geometry.bytes())?
            && (self.holds_only(0, second..mark_end)? || self.holds_only(0xFF, 0..second)?))
    }

    /// Whether the sector with this sequence number holds a record written under that number; copies count or don't.
    fn holds_records(&mut self, sequence: u32, copies_count: bool) -> Result<bool, FlashError> {
        let mut walk = self.walk(sequence)?;
        while let Some(entry) = self.next(&mut walk)? {
            if copies_count || entry.head.origin != Origin::Copied {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether the record's path is one: a store writes no other, but a flash may have been made by
/// somebody else.
fn is_sensible(entry: &Entry) -> bool {
    let Ok(path) = core::str::from_utf8(entry.path()) else {
        return false;
    };
    let needs_name = matches!(entry.head.action, Action::Set(_));
    path::may_be_stored(path) && !(needs_name && path.is_empty())
}
