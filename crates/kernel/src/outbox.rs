//! The queue for the node: effects, and among them the lines of the log.
//!
//! A machine's own lines are limited by bytes in a second, and by a quarter of the lines that may wait;
//! those of all machines by three quarters. The rest is the kernel's: a fault is told of however much its
//! machine says.

use alloc::collections::VecDeque;
use alloc::string::String;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_hal::planted::{Weakness, is_planted};
use tenure_wire::capability::NotGranted;
use tenure_wire::{Grants, LogLevel, Name};

use crate::effect::{Effect, LogEntry};
use crate::machine::Machine;

/// Bytes that a line counts beside its text.
const LINE_BYTES: usize = 32;
/// How often a machine's log says how many of its lines were dropped, at most.
const DROPPED_SPAN: Duration = Duration::from_secs(60);

/// Effects in the order in which the node takes them.
pub(crate) struct Outbox {
    effects: VecDeque<Effect>,
    lines_max: usize,
    bytes_per_second: u64,
    lines_dropped: u64,
}

impl Outbox {
    /// An empty one, in which `lines_max` lines of the log may wait, and in which a machine may write
    /// `bytes_per_second` of them.
    pub(crate) fn new(lines_max: usize, bytes_per_second: u64) -> Self {
        Self { effects: VecDeque::new(), lines_max, bytes_per_second, lines_dropped: 0 }
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    pub(crate) fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// How many lines were dropped because nobody took them, or their machine said too much.
    pub(crate) fn lines_dropped(&self) -> u64 {
        self.lines_dropped
    }

    /// Adds a line of the kernel's own, unless the node has left too many untaken.
    pub(crate) fn log(&mut self, at: Instant, machine: &Name, level: LogLevel, message: String) {
        let (_, all) = self.lines_waiting(machine);
        if all >= self.lines_max {
            self.lines_dropped += 1;
            return;
        }
        self.push_line(at, machine, level, message);
    }

    /// Adds a line that `machine` says, or that is its fault, as far as it may say more.
    pub(crate) fn log_of(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        level: LogLevel,
        message: String,
    ) {
        let (meter, name) = (&mut machine.log, &machine.record.name);
        let bytes = (message.len() + LINE_BYTES) as u64;
        if !is_planted(Weakness::LogsWithoutLimit) && !meter.bytes.take(now, bytes) {
            meter.dropped = meter.dropped.saturating_add(1);
            self.lines_dropped += 1;
            return;
        }
        let told_lately = meter.told_at.is_some_and(|at| now.since(at) < DROPPED_SPAN);
        let dropped = meter.dropped;
        if dropped > 0 && !told_lately {
            (meter.dropped, meter.told_at) = (0, Some(now));
            let message = alloc::format!(
                "{dropped} lines were dropped: it may log {} bytes a second",
                self.bytes_per_second
            );
            self.log(now, name, LogLevel::Warning, message);
        }
        let (own, all) = self.lines_waiting(name);
        let max = self.lines_max;
        if own >= max / 4 || all >= max - max / 4 {
            self.lines_dropped += 1;
            return;
        }
        self.push_line(now, name, level, message);
    }

    /// Asks `machine` for a right; where it has none, its log says which, once a minute.
    pub(crate) fn ask(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        right: impl FnOnce(&mut Grants) -> Result<(), NotGranted>,
    ) -> Result<(), NotGranted> {
        let asked = right(&mut machine.grants);
        asked.inspect_err(|denied| self.log_denial(machine, now, None, alloc::format!("{denied}")))
    }

    /// Counts that something was denied to `machine`, or to a caller of it, and says so in its log, or in
    /// that of the `device`, once a minute.
    pub(crate) fn log_denial(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        device: Option<&Name>,
        denied: String,
    ) {
        if is_planted(Weakness::DenialsFillLogs) {
            return self.log(now, &machine.record.name, LogLevel::Warning, denied);
        }
        let lines = machine.denials.get_or_insert_default().count(now, denied);
        for line in lines {
            self.log(now, device.unwrap_or(&machine.record.name), LogLevel::Warning, line);
        }
    }

    fn push_line(&mut self, at: Instant, machine: &Name, level: LogLevel, message: String) {
        let machine = machine.clone();
        self.push(Effect::Log(LogEntry { at, machine, level, message }));
    }

    /// How many lines wait for the node: of that machine, and of all.
    fn lines_waiting(&self, of: &Name) -> (usize, usize) {
        let lines = self.effects.iter().filter_map(|effect| match effect {
            Effect::Log(entry) => Some(&entry.machine),
            _ => None,
        });
        lines.fold((0, 0), |(own, all), machine| (own + usize::from(machine == of), all + 1))
    }
}
