//! The audit: what a device signed that a machine used, against what the machine used in the replay of its journal.
//!
//! An amount that a replay computes is compared to the unit. Others are held against bounds that follow from the journal and
//! the lease, or named as the device's word. `docs/bills.md` has the argument for each amount.

use std::collections::BTreeMap;
use std::fmt;

use tenure_crypto::sha256;
use tenure_journal::{Mark, Record};
use tenure_kernel::fuel_of_turns;
use tenure_package::{Commitment, Journal, Receipt, ReceiptChain, ReceiptError};
use tenure_wire::Digest;

use crate::replay::{Code, Replay, ReplayError, Watcher};

/// How much longer than its period what is counted by time may be counted, in milliseconds: a device counts with its
/// turns.
const SLACK_MS: u64 = 2_000;

/// An amount on a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// Fuel, with the price of the turns that the device says there were.
    Fuel,
    /// The turns that the device says there were, which each have a price.
    Turns,
    /// Calls and events.
    Messages,
    /// Writes to flash.
    FlashWrites,
    /// Bytes that they took.
    FlashBytes,
    /// The most memory in use, in bytes.
    Memory,
    /// The tree in flash, in bytes times milliseconds.
    Stored,
    /// The code in flash, in bytes times milliseconds.
    Code,
    /// The time that it had the processor, in microseconds.
    Run,
    /// The bytes that were sent for it.
    Air,
    /// The state of the machine when the period began, and when it ended: 1 if the receipt has it.
    Began,
    /// As above.
    Ended,
}

impl Item {
    /// Its name in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fuel => "fuel",
            Self::Turns => "turns",
            Self::Messages => "messages",
            Self::FlashWrites => "writes to flash",
            Self::FlashBytes => "bytes written to flash",
            Self::Memory => "bytes of memory at most",
            Self::Stored => "bytes stored, times ms",
            Self::Code => "bytes of code, times ms",
            Self::Run => "µs of the processor",
            Self::Air => "bytes sent",
            Self::Began => "state at the beginning",
            Self::Ended => "state at the end",
        }
    }
}

/// The audit's word on an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It was computed, and is the same.
    Proved,
    /// It can't be computed, and is within these bounds.
    Within {
        /// The least that it can be.
        least: u64,
        /// The most.
        most: u64,
    },
    /// It is the device's word.
    Told,
    /// It isn't what the machine used.
    Wrong {
        /// The least that it can be.
        least: u64,
        /// The most.
        most: u64,
    },
}

/// An amount, and what the audit says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The number of the receipt.
    pub receipt: u64,
    /// Which amount.
    pub item: Item,
    /// The amount that the device signed.
    pub signed: u64,
    /// The audit's word on it.
    pub judgement: Judgement,
}

/// The outcome of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// Amounts of receipts whose whole period is in the journal, in order.
    pub findings: Vec<Finding>,
    /// The numbers of receipts whose period is in the journal in part or not at all.
    pub uncovered: Vec<u64>,
}

impl Audited {
    /// The amounts that are wrong.
    pub fn wrong(&self) -> impl Iterator<Item = &Finding> {
        let is_wrong = |finding: &&Finding| matches!(finding.judgement, Judgement::Wrong { .. });
        self.findings.iter().filter(is_wrong)
    }
}

/// The use of a machine since the last receipt, in the replay.
#[derive(Clone, Copy, Debug)]
struct Period {
    /// Whether all of it is in the journal.
    is_whole: bool,
    fuel: u64,
    turns: u64,
    messages: u64,
    flash_writes: u64,
    flash_bytes: u64,
    memory: u64,
    stored: (u64, u64),
    began: Option<Digest>,
}

impl Period {
    const fn new(is_whole: bool, began: Option<Digest>) -> Self {
        Self {
            is_whole,
            fuel: 0,
            turns: 0,
            messages: 0,
            flash_writes: 0,
            flash_bytes: 0,
            memory: 0,
            stored: (u64::MAX, 0),
            began,
        }
    }

