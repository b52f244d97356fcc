//! UDP multicast as a link: whoever has joined the group on the same network hears what is sent to
//! it, without being named.
//!
//! Two sockets: one that the group's datagrams come to, and one of the device's own, which sends and
//! whose address neighbours answer to. So several devices of one computer can be in one group.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::{fmt, io};

use socket2::{Domain, Protocol, Socket, Type};
use tenure_hal::{DATAGRAM_BYTES_MAX, Link, LinkError};

use crate::udp_link::UdpLink;

#[cfg(test)]
mod tests;

/// A group of UDP multicast that a device is in.
#[derive(Debug)]
pub struct MulticastLink {
    group: SocketAddr,
    heard: UdpLink,
    own: UdpLink,
}

impl MulticastLink {
    /// Joins `group` on the interface that has the address `interface`; for IPv6 the group's scope
    /// names the interface by its number (`ff02::7%2`), and `interface` is where the device's own
    /// socket is bound. An unspecified address leaves the choice to the system.
    ///
    /// # Errors
    /// [`JoinGroupError`].
    pub fn join(group: SocketAddr, interface: IpAddr) -> Result<Self, JoinGroupError> {
        let fail = |error| JoinGroupError { group, interface, error };
        if !group.ip().is_multicast() || group.is_ipv4() != interface.is_ipv4() {
            return Err(fail(io::ErrorKind::InvalidInput.into()));
        }
        let heard = hear(group, interface).map_err(fail)?;
        let own = speak(group, interface).map_err(fail)?;
        Ok(Self { group, heard, own })
    }

    /// The group.
    pub fn group(&self) -> SocketAddr {
        self.group
    }

    /// The sockets, to wait on both.
    pub fn sockets(&self) -> [&dyn AsFd; 2] {
        [&self.heard, &self.own]
    }
}

/// A socket that the group's datagrams come to.
fn hear(group: SocketAddr, interface: IpAddr) -> io::Result<UdpLink> {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    // Bound to the group's own address, it gets nothing that was sent to anything else.
    socket.bind(&group.into())?;
    match (group, interface) {
        (SocketAddr::V4(group), IpAddr::V4(interface)) => {
            socket.join_multicast_v4(group.ip(), &interface)?;
        }
        (SocketAddr::V6(group), _) => socket.join_multicast_v6(group.ip(), group.scope_id())?,
        _ => {}
    }
    UdpLink::over(socket.into())
}

/// The device's own socket.
fn speak(group: SocketAddr, interface: IpAddr) -> io::Result<UdpLink> {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    match (group, interface) {
        (SocketAddr::V4(_), IpAddr::V4(interface)) => {
            socket.set_multicast_if_v4(&interface)?;
            // One hop: whom the mesh reaches beyond it, it reaches by relays.
            socket.set_multicast_ttl_v4(1)?;
            socket.set_multicast_loop_v4(true)?;
        }
        (SocketAddr::V6(group), _) => {
            socket.set_multicast_if_v6(group.scope_id())?;
            socket.set_multicast_hops_v6(1)?;
            socket.set_multicast_loop_v6(true)?;
        }
        _ => {}
    }
    socket.bind(&SocketAddr::new(interface, 0).into())?;
    UdpLink::over(socket.into())
}

/// The address that leaves the choice of an interface for `group` to the system.
pub fn any_interface(group: SocketAddr) -> IpAddr {
    if group.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

impl Link for MulticastLink {
    type Address = SocketAddr;

    fn datagram_bytes_max(&self) -> usize {
        DATAGRAM_BYTES_MAX
    }

    fn send(&mut self, to: &SocketAddr, datagram: &[u8]) -> Result<(), LinkError> {
        self.own.send(to, datagram)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, SocketAddr)>, LinkError> {
        match self.own.receive(into)? {
            Some(received) => Ok(Some(received)),
            None => self.heard.receive(into),
        }
    }
}

/// A group that can't be joined.
#[derive(Debug)]
pub struct JoinGroupError {
    /// Which.
    pub group: SocketAddr,
    /// On which interface, by its address.
    pub interface: IpAddr,
    /// The system's error.
    pub error: io::Error,
}

impl fmt::Display for JoinGroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, interface, error } = self;
        write!(f, "can't join the group {group} on the interface with {interface}: ")?;
        match error.kind() {
            io::ErrorKind::InvalidInput => f.write_str(
                "it takes a multicast address (239.0.0.0/8, ff02::/16) and an interface's address of \
                 the same version of IP",
            ),
            _ if error.raw_os_error() == Some(libc::ENODEV) => f.write_str(
                "no interface has that address, or none is set for multicast; `ip address` lists them",
            ),
            _ => error.fmt(f),
        }
    }
}

impl std::error::Error for JoinGroupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
