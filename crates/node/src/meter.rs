//! The meter: what each machine used, summed up over restarts, and the receipts for it.
//!
//! Each machine has a ledger of the period under way. It is written to flash at every checkpoint, and
//! when a period ends its receipt and the empty ledger of the next one are written in one batch: so no
//! period is billed twice and none is lost, whenever the power goes. What was used since the last
//! checkpoint is lost with the power, in favour of the tenant; the machine's storage isn't counted
//! while the device is off.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_kernel::{InstallError, MachineRecord, State};
use tenure_package::{NO_RECEIPT, Receipt, Renewal, digest_of_receipt};
use tenure_store::{Change, ValueKind};
use tenure_wire::control::{Answer, ControlError, ReceiptForget, ReceiptPage, ReceiptQuery, Renew};
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::term::Stage;
use tenure_wire::usage::Usage;
use tenure_wire::{Digest, MachineId, Name, Term};

use crate::install;
use crate::node::{Moment, Node};
use crate::sealing::SEALED_TREE;

/// The most receipts of one machine that wait to be fetched; while there are that many, the period
/// under way goes on.
const RECEIPTS_MAX: usize = 24;
/// The version of ledgers in the store. One of another version isn't guessed at: a new one goes on from
/// the last receipt that is there.
const LEDGER_VERSION: u8 = 1;
const LEDGERS_PATH: &str = "ledgers";
const RECEIPTS_PATH: &str = "receipts";

/// The ledgers of all machines.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Boxed: the map keeps room for more than there are.
    ledgers: BTreeMap<MachineId, Box<Ledger>>,
    /// When the ledgers are written to flash next.
    checkpoint_at: Instant,
    /// The latest time that any lease went by, in milliseconds since 1970 UTC, and when that was: all of
    /// them go by it, so that what one learnt counts for the others, over restarts too.
    latest: (u64, Instant),
    /// When a lease or its grace ends next, if one does.
    lease_ends_at: Option<Instant>,
    /// When a period ends next, if that is before the checkpoint.
    period_ends_at: Instant,
}

/// The period under way of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ledger {
    /// The number of the period's receipt to be.
    number: u64,
    /// The digest of the receipt before.
    previous: Digest,
    began_unix_s: Option<u64>,
    counted_ms: u64,
    usage: Usage,
    /// What time it is for the lease, in milliseconds since 1970 UTC: the latest that was known of the
    /// owner's clock at the signature and the device's, and the time that the device was on since.
    lease_ms: u64,
    /// Whether the receipt of the lease's end was the last.
    is_over: bool,
    /// Up to when `counted_ms` counts, in this boot.
    #[serde(skip, default = "boot")]
    until: Instant,
}

fn boot() -> Instant {
    Instant::BOOT
}

impl Ledger {
    /// As the store keeps it: a byte for the version, and what follows from it; `None` if it can't be
    /// encoded.
    fn to_bytes(&self) -> Option<Vec<u8>> {
        postcard::to_extend(self, alloc::vec![LEDGER_VERSION]).ok()
    }

    /// The ledger in `bytes`, if it is whole and of this version.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, ledger) = bytes.split_first()?;
        let (ledger, rest) = postcard::take_from_bytes(ledger).ok()?;
        (*version == LEDGER_VERSION && rest.is_empty()).then_some(ledger)
    }

    /// The first one of a machine.
    fn first(now: Instant, unix_s: Option<u64>) -> Self {
        Self {
            number: 0,
            previous: NO_RECEIPT,
            began_unix_s: unix_s,
            counted_ms: 0,
            usage: Usage::default(),
            lease_ms: 0,
            is_over: false,
            until: now,
        }
    }
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            ledgers: BTreeMap::new(),
            checkpoint_at: now,
            latest: (0, now),
            lease_ends_at: None,
            period_ends_at: now,
        }
    }

    /// What time it is at least, in milliseconds since 1970 UTC.
    fn latest_ms(&self, now: Instant) -> u64 {
        let (latest_ms, at) = self.latest;
        latest_ms.saturating_add(now.since(at).as_millis() as u64)
    }

    /// Learns that it is at least so late.
    fn learn_latest(&mut self, now: Instant, ms: u64) {
        self.latest = (self.latest_ms(now).max(ms), now);
    }
}

