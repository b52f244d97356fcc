//! The bridge's thread: waits for the device and for the broker, and carries what comes to the other side.

use std::io::Write as _;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::{Group, Software};
use tenure_hal::Instant;
use tenure_mqtt::{Config, Event, Kept, Message, Qos, Reason, Session};
use tenure_tls::x509::parse_private_key;
use tenure_tls::{Client, ClientConfig, Identity, Link, LinkError, Received, Suite, Trust};
use tenure_tls_client::{Authorities, Dates, Judges, Keeper, ReadyTicket, Scope, Tickets, explain};
use tenure_wire::LogLevel;
use tenure_wire::limits::{EVENT_BYTES_MAX, LOG_BYTES_MAX};

use crate::announced::{Announced, Announcement, ENTITIES_MAX};
use crate::complaints::Complaints;
use crate::discovery::Discovery;
use crate::ends::{FromDevice, ToDevice};
use crate::link::{Tcp, reach, server_name};
use crate::store::Store;
use crate::{ONLINE, Published, Said, Settings, drain};

/// The longest packet of a broker, in bytes: an event with the longest topic of MQTT that a rule may mean, and room to spare.
const PACKET_BYTES_MAX: u32 = 16 * 1024;
/// The most messages under way, for each direction.
const UNDER_WAY_MAX: u16 = 32;
/// The buffer that a connection's TLS works in, in bytes: a record, and what is sent.
const TLS_BUFFER_BYTES: usize = 20 * 1024;
/// The most bytes that are taken from the broker at once.
const CHUNK_BYTES: usize = 16 * 1024;
/// How long a TLS handshake may take.
const HANDSHAKE_MS_MAX: u64 = 10_000;
/// The groups of the key agreement.
const GROUPS: &[Group] = &[Group::X25519, Group::Secp256r1];
/// The first pause before a connection is tried again, and the longest.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LAST: Duration = Duration::from_secs(60);
/// The longest wait. The handshake's deadline is looked at in between.
const NAP: Duration = Duration::from_secs(1);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// Lines that may come again and again, by kind.
#[derive(Default)]
struct AllComplaints {
    /// Messages for the broker that were dropped.
    dropped: Complaints,
    /// Messages of the broker that can't be events.
    refused: Complaints,
    /// Messages that the broker doesn't take.
    rejected: Complaints,
    /// Topics of which Home Assistant isn't told.
    unannounced: Complaints,
    /// The file can't be written.
    unkept: Complaints,
}

/// A connection to the broker, whose tickets are kept.
type KeptLink<'a> = Link<'a, Tcp, Option<Keeper>>;

/// Why a connection ended.
enum End {
    /// The device wants no bridge any more.
    Over,
    /// In words.
    Failed(String),
}

impl End {
    fn of(error: LinkError<std::io::Error>, dates: &Dates) -> Self {
        Self::Failed(match error {
            LinkError::Network(error) => format!("the connection broke off: {error}"),
            LinkError::Tls(error) => explain(error, dates.date()),
        })
    }
}

/// The thread.
pub(crate) struct Carrier {
    settings: Settings,
    /// Those that vouch for the broker.
    authorities: Arc<Authorities>,
    tickets: Tickets,
    dates: Dates,
    session: Session,
    store: Store,
    from_device: FromDevice,
    to_device: ToDevice,
    discovery: Option<Discovery>,
    /// The entities that Home Assistant was told of on this connection.
    announced: Announced,
    /// How many dropped messages the log tells of.
    dropped: u64,
    complaints: AllComplaints,
    /// Why the last connection ended, so that the log doesn't say it again and again.
    last_failure: Option<String>,
    /// When the broker last accepted a connection.
    connected_at: Option<Instant>,
    start: std::time::Instant,
    security: Software<LinuxEntropy>,
}

impl Carrier {
    pub(crate) fn new(
        (mut settings, dates): (Settings, Dates),
        (store, kept): (Store, Kept),
        from_device: FromDevice,
        to_device: ToDevice,
    ) -> Self {
        let config = Config {
            client_id: settings.client_id.clone(),
            user: settings.user.clone(),
            password: settings.password.as_ref().map(|password| password.to_vec()),
            will: settings.will.clone(),
            keep_alive_s: settings.keep_alive_s,
            session_expiry_s: settings.session_expiry_s,
            packet_bytes_max: PACKET_BYTES_MAX,
            under_way_max: UNDER_WAY_MAX,
            subscriptions: settings.rules.subscriptions(),
            queue: settings.queue,
        };
        let authorities = std::mem::take(&mut settings.certificates.authorities);
        let discovery = settings.discovery.clone().map(|prefix| Discovery {
            prefix,
            device: settings.device.clone(),
            status_topic: settings.status_topic.clone(),
        });
        Self {
            session: Session::new(config, kept),
            authorities: Arc::new(Authorities::new(&authorities)),
            tickets: Tickets::default(),
            settings,
            dates,
            store,
            from_device,
            to_device,
            discovery,
            announced: Announced::default(),
            dropped: 0,
            complaints: AllComplaints::default(),
            last_failure: None,
            connected_at: None,
            start: std::time::Instant::now(),
            security: Software::new(LinuxEntropy),
        }
    }

