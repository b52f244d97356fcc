//! Devices and a hub in memory, under one false clock: real nodes, no waiting.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::{Seed, SigningKey};
use tenure_hal::simulated::{RamFlash, socket_at};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_hub::{FlashStorage, Hub};
use tenure_node::{Config, Door as _, Input, Moment, Node, Notice, Parts, Wake};
use tenure_rpc::{Endpoint, Event, NoResult, OutgoingCall};
use tenure_vm::Limits;
use tenure_wire::control::{Client as _, Enrol, LogLine};
use tenure_wire::directory::Enrolment;
use tenure_wire::host_call::HostError;
use tenure_wire::{Address, Capabilities, MachineId, Name, PublicKey};

use super::actor::{self, CALL};
use super::server::Servers;
use crate::device::process::roomy_kernel;
use crate::machine::install::{Terms, place};
use crate::reach::client::OwnerKeys;

/// Where the hub and the owner are; devices count up from there.
const HUB: Address = Address::Udp(socket_at(0));
const OWNER: Address = Address::Udp(socket_at(1));
const FIRST_DEVICE: u32 = 2;
/// How long a call may take, in the false time.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest step of the clock, and what one slice takes.
const STEP: Duration = Duration::from_millis(20);
const UNIX_S_AT_START: u64 = 1_800_000_000;

/// The most lines of the log that are kept; the oldest make room.
const LOG_LINES_MAX: usize = 100;

/// The outcome of a call: its result (`None` is null), or the error as the caller sees it.
pub(super) type CallResult = Result<Option<Vec<u8>>, String>;

/// A device.
struct Device {
    name: Name,
    node: Node<RamFlash>,
    address: Address,
}

/// Everything there is.
pub(super) struct World {
    now: Instant,
    devices: Vec<Device>,
    hub: Hub<FlashStorage<RamFlash>>,
    keys: OwnerKeys,
    owner: Endpoint<Address>,
    owner_machine: MachineId,
    /// The pretended machines: their names in the test file, their keys and devices.
    pretended: Vec<(String, PublicKey, usize)>,
    /// The machine that is tested: its name, its key, and the number of its device.
    tested: Option<(Name, PublicKey)>,
    /// What that one has logged since that was taken, the last line first.
    log: VecDeque<LogLine>,
    /// The pretended servers outside.
    servers: Servers,
    placements: u64,
}

fn flash(sector_count: u32) -> RamFlash {
    RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
}

impl World {
    /// A hub, and the device `name` without machines.
    pub(super) fn new(name: Name, servers: Servers) -> anyhow::Result<Self> {
        let now = Instant::BOOT;
        let signing_key = SigningKey::generate(&mut LinuxEntropy)?;
        let machine = Seed::from_bytes(&signing_key.to_bytes()).device_secret();
        let keys = OwnerKeys { signing_key, machine };
        let mut entropy = LinuxEntropy;
        let mut moment = hub_moment(now, &mut entropy);
        let config = tenure_hub::Config { devices_max: 16, ..tenure_hub::Config::default() };
        let storage = FlashStorage::open(flash(16), moment.entropy);
        let hub = storage.and_then(|storage| Hub::open(config, storage, &mut moment));
        let hub = hub.map_err(|error| anyhow!("{error}"))?;
        let mut owner = Endpoint::new(tenure_rpc::Config::large(), now, &mut LinuxEntropy)?;
        let owner_machine = owner.add_machine(keys.machine.clone())?;
        let (devices, pretended) = (Vec::new(), Vec::new());
        let mut world = Self {
            now,
            devices,
            hub,
            keys,
            owner,
            owner_machine,
            pretended,
            tested: None,
            log: VecDeque::new(),
            servers,
            placements: 0,
        };
        world.add_device(name)?;
        Ok(world)
    }

    /// Puts a pretended machine on a device, which is made if it isn't there.
    pub(super) fn pretend(
        &mut self,
        called: &str,
        device: &Name,
        package: &[u8],
    ) -> anyhow::Result<()> {
        let known = self.devices.iter().position(|known| known.name == *device);
        let index = match known {
            Some(index) => index,
            None => self.add_device(device.clone())?,
        };
        let key = self.install_on(index, package, actor::anybody())?;
        self.pretended.push((called.to_owned(), key, index));
        Ok(())
    }

