//! A client's session with a broker (§4.1): over as many connections as it takes.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;

use crate::fault::Fault;
use crate::packet::{self, Ack, Broker, Incoming};
use crate::queue::{Outgoing, Queue, QueueLimits, Queued, Stage};
use crate::reason::Reason;
use crate::topic::{has_wildcards, is_shared};
use crate::wire::frame;
use crate::{Message, Qos};

/// How long a broker may take to answer a CONNECT or a PINGREQ.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// With so many bytes to send nothing further is taken from the queue or, by [`Session::wants_input`], from the broker.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// The choices about a session. What proves who this is isn't to be printed: there is no `Debug`.
#[derive(Clone)]
pub struct Config {
    /// The name by which the broker knows the session.
    pub client_id: String,
    /// The user, for brokers that ask.
    pub user: Option<String>,
    /// The password of that user.
    pub password: Option<Vec<u8>>,
    /// The last will, which the broker publishes when the connection breaks off.
    pub will: Option<Message>,
    /// The longest silence of this client, in seconds; 0 for none.
    pub keep_alive_s: u16,
    /// How long the broker keeps the session without a connection, in seconds.
    pub session_expiry_s: u32,
    /// The longest packet that is taken, in bytes.
    pub packet_bytes_max: u32,
    /// The most messages of QoS 1 and 2 under way, for each direction.
    pub under_way_max: u16,
    /// The subscriptions that are wanted.
    pub subscriptions: Vec<Subscription>,
    /// The limits of the queue of messages for the broker.
    pub queue: QueueLimits,
}

/// A subscription (§3.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The topic filter; a shared subscription's begins with `$share/`.
    pub filter: String,
    /// The best promise by which messages come.
    pub qos: Qos,
}

/// The part of a session that outlasts a restart: the sum of its [`Change`]s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Whether the broker was told to keep a session.
    pub has_session: bool,
    /// The messages for the broker, by number.
    pub outgoing: Vec<Outgoing>,
    /// The identifiers of messages of QoS 2 that came and that the broker has yet to release.
    pub received: Vec<u16>,
    /// The filters that the broker was asked for.
    pub filters: Vec<String>,
}

/// Something that a restart must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The broker keeps a session from now on, and nothing of one before.
    SessionBegan,
    /// A message for the broker came.
    Queued(Outgoing),
    /// A message for the broker has come so far.
    Moved(u64, Stage),
    /// A message for the broker is done with.
    Done(u64),
    /// A message of QoS 2 came under this identifier.
    Received(u16),
    /// The broker released this identifier.
    Released(u16),
    /// The broker is asked for this filter.
    Subscribed(String),
    /// The broker has dropped the subscription to this filter.
    Unsubscribed(String),
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The broker accepted the connection.
    Connected {
        /// Whether it has kept the session.
        resumed: bool,
    },
    /// A message came.
    Message(Message),
    /// The broker doesn't take a message for this topic.
    Rejected {
        /// Its topic.
        topic: String,
        /// Why.
        reason: Reason,
    },
    /// The broker doesn't take a subscription.
    NotSubscribed {
        /// To this filter.
        filter: String,
        /// Why.
        reason: Reason,
    },
}

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Closed,
    /// The broker has yet to accept it.
    Connecting {
        since: Instant,
    },
    Connected(Broker),
}

/// A question about a filter that the broker has yet to answer.
#[derive(Debug)]
struct Asked {
    id: u16,
    filter: String,
    /// Whether it is no longer wanted.
    is_farewell: bool,
}

/// A session.
pub struct Session {
    config: Config,
    phase: Phase,
    has_session: bool,
    queue: Queue,
    /// How many messages for the broker were dropped.
    dropped: u64,
    received: Vec<u16>,
    /// The filters that the broker was asked for and that aren't wanted any more.
    stale_filters: Vec<String>,
    asked: Vec<Asked>,
    last_id: u16,
    input: Vec<u8>,
    output: Vec<u8>,
    last_sent: Instant,
    pinged: Option<Instant>,
    events: VecDeque<Event>,
    changes: VecDeque<Change>,
}

