//! `poll_oneoff`: waits for a clock. Streams and files are always ready.

use crate::clock;
use crate::errno::Errno;
use crate::user::{item, put, put_word, take, word};

/// A `subscription`: whose, of which kind, and what of it.
const SUBSCRIPTION_BYTES: u32 = 48;
/// An `event`: whose, an error, of which kind, and how many bytes are ready.
const EVENT_BYTES: u32 = 32;
const KIND_CLOCK: u8 = 0;
const KIND_WRITE: u8 = 2;
/// The time of a `subscription_clock` is one of the clock's, and not from now on.
const ABSOLUTE: u16 = 1;

/// The offsets in a `subscription`.
const AT_KIND: u32 = 8;
const AT_ID: u32 = 16;
const AT_TIMEOUT: u32 = 24;
const AT_FLAGS: u32 = 40;

/// Waits until one of the subscriptions' events has come; writes all that have. `is_open` says whether a descriptor is.
pub(crate) fn wait(
    subscriptions: u32,
    events: u32,
    count: u32,
    happened: u32,
    is_open: impl Fn(u32) -> bool,
) -> Result<(), Errno> {
    if count == 0 {
        return Err(Errno::INVAL);
    }
    let mut written = 0;
    let mut first: Option<u64> = None;
    for index in 0..count {
        let at = item(subscriptions, index, SUBSCRIPTION_BYTES)?;
        let [kind] = take(at + AT_KIND)?;
        match kind {
            KIND_CLOCK => match timeout(at) {
                Ok(0) => {
                    event(events, &mut written, at, kind, None)?;
                    first = Some(0);
                }
                Ok(timeout) => first = Some(first.map_or(timeout, |first| first.min(timeout))),
                Err(error) => event(events, &mut written, at, kind, Some(error))?,
            },
            kind if kind <= KIND_WRITE => {
                let error = (!is_open(word(at + AT_ID)?)).then_some(Errno::BADF);
                event(events, &mut written, at, kind, error)?;
            }
            _ => return Err(Errno::INVAL),
        }
    }
    if let Some(first) = first
        && written == 0
    {
        for index in 0..count {
            let at = item(subscriptions, index, SUBSCRIPTION_BYTES)?;
            let [kind] = take(at + AT_KIND)?;
            if kind == KIND_CLOCK && timeout(at).is_ok_and(|timeout| timeout <= first) {
                event(events, &mut written, at, kind, None)?;
            }
        }
        clock::sleep(first);
    }
    put_word(happened, written)
}

/// Nanoseconds until the clock of a subscription is there.
fn timeout(at: u32) -> Result<u64, Errno> {
    let timeout = u64::from_le_bytes(take(at + AT_TIMEOUT)?);
    if u16::from_le_bytes(take(at + AT_FLAGS)?) & ABSOLUTE == 0 {
        return Ok(timeout);
    }
    let now = clock::now(word(at + AT_ID)?)?;
    Ok(timeout.saturating_sub(now))
}

fn event(
    events: u32,
    written: &mut u32,
    subscription: u32,
    kind: u8,
    error: Option<Errno>,
) -> Result<(), Errno> {
    let mut bytes = [0; EVENT_BYTES as usize];
    let whose: [u8; 8] = take(subscription)?;
    bytes[..8].copy_from_slice(&whose);
    bytes[8..10].copy_from_slice(&error.map_or(0, |error| error.0).to_le_bytes());
    bytes[10] = kind;
    // How many bytes are ready isn't known, and one is enough to read or write.
    bytes[16] = u8::from(kind != KIND_CLOCK);
    put(item(events, *written, EVENT_BYTES)?, bytes)?;
    *written += 1;
    Ok(())
}
