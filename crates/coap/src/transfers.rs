//! Payloads that come and go in blocks (RFC 7959), kept until they are whole.

use std::net::SocketAddr;
use std::time::Duration;

use tenure_hal::Instant;
use tenure_wire::limits::PARAMETER_BYTES_MAX;

use crate::answer::Answer;
use crate::block::Block;
use crate::hosts::host_of;
use crate::message::Method;

/// The longest payload that comes in blocks, in bytes.
pub(crate) const UPLOAD_BYTES_MAX: usize = PARAMETER_BYTES_MAX;
/// The most transfers of each direction.
pub(crate) const TRANSFERS_MAX: usize = 32;
/// The most of one host.
pub(crate) const TRANSFERS_OF_HOST_MAX: usize = 4;
/// How long a transfer waits for its next block.
pub(crate) const BLOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// The transfer that a block is of: who, and which request (RFC 7959 §2.5, RFC 9175 §3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) peer: SocketAddr,
    pub(crate) method: Method,
    pub(crate) path: Vec<String>,
    pub(crate) query: Option<String>,
    /// The name that the client gave an upload.
    pub(crate) tag: Option<Vec<u8>>,
}

/// Transfers of one direction, the one that moved last at the end.
struct Transfers<T>(Vec<(Instant, Key, T)>);

impl<T> Transfers<T> {
    /// Puts a transfer in the place of the one before of that key; a host, or all, that have too many lose the one that has
    /// waited longest.
    fn put(&mut self, now: Instant, key: Key, transfer: T) {
        self.take(&key);
        let host = host_of(key.peer.ip());
        let is_of_host = |(_, other, _): &(Instant, Key, T)| host_of(other.peer.ip()) == host;
        if self.0.iter().filter(|one| is_of_host(one)).count() >= TRANSFERS_OF_HOST_MAX
            && let Some(at) = self.0.iter().position(is_of_host)
        {
            self.0.remove(at);
        }
        if self.0.len() >= TRANSFERS_MAX {
            self.0.remove(0);
        }
        self.0.push((now + BLOCK_TIMEOUT, key, transfer));
    }

    fn take(&mut self, key: &Key) -> Option<T> {
        let at = self.0.iter().position(|(_, other, _)| other == key)?;
        Some(self.0.remove(at).2)
    }

    fn expire(&mut self, now: Instant) {
        self.0.retain(|(until, _, _)| now < *until);
    }

    fn expire_at(&self) -> Option<Instant> {
        self.0.first().map(|(until, _, _)| *until)
    }
}

/// Answers whose further blocks are asked for.
pub(crate) struct Downloads(Transfers<Answer>);

impl Downloads {
    pub(crate) const fn new() -> Self {
        Self(Transfers(Vec::new()))
    }

    /// Keeps an answer for the requests for its other blocks.
    pub(crate) fn keep(&mut self, now: Instant, key: Key, answer: Answer) {
        self.0.put(now, key, answer);
    }

    /// The answer of which somebody wants another block.
    pub(crate) fn next(&mut self, now: Instant, key: &Key) -> Option<Answer> {
        self.expire(now);
        let answer = self.0.take(key)?;
        self.0.put(now, key.clone(), answer.clone());
        Some(answer)
    }

    pub(crate) fn expire(&mut self, now: Instant) {
        self.0.expire(now);
    }

    pub(crate) fn expire_at(&self) -> Option<Instant> {
        self.0.expire_at()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.0.len()
    }
}

/// Payloads of requests that aren't whole yet.
pub(crate) struct Uploads(Transfers<Vec<u8>>);

/// The step after a block of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next block is to come (2.31).
    Continue,
    /// The whole.
    Whole(Vec<u8>),
    /// It isn't the next one, or those before aren't here any more (4.08).
    Incomplete,
    /// The payload is longer than a parameter (4.13).
    TooLarge,
    /// A block that isn't the last has another length than it says (4.00).
    Misfit,
}

impl Uploads {
    pub(crate) const fn new() -> Self {
        Self(Transfers(Vec::new()))
    }

    /// Takes in a block.
    pub(crate) fn block(&mut self, now: Instant, key: Key, block: Block, payload: &[u8]) -> Step {
        self.expire(now);
        let mut whole = match self.0.take(&key) {
            Some(whole) if !block.is_first() => whole,
            _ if block.is_first() => Vec::new(),
            _ => return Step::Incomplete,
        };
        if block.offset() != whole.len() {
            return Step::Incomplete;
        }
        let fits =
            if block.more { payload.len() == block.size() } else { payload.len() <= block.size() };
        if !fits {
            return Step::Misfit;
        }
        if whole.len() + payload.len() > UPLOAD_BYTES_MAX {
            return Step::TooLarge;
        }
        whole.extend_from_slice(payload);
        if !block.more {
            return Step::Whole(whole);
        }
        self.0.put(now, key, whole);
        Step::Continue
    }

    pub(crate) fn expire(&mut self, now: Instant) {
        self.0.expire(now);
    }

