//! A shim for BoGo, the test runner of BoringSSL (its `ssl/test/PORTING.md`): it connects to the runner, is client or server
//! as the flags say, sends back each byte that comes, inverted, and checks what the flags expect.
//!
//! It exits with 0 if all was as expected, with 1 and the reason if not, and with 89 if it is asked for something that
//! isn't here: a flag that it doesn't know, or TLS 1.2. `cargo xtask suites bogo` builds it and judges what the runner says.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tenure_crypto::{Group, Software};
use tenure_hal::{Entropy, EntropyError};
use tenure_tls::x509::{Anchor, ServerName, UnixTime, parse_private_key};
use tenure_tls::{
    Alert, Client, ClientConfig, EarlyDataGuard, Error, Event, Identity, Misbehaviour, Now,
    PreSharedKey, Server, ServerConfig, Suite, Ticket, TicketKey, Trust, group_number, scheme_name,
};

/// The code of a shim that doesn't have what a test needs.
const UNIMPLEMENTED: u8 = 89;
/// The bytes that the runner expects first where it asks for some.
const INITIAL_WRITE: &str = "hello";
/// The name in the runner's certificates.
const CERTIFIED_NAME: &str = "test";
const TLS_1_3: u16 = 0x0304;
const BUFFER_BYTES: usize = 60_000;
const EARLY_DATA_BYTES_MAX: u32 = 14_336;
const HANDSHAKE_MS_MAX: u64 = 20_000;
const GROUPS: [Group; 4] =
    [Group::X25519, Group::Secp256r1, Group::Secp384r1, Group::X25519MlKem768];

/// The signature algorithms of a handshake, by number and name.
const SCHEMES: [(u16, &str); 6] = [
    (0x0403, "ecdsa_secp256r1_sha256"),
    (0x0503, "ecdsa_secp384r1_sha384"),
    (0x0804, "rsa_pss_rsae_sha256"),
    (0x0805, "rsa_pss_rsae_sha384"),
    (0x0806, "rsa_pss_rsae_sha512"),
    (0x0807, "ed25519"),
];

/// Why a connection wasn't what the runner wants.
#[derive(Debug)]
enum Failure {
    /// It needs what isn't here.
    Unimplemented(String),
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = format!("{error} ({error:?})");
        match error {
            Error::Peer(Misbehaviour::OldVersion) | Error::Alerted(Alert::PROTOCOL_VERSION) => {
                Self::Unimplemented(text)
            }
            _ => Self::Wrong(text),
        }
    }
}

fn check(is_right: bool, text: &str) -> Result<(), Failure> {
    if is_right { Ok(()) } else { Err(Failure::Wrong(text.to_owned())) }
}

/// The wishes of the runner for one connection.
#[derive(Clone, Default)]
struct Asked {
    port: u16,
    shim_id: u64,
    is_ipv6: bool,
    is_server: bool,
    resumptions: u32,
    resumption_delay_s: u64,
    chain: Option<String>,
    key: Option<String>,
    trust: Option<String>,
    groups: Vec<Group>,
    host_name: Option<String>,
    advertised_protocols: Vec<u8>,
    selected_protocol: String,
    expected_protocol: String,
    asks_for_certificate: bool,
    needs_certificate: bool,
    sends_no_ticket: bool,
    takes_early_data: bool,
    writes_first: bool,
    initial_write: Option<String>,
    initial_writes: Option<u32>,
    writes_many_sizes: bool,
    shuts_down: bool,
    checks_close: bool,
    updates_after_read: bool,
    updates_before_read: bool,
    export_bytes: usize,
    export_label: String,
    export_context: String,
    expects_miss: bool,
    expects_no_session: bool,
    expects_early_ticket: bool,
    expects_accepted: bool,
    expects_refused: bool,
    expects_no_offer: bool,
    expected_group: Option<u16>,
    expected_suite: Option<u16>,
    expected_signature: Option<&'static str>,
}

