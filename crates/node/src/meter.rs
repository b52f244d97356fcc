//! The meter: what each machine used, summed up over restarts, and the receipts for it.
//!
//! Each machine has a ledger of the period under way. It is written to flash at every checkpoint, and
//! when a period ends its receipt and the empty ledger of the next one are written in one batch: so no
//! period is billed twice and none is lost, whenever the power goes. What was used since the last
//! checkpoint is lost with the power, in favour of the tenant; the machine's storage isn't counted
//! while the device is off.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use litemap::LiteMap;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_kernel::MachineRecord;
use tenure_package::{NO_RECEIPT, Receipt, digest_of_receipt};
use tenure_store::{Change, ValueKind};
use tenure_wire::control::{Answer, ControlError, ReceiptForget, ReceiptPage, ReceiptQuery};
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::usage::Usage;
use tenure_wire::{Digest, MachineId, Term, VerifyingKey};

use crate::clock::Clock;
use crate::lease_time::{LatestTime, LeaseTime, Stage};
use crate::log;
use crate::moment::Moment;
use crate::services::Services;
use crate::trees::SEALED_TREE;

/// The most receipts of one machine that wait to be fetched; while there are that many, the period
/// under way goes on.
const RECEIPTS_MAX: usize = 24;
/// The version of ledgers in the store. One of another version isn't guessed at: a new one goes on from
/// the last receipt that is there.
const LEDGER_VERSION: u8 = 2;
const LEDGERS_PATH: &str = "ledgers";
const RECEIPTS_PATH: &str = "receipts";

