//! The network below a publisher: IPv4 with an address by DHCP, names by DNS, one connection by TCP.

use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy;
use smoltcp::socket::dns::{GetQueryResultError, QueryHandle};
use smoltcp::socket::{dhcpv4, dns, tcp};
use smoltcp::wire::{
    DnsQueryType, EthernetAddress, HardwareAddress, IpAddress, IpCidr, IpEndpoint, Ipv4Address,
    Ipv4Cidr,
};
use tenure_hal::Instant;
use tenure_tls::{Network, Received};

use super::error::{Broken, Setback};
use crate::udp_link::instant;

/// TCP's buffers: a broker's flight of a handshake beside its session ticket, and what a publisher sends at once.
const RECEIVED_BYTES: usize = 2_048;
const WAITING_BYTES: usize = 1_536;
/// How long the other side may acknowledge nothing.
const PATIENCE: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(20);
/// The ports of connections that begin here (RFC 6335 §6).
const OWN_PORTS: core::ops::RangeInclusive<u16> = 49_152..=65_535;

/// The network of one card.
pub(super) struct Stack<D> {
    device: D,
    interface: Interface,
    sockets: SocketSet<'static>,
    dhcp: SocketHandle,
    dns: SocketHandle,
    tcp: SocketHandle,
    /// Who resolves names, whatever DHCP says.
    own_dns: Option<Ipv4Addr>,
    query: Option<QueryHandle>,
    port: u16,
}

/// What became of a look-up.
pub(super) enum Lookup {
    Pending,
    Found(Ipv4Address),
    Failed,
}

/// How far a connection is.
pub(super) enum Progress {
    Pending,
    Connected,
    Failed,
}

/// What DHCP said.
pub(super) enum Lease {
    Got(Ipv4Cidr),
    Lost,
}

