//! The pipeline: who has subscribed to what, and what is on its way.

use alloc::collections::BTreeMap;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_wire::limits::EVENT_BYTES_MAX;
use tenure_wire::{Topic, TopicPattern};

use crate::inbox::{Held, Inbox, Policy, Subscription};
use crate::messages::{Messages, weight_of};

/// The limits of a pipeline. The defaults are strict: what fits on the smallest class of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most subscribers.
    pub subscribers_max: usize,
    /// The most patterns that one of them subscribes to.
    pub subscriptions_per_subscriber_max: usize,
    /// The longest queue of one subscription, in events.
    pub depth_max: usize,
    /// The most bytes that one subscriber may have queued and in hand.
    pub bytes_per_subscriber_max: usize,
    /// The most topics whose events are counted.
    pub topics_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            subscribers_max: 24,
            subscriptions_per_subscriber_max: 8,
            depth_max: 32,
            bytes_per_subscriber_max: 4 * 1024,
            topics_max: 32,
        }
    }
}

/// The number of a subscriber: who it is is the caller's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subscriber(pub u16);

/// Events on their way from publishers to subscribers. Each subscription carries a `T` of its
/// subscriber's.
#[derive(Clone, Debug)]
pub struct Pipeline<T> {
    config: Config,
    state: State<T>,
}

/// All that a pipeline holds, to be written down and taken up again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State<T> {
    messages: Messages,
    inboxes: BTreeMap<Subscriber, Inbox<T>>,
    topics: BTreeMap<Topic, u64>,
    uncounted: u64,
}

/// An event that a subscriber has in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The topic that it was published under.
    pub topic: &'a str,
    /// The payload.
    pub payload: &'a [u8],
    /// Its number among all that were published on this device.
    pub number: u64,
    /// How many events the subscription dropped between the one before and this one.
    pub dropped_before: u64,
}

/// The outcome of a publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// How many subscriptions have it in their queue.
    pub queued: usize,
    /// How many subscriptions match it and dropped it at once.
    pub dropped: usize,
}

/// A publication that is being handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication {
    number: u64,
    /// The one that doesn't get it.
    except: Option<Subscriber>,
    /// Whose turn it is, if it isn't done.
    next: Option<Subscriber>,
    /// The outcome so far.
    pub published: Published,
}

impl Publication {
    /// Whether everybody has had their turn.
    pub const fn is_done(&self) -> bool {
        self.next.is_none()
    }
}

impl<T> Pipeline<T> {
    /// A pipeline without subscribers.
    pub const fn new(config: Config) -> Self {
        let state = State {
            messages: Messages::new(),
            inboxes: BTreeMap::new(),
            topics: BTreeMap::new(),
            uncounted: 0,
        };
        Self { config, state }
    }

    /// A pipeline that goes on where another was.
    pub const fn with_state(config: Config, state: State<T>) -> Self {
        Self { config, state }
    }

    /// All that is in it.
    pub const fn state(&self) -> &State<T> {
        &self.state
    }

    /// Subscribes `who` to a pattern with a queue of `depth` events; where it has subscribed to that
    /// very pattern before, this changes how. What several patterns of one subscriber match comes
    /// once for each.
    ///
    /// # Errors
    /// As [`SubscribeError`] says.
    pub fn subscribe(
        &mut self,
        who: Subscriber,
        pattern: TopicPattern,
        policy: Policy,
        depth: usize,
        tag: T,
    ) -> Result<(), SubscribeError> {
        if depth == 0 || depth > self.config.depth_max {
            return Err(SubscribeError::Depth { depth_max: self.config.depth_max });
        }
        let State { messages, inboxes, .. } = &mut self.state;
        let known = inboxes.get(&who);
        if known.is_none() && inboxes.len() >= self.config.subscribers_max {
            return Err(SubscribeError::TooManySubscribers);
        }
        let count = known.map_or(0, |inbox| inbox.subscriptions.len());
        let is_new = known.is_none_or(|inbox| inbox.position(&pattern).is_none());
        if is_new && count >= self.config.subscriptions_per_subscriber_max {
            return Err(SubscribeError::TooManySubscriptions);
        }
        let inbox = inboxes.entry(who).or_insert_with(Inbox::new);
        inbox.subscribe(messages, pattern, policy, depth, tag);
        Ok(())
    }

    /// Ends a subscription with what is queued for it; `false` if there was none.
    pub fn unsubscribe(&mut self, who: Subscriber, pattern: &TopicPattern) -> bool {
        let State { messages, inboxes, .. } = &mut self.state;
        let Some(inbox) = inboxes.get_mut(&who) else { return false };
        let Some(at) = inbox.position(pattern) else { return false };
        inbox.unsubscribe(messages, at);
        if inbox.subscriptions.is_empty() && inbox.held.is_none() {
            inboxes.remove(&who);
        }
        true
    }