    /// Runs until the device is over.
    pub(crate) fn run(mut self) {
        let mut pause = Duration::ZERO;
        loop {
            let Some(tcp) = self.reach_after(pause) else { return };
            let ended = match tcp {
                Ok(tcp) => self.speak(tcp),
                Err(why) => End::Failed(why),
            };
            self.session.lost();
            self.to_device.state.lock().connected_at = None;
            let End::Failed(why) = ended else { return };
            // A connection that held is a reason to try again soon.
            let held = self.connected_at.take().map_or(Duration::ZERO, |at| self.now().since(at));
            if held > pause {
                pause = Duration::ZERO;
            }
            pause = (pause * 2).clamp(PAUSE_FIRST, PAUSE_LAST);
            self.tell_failure(why);
        }
    }

    /// Waits for `pause`, then opens a TCP connection; serves the device meanwhile. `None` if the device is over.
    fn reach_after(&mut self, pause: Duration) -> Option<Result<TcpStream, String>> {
        let until = self.now() + pause;
        let mut opening: Option<Receiver<_>> = None;
        loop {
            self.serve_device();
            if self.is_over() {
                // The queue is in its file.
                return None;
            }
            match opening.as_ref().map(Receiver::try_recv) {
                None if self.now() >= until => opening = Some(self.begin_reaching()),
                Some(Ok(opened)) => return Some(opened),
                Some(Err(TryRecvError::Disconnected)) => {
                    return Some(Err("the system has no thread to connect by".into()));
                }
                None | Some(Err(TryRecvError::Empty)) => {}
            }
            let left = if opening.is_some() { NAP } else { until.since(self.now()).min(NAP) };
            self.wait(None, left);
        }
    }

    /// Opens a TCP connection on a thread of its own, as looking up a name waits for as long as the system does.
    fn begin_reaching(&self) -> Receiver<Result<TcpStream, String>> {
        let (sender, opened) = sync_channel(1);
        let broker = self.settings.broker.clone();
        let waker = self.from_device.waker.try_clone();
        let reaching = move || {
            // A bridge that is over has no use for it.
            let _ = sender.send(reach(&broker));
            if let Ok(mut waker) = waker {
                let _ = waker.write(&[0]);
            }
        };
        // Without a thread the sender is dropped, which is an answer.
        let _ = std::thread::Builder::new().name("bridge-connect".into()).spawn(reaching);
        opened
    }

    /// Speaks with the broker over a connection, until one side ends it.
    fn speak(&mut self, tcp: TcpStream) -> End {
        if !self.settings.broker.is_secure {
            return self.converse(Link::plain(Tcp::new(tcp)).keeping(None));
        }
        let (broker, certificates) =
            (self.settings.broker.clone(), self.settings.certificates.clone());
        let authorities = Arc::clone(&self.authorities);
        let anchors = authorities.anchors();
        let chain: Vec<&[u8]> = certificates.chain.iter().map(Vec::as_slice).collect();
        let key = certificates.key.as_ref().map(|der| parse_private_key(der)).transpose();
        let key = match key {
            Ok(key) => key,
            Err(error) => return End::Failed(format!("the own key can't be used: {error}")),
        };
        let judges = Judges::Authorities(&authorities);
        let scope = Scope::new(&[], &broker.to_string(), judges, &chain);
        let (ticket, keeper) = self.tickets.begin(scope, &self.dates);
        let config = ClientConfig {
            server_name: server_name(&broker.host),
            trust: Trust::Anchors { anchors: &anchors, without_date: &[] },
            suites: Suite::ALL,
            groups: GROUPS,
            application_protocols: &[],
            identity: key.map(|key| Identity { chain: &chain, key }),
            pre_shared_key: ticket.as_ref().map(ReadyTicket::key),
            early_data: false,
            handshake_ms_max: HANDSHAKE_MS_MAX,
        };
        let mut buffer = vec![0; TLS_BUFFER_BYTES];
        match Client::new(&mut buffer, &config, &self.dates.now(self.start)) {
            Ok(client) => self.converse(Link::secure(Tcp::new(tcp), client).keeping(Some(keeper))),
            Err(error) => End::of(LinkError::Tls(error), &self.dates),
        }
    }

