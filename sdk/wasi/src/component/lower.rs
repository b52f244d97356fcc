//! Values as the canonical ABI of the component model lays them out in the program's memory.
//!
//! Offsets follow from its rules ("Canonical ABI", `alignment` and `elem_size`): a variant's case is its first byte, and the
//! payload begins at a multiple of the largest alignment among all cases. What can't be written traps, as it does there.

use core::arch::wasm32::unreachable;

use crate::errno::Errno;
use crate::user::{Range, put};

#[link(wasm_import_module = "merger")]
unsafe extern "C" {
    /// The program's `cabi_realloc`.
    pub(crate) safe fn realloc(old: u32, old_bytes: u32, alignment: u32, bytes: u32) -> u32;
}

/// Room in the program's memory, which is the program's from then on; none is asked for nothing.
pub(crate) fn allocate(bytes: u32, alignment: u32) -> u32 {
    if bytes == 0 { alignment } else { realloc(0, 0, alignment, bytes) }
}

/// The value, or a trap.
pub(crate) fn must<T>(result: Result<T, Errno>) -> T {
    match result {
        Ok(value) => value,
        Err(_) => unreachable(),
    }
}

/// The place `offset` bytes behind.
pub(crate) fn behind(address: u32, offset: u32) -> u32 {
    address.wrapping_add(offset)
}

pub(crate) fn put_byte(address: u32, byte: u8) {
    must(put(address, [byte]));
}

pub(crate) fn put_word(address: u32, word: u32) {
    must(put(address, word.to_le_bytes()));
}

pub(crate) fn put_long(address: u32, long: u64) {
    must(put(address, long.to_le_bytes()));
}

/// Where a list lies and how many items it has: the two words of it.
pub(crate) fn put_list(address: u32, start: u32, count: u32) {
    put_word(address, start);
    put_word(behind(address, 4), count);
}

/// A `string` or `list<u8>` of its own.
pub(crate) fn put_bytes(address: u32, bytes: &[u8]) {
    let length = bytes.len() as u32;
    let start = allocate(length, 1);
    must(Range::new(start, length)).write(bytes);
    put_list(address, start, length);
}

/// The case of a `result<T, error-code>`, and the error, which lies where a value would: `offset` bytes behind.
pub(crate) fn settle(into: u32, offset: u32, result: Result<(), Errno>) {
    match result {
        Ok(()) => put_byte(into, 0),
        Err(error) => {
            put_byte(into, 1);
            put_byte(behind(into, offset), error_code(error));
        }
    }
}

/// The case of an `error-code` of `wasi:filesystem/types` 0.2 that an error is.
pub(crate) fn error_code(error: Errno) -> u8 {
    match error {
        Errno::BADF | Errno::NOTSOCK => 3,
        Errno::DQUOT => 6,
        Errno::EXIST => 7,
        Errno::FBIG => 8,
        Errno::ILSEQ => 9,
        Errno::FAULT | Errno::INVAL => 12,
        Errno::ISDIR => 14,
        Errno::LOOP => 15,
        Errno::NAMETOOLONG => 18,
        Errno::NOENT => 20,
        Errno::MFILE | Errno::NFILE => 22,
        Errno::NOSPC => 23,
        Errno::NOTDIR => 24,
        Errno::NOTEMPTY => 25,
        Errno::NOTSUP => 27,
        Errno::OVERFLOW => 30,
        Errno::PERM | Errno::NOTCAPABLE => 31,
        Errno::SPIPE => 34,
        _ => 13,
    }
}

/// The number by which a program knows a resource that is a descriptor here: no number is 0.
pub(crate) fn handle(fd: u32) -> u32 {
    fd + 1
}

/// The descriptor that a resource is; what is none is a descriptor that isn't open.
pub(crate) fn descriptor(handle: u32) -> u32 {
    handle.wrapping_sub(1)
}

/// Writes the handle of a terminal, in an option. Streams are terminals, so that lines go out when they end.
pub(crate) fn put_terminal(fd: u32, into: u32) {
    put_byte(into, 1);
    put_word(behind(into, 4), handle(fd));
}
