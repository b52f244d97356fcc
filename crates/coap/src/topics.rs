//! Topics that visitors may hear of, each with its last event.

use std::collections::BTreeMap;

use tenure_wire::{Topic, TopicPattern};

/// The most topics of which the last event is kept.
pub(crate) const TOPICS_MAX: usize = 64;

/// The topics that the device's owner has opened.
pub(crate) struct Topics {
    patterns: Vec<TopicPattern>,
    last: BTreeMap<Topic, Vec<u8>>,
}

impl Topics {
    pub(crate) fn new(patterns: Vec<TopicPattern>) -> Self {
        Self { patterns, last: BTreeMap::new() }
    }

    /// Whether visitors may hear of a topic.
    pub(crate) fn is_open(&self, topic: &Topic) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(topic))
    }

    /// Keeps an event, if visitors may hear of it; returns whether they do. Beyond the most topics another one makes room that
    /// nobody has `in_use`.
    pub(crate) fn keep(
        &mut self,
        topic: &Topic,
        payload: &[u8],
        in_use: impl Fn(&Topic) -> bool,
    ) -> bool {
        if !self.is_open(topic) {
            return false;
        }
        if !self.last.contains_key(topic) && self.last.len() >= TOPICS_MAX {
            let Some(spare) = self.last.keys().find(|other| !in_use(other)).cloned() else {
                return false;
            };
            self.last.remove(&spare);
        }
        self.last.insert(topic.clone(), payload.to_vec());
        true
    }

    /// The last event of a topic.
    pub(crate) fn last(&self, topic: &Topic) -> Option<&[u8]> {
        self.last.get(topic).map(Vec::as_slice)
    }

    /// The topics that there are: those that the owner has named, and those that something was published under.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Topic> {
        let named = self.patterns.iter().filter_map(|pattern| match pattern {
            TopicPattern::One(topic) if !self.last.contains_key(topic) => Some(topic),
            _ => None,
        });
        named.chain(self.last.keys())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(text: &str) -> Topic {
        text.parse().unwrap()
    }

    #[test]
    fn last_event_of_a_topic_that_is_open_is_kept_and_topics_are_bounded() {
        let patterns = ["door.front", "room.*"].map(|text| text.parse().unwrap());
        let mut topics = Topics::new(patterns.to_vec());
        assert!(!topics.keep(&topic("safe"), b"1", |_| false));
        assert!(topics.keep(&topic("room.attic"), b"20", |_| false));
        assert!(topics.keep(&topic("room.attic"), b"21", |_| false));
        assert_eq!(topics.last(&topic("room.attic")), Some(&b"21"[..]));
        assert_eq!(topics.last(&topic("safe")), None);
        let listed: Vec<&str> = topics.listed().map(Topic::as_str).collect();
        assert_eq!(listed, ["door.front", "room.attic"]);
        for number in 0..1000 {
            let kept = topics
                .keep(&topic(&format!("room.{number}")), b"", |it| it.as_str() == "room.attic");
            assert!(kept);
        }
        assert_eq!(topics.last.len(), TOPICS_MAX);
        assert!(topics.last(&topic("room.attic")).is_some());
    }
}
