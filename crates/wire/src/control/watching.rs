//! Requests by which an owner reads trees, logs, topics and subscriptions on a device, and changes values of
//! trees.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::message::growing;
use crate::{LogLevel, Name, Topic, TopicPattern};

/// Asks for a place in a machine's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeQuery {
    /// Whose tree.
    pub machine: Name,
    /// Where; empty for the root.
    pub path: String,
    /// How many children to skip.
    pub skip: u32,
}

/// A place in a machine's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeNode {
    /// The value there, if any.
    pub value: Option<TreeValue>,
    /// The names of a page of its children, in order.
    pub children: Vec<String>,
    /// How many children there are in all.
    pub total: u32,
    /// Whether there is a value which can't be read, as the flash is damaged.
    #[serde(default)]
    pub is_damaged: bool,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeValue {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Changes a place in a machine's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeChange {
    /// Whose tree.
    pub machine: Name,
    /// Where; at most [`PATH_BYTES_MAX`](crate::limits::PATH_BYTES_MAX) bytes.
    pub path: String,
    /// The value to set, of [`VALUE_BYTES_MAX`](crate::limits::VALUE_BYTES_MAX) bytes at most; `None` deletes
    /// what is there and all below it.
    pub value: Option<TreeValue>,
}

/// Asks for log lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogQuery {
    /// Only lines of this machine.
    pub machine: Option<Name>,
    /// Only lines with a number of at least this.
    pub from: u64,
    /// Only lines that are at least so grave; all if it is `None`.
    #[serde(default)]
    pub level: Option<LogLevel>,
}

/// A page of log lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    /// The lines, oldest first.
    #[serde(with = "growing::list")]
    pub lines: Vec<LogLine>,
    /// The number to ask from next time.
    pub next: u64,
    /// How many lines were lost since boot because nobody read them in time.
    pub lost: u64,
    /// Whether there are more lines at once.
    pub more: bool,
    /// The boot whose numbers these are, by its own number; 0 from devices that don't say.
    #[serde(default)]
    pub boot: u32,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Its number on this device since boot; lines of boots before have the first ones.
    pub number: u64,
    /// Milliseconds since the device booted, in the boot in which it was said.
    pub at_ms: u64,
    /// Whose line it is.
    pub machine: Name,
    /// `fault`, `error`, `warning`, `info` or `debug`.
    pub level: String,
    /// The text.
    pub message: String,
    /// When it was said, in seconds since 1970 UTC, if the device knows the time.
    #[serde(default)]
    pub unix_s: Option<u64>,
    /// The boot in which it was said, by its number.
    #[serde(default)]
    pub boot: u32,
}

/// Asks for topics and subscriptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsQuery {
    /// How many topics and subscriptions to skip, topics first.
    pub skip: u32,
}

/// A page of a device's topics and subscriptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsPage {
    /// A page of the topics that something was published under since boot, in order.
    #[serde(with = "growing::list")]
    pub topics: Vec<TopicState>,
    /// A page of the subscriptions, by subscriber.
    #[serde(with = "growing::list")]
    pub subscriptions: Vec<SubscriptionState>,
    /// How many topics and subscriptions there are in all.
    pub total: u32,
    /// Events under topics that are not counted one by one.
    pub uncounted: u64,
    /// Bytes that all queued events take, each counted once.
    pub bytes: u32,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicState {
    /// Which.
    pub topic: Topic,
    /// How many events were published under it since boot.
    pub published: u64,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionState {
    /// The machine, or the peripheral, that has subscribed.
    pub subscriber: Name,
    /// Whether it is a peripheral.
    pub is_peripheral: bool,
    /// To what.
    pub topics: TopicPattern,
    /// `drop-oldest`, `drop-newest` or `latest-only`.
    pub policy: String,
    /// How many events it queues at most.
    pub depth: u32,
    /// How many it has queued.
    pub queued: u32,
    /// How many it has handed over.
    pub delivered: u64,
    /// How many it has dropped.
    pub dropped: u64,
    /// The function that handles its events, if one does.
    pub handler: Option<String>,
}
