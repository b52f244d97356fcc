//! The entries of a record, as they lie in its file: each is a length of four bytes and so many bytes of postcard.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_crypto::sha256;
use tenure_hal::{Instant, UnixTime};
use tenure_kernel::{CallId, Visited};
use tenure_mesh::NodeId;
use tenure_node::{Input, Moment, Outlet, Output, Taken};
use tenure_wire::control::{Function, OutsideStatus};
use tenure_wire::{Address, NoResult, PublicKey, Topic};

/// The start of a record. Its last byte is the version of the entries behind it.
pub(crate) const MAGIC: [u8; 8] = *b"tenurtp\x01";
/// The longest entry, in bytes: a package at hand, or all settings, with room to spare.
pub(crate) const ENTRY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// One entry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Entry<'a> {
    /// The board's settings, which mean something to that board alone.
    Settings(&'a [u8]),
    /// One of the three parts of the flash, all erased.
    Flash { part: u8, sector_bytes: u32, sector_count: u32, program_bytes: u32 },
    /// A sector that isn't erased.
    Sector { part: u8, number: u32, bytes: &'a [u8] },
    /// The node booted, on the flash as it was.
    Boot { when: When, entropy: &'a [u8] },
    /// A peripheral was attached.
    Attach { now_us: u64, name: &'a str },
    /// An input.
    Take {
        when: When,
        #[serde(borrow)]
        input: Noted<'a>,
        /// All random bytes that were drawn meanwhile.
        entropy: &'a [u8],
        /// All that was read from peripherals meanwhile.
        readings: Vec<Reading>,
        /// The digest of the response.
        taken: u64,
    },
    /// An output was asked for.
    Give { outlet: NotedOutlet, digest: Option<u64> },
    /// The run ended, and this is the digest of the flash.
    End { flash: u64 },
}

/// The time at an input.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct When {
    now_us: u64,
    unix_s: Option<u64>,
}

impl When {
    pub(crate) fn of(moment: &Moment<'_>) -> Self {
        let unix_s = moment.unix_time.map(|time| time.seconds);
        Self { now_us: moment.now.as_micros(), unix_s }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    pub(crate) fn unix_time(self) -> Option<UnixTime> {
        self.unix_s.map(|seconds| UnixTime { seconds })
    }
}

/// An input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Noted<'a> {
    Turn,
    Time,
    Datagram { from: Address, bytes: &'a [u8] },
    Frame { bytes: &'a [u8], signal_dbm: Option<i8> },
    Undelivered([u8; 6]),
    Knock,
    Owner { function: &'a str, request: &'a [u8] },
    Install { package: &'a [u8], placement: &'a [u8] },
    Checkpoint,
    WillSleepUntil(u64),
    FallAsleep,
    Neighbour(Address),
    Visited { id: u32, result: Result<Option<Vec<u8>>, u8>, words: Vec<u8>, traffic: (u64, u64) },
    Event { topic: Topic, payload: &'a [u8] },
    Remark { level: &'a str, message: &'a str },
    Outside(Box<OutsideStatus>),
    HubFound { addresses: Vec<Address>, key: Option<PublicKey> },
}

impl<'a> Noted<'a> {
    /// The entry for `input`; `None` for those of executors beside the node, which no record has.
    pub(crate) fn of(input: &Input<'a>) -> Option<Self> {
        Some(match input {
            Input::Turn => Self::Turn,
            Input::Time => Self::Time,
            Input::Datagram { from, bytes } => Self::Datagram { from: from.clone(), bytes },
            Input::Frame { bytes, signal_dbm } => Self::Frame { bytes, signal_dbm: *signal_dbm },
            Input::Undelivered(neighbour) => Self::Undelivered(neighbour.to_bytes()),
            Input::Parcel(_) => return None,
            Input::Knock => Self::Knock,
            Input::Owner { function, request } => {
                Self::Owner { function: function.name(), request }
            }
            Input::Install { package, placement } => Self::Install { package, placement },
            Input::Checkpoint => Self::Checkpoint,
            Input::WillSleepUntil(until) => Self::WillSleepUntil(until.as_micros()),
            Input::FallAsleep => Self::FallAsleep,
            Input::Neighbour(address) => Self::Neighbour(address.clone()),
            Input::Visited(Visited { id, result, words, traffic }) => {
                let result = result.clone().map_err(NoResult::code);
                Self::Visited { id: id.0, result, words: words.clone(), traffic: *traffic }
            }
            Input::Event { topic, payload } => Self::Event { topic: topic.clone(), payload },
            Input::Remark { level, message } => Self::Remark { level: level.as_str(), message },
            Input::Outside(status) => Self::Outside(status.clone()),
            Input::HubFound { addresses, key } => {
                Self::HubFound { addresses: addresses.clone(), key: *key }
            }
        })
    }

    /// The input; `None` if this build has no such function.
    pub(crate) fn input(self) -> Option<Input<'a>> {
        Some(match self {
            Self::Turn => Input::Turn,
            Self::Time => Input::Time,
            Self::Datagram { from, bytes } => Input::Datagram { from, bytes },
            Self::Frame { bytes, signal_dbm } => Input::Frame { bytes, signal_dbm },
            Self::Undelivered(neighbour) => Input::Undelivered(NodeId::from_bytes(neighbour)),
            Self::Knock => Input::Knock,
            Self::Owner { function, request } => {
                let named = |known: &&Function| known.name() == function;
                Input::Owner { function: *Function::ALL.iter().find(named)?, request }
            }
            Self::Install { package, placement } => Input::Install { package, placement },
            Self::Checkpoint => Input::Checkpoint,
            Self::WillSleepUntil(until_us) => Input::WillSleepUntil(Instant::from_micros(until_us)),
            Self::FallAsleep => Input::FallAsleep,
            Self::Neighbour(address) => Input::Neighbour(address),
            Self::Visited { id, result, words, traffic } => {
                let result = result.map_err(|code| NoResult::from_code(code, Duration::ZERO));
                Input::Visited(Visited { id: CallId(id), result, words, traffic })
            }
            Self::Event { topic, payload } => Input::Event { topic, payload },
            Self::Remark { level, message } => {
                Input::Remark { level: level.parse().ok()?, message }
            }
            Self::Outside(status) => Input::Outside(status),
            Self::HubFound { addresses, key } => Input::HubFound { addresses, key },
        })
    }
}

/// A kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotedOutlet {
    Datagrams,
    Frames,
    Notices,
    Restart,
    Bedtime,
    Visits,
    Events,
}

impl NotedOutlet {
    /// `None` for events of executors beside the node, which no record has.
    pub(crate) fn of(outlet: Outlet) -> Option<Self> {
        Some(match outlet {
            Outlet::Datagrams => Self::Datagrams,
            Outlet::Frames => Self::Frames,
            Outlet::Parcels(_) => return None,
            Outlet::Notices => Self::Notices,
            Outlet::Restart => Self::Restart,
            Outlet::Bedtime => Self::Bedtime,
            Outlet::Visits => Self::Visits,
            Outlet::Events => Self::Events,
        })
    }

    pub(crate) fn outlet(self) -> Outlet {
        match self {
            Self::Datagrams => Outlet::Datagrams,
            Self::Frames => Outlet::Frames,
            Self::Notices => Outlet::Notices,
            Self::Restart => Outlet::Restart,
            Self::Bedtime => Outlet::Bedtime,
            Self::Visits => Outlet::Visits,
            Self::Events => Outlet::Events,
        }
    }
}

/// Something that a peripheral said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reading {
    /// A reading of one part.
    Published { part: String, bytes: Vec<u8> },
    /// The end of a poll of this peripheral, and when it wants the next.
    Polled { name: String, next_us: Option<u64> },
}

/// The digest of a response.
pub(crate) fn digest_of_taken(taken: &Taken) -> u64 {
    match taken {
        Taken::Answer(bytes) => digest(b"answer", bytes),
        other => digest(b"taken", format!("{other:?}").as_bytes()),
    }
}

/// The digest of an output.
pub(crate) fn digest_of_output(output: &Output) -> u64 {
    match output {
        Output::Datagram { to, bytes } => digest(to.to_string().as_bytes(), bytes),
        Output::Frame { to, bytes } => digest(format!("{to:?}").as_bytes(), bytes),
        other => digest(b"output", format!("{other:?}").as_bytes()),
    }
}

/// The first eight bytes of SHA-256 over the label, a zero and the bytes.
pub(crate) fn digest(label: &[u8], bytes: &[u8]) -> u64 {
    let hash = sha256(&[label, &[0], bytes]);
    hash.0.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests;
