//! The program's own host calls, as its component imports them (`tenure:machine/host`): results as the canonical ABI has them.
//!
//! A buffer that a call is to fill lies in the program's memory. What a call leaves empty is kept for the next one, since an
//! allocation can't be given back.

use core::cell::UnsafeCell;

use super::lower::{allocate, behind, put_byte, put_list, put_word, realloc};

/// Room that was allocated: where, and how many bytes.
struct Room {
    start: u32,
    bytes: u32,
}

struct Single(UnsafeCell<Room>);

// SAFETY: a machine has one thread.
unsafe impl Sync for Single {}

static ROOM: Single = Single(UnsafeCell::new(Room { start: 0, bytes: 0 }));

fn room() -> &'static mut Room {
    // SAFETY: no caller keeps it, and none of them calls another.
    unsafe { &mut *ROOM.0.get() }
}

/// As a program finds it when it begins: there is no room.
pub(crate) fn begin() {
    *room() = Room { start: 0, bytes: 0 };
}

/// Room for so many bytes; where it is.
pub(crate) fn take(bytes: u32) -> u32 {
    let Room { start, bytes: there } = *room();
    if bytes > there {
        *room() = Room { start: realloc(start, there, 1, bytes), bytes };
    }
    room().start
}

/// Writes the result of a call that filled `capacity` bytes of the room: `result<filled, error>`. `is_whole` says whether it
/// fills them all and returns something else than how many.
pub(crate) fn put_filled(status: i32, capacity: u32, is_whole: bool, into: u32) {
    const AT: u32 = 4;
    let Ok(number) = u32::try_from(status) else { return put_status(status, into) };
    let length = if is_whole { capacity } else { number.min(capacity) };
    let Room { start, bytes } = *room();
    let start = match length {
        0 => allocate(0, 1),
        length => {
            *room() = Room { start: 0, bytes: 0 };
            if length < bytes { realloc(start, bytes, 1, length) } else { start }
        }
    };
    put_byte(into, 0);
    put_list(behind(into, AT), start, length);
    put_word(behind(into, AT + 8), number);
}

/// Writes the result of another call: `result<u32, error>`. Errors are numbered from -1 downwards, and cases from 0 upwards.
pub(crate) fn put_status(status: i32, into: u32) {
    const AT: u32 = 4;
    match u32::try_from(status) {
        Ok(number) => {
            put_byte(into, 0);
            put_word(behind(into, AT), number);
        }
        Err(_) => {
            put_byte(into, 1);
            put_byte(behind(into, AT), (-1 - status) as u8);
        }
    }
}