impl<D: phy::Device> Stack<D> {
    /// Asks for an address by DHCP on `device`. `own_dns` resolves names; if there is none, who DHCP says. `seed` is a
    /// random number.
    pub(super) fn new(
        mut device: D,
        hardware: [u8; 6],
        own_dns: Option<Ipv4Addr>,
        seed: u64,
    ) -> Self {
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(hardware)));
        config.random_seed = seed;
        let interface = Interface::new(config, &mut device, instant(Instant::BOOT));
        let mut sockets = SocketSet::new(Vec::with_capacity(3));
        let dhcp = sockets.add(dhcpv4::Socket::new());
        let servers: Vec<IpAddress> = own_dns.into_iter().map(IpAddress::Ipv4).collect();
        let dns = sockets.add(dns::Socket::new(&servers, Vec::with_capacity(1)));
        let buffer = |bytes| tcp::SocketBuffer::new(vec![0; bytes]);
        let mut socket = tcp::Socket::new(buffer(RECEIVED_BYTES), buffer(WAITING_BYTES));
        socket.set_timeout(Some(PATIENCE));
        // Each write is a message, or several: none waits for more.
        socket.set_nagle_enabled(false);
        let tcp = sockets.add(socket);
        let span = OWN_PORTS.end() - OWN_PORTS.start();
        let port = OWN_PORTS.start() + (seed >> 32) as u16 % span;
        Self { device, interface, sockets, dhcp, dns, tcp, own_dns, query: None, port }
    }

    /// Moves packets between the card and the sockets; returns what DHCP said.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Lease> {
        self.interface.poll(instant(now), &mut self.device, &mut self.sockets);
        let (lease, router, server) = match self.dhcp().poll()? {
            dhcpv4::Event::Deconfigured => (None, None, None),
            dhcpv4::Event::Configured(config) => {
                (Some(config.address), config.router, config.dns_servers.first().copied())
            }
        };
        let had_address = self.has_address();
        self.interface.update_ip_addrs(|addresses| {
            addresses.clear();
            // There is room for two.
            let _ = lease.map(|lease| addresses.push(IpCidr::Ipv4(lease)));
        });
        self.interface.routes_mut().remove_default_ipv4_route();
        if let Some(router) = router {
            // As above: no other route is there.
            let _ = self.interface.routes_mut().add_default_ipv4_route(router);
        }
        let servers: Vec<IpAddress> =
            self.own_dns.or(server).into_iter().map(IpAddress::Ipv4).collect();
        self.sockets.get_mut::<dns::Socket<'_>>(self.dns).update_servers(&servers);
        match lease {
            Some(address) => Some(Lease::Got(address)),
            None => had_address.then_some(Lease::Lost),
        }
    }

    /// How long [`Self::poll`] needn't be called unless something arrives.
    pub(super) fn poll_delay(&mut self, now: Instant) -> Option<Duration> {
        let delay = self.interface.poll_delay(instant(now), &self.sockets)?;
        Some(Duration::from_micros(delay.total_micros()))
    }

    /// The network card.
    pub(super) fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// Whether the device has an address.
    pub(super) fn has_address(&self) -> bool {
        self.interface.ipv4_addr().is_some()
    }

    /// Begins to ask for the address of `name`.
    pub(super) fn look_up(&mut self, name: &str) -> Result<(), Setback> {
        let socket = self.sockets.get_mut::<dns::Socket<'_>>(self.dns);
        if let Some(query) = self.query.take() {
            socket.cancel_query(query);
        }
        let query = socket.start_query(self.interface.context(), name, DnsQueryType::A);
        self.query = Some(query.map_err(|_| Setback::BadName)?);
        Ok(())
    }

    /// What became of that.
    pub(super) fn looked_up(&mut self) -> Lookup {
        let Some(query) = self.query else { return Lookup::Failed };
        let result = self.sockets.get_mut::<dns::Socket<'_>>(self.dns).get_query_result(query);
        if let Err(GetQueryResultError::Pending) = result {
            return Lookup::Pending;
        }
        self.query = None;
        let found = result.ok().and_then(|addresses| addresses.first().copied());
        found.map_or(Lookup::Failed, |IpAddress::Ipv4(address)| Lookup::Found(address))
    }

    /// Begins a connection, in place of the one before.
    pub(super) fn dial(&mut self, address: Ipv4Address, port: u16) -> Result<(), Setback> {
        self.port = self.port.checked_add(1).unwrap_or(*OWN_PORTS.start());
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.tcp);
        socket.abort();
        let to = IpEndpoint::new(address.into(), port);
        let begun = socket.connect(self.interface.context(), to, self.port);
        begun.map_err(|_| Setback::Unreachable(address))
    }

    /// How far the connection is.
    pub(super) fn progress(&mut self) -> Progress {
        let socket = self.tcp();
        if socket.may_send() {
            Progress::Connected
        } else if socket.is_open() {
            Progress::Pending
        } else {
            Progress::Failed
        }
    }

    /// Ends the connection, once what was written is sent; an answer is waited for by nobody.
    pub(super) fn hang_up(&mut self, now: Instant) {
        self.tcp().close();
        self.interface.poll(instant(now), &mut self.device, &mut self.sockets);
    }

    fn tcp(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.tcp)
    }

    fn dhcp(&mut self) -> &mut dhcpv4::Socket<'static> {
        self.sockets.get_mut(self.dhcp)
    }
}

impl<D: phy::Device> Network for &mut Stack<D> {
    type Error = Broken;

    fn send(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let socket = self.tcp();
        if !socket.may_send() {
            return Err(Broken);
        }
        socket.send_slice(bytes).map_err(|_| Broken)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Broken> {
        let socket = self.tcp();
        if socket.can_recv() {
            return socket.recv_slice(into).map(Received::Bytes).map_err(|_| Broken);
        }
        match socket.state() {
            tcp::State::Established | tcp::State::FinWait1 | tcp::State::FinWait2 => {
                Ok(Received::Nothing)
            }
            // The other side ended its half in order.
            tcp::State::CloseWait | tcp::State::LastAck | tcp::State::Closing => Ok(Received::End),
            _ => Err(Broken),
        }
    }
}
