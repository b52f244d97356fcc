//! The log: records in a ring of sectors, written at its head and read anywhere.
//!
//! Invariants:
//! - The sectors of the log are those with the sequence numbers `oldest..=newest`; the sector with
//!   sequence number `s` is number `s` modulo the number of sectors. So wear is level by itself,
//!   and a sector whose header is damaged is known by its neighbours.
//! - No unit of flash is programmed twice between two erases, and a sector is erased right before
//!   it is used, whatever it seems to hold.
//! - A record that was refused is not there: after a fault the flash is read back, and if that
//!   fails too, the log takes nothing more.

use alloc::vec;
use alloc::vec::Vec;

use tenure_hal::{Flash, FlashError};

use crate::index::Location;
use crate::layout::{Cost, Layout};
use crate::record::{
    HEAD_AND_PATH_BYTES_MAX, HEAD_BYTES, HEADER_BYTES, Head, Seat, SectorHeader, ValueCrc,
};

/// How much is read at a time where a long run is read through.
const PIECE_BYTES: usize = 128;
/// How much is read at once for a head and, as a rule, its path.
const PEEK_BYTES: usize = 48;
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

/// A record's head and path, read from the flash and found intact.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) location: Location,
    pub(crate) head: Head,
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

/// A walk over the records of one sector.
#[derive(Debug)]
pub(crate) struct Walk {
    sequence: u32,
    at: u32,
    /// Behind the last byte that isn't erased.
    end: u32,
    /// Whether the bytes before `at` are no record's.
    in_damage: bool,
    /// How many runs of bytes were no record's.
    pub(crate) damaged_runs: usize,
}

