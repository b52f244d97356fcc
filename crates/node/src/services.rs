//! The services that every part of a node is lent: settings, identity, machines, sessions, notices.

use alloc::vec::Vec;

use tenure_kernel::Kernel;
use tenure_rpc::Endpoint;
use tenure_wire::directory::Enrolment;
use tenure_wire::{Address, MachineId, Name, PublicKey, Signature};

use tenure_hal::Flash;

use crate::boot_error::BootError;
use crate::config::Config;
use crate::identity::Identity;
use crate::kept_owner::Ownership;
use crate::notice::Notices;

/// The services that parts of a node share.
pub(crate) struct Services<F> {
    pub(crate) config: Config,
    pub(crate) identity: Identity,
    /// The owner by succession, and the list of revoked keys in force.
    pub(crate) ownership: Ownership,
    pub(crate) kernel: Kernel<F>,
    pub(crate) endpoint: Endpoint<Address>,
    pub(crate) notices: Notices,
    /// The journals that machines keep.
    #[cfg(feature = "journals")]
    pub(crate) journals: crate::journals::Journals,
}

impl<F: Flash> Services<F> {
    /// Whether the owner has given this device its name.
    pub(crate) fn is_enrolled(&self) -> bool {
        self.identity.is_enrolled(&self.config.name, self.config.owner)
    }

    /// Keeps the owner's word that this device carries its name.
    ///
    /// # Errors
    /// [`BootError::Enrolment`] if it is for another device or name or isn't signed by the owner,
    /// or the store's error.
    pub(crate) fn enrol(
        &mut self,
        enrolment: Enrolment,
        signature: Signature,
    ) -> Result<(), BootError> {
        let Self { kernel, identity, config, .. } = self;
        identity.enrol(kernel.store(), (&config.name, config.owner), enrolment, signature)
    }

    /// Opens sessions in the name of a machine from now on.
    pub(crate) fn speak_for(&mut self, id: MachineId, salt: &[u8; 16], key: PublicKey) {
        let added = self.endpoint.add_machine_of(self.identity.machine_secret(salt), key);
        debug_assert!(added.is_ok_and(|added| added == id), "the endpoint takes every machine");
    }

    /// Opens sessions in the name of the device and of all its machines.
    pub(crate) fn speak_for_all(&mut self) {
        let Identity { machine_key, .. } = self.identity;
        let own = self.endpoint.add_machine_of(self.identity.device_secret(), machine_key);
        debug_assert!(own.is_ok(), "the endpoint takes the device's own machine");
        self.endpoint.identify_as(&self.identity.machine);
        let machines = self.kernel.machines();
        let keys: Vec<_> =
            machines.map(|info| (info.id, info.record.salt, info.record.public_key)).collect();
        for (id, salt, key) in keys {
            self.speak_for(id, &salt, key);
        }
    }

    /// The machines that the device's record lists.
    pub(crate) fn listed_machines(&self) -> Vec<(Name, PublicKey)> {
        let machines = self.kernel.machines();
        machines.map(|info| (info.record.name.clone(), info.record.public_key)).collect()
    }
}