impl Asked {
    /// Takes the flag `name`, with its value from `rest`; none if there is no such thing here.
    fn take(&mut self, name: &str, rest: &mut std::slice::Iter<'_, String>) -> Option<()> {
        let mut text = || rest.next().cloned();
        match name {
            "-port" => self.port = number(text()?)?,
            "-shim-id" => self.shim_id = number(text()?)?,
            "-ipv6" => self.is_ipv6 = true,
            "-server" => self.is_server = true,
            "-resume-count" => self.resumptions = number(text()?)?,
            "-resumption-delay" => self.resumption_delay_s = number(text()?)?,
            "-cert-file" => self.chain = Some(text()?),
            "-key-file" => self.key = Some(text()?),
            "-trust-cert" => self.trust = text().map(Some)?.filter(|path| !path.is_empty()),
            "-curves" => {
                let number: u16 = number(text()?)?;
                self.groups.push(GROUPS.into_iter().find(|it| group_number(*it) == number)?);
            }
            "-host-name" => self.host_name = Some(text()?),
            "-advertise-alpn" => self.advertised_protocols = text()?.into_bytes(),
            "-select-alpn" => self.selected_protocol = text()?,
            "-expect-alpn" => self.expected_protocol = text()?,
            "-verify-peer" => self.asks_for_certificate = true,
            "-require-any-client-certificate" => self.needs_certificate = true,
            "-no-ticket" => self.sends_no_ticket = true,
            "-enable-early-data" => self.takes_early_data = true,
            "-shim-writes-first" => self.writes_first = true,
            "-shim-initial-write" => self.initial_write = Some(text()?),
            "-repeat-shim-initial-write" => self.initial_writes = Some(number(text()?)?),
            "-write-different-record-sizes" => self.writes_many_sizes = true,
            "-shim-shuts-down" => self.shuts_down = true,
            "-check-close-notify" => self.checks_close = true,
            "-key-update" => self.updates_after_read = true,
            "-key-update-before-read" => self.updates_before_read = true,
            "-export-keying-material" => self.export_bytes = number(text()?)?,
            "-export-label" => self.export_label = text()?,
            "-export-context" => self.export_context = text()?,
            "-expect-session-miss" => self.expects_miss = true,
            "-expect-no-session" => self.expects_no_session = true,
            "-expect-ticket-supports-early-data" => self.expects_early_ticket = true,
            "-expect-accept-early-data" => self.expects_accepted = true,
            "-expect-reject-early-data" => self.expects_refused = true,
            "-expect-no-offer-early-data" => self.expects_no_offer = true,
            "-expect-curve-id" => self.expected_group = Some(number(text()?)?),
            "-expect-peer-signature-algorithm" => {
                let number: u16 = number(text()?)?;
                self.expected_signature = Some(SCHEMES.iter().find(|it| it.0 == number)?.1);
            }
            "-expect-cipher" => self.expected_suite = Some(number(text()?)?),
            "-expect-version" | "-max-version" => {
                (number::<u16>(text()?)? == TLS_1_3).then_some(())?
            }
            "-min-version" => (number::<u16>(text()?)? <= TLS_1_3).then_some(())?,
            // Only BoringSSL tells why early data isn't taken.
            "-expect-early-data-reason" => drop(text()?),
            // These are always so here, or name ways of calling BoringSSL's interface.
            "-async"
            | "-partial-write"
            | "-implicit-handshake"
            | "-no-op-extra-handshake"
            | "-handshake-twice"
            | "-handshake-never-done"
            | "-permute-extensions"
            | "-no-tls1"
            | "-no-tls11"
            | "-no-tls12"
            | "-no-legacy-server-connect"
            | "-server-preference"
            | "-use-export-context"
            | "-use-early-callback"
            | "-use-old-client-cert-callback"
            | "-expect-verify-result"
            | "-expect-extended-master-secret"
            | "-decline-alpn"
            | "-renegotiate-freely"
            | "-renegotiate-ignore"
            | "-renegotiate-once" => {}
            _ => return None,
        }
        Some(())
    }

    /// The wishes for the first connection, and for those that resume it.
    fn parse(arguments: &[String]) -> Result<[Self; 2], Failure> {
        let mut asked = [Self::default(), Self::default()];
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let before = rest.clone();
            let prefixes = [("-on-initial", 0..1), ("-on-resume", 1..2), ("-on-retry", 1..2)];
            let of_some = prefixes
                .into_iter()
                .find_map(|(prefix, range)| flag.strip_prefix(prefix).map(|name| (name, range)));
            let (name, range) = of_some.unwrap_or((flag, 0..2));
            for one in &mut asked[range] {
                rest = before.clone();
                let taken = one.take(name, &mut rest);
                taken.ok_or_else(|| Failure::Unimplemented(flag.clone()))?;
            }
        }
        Ok(asked)
    }

    fn groups(&self) -> &[Group] {
        if self.groups.is_empty() { &GROUPS } else { &self.groups }
    }

    /// The words that are written before anything is read, each in a record of its own.
    fn first_words(&self) -> Vec<&[u8]> {
        let words = self.initial_write.as_deref().unwrap_or(INITIAL_WRITE);
        let times = if self.writes_first { self.initial_writes.unwrap_or(1) } else { 0 };
        vec![words.as_bytes(); times as usize]
    }
}

