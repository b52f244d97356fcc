//! UDP as a link: datagrams over IPv4 and IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use std::{fmt, io};

use socket2::{Domain, SockRef, Socket, Type};
use tenure_hal::{DATAGRAM_BYTES_MAX, Link, LinkError};

use crate::overflow;
use crate::wait::{Woken, wait_any};

#[cfg(test)]
mod tests;

/// How many datagrams that are too long one call skips before it says that there is none.
const SKIPPED_MAX: usize = 64;

/// A UDP socket that never blocks but in [`UdpLink::wait`].
#[derive(Debug)]
pub struct UdpLink {
    socket: UdpSocket,
    address: SocketAddr,
}

impl UdpLink {
    /// Listens at `address`. Port 0 takes a free port; `[::]` takes IPv4 as well as IPv6.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        socket_at(address).and_then(Self::over).map_err(|error| BindError { address, error })
    }

    /// Listens at `address` as [`UdpLink::bind`] does, also before an interface of this computer has it, as when the network
    /// comes up later; whether one has it is the second value.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind_or_await(address: SocketAddr) -> Result<(Self, bool), BindError> {
        match Self::bind(address) {
            Err(BindError { error, .. }) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                let early = early_socket_at(address).and_then(Self::over);
                early.map(|link| (link, false)).map_err(|error| BindError { address, error })
            }
            bound => bound.map(|link| (link, true)),
        }
    }

    /// Takes a free port, to send to addresses of both families; on a computer without IPv6 to those of IPv4.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind_any() -> Result<Self, BindError> {
        Self::bind((Ipv6Addr::UNSPECIFIED, 0).into())
            .or_else(|_| Self::bind((Ipv4Addr::UNSPECIFIED, 0).into()))
    }

    /// A link over a socket that is bound already.
    pub(crate) fn over(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// The socket, for the options of those who share it.
    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Where the link listens: with the port that was taken if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Has the socket hold as many bytes of datagrams that weren't received yet, or as many as the system lets it.
    pub fn hold(&self, bytes: usize) {
        // What it holds already is enough to go on with.
        let _ = SockRef::from(&self.socket).set_recv_buffer_size(bytes);
    }

    /// How many datagrams the socket had no room for since it was opened, modulo 2³²; `None` where the system doesn't tell.
    pub fn dropped(&self) -> Option<u32> {
        overflow::dropped(&self.socket)
    }

    /// Sleeps until a datagram can be received, `timeout` is over or a signal came.
    ///
    /// # Errors
    /// [`LinkError::Hardware`] if the system refuses, so that a loop doesn't spin unnoticed.
    pub fn wait(&self, timeout: Duration) -> Result<Woken, LinkError> {
        wait_any(&[self], timeout)
    }

    /// An address as this socket's family wants it: a socket of IPv6 reaches IPv4 by mapped
    /// addresses (RFC 4291 §2.5.5.2).
    fn outward(&self, address: SocketAddr) -> SocketAddr {
        match (self.address, address) {
            (SocketAddr::V6(_), SocketAddr::V4(to)) => {
                SocketAddrV6::new(to.ip().to_ipv6_mapped(), to.port(), 0, 0).into()
            }
            _ => address,
        }
    }
}

/// A socket at `address`. The one at `[::]` takes IPv4 too, whatever the system's default is (RFC 3493 §5.3).
fn socket_at(address: SocketAddr) -> io::Result<UdpSocket> {
    if !(address.is_ipv6() && address.ip().is_unspecified()) {
        return UdpSocket::bind(address);
    }
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, None)?;
    socket.set_only_v6(false)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A socket at an address that no interface has yet (ip(7), `IP_FREEBIND`).
fn early_socket_at(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// One form for each address: an IPv4 sender is one, whatever the socket's family.
fn inward(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

impl AsFd for UdpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Link for UdpLink {
    type Address = SocketAddr;

    fn datagram_bytes_max(&self) -> usize {
        DATAGRAM_BYTES_MAX
    }

    fn send(&mut self, to: &SocketAddr, datagram: &[u8]) -> Result<(), LinkError> {
        if datagram.len() > DATAGRAM_BYTES_MAX {
            return Err(LinkError::TooLong);
        }
        match self.socket.send_to(datagram, self.outward(*to)) {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::OutOfMemory
                | io::ErrorKind::Interrupted => LinkError::Busy,
                _ if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
                    LinkError::Busy
                }
                _ if error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) => {
                    LinkError::TooLong
                }
                io::ErrorKind::BrokenPipe | io::ErrorKind::NotConnected => LinkError::Hardware,
                // No route, no such family, port 0, a firewall's refusal, an earlier ICMP error.
                _ => LinkError::Unreachable,
            }),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, SocketAddr)>, LinkError> {
        let mut datagram = [0; DATAGRAM_BYTES_MAX + 1];
        for _ in 0..SKIPPED_MAX {
            match self.socket.recv_from(&mut datagram) {
                Ok((length, _)) if length > into.len().min(DATAGRAM_BYTES_MAX) => {}
                Ok((length, from)) => {
                    into[..length].copy_from_slice(&datagram[..length]);
                    return Ok(Some((length, inward(from))));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    // An earlier datagram was refused by its receiver; this says nothing of ours.
                    io::ErrorKind::Interrupted
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkDown
                    | io::ErrorKind::NetworkUnreachable => {}
                    _ => return Err(LinkError::Hardware),
                },
            }
        }
        Ok(None)
    }
}

/// Nobody can listen at an address.
#[derive(Debug)]
pub struct BindError {
    /// Which address.
    pub address: SocketAddr,
    /// The system's error.
    pub error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, error } = self;
        write!(f, "can't listen at {address}: ")?;
        match error.kind() {
            io::ErrorKind::AddrInUse => f.write_str(
                "another process listens there; stop that one, or choose another port (port 0 \
                 takes a free one)",
            ),
            io::ErrorKind::AddrNotAvailable => f.write_str(
                "no network interface of this computer has that address; use 0.0.0.0 or [::] for \
                 all of them",
            ),
            io::ErrorKind::PermissionDenied => {
                f.write_str("this user may not use that port; choose one from 1024 up")
            }
            io::ErrorKind::Unsupported => {
                f.write_str("this computer doesn't speak that version of IP")
            }
            _ => error.fmt(f),
        }
    }
}

impl std::error::Error for BindError {}
