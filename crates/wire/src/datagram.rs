//! The outside of what devices send one another: datagrams that anybody on the way can read.
//!
//! The first byte of each is the version (high four bits) and the kind. Integers are
//! little-endian. `sealed` parts are ciphertext; what is in them stands in [`crate::frame`].
//!
//! | kind | datagram | fields after the first byte |
//! |---|---|---|
//! | 1 | [`Initiation`] | destination 12 · sender's session 4 · epoch 8 · proof 16 · ephemeral key 32 · sealed key 48 · sealed payload ≥ 16 |
//! | 2 | [`Response`] | receiver's session 4 · ephemeral key 32 · sealed payload ≥ 16 |
//! | 3 | [`Data`] | receiver's session 4 · counter 8 · sealed message ≥ 16 |
//! | 4 | [`Probe`] | nonce 16 · zeros up to the length of a challenge |
//! | 5 | [`Challenge`] | echo 16 · epoch 8 · cookie 16 · key of the device's own machine 32 |
//! | 6 | [`Refusal`] | reason 1 · echo 16 |
//! | 7 | [`Deferral`] | echo 16 · milliseconds until its turn 4 |
//! | 8 | [`Relayed`] | number of the way 8 · a datagram of another kind |
//!
//! Nothing in here is to be believed: epochs, cookies, refusals and deferrals steer what is tried next,
//! never what is executed.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{MachineId, PublicKey};

/// The version of all datagrams described here.
pub const VERSION: u8 = 1;

/// How many bytes of an initiation aren't payload: header, keys and their tags.
pub const INITIATION_OVERHEAD: usize = INITIATION_HEADER_BYTES + PROOF_BYTES + 32 + 48 + TAG_BYTES;
/// How many bytes of a data datagram aren't its message.
pub const DATA_OVERHEAD: usize = DATA_HEADER_BYTES + TAG_BYTES;
/// How long a [`Challenge`] is, and so how long a [`Probe`] must be at least.
pub const CHALLENGE_BYTES: usize = 1 + ECHO_BYTES + 8 + COOKIE_BYTES + 32;
/// How long the proof in an initiation is.
pub const PROOF_BYTES: usize = 16;
/// How long the part of an initiation is that stands before its proof.
pub const INITIATION_HEADER_BYTES: usize = 1 + 12 + 4 + 8;
/// How long the header of a data datagram is; it is authenticated with the message.
pub const DATA_HEADER_BYTES: usize = 1 + 4 + 8;
/// How long a [`Refusal`] is.
pub const REFUSAL_BYTES: usize = 2 + ECHO_BYTES;
/// How long a [`Deferral`] is.
pub const DEFERRAL_BYTES: usize = 1 + ECHO_BYTES + 4;

/// How many bytes of a [`Relayed`] aren't the datagram in it.
pub const RELAYED_OVERHEAD: usize = 1 + 8;

const TAG_BYTES: usize = 16;
const COOKIE_BYTES: usize = 16;
const ECHO_BYTES: usize = 16;

const _: () = assert!(INITIATION_OVERHEAD >= CHALLENGE_BYTES, "a challenge must not amplify");
const _: () = assert!(DATA_OVERHEAD >= REFUSAL_BYTES, "a refusal must not amplify");
const _: () = assert!(INITIATION_OVERHEAD >= DEFERRAL_BYTES, "a deferral must not amplify");

/// A random value that a device draws at each boot, and whenever it can no longer remember which initiations
/// it has accepted. An initiation that names another epoch than the current one isn't executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Epoch(pub [u8; 8]);

/// Proof that its holder receives what is sent to its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub [u8; COOKIE_BYTES]);

/// Some bytes of the datagram that is answered, by which its sender knows that the answer comes
/// from somebody who has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo(pub [u8; ECHO_BYTES]);

/// One end's number for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionIndex(pub u32);

