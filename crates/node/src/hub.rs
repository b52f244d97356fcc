//! The hub as this device trusts it: whose key is pinned, which key is kept, when to ask again.
//!
//! Invariants:
//! - A key that the settings or the owner named is never replaced by what a network shows.
//! - The first key that registers the device is kept over restarts, until the owner names another
//!   one or has it forgotten.
//! - A silent hub is asked ever less often, down to once in [`RETRY_MAX`].

use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_rpc::{IdentifyHandle, Identity as HubIdentity};
use tenure_wire::control::{Answer, ControlError, HubStatus, HubTrust, TrustHub};
use tenure_wire::datagram::Epoch;
use tenure_wire::{Address, PublicKey};

use crate::config::Hub;
use crate::directory::{ANSWER_TIMEOUT, Standing};
use crate::identity::Identity;
use crate::kept_hub::KeptHub;
use crate::node::{Moment, Node};

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
    is_set: bool,
    pub(crate) epoch: Option<Epoch>,
    /// The question who it is, if it is under way.
    pub(crate) asked: Option<IdentifyHandle>,
    /// A key that is not the pinned or kept one, which the address showed last.
    shown: Option<PublicKey>,
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
    fn back_off(&mut self) -> Duration {
        let wait = RETRY.saturating_mul(1_u32.checked_shl(self.silences).unwrap_or(u32::MAX));
        self.silences = self.silences.saturating_add(1).min(16);
        wait.min(RETRY_MAX)
    }
}

impl<F: Flash> Node<F> {
    /// Whether the owner or the settings named the hub's key, so that its word on time counts.
    pub(crate) fn hub_is_vouched_for(&self) -> bool {
        self.directory.hub.as_ref().is_some_and(|hub| hub.trust == HubTrust::Owner)
    }

    /// Asks the hub's address for its key.
    pub(crate) fn ask_who_is_the_hub(&mut self, moment: &mut Moment<'_>) {
        let Some(hub) = &mut self.directory.hub else { return };
        let deadline = moment.now + ANSWER_TIMEOUT;
        let route = hub.address.clone();
        match self.endpoint.identify(moment.now, route, deadline) {
            Ok(handle) => hub.asked = Some(handle),
            Err(_) => self.hub_silent(moment.now),
        }
    }

    /// Takes the answer to the question who the hub is. A key that is known already stays.
    pub(crate) fn hub_identified(
        &mut self,
        now: Instant,
        handle: IdentifyHandle,
        identity: Option<HubIdentity>,
    ) {
        let Some(hub) = &mut self.directory.hub else { return };
        if hub.asked != Some(handle) {
            return;
        }
        hub.asked = None;
        let Some(HubIdentity { key: Some(key), epoch }) = identity else {
            return self.hub_silent(now);
        };
        let is_revoked = self.ownership.revoked.has_hub(&key);
        match hub.key {
            None if is_revoked => {
                hub.shown = Some(key);
                let wait = hub.back_off();
                self.directory.register_at = Some(now + wait);
                return self.stand(Standing::OtherKey(key));
            }
            None => (hub.key, hub.trust) = (Some(key), HubTrust::Shown),
            Some(known) if known != key => {
                hub.shown = Some(key);
                let wait = hub.back_off();
                self.directory.register_at = Some(now + wait);
                return self.stand(Standing::OtherKey(key));
            }
            Some(_) => {}
        }
        hub.epoch = Some(epoch);
    }

    /// Takes note that the hub gave no answer.
    pub(crate) fn hub_silent(&mut self, now: Instant) {
        let Some(hub) = &mut self.directory.hub else { return };
        if hub.trust == HubTrust::Revoked {
            return;
        }
        if hub.trust == HubTrust::Shown {
            // A key that was only told may have been damaged on the way, or be another one by now.
            (hub.key, hub.trust) = (None, HubTrust::Unknown);
        }
        hub.epoch = None;
        let wait = hub.back_off();
        self.directory.register_at = Some(now + wait);
        if !matches!(self.directory.standing, Standing::OtherKey(_)) {
            self.stand(Standing::Silent);
        }
    }

