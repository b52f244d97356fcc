//! Host calls and journals: what a call is told that only the device knows is written down, or taken from the script.
//!
//! A host call asks the journal between two parts of it: first it reads its arguments, which follows from the machine's
//! memory, then it asks the device. So a bad pointer and a malformed name are found in a replay as they were before.

use tenure_hal::Flash;
use tenure_journal::{Given, Record, Woken};
use tenure_wire::host_call::{GuestBytes, HostCall, HostError};

use super::{Status, Stop, length_word, number_of, time};
use crate::cost;
use crate::fault::FaultKind;
use crate::journal::event_record;
use crate::machine::{Progress, Wait};
use crate::turn::{Turn, Verdict};

/// The way in which the host call under way depends on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Asks {
    /// It doesn't, as far as it has come.
    #[default]
    Nothing,
    /// All of its answer is the device's; so many bytes had been written to flash before.
    Device { flash_bytes: u64 },
    /// It follows from the machine's state unless the device fails.
    Failure,
}

/// A question to the device.
#[derive(Clone, Copy, Default)]
pub(super) struct Question {
    /// Whether it counts as a message where it isn't refused.
    is_message: bool,
    /// The wait of the machine where there is no answer at once.
    wait: Option<Wait>,
    /// A part of the machine's memory that is read once the device allows it.
    reads: Option<GuestBytes>,
}

impl Question {
    /// One whose answer is a status.
    pub(super) const STATUS: Self = Self { is_message: false, wait: None, reads: None };

    /// A message that the machine doesn't wait for.
    pub(super) const MESSAGE: Self = Self { is_message: true, ..Self::STATUS };

    /// A message that the machine waits for.
    pub(super) const fn waiting(wait: Wait) -> Self {
        Self { is_message: true, wait: Some(wait), reads: None }
    }

    /// An event that the machine waits for.
    pub(super) const EVENT: Self = Self { wait: Some(Wait::Event(None)), ..Self::STATUS };

    /// As this, with a part of the machine's memory that is read once the device allows it.
    pub(super) fn reading(self, bytes: GuestBytes) -> Self {
        Self { reads: Some(bytes), ..self }
    }
}

/// The errors by which a device fails a host call that follows from the machine's state otherwise.
const FAILURES: [HostError; 4] =
    [HostError::Device, HostError::Full, HostError::FlashBudget, HostError::StoredBudget];

/// The door through which what the device knows enters the machine that has a turn.
pub(crate) struct Door<'t, 'a, 'w, F>(&'t mut Turn<'a, 'w, F>);

impl<'t, 'a, 'w, F: Flash> Door<'t, 'a, 'w, F> {
    pub(crate) fn new(turn: &'t mut Turn<'a, 'w, F>) -> Self {
        Self(turn)
    }

    /// Lets the call ask the device, whose answer will be written down; if a journal is played, ends the call with the
    /// answer that stands there.
    pub(super) fn ask(&mut self, question: Question) -> Result<(), Stop> {
        let turn = &mut *self.0;
        if turn.parts.script.is_none() {
            if turn.machine.journal.is_some() {
                turn.asks = Asks::Device { flash_bytes: turn.machine.usage.flash_bytes };
            }
            return Ok(());
        }
        // The pieces of the call are the journal's.
        let _ = turn.machine.take_progress();
        let Some(script) = &mut turn.parts.script else { return Ok(()) };
        let Some(given) = script.take_given() else {
            let misread = question.reads.map(|bytes| bytes.read(turn.program.memory()));
            if let Some(Err(error)) = misread {
                // It was a message before that was found.
                turn.machine.usage.messages += u64::from(question.is_message);
                return Err(error.into());
            }
            let Some(wait) = question.wait else {
                script.differs("an answer of the device");
                return Err(Stop::Fault(FaultKind::Image));
            };
            if matches!(wait, Wait::Event(_)) {
                script.event = None;
            }
            turn.machine.usage.messages += u64::from(question.is_message);
            return Err(Stop::Wait(wait));
        };
        let Given { value, event, more, fuel, flash_bytes } = given;
        // Of the device's answers those to publications alone take fuel beyond the call's own, and several pieces: for queues, of
        // which the machine knows nothing.
        let is_publication = question.reads.is_some();
        let queues_max = if is_publication { cost::PIECE_QUEUES } else { 0 };
        let pieces_max = if is_publication { cost::PIECES_BEFORE_LAST_MAX } else { 0 };
        if script.pieces_with(more) > pieces_max || fuel > cost::of_queued(queues_max) {
            script.differs("an answer of the device");
            return Err(Stop::Fault(FaultKind::Image));
        }
        if event.is_some() {
            script.event = event;
        }
        turn.extra_cost = fuel;
        if flash_bytes > 0 {
            turn.machine.usage.flash_writes += 1;
            turn.machine.usage.flash_bytes =
                turn.machine.usage.flash_bytes.saturating_add(flash_bytes);
        }
        if more {
            return Err(Stop::More(Progress::default()));
        }
        // An event that is too long was a message before that was found.
        let is_sent = value >= 0 || question.reads.is_some() && value == HostError::TooLong.code();
        turn.machine.usage.messages += u64::from(question.is_message && is_sent);
        Err(match (usize::try_from(value), HostError::from_code(value)) {
            (Ok(value), _) => Stop::Played(value),
            (Err(_), Some(error)) => Stop::Error(error),
            (Err(_), None) => {
                script.differs("an answer of the device");
                Stop::Fault(FaultKind::Image)
            }
        })
    }