/// A datagram, its parts still sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// The first message of a handshake.
    Initiation(Initiation<'a>),
    /// The second and last message of a handshake.
    Response(Response<'a>),
    /// A message of a session.
    Data(Data<'a>),
    /// A question for a device's epoch and key.
    Probe(Probe),
    /// The answer to a probe, or to an initiation that can't be taken as it is.
    Challenge(Challenge),
    /// Word that a datagram was for somebody who isn't there.
    Refusal(Refusal),
    /// Word that an initiation came when others had to be served first.
    Deferral(Deferral),
}

impl<'a> Datagram<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// As [`DatagramError`] says; the sender is to blame.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DatagramError> {
        let (first, rest) = bytes.split_first().ok_or(DatagramError::Length)?;
        if first >> 4 != VERSION {
            return Err(DatagramError::Version);
        }
        match Kind::from_byte(first & 0x0f).ok_or(DatagramError::Kind)? {
            Kind::Initiation => Initiation::parse(bytes).map(Self::Initiation),
            Kind::Response => Response::parse(rest).map(Self::Response),
            Kind::Data => Data::parse(bytes).map(Self::Data),
            Kind::Probe => Probe::parse(rest).map(Self::Probe),
            Kind::Challenge => Challenge::parse(rest).map(Self::Challenge),
            Kind::Refusal => Refusal::parse(rest).map(Self::Refusal),
            Kind::Deferral => Deferral::parse(rest).map(Self::Deferral),
        }
        .ok_or(DatagramError::Length)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Initiation = 1,
    Response = 2,
    Data = 3,
    Probe = 4,
    Challenge = 5,
    Refusal = 6,
    Deferral = 7,
}

/// The kind of a [`Relayed`], which is no datagram of a session: whoever relays or is relayed to takes off what is around it.
const RELAYED: u8 = 8;

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Initiation,
            Self::Response,
            Self::Data,
            Self::Probe,
            Self::Challenge,
            Self::Refusal,
            Self::Deferral,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }

    const fn first_byte(self) -> u8 {
        VERSION << 4 | self as u8
    }
}

/// The first message of a handshake (Noise IK: e, es, s, ss), which may carry a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initiation<'a> {
    /// Everything before the proof as it was sent; the handshake authenticates it.
    pub header: &'a [u8; INITIATION_HEADER_BYTES],
    /// The machine that is meant.
    pub destination: MachineId,
    /// The sender's number for the session to come.
    pub sender: SessionIndex,
    /// The destination's epoch as the sender knows it.
    pub epoch: Epoch,
    /// A code of the header and the Noise message under a key that tells something of the sender: a
    /// cookie that it was given, or one that only it and the destination can compute. The handshake
    /// doesn't authenticate it.
    pub proof: [u8; PROOF_BYTES],
    /// The message of the Noise handshake.
    pub noise: &'a [u8],
}

impl<'a> Initiation<'a> {
    /// The header of an initiation, to which proof and Noise message are appended.
    pub fn header(
        destination: &MachineId,
        sender: SessionIndex,
        epoch: &Epoch,
    ) -> [u8; INITIATION_HEADER_BYTES] {
        let mut header = [0; INITIATION_HEADER_BYTES];
        header[0] = Kind::Initiation.first_byte();
        header[1..13].copy_from_slice(&destination.0);
        header[13..17].copy_from_slice(&sender.0.to_le_bytes());
        header[17..25].copy_from_slice(&epoch.0);
        header
    }

    /// Puts `proof` into the initiation in `datagram`, which stays the same otherwise.
    pub fn set_proof(datagram: &mut [u8], proof: &[u8; PROOF_BYTES]) {
        if let Some(place) = datagram
            .get_mut(INITIATION_HEADER_BYTES..)
            .and_then(|rest| rest.first_chunk_mut::<PROOF_BYTES>())
        {
            *place = *proof;
        }
    }

    /// The bytes that an answer to this initiation echoes: the start of its ephemeral key.
    pub fn echo(&self) -> Echo {
        Echo(self.noise.first_chunk().copied().unwrap_or_default())
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < INITIATION_OVERHEAD {
            return None;
        }
        let (header, rest) = bytes.split_first_chunk()?;
        let (_, fields) = header.split_first()?;
        let (destination, fields) = fields.split_first_chunk()?;
        let (sender, fields) = fields.split_first_chunk()?;
        let (epoch, _) = fields.split_first_chunk()?;
        let (proof, noise) = rest.split_first_chunk()?;
        Some(Self {
            header,
            destination: MachineId(*destination),
            sender: SessionIndex(u32::from_le_bytes(*sender)),
            epoch: Epoch(*epoch),
            proof: *proof,
            noise,
        })
    }
}

