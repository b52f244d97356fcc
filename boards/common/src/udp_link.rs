//! UDP over IPv4 on an Ethernet card, as a link.
//!
//! IPv4 alone: a second family would cost 10 KB of flash, and small devices sit behind something that
//! speaks both.

use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;

use crate::tap::TappedCard;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy;
use smoltcp::socket::udp::{self, PacketBuffer, PacketMetadata, SendError, Socket};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr, IpEndpoint, Ipv4Cidr};
use tenure_hal::{DATAGRAM_BYTES_MAX, Instant, Link, LinkError};

#[cfg(test)]
mod tests;

/// Datagrams that wait to be taken, and to be sent.
const RECEIVED_MAX: usize = 4;
const WAITING_MAX: usize = 4;

/// One UDP port of one network card.
pub struct UdpLink<D: phy::Device> {
    device: D,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl<D: phy::Device> UdpLink<TappedCard<D>> {
    /// As [`UdpLink::poll`], and sends the mesh's frames that wait.
    pub(crate) fn poll_with_frames(&mut self, now: Instant) {
        self.poll(now);
        self.device.flush(instant(now));
    }
}

impl<D: phy::Device> UdpLink<D> {
    /// Listens on `port` at `address`, whose network has `prefix_bits`. `seed` is a random number.
    pub fn new(
        mut device: D,
        hardware: [u8; 6],
        (address, prefix_bits): (Ipv4Addr, u8),
        gateway: Option<Ipv4Addr>,
        port: u16,
        seed: u64,
    ) -> Self {
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(hardware)));
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, instant(Instant::BOOT));
        interface.update_ip_addrs(|addresses| {
            // There is room for one; a link is new.
            let _ = addresses.push(IpCidr::Ipv4(Ipv4Cidr::new(address, prefix_bits)));
        });
        if let Some(gateway) = gateway {
            // As above: the table of routes is empty.
            let _ = interface.routes_mut().add_default_ipv4_route(gateway);
        }
        let mut socket = Socket::new(buffer(RECEIVED_MAX), buffer(WAITING_MAX));
        // Fails for port 0 alone, which then receives nothing.
        let _ = socket.bind(port);
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let socket = sockets.add(socket);
        Self { device, interface, sockets, socket }
    }

    /// Moves datagrams between the card and the queues, and answers the network's questions.
    pub fn poll(&mut self, now: Instant) {
        self.interface.poll(instant(now), &mut self.device, &mut self.sockets);
    }

    /// How long [`UdpLink::poll`] needn't be called unless something arrives.
    pub fn poll_delay(&mut self, now: Instant) -> Option<Duration> {
        let delay = self.interface.poll_delay(instant(now), &self.sockets)?;
        Some(Duration::from_micros(delay.total_micros()))
    }

    /// The network card.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
}

fn buffer(datagrams: usize) -> PacketBuffer<'static> {
    PacketBuffer::new(
        vec![PacketMetadata::EMPTY; datagrams],
        vec![0; datagrams * DATAGRAM_BYTES_MAX],
    )
}

pub(crate) fn instant(at: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros(i64::try_from(at.as_micros()).unwrap_or(i64::MAX))
}

impl<D: phy::Device> Link for UdpLink<D> {
    type Address = SocketAddr;

    fn datagram_bytes_max(&self) -> usize {
        DATAGRAM_BYTES_MAX
    }

    fn send(&mut self, to: &SocketAddr, datagram: &[u8]) -> Result<(), LinkError> {
        if datagram.len() > DATAGRAM_BYTES_MAX {
            return Err(LinkError::TooLong);
        }
        let IpAddr::V4(address) = to.ip() else { return Err(LinkError::Unreachable) };
        let to = udp::UdpMetadata::from(IpEndpoint::new(address.into(), to.port()));
        self.socket().send_slice(datagram, to).map_err(|error| match error {
            SendError::Unaddressable => LinkError::Unreachable,
            SendError::BufferFull => LinkError::Busy,
        })
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, SocketAddr)>, LinkError> {
        // The queue is short, and what is too long is dropped.
        while let Ok((datagram, from)) = self.socket().recv() {
            if datagram.len() <= into.len().min(DATAGRAM_BYTES_MAX) {
                into[..datagram.len()].copy_from_slice(datagram);
                let address: IpAddr = from.endpoint.addr.into();
                return Ok(Some((datagram.len(), SocketAddr::new(address, from.endpoint.port))));
            }
        }
        Ok(None)
    }
}
