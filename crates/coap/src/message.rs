//! Messages: requests as they are read, replies as they are written (RFC 7252 §3 and §5.10), by `coap-lite`.

use coap_lite::{CoapOption, MessageClass, MessageType, Packet, RequestType};
pub(crate) use coap_lite::{MessageType as Type, ResponseType as Code};

use crate::block::Block;

/// The longest datagram that is read: what fits a frame of Ethernet, and then some.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 1500;
/// The longest datagram that is sent (RFC 7252 §4.6).
pub(crate) const MESSAGE_BYTES_MAX: usize = 1152;
/// The bytes of an entity tag.
pub(crate) const TAG_BYTES: usize = 4;
/// The bytes of an Echo option's value.
pub(crate) const ECHO_BYTES: usize = 8;

/// Options that coap-lite has no name for: Echo and Request-Tag (RFC 9175).
const ECHO: u16 = 252;
const REQUEST_TAG: u16 = 292;

/// A datagram as it is to be treated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// A request, confirmable or not.
    Request(Box<Request>),
    /// The message of that id was received.
    Acknowledged(u16),
    /// The message of that id means nothing to its receiver.
    Reset(u16),
    /// To be rejected by a reset: a ping, or a confirmable message that isn't understood (RFC 7252 §4.2, §4.3).
    Rejected(u16),
    /// To be dropped in silence.
    Ignored,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) is_confirmable: bool,
    pub(crate) id: u16,
    pub(crate) token: Vec<u8>,
    /// The length of its datagram.
    pub(crate) datagram_bytes: usize,
    /// The value of its Echo option.
    pub(crate) echo: Option<Vec<u8>>,
    /// Its meaning, or the reason why it has none.
    pub(crate) asked: Result<Asked, Misread>,
}

/// The meaning of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: Vec<String>,
    /// All of the query, with `&` between its parts.
    pub(crate) query: Option<String>,
    /// The format of the payload.
    pub(crate) format: Option<u16>,
    /// The format that the answer is to have.
    pub(crate) accept: Option<u16>,
    /// Whether notifications are to begin or to end.
    pub(crate) observe: Option<Observe>,
    pub(crate) block1: Option<Block>,
    pub(crate) block2: Option<Block>,
    /// The length of the whole payload, as alleged.
    pub(crate) size1: Option<u32>,
    /// Entity tags of representations that the client has.
    pub(crate) tags: Vec<Vec<u8>>,
    /// The name of a transfer by Block1 (RFC 9175 §3).
    pub(crate) request_tag: Option<Vec<u8>>,
    pub(crate) payload: Vec<u8>,
}

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    /// RFC 8132.
    Fetch,
    /// One that no resource has.
    Other,
}

/// The values of Observe in a request (RFC 7641 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observe {
    Register,
    Deregister,
}

/// A request whose options can't be used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Misread {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl Misread {
    fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// Reads a datagram.
pub(crate) fn read(datagram: &[u8]) -> Heard {
    let Some([first, _, high, low]) = datagram.first_chunk::<4>() else { return Heard::Ignored };
    if first >> 6 != 1 {
        // Another version (RFC 7252 §3).
        return Heard::Ignored;
    }
    let (id, is_confirmable) = (u16::from_be_bytes([*high, *low]), first >> 4 & 3 == 0);
    let rejected = if is_confirmable { Heard::Rejected(id) } else { Heard::Ignored };
    if datagram.len() > DATAGRAM_BYTES_MAX {
        return rejected;
    }
    let Ok(packet) = Packet::from_bytes(datagram) else { return rejected };
    if has_empty_payload(&packet, datagram) {
        return rejected;
    }
    let kind = packet.header.get_type();
    let is_request_type = matches!(kind, MessageType::Confirmable | MessageType::NonConfirmable);
    match packet.header.code {
        // An empty message has nothing behind its header (RFC 7252 §4.1).
        MessageClass::Empty if datagram.len() != 4 => rejected,
        MessageClass::Empty => match kind {
            MessageType::Confirmable => Heard::Rejected(id),
            MessageType::NonConfirmable => Heard::Ignored,
            MessageType::Acknowledgement => Heard::Acknowledged(id),
            MessageType::Reset => Heard::Reset(id),
        },
        // Class 0 is requests, known or not; all else is none, and nothing was asked of anybody (RFC 7252 §4.2).
        code if u8::from(code) < 0x20 && is_request_type => {
            Heard::Request(Box::new(request(packet, is_confirmable, datagram.len())))
        }
        _ => rejected,
    }
}

