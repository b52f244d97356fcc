//! A simulated ATECC608, for tests and emulated boards: it checks every frame, checksum and the order of what it is told,
//! and takes its time.
//!
//! It keeps its keys in the memory of a process, and so keeps nothing secret.

use alloc::vec;
use alloc::vec::Vec;

use p256::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::elliptic_curve::sec1::{FromSec1Point, ToSec1Point};
use p256::{PublicKey, Sec1Point, SecretKey};
use tenure_hal::{Entropy, I2c, I2cError};

/// The chip falls asleep so long after it woke, and forgets its volatile keys.
const WATCHDOG_US: u64 = 1_300_000;
const WAKE_US: u64 = 1_500;
const SLOTS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    Idle,
    /// Since then; the answer may be read from the second time on.
    Awake {
        since_us: u64,
        ready_us: u64,
    },
}

/// A fault of the bus or the chip that a test asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A bit of the next command is lost on the way.
    Command,
    /// A bit of the next answer is.
    Answer,
    /// The chip never answers again.
    Dead,
}

/// A chip with no keys in its slots, alone on its bus, at the address that it leaves the factory with. `E` is where its
/// randomness comes from.
pub struct SimulatedChip<E> {
    entropy: E,
    state: State,
    now_us: u64,
    answer: Vec<u8>,
    slots: [Option<SecretKey>; SLOTS],
    volatile: Option<SecretKey>,
    digest: Option<[u8; 32]>,
    /// The faults that are to happen, each once but for the last kind.
    pub faults: Vec<Fault>,
    /// The codes of the commands that were run.
    pub commands: Vec<u8>,
}

