//! Events: what machines and the device's peripherals publish, and how machines get it.
//!
//! Topics below `device` are published by the device alone, so that a reading is one; topics below
//! `command.NAME` are what the peripheral NAME listens to, and take a grant to use it. All others
//! take a grant of that topic.
//!
//! A machine gets events in one of two ways. With a handler, each is a task of its own: one place in
//! its queue, beyond the budget's length, stands for all that wait in the pipeline. Without, the
//! machine asks for the next one and waits.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_pipeline::{
    Config, Event, Pipeline, Policy, Publication, Published, State, SubscribeError, Subscriber,
    SubscriptionStatus, TooLong,
};
#[cfg(feature = "bridge")]
use tenure_wire::capability::Grants;
use tenure_wire::{Topic, TopicPattern};

use crate::machine::{Machine, Wait, Woken};
use crate::machines::Machines;
use crate::policy::SLOTS_MAX;
use crate::slot::Slot;
use crate::task::Task;

/// Below this topic the device alone publishes.
pub const DEVICE_TOPIC: &str = "device";
/// Below this topic, by its name, each peripheral listens.
pub const COMMAND_TOPIC: &str = "command";
/// The numbers of subscribers from which on they are drivers of peripherals, not machines.
const DRIVERS: u16 = 0x8000;
/// The bridge to topics outside, as a subscriber.
#[cfg(feature = "bridge")]
const BRIDGE: Subscriber = Subscriber(u16::MAX);
/// How many events of a pattern wait for the bridge; the oldest make room.
#[cfg(feature = "bridge")]
const BRIDGED_MAX: usize = 32;
/// How many commands a peripheral's driver has waiting; the oldest make room.
const COMMANDS_MAX: usize = 4;

/// A machine's note on a subscription: the function that handles its events, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handler(pub(crate) String);

impl Handler {
    pub(crate) fn is_there(&self) -> bool {
        !self.0.is_empty()
    }

    fn is_none(&self) -> bool {
        !self.is_there()
    }
}

/// The driver of a peripheral, by the place that its device gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Driver(pub u8);

impl From<Driver> for Subscriber {
    fn from(driver: Driver) -> Self {
        Self(DRIVERS + u16::from(driver.0))
    }
}

/// The subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// The machine in this slot.
    Slot(Slot),
    /// The driver of a peripheral.
    Driver(Driver),
    /// The bridge to topics outside.
    #[cfg(feature = "bridge")]
    Bridge,
}

/// A subscription as others may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribed<'a> {
    /// The subscribers.
    pub listener: Listener,
    /// To what, and what became of it.
    pub status: SubscriptionStatus<'a, ()>,
    /// The function that handles its events, if one does.
    pub handler: Option<&'a str>,
}

/// Whether a machine with these rights may publish under a topic.
#[cfg(feature = "bridge")]
pub(crate) fn may_publish(grants: &Grants, topic: &Topic) -> bool {
    let mut names = topic.as_str().split('.');
    match (names.next(), names.next()) {
        (Some(DEVICE_TOPIC), _) => false,
        (Some(COMMAND_TOPIC), Some(name)) => grants.has_peripheral(name),
        _ => grants.has_topic(topic),
    }
}

fn subscriber(slot: Slot) -> Subscriber {
    Subscriber(slot.index() as u16)
}

/// The queues of everybody who has subscribed.
pub struct Events(Pipeline<Handler>);

impl Events {
    pub(crate) const fn new(config: Config) -> Self {
        Self(Pipeline::new(config))
    }

    /// Lets a driver listen to what is published for it under `command.NAME` and below.
    ///
    /// # Errors
    /// As [`SubscribeError`] says.
    pub fn listen(&mut self, driver: Driver, topic: &Topic) -> Result<(), SubscribeError> {
        for pattern in [TopicPattern::One(topic.clone()), TopicPattern::Below(topic.clone())] {
            let (policy, handler) = (Policy::DropOldest, Handler::default());
            self.0.subscribe(driver.into(), pattern, policy, COMMANDS_MAX, handler)?;
        }
        Ok(())
    }

