//! A connection to a server: TCP, and TLS 1.3 over it where the URL says so.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tenure_board_linux::{DialError, LinuxEntropy, dial};
use tenure_crypto::{Group, Software};
use tenure_tls::x509::ServerName;
use tenure_tls::{Client, Link, Network, Received};
use tenure_tls_client::{Dates, Keeper};
use tenure_wire::NoResult;
use tenure_wire::url::Host;

use crate::Failure;
use crate::address::{is_elsewhere, is_public};

/// The buffer that a connection's TLS works in, in bytes: a record, and what is sent.
pub(crate) const TLS_BUFFER_BYTES: usize = 20 * 1024;
/// The most bytes that one read takes.
const CHUNK_BYTES: usize = 16 * 1024;
/// How long the rest of a TLS record is waited for whose beginning came unasked.
const GLANCE: Duration = Duration::from_millis(50);
/// The groups of the key agreement.
pub(crate) const GROUPS: &[Group] = &[Group::X25519, Group::Secp256r1];

/// The name by which a server's certificate is judged.
pub(crate) fn server_name(host: &Host) -> ServerName<'_> {
    match host {
        Host::Name(name) => ServerName::Dns(name),
        Host::Address(address) => ServerName::from(*address),
    }
}

/// Opens a TCP connection to a port of `host` until `deadline`; `find` gives a name's addresses. The address that is judged is
/// the one that is connected to.
///
/// # Errors
/// [`Failure`]: the name has no address, or none on the public network, or nobody answers there.
pub(crate) fn connect(
    (host, port): (&Host, u16),
    find: impl FnOnce(&str) -> Result<Vec<IpAddr>, Failure>,
    deadline: Instant,
) -> Result<TcpStream, Failure> {
    let addresses = match host {
        // An address was granted as such.
        Host::Address(address) => vec![*address],
        Host::Name(name) => public_of(name, find(name)?)?,
    };
    let addresses: Vec<SocketAddr> =
        addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
    dial(&addresses, deadline).map_err(|error| {
        let reason = match error {
            DialError::Late => NoResult::Deadline,
            DialError::Failed(..) => NoResult::Unreachable,
        };
        Failure::new(reason, error.to_string())
    })
}

/// The addresses of the public network, and not of this computer's own one, among those that `name` leads to.
fn public_of(name: &str, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Failure> {
    let public: Vec<IpAddr> =
        found.iter().copied().filter(|address| is_elsewhere(*address)).collect();
    match (public.is_empty(), found.first()) {
        (false, _) => Ok(public),
        (true, None) => Err(Failure::new(NoResult::NotFound, format!("{name} has no address"))),
        (true, Some(first)) => {
            let which = match is_public(*first) {
                true => "one of this computer's own network",
                false => "no address of the public network",
            };
            let why = format!(
                "{name} leads to {first}, which is {which}; grant the address itself to allow that"
            );
            Err(Failure::new(NoResult::Denied, why))
        }
    }
}

/// A connection that bytes go through, each time until a deadline.
pub(crate) struct Stream<'a> {
    link: Link<'a, Tcp, Option<Keeper>>,
    security: Software<LinuxEntropy>,
    start: Instant,
    dates: Dates,
}

/// The network below.
struct Tcp {
    stream: TcpStream,
    deadline: Instant,
    /// The bytes that were sent and received.
    traffic: (u64, u64),
}

impl<'a> Stream<'a> {
    /// A connection without TLS.
    pub(crate) fn plain(tcp: TcpStream, dates: &Dates) -> Self {
        let start = Instant::now();
        Self::new(Link::plain(Tcp::new(tcp, start)).keeping(None), start, dates)
    }

    /// A connection over TLS through `client`, which was made at `start`; its handshake is done by `deadline`, and the server's
    /// certificate judged by `dates`. `keeper` gets its tickets.
    ///
    /// # Errors
    /// [`Failure`]: the server proves nothing that is trusted, or breaks off.
    pub(crate) fn secure(
        tcp: TcpStream,
        (client, keeper): (Client<'a, 'a>, Keeper),
        dates: &Dates,
        (start, deadline): (Instant, Instant),
    ) -> Result<Self, Failure> {
        let link = Link::secure(Tcp::new(tcp, deadline), client).keeping(Some(keeper));
        let mut stream = Self::new(link, start, dates);
        let Self { link, security, dates, .. } = &mut stream;
        // The network waits, so that it comes to an end either way.
        while !link
            .connect(security, || dates.now(start))
            .map_err(|error| Failure::of_link(error, dates))?
        {}
        Ok(stream)
    }

