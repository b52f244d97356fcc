//! The hub's key as it is kept over restarts.

use serde::{Deserialize, Serialize};
use tenure_wire::PublicKey;
use tenure_wire::control::HubTrust;

/// The version of the stored value.
const KEPT_VERSION: u8 = 1;

/// The hub's key, as the store keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptHub {
    version: u8,
    pub(crate) key: PublicKey,
    pub(crate) trust: HubTrust,
}

impl KeptHub {
    /// A key to keep, of this version.
    pub(crate) fn new(key: PublicKey, trust: HubTrust) -> Self {
        Self { version: KEPT_VERSION, key, trust }
    }

    /// The value that `bytes` hold, if it is of this version.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let kept: Self = postcard::from_bytes(bytes).ok()?;
        (kept.version == KEPT_VERSION).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use tenure_testbed::frozen;

    use super::*;

    #[test]
    fn key_of_version_1_is_written_and_read() {
        let kept = KeptHub::new(PublicKey([1; 32]), HubTrust::Owner);
        let written = postcard::to_allocvec(&kept).unwrap();
        let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "hub-1", &written);
        assert_eq!(KeptHub::from_bytes(&bytes), Some(kept));
        bytes[0] += 1;
        assert_eq!(KeptHub::from_bytes(&bytes), None, "another version isn't guessed at");
    }
}
