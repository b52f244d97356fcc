//! The log: records in a ring of sectors, written at its head and read anywhere.
//!
//! Invariants:
//! - The sectors of the log are those with the sequence numbers `oldest..=newest`; the sector with
//!   sequence number `s` is number `s` modulo the number of sectors. So wear is level by itself,
//!   and a sector whose header is damaged is known by its neighbours.
//! - A sector is erased right before it is used, whatever it seems to hold. No unit of flash is
//!   programmed twice between two erases, but by what settles the end of the log after a start, and
//!   then with the zeros that it reads as already, or with zeros alone.
//! - Units of zeros are no record's, and no damage.
//! - A record that was refused is not there: after a fault the flash is read back, and if that
//!   fails too, the log takes nothing more.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use tenure_hal::{Flash, FlashError};

use crate::index::Location;
use crate::layout::{Cost, Layout};
use crate::record::{
    HEAD_AND_PATH_BYTES_MAX, HEAD_BYTES, HEADER_BYTES, Head, Seat, SectorHeader, value_crc,
};
use crate::rot;

/// How much is read at a time where a long run is read through.
const PIECE_BYTES: usize = 128;
/// How many bytes of a batch are programmed at once, unless one record is longer.
const RUN_BYTES_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Log<F> {
    flash: F,
    pub(crate) layout: Layout,
    pub(crate) salt: u32,
    pub(crate) oldest: u32,
    pub(crate) newest: u32,
    /// Where the next record goes, in bytes from the start of the newest sector.
    pub(crate) tail: u32,
    /// Whether the next record is an odd one.
    pub(crate) odd: bool,
    /// Whether the end of the log was settled: then no power cut can have torn the last record of a sector before the newest.
    pub(crate) is_settled: bool,
    /// Set when it is unknown what the flash holds.
    failed: bool,
    /// The records of a batch before the tail that aren't programmed yet.
    run: Option<Run>,
}

/// Records that are programmed at once, as a device waits for each program.
#[derive(Debug)]
struct Run {
    bytes: Vec<u8>,
    /// Whether the first of them is an odd one.
    begins_odd: bool,
}

/// A record's head and path, read from the flash and found intact, or mended.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) location: Location,
    pub(crate) head: Head,
    /// Whether a bit of its head or path was turned back.
    is_mended: bool,
    bytes: [u8; HEAD_AND_PATH_BYTES_MAX],
}

impl Entry {
    pub(crate) fn path(&self) -> &[u8] {
        &self.bytes[HEAD_BYTES..HEAD_BYTES + usize::from(self.head.path_length)]
    }

    pub(crate) fn value_length(&self) -> usize {
        usize::from(self.head.value_length)
    }
}

/// How a value was found in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Intact,
    /// One bit had flipped, and was turned back.
    Mended,
    Damaged,
}

/// A walk over the records of one sector.
#[derive(Debug)]
pub(crate) struct Walk {
    sequence: u32,
    /// Where the sector begins on the device.
    start: u32,
    at: u32,
    /// Behind the last byte that isn't erased.
    end: u32,
    /// Whether the bytes before `at` are no record's.
    in_damage: bool,
    /// How many heads were mended.
    pub(crate) mended_heads: usize,
    /// How many runs of bytes were no record's.
    pub(crate) damaged_runs: usize,
}

impl Walk {
    /// Where the walk is: after it has ended, where the sector's free room begins.
    pub(crate) fn tail(&self) -> u32 {
        self.at
    }
}

/// What was found at the end of a sector.
#[derive(Clone, Copy, Debug)]
struct SectorEnd {
    /// Whether its last write was cut off, or rotted.
    is_broken: bool,
    holds_records: bool,
}

impl<F: Flash> Log<F> {
    /// A log that has no sector yet.
    pub(crate) fn new(flash: F, layout: Layout, salt: u32) -> Self {
        let newest = layout.geometry.sector_count - 1;
        Self {
            flash,
            layout,
            salt,
            oldest: newest + 1,
            newest,
            tail: layout.geometry.sector_bytes,
            odd: false,
            is_settled: false,
            failed: false,
            run: None,
        }
    }

