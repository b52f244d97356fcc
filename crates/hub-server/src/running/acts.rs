//! How much each key, and each person of it, changes in a day: so much is noted in the audit log, which grows by it for good.
//!
//! Invariants:
//! - Whatever one person of a key does leaves the others their part, and all of them together leave the key its own.
//! - What is remembered is of one day, and of those who may sign in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The most changes in a day (UTC) of a key by itself, of its tokens together, and of one person of it.
pub(crate) const ACTS_MAX: u32 = 2_000;
/// Of all people of a key.
const OF_PEOPLE_MAX: u32 = 8_000;
const DAY_S: u64 = 24 * 60 * 60;

/// By whom something is changed in a key's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Actor {
    /// The key itself, by a browser or a command.
    Key,
    /// Its tokens, which may be in anybody's hands.
    Tokens,
    /// A person of it, by whatever the person is signed in with.
    Person(i64),
}

/// What was done in this day.
#[derive(Debug, Default)]
pub(crate) struct Acts(Mutex<Day>);

#[derive(Debug, Default)]
struct Day {
    /// The number of the day since 1970.
    number: u64,
    keys: BTreeMap<String, OfKey>,
}

#[derive(Debug, Default)]
struct OfKey {
    by_people: u32,
    by: BTreeMap<Actor, u32>,
    signed_in: BTreeSet<Actor>,
}

impl Acts {
    /// Counts a change in the name of the key `who`; `false` if it is one too many in this day.
    pub(crate) fn take(&self, who: &str, actor: Actor, unix_s: u64) -> bool {
        self.of(who, unix_s, |of_key| {
            let is_person = matches!(actor, Actor::Person(_));
            let count = of_key.by.entry(actor).or_default();
            if *count >= ACTS_MAX || (is_person && of_key.by_people >= OF_PEOPLE_MAX) {
                return false;
            }
            *count += 1;
            of_key.by_people += u32::from(is_person);
            true
        })
    }

    /// Whether that is the first sign-in of this day, which alone is noted.
    pub(crate) fn is_first_sign_in(&self, who: &str, actor: Actor, unix_s: u64) -> bool {
        self.of(who, unix_s, |of_key| of_key.signed_in.insert(actor))
    }

    fn of<T>(&self, who: &str, unix_s: u64, change: impl FnOnce(&mut OfKey) -> T) -> T {
        let mut day = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if day.number != unix_s / DAY_S {
            *day = Day { number: unix_s / DAY_S, ..Day::default() };
        }
        change(day.keys.entry(who.into()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_much_leaves_the_others_their_part_of_the_day() {
        let acts = Acts::default();
        let taken = |who: &str, by| (0..20_000).filter(|_| acts.take(who, by, 7)).count();
        for person in 1..=10 {
            let part = if person <= 4 { 2_000 } else { 0 };
            assert_eq!(taken("a", Actor::Person(person)), part, "{person}");
        }
        assert_eq!(taken("a", Actor::Tokens), 2_000, "its tokens");
        assert_eq!(taken("a", Actor::Key), 2_000, "the key itself");
        assert_eq!(taken("b", Actor::Person(1)), 2_000, "another key's person");
        assert!(!acts.take("a", Actor::Key, DAY_S - 1));
        assert!(acts.take("a", Actor::Key, DAY_S), "the next day");
    }

    #[test]
    fn first_sign_in_of_a_day_is_noted_for_each() {
        let acts = Acts::default();
        let ada = Actor::Person(1);
        for (actor, unix_s, is_first) in [
            (Actor::Key, 0, true),
            (Actor::Key, 9, false),
            (ada, 9, true),
            (ada, 9, false),
            (Actor::Key, DAY_S, true),
        ] {
            assert_eq!(acts.is_first_sign_in("a", actor, unix_s), is_first);
        }
    }
}
