//! Microchip's ATECC608: its commands on P-256 over I²C, with the frames, checksums and delays of its data sheet
//! (DS40001977).
//!
//! Between two commands the chip is idle and keeps its volatile keys; awake for longer than its watchdog allows, it
//! would lose them.

use tenure_hal::{I2c, I2cError};

use crate::SecurityError;

/// The 7-bit address that the chip leaves the factory with.
pub const ADDRESS: u8 = 0x60;
/// The coordinates of a point, or the two numbers of a signature.
pub const POINT_BYTES: usize = 64;

/// The meanings of the first byte of a message to the chip.
const IDLE: u8 = 2;
const COMMAND: u8 = 3;

const NONCE: u8 = 0x16;
const RANDOM: u8 = 0x1b;
const GENERATE_KEY: u8 = 0x40;
const SIGN: u8 = 0x41;
const AGREE: u8 = 0x43;
const VERIFY: u8 = 0x45;

/// The chip's answer to being woken, behind its length.
const AWAKE: u8 = 0x11;
const SUCCESS: u8 = 0;
const NOT_VERIFIED: u8 = 1;
/// A point that isn't one, among others.
const PARSE_ERROR: u8 = 3;
const ECC_FAULT: u8 = 5;

/// A slot that holds a key only until the chip sleeps.
const VOLATILE: u16 = 0xffff;
/// The slots for keys.
const SLOTS: u8 = 16;

/// How long the chip takes to wake, in microseconds.
const WAKE_US: u32 = 1_500;
/// How often a busy chip is asked, in microseconds.
const POLL_US: u32 = 2_000;
/// The longest that any command used here takes at the slowest clock, in microseconds, rounded up.
const COMMAND_US_MAX: u32 = 1_200_000;
/// How often a frame that was damaged on the bus is sent again.
const ATTEMPTS: usize = 3;

/// The longest command: its length, code, parameters, a signature and a key, checksum.
const FRAME_BYTES_MAX: usize = 1 + 1 + 1 + 2 + 2 * POINT_BYTES + 2;
const ANSWER_BYTES_MAX: usize = 1 + POINT_BYTES + 2;

/// A chip at an address of a bus.
#[derive(Debug)]
pub struct Chip<B> {
    bus: B,
    address: u8,
}

/// A command without its data.
#[derive(Clone, Copy)]
struct Command {
    code: u8,
    mode: u8,
    parameter: u16,
}

/// Why a frame came to nothing.
enum Fault {
    /// It was damaged on the bus, one way or the other: it may be repeated.
    Damaged,
    /// The chip answered with this status.
    Status(u8),
    /// The chip doesn't answer, or not as it should.
    Chip,
}

impl<B: I2c> Chip<B> {
    /// The chip at the 7-bit `address` of `bus`, as a rule [`ADDRESS`].
    pub fn new(bus: B, address: u8) -> Self {
        Self { bus, address }
    }

    /// The bus.
    pub fn bus(&mut self) -> &mut B {
        &mut self.bus
    }

    /// 32 random bytes.
    ///
    /// # Errors
    /// [`SecurityError::Hardware`].
    pub fn random(&mut self) -> Result<[u8; 32], SecurityError> {
        self.run(Command { code: RANDOM, mode: 0, parameter: 0 }, &[])
    }

    /// Makes a new key in `slot`, in place of what was there, and returns its public part.
    ///
    /// # Errors
    /// [`SecurityError::InvalidSecretKey`] if there is no such slot or it is locked; [`SecurityError::Hardware`].
    pub fn make_key(&mut self, slot: u8) -> Result<[u8; POINT_BYTES], SecurityError> {
        const NEW: u8 = 4;
        self.key(NEW, slot)
    }

    /// The public part of the key in `slot`.
    ///
    /// # Errors
    /// As [`Self::make_key`].
    pub fn public_key(&mut self, slot: u8) -> Result<[u8; POINT_BYTES], SecurityError> {
        const PUBLIC: u8 = 0;
        self.key(PUBLIC, slot)
    }