impl Session {
    /// A session that goes on where `kept` was.
    pub fn new(config: Config, kept: Kept) -> Self {
        let is_stale = |filter: &String| config.subscriptions.iter().all(|it| it.filter != *filter);
        Self {
            phase: Phase::Closed,
            has_session: kept.has_session,
            queue: Queue::new(config.queue, kept.outgoing),
            dropped: 0,
            received: kept.received,
            stale_filters: kept.filters.into_iter().filter(is_stale).collect(),
            asked: Vec::new(),
            last_id: 0,
            input: Vec::new(),
            output: Vec::new(),
            last_sent: Instant::BOOT,
            pinged: None,
            events: VecDeque::new(),
            changes: VecDeque::new(),
            config,
        }
    }

    /// Queues a message for the broker, whose topic is one ([`check_topic`](crate::check_topic)). Where the queue has no room,
    /// waiting messages go: the oldest of QoS 0, else the oldest; and a new one of QoS 0 takes no other's place.
    pub fn publish(&mut self, message: Message) {
        self.publish_for(0, message);
    }

    /// The same for one of several publishers. Those go of whoever has most of the queue, so that no other one's make room for his.
    pub fn publish_for(&mut self, publisher: u64, message: Message) {
        let Self { queue, changes, dropped, .. } = self;
        let number = queue.push(message.clone(), publisher, |number| {
            *dropped += 1;
            done(changes, number);
        });
        match number {
            Some(number) => {
                let stage = Stage::Waiting;
                changes.push_back(Change::Queued(Outgoing { number, message, stage, publisher }));
            }
            None => *dropped += 1,
        }
    }

    /// How many messages wait for the broker or for its answer.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The bytes of these, as they count against the queue's limit.
    pub const fn queued_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// How many messages for the broker were dropped for want of room.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Begins a connection, over which nothing was sent yet (§3.1).
    pub fn connect(&mut self, now: Instant) {
        self.lost();
        self.phase = Phase::Connecting { since: now };
        // §3.2.2.1.1: without a session here there may be none there.
        let connect = packet::connect(&self.config, !self.has_session);
        self.send(now, &connect);
    }

