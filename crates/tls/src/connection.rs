//! The common part of both ends of a connection: bytes in, bytes out, data, keys, the end.

use core::time::Duration;

use tenure_crypto::{Group, HashValue, Security, SignatureAlgorithm};

use crate::certificates::{CertificateReader, Reading};
use crate::channel::{Channel, Incoming};
use crate::error::{Alert, Error, Misbehaviour};
use crate::record::ContentType;
use crate::schedule::{Schedule, Transcript, expand_label, expand_secret, traffic_keys};
use crate::state::{Message, State};
use crate::suite::Suite;
use crate::wire::Reader;
use crate::x509::UnixTime;

/// A `KeyUpdate` message.
const KEY_UPDATE_BYTES: usize = 5;
/// Key updates that a peer may ask for without sending any data between them.
const KEY_UPDATES_MAX: u8 = 32;
/// Tickets that a server may send without sending any data between them.
const TICKETS_MAX: u8 = 32;
/// The deadline of a connection that has none.
const NEVER: u64 = u64::MAX;
/// Records under one key after which the own side changes it: far below the 2^24.5 of AES-GCM (RFC
/// 8446 §5.5).
const RECORDS_PER_KEY: u64 = 1 << 22;

/// The time, in the two ways that a connection needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on a clock that never goes back, for deadlines.
    pub uptime_ms: u64,
    /// The date, for certificates; none if this device doesn't know it.
    pub date: Option<UnixTime>,
}

impl Now {
    /// `uptime` on a clock that never goes back, and how long ago 1970 began, if that is known.
    pub fn new(uptime: Duration, since_1970: Option<Duration>) -> Self {
        Self {
            uptime_ms: uptime.as_millis() as u64,
            date: since_1970.map(|since| UnixTime(since.as_secs() as i64)),
        }
    }
}

/// The result of [`Connection::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// All that was received is handled; more input, or the next deadline, goes on.
    Idle,
    /// The next certificate of the peer lies in [`Connection::certificate`] until the next poll,
    /// which judges it.
    Certificate,
    /// The handshake is over, and data can be sent.
    Connected,
    /// Data lies in [`Connection::data`].
    Data,
    /// A ticket lies in [`Connection::ticket`](crate::Client::ticket) until the next poll.
    Ticket,
    /// The peer sends no more.
    PeerClosed,
}

/// The part of a connection that both ends share.
pub(crate) struct Core<'b> {
    pub(crate) channel: Channel<'b>,
    pub(crate) transcript: Transcript,
    pub(crate) state: State,
    pub(crate) suite: Option<Suite>,
    pub(crate) group: Option<Group>,
    pub(crate) peer_signature: Option<SignatureAlgorithm>,
    pub(crate) certificates: CertificateReader,
    /// The secrets that traffic keys follow from, of the current epoch.
    pub(crate) own_secret: HashValue,
    pub(crate) peer_secret: HashValue,
    pub(crate) exporter: HashValue,
    pub(crate) resumption: HashValue,
    /// Whether data may come before the handshake is over.
    pub(crate) takes_early_data: bool,
    /// Whether data may be sent before the handshake is over.
    pub(crate) sends_early_data: bool,
    /// How much more of it.
    pub(crate) early_data_left: usize,
    pub(crate) is_client: bool,
    /// A client: whether its `change_cipher_spec` is out.
    pub(crate) is_change_cipher_spec_sent: bool,
    pub(crate) deadline_ms: u64,
    pub(crate) ticket_waits: bool,
    connected_is_told: bool,
    tickets: u8,
    key_updates: u8,
    own_update_is_due: bool,
    peer_closed: bool,
    own_closed: bool,
    error: Option<Error>,
    #[cfg(feature = "keylog")]
    pub(crate) key_log: crate::keylog::KeyLog,
}

/// A handshake's own part: what it does with a message that is due.
pub(crate) trait Handshake {
    /// Begins, if this end speaks first.
    fn start(&mut self, core: &mut Core<'_>, security: &mut impl Security) -> Result<(), Error>;

    /// Handles the `total` bytes at the front of what was opened, a whole message, and consumes them.
    fn message(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        message: Message,
        total: usize,
    ) -> Result<(), Error>;

    /// Judges a certificate that is complete, or the end of them.
    fn certificate(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        reading: Reading,
        now: &Now,
    ) -> Result<(), Error>;
}

/// A TLS connection over the buffer that the caller lent: a [`Client`](crate::Client) or a
/// [`Server`](crate::Server).
///
/// Nothing blocks, calls back or allocates. The caller copies what its transport received to
/// [`Self::space`], polls until [`Event::Idle`], and sends what is in [`Self::output`].
pub struct Connection<'b, H> {
    pub(crate) core: Core<'b>,
    pub(crate) handshake: H,
}

