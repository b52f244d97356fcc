//! Invariants of leases, receipts and secrets, and the facts about them that are known from outside.
//!
//! - A secret that is read is the one that its tenant's last acknowledged change made, or a later change
//!   did; after a removal there is none. It is never another tenant's, and is in no datagram and nowhere
//!   in flash as it is.
//! - A lease ends at its time and not before, and what runs under it with it; a device that knows no time
//!   is late by the time it was off, by how long the owner's word took, and by what a loss of power made
//!   it forget. One whose owner told it the time since it started is late by how long that took alone.
//! - A renewal that was acknowledged counts, whatever the device goes through.
//! - Receipts form one chain; a number never stands for two; their sums are what was used, less what each
//!   loss of power cost, and never more, whatever the owner does to the machines meanwhile: each act may end
//!   one read that has begun and isn't billed yet.

use std::collections::BTreeMap;
use std::fmt;

use tenure_node::Node;
use tenure_package::{Receipt, ReceiptChain, digest_of_receipt};
use tenure_wire::control::ReceiptForget;
use tenure_wire::host_call::HostError;
use tenure_wire::{Digest, MachineId, PublicKey, VerifyingKey};

use super::{CHECKPOINT, TENANTS};
use crate::flash::Partition;
use crate::line;
use crate::trouble::Trouble;

/// A text within every value of a secret, to be looked for where it must not be.
const MARK: &str = "correct-horse";
/// How much more than a checkpoint's span a loss of power costs: slices, and the second that times are
/// rounded to.
const SLACK_US: u64 = 1_500_000;
/// The most reads that both machines begin in the time that a loss of power costs.
const READS_A_CUT: u64 = 60;

/// Counts of the checked events of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Secrets that were read.
    pub reads: u64,
    /// Reads of a secret that wasn't there.
    pub absent: u64,
    /// Changes of secrets that were acknowledged.
    pub changes: u64,
    /// Renewals that were acknowledged.
    pub renewals: u64,
    /// Leases that ended.
    pub ends: u64,
    /// Receipts that were fetched.
    pub receipts: u64,
    /// How often the power went.
    pub cuts: u64,
    /// How often the device slept.
    pub sleeps: u64,
    /// How often the owner restarted, stopped, started, restored, updated, removed or fetched back a machine.
    pub acts: u64,
}

impl Tally {
    /// The same as other worlds count it.
    pub fn trouble(&self) -> Trouble {
        Trouble { power_cuts: self.cuts, sleeps: self.sleeps, ..Trouble::default() }
    }

    /// The sum of two worlds' counts.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            absent: self.absent + other.absent,
            changes: self.changes + other.changes,
            renewals: self.renewals + other.renewals,
            ends: self.ends + other.ends,
            receipts: self.receipts + other.receipts,
            cuts: self.cuts + other.cuts,
            sleeps: self.sleeps + other.sleeps,
            acts: self.acts + other.acts,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reads, absent, changes, renewals, ends, receipts, cuts, sleeps, acts } = self;
        write!(
            f,
            "{reads} secrets read, {absent} absent, {changes} changes; {ends} leases ended, {renewals} \
             renewals, {receipts} receipts; {cuts} losses of power, {sleeps} sleeps, {acts} acts of the owner's"
        )
    }
}

/// A term that was signed.
#[derive(Debug)]
struct Offer {
    number: u64,
    end_us: u64,
    /// When it was signed, by the world's clock.
    signed_us: u64,
    /// How long the device had been on when it was known to have it, and how often its power had gone.
    had: Option<(u64, u64)>,
}

/// Facts about one tenant's machine and secret.
#[derive(Debug, Default)]
struct Account {
    /// The value after each change, by the change's number less one.
    changes: Vec<Option<String>>,
    /// The number of the last change that was acknowledged.
    changed: u64,
    /// The same when the read under way began.
    reading: Option<u64>,
    begun: u64,
    begun_us: u64,
    offers: Vec<Offer>,
    /// The number of the last term that was acknowledged.
    leased: u64,
}