impl<E: Entropy> SimulatedChip<E> {
    /// A chip that draws from `entropy`.
    pub fn new(entropy: E) -> Self {
        Self {
            entropy,
            state: State::Asleep,
            now_us: 0,
            answer: Vec::new(),
            slots: [const { None }; SLOTS],
            volatile: None,
            digest: None,
            faults: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// How long the chip has had power, in microseconds of the bus.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Lets time pass on a bus that is used for other things.
    pub fn pass_us(&mut self, us: u64) {
        self.now_us += us;
    }

    /// Takes its power away for a moment: what it keeps are its slots.
    pub fn cut_power(&mut self) {
        self.state = State::Asleep;
        self.answer.clear();
        (self.volatile, self.digest) = (None, None);
    }

    /// The secret key in `slot`, for whoever keeps it beyond the end of this process; a real chip tells nobody.
    pub fn secret_of(&self, slot: usize) -> Option<[u8; 32]> {
        Some(self.slots.get(slot)?.as_ref()?.to_bytes().into())
    }

    /// Puts the secret key of an earlier process back into `slot`; returns whether it is one.
    pub fn restore(&mut self, slot: usize, secret: &[u8; 32]) -> bool {
        match (self.slots.get_mut(slot), SecretKey::from_slice(secret)) {
            (Some(place), Ok(key)) => {
                *place = Some(key);
                true
            }
            _ => false,
        }
    }

    /// The public part of the key in `slot`, uncompressed.
    ///
    /// # Panics
    /// There is none.
    pub fn public(&self, slot: usize) -> Vec<u8> {
        let key = self.slots[slot].as_ref().expect("a key");
        key.public_key().to_sec1_point(false).as_bytes().to_vec()
    }

    /// Whether a fault of this kind is due, once.
    fn happens(&mut self, fault: Fault) -> bool {
        if fault == Fault::Dead {
            return self.faults.contains(&Fault::Dead);
        }
        let place = self.faults.iter().position(|it| *it == fault);
        place.map(|place| self.faults.remove(place)).is_some()
    }

    fn watch(&mut self) {
        if let State::Awake { since_us, .. } = self.state
            && self.now_us > since_us + WATCHDOG_US
        {
            self.state = State::Asleep;
            (self.volatile, self.digest) = (None, None);
        }
    }

    fn secret(&mut self) -> SecretKey {
        loop {
            if let Ok(key) = SecretKey::from_slice(&self.random()) {
                return key;
            }
        }
    }

    fn random(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.entropy.fill(&mut bytes).expect("randomness");
        bytes
    }

    /// Runs a command, and returns its answer and how long it takes.
    fn run(&mut self, code: u8, mode: u8, parameter: u16, data: &[u8]) -> (Vec<u8>, u64) {
        const PARSE_ERROR: u8 = 3;
        const EXECUTION_ERROR: u8 = 0x0f;
        self.commands.push(code);
        let error = |status| (vec![status], 500);
        match (code, mode, data.len()) {
            (0x1b, 0, 0) if parameter == 0 => (self.random().to_vec(), 23_000),
            (0x16, 0x43, 32) if parameter == 0 => {
                self.digest = data.try_into().ok();
                (vec![0], 20_000)
            }
            (0x40, 0 | 4, 0) => {
                let new = (mode == 4).then(|| self.secret());
                let place = match parameter {
                    0xffff if mode == 4 => &mut self.volatile,
                    slot if usize::from(slot) < SLOTS => &mut self.slots[usize::from(slot)],
                    _ => return error(PARSE_ERROR),
                };
                *place = new.or(place.take());
                let Some(key) = place else { return error(EXECUTION_ERROR) };
                let point = key.public_key().to_sec1_point(false);
                (point.as_bytes()[1..].to_vec(), 115_000)
            }
            (0x43, 0x0d, 64) if parameter == 0 => {
                let Some(key) = &self.volatile else { return error(EXECUTION_ERROR) };
                let Some(peer) = point(data) else { return error(5) };
                let agreed = p256::ecdh::diffie_hellman(key.to_nonzero_scalar(), peer.as_affine());
                (agreed.raw_secret_bytes().to_vec(), 75_000)
            }
            (0x41, 0xa0, 0) => {
                let key = self.slots.get(usize::from(parameter)).and_then(Option::as_ref);
                let (Some(key), Some(digest)) = (key, self.digest.take()) else {
                    return error(EXECUTION_ERROR);
                };
                let signed: Signature =
                    SigningKey::from(key).sign_prehash(&digest).expect("a signature");
                (signed.to_bytes().to_vec(), 115_000)
            }
            (0x45, 0x22, 128) if parameter == 4 => {
                let Some(digest) = self.digest.take() else { return error(EXECUTION_ERROR) };
                let (signature, key) = data.split_at(64);
                let (Some(key), Ok(signature)) = (point(key), Signature::from_slice(signature))
                else {
                    return error(PARSE_ERROR);
                };
                let verified = VerifyingKey::from(key).verify_prehash(&digest, &signature);
                (vec![u8::from(verified.is_err())], 105_000)
            }
            _ => error(PARSE_ERROR),
        }
    }
}

fn point(coordinates: &[u8]) -> Option<PublicKey> {
    let bytes = [&[4], coordinates].concat();
    Option::from(PublicKey::from_sec1_point(&Sec1Point::from_bytes(&bytes).ok()?))
}

/// The checksum, bit by bit as the data sheet draws it.
fn sum(bytes: &[u8]) -> [u8; 2] {
    let bits = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    let sum = bits.fold(0u16, |sum, bit| {
        let shifted = sum << 1;
        if u16::from(bit) ^ (sum >> 15) == 1 { shifted ^ 0x8005 } else { shifted }
    });
    sum.to_le_bytes()
}

/// An answer in its frame.
fn framed(content: &[u8]) -> Vec<u8> {
    let mut frame = vec![content.len() as u8 + 3];
    frame.extend(content);
    let sum = sum(&frame);
    frame.extend(sum);
    frame
}

impl<E: Entropy> I2c for SimulatedChip<E> {
    fn write(&mut self, address: u8, bytes: &[u8]) -> Result<(), I2cError> {
        self.now_us += 25 * (1 + bytes.len() as u64);
        self.watch();
        if address == 0 {
            if !matches!(self.state, State::Awake { .. }) && !self.happens(Fault::Dead) {
                let ready_us = self.now_us + WAKE_US;
                self.state = State::Awake { since_us: self.now_us, ready_us };
                self.answer = framed(&[0x11]);
            }
            return Err(I2cError::NotAcknowledged);
        }
        assert_eq!(address, 0x60, "nobody else is on the bus");
        let State::Awake { since_us, ready_us } = self.state else {
            return Err(I2cError::NotAcknowledged);
        };
        if self.now_us < ready_us {
            return Err(I2cError::NotAcknowledged);
        }
        match bytes {
            [2] => self.state = State::Idle,
            [3, frame @ ..] => {
                assert!(self.answer.is_empty(), "an answer was not read before the next command");
                let mut frame = frame.to_vec();
                if self.happens(Fault::Command) {
                    frame[2] ^= 0x10;
                }
                let (content, us) = match frame.split_last_chunk::<2>() {
                    Some((content, found)) if *found == sum(content) => {
                        assert_eq!(usize::from(content[0]), frame.len(), "the frame's length");
                        let parameter = u16::from_le_bytes([content[3], content[4]]);
                        self.run(content[1], content[2], parameter, &content[5..])
                    }
                    _ => (vec![0xff], 500),
                };
                self.answer = framed(&content);
                self.state = State::Awake { since_us, ready_us: self.now_us + us };
            }
            other => panic!("{other:?} is no message for the chip"),
        }
        Ok(())
    }

    fn read(&mut self, address: u8, bytes: &mut [u8]) -> Result<(), I2cError> {
        self.now_us += 25 * (1 + bytes.len() as u64);
        self.watch();
        let State::Awake { ready_us, .. } = self.state else {
            return Err(I2cError::NotAcknowledged);
        };
        if address != 0x60 || self.now_us < ready_us || self.happens(Fault::Dead) {
            return Err(I2cError::NotAcknowledged);
        }
        let mut answer = core::mem::take(&mut self.answer);
        if self.happens(Fault::Answer) {
            answer[1] ^= 1;
        }
        // Behind the answer, the line stays high.
        answer.resize(bytes.len(), 0xff);
        bytes.copy_from_slice(&answer);
        Ok(())
    }

    fn wait_us(&mut self, us: u32) {
        self.now_us += u64::from(us);
    }
}
