//! Values that come from standard input.

use std::io::Read;

use anyhow::{Context as _, ensure};

/// What standard input holds, at most `limit` bytes of it. The command before a pipe that failed leaves nothing there, so
/// an input of no bytes is no value: `empty_is` says how an empty one is given.
///
/// # Errors
/// Nothing came, or it can't be read.
pub fn value(limit: usize, empty_is: &str) -> anyhow::Result<Vec<u8>> {
    value_of(&mut std::io::stdin(), limit, empty_is)
}

fn value_of(input: &mut impl Read, limit: usize, empty_is: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(limit as u64).read_to_end(&mut bytes).context("standard input")?;
    ensure!(!bytes.is_empty(), "nothing came by standard input; {empty_is}");
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_of_no_bytes_is_refused_with_the_way_to_give_an_empty_value() {
        let refused = value_of(&mut &b""[..], 8, "say `\"\"`").unwrap_err().to_string();
        assert_eq!(refused, "nothing came by standard input; say `\"\"`");
        assert_eq!(value_of(&mut &b"\n"[..], 8, "").unwrap(), b"\n");
        assert_eq!(value_of(&mut &b"longer than that"[..], 6, "").unwrap(), b"longer");
    }
}
