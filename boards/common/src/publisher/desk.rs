//! The work of a publisher beside its connection: readings into the session, commands out of it, words for the console,
//! and sleep.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use core::convert::Infallible;
use core::fmt::Write;
use core::time::Duration;

use smoltcp::phy;
use tenure_crypto::element::WithElement;
use tenure_hal::{Clock, I2c, I2cError, Instant};
use tenure_mqtt::{Config, Event, Kept, Message, Qos, QueueLimits, Session, Subscription};
use tenure_tls::{Link, Now, Received};
use tenure_wire::Name;
use tenure_wire::printable::printable;

use super::error::Setback;
use super::stack::{Lease, Stack};
use super::{BrokerHost, MemoryUse, PublisherSettings};

/// The longest silence towards the broker.
const KEEP_ALIVE_S: u16 = 30;
/// How long the broker keeps what came for this device while it is away.
const SESSION_EXPIRY_S: u32 = 3_600;
/// The longest packet of the broker.
const PACKET_BYTES_MAX: u32 = 1_024;
/// The most messages under way, each way.
const UNDER_WAY_MAX: u16 = 4;
/// The readings that wait for a broker; the oldest go when there are more.
const QUEUE: QueueLimits = QueueLimits { messages_max: 8, bytes_max: 1_024 };
/// The bytes that are read at once, so that few messages wait in memory.
const READ_BYTES: usize = 128;
/// With so many bytes to send nothing more is read, so that a broker that never reads fills nothing.
const UNSENT_BYTES_MAX: usize = 512;
/// How often the loop comes round at least: the watchdog is to be fed.
const NAP_MAX: Duration = Duration::from_secs(4);
/// What a command may choose as the time between two readings.
const PERIODS_S: core::ops::RangeInclusive<u64> = 1..=3_600;

/// What a board lends for the work.
pub(super) type Instruments = (fn() -> Result<i32, I2cError>, fn() -> MemoryUse, fn() -> Duration);

/// The work.
pub(super) struct Desk<C, W> {
    name: Name,
    session: Session,
    topics: Topics,
    clock: C,
    console: W,
    instruments: Instruments,
    /// The date at the start of the device, in seconds since 1970.
    date: Option<u64>,
    period: Duration,
    next_reading: Instant,
    /// Whether the sensor failed when it was read last.
    sensor_failed: bool,
    /// Whether the broker accepted the connection.
    accepted: bool,
    /// When the connection was begun, and how long the processor had been awake by then.
    begun: (Instant, Duration),
    /// How long the processor had been awake when the reading was begun that the broker has yet to acknowledge.
    reading_begun: Option<Duration>,
}

/// The topics of a device.
struct Topics {
    temperature: String,
    status: String,
    command: String,
}

