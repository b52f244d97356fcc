//! The call being served, and calls of other machines.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::status::{length, optional};
use crate::{Error, host};

/// The parameter of the call being served.
pub(crate) fn parameter() -> Result<Option<Vec<u8>>, Error> {
    // SAFETY: the call takes nothing and only returns a number.
    let status = unsafe { host::parameter_length() };
    let read = |into: &mut [u8]| {
        // SAFETY: pointer and capacity are of a slice that lives until the call returns.
        unsafe { host::parameter_read(0, into.as_mut_ptr(), into.len()) }
    };
    optional(length(status))?.map(|whole| read_all(whole, read)).transpose()
}

/// Sets the result of the call being served.
pub(crate) fn reply(value: Option<&[u8]>) -> Result<(), Error> {
    let (pointer, bytes) = parts(value);
    // SAFETY: pointer and length are of a slice that lives until the call returns, or null.
    length(unsafe { host::reply(pointer, bytes) }).map(|_| ())
}

/// Calls `function` of the machine `target` and waits for its result; other machines run meanwhile.
///
/// Targets are `"name"` (on this device), `"name@device"`, `"#id"` or
/// `"#key"`, such as [`PublicKey::target`](crate::PublicKey::target) gives. A parameter or result
/// that is null is `None`.
///
/// # Errors
/// [`Error::Execution`] if the function failed, [`Error::NotFound`] if the machine or function isn't
/// there, and so on.
///
/// ```no_run
/// # fn main() -> Result<(), tenure::Error> {
/// let reading = tenure::call("thermostat@attic", "read", None)?;
/// # Ok(()) }
/// ```
pub fn call(
    target: &str,
    function: &str,
    parameter: Option<&[u8]>,
) -> Result<Option<Vec<u8>>, Error> {
    call_in_ms(target, function, parameter, 0)
}

/// After the last [`call`] failed by [`Error::Stopped`] or [`Error::Asleep`]: how long to wait before
/// another one, if that is known.
pub fn retry_after() -> Option<Duration> {
    let mut digits = [0; 20];
    // SAFETY: pointer and capacity are of a slice that lives until the call returns.
    let status = unsafe { host::result_read(0, digits.as_mut_ptr(), digits.len()) };
    let digits = core::str::from_utf8(digits.get(..length(status).ok()?)?).ok()?;
    Some(Duration::from_millis(digits.parse().ok()?))
}

/// After the last [`call`] failed by [`Error::Execution`] or [`Error::Overspent`]: what the called machine
/// says of it, in its own words, 512 bytes at most. `None` if it doesn't tell its callers
/// (`errors = "callers"` in its `tenure.toml`).
pub fn failure_text() -> Option<String> {
    let mut text = [0; 512];
    // SAFETY: pointer and capacity are of a slice that lives until the call returns.
    let status = unsafe { host::result_read(0, text.as_mut_ptr(), text.len()) };
    let text = text.get(..length(status).ok()?).filter(|text| !text.is_empty())?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// As [`call`], but gives up after `deadline` (at most 49 days).
///
/// # Errors
/// As [`call`], and [`Error::Deadline`].
pub fn call_with_deadline(
    target: &str,
    function: &str,
    parameter: Option<&[u8]>,
    deadline: Duration,
) -> Result<Option<Vec<u8>>, Error> {
    call_in_ms(target, function, parameter, milliseconds(deadline).max(1))
}

fn call_in_ms(
    target: &str,
    function: &str,
    parameter: Option<&[u8]>,
    deadline_ms: u32,
) -> Result<Option<Vec<u8>>, Error> {
    let (pointer, bytes) = parts(parameter);
    // SAFETY: each pointer and length is of a slice that lives until the call returns, or null.
    let status = unsafe {
        host::call(
            target.as_ptr(),
            target.len(),
            function.as_ptr(),
            function.len(),
            pointer,
            bytes,
            deadline_ms,
        )
    };
    let read = |into: &mut [u8]| {
        // SAFETY: pointer and capacity are of a slice that lives until the call returns.
        unsafe { host::result_read(0, into.as_mut_ptr(), into.len()) }
    };
    match length(status) {
        Ok(whole) => read_all(whole, read).map(Some),
        Err(Error::Null) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A call to be queued, and what to do when it is done. Made by [`queue`].
///
/// ```no_run
/// # fn main() -> Result<(), tenure::Error> {
/// tenure::queue("logger@hub", "append")
///     .parameter(b"door opened")
///     .on_failure("keep_for_later")
///     .retries(5)
///     .send()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a task is queued by `send`"]
pub struct Task<'a> {
    target: &'a str,
    function: &'a str,
    parameter: Option<&'a [u8]>,
    on_success: &'a str,
    on_failure: &'a str,
    deadline_ms: u32,
    retries: u32,
}

/// Describes a call of `function` of the machine `target` (see [`call`]), to be queued by
/// [`Task::send`]. However often it is sent, it runs at most once.
pub fn queue<'a>(target: &'a str, function: &'a str) -> Task<'a> {
    Task {
        target,
        function,
        parameter: None,
        on_success: "",
        on_failure: "",
        deadline_ms: 0,
        retries: 0,
    }
}

impl<'a> Task<'a> {
    /// The parameter; without this, it is null.
    pub fn parameter(self, parameter: &'a [u8]) -> Self {
        Self { parameter: Some(parameter), ..self }
    }

    /// The function of this machine to call with the result.
    pub fn on_success(self, function: &'a str) -> Self {
        Self { on_success: function, ..self }
    }

    /// The function of this machine to call with the reason, once it failed for good.
    pub fn on_failure(self, function: &'a str) -> Self {
        Self { on_failure: function, ..self }
    }

    /// When to give up (at most 49 days); without this, the device's default.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline_ms: milliseconds(deadline).max(1), ..self }
    }

    /// How often to try again to reach the target.
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Queues the call and gives its number.
    ///
    /// # Errors
    /// [`Error::QueueBudget`] if too many are under way, [`Error::MessageBudget`] if too many were sent in
    /// the last second, and so on.
    pub fn send(self) -> Result<u32, Error> {
        let (pointer, bytes) = parts(self.parameter);
        // SAFETY: each pointer and length is of a slice that lives until the call returns, or null.
        let status = unsafe {
            host::queue(
                self.target.as_ptr(),
                self.target.len(),
                self.function.as_ptr(),
                self.function.len(),
                pointer,
                bytes,
                self.on_success.as_ptr(),
                self.on_success.len(),
                self.on_failure.as_ptr(),
                self.on_failure.len(),
                self.deadline_ms,
                self.retries,
            )
        };
        length(status).map(|number| number as u32)
    }
}

/// The number of the queued call whose callback is being served, as [`Task::send`] gave it.
pub fn callback_of() -> Option<u32> {
    // SAFETY: the call takes nothing and only returns a number.
    length(unsafe { host::callback_of() }).ok().map(|number| number as u32)
}

/// A value as the host takes it; the pointer of an empty slice isn't null.
pub(crate) fn parts(value: Option<&[u8]>) -> (*const u8, usize) {
    value.map_or((core::ptr::null(), 0), |value| (value.as_ptr(), value.len()))
}

pub(crate) fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// The bytes that `read` copies, of `whole` bytes.
fn read_all(whole: usize, read: impl Fn(&mut [u8]) -> i32) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; whole];
    let copied = length(read(&mut bytes))?;
    bytes.truncate(copied);
    Ok(bytes)
}
