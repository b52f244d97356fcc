//! `wasi:io/poll`: a program waits for clocks; all else is ready at once.

use core::arch::wasm32::unreachable;
use core::cell::UnsafeCell;

use super::lower::{allocate, must, put_list, put_word};
use crate::clock;
use crate::stdio;
use crate::user::{item, word};

/// The pollable that is ready.
pub(crate) const READY: u32 = 1;
/// The first one that waits for a clock.
const FIRST_TIMER: u32 = 2;
/// The most that wait for clocks at once.
const TIMERS_MAX: usize = 16;
/// No time: the place is free.
const FREE: u64 = 0;

struct Single(UnsafeCell<[u64; TIMERS_MAX]>);

// SAFETY: a machine has one thread.
unsafe impl Sync for Single {}

/// When each is ready, in nanoseconds since the device's start.
static TIMERS: Single = Single(UnsafeCell::new([FREE; TIMERS_MAX]));

fn timers() -> &'static mut [u64; TIMERS_MAX] {
    // SAFETY: no caller keeps it, and none of them calls another.
    unsafe { &mut *TIMERS.0.get() }
}

/// As a program finds them when it begins: there are none.
pub(crate) fn begin() {
    *timers() = [FREE; TIMERS_MAX];
}

/// A pollable that is ready at a time since the device's start.
pub(crate) fn at(nanoseconds: u64) -> u32 {
    let place = timers().iter().position(|timer| *timer == FREE);
    let Some(place) = place else {
        stdio::complain(b"more than 16 clocks are waited for");
        unreachable()
    };
    if let Some(timer) = timers().get_mut(place) {
        *timer = nanoseconds.max(FREE + 1);
    }
    FIRST_TIMER + place as u32
}

/// A pollable that is ready after a time.
pub(crate) fn after(nanoseconds: u64) -> u32 {
    at(clock::since_boot().saturating_add(nanoseconds))
}

/// Nanoseconds from `now` until it is ready.
fn left(pollable: u32, now: u64) -> u64 {
    let place = pollable.wrapping_sub(FIRST_TIMER) as usize;
    match timers().get(place) {
        Some(time) if pollable >= FIRST_TIMER => time.saturating_sub(now),
        _ => 0,
    }
}

pub(crate) fn is_ready(pollable: u32) -> bool {
    left(pollable, clock::since_boot()) == 0
}

/// Waits until it is ready, while other machines run.
pub(crate) fn block(pollable: u32) {
    clock::sleep(left(pollable, clock::since_boot()));
}

/// Waits until one of those in a list is ready; writes which are, as a list of places. Of none, none can ever be: that traps
/// ("poll", wasi:io 0.2).
pub(crate) fn poll(list: u32, count: u32, into: u32) {
    let now = clock::since_boot();
    let left = |index| left(must(item(list, index, 4).and_then(word)), now);
    let Some(first) = (0..count).map(left).min() else { unreachable() };
    clock::sleep(first);
    let are_ready = || (0..count).filter(|index| left(*index) <= first);
    let ready = are_ready().count() as u32;
    let start = allocate(4 * ready, 4);
    for (place, index) in (0..).zip(are_ready()) {
        put_word(must(item(start, place, 4)), index);
    }
    put_list(into, start, ready);
}

pub(crate) fn drop(pollable: u32) {
    let place = pollable.wrapping_sub(FIRST_TIMER) as usize;
    if pollable >= FIRST_TIMER
        && let Some(timer) = timers().get_mut(place)
    {
        *timer = FREE;
    }
}