/// Facts about a device, its tenants and its owner.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) cuts: u64,
    pub(super) sleeps: u64,
    /// Reads that had begun when the owner's second terminal did something to their machine, which may have ended them
    /// before they were billed.
    cut_short: u64,
    /// Whether all that was used is on receipts that were fetched.
    is_whole: bool,
    device: Option<(VerifyingKey, PublicKey)>,
    /// Since when the device is on, if it is, and for how long it was before.
    on_since_us: Option<u64>,
    was_on_us: u64,
    /// The time that the owner told since the device started, and when the device was known to have heard it:
    /// the pair by which it is latest now.
    told: Option<(u64, u64)>,
    accounts: [Account; 2],
    chains: BTreeMap<MachineId, ReceiptChain>,
    digests: BTreeMap<(MachineId, u64), Digest>,
    to_forget: Vec<ReceiptForget>,
    /// How many reads had begun, and how long the device had been on, when the owner ended the periods.
    closing: Option<(u64, u64)>,
    covered: Option<(u64, u64)>,
    tally: Tally,
}

impl Books {
    /// The device's keys, once it was seen.
    pub(super) fn device(
        &mut self,
        node: Option<&Node<Partition>>,
    ) -> Option<(VerifyingKey, PublicKey)> {
        let seen = node.map(|node| (node.device_key(), node.device_machine()));
        if let (Some(known), Some(seen)) = (self.device, seen) {
            assert_eq!(known, seen, "the device is another one");
        }
        self.device = self.device.or(seen);
        self.device
    }

    pub(super) fn switched_on(&mut self, now_us: u64, was_asleep: bool) {
        self.on_since_us = Some(now_us);
        if !was_asleep {
            self.told = None;
            self.accounts.iter_mut().for_each(|account| account.reading = None);
        }
    }

    pub(super) fn switched_off(&mut self, now_us: u64) {
        if let Some(since_us) = self.on_since_us.take() {
            self.was_on_us += now_us - since_us;
        }
    }

    /// How long the device has been on.
    pub(super) fn on_us(&self, now_us: u64) -> u64 {
        self.was_on_us + self.on_since_us.map_or(0, |since_us| now_us - since_us)
    }

    /// The owner's second terminal did something to a machine, or tried to.
    pub(super) fn acted(&mut self, index: usize, is_done: bool) {
        self.tally.acts += u64::from(is_done);
        self.cut_short += u64::from(self.accounts[index].reading.is_some());
    }

    #[track_caller]
    pub(super) fn check_private(&self, what: &str, bytes: &[u8]) {
        assert!(!holds(bytes, MARK.as_bytes()), "{what} holds a secret in the clear");
    }

    /// A machine was installed under a term.
    pub(super) fn granted(&mut self, machine: &str, number: u64, end_us: u64, now_us: u64) {
        let index = index_of(machine).expect("a tenant's");
        self.offered(index, number, end_us, now_us);
        self.has_term(index, number, now_us);
    }

    /// A term was signed for a tenant's machine.
    pub(super) fn offered(&mut self, index: usize, number: u64, end_us: u64, now_us: u64) {
        let offer = Offer { number, end_us, signed_us: now_us, had: None };
        self.accounts[index].offers.push(offer);
    }

    /// The device has said that a term is in force.
    pub(super) fn has_term(&mut self, index: usize, number: u64, now_us: u64) {
        let had = Some((self.on_us(now_us), self.cuts));
        let account = &mut self.accounts[index];
        account.leased = account.leased.max(number);
        let offer = account.offers.iter_mut().find(|offer| offer.number == number);
        offer.into_iter().for_each(|offer| offer.had = had);
    }

    /// The number of a tenant's next term.
    pub(super) fn next_lease(&self, index: usize) -> u64 {
        self.accounts[index].offers.last().map_or(0, |offer| offer.number) + 1
    }

    /// Whether a term of the first tenant's machine was acknowledged that goes on until then.
    pub(super) fn is_leased_until(&self, at_us: u64) -> bool {
        self.accounts[0]
            .candidates()
            .next()
            .is_some_and(|offer| offer.number == self.accounts[0].leased && offer.end_us > at_us)
    }

    pub(super) fn renewed(&mut self, number: u64, now_us: u64) {
        self.tally.renewals += 1;
        self.has_term(0, number, now_us);
    }

