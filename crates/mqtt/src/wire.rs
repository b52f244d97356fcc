//! Data as packets have it (§1.5): numbers, strings, properties, the frame of a packet.

use alloc::vec::Vec;

use crate::fault::Fault;

/// The largest variable byte integer (§1.5.5), and so the longest packet behind its fixed header.
const VARIABLE_MAX: u32 = 268_435_455;

/// The place of a packet in what has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The first byte: the type and its flags (§2.1.1).
    pub(crate) first: u8,
    /// Where the packet goes on behind its fixed header.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
}

/// The first packet in `bytes`; `None` while it isn't whole. One of more than `bytes_max` is refused by its header.
pub(crate) fn frame(bytes: &[u8], bytes_max: u32) -> Result<Option<Frame>, Fault> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    let mut reader = Reader(rest);
    let length = match reader.variable() {
        Ok(length) => length,
        // Of a number of four bytes at most the last is missing.
        Err(_) if rest.len() < 4 && rest.iter().all(|byte| byte & 0x80 != 0) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let start = bytes.len() - reader.0.len();
    if length > bytes_max.saturating_sub(start as u32) {
        return Err(Fault::TooLong);
    }
    let end = start + length as usize;
    Ok((end <= bytes.len()).then_some(Frame { first, start, end }))
}

/// Reads what a broker sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or(Fault::Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) =
            self.0.split_first_chunk().ok_or(Fault::Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn short(&mut self) -> Result<u16, Fault> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A variable byte integer, in as few bytes as it takes (§1.5.5).
    pub(crate) fn variable(&mut self) -> Result<u32, Fault> {
        let mut value = 0;
        for place in 0..4 {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7F) << (7 * place);
            if byte & 0x80 == 0 {
                let is_shortest = byte != 0 || place == 0;
                return if is_shortest {
                    Ok(value)
                } else {
                    Err(Fault::Malformed("a length isn't in its shortest form"))
                };
            }
        }
        Err(Fault::Malformed("a length has more than four bytes"))
    }

    fn binary(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.short()?;
        self.take(length.into())
    }

    /// A string (§1.5.4).
    pub(crate) fn text(&mut self) -> Result<&'a str, Fault> {
        let text = core::str::from_utf8(self.binary()?);
        let text = text.map_err(|_| Fault::Malformed("a string isn't UTF-8"))?;
        if text.contains('\0') {
            return Err(Fault::Malformed("a string has the character U+0000"));
        }
        Ok(text)
    }

    /// The properties that follow, of which those in `allowed` may be there (§2.2.2).
    pub(crate) fn properties(&mut self, allowed: &'static [u8]) -> Result<Properties<'a>, Fault> {
        let length = self.variable()?;
        let properties = Properties { rest: Reader(self.take(length as usize)?), allowed, seen: 0 };
        // All are looked at, also by who wants none.
        for property in properties {
            property?;
        }
        Ok(properties)
    }
}

/// The identifiers of properties (§2.2.2.2).
pub(crate) mod property {
    pub(crate) const PAYLOAD_FORMAT: u8 = 0x01;
    pub(crate) const MESSAGE_EXPIRY: u8 = 0x02;
    pub(crate) const CONTENT_TYPE: u8 = 0x03;
    pub(crate) const RESPONSE_TOPIC: u8 = 0x08;
    pub(crate) const CORRELATION: u8 = 0x09;
    pub(crate) const SUBSCRIPTION: u8 = 0x0B;
    pub(crate) const SESSION_EXPIRY: u8 = 0x11;
    pub(crate) const ASSIGNED_CLIENT: u8 = 0x12;
    pub(crate) const KEEP_ALIVE: u8 = 0x13;
    pub(crate) const METHOD: u8 = 0x15;
    pub(crate) const METHOD_DATA: u8 = 0x16;
    pub(crate) const RESPONSE_INFORMATION: u8 = 0x1A;
    pub(crate) const SERVER: u8 = 0x1C;
    pub(crate) const REASON: u8 = 0x1F;
    pub(crate) const RECEIVE_MAXIMUM: u8 = 0x21;
    pub(crate) const ALIAS_MAXIMUM: u8 = 0x22;
    pub(crate) const ALIAS: u8 = 0x23;
    pub(crate) const QOS_MAXIMUM: u8 = 0x24;
    pub(crate) const RETAIN: u8 = 0x25;
    pub(crate) const USER: u8 = 0x26;
    pub(crate) const PACKET_MAXIMUM: u8 = 0x27;
    pub(crate) const WILDCARDS: u8 = 0x28;
    pub(crate) const SUBSCRIPTIONS: u8 = 0x29;
    pub(crate) const SHARED: u8 = 0x2A;
}

/// The value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u32),
    Text(&'a str),
    /// Binary data, or a pair of strings, which nobody here wants.
    Other,
}

/// Properties, each with its identifier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties<'a> {
    rest: Reader<'a>,
    allowed: &'static [u8],
    /// The identifiers that were there, a bit each.
    seen: u64,
}

