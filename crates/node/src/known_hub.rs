//! The hub as a device knows it: its address, the key that is trusted, and how often it was silent.

use core::time::Duration;

use tenure_rpc::IdentifyHandle;
use tenure_wire::control::HubTrust;
use tenure_wire::datagram::Epoch;
use tenure_wire::{Address, MachineId, PublicKey};

use crate::config::{Config, Hub, SleepPolicy};
#[cfg(feature = "hub-addresses")]
use crate::hub_addresses::Addresses;
use crate::kept_hub::KeptHub;

/// How soon to try again after the hub gave no answer; twice as long after each further silence.
const RETRY: Duration = Duration::from_secs(2);
/// The longest wait between two tries of a device that turns itself off to save power.
const RETRY_MAX_ASLEEP: Duration = Duration::from_secs(10 * 60);

/// The hub of this device.
#[derive(Clone, Debug)]
pub(crate) struct KnownHub {
    pub(crate) address: Address,
    /// Those beside it.
    #[cfg(feature = "hub-addresses")]
    pub(crate) addresses: Addresses,
    #[cfg(feature = "hub-addresses")]
    pub(crate) saves_power: bool,
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
    /// The longest wait between two tries: five sixths of a record's life, so that all devices are listed again within
    /// that life after the hub is back, slow answers included, unless a device saves power.
    retry_max: Duration,
    /// The mark that tells this device's waits from those of others.
    spread: [u8; 12],
}

impl KnownHub {
    /// The hub as the settings name it, with the key that was kept of an earlier boot.
    pub(crate) fn new(
        config: &Config,
        hub: &Hub,
        spread: &MachineId,
        kept: Option<KeptHub>,
    ) -> Self {
        let (key, trust) = match (hub.key, kept) {
            (Some(key), _) => (Some(key), HubTrust::Owner),
            (None, Some(kept)) => (Some(kept.key), kept.trust),
            (None, None) => (None, HubTrust::Unknown),
        };
        Self {
            address: hub.address.clone(),
            #[cfg(feature = "hub-addresses")]
            addresses: Addresses::new(&hub.address, &config.hub_also_at),
            #[cfg(feature = "hub-addresses")]
            saves_power: config.sleep != SleepPolicy::Never,
            key,
            trust,
            is_set: hub.key.is_some(),
            epoch: None,
            asked: None,
            shown: None,
            silences: 0,
            retry_max: match config.sleep {
                SleepPolicy::Never => config.record_lifetime * 5 / 6,
                SleepPolicy::WhenIdle { .. } | SleepPolicy::DutyCycle { .. } => {
                    RETRY_MAX_ASLEEP.max(config.record_lifetime)
                }
            },
            spread: spread.0,
        }
    }

    /// Its key, unless the owner revoked it.
    pub(crate) fn trusted_key(&self) -> Option<PublicKey> {
        self.key.filter(|_| self.trust != HubTrust::Revoked)
    }

    /// How long to wait after one more silence.
    pub(crate) fn back_off(&mut self) -> Duration {
        #[cfg(feature = "hub-addresses")]
        if let Some(soon) = self.addresses.go_on(&mut self.address) {
            return soon;
        }
        let wait = RETRY.saturating_mul(1_u32.checked_shl(self.silences).unwrap_or(u32::MAX));
        let place = self.silences as usize % self.spread.len();
        let sooner = self.spread.get(place).copied().unwrap_or(0);
        self.silences = self.silences.saturating_add(1).min(16);
        // Up to a quarter sooner, so that a fleet doesn't come back all at once.
        sooner_by::<4>(wait.min(self.retry_max), sooner)
    }

    /// How long to wait before a record of that life is renewed: a third of it, and up to a tenth sooner on some devices
    /// than on others, so that those that came back together don't renew together for ever.
    pub(crate) fn renew_in(&self, lifetime: Duration) -> Duration {
        sooner_by::<10>(lifetime / 3, self.spread[0])
    }

    /// How long to wait for the turn that it gave: no longer than for a hub that is silent, as nobody signs turns.
    pub(crate) fn turn_in(&self, told: Duration) -> Duration {
        told.min(self.retry_max)
    }
}

/// A wait that is shorter by up to one part in `PARTS`: all of that part if `sooner` is 255.
fn sooner_by<const PARTS: u32>(wait: Duration, sooner: u8) -> Duration {
    wait - wait / (256 * PARTS) * u32::from(sooner)
}

#[cfg(test)]
mod tests {
    use tenure_wire::VerifyingKey;

    use super::*;
    use crate::config::Owner;

    fn hub(sleep: SleepPolicy, spread: [u8; 12]) -> KnownHub {
        let owner = Owner { verifying_key: VerifyingKey([1; 32]), machine: PublicKey([1; 32]) };
        let config = Config { sleep, ..Config::new("attic".parse().expect("a name"), owner) };
        let settings = Hub { address: Address::Mesh([1; 6]), key: None };
        KnownHub::new(&config, &settings, &MachineId(spread), None)
    }

    fn waits(sleep: SleepPolicy, spread: [u8; 12]) -> alloc::vec::Vec<u64> {
        let mut hub = hub(sleep, spread);
        (0..12).map(|_| hub.back_off().as_secs()).collect()
    }

    #[test]
    fn a_silent_hub_is_asked_ever_less_often_down_to_a_bit_more_than_once_in_a_records_life() {
        let waits_of = |spread| waits(SleepPolicy::Never, spread);
        assert_eq!(waits_of([0; 12]), [2, 4, 8, 16, 32, 50, 50, 50, 50, 50, 50, 50]);
        // A fleet's devices are back within that time, and not all at once.
        let last: alloc::vec::Vec<u64> =
            (0..=255).map(|spread| waits_of([spread; 12])[11]).collect();
        assert_eq!((last.iter().min(), last.iter().max()), (Some(&37), Some(&50)));
        let in_one_second = |second| last.iter().filter(|wait| **wait == second).count();
        assert!((37..=50).all(|second| in_one_second(second) <= 21));
    }

    #[test]
    fn records_are_renewed_in_a_third_of_their_life_or_a_tenth_sooner() {
        let renews = |spread| {
            let hub = hub(SleepPolicy::Never, [spread; 12]);
            hub.renew_in(Duration::from_secs(60)).as_millis()
        };
        assert_eq!((renews(0), renews(128), renews(255)), (20_000, 19_000, 18_007));
    }

    #[test]
    fn a_device_speaks_to_its_hub_before_a_router_forgets_it() {
        let owner = Owner { verifying_key: VerifyingKey([1; 32]), machine: PublicKey([1; 32]) };
        let config = Config::new("attic".parse().expect("a name"), owner);
        // Routers keep a way for thirty seconds at least; five are for a registration that is lost and sent again.
        let renewed = hub(SleepPolicy::Never, [0; 12]).renew_in(config.record_lifetime);
        assert!(renewed <= Duration::from_secs(25), "{renewed:?}");
    }

    #[test]
    fn a_turn_is_waited_for_no_longer_than_a_silent_hub() {
        let hub = hub(SleepPolicy::Never, [0; 12]);
        assert_eq!(hub.turn_in(Duration::from_secs(7)), Duration::from_secs(7));
        assert_eq!(hub.turn_in(Duration::from_secs(3_600)), Duration::from_secs(50));
    }

    #[test]
    fn a_device_that_saves_power_asks_down_to_once_in_ten_minutes() {
        let sleep = SleepPolicy::WhenIdle { at_least: Duration::from_secs(60) };
        let expected = [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600];
        assert_eq!(waits(sleep, [0; 12]), expected);
    }
}
