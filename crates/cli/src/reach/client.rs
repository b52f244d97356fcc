//! The owner's end: sessions with devices and the hub over UDP, as a blocking client.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use tenure_board_linux::{LinuxClock, LinuxEntropy, UdpLink};
use tenure_crypto::{Seed, SigningKey, StaticSecret};
use tenure_hal::{Clock as _, Instant, UnixTime};
use tenure_package::Revocations;
use tenure_rpc::{CallHandle, Config, Endpoint, Event, Identity, NoResult, OutgoingCall, Whose};
use tenure_wire::control::{
    Answer, ChangeOwner, Client as _, ControlError, DeviceStatus, Enrol, Function, Hello, TellTime,
    decode_answer,
};
use tenure_wire::datagram::{Epoch, Relayed};
use tenure_wire::directory::{DeviceRecord, Enrolment, Found, Query, SignedRecord};
use tenure_wire::{Address, MachineId, Name, PublicKey, VerifyingKey};

use crate::home::Home;
use crate::home::authority::Authority;
use crate::home::known::Known;
use crate::reach::hub_link::HubLink;
use crate::reach::place::Place;
use crate::terminal::output::{Beside, tell_beside};
use crate::terminal::stop::Stop;

pub use control::Silent;
pub use via::in_mesh;

mod control;
mod dead_end;
mod via;
mod ways;

/// How long a device or hub may take to say who it is.
const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(3);
/// How many addresses are asked at once who is there.
const ASKED_AT_ONCE: usize = 256;
/// How long it may take, once a call has failed, to find out why.
const DIAGNOSIS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an address of a computer on which nothing listens takes to say so.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(200);
/// How long one address of a host may take to answer before the next is asked beside it (RFC 8305 §8).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);
/// How long a device may take to answer directly before its hub's relay is tried beside that.
const RELAY_AFTER: Duration = Duration::from_millis(50);
/// The same of a device that answered others than its hub lately.
const SILENT_AFTER: Duration = Duration::from_secs(1);
/// How long a control function may take: a device that others keep busy shows meanwhile that it is there.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a control function takes before the user is told that it is waited for.
const TOLD_AFTER: Duration = Duration::from_secs(5);
/// The longest wait for one answer: so a device that is gone is known to be before a call's
/// deadline, and not only then.
const TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// How often something is sent without an answer before the peer counts as unreachable: for twenty seconds at least, as
/// the timeouts double from 50 ms to [`TIMEOUT_MAX`]. A device does nothing else while it takes in a package.
const ATTEMPTS: u8 = 14;
/// The longest that Ctrl-C waits in a shell.
const STOP_AFTER_MAX: Duration = Duration::from_millis(200);
/// How far a device's clock may be behind this computer's before it is told the time, in seconds.
const BEHIND_S_MAX: u64 = 60;
/// How far a device's time may be ahead of this computer's until it is set back, in seconds.
pub const AHEAD_S_MAX: u64 = 60 * 60;

/// The keys of the user who runs the command.
pub struct OwnerKeys {
    /// Signs enrolments and placements.
    pub signing_key: SigningKey,
    /// Opens sessions.
    pub machine: StaticSecret,
}

impl OwnerKeys {
    /// The keys in the user's folder, made at their first use.
    ///
    /// # Errors
    /// As [`Home::owner_key`].
    pub fn of(home: &Home) -> anyhow::Result<Self> {
        Ok(Self::of_signing_key(home.owner_key()?))
    }

    /// The keys that follow from the one that signs.
    pub fn of_signing_key(signing_key: SigningKey) -> Self {
        let machine = Seed::from_bytes(&signing_key.to_bytes()).device_secret();
        Self { signing_key, machine }
    }

    /// The owner as a device's configuration names it.
    pub fn owner(&self) -> tenure_node::Owner {
        tenure_node::Owner {
            verifying_key: self.signing_key.verifying_key(),
            machine: self.machine.public_key(),
        }
    }
}

/// Calls machines, and waits.
pub struct Client {
    endpoint: Endpoint<Address>,
    /// The way to devices, and to the hub.
    pub link: HubLink,
    clock: LinuxClock,
    entropy: LinuxEntropy,
    own: MachineId,
    home: Home,
    keys: OwnerKeys,
    known: Known,
    /// The versions that devices speak which were greeted, and the epoch in which they said so.
    greeted: BTreeMap<PublicKey, (Option<Epoch>, Hello)>,
    authority: Authority,
    /// The member of the mesh that carries datagrams for devices there.
    via: Option<Box<via::Via>>,
    /// The ways by which hubs relay, each with its hub.
    ways: BTreeMap<[u8; 8], SocketAddr>,
    /// Ends what is waited for, in a shell that goes on after it.
    stop: Option<Stop>,
    /// When the command's time is over, if it has one.
    until: Option<std::time::Instant>,
}

