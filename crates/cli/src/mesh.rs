//! The mesh of `tenure device`: its link over UDP or raw Ethernet, and the network that the owner lets it join.

use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::Context as _;
use tenure_board_linux::{FileFlash, LinuxEntropy, MacAddress, PacketLink, UdpLink, wait_any};
use tenure_crypto::SigningKey;
use tenure_hal::{Instant, LinkError};
use tenure_mesh::{Carrier, Reach};
use tenure_node::Node;
use tenure_protocols::network_key::{NetworkKey, invite};

use crate::clock::now_in_milliseconds;
use crate::home::Home;
use crate::network::{MESH_PORT, address_of};

/// The most frames that are taken in before machines have their turn again.
const FRAMES_PER_TURN: usize = 64;
/// The most neighbours whose addresses are remembered.
const NEIGHBOURS_MAX: usize = 64;

/// What `tenure device` is told of a mesh.
#[derive(clap::Args)]
pub struct Meshing {
    /// Join the owner's mesh, over UDP at this address.
    #[arg(long, value_name = "ADDR")]
    mesh: Option<String>,
    /// Another device of the mesh that is in reach; it need not run yet, and of two neighbours only
    /// one need name the other. May be given several times.
    #[arg(long = "mesh-peer", value_name = "ADDR", requires = "mesh")]
    peers: Vec<String>,
    /// Join the owner's mesh by raw Ethernet frames on this interface; takes root or CAP_NET_RAW.
    #[arg(long = "mesh-interface", value_name = "NAME", conflicts_with = "mesh")]
    interface: Option<String>,
}

/// A device's link into its mesh.
pub enum MeshLink {
    /// Over UDP.
    Udp(Carrier<UdpLink>),
    /// By raw Ethernet frames.
    Ethernet(Carrier<PacketLink>),
}

impl Meshing {
    /// Opens the link, if there is to be one.
    ///
    /// # Errors
    /// An address is none, or taken; or the interface can't be opened.
    pub fn open(&self) -> anyhow::Result<Option<MeshLink>> {
        if let Some(interface) = &self.interface {
            let (link, reach) = (PacketLink::open(interface)?, Reach::ByOne(MacAddress::BROADCAST));
            return Ok(Some(MeshLink::Ethernet(Carrier::new(link, reach, NEIGHBOURS_MAX))));
        }
        let Some(listen) = &self.mesh else { return Ok(None) };
        let link = UdpLink::bind(address_of(listen, MESH_PORT)?)?;
        let peers: anyhow::Result<Vec<_>> =
            self.peers.iter().map(|peer| address_of(peer, MESH_PORT)).collect();
        Ok(Some(MeshLink::Udp(Carrier::new(link, Reach::ByEach(peers?), NEIGHBOURS_MAX))))
    }
}

impl MeshLink {
    /// Where it listens.
    pub fn address(&self) -> String {
        match self {
            Self::Udp(carrier) => carrier.link().address().to_string(),
            Self::Ethernet(carrier) => carrier.link().address().to_string(),
        }
    }

    /// Takes in the frames that have come.
    ///
    /// # Errors
    /// The link is broken.
    pub fn receive(&mut self, now: Instant, node: &mut Node<FileFlash>) -> anyhow::Result<()> {
        if let Some(stack) = node.mesh() {
            match self {
                Self::Udp(carrier) => carrier.receive(now, stack, FRAMES_PER_TURN)?,
                Self::Ethernet(carrier) => carrier.receive(now, stack, FRAMES_PER_TURN)?,
            };
        }
        Ok(())
    }

    /// Sends the frames that are due.
    ///
    /// # Errors
    /// The link is broken.
    pub fn transmit(&mut self, now: Instant, node: &mut Node<FileFlash>) -> anyhow::Result<()> {
        if let Some(stack) = node.mesh() {
            match self {
                Self::Udp(carrier) => carrier.transmit(now, stack)?,
                Self::Ethernet(carrier) => carrier.transmit(now, stack)?,
            }
        }
        Ok(())
    }

    /// Sleeps until a datagram comes to the mesh or to `link`, or `timeout` is over.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait(&self, link: &UdpLink, timeout: Duration) -> Result<(), LinkError> {
        let own: &dyn AsFd = match self {
            Self::Udp(carrier) => carrier.link(),
            Self::Ethernet(carrier) => carrier.link(),
        };
        wait_any(&[link, own], timeout).map(drop)
    }
}

/// Invites a device to the mesh of the owner whose keys are in `home`, and lets it join.
///
/// # Errors
/// The network's key can't be had or kept.
pub fn join(
    node: &mut Node<FileFlash>,
    now: Instant,
    home: &Home,
    owner: &SigningKey,
) -> anyhow::Result<()> {
    let network = NetworkKey::from_bytes(&*home.network_key()?);
    let device = node.device_machine();
    let number = now_in_milliseconds();
    let invitation = invite(owner, &device, number, &network, &mut LinuxEntropy)?;
    node.join_mesh(now, &invitation).context("joining the mesh")
}
