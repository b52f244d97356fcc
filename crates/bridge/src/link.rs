//! The TCP connection to the broker, which never waits once it is there.

use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use tenure_board_linux::dial;
use tenure_tls::x509::ServerName;
use tenure_tls::{Network, Received};
use tenure_wire::url::Host;

use crate::{Broker, local_names};

/// How long a connection may take, and how many addresses of a name are tried.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);
const ADDRESSES_MAX: usize = 8;

/// Opens a TCP connection to the broker; this waits.
///
/// # Errors
/// Why there is none, in words.
pub(crate) fn reach(broker: &Broker) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match &broker.host {
        Host::Address(address) => vec![SocketAddr::new(*address, broker.port)],
        Host::Name(name) => look_up(name, broker.port)?,
    };
    if addresses.is_empty() {
        return Err("the broker's name has no address".into());
    }
    let tcp = dial(&addresses, Instant::now() + CONNECT_PATIENCE);
    let tcp = tcp.map_err(|error| error.to_string())?;
    tcp.set_nonblocking(true).map_err(|error| format!("the connection can't be used: {error}"))?;
    Ok(tcp)
}

/// The addresses of a name: the network's, if it is one of those, or the name servers'.
fn look_up(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let unknown = match local_names::is_local(name).then(|| local_names::addresses(name, port)) {
        Some(Ok(mut addresses)) => {
            addresses.truncate(ADDRESSES_MAX);
            return Ok(addresses);
        }
        Some(Err(why)) => Some(why),
        None => None,
    };
    match (name, port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.take(ADDRESSES_MAX).collect()),
        Err(error) => {
            Err(unknown.unwrap_or_else(|| format!("no address is known for {name}: {error}")))
        }
    }
}

/// The name by which the broker's certificate is judged.
pub(crate) fn server_name(host: &Host) -> ServerName<'_> {
    match host {
        Host::Name(name) => ServerName::Dns(name),
        Host::Address(address) => ServerName::from(*address),
    }
}

/// A TCP connection, seen by what goes through it.
pub(crate) struct Tcp {
    stream: TcpStream,
    /// Whether it had no room at the last look.
    is_stuck: bool,
}

impl Tcp {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, is_stuck: false }
    }

    /// Whether more can be sent only once the network has room.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Network for Tcp {
    type Error = Error;

    fn send(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let sent = match self.stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(sent) => sent,
            Err(error) if is_patience(&error) => 0,
            Err(error) => return Err(error),
        };
        self.is_stuck = sent < bytes.len();
        Ok(sent)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Error> {
        match self.stream.read(into) {
            Ok(0) => Ok(Received::End),
            Ok(length) => Ok(Received::Bytes(length)),
            Err(error) if is_patience(&error) => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// Whether an error only says that nothing goes through now.
fn is_patience(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
