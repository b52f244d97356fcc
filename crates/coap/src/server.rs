//! The server: what comes in, what goes out, and who waits for what.

mod cut;
mod requests;
mod turns;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use tenure_hal::Instant;
use tenure_wire::{Name, Topic, TopicPattern};

use crate::answer::{Answer, NoAnswer};
use crate::confirmables::{About, Confirmables, Due, MAX_RETRANSMIT};
use crate::entry::Entry;
use crate::exchanges::{Exchanges, State};
use crate::message::{self, Heard, Reply, Type, empty_message};
use crate::observers::{OBSERVERS_MAX, Observers, Refreshed, Subject};
use crate::proofs::Proofs;
use crate::topics::Topics;
use crate::transfers::{Downloads, Uploads};
use crate::wish::Wish;
pub(crate) use turns::CALLS_MAX;
use turns::CALLS_OF_MACHINE_MAX;

/// How long a machine may take until its visitor is told that the answer comes in a message of its own (RFC 7252 §5.2.2):
/// before the visitor sends its request again.
const ACK_AFTER: Duration = Duration::from_secs(1);
/// How long a call may take.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a call counts that nobody ends.
const CALL_GIVEN_UP: Duration = Duration::from_secs(30);
/// How often a message is sent again to an address that has neither proved itself nor acknowledged a notification.
const UNPROVED_RETRANSMIT: u8 = 1;

/// The most messages that wait for an acknowledgement until the last words to an observer needn't be acknowledged.
pub(crate) const CONFIRMABLES_MAX: usize = CALLS_MAX + 2 * OBSERVERS_MAX;

/// The choices of a server's owner.
pub struct Config {
    /// The topics that visitors may hear of.
    pub events: Vec<TopicPattern>,
    /// Randomness: nobody else is to know it.
    pub secret: [u8; 32],
}

/// A call that the server wants made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number by which [`Server::answered`] knows it.
    pub number: u32,
    /// The machine.
    pub machine: Name,
    /// The function.
    pub function: String,
    /// The parameter.
    pub parameter: Option<Vec<u8>>,
}

/// A server of CoAP.
pub struct Server {
    proofs: Proofs,
    entries: Vec<Entry>,
    topics: Topics,
    exchanges: Exchanges,
    confirmables: Confirmables,
    uploads: Uploads,
    downloads: Downloads,
    observers: Observers,
    asking: BTreeMap<u32, Asking>,
    calls: VecDeque<Call>,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The last number of a call, of a message, and of a notification.
    call_number: u32,
    message_number: u16,
    sequence: u32,
    requests: u64,
    refused: u64,
}

/// The state of a server, counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The requests that came, without those that came again.
    pub requests: u64,
    /// Those that were answered by an error.
    pub refused: u64,
    /// The observers that there are.
    pub observers: usize,
}

/// A call that is under way, or waits for its turn.
struct Asking {
    machine: Name,
    /// When it came, or then when it was made.
    begun: Instant,
    /// The call, until its turn comes.
    waiting: Option<Call>,
    whom: Whom,
    /// Whether the machine has published something meanwhile.
    is_stirred: bool,
}

/// Those whom a call is for.
enum Whom {
    Visitor(Visitor),
    Observers(Subject),
}

/// Somebody who waits for an answer.
struct Visitor {
    /// The id of the request's message.
    id: u16,
    is_confirmable: bool,
    is_acknowledged: bool,
    wish: Wish,
}

impl Server {
    /// A server that knows of no machines yet.
    pub fn new(config: Config) -> Self {
        let mut proofs = Proofs::new(config.secret);
        let message_number = proofs.draw();
        Self {
            proofs,
            entries: Vec::new(),
            topics: Topics::new(config.events),
            exchanges: Exchanges::default(),
            confirmables: Confirmables::default(),
            uploads: Uploads::new(),
            downloads: Downloads::new(),
            observers: Observers::default(),
            asking: BTreeMap::new(),
            calls: VecDeque::new(),
            out: VecDeque::new(),
            call_number: 0,
            message_number,
            sequence: 0,
            requests: 0,
            refused: 0,
        }
    }

    /// The state of the server.
    pub fn figures(&self) -> Figures {
        let Self { requests, refused, .. } = *self;
        Figures { requests, refused, observers: self.observers.len() }
    }