    /// Whether it is unknown what the flash holds.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn into_flash(self) -> F {
        self.flash
    }

    pub(crate) fn flash(&self) -> &F {
        &self.flash
    }

    pub(crate) fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    /// How many sectors are not in use; one of them is the spare.
    pub(crate) fn free_sectors(&self) -> u32 {
        self.layout.geometry.sector_count - (self.newest + 1 - self.oldest)
    }

    /// The room in the newest sector.
    pub(crate) fn head_room(&self) -> u32 {
        self.layout.records_end().saturating_sub(self.tail)
    }

    /// Bytes that the records in use and the dead ones take together, roughly.
    pub(crate) fn used_bytes(&self) -> u64 {
        let full = u64::from(self.newest - self.oldest) * u64::from(self.layout.sector_room());
        full + u64::from(self.tail.saturating_sub(self.layout.records_start()))
    }

    fn sector_start(&self, sequence: u32) -> u32 {
        self.layout.sector(sequence) * self.layout.geometry.sector_bytes
    }

    /// The sequence number of the sector around `location`, which is in the log.
    fn sequence_at(&self, location: Location) -> u32 {
        let (sector, _) = self.layout.place(location.0);
        let count = self.layout.geometry.sector_count;
        self.newest - self.layout.sector(self.newest + count - sector)
    }

    /// A number that grows along the log.
    pub(crate) fn position(&self, location: Location) -> u64 {
        let (_, offset) = self.layout.place(location.0);
        u64::from(self.sequence_at(location)) * u64::from(self.layout.geometry.sector_bytes)
            + u64::from(offset)
    }

    /// The position of the next record, unless a sector is opened before it.
    pub(crate) fn next_position(&self) -> u64 {
        self.position(Location(self.sector_start(self.newest) + self.tail))
    }

    /// The cost of a record.
    pub(crate) fn cost(&self, entry: &Entry) -> Cost {
        self.layout.cost(entry.path().len(), entry.value_length())
    }

    /// How many sectors must be opened for records of these sizes.
    pub(crate) fn sectors_to_open(&self, records: impl Iterator<Item = u32>) -> u32 {
        let mut opened = 0;
        let mut room = self.head_room();
        for bytes in records {
            if room < bytes {
                opened += 1;
                room = self.layout.sector_room();
            }
            room = room.saturating_sub(bytes);
        }
        opened
    }

    /// Refuses all work when it is unknown what the flash holds.
    pub(crate) fn check_sound(&self) -> Result<(), FlashError> {
        if self.failed { Err(FlashError::Hardware) } else { Ok(()) }
    }

    /// The outcome of what must not fail halfway: if it did, the log refuses all further work.
    pub(crate) fn or_fail<T>(&mut self, outcome: Result<T, FlashError>) -> Result<T, FlashError> {
        outcome.inspect_err(|_| self.failed = true)
    }

    // Reading

    /// The header of the sector at `position` on the device, if there is one. If `mends` is set, one bit of it may have
    /// flipped since it was written.
    pub(crate) fn header(
        &mut self,
        position: u32,
        mends: bool,
    ) -> Result<Option<SectorHeader>, FlashError> {
        let start = position * self.layout.geometry.sector_bytes;
        let mut bytes = [0; HEADER_BYTES];
        self.flash.read(start, &mut bytes)?;
        // Behind a header that a power cut tore, nothing is written before it has read well.
        let records = start + self.layout.records_start();
        let mends = mends && !self.holds_only(0xFF, records..records + self.layout.unit())?;
        Ok(SectorHeader::parse(bytes, mends))
    }

    /// The record that was found at `location` before, or `None` if it can't be read any more.
    pub(crate) fn entry(&mut self, location: Location) -> Result<Option<Entry>, FlashError> {
        self.entry_of_sector(location, self.sequence_at(location), true)
    }

    /// The record at `location`. If `mends` is set, one bit of its head or path may have flipped since it was written.
    fn entry_of_sector(
        &mut self,
        location: Location,
        sequence: u32,
        mends: bool,
    ) -> Result<Option<Entry>, FlashError> {
        let (_, offset) = self.layout.place(location.0);
        let room = (self.layout.geometry.sector_bytes - offset) as usize;
        let seat = Seat { salt: self.salt, sequence, offset };
        let mut bytes = [0xFF; HEAD_AND_PATH_BYTES_MAX];
        let readable = room.min(bytes.len());
        self.flash.read(location.0, &mut bytes[..readable])?;
        let parsed = bytes.first_chunk().and_then(Head::parse);
        let mut head = parsed.filter(|head| head.is_seated(&bytes, seat));
        let is_mended = head.is_none();
        if is_mended && mends {
            head = Head::mend(&mut bytes[..readable], seat);
        }
        let entry = head.map(|head| Entry { location, head, is_mended, bytes });
        Ok(entry.filter(|entry| self.cost(entry).bytes as usize <= room))
    }

    /// The value of `entry`, mended if one bit of it flipped, and how it was found.
    pub(crate) fn value(&mut self, entry: &Entry) -> Result<(Vec<u8>, Condition), FlashError> {
        let start = entry.location.0 + HEAD_BYTES as u32 + u32::from(entry.head.path_length);
        let mut value = vec![0; entry.value_length()];
        self.flash.read(start, &mut value)?;
        let condition = match value_crc(&value) ^ entry.head.value_crc {
            0 => Condition::Intact,
            difference if rot::mend(&mut value, difference) => Condition::Mended,
            _ => Condition::Damaged,
        };
        Ok((value, condition))
    }

    /// Begins to walk the sector with this sequence number, whether or not it is in the log.
    pub(crate) fn walk(&mut self, sequence: u32) -> Result<Walk, FlashError> {
        let start = self.sector_start(sequence);
        let mut end = self.layout.geometry.sector_bytes;
        let mut piece = [0; PIECE_BYTES];
        while end > 0 {
            let length = PIECE_BYTES.min(end as usize);
            let piece = &mut piece[..length];
            self.flash.read(start + end - length as u32, piece)?;
            if let Some(last) = piece.iter().rposition(|byte| *byte != 0xFF) {
                end = self.layout.pad(end - (length - last - 1) as u32);
                break;
            }
            end -= length as u32;
        }
        let at = self.layout.records_start();
        Ok(Walk { sequence, start, at, end, in_damage: false, mended_heads: 0, damaged_runs: 0 })
    }

    /// The next record of the walk whose head and path are intact. After damage the walk goes on
    /// unit by unit, so that a damaged record costs no other.
    pub(crate) fn next(&mut self, walk: &mut Walk) -> Result<Option<Entry>, FlashError> {
        while walk.at < walk.end {
            let location = Location(walk.start + walk.at);
            let entry = self.entry_of_sector(location, walk.sequence, !walk.in_damage)?;
            let end = entry.as_ref().map_or(0, |entry| walk.at + self.cost(entry).bytes);
            if let Some(entry) = entry
                && (!entry.is_mended || self.was_programmed(walk, end))
            {
                walk.at = end;
                walk.in_damage = false;
                walk.mended_heads += usize::from(entry.is_mended);
                return Ok(Some(entry));
            }
            if !walk.in_damage && !self.is_at_zeros(walk)? {
                walk.in_damage = true;
                walk.damaged_runs += 1;
            }
            walk.at += self.layout.unit();
        }
        Ok(None)
    }

    /// Whether the record that ends at `end` can't be one that a power cut tore, as something was written after it.
    pub(crate) fn was_programmed(&self, walk: &Walk, end: u32) -> bool {
        let is_closed = self.is_settled && walk.sequence < self.newest;
        // What stands in a sector that isn't in the log was written for another place.
        walk.sequence <= self.newest && (end < walk.end || is_closed)
    }

    /// Whether the walk is at a unit of zeros. Behind a record they say that it was intact at a start after it was written,
    /// whatever it is now.
    pub(crate) fn is_at_zeros(&mut self, walk: &Walk) -> Result<bool, FlashError> {
        let at = walk.start + walk.at;
        Ok(walk.at < walk.end && self.holds_only(0, at..at + self.layout.unit())?)
    }

    /// Whether all of a part of the flash reads as `byte`.
    pub(crate) fn holds_only(&mut self, byte: u8, part: Range<u32>) -> Result<bool, FlashError> {
        let mut piece = [0; PIECE_BYTES];
        let mut at = part.start;
        while at < part.end {
            let piece = &mut piece[..PIECE_BYTES.min((part.end - at) as usize)];
            self.flash.read(at, piece)?;
            if piece.iter().any(|found| *found != byte) {
                return Ok(false);
            }
            at += piece.len() as u32;
        }
        Ok(true)
    }

    // Settling

    /// Settles the end of the log for good, before anything is read from it or built on it, as the last operation
    /// may have been cut; gives how many broken ends it found.
    ///
    /// The newest sector's header may be what was cut last. As long as no record stands behind it, the sector before
    /// may have been written to since a start at which it didn't read as one.
    pub(crate) fn settle(&mut self) -> Result<usize, FlashError> {
        let mut broken = 0;
        let mut sequence = self.newest;
        loop {
            let end = self.settle_sector(sequence)?;
            broken += usize::from(end.is_broken);
            if end.holds_records || sequence == self.oldest {
                self.is_settled = true;
                return Ok(broken);
            }
            sequence -= 1;
        }
    }

    /// Makes the end of a sector for good what it reads as now. If the last operation on it was cut, bits of the unit that
    /// was in hand are between two states, and read otherwise at another start.
    ///
    /// A record that reads well can have them in its last written unit alone, and one that doesn't was never acknowledged:
    /// the one is programmed again as it reads, the other is overwritten with zeros. Behind it the unit that the next record
    /// would have begun in may be torn and read as erased, so it is overwritten as well.
    fn settle_sector(&mut self, sequence: u32) -> Result<SectorEnd, FlashError> {
        let mut walk = self.walk(sequence)?;
        let (mut holds_records, mut is_intact, mut sound_end) = (false, true, walk.at);
        while let Some(entry) = self.next(&mut walk)? {
            holds_records = true;
            let (_, condition) = self.value(&entry)?;
            is_intact = condition == Condition::Intact || self.is_at_zeros(&walk)?;
            sound_end = if is_intact { walk.at } else { entry.location.0 - walk.start };
        }
        let is_broken = walk.in_damage || !is_intact;
        let unit = self.layout.unit();
        let (from, kept_until, behind) = if is_broken {
            // The torn unit may be farther behind, where the head of the record that was cut goes on.
            (sound_end, sound_end, self.layout.pad(HEAD_AND_PATH_BYTES_MAX as u32))
        } else {
            (walk.end.saturating_sub(unit), walk.at, unit)
        };
        let until = (walk.at + behind).min(self.layout.geometry.sector_bytes);
        let mut bytes = vec![0; (kept_until - from) as usize];
        self.flash.read(walk.start + from, &mut bytes)?;
        bytes.resize((until - from) as usize, 0);
        // A worn sector may take nothing more; what it holds can be read all the same.
        let _ = self.write(walk.start + from, &bytes);
        self.check_sound()?;
        Ok(SectorEnd { is_broken, holds_records })
    }

    // Writing

    /// Takes the next sector of the ring into use.
    pub(crate) fn open_sector(&mut self) -> Result<(), FlashError> {
        self.program_run()?;
        let sequence = self.newest + 1;
        self.flash.erase(self.layout.sector(sequence))?;
        let header = SectorHeader::new(self.layout.geometry, self.salt, sequence, self.oldest);
        let mut bytes = header.emit().to_vec();
        bytes.resize(self.layout.records_start() as usize, 0xFF);
        self.flash.program(self.sector_start(sequence), &bytes)?;
        self.newest = sequence;
        self.tail = self.layout.records_start();
        Ok(())
    }

    /// Appends a record, in the next sector if the newest has no room; the caller has seen to it that one of
    /// them has.
    pub(crate) fn append_anywhere(
        &mut self,
        head: Head,
        path: &[u8],
        value: &[u8],
    ) -> Result<Location, FlashError> {
        self.open_sector_for(path.len(), value.len())?;
        self.append(head, path, value)
    }

    /// Takes the next sector into use if the newest has no room for a record of these lengths.
    pub(crate) fn open_sector_for(
        &mut self,
        path_length: usize,
        value_length: usize,
    ) -> Result<(), FlashError> {
        let bytes = self.layout.record_bytes(path_length, value_length);
        if self.head_room() < bytes { self.open_sector() } else { Ok(()) }
    }

    /// Appends a record, for which the caller has seen to it that there is room.
    pub(crate) fn append(
        &mut self,
        head: Head,
        path: &[u8],
        value: &[u8],
    ) -> Result<Location, FlashError> {
        let mut record = vec![0xFF; self.layout.record_bytes(path.len(), value.len()) as usize];
        let location = Location(self.sector_start(self.newest) + self.tail);
        let seat = Seat { salt: self.salt, sequence: self.newest, offset: self.tail };
        Head { is_odd: self.odd, ..head }.emit(path, seat, &mut record);
        let value_start = HEAD_BYTES + path.len();
        record[value_start..value_start + value.len()].copy_from_slice(value);
        match &mut self.run {
            Some(run) => run.bytes.extend_from_slice(&record),
            None => self.program(location, &record)?,
        }
        self.tail += record.len() as u32;
        self.odd = !self.odd;
        let is_long = |run: &Run| run.bytes.len() >= RUN_BYTES_MAX;
        if self.run.as_ref().is_some_and(is_long) {
            self.program_run()?;
        }
        Ok(location)
    }

    /// Gathers the records that are appended from now on, until [`Self::end_run`]. None of them may be read before it is
    /// programmed.
    pub(crate) fn begin_run(&mut self) {
        self.run = Some(Run { bytes: Vec::new(), begins_odd: self.odd });
    }

    /// Programs what is still gathered, and gathers no more.
    pub(crate) fn end_run(&mut self) -> Result<(), FlashError> {
        let programmed = self.program_run();
        self.run = None;
        programmed
    }

    fn program_run(&mut self) -> Result<(), FlashError> {
        let Some(Run { bytes, begins_odd }) = self.run.take() else { return Ok(()) };
        let start = Location(self.sector_start(self.newest) + self.tail - bytes.len() as u32);
        let programmed = if bytes.is_empty() { Ok(()) } else { self.program(start, &bytes) };
        if programmed.is_err() {
            // As before the run: of its records none was acknowledged.
            self.odd = begins_odd;
        }
        self.begin_run();
        programmed
    }

    /// Programs records at the tail. If that fails they are overwritten, as far as the flash takes it, since they might read
    /// well at another start; and the sector takes no further record.
    fn program(&mut self, start: Location, records: &[u8]) -> Result<(), FlashError> {
        let programmed = self.write(start.0, records);
        if programmed.is_err() && !self.failed {
            self.tail = self.layout.geometry.sector_bytes;
            let _ = self.write(start.0, &vec![0; records.len()]);
        }
        programmed
    }

    /// Programs `bytes`. After a fault it finds out whether they are there all the same.
    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let Err(error) = self.flash.program(offset, bytes) else { return Ok(()) };
        let mut found = vec![0; bytes.len()];
        let read = self.flash.read(offset, &mut found);
        self.failed |= read.is_err();
        if read.is_ok() && found == bytes { Ok(()) } else { Err(error) }
    }
}
