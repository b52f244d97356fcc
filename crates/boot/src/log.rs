//! The loader's log: records in two sectors of flash, of which the newest whole one counts.
//!
//! A record holds all there is to know, so that one program of it is the whole change. A sector that is
//! full is left as it is while the other one is erased and written to.

use core::fmt;

use tenure_hal::{Flash, FlashError, ResetCause};

use crate::image::{CRC, Image, Slot};

const RECORD_BYTES: usize = 64;
/// Magic and number: what is the same in each record that may be written to a place.
const FIRST_BYTES: u32 = 8;
const MAGIC: [u8; 4] = *b"TNB\x01";
const CHECKSUM_AT: usize = RECORD_BYTES - 4;
const GOOD_AT: usize = 12;
const OTHER_AT: usize = 24;

/// A device's knowledge of its firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The image that it starts unless there is one to try.
    pub good: Image,
    /// The image in the other slot, if anything is known of it.
    pub other: Option<(Image, Trial)>,
}

impl State {
    /// The image that is being tried, if one is.
    pub fn on_trial(&self) -> Option<Image> {
        self.other.filter(|(_, trial)| *trial == Trial::Started).map(|(image, _)| image)
    }
}

/// How far the trial of an image has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It was brought and checked; the next start tries it.
    Ready,
    /// It was started, and hasn't confirmed yet that it is well.
    Started,
    /// It wasn't confirmed; it isn't started again.
    Failed(Failure),
    /// It was the good one before.
    Former,
}

/// Why an image isn't good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The device started anew before it was confirmed, for this cause.
    Reset(ResetCause),
    /// It doesn't stand whole in its slot.
    Damaged,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(cause) => write!(f, "ended by {cause} before it was confirmed"),
            Self::Damaged => f.write_str("damaged in flash"),
        }
    }
}

/// The log of one device.
#[derive(Debug)]
pub struct BootLog<F> {
    flash: F,
    newest: Option<Found>,
}

/// The newest record.
#[derive(Clone, Copy, Debug)]
struct Found {
    sequence: u32,
    sector: u32,
    place: u32,
    /// The first place behind it in its sector that is erased.
    free: Option<u32>,
    state: State,
}

impl<F: Flash> BootLog<F> {
    /// Reads the log; `flash` is its two sectors.
    ///
    /// # Errors
    /// [`LogError::Geometry`], or [`LogError::Flash`] if it can't be read.
    pub fn open(flash: F) -> Result<Self, LogError> {
        let geometry = flash.geometry();
        let fits = geometry.sector_count == 2
            && geometry.sector_bytes as usize >= RECORD_BYTES
            && FIRST_BYTES.is_multiple_of(geometry.program_bytes);
        if !fits {
            return Err(LogError::Geometry);
        }
        let mut log = Self { flash, newest: None };
        for sector in 0..geometry.sector_count {
            log.read_sector(sector)?;
        }
        Ok(log)
    }

    /// Makes for good what the log reads as at this start. The last append may have been cut: then bits of what it wrote
    /// are between two states, and read otherwise at another start. A record that reads well is programmed again as it reads;
    /// one that doesn't was never acknowledged, and zeros are programmed over it.
    ///
    /// Of an append that left a place erased, the first program unit alone can be torn, and that is the same in whatever is
    /// written there next: a unit is of eight bytes at most, and records are numbered by their places.
    ///
    /// # Errors
    /// The flash failed.
    pub fn settle(&mut self) -> Result<(), LogError> {
        let Some(Found { sector, place, free, .. }) = self.newest else { return Ok(()) };
        let last = free.unwrap_or(self.places().end) - 1;
        self.settle_place(sector, last, last == place)?;
        // The next record went to the other sector, or will.
        if free.is_none() && decode(&self.read_place(1 - sector, 0)?).is_none() {
            self.settle_place(1 - sector, 0, false)?;
        }
        Ok(())
    }

    fn settle_place(&mut self, sector: u32, place: u32, counts: bool) -> Result<(), LogError> {
        let bytes = if counts { self.read_place(sector, place)? } else { [0; RECORD_BYTES] };
        self.flash.program(self.offset(sector, place), &bytes).map_err(LogError::Flash)
    }

    /// The newest record; `None` if nothing was ever flashed.
    pub fn state(&self) -> Option<State> {
        self.newest.map(|found| found.state)
    }

