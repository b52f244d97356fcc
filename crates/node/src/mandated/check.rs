//! Checks of a step against its mandate, and the step itself.

use alloc::format;
use alloc::string::String;

use tenure_hal::Flash;
use tenure_kernel::MachineRecord;
use tenure_package::{Mandate, Package, Placement};
use tenure_wire::control::{Answer, ControlError};
use tenure_wire::rollout::Delivery;
use tenure_wire::{Budget, Digest, MachineId, Name};

use super::Director;
use super::followed::{Followed, Was};
use crate::install;
use crate::moment::Moment;

const PLACED_ANEW: &str = "the machine was placed anew since it was updated by that mandate";

/// A step that was checked, and whose package is being fetched.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    pub(super) rollout: u64,
    pub(super) mandate: Mandate,
    /// The package and rights that the machine gets back, if it is put back.
    back: Option<Was>,
}

impl Errand {
    /// The package that it takes.
    pub(super) fn package(&self) -> Digest {
        self.back.as_ref().map_or(self.mandate.package, |was| was.package)
    }
}

impl<F: Flash> Director<'_, F> {
    /// The errand for a step that the hub named; `None` if the machine is as it should be already.
    ///
    /// # Errors
    /// [`ControlError::Refused`] says what the mandate doesn't allow.
    pub(super) fn check(
        &mut self,
        moment: &Moment<'_>,
        rollout: u64,
        machine: &Name,
        delivery: &Delivery,
        is_back: bool,
    ) -> Answer<Option<Errand>> {
        let mandate = self.signed(&delivery.mandate)?;
        if mandate.machine != *machine {
            return refuse(format!("the mandate is for the machine {}", mandate.machine));
        }
        let services = &*self.tenancy.services;
        let (name, labels) = (&services.config.name, &services.config.labels);
        if !services.is_enrolled() || !mandate.devices.selects(name, labels) {
            return refuse(format!("the mandate isn't for the device {name}"));
        }
        let (id, record) = self.machine(machine)?;
        if record.tenant != mandate.tenant {
            return refuse(format!("the mandate is for a machine of {}", mandate.tenant));
        }
        self.check_time(moment, id, (&mandate, &record), is_back)?;
        let owner = self.tenancy.services.config.owner.verifying_key;
        let followed = Followed::read(&mut self.tenancy.services.kernel, &owner, machine)?;
        if let Some(known) = followed.as_ref().filter(|known| known.number > mandate.number) {
            return refuse(format!(
                "the mandate {} is older than the last one that was followed, {}",
                mandate.number, known.number
            ));
        }
        let followed = followed.filter(|known| known.number == mandate.number);
        let back = match is_back {
            true => Some(back(&mandate, &record, followed)?),
            false => {
                check_update(&mandate, &record, followed.as_ref())?;
                None
            }
        };
        let errand = Errand { rollout, mandate, back };
        if delivery.package != errand.package() {
            return refuse(format!(
                "the mandate is for the package {}, and not {}",
                errand.package(),
                delivery.package
            ));
        }
        if record.package != delivery.package {
            return Ok(Some(errand));
        }
        if is_back {
            self.note_back(&errand, &owner, machine)?;
        }
        Ok(None)
    }

    /// The mandate, if the device's owner signed it.
    fn signed(&self, bytes: &[u8]) -> Answer<Mandate> {
        let services = &*self.tenancy.services;
        let refused = |error: &dyn core::fmt::Display| ControlError::Refused(format!("{error}"));
        let signer = Mandate::signer(bytes).map_err(|error| refused(&error))?;
        let owner = &services.config.owner;
        services.ownership.check_owner(owner, "the mandate", &signer)?;
        Mandate::verify(bytes, &owner.verifying_key).map_err(|error| refused(&error))
    }

    fn machine(&self, machine: &Name) -> Answer<(MachineId, MachineRecord)> {
        let mut machines = self.tenancy.services.kernel.machines();
        let found = machines.find(|info| info.record.name == *machine);
        let found = found.ok_or_else(|| ControlError::NoSuchMachine(machine.clone()))?;
        Ok((found.id, found.record.clone()))
    }

    /// The time that counts is the latest that the clock, the hub or the lease says.
    fn check_time(
        &self,
        moment: &Moment<'_>,
        id: MachineId,
        (mandate, record): (&Mandate, &MachineRecord),
        is_back: bool,
    ) -> Answer<()> {
        let Some(told) = self.tenancy.clock.unix_time(moment) else {
            return refuse("the device doesn't know the time".into());
        };
        let now_s = told.seconds.max(self.tenancy.lease_time_s(moment, id, &record.term));
        let ends_s = if is_back { mandate.back_until_unix_s } else { mandate.ends_unix_s };
        if now_s >= ends_s {
            return refuse(format!("the mandate ended at {ends_s}, and it is {now_s}"));
        }
        Ok(())
    }

    /// Puts the package that has arrived in the machine's place.
    ///
    /// # Errors
    /// The package isn't the one that was ordered, or the device refuses it as it would the owner's.
    pub(super) fn finish(&mut self, moment: &mut Moment<'_>, errand: &Errand) -> Answer<()> {
        let Errand { mandate, back, .. } = errand;
        let (_, record) = self.machine(&mandate.machine)?;
        let owner = self.tenancy.services.config.owner.verifying_key;
        let package = install::checked(self.tenancy.services, self.transfer.complete()?)?;
        if package.digest() != errand.package() {
            return refuse(format!(
                "the hub delivered {} in the place of {}",
                package.digest(),
                errand.package()
            ));
        }
        let (tenant, version) = (package.tenant(), package.manifest().version);
        if back.is_none() && (tenant != mandate.tenant || version != mandate.version) {
            return refuse(format!(
                "the package is {version} by {tenant}, and the mandate says otherwise"
            ));
        }
        let placement = placement(errand, &record, &package, self.tenancy.services);
        let kernel = &mut self.tenancy.services.kernel;
        if back.is_none() {
            Followed::new(owner, mandate, &record).keep(kernel, &mandate.machine)?;
        }
        self.tenancy.install_placed(moment, &package, placement)?;
        match back {
            Some(_) => self.note_back(errand, &owner, &mandate.machine),
            None => Ok(()),
        }
    }

    /// Notes that the machine was put back: its mandate allows nothing more.
    fn note_back(
        &mut self,
        errand: &Errand,
        owner: &tenure_wire::VerifyingKey,
        machine: &Name,
    ) -> Answer<()> {
        let kernel = &mut self.tenancy.services.kernel;
        let followed = Followed::read(kernel, owner, machine)?;
        match followed.filter(|known| known.number == errand.mandate.number && !known.is_back) {
            Some(known) => Followed { is_back: true, ..known }.keep(kernel, machine),
            None => Ok(()),
        }
    }
}

