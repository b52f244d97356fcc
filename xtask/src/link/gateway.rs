//! The segment's gateway: every UDP port of a device is a port of this computer's loopback.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::mpsc::Sender;
use std::thread;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};

use super::{Arrival, Port};

/// The gateway's hardware address: locally administered.
const HARDWARE: EthernetAddress = EthernetAddress([0x52, 0x55, 0, 0, 0, 1]);
/// The longest datagram that is carried, in bytes.
const DATAGRAM_BYTES_MAX: usize = 1472;

/// A device's port, as it is on its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Station {
    hardware: EthernetAddress,
    address: SocketAddrV4,
}

/// The gateway.
pub(super) struct Gateway {
    arrivals: Sender<Arrival>,
    sockets: BTreeMap<Station, UdpSocket>,
}

impl Gateway {
    pub(super) fn new(arrivals: Sender<Arrival>) -> Self {
        Self { arrivals, sockets: BTreeMap::new() }
    }

    /// Takes a frame that may be for the gateway. What it can't read it drops, as a network does.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        let Ok(frame) = EthernetFrame::new_checked(bytes) else { return };
        match frame.ethertype() {
            EthernetProtocol::Arp => {
                self.answer_arp(frame.payload());
            }
            EthernetProtocol::Ipv4 if frame.dst_addr() == HARDWARE => {
                self.send_on(frame.src_addr(), frame.payload());
            }
            _ => {}
        }
    }

    /// Says that every asked address is here, unless the asker's own (RFC 5227's probes).
    fn answer_arp(&self, payload: &[u8]) -> Option<()> {
        let packet = ArpPacket::new_checked(payload).ok()?;
        let ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr,
            source_protocol_addr,
            target_protocol_addr,
            ..
        } = ArpRepr::parse(&packet).ok()?
        else {
            return None;
        };
        let is_gateway = target_protocol_addr.octets()[3] == GATEWAY_HOST;
        if !is_gateway || target_protocol_addr == source_protocol_addr {
            return None;
        }
        let reply = ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Reply,
            source_hardware_addr: HARDWARE,
            source_protocol_addr: target_protocol_addr,
            target_hardware_addr: source_hardware_addr,
            target_protocol_addr: source_protocol_addr,
        };
        let header = EthernetRepr {
            src_addr: HARDWARE,
            dst_addr: source_hardware_addr,
            ethertype: EthernetProtocol::Arp,
        };
        let mut bytes = vec![0; header.buffer_len() + reply.buffer_len()];
        let mut frame = EthernetFrame::new_unchecked(&mut bytes);
        header.emit(&mut frame);
        reply.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
        self.arrivals.send(Arrival::Frame(Port::Gateway, bytes)).ok()
    }

    fn send_on(&mut self, hardware: EthernetAddress, payload: &[u8]) -> Option<()> {
        let checksums = ChecksumCapabilities::default();
        let packet = Ipv4Packet::new_checked(payload).ok()?;
        let ip = Ipv4Repr::parse(&packet, &checksums).ok()?;
        if ip.next_header != IpProtocol::Udp {
            return None;
        }
        let (from, to) = (IpAddress::Ipv4(ip.src_addr), IpAddress::Ipv4(ip.dst_addr));
        let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
        let udp = UdpRepr::parse(&datagram, &from, &to, &checksums).ok()?;
        let address = SocketAddrV4::new(ip.src_addr, udp.src_port);
        let socket = self.socket(Station { hardware, address })?;
        // Loopback alone: the link leads nowhere else.
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, udp.dst_port));
        // A frame that isn't taken is lost, as on a network.
        socket.send_to(datagram.payload(), to).ok().map(|_| ())
    }

    /// The socket that stands for a device's port here, made at its first datagram.
    fn socket(&mut self, station: Station) -> Option<&UdpSocket> {
        if !self.sockets.contains_key(&station) {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
            let here = socket.local_addr().ok()?;
            println!("{} is at {here}", station.address);
            let (reader, arrivals) = (socket.try_clone().ok()?, self.arrivals.clone());
            thread::spawn(move || read_datagrams(&reader, station, &arrivals));
            self.sockets.insert(station, socket);
        }
        self.sockets.get(&station)
    }
}

/// The last byte of the gateway's address on every segment.
const GATEWAY_HOST: u8 = 1;

fn read_datagrams(socket: &UdpSocket, to: Station, arrivals: &Sender<Arrival>) {
    let mut datagram = [0; DATAGRAM_BYTES_MAX];
    loop {
        // An error tells of an earlier datagram that was refused by its receiver.
        let Ok((length, SocketAddr::V4(from))) = socket.recv_from(&mut datagram) else { continue };
        let frame = frame(from, to, &datagram[..length]);
        if arrivals.send(Arrival::Frame(Port::Gateway, frame)).is_err() {
            return;
        }
    }
}

fn frame(from: SocketAddrV4, to: Station, datagram: &[u8]) -> Vec<u8> {
    let checksums = ChecksumCapabilities::default();
    let udp = UdpRepr { src_port: from.port(), dst_port: to.address.port() };
    let ip = Ipv4Repr {
        src_addr: *from.ip(),
        dst_addr: *to.address.ip(),
        next_header: IpProtocol::Udp,
        payload_len: udp.header_len() + datagram.len(),
        hop_limit: 64,
    };
    let header = EthernetRepr {
        src_addr: HARDWARE,
        dst_addr: to.hardware,
        ethertype: EthernetProtocol::Ipv4,
    };
    let mut bytes = vec![0; header.buffer_len() + ip.buffer_len() + ip.payload_len];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    header.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &checksums);
    let mut body = UdpPacket::new_unchecked(packet.payload_mut());
    let (source, destination) = (IpAddress::Ipv4(ip.src_addr), IpAddress::Ipv4(ip.dst_addr));
    udp.emit(
        &mut body,
        &source,
        &destination,
        datagram.len(),
        |payload| payload.copy_from_slice(datagram),
        &checksums,
    );
    bytes
}