impl<F: Flash> Node<F> {
    /// Takes up the ledgers of all machines, at boot.
    pub(crate) fn take_up_ledgers(&mut self, moment: &Moment<'_>) {
        let ids: Vec<MachineId> = self.kernel.machines().map(|info| info.id).collect();
        for id in ids {
            self.take_up_ledger(moment, id);
            let written = self.meter.ledgers.get(&id).map_or(0, |ledger| ledger.usage.flash_bytes);
            self.kernel.recall_flash_use(id, written);
        }
        self.meter.checkpoint_at = moment.now + self.config.checkpoint;
    }

    /// Takes up the ledger of a machine, or begins one.
    pub(crate) fn take_up_ledger(&mut self, moment: &Moment<'_>, id: MachineId) {
        let stored = self.kernel.store().get(SEALED_TREE, &ledger_path(&id)).ok().flatten();
        let kept = stored.and_then(|value| Ledger::from_bytes(&value.bytes));
        let unix_s = self.unix_time(moment).map(|time| time.seconds);
        let ledger = match kept {
            Some(ledger) => Ledger { until: moment.now, ..ledger },
            None => {
                let (number, previous) = self.after_last_receipt(&id);
                Ledger { number, previous, ..Ledger::first(moment.now, unix_s) }
            }
        };
        self.meter.learn_latest(moment.now, ledger.lease_ms);
        self.meter.ledgers.insert(id, Box::new(ledger));
    }

    /// The number of the receipt that comes after the last one that waits to be fetched, and the digest of
    /// that: where a machine goes on whose ledger can't be read.
    fn after_last_receipt(&mut self, id: &MachineId) -> (u64, Digest) {
        let parent = join(RECEIPTS_PATH, &alloc::format!("{id}"));
        let last = self.children(&parent).ok().and_then(|mut numbers| numbers.pop());
        let Some(last) = last else { return (0, NO_RECEIPT) };
        let receipt = self.kernel.store().get(SEALED_TREE, &join(&parent, &last)).ok().flatten();
        let digest = receipt.map_or(NO_RECEIPT, |receipt| digest_of_receipt(&receipt.bytes));
        (last.parse::<u64>().map_or(0, |number| number + 1), digest)
    }

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

    /// When a lease ends next, or its grace, if one does.
    pub(crate) fn meter_wakes_at(&self) -> Option<Instant> {
        self.meter.lease_ends_at
    }

    /// Stops machines whose leases are over, removes those whose grace is, ends the periods that are
    /// over, and finds out when something of that is due next.
    pub(crate) fn attend_to_leases(&mut self, moment: &Moment<'_>) {
        let leases: Vec<(MachineId, Name, Term, State)> = self
            .kernel
            .machines()
            .map(|info| (info.id, info.record.name.clone(), info.record.term, info.state))
            .collect();
        let in_ms = |ms: u64| moment.now + Duration::from_millis(ms);
        let (mut lease_ends_at, mut period_ends_at) = (None::<Instant>, self.meter.checkpoint_at);
        for (id, name, term, state) in leases {
            let Some(counted_ms) = self.count(moment, id) else { continue };
            let lease_ms = self.meter.ledgers.get(&id).map_or(0, |ledger| ledger.lease_ms);
            match term.stage(lease_ms / 1000) {
                Stage::Over if state != State::Over => {
                    if !self.meter.ledgers.get(&id).is_some_and(|ledger| ledger.is_over) {
                        self.end_period(moment, id);
                    }
                    self.kernel.end_lease(moment.now, id);
                }
                Stage::Expired => {
                    // If the store can't now, it is tried again.
                    let _ = self.remove_machine(moment, &name);
                    continue;
                }
                Stage::InForce => {
                    if let Some(ledger) = self.meter.ledgers.get_mut(&id) {
                        ledger.is_over = false;
                    }
                }
                Stage::Over => {}
            }
            if let Some(change) = term.changes_at(lease_ms / 1000) {
                let at = in_ms(change.saturating_mul(1000).saturating_sub(lease_ms));
                lease_ends_at = Some(lease_ends_at.map_or(at, |before| before.min(at)));
            }
            let period_ms = self.period_ms(&term);
            let left_ms = match period_ms.saturating_sub(counted_ms) {
                0 if self.end_period(moment, id) => period_ms,
                left_ms => left_ms,
            };
            if left_ms > 0 {
                period_ends_at = period_ends_at.min(in_ms(left_ms));
            }
        }
        self.meter.lease_ends_at = lease_ends_at;
        self.meter.period_ends_at = period_ends_at;
    }

    /// How long a period of a lease lasts, in milliseconds.
    fn period_ms(&self, term: &Term) -> u64 {
        match term.receipts_every_s {
            0 => self.config.receipt_period.as_millis() as u64,
            seconds => seconds.saturating_mul(1000),
        }
    }