impl<'b> Core<'b> {
    pub(crate) fn new(buffer: &'b mut [u8], state: State, deadline_ms: u64) -> Self {
        Self {
            channel: Channel::new(buffer, state == State::Start),
            transcript: Transcript::new(),
            is_client: state == State::Start,
            is_change_cipher_spec_sent: false,
            state,
            suite: None,
            group: None,
            peer_signature: None,
            certificates: CertificateReader::default(),
            own_secret: HashValue::EMPTY,
            peer_secret: HashValue::EMPTY,
            exporter: HashValue::EMPTY,
            resumption: HashValue::EMPTY,
            takes_early_data: false,
            sends_early_data: false,
            early_data_left: 0,
            deadline_ms,
            ticket_waits: false,
            connected_is_told: false,
            tickets: 0,
            key_updates: 0,
            own_update_is_due: false,
            peer_closed: false,
            own_closed: false,
            error: None,
            #[cfg(feature = "keylog")]
            key_log: crate::keylog::KeyLog::default(),
        }
    }

    /// The suite, which every message after the first has.
    pub(crate) fn suite(&self) -> Result<Suite, Error> {
        self.suite.ok_or(Error::Peer(Misbehaviour::Unexpected))
    }

    /// The digest of all messages so far.
    pub(crate) fn transcript_digest(&self) -> Result<HashValue, Error> {
        Ok(self.transcript.digest(self.suite()?.hash()))
    }

    /// Takes the first `total` bytes of what was opened into the transcript, and consumes them.
    pub(crate) fn take_in(&mut self, total: usize) {
        let Self { channel, transcript, .. } = self;
        transcript.update(&channel.opened()[..total]);
        channel.consume(total);
    }