    fn key(&mut self, mode: u8, slot: u8) -> Result<[u8; POINT_BYTES], SecurityError> {
        let parameter = slot_parameter(slot)?;
        self.run(Command { code: GENERATE_KEY, mode, parameter }, &[])
    }

    /// Makes a key that the chip forgets, in place of the last one, and returns its public part.
    pub(super) fn make_ephemeral_key(&mut self) -> Result<[u8; POINT_BYTES], SecurityError> {
        const NEW: u8 = 4;
        self.run(Command { code: GENERATE_KEY, mode: NEW, parameter: VOLATILE }, &[])
    }

    /// The x coordinate of the product of that key and `peer`.
    pub(super) fn agree(&mut self, peer: &[u8; POINT_BYTES]) -> Result<[u8; 32], SecurityError> {
        /// With the volatile key, the result in the open.
        const FROM_VOLATILE_TO_OUTPUT: u8 = 0x0d;
        let command = Command { code: AGREE, mode: FROM_VOLATILE_TO_OUTPUT, parameter: 0 };
        self.run_with(command, &[peer], |status| match status {
            PARSE_ERROR | ECC_FAULT => SecurityError::InvalidPublicKey,
            _ => SecurityError::Hardware,
        })
    }

    /// Signs what has `digest` with the key in `slot`.
    pub(super) fn sign(
        &mut self,
        slot: u8,
        digest: &[u8; 32],
    ) -> Result<[u8; POINT_BYTES], SecurityError> {
        const EXTERNAL_DIGEST: u8 = 0xa0;
        let parameter = slot_parameter(slot)?;
        self.load_digest(digest)?;
        self.run(Command { code: SIGN, mode: EXTERNAL_DIGEST, parameter }, &[])
    }

    /// Checks that the holder of `key` made `signature` of what has `digest`.
    pub(super) fn verify(
        &mut self,
        digest: &[u8; 32],
        signature: &[u8; POINT_BYTES],
        key: &[u8; POINT_BYTES],
    ) -> Result<(), SecurityError> {
        const EXTERNAL_KEY: u8 = 0x22;
        const P256: u16 = 4;
        self.load_digest(digest)?;
        let command = Command { code: VERIFY, mode: EXTERNAL_KEY, parameter: P256 };
        let answer: [u8; 1] = self.run_with(command, &[signature, key], |status| match status {
            NOT_VERIFIED => SecurityError::BadSignature,
            // r or s that is no scalar as well as a key that is no point.
            PARSE_ERROR | ECC_FAULT => SecurityError::BadSignature,
            _ => SecurityError::Hardware,
        })?;
        if answer == [SUCCESS] { Ok(()) } else { Err(SecurityError::Hardware) }
    }

    /// Puts `digest` where [`SIGN`] and [`VERIFY`] take it from, beside the volatile key.
    fn load_digest(&mut self, digest: &[u8; 32]) -> Result<(), SecurityError> {
        const TO_DIGEST_BUFFER: u8 = 0x43;
        let command = Command { code: NONCE, mode: TO_DIGEST_BUFFER, parameter: 0 };
        let answer: [u8; 1] = self.run(command, &[digest])?;
        if answer == [SUCCESS] { Ok(()) } else { Err(SecurityError::Hardware) }
    }

    fn run<const N: usize>(
        &mut self,
        command: Command,
        data: &[&[u8]],
    ) -> Result<[u8; N], SecurityError> {
        self.run_with(command, data, |_| SecurityError::Hardware)
    }

    /// Has the chip run `command` with `data`, and returns its answer of `N` bytes; `blame` says what a status means.
    fn run_with<const N: usize>(
        &mut self,
        command: Command,
        data: &[&[u8]],
        blame: impl Fn(u8) -> SecurityError,
    ) -> Result<[u8; N], SecurityError> {
        for _ in 0..ATTEMPTS {
            let answer = self.wake().and_then(|()| self.exchange(command, data));
            // A chip that doesn't hear it falls asleep by itself.
            let _ = self.bus.write(self.address, &[IDLE]);
            match answer {
                Ok(answer) => return Ok(answer),
                Err(Fault::Damaged) => {}
                Err(Fault::Status(status)) => return Err(blame(status)),
                Err(Fault::Chip) => return Err(SecurityError::Hardware),
            }
        }
        Err(SecurityError::Hardware)
    }