impl Walk {
    /// Where the walk is: after it has ended, where the sector's free room begins.
    pub(crate) fn tail(&self) -> u32 {
        self.at
    }
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
        let geometry = self.layout.geometry;
        sequence % geometry.sector_count * geometry.sector_bytes
    }

    /// The sequence number of the sector around `location`, which is in the log.
    fn sequence_at(&self, location: Location) -> u32 {
        let count = self.layout.geometry.sector_count;
        let sector = location.0 / self.layout.geometry.sector_bytes;
        let back = (self.newest % count + count - sector) % count;
        self.newest.wrapping_sub(back)
    }

    /// A number that grows along the log.
    pub(crate) fn position(&self, location: Location) -> u64 {
        let sector_bytes = self.layout.geometry.sector_bytes;
        u64::from(self.sequence_at(location)) * u64::from(sector_bytes)
            + u64::from(location.0 % sector_bytes)
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

    /// The header of the sector at `position` on the device, if there is one.
    pub(crate) fn header(&mut self, position: u32) -> Result<Option<SectorHeader>, FlashError> {
        let mut bytes = [0; HEADER_BYTES];
        self.flash.read(position * self.layout.geometry.sector_bytes, &mut bytes)?;
        Ok(SectorHeader::parse(&bytes))
    }

    /// The intact record at `location`, or `None` if what is there is none.
    pub(crate) fn entry(&mut self, location: Location) -> Result<Option<Entry>, FlashError> {
        self.entry_of_sector(location, self.sequence_at(location))
    }

    fn entry_of_sector(
        &mut self,
        location: Location,
        sequence: u32,
    ) -> Result<Option<Entry>, FlashError> {
        let sector_bytes = self.layout.geometry.sector_bytes;
        let offset = location.0 % sector_bytes;
        let room = (sector_bytes - offset) as usize;
        let mut bytes = [0xFF; HEAD_AND_PATH_BYTES_MAX];
        let peek = PEEK_BYTES.min(room);
        self.flash.read(location.0, &mut bytes[..peek])?;
        let Some(head) = bytes.first_chunk().and_then(Head::parse) else {
            return Ok(None);
        };
        let (path_length, value_length) =
            (usize::from(head.path_length), usize::from(head.value_length));
        if self.layout.record_bytes(path_length, value_length) as usize > room {
            return Ok(None);
        }
        let end = HEAD_BYTES + path_length;
        if end > peek {
            self.flash.read(location.0 + peek as u32, &mut bytes[peek..end])?;
        }
        let seat = Seat { salt: self.salt, sequence, offset };
        Ok(head.is_seated(&bytes, seat).then_some(Entry { location, head, bytes }))
    }

    /// Whether the value of `entry` is what was written.
    pub(crate) fn is_value_intact(&mut self, entry: &Entry) -> Result<bool, FlashError> {
        let mut crc = ValueCrc::new();
        let mut piece = [0; PIECE_BYTES];
        let start = entry.location.0 + HEAD_BYTES as u32 + u32::from(entry.head.path_length);
        let mut done = 0;
        while done < entry.value_length() {
            let piece = &mut piece[..PIECE_BYTES.min(entry.value_length() - done)];
            self.flash.read(start + done as u32, piece)?;
            crc.update(piece);
            done += piece.len();
        }
        Ok(crc.finish() == entry.head.value_crc)
    }

    /// The value of `entry`, or `None` if it is damaged.
    pub(crate) fn value(&mut self, entry: &Entry) -> Result<Option<Vec<u8>>, FlashError> {
        let value = self.value_as_found(entry)?;
        Ok((ValueCrc::of(&value) == entry.head.value_crc).then_some(value))
    }

    /// The value of `entry`, damaged or not.
    pub(crate) fn value_as_found(&mut self, entry: &Entry) -> Result<Vec<u8>, FlashError> {
        let start = entry.location.0 + HEAD_BYTES as u32 + u32::from(entry.head.path_length);
        let mut value = vec![0; entry.value_length()];
        self.flash.read(start, &mut value)?;
        Ok(value)
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
        Ok(Walk { sequence, at, end, in_damage: false, damaged_runs: 0 })
    }

    /// The next record of the walk whose head and path are intact. After damage the walk goes on
    /// unit by unit, so that a damaged record costs no other.
    pub(crate) fn next(&mut self, walk: &mut Walk) -> Result<Option<Entry>, FlashError> {
        while walk.at < walk.end {
            let location = Location(self.sector_start(walk.sequence) + walk.at);
            if let Some(entry) = self.entry_of_sector(location, walk.sequence)? {
                let path_length = usize::from(entry.head.path_length);
                walk.at += self.layout.record_bytes(path_length, entry.value_length());
                walk.in_damage = false;
                return Ok(Some(entry));
            }
            if !walk.in_damage {
                walk.in_damage = true;
                walk.damaged_runs += 1;
            }
            walk.at += self.layout.unit();
        }
        Ok(None)
    }

    // Writing

    /// Takes the next sector of the ring into use.
    pub(crate) fn open_sector(&mut self) -> Result<(), FlashError> {
        self.program_run()?;
        self.flash.erase((self.newest + 1) % self.layout.geometry.sector_count)?;
        self.begin_sector()
    }

    /// Takes the next sector of the ring into use, which is known to be erased.
    pub(crate) fn begin_sector(&mut self) -> Result<(), FlashError> {
        let sequence = self.newest + 1;
        let header =
            SectorHeader::new(self.layout.geometry, self.salt, sequence, self.oldest).emit();
        let mut bytes = vec![0xFF; self.layout.records_start() as usize];
        bytes[..HEADER_BYTES].copy_from_slice(&header);
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

    /// Programs records at the tail. After a fault it finds out whether they are there all the same; if they aren't,
    /// the sector takes no further record, as what stands behind its tail is unknown.
    fn program(&mut self, start: Location, records: &[u8]) -> Result<(), FlashError> {
        let Err(error) = self.flash.program(start.0, records) else { return Ok(()) };
        let mut found = vec![0; records.len()];
        match self.flash.read(start.0, &mut found) {
            Ok(()) if found == records => Ok(()),
            Ok(()) => {
                self.tail = self.layout.geometry.sector_bytes;
                Err(error)
            }
            Err(_) => {
                self.failed = true;
                Err(error)
            }
        }
    }
}