impl<'a> Properties<'a> {
    fn read(&mut self) -> Result<(u8, Value<'a>), Fault> {
        use property::*;
        let id = self.rest.byte()?;
        let reader = &mut self.rest;
        if !self.allowed.contains(&id) {
            return Err(Fault::Protocol("a property doesn't belong to its packet"));
        }
        let may_repeat = id == USER || id == SUBSCRIPTION;
        if self.seen & (1 << id) != 0 && !may_repeat {
            return Err(Fault::Protocol("a property is there twice"));
        }
        self.seen |= 1 << id;
        let value = match id {
            PAYLOAD_FORMAT | QOS_MAXIMUM | RETAIN | WILDCARDS | SUBSCRIPTIONS | SHARED => {
                let byte = reader.byte()?;
                if byte > 1 {
                    return Err(Fault::Protocol("a property is neither 0 nor 1"));
                }
                Value::Number(byte.into())
            }
            KEEP_ALIVE | RECEIVE_MAXIMUM | ALIAS_MAXIMUM | ALIAS => {
                Value::Number(reader.short()?.into())
            }
            MESSAGE_EXPIRY | SESSION_EXPIRY | PACKET_MAXIMUM => Value::Number(reader.long()?),
            SUBSCRIPTION => Value::Number(reader.variable()?),
            CORRELATION | METHOD_DATA => {
                reader.binary()?;
                Value::Other
            }
            USER => {
                reader.text()?;
                reader.text()?;
                Value::Other
            }
            _ => Value::Text(reader.text()?),
        };
        // §3.2.2.3.2, §3.2.2.3.6, §3.3.2.3.8.
        let is_zero = value == Value::Number(0);
        if is_zero && [RECEIVE_MAXIMUM, PACKET_MAXIMUM, SUBSCRIPTION].contains(&id) {
            return Err(Fault::Protocol("a property is 0 that may not be"));
        }
        Ok((id, value))
    }
}

impl<'a> Iterator for Properties<'a> {
    type Item = Result<(u8, Value<'a>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let property = self.read();
        if property.is_err() {
            self.rest = Reader(&[]);
        }
        Some(property)
    }
}

/// Writes a packet: what is behind the fixed header, which comes before it at the end.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    pub(crate) fn short(&mut self, number: u16) -> &mut Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    pub(crate) fn long(&mut self, number: u32) -> &mut Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Binary data or a string (§1.5.4, §1.5.6); the part that the protocol has no room for is left out.
    pub(crate) fn binary(&mut self, bytes: &[u8]) -> &mut Self {
        let bytes = bytes.get(..usize::from(u16::MAX)).unwrap_or(bytes);
        self.short(bytes.len() as u16).raw(bytes)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// All that was written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The packet, with `first` as its first byte.
    pub(crate) fn packet(&self, first: u8) -> Vec<u8> {
        let mut packet = Vec::with_capacity(self.0.len() + 5);
        packet.push(first);
        let mut left = (self.0.len() as u32).min(VARIABLE_MAX);
        while left >= 0x80 {
            packet.push(left as u8 | 0x80);
            left >>= 7;
        }
        packet.push(left as u8);
        packet.extend_from_slice(&self.0);
        packet
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn packet_of_any_length_has_it_before_it_in_its_shortest_form_and_is_read_by_it() {
        // §1.5.5, table 1-1, and the numbers beside its bounds.
        for (length, expected) in [
            (0, &[0][..]),
            (127, &[0x7F]),
            (128, &[0x80, 0x01]),
            (129, &[0x81, 0x01]),
            (16_383, &[0xFF, 0x7F]),
            (16_384, &[0x80, 0x80, 0x01]),
            (2_097_151, &[0xFF, 0xFF, 0x7F]),
            (2_097_152, &[0x80, 0x80, 0x80, 0x01]),
        ] {
            let mut writer = Writer::default();
            writer.raw(&vec![7; length]);
            let packet = writer.packet(0x30);
            let start = 1 + expected.len();
            assert_eq!(&packet[1..start], expected, "{length}");
            assert_eq!(packet.len(), start + length);
            let whole = Frame { first: 0x30, start, end: packet.len() };
            let bytes_max = packet.len() as u32;
            assert_eq!(frame(&packet, bytes_max), Ok(Some(whole)));
            if length > 0 {
                assert_eq!(frame(&packet, bytes_max - 1), Err(Fault::TooLong));
            }
            for cut in [1, start - 1, packet.len() - 1] {
                assert_eq!(frame(&packet[..cut], bytes_max), Ok(None), "{length}, {cut}");
            }
        }
    }

    #[test]
    fn length_of_five_bytes_is_malformed() {
        let five = [0x30, 0x80, 0x80, 0x80, 0x80, 0x01];
        assert!(matches!(frame(&five, u32::MAX), Err(Fault::Malformed(_))));
    }
}
