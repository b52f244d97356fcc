//! Observers, who are told of changes (RFC 7641), and the functions that are called again to know of them.

use std::net::SocketAddr;
use std::time::Duration;

use tenure_hal::Instant;
use tenure_wire::{Name, Topic};

use crate::answer::{AGAIN, Answer, NoAnswer};
use crate::hosts::host_of;
use crate::topics::TOPICS_MAX;
use crate::wish::{HEARTBEAT, Wish};

/// The most observers.
pub(crate) const OBSERVERS_MAX: usize = 64;
/// The most of one host.
pub(crate) const OBSERVERS_OF_HOST_MAX: usize = 8;
/// The most functions and topics that are observed.
pub(crate) const SUBJECTS_MAX: usize = 32;
/// How soon a function is called again at the earliest, however many events its machine publishes.
const CALLED_AGAIN: Duration = Duration::from_secs(1);
/// How often in a row a function that is observed may fail, until its machine's next event.
const FAILURES_MAX: u8 = 5;

const _: () = assert!(SUBJECTS_MAX < TOPICS_MAX, "topics that are observed leave room for others");

/// Something that is observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The result of a function with the query as its parameter.
    Function { machine: Name, function: String, query: Option<String> },
    /// The last event of a topic.
    Topic(Topic),
}

/// An observer.
pub(crate) struct Observer {
    /// Its number among all that there were.
    pub(crate) number: u64,
    pub(crate) subject: Subject,
    /// The request by which it began.
    pub(crate) wish: Wish,
    /// When it was told last.
    told: Instant,
    /// Whether there is something to tell.
    is_due: bool,
    /// Whether a notification waits for its acknowledgement.
    is_under_way: bool,
    /// Whether it has acknowledged one.
    pub(crate) has_answered: bool,
}

impl Observer {
    fn peer(&self) -> SocketAddr {
        self.wish.key.peer
    }
}

/// A function that is observed.
struct Watched {
    subject: Subject,
    /// Its last result.
    result: Option<Vec<u8>>,
    /// Whether its machine has published something since it was called.
    is_stirred: bool,
    /// Whether it is being called.
    is_called: bool,
    /// When it may be called.
    at: Instant,
    failures: u8,
}

/// The outcome of another call of a function that is observed.
pub(crate) enum Refreshed {
    /// Nobody has to be told.
    Same,
    /// Its observers are told.
    Changed,
    /// It is over; its observers get this answer.
    Over(Answer),
}

/// All observers, and the functions that they observe.
#[derive(Default)]
pub(crate) struct Observers {
    list: Vec<Observer>,
    watched: Vec<Watched>,
    numbers: u64,
}

impl Observers {
    /// How many observers there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Adds an observer, which gets the state of `subject` as the answer to its request; `false` if there is no room. One
    /// before of the same token is replaced (RFC 7641 §4.1). Where there are too many, the oldest that has acknowledged
    /// nothing yet makes room: its address may be forged.
    pub(crate) fn register(&mut self, now: Instant, wish: &Wish, subject: Subject) -> bool {
        self.remove_by_token(wish.key.peer, &wish.token);
        let host = host_of(wish.key.peer.ip());
        let is_of_host = |one: &Observer| host_of(one.peer().ip()) == host;
        let of_host = self.list.iter().filter(|one| is_of_host(one)).count();
        if of_host >= OBSERVERS_OF_HOST_MAX && !self.make_room(is_of_host)
            || self.list.len() >= OBSERVERS_MAX && !self.make_room(|_| true)
            || self.subjects_with(&subject) > SUBJECTS_MAX && !self.make_room_for_a_subject()
        {
            return false;
        }
        self.numbers += 1;
        self.list.push(Observer {
            number: self.numbers,
            subject,
            wish: wish.clone(),
            told: now,
            is_due: false,
            is_under_way: false,
            has_answered: false,
        });
        true
    }

    /// Notes the result that an observer of a function has got, if nobody observes it yet; `is_stirred` if the machine has
    /// published something meanwhile. Others are told if it differs.
    pub(crate) fn watch(
        &mut self,
        now: Instant,
        subject: &Subject,
        result: Option<Vec<u8>>,
        is_stirred: bool,
    ) {
        let Some(watched) = self.watched.iter_mut().find(|one| one.subject == *subject) else {
            return self.watched.push(Watched {
                subject: subject.clone(),
                result,
                is_stirred,
                is_called: false,
                at: now + CALLED_AGAIN,
                failures: 0,
            });
        };
        watched.is_stirred |= is_stirred;
        if watched.result != result {
            watched.result = result;
            self.tell(subject);
        }
    }

    /// Ends what an observer has asked for under a token.
    pub(crate) fn remove_by_token(&mut self, peer: SocketAddr, token: &[u8]) {
        self.retain(|one| one.peer() != peer || one.wish.token != token);
    }

