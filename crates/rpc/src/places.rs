//! The order of what a table holds: found by a number, and given up for want of room, in few steps.
//!
//! Neither type is generic, and both serve several tables: what is small here is small on every device.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use tenure_hal::Instant;

use crate::config::Standing;

/// Pairs of a key and a value, in order. A key may have several values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index(Vec<(u64, u64)>);

impl Index {
    pub(crate) fn insert(&mut self, key: u64, value: u64) {
        if let Err(position) = self.0.binary_search(&(key, value)) {
            self.0.insert(position, (key, value));
        }
    }

    pub(crate) fn remove(&mut self, key: u64, value: u64) {
        if let Ok(position) = self.0.binary_search(&(key, value)) {
            self.0.remove(position);
        }
    }

    /// The values of a key, the least first.
    pub(crate) fn of(&self, key: u64) -> impl Iterator<Item = u64> {
        let first = self.0.binary_search(&(key, 0)).unwrap_or_else(|position| position);
        let all = self.0.iter().skip(first);
        all.take_while(move |(one, _)| *one == key).map(|(_, value)| *value)
    }

    /// The least key, and its least value.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    #[cfg(test)]
    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        self.0.last().copied()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The first bytes of a key or a mark, under which an [`Index`] has it: hardly two begin alike, and those that do stand
/// side by side there.
pub(crate) fn beginning(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// How much something is missed: by whose it is, whether they ever showed that they heard, and when they last spoke.
pub(crate) type Rank = (Standing, bool, Instant);

/// Whether something may be given up to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// It may.
    Yes,
    /// Only if no other of the same standing may.
    AtWorst,
    /// It may not.
    No,
}

/// How many that end at worst are passed over for one that may end, at most.
const PASSED_OVER_MAX: usize = 64;
/// Entries of what is gone may be as many as there are others, and so many more.
pub(crate) const STALE_MAX: usize = 16;

/// Entries that may be given up, the one that is missed least first, in the order of the last look.
#[derive(Clone, Default)]
pub(crate) struct LeastMissed {
    heap: BinaryHeap<Reverse<(Rank, u64)>>,
    /// How many entries were looked at to choose.
    #[cfg(test)]
    pub(crate) steps: u64,
}

impl LeastMissed {
    pub(crate) fn add(&mut self, rank: Rank, item: u64) {
        self.heap.push(Reverse((rank, item)));
    }

    /// The one that is missed least, for somebody of that standing. `rank_of` tells the rank of an item as it is now,
    /// and whether it may end; `None` if it is gone.
    pub(crate) fn choose(
        &mut self,
        by: Standing,
        rank_of: &dyn Fn(u64) -> Option<(Rank, Ends)>,
    ) -> Option<u64> {
        let mut aside = Vec::new();
        let (mut found, mut passed_over) = (None, 0);
        while let Some(Reverse((known, item))) = self.heap.pop() {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let Some((rank, ends)) = rank_of(item) else { continue };
            if rank != known {
                self.heap.push(Reverse((rank, item)));
                continue;
            }
            aside.push((rank, item));
            let is_better = found.is_some_and(|(standing, _)| rank.0 > standing);
            if is_better || !by.may_end(rank.0) || passed_over >= PASSED_OVER_MAX {
                break;
            }
            match ends {
                Ends::Yes => {
                    found = Some((rank.0, item));
                    break;
                }
                Ends::AtWorst => {
                    passed_over += 1;
                    found = found.or(Some((rank.0, item)));
                }
                Ends::No => {}
            }
        }
        aside.into_iter().for_each(|(rank, item)| self.add(rank, item));
        found.map(|(_, item)| item)
    }

    /// Drops what is gone, once it is more than the `count` that are there.
    pub(crate) fn drop_gone(&mut self, count: usize, is_there: &dyn Fn(u64) -> bool) {
        if self.heap.len() > 2 * count + STALE_MAX {
            let all = core::mem::take(&mut self.heap).into_vec();
            let there = all.into_iter().filter(|Reverse((_, item))| is_there(*item));
            there.for_each(|entry| self.heap.push(entry));
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}