fn number<T: std::str::FromStr>(text: String) -> Option<T> {
    text.parse().ok()
}

/// The system's randomness.
struct System;

impl Entropy for System {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let source = File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes));
        source.map_err(|_| EntropyError)
    }
}

/// A client or a server.
trait End {
    fn poll(&mut self, security: &mut Software<System>, now: &Now) -> Result<Event, Error>;
    fn space(&mut self) -> &mut [u8];
    fn received(&mut self, length: usize);
    fn output(&self) -> &[u8];
    fn sent(&mut self, length: usize);
    fn take(&mut self) -> Vec<u8>;
    fn send(&mut self, security: &mut Software<System>, bytes: &[u8]) -> Result<usize, Error>;
    fn update_keys(&mut self, security: &mut Software<System>) -> Result<(), Error>;
    fn close(&mut self, security: &mut Software<System>);
    fn export(&self, asked: &Asked) -> Result<Vec<u8>, Error>;
    fn facts(&self) -> (Option<Suite>, Option<Group>, bool, Vec<u8>);
    fn signature(&self) -> Option<&'static str>;
    /// Sends the part that goes out before anything comes in.
    fn begin(&mut self, security: &mut Software<System>, now: &Now) -> Result<(), Error>;
    /// Sends the part that goes out after the handshake.
    fn after(&mut self, security: &mut Software<System>, now: &Now) -> Result<(), Error>;
    fn took_early_data(&self) -> Option<bool>;
    fn ticket(&self) -> Option<Ticket<'_>>;
}

/// The common part of both ends, which have no common trait that others may name.
macro_rules! end {
    () => {
        fn poll(&mut self, security: &mut Software<System>, now: &Now) -> Result<Event, Error> {
            Self::poll(self, security, now)
        }
        fn space(&mut self) -> &mut [u8] {
            Self::space(self)
        }
        fn received(&mut self, length: usize) {
            Self::received(self, length);
        }
        fn output(&self) -> &[u8] {
            Self::output(self)
        }
        fn sent(&mut self, length: usize) {
            Self::sent(self, length);
        }
        fn take(&mut self) -> Vec<u8> {
            let data = self.data().to_vec();
            self.consume(data.len());
            data
        }
        fn send(&mut self, security: &mut Software<System>, bytes: &[u8]) -> Result<usize, Error> {
            Self::send(self, security, bytes)
        }
        fn update_keys(&mut self, security: &mut Software<System>) -> Result<(), Error> {
            Self::update_keys(self, security, false)
        }
        fn close(&mut self, security: &mut Software<System>) {
            Self::close(self, security);
        }
        fn export(&self, asked: &Asked) -> Result<Vec<u8>, Error> {
            let mut output = vec![0; asked.export_bytes];
            let (label, context) = (asked.export_label.as_bytes(), asked.export_context.as_bytes());
            Self::export(self, label, context, &mut output)?;
            Ok(output)
        }
        fn facts(&self) -> (Option<Suite>, Option<Group>, bool, Vec<u8>) {
            let protocol = self.application_protocol().unwrap_or_default().to_vec();
            (self.suite(), self.group(), self.is_resumed(), protocol)
        }
        fn signature(&self) -> Option<&'static str> {
            self.peer_signature().and_then(scheme_name)
        }
    };
}

impl End for Client<'_, '_> {
    end!();

    fn begin(&mut self, security: &mut Software<System>, now: &Now) -> Result<(), Error> {
        Self::poll(self, security, now).map(drop)
    }

    fn after(&mut self, _: &mut Software<System>, _: &Now) -> Result<(), Error> {
        Ok(())
    }

    fn took_early_data(&self) -> Option<bool> {
        Self::took_early_data(self)
    }

    fn ticket(&self) -> Option<Ticket<'_>> {
        Self::ticket(self)
    }
}

impl End for Server<'_, '_> {
    end!();

    fn begin(&mut self, _: &mut Software<System>, _: &Now) -> Result<(), Error> {
        Ok(())
    }

    fn after(&mut self, security: &mut Software<System>, now: &Now) -> Result<(), Error> {
        self.send_ticket(security, now)
    }

