//! The allowance of one machine in the log, and the denials that its log has told of.
//!
//! Of denials there is one line a caller and minute, of [`DENIALS_MAX`] callers at most.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;

use crate::bucket::Bucket;

/// How many seconds' worth of lines a machine may say at once.
const BURST_S: u64 = 8;
/// How many denials of different texts are told of in a span.
const DENIALS_MAX: usize = 4;
const DENIALS_SPAN: Duration = Duration::from_secs(60);

/// The rest of a machine's allowance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogMeter {
    pub(crate) bytes: Bucket,
    /// Lines that were dropped and not told of yet.
    pub(crate) dropped: u32,
    /// When that was last told.
    pub(crate) told_at: Option<Instant>,
}

impl LogMeter {
    pub(crate) fn new(bytes_per_second: u64, now: Instant) -> Self {
        let burst = bytes_per_second.saturating_mul(BURST_S);
        Self { bytes: Bucket::new(bytes_per_second, 1, burst, now), dropped: 0, told_at: None }
    }
}

/// The rights lately denied.
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
