//! Carries the owner's sessions with another device of the mesh: the owner's tool speaks to this device, which
//! alone hears the other.
//!
//! Invariants:
//! - The owner alone has datagrams carried, and what they say is between the owner and the other device.
//! - A tool that doesn't fetch what came for it loses it, the oldest first, and is forgotten.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::NodeId;
use tenure_protocols::interface::{Port, SendLarge};
use tenure_rpc::{Endpoint, Whose};
use tenure_wire::Address;
use tenure_wire::control::{CARRIED_BYTES_MAX, CARRYING_PATIENCE_S, CARRYING_TOOLS_MAX, Carry};
use tenure_wire::directory::{Query, SignedRecord};

use crate::membership::{Replica, answers};
use crate::mesh::Mesh;
use crate::moment::Moment;

/// The most tools, or devices that they speak to, at once.
const CARRIAGES_MAX: usize = CARRYING_TOOLS_MAX;
/// The time for which a tool is remembered that fetches nothing.
const PATIENCE: Duration = Duration::from_secs(CARRYING_PATIENCE_S);

/// Datagrams that came for the owner's tools.
#[derive(Default)]
pub(crate) struct Carriages(Vec<Carriage>);

struct Carriage {
    tool: u32,
    to: NodeId,
    arrived: VecDeque<Vec<u8>>,
    until: Instant,
}

impl Carriages {
    /// Keeps a datagram for the tools that speak to `from`; returns whether there is one.
    pub(crate) fn keep(&mut self, now: Instant, from: NodeId, datagram: &[u8]) -> bool {
        self.0.retain(|carriage| carriage.until > now);
        let mut kept = false;
        for carriage in self.0.iter_mut().filter(|carriage| carriage.to == from) {
            kept = true;
            carriage.arrived.push_back(datagram.to_vec());
            while carriage.bytes() > CARRIED_BYTES_MAX {
                carriage.arrived.pop_front();
            }
        }
        kept
    }

    /// The carriage of a tool to a device: a new one takes the place of the one that was used longest ago.
    fn of(&mut self, now: Instant, tool: u32, to: NodeId) -> &mut Carriage {
        let is_same = |carriage: &Carriage| (carriage.tool, carriage.to) == (tool, to);
        let mut carriage = match self.0.iter().position(is_same) {
            Some(position) => self.0.remove(position),
            None => Carriage { tool, to, arrived: VecDeque::new(), until: now },
        };
        carriage.until = now + PATIENCE;
        if self.0.len() >= CARRIAGES_MAX {
            self.0.remove(0);
        }
        self.0.push(carriage);
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}

impl Carriage {
    fn bytes(&self) -> usize {
        self.arrived.iter().map(|datagram| datagram.len() + 4).sum()
    }
}

impl Mesh {
    /// Sends the owner's datagrams to another device of the mesh, and returns what came from there.
    pub(crate) fn carry(&mut self, now: Instant, carry: &Carry) -> Vec<Vec<u8>> {
        let to = NodeId::from_bytes(carry.to);
        for datagram in &carry.datagrams {
            self.stack.request(&SendLarge { to, port: Port::RPC }, datagram);
        }
        self.carriages.of(now, carry.tool, to).arrived.drain(..).collect()
    }

    /// The record that is held in the mesh and tells what `query` asks for.
    pub(crate) fn find_record(&self, query: &Query) -> Option<SignedRecord> {
        let replica = self.stack.protocol::<Replica>();
        let mut held = replica.iter().flat_map(|replica| replica.records().held.values());
        held.find(|held| answers(&held.record, query)).map(|held| held.signed.clone())
    }
}

/// Takes in a session's datagram that came over the mesh, or keeps it for the owner's tools.
pub(crate) fn take_datagram(
    endpoint: &mut Endpoint<Address>,
    carriages: &mut Carriages,
    moment: &mut Moment<'_>,
    (from, datagram): (NodeId, &[u8]),
) {
    let whose = endpoint.whose(datagram);
    let is_kept = whose != Whose::Own && carriages.keep(moment.now, from, datagram);
    if !is_kept || whose == Whose::Either {
        let from = Address::Mesh(from.to_bytes());
        endpoint.receive(moment.now, moment.entropy, from, datagram);
    }
}

#[cfg(test)]
mod tests;
