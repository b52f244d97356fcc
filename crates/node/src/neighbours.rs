//! Addresses on this network at which devices are said to listen, and look-ups that wait for an answer from there.
//!
//! Anybody on the network can announce an address, so one is a hint and nothing else.
//!
//! Invariants:
//! - There are at most [`NEIGHBOURS_MAX`] addresses. A device of this owner's keeps its place before all that
//!   proved nothing.
//! - At most [`QUESTIONS_MAX`] of them are asked at a time, and each at most once in [`ASK_AGAIN`].

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_rpc::IdentifyHandle;
use tenure_wire::directory::Query;
use tenure_wire::{Address, PublicKey};

/// The most addresses that are remembered.
pub(crate) const NEIGHBOURS_MAX: usize = 32;
/// The most addresses that are asked at a time.
const QUESTIONS_MAX: usize = 4;
/// The shortest time between two questions to one address.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The shortest time between two questions to one address that nothing but announcements asks for.
const ASK_ANNOUNCED_AGAIN: Duration = Duration::from_secs(60);
/// How long a look-up waits for the neighbours' answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often in a row an address may be silent before it is forgotten, unless a device of this owner's
/// was there.
const SILENCES_MAX: u8 = 3;

/// The state of the question to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// None is under way.
    None,
    /// The address is asked for its key.
    Key(IdentifyHandle),
    /// The holder of this key is asked for its device's record.
    Record(PublicKey),
}

#[derive(Debug)]
struct Neighbour {
    address: Address,
    heard_at: Instant,
    asked_at: Option<Instant>,
    /// When to ask next.
    ask_at: Option<Instant>,
    question: Question,
    /// Whether a device of this owner's proved to be there.
    is_own: bool,
    silences: u8,
}

/// The addresses that were announced, and who waits for answers from there.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    heard: Vec<Neighbour>,
    /// Queries of look-ups, and until when those wait.
    pub(crate) wanted: Vec<(Query, Instant)>,
}

impl Neighbours {
    /// Takes note that a device is said to listen at `address`.
    pub(crate) fn hear(&mut self, now: Instant, address: Address) {
        if let Some(known) = self.heard.iter_mut().find(|known| known.address == address) {
            known.heard_at = now;
            known.ask_no_sooner_than(now, ASK_ANNOUNCED_AGAIN);
            return;
        }
        if self.heard.len() >= NEIGHBOURS_MAX {
            let strangers = self.heard.iter().enumerate().filter(|(_, known)| !known.is_own);
            let oldest = strangers.min_by_key(|(_, known)| known.heard_at);
            // The owner's own devices fill the table.
            let Some((oldest, _)) = oldest else { return };
            self.heard.swap_remove(oldest);
        }
        self.heard.push(Neighbour {
            address,
            heard_at: now,
            asked_at: None,
            ask_at: Some(now),
            question: Question::None,
            is_own: false,
            silences: 0,
        });
    }

    /// Whether there is anybody to ask.
    pub(crate) fn is_empty(&self) -> bool {
        self.heard.is_empty()
    }

    /// Has a look-up wait for `query`, and asks the neighbour at `last_seen` for it, or all if none is there.
    pub(crate) fn want(&mut self, now: Instant, query: &Query, last_seen: Option<&Address>) {
        self.wanted.retain(|(wanted, _)| wanted != query);
        self.wanted.push((query.clone(), now + PATIENCE));
        let is_there = |known: &Neighbour| Some(&known.address) == last_seen;
        let one = self.heard.iter().any(is_there);
        for known in self.heard.iter_mut().filter(|known| !one || is_there(known)) {
            known.ask_no_sooner_than(now, ASK_AGAIN);
        }
    }

    /// The next address to ask now for its key.
    pub(crate) fn due(&self, now: Instant) -> Option<&Address> {
        let open = self.heard.iter().filter(|known| known.question != Question::None).count();
        let due = self.heard.iter().filter(|known| known.is_due(now));
        // Those come first that are worth it.
        let first = due.min_by_key(|known| (!known.is_own, known.ask_at));
        first.filter(|_| open < QUESTIONS_MAX).map(|known| &known.address)
    }

    /// Takes note that `address` is asked for its key; without a handle the question couldn't be sent now.
    pub(crate) fn asked(
        &mut self,
        now: Instant,
        address: &Address,
        handle: Option<IdentifyHandle>,
    ) {
        let Some(known) = self.at(address) else { return };
        known.asked_at = Some(now);
        match handle {
            Some(handle) => (known.question, known.ask_at) = (Question::Key(handle), None),
            None => known.ask_at = Some(now + ASK_AGAIN),
        }
    }

