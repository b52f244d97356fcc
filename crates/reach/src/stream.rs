//! A connection to a server: TCP, and TLS 1.3 over it where the URL says so.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tenure_board_linux::LinuxEntropy;
use tenure_crypto::{Group, Software};
use tenure_tls::x509::{ServerName, UnixTime};
use tenure_tls::{Client, Event, Now};
use tenure_wire::NoResult;
use tenure_wire::url::{Host, Origin};

use crate::Failure;
use crate::address::is_public;

/// The buffer that a connection's TLS works in, in bytes: a record, and what is sent.
pub(crate) const TLS_BUFFER_BYTES: usize = 20 * 1024;
/// The most bytes that one read takes.
const CHUNK_BYTES: usize = 16 * 1024;
/// How long one address of a name may take before the next is tried.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The groups of the key agreement.
pub(crate) const GROUPS: &[Group] = &[Group::X25519, Group::Secp256r1];

/// The name by which a server's certificate is judged.
pub(crate) fn server_name(host: &Host) -> ServerName<'_> {
    match host {
        Host::Name(name) => ServerName::Dns(name),
        Host::Address(IpAddr::V4(address)) => ServerName::Ipv4(address.octets()),
        Host::Address(IpAddr::V6(address)) => ServerName::Ipv6(address.octets()),
    }
}

/// Opens a TCP connection to `origin` until `deadline`; `find` gives a name's addresses. The address that is judged is the
/// one that is connected to.
///
/// # Errors
/// [`Failure`]: the name has no address, or none on the public network, or nobody answers there.
pub(crate) fn connect(
    origin: &Origin,
    find: impl FnOnce(&str) -> Result<Vec<IpAddr>, Failure>,
    deadline: Instant,
) -> Result<TcpStream, Failure> {
    let addresses = match &origin.host {
        // An address was granted as such.
        Host::Address(address) => vec![*address],
        Host::Name(name) => public_of(name, find(name)?)?,
    };
    let mut last =
        Failure::new(NoResult::Deadline, "the deadline passed before a connection was there");
    for address in addresses {
        let address = SocketAddr::new(address, origin.port);
        let left = deadline.saturating_duration_since(Instant::now()).min(CONNECT_PATIENCE);
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                // Without it small requests wait for acknowledgments.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => {
                last = Failure::new(
                    NoResult::Unreachable,
                    format!("no connection to {address}: {error}"),
                );
            }
        }
    }
    Err(last)
}

/// The addresses of the public network among those that `name` leads to.
fn public_of(name: &str, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Failure> {
    let public: Vec<IpAddr> = found.iter().copied().filter(|address| is_public(*address)).collect();
    match (public.is_empty(), found.first()) {
        (false, _) => Ok(public),
        (true, None) => Err(Failure::new(NoResult::NotFound, format!("{name} has no address"))),
        (true, Some(first)) => Err(Failure::new(
            NoResult::Denied,
            format!(
                "{name} leads to {first}, which is no address of the public network; grant the address itself to allow that"
            ),
        )),
    }
}

/// A connection that bytes go through.
pub(crate) struct Stream<'a> {
    tcp: TcpStream,
    tls: Option<Tls<'a>>,
    /// The bytes that were sent and received on the network.
    pub(crate) traffic: (u64, u64),
}

struct Tls<'a> {
    client: Client<'a, 'a>,
    security: Software<LinuxEntropy>,
    start: Instant,
    /// Bytes from the network that wait for room.
    received: Vec<u8>,
}

impl Tls<'_> {
    fn now(&self) -> Now {
        let date = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Now {
            uptime_ms: self.start.elapsed().as_millis() as u64,
            date: date.map(|since| UnixTime(since.as_secs() as i64)),
        }
    }
}

impl<'a> Stream<'a> {
    /// A connection without TLS.
    pub(crate) fn plain(tcp: TcpStream) -> Self {
        Self { tcp, tls: None, traffic: (0, 0) }
    }

