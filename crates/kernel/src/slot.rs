//! A slot: the number under which a device knows a machine, and what the store keeps for it.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_store::TreeId;

use crate::policy::SLOTS_MAX;

/// Where the kernel keeps its own things.
pub const KERNEL_TREE: TreeId = TreeId(0);
/// The path in the kernel's tree below which machines are recorded, one a slot.
pub(crate) const MACHINES_PATH: &str = "machines";
/// From this tree on the store keeps what machines have deleted of what they began with, by slot.
const HIDDEN_TREES: u16 = 0x4000;

/// A place for one machine, below [`SLOTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot(u8);

const _: () = assert!(SLOTS_MAX <= u8::MAX as usize);

impl Slot {
    /// The slot of that number, if there is one.
    pub fn new(index: usize) -> Option<Self> {
        (index < SLOTS_MAX).then_some(Self(index as u8))
    }

    /// Every slot below `count`.
    pub(crate) fn all(count: usize) -> impl Iterator<Item = Self> + Clone {
        (0..count.min(SLOTS_MAX) as u8).map(Self)
    }

    /// The slot's number.
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The tree of its machine.
    pub(crate) fn tree(self) -> TreeId {
        TreeId(u16::from(self.0) + 1)
    }

    /// The slot whose machine that tree belongs to, if it is a machine's.
    pub(crate) fn of_tree(tree: TreeId) -> Option<Self> {
        let index = match tree.0 {
            HIDDEN_TREES.. => tree.0 - HIDDEN_TREES,
            number => number.checked_sub(1)?,
        };
        Self::new(index.into())
    }

    /// Where the store keeps what its machine has deleted of what it began with.
    pub(crate) fn hidden_tree(self) -> TreeId {
        TreeId(HIDDEN_TREES + u16::from(self.0))
    }

    /// The path of its machine's record in the kernel's tree.
    pub(crate) fn record_path(self) -> String {
        self.path(MACHINES_PATH)
    }

    /// The path below `parent` in the kernel's tree that is this slot's.
    pub(crate) fn path(self, parent: &str) -> String {
        alloc::format!("{parent}.{self}")
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