/// The ledgers of all machines.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Boxed: the map keeps room for more than there are.
    ledgers: LiteMap<MachineId, Box<Ledger>>,
    /// When the ledgers are written to flash next.
    pub(crate) checkpoint_at: Instant,
    /// The latest time that any lease went by, in milliseconds since 1970 UTC, and when that was: all of
    /// them go by it, so that what one learnt counts for the others, over restarts too. `None` while no
    /// lease and nobody has told one.
    latest: LatestTime,
    /// When a lease, its grace or a stay in the trash ends next, if one does.
    pub(crate) lease_ends_at: Option<Instant>,
    /// When a period ends next, if that is before the checkpoint.
    pub(crate) period_ends_at: Instant,
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
    lease: LeaseTime,
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

    /// The first one of a machine whose lease was signed at that time.
    fn first(now: Instant, unix_s: Option<u64>) -> Self {
        Self {
            number: 0,
            previous: NO_RECEIPT,
            began_unix_s: unix_s,
            counted_ms: 0,
            usage: Usage::default(),
            lease: LeaseTime::default(),
            until: now,
        }
    }
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            ledgers: LiteMap::new(),
            checkpoint_at: now,
            latest: LatestTime::default(),
            lease_ends_at: None,
            period_ends_at: now,
        }
    }

    /// The latest time that leases went by, in milliseconds since 1970 UTC, and when that was.
    pub(crate) fn latest(&self) -> LatestTime {
        self.latest
    }

    /// Goes on, after a deep sleep, from the time that leases went by before it.
    pub(crate) fn go_on_from(&mut self, ms: u64, at: Instant) {
        self.latest.known = Some((ms, at));
    }

    /// The time that leases go by, in seconds since 1970 UTC, if anything is known of it.
    pub(crate) fn latest_unix_s(&self, now: Instant) -> Option<u64> {
        self.latest.unix_s(now)
    }

    /// Learns that it is at least so late, in seconds since 1970 UTC.
    pub(crate) fn learn_unix_s(&mut self, now: Instant, unix_s: u64) {
        self.latest.learn_ms(now, unix_s.saturating_mul(1000));
    }

    /// Sets back the time that leases go by, in seconds since 1970 UTC.
    pub(crate) fn set_back(&mut self, now: Instant, unix_s: u64) {
        let ms = unix_s.saturating_mul(1000);
        for (_, ledger) in self.ledgers.iter_mut() {
            ledger.lease.set_back(ms);
        }
        self.latest.known = Some((ms, now));
    }

    /// For how much longer the data of a machine is kept whose lease is over, in milliseconds that the
    /// device is on.
    pub(crate) fn left_ms(&self, id: &MachineId, span: Duration) -> u64 {
        self.lease(id).left_ms(span)
    }

    /// When a lease ends next, or its grace, if one does.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        self.lease_ends_at
    }

    /// For how much longer a machine stays whose lease is over, in seconds that the device is on.
    pub(crate) fn grace_left_s(&self, id: &MachineId, term: &Term) -> u64 {
        self.left_ms(id, Duration::from_secs(term.grace_s)).div_ceil(1000)
    }

    /// The time of a machine's lease.
    pub(crate) fn lease(&self, id: &MachineId) -> LeaseTime {
        self.ledgers.get(id).map_or_else(LeaseTime::default, |ledger| ledger.lease)
    }

    /// Takes note of the state of a machine's lease.
    pub(crate) fn take_note(&mut self, id: &MachineId, stage: Stage) {
        if let Some(ledger) = self.ledgers.get_mut(id) {
            ledger.lease.take_note(stage);
        }
    }

    /// Writes all ledgers to flash.
    pub(crate) fn keep_all<F: Flash>(&mut self, services: &mut Services<F>) {
        let ids: Vec<MachineId> = self.ledgers.keys().copied().collect();
        ids.iter().for_each(|id| self.keep_ledger(services, id));
    }

    /// Takes up the ledgers of all machines, at boot.
    pub(crate) fn take_up_ledgers<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        moment: &Moment<'_>,
    ) {
        let all = services.kernel.machines().chain(services.kernel.trash());
        let ids: Vec<MachineId> = all.map(|info| info.id).collect();
        for id in ids {
            self.take_up_ledger(services, clock, moment, id);
            let written = self.ledgers.get(&id).map_or(0, |ledger| ledger.usage.flash_bytes);
            services.kernel.recall_flash_use(id, written);
        }
        self.checkpoint_at = moment.now + services.config.checkpoint;
    }

    /// Takes up the ledger of a machine, or begins one.
    pub(crate) fn take_up_ledger<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        moment: &Moment<'_>,
        id: MachineId,
    ) {
        let stored = services.kernel.store().get(SEALED_TREE, &ledger_path(&id)).ok().flatten();
        let kept = stored.and_then(|value| Ledger::from_bytes(&value.bytes));
        let unix_s = clock.unix_time(moment).map(|time| time.seconds);
        let ledger = match kept {
            Some(ledger) => Ledger { until: moment.now, ..ledger },
            None => {
                let (number, previous) = after_last_receipt(services, &id);
                let signed_s = term_of(services, id).map_or(0, |term| term.signed_unix_s);
                let lease = LeaseTime { ms: signed_s.saturating_mul(1000), over_ms: None };
                Ledger { number, previous, lease, ..Ledger::first(moment.now, unix_s) }
            }
        };
        self.latest.learn_ms(moment.now, ledger.lease.ms);
        self.ledgers.insert(id, Box::new(ledger));
    }

    /// For how much longer a machine stays in the trash, in seconds that the device is on.
    pub(crate) fn trash_left_s<F: Flash>(&self, services: &Services<F>, id: &MachineId) -> u64 {
        self.left_ms(id, services.config.trash_span).div_ceil(1000)
    }

    /// Begins to count anew how long a machine's data is kept, or ends that, and writes it down.
    pub(crate) fn count_over<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        id: &MachineId,
        over_ms: Option<u64>,
    ) {
        if let Some(ledger) = self.ledgers.get_mut(id) {
            ledger.lease.over_ms = over_ms;
        }
        self.keep_ledger(services, id);
    }

    /// The time for the lease of a machine, in seconds since 1970 UTC.
    pub(crate) fn lease_unix_s(&self, id: &MachineId) -> u64 {
        self.lease(id).ms / 1000
    }

    /// Puts what a tenant's change of a secret wrote to flash on the bill of a machine of the tenant.
    pub(crate) fn bill_tenant<F: Flash>(
        &mut self,
        services: &Services<F>,
        tenant: &VerifyingKey,
        flash_bytes: u64,
    ) {
        let first = services.kernel.machines().find(|info| info.record.tenant == *tenant);
        let Some(id) = first.map(|info| info.id) else {
            debug_assert!(false, "a tenant without a machine has no secret changed");
            return;
        };
        if let Some(ledger) = self.ledgers.get_mut(&id) {
            let usage = Usage { flash_writes: 1, flash_bytes, ..Usage::default() };
            ledger.usage = ledger.usage.and(usage);
        }
    }

    pub(crate) fn keep_ledger<F: Flash>(&mut self, services: &mut Services<F>, id: &MachineId) {
        let ledger = self.ledgers.get(id);
        debug_assert!(ledger.is_some(), "each machine has a ledger, in the trash too");
        // Without memory to encode it, the next checkpoint tries again.
        let Some(bytes) = ledger.and_then(|ledger| ledger.to_bytes()) else { return };
        // A full or failing store must not stop the device: the next checkpoint tries again.
        let _ =
            services.kernel.store().set(SEALED_TREE, &ledger_path(id), ValueKind::Bytes, &bytes);
    }

    /// Ends the period of a machine whose lease changes or ends.
    pub(crate) fn end_lease<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        moment: &Moment<'_>,
        id: MachineId,
    ) {
        if self.count(services, clock, moment, id).is_some() {
            self.end_period(services, clock, moment, id);
        }
    }

    /// Forgets the ledger of a machine that is gone; its receipts stay until they are fetched.
    pub(crate) fn drop_ledger<F: Flash>(&mut self, services: &mut Services<F>, id: &MachineId) {
        self.ledgers.remove(id);
        #[cfg(feature = "journals")]
        crate::journals::forget(services, id);
        let _ = services.kernel.store().delete(SEALED_TREE, &ledger_path(id));
        log::forget(services, id);
        self.drop_chain(services, id);
    }

    /// Forgets where the receipts of a machine that is gone went on, once the last was fetched.
    fn drop_chain<F: Flash>(&mut self, services: &mut Services<F>, id: &MachineId) {
        let parent = join(RECEIPTS_PATH, &alloc::format!("{id}"));
        let is_gone = !self.ledgers.contains_key(id);
        if is_gone && children(services, &parent).is_ok_and(|numbers| numbers.is_empty()) {
            let _ = services.kernel.store().delete(SEALED_TREE, &parent);
        }
    }

    /// Ends all periods under way, for an owner who wants to bill now.
    pub(crate) fn end_periods<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        moment: &Moment<'_>,
    ) {
        let ids: Vec<MachineId> = self.ledgers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.end_lease(services, clock, moment, id));
    }

    /// A page of the receipts that wait to be fetched.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn receipts<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        query: &ReceiptQuery,
    ) -> Answer<ReceiptPage> {
        let mut receipts = Vec::new();
        let (mut room, mut skip) = (PARAMETER_BYTES_MAX - 64, query.skip);
        for machine in children(services, RECEIPTS_PATH)? {
            for number in children(services, &join(RECEIPTS_PATH, &machine))? {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let path = join(&join(RECEIPTS_PATH, &machine), &number);
                let stored = services.kernel.store().get(SEALED_TREE, &path);
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
    pub(crate) fn forget_receipts<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        forget: &ReceiptForget,
    ) -> Answer<()> {
        let parent = join(RECEIPTS_PATH, &alloc::format!("{}", forget.machine));
        for number in children(services, &parent)? {
            if number.parse::<u64>().is_ok_and(|number| number <= forget.through) {
                let path = join(&parent, &number);
                services
                    .kernel
                    .store()
                    .delete(SEALED_TREE, &path)
                    .map_err(|error| ControlError::Device(alloc::format!("{error}")))?;
            }
        }
        self.drop_chain(services, &forget.machine);
        Ok(())
    }

    /// Takes what was used since the last time into the machine's ledger; gives how long the period
    /// has lasted, in milliseconds.
    pub(crate) fn count<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        moment: &Moment<'_>,
        id: MachineId,
    ) -> Option<u64> {
        let used = services.kernel.take_usage(moment.now, id)?;
        // The told time has moved the latest time already, as far as it may.
        let unix_ms = clock.board_time(moment).map_or(0, |time| time.seconds.saturating_mul(1000));
        let air_bytes = services.endpoint.take_sent_bytes(&id);
        let latest_ms = self.latest.ms(moment.now);
        let ledger = self.ledgers.get_mut(&id)?;
        // The kernel counted what went to servers outside.
        let air_bytes = used.air_bytes.saturating_add(air_bytes);
        ledger.usage = ledger.usage.and(Usage { air_bytes, ..used });
        let until = core::mem::replace(&mut ledger.until, moment.now);
        let on_ms = moment.now.as_millis().saturating_sub(until.as_millis());
        ledger.counted_ms += on_ms;
        // A lease that knows no time begins to count with 1970, as ever.
        ledger.lease.pass(on_ms, unix_ms.max(latest_ms));
        let (counted_ms, lease_ms) = (ledger.counted_ms, ledger.lease.ms);
        if self.latest.known.is_some() || unix_ms > 0 {
            self.latest.learn_ms(moment.now, lease_ms);
        }
        Some(counted_ms)
    }

    /// Writes the receipt of the period under way and begins the next one; `false` if there is no
    /// room, so that the period goes on.
    pub(crate) fn end_period<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        moment: &Moment<'_>,
        id: MachineId,
    ) -> bool {
        let unix_s = clock.unix_time(moment).map(|time| time.seconds);
        let Some(ledger) = self.ledgers.get(&id).cloned() else { return false };
        let known =
            services.kernel.machines().chain(services.kernel.trash()).find(|info| info.id == id);
        let Some(record) = known.map(|info| info.record.clone()) else { return false };
        let parent = join(RECEIPTS_PATH, &alloc::format!("{id}"));
        if children(services, &parent).map_or(RECEIPTS_MAX, |numbers| numbers.len()) >= RECEIPTS_MAX
        {
            return false;
        }
        let receipt = receipt(services, &record, id, &ledger, unix_s);
        #[cfg(feature = "journals")]
        let committed = crate::journals::commit(services, moment.now, id, ledger.number);
        let key = services.identity.signing_key();
        #[cfg(feature = "journals")]
        let signed = match &committed {
            Some(journal) => receipt.sign_with(journal, key),
            None => receipt.sign(key),
        };
        #[cfg(not(feature = "journals"))]
        let signed = receipt.sign(key);
        let Ok(bytes) = signed else { return false };
        let next = Ledger {
            number: ledger.number + 1,
            previous: digest_of_receipt(&bytes),
            lease: LeaseTime {
                over_ms: match record.term.is_over(ledger.lease.ms / 1000) {
                    true => Some(ledger.lease.over_ms.unwrap_or(0)),
                    false => ledger.lease.over_ms,
                },
                ..ledger.lease
            },
            ..Ledger::first(moment.now, unix_s)
        };
        let Some(next_bytes) = next.to_bytes() else { return false };
        let chain = (next.number, next.previous);
        let Ok(chain) = postcard::to_allocvec(&chain) else { return false };
        // Twenty digits, so that the order of paths is that of numbers.
        let receipt_path = alloc::format!("{parent}.{:020}", ledger.number);
        let ledger_path = ledger_path(&id);
        let set =
            |path, value| Change::Set { tree: SEALED_TREE, path, kind: ValueKind::Bytes, value };
        let changes =
            [set(&receipt_path, &bytes), set(&ledger_path, &next_bytes), set(&parent, &chain)];
        if services.kernel.store().batch(&changes).is_err() {
            return false;
        }
        #[cfg(feature = "journals")]
        if let Some(committed) = committed {
            crate::journals::begin_period(services, &id, committed.ended);
        }
        self.ledgers.insert(id, Box::new(next));
        true
    }
}