/// The second message of a handshake (Noise IK: e, ee, se).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The number that the receiver gave to the session.
    pub receiver: SessionIndex,
    /// The message of the Noise handshake.
    pub noise: &'a [u8],
}

impl<'a> Response<'a> {
    /// The bytes before the Noise message of a response.
    pub fn header(receiver: SessionIndex) -> [u8; 5] {
        let mut header = [Kind::Response.first_byte(); 5];
        header[1..].copy_from_slice(&receiver.0.to_le_bytes());
        header
    }

    /// How long the datagram is, in bytes.
    pub fn length(&self) -> usize {
        5 + self.noise.len()
    }

    fn parse(fields: &'a [u8]) -> Option<Self> {
        let (receiver, noise) = fields.split_first_chunk()?;
        (noise.len() >= 32 + TAG_BYTES)
            .then_some(Self { receiver: SessionIndex(u32::from_le_bytes(*receiver)), noise })
    }
}

/// A message of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Everything before the message as it was sent; it is authenticated with the message.
    pub header: &'a [u8; DATA_HEADER_BYTES],
    /// The number that the receiver gave to the session.
    pub receiver: SessionIndex,
    /// How many messages the sender sent before in this session.
    pub counter: u64,
    /// The message and its tag.
    pub sealed: &'a [u8],
}

impl<'a> Data<'a> {
    /// The bytes before the message of a data datagram.
    pub fn header(receiver: SessionIndex, counter: u64) -> [u8; DATA_HEADER_BYTES] {
        let mut header = [0; DATA_HEADER_BYTES];
        header[0] = Kind::Data.first_byte();
        header[1..5].copy_from_slice(&receiver.0.to_le_bytes());
        header[5..].copy_from_slice(&counter.to_le_bytes());
        header
    }

    /// The bytes that an answer to this datagram echoes: its tag.
    pub fn echo(&self) -> Echo {
        Echo(self.sealed.last_chunk().copied().unwrap_or_default())
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, sealed) = bytes.split_first_chunk()?;
        let (_, fields) = header.split_first()?;
        let (receiver, counter) = fields.split_first_chunk()?;
        (sealed.len() >= TAG_BYTES).then_some(Self {
            header,
            receiver: SessionIndex(u32::from_le_bytes(*receiver)),
            counter: u64::from_le_bytes(*counter.first_chunk()?),
            sealed,
        })
    }
}

/// A question for a device's epoch, a cookie, and the key of its own machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The bytes that the challenge is to echo.
    pub nonce: Echo,
}

impl Probe {
    /// The datagram, as long as the challenge that answers it.
    pub fn to_bytes(&self) -> [u8; CHALLENGE_BYTES] {
        let mut bytes = [0; CHALLENGE_BYTES];
        bytes[0] = Kind::Probe.first_byte();
        bytes[1..17].copy_from_slice(&self.nonce.0);
        bytes
    }

    fn parse(fields: &[u8]) -> Option<Self> {
        let (nonce, _) = fields.split_first_chunk()?;
        (fields.len() + 1 >= CHALLENGE_BYTES).then_some(Self { nonce: Echo(*nonce) })
    }
}

/// The name that an initiation must carry to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The nonce of the probe, or the echo of the initiation, that is answered.
    pub echo: Echo,
    /// The device's current epoch.
    pub epoch: Epoch,
    /// A cookie for the address that the question came from.
    pub cookie: Cookie,
    /// The key of the device's own machine; all zeros if it has none.
    pub key: PublicKey,
}

impl Challenge {
    /// The datagram.
    pub fn to_bytes(&self) -> [u8; CHALLENGE_BYTES] {
        let mut bytes = [0; CHALLENGE_BYTES];
        bytes[0] = Kind::Challenge.first_byte();
        bytes[1..17].copy_from_slice(&self.echo.0);
        bytes[17..25].copy_from_slice(&self.epoch.0);
        bytes[25..41].copy_from_slice(&self.cookie.0);
        bytes[41..].copy_from_slice(&self.key.0);
        bytes
    }

