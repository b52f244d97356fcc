//! A place in the world: a device or the hub, with its flash, on or off.

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey};
use tenure_hal::simulated::{Random, socket_at};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_hub::{FlashStorage, Hub};
use tenure_node::{
    Config, Door, Input, MeshStack, Moment, Node, Notice, Owner, Parts, Taken, Wake,
};
use tenure_package::Package;
use tenure_protocols::network_key::{NetworkKey, invite};
use tenure_wire::control::{Client as _, Enrol, Join};
use tenure_wire::directory::Enrolment;
use tenure_wire::{Address, MachineId, PublicKey, Term, VerifyingKey};

use crate::clock::Clock;
use crate::flash::{Device, Partition};
use crate::guests;
use crate::scenario::{DevicePlan, Scenario, SessionsPlan};

/// The flash of each part but the store, in sectors.
const CODE_SECTORS: u32 = 48;
const STAGING_SECTORS: u32 = 4;
/// The hub's flash, in sectors.
const HUB_SECTORS: u32 = 32;
const SECTOR_BYTES: u32 = 4096;
/// The wall clock when the world begins.
const UNIX_S_AT_START: u64 = 1_800_000_000;

/// Where the hub is.
pub(crate) const HUB: usize = 0;

/// Keys of the devices' owner and of the machines' author.
pub(crate) struct Keys {
    /// The owner's, for signing.
    pub owner: SigningKey,
    /// The owner's, as devices know them.
    pub known: Owner,
    /// The tenant's.
    pub tenant: SigningKey,
    /// The key of the owner's mesh, if that is how devices reach each other, and not by the hub.
    pub network: Option<NetworkKey>,
}

impl Keys {
    /// The keys that `random` gives.
    pub(crate) fn draw(random: &mut Random) -> Self {
        let mut seed = || Seed::generate(random).expect("this source never fails");
        let (owner, tenant) = (seed(), seed());
        let signing = owner.device_signing_key();
        let known = Owner {
            verifying_key: signing.verifying_key(),
            machine: owner.device_secret().public_key(),
        };
        Self { owner: signing, known, tenant: tenant.device_signing_key(), network: None }
    }

    /// The same with a network's key, which `random` gives.
    pub(crate) fn with_network(mut self, random: &mut Random) -> Self {
        self.network = Some(NetworkKey::generate(random).expect("this source never fails"));
        self
    }
}

/// A device or the hub.
pub(crate) struct Place {
    /// Its number, which is its address.
    pub number: usize,
    /// The device's flash.
    pub flash: Device,
    /// Whether it sleeps.
    pub asleep: bool,
    /// The node or the hub, while the device is on.
    pub running: Option<Running>,
    /// Counts from when it was switched on last.
    pub clock: Clock,
    /// Goes up whenever its next poll is planned anew, or it is switched off.
    pub plan: u64,
    /// When its next poll is, in microseconds of the world.
    pub poll_us: Option<u64>,
    /// Until when its processor is busy with a slice.
    pub busy_us: u64,
    /// Which of its machines are installed.
    pub installed: Vec<bool>,
    /// The number of the last placement that was signed for it.
    pub placements: u64,
    random: Random,
}

/// The program of a place that is on.
pub(crate) enum Running {
    /// The hub.
    Hub(Box<Hub<FlashStorage<Partition>>>),
    /// A device.
    Device(Box<Node<Partition>>),
}

/// The result of a poll.
pub(crate) enum Polled {
    /// More to do after a slice.
    Slice,
    /// Nothing to do until then, in microseconds of the world.
    At(u64),
    /// Nothing to do.
    Idle,
}

/// The identity of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its own key.
    pub device: Option<VerifyingKey>,
    /// The key of its own machine, or the hub's.
    pub machine: PublicKey,
}

impl Place {
    /// A place that was never switched on, with blank flash.
    pub(crate) fn new(number: usize, plan: Option<&DevicePlan>, random: Random) -> Self {
        let (store_sectors, program_bytes, machines) = match plan {
            Some(plan) => (plan.store_sectors, plan.program_bytes, plan.machines.len()),
            None => (HUB_SECTORS, 4, 0),
        };
        let sector_count = store_sectors + plan.map_or(0, |_| CODE_SECTORS + STAGING_SECTORS);
        let geometry = FlashGeometry { sector_bytes: SECTOR_BYTES, sector_count, program_bytes };
        Self {
            number,
            flash: Device::new(geometry),
            asleep: false,
            running: None,
            clock: Clock::default(),
            plan: 0,
            poll_us: None,
            busy_us: 0,
            installed: vec![false; machines],
            placements: 0,
            random,
        }
    }