impl<C: Clock, W: Write> Desk<C, W> {
    pub(super) fn new(
        settings: PublisherSettings,
        clock: C,
        console: W,
        instruments: Instruments,
    ) -> Self {
        let PublisherSettings { name, date, period, user, password, .. } = settings;
        let topic = |what: &str| format!("{name}/{what}");
        let topics = Topics {
            temperature: topic("temperature"),
            status: topic("status"),
            command: topic("command"),
        };
        let command = Subscription { filter: topics.command.clone(), qos: Qos::AtLeastOnce };
        let config = Config {
            client_id: name.to_string(),
            user,
            password: password.map(String::into_bytes),
            will: Some(status(&topics, "offline")),
            keep_alive_s: KEEP_ALIVE_S,
            session_expiry_s: SESSION_EXPIRY_S,
            packet_bytes_max: PACKET_BYTES_MAX,
            under_way_max: UNDER_WAY_MAX,
            subscriptions: vec![command],
            queue: QUEUE,
        };
        Self {
            name,
            session: Session::new(config, Kept::default()),
            topics,
            next_reading: clock.now(),
            clock,
            console,
            instruments,
            date,
            period,
            sensor_failed: false,
            accepted: false,
            begun: (Instant::BOOT, Duration::ZERO),
            reading_begun: None,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The time as TLS wants it: the date of the settings, counted on since the start.
    pub(super) fn tls_now(&self) -> Now {
        let uptime = Duration::from_micros(self.clock.now().as_micros());
        Now::new(uptime, self.date.map(|date| Duration::from_secs(date) + uptime))
    }

    /// Takes note that a connection is begun.
    pub(super) fn begin_connection(&mut self) {
        let (_, _, awake) = self.instruments;
        self.begun = (self.clock.now(), awake());
    }

    /// Whether the broker accepted a connection since this was asked last.
    pub(super) fn take_accepted(&mut self) -> bool {
        core::mem::take(&mut self.accepted)
    }

    /// Goes through the handshake of TLS.
    #[inline(never)]
    pub(super) fn shake_hands<D: phy::Device, B: I2c>(
        &mut self,
        link: &mut Link<'_, &mut Stack<D>>,
        security: &mut WithElement<B>,
        sleep: &mut impl FnMut(Duration, &mut D),
    ) -> Result<(), Setback> {
        loop {
            let is_over = link.connect(security, || self.tls_now());
            // What TLS made of it leaves at once, an alert too.
            let stack: &mut Stack<D> = link.network_mut();
            stack.poll(self.clock.now());
            if is_over? {
                return Ok(());
            }
            self.turn(stack, None, sleep);
        }
    }

    /// Speaks MQTT over `link` until that ends.
    #[inline(never)]
    pub(super) fn serve<D: phy::Device, B: I2c>(
        &mut self,
        link: &mut Link<'_, &mut Stack<D>>,
        security: &mut WithElement<B>,
        sleep: &mut impl FnMut(Duration, &mut D),
    ) -> Result<Infallible, Setback> {
        self.session.connect(self.clock.now());
        loop {
            let taken = self.take_in(link, security);
            let polled = self.session.poll(self.clock.now());
            self.note_events();
            // A fault has its word to the broker, before it ends the connection.
            let sent = self.send_out(link, security);
            self.note_acknowledged();
            let stack: &mut Stack<D> = link.network_mut();
            stack.poll(self.clock.now());
            taken
                .and(polled.map_err(Setback::Mqtt))
                .and(sent)
                .inspect_err(|_| self.session.lost())?;
            let due = self.session.wakes_at();
            self.turn(stack, due, sleep);
        }
    }

    /// Hands the session what the broker sent.
    fn take_in<D: phy::Device, B: I2c>(
        &mut self,
        link: &mut Link<'_, &mut Stack<D>>,
        security: &mut WithElement<B>,
    ) -> Result<(), Setback> {
        let mut bytes = [0; READ_BYTES];
        while self.session.wants_input() && self.session.output().len() < UNSENT_BYTES_MAX {
            match link.receive(security, || self.tls_now(), &mut bytes)? {
                Received::Bytes(length) => {
                    let now = self.clock.now();
                    self.session.receive(now, &bytes[..length]).map_err(Setback::Mqtt)?;
                    self.note_events();
                }
                Received::Nothing => break,
                Received::End => return Err(Setback::Closed),
            }
        }
        Ok(())
    }

    /// Sends what the session has for the broker.
    fn send_out<D: phy::Device, B: I2c>(
        &mut self,
        link: &mut Link<'_, &mut Stack<D>>,
        security: &mut WithElement<B>,
    ) -> Result<(), Setback> {
        // A restart begins a session anew: nothing of it is kept.
        while self.session.change().is_some() {}
        let sent = link.send(security, self.session.output())?;
        self.session.sent(sent);
        Ok(())
    }

    /// One turn of the loop: moves packets, reads the sensor if that is due, and sleeps until something is, or comes.
    pub(super) fn turn<D: phy::Device>(
        &mut self,
        stack: &mut Stack<D>,
        due: Option<Instant>,
        sleep: &mut impl FnMut(Duration, &mut D),
    ) {
        let now = self.clock.now();
        if let Some(lease) = stack.poll(now) {
            self.say_lease(&lease);
        }
        let nap = match (self.read_sensor(now), stack.poll_delay(now)) {
            // A reading is to be sent.
            (true, _) => Duration::ZERO,
            (false, delay) => {
                let until = |at: Instant| at.since(now);
                let naps = [delay, due.map(until), Some(until(self.next_reading))];
                naps.into_iter().flatten().fold(NAP_MAX, Duration::min)
            }
        };
        sleep(nap, stack.device());
    }

    /// Lets `pause` pass, in which readings are taken all the same.
    pub(super) fn rest<D: phy::Device>(
        &mut self,
        stack: &mut Stack<D>,
        pause: Duration,
        sleep: &mut impl FnMut(Duration, &mut D),
    ) {
        let end = self.clock.now() + pause;
        while self.clock.now() < end {
            self.turn(stack, Some(end), sleep);
        }
    }

    /// Reads the sensor if that is due, and returns whether it was.
    fn read_sensor(&mut self, now: Instant) -> bool {
        if now < self.next_reading {
            return false;
        }
        self.next_reading = now + self.period;
        let (thermometer, _, awake) = self.instruments;
        let begun = awake();
        match thermometer() {
            Ok(thousandths) => {
                self.sensor_failed = false;
                self.reading_begun.get_or_insert(begun);
                let payload = degrees(thousandths).into_bytes();
                let topic = self.topics.temperature.clone();
                self.session.publish(Message {
                    topic,
                    payload,
                    qos: Qos::AtLeastOnce,
                    retain: false,
                });
            }
            Err(error) if !self.sensor_failed => {
                self.sensor_failed = true;
                // A console that takes nothing has nobody who reads it.
                let _ = writeln!(self.console, "the thermometer can't be read: {error}");
            }
            Err(_) => {}
        }
        true
    }

    fn note_events(&mut self) {
        while let Some(event) = self.session.event() {
            match event {
                Event::Connected { resumed } => {
                    self.accepted = true;
                    self.say_connected(resumed);
                    self.session.publish(status(&self.topics, "online"));
                }
                Event::Message(message) => self.obey(&message),
                Event::Rejected { topic, reason } => {
                    // As in `read_sensor`.
                    let _ = writeln!(self.console, "the broker rejects {topic}: {reason}");
                }
                Event::NotSubscribed { filter, reason } => {
                    // As above.
                    let _ = writeln!(self.console, "the broker refuses to send {filter}: {reason}");
                }
            }
        }
    }

    /// Does what a message of the command topic says: `read`, or `period SECONDS`.
    fn obey(&mut self, message: &Message) {
        let text = core::str::from_utf8(&message.payload).unwrap_or_default().trim();
        let period = text.strip_prefix("period ").and_then(|seconds| seconds.trim().parse().ok());
        let now = self.clock.now();
        let outcome = match (text, period.filter(|seconds| PERIODS_S.contains(seconds))) {
            ("read", _) => {
                self.next_reading = now;
                "done"
            }
            (_, Some(seconds)) => {
                self.period = Duration::from_secs(seconds);
                self.next_reading = now + self.period;
                "done"
            }
            _ => "not known; there are `read` and `period SECONDS`",
        };
        // As above.
        let _ = writeln!(self.console, "command `{}`: {outcome}", printable(text));
    }

    /// Tells how much a reading cost once the broker has all of them.
    fn note_acknowledged(&mut self) {
        if self.session.queued() > 0 {
            return;
        }
        if let Some(begun) = self.reading_begun.take() {
            let (_, _, awake) = self.instruments;
            let took = micros(awake().saturating_sub(begun));
            // As above.
            let _ = writeln!(self.console, "published; the processor was awake for {took} us");
        }
    }

    fn say_connected(&mut self, resumed: bool) {
        let (_, memory, awake) = self.instruments;
        let (since, awake_before) = self.begun;
        let took = micros(self.clock.now().since(since)) / 1_000;
        let awake = micros(awake().saturating_sub(awake_before));
        let MemoryUse { heap, stack_peak_bytes, stack_bytes } = memory();
        let (name, session) = (&self.name, if resumed { "its session goes on" } else { "anew" });
        // As above.
        let _ = writeln!(
            self.console,
            "connected as {name} in {took} ms, {session}; the processor was awake for {awake} us"
        );
        let _ = writeln!(
            self.console,
            "memory: at most {} of {} bytes of heap, {stack_peak_bytes} of {stack_bytes} of stack",
            heap.peak_bytes, heap.total_bytes
        );
    }

    fn say_lease(&mut self, lease: &Lease) {
        // As above.
        let _ = match lease {
            Lease::Got(address) => writeln!(self.console, "address {address}, by DHCP"),
            Lease::Lost => writeln!(self.console, "no address any more: DHCP doesn't answer"),
        };
    }

    pub(super) fn say_setback(
        &mut self,
        host: &BrokerHost,
        port: u16,
        setback: &Setback,
        pause: Duration,
    ) {
        let seconds = pause.as_secs();
        // As above. A broker's words are anybody's until it has proven who it is.
        let _ = writeln!(
            self.console,
            "broker {host}:{port}: {}; again in {seconds} s",
            printable(&setback.to_string())
        );
    }
}

/// The message that says whether a device is there, which the broker keeps.
fn status(topics: &Topics, payload: &str) -> Message {
    Message {
        topic: topics.status.clone(),
        payload: payload.into(),
        qos: Qos::AtLeastOnce,
        retain: true,
    }
}

/// Thousandths of a degree with a point.
pub(super) fn degrees(thousandths: i32) -> String {
    let (sign, size) = (if thousandths < 0 { "-" } else { "" }, thousandths.unsigned_abs());
    format!("{sign}{}.{:03}", size / 1_000, size % 1_000)
}

/// A span in microseconds; one that doesn't fit 32 bits is the longest that does.
fn micros(span: Duration) -> u32 {
    u32::try_from(tenure_hal::micros_of(span)).unwrap_or(u32::MAX)
}
