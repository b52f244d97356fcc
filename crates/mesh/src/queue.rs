//! Queues of events: bounded in bytes, and taken in the order of their priority.

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::event::{Envelope, Event};
use crate::room::make_room;

/// How long each queue may be, in bytes of its events and what keeping them costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// For notifications.
    pub notification_bytes_max: usize,
    /// For messages.
    pub message_bytes_max: usize,
    /// For requests.
    pub request_bytes_max: usize,
    /// For answers.
    pub reply_bytes_max: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            notification_bytes_max: 12 * 1024,
            message_bytes_max: 12 * 1024,
            request_bytes_max: 16 * 1024,
            reply_bytes_max: 4 * 1024,
        }
    }
}

/// How much memory an empty queue keeps at most: enough for one message of the usual kind.
const KEPT_BYTES_MAX: usize = 1024;
/// An empty queue keeps this part of its limit at most, so that a small device's queues keep little.
const KEPT_PART: usize = 8;

/// Where events wait, and which of them is next: what an executor runs by. Timers that are due
/// come before anything that waits here.
pub trait Queues: Send {
    /// Empty queues with these limits.
    fn new(limits: QueueLimits) -> Self;

    /// Takes an event, whose bytes come in two parts; `false` if its queue has no room, or the heap none for it.
    fn push(&mut self, envelope: Envelope, head: &[u8], body: &[u8]) -> bool;

    /// The event that is to run next.
    fn next(&self) -> Option<(Envelope, &[u8])>;

    /// Drops the event that [`Self::next`] shows.
    fn pop(&mut self);

    /// Whether nothing waits.
    fn is_empty(&self) -> bool;
}

/// Notifications first, then messages, then requests and replies; first in, first out in each.
#[derive(Debug)]
pub struct PriorityQueues {
    notifications: ByteQueue,
    messages: ByteQueue,
    /// Requests and replies share a place in the order but not the room, so that a protocol that
    /// asks too much can't take from others the answers they wait for.
    requests: ByteQueue,
    replies: ByteQueue,
}

impl PriorityQueues {
    fn first(&self) -> Option<&ByteQueue> {
        [&self.notifications, &self.messages, &self.replies, &self.requests]
            .into_iter()
            .find(|queue| !queue.entries.is_empty())
    }
}

impl Queues for PriorityQueues {
    fn new(limits: QueueLimits) -> Self {
        Self {
            notifications: ByteQueue::new(limits.notification_bytes_max),
            messages: ByteQueue::new(limits.message_bytes_max),
            requests: ByteQueue::new(limits.request_bytes_max),
            replies: ByteQueue::new(limits.reply_bytes_max),
        }
    }

    fn push(&mut self, envelope: Envelope, head: &[u8], body: &[u8]) -> bool {
        let queue = match envelope.event {
            Event::Notification { .. } | Event::Timer { .. } => &mut self.notifications,
            Event::Message { .. } => &mut self.messages,
            Event::Request { .. } => &mut self.requests,
            Event::Reply { .. } => &mut self.replies,
        };
        queue.push(envelope, head, body)
    }

    fn next(&self) -> Option<(Envelope, &[u8])> {
        self.first()?.front()
    }

    fn pop(&mut self) {
        let queues =
            [&mut self.notifications, &mut self.messages, &mut self.replies, &mut self.requests];
        if let Some(queue) = queues.into_iter().find(|queue| !queue.entries.is_empty()) {
            queue.pop();
        }
    }

    fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}

/// A first-in-first-out queue of byte strings in one piece of memory, which is reused.
#[derive(Debug)]
pub(crate) struct ByteQueue {
    bytes: Vec<u8>,
    /// Where the bytes of the first entry begin.
    start: usize,
    entries: VecDeque<(Envelope, u32)>,
    bytes_max: usize,
}

impl ByteQueue {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, entries: VecDeque::new(), bytes_max }
    }

    pub(crate) fn push(&mut self, envelope: Envelope, head: &[u8], body: &[u8]) -> bool {
        let length = head.len() + body.len();
        let kept = (self.entries.len() + 1) * size_of::<(Envelope, u32)>();
        let waiting = self.bytes.len() - self.start;
        if waiting + length + kept > self.bytes_max {
            return false;
        }
        if !self.make_room(length) {
            return false;
        }
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(body);
        self.entries.push_back((envelope, length as u32));
        true
    }

    /// Makes room for one entry of `length` bytes; `false` if the heap has none.
    fn make_room(&mut self, length: usize) -> bool {
        let is_full = self.bytes.len() + length > self.bytes.capacity().min(self.bytes_max);
        if is_full && self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        make_room(&mut self.bytes, length) && self.entries.try_reserve(1).is_ok()
    }

    pub(crate) fn front(&self) -> Option<(Envelope, &[u8])> {
        let (envelope, length) = self.entries.front()?;
        Some((*envelope, &self.bytes[self.start..self.start + *length as usize]))
    }

    pub(crate) fn pop(&mut self) {
        if let Some((_, length)) = self.entries.pop_front() {
            self.start += length as usize;
        }
        if self.entries.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES_MAX.min(self.bytes_max / KEPT_PART));
            self.start = 0;
        }
    }
}
