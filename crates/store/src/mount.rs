//! Making a store, and finding it again after a reboot.
//!
//! Mounting settles the end of the log first: what a power cut left between two states is made for good what it
//! reads as, by one program of a few bytes. Then it reads the sectors in use once, from the oldest to the newest,
//! and checks every record; what is not intact is passed over and counted.

use alloc::vec::Vec;

use tenure_hal::{Flash, FlashError};

use crate::catalogue::Catalogue;
use crate::error::{FormatError, MountError};
use crate::index::Location;
use crate::layout::{Layout, UNIT_BYTES_MAX};
use crate::log::{Entry, Log, holds_only};
use crate::path;
use crate::record::{Action, HEADER_BYTES, Origin, SectorHeader};
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
    /// How many values are damaged, and how many records beside them that were acknowledged can't be read, as far as
    /// what stands around them shows it: if no later one of their keys followed, those have a value from before.
    pub changes_lost: usize,
    /// Sectors that are in use and whose header is damaged; their records were found without it.
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
    pub fn mount(mut flash: F) -> Result<(Self, MountReport), MountError> {
        let layout = Layout::new(flash.geometry()).ok_or(MountError::TooSmall)?;
        let Some(extent) = find_extent(&mut flash, &layout)? else {
            return Err(if is_blank(&mut flash, &layout)? {
                MountError::Blank
            } else {
                MountError::Foreign
            });
        };
        let mut log = Log::new(flash, layout, extent.salt);
        log.oldest = extent.oldest;
        log.newest = extent.newest;
        while log.holds_records(log.newest + 1)? {
            log.newest += 1;
        }
        let count = layout.geometry.sector_count;
        log.oldest = log.oldest.max((log.newest + 1).saturating_sub(count));
        let is_given_up = log.free_sectors() == 0 && !log.is_reclaim_done()?;
        if is_given_up {
            log.newest -= 1;
        } else if log.free_sectors() == 0 {
            log.oldest += 1;
        }
        let broken = log.settle()?;
        let mut catalogue = Catalogue::default();
        let mut report = replay(&mut log, &mut catalogue)?;
        report.damaged_records += broken;
        if is_given_up {
            // What stands in the sector behind is erased before anything else is written.
            log.tail = layout.geometry.sector_bytes;
        }
        Ok((Self::new(log, catalogue), report))
    }

    /// Finds the store on `flash`, or makes one with this salt (see [`Store::format_with_salt`]) if
    /// the flash is blank. A flash that holds anything else is left alone.
    ///
    /// # Errors
    /// As [`Store::mount`].
    pub fn mount_or_format(mut flash: F, salt: u32) -> Result<(Self, MountReport), MountError> {
        let layout = Layout::new(flash.geometry()).ok_or(MountError::TooSmall)?;
        if find_extent(&mut flash, &layout)?.is_some() || !is_blank(&mut flash, &layout)? {
            return Self::mount(flash);
        }
        let store = Self::begin(flash, layout, salt)?;
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
        Self::begin(flash, layout, salt)
    }

    /// Makes an empty store where no sector but the first holds anything.
    fn begin(mut flash: F, layout: Layout, salt: u32) -> Result<Self, FormatError> {
        // Whatever a cut leaves of the first sector, this says of it that it was to be erased.
        let mark = [0; UNIT_BYTES_MAX];
        flash.program(layout.geometry.sector_bytes, &mark[..layout.unit() as usize])?;
        let mut log = Log::new(flash, layout, salt);
        log.open_sector()?;
        Ok(Self::new(log, Catalogue::default()))
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
        let header = self.log.header(position)?;
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
                self.rotten.push(rotten.location);
                self.record(&rotten)?;
            }
            // So did the record that isn't read any more.
            if self.is_damaged && self.alternates && entry.head.is_odd != self.log.odd {
                report.changes_lost += 1;
            }
            self.is_damaged = false;
            self.alternates |= entry.head.is_odd;
            let intact = self.log.is_value_intact(&entry)? && is_sensible(&entry);
            let was_intact = intact || self.log.is_settled(&entry)?;
            self.log.odd = entry.head.is_odd ^ was_intact;
            if intact {
                self.record(&entry)?;
                continue;
            }
            report.damaged_records += 1;
            match (entry.head.action, entry.head.origin) {
                (Action::Set(_), _) if !is_sensible(&entry) => {}
                (Action::Set(_), _) if was_intact => {
                    self.rotten.push(entry.location);
                    self.record(&entry)?;
                }
                // A commit comes only after the whole batch was written.
                (Action::Set(_), Origin::Batched) => {
                    self.rotten.push(entry.location);
                    self.pending.push(entry.location);
                }
                (Action::Set(_), _) => self.suspect = Some(entry),
                _ => {}
            }
        }
        self.is_damaged |= walk.damaged_runs > runs;
        report.damaged_records += walk.damaged_runs;
        self.log.tail = walk.tail();
        Ok(())
    }

    fn record(&mut self, entry: &Entry) -> Result<(), FlashError> {
        if entry.head.action == Action::Commit {
            let first = self.log.value(entry)?.and_then(|value| value.try_into().ok());
            if let Some(first) = first.map(u64::from_le_bytes) {
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
    /// Whether the sector with this sequence number holds a record written under that number.
    fn holds_records(&mut self, sequence: u32) -> Result<bool, FlashError> {
        let mut walk = self.walk(sequence)?;
        Ok(self.next(&mut walk)?.is_some())
    }

    /// With no sector free, a reclaim of the oldest into the newest was under way. If the newest
    /// holds anything but copies, it was done, else it will be done anew.
    fn is_reclaim_done(&mut self) -> Result<bool, FlashError> {
        let mut walk = self.walk(self.newest)?;
        while let Some(entry) = self.next(&mut walk)? {
            if entry.head.origin != Origin::Copied {
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

/// Which sectors the log consists of, as far as headers tell.
struct Extent {
    salt: u32,
    oldest: u32,
    newest: u32,
}

/// Reads all sectors' headers. `None` if there is none.
fn find_extent<F: Flash>(flash: &mut F, layout: &Layout) -> Result<Option<Extent>, MountError> {
    let geometry = layout.geometry;
    let mut found: Option<Extent> = None;
    let mut misfit = None;
    for position in 0..geometry.sector_count {
        let mut bytes = [0; HEADER_BYTES];
        flash.read(position * geometry.sector_bytes, &mut bytes)?;
        let Some(header) = SectorHeader::parse(&bytes) else {
            continue;
        };
        let SectorHeader { sector_bytes, sector_count, salt, sequence, oldest } = header;
        if (sector_bytes, sector_count) != (geometry.sector_bytes, geometry.sector_count) {
            misfit = Some(MountError::Geometry { sector_bytes, sector_count });
        } else if header.is_sensible()
            && layout.sector(sequence) == position
            && found.as_ref().is_none_or(|found| found.newest < sequence)
        {
            found = Some(Extent { salt, oldest, newest: sequence });
        }
    }
    match (found, misfit) {
        (None, Some(misfit)) => Err(misfit),
        (found, _) => Ok(found),
    }
}

/// Whether nothing was ever written but what a format that was broken off leaves: its mark in the second sector,
/// and then anything in the first.
fn is_blank<F: Flash>(flash: &mut F, layout: &Layout) -> Result<bool, FlashError> {
    let mark = layout.geometry.sector_bytes..layout.geometry.sector_bytes + layout.unit();
    if !holds_only(flash, 0xFF, mark.end..layout.geometry.bytes())? {
        return Ok(false);
    }
    let first = layout.records_start()..mark.start;
    if holds_only(flash, 0, mark)? {
        return Ok(true);
    }
    // As those left it that erased nothing and made no mark.
    let mut bytes = [0; HEADER_BYTES];
    flash.read(0, &mut bytes)?;
    Ok(SectorHeader::may_be_torn(&bytes) && holds_only(flash, 0xFF, first)?)
}