    /// The address that the question `handle` was put to.
    pub(crate) fn asked_by(&self, handle: IdentifyHandle) -> Option<Address> {
        let asked = self.heard.iter().find(|known| known.question == Question::Key(handle));
        asked.map(|known| known.address.clone())
    }

    /// Takes note that the holder of `key`, at `address`, is asked for its record.
    pub(crate) fn shown(&mut self, address: &Address, key: PublicKey) {
        if let Some(known) = self.at(address) {
            (known.question, known.silences) = (Question::Record(key), 0);
        }
    }

    /// Takes note that the question to `address` is over, and whether a device of this owner's proved to be
    /// there.
    pub(crate) fn answered(&mut self, address: &Address, is_own: bool) {
        if let Some(known) = self.at(address) {
            (known.question, known.is_own) = (Question::None, is_own);
        }
    }

    /// Takes note that nobody answered at `address`.
    pub(crate) fn silent(&mut self, address: &Address) {
        let Some(known) = self.at(address) else { return };
        known.question = Question::None;
        known.silences = known.silences.saturating_add(1);
        if known.silences >= SILENCES_MAX && !known.is_own {
            self.forget(address);
        }
    }

    /// Forgets an address.
    pub(crate) fn forget(&mut self, address: &Address) {
        self.heard.retain(|known| known.address != *address);
    }

    /// The queries of look-ups that wait in vain: their time is over, or all neighbours were asked.
    pub(crate) fn given_up(&self, now: Instant) -> Vec<Query> {
        let busy = |known: &Neighbour| known.ask_at.is_some() || known.question != Question::None;
        let is_over = !self.heard.iter().any(busy);
        let over = self.wanted.iter().filter(|(_, until)| is_over || *until <= now);
        over.map(|(query, _)| query.clone()).collect()
    }

    /// When there is something to do without an answer.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        let open = self.heard.iter().filter(|known| known.question != Question::None).count();
        let idle = self.heard.iter().filter(|known| known.question == Question::None);
        // With all questions taken, the end of one is what is next.
        let questions = idle.filter(|_| open < QUESTIONS_MAX).filter_map(|known| known.ask_at);
        questions.chain(self.wanted.iter().map(|(_, until)| *until)).min()
    }

    fn at(&mut self, address: &Address) -> Option<&mut Neighbour> {
        self.heard.iter_mut().find(|known| known.address == *address)
    }
}

impl Neighbour {
    /// Plans a question for `now`, or for `span` after the last one if that is later.
    fn ask_no_sooner_than(&mut self, now: Instant, span: Duration) {
        let at = self.asked_at.map_or(now, |asked| (asked + span).max(now));
        self.ask_at = Some(self.ask_at.map_or(at, |planned| planned.min(at)));
    }

    fn is_due(&self, now: Instant) -> bool {
        self.question == Question::None && self.ask_at.is_some_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use tenure_hal::simulated::socket_at;

    use super::*;

    fn address(place: u32) -> Address {
        Address::Udp(socket_at(place))
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    #[test]
    fn liar_who_announces_thousands_of_addresses_takes_no_place_of_the_owners_devices() {
        let mut neighbours = Neighbours::default();
        neighbours.hear(at(0), address(1));
        neighbours.answered(&address(1), true);
        for liar in 2..5000 {
            neighbours.hear(at(1), address(liar));
        }
        assert_eq!(neighbours.heard.len(), NEIGHBOURS_MAX);
        assert!(neighbours.at(&address(1)).is_some());
        assert_eq!(neighbours.due(at(1)), Some(&address(1)), "it is asked first");
    }

    #[test]
    fn address_that_is_announced_again_and_again_is_asked_once_a_minute() {
        let mut neighbours = Neighbours::default();
        let address = address(1);
        let mut asked = 0;
        for second in 0..600 {
            neighbours.hear(at(second), address.clone());
            while let Some(due) = neighbours.due(at(second)).cloned() {
                neighbours.asked(at(second), &due, None);
                neighbours.at(&due).unwrap().ask_at = None;
                asked += 1;
            }
        }
        assert_eq!(asked, 10);
    }

    #[test]
    fn address_that_is_silent_is_forgotten_unless_a_device_of_the_owners_was_there() {
        let mut neighbours = Neighbours::default();
        let [own, other] = [1, 2].map(address);
        neighbours.hear(at(0), own.clone());
        neighbours.hear(at(0), other.clone());
        neighbours.answered(&own, true);
        for _ in 0..SILENCES_MAX {
            neighbours.silent(&own);
            neighbours.silent(&other);
        }
        assert!(neighbours.at(&own).is_some() && neighbours.at(&other).is_none());
    }
}
