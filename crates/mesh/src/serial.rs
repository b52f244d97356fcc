//! Frames on a serial line: COBS (Cheshire and Baker, SIGCOMM 1997) with a CRC-16, between zeros.
//!
//! A zero byte ends a frame, and occurs nowhere else; so a receiver that joins in the middle or
//! lost bytes is in step again at the next zero.

use alloc::vec::Vec;

use cobs::{DecodeResult, DecoderState, EncoderState, PushResult};
use crc::{CRC_16_IBM_SDLC, Crc, NoTable};

const CHECKSUM: Crc<u16, NoTable> = Crc::<u16, NoTable>::new(&CRC_16_IBM_SDLC);
const CHECKSUM_BYTES: usize = 2;
/// The longest run of bytes without a zero.
const RUN_BYTES_MAX: usize = 254;
/// The place of a run's code, until the run ends.
const CODE_TO_COME: u8 = 0;

/// Appends `frame` to `line` as it goes over a serial line.
///
/// The encoder of whole frames in `cobs` leaves out the code of the empty run behind a last run of 254 bytes. The paper
/// has it, and so has this line: here the state machine below that encoder serves.
pub fn frame_for_serial(frame: &[u8], line: &mut Vec<u8>) {
    let checksum = CHECKSUM.checksum(frame).to_le_bytes();
    let begin = line.len();
    let mut encoder = EncoderState::default();
    line.push(CODE_TO_COME);
    for byte in frame.iter().chain(&checksum) {
        match encoder.push(*byte) {
            PushResult::AddSingle(byte) => line.push(byte),
            PushResult::ModifyFromStartAndSkip((at, code)) => {
                line[begin + at] = code;
                line.push(CODE_TO_COME);
            }
            PushResult::ModifyFromStartAndPushAndSkip((at, code, byte)) => {
                line[begin + at] = code;
                line.extend([byte, CODE_TO_COME]);
            }
        }
    }
    let (at, code) = encoder.finalize();
    line[begin + at] = code;
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
    /// The bytes so far, in memory that is taken once; one more than fit if the frame is too long.
    frame: Vec<u8>,
    /// Whether the frame has ended, so that the next byte begins another.
    has_ended: bool,
    frame_bytes_max: usize,
    decoder: DecoderState,
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
        let frame = Vec::with_capacity(frame_bytes_max + CHECKSUM_BYTES + 1);
        Self { frame, has_ended: false, frame_bytes_max, decoder: DecoderState::Idle }
    }

    /// Takes a byte; gives what ended with it. Zeros between frames are nothing.
    pub fn push(&mut self, byte: u8) -> Option<Result<&[u8], SerialError>> {
        if core::mem::take(&mut self.has_ended) {
            self.frame.clear();
        }
        match self.decoder.feed(byte) {
            Ok(DecodeResult::NoData) => None,
            Ok(DecodeResult::DataContinue(byte)) => {
                if !self.is_too_long() {
                    self.frame.push(byte);
                }
                None
            }
            Ok(DecodeResult::DataComplete) => Some(self.end(true)),
            Err(_) => Some(self.end(false)),
        }
    }

    fn is_too_long(&self) -> bool {
        self.frame.len() > self.frame_bytes_max + CHECKSUM_BYTES
    }

    /// Ends a frame, whose last run `is_whole` or ended too soon.
    fn end(&mut self, is_whole: bool) -> Result<&[u8], SerialError> {
        self.has_ended = true;
        if self.is_too_long() {
            return Err(SerialError::TooLong);
        }
        if !is_whole {
            return Err(SerialError::Truncated);
        }
        let Some((content, checksum)) = self.frame.split_last_chunk() else {
            return Err(SerialError::Truncated);
        };
        if CHECKSUM.checksum(content) != u16::from_le_bytes(*checksum) {
            return Err(SerialError::Checksum);
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests;