    /// What time it is for the lease of a machine, in seconds since 1970 UTC.
    pub(crate) fn lease_unix_s(&self, id: &MachineId) -> u64 {
        self.meter.ledgers.get(id).map_or(0, |ledger| ledger.lease_ms / 1000)
    }

    /// Takes the owner's word that a machine's lease has another term.
    pub(crate) fn renew(&mut self, moment: &Moment<'_>, renew: &Renew) -> Answer<()> {
        let refused = |error: &dyn core::fmt::Display| ControlError::Refused(error.to_string());
        let renewal = Renewal::verify(&renew.renewal, &self.config.owner.verifying_key)
            .map_err(|error| refused(&error))?;
        if renewal.device != self.identity.verifying_key() {
            return Err(ControlError::Refused("the renewal is for another device".to_string()));
        }
        let found = self.kernel.machines().find(|info| info.record.name == renewal.machine);
        let found = found.ok_or_else(|| ControlError::NoSuchMachine(renewal.machine.clone()))?;
        if found.record.placement >= renewal.sequence {
            return Err(install::not_installed(InstallError::Stale));
        }
        let id = found.id;
        self.end_lease(moment, id);
        self.kernel
            .renew(moment.now, id, renewal.sequence, renewal.term)
            .map_err(install::not_installed)?;
        self.attend_to_leases(moment);
        Ok(())
    }

    /// Writes all ledgers to flash, and ends the periods that are over: after this nothing that was
    /// used until now is lost with the power.
    pub fn checkpoint(&mut self, moment: &Moment<'_>) {
        self.meter.checkpoint_at = moment.now + self.config.checkpoint;
        self.attend_to_leases(moment);
        let ids: Vec<MachineId> = self.meter.ledgers.keys().copied().collect();
        for id in ids {
            let Some(ledger) = self.meter.ledgers.get(&id) else { continue };
            let Some(bytes) = ledger.to_bytes() else { continue };
            // A full or failing store must not stop the device: the next checkpoint tries again.
            let path = ledger_path(&id);
            let _ = self.kernel.store().set(SEALED_TREE, &path, ValueKind::Bytes, &bytes);
        }
    }

    /// Ends the period of a machine whose lease changes or ends.
    pub(crate) fn end_lease(&mut self, moment: &Moment<'_>, id: MachineId) {
        if self.count(moment, id).is_some() {
            self.end_period(moment, id);
        }
    }

    /// Forgets the ledger of a machine that is gone; its receipts stay until they are fetched.
    pub(crate) fn drop_ledger(&mut self, id: &MachineId) {
        self.meter.ledgers.remove(id);
        let _ = self.kernel.store().delete(SEALED_TREE, &ledger_path(id));
    }

