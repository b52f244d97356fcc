//! Bounded publish/subscribe of events on one device.
//!
//! A publisher names a [`Topic`]; each subscription whose [`TopicPattern`] matches gets the
//! event into a queue of its own.
//!
//! Invariants:
//! - A payload is copied once, when it is published, whatever the number of subscribers.
//! - What one subscriber does or leaves undone changes nothing for another: each has its own limit
//!   of bytes and of events, and there is no limit that they share. Memory is bounded by the sum of
//!   their limits.
//! - Every event that a subscription matched is delivered, queued or counted as dropped.
//!
//! Nothing blocks, and nothing knows who is behind a [`Subscriber`] or whether it may subscribe or
//! publish: that is its caller's affair.
//!
//! The heap is used for one allocation an event that somebody has queued, and for the queues, all
//! within [`Config`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod inbox;
mod messages;
mod pipeline;

pub use inbox::Policy;
pub use pipeline::{
    Config, Event, Pipeline, Publication, Published, State, SubscribeError, Subscriber,
    SubscriptionStatus, TooLong, TopicStatus,
};
pub use tenure_wire::{Topic, TopicPattern};
