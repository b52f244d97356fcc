//! Packets: those that a broker sends, checked, and those that a client sends (§3).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::fault::Fault;
use crate::reason::Reason;
use crate::session::Config;
use crate::topic::{check_topic, is_shared};
use crate::wire::{Reader, Value, Writer, property};
use crate::{Message, Qos};

/// The types of packets (§2.1.2).
mod kind {
    pub(super) const CONNECT: u8 = 1;
    pub(super) const CONNACK: u8 = 2;
    pub(super) const PUBLISH: u8 = 3;
    pub(super) const PUBACK: u8 = 4;
    pub(super) const PUBREC: u8 = 5;
    pub(super) const PUBREL: u8 = 6;
    pub(super) const PUBCOMP: u8 = 7;
    pub(super) const SUBSCRIBE: u8 = 8;
    pub(super) const SUBACK: u8 = 9;
    pub(super) const UNSUBSCRIBE: u8 = 10;
    pub(super) const UNSUBACK: u8 = 11;
    pub(super) const PINGREQ: u8 = 12;
    pub(super) const PINGRESP: u8 = 13;
    pub(super) const DISCONNECT: u8 = 14;
}

/// The limits of a broker, as its CONNACK says (§3.2.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broker {
    pub(crate) receive_max: u16,
    pub(crate) qos_max: Qos,
    pub(crate) retains: bool,
    pub(crate) packet_bytes_max: u32,
    pub(crate) wildcards: bool,
    pub(crate) shared: bool,
    /// In seconds, instead of what the client said.
    pub(crate) keep_alive_s: Option<u16>,
}

impl Default for Broker {
    /// The limits where a CONNACK says nothing.
    fn default() -> Self {
        Self {
            receive_max: u16::MAX,
            qos_max: Qos::ExactlyOnce,
            retains: true,
            packet_bytes_max: u32::MAX,
            wildcards: true,
            shared: true,
            keep_alive_s: None,
        }
    }
}

/// The acknowledgments that name a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ack {
    Published,
    Received,
    Released,
    Completed,
}

/// A packet that a broker sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    Connected {
        resumed: bool,
        broker: Broker,
    },
    Refused {
        reason: Reason,
        words: String,
    },
    /// A message, with its identifier where its QoS has one.
    Published {
        message: Message,
        id: u16,
    },
    Ack {
        ack: Ack,
        id: u16,
        reason: Reason,
    },
    /// One outcome, for this client asks for one filter at a time.
    Subscribed {
        id: u16,
        reason: Reason,
    },
    Unsubscribed {
        id: u16,
    },
    Pong,
    Ended {
        reason: Reason,
        words: String,
    },
}

impl Incoming {
    /// Reads a packet whose fixed header begins with `first`.
    pub(crate) fn read(first: u8, body: &[u8]) -> Result<Self, Fault> {
        let (kind, flags) = (first >> 4, first & 0x0F);
        let reader = &mut Reader(body);
        // §2.1.3: reserved flags.
        let flags_due = if kind == kind::PUBREL { 2 } else { 0 };
        if kind != kind::PUBLISH && flags != flags_due {
            return Err(Fault::Malformed("flags that are reserved are set"));
        }
        let packet = match kind {
            kind::CONNACK => connack(reader)?,
            kind::PUBLISH => return published(flags, reader),
            kind::PUBACK => ack(Ack::Published, reader)?,
            kind::PUBREC => ack(Ack::Received, reader)?,
            kind::PUBREL => ack(Ack::Released, reader)?,
            kind::PUBCOMP => ack(Ack::Completed, reader)?,
            kind::SUBACK => {
                let (id, reason) = outcome(reader)?;
                Self::Subscribed { id, reason }
            }
            kind::UNSUBACK => Self::Unsubscribed { id: outcome(reader)?.0 },
            kind::PINGRESP => Self::Pong,
            kind::DISCONNECT => ended(reader)?,
            _ => return Err(Fault::Protocol("it is of a type that no broker sends here")),
        };
        if !reader.is_empty() {
            return Err(Fault::Malformed("it goes on behind its end"));
        }
        Ok(packet)
    }
}

