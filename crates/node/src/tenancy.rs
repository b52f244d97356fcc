//! Tenancy: machines come to a device by leases, stay within their terms, and leave it by the trash.
//!
//! It owns nothing: the parts that an installation, a lease's end or a removal touch are lent to it for
//! one use.

mod leases;
mod trash;

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Flash;
use tenure_kernel::{InstallError, Installation, MachineRecord};
#[cfg(feature = "rollouts")]
use tenure_package::{Package, Placement};
use tenure_wire::control::{Answer, ControlError};
use tenure_wire::printable::counted;
use tenure_wire::{MachineId, Name, VerifyingKey};

use crate::clock::Clock;
use crate::hub::Registration;
use crate::install;
use crate::kept_owner::Ownership;
use crate::log::Log;
use crate::meter::Meter;
use crate::moment::Moment;
use crate::services::Services;
use crate::serving::Serving;

/// How soon to try again to put machines into the trash that have to leave.
const RETRY: Duration = Duration::from_secs(60);

/// The parts of a node that leases concern.
pub(crate) struct Tenancy<'a, F> {
    pub(crate) services: &'a mut Services<F>,
    pub(crate) clock: &'a mut Clock,
    pub(crate) meter: &'a mut Meter,
    pub(crate) serving: &'a mut Serving,
    pub(crate) hub: &'a mut Registration,
    pub(crate) log: &'a mut Log,
}

impl<F: Flash> Tenancy<'_, F> {
    /// Makes a machine of a package and the owner's placement of it.
    ///
    /// # Errors
    /// As [`ControlError`] says; the device is as before then.
    pub(crate) fn install(
        &mut self,
        moment: &mut Moment<'_>,
        package: &[u8],
        placement: &[u8],
    ) -> Answer<MachineId> {
        let installation = install::prepare(self.services, moment.entropy, package, placement);
        let installation = installation.map_err(|error| self.without_room(error))?;
        self.take_in(moment, installation)
    }

    /// Puts a package in the place of a machine, as its owner's mandate allows it by `placement`.
    ///
    /// # Errors
    /// As [`ControlError`] says; the device is as before then.
    #[cfg(feature = "rollouts")]
    pub(crate) fn install_placed(
        &mut self,
        moment: &mut Moment<'_>,
        package: &Package<'_>,
        placement: Placement,
    ) -> Answer<MachineId> {
        let prepared = install::prepare_placed(self.services, moment.entropy, package, placement);
        let installation = prepared.map_err(|error| self.without_room(error))?;
        self.take_in(moment, installation)
    }

    fn take_in(&mut self, moment: &Moment<'_>, installation: Installation) -> Answer<MachineId> {
        let (id, record) = (installation.id, installation.record.clone());
        let MachineRecord { name, salt, public_key, .. } = record.clone();
        if record.term.is_over(self.lease_time_s(moment, id, &record.term)) {
            self.services.kernel.code().release_all(record.extents());
            return Err(ControlError::Refused("the lease would be over already".to_string()));
        }
        let replaces = self.services.kernel.machines().any(|info| info.record.name == name);
        if replaces {
            self.end_lease(moment, id);
        }
        if let Err(error) = self.services.kernel.tenancy(moment.now).install(installation) {
            self.services.kernel.code().release_all(record.extents());
            let refusal = match error {
                InstallError::NoSlot => ControlError::Full(alloc::format!(
                    "the device takes {} machines, and has as many",
                    self.services.config.kernel.machines_max
                )),
                error => install::not_installed(error),
            };
            return Err(self.without_room(refusal));
        }
        if !replaces {
            self.log.forget(&name);
            self.services.speak_for(id, &salt, public_key);
            self.meter.take_up_ledger(self.services, self.clock, moment, id);
        }
        self.hub.register_soon(moment.now);
        self.lease_signed(moment, id, &record.term);
        Ok(id)
    }

    /// The error, which says what the trash holds if the device is full.
    fn without_room(&self, error: ControlError) -> ControlError {
        match (error, self.trash_use()) {
            (ControlError::Full(what), (machines, bytes)) if machines > 0 => {
                let machines = counted(machines, "machine");
                ControlError::Full(alloc::format!(
                    "{what}; the trash holds {machines} and {bytes} bytes, which `tenure trash empty` frees"
                ))
            }
            (error, _) => error,
        }
    }

    /// Puts machines into the trash whose tenants were revoked, or whose leases a former owner signed. For
    /// what can't be done now, for want of room in the store, it tries again; such a machine gets no turn.
    pub(crate) fn settle_ownership(&mut self, moment: &Moment<'_>) {
        // All who had to leave have left.
        let Some(at) = self.services.ownership.settle_at else { return };
        let is_due = at <= moment.now;
        let mut is_done = is_due;
        for (id, name) in self.leaving() {
            if !is_due || self.discard_machine(moment, &name).is_err() {
                self.services.kernel.tenancy(moment.now).end_lease(id);
                is_done = false;
            }
        }
        let Services { ownership, kernel, .. } = &mut *self.services;
        if is_done
            && let Some(kept) = &mut ownership.kept
            && kept.clears_machines
        {
            kept.clears_machines = false;
            is_done = Ownership::keep_owner(kernel.store(), kept).is_ok();
            kept.clears_machines = !is_done;
        }
        if is_due {
            ownership.settle_at = (!is_done).then(|| moment.now + RETRY);
        }
    }

    /// The machines that have to leave as their tenants were revoked or their owner was replaced.
    fn leaving(&self) -> Vec<(MachineId, Name)> {
        let Services { ownership, kernel, .. } = &*self.services;
        let clears = ownership.kept.as_ref().is_some_and(|kept| kept.clears_machines);
        let leaves = |tenant: &VerifyingKey| clears || ownership.revoked.has_tenant(tenant);
        let machines = kernel.machines().filter(|info| leaves(&info.record.tenant));
        machines.map(|info| (info.id, info.record.name.clone())).collect()
    }
}