    fn converse(&mut self, mut link: KeptLink<'_>) -> End {
        let ended = self.exchange(&mut link);
        // The rest may tell the broker why this is over; that it gets there isn't sure.
        let until = self.now() + GOODBYE;
        while !self.session.output().is_empty() && link.is_connected() && self.now() < until {
            match link.send(&mut self.security, self.session.output()) {
                Ok(0) => self.wait(Some((link.network(), PollFlags::OUT)), GOODBYE),
                Ok(sent) => self.session.sent(sent),
                Err(_) => break,
            }
        }
        match ended {
            Ok(over) => over,
            Err(end) => end,
        }
    }

    fn exchange(&mut self, link: &mut KeptLink<'_>) -> Result<End, End> {
        let (mut has_begun, mut chunk) = (false, vec![0; CHUNK_BYTES]);
        let (start, dates) = (self.start, self.dates.clone());
        let end = |error| End::of(error, &dates);
        loop {
            if self.is_over() {
                self.serve_device();
                self.session.disconnect(self.now(), Reason::WITH_WILL);
                return Ok(End::Over);
            }
            if !has_begun && link.connect(&mut self.security, || dates.now(start)).map_err(end)? {
                has_begun = true;
                self.to_device.state.lock().resumed += u64::from(link.is_resumed());
                self.session.connect(self.now());
            }
            self.serve_device();
            self.session.poll(self.now()).map_err(|fault| End::Failed(fault.to_string()))?;
            self.keep();
            let sent = link.send(&mut self.security, self.session.output()).map_err(end)?;
            self.session.sent(sent);
            // Before the handshake is over nothing is the session's.
            let listens = !has_begun || self.session.wants_input() && self.to_device.is_taken();
            if listens && has_begun {
                let received = link.receive(&mut self.security, || dates.now(start), &mut chunk);
                match received.map_err(end)? {
                    Received::Bytes(length) => {
                        let bytes = chunk.get(..length).unwrap_or_default();
                        self.take_bytes(bytes)?;
                        continue;
                    }
                    Received::Nothing => {}
                    Received::End => {
                        return Err(End::Failed("the broker closed the connection".into()));
                    }
                }
            }
            // There may be more to send.
            if sent > 0 {
                continue;
            }
            let mut flags = if listens { PollFlags::IN } else { PollFlags::empty() };
            if link.network().is_stuck() {
                flags |= PollFlags::OUT;
            }
            let due = self.session.wakes_at().map_or(NAP, |at| at.since(self.now()));
            self.wait(Some((link.network(), flags)), due.min(NAP));
        }
    }

    /// Takes what the broker sent.
    fn take_bytes(&mut self, bytes: &[u8]) -> Result<(), End> {
        let taken = self.session.receive(self.now(), bytes);
        // What came before a fault counts.
        self.take_events();
        self.keep();
        taken.map_err(|fault| End::Failed(fault.to_string()))
    }

    /// Takes the device's events, and hands over what waits for it.
    fn serve_device(&mut self) {
        drain(&mut self.from_device.woken);
        while let Ok(event) = self.from_device.events.try_recv() {
            self.take_event(&event);
        }
        self.keep();
        self.to_device.hand_over();
        let dropped = self.session.dropped() + self.from_device.lost.load(Ordering::Relaxed);
        self.tell_queue(dropped);
        if dropped > self.dropped {
            let now = self.now();
            let line = self.complaints.dropped.line(now, || {
                format!("the queue is full: {dropped} events in all were dropped since the start")
            });
            self.dropped = dropped;
            self.complain(line);
        }
    }

    /// Writes the state of the queue where the device reads it.
    fn tell_queue(&self, dropped: u64) {
        let mut state = self.to_device.state.lock();
        state.queued_messages = self.session.queued();
        state.queued_bytes = self.session.queued_bytes();
        state.dropped = dropped;
    }

    /// Queues an event of the device for the broker, as the rules say.
    fn take_event(&mut self, event: &Published) {
        let Published { topic, payload, publisher } = event;
        let mut left_out = None;
        let Self { settings, session, discovery, announced, connected_at, .. } = self;
        for (rule, message) in settings.rules.messages(topic, payload) {
            // While the broker is away its topics aren't told: it is told at the next event once it is there.
            if let Some(discovery) = discovery
                && connected_at.is_some()
            {
                match announced.announce(&message.topic, *publisher) {
                    Announcement::Due => {
                        let entity = discovery.of_event(rule, topic, &message.topic);
                        session.publish_for(*publisher, entity);
                    }
                    Announcement::Known => {}
                    Announcement::NoRoom => left_out = Some(message.topic.clone()),
                }
            }
            session.publish_for(*publisher, message);
        }
        if let Some(topic) = left_out {
            let now = self.now();
            let line = self.complaints.unannounced.line(now, || {
                format!("Home Assistant isn't told of {topic}: its publisher has its part of the {ENTITIES_MAX} entities")
            });
            self.complain(line);
        }
    }

