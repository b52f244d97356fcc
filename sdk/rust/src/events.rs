//! Events: readings of the device's sensors, and what machines tell one another without waiting.
//!
//! A machine publishes under a topic (`door.front`), and whoever has subscribed to it gets the event
//! into a queue of its own. It takes grants to do either. Topics below `device` are what the device's
//! own peripherals say; what is published to `command.NAME` goes to the peripheral `NAME`.
//!
//! Events come in one of two ways. To a function, as calls whose parameter is the payload:
//!
//! ```no_run
//! use tenure::{Error, events, log};
//!
//! tenure::export!(entry, on_reading);
//!
//! fn entry() -> Result<(), Error> {
//!     events::subscribe("device.temperature").latest_only().handler("on_reading").start()
//! }
//!
//! fn on_reading(degrees: &str) {
//!     log!("{degrees} degrees");
//! }
//! # fn main() {}
//! ```
//!
//! Or one by one, in straight-line code:
//!
//! ```no_run
//! # fn main() -> Result<(), tenure::Error> {
//! use core::time::Duration;
//! use tenure::{events, log};
//!
//! events::subscribe("door.*").depth(16).start()?;
//! while let Some(event) = events::next(Duration::from_secs(60))? {
//!     log!("{}: {} bytes, {} lost before it", event.topic, event.payload.len(), event.dropped);
//! }
//! # Ok(()) }
//! ```
//!
//! Subscriptions end when the machine restarts: make them in `entry`.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::calls::milliseconds;
use crate::status::{length, optional};
use crate::{Error, host};

/// The longest topic, in bytes.
const TOPIC_BYTES_MAX: usize = 64;
/// How long a queue is unless it is said otherwise.
const DEPTH: u32 = 8;

/// Publishes an event; gives how many subscriptions have it in their queues.
///
/// # Errors
/// [`Error::NotGranted`], [`Error::TooLong`] beyond 2,048 bytes, [`Error::Invalid`] (the topic), or
/// [`Error::Denied`] for a topic of the device's own.
pub fn publish(topic: &str, payload: &[u8]) -> Result<usize, Error> {
    // SAFETY: each pointer and length is of a slice that lives until the call returns.
    length(unsafe { host::publish(topic.as_ptr(), topic.len(), payload.as_ptr(), payload.len()) })
}

/// A subscription to be made. Made by [`subscribe`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a subscription is made by `start`"]
pub struct Subscription<'a> {
    topic: &'a str,
    policy: u32,
    depth: u32,
    handler: &'a str,
}

/// Describes a subscription to a topic, to all topics below one (`door.*`) or to all (`*`). Unless it
/// is said otherwise its queue has eight events, of which the oldest makes room.
pub fn subscribe(topic: &str) -> Subscription<'_> {
    Subscription { topic, policy: 0, depth: DEPTH, handler: "" }
}

impl<'a> Subscription<'a> {
    /// When the queue is full, the new event is dropped.
    pub fn drop_newest(self) -> Self {
        Self { policy: 1, ..self }
    }

    /// Only the latest event is kept.
    pub fn latest_only(self) -> Self {
        Self { policy: 2, depth: 1, ..self }
    }

    /// How many events the queue has room for.
    pub fn depth(self, events: u32) -> Self {
        Self { depth: events, ..self }
    }

    /// The function of this machine that is called for each event, with the payload.
    pub fn handler(self, function: &'a str) -> Self {
        Self { handler: function, ..self }
    }

    /// Makes the subscription, or changes the one to the same topics.
    ///
    /// # Errors
    /// [`Error::NotGranted`], [`Error::NotFound`] (the handler), [`Error::Invalid`] (topic or depth),
    /// or [`Error::Full`] if there are too many.
    pub fn start(self) -> Result<(), Error> {
        // SAFETY: each pointer and length is of a slice that lives until the call returns.
        let status = unsafe {
            host::subscribe(
                self.topic.as_ptr(),
                self.topic.len(),
                self.policy,
                self.depth,
                self.handler.as_ptr(),
                self.handler.len(),
            )
        };
        length(status).map(|_| ())
    }
}

/// Ends the subscription to `topic`, as it was written, with what is queued; whether there was one.
///
/// # Errors
/// [`Error::Invalid`] (the topic).
pub fn unsubscribe(topic: &str) -> Result<bool, Error> {
    // SAFETY: pointer and length are of a slice that lives until the call returns.
    let status = unsafe { host::unsubscribe(topic.as_ptr(), topic.len()) };
    optional(length(status)).map(|found| found.is_some())
}

/// How many events the subscription to `topic`, as it was written, has dropped in all; `None` if
/// there is none.
///
/// # Errors
/// [`Error::Invalid`] (the topic).
pub fn dropped(topic: &str) -> Result<Option<usize>, Error> {
    // SAFETY: pointer and length are of a slice that lives until the call returns.
    optional(length(unsafe { host::topic_dropped(topic.as_ptr(), topic.len()) }))
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The topic that it was published under.
    pub topic: String,
    /// The payload.
    pub payload: Vec<u8>,
    /// How many events its subscription dropped between the one before and this one.
    pub dropped: usize,
}

/// Waits for the next event of the subscriptions without a handler, `timeout` at most; a timeout of
/// zero doesn't wait, and one of 49 days or more waits for ever. `None` if none came.
///
/// # Errors
/// [`Error::NotFound`] if there is no such subscription.
pub fn next(timeout: Duration) -> Result<Option<Event>, Error> {
    // SAFETY: the call takes a number and touches no memory.
    match length(unsafe { host::event_next(milliseconds(timeout)) }) {
        Ok(bytes) => {
            let mut payload = vec![0; bytes];
            // SAFETY: pointer and capacity are of a slice that lives until the call returns.
            length(unsafe { host::event_read(0, payload.as_mut_ptr(), payload.len()) })?;
            Ok(Some(Event { topic: topic()?, payload, dropped: dropped_before()? }))
        }
        Err(Error::Deadline) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The topic of the event that is being handled.
///
/// # Errors
/// [`Error::NotFound`] if none is.
pub fn topic() -> Result<String, Error> {
    let mut text = vec![0; TOPIC_BYTES_MAX];
    // SAFETY: pointer and capacity are of a slice that lives until the call returns.
    let bytes = length(unsafe { host::event_topic(text.as_mut_ptr(), text.len()) })?;
    text.truncate(bytes);
    String::from_utf8(text).map_err(|_| Error::Device)
}

/// How many events were dropped between the one before and the one that is being handled.
///
/// # Errors
/// [`Error::NotFound`] if none is.
pub fn dropped_before() -> Result<usize, Error> {
    // SAFETY: the call takes nothing and only returns a number.
    length(unsafe { host::event_dropped() })
}
