//! The way to a device that this computer doesn't reach: a member of its mesh carries the datagrams.

use std::time::Duration;

use anyhow::{Context as _, bail};
use tenure_board_linux::LinuxEntropy;
use tenure_hal::Entropy as _;
use tenure_mesh::NodeId;
use tenure_wire::Address;
use tenure_wire::control::{CARRIED_BYTES_MAX, Carry, Client as _};
use tenure_wire::directory::{DeviceRecord, Found, Query};
use tenure_wire::message::List;

use super::{Client, Route};

/// The time between two questions to the member while nothing comes: at first, and at most after it has
/// doubled with each.
const ASK_AGAIN: Duration = Duration::from_millis(30);
const ASK_AGAIN_MAX: Duration = Duration::from_millis(240);

/// A session with a member that carries datagrams.
pub(super) struct Via {
    client: Client,
    member: Route,
    tool: u32,
    /// Datagrams to be carried, with where to.
    waiting: Vec<([u8; 6], Vec<u8>)>,
    /// The node that was last sent to.
    to: Option<[u8; 6]>,
    /// The pause before the next question, if nothing comes.
    pause: Duration,
}

impl Via {
    /// Speaks through the device at `member`, with which `client` has a session.
    pub(super) fn new(client: Client, member: Route) -> anyhow::Result<Self> {
        let mut tool = [0; 4];
        LinuxEntropy.fill(&mut tool).context("no randomness")?;
        let tool = u32::from_le_bytes(tool);
        Ok(Self { client, member, tool, waiting: Vec::new(), to: None, pause: ASK_AGAIN })
    }

    /// Notes a datagram that is to be carried.
    pub(super) fn send(&mut self, to: [u8; 6], datagram: Vec<u8>) {
        self.waiting.push((to, datagram));
    }

    /// Has the datagrams carried that wait, and returns those that came back, with where from; after `wait` at the latest,
    /// even if there are none.
    pub(super) fn exchange(&mut self, wait: Duration) -> anyhow::Result<Vec<(Address, Vec<u8>)>> {
        let Some(to) = self.waiting.first().map(|(to, _)| *to).or(self.to) else {
            std::thread::sleep(wait.min(ASK_AGAIN));
            return Ok(Vec::new());
        };
        self.to = Some(to);
        let mut bytes = 0;
        let mut fits = |(node, datagram): &([u8; 6], Vec<u8>)| {
            bytes += datagram.len() + 4;
            *node == to && bytes <= CARRIED_BYTES_MAX
        };
        let count = self.waiting.iter().take_while(|waiting| fits(waiting)).count();
        // One that is too long for a call of its own is lost, as it would be on a link.
        let datagrams: Vec<_> =
            self.waiting.drain(..count.max(1).min(self.waiting.len())).map(|(_, it)| it).collect();
        let sent = !datagrams.is_empty();
        let carry = Carry { tool: self.tool, to, datagrams };
        let List(arrived) = self.client.at(&self.member).mesh_carry(carry)?;
        if !arrived.is_empty() || sent {
            self.pause = ASK_AGAIN;
        } else {
            std::thread::sleep(wait.min(self.pause));
            self.pause = (self.pause * 2).min(ASK_AGAIN_MAX);
        }
        Ok(arrived.into_iter().map(|datagram| (Address::Mesh(to), datagram)).collect())
    }

    /// The record that the member holds of what `query` asks for.
    pub(super) fn find(&mut self, query: &Query) -> anyhow::Result<Option<Found>> {
        let record = self.client.at(&self.member).mesh_find(query.clone())?;
        let Some(record) = record else { return Ok(None) };
        let Ok(opened) = tenure_directory::open_whenever(&record) else {
            bail!("the record that the member holds proves nothing");
        };
        Ok(Some(Found { record, seen_at: address_of(&opened) }))
    }
}

/// The place in the mesh of the device of a record.
fn address_of(record: &DeviceRecord) -> Address {
    let machine = tenure_crypto::machine_id(&record.device_machine);
    Address::Mesh(NodeId::from(&machine).to_bytes())
}