/// The number of the receipt that comes after the last one, and the digest of that: where a machine goes on whose ledger can't be read.
fn after_last_receipt<F: Flash>(services: &mut Services<F>, id: &MachineId) -> (u64, Digest) {
    let parent = join(RECEIPTS_PATH, &alloc::format!("{id}"));
    let chain = services.kernel.store().get(SEALED_TREE, &parent).ok().flatten();
    if let Some(chain) = chain.and_then(|value| postcard::from_bytes(&value.bytes).ok()) {
        return chain;
    }
    let last = children(services, &parent).ok().and_then(|mut numbers| numbers.pop());
    let Some(last) = last else { return (0, NO_RECEIPT) };
    let receipt = services.kernel.store().get(SEALED_TREE, &join(&parent, &last)).ok().flatten();
    let digest = receipt.map_or(NO_RECEIPT, |receipt| digest_of_receipt(&receipt.bytes));
    (last.parse::<u64>().map_or(0, |number| number + 1), digest)
}

fn term_of<F: Flash>(services: &Services<F>, id: MachineId) -> Option<Term> {
    let mut all = services.kernel.machines().chain(services.kernel.trash());
    Some(all.find(|info| info.id == id)?.record.term)
}

/// How long a period of a lease lasts, in milliseconds.
pub(crate) fn period_ms<F>(services: &Services<F>, term: &Term) -> u64 {
    match term.receipts_every_s {
        0 => services.config.receipt_period.as_millis() as u64,
        seconds => seconds.saturating_mul(1000),
    }
}

