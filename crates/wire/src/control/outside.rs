//! Answers about a device's ways outside: its bridge to a broker, its machines' requests to servers, its clients of CoAP, and
//! the date by which it judges the certificates there.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::list;
use crate::message::growing;

/// The state of a device's ways outside. Each is `None` on a device that doesn't have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideStatus {
    /// The bridge to a broker of MQTT.
    #[serde(with = "growing::option")]
    pub bridge: Option<BridgeStatus>,
    /// The requests of machines to servers.
    #[serde(with = "growing::option")]
    pub reach: Option<ReachStatus>,
    /// The server of CoAP.
    #[serde(with = "growing::option")]
    pub coap: Option<CoapStatus>,
    /// The date by which certificates are judged, if the device knows it.
    #[serde(default, with = "growing::option")]
    pub date: Option<DateStatus>,
}

/// A date by which certificates are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DateStatus {
    /// Seconds since 1970 UTC.
    pub unix_s: u64,
    /// Whoever told it.
    pub teller: DateTeller,
}

/// Whoever told a device the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DateTeller {
    /// Its own clock.
    Clock,
    /// Its owner.
    Owner,
    /// A hub whose key the owner or the settings pinned.
    Hub,
}

impl fmt::Display for DateTeller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clock => "its own clock",
            Self::Owner => "its owner",
            Self::Hub => "its hub",
        })
    }
}

/// A bridge to a broker. Numbers count since the bridge began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeStatus {
    /// The broker's URL.
    pub broker: String,
    /// When the broker accepted the connection that there is, in milliseconds since the device booted.
    pub connected_at_ms: Option<u64>,
    /// How many connections the broker has accepted.
    pub connections: u64,
    /// The messages for the broker that it hasn't acknowledged.
    pub queued_messages: u64,
    /// The bytes of these, each counted with 64 beside its topic and payload.
    pub queued_bytes: u64,
    /// The events that were dropped for want of room.
    pub dropped: u64,
    /// The last error, in words.
    pub last_error: Option<OutsideError>,
    /// How many TLS handshakes the broker resumed by a ticket of an earlier connection.
    #[serde(default)]
    pub resumed: u64,
}

/// An error, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideError {
    /// When it happened, in milliseconds since the device booted.
    pub at_ms: u64,
    /// What happened.
    pub words: String,
}

/// Requests of machines to servers. Numbers count since the device booted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachStatus {
    /// The requests that machines made, and the further parts of answers that they asked for.
    pub requests: u64,
    /// Those that got what they asked for.
    pub answered: u64,
    /// Those that failed: the [code](crate::NoResult::code) of each reason that there was, and how often.
    #[serde(deserialize_with = "list::read")]
    pub failed: Vec<(u8, u64)>,
    /// The names whose addresses are cached.
    pub names: u32,
    /// The last failure.
    pub last_error: Option<OutsideError>,
    /// The TLS handshakes.
    #[serde(default)]
    pub handshakes: u64,
    /// Those that the server resumed by a ticket of an earlier connection.
    #[serde(default)]
    pub resumed: u64,
}

/// A server of CoAP. Numbers count since the device booted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoapStatus {
    /// Where it listens.
    pub address: String,
    /// The requests that came, without those that came again.
    pub requests: u64,
    /// Those that were answered by an error.
    pub refused: u64,
    /// The clients that observe a function or a topic.
    pub observers: u32,
}