    /// Sends a handshake message, whose body `build` writes, and takes it into the transcript.
    pub(crate) fn send_message<S: Security>(
        &mut self,
        security: &mut S,
        message: Message,
        build: impl FnOnce(&mut S, &mut crate::wire::Writer<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { channel, transcript, .. } = self;
        channel.emit(security, ContentType::Handshake, |security, _, writer| {
            writer.u8(message as u8)?;
            writer.vector(3, |writer| build(security, writer))?;
            transcript.update(writer.written());
            Ok(())
        })
    }

    /// Sends a `change_cipher_spec`, which means nothing and which middleboxes wait for (§D.4).
    pub(crate) fn send_change_cipher_spec(
        &mut self,
        security: &mut impl Security,
    ) -> Result<(), Error> {
        let content = ContentType::ChangeCipherSpec;
        self.channel.emit(security, content, |_, _, writer| Ok(writer.u8(1)?))
    }

    /// A client's, before whatever it sends first of its second flight, or behind the first message where early
    /// data follows it.
    pub(crate) fn send_change_cipher_spec_once(
        &mut self,
        security: &mut impl Security,
    ) -> Result<(), Error> {
        if core::mem::replace(&mut self.is_change_cipher_spec_sent, true) {
            return Ok(());
        }
        self.send_change_cipher_spec(security)
    }

    /// The handshake secrets of both ends, and the keys of what is read now.
    pub(crate) fn handshake_secrets(&mut self, schedule: &Schedule) -> Result<(), Error> {
        let digest = self.transcript_digest()?;
        self.set_secrets(
            schedule.derive(b"c hs traffic", &digest),
            schedule.derive(b"s hs traffic", &digest),
        );
        #[cfg(feature = "keylog")]
        self.log_keys(true);
        Ok(())
    }

    /// The secrets after the handshake, from the digest of the transcript up to the server's
    /// `Finished`.
    pub(crate) fn application_secrets(
        &mut self,
        schedule: &Schedule,
        transcript: &[u8],
    ) -> Result<(), Error> {
        self.set_secrets(
            schedule.derive(b"c ap traffic", transcript),
            schedule.derive(b"s ap traffic", transcript),
        );
        self.exporter = schedule.derive(b"exp master", transcript);
        #[cfg(feature = "keylog")]
        {
            self.log_keys(false);
            self.key_log.keep_exporter(&self.exporter);
        }
        Ok(())
    }

    fn set_secrets(&mut self, client: HashValue, server: HashValue) {
        (self.own_secret, self.peer_secret) =
            if self.is_client { (client, server) } else { (server, client) };
    }

    #[cfg(feature = "keylog")]
    fn log_keys(&mut self, in_handshake: bool) {
        let (client, server) = if self.is_client {
            (&self.own_secret, &self.peer_secret)
        } else {
            (&self.peer_secret, &self.own_secret)
        };
        self.key_log.keep(in_handshake, client, server);
    }

    pub(crate) fn write_with_own_secret(&mut self) -> Result<(), Error> {
        self.channel.writing = Some(traffic_keys(self.suite()?, &self.own_secret));
        Ok(())
    }

    pub(crate) fn read_with_peer_secret(&mut self) -> Result<(), Error> {
        let keys = traffic_keys(self.suite()?, &self.peer_secret);
        self.channel.read_with(keys)
    }

    /// Checks the peer's `Finished`, `total` bytes at the front of what was opened.
    pub(crate) fn check_finished(&self, secret: &[u8], total: usize) -> Result<(), Error> {
        let hash = self.suite()?.hash();
        let expected = crate::schedule::finished(hash, secret, &self.transcript_digest()?);
        let found = &self.channel.opened()[4..total];
        if found.len() != expected.len() {
            return Err(Misbehaviour::Malformed.into());
        }
        if !tenure_crypto::equal(found, &expected) {
            return Err(Misbehaviour::BadProof.into());
        }
        Ok(())
    }

    /// Sends the own `Finished`.
    pub(crate) fn send_finished(&mut self, security: &mut impl Security) -> Result<(), Error> {
        let hash = self.suite()?.hash();
        let proof = crate::schedule::finished(hash, &self.own_secret, &self.transcript_digest()?);
        self.send_message(security, Message::Finished, |_, writer| Ok(writer.bytes(&proof)?))
    }

    /// A `KeyUpdate` of the peer (§4.6.3).
    fn key_update(&mut self, total: usize) -> Result<(), Error> {
        let mut body = Reader::new(&self.channel.opened()[4..total]);
        let request = body.u8()?;
        body.finish()?;
        if request > 1 {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        self.key_updates += 1;
        if self.key_updates > KEY_UPDATES_MAX {
            return Err(Misbehaviour::Flood.into());
        }
        self.channel.consume(total);
        let hash = self.suite()?.hash();
        self.peer_secret = expand_secret(hash, &self.peer_secret, b"traffic upd", &[]);
        self.read_with_peer_secret()?;
        // Requests that wait are answered once, however many there were.
        self.own_update_is_due |= request == 1 && !self.own_closed;
        Ok(())
    }

    /// Whether output has gone and input leaves room: a peer may ask for new keys, and fill the buffer behind that.
    fn has_room_for_key_update(&self) -> bool {
        self.channel.output().is_empty() && self.channel.content_room() >= KEY_UPDATE_BYTES
    }

    fn send_key_update(&mut self, security: &mut impl Security, asks: bool) -> Result<(), Error> {
        let body: [u8; KEY_UPDATE_BYTES] = [Message::KeyUpdate as u8, 0, 0, 1, u8::from(asks)];
        self.channel
            .emit(security, ContentType::Handshake, |_, _, writer| Ok(writer.bytes(&body)?))?;
        self.own_update_is_due = false;
        let hash = self.suite()?.hash();
        self.own_secret = expand_secret(hash, &self.own_secret, b"traffic upd", &[]);
        self.write_with_own_secret()
    }

    fn alert(&mut self, alert: Alert, security: &mut impl Security) {
        let level =
            if alert == Alert::CLOSE_NOTIFY || alert == Alert::USER_CANCELED { 1 } else { 2 };
        // Where there is no room for an alert, the peer learns of the end from the transport.
        if self.is_client && self.channel.writing.is_some() {
            let _ = self.send_change_cipher_spec_once(security);
        }
        let _ = self.channel.emit(security, ContentType::Alert, |_, _, writer| {
            Ok(writer.bytes(&[level, alert.0])?)
        });
    }

    pub(crate) fn fail(&mut self, error: Error, security: &mut impl Security) -> Error {
        if let Some(alert) = error.alert()
            && !self.own_closed
        {
            self.channel.drop_input();
            self.alert(alert, security);
            // `user_canceled` is no error alert, so that `close_notify` is due as well (§6.1).
            if alert == Alert::USER_CANCELED {
                self.alert(Alert::CLOSE_NOTIFY, security);
            }
        }
        self.error = Some(error);
        self.own_closed = true;
        self.peer_closed = true;
        self.forget();
        error
    }

    fn forget(&mut self) {
        self.channel.close();
        for secret in
            [&mut self.own_secret, &mut self.peer_secret, &mut self.exporter, &mut self.resumption]
        {
            *secret = HashValue::EMPTY;
        }
        crate::channel::wipe_stack();
    }
}

#[expect(private_bounds, reason = "nobody else writes a handshake")]
impl<H: Handshake> Connection<'_, H> {
    /// The free part of the buffer, to be filled with received bytes from its front.
    ///
    /// It is empty while data waits to be consumed or output to be sent that leaves no room.
    pub fn space(&mut self) -> &mut [u8] {
        self.core.channel.space()
    }

    /// Says that the transport received the first `length` bytes of [`Self::space`].
    pub fn received(&mut self, length: usize) {
        self.core.channel.received(length);
    }

    /// Copies `bytes` to [`Self::space`], as far as they fit, and returns how many did.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let space = self.space();
        let length = bytes.len().min(space.len());
        space[..length].copy_from_slice(&bytes[..length]);
        self.received(length);
        length
    }

