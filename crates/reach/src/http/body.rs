//! The body of a response, taken out of its framing (RFC 9112 §6, §7.1).

use super::BadResponse;

/// The longest line with a chunk's size and extensions, and the longest trailer, in bytes.
const LINE_BYTES_MAX: usize = 1024;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none.
    None,
    /// After so many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Body(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many bytes follow.
    Plain(u64),
    UntilClose,
    /// A chunk's size follows.
    Size,
    /// So many bytes of a chunk follow, then the end of a line.
    Chunk(u64),
    /// The end of the line behind a chunk follows.
    ChunkEnd,
    /// Fields behind the last chunk, and an empty line.
    Trailer,
    Over,
}

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::None | Framing::Length(0) => State::Over,
            Framing::Length(length) => State::Plain(length),
            Framing::Chunked => State::Size,
            Framing::UntilClose => State::UntilClose,
        })
    }

    /// Whether all of it was taken.
    pub(crate) fn is_over(&self) -> bool {
        self.0 == State::Over
    }

    /// Moves what there is of the body in `received` to `into`, as many as `room` bytes, and drops what frames it. What is
    /// left waits for more bytes or more room.
    ///
    /// # Errors
    /// The chunks are malformed, or a line of theirs is too long.
    pub(crate) fn take(
        &mut self,
        received: &mut Vec<u8>,
        into: &mut Vec<u8>,
        mut room: usize,
    ) -> Result<(), BadResponse> {
        let mut at = 0;
        loop {
            let rest = &received[at..];
            let (next, used) = match self.0 {
                State::Over => break,
                State::Plain(left) | State::Chunk(left) => {
                    let length =
                        rest.len().min(room).min(usize::try_from(left).unwrap_or(usize::MAX));
                    if length == 0 {
                        break;
                    }
                    into.extend(&rest[..length]);
                    room -= length;
                    let left = left - length as u64;
                    let next = match (self.0, left) {
                        (State::Chunk(_), 0) => State::ChunkEnd,
                        (State::Chunk(_), left) => State::Chunk(left),
                        (_, 0) => State::Over,
                        (_, left) => State::Plain(left),
                    };
                    (next, length)
                }
                State::UntilClose => {
                    let length = rest.len().min(room);
                    into.extend(&rest[..length]);
                    at += length;
                    break;
                }
                State::Size => match httparse::parse_chunk_size(rest) {
                    Ok(httparse::Status::Complete((used, 0))) => (State::Trailer, used),
                    Ok(httparse::Status::Complete((used, size))) => (State::Chunk(size), used),
                    Ok(httparse::Status::Partial) if rest.len() < LINE_BYTES_MAX => break,
                    _ => return Err(BadResponse::Malformed),
                },
                State::ChunkEnd => match rest {
                    [b'\r', b'\n', ..] => (State::Size, 2),
                    [] | [b'\r'] => break,
                    _ => return Err(BadResponse::Malformed),
                },
                State::Trailer => {
                    let mut fields = [httparse::EMPTY_HEADER; 16];
                    match httparse::parse_headers(rest, &mut fields) {
                        Ok(httparse::Status::Complete((used, _))) => (State::Over, used),
                        Ok(httparse::Status::Partial) if rest.len() < LINE_BYTES_MAX => break,
                        _ => return Err(BadResponse::Malformed),
                    }
                }
            };
            self.0 = next;
            at += used;
        }
        received.drain(..at);
        Ok(())
    }

    /// Takes the end of the connection.
    ///
    /// # Errors
    /// More was to come.
    pub(crate) fn close(&mut self) -> Result<(), BadResponse> {
        match self.0 {
            State::Over | State::UntilClose => {
                self.0 = State::Over;
                Ok(())
            }
            _ => Err(BadResponse::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `bytes` in pieces of `piece`, takes parts of `room`, and returns the body and what was left.
    fn taken(
        framing: Framing,
        bytes: &[u8],
        piece: usize,
        room: usize,
    ) -> Result<(Vec<u8>, Vec<u8>, bool), BadResponse> {
        let (mut body, mut received, mut into) = (Body::new(framing), Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            received.extend(piece);
            loop {
                let before = into.len();
                body.take(&mut received, &mut into, room)?;
                if into.len() == before {
                    break;
                }
            }
        }
        Ok((into, received, body.is_over()))
    }

    proptest! {
        #[test]
        fn body_is_the_same_however_it_arrives_and_is_taken(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..8),
            piece in 1usize..50,
            room in 1usize..50,
        ) {
            let whole = chunks.concat();
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend(format!("{:X};x=y\r\n", chunk.len()).as_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\nx-sum: 1\r\n\r\nNEXT");
            let left = b"NEXT".to_vec();
            prop_assert_eq!(
                taken(Framing::Chunked, &bytes, piece, room),
                Ok((whole.clone(), left.clone(), true))
            );
            let bytes = [&whole[..], b"NEXT"].concat();
            let framing = Framing::Length(whole.len() as u64);
            prop_assert_eq!(taken(framing, &bytes, piece, room), Ok((whole, left, true)));
        }
    }

    #[test]
    fn chunks_that_are_malformed_end_the_exchange() {
        for bytes in [
            "x\r\n",
            "-1\r\n",
            "5\r\nhello5\r\n",
            "5\r\nhello\n\n0\r\n\r\n",
            "fffffffffffffffff\r\n",
        ] {
            assert!(taken(Framing::Chunked, bytes.as_bytes(), 100, 100).is_err(), "{bytes}");
        }
        let long = format!("5;{}", "x".repeat(LINE_BYTES_MAX));
        assert!(taken(Framing::Chunked, long.as_bytes(), 100, 100).is_err());
        let long = format!("0\r\nx: {}", "x".repeat(LINE_BYTES_MAX));
        assert!(taken(Framing::Chunked, long.as_bytes(), 100, 100).is_err());
    }

    #[test]
    fn end_of_the_connection_is_the_end_of_a_body_without_another() {
        assert!(Body::new(Framing::UntilClose).close().is_ok());
        assert!(Body::new(Framing::Length(5)).close().is_err());
        assert!(Body::new(Framing::Chunked).close().is_err());
        assert!(Body::new(Framing::None).close().is_ok());
    }
}
