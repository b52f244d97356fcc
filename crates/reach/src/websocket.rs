//! The part of WebSocket (RFC 6455) by which datagrams travel: a binary message is one datagram.
//!
//! Invariants:
//! - Of what comes, no more is kept than one message and one frame of it, each as long as a datagram at most.
//! - Whatever isn't due ends the connection: text, reserved bits, a client that doesn't mask or a server that does, a control
//!   frame in parts, a length that isn't written in the shortest way.

use std::fmt;

use data_encoding::BASE64;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tenure_hal::DATAGRAM_BYTES_MAX;

/// The path at which a hub takes datagrams by WebSocket.
pub const DATAGRAMS_PATH: &str = "/datagrams";
/// The name of what is spoken inside (RFC 6455 §1.9).
pub const SUBPROTOCOL: &str = "tenure.datagrams.1";
/// The version of WebSocket.
pub const VERSION: &str = "13";
/// What both sides add to the client's key (RFC 6455 §1.3).
const ACCEPT_SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest payload of a control frame (RFC 6455 §5.5).
const CONTROL_BYTES_MAX: usize = 125;
/// The longest head of a frame that is written here: two bytes, a length of 16 bits, a mask.
const HEAD_BYTES_MAX: usize = 2 + 2 + 4;

/// The answer to a client's key (RFC 6455 §4.2.2): it shows that the server speaks WebSocket, and proves nothing.
pub fn accept_of(key: &str) -> String {
    let salted = [key.as_bytes(), ACCEPT_SALT].concat();
    BASE64.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &salted).as_ref())
}

/// A key from so many random bytes.
pub fn key_of(nonce: &[u8; 16]) -> String {
    BASE64.encode(nonce)
}

/// Whether a client's key is one: 16 bytes in Base64.
pub fn is_key(text: &str) -> bool {
    BASE64.decode(text.as_bytes()).is_ok_and(|nonce| nonce.len() == 16)
}

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Whoever opened it, and masks what it sends.
    Client,
    /// Whoever took it.
    Server,
}

/// A kind of frame, by its number (RFC 6455 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A datagram.
    Binary = 2,
    /// The end of the connection.
    Close = 8,
    /// A question whether the other side is there.
    Ping = 9,
    /// The answer.
    Pong = 10,
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A datagram.
    Datagram(Vec<u8>),
    /// A question, to be answered by a [`Kind::Pong`] with these bytes.
    Ping(Vec<u8>),
    /// An answer, or one that nobody asked for.
    Pong,
    /// The other side ends the connection.
    Close,
}

/// Why a connection is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The other side broke the protocol.
    Protocol,
    /// It sent a text, which is no datagram.
    Text,
    /// A message is longer than a datagram.
    TooLong,
}

impl Broken {
    /// The number by which the other side is told (RFC 6455 §7.4.1).
    pub const fn code(self) -> u16 {
        match self {
            Self::Protocol => 1002,
            Self::Text => 1003,
            Self::TooLong => 1009,
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Protocol => "it doesn't keep to WebSocket",
            Self::Text => "it sent a text in the place of a datagram",
            Self::TooLong => "it sent a message that is longer than a datagram",
        })
    }
}

impl std::error::Error for Broken {}

