//! The registration with the hub: whose key is trusted there, how the device stands, when to speak next.
//!
//! Invariants:
//! - A key that the settings or the owner named is never replaced by what a network shows.
//! - The first key that registers the device is kept over restarts, until the owner names another
//!   one or has it forgotten.
//! - A silent hub is asked ever less often, down to once in five sixths of a record's life, or in ten minutes to save power.
//! - A hub that is known at several addresses is looked at every few seconds, and spoken to at the next one once it is
//!   silent at the one in use; it is waited for when it was silent at all of them.
//! - A crowded hub that gives this device a turn is asked then, and isn't silent.

#[cfg(feature = "touches")]
mod touching;
#[cfg(not(feature = "touches"))]
#[path = "hub/no_touching.rs"]
mod touching;

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Flash, Instant};
use tenure_rpc::{IdentifyHandle, Identity as HubIdentity, OutgoingCall};
use tenure_wire::control::{Answer, ControlError, HubStatus, HubTrust, TrustHub};
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::{Refusal, Registered};
use tenure_wire::{Address, MachineId, PublicKey, message};

use crate::clock::Clock;
use crate::config::Config;
#[cfg(feature = "hub-addresses")]
use crate::config::Hub;
use crate::directory::{Directory, EPOCH_PERIOD};
use crate::identity::Identity;
use crate::kept_hub::KeptHub;
use crate::known_hub::KnownHub;
use crate::moment::Moment;
use crate::notice::{Notice, Notices};
use crate::outbound::{Outbound, Purpose};
use crate::services::Services;
#[cfg(feature = "touches")]
pub(crate) use touching::Outcome;
use touching::Touching;

/// How long the hub may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);
/// How often it is tried within that time.
const ATTEMPTS: u8 = 4;
/// How soon to try again after it refused, which waiting alone seldom mends.
const RETRY_REFUSED: Duration = Duration::from_secs(10);

/// How this device stands with the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has not answered yet.
    Unknown,
    /// It lists this device.
    Listed,
    /// It refuses to; and how many devices it lists at most, if these are too many.
    Refused(Refusal, Option<u32>),
    /// It doesn't answer.
    Silent,
    /// Its address shows this key, which isn't the one that this device trusts.
    OtherKey(PublicKey),
}

/// The device's registration with its hub, and the pace of its announcements.
#[derive(Debug)]
pub(crate) struct Registration {
    hub: Option<KnownHub>,
    standing: Standing,
    /// When to register next; `None` while a registration is under way.
    register_at: Option<Instant>,
    touching: Touching,
    /// The epoch in the record that was sent last, and when it was sent.
    published: Option<(Epoch, Instant)>,
    /// Whether something changed while a registration was under way.
    is_stale: bool,
    /// When to announce the device in its mesh next.
    #[cfg(feature = "mesh")]
    pub(crate) announce_at: Instant,
}

impl Registration {
    /// The registration of a device that starts, with the hub's key that an earlier boot kept.
    pub(crate) fn new(
        config: &Config,
        own: &MachineId,
        kept: Option<KeptHub>,
        now: Instant,
    ) -> Self {
        Self {
            hub: config.hub.as_ref().map(|hub| KnownHub::new(config, hub, own, kept)),
            standing: Standing::Unknown,
            register_at: Some(now),
            touching: Touching::NONE,
            published: None,
            is_stale: false,
            #[cfg(feature = "mesh")]
            announce_at: now,
        }
    }

    /// Whether `key` is the hub's, as far as this device trusts one.
    pub(crate) fn is_hub(&self, key: &PublicKey) -> bool {
        self.hub.as_ref().and_then(KnownHub::trusted_key) == Some(*key)
    }

    /// Whether the hub lists this device, so that newer records can be had from it.
    pub(crate) fn is_listed(&self) -> bool {
        self.standing == Standing::Listed
    }

    /// Where the hub is spoken to.
    pub(crate) fn address(&self) -> Option<&Address> {
        self.hub.as_ref().map(|hub| &hub.address)
    }

    /// Whether the owner or the settings named the hub's key, so that its word on time counts.
    pub(crate) fn is_vouched_for(&self) -> bool {
        self.hub.as_ref().is_some_and(|hub| hub.trust == HubTrust::Owner)
    }

    /// Whether the hub gave no answer when it was asked last.
    fn is_silent(&self) -> bool {
        self.hub.as_ref().is_some_and(|hub| hub.silences > 0)
    }

