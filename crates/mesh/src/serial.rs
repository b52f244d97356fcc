//! Frames on a serial line: COBS (Cheshire and Baker, SIGCOMM 1997) with a CRC-16, between zeros.
//!
//! A zero byte ends a frame, and occurs nowhere else; so a receiver that joins in the middle or
//! lost bytes is in step again at the next zero.

use alloc::vec::Vec;

use crc::{CRC_16_IBM_SDLC, Crc, NoTable};

const CHECKSUM: Crc<u16, NoTable> = Crc::<u16, NoTable>::new(&CRC_16_IBM_SDLC);
const CHECKSUM_BYTES: usize = 2;
/// The longest run of bytes without a zero.
const RUN_BYTES_MAX: usize = 254;

/// Appends `frame` to `line` as it goes over a serial line.
pub fn frame_for_serial(frame: &[u8], line: &mut Vec<u8>) {
    let checksum = CHECKSUM.checksum(frame).to_le_bytes();
    let mut code_at = line.len();
    line.push(1);
    for byte in frame.iter().chain(&checksum) {
        if *byte != 0 {
            line.push(*byte);
            line[code_at] += 1;
        }
        if *byte == 0 || usize::from(line[code_at]) == RUN_BYTES_MAX + 1 {
            code_at = line.len();
            line.push(1);
        }
    }
    line.push(0);
}

/// The most bytes that a frame of `frame_bytes` takes on a line.
pub const fn line_bytes_max(frame_bytes: usize) -> usize {
    let checked = frame_bytes + CHECKSUM_BYTES;
    checked + checked / RUN_BYTES_MAX + 2
}

/// Finds frames in what comes over a serial line, byte by byte.
#[derive(Debug)]
pub struct Deframer {
    frame: Vec<u8>,
    frame_bytes_max: usize,
    /// How many bytes of the run are still to come.
    left: u8,
    /// Whether a zero follows the run.
    zero: bool,
    /// Whether anything came since the last zero.
    begun: bool,
    /// Whether the frame is too long already.
    spoilt: bool,
}

/// Why what stood between two zeros is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialError {
    /// A run ends too soon.
    Truncated,
    /// It is longer than a frame may be.
    TooLong,
    /// The checksum is wrong.
    Checksum,
}

impl Deframer {
    /// For frames of at most `frame_bytes_max`.
    pub fn new(frame_bytes_max: usize) -> Self {
        Self {
            frame: Vec::new(),
            frame_bytes_max,
            left: 0,
            zero: false,
            begun: false,
            spoilt: false,
        }
    }

    /// Takes a byte; gives what ended with it. Zeros between frames are nothing.
    pub fn push(&mut self, byte: u8) -> Option<Result<Vec<u8>, SerialError>> {
        if byte == 0 {
            return self.end();
        }
        if self.spoilt {
            return None;
        }
        if self.left == 0 {
            if self.zero {
                self.frame.push(0);
            }
            self.left = byte - 1;
            self.zero = usize::from(byte) != RUN_BYTES_MAX + 1;
        } else {
            self.frame.push(byte);
            self.left -= 1;
        }
        self.begun = true;
        self.spoilt = self.frame.len() > self.frame_bytes_max + CHECKSUM_BYTES;
        None
    }

    fn end(&mut self) -> Option<Result<Vec<u8>, SerialError>> {
        let ended = core::mem::replace(self, Self::new(self.frame_bytes_max));
        if !ended.begun {
            return None;
        }
        if ended.spoilt {
            return Some(Err(SerialError::TooLong));
        }
        if ended.left > 0 {
            return Some(Err(SerialError::Truncated));
        }
        let mut frame = ended.frame;
        let Some((content, checksum)) = frame.split_last_chunk() else {
            return Some(Err(SerialError::Truncated));
        };
        if CHECKSUM.checksum(content) != u16::from_le_bytes(*checksum) {
            return Some(Err(SerialError::Checksum));
        }
        frame.truncate(frame.len() - CHECKSUM_BYTES);
        Some(Ok(frame))
    }
}

#[cfg(test)]
mod tests;
