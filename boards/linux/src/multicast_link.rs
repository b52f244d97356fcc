//! UDP multicast as a link: whoever has joined the group on the same network hears what is sent to
//! it, without being named.
//!
//! Two sockets: one that the group's datagrams come to, and one of the device's own, which sends and
//! whose address neighbours answer to. So several devices of one computer can be in one group.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use std::{fmt, io};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tenure_hal::{DATAGRAM_BYTES_MAX, Link, LinkError};

use crate::udp_link::UdpLink;

#[cfg(test)]
mod tests;

/// How often it is looked whether the device is still in its group.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A group of UDP multicast that a device is in.
#[derive(Debug)]
pub struct MulticastLink {
    group: SocketAddr,
    interface: IpAddr,
    heard: UdpLink,
    own: UdpLink,
    /// When it was looked last whether the device is still in the group.
    looked: Instant,
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
        Ok(Self { group, interface, heard, own, looked: Instant::now() })
    }

    /// Joins the group again where the membership was lost: the system forgets it with an interface that is unplugged, and
    /// another interface may be the one to the group by now. Nothing tells a socket of either.
    fn look_after(&mut self) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        // Whoever is in the group already is told so (EADDRINUSE), and where there is no interface for it (ENODEV) one may come.
        if enter(&SockRef::from(self.heard.socket()), self.group, self.interface).is_err() {
            return;
        }
        // A new socket has no memberships of interfaces that are gone, of which the system grants 20.
        if let Ok(heard) = hear(self.group, self.interface) {
            self.heard = heard;
        }
        // Neighbours answer to the same port as before.
        let _ = speak_on(&SockRef::from(self.own.socket()), self.group, self.interface);
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
    enter(&socket, group, interface)?;
    UdpLink::over(socket.into())
}

fn enter(socket: &Socket, group: SocketAddr, interface: IpAddr) -> io::Result<()> {
    match (group, interface) {
        (SocketAddr::V4(group), IpAddr::V4(interface)) => {
            socket.join_multicast_v4(group.ip(), &interface)
        }
        (SocketAddr::V6(group), _) => socket.join_multicast_v6(group.ip(), group.scope_id()),
        _ => Ok(()),
    }
}

/// The device's own socket.
fn speak(group: SocketAddr, interface: IpAddr) -> io::Result<UdpLink> {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    speak_on(&socket, group, interface)?;
    match group {
        SocketAddr::V4(_) => {
            // One hop: whom the mesh reaches beyond it, it reaches by relays.
            socket.set_multicast_ttl_v4(1)?;
            socket.set_multicast_loop_v4(true)?;
        }
        SocketAddr::V6(_) => {
            socket.set_multicast_hops_v6(1)?;
            socket.set_multicast_loop_v6(true)?;
        }
    }
    socket.bind(&SocketAddr::new(interface, 0).into())?;
    UdpLink::over(socket.into())
}

fn speak_on(socket: &Socket, group: SocketAddr, interface: IpAddr) -> io::Result<()> {
    match (group, interface) {
        (SocketAddr::V4(_), IpAddr::V4(interface)) => socket.set_multicast_if_v4(&interface),
        (SocketAddr::V6(group), _) => socket.set_multicast_if_v6(group.scope_id()),
        _ => Ok(()),
    }
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
        self.look_after();
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
