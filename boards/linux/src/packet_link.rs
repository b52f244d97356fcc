//! Raw Ethernet as a link: frames of an EtherType of our own, without IP ([`tenure_hal::ethernet`]).
//!
//! A filter in the kernel (packet(7), `SO_ATTACH_FILTER`) lets through what is of that form alone.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;
use std::{fmt, mem};

use rustix::io::Errno;
use socket2::{Domain, SockAddr, SockAddrStorage, SockFilter, Socket, Type};
use tenure_hal::ethernet::{
    ETHER_TYPE, MacAddress, PACKET_BYTES_MAX, PACKET_HEADER_BYTES, packet_header, parse_packet,
};
use tenure_hal::{Link, LinkError};

use crate::serial_link::REOPEN_EVERY;

const FRAME_BYTES_MAX: usize = PACKET_HEADER_BYTES + PACKET_BYTES_MAX;

/// A network interface, for frames of our EtherType. While it is unplugged, nothing comes, and frames to send are dropped; it
/// is used again once an interface of its name is there.
#[derive(Debug)]
pub struct PacketLink {
    interface: String,
    /// None while it is unplugged.
    port: Option<PacketPort>,
    /// When it was opened last, or missed last.
    tried: Instant,
}

/// An interface that is there.
#[derive(Debug)]
struct PacketPort {
    socket: Socket,
    index: u32,
    address: MacAddress,
}

impl PacketLink {
    /// Opens the interface of that name, which takes root or the capability `CAP_NET_RAW`.
    ///
    /// # Errors
    /// [`InterfaceError`].
    pub fn open(interface: &str) -> Result<Self, InterfaceError> {
        open(interface, ETHER_TYPE, &ours())
            .map(|port| Self::of_interface(interface, Some(port)))
            .map_err(|error| InterfaceError { interface: interface.to_owned(), error })
    }

    /// Opens the interface of that name as [`PacketLink::open`] does. One that isn't there yet is unplugged.
    ///
    /// # Errors
    /// [`InterfaceError`], if there is one that can't be opened.
    pub fn open_or_await(interface: &str) -> Result<Self, InterfaceError> {
        match Self::open(interface) {
            Err(error) if error.error.raw_os_error() == Some(libc::ENODEV) => {
                Ok(Self::of_interface(interface, None))
            }
            opened => opened,
        }
    }

    fn of_interface(interface: &str, port: Option<PacketPort>) -> Self {
        Self { interface: interface.to_owned(), port, tried: Instant::now() }
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.interface
    }

    /// The interface's own address; none while it is unplugged.
    pub fn address(&self) -> Option<MacAddress> {
        self.port.as_ref().map(|port| port.address)
    }

    /// The socket to wait on; none while the interface is unplugged.
    pub fn socket(&self) -> Option<&dyn AsFd> {
        self.port.as_ref().map(|port| &port.socket as &dyn AsFd)
    }

    /// The interface, opened again if it was unplugged and the time to look for it has come.
    fn port(&mut self) -> Option<&PacketPort> {
        if self.port.is_none() && self.tried.elapsed() >= REOPEN_EVERY {
            self.tried = Instant::now();
            self.port = open(&self.interface, ETHER_TYPE, &ours()).ok();
        }
        self.port.as_ref()
    }

    /// Lets go of an interface that is gone, or whose name another one has now; one that is down only stays.
    fn look_after(&mut self) {
        let now = index_of(&self.interface).ok();
        if self.port.as_ref().is_some_and(|port| now != Some(port.index)) {
            self.port = None;
        }
    }
}

impl Link for PacketLink {
    type Address = MacAddress;

    fn datagram_bytes_max(&self) -> usize {
        PACKET_BYTES_MAX
    }