    /// Takes what happened at the broker.
    fn take_events(&mut self) {
        while let Some(event) = self.session.event() {
            match event {
                Event::Connected { resumed } => self.connected(resumed),
                Event::Message(message) => self.take_message(message),
                Event::Rejected { topic, reason } => {
                    let now = self.now();
                    let line = self.complaints.rejected.line(now, || {
                        format!("the broker doesn't take a message for {topic}: {reason}")
                    });
                    self.complain(line);
                }
                Event::NotSubscribed { filter, reason } => {
                    let why =
                        format!("the broker doesn't take the subscription {filter}: {reason}");
                    self.complain(Some(why));
                }
            }
        }
    }

    fn connected(&mut self, resumed: bool) {
        let Settings { broker, status_topic, rules, .. } = &self.settings;
        let session = if resumed { "its session goes on" } else { "a new session" };
        let queued = self.session.queued();
        let told = format!("connected to {broker}, {session}, {queued} messages wait");
        self.announced = Announced::default();
        if let Some(topic) = status_topic.clone() {
            let (payload, qos) = (ONLINE.to_vec(), Qos::AtLeastOnce);
            self.session.publish(Message { topic, payload, qos, retain: true });
        }
        if let Some(discovery) = &self.discovery {
            let entities = rules.inward().iter().filter_map(|rule| discovery.of_command(rule));
            entities.for_each(|entity| self.session.publish(entity));
        }
        self.connected_at = Some(self.now());
        {
            let mut state = self.to_device.state.lock();
            state.connected_at = Some(std::time::Instant::now());
            state.connections += 1;
        }
        self.last_failure = None;
        self.remark(LogLevel::Info, &told);
    }

    /// Lets a message of the broker in, as the rules say.
    fn take_message(&mut self, message: Message) {
        let Message { topic: name, payload, .. } = message;
        let why = match self.settings.rules.topic_for(&name) {
            // A subscription of before, which the broker has yet to drop.
            Ok(None) => return,
            Ok(Some(topic)) if payload.len() <= EVENT_BYTES_MAX => {
                return self.to_device.say(Said::Event { topic, payload });
            }
            Ok(Some(_)) => format!("an event has at most {EVENT_BYTES_MAX} bytes"),
            Err(error) => error.to_string(),
        };
        let now = self.now();
        let line = self.complaints.refused.line(now, || {
            let name: String = name.chars().take(64).collect();
            format!("a message of the broker for {name} can't be an event: {why}")
        });
        self.complain(line);
    }

    /// Writes down what a restart must know.
    fn keep(&mut self) {
        let changes: Vec<_> = std::iter::from_fn(|| self.session.change()).collect();
        if changes.is_empty() {
            return;
        }
        if let Err(error) = self.store.keep(&changes) {
            let now = self.now();
            let line = self.complaints.unkept.line(now, || {
                format!("{error}; what waits for the broker is lost with this process")
            });
            self.complain(line);
        }
    }

    fn tell_failure(&mut self, why: String) {
        self.note_error(&why);
        if self.last_failure.as_ref() != Some(&why) {
            self.remark(LogLevel::Error, &format!("{why}; trying again"));
            self.last_failure = Some(why);
        }
    }

    fn complain(&mut self, line: Option<String>) {
        if let Some(line) = line {
            self.note_error(&line);
            self.remark(LogLevel::Error, &line);
        }
    }

    fn note_error(&self, words: &str) {
        let error = (std::time::Instant::now(), one_line(words));
        self.to_device.state.lock().last_error = Some(error);
    }

    fn remark(&mut self, level: LogLevel, line: &str) {
        let message = one_line(&["bridge: ", line].concat());
        self.to_device.say(Said::Remark { level, message });
    }

    /// Waits until the device has something, the link is as `flags` say, or the time is over.
    fn wait(&self, link: Option<(&dyn AsFd, PollFlags)>, span: Duration) {
        let timeout = Timespec {
            tv_sec: span.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        };
        let woken: BorrowedFd<'_> = self.from_device.woken.as_fd();
        let mut polled = vec![PollFd::from_borrowed_fd(woken, PollFlags::IN)];
        // One that nothing is wanted of would still wake by its end.
        let link = link.filter(|(_, flags)| !flags.is_empty());
        polled.extend(link.map(|(link, flags)| PollFd::from_borrowed_fd(link.as_fd(), flags)));
        if poll(&mut polled, Some(&timeout)).is_err() {
            // Interrupted; the loop looks at everything again. Any other error must not make it spin.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_over(&self) -> bool {
        self.from_device.is_over.load(Ordering::Relaxed)
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.start.elapsed().as_micros() as u64)
    }
}

/// A line of a log's length; the words of a broker in it may have been several.
fn one_line(words: &str) -> String {
    let mut line = words.replace(char::is_control, " ");
    line.truncate(line.floor_char_boundary(LOG_BYTES_MAX));
    line
}