    /// Takes note that the holder of the hub's key answered in a session. The first such key is kept.
    pub(crate) fn hub_answered(&mut self) {
        let Some(hub) = &mut self.directory.hub else { return };
        (hub.silences, hub.shown) = (0, None);
        let (HubTrust::Shown, Some(key)) = (hub.trust, hub.key) else { return };
        let kept = KeptHub::new(key, HubTrust::FirstSeen);
        // A store that can't keep it now is asked again at the next registration.
        if self.keep_hub(Some(&kept)).is_ok()
            && let Some(hub) = &mut self.directory.hub
        {
            hub.trust = HubTrust::FirstSeen;
        }
    }

    /// Takes the owner's word for the hub's key, or forgets the key that was kept.
    pub(crate) fn trust_hub(&mut self, moment: &Moment<'_>, trust: &TrustHub) -> Answer<()> {
        let refused = |why: &str| Err(ControlError::Refused(why.into()));
        let Some(hub) = &self.directory.hub else {
            return refused("the device's settings name no hub");
        };
        if hub.is_set {
            return refused("the device's settings pin the hub's key; change it there");
        }
        if trust.key.is_some_and(|key| self.ownership.revoked.has_hub(&key)) {
            return refused(
                "you revoked that hub; take that back first: tenure revoke hub KEY --undo",
            );
        }
        let kept = trust.key.map(|key| KeptHub::new(key, HubTrust::Owner));
        self.keep_hub(kept.as_ref())?;
        if let (Some(hub), Some(settings)) = (&mut self.directory.hub, &self.config.hub) {
            *hub = KnownHub::new(settings, kept);
        }
        if self.directory.register_at.is_some() {
            self.directory.register_at = Some(moment.now);
        }
        Ok(())
    }

    /// Speaks no more to a hub that the owner revoked, and believes its time no more; takes up again one
    /// that is revoked no more.
    pub(crate) fn bar_hub(&mut self, moment: &Moment<'_>) {
        let Some(hub) = &mut self.directory.hub else { return };
        let is_revoked = hub.key.is_some_and(|key| self.ownership.revoked.has_hub(&key));
        if is_revoked == (hub.trust == HubTrust::Revoked) {
            return;
        }
        if !is_revoked {
            let kept = Identity::hub(self.kernel.store()).ok().flatten();
            return self.take_up_hub(moment.now, kept);
        }
        hub.trust = HubTrust::Revoked;
        (hub.epoch, hub.asked) = (None, None);
        self.directory.register_at = Some(moment.now);
        self.forget_hubs_time();
        self.stand(Standing::Unknown);
    }

    /// Forgets the hub's key that was kept; the settings' stays. The store has forgotten it already.
    pub(crate) fn forget_hub(&mut self, now: Instant) {
        self.take_up_hub(now, None);
    }

    fn take_up_hub(&mut self, now: Instant, kept: Option<KeptHub>) {
        self.directory.hub = self.config.hub.as_ref().map(|hub| KnownHub::new(hub, kept));
        self.directory.register_at = Some(now);
        self.stand(Standing::Unknown);
    }

    /// How this device stands with its hub.
    pub(crate) fn hub_status(&self) -> Option<HubStatus> {
        let hub = self.directory.hub.as_ref()?;
        Some(HubStatus {
            address: hub.address.clone(),
            is_registered: self.is_registered(),
            key: hub.key,
            trust: hub.trust,
            shown: hub.shown,
        })
    }

    fn keep_hub(&mut self, kept: Option<&KeptHub>) -> Answer<()> {
        let failed =
            |error: &dyn core::fmt::Display| ControlError::Device(alloc::format!("{error}"));
        let bytes = kept.map(postcard::to_allocvec).transpose().map_err(|error| failed(&error))?;
        self.identity
            .keep_hub(self.kernel.store(), bytes.as_deref())
            .map_err(|error| failed(&error))
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