    /// Takes in a datagram.
    pub fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        match message::read(datagram) {
            Heard::Request(request) => self.request(now, from, *request),
            Heard::Acknowledged(id) => {
                if let Some(About::Notification(number)) = self.confirmables.end(from, id) {
                    self.observers.knows(number);
                }
            }
            Heard::Reset(id) => {
                // RFC 7641 §3.6: whoever doesn't know the observation any more ends it.
                if let Some(About::Notification(number)) = self.confirmables.end(from, id) {
                    self.observers.remove(number);
                }
            }
            Heard::Rejected(id) => self.send(from, empty_message(Type::Reset, id)),
            Heard::Ignored => {}
        }
        self.poll(now);
    }

    /// Takes in which machines there are.
    pub fn machines(&mut self, now: Instant, entries: Vec<Entry>) {
        self.entries = entries;
        for subject in self.observers.functions() {
            if let Subject::Function { machine, function, .. } = &subject
                && let Err(answer) = self.entry(machine, function)
            {
                self.end(now, &subject, &answer);
            }
        }
        self.poll(now);
    }

    /// Takes in an event of the device.
    pub fn event(&mut self, now: Instant, topic: &Topic, payload: &[u8]) {
        let observers = &self.observers;
        let in_use = |topic: &Topic| observers.is_observed(&Subject::Topic(topic.clone()));
        if self.topics.keep(topic, payload, in_use) {
            self.observers.tell(&Subject::Topic(topic.clone()));
        }
        self.poll(now);
    }

    /// Takes note that a machine has published something.
    pub fn stirred(&mut self, now: Instant, machine: &Name) {
        self.observers.stirred(machine);
        for asking in self.asking.values_mut().filter(|asking| asking.machine == *machine) {
            asking.is_stirred = true;
        }
        self.poll(now);
    }

    /// Takes in the end of a call.
    pub fn answered(
        &mut self,
        now: Instant,
        number: u32,
        outcome: Result<Option<Vec<u8>>, NoAnswer>,
    ) {
        if let Some(asking) = self.asking.remove(&number) {
            match asking.whom {
                Whom::Visitor(visitor) => {
                    self.answer_visitor(now, &visitor, outcome, asking.is_stirred);
                }
                Whom::Observers(subject) => self.refresh(now, &subject, outcome),
            }
        }
        self.poll(now);
    }

    /// The next datagram to send.
    pub fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.out.pop_front()
    }

    /// The next call to make; it takes 20 seconds at most, and ends with [`Self::answered`].
    pub fn call(&mut self) -> Option<Call> {
        self.calls.pop_front()
    }

    /// Does what is due.
    pub fn poll(&mut self, now: Instant) {
        self.exchanges.expire(now);
        self.uploads.expire(now);
        self.downloads.expire(now);
        while let Some(due) = self.confirmables.due(now) {
            match due {
                Due::Again(peer, bytes) => self.send(peer, bytes),
                // RFC 7641 §4.5: an observer that doesn't answer is none.
                Due::GivenUp(About::Notification(number)) => {
                    self.observers.remove(number);
                }
                Due::GivenUp(About::Answer) => {}
            }
        }
        self.tend_calls(now);
        self.begin_waiting(now);
        self.call_for_observers(now);
        loop {
            let confirmables = &self.confirmables;
            let is_free = |peer| !confirmables.is_under_way_to(peer);
            let Some(number) = self.observers.due(now, is_free) else { break };
            self.notify(now, number);
        }
    }

    /// When [`Self::poll`] has something to do, if nothing comes before.
    pub fn poll_at(&self) -> Option<Instant> {
        let is_free = |peer| !self.confirmables.is_under_way_to(peer);
        let calls = self.asking.values().map(|asking| asking.begun + asking.patience());
        let others = [
            self.exchanges.expire_at(),
            self.uploads.expire_at(),
            self.downloads.expire_at(),
            self.confirmables.due_at(),
            self.observers.due_at(is_free),
        ];
        calls.chain(others.into_iter().flatten()).min()
    }

    /// Tells those who wait long that their answers come separately, and gives up the calls that nobody ends.
    fn tend_calls(&mut self, now: Instant) {
        let mut given_up = Vec::new();
        for (number, asking) in &mut self.asking {
            if asking.begun + CALL_GIVEN_UP <= now {
                given_up.push(*number);
                continue;
            }
            let is_late = asking.begun + ACK_AFTER <= now;
            let Whom::Visitor(visitor) = &mut asking.whom else { continue };
            if is_late && visitor.is_confirmable && !visitor.is_acknowledged {
                visitor.is_acknowledged = true;
                let peer = visitor.wish.key.peer;
                self.exchanges.note(&(peer, visitor.id), State::Acknowledged);
                self.out.push_back((peer, empty_message(Type::Acknowledgement, visitor.id)));
            }
        }
        for number in given_up {
            let deadline = NoAnswer::Failed(tenure_wire::NoResult::Deadline);
            let Some(asking) = self.asking.remove(&number) else { continue };
            match asking.whom {
                Whom::Visitor(visitor) => self.answer_visitor(now, &visitor, Err(deadline), false),
                Whom::Observers(subject) => self.refresh(now, &subject, Err(deadline)),
            }
        }
    }

    /// Calls the functions that are observed and may have other results.
    fn call_for_observers(&mut self, now: Instant) {
        while let Some(subject) = self.observers.call(now) {
            let Subject::Function { machine, function, query } = &subject else { continue };
            if self.calls_of(machine) >= CALLS_OF_MACHINE_MAX {
                let busy = NoAnswer::Failed(tenure_wire::NoResult::Busy);
                self.refresh(now, &subject, Err(busy));
                continue;
            }
            let parameter = query.as_ref().map(|query| query.clone().into_bytes());
            let (machine, function) = (machine.clone(), function.clone());
            self.begin_call(now, (machine, function, parameter), Whom::Observers(subject));
        }
    }

    fn begin_call(
        &mut self,
        now: Instant,
        (machine, function, parameter): (Name, String, Option<Vec<u8>>),
        whom: Whom,
    ) {
        self.call_number = self.call_number.wrapping_add(1);
        let number = self.call_number;
        let mut asking =
            Asking { machine: machine.clone(), begun: now, waiting: None, whom, is_stirred: false };
        let call = Call { number, machine, function, parameter };
        match asking.whom {
            // Its turn comes by `begin_waiting`.
            Whom::Visitor(_) => asking.waiting = Some(call),
            Whom::Observers(_) => self.calls.push_back(call),
        }
        self.asking.insert(number, asking);
    }

    /// The machine that has a function which visitors may call.
    ///
    /// # Errors
    /// The answer to a visitor who may not.
    fn entry(&self, machine: &Name, function: &str) -> Result<&Entry, Answer> {
        let entry = self.entries.iter().find(|entry| entry.name == *machine);
        let entry = entry.ok_or_else(Answer::no_machine)?;
        if !entry.is_open {
            return Err(Answer::denied());
        }
        let has_it = entry.functions.iter().any(|one| one == function);
        has_it.then_some(entry).ok_or_else(Answer::no_function)
    }

    /// Takes in the new result of a function that is observed.
    fn refresh(
        &mut self,
        now: Instant,
        subject: &Subject,
        outcome: Result<Option<Vec<u8>>, NoAnswer>,
    ) {
        match self.observers.called(now, subject, outcome) {
            Refreshed::Same => {}
            Refreshed::Changed => self.observers.tell(subject),
            Refreshed::Over(answer) => self.end(now, subject, &answer),
        }
    }

    /// Tells an observer the state of what it observes.
    fn notify(&mut self, now: Instant, number: u64) {
        let Some(observer) = self.observers.get(number) else { return };
        let result = match &observer.subject {
            Subject::Topic(topic) => Some(self.topics.last(topic).unwrap_or_default()),
            subject => self.observers.result(subject),
        };
        let (wish, has_answered) = (observer.wish.clone(), observer.has_answered);
        let answer = wish.representation(result, true);
        if !answer.is_success() {
            return self.dismiss(now, number, &answer);
        }
        self.observers.telling(now, number);
        let observe = Some(self.next_in_sequence());
        let reply = self.cut(now, &wish, answer, observe);
        self.confirm(now, &wish, &reply, About::Notification(number), has_answered);
    }

    /// Ends an observation for all its observers, who get `answer` (RFC 7641 §4.2).
    fn end(&mut self, now: Instant, subject: &Subject, answer: &Answer) {
        for number in self.observers.of(subject) {
            self.dismiss(now, number, answer);
        }
    }

    fn dismiss(&mut self, now: Instant, number: u64, answer: &Answer) {
        let Some(observer) = self.observers.remove(number) else { return };
        self.confirmables.forget(number);
        let reply = self.cut(now, &observer.wish, answer.clone(), None);
        if self.confirmables.len() >= CONFIRMABLES_MAX {
            let peer = observer.wish.key.peer;
            let id = self.next_id(peer);
            let bytes = reply.message(Type::NonConfirmable, id, &observer.wish.token);
            return self.send(peer, bytes);
        }
        let about = About::Notification(number);
        self.confirm(now, &observer.wish, &reply, about, observer.has_answered);
    }

    /// Sends a message of the server's own that is to be acknowledged, by a peer that `has_answered` such a one or not.
    fn confirm(
        &mut self,
        now: Instant,
        wish: &Wish,
        reply: &Reply,
        about: About,
        has_answered: bool,
    ) {
        let peer = wish.key.peer;
        let is_known = has_answered || self.proofs.room(now, peer, wish.request_bytes).is_proved;
        let again = if is_known { MAX_RETRANSMIT } else { UNPROVED_RETRANSMIT };
        let id = self.next_id(peer);
        let bytes = reply.message(Type::Confirmable, id, &wish.token);
        let chance = self.proofs.draw();
        self.confirmables.sent(now, (peer, id), bytes.clone(), about, (again, chance));
        self.send(peer, bytes);
    }

    fn send(&mut self, peer: SocketAddr, bytes: Vec<u8>) {
        self.out.push_back((peer, bytes));
    }

    fn next_id(&mut self, peer: SocketAddr) -> u16 {
        self.message_number = self.message_number.wrapping_add(1);
        self.message_number.wrapping_add(self.proofs.id_offset(peer))
    }

    /// A number of 24 bits that is later than those before (RFC 7641 §4.4).
    fn next_in_sequence(&mut self) -> u32 {
        self.sequence = (self.sequence + 1) & 0xFF_FFFF;
        self.sequence
    }
}

impl Asking {
    /// How long after its beginning something is to be done about it.
    fn patience(&self) -> Duration {
        match &self.whom {
            Whom::Visitor(visitor) if visitor.is_confirmable && !visitor.is_acknowledged => {
                ACK_AFTER
            }
            _ => CALL_GIVEN_UP,
        }
    }
}

#[cfg(test)]
mod tests;