    /// Switches it on and gives who it is.
    ///
    /// # Errors
    /// Why it doesn't start.
    pub(crate) fn boot(
        &mut self,
        now_us: u64,
        scenario: &Scenario,
        keys: &Keys,
    ) -> Result<Identity, String> {
        // A clock that runs on through a sleep counts from the start before it.
        if !core::mem::take(&mut self.asleep) {
            self.clock.booted_us = now_us;
        }
        self.busy_us = now_us;
        let Some(plan) = scenario.devices.get(self.number.wrapping_sub(1)) else {
            return self.boot_hub(now_us);
        };
        let store = self.flash.partition(0, plan.store_sectors);
        let code = self.flash.partition(plan.store_sectors, CODE_SECTORS);
        let staging = self.flash.partition(plan.store_sectors + CODE_SECTORS, STAGING_SECTORS);
        let name = plan.name.parse().map_err(|_| "the device's name".to_string())?;
        let mut config = Config::new(name, keys.known);
        config.kernel.slice_fuel = scenario.slice_fuel;
        config.record_lifetime = scenario.record_lifetime;
        if let Some(sessions) = &scenario.sessions {
            config.rpc = sessions_of(sessions);
        }
        config.sleep = plan.sleep;
        config.records_max = plan.records_max.unwrap_or(config.records_max);
        if keys.network.is_none() {
            let hub = Address::Udp(socket_at(HUB as u32));
            config.hub = Some(tenure_node::Hub { address: hub, key: None });
        }
        let mut moment = self.moment(now_us, plan.has_clock);
        let parts = Parts { store, code, staging };
        let mut node = Node::boot(config, parts, &mut moment).map_err(|error| error.to_string())?;
        for peripheral in &plan.peripherals {
            node.attach(moment.now, peripheral.driver()).map_err(|error| error.to_string())?;
        }
        if !node.is_enrolled() {
            let device = node.name().clone();
            let enrolment = Enrolment { device, device_key: node.device_key(), number: 1 };
            let signature = tenure_directory::enrol(&keys.owner, &enrolment);
            let enrol = Enrol { enrolment, signature };
            node.as_owner(&mut moment).enrol(enrol).map_err(|error| error.to_string())?;
        }
        if let Some(network) = keys.network.as_ref().filter(|_| node.mesh_stack().is_none()) {
            let device = node.device_machine();
            let invitation = invite(&keys.owner, &device, 1, network, &mut self.random)
                .map_err(|error| error.to_string())?;
            let mut moment = self.moment(now_us, plan.has_clock);
            let joined = node.as_owner(&mut moment).join(Join { invitation });
            joined.map_err(|error| error.to_string())?;
        }
        let identity = Identity { device: Some(node.device_key()), machine: node.device_machine() };
        self.running = Some(Running::Device(Box::new(node)));
        Ok(identity)
    }

    fn boot_hub(&mut self, now_us: u64) -> Result<Identity, String> {
        let flash = self.flash.partition(0, HUB_SECTORS);
        let rpc = tenure_rpc::Config {
            handshakes_per_second: 50,
            handshakes_per_second_max: 200,
            ..tenure_rpc::Config::default()
        };
        let config = tenure_hub::Config { devices_max: 64, rpc, ..Default::default() };
        let mut moment = tenure_hub::Moment {
            now: Instant::BOOT,
            unix_time: unix_time(now_us),
            entropy: &mut self.random,
        };
        let storage = FlashStorage::open(flash, moment.entropy);
        let hub = storage.and_then(|storage| Hub::open(config, storage, &mut moment));
        let hub = hub.map_err(|error| error.to_string())?;
        let identity = Identity { device: None, machine: hub.key() };
        self.running = Some(Running::Hub(Box::new(hub)));
        Ok(identity)
    }

    /// Puts machine number `index` on the device, or puts it there anew.
    ///
    /// # Errors
    /// Why the device refuses.
    pub(crate) fn install(
        &mut self,
        now_us: u64,
        plan: &DevicePlan,
        index: usize,
        keys: &Keys,
    ) -> Result<MachineId, String> {
        let machine = &plan.machines[index];
        let bytes = guests::package(&machine.name, &machine.role, &keys.tenant);
        let package = Package::parse(&bytes).map_err(|error| error.to_string())?;
        self.placements += 1;
        let sequence = self.placements;
        let mut running = self.running.take();
        let Some(Running::Device(node)) = &mut running else {
            self.running = running;
            return Err("the device is off".to_string());
        };
        let placement = guests::placement(&package, node.device_key(), Term::default(), sequence);
        let placement = placement.sign(&keys.owner).map_err(|error| error.to_string())?;
        let mut moment = self.moment(now_us, plan.has_clock);
        let installed = node.install(&mut moment, &bytes, &placement);
        self.running = running;
        installed.map(|status| status.id).map_err(|error| error.to_string())
    }

