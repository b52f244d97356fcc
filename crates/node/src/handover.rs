//! Changes of owner and revocations: taken from whoever brings them, as their signatures count, and put
//! into effect.
//!
//! Invariants:
//! - What is kept counts from the moment that it stands on flash; what follows from it is done again at the
//!   next boot if the power went before.
//! - Numbers only go up, by steps that leave room for later ones: an older word never replaces a newer one, also where
//!   the device comes back to an owner who handed it over.
//! - After a change nothing counts that a former key signs.

use alloc::string::ToString;

use tenure_directory::{check_enrolment, open_succession, read_succession};
use tenure_hal::Flash;
use tenure_package::Revocations;
use tenure_wire::PublicKey;
use tenure_wire::control::{Answer, ChangeOwner, ControlError, Enrol};
use tenure_wire::ownership::{SignedSuccession, Succession, SuccessionKind};

use crate::boot_error::BootError;
use crate::config::Owner;
use crate::directory::Directory;
use crate::kept_owner::{KeptOwner, Ownership};
#[cfg(feature = "mesh")]
use crate::mesh::{Ground, Member};
use crate::moment::Moment;
use crate::peers::Peers;
use crate::secrets::{Secrets, not_kept};
use crate::services::Services;
use crate::tenancy::Tenancy;
use crate::transfer::Transfer;

/// The parts of a node that a change of owner or a revocation concerns.
pub(crate) struct Handover<'a, F> {
    pub(crate) tenancy: Tenancy<'a, F>,
    pub(crate) secrets: &'a mut Secrets,
    pub(crate) transfer: &'a mut Transfer<F>,
    pub(crate) directory: &'a mut Directory,
    pub(crate) peers: &'a mut Peers,
    #[cfg(feature = "mesh")]
    pub(crate) member: &'a mut Member,
}