    fn is_revoked(&self) -> bool {
        self.hub.as_ref().is_some_and(|hub| hub.trust == HubTrust::Revoked)
    }

    /// Has the device's record sent soon, to the hub and in the mesh, as something changed.
    pub(crate) fn register_soon(&mut self, now: Instant) {
        #[cfg(feature = "mesh")]
        {
            self.announce_at = now;
        }
        let is_silent = self.is_silent();
        match &mut self.register_at {
            // A hub that is silent isn't asked sooner because something changed.
            Some(_) if is_silent => {}
            Some(at) => *at = now,
            None => self.is_stale = true,
        }
    }

    /// Has a silent hub tried again soon: its owner is there, and may have started it.
    pub(crate) fn retry_soon(&mut self, now: Instant) {
        let soon = now + RETRY_REFUSED;
        if self.is_silent()
            && let Some(at) = &mut self.register_at
        {
            *at = (*at).min(soon);
        }
    }

    /// When the hub is to be asked next.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        let hub = self.hub.as_ref().filter(|hub| hub.trust != HubTrust::Revoked)?;
        // The end of a question that is under way is the sessions' to watch.
        if hub.asked.is_some() {
            return None;
        }
        let touch_at = self.touching.wakes_at().filter(|_| self.is_listed());
        let due_at = self.register_at.map(|at| touch_at.map_or(at, |touch_at| at.min(touch_at)));
        #[cfg(feature = "hub-addresses")]
        if let Some(look_at) = self.looks_at() {
            return due_at.map(|at| at.min(look_at));
        }
        due_at
    }

    /// When to look whether a hub that lists this device still answers; never while a registration is under way, which tells
    /// as much, nor on a device that saves power.
    #[cfg(feature = "hub-addresses")]
    fn looks_at(&self) -> Option<Instant> {
        let hub = self.hub.as_ref().filter(|hub| !hub.saves_power)?;
        self.register_at?;
        hub.addresses.look_at().filter(|_| self.is_listed())
    }

    /// How the hub's last silences and the next try go over a deep sleep.
    pub(crate) fn pace(&self) -> (u32, Option<Instant>) {
        (self.hub.as_ref().map_or(0, |hub| hub.silences), self.register_at)
    }

    /// Goes on in the pace that an earlier boot had when it fell asleep.
    pub(crate) fn keep_pace(&mut self, (silences, register_at): (u32, Option<Instant>)) {
        // The settings name no hub.
        let Some(hub) = &mut self.hub else { return };
        if silences > 0 {
            hub.silences = silences;
            self.standing = Standing::Silent;
            self.register_at = register_at.or(self.register_at);
        }
    }

    /// Registers when it is time to, and finds out the hub's key before that.
    pub(crate) fn attend<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        (directory, outbound): (&mut Directory, &mut Outbound),
        moment: &mut Moment<'_>,
    ) {
        self.follow_epoch(services.endpoint.epoch(), moment.now);
        #[cfg(feature = "hub-addresses")]
        self.look_after(services, moment.now);
        // The settings name no hub.
        let Some(hub) = &self.hub else { return };
        if hub.asked.is_some() || hub.trust == HubTrust::Revoked {
            return;
        }
        if self.register_at.is_none_or(|at| at > moment.now) {
            return self.touch(services, (directory, outbound), moment);
        }
        if hub.key.is_none() || hub.epoch.is_none() {
            self.ask_who_it_is(services, moment.now);
        } else if services.is_enrolled() {
            self.register(services, clock, (directory, outbound), moment);
        } else {
            self.register_at = Some(moment.now + RETRY_REFUSED);
        }
    }

    /// Asks a hub that lists this device whether it is still there, when it is time to.
    #[cfg(feature = "hub-addresses")]
    fn look_after<F: Flash>(&mut self, services: &mut Services<F>, now: Instant) {
        let is_due = self.looks_at().is_some_and(|at| at <= now);
        let Some(hub) = self.hub.as_mut().filter(|_| is_due) else { return };
        if hub.asked.is_none() && hub.trust != HubTrust::Revoked {
            hub.addresses.looked(now);
            self.ask_who_it_is(services, now);
        }
    }

    /// Takes the addresses at which the hub's name is found now. A hub that answers is spoken to where it answers; one that is
    /// silent is tried at once where nobody has looked for it yet.
    #[cfg(feature = "hub-addresses")]
    pub(crate) fn found_at<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        addresses: &[Address],
        key: Option<PublicKey>,
    ) {
        let Some((first, also)) = addresses.split_first() else { return };
        let key = services.config.hub.as_ref().map_or(key, |hub| hub.key);
        services.config.hub = Some(Hub { address: first.clone(), key });
        services.config.hub_also_at = also.to_vec();
        let Some(hub) = &mut self.hub else {
            let kept = Identity::hub(services.kernel.store()).ok().flatten();
            return self.take_up(services, now, kept);
        };
        let has_new = hub.addresses.replace(&hub.address, addresses);
        let waits = hub.silences > 0 && hub.asked.is_none() && self.register_at.is_some();
        if has_new && waits && hub.addresses.turn_to_next(&mut hub.address) {
            self.register_at = Some(now);
        }
    }

    /// Brings the next registration forward if the sessions have a new epoch; a silent hub isn't asked
    /// sooner because of one.
    fn follow_epoch(&mut self, epoch: Epoch, now: Instant) {
        let is_silent = self.is_silent();
        if let Some((published, at)) = self.published
            && published != epoch
            && !is_silent
            && let Some(register_at) = &mut self.register_at
        {
            let period = match is_planted(Weakness::StrangersSetThePace) {
                true => Duration::ZERO,
                false => EPOCH_PERIOD,
            };
            *register_at = (*register_at).min((at + period).max(now));
        }
    }

    fn register<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        (directory, outbound): (&mut Directory, &mut Outbound),
        moment: &mut Moment<'_>,
    ) {
        let life = services.config.record_lifetime;
        let lasts = self.touching.lasts(life);
        let Some(signed) = directory.sign_record_for(services, clock, moment, lasts) else {
            debug_assert!(false, "an enrolled device signs its record");
            return;
        };
        self.register_at = None;
        let sequence = directory.sequence(services);
        let (name, parameter) = self.touching.registration(signed, sequence, life);
        // The one to publish, as it has just been signed. Who finds an old one in a record that lasts for long loses a round trip.
        let published = (services.endpoint.epoch(), moment.now);
        self.published = (!self.touching.stays()).then_some(published);
        let call = (name, parameter, Purpose::Register);
        if !self.call(services, outbound, moment, call) {
            self.silent(&mut services.notices, moment.now);
        }
    }

    /// Calls the hub in the name of the device; `false` if it can't be called now.
    pub(crate) fn call<F: Flash>(
        &self,
        services: &mut Services<F>,
        outbound: &mut Outbound,
        moment: &mut Moment<'_>,
        (name, parameter, purpose): (&str, Vec<u8>, Purpose),
    ) -> bool {
        let Some(hub) = self.hub.clone() else { return false };
        let Some(key) = hub.trusted_key() else { return false };
        let KnownHub { address, epoch, .. } = hub;
        let call = OutgoingCall {
            function: name.into(),
            parameter: Some(parameter),
            deadline: moment.now + ANSWER_TIMEOUT,
            attempts: ATTEMPTS,
        };
        let from = services.identity.machine;
        let sent =
            services.endpoint.call(moment.now, moment.entropy, &from, &key, address, epoch, call);
        sent.is_ok_and(|handle| {
            outbound.insert(handle, purpose);
            true
        })
    }

    /// Takes the hub's answer to a registration: `None` if there is none that counts.
    pub(crate) fn answer<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        answer: Option<Vec<u8>>,
    ) -> Option<Registered> {
        if self.is_revoked() {
            // It was asked before it was revoked.
            return None;
        }
        let answer = answer.and_then(|bytes| message::decode::<Registered>(&bytes).ok());
        match answer {
            Some(_) => self.answered(services),
            None => self.silent(&mut services.notices, now),
        }
        answer
    }

    /// Waits for the turn that a crowded hub gave this device.
    pub(crate) fn deferred(&mut self, now: Instant, again_in: Duration) {
        let Some(hub) = self.hub.as_mut().filter(|hub| hub.trust != HubTrust::Revoked) else {
            // It was asked before it was revoked.
            return;
        };
        self.register_at = Some(now + hub.turn_in(again_in));
        #[cfg(feature = "hub-addresses")]
        if hub.addresses.is_left_after_put_off(&mut hub.address) {
            hub.epoch = None;
        }
    }

    /// Registers again soon at a hub that is there, and forgot the session over which it was asked.
    pub(crate) fn forgotten(&mut self, notices: &mut Notices, now: Instant) {
        if let Some(hub) = &mut self.hub {
            hub.silences = 0;
            #[cfg(feature = "hub-addresses")]
            hub.addresses.is_there();
        }
        self.silent(notices, now);
    }

    /// Settles what follows from an answer that was taken, on a device that knew the time before it or
    /// didn't.
    pub(crate) fn settle<F>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        answer: Registered,
        knew_the_time: bool,
    ) {
        let Registered { refusal, devices_max, .. } = answer;
        if refusal == Some(Refusal::Expired) && self.touching.give_up() {
            // By the clocks of the two it lasts too long.
            self.register_at = Some(now);
            return;
        }
        let is_stale = core::mem::take(&mut self.is_stale);
        let wait = match refusal {
            None if is_stale => Duration::ZERO,
            None => {
                let life = services.config.record_lifetime;
                let hub = self.hub.as_ref();
                hub.map_or(life / 3, |hub| self.touching.registered(answer, now, hub, life))
            }
            Some(Refusal::Expired) if !knew_the_time => Duration::ZERO,
            Some(_) => RETRY_REFUSED,
        };
        self.register_at = Some(now + wait);
        match refusal {
            None => self.stand(&mut services.notices, Standing::Listed),
            Some(refusal) if knew_the_time => {
                self.stand(&mut services.notices, Standing::Refused(refusal, devices_max));
            }
            Some(_) => {}
        }
    }

    /// Takes note that the hub gave no answer to a question, unless a registration is under way, which
    /// tells as much.
    pub(crate) fn missed(&mut self, notices: &mut Notices, now: Instant) {
        #[cfg(feature = "hub-addresses")]
        if self.hub.as_ref().is_some_and(|hub| hub.epoch.is_none() && hub.addresses.are_several()) {
            // It was asked at an address that was left since.
            return;
        }
        if self.register_at.is_some() {
            self.silent(notices, now);
        }
    }

    /// Notes how the device stands with the hub, and says so if that is new.
    fn stand(&mut self, notices: &mut Notices, standing: Standing) {
        if self.standing == standing {
            return;
        }
        self.standing = standing;
        match standing {
            Standing::Unknown => {}
            Standing::Listed => notices.push(Notice::Registered),
            Standing::Refused(refusal, devices_max) => {
                notices.push(Notice::Refused { refusal, devices_max });
            }
            Standing::Silent => notices.push(Notice::HubSilent),
            Standing::OtherKey(key) => notices.push(Notice::HubKeyDiffers { key }),
        }
    }

    /// Asks the hub's address for its key.
    fn ask_who_it_is<F: Flash>(&mut self, services: &mut Services<F>, now: Instant) {
        let Some(hub) = &mut self.hub else {
            debug_assert!(false, "a hub is asked that the settings do not name");
            return;
        };
        #[cfg(feature = "hub-addresses")]
        if hub.addresses.has_left()
            && let Some(key) = hub.key
        {
            services.endpoint.leave(now, &services.identity.machine, &key);
        }
        let route = hub.address.clone();
        match services.endpoint.identify(now, route, now + ANSWER_TIMEOUT) {
            Ok(handle) => hub.asked = Some(handle),
            Err(_) => self.silent(&mut services.notices, now),
        }
    }

    /// Takes the answer to the question who the hub is. A key that is known already stays.
    pub(crate) fn identified<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        handle: IdentifyHandle,
        identity: Option<HubIdentity>,
    ) {
        let Some(hub) = &mut self.hub else {
            debug_assert!(false, "a hub was identified that the settings do not name");
            return;
        };
        if hub.asked != Some(handle) {
            return;
        }
        hub.asked = None;
        let Some(HubIdentity { key: Some(key), epoch }) = identity else {
            return self.silent(&mut services.notices, now);
        };
        let is_revoked = services.ownership.revoked.has_hub(&key);
        match hub.key {
            None if !is_revoked => (hub.key, hub.trust) = (Some(key), HubTrust::Shown),
            Some(known) if known == key => {}
            _ => {
                hub.shown = Some(key);
                let wait = hub.back_off();
                self.register_at = Some(now + wait);
                return self.stand(&mut services.notices, Standing::OtherKey(key));
            }
        }
        hub.epoch = Some(epoch);
    }

    /// Takes note that the hub gave no answer.
    fn silent(&mut self, notices: &mut Notices, now: Instant) {
        let Some(hub) = &mut self.hub else {
            debug_assert!(false, "a hub was silent that the settings do not name");
            return;
        };
        if hub.trust == HubTrust::Revoked {
            return;
        }
        if hub.trust == HubTrust::Shown {
            // A key that was only told may have been damaged on the way, or be another one by now.
            (hub.key, hub.trust) = (None, HubTrust::Unknown);
        }
        hub.epoch = None;
        let wait = hub.back_off();
        self.register_at = Some(now + wait);
        if !matches!(self.standing, Standing::OtherKey(_)) {
            self.stand(notices, Standing::Silent);
        }
    }

    /// Takes note that the holder of the hub's key answered in a session. The first such key is kept.
    fn answered<F: Flash>(&mut self, services: &mut Services<F>) {
        let Some(hub) = &mut self.hub else {
            debug_assert!(false, "a hub answered that the settings do not name");
            return;
        };
        (hub.silences, hub.shown) = (0, None);
        #[cfg(feature = "hub-addresses")]
        hub.addresses.answered();
        // A key that somebody named, or that was kept before, isn't kept again.
        let (HubTrust::Shown, Some(key)) = (hub.trust, hub.key) else { return };
        let kept = KeptHub::new(key, HubTrust::FirstSeen);
        // A store that can't keep it now is asked again at the next registration.
        if keep(services, Some(&kept)).is_ok()
            && let Some(hub) = &mut self.hub
        {
            hub.trust = HubTrust::FirstSeen;
        }
    }

    /// Takes the owner's word for the hub's key, or forgets the key that was kept.
    pub(crate) fn trust<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        trust: &TrustHub,
    ) -> Answer<()> {
        let refused = |why: &str| Err(ControlError::Refused(why.into()));
        let Some(hub) = &self.hub else {
            return refused("the device's settings name no hub");
        };
        if hub.is_set {
            return refused("the device's settings pin the hub's key; change it there");
        }
        if trust.key.is_some_and(|key| services.ownership.revoked.has_hub(&key)) {
            return refused(
                "you revoked that hub; take that back first: tenure revoke hub KEY --undo",
            );
        }
        let kept = trust.key.map(|key| KeptHub::new(key, HubTrust::Owner));
        keep(services, kept.as_ref())?;
        if let (Some(hub), Some(settings)) = (&mut self.hub, &services.config.hub) {
            *hub = KnownHub::new(&services.config, settings, &services.identity.machine, kept);
        }
        if self.register_at.is_some() {
            self.register_at = Some(now);
        }
        Ok(())
    }

    /// Speaks no more to a hub that the owner revoked, and believes its time no more; takes up again one
    /// that is revoked no more.
    pub(crate) fn bar<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &mut Clock,
        now: Instant,
    ) {
        // The settings name no hub.
        let Some(hub) = &mut self.hub else { return };
        let is_revoked = hub.key.is_some_and(|key| services.ownership.revoked.has_hub(&key));
        if is_revoked == (hub.trust == HubTrust::Revoked) {
            return;
        }
        if !is_revoked {
            let kept = Identity::hub(services.kernel.store()).ok().flatten();
            return self.take_up(services, now, kept);
        }
        hub.trust = HubTrust::Revoked;
        (hub.epoch, hub.asked) = (None, None);
        self.register_at = Some(now);
        clock.forget_hubs_time();
        self.stand(&mut services.notices, Standing::Unknown);
    }

    /// Forgets the hub's key that was kept; the settings' stays. The store has forgotten it already.
    pub(crate) fn forget<F>(&mut self, services: &mut Services<F>, now: Instant) {
        self.take_up(services, now, None);
    }

    fn take_up<F>(&mut self, services: &mut Services<F>, now: Instant, kept: Option<KeptHub>) {
        self.hub = services
            .config
            .hub
            .as_ref()
            .map(|hub| KnownHub::new(&services.config, hub, &services.identity.machine, kept));
        self.register_at = Some(now);
        self.stand(&mut services.notices, Standing::Unknown);
    }

    /// How this device stands with its hub.
    pub(crate) fn status(&self) -> Option<HubStatus> {
        let hub = self.hub.as_ref()?;
        Some(HubStatus {
            address: hub.address.clone(),
            is_registered: self.is_listed(),
            key: hub.key,
            trust: hub.trust,
            shown: hub.shown,
        })
    }
}

/// Keeps the hub's key, or forgets it.
fn keep<F: Flash>(services: &mut Services<F>, kept: Option<&KeptHub>) -> Answer<()> {
    let failed = |error: &dyn core::fmt::Display| ControlError::Device(alloc::format!("{error}"));
    let bytes = kept.map(postcard::to_allocvec).transpose().map_err(|error| failed(&error))?;
    services
        .identity
        .keep_hub(services.kernel.store(), bytes.as_deref())
        .map_err(|error| failed(&error))
}
