//! An update: an image is written to the slot that isn't running, part by part, and handed to the loader.

use core::fmt;

use crc::{Digest, Table};
use tenure_hal::{Flash, FlashError};

use crate::image::{CRC, HEADER_BYTES, Header, Image, Slot};
use crate::log::{BootLog, LogError, State, Trial};

/// The length of each part but the last is a multiple of this.
pub const ALIGNMENT: usize = 16;

/// An image on its way into a slot.
pub struct Update {
    slot: Slot,
    number: u32,
    bytes: u32,
    written: u32,
    checksum: Digest<'static, u32, Table<1>>,
    header: Option<Header>,
}

impl Update {
    /// Makes ready for the image `number` of `bytes` bytes, in a slot of `slot_bytes`. What stood in that
    /// slot is given up.
    ///
    /// # Errors
    /// As [`UpdateError`] says; nothing has changed then.
    pub fn begin<F: Flash>(
        log: &mut BootLog<F>,
        number: u32,
        bytes: u32,
        slot_bytes: u32,
    ) -> Result<Self, UpdateError> {
        let state = log.state().ok_or(UpdateError::NoLoader)?;
        if state.on_trial().is_some() {
            return Err(UpdateError::OnTrial);
        }
        if number <= state.good.number {
            return Err(UpdateError::NotNewer { running: state.good.number });
        }
        if bytes > slot_bytes || (bytes as usize) < HEADER_BYTES {
            return Err(UpdateError::Length { room: slot_bytes });
        }
        if state.other.is_some() {
            log.append(State { other: None, ..state }).map_err(UpdateError::Log)?;
        }
        let slot = state.good.slot.other();
        Ok(Self { slot, number, bytes, written: 0, checksum: CRC.digest(), header: None })
    }

    /// The slot that it is written to.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// How much of the image has been written.
    pub fn written(&self) -> u32 {
        self.written
    }

    /// The image's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The image's description of itself, once its first part is written.
    pub fn header(&self) -> Option<Header> {
        self.header
    }

    /// Writes the next part to the slot's flash, erasing the sectors that it reaches first, and reads it
    /// back. A bounded amount of work: as much as `part` is long.
    ///
    /// # Errors
    /// As [`UpdateError`] says; the update is to be begun anew then.
    pub fn append<F: Flash>(&mut self, flash: &mut F, part: &[u8]) -> Result<(), UpdateError> {
        let end = u64::from(self.written) + part.len() as u64;
        let is_last = end == u64::from(self.bytes);
        if end > u64::from(self.bytes) || (!is_last && !part.len().is_multiple_of(ALIGNMENT)) {
            return Err(UpdateError::Sequence);
        }
        if self.written == 0 {
            self.header = Some(Header::from_bytes(part).ok_or(UpdateError::NoImage)?);
        }
        let sector_bytes = flash.geometry().sector_bytes;
        let mut rest = part;
        while !rest.is_empty() {
            let within = self.written % sector_bytes;
            if within == 0 {
                flash.erase(self.written / sector_bytes).map_err(UpdateError::Flash)?;
            }
            let room = (sector_bytes - within) as usize;
            let (now, later) = rest.split_at(rest.len().min(room));
            self.write(flash, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Writes within one sector.
    fn write<F: Flash>(&mut self, flash: &mut F, bytes: &[u8]) -> Result<(), UpdateError> {
        for piece in bytes.chunks(256) {
            let (whole, tail) = piece.split_at(piece.len() - piece.len() % ALIGNMENT);
            flash.program(self.written, whole).map_err(UpdateError::Flash)?;
            if !tail.is_empty() {
                let mut padded = [0xFF; ALIGNMENT];
                padded[..tail.len()].copy_from_slice(tail);
                let at = self.written + whole.len() as u32;
                flash.program(at, &padded).map_err(UpdateError::Flash)?;
            }
            let mut read = [0; 256];
            let read = &mut read[..piece.len()];
            flash.read(self.written, read).map_err(UpdateError::Flash)?;
            if read != piece {
                return Err(UpdateError::Flash(FlashError::Hardware));
            }
            self.checksum.update(piece);
            self.written += piece.len() as u32;
        }
        Ok(())
    }

    /// Hands the image to the loader, whose next start tries it. The caller has checked who signed it.
    ///
    /// # Errors
    /// [`UpdateError::Sequence`] if parts are missing, or the log's.
    pub fn finish<F: Flash>(self, log: &mut BootLog<F>) -> Result<Image, UpdateError> {
        if self.written != self.bytes {
            return Err(UpdateError::Sequence);
        }
        let state = log.state().ok_or(UpdateError::NoLoader)?;
        let Self { slot, number, bytes, checksum, .. } = self;
        let image = Image { slot, number, bytes, checksum: checksum.finalize() };
        let other = Some((image, Trial::Ready));
        log.append(State { other, ..state }).map_err(UpdateError::Log)?;
        Ok(image)
    }
}

/// Makes the image that is on trial the good one.
///
/// # Errors
/// [`UpdateError::NoLoader`] if none is, or the log's.
pub fn confirm<F: Flash>(log: &mut BootLog<F>) -> Result<Image, UpdateError> {
    let state = log.state().ok_or(UpdateError::NoLoader)?;
    let good = state.on_trial().ok_or(UpdateError::NoLoader)?;
    let other = Some((state.good, Trial::Former));
    log.append(State { good, other }).map_err(UpdateError::Log)?;
    Ok(good)
}

/// Why an update goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateError {
    /// The device wasn't started by a loader that could start another image, or none is on trial.
    NoLoader,
    /// The running image isn't confirmed yet itself.
    OnTrial,
    /// The image's number isn't greater than that of what runs.
    NotNewer {
        /// That of what runs.
        running: u32,
    },
    /// The image is too long for a slot, or too short for an image.
    Length {
        /// Bytes that fit.
        room: u32,
    },
    /// The sender's mistake: a part is missing, out of order, or of an odd length.
    Sequence,
    /// The first part doesn't begin as an image.
    NoImage,
    /// The slot's flash failed.
    Flash(FlashError),
    /// The log can't be written.
    Log(LogError),
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLoader => f.write_str("this device has no loader that starts another firmware"),
            Self::OnTrial => f.write_str("the firmware that runs is on trial itself"),
            Self::NotNewer { running } => {
                write!(f, "number {running} runs, and only a greater one may follow")
            }
            Self::Length { room } => {
                write!(f, "a firmware of that length doesn't fit: {room} bytes do")
            }
            Self::Sequence => f.write_str("a part of the firmware is missing or out of order"),
            Self::NoImage => f.write_str("it doesn't begin as a firmware does"),
            Self::Flash(error) => write!(f, "the flash of the slot: {error}"),
            Self::Log(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for UpdateError {}
