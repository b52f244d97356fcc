//! Host calls that publish events, subscribe to them and take them.

use alloc::string::ToString;
use core::time::Duration;

use tenure_hal::Flash;
use tenure_pipeline::{Event, Policy, Publication, SubscribeError, TooLong};
use tenure_wire::host_call::{GuestBuffer, GuestBytes, GuestText, HostError};
use tenure_wire::limits::{EVENT_BYTES_MAX, PATTERN_BYTES_MAX, TOPIC_BYTES_MAX};
use tenure_wire::{Topic, TopicPattern};

use super::Question;
use super::{Status, Stop, function_name, spend_message, text, write_from};
use crate::cost;
use crate::events::{COMMAND_TOPIC, DEVICE_TOPIC, Handler};
use crate::machine::{Progress, Wait};
use crate::parts::Parts;
use crate::program::Program;
use crate::slot::Slot;
use crate::turn::Turn;

/// The timeout that never comes.
const FOR_EVER: u32 = u32::MAX;

impl<F: Flash> Turn<'_, '_, F> {
    pub(super) fn publish(&mut self, topic: GuestText, payload: GuestBytes) -> Status {
        let topic = text(&self.program, topic, TOPIC_BYTES_MAX)?;
        let topic: Topic = topic.parse().map_err(|_| HostError::Invalid)?;
        if payload.length() > EVENT_BYTES_MAX {
            return Err(HostError::TooLong.into());
        }
        self.door().ask(Question::MESSAGE.reading(payload))?;
        let mut publication = match self.machine.take_progress().publication {
            Some(publication) => publication,
            None => self.begin_publication(&topic, payload)?,
        };
        let payload = payload.read(self.program.memory())?;
        let events = &mut self.parts.events;
        let queues = events.go_on(&mut publication, &topic, payload, cost::PIECE_QUEUES);
        self.extra_cost += cost::of_queued(queues);
        events.hand_over(&mut self.parts.machines);
        events.hand_to(&mut self.machine);
        if publication.is_done() {
            return Ok(publication.published.queued);
        }
        let publication = Some(publication);
        Err(Stop::More(Progress { publication, ..Progress::default() }))
    }

    /// Checks that the machine may publish that, and takes the message that it counts as.
    fn begin_publication(
        &mut self,
        topic: &Topic,
        payload: GuestBytes,
    ) -> Result<Publication, Stop> {
        let now = self.now();
        let (outbox, machine) = (&mut self.parts.outbox, &mut self.machine);
        let mut names = topic.as_str().split('.');
        let granted = match (names.next(), names.next()) {
            (Some(DEVICE_TOPIC), _) => return Err(HostError::Denied.into()),
            (Some(COMMAND_TOPIC), Some(name)) => {
                outbox.ask(machine, now, |grants| grants.use_peripheral(name))
            }
            _ => outbox.ask(machine, now, |grants| grants.publish(topic)),
        };
        granted.map_err(|_| HostError::NotGranted)?;
        spend_message(machine, now, topic.as_str().len() + payload.length())?;
        let payload = payload.read(self.program.memory())?;
        let begun = self.parts.events.begin(topic, payload);
        Ok(begun.map_err(|TooLong| HostError::TooLong)?)
    }

    pub(super) fn subscribe(
        &mut self,
        topic: GuestText,
        (policy, depth): (u32, u32),
        handler: GuestText,
    ) -> Status {
        let now = self.now();
        let pattern = pattern_of(&self.program, topic)?;
        let policy = match policy {
            0 => Policy::DropOldest,
            1 => Policy::DropNewest,
            2 => Policy::LatestOnly,
            _ => return Err(HostError::Invalid.into()),
        };
        let handler = Handler(function_name(&self.program, handler)?.to_string());
        let (parts, machine) = (&mut *self.parts, &mut self.machine);
        if handler.is_there() && !parts.storage.has_function(machine, &handler.0) {
            return Err(HostError::NotFound.into());
        }
        self.door().ask(Question::STATUS)?;
        let (parts, machine) = (&mut *self.parts, &mut self.machine);
        let granted = parts.outbox.ask(machine, now, |grants| grants.subscribe(&pattern));
        granted.map_err(|_| HostError::NotGranted)?;
        let queue = (policy, depth as usize);
        let subscribed = parts.events.subscribe(machine, pattern, queue, handler);
        subscribed.map_err(|error| match error {
            SubscribeError::Depth { .. } => HostError::Invalid,
            _ => HostError::Full,
        })?;
        Ok(0)
    }

    pub(super) fn unsubscribe(&mut self, topic: GuestText) -> Status {
        let pattern = pattern_of(&self.program, topic)?;
        self.door().ask(Question::STATUS)?;
        let ended = self.parts.events.unsubscribe(&mut self.machine, &pattern);
        ended.then_some(0).ok_or(HostError::NotFound.into())
    }

    pub(super) fn event_next(&mut self, timeout_ms: u32) -> Status {
        self.door().ask(Question::EVENT)?;
        let (now, slot) = (self.now(), self.machine.slot);
        let events = &mut self.parts.events;
        if let Some(length) = events.take_next(slot) {
            return Ok(length);
        }
        if !events.takes_events(slot) {
            return Err(HostError::NotFound.into());
        }
        let until = match timeout_ms {
            0 => return Err(HostError::Deadline.into()),
            FOR_EVER => None,
            _ => Some(now + Duration::from_millis(timeout_ms.into())),
        };
        events.put_down(slot);
        Err(Stop::Wait(Wait::Event(until)))
    }

    pub(super) fn event_topic(&mut self, into: GuestBuffer) -> Status {
        let event = in_hand(self.parts, self.machine.slot)?;
        into.write(self.program.memory_mut(), event.topic.as_bytes())?;
        Ok(event.topic.len())
    }

    pub(super) fn event_read(&mut self, offset: u32, into: GuestBuffer) -> Status {
        let event = in_hand(self.parts, self.machine.slot)?;
        write_from(&mut self.program, into, event.payload, offset)
    }

    pub(super) fn event_dropped(&self) -> Status {
        let event = in_hand(self.parts, self.machine.slot)?;
        Ok(usize::try_from(event.dropped_before).unwrap_or(usize::MAX))
    }

    pub(super) fn topic_dropped(&mut self, topic: GuestText) -> Status {
        let pattern = pattern_of(&self.program, topic)?;
        self.door().ask(Question::STATUS)?;
        let dropped = self.parts.events.dropped(self.machine.slot, &pattern);
        Ok(usize::try_from(dropped.ok_or(HostError::NotFound)?).unwrap_or(usize::MAX))
    }
}

/// The event that the machine in `slot` has in hand: the script's, if a journal is played.
fn in_hand<F>(parts: &Parts<F>, slot: Slot) -> Result<Event<'_>, Stop> {
    #[cfg(feature = "journal")]
    if let Some(script) = &parts.script {
        let event = script.event.as_ref().ok_or(HostError::NotFound)?;
        let (topic, payload) = (&event.topic[..], &event.payload[..]);
        return Ok(Event { topic, payload, number: 0, dropped_before: event.dropped });
    }
    Ok(parts.events.held(slot).ok_or(HostError::NotFound)?)
}

fn pattern_of(program: &Program, topic: GuestText) -> Result<TopicPattern, Stop> {
    let pattern = text(program, topic, PATTERN_BYTES_MAX)?.parse();
    Ok(pattern.map_err(|_| HostError::Invalid)?)
}
