//! The log on its way to the node: what a machine may say, and what the kernel says about it.
//!
//! Invariants:
//! - A machine's own lines are limited by bytes in a second, and by a quarter of the effects that may
//!   wait; those of all machines by three quarters. The rest is the kernel's: a fault is told of
//!   however much its machine says.
//! - Of denials there is one line a caller and minute, of [`DENIALS_MAX`] callers at most.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_wire::Name;

use crate::bucket::Bucket;
use crate::effect::{Effect, LogEntry, LogLevel};
use crate::kernel::Kernel;

/// How many seconds' worth of lines a machine may say at once.
const BURST_S: u64 = 8;
/// What a line counts beside its text, in bytes.
const LINE_BYTES: usize = 32;
/// How often a machine's log says how many of its lines were dropped, at most.
const DROPPED_SPAN: Duration = Duration::from_secs(60);
/// How many denials of different texts are told of in a span.
const DENIALS_MAX: usize = 4;
const DENIALS_SPAN: Duration = Duration::from_secs(60);

/// What a machine may still say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogMeter {
    bytes: Bucket,
    /// Lines that were dropped and not told of yet.
    dropped: u32,
    /// When that was last told.
    told_at: Option<Instant>,
}

impl LogMeter {
    pub(crate) fn new(bytes_per_second: u64, now: Instant) -> Self {
        let burst = bytes_per_second.saturating_mul(BURST_S);
        Self { bytes: Bucket::new(bytes_per_second, 1, burst, now), dropped: 0, told_at: None }
    }
}

/// What was denied lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denials {
    recent: Vec<Denial>,
    /// How often something else was denied.
    others: u32,
}

#[derive(Clone, Debug)]
struct Denial {
    text: String,
    since: Instant,
    /// How often more, after the line that told of it.
    more: u32,
}

impl Denials {
    /// Counts a denial; returns the lines that the log gets.
    pub(crate) fn count(&mut self, now: Instant, text: String) -> Vec<String> {
        let mut lines = Vec::new();
        let others = &mut self.others;
        self.recent.retain(|denial| {
            let over = now.since(denial.since) >= DENIALS_SPAN;
            if over && denial.more > 0 {
                lines.push(alloc::format!("{} ({} times more)", denial.text, denial.more));
            }
            if over && *others > 0 {
                lines.push(alloc::format!("not granted to others either ({others} times)"));
                *others = 0;
            }
            !over
        });
        if let Some(known) = self.recent.iter_mut().find(|denial| denial.text == text) {
            known.more = known.more.saturating_add(1);
        } else if self.recent.len() < DENIALS_MAX {
            lines.push(text.clone());
            self.recent.push(Denial { text, since: now, more: 0 });
        } else {
            self.others = self.others.saturating_add(1);
        }
        lines
    }
}

impl<F: Flash> Kernel<F> {
    /// How many log lines were dropped because nobody took them, or their machine said too much.
    pub fn logs_dropped(&self) -> u64 {
        self.logs_dropped
    }

    /// Adds a line of the machine in `slot` to the log, as far as it may say more.
    pub(crate) fn log_of(&mut self, slot: usize, now: Instant, level: LogLevel, message: String) {
        let bytes_per_second = self.config.log_bytes_per_second;
        let Some(machine) = self.machine_mut(slot) else { return };
        let name = machine.record.name.clone();
        let bytes = (message.len() + LINE_BYTES) as u64;
        if !machine.log.bytes.take(now, bytes) {
            machine.log.dropped = machine.log.dropped.saturating_add(1);
            self.logs_dropped += 1;
            return;
        }
        let told_lately = machine.log.told_at.is_some_and(|at| now.since(at) < DROPPED_SPAN);
        let dropped = machine.log.dropped;
        if dropped > 0 && !told_lately {
            (machine.log.dropped, machine.log.told_at) = (0, Some(now));
            let message = alloc::format!(
                "{dropped} lines were dropped: it may log {bytes_per_second} bytes a second"
            );
            self.log(now, name.clone(), LogLevel::Warning, message);
        }
        let (own, all) = self.lines_waiting(&name);
        let max = self.config.effects_max;
        if own >= max / 4 || all >= max - max / 4 {
            self.logs_dropped += 1;
            return;
        }
        self.effects.push_back(Effect::Log(LogEntry { at: now, machine: name, level, message }));
    }

    /// Adds a line of the kernel's own, unless the node has left too many untaken.
    pub(crate) fn log(&mut self, at: Instant, machine: Name, level: LogLevel, message: String) {
        let (_, all) = self.lines_waiting(&machine);
        if all >= self.config.effects_max {
            self.logs_dropped += 1;
            return;
        }
        self.effects.push_back(Effect::Log(LogEntry { at, machine, level, message }));
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
