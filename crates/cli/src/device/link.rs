//! The mesh of `tenure device`: its link, over UDP, raw Ethernet or a serial line, and the network that
//! the owner lets it join.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tenure_board_linux::{
    FileFlash, LinuxClock, LinuxEntropy, MulticastLink, PacketLink, REOPEN_EVERY, SatelliteThread,
    SerialLink, UdpLink, any_interface, wait_any,
};
use tenure_crypto::SigningKey;
use tenure_hal::ethernet::MacAddress;
use tenure_hal::{Clock as _, Link, LinkError};
use tenure_mesh::{Carrier, CarrierError, Reach, SatelliteNumber};
use tenure_node::{Door, Input, Moment, Outlet, Output};
use tenure_protocols::network_key::{NetworkKey, invite};
use tenure_replay::Recorded;

use tenure_wire::control::{Client as _, Join};

use crate::device::serial::{self, BAUD};
use crate::home::Home;
use crate::reach::network::{MESH_PORT, address_of};

/// The most frames that are taken in before machines have their turn again.
const FRAMES_PER_TURN: usize = 64;
/// The most neighbours whose addresses are remembered.
const NEIGHBOURS_MAX: usize = 64;

/// The options of `tenure device` for a mesh. The device remembers them.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Meshing {
    /// Join the owner's mesh, over UDP at this address. The device remembers how it meshes.
    #[arg(long = "mesh", value_name = "ADDR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<String>,
    /// Another device of the mesh that is in reach; it need not run yet, and of two neighbours only
    /// one need name the other. May be given several times.
    #[arg(long = "mesh-peer", value_name = "ADDR", requires = "udp")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    peers: Vec<String>,
    /// Join the owner's mesh by raw Ethernet frames on this interface; takes root or CAP_NET_RAW.
    #[arg(long = "mesh-interface", value_name = "NAME", conflicts_with = "udp")]
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    /// Join the owner's mesh by a group of UDP multicast: whoever is in it on the same network is a
    /// neighbour, for example 239.73.71.1:7371.
    #[arg(long = "mesh-multicast", value_name = "GROUP", conflicts_with_all = ["udp", "interface"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast: Option<String>,
    /// The address of the interface that the group is joined on; by default the system chooses.
    #[arg(long = "mesh-multicast-on", value_name = "IP", requires = "multicast")]
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast_on: Option<IpAddr>,
    /// Join the owner's mesh over a serial line, for example /dev/ttyACM0. It may be plugged in later, and unplugged
    /// and plugged in again while the device runs.
    #[arg(
        long = "mesh-serial",
        visible_alias = "serial",
        value_name = "TTY",
        conflicts_with_all = ["udp", "interface", "multicast"]
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<PathBuf>,
    /// How fast the serial line is, in bits a second; by default 115200.
    #[arg(long = "mesh-baud", value_name = "RATE", requires = "serial")]
    #[serde(skip_serializing_if = "Option::is_none")]
    baud: Option<u32>,
}

/// A device's link into its mesh.
pub struct MeshLink {
    carrier: Box<dyn Carries + Send>,
    /// Whether it was there when [`MeshLink::tell_plugged`] was called last.
    is_there: bool,
    has_thread: bool,
    /// Carries datagrams, once the device is in the mesh, and its number there.
    thread: Option<(SatelliteThread, SatelliteNumber)>,
}