    fn new(link: Link<'a, Tcp, Option<Keeper>>, start: Instant, dates: &Dates) -> Self {
        Self { link, security: Software::new(LinuxEntropy), start, dates: dates.clone() }
    }

    /// Whether the server took a ticket.
    pub(crate) fn is_resumed(&self) -> bool {
        self.link.is_resumed()
    }

    /// The bytes that were sent and received on the network.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.link.network().traffic
    }

    /// Sends all of `bytes` by `deadline`.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) fn send(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), Failure> {
        self.link.network_mut().deadline = deadline;
        let sent = self.link.send(&mut self.security, bytes);
        let sent = sent.map_err(|error| Failure::of_link(error, &self.dates))?;
        if sent < bytes.len() {
            return Err(Failure::new(NoResult::Unreachable, "the connection takes no more"));
        }
        Ok(())
    }

    /// Appends what comes next to `into`, and returns whether the server may send more.
    ///
    /// # Errors
    /// [`Failure`]: the deadline passed, or the connection broke off, which over TLS a server would have announced.
    pub(crate) fn receive(
        &mut self,
        into: &mut Vec<u8>,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        self.link.network_mut().deadline = deadline;
        let before = into.len();
        into.resize(before + CHUNK_BYTES, 0);
        let room = into.get_mut(before..).unwrap_or_default();
        let Self { link, security, start, dates } = self;
        let received = link.receive(security, || dates.now(*start), room);
        let length = if let Ok(Received::Bytes(length)) = received { length } else { 0 };
        into.truncate(before + length);
        Ok(received.map_err(|error| Failure::of_link(error, dates))? != Received::End)
    }
}

impl Stream<'_> {
    /// The socket below, to wait for.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.link.network().stream
    }

    /// Whether something waits in the socket, or its end; TLS may hold more.
    pub(crate) fn has_come(&self) -> bool {
        self.link.network().has_come()
    }

    /// Whether nothing has come that nobody asked for, nor the connection's end. Over TLS a ticket may have.
    pub(crate) fn is_quiet(&mut self) -> bool {
        while self.has_come() {
            let mut unasked = Vec::new();
            match self.receive(&mut unasked, Instant::now() + GLANCE) {
                Ok(true) if unasked.is_empty() => {}
                Err(failure) if failure.reason == NoResult::Deadline && unasked.is_empty() => {}
                Ok(_) | Err(_) => return false,
            }
        }
        true
    }
}

impl Tcp {
    /// Whether bytes wait to be read, or the connection has ended.
    fn has_come(&self) -> bool {
        let is_set = |it: bool| self.stream.set_nonblocking(it).is_ok();
        if !is_set(true) {
            return true;
        }
        let peeked = self.stream.peek(&mut [0]);
        let is_nothing = peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        !is_set(false) || !is_nothing
    }

    fn new(stream: TcpStream, deadline: Instant) -> Self {
        Self { stream, deadline, traffic: (0, 0) }
    }
}

/// It waits until the deadline.
impl Network for Tcp {
    type Error = Failure;

    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        loop {
            let left = left_until(self.deadline)?;
            self.stream.set_write_timeout(Some(left)).map_err(Failure::of_io)?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(Failure::of_io(ErrorKind::WriteZero.into())),
                Ok(sent) => {
                    self.traffic.0 += sent as u64;
                    return Ok(sent);
                }
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(Failure::of_io(error)),
            }
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        loop {
            let left = left_until(self.deadline)?;
            self.stream.set_read_timeout(Some(left)).map_err(Failure::of_io)?;
            match self.stream.read(into) {
                Ok(0) => return Ok(Received::End),
                Ok(length) => {
                    self.traffic.1 += length as u64;
                    return Ok(Received::Bytes(length));
                }
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(Failure::of_io(error)),
            }
        }
    }
}

fn left_until(deadline: Instant) -> Result<Duration, Failure> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Failure::new(NoResult::Deadline, "the server didn't answer in time"));
    }
    Ok(left)
}

/// Whether an error only says that nothing went through in time.
fn is_patience(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