fn receipt<F>(
    services: &Services<F>,
    record: &MachineRecord,
    id: MachineId,
    ledger: &Ledger,
    unix_s: Option<u64>,
) -> Receipt {
    Receipt {
        owner: services.config.owner.verifying_key,
        tenant: record.tenant,
        machine: id,
        name: record.name.clone(),
        package: record.package,
        lease: record.placement,
        tier: record.share.tier,
        period_s: period_ms(services, &record.term) / 1000,
        number: ledger.number,
        previous: ledger.previous,
        began_unix_s: ledger.began_unix_s,
        ended_unix_s: unix_s,
        counted_ms: ledger.counted_ms,
        usage: ledger.usage,
    }
}

fn children<F: Flash>(services: &mut Services<F>, path: &str) -> Answer<Vec<String>> {
    let children = services.kernel.store().children(SEALED_TREE, path);
    children.map_err(|error| ControlError::Device(alloc::format!("{error}")))
}

fn ledger_path(id: &MachineId) -> String {
    join(LEDGERS_PATH, &alloc::format!("{id}"))
}

fn join(parent: &str, child: &str) -> String {
    alloc::format!("{parent}.{child}")
}

#[cfg(test)]
mod tests {
    use tenure_testbed::frozen;

    use super::*;

    #[test]
    fn ledger_of_version_2_is_written_and_read() {
        let ledger = Ledger {
            number: 300,
            previous: Digest([1; 32]),
            began_unix_s: Some(1_800_000_000),
            counted_ms: 60_000,
            usage: Usage { fuel: 1 << 40, run_us: 2, air_bytes: 3, ..Usage::default() },
            lease: LeaseTime { ms: 1_800_000_000_000, over_ms: Some(4) },
            until: Instant::BOOT,
        };
        let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "ledger-2", &ledger.to_bytes().unwrap());
        assert_eq!(Ledger::from_bytes(&bytes), Some(ledger));
        bytes[0] += 1;
        assert_eq!(Ledger::from_bytes(&bytes), None, "another version isn't guessed at");
    }
}