    /// The bytes that the transport is to send.
    pub fn output(&self) -> &[u8] {
        self.core.channel.output()
    }

    /// Says that the transport sent the first `length` bytes of [`Self::output`].
    pub fn sent(&mut self, length: usize) {
        self.core.channel.sent(length);
    }

    /// Says that the transport receives no more: an error, if the peer didn't close before.
    ///
    /// # Errors
    /// [`Error::Truncated`], or the error that the connection ended by.
    pub fn end_of_input(&mut self, security: &mut impl Security) -> Result<(), Error> {
        match self.core.error {
            Some(error) => Err(error),
            None if self.core.peer_closed => Ok(()),
            None => Err(self.core.fail(Error::Truncated, security)),
        }
    }

    /// Handles what was received, up to the next event.
    ///
    /// # Errors
    /// Why the connection is over; an alert for the peer may be in [`Self::output`].
    pub fn poll(&mut self, security: &mut impl Security, now: &Now) -> Result<Event, Error> {
        if let Some(error) = self.core.error {
            return Err(error);
        }
        self.step(security, now).map_err(|error| self.core.fail(error, security))
    }

    /// When [`Self::poll`] must be called even if nothing comes in, in milliseconds of
    /// [`Now::uptime_ms`]: the end of the time for the handshake, and after that what
    /// [`Self::set_deadline_ms`] set.
    pub fn deadline_ms(&self) -> Option<u64> {
        let is_set = self.core.deadline_ms != NEVER && self.core.error.is_none();
        is_set.then_some(self.core.deadline_ms)
    }

    /// Ends the connection by [`Error::Deadline`] at `uptime_ms`, unless another is set before; none is
    /// never. Only the caller knows what a connection is for: it sets a deadline while it waits for the
    /// peer, and moves it when enough has come. That of the handshake can't be moved.
    pub fn set_deadline_ms(&mut self, uptime_ms: Option<u64>) {
        if self.core.connected_is_told {
            self.core.deadline_ms = uptime_ms.unwrap_or(NEVER);
        }
    }

