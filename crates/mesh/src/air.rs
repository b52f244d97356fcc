//! The budget of air: the part of a link's capacity that control traffic may take, whatever makes protocols talk.
//!
//! All who share the air have one budget, a share of what the link carries, and each node takes an equal part of it.
//! So load, loss, movement or a lie that makes some protocol speak without end leaves the rest of the air to
//! datagrams. A message over the budget isn't sent; to its protocol it is lost, as it may be on the way.
//!
//! A token bucket holds what a node may send now. Each kind of message of each protocol has its own account beside it.
//! A kind leaves in the bucket four times the bytes that it took lately, up to half of a full bucket. So of kinds that
//! all want more than there is each has its part, and one that says little, as a hello does, is always let pass.
//!
//! Invariant: in any time `t` a node is let send at most a full bucket and `t` times its part of the budget.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;

use crate::event::ProtocolNumber;

#[cfg(test)]
mod tests;

/// The bucket holds a node's part of so long, if that is more than [`DEPTH_FRAMES`]. Bytes that a kind took longer ago
/// count for little.
const DEPTH: Duration = Duration::from_secs(4);
/// How many frames of the longest the bucket holds at least: on a slow link, too, each message fits in.
const DEPTH_FRAMES: u64 = 2;
/// A kind leaves to others so many times the bytes that it took lately.
const LEAVES: u64 = 4;
/// A kind forgets half of the bytes that it took in so many steps.
const FORGETS_IN_STEPS: u64 = 32;
/// The most kinds of message with an account. A node's own protocols have them, about two dozen in all.
const ACCOUNTS_MAX: usize = 48;
/// Destination, source and EtherType of Ethernet: the least that links add to a frame.
pub(crate) const LINK_HEADER_BYTES: usize = 14;

const MICROS: u64 = 1_000_000;

/// A link's capacity, and the share of it for control traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Air {
    /// Capacity in bytes a second: of all in reach together where they share a radio.
    pub bytes_per_second: u32,
    /// The share of it that control traffic of all in reach may take, of a thousand.
    pub control_permille: u16,
}

impl Air {
    /// A radio of 2 Mbit/s, of which control traffic takes a tenth at most.
    pub const RADIO: Self = Self { bytes_per_second: 250_000, control_permille: 100 };
}

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// The protocols' own sake: it counts against the budget of air.
    Control,
    /// It carries somebody's data, or answers such a message, as the protocol [declares](crate::protocol!): it is counted,
    /// and let pass.
    Payload,
}

/// Messages and bytes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The protocol.
    pub protocol: ProtocolNumber,
    /// The kind of its message.
    pub kind: u8,
    /// How many were let pass.
    pub messages: u64,
    /// Their bytes, with their share of headers.
    pub bytes: u64,
    /// How many were over the budget.
    pub refused: u64,
    /// Bytes that it took lately: half of them are forgotten in the time that fills the bucket.
    recent: u64,
    forgot_at: Instant,
}

impl Account {
    /// Forgets a part of the bytes that it took: half of them in `half_us` microseconds.
    fn forget(&mut self, now: Instant, half_us: u64) {
        let since_us = now.since(self.forgot_at).as_micros() as u64;
        // In steps: a quotient's lost fraction is little beside them.
        if since_us.saturating_mul(FORGETS_IN_STEPS) >= half_us {
            self.recent = self.recent * half_us / half_us.saturating_add(since_us);
            self.forgot_at = now;
        }
    }
}

/// A node's part of the budget, and its accounts.
#[derive(Debug)]
pub(crate) struct Budget {
    air: Air,
    frame_bytes_max: usize,
    /// Bytes a second.
    rate: u64,
    /// In millionths of a byte.
    bucket: u64,
    filled_at: Instant,
    accounts: Vec<Account>,
}

impl Budget {
    /// A full bucket, of a node that knows no neighbour and sends frames of so many bytes.
    pub(crate) fn new(air: Air, frame_bytes_max: usize) -> Self {
        let mut budget = Self {
            air,
            frame_bytes_max,
            rate: 0,
            bucket: 0,
            filled_at: Instant::BOOT,
            accounts: Vec::new(),
        };
        budget.share(0);
        budget.bucket = budget.depth();
        budget
    }

    pub(crate) fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Shares the air with so many neighbours.
    pub(crate) fn share(&mut self, neighbours: usize) {
        let Air { bytes_per_second, control_permille } = self.air;
        let all = u64::from(bytes_per_second) * u64::from(control_permille) / 1000;
        self.rate = (all / (neighbours as u64 + 1)).max(1);
        self.bucket = self.bucket.min(self.depth());
    }

    /// Whether a message of `bytes` is sent; it counts as sent then.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        (protocol, kind): (ProtocolNumber, u8),
        traffic: Traffic,
        bytes: usize,
    ) -> bool {
        self.fill(now);
        let (cost, depth) = (bytes as u64 * MICROS, self.depth());
        let fills_us = depth / self.rate;
        let at = self.account_of(now, protocol, kind);
        let account = &mut self.accounts[at];
        account.forget(now, fills_us);
        if traffic == Traffic::Control {
            let least = (account.recent * MICROS * LEAVES).min(depth / 2);
            let Some(left) = self.bucket.checked_sub(cost).filter(|left| *left >= least) else {
                account.refused += 1;
                return false;
            };
            self.bucket = left;
            account.recent += bytes as u64;
        }
        account.messages += 1;
        account.bytes += bytes as u64;
        true
    }

    /// Whether the framework itself may send `bytes` now; they count as sent then.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> bool {
        self.fill(now);
        let left = self.bucket.checked_sub(bytes as u64 * MICROS);
        self.bucket = left.unwrap_or(self.bucket);
        left.is_some()
    }

    fn depth(&self) -> u64 {
        let frames = self.frame_bytes_max as u64 * DEPTH_FRAMES * MICROS;
        frames.max(self.rate * DEPTH.as_micros() as u64)
    }

    fn fill(&mut self, now: Instant) {
        let since_us = now.since(self.filled_at).as_micros() as u64;
        self.filled_at = now.max(self.filled_at);
        self.bucket =
            since_us.saturating_mul(self.rate).saturating_add(self.bucket).min(self.depth());
    }

    /// Where that kind's account stands; the one that took least lately makes room for a new one.
    fn account_of(&mut self, now: Instant, protocol: ProtocolNumber, kind: u8) -> usize {
        let is_it = |known: &Account| (known.protocol, known.kind) == (protocol, kind);
        if let Some(at) = self.accounts.iter().position(is_it) {
            return at;
        }
        if self.accounts.len() >= ACCOUNTS_MAX {
            let accounts = self.accounts.iter().enumerate();
            let least = accounts.min_by_key(|(_, known)| (known.recent, known.bytes));
            self.accounts.remove(least.map_or(0, |(at, _)| at));
        }
        let (messages, bytes, refused) = (0, 0, 0);
        let forgot_at = now;
        let account = Account { protocol, kind, messages, bytes, refused, recent: 0, forgot_at };
        self.accounts.push(account);
        self.accounts.len() - 1
    }
}