impl Meshing {
    /// Whether anything was said at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Opens the link, if there is to be one.
    ///
    /// # Errors
    /// An address is none, or taken; or the interface, the group or the line can't be opened.
    pub fn open(&self) -> anyhow::Result<Option<MeshLink>> {
        fn carry<L>(link: L, reach: Reach<L::Address>) -> MeshLink
        where
            L: Link<Address: Send> + Described + Send + 'static,
        {
            let carrier = Box::new(Carrier::new(link, reach, NEIGHBOURS_MAX));
            MeshLink { carrier, is_there: true, has_thread: false, thread: None }
        }
        if let Some(interface) = &self.interface {
            let reach = Reach::ByOne(MacAddress::BROADCAST);
            return Ok(Some(carry(PacketLink::open_or_await(interface)?, reach)));
        }
        if let Some(group) = &self.multicast {
            let group = address_of(group, MESH_PORT)?;
            let interface = self.multicast_on.unwrap_or_else(|| any_interface(group));
            return Ok(Some(carry(MulticastLink::join(group, interface)?, Reach::ByOne(group))));
        }
        if let Some(line) = &self.serial {
            let link = SerialLink::open_or_await(line, self.baud.unwrap_or(BAUD))?;
            return Ok(Some(carry(link, Reach::ByOne(()))));
        }
        let Some(listen) = &self.udp else { return Ok(None) };
        let link = UdpLink::bind(address_of(listen, MESH_PORT)?)?;
        let peers: anyhow::Result<Vec<_>> =
            self.peers.iter().map(|peer| address_of(peer, MESH_PORT)).collect();
        Ok(Some(carry(link, Reach::ByEach(peers?))))
    }
}

/// The work of a carrier for a device, whatever its link is.
trait Carries {
    fn receive(
        &mut self,
        moment: &mut Moment<'_>,
        node: &mut dyn Door,
    ) -> Result<usize, CarrierError>;
    fn transmit(&mut self, node: &mut dyn Door) -> Result<(), CarrierError>;
    fn address(&self) -> String;
    fn sockets(&self) -> Vec<&dyn AsFd>;
}

impl<L: Link + Described> Carries for Carrier<L> {
    fn receive(
        &mut self,
        moment: &mut Moment<'_>,
        node: &mut dyn Door,
    ) -> Result<usize, CarrierError> {
        Carrier::receive(self, moment.now, FRAMES_PER_TURN, |frame, signal_dbm| {
            node.receive_frame(moment, frame, signal_dbm)
        })
    }

    fn transmit(&mut self, node: &mut dyn Door) -> Result<(), CarrierError> {
        let mut sent = Ok(());
        while let Some((to, frame)) = node.transmit_frame() {
            sent = sent.and(self.send(to, &frame));
        }
        sent
    }

    fn address(&self) -> String {
        self.link().described()
    }

    fn sockets(&self) -> Vec<&dyn AsFd> {
        self.link().sockets()
    }
}

/// How a link shows itself to the owner, and what to wait on.
trait Described {
    fn described(&self) -> String;
    /// None of a line or an interface that is unplugged.
    fn sockets(&self) -> Vec<&dyn AsFd>;
}

impl Described for UdpLink {
    fn described(&self) -> String {
        self.address().to_string()
    }

    fn sockets(&self) -> Vec<&dyn AsFd> {
        vec![self]
    }
}

impl Described for PacketLink {
    fn described(&self) -> String {
        self.address().map_or_else(|| self.name().to_owned(), |address| address.to_string())
    }

    fn sockets(&self) -> Vec<&dyn AsFd> {
        self.socket().into_iter().collect()
    }
}

impl Described for MulticastLink {
    fn described(&self) -> String {
        self.group().to_string()
    }

    fn sockets(&self) -> Vec<&dyn AsFd> {
        MulticastLink::sockets(self).to_vec()
    }
}

impl Described for SerialLink {
    fn described(&self) -> String {
        self.name().to_owned()
    }

    fn sockets(&self) -> Vec<&dyn AsFd> {
        self.socket().into_iter().collect()
    }
}

impl MeshLink {
    /// Where it listens.
    pub fn address(&self) -> String {
        self.carrier.address()
    }

    /// Lets the mesh's datagrams be carried on a thread of their own, or not.
    pub fn use_thread(&mut self, has_thread: bool) {
        self.has_thread = has_thread;
    }

