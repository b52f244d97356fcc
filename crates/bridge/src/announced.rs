//! The topics that Home Assistant was told of on this connection, and whose they are.
//!
//! A publisher has fewer than are left for all (the dynamic threshold of Choudhury and Hahne, 1998): one that publishes under topics
//! without end leaves entities to the others.

use std::collections::{BTreeMap, BTreeSet};

/// The most topics that Home Assistant is told of.
pub(crate) const ENTITIES_MAX: usize = 256;

/// The topics, at the broker.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    topics: BTreeSet<String>,
    of_publishers: BTreeMap<u64, usize>,
}

/// What becomes of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announcement {
    /// Home Assistant is to be told of it.
    Due,
    /// It was told before.
    Known,
    /// Its publisher has its part.
    NoRoom,
}

impl Announced {
    /// Takes note of a topic, if there is room for one more of this publisher's.
    pub(crate) fn announce(&mut self, topic: &str, publisher: u64) -> Announcement {
        if self.topics.contains(topic) {
            return Announcement::Known;
        }
        let free = ENTITIES_MAX.saturating_sub(self.topics.len());
        let own = self.of_publishers.entry(publisher).or_default();
        if *own >= free {
            return Announcement::NoRoom;
        }
        *own += 1;
        self.topics.insert(topic.to_string());
        Announcement::Due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C5-2
    #[test]
    fn publisher_of_topics_without_end_leaves_entities_to_the_others() {
        let mut announced = Announced::default();
        for greedy in 1..=5 {
            let told = (0..1000)
                .filter(|n| {
                    announced.announce(&format!("{greedy}/{n}"), greedy) == Announcement::Due
                })
                .count();
            assert_eq!(told, ENTITIES_MAX >> greedy);
            let first = format!("{greedy}/0");
            assert_eq!(announced.announce(&first, greedy), Announcement::Known);
        }
        assert_eq!(announced.announce("another/1", 99), Announcement::Due);
    }
}