    /// Ends all that `who` has here.
    pub fn remove(&mut self, who: Subscriber) {
        let State { messages, inboxes, .. } = &mut self.state;
        if let Some(mut inbox) = inboxes.remove(&who) {
            inbox.put_down(messages);
            while !inbox.subscriptions.is_empty() {
                inbox.unsubscribe(messages, 0);
            }
        }
    }

    /// Queues an event for everybody who has subscribed to its topic.
    ///
    /// # Errors
    /// [`TooLong`] beyond [`EVENT_BYTES_MAX`].
    pub fn publish(&mut self, topic: &Topic, payload: &[u8]) -> Result<Published, TooLong> {
        let mut publication = self.begin(topic, payload)?;
        while !publication.is_done() {
            self.hand_over(&mut publication, topic, payload, usize::MAX);
        }
        Ok(publication.published)
    }

    /// As [`Self::publish`], for everybody but `publisher`.
    ///
    /// # Errors
    /// [`TooLong`] beyond [`EVENT_BYTES_MAX`].
    pub fn publish_by(
        &mut self,
        publisher: Subscriber,
        topic: &Topic,
        payload: &[u8],
    ) -> Result<Published, TooLong> {
        let mut publication = self.begin(topic, payload)?;
        publication.except = Some(publisher);
        while !publication.is_done() {
            self.hand_over(&mut publication, topic, payload, usize::MAX);
        }
        Ok(publication.published)
    }

    /// Begins a publication that is handed over in pieces.
    ///
    /// # Errors
    /// [`TooLong`] beyond [`EVENT_BYTES_MAX`].
    pub fn begin(&mut self, topic: &Topic, payload: &[u8]) -> Result<Publication, TooLong> {
        if payload.len() > EVENT_BYTES_MAX {
            return Err(TooLong);
        }
        self.count(topic);
        let number = self.state.messages.draw_number();
        let next = Some(Subscriber(0));
        Ok(Publication { number, except: None, next, published: Published::default() })
    }

    /// Queues the event of a publication, which must be the same in each piece, for further subscribers:
    /// as many as have `subscriptions_max` subscriptions to its topic together, and one at least.
    /// Returns what became of it in this piece.
    ///
    /// A subscriber that comes between two pieces may get it or not. Of each piece one copy is kept.
    pub fn hand_over(
        &mut self,
        publication: &mut Publication,
        topic: &Topic,
        payload: &[u8],
        subscriptions_max: usize,
    ) -> Published {
        let mut piece = Published::default();
        let Some(first) = publication.next.take() else { return piece };
        let bytes_max = self.config.bytes_per_subscriber_max;
        let State { messages, inboxes, .. } = &mut self.state;
        let (weight, mut kept) = (weight_of(topic, payload), None);
        for (who, inbox) in inboxes.range_mut(first..) {
            if publication.except == Some(*who) {
                continue;
            }
            let matching =
                (0..inbox.subscriptions.len()).filter(|at| inbox.matches(*at, topic)).count();
            let handled = piece.queued + piece.dropped;
            if handled > 0 && handled + matching > subscriptions_max {
                publication.next = Some(*who);
                break;
            }
            for at in 0..inbox.subscriptions.len() {
                if !inbox.matches(at, topic) {
                    continue;
                }
                if !inbox.make_room(messages, at, weight, bytes_max) {
                    piece.dropped += 1;
                    continue;
                }
                let id = match kept {
                    Some(id) => messages.share(id),
                    None => messages.insert(topic, payload, publication.number),
                };
                kept = Some(id);
                inbox.enqueue(at, id, weight);
                piece.queued += 1;
            }
        }
        publication.published.queued += piece.queued;
        publication.published.dropped += piece.dropped;
        piece
    }

    /// Takes the next event for `who` in hand, from those of its subscriptions whose tag is `wanted`,
    /// in the order in which events were published. The one that it had in hand is let go of.
    pub fn next(
        &mut self,
        who: Subscriber,
        wanted: impl Fn(&T) -> bool,
    ) -> Option<(&T, Event<'_>)> {
        let State { messages, inboxes, .. } = &mut self.state;
        let inbox = inboxes.get_mut(&who)?;
        let at = inbox.next(messages, |subscription| wanted(&subscription.tag))?;
        let held = inbox.take(messages, at)?;
        let event = event_of(messages, held)?;
        Some((&inbox.subscriptions.get(at)?.tag, event))
    }