    /// The same link, of a device that has slept: what its thread knew is gone.
    pub fn awake(self) -> Self {
        Self { thread: None, ..self }
    }

    /// Hands events to the thread and takes what it wants done, where there is one; starts it once the
    /// device is in the mesh. To be called whenever the node was polled; says whether it is to be again.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn exchange(
        &mut self,
        clock: LinuxClock,
        entropy: &mut LinuxEntropy,
        node: &mut Recorded<FileFlash>,
    ) -> anyhow::Result<bool> {
        if !self.has_thread || node.node().mesh_stack().is_none() {
            return Ok(false);
        }
        if self.thread.is_none()
            && let Some((satellite, number)) = node.lend().mesh_satellite(clock.now())
        {
            let thread = SatelliteThread::start(satellite, clock);
            self.thread = Some((thread.context("a thread for the mesh")?, number));
        }
        let Some((thread, number)) = &self.thread else { return Ok(false) };
        while let Some(Output::Parcel(event)) = node.give(Outlet::Parcels(*number)) {
            thread.hand_over(event);
        }
        let mut moment = Moment { now: clock.now(), unix_time: clock.unix_time(), entropy };
        while let Some(wanted) = thread.wanted() {
            node.take(&mut moment, Input::Parcel(wanted));
        }
        let poll_at = node.node().mesh_stack().and_then(|stack| stack.poll_at(moment.now));
        Ok(poll_at.is_some_and(|at| at <= moment.now))
    }

    /// Takes in the frames that have come.
    ///
    /// # Errors
    /// The link is broken.
    pub fn receive(&mut self, moment: &mut Moment<'_>, node: &mut dyn Door) -> anyhow::Result<()> {
        let received = self.carrier.receive(moment, node);
        received.map(drop).with_context(|| self.carrier.address())
    }

    /// Prints it if the link isn't there, was unplugged, or came.
    pub fn tell_plugged(&mut self, output: &crate::terminal::output::Output) {
        let is_there = !self.carrier.sockets().is_empty();
        if std::mem::replace(&mut self.is_there, is_there) != is_there {
            serial::tell_plugged(is_there, &self.carrier.address(), output);
        }
    }

    /// Sends the frames that are due.
    ///
    /// # Errors
    /// The link is broken.
    pub fn transmit(&mut self, node: &mut dyn Door) -> anyhow::Result<()> {
        self.carrier.transmit(node).with_context(|| self.carrier.address())
    }

    /// Sleeps until a datagram comes to the mesh or to `link`, or `timeout` is over.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait(&self, beside: &[&dyn AsFd], timeout: Duration) -> Result<(), LinkError> {
        let mut sockets = self.carrier.sockets();
        let timeout = if sockets.is_empty() { timeout.min(REOPEN_EVERY) } else { timeout };
        sockets.extend(beside);
        sockets.extend(self.thread.iter().map(|(thread, _)| thread as &dyn AsFd));
        wait_any(&sockets, timeout).map(drop)
    }
}

/// Invites a device to the mesh of the owner whose keys are in `home`, and lets it join.
///
/// # Errors
/// The network's key can't be had or kept.
pub fn join(
    node: &mut Recorded<FileFlash>,
    moment: &mut Moment<'_>,
    home: &Home,
    owner: &SigningKey,
) -> anyhow::Result<()> {
    let invitation = invitation(home, owner, &node.node().device_machine())?;
    node.as_owner(moment).join(Join { invitation }).context("joining the mesh")
}

/// An invitation of the device with that machine to the owner's mesh.
///
/// # Errors
/// The network's key can't be had, or the device's is nobody's.
pub fn invitation(
    home: &Home,
    owner: &SigningKey,
    device: &tenure_wire::PublicKey,
) -> anyhow::Result<Vec<u8>> {
    let network = NetworkKey::from_bytes(&*home.network_key()?);
    Ok(invite(owner, device, home.next_number(0), &network, &mut LinuxEntropy)?)
}
