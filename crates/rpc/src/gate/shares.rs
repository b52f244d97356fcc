//! Fair shares of the handshakes among the hosts that ask for them.
//!
//! A host is admitted while it had no more handshakes lately than are left for all: the dynamic threshold of
//! Choudhury and Hahne (1998). So one host that takes what it can gets half of all, two a third each, and `k` hosts
//! one part in `k + 1` each; as much is always left for whoever comes next.

use core::time::Duration;

use tenure_hal::Instant;

/// The hosts are told apart by a secret hash, as so many.
pub(super) const HOSTS: usize = 64;
/// The hash is another after this time, so that nobody shares a place with a greedy host for long.
pub(super) const REHASH_PERIOD: Duration = Duration::from_secs(8);

/// One handshake, in the unit of the counts.
const HANDSHAKE: u32 = 1_024;
/// After each step an eighth of what was counted is forgotten, so that counts are about what these seconds had.
const STEP_US: u64 = 500_000;
const FORGOTTEN: u32 = 8;
const SECONDS: u32 = 4;
/// Nothing is left of a count after so many steps.
const STEPS_MAX: u64 = 160;

/// The rest of a host's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// All of it: the host had no handshake lately.
    Untouched,
    /// Something.
    Left,
    /// Nothing.
    Spent,
}

/// How many handshakes each host had lately.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Shares {
    in_all: u32,
    of_hosts: [u32; HOSTS],
    of_others: u32,
    steps: u64,
}

impl Shares {
    /// Shares of so many handshakes a second.
    pub(super) fn new(per_second: u32) -> Self {
        let in_all = per_second.saturating_mul(SECONDS).saturating_mul(HANDSHAKE);
        Self { in_all, of_hosts: [0; HOSTS], of_others: 0, steps: 0 }
    }

    /// The share of that host.
    pub(super) fn of(&self, host: usize) -> Share {
        let taken = self.of_hosts.iter().fold(self.of_others, |sum, one| sum.saturating_add(*one));
        let free = self.in_all.saturating_sub(taken);
        match self.of_hosts.get(host) {
            Some(had) if *had < HANDSHAKE => Share::Untouched,
            Some(had) if *had <= free => Share::Left,
            _ => Share::Spent,
        }
    }

    /// Counts a handshake of that host, or of somebody whose host isn't known.
    pub(super) fn count(&mut self, host: Option<usize>) {
        let count = match host.and_then(|host| self.of_hosts.get_mut(host)) {
            Some(of_host) => of_host,
            None => &mut self.of_others,
        };
        *count = count.saturating_add(HANDSHAKE);
    }

    /// Lets time pass: to be called before the others.
    pub(super) fn forget(&mut self, now: Instant) {
        let steps = now.as_micros() / STEP_US;
        let passed = steps.saturating_sub(self.steps).min(STEPS_MAX);
        self.steps = self.steps.max(steps);
        for count in self.of_hosts.iter_mut().chain([&mut self.of_others]) {
            for _ in 0..passed {
                *count -= count.div_ceil(FORGOTTEN);
            }
        }
    }
}