    pub(crate) fn expire_at(&self) -> Option<Instant> {
        self.0.expire_at()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.0.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::block::EXPONENT_MAX;
    use crate::message::Code;

    fn key(host: u8, path: &str) -> Key {
        Key {
            peer: ([192, 0, 2, host], 1).into(),
            method: Method::Post,
            path: vec![path.into()],
            query: None,
            tag: None,
        }
    }

    const NOW: Instant = Instant::BOOT;

    #[test]
    fn blocks_that_lie_end_the_transfer() {
        let first = |uploads: &mut Uploads| {
            let block = Block::at(0, 0, true);
            assert_eq!(uploads.block(NOW, key(1, "a"), block, &[0; 16]), Step::Continue);
        };
        let (next, last) = (|at: usize| Block::at(16 * at, 0, true), Block::at(16, 0, false));
        let long = Block::at(UPLOAD_BYTES_MAX, 0, false);
        for (key, block, bytes, step) in [
            (key(1, "a"), next(2), 16, Step::Incomplete),
            (key(1, "a"), long, 1, Step::Incomplete),
            (key(1, "a"), next(1), 15, Step::Misfit),
            (key(1, "a"), next(1), 17, Step::Misfit),
            (key(1, "a"), last, 17, Step::Misfit),
            (key(1, "a"), Block::at(32, 1, true), 32, Step::Incomplete),
            (key(2, "a"), next(1), 16, Step::Incomplete),
            (key(1, "b"), next(1), 16, Step::Incomplete),
        ] {
            let mut uploads = Uploads::new();
            first(&mut uploads);
            assert_eq!(uploads.block(NOW, key, block, &vec![0; bytes]), step, "{block:?} {bytes}");
        }
        let mut uploads = Uploads::new();
        first(&mut uploads);
        // One that comes again from its beginning.
        first(&mut uploads);
        assert_eq!(uploads.block(NOW, key(1, "a"), last, b"end").clone(), {
            Step::Whole([&[0; 16][..], b"end"].concat())
        });
        assert_eq!(uploads.block(NOW, key(1, "a"), last, b"end"), Step::Incomplete);
        first(&mut uploads);
        uploads.expire(NOW + BLOCK_TIMEOUT);
        assert_eq!(uploads.block(NOW, key(1, "a"), last, b"end"), Step::Incomplete);
    }

    #[test]
    fn payload_has_the_length_of_a_parameter_at_most() {
        let mut uploads = Uploads::new();
        let whole = UPLOAD_BYTES_MAX / 1024;
        for at in 0..whole {
            let block = Block::at(1024 * at, EXPONENT_MAX, true);
            assert_eq!(uploads.block(NOW, key(1, "a"), block, &[0; 1024]), Step::Continue);
        }
        let block = Block::at(1024 * whole, EXPONENT_MAX, false);
        assert_eq!(uploads.block(NOW, key(1, "a"), block, &[0]), Step::TooLarge);
        assert_eq!(uploads.len(), 0);
    }

    #[test]
    fn transfers_are_bounded_by_host_and_in_all() {
        let (mut uploads, block) = (Uploads::new(), Block::at(0, 0, true));
        let begin = |uploads: &mut Uploads, host, path: &str| {
            assert_eq!(uploads.block(NOW, key(host, path), block, &[0; 16]), Step::Continue);
        };
        begin(&mut uploads, 1, "first");
        for path in 0..100 {
            begin(&mut uploads, 2, &path.to_string());
        }
        assert_eq!(uploads.len(), 1 + TRANSFERS_OF_HOST_MAX);
        for host in 3..100 {
            begin(&mut uploads, host, "a");
        }
        assert_eq!(uploads.len(), TRANSFERS_MAX);
        let mut downloads = Downloads::new();
        for host in 0..100 {
            downloads.keep(NOW, key(host, "a"), Answer::error(Code::Content, "long"));
        }
        assert_eq!(downloads.len(), TRANSFERS_MAX);
        assert!(downloads.next(NOW, &key(99, "a")).is_some());
        assert!(downloads.next(NOW, &key(0, "a")).is_none());
        assert!(downloads.next(NOW + BLOCK_TIMEOUT, &key(99, "a")).is_none());
    }

    proptest! {
        #[test]
        fn payload_in_blocks_of_any_size_is_whole_again(
            payload in proptest::collection::vec(any::<u8>(), 1..600),
            exponent in 0..=EXPONENT_MAX,
        ) {
            let mut uploads = Uploads::new();
            let size = crate::block::size_of_exponent(exponent);
            for at in (0..payload.len()).step_by(size) {
                let more = at + size < payload.len();
                let part = &payload[at..payload.len().min(at + size)];
                let step = uploads.block(NOW, key(1, "a"), Block::at(at, exponent, more), part);
                let expected = if more { Step::Continue } else { Step::Whole(payload.clone()) };
                prop_assert_eq!(step, expected);
            }
        }

        #[test]
        fn blocks_at_random_are_bounded(blocks in proptest::collection::vec(
            (0_u8..4, 0_usize..600, 0..=EXPONENT_MAX, any::<bool>(), 0_usize..1100), 0..64
        )) {
            let mut uploads = Uploads::new();
            for (host, number, exponent, more, bytes) in blocks {
                let block = Block::at(number * crate::block::size_of_exponent(exponent), exponent, more);
                if let Step::Whole(whole) = uploads.block(NOW, key(host, "a"), block, &vec![0; bytes]) {
                    prop_assert!(whole.len() <= UPLOAD_BYTES_MAX);
                }
                prop_assert!(uploads.len() <= 4);
            }
        }
    }
}