    fn took_early_data(&self) -> Option<bool> {
        None
    }

    fn ticket(&self) -> Option<Ticket<'_>> {
        None
    }
}

/// The client's ticket for the next connection.
struct Kept {
    identity: Vec<u8>,
    key: Vec<u8>,
    suite: Suite,
    age_add: u32,
    lifetime_ms: u64,
    early_data_bytes_max: u32,
    came_ms: u64,
    /// The application protocol of its connection.
    protocol: Vec<u8>,
}

impl Kept {
    fn new(ticket: &Ticket<'_>, now: &Now, protocol: Vec<u8>) -> Self {
        Self {
            identity: ticket.identity.to_vec(),
            key: ticket.key.to_vec(),
            suite: ticket.suite,
            age_add: ticket.age_add,
            lifetime_ms: u64::from(ticket.lifetime_s) * 1000,
            early_data_bytes_max: ticket.early_data_bytes_max,
            came_ms: now.uptime_ms,
            protocol,
        }
    }

    /// Whether its early data can be of a connection that offers `protocols` (RFC 8446 §4.2.10).
    fn is_for(&self, protocols: &[&[u8]]) -> bool {
        self.protocol.is_empty() || protocols.contains(&&*self.protocol)
    }

    /// The key, unless it is too old.
    fn key(&self, now: &Now) -> Option<PreSharedKey<'_>> {
        let age_ms = now.uptime_ms - self.came_ms;
        (age_ms < self.lifetime_ms).then_some(PreSharedKey {
            identity: &self.identity,
            key: &self.key,
            suite: self.suite,
            is_external: false,
            obfuscated_age: self.age_add.wrapping_add(age_ms as u32),
            early_data_bytes_max: self.early_data_bytes_max,
        })
    }
}

/// The state that lasts from one connection to the next.
struct Shim {
    clock: Clock,
    ticket_key: TicketKey,
    guard: EarlyDataGuard,
    kept: Option<Kept>,
}

/// A clock that stands still unless it is set ahead, as BoringSSL's: the runner compares ages.
#[derive(Clone, Copy)]
struct Clock {
    date: Duration,
    ahead: Duration,
}

impl Clock {
    fn now(&self) -> Now {
        let date = self.date + self.ahead;
        let uptime_ms = self.ahead.as_millis() as u64;
        Now { uptime_ms, date: Some(UnixTime(date.as_secs() as i64)) }
    }
}

impl Shim {
    /// One connection as `asked`; `is_resumption` after the first.
    fn connect(&mut self, asked: &Asked, is_resumption: bool) -> Result<(), Failure> {
        let chain = asked.chain.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let chain: Vec<&[u8]> = chain.iter().map(|der| &**der).collect();
        let key = asked.key.as_deref().map(PrivateKeyDer::from_pem_file).transpose();
        let key = key.map_err(|error| Failure::Wrong(format!("the key: {error}")))?;
        let key = key.as_ref().map(|der| parse_private_key(der.secret_der())).transpose();
        let key = key.map_err(|error| Failure::Unimplemented(format!("the key: {error}")))?;
        let identity = key.map(|key| Identity { chain: &chain, key });
        let roots = asked.trust.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let anchors: Result<Vec<_>, _> =
            roots.iter().map(|der| Anchor::from_certificate(der)).collect();
        let anchors =
            anchors.map_err(|error| Failure::Unimplemented(format!("the root: {error}")))?;
        let of_anchors = Trust::Anchors { anchors: &anchors, without_date: &[] };
        if asked.is_server {
            // Nothing is sent before the client has proved that it is there.
            if asked.expects_accepted {
                return Err(Failure::Unimplemented("data before the end of the handshake".into()));
            }
            let protocol = [asked.selected_protocol.as_bytes()];
            let asks = asked.asks_for_certificate || asked.needs_certificate;
            let identities: Vec<_> = identity.into_iter().collect();
            let config = ServerConfig {
                identities: &identities,
                suites: Suite::ALL,
                groups: asked.groups(),
                application_protocols: if protocol[0].is_empty() { &[] } else { &protocol },
                client_trust: asks.then_some(of_anchors),
                client_must_prove: asked.needs_certificate,
                pre_shared_keys: &[],
                ticket_key: (!asked.sends_no_ticket).then_some(&self.ticket_key),
                early_data_bytes_max: if asked.takes_early_data { EARLY_DATA_BYTES_MAX } else { 0 },
                handshake_ms_max: HANDSHAKE_MS_MAX,
            };
            let mut buffer = vec![0; BUFFER_BYTES];
            let end = Server::new(&mut buffer, &config, Some(&self.guard), &self.clock.now())?;
            return Exchange::run(end, asked, self.clock, is_resumption).map(drop);
        }
        let name = asked.host_name.as_deref().unwrap_or(CERTIFIED_NAME);
        let kept = self.kept.take();
        let protocols = protocols(&asked.advertised_protocols);
        let config = ClientConfig {
            server_name: ServerName::Dns(name),
            trust: of_anchors,
            suites: Suite::ALL,
            groups: asked.groups(),
            application_protocols: &protocols,
            identity,
            pre_shared_key: kept.as_ref().and_then(|kept| kept.key(&self.clock.now())),
            early_data: asked.takes_early_data
                && kept.as_ref().is_some_and(|it| it.is_for(&protocols)),
            handshake_ms_max: HANDSHAKE_MS_MAX,
        };
        let mut buffer = vec![0; BUFFER_BYTES];
        let end = Client::new(&mut buffer, &config, &self.clock.now())?;
        let new = Exchange::run(end, asked, self.clock, is_resumption)?;
        // A client that shuts down at once may or may not have read a ticket.
        let is_as_due = asked.shuts_down || new.is_some() != asked.expects_no_session;
        check(is_as_due, "a ticket, or none, contrary to what is expected")?;
        if let Some(new) = &new {
            let allows = new.early_data_bytes_max > 0;
            check(
                allows == asked.expects_early_ticket,
                "the ticket's early data isn't as expected",
            )?;
        }
        self.kept = new;
        Ok(())
    }
}

