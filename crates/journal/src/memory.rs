//! The memory that writer and reader of a page share, so that the next record is short.

use alloc::string::String;
use alloc::vec::Vec;

use tenure_wire::PublicKey;

use crate::record::Task;

/// How many texts and callers a page numbers; those beyond, and long texts, are spelled out each time.
const TEXTS_MAX: usize = 64;
const CALLERS_MAX: usize = 16;
/// The longest text or parameter that is remembered, in bytes: it bounds what a short record can mean.
const REMEMBERED_BYTES_MAX: usize = 64;

/// Remembered records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The last time that is known, in microseconds since boot.
    pub(crate) at_us: u64,
    /// The last time of day, in seconds since 1970 UTC.
    pub(crate) unix_s: i64,
    texts: Vec<String>,
    callers: Vec<PublicKey>,
    calls: Vec<Call>,
}

/// The last call of a function.
#[derive(Clone, Debug)]
struct Call {
    function: String,
    caller: Option<PublicKey>,
    parameter: Option<Vec<u8>>,
}

/// Where a text or a caller stands among those that were met.
pub(crate) enum Met {
    /// It was met before, under this number.
    Before(usize),
    /// It is new, and spelled out behind this number.
    New(usize),
}

impl Memory {
    /// The number of a text, which is remembered.
    pub(crate) fn meet_text(&mut self, text: &str) -> Met {
        if text.len() > REMEMBERED_BYTES_MAX {
            return Met::New(self.texts.len());
        }
        meet(&mut self.texts, |known| known == text, || text.into(), TEXTS_MAX)
    }

    /// The number of a caller, who is remembered.
    pub(crate) fn meet_caller(&mut self, caller: &PublicKey) -> Met {
        meet(&mut self.callers, |known| known == caller, || *caller, CALLERS_MAX)
    }

    /// The text of that number; `Err` if a new one stands behind the number, `None` if there is none.
    pub(crate) fn text(&self, number: u64) -> Option<Result<String, ()>> {
        known(&self.texts, number)
    }

    /// The caller of that number, as [`Memory::text`].
    pub(crate) fn caller(&self, number: u64) -> Option<Result<PublicKey, ()>> {
        known(&self.callers, number)
    }

    /// Takes note of a time in milliseconds; returns it less the last known one.
    pub(crate) fn pass_ms(&mut self, at_ms: u64) -> u64 {
        let span = at_ms.wrapping_sub(self.at_us / 1000);
        self.set_ms(at_ms);
        span
    }

    /// The time so many milliseconds after the last known one.
    pub(crate) fn after_ms(&mut self, span: u64) -> u64 {
        let at_ms = (self.at_us / 1000).wrapping_add(span);
        self.set_ms(at_ms);
        at_ms
    }

    fn set_ms(&mut self, at_ms: u64) {
        if self.at_us / 1000 != at_ms {
            self.at_us = at_ms.saturating_mul(1000);
        }
    }

    /// Whether `task` is called as its function was last.
    pub(crate) fn repeats(&self, task: &Task) -> bool {
        task.callback_of.is_none()
            && task.event.is_none()
            && self.last_of(&task.function).is_some_and(|(caller, parameter)| {
                (caller, &parameter) == (task.caller, &task.parameter)
            })
    }

    /// Caller and parameter of the last call of a function.
    pub(crate) fn last_of(&self, function: &str) -> Option<(Option<PublicKey>, Option<Vec<u8>>)> {
        let call = self.calls.iter().find(|call| call.function == function)?;
        Some((call.caller, call.parameter.clone()))
    }

    /// Remembers how the function of `task` was called.
    pub(crate) fn remember(&mut self, task: &Task) {
        let length = task.parameter.as_ref().map_or(0, Vec::len).max(task.function.len());
        if task.callback_of.is_some() || task.event.is_some() || length > REMEMBERED_BYTES_MAX {
            return;
        }
        let Task { function, caller, parameter, .. } = task.clone();
        let call = Call { function, caller, parameter };
        match self.calls.iter().position(|known| known.function == call.function) {
            Some(number) => self.calls[number] = call,
            None if self.calls.len() < TEXTS_MAX => self.calls.push(call),
            None => {}
        }
    }
}

fn meet<T>(
    list: &mut Vec<T>,
    is_it: impl Fn(&T) -> bool,
    make: impl FnOnce() -> T,
    most: usize,
) -> Met {
    if let Some(number) = list.iter().position(is_it) {
        return Met::Before(number);
    }
    let number = list.len();
    if number < most {
        list.push(make());
    }
    Met::New(number)
}

fn known<T: Clone>(list: &[T], number: u64) -> Option<Result<T, ()>> {
    match usize::try_from(number).ok()? {
        number if number == list.len() => Some(Err(())),
        number => list.get(number).cloned().map(Ok),
    }
}