/// Whether a machine may be updated by a mandate that may be followed already.
fn check_update(
    mandate: &Mandate,
    record: &MachineRecord,
    followed: Option<&Followed>,
) -> Answer<()> {
    if followed.is_some_and(|known| known.is_back) {
        return refuse("the machine was put back under that mandate already".into());
    }
    let is_placed_anew = |known: &Followed| record.placement >= known.placement;
    if record.package != mandate.package && followed.is_some_and(is_placed_anew) {
        return refuse(PLACED_ANEW.into());
    }
    let has = record.package_version;
    if has < mandate.from || has > mandate.version {
        let Mandate { from, version, .. } = mandate;
        return refuse(format!(
            "the machine has {has}, and the mandate updates {from} to {version}"
        ));
    }
    Ok(())
}

/// The machine's package and rights before this mandate was followed, unless its owner placed it since.
fn back(mandate: &Mandate, record: &MachineRecord, followed: Option<Followed>) -> Answer<Was> {
    let Some(followed) = followed else {
        return refuse("the machine wasn't updated by that mandate".into());
    };
    if record.package == followed.was.package {
        return Ok(followed.was);
    }
    if followed.is_back || record.placement != followed.placement {
        return refuse(PLACED_ANEW.into());
    }
    if record.package != mandate.package {
        return refuse("the machine has another package than that mandate brought".into());
    }
    Ok(followed.was)
}

/// The placement that a mandate comes to: the machine keeps its share and its term.
fn placement<F>(
    errand: &Errand,
    record: &MachineRecord,
    package: &Package<'_>,
    services: &crate::services::Services<F>,
) -> Placement {
    let Errand { mandate, back, .. } = errand;
    let (budget, grants): (Budget, _) = match back {
        Some(was) => (was.budget, was.grants.clone()),
        None => {
            let grants = mandate.grants.as_ref().unwrap_or(&record.grants);
            (mandate.budget, grants.clone())
        }
    };
    Placement {
        package: package.digest(),
        device: services.identity.verifying_key(),
        machine: record.name.clone(),
        budget,
        share: record.share,
        grants,
        term: record.term,
        sequence: record.placement.saturating_add(1),
    }
}

fn refuse<T>(reason: String) -> Answer<T> {
    Err(ControlError::Refused(reason))
}