impl<F: Flash> Handover<'_, F> {
    /// Takes an owner's word that other keys hold this device, whoever brings it.
    pub(crate) fn change_owner(
        &mut self,
        moment: &Moment<'_>,
        caller: &PublicKey,
        change: &ChangeOwner,
    ) -> Answer<()> {
        let ChangeOwner { succession: signed, enrol } = change;
        let succession = read_succession(signed).map_err(|_| ControlError::Malformed)?;
        let known = self.tenancy.services.ownership.kept.clone();
        if known.as_ref().is_some_and(|known| known.succession == *signed) {
            return self.enrol_after_change(moment, caller, enrol.as_ref());
        }
        self.check_succession(&succession)?;
        self.secrets.pay_verifications(self.tenancy.services, moment.now, (caller, 1))?;
        open_succession(signed).map_err(refused)?;
        let next = Owner { verifying_key: succession.next, machine: succession.next_machine };
        if let Some(enrol) = enrol {
            self.check_enrolment_by(&next, enrol)?;
        }
        let is_hand_over = succession.kind == SuccessionKind::HandOver;
        self.keep_owner(known.as_ref(), next, (succession.number, signed), is_hand_over)?;
        self.take_over(moment, next, is_hand_over);
        enrol.as_ref().map_or(Ok(()), |enrol| self.take_enrolment(moment, enrol.clone()))
    }

    /// Keeps who holds the device from now on.
    fn keep_owner(
        &mut self,
        known: Option<&KeptOwner>,
        next: Owner,
        (number, signed): (u64, &SignedSuccession),
        is_hand_over: bool,
    ) -> Answer<()> {
        let Services { ownership, config, kernel, .. } = &mut *self.tenancy.services;
        let former = config.owner.verifying_key;
        let keys = (former, ownership.lists_by().filter(|_| !is_hand_over));
        let kept = KeptOwner::after(known, keys, next, (number, signed.clone()), is_hand_over);
        if is_hand_over {
            let lists = ownership.former_lists.and(former, ownership.revoked.number);
            Ownership::keep_owner_anew(kernel.store(), &kept, &lists).map_err(not_kept)?;
            ownership.former_lists = lists;
        } else {
            Ownership::keep_owner(kernel.store(), &kept).map_err(not_kept)?;
        }
        ownership.kept = Some(kept);
        Ok(())
    }

    /// Takes the owner's signed list of whom it revoked, whoever brings it.
    pub(crate) fn take_revocations(
        &mut self,
        moment: &Moment<'_>,
        caller: &PublicKey,
        bytes: &[u8],
    ) -> Answer<()> {
        if self.tenancy.services.ownership.signed_list.as_deref() == Some(bytes) {
            return Ok(());
        }
        let signer = Revocations::signer(bytes).map_err(refused)?;
        self.tenancy.services.ownership.check_owner(
            &self.tenancy.services.config.owner,
            "the list of revoked keys",
            &signer,
        )?;
        self.secrets.pay_verifications(self.tenancy.services, moment.now, (caller, 1))?;
        let (list, _) = Revocations::verify(bytes).map_err(refused)?;
        self.tenancy.services.ownership.check_list_number(&signer, list.number)?;
        Ownership::keep_list(self.tenancy.services.kernel.store(), bytes).map_err(not_kept)?;
        self.tenancy.services.ownership.signed_list = Some(bytes.to_vec());
        self.tenancy.services.ownership.revoked = list;
        self.tenancy.services.ownership.settle_at = Some(moment.now);
        self.forget_revoked(moment);
        self.tenancy.settle_ownership(moment);
        Ok(())
    }

    /// Forgets what revoked devices and hubs told, and where they are.
    fn forget_revoked(&mut self, moment: &Moment<'_>) {
        let revoked = &self.tenancy.services.ownership.revoked;
        for device in &revoked.devices {
            for machine in self.directory.forget_device(&device.key) {
                self.peers.forget(&machine);
            }
            self.peers.forget(&device.machine);
        }
        let Tenancy { services, clock, hub, .. } = &mut self.tenancy;
        hub.bar(services, clock, moment.now);
        self.tenancy.hub.register_soon(moment.now);
    }

    fn check_succession(&self, succession: &Succession) -> Answer<()> {
        self.tenancy.services.ownership.check_owner(
            &self.tenancy.services.config.owner,
            "the succession",
            &succession.by,
        )?;
        if succession
            .device
            .is_some_and(|device| device != self.tenancy.services.identity.verifying_key())
        {
            return Err(ControlError::Refused("the succession is for another device".to_string()));
        }
        self.tenancy.services.ownership.check_succession_number(succession.number)
    }

    /// Takes the enrolment that comes with a succession which was taken before: the power may have gone
    /// between the two.
    fn enrol_after_change(
        &mut self,
        moment: &Moment<'_>,
        caller: &PublicKey,
        enrol: Option<&Enrol>,
    ) -> Answer<()> {
        let Some(enrol) = enrol.filter(|_| !self.tenancy.services.is_enrolled()) else {
            return Ok(());
        };
        self.secrets.pay_verifications(self.tenancy.services, moment.now, (caller, 1))?;
        self.take_enrolment(moment, enrol.clone())
    }

    /// Takes the owner's word that this device carries its name.
    pub(crate) fn take_enrolment(&mut self, moment: &Moment<'_>, enrol: Enrol) -> Answer<()> {
        self.directory.forget_signed();
        self.tenancy.services.enrol(enrol.enrolment, enrol.signature).map_err(
            |error| match error {
                BootError::Enrolment => ControlError::Refused(error.to_string()),
                error => ControlError::Device(error.to_string()),
            },
        )?;
        self.tenancy.hub.register_soon(moment.now);
        Ok(())
    }

    fn check_enrolment_by(&self, owner: &Owner, enrol: &Enrol) -> Answer<()> {
        let Enrol { enrolment, signature } = enrol;
        let is_for_it = enrolment.device == self.tenancy.services.config.name
            && enrolment.device_key == self.tenancy.services.identity.verifying_key();
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
        self.tenancy.services.config.owner = next;
        self.tenancy.services.endpoint.change_owner(next.machine);
        self.transfer.forget();
        self.directory.change_owner(next.verifying_key);
        #[cfg(feature = "mesh")]
        {
            let Tenancy { services, clock, hub, .. } = &mut self.tenancy;
            self.member.change_owner(&mut Ground { services, clock, hub }, moment.now);
        }
        if is_hand_over {
            self.tenancy.services.ownership.revoked = Revocations::default();
            self.tenancy.services.ownership.signed_list = None;
            self.tenancy.services.identity.enrolled = None;
            let Tenancy { services, clock, hub, .. } = &mut self.tenancy;
            hub.forget(services, moment.now);
            clock.forget_hubs_time();
            self.tenancy.services.ownership.settle_at = Some(moment.now);
            self.tenancy.settle_ownership(moment);
        }
        self.tenancy.hub.register_soon(moment.now);
    }
}

fn refused(error: impl core::fmt::Display) -> ControlError {
    ControlError::Refused(error.to_string())
}
