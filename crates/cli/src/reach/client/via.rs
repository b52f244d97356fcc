//! The way to a device that this computer doesn't reach: a member of its mesh carries the datagrams.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tenure_board_linux::LinuxEntropy;
use tenure_hal::Entropy as _;
use tenure_mesh::NodeId;
use tenure_wire::control::{CARRIED_BYTES_MAX, Carry, Client as _, HELD_MS_MAX, MeshStatus};
use tenure_wire::directory::{Found, Query, SignedRecord};
use tenure_wire::message::List;
use tenure_wire::{Address, Name};

use super::{Client, DIAGNOSIS_TIMEOUT, Route};

/// The time between two questions while nothing comes to a member that doesn't hold them, as it is of an older version or
/// holds others' already: at first, and at most after it has doubled with each.
const ASK_AGAIN: Duration = Duration::from_millis(30);
const ASK_AGAIN_MAX: Duration = Duration::from_millis(240);

/// The most devices that are named as still reached.
const NAMED_MAX: usize = 8;

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

    /// What the member knows of the way to `node`, now that nothing comes from there.
    pub(super) fn state_of_way(&mut self, node: [u8; 6]) -> Option<String> {
        let until = self.client.ends_by();
        self.client.end_by(Some(Instant::now() + DIAGNOSIS_TIMEOUT));
        let status = self.client.at(&self.member).mesh(());
        self.client.end_by(until);
        Some(state_of_way(&self.name, &NodeId::from_bytes(node).to_string(), &status.ok()?))
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

/// What a member's status says of its way to `to`.
fn state_of_way(member: &str, to: &str, status: &MeshStatus) -> String {
    let name_of = |node: &str| {
        let way = status.ways.iter().find(|way| way.to == node);
        way.and_then(|way| way.device.as_ref()).map_or_else(|| node.to_owned(), Name::to_string)
    };
    if let Some(way) = status.ways.iter().find(|way| way.to == to) {
        return match way.next_hop == to {
            true => format!("{member} hears it without a relay, so it is busy or just gone"),
            false => format!(
                "the way there from {member} begins with {}: a relay on it is gone or out of reach, and {member} \
                 doesn't know yet",
                name_of(&way.next_hop)
            ),
        };
    }
    let mut reached: Vec<String> = status.ways.iter().map(|way| name_of(&way.to)).collect();
    reached.sort();
    reached.truncate(NAMED_MAX);
    let reached = if reached.is_empty() { "nobody".to_owned() } else { reached.join(", ") };
    format!(
        "{member} has no way there any more: the device or a relay before it is gone or out of reach; it still \
         reaches {reached}"
    )
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

#[cfg(test)]
mod tests {
    use tenure_wire::control::MeshWay;

    use super::*;

    #[test]
    fn way_that_is_lost_is_told_with_whom_the_member_still_reaches() {
        let way = |to: &str, device: Option<&str>, next_hop: &str| MeshWay {
            to: to.to_owned(),
            device: device.map(|name| name.parse().unwrap()),
            next_hop: next_hop.to_owned(),
            metric: 64,
        };
        let status = |ways| MeshStatus { node: "n1".to_owned(), neighbours: 1, ways };
        let told = |ways| state_of_way("m1", "n5", &status(ways));
        let lost = told(vec![way("n2", Some("m2"), "n2"), way("n3", None, "n2")]);
        assert!(lost.starts_with("m1 has no way there any more"), "{lost}");
        assert!(lost.ends_with("it still reaches m2, n3"), "{lost}");
        let still = told(vec![way("n2", Some("m2"), "n2"), way("n5", Some("m5"), "n2")]);
        assert!(still.contains("begins with m2: a relay on it is gone"), "{still}");
        assert!(told(vec![way("n5", None, "n5")]).contains("without a relay"));
        assert!(told(Vec::new()).ends_with("reaches nobody"));
    }
}
