//! The numbers of the lists of revoked keys that were in force as owners handed the device over: where it comes back to one
//! of them, none of that owner's older lists counts again, whoever kept a copy.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_wire::VerifyingKey;

/// The version of the stored value.
const FORMER_LISTS_VERSION: u8 = 1;
/// The most owners of whom a number is kept: those who handed the device over last.
const OWNERS_MAX: usize = 4;

/// The last list of each owner who handed the device over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormerLists {
    version: u8,
    /// The one of the last hand-over last.
    lists: Vec<FormerList>,
}

/// The number of an owner's list, which the device doesn't keep any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FormerList {
    owner: VerifyingKey,
    number: u64,
}

impl Default for FormerLists {
    fn default() -> Self {
        Self { version: FORMER_LISTS_VERSION, lists: Vec::new() }
    }
}

impl FormerLists {
    /// These numbers, and that of the list which `owner` had in force; an owner without one leaves none.
    pub(crate) fn and(&self, owner: VerifyingKey, number: u64) -> Self {
        let number = number.max(self.last_of(&owner));
        let mut lists = self.lists.clone();
        lists.retain(|list| list.owner != owner);
        if number > 0 {
            lists.push(FormerList { owner, number });
        }
        let excess = lists.len().saturating_sub(OWNERS_MAX);
        lists.drain(..excess);
        Self { version: FORMER_LISTS_VERSION, lists }
    }

    /// The number of the last list of `owner`'s; 0 if none is known.
    pub(crate) fn last_of(&self, owner: &VerifyingKey) -> u64 {
        self.lists.iter().find(|list| list.owner == *owner).map_or(0, |list| list.number)
    }

    /// Whether no number is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// The value that the store keeps.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// The numbers that `bytes` hold, if the value is of this version.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let kept: Self = postcard::from_bytes(bytes).ok()?;
        (kept.version == FORMER_LISTS_VERSION).then_some(kept)
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
        let mut kept = FormerLists::default().and(owner(1), 0);
        assert!(kept.is_empty(), "an owner who revoked nobody leaves nothing");
        for number in 1..=5 {
            kept = kept.and(owner(number), u64::from(number) + 10);
        }
        assert_eq!((kept.last_of(&owner(1)), kept.last_of(&owner(2))), (0, 12));
        // Owner 2 had the device again, and told it no list.
        kept = kept.and(owner(2), 0).and(owner(6), 1);
        assert_eq!((kept.last_of(&owner(2)), kept.last_of(&owner(3))), (12, 0));
    }

    #[test]
    fn former_lists_of_version_1_are_written_and_read() {
        let former = FormerLists::default().and(owner(1), 300);
        let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "former-lists-1", &former.to_bytes());
        assert_eq!(FormerLists::from_bytes(&bytes), Some(former));
        bytes[0] += 1;
        assert_eq!(FormerLists::from_bytes(&bytes), None, "another version isn't guessed at");
    }
}