    /// Adds what was used in a page.
    fn add(&mut self, replay: &mut Replay, fuel: u64, turns: u64) {
        let used = replay.take_usage();
        let (least, most) = replay.take_stored();
        self.fuel = self.fuel.saturating_add(fuel);
        self.turns = self.turns.saturating_add(turns);
        self.messages = self.messages.saturating_add(used.messages);
        self.flash_writes = self.flash_writes.saturating_add(used.flash_writes);
        self.flash_bytes = self.flash_bytes.saturating_add(used.flash_bytes);
        // The replay has turns that the device hadn't, but the page ends where one of the device's did.
        if turns > 0 {
            self.memory = self.memory.max(replay.memory_bytes());
        }
        self.stored = (self.stored.0.min(least), self.stored.1.max(most));
    }
}

/// The fuel that was used and isn't billed, by the device's word: a replay can't tell where the device's turns ended. What it
/// can tell is how much that may be, so that nothing is billed twice, and nothing that wasn't used.
#[derive(Clone, Copy, Debug, Default)]
struct Unpaid {
    fuel: u64,
    /// How often the machine was stopped since the journal's last beginning; what it owed then is never billed.
    stops: u64,
}

impl Unpaid {
    /// What the machine owed when the journal began, in the page of that number.
    fn begin(owed: u64, replay: &Replay, page: u64) -> Result<Self, AuditError> {
        if owed > replay.owed_max() {
            return Err(AuditError::Unpaid { page, fuel: owed });
        }
        Ok(Self { fuel: owed, stops: 0 })
    }

    /// The fuel that is billed of a page in which `used` was used, and the machine stopped so often. Fuel that it owed before
    /// was paid in this page, and fuel that it owes now is paid later.
    fn billed(
        &mut self,
        (used, stops): (u64, u64),
        mark: &Mark,
        replay: &Replay,
        page: u64,
    ) -> Result<u64, AuditError> {
        self.stops = self.stops.saturating_add(stops);
        let due = used.saturating_add(self.fuel);
        let most = replay.owed_max().saturating_mul(self.stops.saturating_add(1));
        if mark.unpaid > due.min(most) {
            return Err(AuditError::Unpaid { page, fuel: mark.unpaid });
        }
        self.fuel = mark.unpaid;
        Ok(due - mark.unpaid)
    }
}

/// Compares the receipts of the journal's machine, signed and in order, with a replay of the journal, which may take
/// `fuel_max` units of fuel in all.
///
/// # Errors
/// As [`AuditError`] says: what was handed in doesn't belong together, or the replay differs.
pub fn audit(
    receipts: &[Vec<u8>],
    journal: &Journal,
    code: &Code<'_>,
    fuel_max: u64,
    watcher: &mut dyn Watcher,
) -> Result<Audited, AuditError> {
    let receipts = checked(receipts, journal)?;
    let mut audited = Audited::default();
    let mut audited_numbers = Vec::new();
    // Use before the first receipt that the journal has isn't all in the journal.
    let mut period = Period::new(false, None);
    let mut current: Option<Replay> = None;
    let (mut turns_before, mut unpaid) = (0, Unpaid::default());
    let (mut skipped, mut spent) = (None, 0_u64);
    // The receipt with whose mark the period began.
    let mut last_receipt = None;
    for page in journal.pages().map_err(ReplayError::from)? {
        if let Some(start) = &page.start {
            if start.machine != journal.machine {
                return Err(ReplayError::OtherMachine.into());
            }
            let stood = current.as_mut().and_then(Replay::state);
            // The state of another build would have other bytes; that is a gap, too.
            period.is_whole &= start.continues && stood == Some(sha256(&[&start.state]));
            // It owes no more than it did.
            period.is_whole &= start.owed <= unpaid.fuel;
            spent = current.take().map_or(spent, |replay| spent.saturating_add(replay.fuel()));
            if start.package == code.package {
                let replay = Replay::new(code, start, fuel_max)?.after(spent);
                let replay = current.insert(replay);
                (turns_before, unpaid) = (0, Unpaid::begin(start.owed, replay, page.number)?);
                watcher.began(replay);
            } else {
                skipped = Some(start.package);
            }
        }
        let Some(replay) = &mut current else {
            if skipped.is_none() {
                return Err(ReplayError::NoStart.into());
            }
            // The machine ran another package then.
            period.is_whole = false;
            continue;
        };
        let fuel_before = replay.fuel();
        let mark = match page.records.last() {
            Some(Record::Mark(mark)) => mark.clone(),
            _ => Mark::default(),
        };
        let stops = page.records.iter().filter(|one| matches!(one, Record::Stopped { .. })).count();
        replay.play(page.records, watcher)?;
        let used = (replay.fuel().saturating_sub(fuel_before), stops as u64);
        let fuel = unpaid.billed(used, &mark, replay, page.number)?;
        period.add(replay, fuel, mark.turns.saturating_sub(turns_before));
        turns_before = mark.turns.max(turns_before);
        let Some(number) = mark.receipt else { continue };
        // A receipt that found no room was signed again later.
        let pages = page.number.saturating_add(1);
        let is_earlier = receipts.get(&number).is_some_and(|(_, commitment)| {
            commitment.is_some_and(|commitment| commitment.pages != pages)
        });
        if is_earlier {
            continue;
        }
        let mut ended = core::mem::replace(&mut period, Period::new(true, mark.state));
        // A receipt that was signed while the journal hadn't begun again has no mark: its period would be counted in this one.
        ended.is_whole &= last_receipt
            .replace(number)
            .is_some_and(|last: u64| last.checked_add(1) == Some(number));
        if let Some((receipt, commitment)) = receipts.get(&number).filter(|_| ended.is_whole) {
            judge(&mut audited.findings, receipt, *commitment, &ended, &mark, code, replay);
            audited_numbers.push(number);
        }
    }
    audited.uncovered =
        receipts.keys().copied().filter(|number| !audited_numbers.contains(number)).collect();
    Ok(audited)
}