    /// The next command for a driver: its topic and what it says.
    pub fn command(&mut self, driver: Driver) -> Option<(String, Vec<u8>)> {
        let (_, event) = self.0.next(driver.into(), |_| true)?;
        let command = (event.topic.to_string(), event.payload.to_vec());
        self.0.put_down(driver.into());
        Some(command)
    }

    /// The publications: topics and how often, as far as they are counted, and how often in all
    /// under others.
    pub fn topics(&self) -> (impl Iterator<Item = (&Topic, u64)>, u64) {
        let topics = self.0.topics().map(|status| (status.topic, status.published));
        (topics, self.0.uncounted())
    }

    /// Bytes that all queued events take, each counted once.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The subscriptions, with their subscribers.
    pub fn subscriptions(&self) -> impl Iterator<Item = Subscribed<'_>> {
        self.0.subscriptions().filter_map(|status| {
            let number = status.subscriber.0;
            Some(Subscribed {
                listener: match number.checked_sub(DRIVERS) {
                    #[cfg(feature = "bridge")]
                    _ if status.subscriber == BRIDGE => Listener::Bridge,
                    Some(number) => Listener::Driver(Driver(number as u8)),
                    None => Listener::Slot(Slot::new(number.into())?),
                },
                handler: Some(status.tag.0.as_str()).filter(|name| !name.is_empty()),
                status: SubscriptionStatus {
                    subscriber: status.subscriber,
                    pattern: status.pattern,
                    policy: status.policy,
                    depth: status.depth,
                    queued: status.queued,
                    delivered: status.delivered,
                    dropped: status.dropped,
                    tag: &(),
                },
            })
        })
    }

    /// Publishes for the device itself, and hands the event to who waits for it.
    pub(crate) fn publish(
        &mut self,
        machines: &mut Machines,
        topic: &Topic,
        payload: &[u8],
    ) -> Result<Published, TooLong> {
        let published = self.0.publish(topic, payload)?;
        self.hand_over(machines);
        Ok(published)
    }

    /// Lets the bridge hear of `patterns`, and of nothing else.
    ///
    /// # Errors
    /// As [`SubscribeError`] says; it hears of those before then.
    #[cfg(feature = "bridge")]
    pub fn bridge(&mut self, patterns: &[TopicPattern]) -> Result<(), SubscribeError> {
        let ours = self.0.subscriptions().filter(|one| one.subscriber == BRIDGE);
        let gone = ours.map(|one| one.pattern.clone()).filter(|one| !patterns.contains(one));
        for pattern in gone.collect::<Vec<_>>() {
            self.0.unsubscribe(BRIDGE, &pattern);
        }
        for pattern in patterns {
            let (policy, handler) = (Policy::DropOldest, Handler::default());
            self.0.subscribe(BRIDGE, pattern.clone(), policy, BRIDGED_MAX, handler)?;
        }
        Ok(())
    }

    /// The next event for the bridge: its topic and what it says.
    #[cfg(feature = "bridge")]
    pub fn bridged(&mut self) -> Option<(Topic, Vec<u8>)> {
        let (_, event) = self.0.next(BRIDGE, |_| true)?;
        let bridged = event.topic.parse().ok().map(|topic| (topic, event.payload.to_vec()));
        self.0.put_down(BRIDGE);
        bridged
    }

    /// Publishes what came by the bridge, which doesn't hear of it again.
    #[cfg(feature = "bridge")]
    pub(crate) fn publish_bridged(
        &mut self,
        machines: &mut Machines,
        topic: &Topic,
        payload: &[u8],
    ) -> Result<Published, TooLong> {
        let published = self.0.publish_by(BRIDGE, topic, payload)?;
        self.hand_over(machines);
        Ok(published)
    }

    /// Begins to publish what a machine says.
    pub(crate) fn begin(&mut self, topic: &Topic, payload: &[u8]) -> Result<Publication, TooLong> {
        self.0.begin(topic, payload)
    }

    /// Queues a publication for so many more subscribers; returns how many queues took or dropped it.
    pub(crate) fn go_on(
        &mut self,
        publication: &mut Publication,
        topic: &Topic,
        payload: &[u8],
        queues_max: usize,
    ) -> usize {
        let piece = self.0.hand_over(publication, topic, payload, queues_max);
        piece.queued + piece.dropped
    }

    /// Subscribes a machine.
    pub(crate) fn subscribe(
        &mut self,
        machine: &mut Machine,
        pattern: TopicPattern,
        (policy, depth): (Policy, usize),
        handler: Handler,
    ) -> Result<(), SubscribeError> {
        self.0.subscribe(subscriber(machine.slot), pattern, policy, depth, handler)?;
        self.queue_for(machine);
        Ok(())
    }

    /// Ends a subscription of a machine; returns whether it had it.
    pub(crate) fn unsubscribe(&mut self, machine: &mut Machine, pattern: &TopicPattern) -> bool {
        let ended = self.0.unsubscribe(subscriber(machine.slot), pattern);
        self.queue_for(machine);
        ended
    }

    /// Whether the machine in `slot` has a subscription without a handler.
    pub(crate) fn takes_events(&self, slot: Slot) -> bool {
        let who = subscriber(slot);
        self.0.subscriptions().any(|one| one.subscriber == who && one.tag.is_none())
    }

    /// How many events of a subscription were dropped.
    pub(crate) fn dropped(&self, slot: Slot, pattern: &TopicPattern) -> Option<u64> {
        self.0.dropped(subscriber(slot), pattern)
    }

    /// The event that a machine handles or has taken.
    pub(crate) fn held(&self, slot: Slot) -> Option<Event<'_>> {
        self.0.held(subscriber(slot))
    }

    /// Lets go of the event that a machine handled or has taken.
    pub(crate) fn put_down(&mut self, slot: Slot) {
        self.0.put_down(subscriber(slot));
    }

    /// Ends all subscriptions of a machine, with what was queued for them.
    pub(crate) fn forget(&mut self, machine: &mut Machine) {
        self.0.remove(subscriber(machine.slot));
        machine.queue.retain(|task| !task.is_event);
    }

    /// Makes `task`, which stands for events that wait, the next one of them.
    pub(crate) fn take(&mut self, machine: &mut Machine, task: &mut Task) {
        let next = self.0.next(subscriber(machine.slot), Handler::is_there);
        task.function = next.map(|(handler, _)| handler.0.clone()).unwrap_or_default();
        self.queue_for(machine);
    }

    /// Wakes who waits for an event and queues a task for who has a handler.
    pub(crate) fn hand_over(&mut self, machines: &mut Machines) {
        for machine in machines.iter_mut() {
            self.hand_to(machine);
        }
    }

    /// Wakes `machine` if it waits for an event that is there, and queues a task if it has a handler.
    pub(crate) fn hand_to(&mut self, machine: &mut Machine) {
        self.queue_for(machine);
        let waits = matches!(machine.wait, Some(Wait::Event(_)));
        if waits && let Some(length) = self.take_next(machine.slot) {
            machine.wake(Woken::with_status(length as i32));
        }
    }

    /// Takes the next event that no handler is for; returns the length of its payload.
    pub(crate) fn take_next(&mut self, slot: Slot) -> Option<usize> {
        let (_, event) = self.0.next(subscriber(slot), Handler::is_none)?;
        Some(event.payload.len())
    }

    /// All that is queued, to be written down.
    pub(crate) fn state(&self) -> &State<Handler> {
        self.0.state()
    }

    /// Takes up what was written down, for the machines that `is_awake`.
    pub(crate) fn wake_up(
        &mut self,
        config: Config,
        state: State<Handler>,
        is_awake: impl Fn(Slot) -> bool,
    ) {
        self.0 = Pipeline::with_state(config, state);
        for slot in Slot::all(SLOTS_MAX).filter(|slot| !is_awake(*slot)) {
            self.0.remove(subscriber(slot));
        }
    }

    /// Sees to it that there is a place in the machine's queue as long as events wait for its
    /// handlers, and none otherwise.
    fn queue_for(&self, machine: &mut Machine) {
        let waiting = self.0.has_next(subscriber(machine.slot), Handler::is_there);
        let position = machine.queue.iter().position(|task| task.is_event);
        match position {
            None if waiting => machine.enqueue(Task::of_events()),
            Some(position) if !waiting => {
                machine.queue.remove(position);
                machine.settle_queue();
            }
            _ => {}
        }
    }
}
