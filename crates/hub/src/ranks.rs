//! The devices that are in force in the order of their names, with the number of their machines, so that the page of a
//! list which begins after so many machines is found in few steps.
//!
//! Invariant: a level holds one name of [`FAN`] of the level below, and beside each the sum of what lies from there up
//! to the next name of that level. A secret chooses the names, so that nobody lists devices whose names fill one gap.

use alloc::collections::BTreeMap;

use tenure_crypto::sha256;
use tenure_wire::Name;

/// Of so many names of a level one stands in the next: 2 to the power of `FAN_BITS`.
#[cfg(test)]
const FAN: usize = 1 << FAN_BITS;
const FAN_BITS: u32 = 4;
/// The levels; the highest has a few names for a million devices.
const LEVELS: usize = 5;

/// Counts by name, and sums of them.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    secret: [u8; 32],
    /// The lowest level has each name with its own count. `None` stands before the first name of a level.
    levels: [BTreeMap<Option<Name>, usize>; LEVELS],
    total: usize,
    /// The entries that were looked at one after the other.
    #[cfg(test)]
    pub(crate) steps: core::cell::Cell<usize>,
}

impl Ranks {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            levels: core::array::from_fn(|_| BTreeMap::from([(None, 0)])),
            total: 0,
            #[cfg(test)]
            steps: core::cell::Cell::new(0),
        }
    }

    /// The sum of all counts.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Gives a name that count; a name whose count is 0 isn't there.
    pub(crate) fn set(&mut self, name: &Name, count: usize) {
        let key = Some(name.clone());
        let before = self.levels[0].get(&key).copied();
        if before.unwrap_or(0) == count {
            return;
        }
        self.total = self.total - before.unwrap_or(0) + count;
        // A name that comes or goes divides or joins sums of those levels in which it stands.
        let height = if before.is_none() || count == 0 { self.height(name) } else { 0 };
        match count {
            0 => drop(self.levels[0].remove(&key)),
            _ => drop(self.levels[0].insert(key.clone(), count)),
        }
        for level in 1..LEVELS {
            if level > height {
                self.add(level, &key, before.unwrap_or(0), count);
            } else if count == 0 {
                let freed = self.levels[level].remove(&key).unwrap_or(0);
                self.add(level, &key, before.unwrap_or(0), freed);
            } else {
                let taken = self.sum_from(level, &key);
                self.add(level, &key, taken, count);
                self.levels[level].insert(key.clone(), taken);
            }
        }
    }

    /// The name in whose count so many lie before, and how many of its own those are; `None` if there are fewer.
    pub(crate) fn seek(&self, skip: usize) -> Option<(Name, usize)> {
        let (mut left, mut from) = (skip, None);
        for level in self.levels.iter().rev() {
            let mut entries = level.range(from.clone()..);
            loop {
                let (name, count) = entries.next()?;
                self.step();
                if left < *count {
                    from.clone_from(name);
                    break;
                }
                left -= count;
            }
        }
        from.map(|name| (name, left))
    }

    /// The names from `name` on.
    pub(crate) fn from(&self, name: Name) -> impl Iterator<Item = &Name> {
        self.levels[0].range(Some(name)..).filter_map(|(name, _)| name.as_ref())
    }

    /// Takes `less` from the sum in which a name lies, and adds `more` to it.
    fn add(&mut self, level: usize, key: &Option<Name>, less: usize, more: usize) {
        if let Some((_, sum)) = self.levels[level].range_mut(..=key).next_back() {
            *sum = (*sum + more).saturating_sub(less);
        }
    }

    /// The sum of what lies from a name up to the next of that level, by the level below.
    fn sum_from(&self, level: usize, key: &Option<Name>) -> usize {
        let above = (core::ops::Bound::Excluded(key), core::ops::Bound::Unbounded);
        let next = self.levels[level].range(above).next().map(|(name, _)| name);
        let entries = self.levels[level - 1].range(key..);
        let entries = entries.take_while(|(name, _)| next.is_none_or(|next| *name < next));
        entries.inspect(|_| self.step()).map(|(_, count)| count).sum()
    }

    /// The highest level in which a name stands.
    fn height(&self, name: &Name) -> usize {
        let hash = sha256(&[&self.secret, name.as_str().as_bytes()]).0;
        let zeros =
            hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes).trailing_zeros());
        (zeros / FAN_BITS) as usize
    }

    fn step(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use tenure_hal::Entropy as _;
    use tenure_hal::simulated::Random;

    use super::*;

    fn name(number: u32) -> Name {
        alloc::format!("device-{number:06}").parse().unwrap()
    }

    /// The findings of a walk through all of them.
    fn walk(known: &BTreeMap<Name, usize>, skip: usize) -> Option<(Name, usize)> {
        let mut left = skip;
        for (name, count) in known {
            if left < *count {
                return Some((name.clone(), left));
            }
            left -= count;
        }
        None
    }

    #[test]
    fn ranks_are_those_of_a_walk_whatever_comes_and_goes() {
        let mut random = Random::new(7);
        let mut draw = |below: u32| {
            let mut bytes = [0; 4];
            random.fill(&mut bytes).unwrap();
            u32::from_le_bytes(bytes) % below
        };
        let (mut ranks, mut known) = (Ranks::new([3; 32]), BTreeMap::new());
        for _ in 0..20_000 {
            let (name, count) = (name(draw(600)), draw(4) as usize);
            ranks.set(&name, count);
            match count {
                0 => drop(known.remove(&name)),
                _ => drop(known.insert(name, count)),
            }
            let total: usize = known.values().sum();
            assert_eq!(ranks.total(), total);
            let skip = draw(1 + total as u32) as usize;
            assert_eq!(ranks.seek(skip), walk(&known, skip));
            assert_eq!(ranks.seek(total), None);
        }
        assert!(ranks.levels[2].len() > 1, "a level above the next one was in use");
    }

    #[test]
    fn place_in_a_long_list_is_found_in_few_steps() {
        const NAMES: u32 = 100_000;
        let mut ranks = Ranks::new([3; 32]);
        for number in 0..NAMES {
            ranks.set(&name(number), 2);
        }
        let filling = ranks.steps.take();
        assert!(filling < 4 * NAMES as usize, "{filling} steps to put {NAMES} in");
        for skip in (0..2 * NAMES as usize).step_by(997) {
            let found = ranks.seek(skip).unwrap();
            assert_eq!(found, (name(skip as u32 / 2), skip % 2));
            let steps = ranks.steps.take();
            // A gap of a level may be some times as wide as it is on the average.
            assert!(steps <= 8 * FAN * LEVELS, "{steps} steps to skip {skip}");
        }
    }
}