    /// Puts the machine to be tested on the first device.
    pub(super) fn install(&mut self, package: &[u8], grants: Capabilities) -> anyhow::Result<()> {
        let key = self.install_on(0, package, grants)?;
        let name = tenure_package::Package::parse(package)?.manifest().name.clone();
        self.tested = Some((name, key));
        // Until the hub lists everybody.
        self.pass(Duration::from_secs(5));
        Ok(())
    }

    /// Takes the last lines that the machine which is tested has logged.
    pub(super) fn take_log(&mut self) -> Vec<LogLine> {
        self.log.drain(..).rev().collect()
    }

    /// Lets time pass, in which everybody does what is due.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// Calls the machine that is tested as its owner does.
    pub(super) fn call_as_owner(
        &mut self,
        function: &str,
        parameter: Option<&[u8]>,
    ) -> anyhow::Result<CallResult> {
        let (_, key) = self.tested.clone().context("no machine is installed")?;
        let result = self.call(0, &key, function, parameter.map(<[u8]>::to_vec))?;
        Ok(result.map_err(in_words))
    }

    /// Lets a pretended machine call the one that is tested.
    pub(super) fn call_as(
        &mut self,
        caller: &str,
        function: &str,
        parameter: Option<&[u8]>,
    ) -> anyhow::Result<CallResult> {
        let known = self.pretended.iter().find(|(called, _, _)| called == caller);
        let (_, key, index) = known.cloned().with_context(|| {
            format!("the caller `{caller}` is none of the machines in the test file")
        })?;
        let (name, _) = self.tested.clone().context("no machine is installed")?;
        let target = match index {
            0 => name.to_string(),
            _ => format!("{name}@{}", self.devices[0].name),
        };
        let lengths = [target.len() as u8, function.len() as u8, u8::from(parameter.is_some())];
        let order =
            [&lengths[..], target.as_bytes(), function.as_bytes(), parameter.unwrap_or_default()];
        let reply = self
            .call(index, &key, CALL, Some(order.concat()))?
            .map_err(|failure| anyhow!("the pretended machine `{caller}`: {failure}"))?;
        let reply = reply.unwrap_or_default();
        let (status, result) = reply.split_first_chunk().context("a reply without a status")?;
        let status = i32::from_le_bytes(*status);
        Ok(match HostError::from_code(status) {
            None => Ok(Some(result.to_vec())),
            Some(HostError::Null) => Ok(None),
            Some(error) => Err(error.to_string()),
        })
    }

    fn add_device(&mut self, name: Name) -> anyhow::Result<usize> {
        let index = self.devices.len();
        let mut config = Config::new(name.clone(), self.keys.owner());
        config.kernel = roomy_kernel();
        config.module = Limits::ample();
        config.rpc = tenure_rpc::Config::large();
        config.reaches = true;
        config.hub = Some(tenure_node::Hub { address: HUB, key: None });
        let parts = Parts { store: flash(128), code: flash(512), staging: flash(16) };
        let mut entropy = LinuxEntropy;
        let mut moment = moment(self.now, &mut entropy);
        let mut node =
            Node::boot(config, parts, &mut moment).map_err(|error| anyhow!("{error}"))?;
        let enrolment =
            Enrolment { device: name.clone(), device_key: node.device_key(), number: 1 };
        let signature = tenure_directory::enrol(&self.keys.signing_key, &enrolment);
        node.as_owner(&mut moment).enrol(Enrol { enrolment, signature })?;
        let address = Address::Udp(socket_at(FIRST_DEVICE + index as u32));
        self.devices.push(Device { name, node, address });
        Ok(index)
    }

    fn install_on(
        &mut self,
        index: usize,
        package: &[u8],
        grants: Capabilities,
    ) -> anyhow::Result<PublicKey> {
        self.placements += 1;
        let device = &mut self.devices[index];
        let terms = Terms { grants, ..Terms::default() };
        let key = device.node.device_key();
        let placement = place(&self.keys, key, package, &terms, self.placements)?;
        let mut entropy = LinuxEntropy;
        let status =
            device.node.install(&mut moment(self.now, &mut entropy), package, &placement)?;
        Ok(status.key)
    }

