//! The trash: machines that were removed, or whose grace is over, until their span there is over.
//!
//! A span is counted while the device is on, so that no told time and no clock shortens it. What a machine
//! in the trash takes in flash stays on its lease: its receipts go on.

use alloc::vec;
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_kernel::{InstallError, MachineRecord, Slot};
use tenure_wire::control::{
    Answer, ControlError, LeaseNumber, Remove, Trash, TrashEmpty, TrashRestore, TrashedMachine,
};
use tenure_wire::{MachineId, Name};

use super::Tenancy;
use crate::install;
use crate::log;
use crate::moment::Moment;
use crate::secrets;
use crate::unreadable;

impl<F: Flash> Tenancy<'_, F> {
    /// Takes a machine off the device: into the trash, or with everything it stored if that is meant.
    pub(crate) fn remove(&mut self, moment: &Moment<'_>, remove: &Remove) -> Answer<()> {
        let Remove { machine, for_good } = remove;
        let is_there = self.services.kernel.machines().any(|info| info.record.name == *machine);
        if !is_there && let Some(slot) = unreadable::slot_named(&self.services.kernel, machine) {
            return match for_good {
                true => self.clear(moment, slot),
                false => Err(ControlError::Refused(alloc::format!(
                    "the record of {machine} can't be read, so that it can't be fetched back from the trash; remove it \
                     for good"
                ))),
            };
        }
        if *for_good {
            return self.remove_machine(moment, &remove.machine);
        }
        self.discard_machine(moment, &remove.machine)
    }

    /// Deletes what a machine stored whose record can't be read.
    fn clear(&mut self, moment: &Moment<'_>, slot: Slot) -> Answer<()> {
        self.services.kernel.tenancy(moment.now).clear(slot).map_err(install::not_installed)
    }

    /// Takes a machine off the device and puts it into the trash.
    pub(crate) fn discard_machine(&mut self, moment: &Moment<'_>, name: &Name) -> Answer<()> {
        let id = self.id_of(name)?;
        // For the case that it is fetched back.
        log::keep_of(self.log, self.services, moment.now, name);
        self.end_lease(moment, id);
        self.services.kernel.tenancy(moment.now).discard(name).map_err(|error| match error {
            InstallError::StoreFull => ControlError::Full(
                "the store has no room even to mark the machine as removed; remove it for good"
                    .into(),
            ),
            error => install::not_installed(error),
        })?;
        self.meter.count_over(self.services, &id, Some(0));
        self.close_sessions_of(moment.now, id);
        self.attend_to_leases(moment);
        Ok(())
    }

    /// Takes a machine off the device, with everything it stored.
    pub(crate) fn remove_machine(&mut self, moment: &Moment<'_>, name: &Name) -> Answer<()> {
        let id = self.id_of(name)?;
        let tenant = self
            .services
            .kernel
            .machines()
            .find(|info| info.id == id)
            .map(|info| info.record.tenant);
        self.end_lease(moment, id);
        self.services.kernel.tenancy(moment.now).remove(name).map_err(install::not_installed)?;
        self.meter.drop_ledger(self.services, &id);
        tenant.iter().for_each(|tenant| secrets::forget_all_of(self.services, tenant));
        self.close_sessions_of(moment.now, id);
        Ok(())
    }

    /// The machines in the trash.
    pub(crate) fn list_trash(&self) -> Trash {
        let trashed = self.services.kernel.trash().map(|info| TrashedMachine {
            name: info.record.name.clone(),
            id: info.id,
            package: info.record.package_name.clone(),
            tenant: info.record.tenant,
            stored_bytes: info.stored_bytes as u32,
            code_bytes: info.record.extents().map(|extent| extent.bytes).sum(),
            left_s: self.meter.trash_left_s(self.services, &info.id),
        });
        Trash { machines: trashed.collect() }
    }

    /// How many machines are in the trash, and the bytes of flash that they take.
    pub(crate) fn trash_use(&self) -> (u32, u32) {
        let Trash { machines } = self.list_trash();
        let bytes = machines.iter().map(|machine| machine.stored_bytes + machine.code_bytes).sum();
        (machines.len() as u32, bytes)
    }

    /// Takes a machine out of the trash again.
    pub(crate) fn restore_from_trash(
        &mut self,
        moment: &Moment<'_>,
        restore: &TrashRestore,
    ) -> Answer<()> {
        let found = self.services.kernel.trash().find(|info| info.id == restore.machine);
        let found = found.map(|info| info.record.clone());
        let MachineRecord { name, salt, public_key: key, tenant, .. } =
            found.ok_or_else(not_there)?;
        self.services.ownership.check_tenant(&tenant)?;
        self.end_lease(moment, restore.machine);
        self.services
            .kernel
            .tenancy(moment.now)
            .fetch_back(restore.machine)
            .map_err(install::not_installed)?;
        self.meter.count_over(self.services, &restore.machine, None);
        self.log.forget(&name);
        log::take_up_of(self.log, self.services, vec![(restore.machine, name)]);
        self.services.speak_for(restore.machine, &salt, key);
        self.hub.register_soon(moment.now);
        self.attend_to_leases(moment);
        Ok(())
    }

    /// Deletes one machine in the trash, or all of them.
    pub(crate) fn empty_trash(&mut self, moment: &Moment<'_>, empty: &TrashEmpty) -> Answer<()> {
        match empty.machine {
            Some(id) => self.delete_from_trash(moment, id),
            None => {
                let ids: Vec<MachineId> =
                    self.services.kernel.trash().map(|info| info.id).collect();
                ids.into_iter().try_for_each(|id| self.delete_from_trash(moment, id))
            }
        }
    }

    /// Deletes a machine in the trash with everything it stored; its receipts stay until they are fetched.
    pub(crate) fn delete_from_trash(&mut self, moment: &Moment<'_>, id: MachineId) -> Answer<()> {
        let found = self.services.kernel.trash().find(|info| info.id == id);
        let tenant = found.map(|info| info.record.tenant).ok_or_else(not_there)?;
        self.end_lease(moment, id);
        self.services
            .kernel
            .tenancy(moment.now)
            .delete_trash(id)
            .map_err(install::not_installed)?;
        self.meter.drop_ledger(self.services, &id);
        secrets::forget_all_of(self.services, &tenant);
        Ok(())
    }

    /// The highest number of a placement or renewal that counted for a machine of that name; 0 if none did.
    pub(crate) fn lease_number(&mut self, query: &LeaseNumber) -> Answer<u64> {
        self.services.kernel.last_placement(&query.machine).map_err(install::not_installed)
    }

    /// Ends the calls of a machine that is going, and its sessions, and has the device's record say so.
    fn close_sessions_of(&mut self, now: Instant, id: MachineId) {
        self.serving.end_calls_of(&mut self.services.endpoint, now, id);
        self.services.endpoint.remove_machine(now, &id);
        self.hub.register_soon(now);
    }

    fn id_of(&self, name: &Name) -> Answer<MachineId> {
        let found = self.services.kernel.machines().find(|info| info.record.name == *name);
        Ok(found.ok_or_else(|| ControlError::NoSuchMachine(name.clone()))?.id)
    }
}

fn not_there() -> ControlError {
    ControlError::Refused("that machine isn't in the trash".into())
}