    /// Ends an observer.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Observer> {
        let at = self.list.iter().position(|one| one.number == number)?;
        let observer = self.list.remove(at);
        self.forget_unobserved();
        Some(observer)
    }

    /// Ends the oldest observer that has acknowledged nothing, of those that are meant; `false` if there is none.
    fn make_room(&mut self, is_meant: impl Fn(&Observer) -> bool) -> bool {
        let oldest = self.list.iter().find(|one| !one.has_answered && is_meant(one));
        let number = oldest.map(|one| one.number);
        number.and_then(|number| self.remove(number)).is_some()
    }

    /// Ends all observers of a subject of which none has acknowledged anything; `false` if there is none.
    fn make_room_for_a_subject(&mut self) -> bool {
        let is_spare = |subject: &&Subject| {
            let mut observers = self.list.iter().filter(|one| one.subject == **subject);
            !observers.any(|one| one.has_answered)
        };
        let spare = self.list.iter().map(|one| &one.subject).find(is_spare).cloned();
        if let Some(spare) = &spare {
            self.retain(|one| one.subject != *spare);
        }
        spare.is_some()
    }

    fn retain(&mut self, stays: impl Fn(&Observer) -> bool) {
        self.list.retain(stays);
        self.forget_unobserved();
    }

    fn forget_unobserved(&mut self) {
        let Self { list, watched, .. } = self;
        watched.retain(|one| list.iter().any(|observer| observer.subject == one.subject));
    }

    /// The numbers of those who observe something.
    pub(crate) fn of(&self, subject: &Subject) -> Vec<u64> {
        let of = self.list.iter().filter(|one| one.subject == *subject);
        of.map(|one| one.number).collect()
    }

    /// The observer of that number.
    pub(crate) fn get(&self, number: u64) -> Option<&Observer> {
        self.list.iter().find(|one| one.number == number)
    }

    /// Whether anybody observes something.
    pub(crate) fn is_observed(&self, subject: &Subject) -> bool {
        self.list.iter().any(|one| one.subject == *subject)
    }

    /// How many subjects are observed, if this one is among them.
    fn subjects_with(&self, subject: &Subject) -> usize {
        let mut subjects = vec![subject];
        for one in &self.list {
            if !subjects.contains(&&one.subject) {
                subjects.push(&one.subject);
            }
        }
        subjects.len()
    }

    /// The functions that are observed.
    pub(crate) fn functions(&self) -> Vec<Subject> {
        self.watched.iter().map(|one| one.subject.clone()).collect()
    }

    /// The last result of a function that is observed.
    pub(crate) fn result(&self, subject: &Subject) -> Option<&[u8]> {
        let watched = self.watched.iter().find(|one| one.subject == *subject)?;
        watched.result.as_deref()
    }

    /// Lets all who observe something be told.
    pub(crate) fn tell(&mut self, subject: &Subject) {
        for one in self.list.iter_mut().filter(|one| one.subject == *subject) {
            one.is_due = true;
        }
    }

    /// A machine has published something: its functions may have other results.
    pub(crate) fn stirred(&mut self, name: &Name) {
        for one in &mut self.watched {
            if matches!(&one.subject, Subject::Function { machine, .. } if machine == name) {
                one.is_stirred = true;
                one.failures = 0;
            }
        }
    }

    /// The next function that is to be called again, which counts as called then.
    pub(crate) fn call(&mut self, now: Instant) -> Option<Subject> {
        let due = |one: &&mut Watched| one.is_stirred && !one.is_called && one.at <= now;
        let one = self.watched.iter_mut().find(due)?;
        (one.is_stirred, one.is_called) = (false, true);
        Some(one.subject.clone())
    }

    /// Takes in what a function said that was called again.
    pub(crate) fn called(
        &mut self,
        now: Instant,
        subject: &Subject,
        outcome: Result<Option<Vec<u8>>, NoAnswer>,
    ) -> Refreshed {
        let Some(one) = self.watched.iter_mut().find(|one| one.subject == *subject) else {
            return Refreshed::Same;
        };
        (one.is_called, one.at) = (false, now + CALLED_AGAIN);
        let answer = match outcome {
            Ok(result) => {
                one.failures = 0;
                let is_same = one.result == result;
                one.result = result;
                return if is_same { Refreshed::Same } else { Refreshed::Changed };
            }
            Err(reason) => Answer::from(reason),
        };
        if !answer.is_passing() {
            return Refreshed::Over(answer);
        }
        if one.failures < FAILURES_MAX {
            one.failures += 1;
            (one.is_stirred, one.at) = (true, now + AGAIN);
        }
        Refreshed::Same
    }

    /// The next observer that is to be told, of those to whom nothing is under way.
    pub(crate) fn due(
        &mut self,
        now: Instant,
        is_free: impl Fn(SocketAddr) -> bool,
    ) -> Option<u64> {
        let due = |one: &Observer| one.is_due || one.told + HEARTBEAT <= now;
        let one = self.list.iter().find(|one| due(one) && !one.is_under_way && is_free(one.peer()));
        one.map(|one| one.number)
    }

    /// Notes that an observer is being told.
    pub(crate) fn telling(&mut self, now: Instant, number: u64) {
        if let Some(one) = self.list.iter_mut().find(|one| one.number == number) {
            (one.is_due, one.is_under_way, one.told) = (false, true, now);
        }
    }

    /// Notes that an observer knows what it was told.
    pub(crate) fn knows(&mut self, number: u64) {
        if let Some(one) = self.list.iter_mut().find(|one| one.number == number) {
            (one.is_under_way, one.has_answered) = (false, true);
        }
    }

    /// When an observer is to be told again, or a function to be called.
    pub(crate) fn due_at(&self, is_free: impl Fn(SocketAddr) -> bool) -> Option<Instant> {
        let idle = self.list.iter().filter(|one| !one.is_under_way && is_free(one.peer()));
        let told = idle.map(|one| if one.is_due { one.told } else { one.told + HEARTBEAT });
        let stirred = self.watched.iter().filter(|one| one.is_stirred && !one.is_called);
        told.chain(stirred.map(|one| one.at)).min()
    }
}