    /// Lets the device write down what it does, to sleep for `span_us` if it didn't choose itself for how
    /// long; `false` if it can't. What it says then is to be sent before it is turned off.
    pub(crate) fn fall_asleep(
        &mut self,
        now_us: u64,
        has_clock: bool,
        span_us: Option<u64>,
    ) -> bool {
        let mut running = self.running.take();
        self.asleep = match &mut running {
            Some(Running::Device(node)) => {
                let mut moment = self.moment(now_us, has_clock);
                if let Some(span_us) = span_us {
                    let until = moment.now + Duration::from_micros(span_us);
                    node.take(&mut moment, Input::WillSleepUntil(until));
                }
                node.fall_asleep(&mut moment).is_ok()
            }
            _ => false,
        };
        self.running = running;
        self.asleep
    }

    /// The device that runs here, if one does.
    pub(crate) fn node(&mut self) -> Option<&mut Node<Partition>> {
        match &mut self.running {
            Some(Running::Device(node)) => Some(node),
            _ => None,
        }
    }

    /// Hands the device that runs here an input that doesn't ask for the wall clock.
    pub(crate) fn take(&mut self, now: Instant, input: Input<'_>) -> Option<Taken> {
        let Some(Running::Device(node)) = &mut self.running else { return None };
        Some(node.take(&mut Moment { now, unix_time: None, entropy: &mut self.random }, input))
    }

    /// The mesh's stack of the device that runs here, if it has joined one.
    pub(crate) fn mesh(&self) -> Option<&MeshStack> {
        match &self.running {
            Some(Running::Device(node)) => node.mesh_stack(),
            _ => None,
        }
    }

    /// Whether the device that runs here has gone on where it was before a sleep.
    pub(crate) fn has_slept(&self) -> bool {
        matches!(&self.running, Some(Running::Device(node)) if node.slept().is_some())
    }

    /// Hands a datagram to what runs here.
    pub(crate) fn receive(&mut self, now_us: u64, has_clock: bool, from: usize, datagram: &[u8]) {
        let from = Address::Udp(socket_at(from as u32));
        let mut running = self.running.take();
        match &mut running {
            None => {}
            Some(Running::Hub(hub)) => {
                hub.receive(&mut self.hub_moment(now_us), from, datagram);
            }
            Some(Running::Device(node)) => {
                node.receive(&mut self.moment(now_us, has_clock), from, datagram);
            }
        }
        self.running = running;
    }

    /// Lets what runs here do what is due.
    pub(crate) fn poll(&mut self, now_us: u64, has_clock: bool) -> Polled {
        let mut running = self.running.take();
        let polled = match &mut running {
            None => Polled::Idle,
            Some(Running::Hub(hub)) => {
                hub.poll(&mut self.hub_moment(now_us));
                hub.poll_at().map_or(Polled::Idle, |at| Polled::At(self.clock.world_us(at)))
            }
            Some(Running::Device(node)) => match node.poll(&mut self.moment(now_us, has_clock)) {
                Wake::Now => Polled::Slice,
                Wake::At(at) => Polled::At(self.clock.world_us(at)),
                Wake::Never => Polled::Idle,
            },
        };
        self.running = running;
        polled
    }

    /// The next datagram that it sends.
    pub(crate) fn transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        match self.running.as_mut()? {
            Running::Hub(hub) => hub.transmit(),
            Running::Device(node) => node.transmit(),
        }
    }

    /// The next thing that it shows.
    pub(crate) fn notice(&mut self) -> Option<Shown> {
        match self.running.as_mut()? {
            Running::Hub(hub) => hub.notice().map(|notice| Shown::Other(format!("{notice:?}"))),
            Running::Device(node) => node.notice().map(|notice| match notice {
                Notice::Log(line) => Shown::Log(line.machine.to_string(), line.message),
                notice => Shown::Other(format!("{notice:?}")),
            }),
        }
    }

    fn moment(&mut self, now_us: u64, has_clock: bool) -> Moment<'_> {
        Moment {
            now: self.clock.local(now_us),
            unix_time: has_clock.then(|| unix_time(now_us)),
            entropy: &mut self.random,
        }
    }

    fn hub_moment(&mut self, now_us: u64) -> tenure_hub::Moment<'_> {
        tenure_hub::Moment {
            now: self.clock.local(now_us),
            unix_time: unix_time(now_us),
            entropy: &mut self.random,
        }
    }
}

/// An output of a place that a checker or a reader sees.
pub(crate) enum Shown {
    /// A machine's log line.
    Log(String, String),
    /// Anything else, in words.
    Other(String),
}

fn sessions_of(plan: &SessionsPlan) -> tenure_rpc::Config {
    tenure_rpc::Config {
        sessions_max: plan.sessions_max,
        half_open_max: plan.sessions_max / 2,
        callers_max: plan.callers_max,
        running_max: plan.callers_max - 1,
        running_per_caller_max: 2,
        remembered_per_caller_max: 4,
        accepted_initiations_max: plan.accepted_initiations_max,
        rekey_after: plan.rekey_after,
        session_lifetime: plan.rekey_after * 2,
        ..tenure_rpc::Config::default()
    }
}

fn unix_time(now_us: u64) -> UnixTime {
    UnixTime { seconds: UNIX_S_AT_START + now_us / 1_000_000 }
}
