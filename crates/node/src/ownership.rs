//! Changes of owner and revocations: taken from whoever brings them, as their signatures count, and put
//! into effect.
//!
//! Invariants:
//! - What is kept counts from the moment that it stands on flash; what follows from it is done again at the
//!   next boot if the power went before.
//! - Numbers only go up: an older word never replaces a newer one.
//! - After a change nothing counts that a former key signs.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_directory::{check_enrolment, open_succession, read_succession};
use tenure_hal::Flash;
use tenure_package::Revocations;
use tenure_wire::control::{Answer, ChangeOwner, ControlError, Enrol};
use tenure_wire::ownership::{Succession, SuccessionKind};
use tenure_wire::{MachineId, Name, PublicKey, VerifyingKey};

use crate::config::Owner;
use crate::kept_owner::{KeptOwner, Ownership};
use crate::node::{Moment, Node};
use crate::secrets::not_kept;

/// How soon to try again to put machines into the trash that have to leave.
const RETRY: Duration = Duration::from_secs(60);

impl<F: Flash> Node<F> {
    /// Takes an owner's word that other keys hold this device, whoever brings it.
    pub(crate) fn change_owner(
        &mut self,
        moment: &Moment<'_>,
        caller: &PublicKey,
        change: &ChangeOwner,
    ) -> Answer<()> {
        let ChangeOwner { succession: signed, enrol } = change;
        let succession = read_succession(signed).map_err(|_| ControlError::Malformed)?;
        let known = self.ownership.kept.clone();
        if known.as_ref().is_some_and(|known| known.succession == *signed) {
            return self.enrol_after_change(moment, caller, enrol.as_ref());
        }
        self.check_succession(&succession)?;
        self.pay_verification(moment.now, caller)?;
        open_succession(signed).map_err(refused)?;
        let next = Owner { verifying_key: succession.next, machine: succession.next_machine };
        if let Some(enrol) = enrol {
            self.check_enrolment_by(&next, enrol)?;
        }
        let is_hand_over = succession.kind == SuccessionKind::HandOver;
        let former = self.config.owner.verifying_key;
        let numbered = (succession.number, signed.clone());
        let kept = KeptOwner::after(known.as_ref(), former, next, numbered, is_hand_over);
        let forgotten = Ownership::forgotten_at_hand_over();
        let forgotten = if is_hand_over { &forgotten[..] } else { &[] };
        Ownership::keep_owner(self.kernel.store(), &kept, forgotten).map_err(not_kept)?;
        self.ownership.kept = Some(kept);
        self.take_over(moment, next, is_hand_over);
        enrol.as_ref().map_or(Ok(()), |enrol| self.take_enrolment(moment, enrol.clone()))
    }

    /// Takes the owner's signed list of whom it revoked, whoever brings it.
    pub(crate) fn take_revocations(
        &mut self,
        moment: &Moment<'_>,
        caller: &PublicKey,
        bytes: &[u8],
    ) -> Answer<()> {
        if self.ownership.signed_list.as_deref() == Some(bytes) {
            return Ok(());
        }
        let signer = Revocations::signer(bytes).map_err(refused)?;
        self.ownership.check_owner(&self.config.owner, "the list of revoked keys", &signer)?;
        self.pay_verification(moment.now, caller)?;
        let (list, _) = Revocations::verify(bytes).map_err(refused)?;
        let in_force = self.ownership.revoked.number;
        if list.number <= in_force {
            return Err(ControlError::Refused(alloc::format!(
                "the list of revoked keys has the number {}, and one with the number {in_force} is in \
                 force; fetch that one and add to it",
                list.number
            )));
        }
        Ownership::keep_list(self.kernel.store(), bytes).map_err(not_kept)?;
        self.ownership.signed_list = Some(bytes.to_vec());
        self.ownership.revoked = list;
        self.ownership.settle_at = Some(moment.now);
        self.forget_revoked(moment);
        self.settle_ownership(moment);
        Ok(())
    }