    fn send(&mut self, to: &MacAddress, datagram: &[u8]) -> Result<(), LinkError> {
        if datagram.len() > PACKET_BYTES_MAX {
            return Err(LinkError::TooLong);
        }
        // Frames aren't kept for an interface that is gone: they would be old when it is back.
        let Some(port) = self.port() else { return Err(LinkError::Unreachable) };
        let header = packet_header(*to, port.address, datagram.len());
        let frame = [&header, datagram].concat();
        match port.socket.send(&frame) {
            Ok(_) => Ok(()),
            Err(error) => Err(match Errno::from_io_error(&error) {
                Some(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => {
                    self.look_after();
                    LinkError::Unreachable
                }
                Some(Errno::MSGSIZE) => LinkError::TooLong,
                _ => LinkError::Busy,
            }),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, MacAddress)>, LinkError> {
        let mut frame = [0; FRAME_BYTES_MAX];
        loop {
            let Some(port) = self.port() else { return Ok(None) };
            let length = match (&port.socket).read(&mut frame) {
                Ok(length) => length,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => return Ok(None),
                    Some(Errno::INTR) => continue,
                    // The interface is down, and may come up again, or it is gone (packet(7)).
                    Some(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => {
                        self.look_after();
                        continue;
                    }
                    _ => return Err(LinkError::Hardware),
                },
            };
            if let Some((datagram, from)) = parse_packet(&frame[..length])
                && let Some(into) = into.get_mut(..datagram.len())
            {
                into.copy_from_slice(datagram);
                return Ok(Some((datagram.len(), from)));
            }
        }
    }
}

/// A network interface, for every frame that it hears, as a switch or an experiment needs it.
#[derive(Debug)]
pub struct EthernetPort {
    socket: Socket,
}

impl EthernetPort {
    /// Opens the interface of that name, which takes root or the capability `CAP_NET_RAW`.
    ///
    /// # Errors
    /// [`InterfaceError`].
    pub fn open(interface: &str) -> Result<Self, InterfaceError> {
        open(interface, libc::ETH_P_ALL as u16, &heard())
            .map(|PacketPort { socket, .. }| Self { socket })
            .map_err(|error| InterfaceError { interface: interface.to_owned(), error })
    }

    /// Takes the next whole frame into `frame`, cut to its length; gives its length, or `None` if
    /// there is none now.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.socket).read(frame) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a whole frame.
    ///
    /// # Errors
    /// The interface's queue is full, or it is gone.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame).map(drop)
    }
}

impl AsFd for EthernetPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A packet socket on an interface, for frames of one EtherType that `filter` lets through.
fn open(interface: &str, protocol: u16, filter: &[SockFilter]) -> io::Result<PacketPort> {
    let index = index_of(interface)?;
    // Until it is bound, a socket of protocol 0 receives nothing, so nothing passes unfiltered.
    let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
    socket.attach_filter(filter)?;
    socket.bind(&link_address(index, protocol))?;
    socket.set_nonblocking(true)?;
    let address = mac_of(&socket.local_addr()?);
    Ok(PacketPort { socket, index, address })
}

/// The number that the system gave the interface of that name.
fn index_of(interface: &str) -> io::Result<u32> {
    use rustix::net::{AddressFamily, SocketType, netdevice, socket};
    let any_socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(netdevice::name_to_index(any_socket, interface)?)
}

// Operations of <linux/filter.h>.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const IS_EQUAL: u16 = 0x15;
const ADD: u16 = 0x04;
const TO_INDEX: u16 = 0x07;
const LOAD_LENGTH: u16 = 0x80;
const IS_AT_LEAST_INDEX: u16 = 0x3D;
const RETURN: u16 = 0x06;

/// Lets through what came to the interface, and not what leaves by it.
fn heard() -> [SockFilter; 4] {
    /// `SKF_AD_OFF + SKF_AD_PKTTYPE`
    const PACKET_TYPE: u32 = 0xFFFF_F000 + 4;
    [
        SockFilter::new(LOAD_WORD, 0, 0, PACKET_TYPE),
        SockFilter::new(IS_EQUAL, 1, 0, libc::PACKET_OUTGOING.into()),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}

/// Lets through frames of our EtherType that are as long as they say, as a program for the kernel.
fn ours() -> [SockFilter; 9] {
    let step = |code, constant| SockFilter::new(code, 0, 0, constant);
    [
        step(LOAD_HALF, 12),
        SockFilter::new(IS_EQUAL, 0, 6, ETHER_TYPE.into()),
        step(LOAD_HALF, 14),
        step(ADD, PACKET_HEADER_BYTES as u32),
        step(TO_INDEX, 0),
        step(LOAD_LENGTH, 0),
        SockFilter::new(IS_AT_LEAST_INDEX, 0, 1, 0),
        step(RETURN, u32::MAX),
        step(RETURN, 0),
    ]
}

/// The address to bind to: an EtherType on the interface of that number.
fn link_address(index: u32, protocol: u16) -> SockAddr {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: the storage is as large and as aligned as any socket address, this one included, and
    // `sockaddr_ll` is plain numbers.
    unsafe {
        *storage.view_as::<libc::sockaddr_ll>() = address;
        SockAddr::new(storage, mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    }
}

/// The Ethernet address in what a bound packet socket says of itself.
fn mac_of(address: &SockAddr) -> MacAddress {
    // SAFETY: `SockAddr` holds room for any socket address, and one that came from a packet socket
    // is a `sockaddr_ll`.
    let address = unsafe { &*address.as_ptr().cast::<libc::sockaddr_ll>() };
    let [a, b, c, d, e, f, ..] = address.sll_addr;
    MacAddress([a, b, c, d, e, f])
}

/// An interface that can't be opened.
#[derive(Debug)]
pub struct InterfaceError {
    /// Which.
    pub interface: String,
    /// The system's error.
    pub error: io::Error,
}

impl fmt::Display for InterfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, error } = self;
        write!(f, "can't open the interface {interface}: {error}")?;
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                f.write_str("; raw frames take root or the capability CAP_NET_RAW")
            }
            _ if error.raw_os_error() == Some(libc::ENODEV) => {
                f.write_str("; `ip link` lists those that there are")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for InterfaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_missing_is_named() {
        let error = PacketLink::open("no-such-link").unwrap_err().to_string();
        assert!(error.contains("no-such-link") && error.contains("`ip link`"), "{error}");
    }

    #[test]
    fn an_interface_that_is_not_there_yet_is_silent_and_looked_for() {
        let mut link = PacketLink::open_or_await("no-such-link").unwrap();
        assert!(link.address().is_none() && link.socket().is_none());
        assert_eq!(link.send(&MacAddress::BROADCAST, b"x"), Err(LinkError::Unreachable));
        assert_eq!(link.receive(&mut [0; 64]), Ok(None));
    }
}
