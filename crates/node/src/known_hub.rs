//! The hub as a device knows it: its address, the key that is trusted, and how often it was silent.

use core::time::Duration;

use tenure_rpc::IdentifyHandle;
use tenure_wire::control::HubTrust;
use tenure_wire::datagram::Epoch;
use tenure_wire::{Address, PublicKey};

use crate::config::Hub;
use crate::kept_hub::KeptHub;

/// How soon to try again after the hub gave no answer; twice as long after each further silence.
const RETRY: Duration = Duration::from_secs(2);
/// The longest wait between two tries.
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(10 * 60);

/// The hub of this device.
#[derive(Clone, Debug)]
pub(crate) struct KnownHub {
    pub(crate) address: Address,
    pub(crate) key: Option<PublicKey>,
    pub(crate) trust: HubTrust,
    /// Whether the settings pin the key.
    pub(crate) is_set: bool,
    pub(crate) epoch: Option<Epoch>,
    /// The question who it is, if it is under way.
    pub(crate) asked: Option<IdentifyHandle>,
    /// A key that is not the pinned or kept one, which the address showed last.
    pub(crate) shown: Option<PublicKey>,
    /// How often in a row it gave no answer.
    pub(crate) silences: u32,
}

impl KnownHub {
    /// The hub as the settings name it, with the key that was kept of an earlier boot.
    pub(crate) fn new(hub: &Hub, kept: Option<KeptHub>) -> Self {
        let (key, trust) = match (hub.key, kept) {
            (Some(key), _) => (Some(key), HubTrust::Owner),
            (None, Some(kept)) => (Some(kept.key), kept.trust),
            (None, None) => (None, HubTrust::Unknown),
        };
        Self {
            address: hub.address.clone(),
            key,
            trust,
            is_set: hub.key.is_some(),
            epoch: None,
            asked: None,
            shown: None,
            silences: 0,
        }
    }

    /// Its key, unless the owner revoked it.
    pub(crate) fn trusted_key(&self) -> Option<PublicKey> {
        self.key.filter(|_| self.trust != HubTrust::Revoked)
    }

    /// How long to wait after one more silence.
    pub(crate) fn back_off(&mut self) -> Duration {
        let wait = RETRY.saturating_mul(1_u32.checked_shl(self.silences).unwrap_or(u32::MAX));
        self.silences = self.silences.saturating_add(1).min(16);
        wait.min(RETRY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_hub_is_asked_ever_less_often_down_to_the_longest_wait() {
        let settings = Hub { address: Address::Mesh([1; 6]), key: None };
        let mut hub = KnownHub::new(&settings, None);
        let waits: alloc::vec::Vec<u64> = (0..12).map(|_| hub.back_off().as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600]);
    }
}
