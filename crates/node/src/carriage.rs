//! Carries sessions with another device of the mesh: the tool of the owner, or of a tenant with the owner's pass, speaks
//! to this device, which alone hears the other.
//!
//! Invariants:
//! - What the datagrams say is between the tool and the other device.
//! - A tool that doesn't fetch what came for it loses it, the oldest first, and is forgotten.

use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_mesh::NodeId;
use tenure_package::{Pass, PassShown};
use tenure_protocols::interface::{Port, SendLarge};
use tenure_rpc::{Endpoint, IncomingCallHandle, Whose};
use tenure_wire::control::{
    Answer, CARRIED_BYTES_MAX, CARRYING_PATIENCE_S, CARRYING_TOOLS_MAX, Carry, ControlError,
    HELD_MS_MAX, HELD_OWNERS_MAX, HELD_TENANTS_MAX, encode_answer,
};
use tenure_wire::directory::{Query, SignedRecord};
use tenure_wire::message::List;
use tenure_wire::{Address, PublicKey};

use crate::clock::Clock;
use crate::membership::{Replica, answers, key_of, node_of};
use crate::mesh::Mesh;
use crate::moment::Moment;
use crate::secrets::Secrets;
use crate::services::Services;
use passages::{Passage, Passages};

mod passages;

/// The most tools, or devices that they speak to, at once.
const CARRIAGES_MAX: usize = CARRYING_TOOLS_MAX;
/// The time for which a tool is remembered that fetches nothing.
const PATIENCE: Duration = Duration::from_secs(CARRYING_PATIENCE_S);
/// The time after which a tenant shows its pass again, in seconds.
const PASS_S_MAX: u64 = 24 * 60 * 60;

/// Sessions that are carried: the owner's and those of tenants, each with room of their own.
pub(crate) struct Carrying {
    owners: Carriages,
    tenants: Carriages,
    passages: Passages,
    held: Vec<Held>,
}

/// A call of a tool that waits until something comes for it.
struct Held {
    call: IncomingCallHandle,
    tool: Tool,
    to: NodeId,
    is_owners: bool,
    until: Instant,
}

/// A call to have datagrams carried.
pub(crate) struct CarryCall<'a> {
    pub(crate) caller: &'a PublicKey,
    pub(crate) carry: &'a Carry,
    /// By which it can be answered later, if it came over a session.
    pub(crate) handle: Option<IncomingCallHandle>,
}

/// Datagrams that came for tools.
#[derive(Default)]
struct Carriages(Vec<Carriage>);

struct Carriage {
    tool: Tool,
    to: NodeId,
    arrived: VecDeque<Vec<u8>>,
    until: Instant,
}

/// A tool: the key of its session, and the number that it drew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tool {
    caller: PublicKey,
    number: u32,
}

impl Carrying {
    pub(crate) fn new() -> Self {
        let (owners, tenants) = (Carriages::default(), Carriages::default());
        Self { owners, tenants, passages: Passages::new(), held: Vec::new() }
    }

    /// Answers the calls that were held for what has come by now, and those that have waited long enough.
    pub(crate) fn answer(&mut self, endpoint: &mut Endpoint<Address>, now: Instant) {
        let Self { owners, tenants, held, .. } = self;
        held.retain(|one| {
            let carriages = if one.is_owners { &mut *owners } else { &mut *tenants };
            let arrived = carriages.fetch(one.tool, one.to);
            if arrived.is_empty() && now < one.until {
                return true;
            }
            let answer = encode_answer(&Ok(List(arrived)));
            endpoint.reply(now, one.call, Ok(Some(answer)));
            false
        });
    }

    /// Whether a call is answered later.
    pub(crate) fn holds(&self, call: IncomingCallHandle) -> bool {
        self.held.iter().any(|one| one.call == call)
    }

    /// When the first of the calls that are held has waited long enough.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        self.held.iter().map(|one| one.until).min()
    }

    /// Holds a call, if there is room. One before it of the same tool is over then: its tool waits for it no more.
    fn hold(&mut self, held: Held) {
        let is_same = |one: &&mut Held| (one.tool, one.to) == (held.tool, held.to);
        if let Some(before) = self.held.iter_mut().find(is_same) {
            before.until = Instant::BOOT;
        }
        let count = self.held.iter().filter(|one| one.is_owners == held.is_owners).count();
        if count < if held.is_owners { HELD_OWNERS_MAX } else { HELD_TENANTS_MAX } {
            self.held.push(held);
        }
    }

    /// Keeps a datagram for the tools that speak to `from`; returns whether there is one.
    fn keep(&mut self, now: Instant, from: NodeId, datagram: &[u8]) -> bool {
        let is_owners = self.owners.keep(now, from, datagram);
        self.tenants.keep(now, from, datagram) || is_owners
    }
}