    /// Wakes the chip by holding the data line low for as long as an address of zeros takes; nobody acknowledges it.
    fn wake(&mut self) -> Result<(), Fault> {
        let _ = self.bus.write(0, &[0]);
        self.bus.wait_us(WAKE_US);
        let mut answer = [0; 4];
        self.bus.read(self.address, &mut answer).map_err(|error| match error {
            // Awake already, from a command that was cut off: it will be idle next time.
            I2cError::NotAcknowledged => Fault::Damaged,
            I2cError::Bus => Fault::Chip,
        })?;
        match opened(&answer) {
            Some([AWAKE]) => Ok(()),
            _ => Err(Fault::Damaged),
        }
    }

    fn exchange<const N: usize>(
        &mut self,
        command: Command,
        data: &[&[u8]],
    ) -> Result<[u8; N], Fault> {
        let mut frame = [0; 1 + FRAME_BYTES_MAX];
        let length = write_frame(command, data, &mut frame).ok_or(Fault::Chip)?;
        self.bus.write(self.address, &frame[..length]).map_err(|_| Fault::Damaged)?;
        let mut room = [0; ANSWER_BYTES_MAX];
        let answer = room.get_mut(..N + 3).ok_or(Fault::Chip)?;
        let mut waited_us = 0;
        while self.bus.read(self.address, answer).is_err() {
            if waited_us >= COMMAND_US_MAX {
                return Err(Fault::Chip);
            }
            self.bus.wait_us(POLL_US);
            waited_us += POLL_US;
        }
        let answer = &*answer;
        // A status alone is four bytes, whatever was asked for.
        let is_status = answer.first() == Some(&4);
        let taken = if is_status { answer.get(..4).unwrap_or(answer) } else { answer };
        let content = opened(taken).ok_or(Fault::Damaged)?;
        if let ([status], true) = (content, N > 1 || content != [SUCCESS]) {
            // The chip found our checksum wrong.
            const BAD_CHECKSUM: u8 = 0xff;
            return Err(if *status == BAD_CHECKSUM {
                Fault::Damaged
            } else {
                Fault::Status(*status)
            });
        }
        content.try_into().map_err(|_| Fault::Chip)
    }
}

fn slot_parameter(slot: u8) -> Result<u16, SecurityError> {
    if slot < SLOTS { Ok(slot.into()) } else { Err(SecurityError::InvalidSecretKey) }
}

/// Writes the message that carries `command`, and returns its length; none if it is too long.
fn write_frame(
    command: Command,
    data: &[&[u8]],
    frame: &mut [u8; 1 + FRAME_BYTES_MAX],
) -> Option<usize> {
    let data_bytes: usize = data.iter().map(|part| part.len()).sum();
    let count = 7 + data_bytes;
    let [low, high] = command.parameter.to_le_bytes();
    frame[..6].copy_from_slice(&[COMMAND, count as u8, command.code, command.mode, low, high]);
    let mut end = 6;
    for part in data {
        frame.get_mut(end..end + part.len())?.copy_from_slice(part);
        end += part.len();
    }
    let sum = checksum(&frame[1..end]);
    frame.get_mut(end..end + 2)?.copy_from_slice(&sum);
    Some(end + 2)
}

/// The content of an answer, if its length and checksum are right.
fn opened(answer: &[u8]) -> Option<&[u8]> {
    let (content, sum) = answer.split_last_chunk::<2>()?;
    let (count, content_only) = content.split_first()?;
    let is_right = usize::from(*count) == answer.len() && *sum == checksum(content);
    is_right.then_some(content_only)
}

/// CRC-16 with the polynomial 0x8005, the bits of each byte from the lowest up, low byte first.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut sum = 0u16;
    for byte in bytes {
        for bit in 0..8 {
            let differs = (byte >> bit & 1) as u16 != sum >> 15;
            sum <<= 1;
            if differs {
                sum ^= 0x8005;
            }
        }
    }
    sum.to_le_bytes()
}

#[cfg(test)]
#[path = "chip_tests.rs"]
mod tests;