    /// Lets the call go on, whose failure will be written down if it is the device's; if a journal is played, ends the
    /// call with the failure that stands there.
    pub(super) fn ask_failure(&mut self) -> Result<(), Stop> {
        let turn = &mut *self.0;
        let Some(script) = &mut turn.parts.script else {
            if turn.machine.journal.is_some() {
                turn.asks = Asks::Failure;
                turn.machine.note_call();
            }
            return Ok(());
        };
        let Some(error) = script.refusal() else { return Ok(()) };
        let _ = turn.machine.take_progress();
        Err(match HostError::from_code(error) {
            Some(error) => Stop::Error(error),
            None => {
                script.differs("the tree");
                Stop::Fault(FaultKind::Image)
            }
        })
    }

    /// Writes down what the device answered.
    pub(super) fn note_answer(&mut self, call: &HostCall, status: &Status) {
        let turn = &mut *self.0;
        let value = match status {
            Ok(length) => length_word(*length),
            Err(Stop::Error(error)) => error.code(),
            Err(Stop::Send(id)) => length_word(number_of(*id)),
            Err(Stop::More(_)) => 0,
            Err(Stop::Fault(_) | Stop::Wait(_) | Stop::Played(_)) => {
                turn.asks = Asks::Nothing;
                return;
            }
        };
        match core::mem::take(&mut turn.asks) {
            Asks::Nothing => {}
            Asks::Device { flash_bytes } => {
                let takes_event = matches!(call, HostCall::event_next { .. }) && value >= 0;
                let held = turn.parts.events.held(turn.machine.slot).filter(|_| takes_event);
                let given = Given {
                    value,
                    event: held.map(event_record),
                    more: matches!(status, Err(Stop::More(_))),
                    fuel: turn.extra_cost,
                    flash_bytes: turn.machine.usage.flash_bytes.saturating_sub(flash_bytes),
                };
                turn.machine.note(|| Record::Given(given));
            }
            Asks::Failure => {
                let is_failure = |error: &HostError| FAILURES.contains(error);
                if let Err(Stop::Error(error)) = status
                    && is_failure(error)
                {
                    let (calls, error) = (turn.machine.noted_calls(), error.code());
                    turn.machine.note(|| Record::Refused { calls, error });
                }
            }
        }
    }

    /// The time from the script, if the call asks for one and a journal is played; else the time is written down.
    pub(super) fn tell_time(&mut self, call: &HostCall) -> Option<Verdict> {
        let turn = &mut *self.0;
        match call {
            HostCall::uptime_us {} => {
                let Some(script) = &mut turn.parts.script else {
                    let us = turn.world.now.as_micros();
                    turn.machine.note(|| Record::Uptime(us));
                    return None;
                };
                let told = script.take_uptime();
                Some(told.map_or(Verdict::Fault(FaultKind::Image), |us| time(Some(us))))
            }
            HostCall::unix_time_s {} => {
                let Some(script) = &mut turn.parts.script else {
                    let known = turn.world.unix_time.map(|unix| unix.seconds);
                    let seconds = known.and_then(|seconds| i64::try_from(seconds).ok());
                    turn.machine.note(|| Record::Unix(seconds.unwrap_or(-1)));
                    return None;
                };
                let told = script.take_unix();
                let told = told.map(|seconds| time(u64::try_from(seconds).ok()));
                Some(told.unwrap_or(Verdict::Fault(FaultKind::Image)))
            }
            _ => None,
        }
    }

    /// Fills `bytes` from the script; `false` if no journal is played.
    pub(super) fn play_random(&mut self, bytes: &mut [u8]) -> Result<bool, Stop> {
        let Some(script) = &mut self.0.parts.script else { return Ok(false) };
        match script.take_random(bytes) {
            true => Ok(true),
            false => Err(Stop::Fault(FaultKind::Image)),
        }
    }

    /// Writes down random bytes that were drawn.
    pub(super) fn note_random(&mut self, bytes: &[u8]) {
        let turn = &mut *self.0;
        turn.machine.note(|| Record::Random(bytes.to_vec()));
    }

    /// Writes down the answer that the machine is about to get, if it waited for one.
    pub(crate) fn note_woken(&mut self) {
        let turn = &mut *self.0;
        let (parts, machine) = (&*turn.parts, &mut *turn.machine);
        if machine.journal.is_none() {
            return;
        }
        let Some(woken) = &machine.woken else { return };
        let wait = machine.noted_wait();
        let takes_event = matches!(wait, Some(Wait::Event(_)) | None);
        let takes_bytes = !matches!(wait, Some(Wait::Event(_) | Wait::Until(_)));
        let held = parts.events.held(machine.slot);
        let event = held.filter(|_| takes_event && woken.status.is_some_and(|status| status >= 0));
        let copied = woken.copy.as_ref().map(|(_, bytes)| bytes.to_vec());
        let woken = Woken {
            at_ms: turn.world.now.as_millis(),
            status: woken.status,
            bytes: copied.or_else(|| takes_bytes.then(|| machine.call_result.clone())),
            event: event.map(event_record),
        };
        machine.note(|| Record::Woken(woken));
    }

    /// How many records were taken of the journal that is played; 0 if none is.
    pub(crate) fn records_taken(&self) -> u64 {
        self.0.parts.script.as_ref().map_or(0, |script| script.taken)
    }
}