/// A machine that can be called: its key and the way to it.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its key.
    pub key: PublicKey,
    /// Where its device is.
    pub address: Address,
    /// Its device's epoch, if known.
    pub epoch: Option<Epoch>,
}

/// A device that has proved to be the owner's.
#[derive(Clone, Debug)]
pub struct Device {
    /// The way to the device's own machine.
    pub route: Route,
    /// Its description of itself.
    pub status: DeviceStatus,
}

/// A device that has proved to be that of the owner who leases it.
#[derive(Clone, Debug)]
pub struct LeasedDevice {
    /// The way to the device's own machine.
    pub route: Route,
    /// Its name.
    pub name: Name,
    /// Its own key.
    pub key: VerifyingKey,
}

impl Client {
    /// A client with the keys in the user's folder.
    ///
    /// # Errors
    /// The keys can't be had, or no socket.
    pub fn new(home: &Home) -> anyhow::Result<Self> {
        Self::with_keys(home, OwnerKeys::of(home)?)
    }

    /// A client with these keys, which needn't be in the user's folder; what it learns is kept there.
    ///
    /// # Errors
    /// The folder can't be read, or no socket.
    pub fn with_keys(home: &Home, keys: OwnerKeys) -> anyhow::Result<Self> {
        let (clock, mut entropy) = (LinuxClock::start(), LinuxEntropy);
        let config = Config {
            timeout_max: TIMEOUT_MAX,
            questions_max: ASKED_AT_ONCE,
            queued_datagrams_max: ASKED_AT_ONCE,
            ..Config::default()
        };
        let mut endpoint = Endpoint::new(config, clock.now(), &mut entropy)?;
        let own = endpoint.add_machine(keys.machine.clone())?;
        let link = HubLink::over(UdpLink::bind_any()?);
        let (known, authority) = (Known::of(home)?, Authority::of(home)?);
        let greeted = BTreeMap::new();
        let (via, stop, until) = (None, None, None);
        let home = home.clone();
        Ok(Self {
            endpoint,
            link,
            clock,
            entropy,
            own,
            home,
            keys,
            known,
            greeted,
            authority,
            via,
            ways: BTreeMap::new(),
            stop,
            until,
        })
    }

    /// Lets nothing be waited for after `until`.
    pub fn end_by(&mut self, until: Option<std::time::Instant>) {
        self.until = until;
        if let Some(via) = &mut self.via {
            via.end_by(until);
        }
    }

    /// When the command's time is over, if it has one.
    pub fn ends_by(&self) -> Option<std::time::Instant> {
        self.until
    }

    /// As much of `timeout` as the command has.
    fn bounded(&self, timeout: Duration) -> Duration {
        let left =
            self.until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
        left.map_or(timeout, |left| left.min(timeout))
    }

    /// Lets `stop` end what is waited for from now on.
    pub fn end_on(&mut self, stop: Stop) {
        self.stop = Some(stop);
    }

    /// Returns the stop that Ctrl-C triggers: that of the shell's line, else that of the command.
    ///
    /// # Errors
    /// The system refuses to tell of signals.
    pub fn stop(&self) -> anyhow::Result<Stop> {
        self.stop.clone().map_or_else(Stop::on_signals, Ok)
    }

    /// Tells peers that their last answers have come, so that they needn't keep them.
    pub fn acknowledge_all(&mut self) {
        self.endpoint.acknowledge_all(self.clock.now());
        let _ = self.send_all();
        if let Some(via) = self.via.as_mut().filter(|via| via.is_waiting()) {
            // A member that is gone isn't waited for.
            via.end_by(Some(std::time::Instant::now() + DIAGNOSIS_TIMEOUT));
            let _ = via.exchange(Duration::ZERO);
            via.end_by(self.until);
        }
    }

    /// The user's keys.
    pub fn keys(&self) -> &OwnerKeys {
        &self.keys
    }

    /// This user's knowledge of devices and hubs.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// The same, to be changed.
    pub fn known_mut(&mut self) -> &mut Known {
        &mut self.known
    }

