//! TCP connections to a host with several addresses: the next is tried before the one before is given up (RFC 8305).

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

/// How long an address is tried alone, before the next is tried beside it (RFC 8305 §5).
const ALONE: Duration = Duration::from_millis(250);
/// How long an address is tried.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug)]
pub enum DialError {
    /// The deadline passed.
    Late,
    /// No address takes connections; this is the last one, and why it doesn't.
    Failed(SocketAddr, io::Error),
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late => f.write_str("the deadline passed before a connection was there"),
            Self::Failed(address, error) => write!(f, "no connection to {address}: {error}"),
        }
    }
}

impl std::error::Error for DialError {}

/// An address that is tried.
struct Attempt {
    address: SocketAddr,
    socket: Socket,
    until: Instant,
}

/// Opens a TCP connection to one of a host's `addresses` until `deadline`. They are tried in their order, but of the two families
/// in turns: each alone for a quarter of a second, then beside the next, and for five seconds at most. The connection sends
/// without delay (`TCP_NODELAY`).
///
/// # Errors
/// [`DialError`].
pub fn dial(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, DialError> {
    let mut waiting = in_turns(addresses);
    let mut under_way: Vec<Attempt> = Vec::new();
    let (mut failure, mut next_at) = (DialError::Late, Instant::now());
    loop {
        let now = Instant::now();
        if now >= deadline {
            return Err(DialError::Late);
        }
        if (under_way.is_empty() || now >= next_at)
            && let Some(address) = waiting.pop_front()
        {
            match begin(address) {
                Ok(socket) => under_way.push(Attempt { address, socket, until: now + PATIENCE }),
                Err(error) => failure = DialError::Failed(address, error),
            }
            next_at = now + ALONE;
            continue;
        }
        let next = (!waiting.is_empty()).then_some(next_at);
        let ends = under_way.iter().map(|attempt| attempt.until).chain(next);
        let Some(until) = ends.min() else { return Err(failure) };
        wait(&under_way, until.min(deadline).saturating_duration_since(now));
        for attempt in std::mem::take(&mut under_way) {
            match attempt.outcome() {
                Ok(None) => under_way.push(attempt),
                Ok(Some(())) => return finish(attempt),
                Err(error) => failure = DialError::Failed(attempt.address, error),
            }
        }
    }
}

/// The addresses of both families in turns, beginning with that of the first (RFC 8305 §4).
fn in_turns(addresses: &[SocketAddr]) -> VecDeque<SocketAddr> {
    let is_first_kind = |address: &&SocketAddr| address.is_ipv6() == addresses[0].is_ipv6();
    let mut first = addresses.iter().filter(|address| is_first_kind(address));
    let mut second = addresses.iter().filter(|address| !is_first_kind(address));
    let mut turns = VecDeque::new();
    loop {
        let pair = [first.next(), second.next()];
        turns.extend(pair.into_iter().flatten());
        if pair == [None, None] {
            return turns;
        }
    }
}

/// Begins to connect.
fn begin(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
        _ => Ok(socket),
    }
}

impl Attempt {
    /// Whether it is connected by now.
    ///
    /// # Errors
    /// It isn't, and won't be.
    fn outcome(&self) -> io::Result<Option<()>> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        match self.socket.peer_addr() {
            Ok(_) => Ok(Some(())),
            Err(_) if Instant::now() < self.until => Ok(None),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Waits until something happened to one of the attempts, or for this span.
fn wait(under_way: &[Attempt], span: Duration) {
    // Rounded up, so that what is due then is due.
    let span = span + Duration::from_millis(1);
    let timeout = Timespec {
        tv_sec: span.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    };
    let polled = under_way.iter();
    let polled =
        polled.map(|attempt| PollFd::from_borrowed_fd(attempt.socket.as_fd(), PollFlags::OUT));
    if poll(&mut polled.collect::<Vec<_>>(), Some(&timeout)).is_err() {
        // Interrupted, as a rule; any other error must not make the loop spin.
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The connection, which waits where it is read and written.
fn finish(attempt: Attempt) -> Result<TcpStream, DialError> {
    let Attempt { address, socket, .. } = attempt;
    let set = socket.set_nonblocking(false).and_then(|()| socket.set_tcp_nodelay(true));
    set.map_err(|error| DialError::Failed(address, error))?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// An address of a listener whose queue is full: it neither takes a connection nor refuses one.
    fn silent() -> (SocketAddr, Socket, Vec<Socket>) {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&any.into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let queue: Vec<Socket> = (0..8).map(|_| begin(address).unwrap()).collect();
        (address, socket, queue)
    }

    #[test]
    fn addresses_of_both_families_are_tried_in_turns() {
        let addresses = |texts: &[&str]| {
            texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>()
        };
        let given = addresses(&["[::1]:1", "[::1]:2", "[::1]:3", "1.1.1.1:1", "1.1.1.1:2"]);
        let turns = ["[::1]:1", "1.1.1.1:1", "[::1]:2", "1.1.1.1:2", "[::1]:3"];
        assert_eq!(in_turns(&given), addresses(&turns));
        let given = addresses(&["1.1.1.1:1", "[::1]:1"]);
        assert_eq!(in_turns(&given), given);
        assert!(in_turns(&[]).is_empty());
    }

    #[test]
    fn address_that_refuses_or_says_nothing_holds_up_none_of_the_others() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(dial(&[refusing, address], soon()).unwrap().peer_addr().unwrap(), address);
        let (silent, _socket, _queue) = silent();
        // Beside the silent ones: one after the other they would take longer than there is time.
        let many = [&[silent; 20][..], &[address]].concat();
        assert_eq!(dial(&many, soon()).unwrap().peer_addr().unwrap(), address);
        let Err(DialError::Failed(failed, _)) = dial(&[refusing], soon()) else {
            panic!("somebody listens")
        };
        assert_eq!(failed, refusing);
    }

    #[test]
    fn connection_that_is_not_there_by_the_deadline_is_late() {
        let (silent, _socket, _queue) = silent();
        let late = dial(&[silent], Instant::now() + Duration::from_millis(20));
        assert!(matches!(late, Err(DialError::Late)), "{late:?}");
        assert!(matches!(dial(&[silent], Instant::now()), Err(DialError::Late)));
        assert!(matches!(dial(&[], soon()), Err(DialError::Late)));
    }
}