/// Whether a payload of no bytes follows its marker, which is an error (RFC 7252 §3). Each option has one way to be written,
/// so that a message without the marker is as long as it was.
fn has_empty_payload(packet: &Packet, datagram: &[u8]) -> bool {
    packet.payload.is_empty()
        && datagram.last() == Some(&0xFF)
        && packet.to_bytes_unlimited().is_ok_and(|bytes| bytes.len() != datagram.len())
}

fn request(packet: Packet, is_confirmable: bool, datagram_bytes: usize) -> Request {
    let echo = packet.get_first_option(CoapOption::Unknown(ECHO)).cloned();
    Request {
        is_confirmable,
        id: packet.header.message_id,
        token: packet.get_token().to_vec(),
        datagram_bytes,
        echo,
        asked: asked(packet),
    }
}

fn asked(packet: Packet) -> Result<Asked, Misread> {
    let method = match packet.header.code {
        MessageClass::Request(RequestType::Get) => Method::Get,
        MessageClass::Request(RequestType::Post) => Method::Post,
        MessageClass::Request(RequestType::Put) => Method::Put,
        MessageClass::Request(RequestType::Fetch) => Method::Fetch,
        _ => Method::Other,
    };
    check_options(&packet)?;
    let path = texts(&packet, CoapOption::UriPath)?;
    let request_tag = values(&packet, CoapOption::Unknown(REQUEST_TAG)).next().cloned();
    let query = texts(&packet, CoapOption::UriQuery)?;
    let asked = Asked {
        method,
        path,
        query: (!query.is_empty()).then(|| query.join("&")),
        format: number(&packet, CoapOption::ContentFormat).map(|format| format as u16),
        accept: number(&packet, CoapOption::Accept).map(|format| format as u16),
        observe: match number(&packet, CoapOption::Observe) {
            Some(0) => Some(Observe::Register),
            Some(1) => Some(Observe::Deregister),
            _ => None,
        },
        block1: block(&packet, CoapOption::Block1)?,
        block2: block(&packet, CoapOption::Block2)?,
        size1: number(&packet, CoapOption::Size1),
        tags: values(&packet, CoapOption::ETag).cloned().collect(),
        request_tag,
        payload: packet.payload,
    };
    if asked.block1.is_some() && asked.method == Method::Get {
        return Err(Misread::new(Code::BadOption, "GET has no payload to come in blocks"));
    }
    Ok(asked)
}

/// The longest value of a critical option that is understood, and whether it may stand there several times (RFC 7252
/// §5.10, RFC 7959 §2.1).
fn critical(number: u16) -> Option<(usize, bool)> {
    Some(match CoapOption::from(number) {
        // One server has these hosts and ports.
        CoapOption::UriHost => (255, false),
        CoapOption::UriPort => (2, false),
        CoapOption::UriPath | CoapOption::UriQuery => (255, true),
        CoapOption::Accept => (2, false),
        CoapOption::Block1 | CoapOption::Block2 => (3, false),
        _ => return None,
    })
}

/// Refuses what must be understood and isn't (RFC 7252 §5.4). What needn't be is left out where it is read.
fn check_options(packet: &Packet) -> Result<(), Misread> {
    for (number, values) in packet.options() {
        if matches!(CoapOption::from(*number), CoapOption::ProxyUri | CoapOption::ProxyScheme) {
            return Err(Misread::new(Code::ProxyingNotSupported, "this is no proxy"));
        }
        let is_critical = number & 1 == 1;
        if !is_critical {
            continue;
        }
        let Some((bytes_max, is_repeatable)) = critical(*number) else {
            return Err(Misread::new(Code::BadOption, format!("option {number} isn't known")));
        };
        if values.len() > 1 && !is_repeatable {
            let text = format!("option {number} stands there twice");
            return Err(Misread::new(Code::BadOption, text));
        }
        if values.iter().any(|value| value.len() > bytes_max) {
            return Err(Misread::new(Code::BadOption, format!("option {number} is too long")));
        }
    }
    Ok(())
}