    fn step(&mut self, security: &mut impl Security, now: &Now) -> Result<Event, Error> {
        if self.core.state == State::Start {
            self.handshake.start(&mut self.core, security)?;
        }
        if now.uptime_ms >= self.core.deadline_ms {
            return Err(Error::Deadline);
        }
        if core::mem::take(&mut self.core.ticket_waits) {
            let total = self.message_bytes().unwrap_or_default();
            self.core.channel.consume(total);
        }
        loop {
            let core = &mut self.core;
            if core.channel.holds_data() {
                return Ok(Event::Data);
            }
            if core.state.is_connected() && !core.connected_is_told {
                core.connected_is_told = true;
                core.deadline_ms = NEVER;
                core.channel.in_handshake = false;
                return Ok(Event::Connected);
            }
            if core.own_update_is_due && core.has_room_for_key_update() {
                core.send_key_update(security, false)?;
            }
            if core.peer_closed {
                return Ok(Event::PeerClosed);
            }
            match self.handle_message(security, now)? {
                Some(event) => return Ok(event),
                // The end of the handshake is told first.
                None if self.core.state.is_connected() && !self.core.connected_is_told => continue,
                None => {}
            }
            match self.core.channel.next_record(security)? {
                None => return Ok(Event::Idle),
                Some(Incoming::Data) => self.take_data()?,
                Some(Incoming::Alert(alert)) => self.take_alert(alert)?,
                Some(Incoming::Handshake | Incoming::Nothing) => {}
            }
        }
    }

    /// How many bytes the message at the front has, if that is known.
    fn message_bytes(&self) -> Option<usize> {
        let mut header = Reader::new(self.core.channel.opened());
        header.u8().ok()?;
        header.u24().ok().map(|length| 4 + length)
    }

    /// Handles the message at the front, or a part of it if it is certificates.
    fn handle_message(
        &mut self,
        security: &mut impl Security,
        now: &Now,
    ) -> Result<Option<Event>, Error> {
        loop {
            let Self { core, handshake } = self;
            if core.certificates.is_reading() {
                match core.certificates.read(&mut core.channel, &mut core.transcript)? {
                    Reading::Partial => return Ok(None),
                    Reading::Announced => return Ok(Some(Event::Certificate)),
                    reading => handshake.certificate(core, security, reading, now)?,
                }
                continue;
            }
            let Some(kind) = core.channel.opened().first() else { return Ok(None) };
            let message = core.state.due(*kind)?;
            if message == Message::Certificate {
                if !core.certificates.begin(&mut core.channel, &mut core.transcript)? {
                    return Ok(None);
                }
                continue;
            }
            let Some(total) = self.message_bytes() else { return Ok(None) };
            if total > self.core.channel.opened().len() {
                return Ok(None);
            }
            match message {
                Message::KeyUpdate => self.core.key_update(total)?,
                Message::NewSessionTicket => {
                    self.core.tickets += 1;
                    if self.core.tickets > TICKETS_MAX {
                        return Err(Misbehaviour::Flood.into());
                    }
                    self.handshake.message(&mut self.core, security, message, total)?;
                    if self.core.ticket_waits {
                        return Ok(Some(Event::Ticket));
                    }
                }
                _ => self.handshake.message(&mut self.core, security, message, total)?,
            }
            if self.core.state.is_connected() && !self.core.connected_is_told {
                return Ok(None);
            }
        }
    }

    fn take_data(&mut self) -> Result<(), Error> {
        let core = &mut self.core;
        let length = core.channel.opened().len();
        if length > 0 {
            core.key_updates = 0;
            core.tickets = 0;
        }
        if core.state.is_connected() {
            return Ok(());
        }
        if !core.takes_early_data || length > core.early_data_left {
            return Err(Misbehaviour::Unexpected.into());
        }
        core.early_data_left -= length;
        Ok(())
    }

    fn take_alert(&mut self, alert: Alert) -> Result<(), Error> {
        match alert {
            Alert::CLOSE_NOTIFY => {
                if !self.core.state.is_connected() {
                    return Err(Error::Alerted(alert));
                }
                self.core.peer_closed = true;
                Ok(())
            }
            // To be followed by a close (RFC 8446 §6.1).
            Alert::USER_CANCELED => Ok(()),
            alert => Err(Error::Alerted(alert)),
        }
    }

    /// Data of the peer that is not consumed; before the handshake is over, early data, which an
    /// attacker may have replayed.
    pub fn data(&mut self) -> &mut [u8] {
        self.core.channel.data_mut()
    }

    /// Consumes the first `length` bytes of [`Self::data`].
    pub fn consume(&mut self, length: usize) {
        if self.core.channel.holds_data() {
            self.core.channel.consume(length);
        }
    }