impl Carriages {
    /// Keeps a datagram for the tools that speak to `from`; returns whether there is one.
    fn keep(&mut self, now: Instant, from: NodeId, datagram: &[u8]) -> bool {
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
    fn of(&mut self, now: Instant, tool: Tool, to: NodeId) -> &mut Carriage {
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

impl Carriages {
    /// Takes what has come for a tool.
    fn fetch(&mut self, tool: Tool, to: NodeId) -> Vec<Vec<u8>> {
        let is_this = |carriage: &&mut Carriage| (carriage.tool, carriage.to) == (tool, to);
        let carriage = self.0.iter_mut().find(is_this);
        carriage.map_or_else(Vec::new, |carriage| carriage.arrived.drain(..).collect())
    }
}

impl Carriage {
    fn bytes(&self) -> usize {
        self.arrived.iter().map(|datagram| datagram.len() + 4).sum()
    }
}

/// The parts by which a device judges a pass.
pub(crate) struct PassCheck<'a, F> {
    pub(crate) services: &'a Services<F>,
    pub(crate) secrets: &'a mut Secrets,
    pub(crate) clock: &'a Clock,
}

impl<F: Flash> PassCheck<'_, F> {
    /// The pass in a statement that `caller` shows, and the seconds for which it counts still.
    fn judge(
        &mut self,
        moment: &Moment<'_>,
        caller: &PublicKey,
        shown: &[u8],
    ) -> Answer<(Pass, u64)> {
        // The statement's signature and the pass's: paid one by one, who asks again and again never has both.
        self.secrets.pay_verifications(self.services, moment.now, (caller, 2))?;
        let (shown, tenant) = PassShown::verify(shown).map_err(refused)?;
        if shown.caller != *caller || self.services.ownership.revoked.has_tenant(&tenant) {
            return Err(refused("the pass doesn't count for who shows it"));
        }
        let owner = &self.services.config.owner.verifying_key;
        let pass = Pass::verify(&shown.pass, owner).map_err(refused)?;
        if pass.tenant != tenant {
            return Err(refused("the pass is another tenant's"));
        }
        let known = self.clock.vouched_time(moment);
        let unix_s = known.ok_or_else(|| refused("the device doesn't know the time"))?.seconds;
        match pass.ends_unix_s.saturating_sub(unix_s) {
            0 => Err(refused("the pass is over; ask the owner for another")),
            left_s => Ok((pass, left_s)),
        }
    }
}

impl Mesh {
    /// Sends somebody's datagrams to another device of the mesh, and returns what came from there; if nothing did, the
    /// call may be held until something does.
    ///
    /// # Errors
    /// The caller is neither the owner nor a tenant who has shown a pass for that device.
    pub(crate) fn carry<F>(
        &mut self,
        services: &Services<F>,
        now: Instant,
        CarryCall { caller, carry, handle }: CarryCall<'_>,
    ) -> Answer<Vec<Vec<u8>>> {
        let owner = &services.config.owner;
        let is_owners = *caller == owner.machine;
        let Carrying { owners, tenants, passages, .. } = &mut self.carrying;
        let (permitted, carriages) = if is_owners {
            (carry.datagrams.iter().map(Vec::as_slice).collect(), owners)
        } else {
            let standing = (&owner.verifying_key, &services.ownership.revoked);
            (passages.permit(now, standing, caller, carry)?, tenants)
        };
        let to = NodeId::from_bytes(carry.to);
        for datagram in permitted {
            self.stack.request(&SendLarge { to, port: Port::RPC }, datagram);
        }
        let tool = Tool { caller: *caller, number: carry.tool };
        let arrived: Vec<_> = carriages.of(now, tool, to).arrived.drain(..).collect();
        let wait = Duration::from_millis(carry.wait_ms.min(HELD_MS_MAX).into());
        if let Some(call) = handle.filter(|_| arrived.is_empty() && !wait.is_zero()) {
            self.carrying.hold(Held { call, tool, to, is_owners, until: now + wait });
        }
        Ok(arrived)
    }

    /// Lets a tenant have datagrams carried who shows the owner's pass for another device of the mesh, and returns
    /// the record of that device.
    ///
    /// # Errors
    /// The pass doesn't count, or the device isn't known here.
    pub(crate) fn take_pass<F: Flash>(
        &mut self,
        mut check: PassCheck<'_, F>,
        moment: &Moment<'_>,
        caller: &PublicKey,
        shown: &[u8],
    ) -> Answer<SignedRecord> {
        let (pass, left_s) = check.judge(moment, caller, shown)?;
        let Services { identity, config, .. } = check.services;
        let records = self.stack.protocol::<Replica>().map(Replica::records);
        let held = records.and_then(|records| records.held.get(&key_of(&pass.device)));
        let held = held.filter(|_| pass.device != identity.verifying_key());
        let held = held.ok_or_else(|| refused("the mesh has no such device"))?;
        self.carrying.passages.show(Passage {
            owner: config.owner.verifying_key,
            pass,
            caller: *caller,
            to: node_of(&held.record),
            ends: moment.now + Duration::from_secs(left_s.min(PASS_S_MAX)),
        });
        Ok(held.signed.clone())
    }

    /// The record that is held in the mesh and tells what `query` asks for.
    pub(crate) fn find_record(&self, query: &Query) -> Option<SignedRecord> {
        let replica = self.stack.protocol::<Replica>();
        let mut held = replica.iter().flat_map(|replica| replica.records().held.values());
        held.find(|held| answers(&held.record, query)).map(|held| held.signed.clone())
    }
}

fn refused(reason: impl ToString) -> ControlError {
    ControlError::Refused(reason.to_string())
}

/// Takes in a session's datagram that came over the mesh, or keeps it for tools.
pub(crate) fn take_datagram(
    endpoint: &mut Endpoint<Address>,
    carrying: &mut Carrying,
    moment: &mut Moment<'_>,
    (from, datagram): (NodeId, &[u8]),
) {
    let whose = endpoint.whose(datagram);
    let is_kept = whose != Whose::Own && carrying.keep(moment.now, from, datagram);
    if !is_kept || whose == Whose::Either {
        let from = Address::Mesh(from.to_bytes());
        endpoint.receive(moment.now, moment.entropy, from, datagram);
    }
}

#[cfg(test)]
mod tests;
