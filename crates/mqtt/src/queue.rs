//! The messages for the broker, until it has them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::{Message, Qos};

/// The bytes that a message counts beside its topic and payload.
const OVERHEAD_BYTES: usize = 64;

/// How far a message for the broker has come (§4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It wasn't sent yet.
    Waiting,
    /// It was sent under this packet identifier.
    Sent(u16),
    /// The broker has it, of QoS 2, and is told to forget that identifier.
    Released(u16),
}

/// A message for the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its place among all that ever were: later ones have greater numbers.
    pub number: u64,
    /// The message.
    pub message: Message,
    /// How far it has come.
    pub stage: Stage,
    /// Whose it is, as the user of the client tells its publishers apart.
    pub publisher: u64,
}

/// The limits of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The most messages.
    pub messages_max: usize,
    /// The most bytes, each message counted with 64 beside its topic and payload.
    pub bytes_max: usize,
}

/// A message in the queue.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) outgoing: Outgoing,
    /// Whether it is to be sent on this connection.
    pub(crate) is_due: bool,
}

impl Queued {
    fn weight(&self) -> usize {
        weight_of(&self.outgoing.message)
    }
}

fn weight_of(message: &Message) -> usize {
    message.topic.len() + message.payload.len() + OVERHEAD_BYTES
}

/// The messages, oldest first, within their limits.
#[derive(Debug)]
pub(crate) struct Queue {
    limits: QueueLimits,
    queued: VecDeque<Queued>,
    bytes: usize,
    /// The bytes of each publisher's.
    shares: Vec<(u64, usize)>,
    next: u64,
}

impl Queue {
    /// The queue as it was, even if it was made under wider limits.
    pub(crate) fn new(limits: QueueLimits, kept: impl IntoIterator<Item = Outgoing>) -> Self {
        let mut queue =
            Self { limits, queued: VecDeque::new(), bytes: 0, shares: Vec::new(), next: 0 };
        for outgoing in kept {
            queue.next = queue.next.max(outgoing.number + 1);
            queue.insert(outgoing);
        }
        queue
    }

    fn insert(&mut self, outgoing: Outgoing) {
        let queued = Queued { outgoing, is_due: true };
        let (publisher, weight) = (queued.outgoing.publisher, queued.weight());
        self.bytes += weight;
        match self.shares.iter_mut().find(|(of, _)| *of == publisher) {
            Some((_, bytes)) => *bytes += weight,
            None => self.shares.push((publisher, weight)),
        }
        self.queued.push_back(queued);
    }

    /// Adds a message of `publisher`, for which `dropped` is told the numbers of those that make room: waiting ones alone, of the
    /// publisher that has most of the queue, of these the oldest of QoS 0 first, then the oldest. Returns the new one's number, or
    /// none where there is no room for it.
    pub(crate) fn push(
        &mut self,
        message: Message,
        publisher: u64,
        mut dropped: impl FnMut(u64),
    ) -> Option<u64> {
        let weight = weight_of(&message);
        if weight > self.limits.bytes_max {
            return None;
        }
        while self.queued.len() >= self.limits.messages_max
            || self.bytes + weight > self.limits.bytes_max
        {
            let at = self.to_drop(message.qos, publisher, weight)?;
            let number = self.remove(at);
            dropped(number);
        }
        let number = self.next;
        self.next += 1;
        self.insert(Outgoing { number, message, stage: Stage::Waiting, publisher });
        Some(number)
    }

    /// The place of the message that makes room for one of `publisher`, if one does.
    fn to_drop(&self, qos: Qos, publisher: u64, weight: usize) -> Option<usize> {
        let share = |of: u64| self.share(of) + if of == publisher { weight } else { 0 };
        let mut found: Option<(usize, bool, usize)> = None;
        for (at, one) in self.queued.iter().enumerate() {
            let is_slight = one.outgoing.message.qos == Qos::AtMostOnce;
            // A message of QoS 0 takes no other's place.
            let may_go = is_slight || qos != Qos::AtMostOnce;
            let share = share(one.outgoing.publisher);
            // The oldest of those that are alike.
            let is_next = found.is_none_or(|(most, slight, _)| (share, is_slight) > (most, slight));
            if one.outgoing.stage == Stage::Waiting && may_go && is_next {
                found = Some((share, is_slight, at));
            }
        }
        let (most, _, at) = found?;
        // Who has most of it takes no other's.
        (most >= share(publisher)).then_some(at)
    }

    /// The bytes of a publisher's messages.
    fn share(&self, publisher: u64) -> usize {
        self.shares.iter().find(|(of, _)| *of == publisher).map_or(0, |(_, bytes)| *bytes)
    }

    /// Takes the message at this place out; returns its number.
    pub(crate) fn remove(&mut self, at: usize) -> u64 {
        let Some(queued) = self.queued.remove(at) else { return self.next };
        self.bytes -= queued.weight();
        if let Some(own) = self.shares.iter_mut().find(|(of, _)| *of == queued.outgoing.publisher) {
            own.1 -= queued.weight();
        }
        self.shares.retain(|(_, bytes)| *bytes > 0);
        queued.outgoing.number
    }

    pub(crate) fn len(&self) -> usize {
        self.queued.len()
    }

    /// The bytes of all, as they count against the limit.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Queued> {
        self.queued.get_mut(at)
    }

    /// The place of the message at this stage.
    pub(crate) fn position(&self, stage: Stage) -> Option<usize> {
        self.queued.iter().position(|one| one.outgoing.stage == stage)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.queued.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.queued.iter_mut()
    }
}
