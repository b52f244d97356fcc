//! Plain frames: what a node says to whoever isn't in its network, or not yet.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 1 | the version of frames in the upper four bits, and 8, which no other frame has |
//! | 1 | 1 to 512 | what the host put there |
//!
//! Nobody sealed it, so that no protocol sees it and nothing in it is believed: the host takes it, if it
//! wants such frames at all, and makes up its mind. A few wait; what doesn't fit is dropped, and counted.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::dispatcher::SendError;
use crate::frame::VERSION;

/// The longest body.
pub const PLAIN_BYTES_MAX: usize = 512;
/// The most that wait, each way.
const WAITING_MAX: usize = 4;
const FIRST: u8 = VERSION << 4 | 8;

/// Whether a frame is a plain one, or would be one if its length were right.
pub(crate) fn is_plain(frame: &[u8]) -> bool {
    frame.first() == Some(&FIRST)
}

/// Plain frames that wait for the host, and for the link.
#[derive(Debug, Default)]
pub(crate) struct PlainFrames {
    is_open: bool,
    inbox: VecDeque<Vec<u8>>,
    outbox: VecDeque<Vec<u8>>,
}

impl PlainFrames {
    /// Takes them from now on.
    pub(crate) fn open(&mut self) {
        self.is_open = true;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes one that came; says whether there was room for it, and it was one.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> bool {
        let body = frame.get(1..).filter(|body| (1..=PLAIN_BYTES_MAX).contains(&body.len()));
        let Some(body) = body.filter(|_| self.inbox.len() < WAITING_MAX) else { return false };
        self.inbox.push_back(body.to_vec());
        true
    }

    /// The next body for the host.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        self.inbox.pop_front()
    }

    pub(crate) fn send(&mut self, body: &[u8]) -> Result<(), SendError> {
        if body.is_empty() || body.len() > PLAIN_BYTES_MAX {
            return Err(SendError::TooLong);
        }
        if self.outbox.len() >= WAITING_MAX {
            return Err(SendError::Full);
        }
        self.outbox.push_back(body.to_vec());
        Ok(())
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Writes the next frame into `frame`, if there is one.
    pub(crate) fn transmit(&mut self, frame: &mut Vec<u8>) -> bool {
        let Some(body) = self.outbox.pop_front() else { return false };
        frame.clear();
        frame.push(FIRST);
        frame.extend_from_slice(&body);
        true
    }
}