/// An option that isn't there has no values, as has one that was taken out.
fn values(packet: &Packet, option: CoapOption) -> impl Iterator<Item = &Vec<u8>> {
    packet.get_option(option).into_iter().flatten()
}

fn texts(packet: &Packet, option: CoapOption) -> Result<Vec<String>, Misread> {
    let text = |value: &Vec<u8>| String::from_utf8(value.clone());
    let texts: Result<_, _> = values(packet, option).map(text).collect();
    texts.map_err(|_| Misread::new(Code::BadRequest, "path and query are UTF-8"))
}

/// A number of at most four bytes; an option with a longer value counts as none, as it may be elective.
fn number(packet: &Packet, option: CoapOption) -> Option<u32> {
    let value = values(packet, option).next()?;
    let is_short = value.len() <= 4;
    is_short.then(|| value.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

fn block(packet: &Packet, option: CoapOption) -> Result<Option<Block>, Misread> {
    let Some(value) = values(packet, option).next() else { return Ok(None) };
    let block = Block::read(value);
    let misread = || Misread::new(Code::BadRequest, "a block has 16 to 1024 bytes");
    block.map(Some).ok_or_else(misread)
}

/// A reply, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) code: Code,
    pub(crate) format: Option<u16>,
    pub(crate) max_age_s: Option<u32>,
    pub(crate) tag: Option<[u8; TAG_BYTES]>,
    /// The place of a notification among others (RFC 7641 §3.4).
    pub(crate) observe: Option<u32>,
    pub(crate) block1: Option<Block>,
    pub(crate) block2: Option<Block>,
    /// The longest payload that is taken.
    pub(crate) size1: Option<u32>,
    pub(crate) echo: Option<[u8; ECHO_BYTES]>,
    pub(crate) payload: Vec<u8>,
}

impl Reply {
    /// A reply with nothing but a code.
    pub(crate) fn new(code: Code) -> Self {
        Self {
            code,
            format: None,
            max_age_s: None,
            tag: None,
            observe: None,
            block1: None,
            block2: None,
            size1: None,
            echo: None,
            payload: Vec::new(),
        }
    }

    /// The message.
    pub(crate) fn message(&self, kind: Type, id: u16, token: &[u8]) -> Vec<u8> {
        let mut packet = empty(kind, id);
        packet.header.code = MessageClass::Response(self.code);
        packet.set_token(token.to_vec());
        let mut put = |option, value: Option<Vec<u8>>| {
            if let Some(value) = value {
                packet.add_option(option, value);
            }
        };
        put(CoapOption::ETag, self.tag.map(|tag| tag.to_vec()));
        put(CoapOption::Observe, self.observe.map(uint));
        put(CoapOption::ContentFormat, self.format.map(|format| uint(format.into())));
        put(CoapOption::MaxAge, self.max_age_s.map(uint));
        put(CoapOption::Block2, self.block2.map(|block| uint(block.value())));
        put(CoapOption::Block1, self.block1.map(|block| uint(block.value())));
        put(CoapOption::Size1, self.size1.map(uint));
        put(CoapOption::Unknown(ECHO), self.echo.map(|echo| echo.to_vec()));
        packet.payload.clone_from(&self.payload);
        written(&packet)
    }
}

/// A message without anything behind its header: an acknowledgement, or a reset.
pub(crate) fn empty_message(kind: Type, id: u16) -> Vec<u8> {
    written(&empty(kind, id))
}

fn empty(kind: Type, id: u16) -> Packet {
    let mut packet = Packet::new();
    packet.header.set_version(1);
    packet.header.set_type(kind);
    packet.header.code = MessageClass::Empty;
    packet.header.message_id = id;
    packet
}

fn written(packet: &Packet) -> Vec<u8> {
    // Only a length that is bounded elsewhere would be refused.
    packet.to_bytes_unlimited().unwrap_or_default()
}

/// A number in as few bytes as it takes (RFC 7252 §3.2).
fn uint(number: u32) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

#[cfg(test)]
mod tests;