    fn parse(fields: &[u8]) -> Option<Self> {
        let (echo, fields) = fields.split_first_chunk()?;
        let (epoch, fields) = fields.split_first_chunk()?;
        let (cookie, fields) = fields.split_first_chunk()?;
        let key = fields.try_into().ok()?;
        Some(Self {
            echo: Echo(*echo),
            epoch: Epoch(*epoch),
            cookie: Cookie(*cookie),
            key: PublicKey(key),
        })
    }
}

/// Word that a datagram was for somebody who isn't there. Anybody can make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The end that is absent.
    pub reason: RefusalReason,
    /// The echo of the datagram that is refused.
    pub echo: Echo,
}

/// The end that is absent: a session or a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The session of a [`Data`] datagram is unknown or over.
    NoSuchSession = 1,
    /// The machine that an [`Initiation`] is for isn't on this device.
    NoSuchMachine = 2,
}

impl Refusal {
    /// The datagram.
    pub fn to_bytes(&self) -> [u8; REFUSAL_BYTES] {
        let mut bytes = [0; REFUSAL_BYTES];
        bytes[0] = Kind::Refusal.first_byte();
        bytes[1] = self.reason as u8;
        bytes[2..].copy_from_slice(&self.echo.0);
        bytes
    }

    fn parse(fields: &[u8]) -> Option<Self> {
        let (reason, echo) = fields.split_first()?;
        let reason = match reason {
            1 => RefusalReason::NoSuchSession,
            2 => RefusalReason::NoSuchMachine,
            _ => return None,
        };
        Some(Self { reason, echo: Echo(echo.try_into().ok()?) })
    }
}

/// Word that whoever opens a session has a turn later. Anybody can make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferral {
    /// The echo of the initiation that has to wait.
    pub echo: Echo,
    /// How long its sender is to wait before it sends it again, in milliseconds.
    pub again_in_ms: u32,
}

impl Deferral {
    /// The datagram.
    pub fn to_bytes(&self) -> [u8; DEFERRAL_BYTES] {
        let mut bytes = [0; DEFERRAL_BYTES];
        bytes[0] = Kind::Deferral.first_byte();
        bytes[1..17].copy_from_slice(&self.echo.0);
        bytes[17..].copy_from_slice(&self.again_in_ms.to_le_bytes());
        bytes
    }

    fn parse(fields: &[u8]) -> Option<Self> {
        let (echo, again_in_ms) = fields.split_first_chunk()?;
        let again_in_ms = u32::from_le_bytes(again_in_ms.try_into().ok()?);
        Some(Self { echo: Echo(*echo), again_in_ms })
    }
}

/// A datagram that a hub relays between two who have sessions with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed<'a> {
    /// The hub's number for the way between the two.
    pub way: [u8; 8],
    /// The datagram, of which the hub reads nothing.
    pub datagram: &'a [u8],
}

impl<'a> Relayed<'a> {
    /// The datagram with what is around it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(RELAYED_OVERHEAD + self.datagram.len());
        bytes.push(VERSION << 4 | RELAYED);
        bytes.extend_from_slice(&self.way);
        bytes.extend_from_slice(self.datagram);
        bytes
    }

    /// Reads one; `None` if it is of another kind.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        let (way, datagram) = rest.split_first_chunk()?;
        (*first == VERSION << 4 | RELAYED).then_some(Self { way: *way, datagram })
    }
}

/// Why bytes are no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramError {
    /// Too short, or too long, for what it says it is.
    Length,
    /// Another version than [`VERSION`].
    Version,
    /// A kind that this version doesn't have.
    Kind,
}

impl fmt::Display for DatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "the datagram's length doesn't fit its kind",
            Self::Version => "the datagram is of another version",
            Self::Kind => "the datagram is of an unknown kind",
        })
    }
}

impl core::error::Error for DatagramError {}

#[cfg(test)]
mod tests;
