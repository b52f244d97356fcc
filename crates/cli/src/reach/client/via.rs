//! The way to a device that this computer doesn't reach: a member of its mesh carries the datagrams.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tenure_board_linux::LinuxEntropy;
use tenure_hal::Entropy as _;
use tenure_mesh::NodeId;
use tenure_wire::Address;
use tenure_wire::control::{CARRIED_BYTES_MAX, Carry, Client as _, HELD_MS_MAX, MeshStatus};
use tenure_wire::directory::{Found, Query, SignedRecord};
use tenure_wire::message::List;

use super::{Client, Route};

/// The time between two questions while nothing comes to a member that doesn't hold them, as it is of an older version or
/// holds others' already: at first, and at most after it has doubled with each.
const ASK_AGAIN: Duration = Duration::from_millis(30);
const ASK_AGAIN_MAX: Duration = Duration::from_millis(240);

/// A session with a member that carries datagrams.
pub(super) struct Via {
    /// The member, as the user named it.
    name: String,
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
    pub(super) fn new(name: &str, client: Client, member: Route) -> anyhow::Result<Self> {
        let mut tool = [0; 4];
        LinuxEntropy.fill(&mut tool).context("no randomness")?;
        let tool = u32::from_le_bytes(tool);
        let name = name.to_owned();
        Ok(Self { name, client, member, tool, waiting: Vec::new(), to: None, pause: ASK_AGAIN })
    }

    /// The member, as the user named it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Lets nothing be waited for after `until`.
    pub(super) fn end_by(&mut self, until: Option<Instant>) {
        self.client.end_by(until);
    }

    /// The member's part in its mesh, and its ways to others; `None` if it doesn't answer.
    pub(super) fn status(&mut self) -> Option<MeshStatus> {
        self.client.at(&self.member).mesh(()).ok()
    }

    /// Whether datagrams wait to be carried.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
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
        let wait = if self.waiting.is_empty() { wait } else { Duration::ZERO };
        let wait_ms = wait.as_millis().min(HELD_MS_MAX.into()) as u16;
        let carry = Carry { tool: self.tool, to, datagrams, wait_ms };
        let asked = Instant::now();
        let List(arrived) = self.client.at(&self.member).mesh_carry(carry)?;
        let was_held = asked.elapsed() >= Duration::from_millis(wait_ms.into());
        if !arrived.is_empty() || sent || was_held {
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
        record.map(in_mesh).transpose()
    }
}

/// The record that a member gave, and the place in the mesh of its device.
///
/// # Errors
/// It proves nothing.
pub fn in_mesh(record: SignedRecord) -> anyhow::Result<Found> {
    let Ok(opened) = tenure_directory::open_whenever(&record) else {
        bail!("the record that the member holds proves nothing");
    };
    let machine = tenure_crypto::machine_id(&opened.device_machine);
    Ok(Found { record, seen_at: Address::Mesh(NodeId::from(&machine).to_bytes()) })
}
