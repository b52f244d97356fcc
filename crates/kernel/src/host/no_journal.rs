//! Host calls of a firmware without journals: each is told what the device knows.

use core::marker::PhantomData;

use tenure_wire::host_call::{GuestBytes, HostCall};

use super::{Status, Stop};
use crate::machine::Wait;
use crate::turn::{Turn, Verdict};

/// A question to the device.
#[derive(Clone, Copy)]
pub(super) struct Question;

impl Question {
    /// One whose answer is a status.
    pub(super) const STATUS: Self = Self;

    /// A message that the machine doesn't wait for.
    pub(super) const MESSAGE: Self = Self;

    /// A message that the machine waits for.
    pub(super) fn waiting(_: Wait) -> Self {
        Self
    }

    /// An event that the machine waits for.
    pub(super) const EVENT: Self = Self;

    /// As this, with a part of the machine's memory that is read once the device allows it.
    pub(super) fn reading(self, _: GuestBytes) -> Self {
        self
    }
}

/// The door through which what the device knows enters the machine that has a turn: it stands open.
pub(crate) struct Door<'t, 'a, 'w, F>(PhantomData<&'t mut Turn<'a, 'w, F>>);

impl<'t, 'a, 'w, F> Door<'t, 'a, 'w, F> {
    pub(crate) fn new(_: &'t mut Turn<'a, 'w, F>) -> Self {
        Self(PhantomData)
    }

    /// The device answers.
    pub(super) fn ask(&mut self, _: Question) -> Result<(), Stop> {
        Ok(())
    }

    /// The device fails if it does.
    pub(super) fn ask_failure(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Nobody writes the answer down.
    pub(super) fn note_answer(&mut self, _: &HostCall, _: &Status) {}

    /// Nor the answer that the machine waited for.
    pub(crate) fn note_woken(&mut self) {}

    /// The time is the device's.
    pub(super) fn tell_time(&mut self, _: &HostCall) -> Option<Verdict> {
        None
    }

    /// Random bytes are the device's.
    pub(super) fn play_random(&mut self, _: &mut [u8]) -> Result<bool, Stop> {
        Ok(false)
    }

    /// Nobody writes them down.
    pub(super) fn note_random(&mut self, _: &[u8]) {}
}