    /// Whether [`Pipeline::next`] would give something.
    pub fn has_next(&self, who: Subscriber, wanted: impl Fn(&T) -> bool) -> bool {
        let inbox = self.state.inboxes.get(&who);
        inbox.is_some_and(|inbox| {
            inbox.subscriptions.iter().any(|one| one.queued() > 0 && wanted(&one.tag))
        })
    }

    /// The event that `who` has in hand.
    pub fn held(&self, who: Subscriber) -> Option<Event<'_>> {
        event_of(&self.state.messages, self.state.inboxes.get(&who)?.held?)
    }

    /// Lets go of the event that `who` has in hand.
    pub fn put_down(&mut self, who: Subscriber) {
        let State { messages, inboxes, .. } = &mut self.state;
        let Some(inbox) = inboxes.get_mut(&who) else { return };
        inbox.put_down(messages);
        if inbox.subscriptions.is_empty() {
            inboxes.remove(&who);
        }
    }

    /// How many events a subscription has dropped since it was made.
    pub fn dropped(&self, who: Subscriber, pattern: &TopicPattern) -> Option<u64> {
        let inbox = self.state.inboxes.get(&who)?;
        Some(inbox.subscriptions[inbox.position(pattern)?].dropped)
    }

    /// All subscriptions, by subscriber.
    pub fn subscriptions(&self) -> impl Iterator<Item = SubscriptionStatus<'_, T>> {
        self.state.inboxes.iter().flat_map(|(who, inbox)| {
            inbox.subscriptions.iter().map(|one| SubscriptionStatus::of(*who, one))
        })
    }

    /// The topics that something was published under, in order, as far as they are counted.
    pub fn topics(&self) -> impl Iterator<Item = TopicStatus<'_>> {
        self.state
            .topics
            .iter()
            .map(|(topic, published)| TopicStatus { topic, published: *published })
    }

    /// Events of topics beyond the [`Config::topics_max`] that are counted one by one.
    pub const fn uncounted(&self) -> u64 {
        self.state.uncounted
    }

    /// Bytes that all events that are queued or in hand take, each counted once.
    pub fn bytes(&self) -> usize {
        self.state.messages.bytes()
    }

    fn count(&mut self, topic: &Topic) {
        let topics = &mut self.state.topics;
        if let Some(published) = topics.get_mut(topic) {
            *published += 1;
        } else if topics.len() < self.config.topics_max {
            topics.insert(topic.clone(), 1);
        } else {
            self.state.uncounted += 1;
        }
    }
}

fn event_of(messages: &Messages, held: Held) -> Option<Event<'_>> {
    let message = messages.get(held.message)?;
    Some(Event {
        topic: message.topic(),
        payload: message.payload(),
        number: message.number,
        dropped_before: held.dropped_before,
    })
}

/// A subscription as others may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionStatus<'a, T> {
    /// Whose it is.
    pub subscriber: Subscriber,
    /// The topics that it matches.
    pub pattern: &'a TopicPattern,
    /// The rule for a full queue.
    pub policy: Policy,
    /// How many events it queues at most.
    pub depth: usize,
    /// How many it has queued.
    pub queued: usize,
    /// How many it has handed over.
    pub delivered: u64,
    /// How many it has dropped.
    pub dropped: u64,
    /// The subscriber's own note.
    pub tag: &'a T,
}

impl<'a, T> SubscriptionStatus<'a, T> {
    fn of(subscriber: Subscriber, subscription: &'a Subscription<T>) -> Self {
        Self {
            subscriber,
            pattern: &subscription.pattern,
            policy: subscription.policy,
            depth: subscription.depth,
            queued: subscription.queued(),
            delivered: subscription.delivered,
            dropped: subscription.dropped,
            tag: &subscription.tag,
        }
    }
}

/// A topic as others may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicStatus<'a> {
    /// Which.
    pub topic: &'a Topic,
    /// How many events were published under it.
    pub published: u64,
}

/// Why a subscription wasn't made: the subscriber's mistake, or a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscribeError {
    /// A queue of no length, or of more than it may have.
    Depth {
        /// The longest queue, in events.
        depth_max: usize,
    },
    /// This subscriber has as many subscriptions as it may.
    TooManySubscriptions,
    /// There are as many subscribers as there may be.
    TooManySubscribers,
}

impl fmt::Display for SubscribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth { depth_max } => write!(f, "a queue has 1 to {depth_max} events"),
            Self::TooManySubscriptions => f.write_str("too many subscriptions"),
            Self::TooManySubscribers => f.write_str("too many subscribers"),
        }
    }
}

impl core::error::Error for SubscribeError {}

/// A payload is longer than an event's may be: the publisher's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event has at most {EVENT_BYTES_MAX} bytes")
    }
}

impl core::error::Error for TooLong {}
