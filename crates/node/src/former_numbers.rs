//! The numbers of former owners' last words of a kind: where the device comes back to one of them, no older word of that
//! owner's counts again, whoever kept a copy.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_wire::VerifyingKey;

/// The version of the stored value.
const FORMER_NUMBERS_VERSION: u8 = 1;
/// The most owners of whom a number is kept: the last ones.
const OWNERS_MAX: usize = 4;

/// The number of the last word of each former owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormerNumbers {
    version: u8,
    /// That of the last one last.
    numbers: Vec<FormerNumber>,
}

/// The number of an owner's word, which the device doesn't keep any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FormerNumber {
    owner: VerifyingKey,
    number: u64,
}

impl Default for FormerNumbers {
    fn default() -> Self {
        Self { version: FORMER_NUMBERS_VERSION, numbers: Vec::new() }
    }
}

impl FormerNumbers {
    /// These numbers, and that of `owner`'s last word; 0 is none.
    pub(crate) fn and(&self, owner: VerifyingKey, number: u64) -> Self {
        let number = number.max(self.last_of(&owner));
        let mut numbers = self.numbers.clone();
        numbers.retain(|one| one.owner != owner);
        if number > 0 {
            numbers.push(FormerNumber { owner, number });
        }
        let excess = numbers.len().saturating_sub(OWNERS_MAX);
        numbers.drain(..excess);
        Self { version: FORMER_NUMBERS_VERSION, numbers }
    }

    /// The number of `owner`'s last word; 0 if none is known.
    pub(crate) fn last_of(&self, owner: &VerifyingKey) -> u64 {
        self.numbers.iter().find(|one| one.owner == *owner).map_or(0, |one| one.number)
    }

    /// Whether no number is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The value that the store keeps.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// The numbers that `bytes` hold, if the value is of this version.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let kept: Self = postcard::from_bytes(bytes).ok()?;
        (kept.version == FORMER_NUMBERS_VERSION).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use tenure_testbed::frozen;

    use super::*;

    fn owner(number: u8) -> VerifyingKey {
        VerifyingKey([number; 32])
    }

    #[test]
    fn greatest_number_of_each_of_the_last_owners_is_kept() {
        let mut kept = FormerNumbers::default().and(owner(1), 0);
        assert!(kept.is_empty(), "an owner without a word leaves nothing");
        for number in 1..=5 {
            kept = kept.and(owner(number), u64::from(number) + 10);
        }
        assert_eq!((kept.last_of(&owner(1)), kept.last_of(&owner(2))), (0, 12));
        // Owner 2 had the device again, and told it nothing.
        kept = kept.and(owner(2), 0).and(owner(6), 1);
        assert_eq!((kept.last_of(&owner(2)), kept.last_of(&owner(3))), (12, 0));
    }

    #[test]
    fn former_numbers_of_version_1_are_written_and_read() {
        let former = FormerNumbers::default().and(owner(1), 300);
        let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "former-numbers-1", &former.to_bytes());
        assert_eq!(FormerNumbers::from_bytes(&bytes), Some(former));
        bytes[0] += 1;
        assert_eq!(FormerNumbers::from_bytes(&bytes), None, "another version isn't guessed at");
    }
}