    /// Calls a machine with the owner's key and waits, in the false time.
    fn call(
        &mut self,
        index: usize,
        key: &PublicKey,
        function: &str,
        parameter: Option<Vec<u8>>,
    ) -> anyhow::Result<Result<Option<Vec<u8>>, NoResult>> {
        let deadline = self.now + PATIENCE;
        let call = OutgoingCall { function: function.to_owned(), parameter, deadline, attempts: 8 };
        let address = self.devices[index].address.clone();
        let handle = self
            .owner
            .call(self.now, &mut LinuxEntropy, &self.owner_machine, key, address, None, call)
            .map_err(|error| anyhow!("the call of `{function}`: {error}"))?;
        while self.now <= deadline + STEP {
            self.step();
            while let Some(event) = self.owner.event() {
                if let Event::CallDone { handle: done, result, .. } = event
                    && done == handle
                {
                    return Ok(result);
                }
            }
        }
        bail!("the call of `{function}` never ended")
    }

    /// One moment: everybody does what is due, and all datagrams arrive.
    fn step(&mut self) {
        self.now = self.now + STEP;
        for _ in 0..64 {
            let mut is_quiet = true;
            for index in 0..self.devices.len() {
                let mut entropy = LinuxEntropy;
                let device = &mut self.devices[index];
                let wake = device.node.poll(&mut moment(self.now, &mut entropy));
                is_quiet &= wake != Wake::Now;
                let from = device.address.clone();
                while let Some(notice) = device.node.notice() {
                    let Notice::Log(line) = notice else { continue };
                    if self.tested.as_ref().is_some_and(|(name, _)| *name == line.machine) {
                        self.log.truncate(LOG_LINES_MAX - 1);
                        self.log.push_front(line);
                    }
                }
                while let Some(visit) = device.node.visit() {
                    let visited = Input::Visited(self.servers.visit(visit));
                    device.node.take(&mut moment(self.now, &mut entropy), visited);
                    is_quiet = false;
                }
                while let Some((to, datagram)) = self.devices[index].node.transmit() {
                    self.deliver(&from, &to, &datagram);
                    is_quiet = false;
                }
            }
            let mut entropy = LinuxEntropy;
            self.hub.poll(&mut hub_moment(self.now, &mut entropy));
            while let Some((to, datagram)) = self.hub.transmit() {
                self.deliver(&HUB, &to, &datagram);
                is_quiet = false;
            }
            self.owner.poll(self.now, &mut LinuxEntropy);
            while let Some((to, datagram)) = self.owner.transmit() {
                self.deliver(&OWNER, &to, &datagram);
                is_quiet = false;
            }
            if is_quiet {
                break;
            }
        }
    }

    fn deliver(&mut self, from: &Address, to: &Address, datagram: &[u8]) {
        match to {
            to if *to == HUB => {
                let mut entropy = LinuxEntropy;
                let mut moment = hub_moment(self.now, &mut entropy);
                self.hub.receive(&mut moment, from.clone(), datagram);
            }
            to if *to == OWNER => {
                self.owner.receive(self.now, &mut LinuxEntropy, from.clone(), datagram);
            }
            to => {
                let mut entropy = LinuxEntropy;
                if let Some(device) = self.devices.iter_mut().find(|one| one.address == *to) {
                    let mut moment = moment(self.now, &mut entropy);
                    device.node.receive(&mut moment, from.clone(), datagram);
                }
            }
        }
    }
}

fn moment(now: Instant, entropy: &mut LinuxEntropy) -> Moment<'_> {
    Moment { now, unix_time: Some(unix_time(now)), entropy }
}

fn hub_moment(now: Instant, entropy: &mut LinuxEntropy) -> tenure_hub::Moment<'_> {
    tenure_hub::Moment { now, unix_time: unix_time(now), entropy }
}

fn unix_time(now: Instant) -> UnixTime {
    UnixTime { seconds: UNIX_S_AT_START + now.as_millis() / 1000 }
}

/// The words that a machine would be told, for what the owner is told.
fn in_words(reason: NoResult) -> String {
    reason.host_error().to_string()
}
