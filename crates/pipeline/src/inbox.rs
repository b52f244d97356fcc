//! One subscriber's queues.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_wire::{Topic, TopicPattern};

use crate::messages::{MessageId, Messages};

/// The rule of a subscription for a full queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// The oldest event makes room.
    DropOldest,
    /// The new event is dropped.
    DropNewest,
    /// Only the latest event is kept, whatever the depth.
    LatestOnly,
}

impl Policy {
    /// Its name in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DropOldest => "drop-oldest",
            Self::DropNewest => "drop-newest",
            Self::LatestOnly => "latest-only",
        }
    }
}

/// An event in a queue.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Queued {
    message: MessageId,
    /// How many events the subscription lost between the one before and this one.
    dropped_before: u64,
}

/// One pattern that a subscriber has subscribed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Subscription<T> {
    pub(crate) pattern: TopicPattern,
    pub(crate) policy: Policy,
    pub(crate) depth: usize,
    pub(crate) tag: T,
    queue: VecDeque<Queued>,
    /// Events dropped since the newest one in the queue, or since the last one that was read.
    gap: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
}

impl<T> Subscription<T> {
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    fn weight(&self, messages: &Messages) -> usize {
        let each = |queued: &Queued| messages.get(queued.message).map_or(0, |one| one.weight());
        self.queue.iter().map(each).sum()
    }

    /// Drops the oldest event; gives what it weighed.
    fn drop_oldest(&mut self, messages: &mut Messages) -> usize {
        let Some(oldest) = self.queue.pop_front() else { return 0 };
        let lost = oldest.dropped_before + 1;
        match self.queue.front_mut() {
            Some(next) => next.dropped_before += lost,
            None => self.gap += lost,
        }
        self.dropped += 1;
        messages.release(oldest.message)
    }

    fn drop_newest(&mut self) {
        self.gap += 1;
        self.dropped += 1;
    }
}

/// The event that a subscriber reads.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) message: MessageId,
    pub(crate) dropped_before: u64,
}

/// All that is kept for one subscriber.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Inbox<T> {
    pub(crate) subscriptions: Vec<Subscription<T>>,
    pub(crate) held: Option<Held>,
    /// Bytes that are queued and held.
    pub(crate) bytes: usize,
}

impl<T> Inbox<T> {
    pub(crate) fn new() -> Self {
        Self { subscriptions: Vec::new(), held: None, bytes: 0 }
    }

    pub(crate) fn position(&self, pattern: &TopicPattern) -> Option<usize> {
        self.subscriptions.iter().position(|one| one.pattern == *pattern)
    }

    /// Adds a subscription, or changes the one that there is; its queue and its counts stay.
    pub(crate) fn subscribe(
        &mut self,
        messages: &mut Messages,
        pattern: TopicPattern,
        policy: Policy,
        depth: usize,
        tag: T,
    ) {
        let Some(at) = self.position(&pattern) else {
            // Most have one, and room for four would be kept for good.
            self.subscriptions.reserve_exact(1);
            self.subscriptions.push(Subscription {
                pattern,
                policy,
                depth,
                tag,
                queue: VecDeque::new(),
                gap: 0,
                delivered: 0,
                dropped: 0,
            });
            return;
        };
        let subscription = &mut self.subscriptions[at];
        (subscription.policy, subscription.depth, subscription.tag) = (policy, depth, tag);
        while subscription.queue.len() > depth {
            self.bytes = self.bytes.saturating_sub(subscription.drop_oldest(messages));
        }
    }

    /// Takes a subscription away with what is queued.
    pub(crate) fn unsubscribe(&mut self, messages: &mut Messages, at: usize) {
        let gone = self.subscriptions.remove(at);
        for queued in gone.queue {
            self.bytes = self.bytes.saturating_sub(messages.release(queued.message));
        }
    }

    /// Makes room for an event of `weight` bytes in subscription number `at`, as its policy says;
    /// `false` if the event is dropped.
    pub(crate) fn make_room(
        &mut self,
        messages: &mut Messages,
        at: usize,
        weight: usize,
        bytes_max: usize,
    ) -> bool {
        let subscription = &mut self.subscriptions[at];
        let free = bytes_max.saturating_sub(self.bytes);
        let fits = match subscription.policy {
            Policy::DropNewest => subscription.queue.len() < subscription.depth && weight <= free,
            // Events in others of this subscriber's queues stay; then nothing is to be gained by
            // dropping either.
            Policy::DropOldest | Policy::LatestOnly => {
                weight <= free || weight <= free + subscription.weight(messages)
            }
        };
        if !fits {
            subscription.drop_newest();
            return false;
        }
        let depth = match subscription.policy {
            Policy::LatestOnly => 1,
            _ => subscription.depth,
        };
        while !subscription.queue.is_empty()
            && (subscription.queue.len() >= depth || self.bytes + weight > bytes_max)
        {
            self.bytes = self.bytes.saturating_sub(subscription.drop_oldest(messages));
        }
        true
    }

    /// Queues an event for which there is room.
    pub(crate) fn enqueue(&mut self, at: usize, message: MessageId, weight: usize) {
        let subscription = &mut self.subscriptions[at];
        let dropped_before = core::mem::take(&mut subscription.gap);
        subscription.queue.push_back(Queued { message, dropped_before });
        self.bytes += weight;
    }

    /// The subscription whose first event was published before those of all others `wanted`.
    pub(crate) fn next(
        &self,
        messages: &Messages,
        wanted: impl Fn(&Subscription<T>) -> bool,
    ) -> Option<usize> {
        let first = |one: &Subscription<T>| {
            let front = one.queue.front()?;
            messages.get(front.message).map(|message| message.number)
        };
        let heads = self.subscriptions.iter().enumerate().filter(|(_, one)| wanted(one));
        heads.filter_map(|(at, one)| Some((first(one)?, at))).min().map(|(_, at)| at)
    }

    /// Takes the first event of subscription number `at` in hand.
    pub(crate) fn take(&mut self, messages: &mut Messages, at: usize) -> Option<Held> {
        self.put_down(messages);
        let subscription = self.subscriptions.get_mut(at)?;
        let Queued { message, dropped_before } = subscription.queue.pop_front()?;
        subscription.delivered += 1;
        self.held = Some(Held { message, dropped_before });
        self.held
    }

    /// Lets go of the event in hand.
    pub(crate) fn put_down(&mut self, messages: &mut Messages) {
        if let Some(held) = self.held.take() {
            self.bytes = self.bytes.saturating_sub(messages.release(held.message));
        }
    }

    /// Whether subscription number `at` means `topic`.
    pub(crate) fn matches(&self, at: usize, topic: &Topic) -> bool {
        self.subscriptions[at].pattern.matches(topic)
    }
}
