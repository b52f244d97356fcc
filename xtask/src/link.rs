//! `link`: a network segment for emulated devices that loses and reorders frames.
//!
//! Emulators plug in with QEMU's `-netdev socket`: frames with their length in front, over TCP. The
//! segment's gateway gives each device a UDP port of this computer's loopback, so that Linux devices
//! and hubs take part too, over the same bad link.

mod gateway;
mod weather;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use smoltcp::wire::{EthernetAddress, EthernetFrame};
use tenure_board_linux::EthernetPort;

use gateway::Gateway;
use weather::Weather;

/// Carry frames between emulated devices, and lose and reorder some.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask link --listen 127.0.0.1:7400 --lose 50 --reorder 50")]
pub(crate) struct Arguments {
    /// Where emulators plug in (`cargo xtask board … --link`).
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Lose one frame in so many; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    lose: u64,
    /// Let one frame in so many arrive after those behind it; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    reorder: u64,
    /// Let this network interface take part, for Linux devices on raw frames
    /// (`tenure device --mesh-interface`, on the other end of a veth pair). Takes root.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Which frames: the same seed and the same frames give the same losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Something that came to the segment.
enum Arrival {
    Plugged(usize, TcpStream),
    Unplugged(usize),
    Frame(Port, Vec<u8>),
}

/// Where a frame comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Gateway,
    Emulator(usize),
    Interface,
}

pub(crate) fn run(arguments: &Arguments, _: &Path) -> Result<()> {
    let listener = TcpListener::bind(arguments.listen)
        .with_context(|| format!("can't listen at {}", arguments.listen))?;
    println!("link carries frames at {}", listener.local_addr()?);
    let (sender, arrivals) = channel();
    let gateway = Gateway::new(sender.clone());
    let interface = arguments.interface.as_deref().map(EthernetPort::open).transpose()?;
    let interface = interface.map(Arc::new);
    if let Some(interface) = interface.clone() {
        let arrivals = sender.clone();
        thread::spawn(move || hear(&interface, &arrivals));
    }
    thread::spawn(move || plug_in(&listener, &sender));
    let weather = Weather::new(arguments.lose, arguments.reorder, arguments.seed);
    let (emulators, stations) = (BTreeMap::new(), BTreeMap::new());
    Segment { gateway, weather, emulators, interface, stations }.carry(&arrivals)
}

/// Takes in what the interface hears.
fn hear(interface: &EthernetPort, arrivals: &Sender<Arrival>) -> Result<()> {
    let mut frame = [0; FRAME_BYTES_MAX];
    loop {
        let mut waits = [PollFd::new(interface, PollFlags::IN)];
        poll(&mut waits, None)?;
        while let Some(length) = interface.receive(&mut frame)? {
            arrivals.send(Arrival::Frame(Port::Interface, frame[..length].to_vec()))?;
        }
    }
}

fn plug_in(listener: &TcpListener, arrivals: &Sender<Arrival>) {
    for (number, stream) in listener.incoming().flatten().enumerate() {
        let Ok(reader) = stream.try_clone() else { continue };
        // Small frames are waited for: nothing is gained by collecting them.
        let _ = stream.set_nodelay(true);
        if arrivals.send(Arrival::Plugged(number, stream)).is_err() {
            return;
        }
        let arrivals = arrivals.clone();
        thread::spawn(move || {
            // The emulator has ended, or was killed.
            let _ = read_frames(reader, number, &arrivals);
            let _ = arrivals.send(Arrival::Unplugged(number));
        });
    }
}

/// The longest frame that is carried, in bytes.
const FRAME_BYTES_MAX: usize = 2048;

fn read_frames(mut stream: TcpStream, number: usize, arrivals: &Sender<Arrival>) -> Result<()> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(std::io::Error::from(ErrorKind::InvalidData).into());
        }
        let mut frame = vec![0; length];
        stream.read_exact(&mut frame)?;
        arrivals.send(Arrival::Frame(Port::Emulator(number), frame))?;
    }
}

/// The switch.
struct Segment {
    gateway: Gateway,
    weather: Weather,
    emulators: BTreeMap<usize, TcpStream>,
    interface: Option<Arc<EthernetPort>>,
    /// Behind which port each hardware address was seen.
    stations: BTreeMap<EthernetAddress, Port>,
}

impl Segment {
    fn carry(&mut self, arrivals: &Receiver<Arrival>) -> Result<()> {
        loop {
            let arrival = match self.weather.holds_until() {
                None => arrivals.recv().ok(),
                Some(wait) => match arrivals.recv_timeout(wait) {
                    Ok(arrival) => Some(arrival),
                    Err(RecvTimeoutError::Timeout) => {
                        self.release();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => None,
                },
            };
            match arrival {
                None => return Ok(()),
                Some(Arrival::Plugged(number, stream)) => {
                    self.emulators.insert(number, stream);
                }
                Some(Arrival::Unplugged(number)) => {
                    self.emulators.remove(&number);
                }
                Some(Arrival::Frame(from, frame)) => {
                    if let Some((from, frame)) = self.weather.pass(from, frame) {
                        self.forward(from, &frame);
                        self.release();
                    }
                }
            }
        }
    }

    fn release(&mut self) {
        while let Some((from, frame)) = self.weather.release() {
            self.forward(from, &frame);
        }
    }

    fn forward(&mut self, from: Port, frame: &[u8]) {
        let Ok(header) = EthernetFrame::new_checked(frame) else { return };
        self.stations.insert(header.src_addr(), from);
        let to = self.stations.get(&header.dst_addr()).copied();
        let ports: Vec<Port> = match to {
            Some(port) => vec![port],
            // Gateway included: it answers what is asked of all.
            None => {
                let emulators = self.emulators.keys().map(|number| Port::Emulator(*number));
                emulators.chain([Port::Gateway, Port::Interface]).collect()
            }
        };
        for port in ports.into_iter().filter(|port| *port != from) {
            match port {
                Port::Gateway => self.gateway.receive(frame),
                Port::Emulator(number) => self.send(number, frame),
                // A frame that it doesn't take now is lost, as on any link.
                Port::Interface => _ = self.interface.as_ref().map(|port| port.send(frame)),
            }
        }
    }

    fn send(&mut self, number: usize, frame: &[u8]) {
        let Some(stream) = self.emulators.get_mut(&number) else { return };
        let length = (frame.len() as u32).to_be_bytes();
        if stream.write_all(&[&length, frame].concat()).is_err() {
            self.emulators.remove(&number);
        }
    }
}
