//! Checks of a step against its mandate, and the step itself.

use alloc::format;
use alloc::string::String;

use tenure_hal::Flash;
use tenure_kernel::MachineRecord;
use tenure_package::{Mandate, Package, Placed, Placement};
use tenure_wire::control::{Answer, ControlError};
use tenure_wire::rollout::Delivery;
use tenure_wire::{Budget, Digest, MachineId, Name, VerifyingKey};

use super::Director;
use super::followed::{Followed, Forgotten, Was};
use crate::install;
use crate::moment::Moment;

const NO_TIME: &str = "the device doesn't know the time";
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
        self.check_place(&mandate, machine)?;
        self.check_signed(moment, rollout, mandate, delivery.package, is_back)
    }

    /// The errand for a step whose mandate the owner signed for this device and machine, as [`Self::check`] returns it.
    fn check_signed(
        &mut self,
        moment: &Moment<'_>,
        rollout: u64,
        mandate: Mandate,
        package: Digest,
        is_back: bool,
    ) -> Answer<Option<Errand>> {
        let machine = &mandate.machine.clone();
        let owner = self.tenancy.services.config.owner.verifying_key;
        let followed = Followed::read(&mut self.tenancy.services.kernel, &owner, machine)?;
        let (id, record) = match (self.machine(machine), mandate.placed) {
            (Err(ControlError::NoSuchMachine(_)), Some(placed)) if !is_back => {
                self.check_new(moment, &owner, (&mandate, &placed), followed.as_ref())?;
                let errand = Errand { rollout, mandate, back: None };
                return for_package(errand, package).map(Some);
            }
            (found, _) => found?,
        };
        if record.tenant != mandate.tenant {
            return refuse(format!("the mandate is for a machine of {}", mandate.tenant));
        }
        self.check_time(moment, id, (&mandate, &record), is_back)?;
        if !is_back && is_placed_by(&mandate, &record) && package == record.package {
            return Ok(None);
        }
        if let Some(known) = followed.as_ref().filter(|known| known.number > mandate.number) {
            return refuse(format!(
                "the mandate {} is older than the last one that was followed, {}",
                mandate.number, known.number
            ));
        }
        if followed.is_none() {
            self.check_forgotten(&owner, &mandate)?;
        }
        let followed = followed.filter(|known| known.number == mandate.number);
        let back = match is_back {
            true => Some(back(&mandate, &record, followed)?),
            false => {
                check_update(&mandate, &record, followed.as_ref())?;
                None
            }
        };
        let errand = for_package(Errand { rollout, mandate, back }, package)?;
        if record.package != package {
            return Ok(Some(errand));
        }
        if is_back {
            self.note_back(&errand, &owner, machine)?;
        }
        Ok(None)
    }

    /// Refuses to place a machine where there is none, if the mandate is over, or was followed for one of that name
    /// that is gone. One that the mandate itself placed, and that was removed since, has the mandate's number, which
    /// the kernel takes once.
    fn check_new(
        &mut self,
        moment: &Moment<'_>,
        owner: &VerifyingKey,
        (mandate, placed): (&Mandate, &Placed),
        followed: Option<&Followed>,
    ) -> Answer<()> {
        let Some(told) = self.tenancy.clock.unix_time(moment) else {
            return refuse(NO_TIME.into());
        };
        let latest_s = self.tenancy.latest_time_s(moment).max(placed.term.signed_unix_s);
        check_end(mandate, told.seconds.max(latest_s), false)?;
        if let Some(known) = followed.filter(|known| known.number >= mandate.number) {
            return refuse(format!(
                "the mandate {} isn't newer than {}, which was followed for a machine that is gone",
                mandate.number, known.number
            ));
        }
        self.check_forgotten(owner, mandate)
    }

    /// Removes the machine that a mandate placed, unless its owner placed it since. It goes to the trash.
    ///
    /// # Errors
    /// [`ControlError::Refused`] says what the mandate doesn't allow.
    pub(super) fn take_away(
        &mut self,
        moment: &Moment<'_>,
        machine: &Name,
        mandate: &[u8],
    ) -> Answer<()> {
        let mandate = self.signed(mandate)?;
        self.check_place(&mandate, machine)?;
        let (id, record) = match self.machine(machine) {
            // It was done already.
            Err(ControlError::NoSuchMachine(_)) => return Ok(()),
            found => found?,
        };
        self.check_time(moment, id, (&mandate, &record), true)?;
        if !is_placed_by(&mandate, &record) {
            return refuse("the machine isn't the one that the mandate placed".into());
        }
        self.tenancy.discard_machine(moment, machine)
    }

    /// Refuses a mandate for another machine or device.
    fn check_place(&self, mandate: &Mandate, machine: &Name) -> Answer<()> {
        if mandate.machine != *machine {
            return refuse(format!("the mandate is for the machine {}", mandate.machine));
        }
        let services = &*self.tenancy.services;
        let (name, labels) = (&services.config.name, &services.config.labels);
        if !services.is_enrolled() || !mandate.devices.selects(name, labels) {
            return refuse(format!("the mandate isn't for the device {name}"));
        }
        Ok(())
    }

    /// Refuses what may have been followed for a machine of that name that is gone.
    fn check_forgotten(&mut self, owner: &VerifyingKey, mandate: &Mandate) -> Answer<()> {
        match Forgotten::read(&mut self.tenancy.services.kernel, owner)? {
            Some(newest) if mandate.number <= newest => refuse(format!(
                "the mandate {} isn't newer than {newest}, which was followed for a machine that is gone",
                mandate.number
            )),
            _ => Ok(()),
        }
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
            return refuse(NO_TIME.into());
        };
        let now_s = told.seconds.max(self.tenancy.lease_time_s(moment, id, &record.term));
        check_end(mandate, now_s, is_back)
    }

    /// Puts the package that has arrived in the machine's place. The hub chose how long that took: the mandate may be over by
    /// now, and the owner may have placed the machine.
    ///
    /// # Errors
    /// The mandate doesn't allow it any more, the package isn't the one that was ordered, or the device refuses it as it
    /// would the owner's.
    pub(super) fn finish(&mut self, moment: &mut Moment<'_>, errand: &Errand) -> Answer<()> {
        let (mandate, is_back) = (errand.mandate.clone(), errand.back.is_some());
        self.check_place(&mandate, &errand.mandate.machine)?;
        let allowed =
            self.check_signed(moment, errand.rollout, mandate, errand.package(), is_back)?;
        // It was done already.
        let Some(errand) = allowed else { return Ok(()) };
        self.put(moment, &errand)
    }

    fn put(&mut self, moment: &mut Moment<'_>, errand: &Errand) -> Answer<()> {
        let Errand { mandate, back, .. } = errand;
        let record = match self.machine(&mandate.machine) {
            Ok((_, record)) => Some(record),
            // It is checked that the mandate places one.
            Err(ControlError::NoSuchMachine(_)) if mandate.placed.is_some() && back.is_none() => {
                None
            }
            Err(error) => return Err(error),
        };
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
        let device = self.tenancy.services.identity.verifying_key();
        let Some(placement) = placement(errand, record.as_ref(), &package, device) else {
            return Err(ControlError::NoSuchMachine(mandate.machine.clone()));
        };
        let kernel = &mut self.tenancy.services.kernel;
        if back.is_none()
            && let Some(record) = record
        {
            Followed::new(owner, mandate, &record).keep(kernel, &mandate.machine)?;
        }
        self.tenancy.install_placed(moment, &package, placement)?;
        match back {
            Some(_) => self.note_back(errand, &owner, &mandate.machine),
            None => Ok(()),
        }
    }

    /// Notes that the machine was put back: its mandate allows nothing more.
    fn note_back(&mut self, errand: &Errand, owner: &VerifyingKey, machine: &Name) -> Answer<()> {
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
    // Both numbers are of the owner's clock: a machine that was placed after the mandate was signed has a higher one.
    let is_later = record.placement > mandate.number;
    if record.package != mandate.package && (is_later || followed.is_some_and(is_placed_anew)) {
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

/// The placement that a mandate comes to: the machine keeps its share and its term. One that is new has those of the
/// mandate, and the mandate's number; `None` if it places none.
fn placement(
    errand: &Errand,
    record: Option<&MachineRecord>,
    package: &Package<'_>,
    device: VerifyingKey,
) -> Option<Placement> {
    let Errand { mandate, back, .. } = errand;
    let held = record.map(|record| record.grants.clone()).unwrap_or_default();
    let (budget, grants): (Budget, _) = match back {
        Some(was) => (was.budget, was.grants.clone()),
        None => (mandate.budget, mandate.grants.clone().unwrap_or(held)),
    };
    let (share, term, sequence) = match (record, &mandate.placed) {
        (Some(record), _) => (record.share, record.term, record.placement.saturating_add(1)),
        (None, Some(placed)) => (placed.share, placed.term, mandate.number),
        (None, None) => return None,
    };
    let machine = mandate.machine.clone();
    let package = package.digest();
    Some(Placement { package, device, machine, budget, share, grants, term, sequence })
}

/// Whether the machine is as this mandate placed it.
fn is_placed_by(mandate: &Mandate, record: &MachineRecord) -> bool {
    mandate.placed.is_some()
        && record.placement == mandate.number
        && record.package == mandate.package
}

/// The errand, if it is for that package.
fn for_package(errand: Errand, package: Digest) -> Answer<Errand> {
    let own = errand.package();
    if own == package {
        return Ok(errand);
    }
    refuse(format!("the mandate is for the package {own}, and not {package}"))
}

/// Refuses a mandate that is over.
fn check_end(mandate: &Mandate, now_s: u64, is_back: bool) -> Answer<()> {
    let ends_s = if is_back { mandate.back_until_unix_s } else { mandate.ends_unix_s };
    if now_s >= ends_s {
        return refuse(format!("the mandate ended at {ends_s}, and it is {now_s}"));
    }
    Ok(())
}

fn refuse<T>(reason: String) -> Answer<T> {
    Err(ControlError::Refused(reason))
}
