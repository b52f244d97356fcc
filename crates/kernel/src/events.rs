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
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_pipeline::{
    Policy, Publication, Published, SubscribeError, Subscriber, SubscriptionStatus, TooLong,
};
use tenure_wire::host_call::{GuestBuffer, GuestBytes, GuestText, HostError};
use tenure_wire::limits::{EVENT_BYTES_MAX, PATTERN_BYTES_MAX, TOPIC_BYTES_MAX};
use tenure_wire::{Topic, TopicPattern};

use crate::cost;
use crate::host::{Status, Stop, function_name, text, write_from};
use crate::kernel::Kernel;
use crate::lifecycle::{Event, State};
use crate::machine::{Progress, Wait, Woken};
use crate::program::Program;
use crate::task::Task;

/// Below this topic the device alone publishes.
pub const DEVICE_TOPIC: &str = "device";
/// Below this topic, by its name, each peripheral listens.
pub const COMMAND_TOPIC: &str = "command";
/// The timeout that never comes.
const FOR_EVER: u32 = u32::MAX;
/// The numbers of subscribers from which on they are drivers of peripherals, not machines.
const DRIVERS: u16 = 0x8000;
/// How many commands a peripheral's driver has waiting; the oldest make room.
const COMMANDS_MAX: usize = 4;

/// What a machine notes with a subscription: the function that handles its events, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handler(String);

impl Handler {
    fn is_there(&self) -> bool {
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

/// Who has subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// The machine in this slot.
    Slot(usize),
    /// The driver of a peripheral.
    Driver(Driver),
}

/// A subscription as others may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribed<'a> {
    /// Who has subscribed.
    pub listener: Listener,
    /// To what, and what became of it.
    pub status: SubscriptionStatus<'a, ()>,
    /// The function that handles its events, if one does.
    pub handler: Option<&'a str>,
}

fn pattern_of(instance: &Program, topic: GuestText) -> Result<TopicPattern, Stop> {
    let pattern = text(instance, topic, PATTERN_BYTES_MAX)?.parse();
    Ok(pattern.map_err(|_| HostError::Invalid)?)
}

fn subscriber(slot: usize) -> Subscriber {
    Subscriber(slot as u16)
}

impl<F: Flash> Kernel<F> {
    /// Publishes what the device itself has to say.
    ///
    /// # Errors
    /// [`TooLong`] if it is longer than an event's payload may be.
    pub fn publish(&mut self, topic: &Topic, payload: &[u8]) -> Result<Published, TooLong> {
        let published = self.events.publish(topic, payload)?;
        self.hand_over_events();
        Ok(published)
    }

    /// Lets a driver listen to what is published for it under `command.NAME` and below.
    ///
    /// # Errors
    /// As [`SubscribeError`] says.
    pub fn listen(&mut self, driver: Driver, topic: &Topic) -> Result<(), SubscribeError> {
        for pattern in [TopicPattern::One(topic.clone()), TopicPattern::Below(topic.clone())] {
            let (policy, handler) = (Policy::DropOldest, Handler::default());
            self.events.subscribe(driver.into(), pattern, policy, COMMANDS_MAX, handler)?;
        }
        Ok(())
    }

    /// The next command for a driver: its topic and what it says.
    pub fn command(&mut self, driver: Driver) -> Option<(String, Vec<u8>)> {
        let (_, event) = self.events.next(driver.into(), |_| true)?;
        let command = (event.topic.to_string(), event.payload.to_vec());
        self.events.put_down(driver.into());
        Some(command)
    }

    /// What was published: topics and how often, as far as they are counted, and how often in all
    /// under others.
    pub fn topics(&self) -> (impl Iterator<Item = (&Topic, u64)>, u64) {
        let topics = self.events.topics().map(|status| (status.topic, status.published));
        (topics, self.events.uncounted())
    }

    /// What all queued events take, each once, in bytes.
    pub fn event_bytes(&self) -> usize {
        self.events.bytes()
    }

