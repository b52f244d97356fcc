//! Published events, each kept once with the number of queues that it stands in.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_wire::Topic;

/// Bytes that an event counts beside its topic and payload, for its place in tables and queues.
const OVERHEAD_BYTES: usize = 48;

/// Where an event is kept, as long as somebody reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageId(u32);

/// One event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Topic and payload, one behind the other.
    bytes: Vec<u8>,
    topic_length: u8,
    /// Its place in the order of all that were published.
    pub(crate) number: u64,
    /// In how many queues it stands, or is held.
    readers: u32,
}

impl Message {
    fn new(topic: &Topic, payload: &[u8], number: u64) -> Self {
        let topic = topic.as_str().as_bytes();
        let mut bytes = Vec::with_capacity(topic.len() + payload.len());
        bytes.extend_from_slice(topic);
        bytes.extend_from_slice(payload);
        Self { bytes, topic_length: topic.len() as u8, number, readers: 1 }
    }

    pub(crate) fn topic(&self) -> &str {
        let topic = self.bytes.get(..usize::from(self.topic_length)).unwrap_or_default();
        core::str::from_utf8(topic).unwrap_or_default()
    }

    pub(crate) fn payload(&self) -> &[u8] {
        self.bytes.get(usize::from(self.topic_length)..).unwrap_or_default()
    }

    pub(crate) fn weight(&self) -> usize {
        self.bytes.len() + OVERHEAD_BYTES
    }
}

/// Bytes that an event of this topic and payload counts against its subscribers' limits.
pub(crate) fn weight_of(topic: &Topic, payload: &[u8]) -> usize {
    topic.as_str().len() + payload.len() + OVERHEAD_BYTES
}

/// All events that somebody still reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Messages {
    kept: Vec<Option<Message>>,
    free: Vec<u32>,
    next_number: u64,
}

impl Messages {
    pub(crate) const fn new() -> Self {
        Self { kept: Vec::new(), free: Vec::new(), next_number: 0 }
    }

    /// Begins a publication; gives its number.
    pub(crate) fn draw_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Keeps an event for its first reader.
    pub(crate) fn insert(&mut self, topic: &Topic, payload: &[u8], number: u64) -> MessageId {
        let message = Some(Message::new(topic, payload, number));
        match self.free.pop() {
            Some(at) => {
                self.kept[at as usize] = message;
                MessageId(at)
            }
            None => {
                self.kept.push(message);
                MessageId(self.kept.len() as u32 - 1)
            }
        }
    }

    /// One more reader.
    pub(crate) fn share(&mut self, id: MessageId) -> MessageId {
        if let Some(Some(message)) = self.kept.get_mut(id.0 as usize) {
            message.readers += 1;
        }
        id
    }

    pub(crate) fn get(&self, id: MessageId) -> Option<&Message> {
        self.kept.get(id.0 as usize)?.as_ref()
    }

    /// One reader less; the last one's takes the event away. Gives what it weighed.
    pub(crate) fn release(&mut self, id: MessageId) -> usize {
        let Some(place) = self.kept.get_mut(id.0 as usize) else { return 0 };
        let Some(message) = place else { return 0 };
        let weight = message.weight();
        message.readers -= 1;
        if message.readers == 0 {
            *place = None;
            self.free.push(id.0);
            self.shrink();
        }
        weight
    }

    /// Bytes that all of them take, each counted once.
    pub(crate) fn bytes(&self) -> usize {
        self.kept.iter().flatten().map(Message::weight).sum()
    }

    /// Gives the table's own room back once nothing is kept.
    fn shrink(&mut self) {
        if self.free.len() == self.kept.len() {
            self.kept = Vec::new();
            self.free = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_gives_its_room_back_when_nothing_is_kept_and_never_outgrows_what_is() {
        let mut messages = Messages::new();
        let topic: Topic = "door.front".parse().unwrap();
        for round in 0..100 {
            let ids: Vec<_> = (0..3).map(|_| messages.insert(&topic, b"open", round)).collect();
            assert_eq!(messages.kept.len(), 3, "round {round}");
            for id in ids {
                let again = messages.share(id);
                messages.release(again);
                assert!(messages.release(id) > 0, "the last reader's");
                assert!(messages.get(id).is_none());
            }
            assert_eq!((messages.kept.capacity(), messages.free.capacity()), (0, 0));
        }
        // As long as one is kept, places are used again.
        let first = messages.insert(&topic, b"open", 1);
        for number in 2..100 {
            let next = messages.insert(&topic, b"shut", number);
            messages.release(next);
        }
        assert_eq!((messages.kept.len(), messages.get(first).unwrap().number), (2, 1));
    }
}