/// A frame with all of its message, as `own` side sends it; a client masks it by `mask`, which must be random.
pub fn frame(own: Side, kind: Kind, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let (masks, mask) = match own {
        Side::Client => (0x80, mask),
        Side::Server => (0, [0; 4]),
    };
    let mut bytes = Vec::with_capacity(HEAD_BYTES_MAX + payload.len());
    bytes.push(0x80 | kind as u8);
    match u8::try_from(payload.len()) {
        Ok(length) if length < 126 => bytes.push(masks | length),
        _ => {
            bytes.push(masks | 126);
            // A datagram is far shorter than that.
            let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
            bytes.extend(length.to_be_bytes());
        }
    }
    if own == Side::Client {
        bytes.extend(mask);
    }
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// The frame that ends a connection, with its reason.
pub fn close(own: Side, broken: Option<Broken>, mask: [u8; 4]) -> Vec<u8> {
    let code = broken.map_or(1000, Broken::code);
    frame(own, Kind::Close, &code.to_be_bytes(), mask)
}

/// What comes from the other side.
#[derive(Debug)]
pub struct Incoming {
    own: Side,
    received: Vec<u8>,
    /// The beginning of a message that comes in several frames.
    begun: Option<Vec<u8>>,
}

/// The head of a frame.
struct Head {
    is_final: bool,
    opcode: u8,
    mask: [u8; 4],
    /// Where its payload begins and ends.
    payload: std::ops::Range<usize>,
}

impl Incoming {
    /// Nothing yet, at this side.
    pub fn new(own: Side) -> Self {
        Self { own, received: Vec::new(), begun: None }
    }

    /// Takes bytes in. All messages in there are to be asked for before more are taken in: what is kept is bounded by that.
    pub fn take(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The next message, once all of it is there.
    ///
    /// # Errors
    /// [`Broken`]: nothing more is to be read.
    pub fn message(&mut self) -> Result<Option<Message>, Broken> {
        while let Some(head) = self.head()? {
            let Some(payload) = self.received.get(head.payload.clone()) else { return Ok(None) };
            let unmasked = payload.iter().zip(head.mask.iter().cycle());
            let payload: Vec<u8> = unmasked.map(|(byte, mask)| byte ^ mask).collect();
            self.received.drain(..head.payload.end);
            if let Some(message) = self.framed(&head, payload)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// The message that a frame ends, if it does.
    fn framed(&mut self, head: &Head, payload: Vec<u8>) -> Result<Option<Message>, Broken> {
        match (head.opcode, self.begun.take()) {
            // Control frames come also between the frames of a message.
            (8, _) => return Ok(Some(Message::Close)),
            (9, begun) => {
                self.begun = begun;
                return Ok(Some(Message::Ping(payload)));
            }
            (10, begun) => {
                self.begun = begun;
                return Ok(Some(Message::Pong));
            }
            (0, Some(mut begun)) => {
                begun.extend(payload);
                self.begun = Some(begun);
            }
            (2, None) => self.begun = Some(payload),
            (1, None) => return Err(Broken::Text),
            _ => return Err(Broken::Protocol),
        }
        if self.begun.as_ref().is_some_and(|begun| begun.len() > DATAGRAM_BYTES_MAX) {
            return Err(Broken::TooLong);
        }
        if !head.is_final {
            return Ok(None);
        }
        Ok(self.begun.take().map(Message::Datagram))
    }

    /// The head of the next frame, once it is there.
    fn head(&self) -> Result<Option<Head>, Broken> {
        let [first, second, rest @ ..] = self.received.as_slice() else { return Ok(None) };
        let (opcode, is_final) = (first & 0x0F, first & 0x80 != 0);
        let is_masked = second & 0x80 != 0;
        if first & 0x70 != 0 || is_masked != (self.own == Side::Server) {
            return Err(Broken::Protocol);
        }
        let (length, rest, before) = match (second & 0x7F, rest) {
            (127, _) => return Err(Broken::TooLong),
            (126, [high, low, rest @ ..]) => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length < 126 {
                    return Err(Broken::Protocol);
                }
                (length, rest, 4)
            }
            (126, _) => return Ok(None),
            (length, rest) => (usize::from(length), rest, 2),
        };
        if opcode >= 8 && (!is_final || length > CONTROL_BYTES_MAX) {
            return Err(Broken::Protocol);
        }
        if length > DATAGRAM_BYTES_MAX {
            return Err(Broken::TooLong);
        }
        let (mask, begin) = match (is_masked, rest.first_chunk()) {
            (false, _) => ([0; 4], before),
            (true, Some(mask)) => (*mask, before + 4),
            (true, None) => return Ok(None),
        };
        Ok(Some(Head { is_final, opcode, mask, payload: begin..begin + length }))
    }
}

#[cfg(test)]
mod tests;
