//! Leases: a machine stops when its lease is over, goes to the trash when its grace is, and its periods end
//! with receipts.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Flash, Instant, UnixTime};
use tenure_kernel::{InstallError, MachineInfo, State};
use tenure_package::Renewal;
use tenure_wire::control::{Answer, ControlError, Renew};
use tenure_wire::{MachineId, Name, Term};

use super::Tenancy;
use crate::clock::{Teller, is_set_back};
use crate::install;
use crate::lease_time::Stage;
use crate::meter::period_ms;
use crate::moment::Moment;

/// A time that is ahead of what was known by more than this, in seconds, is written down at once.
const JUMP_S: u64 = 10;

/// When something is due for a machine's lease.
enum Due {
    /// In so many milliseconds.
    In(u64),
    /// Not by itself.
    Never,
    /// The machine is gone, or the store couldn't let it go now and is asked again at the checkpoint.
    Gone,
}

/// All that the meter has to know of a machine to decide about its lease.
struct Leased {
    id: MachineId,
    name: Name,
    term: Term,
    state: State,
    is_removed: bool,
}

impl Leased {
    fn of(info: &MachineInfo<'_>) -> Self {
        let MachineInfo { record, id, state, is_removed, .. } = info;
        let (id, state, is_removed) = (*id, *state, *is_removed);
        Self { id, name: record.name.clone(), term: record.term, state, is_removed }
    }
}