    /// Takes what the broker sent.
    ///
    /// # Errors
    /// [`Fault`]: the connection is over, once [`Self::output`] is sent.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Fault> {
        let mut input = core::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut start = 0;
        let taken = loop {
            let Some(rest) = input.get(start..) else { break Ok(()) };
            let frame = match frame(rest, self.config.packet_bytes_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            };
            let body = rest.get(frame.start..frame.end).unwrap_or_default();
            let packet = Incoming::read(frame.first, body);
            if let Err(fault) = packet.and_then(|packet| self.take(now, packet)) {
                break Err(fault);
            }
            start += frame.end;
        };
        input.drain(..start);
        self.input = input;
        taken.map_err(|fault| self.fail(now, fault))
    }

    /// Does what is due: sends messages that wait, and looks whether the broker is there.
    ///
    /// # Errors
    /// [`Fault`]: the connection is over, once [`Self::output`] is sent.
    pub fn poll(&mut self, now: Instant) -> Result<(), Fault> {
        let is_late = self.answer_due().is_some_and(|at| at <= now);
        if is_late {
            return Err(self.fail(now, Fault::Silent));
        }
        if let Phase::Connected(broker) = self.phase {
            self.send_queued(now, &broker);
            if self.ping_due().is_some_and(|at| at <= now) {
                self.pinged = Some(now);
                self.send(now, &packet::ping());
            }
        }
        Ok(())
    }

    /// When [`Self::poll`] has something to do, if nothing happens before.
    pub fn wakes_at(&self) -> Option<Instant> {
        [self.answer_due(), self.ping_due()].into_iter().flatten().min()
    }

    /// Whether the broker is to be listened to: what came from it was taken, and there is room for answers.
    pub fn wants_input(&self) -> bool {
        self.events.is_empty() && self.output.len() < OUTPUT_BYTES_MAX
    }

    /// The bytes that are to be sent, once all [`Change`]s are written down.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Takes note that the first `length` bytes of the output were sent.
    pub fn sent(&mut self, length: usize) {
        self.output.drain(..length.min(self.output.len()));
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next change that a restart must know.
    pub fn change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Ends the connection (§3.14).
    pub fn disconnect(&mut self, now: Instant, reason: Reason) {
        if matches!(self.phase, Phase::Connected(_)) {
            self.send(now, &packet::disconnect(reason));
        }
        self.phase = Phase::Closed;
    }

    /// Takes note that the connection is gone.
    pub fn lost(&mut self) {
        self.phase = Phase::Closed;
        self.input = Vec::new();
        self.output = Vec::new();
        self.asked.clear();
        self.pinged = None;
    }

    fn fail(&mut self, now: Instant, fault: Fault) -> Fault {
        if let Some(reason) = fault.told_as() {
            self.disconnect(now, reason);
        }
        self.phase = Phase::Closed;
        // A broker that forgot the session, and whose word on that was lost, has other messages under way than this client
        // knows of, for good: the next connection begins a session anew.
        self.has_session &= fault != Fault::TooMany;
        fault
    }

    fn send(&mut self, now: Instant, packet: &[u8]) {
        self.last_sent = now;
        self.output.extend_from_slice(packet);
    }

    fn answer_due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Closed => None,
            Phase::Connecting { since } => Some(since + ANSWER_PATIENCE),
            Phase::Connected(_) => self.pinged.map(|at| at + ANSWER_PATIENCE),
        }
    }

    /// When the broker is to hear from this client (§3.1.2.10).
    fn ping_due(&self) -> Option<Instant> {
        let Phase::Connected(broker) = self.phase else { return None };
        let seconds = broker.keep_alive_s.unwrap_or(self.config.keep_alive_s);
        let is_due = seconds > 0 && self.pinged.is_none();
        is_due.then(|| self.last_sent + Duration::from_secs(seconds.into()))
    }

    fn take(&mut self, now: Instant, packet: Incoming) -> Result<(), Fault> {
        match (self.phase, packet) {
            (Phase::Connecting { .. }, Incoming::Connected { resumed, broker }) => {
                self.connected(now, resumed, broker)
            }
            (Phase::Connecting { .. }, Incoming::Refused { reason, words }) => {
                Err(Fault::Refused(reason, words))
            }
            (Phase::Connected(broker), packet) => self.take_connected(now, &broker, packet),
            // §3.2: CONNACK comes first, and once.
            _ => Err(Fault::Protocol("the first packet is no CONNACK")),
        }
    }

    /// §3.2.2.1.1.
    fn connected(&mut self, now: Instant, resumed: bool, broker: Broker) -> Result<(), Fault> {
        if resumed && !self.has_session {
            return Err(Fault::Protocol("it has a session that this client knows nothing of"));
        }
        if !resumed {
            self.forget_broker();
        }
        self.phase = Phase::Connected(broker);
        self.queue.iter_mut().for_each(|queued| queued.is_due = true);
        self.events.push_back(Event::Connected { resumed });
        for filter in core::mem::take(&mut self.stale_filters) {
            let id = self.free_id();
            self.send(now, &packet::unsubscribe(id, &filter));
            self.asked.push(Asked { id, filter, is_farewell: true });
        }
        for subscription in self.config.subscriptions.clone() {
            self.subscribe(now, &broker, subscription);
        }
        Ok(())
    }

    /// A new session begins: what the former broker knew counts no more. A message that may have arrived is sent anew.
    fn forget_broker(&mut self) {
        let released = |queue: &Queue| {
            queue.iter().position(|one| matches!(one.outgoing.stage, Stage::Released(_)))
        };
        // The broker has these.
        while let Some(at) = released(&self.queue) {
            done(&mut self.changes, self.queue.remove(at));
        }
        for queued in self.queue.iter_mut() {
            if queued.outgoing.stage != Stage::Waiting {
                queued.outgoing.stage = Stage::Waiting;
                self.changes.push_back(Change::Moved(queued.outgoing.number, Stage::Waiting));
            }
        }
        self.received.clear();
        self.stale_filters.clear();
        self.has_session = true;
        self.changes.push_back(Change::SessionBegan);
    }

    fn subscribe(&mut self, now: Instant, broker: &Broker, wanted: Subscription) {
        let Subscription { filter, qos } = wanted;
        // §3.2.2.3.11, §3.2.2.3.13.
        let lacking = [
            (is_shared(&filter) && !broker.shared, Reason::NO_SHARED),
            (has_wildcards(&filter) && !broker.wildcards, Reason::NO_WILDCARDS),
        ];
        if let Some((_, reason)) = lacking.into_iter().find(|(lacks, _)| *lacks) {
            self.events.push_back(Event::NotSubscribed { filter, reason });
            return;
        }
        let id = self.free_id();
        self.changes.push_back(Change::Subscribed(filter.clone()));
        self.send(now, &packet::subscribe(id, &filter, qos));
        self.asked.push(Asked { id, filter, is_farewell: false });
    }

    fn take_connected(
        &mut self,
        now: Instant,
        broker: &Broker,
        packet: Incoming,
    ) -> Result<(), Fault> {
        match packet {
            Incoming::Connected { .. } | Incoming::Refused { .. } => {
                return Err(Fault::Protocol("CONNACK came twice"));
            }
            Incoming::Published { message, id } => return self.take_message(now, message, id),
            Incoming::Ack { ack, id, reason } => self.take_ack(now, ack, (id, reason)),
            Incoming::Subscribed { id, reason } => {
                if let Some(Asked { filter, .. }) = self.answered(id, false)?
                    && reason.is_failure()
                {
                    self.events.push_back(Event::NotSubscribed { filter, reason });
                }
            }
            Incoming::Unsubscribed { id } => {
                if let Some(Asked { filter, .. }) = self.answered(id, true)? {
                    self.changes.push_back(Change::Unsubscribed(filter));
                }
            }
            Incoming::Pong => self.pinged = None,
            Incoming::Ended { reason, words } => return Err(Fault::Ended(reason, words)),
        }
        self.send_queued(now, broker);
        Ok(())
    }

    /// The question that the broker answers.
    fn answered(&mut self, id: u16, is_farewell: bool) -> Result<Option<Asked>, Fault> {
        let asked = |one: &Asked| one.id == id && one.is_farewell == is_farewell;
        match self.asked.iter().position(asked) {
            Some(at) => Ok(Some(self.asked.swap_remove(at))),
            None => Err(Fault::Protocol("it answers what wasn't asked")),
        }
    }

    /// The receiver's side of §4.3.
    fn take_message(&mut self, now: Instant, message: Message, id: u16) -> Result<(), Fault> {
        match message.qos {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => {
                self.send(now, &packet::acknowledge(Ack::Published, id, Reason::SUCCESS));
            }
            Qos::ExactlyOnce => {
                let is_known = self.received.contains(&id);
                if !is_known && self.received.len() >= self.config.under_way_max.into() {
                    return Err(Fault::TooMany);
                }
                self.send(now, &packet::acknowledge(Ack::Received, id, Reason::SUCCESS));
                if is_known {
                    return Ok(());
                }
                self.received.push(id);
                self.changes.push_back(Change::Received(id));
            }
        }
        self.events.push_back(Event::Message(message));
        Ok(())
    }

    /// Acknowledgments of both sides of §4.3. One for an identifier that isn't in use changes nothing (§4.3.3).
    fn take_ack(&mut self, now: Instant, ack: Ack, (id, reason): (u16, Reason)) {
        match ack {
            Ack::Published => {
                if let Some(at) = self.sent_as(id, Qos::AtLeastOnce) {
                    self.finish(at, reason);
                }
            }
            Ack::Received => match self.sent_as(id, Qos::ExactlyOnce) {
                Some(at) if reason.is_failure() => self.finish(at, reason),
                Some(at) => {
                    if let Some(queued) = self.queue.get_mut(at) {
                        queued.outgoing.stage = Stage::Released(id);
                        let number = queued.outgoing.number;
                        self.changes.push_back(Change::Moved(number, Stage::Released(id)));
                    }
                    self.send(now, &packet::acknowledge(Ack::Released, id, Reason::SUCCESS));
                }
                None => {
                    let is_released = self.queue.position(Stage::Released(id)).is_some();
                    let reason = if is_released { Reason::SUCCESS } else { Reason::NO_SUCH_ID };
                    self.send(now, &packet::acknowledge(Ack::Released, id, reason));
                }
            },
            Ack::Released => {
                let known = self.received.iter().position(|one| *one == id);
                if let Some(at) = known {
                    self.received.swap_remove(at);
                    self.changes.push_back(Change::Released(id));
                }
                let reason = if known.is_some() { Reason::SUCCESS } else { Reason::NO_SUCH_ID };
                self.send(now, &packet::acknowledge(Ack::Completed, id, reason));
            }
            Ack::Completed => {
                if let Some(at) = self.queue.position(Stage::Released(id)) {
                    self.finish(at, Reason::SUCCESS);
                }
            }
        }
    }

    /// The place of the message that was sent so.
    fn sent_as(&mut self, id: u16, qos: Qos) -> Option<usize> {
        let at = self.queue.position(Stage::Sent(id))?;
        let is_so = self.queue.get_mut(at).is_some_and(|one| one.outgoing.message.qos == qos);
        is_so.then_some(at)
    }

    /// The message at this place is done with.
    fn finish(&mut self, at: usize, reason: Reason) {
        if reason.is_failure()
            && let Some(queued) = self.queue.get_mut(at)
        {
            let topic = queued.outgoing.message.topic.clone();
            self.events.push_back(Event::Rejected { topic, reason });
        }
        done(&mut self.changes, self.queue.remove(at));
    }

    /// Sends what is due of the queue, in its order (§4.4, §4.6), as far as there is room: in the output, and in what the
    /// broker takes at once (§4.9).
    fn send_queued(&mut self, now: Instant, broker: &Broker) {
        let under_way_max = broker.receive_max.min(self.config.under_way_max);
        let is_under_way = |one: &&Queued| !one.is_due && one.outgoing.stage != Stage::Waiting;
        let mut under_way = self.queue.iter().filter(is_under_way).count();
        let mut at = 0;
        while self.output.len() < OUTPUT_BYTES_MAX {
            let next_id = self.free_id();
            let Some(queued) = self.queue.get_mut(at) else { break };
            if !queued.is_due {
                at += 1;
                continue;
            }
            let Outgoing { number, message, stage, .. } = &mut queued.outgoing;
            if let Stage::Released(id) = *stage {
                queued.is_due = false;
                self.send(now, &packet::acknowledge(Ack::Released, id, Reason::SUCCESS));
                continue;
            }
            // §3.2.2.3.4, §3.2.2.3.5.
            message.qos = message.qos.min(broker.qos_max);
            message.retain &= broker.retains;
            let has_quota = message.qos == Qos::AtMostOnce || under_way < under_way_max.into();
            if !has_quota {
                break;
            }
            let (id, is_repeat) = match *stage {
                Stage::Sent(id) => (id, true),
                _ => (next_id, false),
            };
            let packet = packet::publish(message, id, is_repeat);
            if packet.len() > broker.packet_bytes_max as usize {
                self.finish(at, Reason::TOO_LONG);
                continue;
            }
            if message.qos == Qos::AtMostOnce {
                self.finish(at, Reason::SUCCESS);
            } else {
                if !is_repeat {
                    *stage = Stage::Sent(id);
                    self.changes.push_back(Change::Moved(*number, Stage::Sent(id)));
                    self.last_id = id;
                }
                queued.is_due = false;
                under_way += 1;
            }
            self.send(now, &packet);
        }
    }

    /// A packet identifier that nothing uses (§2.2.1). There are more than can be in use.
    fn free_id(&self) -> u16 {
        let is_used = |id: u16| {
            self.asked.iter().any(|one| one.id == id)
                || self.queue.position(Stage::Sent(id)).is_some()
                || self.queue.position(Stage::Released(id)).is_some()
        };
        let mut id = self.last_id;
        loop {
            id = id.checked_add(1).unwrap_or(1);
            if !is_used(id) {
                return id;
            }
        }
    }
}

/// Notes that a message is done with; one of which nobody knows yet needn't be known.
fn done(changes: &mut VecDeque<Change>, number: u64) {
    let queued = |change: &Change| matches!(change, Change::Queued(one) if one.number == number);
    match changes.iter().position(queued) {
        Some(at) => drop(changes.remove(at)),
        None => changes.push_back(Change::Done(number)),
    }
}