    /// Who has subscribed to what.
    pub fn subscriptions(&self) -> impl Iterator<Item = Subscribed<'_>> {
        self.events.subscriptions().map(|status| Subscribed {
            listener: match status.subscriber.0.checked_sub(DRIVERS) {
                Some(number) => Listener::Driver(Driver(number as u8)),
                None => Listener::Slot(status.subscriber.0.into()),
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
    }

    /// Ends all subscriptions of a machine, with what was queued for them.
    pub(crate) fn forget_events(&mut self, slot: usize) {
        self.events.remove(subscriber(slot));
        if let Some(machine) = self.machine_mut(slot) {
            machine.queue.retain(|task| !task.is_event);
        }
    }

    /// Makes `task`, which stands for events that wait, the next one of them.
    pub(crate) fn take_event(&mut self, slot: usize, task: &mut Task) {
        let next = self.events.next(subscriber(slot), Handler::is_there);
        task.function = next.map(|(handler, _)| handler.0.clone()).unwrap_or_default();
        self.queue_events(slot);
    }

    /// Lets go of the event that was handled.
    pub(crate) fn event_handled(&mut self, slot: usize) {
        self.events.put_down(subscriber(slot));
    }

    /// What the event says that the machine handles or has taken.
    pub(crate) fn event_payload(&self, slot: usize) -> Option<&[u8]> {
        self.events.held(subscriber(slot)).map(|event| event.payload)
    }

    /// Wakes who waits for an event and queues a task for who has a handler.
    fn hand_over_events(&mut self) {
        for slot in 0..self.machines.len() {
            self.queue_events(slot);
            let waits = self
                .machine(slot)
                .is_some_and(|machine| matches!(machine.wait, Some(Wait::Event(_))));
            if waits && let Some(length) = self.next_event_for(slot) {
                let woken = Woken::with_status(length as i32);
                if let Some(machine) = self.machine_mut(slot) {
                    machine.wake(woken);
                }
            }
        }
    }

    /// Sees to it that there is a place in the machine's queue as long as events wait for its
    /// handlers, and none otherwise.
    fn queue_events(&mut self, slot: usize) {
        let waiting = self.events.has_next(subscriber(slot), Handler::is_there);
        let Some(machine) = self.machine_mut(slot) else { return };
        let position = machine.queue.iter().position(|task| task.is_event);
        match position {
            None if waiting => machine.enqueue(Task::of_events()),
            Some(position) if !waiting => {
                machine.queue.remove(position);
                if machine.state == State::Ready
                    && machine.current.is_none()
                    && machine.queue.is_empty()
                {
                    machine.step(Event::Drained);
                }
            }
            _ => {}
        }
    }

    /// Takes the next event that no handler is for; gives the length of its payload.
    fn next_event_for(&mut self, slot: usize) -> Option<usize> {
        let (_, event) = self.events.next(subscriber(slot), Handler::is_none)?;
        Some(event.payload.len())
    }

    pub(crate) fn host_publish(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        topic: GuestText,
        payload: GuestBytes,
    ) -> Status {
        let topic = text(instance, topic, TOPIC_BYTES_MAX)?;
        let topic: Topic = topic.parse().map_err(|_| HostError::Invalid)?;
        if payload.length() > EVENT_BYTES_MAX {
            return Err(HostError::TooLong.into());
        }
        let begun = self.take_progress(slot).publication;
        let mut publication = match begun {
            Some(publication) => publication,
            None => self.begin_publication(slot, instance, now, &topic, payload)?,
        };
        let payload = payload.read(instance.memory())?;
        let piece = self.events.hand_over(&mut publication, &topic, payload, cost::PIECE_QUEUES);
        self.extra_cost += cost::of_queued(piece.queued + piece.dropped);
        self.hand_over_events();
        if publication.is_done() {
            return Ok(publication.published.queued);
        }
        let publication = Some(publication);
        Err(Stop::More(Progress { publication, ..Progress::default() }))
    }

    /// Checks that the machine in `slot` may publish that, and takes the message that it counts as.
    fn begin_publication(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        topic: &Topic,
        payload: GuestBytes,
    ) -> Result<Publication, Stop> {
        let mut names = topic.as_str().split('.');
        let granted = match (names.next(), names.next()) {
            (Some(DEVICE_TOPIC), _) => return Err(HostError::Denied.into()),
            (Some(COMMAND_TOPIC), Some(name)) => {
                self.ask(now, slot, |grants| grants.use_peripheral(name))
            }
            _ => self.ask(now, slot, |grants| grants.publish(topic)),
        };
        granted.map_err(|_| HostError::NotGranted)?;
        self.spend_message(slot, now, topic.as_str().len() + payload.length())?;
        let payload = payload.read(instance.memory())?;
        Ok(self.events.begin(topic, payload).map_err(|TooLong| HostError::TooLong)?)
    }

    pub(crate) fn host_subscribe(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        topic: GuestText,
        (policy, depth): (u32, u32),
        handler: GuestText,
    ) -> Status {
        let pattern = pattern_of(instance, topic)?;
        let policy = match policy {
            0 => Policy::DropOldest,
            1 => Policy::DropNewest,
            2 => Policy::LatestOnly,
            _ => return Err(HostError::Invalid.into()),
        };
        let handler = Handler(function_name(instance, handler)?.to_string());
        if handler.is_there() && !self.has_function(slot, &handler.0) {
            return Err(HostError::NotFound.into());
        }
        self.ask(now, slot, |grants| grants.subscribe(&pattern))
            .map_err(|_| HostError::NotGranted)?;
        let subscribed =
            self.events.subscribe(subscriber(slot), pattern, policy, depth as usize, handler);
        subscribed.map_err(|error| match error {
            SubscribeError::Depth { .. } => HostError::Invalid,
            _ => HostError::Full,
        })?;
        self.queue_events(slot);
        Ok(0)
    }

    pub(crate) fn host_unsubscribe(
        &mut self,
        slot: usize,
        instance: &Program,
        topic: GuestText,
    ) -> Status {
        let pattern = pattern_of(instance, topic)?;
        if !self.events.unsubscribe(subscriber(slot), &pattern) {
            return Err(HostError::NotFound.into());
        }
        self.queue_events(slot);
        Ok(0)
    }

    pub(crate) fn host_event_next(&mut self, slot: usize, now: Instant, timeout_ms: u32) -> Status {
        if let Some(length) = self.next_event_for(slot) {
            return Ok(length);
        }
        let own = |status: &SubscriptionStatus<'_, Handler>| {
            status.subscriber == subscriber(slot) && status.tag.is_none()
        };
        if !self.events.subscriptions().any(|status| own(&status)) {
            return Err(HostError::NotFound.into());
        }
        let until = match timeout_ms {
            0 => return Err(HostError::Deadline.into()),
            FOR_EVER => None,
            _ => Some(now + Duration::from_millis(timeout_ms.into())),
        };
        self.events.put_down(subscriber(slot));
        Err(Stop::Wait(Wait::Event(until)))
    }

    pub(crate) fn host_event_topic(
        &self,
        slot: usize,
        instance: &mut Program,
        into: GuestBuffer,
    ) -> Status {
        let event = self.events.held(subscriber(slot)).ok_or(HostError::NotFound)?;
        into.write(instance.memory_mut(), event.topic.as_bytes())?;
        Ok(event.topic.len())
    }

    pub(crate) fn host_event_read(
        &self,
        slot: usize,
        instance: &mut Program,
        offset: u32,
        into: GuestBuffer,
    ) -> Status {
        let payload = self.event_payload(slot).ok_or(HostError::NotFound)?;
        write_from(instance, into, payload, offset)
    }

    pub(crate) fn host_event_dropped(&self, slot: usize) -> Status {
        let event = self.events.held(subscriber(slot)).ok_or(HostError::NotFound)?;
        Ok(usize::try_from(event.dropped_before).unwrap_or(usize::MAX))
    }

    pub(crate) fn host_topic_dropped(
        &self,
        slot: usize,
        instance: &Program,
        topic: GuestText,
    ) -> Status {
        let pattern = pattern_of(instance, topic)?;
        let dropped = self.events.dropped(subscriber(slot), &pattern);
        Ok(usize::try_from(dropped.ok_or(HostError::NotFound)?).unwrap_or(usize::MAX))
    }
}