    /// Puts machines into the trash whose tenants were revoked, or whose leases a former owner signed. For
    /// what can't be done now, for want of room in the store, it tries again; such a machine gets no turn.
    pub(crate) fn settle_ownership(&mut self, moment: &Moment<'_>) {
        let Some(at) = self.ownership.settle_at else { return };
        let clears = self.ownership.kept.as_ref().is_some_and(|kept| kept.clears_machines);
        let revoked = &self.ownership.revoked;
        let leaves = |tenant: &VerifyingKey| clears || revoked.has_tenant(tenant);
        let machines = self.kernel.machines().filter(|info| leaves(&info.record.tenant));
        let leaving: Vec<(MachineId, Name)> =
            machines.map(|info| (info.id, info.record.name.clone())).collect();
        let is_due = at <= moment.now;
        let mut is_done = is_due;
        for (id, name) in leaving {
            if !is_due || self.discard_machine(moment, &name).is_err() {
                self.kernel.tenancy(moment.now).end_lease(id);
                is_done = false;
            }
        }
        if is_done
            && let Some(kept) = &mut self.ownership.kept
            && kept.clears_machines
        {
            kept.clears_machines = false;
            is_done = Ownership::keep_owner(self.kernel.store(), kept, &[]).is_ok();
            kept.clears_machines = !is_done;
        }
        if is_due {
            self.ownership.settle_at = (!is_done).then(|| moment.now + RETRY);
        }
    }

    /// Forgets what revoked devices and hubs told, and where they are.
    fn forget_revoked(&mut self, moment: &Moment<'_>) {
        let revoked = &self.ownership.revoked;
        for device in &revoked.devices {
            for machine in self.directory.forget_device(&device.key) {
                self.peers.forget(&machine);
            }
            self.peers.forget(&device.machine);
        }
        self.bar_hub(moment);
        self.register_soon(moment.now);
    }

    fn check_succession(&self, succession: &Succession) -> Answer<()> {
        self.ownership.check_owner(&self.config.owner, "the succession", &succession.by)?;
        if succession.device.is_some_and(|device| device != self.identity.verifying_key()) {
            return Err(ControlError::Refused("the succession is for another device".to_string()));
        }
        let last = self.ownership.kept.as_ref().map_or(0, |kept| kept.number);
        if succession.number <= last {
            return Err(ControlError::Refused(alloc::format!(
                "the succession has the number {}, and one with the number {last} was taken before",
                succession.number
            )));
        }
        Ok(())
    }

    /// Takes the enrolment that comes with a succession which was taken before: the power may have gone
    /// between the two.
    fn enrol_after_change(
        &mut self,
        moment: &Moment<'_>,
        caller: &PublicKey,
        enrol: Option<&Enrol>,
    ) -> Answer<()> {
        let Some(enrol) = enrol.filter(|_| !self.is_enrolled()) else { return Ok(()) };
        self.pay_verification(moment.now, caller)?;
        self.take_enrolment(moment, enrol.clone())
    }

    fn check_enrolment_by(&self, owner: &Owner, enrol: &Enrol) -> Answer<()> {
        let Enrol { enrolment, signature } = enrol;
        let is_for_it = enrolment.device == self.config.name
            && enrolment.device_key == self.identity.verifying_key();
        if is_for_it && check_enrolment(&owner.verifying_key, enrolment, signature).is_ok() {
            return Ok(());
        }
        Err(ControlError::Refused(
            "the enrolment that comes with the succession is for another device, or by somebody else \
             than the new owner"
                .to_string(),
        ))
    }

    /// Lets the new owner's keys count, and those alone.
    fn take_over(&mut self, moment: &Moment<'_>, next: Owner, is_hand_over: bool) {
        self.config.owner = next;
        self.endpoint.change_owner(next.machine);
        self.transfer.forget();
        self.directory.change_owner(next.verifying_key);
        #[cfg(feature = "mesh")]
        self.change_mesh_owner(moment.now);
        if is_hand_over {
            self.ownership.revoked = Revocations::default();
            self.ownership.signed_list = None;
            self.identity.enrolled = None;
            self.forget_hub(moment.now);
            self.forget_hubs_time();
            self.ownership.settle_at = Some(moment.now);
            self.settle_ownership(moment);
        }
        self.register_soon(moment.now);
    }
}

fn refused(error: impl core::fmt::Display) -> ControlError {
    ControlError::Refused(error.to_string())
}