    /// Makes `state` what counts.
    ///
    /// # Errors
    /// The flash failed; what counted before still does.
    pub fn append(&mut self, state: State) -> Result<(), LogError> {
        let (sequence, sector, place) = match self.newest {
            None => (1, 0, None),
            Some(Found { sequence, sector, place, free: Some(free), .. }) => {
                // The places between count as well, so that a place has the same number at each start.
                (sequence.wrapping_add(free - place), sector, Some(free))
            }
            Some(Found { sequence, sector, free: None, .. }) => {
                (sequence.wrapping_add(1), 1 - sector, None)
            }
        };
        let place = match place {
            Some(place) => place,
            None => {
                self.flash.erase(sector).map_err(LogError::Flash)?;
                0
            }
        };
        let bytes = encode(sequence, &state);
        let written = self.flash.program(self.offset(sector, place), &bytes);
        let free = self.places().contains(&(place + 1)).then_some(place + 1);
        if written.is_ok() {
            self.newest = Some(Found { sequence, sector, place, free, state });
            return Ok(());
        }
        // Half a record may stand there, or all of it, which was refused: the next goes behind it, with a later number.
        let _ = self.flash.program(self.offset(sector, place), &[0; RECORD_BYTES]);
        if let Some(newest) = &mut self.newest {
            if newest.sector == sector {
                newest.free = free;
            }
            // Within a sector the next place has a later number by itself.
            if newest.free.is_none() {
                newest.sequence = sequence;
            }
        }
        written.map_err(LogError::Flash)
    }

    /// Ends it, and gives its flash back.
    pub fn into_flash(self) -> F {
        self.flash
    }

    fn places(&self) -> core::ops::Range<u32> {
        0..self.flash.geometry().sector_bytes / RECORD_BYTES as u32
    }

    fn offset(&self, sector: u32, place: u32) -> u32 {
        sector * self.flash.geometry().sector_bytes + place * RECORD_BYTES as u32
    }

    fn read_place(&mut self, sector: u32, place: u32) -> Result<[u8; RECORD_BYTES], LogError> {
        let mut bytes = [0; RECORD_BYTES];
        self.flash.read(self.offset(sector, place), &mut bytes).map_err(LogError::Flash)?;
        Ok(bytes)
    }

    fn read_sector(&mut self, sector: u32) -> Result<(), LogError> {
        for place in self.places() {
            let bytes = self.read_place(sector, place)?;
            let is_erased = bytes.iter().all(|byte| *byte == 0xFF);
            if let Some((sequence, state)) = decode(&bytes) {
                if self.newest.is_none_or(|newest| is_later(sequence, newest.sequence)) {
                    self.newest = Some(Found { sequence, sector, place, free: None, state });
                }
            } else if is_erased
                && let Some(found) = &mut self.newest
                && found.sector == sector
                && found.free.is_none()
            {
                found.free = Some(place);
            }
        }
        Ok(())
    }
}

/// Whether one number is later than another, over the end of their range too (RFC 1982).
fn is_later(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}

fn encode(sequence: u32, state: &State) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[8] = state.good.slot.index() as u8;
    encode_image(&mut bytes[GOOD_AT..], &state.good);
    if let Some((image, trial)) = &state.other {
        [bytes[9], bytes[10]] = encode_trial(*trial);
        encode_image(&mut bytes[OTHER_AT..], image);
    }
    let checksum = CRC.checksum(&bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<(u32, State)> {
    let (fixed, checksum) = bytes.split_last_chunk()?;
    if !bytes.starts_with(&MAGIC) || CRC.checksum(fixed) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let slot = Slot::from_index(bytes[8])?;
    let good = decode_image(slot, &bytes[GOOD_AT..])?;
    let other = match bytes[9] {
        0 => None,
        _ => {
            let image = decode_image(slot.other(), &bytes[OTHER_AT..])?;
            Some((image, decode_trial([bytes[9], bytes[10]])?))
        }
    };
    Some((word(bytes, 4)?, State { good, other }))
}

fn encode_image(into: &mut [u8], image: &Image) {
    into[..4].copy_from_slice(&image.number.to_le_bytes());
    into[4..8].copy_from_slice(&image.bytes.to_le_bytes());
    into[8..12].copy_from_slice(&image.checksum.to_le_bytes());
}

fn decode_image(slot: Slot, bytes: &[u8]) -> Option<Image> {
    Some(Image { slot, number: word(bytes, 0)?, bytes: word(bytes, 4)?, checksum: word(bytes, 8)? })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

const DAMAGED: u8 = 0xFF;

fn encode_trial(trial: Trial) -> [u8; 2] {
    match trial {
        Trial::Ready => [1, 0],
        Trial::Started => [2, 0],
        Trial::Failed(Failure::Reset(cause)) => [3, cause.to_byte()],
        Trial::Failed(Failure::Damaged) => [3, DAMAGED],
        Trial::Former => [4, 0],
    }
}

fn decode_trial([trial, why]: [u8; 2]) -> Option<Trial> {
    Some(match trial {
        1 => Trial::Ready,
        2 => Trial::Started,
        3 if why == DAMAGED => Trial::Failed(Failure::Damaged),
        3 => Trial::Failed(Failure::Reset(ResetCause::from_byte(why)?)),
        4 => Trial::Former,
        _ => return None,
    })
}

/// Why the log can't be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The board's mistake: the flash isn't two sectors, has no room for a record, or is programmed by more than eight
    /// bytes at a time.
    Geometry,
    /// The flash failed.
    Flash(FlashError),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Geometry => f.write_str("the loader's log needs two sectors of flash"),
            Self::Flash(error) => write!(f, "the loader's log: {error}"),
        }
    }
}

impl core::error::Error for LogError {}