/// §3.2.
fn connack(reader: &mut Reader<'_>) -> Result<Incoming, Fault> {
    use property::*;
    const ALLOWED: &[u8] = &[
        SESSION_EXPIRY,
        ASSIGNED_CLIENT,
        KEEP_ALIVE,
        METHOD,
        METHOD_DATA,
        RESPONSE_INFORMATION,
        SERVER,
        REASON,
        RECEIVE_MAXIMUM,
        ALIAS_MAXIMUM,
        QOS_MAXIMUM,
        RETAIN,
        USER,
        PACKET_MAXIMUM,
        WILDCARDS,
        SUBSCRIPTIONS,
        SHARED,
    ];
    let (flags, reason) = (reader.byte()?, Reason(reader.byte()?));
    let resumed = match flags {
        0 => false,
        1 => true,
        _ => return Err(Fault::Malformed("flags that are reserved are set")),
    };
    let (mut broker, mut words) = (Broker::default(), String::new());
    for property in reader.properties(ALLOWED)? {
        match property? {
            (RECEIVE_MAXIMUM, Value::Number(number)) => broker.receive_max = number as u16,
            // There are 0 and 1, and no value where it is 2 (§3.2.2.3.4).
            (QOS_MAXIMUM, Value::Number(number)) => {
                broker.qos_max = Qos::from_number(number as u8).unwrap_or_default();
            }
            (RETAIN, Value::Number(number)) => broker.retains = number == 1,
            (PACKET_MAXIMUM, Value::Number(number)) => broker.packet_bytes_max = number,
            (WILDCARDS, Value::Number(number)) => broker.wildcards = number == 1,
            (SHARED, Value::Number(number)) => broker.shared = number == 1,
            (KEEP_ALIVE, Value::Number(number)) => broker.keep_alive_s = Some(number as u16),
            (REASON, Value::Text(text)) => words = text.to_string(),
            _ => {}
        }
    }
    match reason {
        Reason::SUCCESS => Ok(Incoming::Connected { resumed, broker }),
        _ if resumed => Err(Fault::Protocol("a session is there though the connection is refused")),
        _ => Ok(Incoming::Refused { reason, words }),
    }
}

/// §3.3.
fn published(flags: u8, reader: &mut Reader<'_>) -> Result<Incoming, Fault> {
    use property::*;
    const ALLOWED: &[u8] = &[
        PAYLOAD_FORMAT,
        MESSAGE_EXPIRY,
        CONTENT_TYPE,
        RESPONSE_TOPIC,
        CORRELATION,
        SUBSCRIPTION,
        ALIAS,
        USER,
    ];
    let qos = Qos::from_number(flags >> 1 & 3).ok_or(Fault::Malformed("its QoS is 3"))?;
    if qos == Qos::AtMostOnce && flags & 8 != 0 {
        return Err(Fault::Malformed("it is a duplicate of QoS 0"));
    }
    let topic = reader.text()?;
    let id = if qos == Qos::AtMostOnce { 0 } else { identifier(reader)? };
    for property in reader.properties(ALLOWED)? {
        if property?.0 == ALIAS {
            return Err(Fault::Alias);
        }
    }
    if check_topic(topic).is_err() {
        return Err(Fault::Protocol("the topic of a message is empty or has wildcards"));
    }
    let message = Message {
        topic: topic.to_string(),
        payload: reader.0.to_vec(),
        qos,
        retain: flags & 1 != 0,
    };
    Ok(Incoming::Published { message, id })
}

/// §3.4 to §3.7: the reason and the properties may be left out.
fn ack(ack: Ack, reader: &mut Reader<'_>) -> Result<Incoming, Fault> {
    let id = identifier(reader)?;
    let reason = if reader.is_empty() { Reason::SUCCESS } else { Reason(reader.byte()?) };
    if !reader.is_empty() {
        reader.properties(&[property::REASON, property::USER])?;
    }
    Ok(Incoming::Ack { ack, id, reason })
}

/// §3.9, §3.11: of one filter.
fn outcome(reader: &mut Reader<'_>) -> Result<(u16, Reason), Fault> {
    let id = identifier(reader)?;
    reader.properties(&[property::REASON, property::USER])?;
    Ok((id, Reason(reader.byte()?)))
}

/// §3.14.
fn ended(reader: &mut Reader<'_>) -> Result<Incoming, Fault> {
    use property::*;
    let reason = if reader.is_empty() { Reason::SUCCESS } else { Reason(reader.byte()?) };
    let mut words = String::new();
    if !reader.is_empty() {
        for property in reader.properties(&[REASON, USER, SERVER])? {
            if let (REASON, Value::Text(text)) = property? {
                words = text.to_string();
            }
        }
    }
    Ok(Incoming::Ended { reason, words })
}

