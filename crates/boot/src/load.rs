//! All that a loader does before it leaves: it chooses the image to start, and sees that it is for this board.

use core::fmt;

use tenure_hal::{Flash, FlashError, Partition, ResetCause};

use crate::always_on::{STATUS_FAULT, STATUS_RESET};
use crate::choice::{Choice, NoImage, choose};
use crate::image::{HEADER_BYTES, Header};
use crate::log::{BootLog, LogError};
use crate::map;

/// Why there is nothing to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The flash can't be read or written.
    Flash(FlashError),
    /// The log can't be read.
    Log(LogError),
    /// No slot holds a whole image.
    NoImage(NoImage),
    /// The chosen image is for another board, or another place.
    Foreign(Choice),
}

/// Chooses an image for `board` from the flash of which `open` returns handles. The image in each slot must be
/// linked for that slot's address in `linked_for`: twice the same where a chosen slot is mapped or copied to one
/// window, two addresses where code executes from the slot itself.
///
/// # Errors
/// As [`LoadError`] says.
pub fn load<F: Flash>(
    open: impl Fn() -> F,
    cause: ResetCause,
    board: &str,
    linked_for: [u32; 2],
) -> Result<Choice, LoadError> {
    let part = |run: map::Run| Partition::new(open(), run.first, run.count);
    let [a, b] = map::SLOTS;
    let mut slots = [part(a)?, part(b)?];
    let mut log = BootLog::open(part(map::LOG)?).map_err(LoadError::Log)?;
    let choice = choose(&mut log, &mut slots, cause).map_err(LoadError::NoImage)?;
    let mut header = [0; HEADER_BYTES];
    slots[choice.image.slot.index()].read(0, &mut header)?;
    let is_for = |header: Header| {
        header.board() == board && header.load_at == linked_for[choice.image.slot.index()]
    };
    match Header::from_bytes(&header) {
        Some(header) if is_for(header) => Ok(choice),
        _ => Err(LoadError::Foreign(choice)),
    }
}

impl LoadError {
    /// How an emulator ends. An image on trial is given up by the next start; any other was flashed by mistake.
    pub fn status(&self) -> i32 {
        match self {
            Self::Foreign(choice) if choice.on_trial => STATUS_RESET,
            _ => STATUS_FAULT,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flash(error) => write!(f, "the flash: {error}"),
            Self::Log(error) => error.fmt(f),
            Self::NoImage(error) => error.fmt(f),
            Self::Foreign(choice) => {
                write!(f, "the image in slot {} isn't for this board", choice.image.slot.as_str())
            }
        }
    }
}

impl core::error::Error for LoadError {}

impl From<FlashError> for LoadError {
    fn from(error: FlashError) -> Self {
        Self::Flash(error)
    }
}

/// As a loader says what it starts.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, slot) = (self.image.number, self.image.slot.as_str());
        let trial = if self.on_trial { ", on trial" } else { "" };
        write!(f, "firmware {number} in slot {slot}{trial}")
    }
}
