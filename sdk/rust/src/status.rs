//! From the numbers that host calls return to results.

use alloc::vec::Vec;

use crate::Error;

/// The length or count that a host call returned, or the error.
pub(crate) fn length(status: i32) -> Result<usize, Error> {
    usize::try_from(status).map_err(|_| Error::from_code(status))
}

/// `None` if what was asked for isn't there.
pub(crate) fn optional<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// All of what `read` copies: it fills what it is given as far as there is something, and says how
/// much there is. What grows between two attempts is asked for again.
pub(crate) fn read_whole(read: impl Fn(&mut [u8]) -> i32) -> Result<Vec<u8>, Error> {
    read_whole_into(Vec::new(), read)
}

/// As [`read_whole`], beginning with the length of `bytes`, for calls that cost more than their answer.
pub(crate) fn read_whole_into(
    mut bytes: Vec<u8>,
    read: impl Fn(&mut [u8]) -> i32,
) -> Result<Vec<u8>, Error> {
    loop {
        let whole = length(read(&mut bytes))?;
        if whole <= bytes.len() {
            bytes.truncate(whole);
            return Ok(bytes);
        }
        bytes.resize(whole, 0);
    }
}