    /// A tenant's next change: its number, and the value, or that the secret is removed.
    pub(super) fn next_secret(&mut self, index: usize, removes: bool) -> (u64, Option<String>) {
        let account = &mut self.accounts[index];
        let version = account.changes.len() as u64 + 1;
        let value = (!removes).then(|| format!("{}-{version:04}-{MARK}", TENANTS[index].1));
        account.changes.push(value.clone());
        (version, value)
    }

    pub(super) fn changed(&mut self, index: usize, version: u64) {
        self.tally.changes += 1;
        let account = &mut self.accounts[index];
        account.changed = account.changed.max(version);
    }

    /// How many reads both machines have begun.
    pub(super) fn begun(&self) -> u64 {
        self.accounts.iter().map(|account| account.begun).sum()
    }

    /// The owner told a time, and the device has heard it since, in this life.
    pub(super) fn told(&mut self, time_us: u64, now_us: u64) {
        let is_later = self.told.is_none_or(|(time, at)| time + (now_us - at) < time_us);
        if is_later {
            self.told = Some((time_us, now_us));
        }
    }

    /// All periods were ended, some time after so many reads had begun.
    pub(super) fn closed(&mut self, begun: u64, on_us: u64) {
        self.closing = Some((begun, on_us));
    }

    pub(super) fn logged(&mut self, now_us: u64, machine: &str, message: &str, has_clock: bool) {
        let Some(index) = index_of(machine) else { return };
        if message.contains("its lease is over") {
            self.tally.ends += 1;
            let candidates = self.accounts[index].candidates();
            let is_early = candidates.clone().all(|offer| offer.end_us > now_us);
            assert!(
                !is_early,
                "{machine}'s lease ended early: {:?}",
                candidates.collect::<Vec<_>>()
            );
        }
        let account = &mut self.accounts[index];
        match message.split_at_checked(4) {
            Some(("begi", _)) => {
                (account.begun, account.begun_us) = (account.begun + 1, now_us);
                account.reading = Some(account.changed);
                self.check_lease(now_us, index, has_clock);
            }
            Some(("secr", digits)) => {
                let Some(since) = account.reading.take() else { return };
                let bytes = line::decode(digits).expect("what it says is in hexadecimal");
                let (status, value) = bytes.split_first_chunk::<4>().expect("a status");
                let read = match i32::from_le_bytes(*status) {
                    status if status == HostError::NotFound.code() => None,
                    status => {
                        assert!(status >= 0, "{machine} can't read its secret: {status}");
                        Some(String::from_utf8_lossy(value).into_owned())
                    }
                };
                let is_right = account.may_read(since, read.as_deref());
                assert!(is_right, "{machine} reads {read:?} after change {since}");
                *(if read.is_some() { &mut self.tally.reads } else { &mut self.tally.absent }) += 1;
            }
            _ => {}
        }
    }

    /// A machine runs: so its lease isn't surely over.
    fn check_lease(&self, now_us: u64, index: usize, has_clock: bool) {
        let is_over = |offer: &Offer| {
            if has_clock {
                return now_us > offer.end_us + SLACK_US;
            }
            let told_us = self.told.map_or(0, |(time_us, at_us)| time_us + (now_us - at_us));
            if told_us > offer.end_us + SLACK_US {
                return true;
            }
            // It counts from when it has the term, and what it doesn't say it has may have come just now.
            let Some((on_us, cuts)) = offer.had else { return false };
            let forgotten_us = (self.cuts - cuts) * (micros(CHECKPOINT) + SLACK_US);
            let counted_us = (self.on_us(now_us) - on_us).saturating_sub(forgotten_us);
            counted_us > offer.end_us - offer.signed_us + SLACK_US
        };
        let candidates = self.accounts[index].candidates();
        let is_late = candidates.clone().all(is_over);
        let (on_us, candidates) = (self.on_us(now_us), candidates.collect::<Vec<_>>());
        let what = format_args!("has a clock: {has_clock}, on for {on_us} us, {candidates:?}");
        assert!(!is_late, "{} runs after its lease at {now_us}: {what}", TENANTS[index].1);
    }

    /// A page of receipts came, of which these are all.
    pub(super) fn received(&mut self, receipts: &[Vec<u8>]) {
        receipts.iter().for_each(|bytes| self.take_receipt(bytes));
        self.to_forget = (self.chains.iter())
            .map(|(machine, chain)| ReceiptForget {
                machine: *machine,
                through: chain.last().number,
            })
            .collect();
    }

