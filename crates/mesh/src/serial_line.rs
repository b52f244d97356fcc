//! A serial line as a link: frames between zeros with a checksum, as [`crate::frame_for_serial`] writes them,
//! over whatever moves the bytes.
//!
//! The other end of the line receives every frame, so the line has one address. A frame that doesn't
//! fit the line's queue is refused, and a frame that was damaged on the way isn't handed out.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use tenure_hal::{Link, LinkError};

use crate::serial::{Deframer, frame_for_serial, line_bytes_max};

#[cfg(test)]
mod tests;

/// How many bytes are taken from the port at a time.
const PART_BYTES: usize = 256;
/// The most parts that one call takes in, so that a line that never falls silent doesn't hold up everything else.
const PARTS_PER_TURN: usize = 64;

/// A carrier of bytes over a serial line that never waits.
pub trait Port {
    /// Takes bytes that have come; gives how many, 0 if there are none.
    ///
    /// # Errors
    /// [`LinkError::Hardware`].
    fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError>;

    /// Hands bytes to the line; gives how many it took, fewer than all if it takes no more now.
    ///
    /// # Errors
    /// [`LinkError::Hardware`].
    fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError>;
}

/// A serial line that never blocks. Memory for a frame that is coming is taken once; for what waits to be sent, as much as that
/// takes, for as long.
#[derive(Debug)]
pub struct SerialLine<P> {
    port: P,
    frame_bytes_max: usize,
    /// The most bytes that wait for the line.
    waiting_bytes_max: usize,
    deframer: Deframer,
    /// The part that was taken last, and where the bytes stand in it that weren't looked at yet.
    part: Vec<u8>,
    ahead: Range<usize>,
    /// Bytes for the line, of which it has yet to take those from `sent` on.
    waiting: Vec<u8>,
    sent: usize,
    damaged: u64,
}

impl<P: Port> SerialLine<P> {
    /// A line for frames of at most `frame_bytes_max`, of which `frames_waiting_max` of the longest kind
    /// wait to be sent.
    pub fn new(port: P, frame_bytes_max: usize, frames_waiting_max: usize) -> Self {
        let waiting_bytes_max = frames_waiting_max * line_bytes_max(frame_bytes_max);
        Self {
            port,
            frame_bytes_max,
            waiting_bytes_max,
            deframer: Deframer::new(frame_bytes_max),
            // Not in the line itself, which lies on the stack where a small device starts.
            part: vec![0; PART_BYTES],
            ahead: 0..0,
            waiting: Vec::new(),
            sent: 0,
            damaged: 0,
        }
    }

    /// The carrier of the bytes.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// How many frames came damaged.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Whether something waits that the line didn't take yet.
    pub fn is_sending(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Gives the line as much of what waits as it takes now.
    ///
    /// # Errors
    /// [`LinkError::Hardware`].
    pub fn flush(&mut self) -> Result<(), LinkError> {
        while self.sent < self.waiting.len() {
            match self.port.write(&self.waiting[self.sent..])? {
                0 => return Ok(()),
                taken => self.sent += taken,
            }
        }
        // Gives its memory back, too: a small device has none to spare for a line that is silent.
        self.waiting = Vec::new();
        self.sent = 0;
        Ok(())
    }

    /// Looks for the next frame in the part that was taken last, and gives its length. What doesn't fit `into` is
    /// passed over.
    fn next_frame(&mut self, into: &mut [u8]) -> Option<usize> {
        for at in self.ahead.by_ref() {
            match self.deframer.push(self.part[at]) {
                Some(Ok(frame)) => {
                    if let Some(into) = into.get_mut(..frame.len()) {
                        into.copy_from_slice(frame);
                        return Some(frame.len());
                    }
                }
                Some(Err(_)) => self.damaged += 1,
                None => {}
            }
        }
        None
    }
}

impl<P: Port> Link for SerialLine<P> {
    type Address = ();

    fn datagram_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    fn send(&mut self, _: &(), datagram: &[u8]) -> Result<(), LinkError> {
        if datagram.len() > self.frame_bytes_max {
            return Err(LinkError::TooLong);
        }
        self.flush()?;
        let left = self.waiting.len() - self.sent;
        let bytes = line_bytes_max(datagram.len());
        if left + bytes > self.waiting_bytes_max {
            return Err(LinkError::Busy);
        }
        self.waiting.drain(..self.sent);
        self.sent = 0;
        // No more than that: it would grow by doubling.
        self.waiting.try_reserve_exact(bytes).map_err(|_| LinkError::Busy)?;
        frame_for_serial(datagram, &mut self.waiting);
        self.flush()
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, ())>, LinkError> {
        self.flush()?;
        for _ in 0..PARTS_PER_TURN {
            if let Some(length) = self.next_frame(into) {
                return Ok(Some((length, ())));
            }
            self.ahead = 0..self.port.read(&mut self.part)?;
            if self.ahead.is_empty() {
                break;
            }
        }
        Ok(None)
    }
}