/// The receipts of the journal's machine, by number, which its device signed and which commit to this journal as far as
/// it goes.
fn checked(
    receipts: &[Vec<u8>],
    journal: &Journal,
) -> Result<BTreeMap<u64, (Receipt, Option<Commitment>)>, AuditError> {
    let mut known = BTreeMap::new();
    let mut chain: Option<ReceiptChain> = None;
    let first = journal.pages().map_err(ReplayError::from)?.first().map_or(0, |page| page.number);
    let heads = journal.heads();
    for bytes in receipts {
        let (receipt, device) = Receipt::verify(bytes).map_err(AuditError::Receipt)?;
        if receipt.machine != journal.machine {
            continue;
        }
        if device != journal.device {
            return Err(AuditError::OtherDevice);
        }
        match &mut chain {
            None => chain = Some(ReceiptChain::begin(bytes).map_err(AuditError::Receipt)?),
            Some(chain) => {
                chain.follow(bytes).map_err(AuditError::Receipt)?;
            }
        }
        let number = receipt.number;
        let commitment = Receipt::commitment(bytes).map_err(AuditError::Receipt)?;
        if let Some(Commitment { head, pages, .. }) = commitment
            && let Some(after_first) = pages.checked_sub(first)
        {
            let place = usize::try_from(after_first).unwrap_or(usize::MAX);
            let found = match place.checked_sub(1) {
                None => Some(&journal.previous),
                Some(place) => heads.get(place),
            };
            match found {
                None => return Err(AuditError::Cut { receipt: number, pages }),
                Some(found) if *found != head => {
                    return Err(AuditError::OtherJournal { receipt: number });
                }
                Some(_) => {}
            }
        }
        known.insert(number, (receipt, commitment));
    }
    if known.is_empty() {
        return Err(AuditError::NoReceipts);
    }
    Ok(known)
}

