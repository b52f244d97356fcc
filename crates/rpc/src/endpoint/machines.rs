//! The machines that an endpoint speaks for, and their secrets.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_crypto::{StaticSecret, equal, machine_id};
use tenure_wire::datagram::Initiation;
use tenure_wire::{MachineId, PublicKey};

use crate::TooManyMachines;
use crate::noise::Acquaintance;

/// The machines of an endpoint.
pub(super) struct Machines {
    pub(super) list: Vec<Machine>,
    /// The key that this device tells to anybody who asks.
    identity: Option<PublicKey>,
}

/// A machine that an endpoint speaks for.
pub(super) struct Machine {
    pub(super) id: MachineId,
    pub(super) key: PublicKey,
    pub(super) secret: StaticSecret,
    /// The key that the owner's initiations to the machine prove, once that was needed: a key agreement, which
    /// nobody makes this end compute twice. `None` inside if the owner's key agrees with none.
    pub(super) owner_acquaintance: Option<Option<Box<Acquaintance>>>,
}

impl Machines {
    pub(super) fn new() -> Self {
        Self { list: Vec::new(), identity: None }
    }

    pub(super) fn get(&self, id: &MachineId) -> Option<&Machine> {
        self.list.iter().find(|machine| machine.id == *id)
    }

    /// Adds the machine of that key, if it isn't among them; there are `most` at most.
    pub(super) fn add(
        &mut self,
        most: usize,
        secret: StaticSecret,
        key: PublicKey,
    ) -> Result<Added, TooManyMachines> {
        let id = machine_id(&key);
        if self.get(&id).is_some() {
            return Ok(Added { id, is_new: false });
        }
        if self.list.len() >= most {
            return Err(TooManyMachines);
        }
        self.list.reserve_exact(1);
        self.list.push(Machine { id, key, secret, owner_acquaintance: None });
        Ok(Added { id, is_new: true })
    }

    /// Removes a machine; says whether it was among them.
    pub(super) fn remove(&mut self, id: &MachineId) -> bool {
        let Some(position) = self.list.iter().position(|known| known.id == *id) else {
            return false;
        };
        let gone = self.list.swap_remove(position);
        self.identity.take_if(|key| *key == gone.key);
        true
    }

    /// Names the machine whose key is told to anybody who asks.
    pub(super) fn identify_as(&mut self, id: &MachineId) {
        self.identity = self.get(id).map(|machine| machine.key);
    }

    /// The key that is told to anybody who asks; zeros if there is none.
    pub(super) fn identity(&self) -> PublicKey {
        self.identity.unwrap_or(PublicKey([0; 32]))
    }

    /// The owner is another from now on.
    pub(super) fn forget_owner(&mut self) {
        self.list.iter_mut().for_each(|machine| machine.owner_acquaintance = None);
    }

    /// Whether an initiation proves that it is the owner's.
    pub(super) fn is_owners(
        &mut self,
        owner: Option<PublicKey>,
        initiation: &Initiation<'_>,
    ) -> bool {
        let local = self.list.iter_mut().find(|machine| machine.id == initiation.destination);
        let (Some(owner), Some(local)) = (owner, local) else { return false };
        let meet = || Acquaintance::with(&local.secret, &owner).map(Box::new);
        let owner = local.owner_acquaintance.get_or_insert_with(meet).as_ref();
        owner.is_some_and(|owner| {
            let proof = owner.proof_key.proof(initiation.header, initiation.noise);
            equal(&proof, &initiation.proof)
        })
    }
}

/// A machine that an endpoint speaks for now.
pub(super) struct Added {
    pub(super) id: MachineId,
    /// Whether it didn't before.
    pub(super) is_new: bool,
}