/// The certificates in a PEM file.
fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    found.map_err(|error| Failure::Wrong(format!("{path}: {error}")))
}

/// The protocols of a list as it stands on the wire.
fn protocols(mut list: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let [length, rest @ ..] = list {
        let (protocol, more) = rest.split_at(usize::from(*length));
        found.push(protocol);
        list = more;
    }
    found
}

/// One connection over a socket.
struct Exchange<'a, E> {
    end: E,
    asked: &'a Asked,
    stream: TcpStream,
    security: Software<System>,
    clock: Clock,
    /// How much was written as early data.
    early_bytes: usize,
    kept: Option<Kept>,
}

impl<E: End> Exchange<'_, E> {
    /// Connects, and returns the ticket for the next time.
    fn run(
        end: E,
        asked: &Asked,
        clock: Clock,
        is_resumption: bool,
    ) -> Result<Option<Kept>, Failure> {
        let failed = |error: std::io::Error| Failure::Wrong(format!("the runner: {error}"));
        let stream = if asked.is_ipv6 {
            TcpStream::connect((Ipv6Addr::LOCALHOST, asked.port))
        } else {
            TcpStream::connect((Ipv4Addr::LOCALHOST, asked.port))
        };
        let mut stream = stream.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.write_all(&asked.shim_id.to_le_bytes()).map_err(failed)?;
        let security = Software::new(System);
        let mut exchange =
            Exchange { end, asked, stream, security, clock, early_bytes: 0, kept: None };
        let ended = exchange.go_through(is_resumption);
        exchange.flush();
        // The output must reach the runner, an alert above all.
        let _ = exchange.stream.shutdown(Shutdown::Write);
        let _ = exchange.stream.read_to_end(&mut Vec::new());
        ended.map(|()| exchange.kept)
    }

    fn go_through(&mut self, is_resumption: bool) -> Result<(), Failure> {
        self.end.begin(&mut self.security, &self.clock.now())?;
        for words in self.asked.first_words() {
            self.early_bytes += self.end.send(&mut self.security, words)?;
            self.flush();
        }
        let (mut is_connected, mut is_update_due) = (false, self.asked.updates_before_read);
        loop {
            let event = self.end.poll(&mut self.security, &self.clock.now());
            self.flush();
            match event? {
                Event::Certificate => {}
                Event::Connected => {
                    is_connected = true;
                    self.connected(is_resumption)?;
                    if self.asked.shuts_down {
                        self.end.close(&mut self.security);
                        self.flush();
                        if !self.asked.checks_close {
                            return Ok(());
                        }
                    }
                }
                Event::Ticket => {
                    let (now, protocol) = (self.clock.now(), self.end.facts().3);
                    self.kept = self.end.ticket().map(|it| Kept::new(&it, &now, protocol));
                }
                Event::Data => {
                    let data = self.end.take();
                    if !self.asked.shuts_down && is_connected {
                        self.answer(&data)?;
                        is_update_due = self.asked.updates_before_read;
                    }
                }
                Event::PeerClosed => {
                    self.end.close(&mut self.security);
                    return Ok(());
                }
                Event::Idle => {
                    if is_connected && core::mem::take(&mut is_update_due) {
                        self.end.update_keys(&mut self.security)?;
                        self.flush();
                    }
                    let length = self.stream.read(self.end.space()).unwrap_or(0);
                    self.end.received(length);
                    if length == 0 {
                        check(is_connected, "the runner closed within the handshake")?;
                        check(!self.asked.checks_close, "the runner closed without saying so")?;
                        self.end.close(&mut self.security);
                        return Ok(());
                    }
                }
            }
        }
    }

    fn connected(&mut self, is_resumption: bool) -> Result<(), Failure> {
        let asked = self.asked;
        let (suite, group, is_resumed, protocol) = self.end.facts();
        let is_due = is_resumption && !asked.expects_miss;
        check(is_resumed == is_due, "resumed, or not, contrary to what is expected")?;
        let own = if asked.is_server { &asked.selected_protocol } else { &asked.expected_protocol };
        check(protocol == own.as_bytes(), "another application protocol than is expected")?;
        if let Some(expected) = asked.expected_group {
            check(group.map(group_number) == Some(expected), "another group than is expected")?;
        }
        if let Some(expected) = asked.expected_suite {
            check(suite.map(Suite::number) == Some(expected), "another suite than is expected")?;
        }
        // On resumption there is no signature; BoringSSL's sessions keep the first one's.
        if let (Some(expected), false) = (asked.expected_signature, is_resumed) {
            let is_so = self.end.signature() == Some(expected);
            check(is_so, "another signature algorithm than is expected")?;
        }
        let took = self.end.took_early_data();
        check(!asked.expects_accepted || took == Some(true), "early data was refused")?;
        check(!asked.expects_refused || took != Some(true), "early data was taken")?;
        check(!asked.expects_no_offer || took.is_none(), "early data was offered")?;
        self.end.after(&mut self.security, &self.clock.now())?;
        if asked.export_bytes > 0 {
            let exported = self.end.export(asked)?;
            self.write(&exported)?;
        }
        if asked.writes_many_sizes {
            for length in [0, 1, 255, 256, 257, 16383, 16384, 16385, 32767, 32768, 32769] {
                self.write(&vec![0x42; length])?;
            }
        }
        // After refused early data, BoringSSL's shim asks for the flags of another try, which writes nothing.
        if took == Some(false) {
            return Ok(());
        }
        let words = asked.first_words();
        let mut sent = self.early_bytes;
        for words in words {
            let skipped = sent.min(words.len());
            self.write(&words[skipped..])?;
            sent -= skipped;
        }
        Ok(())
    }

    fn answer(&mut self, data: &[u8]) -> Result<(), Failure> {
        if self.asked.updates_after_read {
            self.end.update_keys(&mut self.security)?;
        }
        let inverted: Vec<u8> = data.iter().map(|byte| byte ^ 0xff).collect();
        self.write(&inverted)
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let sent = self.end.send(&mut self.security, bytes)?;
            self.flush();
            check(sent > 0, "there is no room to write")?;
            bytes = &bytes[sent..];
        }
        self.flush();
        Ok(())
    }

    fn flush(&mut self) {
        // A runner that has gone says why itself.
        let _ = self.stream.write_all(self.end.output());
        let length = self.end.output().len();
        self.end.sent(length);
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let [first, later] = Asked::parse(arguments)?;
    let date = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = Clock { date, ahead: Duration::ZERO };
    let ticket_key = TicketKey::generate(&mut Software::new(System))?;
    let mut shim = Shim { clock, ticket_key, guard: EarlyDataGuard::new(), kept: None };
    shim.connect(&first, false)?;
    for _ in 0..first.resumptions {
        shim.clock.ahead += Duration::from_secs(later.resumption_delay_s);
        shim.connect(&later, true)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|it| it == "-is-handshaker-supported") {
        println!("No");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Unimplemented(what)) => {
            eprintln!("not here: {what}");
            ExitCode::from(UNIMPLEMENTED)
        }
        Err(Failure::Wrong(what)) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}