    /// All receipts that there were have come.
    pub(super) fn fetched_all(&mut self) {
        self.covered = self.closing.or(self.covered);
    }

    fn take_receipt(&mut self, bytes: &[u8]) {
        let (receipt, signer) = Receipt::verify(bytes).expect("a receipt");
        assert!(self.device.is_some_and(|(key, _)| key == signer), "signed by another device");
        let digest = digest_of_receipt(bytes);
        let known = self.digests.entry((receipt.machine, receipt.number)).or_insert(digest);
        assert_eq!(*known, digest, "two receipts of one number");
        match self.chains.get_mut(&receipt.machine) {
            None => {
                assert_eq!(receipt.number, 0, "the first receipt");
                let chain = ReceiptChain::begin(bytes).expect("a first receipt");
                self.chains.insert(receipt.machine, chain);
                self.tally.receipts += 1;
            }
            // It was fetched before, and the device hadn't heard that it may forget it.
            Some(chain) if receipt.number <= chain.last().number => {}
            Some(chain) => {
                let before = chain.last().lease;
                let next = chain.follow(bytes).expect("the next receipt");
                assert!(next.lease >= before, "an older lease is billed");
                self.tally.receipts += 1;
            }
        }
    }

    /// Every receipt was taken at the device itself, after all periods had ended: a read that has begun now is the only
    /// one of its machine that isn't billed.
    pub(super) fn fetched_the_rest(&mut self) {
        self.cut_short += self.accounts.iter().filter(|one| one.reading.is_some()).count() as u64;
        self.is_whole = true;
    }

    /// The next receipts that the device may forget.
    pub(super) fn forget(&mut self) -> Option<ReceiptForget> {
        self.to_forget.pop()
    }

    /// Looks at everything once more at the end.
    pub(super) fn close(self, now_us: u64) -> Tally {
        let begun = self.begun();
        let alice = &self.accounts[0];
        assert!(now_us - alice.begun_us < 3_000_000, "a renewed machine reads its secret again");
        let read: u64 = self.chains.values().map(|chain| chain.total.messages).sum();
        let (covered, covered_us) = self.covered.expect("all periods were ended, and fetched");
        let lost = self.cuts * READS_A_CUT + self.cut_short;
        assert!(read <= begun + 2 * self.cuts, "{read} reads billed of {begun}");
        assert!(read + lost >= covered, "{read} reads billed of {covered}, {} cuts", self.cuts);
        assert!(self.is_whole, "every receipt was fetched");
        assert!(read + lost >= begun, "{read} reads billed of {begun}, {} cuts", self.cuts);
        let lost_us = self.cuts * (micros(CHECKPOINT) + SLACK_US);
        for chain in self.chains.values() {
            let counted_us = chain.counted_ms * 1_000;
            let on_us = self.on_us(now_us);
            // Times are cut to milliseconds, at the beginning of a life and at its end.
            let cut_off_us = 2_000 * (1 + self.cuts + self.sleeps);
            assert!(counted_us <= on_us + cut_off_us, "{counted_us} us are billed of {on_us}");
            let is_most = counted_us + lost_us + SLACK_US >= covered_us;
            assert!(is_most, "{counted_us} us are billed of {covered_us}, {} cuts", self.cuts);
        }
        Tally { cuts: self.cuts, sleeps: self.sleeps, ..self.tally }
    }
}

impl Account {
    /// The terms of which one is in force.
    fn candidates(&self) -> impl Iterator<Item = &Offer> + Clone {
        self.offers.iter().filter(|offer| offer.number >= self.leased)
    }

    /// Whether a read that began after change number `since` may give this.
    fn may_read(&self, since: u64, read: Option<&str>) -> bool {
        let before = since == 0 && read.is_none();
        let from = since.saturating_sub(1) as usize;
        before || self.changes[from..].iter().any(|change| change.as_deref() == read)
    }
}

fn index_of(machine: &str) -> Option<usize> {
    TENANTS.iter().position(|(_, name)| *name == machine)
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|part| part == wanted)
}

fn micros(span: std::time::Duration) -> u64 {
    span.as_micros() as u64
}
