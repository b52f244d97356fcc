//! The loader's work: it chooses the image to start.

use core::fmt;

use tenure_hal::{Flash, FlashError, ResetCause};

use crate::image::Image;
use crate::log::{BootLog, Failure, State, Trial};

/// The image to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which.
    pub image: Image,
    /// Whether this is its one trial.
    pub on_trial: bool,
}

/// Chooses the image to start on a device that starts for `cause`; `slots` are the flash of both.
///
/// An image that is ready is tried, once the log says so; one whose trial has ended without being
/// confirmed is given up; and where the good image has rotted, the one before it is taken if it hasn't.
/// A flash that takes no more records never keeps the good image from starting.
///
/// # Errors
/// [`NoImage`] if there is nothing that could be started.
pub fn choose<F: Flash>(
    log: &mut BootLog<F>,
    slots: &mut [F; 2],
    cause: ResetCause,
) -> Result<Choice, NoImage> {
    let state = log.state().ok_or(NoImage::Blank)?;
    // What the flash doesn't take, the next start settles.
    let _ = log.settle();
    let mut whole = |image: &Image| image.is_whole(&mut slots[image.slot.index()]);
    let give_up = |log: &mut BootLog<F>, image, failure| {
        // If it isn't written, the next start gives it up again.
        let _ = log.append(State { other: Some((image, Trial::Failed(failure))), ..state });
    };
    match state.other {
        Some((image, Trial::Ready)) => {
            if !whole(&image).unwrap_or(false) {
                give_up(log, image, Failure::Damaged);
            } else if log.append(State { other: Some((image, Trial::Started)), ..state }).is_ok() {
                return Ok(Choice { image, on_trial: true });
            }
        }
        Some((image, Trial::Started)) => give_up(log, image, Failure::Reset(cause)),
        _ => {}
    }
    if whole(&state.good).map_err(NoImage::Flash)? {
        return Ok(Choice { image: state.good, on_trial: false });
    }
    match state.other {
        Some((former, Trial::Former)) if whole(&former).map_err(NoImage::Flash)? => {
            let other = Some((state.good, Trial::Failed(Failure::Damaged)));
            // As above.
            let _ = log.append(State { good: former, other });
            Ok(Choice { image: former, on_trial: false })
        }
        _ => Err(NoImage::Damaged),
    }
}

/// Why a device has no image to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoImage {
    /// Nobody has flashed one.
    Blank,
    /// The flashed image has rotted.
    Damaged,
    /// The flash can't be read.
    Flash(FlashError),
}

impl fmt::Display for NoImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("no firmware was flashed yet"),
            Self::Damaged => f.write_str("the firmware in flash is damaged"),
            Self::Flash(error) => write!(f, "the flash: {error}"),
        }
    }
}

impl core::error::Error for NoImage {}