/// Holds each amount of a receipt against what was used in the replay.
fn judge(
    findings: &mut Vec<Finding>,
    receipt: &Receipt,
    commitment: Option<Commitment>,
    period: &Period,
    mark: &Mark,
    code: &Code<'_>,
    replay: &Replay,
) {
    let mut say = |item, signed, judgement| {
        findings.push(Finding { receipt: receipt.number, item, signed, judgement });
    };
    let exactly = |signed: u64, computed: u64| match signed == computed {
        true => Judgement::Proved,
        false => Judgement::Wrong { least: computed, most: computed },
    };
    let between = |signed: u64, least: u64, most: u64| match (least..=most).contains(&signed) {
        true => Judgement::Within { least, most },
        false => Judgement::Wrong { least, most },
    };
    let used = &receipt.usage;
    let (shortest_ms, longest_ms) =
        (receipt.counted_ms.saturating_sub(SLACK_MS), receipt.counted_ms.saturating_add(SLACK_MS));
    let fuel = period.fuel.saturating_add(fuel_of_turns(period.turns));
    say(Item::Fuel, used.fuel, exactly(used.fuel, fuel));
    say(Item::Turns, period.turns, Judgement::Told);
    say(Item::Messages, used.messages, exactly(used.messages, period.messages));
    say(Item::FlashWrites, used.flash_writes, exactly(used.flash_writes, period.flash_writes));
    say(Item::FlashBytes, used.flash_bytes, exactly(used.flash_bytes, period.flash_bytes));
    // Memory is looked at after turns, and a replay knows only some of those: a task that is stopped in the turn in which
    // it took memory is never seen to have it.
    let memory_max = replay.memory_bytes_max().max(period.memory);
    say(
        Item::Memory,
        used.memory_bytes_peak,
        between(used.memory_bytes_peak, period.memory, memory_max),
    );
    let (least, most) = period.stored;
    let stored = between(
        used.stored_byte_ms,
        least.min(most).saturating_mul(shortest_ms),
        most.saturating_mul(longest_ms),
    );
    say(Item::Stored, used.stored_byte_ms, stored);
    let code_most = replay.code_bytes().saturating_add(code.code_bytes);
    let kept = between(
        used.code_byte_ms,
        replay.code_bytes().saturating_mul(shortest_ms),
        code_most.saturating_mul(longest_ms),
    );
    say(Item::Code, used.code_byte_ms, kept);
    say(Item::Run, used.run_us, between(used.run_us, 0, longest_ms.saturating_mul(1000)));
    say(Item::Air, used.air_bytes, Judgement::Told);
    let Some(commitment) = commitment else { return };
    for (item, signed, found) in
        [(Item::Began, commitment.began, period.began), (Item::Ended, commitment.ended, mark.state)]
    {
        let judgement = match (signed, found) {
            (Some(signed), Some(found)) if signed == found => Judgement::Proved,
            (None, None) => Judgement::Told,
            _ => Judgement::Wrong { least: 0, most: 0 },
        };
        say(item, signed.is_some().into(), judgement);
    }
}

/// Why receipts and a journal can't be held against each other, or the replay differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditError {
    /// There is no receipt of the journal's machine.
    NoReceipts,
    /// A receipt doesn't count, or isn't the next one.
    Receipt(ReceiptError),
    /// Another device signed a receipt of that machine.
    OtherDevice,
    /// A receipt commits to pages that the journal doesn't have.
    Cut {
        /// The receipt's number.
        receipt: u64,
        /// The number of the page after those to which it commits.
        pages: u64,
    },
    /// A receipt commits to another journal.
    OtherJournal {
        /// The receipt's number.
        receipt: u64,
    },
    /// A page says that more fuel isn't billed yet than can be.
    Unpaid {
        /// The page's number.
        page: u64,
        /// How much it says.
        fuel: u64,
    },
    /// The journal isn't replayed.
    Replay(ReplayError),
}

impl From<ReplayError> for AuditError {
    fn from(error: ReplayError) -> Self {
        Self::Replay(error)
    }
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReceipts => {
                f.write_str("there is no receipt of the machine whose journal this is")
            }
            Self::Receipt(error) => write!(f, "a receipt: {error}"),
            Self::OtherDevice => {
                f.write_str("a receipt is signed by another device than the journal")
            }
            Self::Cut { receipt, pages } => write!(
                f,
                "receipt {receipt} commits to the journal's pages below {pages}, and they are missing at the end of this one"
            ),
            Self::OtherJournal { receipt } => {
                write!(f, "receipt {receipt} commits to another journal than this one")
            }
            Self::Unpaid { page, fuel } => write!(
                f,
                "page {page} of the journal leaves {fuel} units of fuel to be billed later, more than the machine can owe"
            ),
            Self::Replay(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for AuditError {}
