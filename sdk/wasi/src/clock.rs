//! Clocks, randomness and the end of a turn.

use crate::errno::Errno;
use crate::host;
use crate::user::{Range, put};

const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;
const PROCESS_TIME: u32 = 2;
const THREAD_TIME: u32 = 3;
pub(crate) const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;
pub(crate) const NANOSECONDS_PER_MICROSECOND: u64 = 1_000;
/// The most bytes that one host call fills.
const RANDOM_BYTES_MAX: u32 = 65_536;

/// Nanoseconds on a clock. The time of day counts in seconds, and is an error as long as the device doesn't know it; all other
/// clocks count since the device's start.
pub(crate) fn now(clock: u32) -> Result<u64, Errno> {
    match clock {
        REALTIME => unix_time().ok_or(Errno::INVAL),
        MONOTONIC | PROCESS_TIME | THREAD_TIME => Ok(since_boot()),
        _ => Err(Errno::INVAL),
    }
}

/// Nanoseconds since 1970, if the device knows.
pub(crate) fn unix_time() -> Option<u64> {
    // SAFETY: it takes nothing.
    let seconds = unsafe { host::unix_time_s() };
    Some(u64::try_from(seconds).ok()?.saturating_mul(NANOSECONDS_PER_SECOND))
}

/// Nanoseconds since the device's start.
pub(crate) fn since_boot() -> u64 {
    // SAFETY: it takes nothing.
    let microseconds = unsafe { host::uptime_us() };
    (microseconds as u64).saturating_mul(NANOSECONDS_PER_MICROSECOND)
}

/// Writes what a clock says.
pub(crate) fn time(clock: u32, into: u32) -> Result<(), Errno> {
    put(into, now(clock)?.to_le_bytes())
}

/// Writes how finely a clock counts.
pub(crate) fn resolution(clock: u32, into: u32) -> Result<(), Errno> {
    let nanoseconds = match clock {
        REALTIME => NANOSECONDS_PER_SECOND,
        MONOTONIC | PROCESS_TIME | THREAD_TIME => NANOSECONDS_PER_MICROSECOND,
        _ => return Err(Errno::INVAL),
    };
    put(into, nanoseconds.to_le_bytes())
}

/// Fills a part of the program's memory with random bytes.
pub(crate) fn random(address: u32, length: u32) -> Result<(), Errno> {
    let range = Range::new(address, length)?;
    let mut done = 0;
    while done < length {
        let part = range.part(done, RANDOM_BYTES_MAX);
        // SAFETY: the device checks the room.
        let code = unsafe { host::random(part.as_mut_ptr(), part.length() as usize) };
        if code < 0 {
            return Err(Errno::IO);
        }
        done += part.length();
    }
    Ok(())
}

/// Fills a buffer of this module's with random bytes.
#[cfg(feature = "components")]
pub(crate) fn random_bytes(into: &mut [u8]) -> Result<(), Errno> {
    // SAFETY: the room is there.
    let code = unsafe { host::random(into.as_mut_ptr(), into.len()) };
    if code < 0 { Err(Errno::IO) } else { Ok(()) }
}

/// Waits until so many nanoseconds have passed, while other machines run.
pub(crate) fn sleep(nanoseconds: u64) {
    const NANOSECONDS_PER_MILLISECOND: u64 = 1_000_000;
    let mut left = nanoseconds.div_ceil(NANOSECONDS_PER_MILLISECOND);
    while left > 0 {
        let part = u32::try_from(left).unwrap_or(u32::MAX);
        // SAFETY: it takes a number.
        unsafe { host::sleep_ms(part) };
        left -= u64::from(part);
    }
}

/// Lets the others run.
pub(crate) fn yield_now() {
    // SAFETY: it takes nothing.
    unsafe { host::yield_now() }
}