impl<F: Flash> Tenancy<'_, F> {
    /// Writes the ledgers to flash when it is time to, and ends the periods that are over.
    pub(crate) fn attend_to_ledgers(&mut self, moment: &Moment<'_>) {
        if moment.now >= self.meter.checkpoint_at {
            self.checkpoint(moment);
        }
        let ends_at = self.meter.lease_ends_at.into_iter().chain([self.meter.period_ends_at]);
        if ends_at.min().is_some_and(|at| moment.now >= at) {
            self.attend_to_leases(moment);
        }
    }

    /// Stops machines whose leases are over, moves those whose grace is to the trash, deletes what has been
    /// there for long enough, ends the periods that are over, and finds out when something of that is due
    /// next.
    pub(crate) fn attend_to_leases(&mut self, moment: &Moment<'_>) {
        let all = self.services.kernel.machines().chain(self.services.kernel.trash());
        let leases: Vec<Leased> = all.map(|info| Leased::of(&info)).collect();
        let in_ms = |ms: u64| moment.now + Duration::from_millis(ms);
        let (mut lease_ends_at, mut period_ends_at) = (None::<Instant>, self.meter.checkpoint_at);
        for leased in leases {
            let counted_ms = self.meter.count(self.services, self.clock, moment, leased.id);
            let Some(counted_ms) = counted_ms else { continue };
            match self.attend_to_lease(moment, &leased) {
                Due::In(ms) => {
                    let at = in_ms(ms);
                    lease_ends_at = Some(lease_ends_at.map_or(at, |before| before.min(at)));
                }
                Due::Never => {}
                Due::Gone => continue,
            }
            let period_ms = period_ms(self.services, &leased.term);
            let left_ms = match period_ms.saturating_sub(counted_ms) {
                0 if self.end_period(moment, leased.id) => period_ms,
                left_ms => left_ms,
            };
            if left_ms > 0 {
                period_ends_at = period_ends_at.min(in_ms(left_ms));
            }
        }
        self.meter.lease_ends_at = lease_ends_at;
        self.meter.period_ends_at = period_ends_at;
    }

    /// Does what one machine's lease asks for now.
    fn attend_to_lease(&mut self, moment: &Moment<'_>, leased: &Leased) -> Due {
        let Leased { id, name, term, state, is_removed } = leased;
        if *is_removed {
            let left_ms = self.meter.left_ms(id, self.services.config.trash_span);
            // If the store can't delete it now, the next checkpoint tries again.
            if left_ms == 0 {
                let _ = self.delete_from_trash(moment, *id);
                return Due::Gone;
            }
            return Due::In(left_ms);
        }
        let lease = self.meter.lease(id);
        let stage = lease.stage(term);
        if stage.begins_to_be_over() {
            self.end_period(moment, *id);
        }
        self.meter.take_note(id, stage);
        let left_ms = match stage {
            Stage::InForce { ends_in_ms } => {
                if *state == State::Over {
                    self.services.kernel.tenancy(moment.now).resume_lease(*id);
                }
                return ends_in_ms.map_or(Due::Never, Due::In);
            }
            Stage::Over { left_ms, .. } => left_ms,
        };
        if *state != State::Over {
            self.services.kernel.tenancy(moment.now).end_lease(*id);
        }
        let told_ms = lease.ms - term.ends_unix_s.unwrap_or(0).saturating_mul(1000).min(lease.ms);
        if is_planted(Weakness::FalseHubEndsLeases) && told_ms >= term.grace_s.saturating_mul(1000)
        {
            let _ = self.remove_machine(moment, name);
            return Due::Gone;
        }
        if left_ms == 0 {
            // As above.
            let _ = self.discard_machine(moment, name);
            return Due::Gone;
        }
        Due::In(left_ms)
    }

    /// Takes the owner's word that a machine's lease has another term.
    pub(crate) fn renew(&mut self, moment: &Moment<'_>, renew: &Renew) -> Answer<()> {
        let refused = |error: &dyn core::fmt::Display| ControlError::Refused(error.to_string());
        let signer = Renewal::signer(&renew.renewal).map_err(|error| refused(&error))?;
        self.services.ownership.check_owner(&self.services.config.owner, "the renewal", &signer)?;
        let renewal = Renewal::verify(&renew.renewal, &self.services.config.owner.verifying_key)
            .map_err(|error| refused(&error))?;
        if renewal.device != self.services.identity.verifying_key() {
            return Err(ControlError::Refused("the renewal is for another device".to_string()));
        }
        let found =
            self.services.kernel.machines().find(|info| info.record.name == renewal.machine);
        let found = found.ok_or_else(|| ControlError::NoSuchMachine(renewal.machine.clone()))?;
        if found.record.placement >= renewal.sequence {
            return Err(install::not_installed(InstallError::Stale));
        }
        let id = found.id;
        if !renew.ends_now && renewal.term.is_over(self.lease_time_s(moment, id, &renewal.term)) {
            return Err(ControlError::Refused(
                "the lease would be over already; say that it is to end now, if it is meant"
                    .to_string(),
            ));
        }
        self.end_lease(moment, id);
        self.services
            .kernel
            .tenancy(moment.now)
            .renew(id, renewal.sequence, renewal.term)
            .map_err(install::not_installed)?;
        self.lease_signed(moment, id, &renewal.term);
        Ok(())
    }

    /// The time for a lease of that term, in seconds since 1970 UTC.
    pub(crate) fn lease_time_s(&self, moment: &Moment<'_>, id: MachineId, term: &Term) -> u64 {
        let latest_s = self.latest_time_s(moment);
        self.meter.lease_unix_s(&id).max(term.signed_unix_s).max(latest_s)
    }

    /// The time that the board's clock or any lease knows, whichever is later, in seconds since 1970 UTC; 0 if none does.
    pub(crate) fn latest_time_s(&self, moment: &Moment<'_>) -> u64 {
        let board_s = self.clock.board_time(moment).map_or(0, |time| time.seconds);
        self.meter.latest_unix_s(moment.now).unwrap_or(0).max(board_s)
    }

    /// Takes the time at which the owner signed a term for what time it is at least; the grace and all else
    /// that was counted of an end before begins anew.
    pub(crate) fn lease_signed(&mut self, moment: &Moment<'_>, id: MachineId, term: &Term) {
        self.meter.learn_unix_s(moment.now, term.signed_unix_s);
        self.attend_to_leases(moment);
        self.meter.keep_ledger(self.services, &id);
    }

    /// Writes all ledgers to flash, and ends the periods that are over: after this nothing that was
    /// used until now is lost with the power.
    pub(crate) fn checkpoint(&mut self, moment: &Moment<'_>) {
        self.meter.checkpoint_at = moment.now + self.services.config.checkpoint;
        self.attend_to_leases(moment);
        self.meter.keep_all(self.services);
    }

    /// Ends the period of a machine whose lease changes or ends.
    pub(super) fn end_lease(&mut self, moment: &Moment<'_>, id: MachineId) {
        self.meter.end_lease(self.services, self.clock, moment, id);
    }

    fn end_period(&mut self, moment: &Moment<'_>, id: MachineId) -> bool {
        self.meter.end_period(self.services, self.clock, moment, id)
    }

    /// Takes the hub's word for the time, unless somebody told it whose word counts more. Leases learn of
    /// it from a hub that was vouched for, within bounds.
    pub(crate) fn hub_told_time(&mut self, moment: &Moment<'_>, unix: UnixTime) {
        let by = if self.hub.is_vouched_for() { Teller::PinnedHub } else { Teller::Hub };
        self.clock.hub_told(moment.now, unix, by);
        if is_planted(Weakness::FalseHubEndsLeases) {
            let known_s = self.meter.latest_unix_s(moment.now).unwrap_or(0);
            return self.leases_learn(moment, known_s, unix.seconds);
        }
        if moment.unix_time.is_some() {
            return;
        }
        let latest = self.meter.latest();
        let Some(unix_s) = latest.told_by_hub(self.clock, moment.now, unix.seconds, by) else {
            return;
        };
        self.leases_learn(moment, latest.unix_s(moment.now).unwrap_or(0), unix_s);
    }

    /// Takes the owner's word for the time. One that is much earlier than leases went by sets them
    /// back: a wrong clock of the owner's, or a hub's, had moved them.
    pub(crate) fn owner_told_time(&mut self, moment: &Moment<'_>, unix_s: u64) {
        self.clock.owner_told(moment, unix_s);
        let known_s = self.meter.latest_unix_s(moment.now);
        if known_s.is_some_and(|known_s| is_set_back(unix_s, known_s)) {
            self.meter.set_back(moment.now, unix_s);
            self.checkpoint(moment);
        } else if self.clock.board_time(moment).is_none() {
            self.leases_learn(moment, known_s.unwrap_or(0), unix_s);
        }
    }

    /// Lets leases, which went by `known_s`, go by a later time.
    fn leases_learn(&mut self, moment: &Moment<'_>, known_s: u64, unix_s: u64) {
        if unix_s <= known_s {
            return;
        }
        self.meter.learn_unix_s(moment.now, unix_s);
        if unix_s > known_s.saturating_add(JUMP_S) {
            // Leases may be over by it, and it is known at the next start.
            self.checkpoint(moment);
        } else {
            self.attend_to_leases(moment);
        }
    }
}
