//! The datagrams that a socket had no room for: the system counts them, and `getsockopt` tells.

use std::mem;
use std::os::fd::{AsFd, AsRawFd as _};

/// The numbers of `SO_MEMINFO` (linux/sock_diag.h): as many as there are, and the place of the dropped ones.
const NUMBERS: usize = 9;
const DROPPED: usize = libc::SK_MEMINFO_DROPS as usize;

/// How many datagrams the socket dropped since it was opened, modulo 2³²; `None` where the system doesn't tell.
pub(crate) fn dropped(socket: impl AsFd) -> Option<u32> {
    let mut numbers = [0_u32; NUMBERS];
    let mut length = mem::size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and the system writes `length` bytes at the most to
    // `numbers`, which are plain numbers whatever it writes.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let is_told = done == 0 && length as usize >= (DROPPED + 1) * mem::size_of::<u32>();
    is_told.then(|| numbers[DROPPED])
}
