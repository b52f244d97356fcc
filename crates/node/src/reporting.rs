//! When the device reports to its hub, and what the hub knows already.
//!
//! Invariants:
//! - Reports take [`BYTES_A_DAY`] at most, beside [`BURST`] of it at once where something is urgent.
//! - A machine is told if it isn't as it was told last, and once in [`AGAIN_WHOLE`] anyway.
//! - A fault is told until the hub has it, or [`FAULTS_KEPT_MAX`] later ones have displaced it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use litemap::LiteMap;

use tenure_hal::Instant;
use tenure_wire::control::LogLine;
use tenure_wire::hub::Answer;
use tenure_wire::limits::{MACHINES_MAX, PARAMETER_BYTES_MAX};
use tenure_wire::report::{
    DeviceReport, FAULT_BYTES_MAX, FAULTS_MAX, FaultReport, MachineReport, Report, Reported,
};
use tenure_wire::{Name, NoResult};

use crate::hub::Registration;

/// The most bytes that reports take in a day, by and large.
const BYTES_A_DAY: u64 = 1024 * 1024;
/// How much of the budget may be spent ahead.
const BURST: Duration = Duration::from_secs(60 * 60);
/// The shortest and the longest wait that the hub may ask for.
const AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60 * 60));
/// How long to wait after the hub gave no answer.
const RETRY: Duration = Duration::from_secs(30);
/// How long to wait after a hub said that it takes no reports.
const RETRY_UNSERVED: Duration = Duration::from_secs(60 * 60);
/// How soon after the last report an urgent one follows.
const URGENT: Duration = Duration::from_secs(2);
/// How often a machine is told that is as it was.
const AGAIN_WHOLE: Duration = Duration::from_secs(60 * 60);
/// The most faults that wait to be told.
const FAULTS_KEPT_MAX: usize = 2 * FAULTS_MAX;
/// The room in a report for machines, in bytes: what the device itself and the faults leave.
const MACHINES_BYTES_MAX: usize = PARAMETER_BYTES_MAX - 512 - FAULTS_MAX * (FAULT_BYTES_MAX + 64);

/// The device's reports.
#[derive(Debug)]
pub(crate) struct Reporting {
    /// When to report next; `None` while a report is on its way.
    at: Option<Instant>,
    /// The number of the next report.
    number: u64,
    /// When the last one was sent.
    sent_at: Instant,
    /// Until when the reports so far take the budget.
    spent_until: Instant,
    /// The machines as the hub knows them, and when it was told.
    told: LiteMap<Name, (MachineReport, Instant)>,
    /// Faults that the hub doesn't know, the oldest first.
    faults: VecDeque<FaultReport>,
    faults_lost: u64,
    /// Whether a fault came while a report was on its way.
    is_stale: bool,
    /// The machines and the last fault of the report that is on its way.
    under_way: (Vec<MachineReport>, Option<u64>),
}