    /// Encrypts as much of `bytes` as fits into the buffer, in one record, and returns how much that
    /// was: nothing before the handshake is over, but for early data.
    ///
    /// # Errors
    /// The connection is over.
    pub fn send(&mut self, security: &mut impl Security, bytes: &[u8]) -> Result<usize, Error> {
        let core = &mut self.core;
        if let Some(error) = core.error {
            return Err(error);
        }
        let mut length = bytes.len().min(core.channel.content_room());
        if !core.state.is_connected() {
            length = if core.sends_early_data { length.min(core.early_data_left) } else { 0 };
        }
        if length == 0 || core.own_closed {
            return Ok(0);
        }
        // An update that the peer asked for goes out before more data (RFC 8446 §4.6.3).
        let writing = core.channel.writing.as_ref();
        let is_worn = writing.is_some_and(|it| it.sequence() >= RECORDS_PER_KEY);
        if core.state.is_connected() && (core.own_update_is_due || is_worn) {
            if !core.has_room_for_key_update() {
                return Ok(0);
            }
            core.send_key_update(security, false)?;
            length = length.min(core.channel.content_room());
        }
        let sent = core.channel.emit(security, ContentType::ApplicationData, |_, _, writer| {
            Ok(writer.bytes(&bytes[..length])?)
        });
        if let Err(error) = sent {
            return Err(core.fail(error, security));
        }
        if !core.state.is_connected() {
            core.early_data_left -= length;
        }
        Ok(length)
    }

    /// Changes the own keys, and asks the peer to change its own if `asks`.
    ///
    /// # Errors
    /// The connection is over or not connected yet, or the output leaves no room.
    pub fn update_keys(&mut self, security: &mut impl Security, asks: bool) -> Result<(), Error> {
        match self.core.error {
            Some(error) => Err(error),
            None if !self.core.state.is_connected() || self.core.own_closed => {
                Err(Error::Configuration)
            }
            None => self.core.send_key_update(security, asks),
        }
    }

    /// Says that this end sends no more. The peer may go on.
    pub fn close(&mut self, security: &mut impl Security) {
        if self.core.error.is_none() && !core::mem::replace(&mut self.core.own_closed, true) {
            self.core.alert(Alert::CLOSE_NOTIFY, security);
        }
        if self.core.peer_closed {
            self.core.forget();
        }
    }

    /// Whether the handshake is over.
    pub fn is_connected(&self) -> bool {
        self.core.state.is_connected() && self.core.error.is_none()
    }

    /// The suite, once it is chosen.
    pub fn suite(&self) -> Option<Suite> {
        self.core.suite
    }

    /// The group of the key agreement, once it is chosen; none if a pre-shared key did without.
    pub fn group(&self) -> Option<Group> {
        self.core.group
    }

    /// The algorithm by which the peer proved that it has its certificate's key, once it has.
    pub fn peer_signature(&self) -> Option<SignatureAlgorithm> {
        self.core.peer_signature
    }

    /// The secrets of this connection that are known so far, as lines of an `SSLKEYLOGFILE`. Each has
    /// the name of its kind, the client's random and the secret; who reads them reads the connection.
    #[cfg(feature = "keylog")]
    pub fn key_log(&self) -> crate::keylog::KeyLogLines<'_> {
        crate::keylog::KeyLogLines(&self.core.key_log)
    }

    /// The certificate that [`Event::Certificate`] announced, in DER, or the peer's key alone (RFC
    /// 7250).
    pub fn certificate(&self) -> Option<&[u8]> {
        self.core.certificates.announced(&self.core.channel)
    }

    /// The place of the certificate that an [`Error::Certificate`] is about, in the order in which they
    /// were announced.
    pub fn refused_certificate(&self) -> usize {
        self.core.certificates.refused_at()
    }

    /// Fills `output` with bytes that only the two ends know, bound to `label` and `context`
    /// (RFC 8446 §7.5).
    ///
    /// # Errors
    /// [`Error::Configuration`] before the handshake is over, or the error that the connection ended
    /// by.
    pub fn export(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Result<(), Error> {
        const LABEL_BYTES_MAX: usize = 249;
        let is_long = label.len() > LABEL_BYTES_MAX || output.len() > 255 * 32;
        if let Some(error) = self.core.error {
            return Err(error);
        }
        if !self.core.state.is_connected() || self.core.exporter.is_empty() || is_long {
            return Err(Error::Configuration);
        }
        let hash = self.core.suite()?.hash();
        let secret = expand_secret(hash, &self.core.exporter, label, &hash.digest(&[]));
        expand_label(hash, &secret, b"exporter", &hash.digest(&[context]), output);
        Ok(())
    }
}
