//! Tenants that have shown their owner's pass, and the most that a member sends for them.
//!
//! Invariants:
//! - A tenant has datagrams carried to the device of its pass alone, from the session in which it showed it.
//! - Tenants have places, rooms and tokens of their own: none is taken from the owner's tools.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::NodeId;
use tenure_package::{Pass, Revocations};
use tenure_wire::control::{
    Answer, CARRIED_PASSES_MAX, CARRIED_UNIT_BYTES, CARRIED_UNITS_AT_ONCE, CARRIED_UNITS_PER_S,
    Carry, ControlError,
};
use tenure_wire::{PublicKey, VerifyingKey};

use crate::toll::{Limit, Toll};

/// The units of datagrams that one tenant may have sent.
const UNITS: Limit = Limit {
    at_once: CARRIED_UNITS_AT_ONCE,
    one_each: Duration::from_millis(1_000 / CARRIED_UNITS_PER_S as u64),
};
/// The same, for all tenants together.
const UNITS_IN_ALL: Limit = Limit {
    at_once: 2 * CARRIED_UNITS_AT_ONCE,
    one_each: Duration::from_millis(500 / CARRIED_UNITS_PER_S as u64),
};

/// The passes that tenants have shown.
#[derive(Debug)]
pub(super) struct Passages {
    /// The one that was used last stands last.
    shown: Vec<Passage>,
    sent: Toll<VerifyingKey>,
}

/// A pass that somebody has shown.
#[derive(Debug)]
pub(super) struct Passage {
    /// The owner who signed it.
    pub(super) owner: VerifyingKey,
    pub(super) pass: Pass,
    /// The session in which it was shown, by the peer's key.
    pub(super) caller: PublicKey,
    /// The device of the pass, in the mesh.
    pub(super) to: NodeId,
    /// When the pass ends.
    pub(super) ends: Instant,
}

impl Passages {
    pub(super) fn new() -> Self {
        let sent = Toll::new(UNITS, Some(UNITS_IN_ALL), CARRIED_PASSES_MAX, Instant::BOOT);
        Self { shown: Vec::new(), sent }
    }

    /// Remembers a pass; another of that tenant for that device is forgotten, and one too many is the one that was
    /// used longest ago.
    pub(super) fn show(&mut self, passage: Passage) {
        let is_same =
            |one: &Passage| one.pass.tenant == passage.pass.tenant && one.to == passage.to;
        self.shown.retain(|one| !is_same(one));
        if self.shown.len() >= CARRIED_PASSES_MAX {
            self.shown.remove(0);
        }
        self.shown.push(passage);
    }

    /// Takes from `carry` the datagrams that its tenant may have sent now.
    ///
    /// # Errors
    /// The caller has shown no pass for that device that counts still.
    pub(super) fn permit<'a>(
        &mut self,
        now: Instant,
        (owner, revoked): (&VerifyingKey, &Revocations),
        caller: &PublicKey,
        carry: &'a Carry,
    ) -> Answer<Vec<&'a [u8]>> {
        let counts = |one: &Passage| {
            one.ends > now && one.owner == *owner && !revoked.has_tenant(&one.pass.tenant)
        };
        self.shown.retain(counts);
        let to = NodeId::from_bytes(carry.to);
        let is_this = |one: &Passage| one.caller == *caller && one.to == to;
        let position = self.shown.iter().position(is_this).ok_or(ControlError::NotOwner)?;
        let passage = self.shown.remove(position);
        let tenant = passage.pass.tenant;
        self.shown.push(passage);
        // A datagram too many is lost, as it is on a link.
        let datagrams = carry.datagrams.iter().map(Vec::as_slice);
        Ok(datagrams.filter(|datagram| self.pay(now, &tenant, datagram.len())).collect())
    }

    fn pay(&mut self, now: Instant, tenant: &VerifyingKey, bytes: usize) -> bool {
        let units = u32::try_from(bytes.div_ceil(CARRIED_UNIT_BYTES).max(1)).unwrap_or(u32::MAX);
        self.sent.pay(now, tenant, units).is_ok()
    }
}