/// §2.2.1.
fn identifier(reader: &mut Reader<'_>) -> Result<u16, Fault> {
    match reader.short()? {
        0 => Err(Fault::Protocol("a packet identifier is 0")),
        id => Ok(id),
    }
}

/// CONNECT (§3.1).
pub(crate) fn connect(config: &Config, clean_start: bool) -> Vec<u8> {
    let mut flags = u8::from(clean_start) << 1;
    if let Some(will) = &config.will {
        flags |= 1 << 2 | will.qos.number() << 3 | u8::from(will.retain) << 5;
    }
    flags |= u8::from(config.password.is_some()) << 6 | u8::from(config.user.is_some()) << 7;
    let mut properties = Writer::default();
    properties
        .byte(property::SESSION_EXPIRY)
        .long(config.session_expiry_s)
        .byte(property::RECEIVE_MAXIMUM)
        .short(config.under_way_max)
        .byte(property::PACKET_MAXIMUM)
        .long(config.packet_bytes_max);
    let properties = properties.into_bytes();
    let mut writer = Writer::default();
    writer
        .binary(b"MQTT")
        .byte(5)
        .byte(flags)
        .short(config.keep_alive_s)
        .byte(properties.len() as u8)
        .raw(&properties)
        .binary(config.client_id.as_bytes());
    if let Some(will) = &config.will {
        writer.byte(0).binary(will.topic.as_bytes()).binary(&will.payload);
    }
    let credentials = [config.user.as_ref().map(String::as_bytes), config.password.as_deref()];
    for part in credentials.into_iter().flatten() {
        writer.binary(part);
    }
    writer.packet(kind::CONNECT << 4)
}

/// PUBLISH (§3.3); the identifier counts where the QoS has one.
pub(crate) fn publish(message: &Message, id: u16, is_repeat: bool) -> Vec<u8> {
    let Message { topic, payload, qos, retain } = message;
    let flags = u8::from(is_repeat) << 3 | qos.number() << 1 | u8::from(*retain);
    let mut writer = Writer::default();
    writer.binary(topic.as_bytes());
    if *qos != Qos::AtMostOnce {
        writer.short(id);
    }
    writer.byte(0).raw(payload);
    writer.packet(kind::PUBLISH << 4 | flags)
}

/// PUBACK, PUBREC, PUBREL or PUBCOMP (§3.4 to §3.7); success isn't said.
pub(crate) fn acknowledge(ack: Ack, id: u16, reason: Reason) -> Vec<u8> {
    let first = match ack {
        Ack::Published => kind::PUBACK << 4,
        Ack::Received => kind::PUBREC << 4,
        Ack::Released => kind::PUBREL << 4 | 2,
        Ack::Completed => kind::PUBCOMP << 4,
    };
    let mut writer = Writer::default();
    writer.short(id);
    if reason != Reason::SUCCESS {
        writer.byte(reason.0);
    }
    writer.packet(first)
}

/// SUBSCRIBE of one filter (§3.8).
pub(crate) fn subscribe(id: u16, filter: &str, qos: Qos) -> Vec<u8> {
    // Messages of this client don't come back (§3.8.3.1), which a shared subscription may not ask for. Kept messages
    // come when the subscription is new, and not at each connection.
    let no_local = u8::from(!is_shared(filter)) << 2;
    let options = qos.number() | no_local | 1 << 4;
    let mut writer = Writer::default();
    writer.short(id).byte(0).binary(filter.as_bytes()).byte(options);
    writer.packet(kind::SUBSCRIBE << 4 | 2)
}

/// UNSUBSCRIBE of one filter (§3.10).
pub(crate) fn unsubscribe(id: u16, filter: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.short(id).byte(0).binary(filter.as_bytes());
    writer.packet(kind::UNSUBSCRIBE << 4 | 2)
}

/// PINGREQ (§3.12).
pub(crate) fn ping() -> Vec<u8> {
    Writer::default().packet(kind::PINGREQ << 4)
}

/// DISCONNECT (§3.14).
pub(crate) fn disconnect(reason: Reason) -> Vec<u8> {
    let mut writer = Writer::default();
    if reason != Reason::SUCCESS {
        writer.byte(reason.0);
    }
    writer.packet(kind::DISCONNECT << 4)
}