impl Reporting {
    /// Nothing told yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            at: Some(now),
            number: 0,
            sent_at: now,
            spent_until: now,
            told: LiteMap::new(),
            faults: VecDeque::new(),
            faults_lost: 0,
            is_stale: false,
            under_way: (Vec::new(), None),
        }
    }

    /// When the next report is due.
    pub(crate) fn wakes_at(&self, hub: &Registration) -> Option<Instant> {
        self.at.filter(|_| hub.is_listed())
    }

    /// Whether a report is due, and the hub knows the device.
    pub(crate) fn is_due(&self, hub: &Registration, now: Instant) -> bool {
        hub.is_listed() && self.at.is_some_and(|at| at <= now)
    }

    /// Takes the line of a fault, and has it told soon.
    pub(crate) fn faulted(&mut self, line: &LogLine, now: Instant) {
        if self.faults.len() >= FAULTS_KEPT_MAX {
            self.faults.pop_front();
            self.faults_lost += 1;
        }
        let mut text = line.message.clone();
        text.truncate(text.floor_char_boundary(FAULT_BYTES_MAX));
        let (number, machine, unix_s) = (line.number, line.machine.clone(), line.unix_s);
        self.faults.push_back(FaultReport { number, machine, unix_s, text });
        self.is_stale = true;
        self.hurry(now);
    }

    /// Brings the next report forward, as far as the budget allows it.
    fn hurry(&mut self, now: Instant) {
        let is_within = self.spent_until.since(now) < BURST;
        if let Some(at) = &mut self.at
            && is_within
        {
            *at = (*at).min((self.sent_at + URGENT).max(now));
            self.is_stale = false;
        }
    }

    /// The report that is due, encoded.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        boot: u32,
        device: DeviceReport,
        machines: Vec<MachineReport>,
    ) -> Vec<u8> {
        self.told.retain(|name, _| machines.iter().any(|machine| machine.name == *name));
        let machines = self.untold(now, machines);
        let faults: Vec<FaultReport> = self.faults.iter().take(FAULTS_MAX).cloned().collect();
        self.under_way = (machines.clone(), faults.last().map(|fault| fault.number));
        let (number, faults_lost) = (self.number, self.faults_lost);
        let report = Report { boot, number, device, machines, faults, faults_lost };
        let bytes = postcard::to_allocvec(&report).unwrap_or_default();
        let cost_ms = bytes.len() as u64 * 24 * 60 * 60 * 1000 / BYTES_A_DAY;
        self.spent_until = self.spent_until.max(now) + Duration::from_millis(cost_ms);
        (self.at, self.sent_at, self.number) = (None, now, number + 1);
        bytes
    }

    /// Those machines that the hub doesn't know as they are, the one told longest ago first, as many as fit.
    fn untold(&self, now: Instant, machines: Vec<MachineReport>) -> Vec<MachineReport> {
        let told_at = |machine: &MachineReport| self.told.get(&machine.name).map(|(_, at)| *at);
        let is_known = |machine: &MachineReport| {
            let known = self.told.get(&machine.name);
            known.is_some_and(|(known, at)| known == machine && now.since(*at) < AGAIN_WHOLE)
        };
        // Of those that were told at one time, the first named comes first.
        let unknown = machines.into_iter().filter(|machine| !is_known(machine)).enumerate();
        let mut machines: Vec<_> = unknown.collect();
        let rank = |(index, machine): &(usize, MachineReport)| (told_at(machine), *index);
        tenure_hal::sort_by(&mut machines, |one, two| rank(one).cmp(&rank(two)));
        let mut room = MACHINES_BYTES_MAX;
        let fits = |machine: &MachineReport| {
            let bytes = postcard::to_allocvec(machine).map_or(usize::MAX, |bytes| bytes.len());
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        };
        let machines = machines.into_iter().map(|(_, machine)| machine);
        machines.take_while(fits).take(MACHINES_MAX).collect()
    }

    /// Takes the hub's answer.
    pub(crate) fn done(&mut self, now: Instant, result: Result<Option<Vec<u8>>, NoResult>) {
        if result == Err(NoResult::NoSuchFunction) {
            self.at = Some(now + RETRY_UNSERVED);
            return;
        }
        let (least, most) = AGAIN;
        if let Err(NoResult::Deferred { again_in }) = result {
            self.at = Some((now + again_in.clamp(least, most)).max(self.spent_until));
            return;
        }
        let bytes = result.ok().flatten().unwrap_or_default();
        let Ok(Ok(reported)) = postcard::from_bytes::<Answer<Reported>>(&bytes) else {
            return self.missed(now);
        };
        let (machines, last_fault) = core::mem::take(&mut self.under_way);
        if reported.wants_all {
            self.told.clear();
        }
        let told = machines.into_iter().map(|machine| (machine.name.clone(), (machine, now)));
        self.told.extend(told);
        self.faults.retain(|fault| last_fault.is_none_or(|last| fault.number > last));
        let wait = Duration::from_secs(reported.again_s.into()).clamp(least, most);
        self.at = Some((now + wait).max(self.spent_until));
        if !self.faults.is_empty() && self.is_stale {
            self.hurry(now);
        }
    }

    /// Takes note that the hub gave no answer that counts.
    pub(crate) fn missed(&mut self, now: Instant) {
        self.at = Some((now + RETRY).max(self.spent_until));
    }
}

#[cfg(test)]
mod tests;
