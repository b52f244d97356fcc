//! Whose keys are owners' at this hub, while it runs.

use std::collections::BTreeSet;

use tenure_wire::VerifyingKey;

/// The owners whose devices a hub lists. A hub that wasn't told yet has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    /// Anybody whose device is listed (`--open`).
    Anybody,
    /// These keys, as they are written, and no other one (`--owner`).
    Named(BTreeSet<String>),
}

impl Owners {
    /// The owners that a hub was started with: anybody, if it names none.
    pub(crate) fn of(named: &[VerifyingKey]) -> Self {
        match named.is_empty() {
            true => Self::Anybody,
            false => Self::Named(named.iter().map(ToString::to_string).collect()),
        }
    }

    /// Whether the key `who` may be an owner here.
    pub(crate) fn admit(&self, who: &str) -> bool {
        match self {
            Self::Anybody => true,
            Self::Named(keys) => keys.contains(who),
        }
    }
}

impl Default for Owners {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}