    /// This user's word, as an owner, on keys.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Changes the list of whom this user revoked, beginning with what another command has made of it; signs and keeps
    /// it under the next number. One that stays as it is isn't signed.
    ///
    /// # Errors
    /// It has too many entries, or can't be kept.
    pub fn change_revocations(
        &mut self,
        change: impl FnOnce(&mut Revocations) -> bool,
    ) -> anyhow::Result<()> {
        let lock = self.home.lock()?;
        self.authority.read_again(&lock)?;
        let mut list = self.authority.revoked().clone();
        if change(&mut list) {
            list.number += 1;
            self.authority.sign_list(&lock, list, &self.keys.signing_key)?;
        }
        Ok(())
    }

    /// The seconds since 1970 UTC by this computer's clock.
    pub fn unix_s(&self) -> u64 {
        self.clock.unix_time().map_or(0, |time| time.seconds)
    }

    /// Asks who is at a host's `addresses`: one after the other, without waiting for the one before to be given up
    /// (RFC 8305 §5). Returns where the first answer comes from, and what it says, which proves nothing yet.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn identify(
        &mut self,
        addresses: &[SocketAddr],
        what: &str,
    ) -> anyhow::Result<(SocketAddr, Identity)> {
        let each: Vec<Address> = addresses.iter().copied().map(Address::from).collect();
        match self.identify_any(&each, RELAY_AFTER, self.link.patience_with_hub())? {
            Some((Address::Udp(address), identity)) => Ok((address, identity)),
            _ => Err(self.link.no_websocket().unwrap_or_else(|| no_answer(what, addresses))),
        }
    }

    /// As [`Self::identify`], at addresses of any kind, where a hub's relay is asked so much after the others; `None` if
    /// nobody answers.
    fn identify_any(
        &mut self,
        addresses: &[Address],
        relay_after: Duration,
        patience: Duration,
    ) -> anyhow::Result<Option<(Address, Identity)>> {
        let mut left = addresses.iter();
        let mut asked = Vec::new();
        loop {
            let now = self.clock.now();
            if let Some(address) = left.next() {
                let deadline = now + self.bounded(patience);
                let handle = self.endpoint.identify(now, address.clone(), deadline)?;
                asked.push((handle, address));
            }
            if asked.is_empty() {
                return Ok(None);
            }
            let pause = match left.as_slice().first() {
                None => None,
                Some(Address::Relayed(_)) => Some(relay_after),
                Some(_) => Some(NEXT_ADDRESS_AFTER),
            };
            let next_at = pause.map(|pause| now + pause);
            while let Some(event) = self.event_before(next_at)? {
                let Event::Identified { handle, identity } = event else { continue };
                let Some(place) = asked.iter().position(|(one, _)| *one == handle) else {
                    continue;
                };
                let (_, address) = asked.remove(place);
                if let Some(identity) = identity {
                    return Ok(Some((address.clone(), identity)));
                }
                if asked.is_empty() {
                    break;
                }
            }
        }
    }

    /// Asks who is at one place, by way of the member if it is in the mesh; `None` if nobody answers.
    ///
    /// # Errors
    /// The user has had enough, or the socket fails.
    fn identify_at(&mut self, address: &Address) -> anyhow::Result<Option<Identity>> {
        let now = self.clock.now();
        let deadline = now + self.bounded(IDENTIFY_TIMEOUT);
        let asked = self.endpoint.identify(now, address.clone(), deadline)?;
        loop {
            if let Some(Event::Identified { handle, identity }) = self.event_before(None)?
                && handle == asked
            {
                return Ok(identity);
            }
        }
    }

    /// Asks each of `addresses` who is there, many at once, and tells `heard` of each by its place in the list as soon as it
    /// has answered, or hasn't in time.
    ///
    /// # Errors
    /// The user has had enough, or the socket fails.
    pub fn identify_each(
        &mut self,
        addresses: &[SocketAddr],
        mut heard: impl FnMut(usize, Option<&Identity>),
    ) -> anyhow::Result<()> {
        let mut left = addresses.iter().enumerate();
        let mut asked = Vec::new();
        loop {
            while asked.len() < ASKED_AT_ONCE
                && let Some((place, address)) = left.next()
            {
                let now = self.clock.now();
                let deadline = now + self.bounded(IDENTIFY_TIMEOUT);
                let handle = self.endpoint.identify(now, (*address).into(), deadline)?;
                asked.push((handle, place));
            }
            if asked.is_empty() {
                return Ok(());
            }
            let Some(Event::Identified { handle, identity }) = self.event_before(None)? else {
                continue;
            };
            if let Some(at) = asked.iter().position(|(one, _)| *one == handle) {
                let (_, place) = asked.swap_remove(at);
                heard(place, identity.as_ref());
            }
        }
    }

    /// The way to the device at `place`, if what answers there shows the key that is expected.
    ///
    /// # Errors
    /// Nobody answers, or another device.
    pub fn route(&mut self, place: &Place) -> anyhow::Result<Route> {
        let direct = place.addresses.iter().copied().map(Address::from);
        let relayed = place.by_hub.and_then(|by_hub| by_hub.relayed.ok()).map(Address::Relayed);
        let addresses: Vec<Address> = direct.chain(relayed).collect();
        let answers_others = place.by_hub.and_then(|by_hub| by_hub.answers_others);
        let relay_after = if answers_others == Some(true) { SILENT_AFTER } else { RELAY_AFTER };
        let answered = self.identify_any(&addresses, relay_after, IDENTIFY_TIMEOUT)?;
        let (address, identity) = answered.ok_or_else(|| ways::out_of_reach(place))?;
        let key = identity.key.context("what answers there has no key of its own")?;
        if place.key.is_some_and(|expected| expected != key) {
            let name = place.name.as_ref().map_or(String::new(), |name| format!(", not {name}"));
            bail!(
                "the device at {address} has the key {key}: it is another one than you mean{name}"
            );
        }
        Ok(Route { key, address, epoch: Some(identity.epoch) })
    }

    /// Opens a session with the device at `place` and lets it prove that this user enrolled it, under
    /// its name if it was named.
    ///
    /// # Errors
    /// Nobody answers, it belongs to somebody else, or it isn't what it says.
    pub fn device(&mut self, place: &Place) -> anyhow::Result<Device> {
        let route = self.route(place)?;
        self.device_at(route, place.name.as_ref())
    }

    /// The same by a way that is known already.
    ///
    /// # Errors
    /// Nobody answers, it belongs to somebody else, or it isn't what it says.
    pub fn device_at(&mut self, route: Route, name: Option<&Name>) -> anyhow::Result<Device> {
        let address = route.address.clone();
        let status = self.status(&route).with_context(|| format!("the device at {address}"))?;
        let record = status.record.as_ref().ok_or_else(|| {
            anyhow!("the device at {address} isn't enrolled by its owner; its owner types: tenure enrol {address}")
        })?;
        let proven = tenure_directory::open_whenever(record)
            .map_err(|refusal| anyhow!("what answers at {address} can't be trusted: {refusal}"))?;
        let owner = self.keys.signing_key.verifying_key();
        if proven.owner != owner || proven.device_machine != route.key {
            bail!("what answers at {address} is not a device of yours");
        }
        check_name(name, &proven.enrolment.device)?;
        self.authority.check_device(&proven)?;
        let via = self.via.as_ref().map(|via| via.name());
        self.known.met_device(&proven, &route.address, via)?;
        self.tell_time(&route, &status)?;
        let device = Device { route, status };
        self.agree_on_revocations(&device)?;
        Ok(device)
    }

    /// Remembers what answers at `route`, if it proves to be a device of this user's.
    ///
    /// # Errors
    /// It can't be reached any more, or another device has its name by now.
    pub fn note(&mut self, route: &Route) -> anyhow::Result<()> {
        let record: Option<SignedRecord> = self.at(route).record(())?;
        let Some(record) = record else { return Ok(()) };
        let Ok(proven) = tenure_directory::open_whenever(&record) else { return Ok(()) };
        let owner = self.keys.signing_key.verifying_key();
        if proven.owner == owner && proven.device_machine == route.key {
            let via = self.via.as_ref().map(|via| via.name());
            self.known.met_device(&proven, &route.address, via)?;
        }
        Ok(())
    }

    /// How the device is. One that holds to this user's former keys is told of the present ones before.
    fn status(&mut self, route: &Route) -> anyhow::Result<DeviceStatus> {
        let answer = self.at(route).exchange(Function::status, Vec::new())?;
        let answer: Answer<DeviceStatus> = decode_answer(&answer);
        if answer == Err(ControlError::NotOwner) && self.tell_changes_of_keys(route)? {
            return self.at(route).status(());
        }
        answer.map_err(explained)
    }

    /// Tells a device that this user held by former keys of the present ones; `false` if it is somebody
    /// else's.
    fn tell_changes_of_keys(&mut self, route: &Route) -> anyhow::Result<bool> {
        let record = self.at(route).record(())?;
        let Some(record) = record else { return Ok(false) };
        let Ok(proven) = tenure_directory::open_whenever(&record) else { return Ok(false) };
        if proven.device_machine != route.key {
            return Ok(false);
        }
        let changes = self.authority.changes_since(&proven.owner).to_vec();
        let DeviceRecord { enrolment: Enrolment { device, device_key, number }, .. } = proven;
        let number = number.saturating_add(1);
        let enrolment = Enrolment { device, device_key, number };
        let signature = tenure_directory::enrol(&self.keys.signing_key, &enrolment);
        let enrol = Enrol { enrolment, signature };
        let last = changes.len().saturating_sub(1);
        for (at, succession) in changes.iter().enumerate() {
            let enrol = (at == last).then(|| enrol.clone());
            let change = ChangeOwner { succession: succession.clone(), enrol };
            self.at(route).change_owner(change)?;
        }
        Ok(!changes.is_empty())
    }

    /// Tells a device the list of whom this user revoked, or learns it from the device, whichever is newer.
    fn agree_on_revocations(&mut self, device: &Device) -> anyhow::Result<()> {
        let here = self.authority.revoked().number;
        if device.status.revocations < here {
            self.tell_revocations(device)?;
        } else if device.status.revocations > here {
            let list = self.at(&device.route).revoked(())?;
            let owner = self.keys.signing_key.verifying_key();
            if let Some(list) = list {
                self.authority.learn_list(&self.home.lock()?, list, &owner)?;
            }
        }
        Ok(())
    }

    /// The list that a device has in force under the number of this user's, if it is another one: it was
    /// made on another computer at the same time. Else an empty one.
    ///
    /// # Errors
    /// The device can't be reached any more.
    pub fn list_beside(&mut self, device: &Device) -> anyhow::Result<Revocations> {
        let list = self.at(&device.route).revoked(())?;
        let list = list.and_then(|list| Revocations::verify(&list).ok());
        let owner = self.keys.signing_key.verifying_key();
        let number = self.authority.revoked().number;
        let beside = list.filter(|(list, signer)| {
            list.number == number && self.authority.is_or_was(&owner, signer)
        });
        Ok(beside.map(|(list, _)| list).unwrap_or_default())
    }

    /// Tells a device the list of whom this user revoked.
    ///
    /// # Errors
    /// The device can't be reached any more, or has another list of that number or a higher one.
    pub fn tell_revocations(&mut self, device: &Device) -> anyhow::Result<()> {
        let Some(list) = self.authority.signed_list().map(<[u8]>::to_vec) else { return Ok(()) };
        self.at(&device.route).revoke(&list)
    }

    /// Tells a device of this user's the time, if it doesn't know it or was told one that is far ahead.
    ///
    /// # Errors
    /// The device can't be reached any more.
    pub fn tell_time(&mut self, route: &Route, status: &DeviceStatus) -> anyhow::Result<()> {
        // A clock that shows a time that it can't be is no word of the owner's.
        let Some(UnixTime { seconds: unix_s }) = self.clock.unix_time() else { return Ok(()) };
        let is_behind = |known: u64| known.saturating_add(BEHIND_S_MAX) < unix_s;
        let is_ahead = |known: u64| known > unix_s.saturating_add(AHEAD_S_MAX);
        if status.unix_s.is_none_or(|known| is_behind(known) || is_ahead(known)) {
            self.set_time(route)?;
        }
        Ok(())
    }

    /// Tells a device of this user's the time, whatever it knows of it.
    ///
    /// # Errors
    /// The device can't be reached any more.
    pub fn set_time(&mut self, route: &Route) -> anyhow::Result<()> {
        let unix_s = self.unix_s();
        self.at(route).time(TellTime { unix_s })
    }

    /// Opens a session with the device at `place`, which `owner` leases to this user, and lets it
    /// prove that `owner` enrolled it.
    ///
    /// # Errors
    /// Nobody answers, it belongs to somebody else, or it isn't what it says.
    pub fn leased_device(
        &mut self,
        place: &Place,
        owner: VerifyingKey,
    ) -> anyhow::Result<LeasedDevice> {
        let route = self.route(place)?;
        self.leased_device_at(route, place.name.as_ref(), owner)
    }

    /// The same by a way that is known already.
    ///
    /// # Errors
    /// Nobody answers, it belongs to somebody else, or it isn't what it says.
    pub fn leased_device_at(
        &mut self,
        route: Route,
        name: Option<&Name>,
        owner: VerifyingKey,
    ) -> anyhow::Result<LeasedDevice> {
        let address = route.address.clone();
        let record: Option<SignedRecord> = self.at(&route).record(())?;
        let record = record.with_context(|| format!("the device at {address} isn't enrolled"))?;
        let proven = tenure_directory::open_whenever(&record)
            .map_err(|refusal| anyhow!("what answers at {address} can't be trusted: {refusal}"))?;
        if proven.device_machine != route.key {
            bail!("what answers at {address} shows another device's record");
        }
        if proven.owner != owner {
            bail!(
                "the device at {address} belongs to {}; if that is who leases it to you, say so \
                 with --owner",
                proven.owner
            );
        }
        check_name(name, &proven.enrolment.device)?;
        let enrolment = proven.enrolment;
        Ok(LeasedDevice { route, name: enrolment.device, key: enrolment.device_key })
    }

    /// The key of this user's own machine, by which devices know the caller.
    pub fn own_key(&self) -> PublicKey {
        self.keys.machine.public_key()
    }

    /// The device's own machine at `route`, to be called by the owner's protocol.
    pub fn at<'a>(&'a mut self, route: &'a Route) -> OwnMachine<'a> {
        OwnMachine { client: self, route }
    }

    /// Calls a function of a machine and waits for its result.
    ///
    /// # Errors
    /// As [`NoResult`] says.
    pub fn call(
        &mut self,
        route: &Route,
        name: &str,
        parameter: Option<Vec<u8>>,
        timeout: Duration,
    ) -> Result<Option<Vec<u8>>, NoResult> {
        self.call_and_hear(route, name, parameter, timeout).map_err(|(reason, _)| reason)
    }

    /// As [`Client::call`]; a failure comes with what the called machine says of it, if it says anything.
    ///
    /// # Errors
    /// As [`NoResult`] says.
    pub fn call_and_hear(
        &mut self,
        route: &Route,
        name: &str,
        parameter: Option<Vec<u8>>,
        timeout: Duration,
    ) -> Result<Option<Vec<u8>>, (NoResult, String)> {
        let silent = |reason| (reason, String::new());
        let handle = self.start_call(route, name, parameter, timeout).map_err(silent)?;
        self.end_of_call(handle, None)
    }

    /// Waits for the end of a call. The user is told of a long wait if `tells_of` names who is waited for.
    fn end_of_call(
        &mut self,
        handle: CallHandle,
        tells_of: Option<&Address>,
    ) -> Result<Option<Vec<u8>>, (NoResult, String)> {
        let mut tell_at = tells_of.map(|address| (self.clock.now() + TOLD_AFTER, address));
        loop {
            match self.event_before(tell_at.map(|(at, _)| at)) {
                Ok(Some(Event::CallDone { handle: done, result, words })) if done == handle => {
                    let words = String::from_utf8_lossy(&words).into_owned();
                    return result.map_err(|reason| (reason, words));
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    if let Some((_, address)) = tell_at.take() {
                        let text = format!("the device at {address} takes long to answer");
                        tell_beside(Beside::Waiting, &text);
                    }
                }
                Err(_) => {
                    self.endpoint.cancel(self.clock.now(), handle);
                    return Err((NoResult::Unreachable, String::new()));
                }
            }
        }
    }

    /// Lets `pause` pass.
    ///
    /// # Errors
    /// The user has had enough, or the socket fails.
    pub fn pause(&mut self, pause: Duration) -> anyhow::Result<()> {
        let end = self.clock.now() + pause;
        while self.event_before(Some(end))?.is_some() {}
        Ok(())
    }

    /// Whether anybody answers at a route, now that a call has failed. By way of a member that isn't asked.
    pub fn is_there(&mut self, route: &Route) -> bool {
        if matches!(route.address, Address::Mesh(_)) {
            return true;
        }
        let until = self.until.replace(std::time::Instant::now() + DIAGNOSIS_TIMEOUT);
        let address = std::slice::from_ref(&route.address);
        let answered = self.identify_any(address, RELAY_AFTER, IDENTIFY_TIMEOUT);
        let answered = answered.is_ok_and(|answered| answered.is_some());
        self.until = until;
        answered
    }

    fn start_call(
        &mut self,
        route: &Route,
        name: &str,
        parameter: Option<Vec<u8>>,
        timeout: Duration,
    ) -> Result<CallHandle, NoResult> {
        let now = self.clock.now();
        let call = OutgoingCall {
            function: name.to_string(),
            parameter,
            deadline: now + self.bounded(timeout),
            attempts: ATTEMPTS,
        };
        let (address, epoch) = (route.address.clone(), route.epoch);
        self.endpoint
            .call(now, &mut self.entropy, &self.own, &route.key, address, epoch, call)
            .map_err(NoResult::from)
    }

    /// Moves datagrams until something happens, or it is `end`.
    fn event_before(&mut self, end: Option<Instant>) -> anyhow::Result<Option<Event<Address>>> {
        let mut datagram = vec![0; 65_536];
        loop {
            if let Some(event) = self.endpoint.event() {
                return Ok(Some(event));
            }
            self.endpoint.poll(self.clock.now(), &mut self.entropy);
            self.send_all()?;
            if let Some(event) = self.endpoint.event() {
                return Ok(Some(event));
            }
            let now = self.clock.now();
            if end.is_some_and(|end| end <= now) {
                return Ok(None);
            }
            let at = self.endpoint.poll_at();
            let mut wait = at.map_or(IDENTIFY_TIMEOUT, |at| at.since(now));
            wait = end.map_or(wait, |end| wait.min(end.since(now)));
            if let Some(stop) = &self.stop {
                ensure!(!stop.is_requested(), "interrupted");
                wait = wait.min(STOP_AFTER_MAX);
            }
            self.wait(wait)?;
            while let Some((length, from)) = self.link.receive(&mut datagram)? {
                let now = self.clock.now();
                let (from, datagram) = match Relayed::parse(&datagram[..length]) {
                    Some(relayed) if self.ways.get(&relayed.way) == Some(&from) => {
                        (Address::Relayed(relayed.way), relayed.datagram)
                    }
                    _ => (from.into(), &datagram[..length]),
                };
                self.endpoint.receive(now, &mut self.entropy, from, datagram);
            }
            self.send_all()?;
        }
    }

    /// Waits until something comes, and takes in datagrams that a member carried here.
    fn wait(&mut self, wait: Duration) -> anyhow::Result<()> {
        let Some(via) = &mut self.via else { return Ok(self.link.wait(wait)?) };
        for (from, datagram) in via.exchange(wait)? {
            // Another of this user's tools may speak through the same member.
            if self.endpoint.whose(&datagram) != Whose::Another {
                let now = self.clock.now();
                self.endpoint.receive(now, &mut self.entropy, from, &datagram);
            }
        }
        Ok(())
    }

    /// Reaches devices in the mesh of `member` from now on, which `client` speaks with, at `route`.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn go_through(
        &mut self,
        member: &str,
        mut client: Self,
        route: Route,
    ) -> anyhow::Result<()> {
        client.stop.clone_from(&self.stop);
        client.until = self.until;
        self.via = Some(Box::new(via::Via::new(member, client, route)?));
        Ok(())
    }

    /// The member of the mesh by way of which devices are reached, as the user named it.
    pub fn goes_through(&self) -> Option<&str> {
        self.via.as_ref().map(|via| via.name())
    }

    /// Reaches devices without any member from now on.
    pub fn go_directly(&mut self) {
        self.via = None;
    }

    /// The record of what `query` asks for that the member holds; nothing in there is proven.
    ///
    /// # Errors
    /// The member doesn't answer, or there is none.
    pub fn find_through(&mut self, query: &Query) -> anyhow::Result<Option<Found>> {
        self.via.as_mut().map_or(Ok(None), |via| via.find(query))
    }

    fn send_all(&mut self) -> anyhow::Result<()> {
        while let Some((to, datagram)) = self.endpoint.transmit() {
            // A datagram that isn't sent is one that is lost: it will be sent again.
            match (to, &mut self.via) {
                (Address::Udp(to), _) => drop(self.link.send(&to, &datagram)),
                (Address::Mesh(to), Some(via)) => via.send(to, datagram),
                (Address::Relayed(way), _) => {
                    if let Some(hub) = self.ways.get(&way) {
                        let relayed = Relayed { way, datagram: &datagram };
                        let _ = self.link.send(hub, &relayed.to_bytes());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl OwnMachine<'_> {
    /// Exchanges versions with the device, once, before anything else is asked of it.
    fn greet(&mut self) -> anyhow::Result<Hello> {
        // One that restarted may be of another version since.
        let epoch = self.route.epoch;
        match self.client.greeted.get(&self.route.key) {
            Some((then, spoken)) if *then == epoch => return Ok(spoken.clone()),
            _ => {}
        }
        let own = Hello::own(env!("CARGO_PKG_VERSION"));
        let request = tenure_wire::message::encode(&own);
        let answer = self.client.call_control(self.route, Function::hello, &request)?;
        let spoken = decode_answer::<Hello>(&answer).map_err(|_| {
            anyhow!(
                "the device at {} doesn't say which versions it speaks: it is older than {own}; \
                 update it with a `tenure` of its own age",
                self.route.address
            )
        })?;
        if own.common(&spoken).is_none() {
            let older = if spoken.newest < own.oldest { "the device" } else { "this computer" };
            bail!(
                "the device at {} runs {spoken}, and this is {own}: update {older}",
                self.route.address
            );
        }
        self.client.greeted.insert(self.route.key, (epoch, spoken.clone()));
        Ok(spoken)
    }
}

/// A device's own machine: [`control::Client`](tenure_wire::control::Client) lists its functions.
pub struct OwnMachine<'a> {
    client: &'a mut Client,
    route: &'a Route,
}

impl tenure_wire::control::Client for OwnMachine<'_> {
    type Error = anyhow::Error;

    fn exchange(&mut self, function: Function, request: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        let spoken = self.greet()?;
        let since = function.info().since;
        if spoken.newest < since {
            bail!(
                "the device at {} runs {spoken}; `{}` came with version {since}: update the device",
                self.route.address,
                function.name()
            );
        }
        self.client.call_control(self.route, function, &request)
    }

    fn refused(&self, _: Function, error: ControlError) -> anyhow::Error {
        explained(error)
    }
}

impl Drop for Client {
    /// Devices needn't keep the last answers for somebody who has them and goes.
    fn drop(&mut self) {
        self.acknowledge_all();
    }
}

fn check_name(meant: Option<&Name>, name: &Name) -> anyhow::Result<()> {
    match meant {
        Some(meant) if meant != name => bail!("what answers there is {name}, not {meant}"),
        _ => Ok(()),
    }
}

/// A device's refusal, told with what a user can do about it.
#[derive(Debug)]
pub struct Refused(pub ControlError);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match way_out(&self.0) {
            Some(way_out) => write!(f, "{}; {way_out}", self.0),
            None => self.0.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

fn explained(error: ControlError) -> anyhow::Error {
    Refused(error).into()
}

/// The user's way out, where that isn't plain from the error.
fn way_out(error: &ControlError) -> Option<&'static str> {
    match error {
        ControlError::NotOwner => Some("use the owner's keys (TENURE_HOME)"),
        ControlError::NoSuchMachine(_) => Some("see `tenure list`"),
        ControlError::Full(what) if what.starts_with("the device takes ") => {
            Some("remove one that you don't need (`tenure remove`)")
        }
        ControlError::Full(_) => Some(
            "take off what you don't need (`tenure remove`, `tenure secret remove`), or make it smaller",
        ),
        ControlError::Transfer => Some("install it again"),
        _ => None,
    }
}

fn no_answer(what: &str, addresses: &[SocketAddr]) -> anyhow::Error {
    let whose = if what == "hub" { " --owner own" } else { "" };
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let listen = texts.first().map_or("", String::as_str);
    let at = texts.join(" or ");
    // One that is there and has no time for an answer isn't started again.
    if addresses.iter().all(|address| nothing_listens(*address)) {
        return anyhow!(
            "no {what} answers at {at}; is it running, and is the address right? \
             Start one with: tenure {what} --data DIR{whose} --listen {listen}"
        );
    }
    anyhow!(
        "no {what} answered at {at} in time: it is overloaded, stopped or out of reach, or the address is another's"
    )
}

/// Whether the computer at that address says that nobody listens there (ICMP's *port unreachable*).
pub(crate) fn nothing_listens(address: SocketAddr) -> bool {
    let refusal = || -> std::io::Result<()> {
        let from: SocketAddr = match address {
            SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = std::net::UdpSocket::bind(from)?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(REFUSAL_TIMEOUT))?;
        // A byte that is no datagram of ours: whoever is there takes no notice of it.
        socket.send(&[0])?;
        socket.recv(&mut [0; 1]).map(drop)
    };
    refusal().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}
