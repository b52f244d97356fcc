//! The machine itself, its peers, time and chance, and its end.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::calls::milliseconds;
use crate::status::{length, optional, read_whole_into};
use crate::{Error, PublicKey, host};

/// This machine's public key.
///
/// # Errors
/// [`Error::Device`].
pub fn public_key() -> Result<PublicKey, Error> {
    // SAFETY: `read_key` gives room for what the host writes.
    read_key(|into, capacity| unsafe { host::public_key(into, capacity) }).and_then(there)
}

/// The public key of the machine that made the call being served; `None` if the device itself did.
///
/// # Errors
/// [`Error::Device`].
pub fn caller() -> Result<Option<PublicKey>, Error> {
    // SAFETY: `read_key` gives room for what the host writes.
    read_key(|into, capacity| unsafe { host::caller(into, capacity) })
}

/// The public key of the machine that `target` names (see [`call`](crate::call)), or `None` if
/// nobody knows it. Waits for the directory if need be.
///
/// # Errors
/// [`Error::Invalid`] if it is no target, [`Error::Unreachable`] if the directory is away.
pub fn resolve(target: &str) -> Result<Option<PublicKey>, Error> {
    let key = read_key(|into, capacity| {
        // SAFETY: the text lives until the call returns, and `read_key` gives room for what the
        // host writes.
        unsafe { host::resolve(target.as_ptr(), target.len(), into, capacity) }
    });
    optional(key.and_then(there))
}

fn read_key(read: impl Fn(*mut u8, usize) -> i32) -> Result<Option<PublicKey>, Error> {
    let mut key = [0; 32];
    let written = length(read(key.as_mut_ptr(), key.len()))?;
    Ok((written == key.len()).then_some(PublicKey(key)))
}

fn there(key: Option<PublicKey>) -> Result<PublicKey, Error> {
    key.ok_or(Error::NotFound)
}

/// Which machines [`peers`] lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Which {
    /// Those on this device.
    Local = 1,
    /// Those on other devices.
    Remote = 2,
    /// Both.
    All = 3,
}

/// The machines that this device knows.
///
/// # Errors
/// [`Error::Denied`] if this machine may not know.
pub fn peers(which: Which) -> Result<Vec<PublicKey>, Error> {
    // Each host call costs a message: room for more than a device knows as a rule.
    let room = vec![0; 16 * 32];
    // SAFETY: pointer and capacity are of a slice that lives until the call returns.
    let keys = read_whole_into(room, |into| unsafe {
        host::peers(which as u32, into.as_mut_ptr(), into.len())
    })?;
    let (keys, _) = keys.as_chunks::<32>();
    Ok(keys.iter().copied().map(PublicKey).collect())
}

/// The time since the device booted.
pub fn uptime() -> Duration {
    // SAFETY: the call takes nothing and only returns a number.
    Duration::from_micros(unsafe { host::uptime_us() }.unsigned_abs())
}

/// The time since 1970-01-01 00:00 UTC, in whole seconds; `None` if the device doesn't know.
pub fn unix_time() -> Option<Duration> {
    // SAFETY: the call takes nothing and only returns a number.
    let seconds = unsafe { host::unix_time_s() };
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// Waits for `duration`, at most 49 days, while other machines run.
pub fn sleep(duration: Duration) {
    // SAFETY: the call takes a number and touches no memory.
    unsafe { host::sleep_ms(milliseconds(duration)) }
}

/// Lets other machines run.
pub fn yield_now() {
    // SAFETY: the call touches no memory.
    unsafe { host::yield_now() }
}

/// Asks for a higher tier for a critical section, on a device that shares the processor by tiers. It
/// counts from this machine's next turn on, until `fuel` is used, or the task ends, or the tier is set
/// back with tier 0; a fifth of its fuel a machine can use so. Gives the tier that it has then, the
/// usual one if there is no fuel left for critical sections.
///
/// # Errors
/// [`Error::NotGranted`] if the lease grants no tier as high.
pub fn raise_tier(tier: u32, fuel: u32) -> Result<u32, Error> {
    // SAFETY: the call takes numbers and touches no memory.
    length(unsafe { host::raise_tier(tier, fuel) }).map(|tier| tier as u32)
}

/// The kinds of budget that a machine spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Budget {
    /// Fuel, by the second.
    Fuel = 0,
    /// Bytes appended to flash, by the day.
    FlashBytes = 1,
    /// Messages, by the second.
    Messages = 2,
    /// The bytes of messages, by the second.
    MessageBytes = 3,
    /// Bytes in the tree.
    StoredBytes = 4,
    /// Places in the queue.
    Queue = 5,
}

/// The rest of a budget now; `None` if nothing limits it, or it is more than 2 GiB.
pub fn budget_left(budget: Budget) -> Option<usize> {
    // SAFETY: the call takes a number and touches no memory.
    let left = unsafe { host::budget_left(budget as u32) };
    usize::try_from(left).ok().filter(|_| left != i32::MAX)
}

/// Fills `into` with random bytes fit for keys.
///
/// # Errors
/// [`Error::Device`] if the device has none.
pub fn random(into: &mut [u8]) -> Result<(), Error> {
    // SAFETY: pointer and capacity are of a slice that lives until the call returns.
    length(unsafe { host::random(into.as_mut_ptr(), into.len()) }).map(|_| ())
}

/// Ends the call being served as failed and stops the machine, with `message` in its log.
pub fn abort(message: &str) -> ! {
    // SAFETY: pointer and length are of a slice that lives until the call returns.
    unsafe { host::abort(message.as_ptr(), message.len()) }
    end()
}

#[cfg(target_arch = "wasm32")]
fn end() -> ! {
    core::arch::wasm32::unreachable()
}

#[cfg(target_os = "none")]
fn end() -> ! {
    crate::native::end()
}

#[cfg(not(any(target_arch = "wasm32", target_os = "none")))]
fn end() -> ! {
    panic!("the machine was stopped")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for Error {}

#[cfg(all(any(target_arch = "wasm32", target_os = "none"), not(test)))]
#[panic_handler]
fn panic(information: &core::panic::PanicInfo<'_>) -> ! {
    use core::fmt::Write as _;
    let mut line = crate::log::Line::default();
    let _ = write!(line, "{information}");
    abort(line.as_str())
}