    /// A connection over TLS, whose handshake is done by `deadline`.
    ///
    /// # Errors
    /// [`Failure`]: the server proves nothing that is trusted, or breaks off.
    pub(crate) fn secure(
        tcp: TcpStream,
        client: Client<'a, 'a>,
        start: Instant,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let security = Software::new(LinuxEntropy);
        let tls = Tls { client, security, start, received: Vec::new() };
        let mut stream = Self { tcp, tls: Some(tls), traffic: (0, 0) };
        while stream.tls.as_ref().is_some_and(|tls| !tls.client.is_connected()) {
            stream.step(deadline, &mut Vec::new())?;
        }
        Ok(stream)
    }

    /// Sends all of `bytes` by `deadline`.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) fn send(&mut self, mut bytes: &[u8], deadline: Instant) -> Result<(), Failure> {
        if self.tls.is_none() {
            return self.write(bytes, deadline);
        }
        loop {
            self.flush(deadline)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let Some(tls) = &mut self.tls else { return Ok(()) };
            let sent = tls.client.send(&mut tls.security, bytes).map_err(Failure::of_tls)?;
            bytes = &bytes[sent..];
            if sent == 0 && tls.client.output().is_empty() {
                return Err(Failure::new(NoResult::Unreachable, "the connection takes no more"));
            }
        }
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
        if self.tls.is_none() {
            let bytes = self.read(deadline)?;
            into.extend(&bytes);
            return Ok(!bytes.is_empty());
        }
        let before = into.len();
        while into.len() == before {
            if !self.step(deadline, into)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves TLS on by one event or one read. Returns whether the server may send more.
    fn step(&mut self, deadline: Instant, into: &mut Vec<u8>) -> Result<bool, Failure> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        let now = tls.now();
        let event = tls.client.poll(&mut tls.security, &now);
        if event.is_err() {
            // The alert tells the server why.
            let _ = self.flush(deadline);
        }
        match event.map_err(Failure::of_tls)? {
            Event::Certificate | Event::Connected | Event::Ticket => {}
            Event::Data => {
                let Some(tls) = &mut self.tls else { return Ok(false) };
                let data = tls.client.data();
                let length = data.len();
                into.extend_from_slice(data);
                tls.client.consume(length);
            }
            Event::PeerClosed => return Ok(false),
            Event::Idle => {
                self.flush(deadline)?;
                let is_fed = self.tls.as_mut().is_some_and(|tls| {
                    let fed = tls.client.feed(&tls.received);
                    tls.received.drain(..fed);
                    fed > 0
                });
                if !is_fed {
                    let bytes = self.read(deadline)?;
                    let Some(tls) = &mut self.tls else { return Ok(false) };
                    if bytes.is_empty() {
                        let ended = tls.client.end_of_input(&mut tls.security);
                        ended.map_err(Failure::of_tls)?;
                        return Ok(false);
                    }
                    tls.received.extend(bytes);
                }
            }
        }
        Ok(true)
    }

    /// Sends what TLS made.
    fn flush(&mut self, deadline: Instant) -> Result<(), Failure> {
        loop {
            let Some(tls) = &mut self.tls else { return Ok(()) };
            let output = tls.client.output().to_vec();
            if output.is_empty() {
                return Ok(());
            }
            tls.client.sent(output.len());
            self.write(&output, deadline)?;
        }
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> Result<(), Failure> {
        while !bytes.is_empty() {
            self.tcp.set_write_timeout(Some(left_until(deadline)?)).map_err(Failure::of_io)?;
            match self.tcp.write(bytes) {
                Ok(0) => return Err(Failure::of_io(ErrorKind::WriteZero.into())),
                Ok(sent) => {
                    self.traffic.0 += sent as u64;
                    bytes = &bytes[sent..];
                }
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(Failure::of_io(error)),
            }
        }
        Ok(())
    }

    /// Bytes from the network; none at its end.
    fn read(&mut self, deadline: Instant) -> Result<Vec<u8>, Failure> {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            self.tcp.set_read_timeout(Some(left_until(deadline)?)).map_err(Failure::of_io)?;
            match self.tcp.read(&mut chunk) {
                Ok(length) => {
                    self.traffic.1 += length as u64;
                    chunk.truncate(length);
                    return Ok(chunk);
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