    /// Ends all periods under way, for an owner who wants to bill now.
    pub(crate) fn end_periods(&mut self, moment: &Moment<'_>) {
        let ids: Vec<MachineId> = self.meter.ledgers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.end_lease(moment, id));
    }

    /// A page of the receipts that wait to be fetched.
    ///
    /// # Errors
    /// The store's.
    pub fn receipts(&mut self, query: &ReceiptQuery) -> Answer<ReceiptPage> {
        let mut receipts = Vec::new();
        let (mut room, mut skip) = (PARAMETER_BYTES_MAX - 64, query.skip);
        for machine in self.children(RECEIPTS_PATH)? {
            for number in self.children(&join(RECEIPTS_PATH, &machine))? {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let path = join(&join(RECEIPTS_PATH, &machine), &number);
                let stored = self.kernel.store().get(SEALED_TREE, &path);
                // One that rotted is missing, which its chain will show; the others are intact.
                let Ok(Some(receipt)) = stored else { continue };
                if receipt.bytes.len() + 4 > room {
                    return Ok(ReceiptPage { receipts, more: true });
                }
                room -= receipt.bytes.len() + 4;
                receipts.push(receipt.bytes);
            }
        }
        Ok(ReceiptPage { receipts, more: false })
    }

    /// Deletes receipts that were fetched.
    ///
    /// # Errors
    /// The store's.
    pub fn forget_receipts(&mut self, forget: &ReceiptForget) -> Answer<()> {
        let parent = join(RECEIPTS_PATH, &alloc::format!("{}", forget.machine));
        for number in self.children(&parent)? {
            if number.parse::<u64>().is_ok_and(|number| number <= forget.through) {
                let path = join(&parent, &number);
                self.kernel
                    .store()
                    .delete(SEALED_TREE, &path)
                    .map_err(|error| ControlError::Device(alloc::format!("{error}")))?;
            }
        }
        Ok(())
    }

    /// Takes what was used since the last time into the machine's ledger; gives how long the period
    /// has lasted, in milliseconds.
    fn count(&mut self, moment: &Moment<'_>, id: MachineId) -> Option<u64> {
        let used = self.kernel.take_usage(moment.now, id)?;
        let term = self.kernel.machines().find(|info| info.id == id)?.record.term;
        let unix_ms = self.unix_time(moment).map_or(0, |time| time.seconds.saturating_mul(1000));
        let air_bytes = self.endpoint.take_sent_bytes(&id);
        let latest_ms = self.meter.latest_ms(moment.now);
        let ledger = self.meter.ledgers.get_mut(&id)?;
        ledger.usage = ledger.usage.and(Usage { air_bytes, ..used });
        let until = core::mem::replace(&mut ledger.until, moment.now);
        let on_ms = moment.now.as_millis().saturating_sub(until.as_millis());
        ledger.counted_ms += on_ms;
        let signed_ms = term.signed_unix_s.saturating_mul(1000);
        let own_ms = ledger.lease_ms.max(signed_ms).saturating_add(on_ms);
        ledger.lease_ms = own_ms.max(unix_ms).max(latest_ms);
        let (counted_ms, lease_ms) = (ledger.counted_ms, ledger.lease_ms);
        self.meter.learn_latest(moment.now, lease_ms);
        Some(counted_ms)
    }

    /// Writes the receipt of the period under way and begins the next one; `false` if there is no
    /// room, so that the period goes on.
    fn end_period(&mut self, moment: &Moment<'_>, id: MachineId) -> bool {
        let unix_s = self.unix_time(moment).map(|time| time.seconds);
        let Some(ledger) = self.meter.ledgers.get(&id).cloned() else { return false };
        let known = self.kernel.machines().find(|info| info.id == id);
        let Some(record) = known.map(|info| info.record.clone()) else { return false };
        let parent = join(RECEIPTS_PATH, &alloc::format!("{id}"));
        if self.children(&parent).map_or(RECEIPTS_MAX, |numbers| numbers.len()) >= RECEIPTS_MAX {
            return false;
        }
        let receipt = self.receipt(&record, id, &ledger, unix_s);
        let Ok(bytes) = receipt.sign(self.identity.signing_key()) else { return false };
        let next = Ledger {
            number: ledger.number + 1,
            previous: digest_of_receipt(&bytes),
            lease_ms: ledger.lease_ms,
            is_over: record.term.stage(ledger.lease_ms / 1000) != Stage::InForce,
            ..Ledger::first(moment.now, unix_s)
        };
        let Some(next_bytes) = next.to_bytes() else { return false };
        // Twenty digits, so that the order of paths is that of numbers.
        let receipt_path = alloc::format!("{parent}.{:020}", ledger.number);
        let ledger_path = ledger_path(&id);
        let set =
            |path, value| Change::Set { tree: SEALED_TREE, path, kind: ValueKind::Bytes, value };
        let changes = [set(&receipt_path, &bytes), set(&ledger_path, &next_bytes)];
        if self.kernel.store().batch(&changes).is_err() {
            return false;
        }
        self.meter.ledgers.insert(id, Box::new(next));
        true
    }

    fn receipt(
        &self,
        record: &MachineRecord,
        id: MachineId,
        ledger: &Ledger,
        unix_s: Option<u64>,
    ) -> Receipt {
        Receipt {
            owner: self.config.owner.verifying_key,
            tenant: record.tenant,
            machine: id,
            name: record.name.clone(),
            package: record.package,
            lease: record.placement,
            tier: record.share.tier,
            period_s: self.period_ms(&record.term) / 1000,
            number: ledger.number,
            previous: ledger.previous,
            began_unix_s: ledger.began_unix_s,
            ended_unix_s: unix_s,
            counted_ms: ledger.counted_ms,
            usage: ledger.usage,
        }
    }

    fn children(&mut self, path: &str) -> Answer<Vec<String>> {
        let children = self.kernel.store().children(SEALED_TREE, path);
        children.map_err(|error| ControlError::Device(alloc::format!("{error}")))
    }
}

fn ledger_path(id: &MachineId) -> String {
    join(LEDGERS_PATH, &alloc::format!("{id}"))
}

fn join(parent: &str, child: &str) -> String {
    alloc::format!("{parent}.{child}")
}
