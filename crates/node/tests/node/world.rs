//! A device, and endpoints that speak to it as owners, strangers and hubs do.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, machine_id};
use tenure_directory::enrol;
use tenure_hal::simulated::{RamFlash, Sequence, socket_at};
use tenure_hal::{Entropy, Flash, FlashError, FlashGeometry, Instant};
use tenure_node::{
    Config, Door as _, Input, Moment, Node, Notice, Owner, Parts, SleepError, Wake, unseal_store,
};
use tenure_package::{Renewal, SecretChange};
use tenure_rpc::{CallHandle, Endpoint, Event, IncomingCallHandle, NoResult, OutgoingCall};
use tenure_store::Store;
use tenure_wire::control::{
    Answer, Client as _, Enrol, Function, MachineStatus, Renew, decode_answer,
};
use tenure_wire::directory::{self, Enrolment, Registered};
use tenure_wire::{Address, Capabilities, Digest, Name, PublicKey, Term};

use crate::leases::{Lease, anybody};

/// Where the device is.
const DEVICE: Address = Address::Udp(socket_at(0));
/// How far time goes on at a time.
const TICK: Duration = Duration::from_millis(5);

pub(crate) const PRELUDE: &str = r#"
  (import "tenure" "parameter_length" (func $parameter_length (result i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "queue" (func $queue
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (import "tenure" "unix_time_s" (func $unix_time_s (result i64)))
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "function")
  (func $target (result i32)
    (call $parameter_read (i32.const 0) (i32.const 1024) (i32.const 128)))
"#;

/// How a call ended.
pub(crate) type CallResult = Result<Option<Vec<u8>>, NoResult>;

/// A person on the network with a key and an address.
pub(crate) struct Stranger {
    endpoint: Endpoint<Address>,
    address: Address,
    pub(crate) key: PublicKey,
    pub(crate) incoming: Vec<(IncomingCallHandle, String)>,
    done: Vec<(CallHandle, CallResult)>,
}

/// A device and whoever is around it.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) node: Node<WiredFlash>,
    pub(crate) strangers: Vec<Stranger>,
    pub(crate) notices: Vec<Notice>,
    entropy: Sequence,
    owner: SigningKey,
    config: Config,
    pub(crate) fuse: Fuse,
    digests: Vec<(String, Digest)>,
}

/// How many more programs and erases the device's power lasts for, if it is to fail.
pub(crate) type Fuse = Rc<Cell<Option<u64>>>;

/// A part of the device's flash. All parts hang on one fuse.
pub(crate) struct WiredFlash {
    flash: RamFlash,
    fuse: Fuse,
}

impl WiredFlash {
    pub(crate) fn new(sector_count: u32, fuse: &Fuse) -> Self {
        let geometry = FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 };
        Self { flash: RamFlash::new(geometry), fuse: fuse.clone() }
    }

    fn burn(&mut self) {
        match self.fuse.get() {
            Some(0) => self.flash.cut_power_after(0, 7),
            Some(left) => self.fuse.set(Some(left - 1)),
            None => {}
        }
    }
}

impl Flash for WiredFlash {
    fn geometry(&self) -> FlashGeometry {
        self.flash.geometry()
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        self.flash.read(offset, into)
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        self.burn();
        self.flash.program(offset, bytes)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        self.burn();
        self.flash.erase(sector)
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.flash.mapped()
    }
}

impl World {
    /// An enrolled device without a wall clock, whose owner is stranger 0.
    pub(crate) fn new(configure: impl FnOnce(&mut Config)) -> Self {
        let owner = SigningKey::from_bytes(&[7; 32]);
        let owner_secret = Seed::from_bytes(&owner.to_bytes()).device_secret();
        let name: Name = "attic".parse().unwrap();
        let keys =
            Owner { verifying_key: owner.verifying_key(), machine: owner_secret.public_key() };
        let mut config = Config::new(name.clone(), keys);
        configure(&mut config);
        let mut entropy = Sequence(1);
        let mut moment = Moment { now: Instant::BOOT, unix_time: None, entropy: &mut entropy };
        let fuse = Fuse::default();
        let parts = Parts {
            store: WiredFlash::new(32, &fuse),
            code: WiredFlash::new(64, &fuse),
            staging: WiredFlash::new(32, &fuse),
        };
        let mut node = Node::boot(config.clone(), parts, &mut moment).unwrap();
        let enrolment = Enrolment { device: name, device_key: node.device_key(), number: 1 };
        let signature = enrol(&owner, &enrolment);
        node.as_owner(&mut moment).enrol(Enrol { enrolment, signature }).unwrap();
        let (now, strangers, notices) = (Instant::BOOT, Vec::new(), Vec::new());
        let mut world = Self {
            now,
            node,
            strangers,
            notices,
            entropy,
            owner,
            config,
            fuse,
            digests: Vec::new(),
        };
        world.add(owner_secret);
        world
    }

    /// Adds somebody; gives the number.
    pub(crate) fn stranger(&mut self) -> usize {
        let seed = Seed::from_bytes(&[self.strangers.len() as u8 + 100; 32]);
        self.add(seed.device_secret())
    }

    /// Adds whoever holds that key; returns the number.
    pub(crate) fn add(&mut self, secret: tenure_crypto::StaticSecret) -> usize {
        let number = self.strangers.len();
        let key = secret.public_key();
        let config = tenure_rpc::Config::large();
        let mut endpoint = Endpoint::new(config, self.now, &mut self.entropy).unwrap();
        let own = endpoint.add_machine(secret).unwrap();
        endpoint.identify_as(&own);
        let address = Address::Udp(socket_at(number as u32 + 1));
        let (incoming, done) = (Vec::new(), Vec::new());
        self.strangers.push(Stranger { endpoint, address, key, incoming, done });
        number
    }

    /// Installs a machine whose exported functions are all offered to others, and that may call and
    /// be called by anybody.
    pub(crate) fn install(&mut self, machine: &str, queue_length: u16, body: &str) -> PublicKey {
        self.install_granted(machine, queue_length, body, anybody())
    }

    /// As [`Self::install`], with these rights only.
    pub(crate) fn install_granted(
        &mut self,
        machine: &str,
        queue_length: u16,
        body: &str,
        grants: Capabilities,
    ) -> PublicKey {
        let mut lease = Lease::of(machine, &format!("(module {PRELUDE} {body})"), grants);
        lease.budget.queue_length = queue_length;
        self.install_lease(lease)
    }

    pub(crate) fn install_lease(&mut self, lease: Lease) -> PublicKey {
        let machine = lease.machine.to_string();
        let signed = lease.sign(&self.owner, self.node.device_key());
        self.digests.push((machine, signed.digest));
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        self.node.install(&mut moment, &signed.package, &signed.placement).unwrap().key
    }

    /// Hands the device a package and a placement, and returns its answer.
    pub(crate) fn try_install(
        &mut self,
        package: &[u8],
        placement: &[u8],
    ) -> Answer<MachineStatus> {
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        self.node.install(&mut moment, package, placement)
    }

    /// The owner's signing key.
    pub(crate) fn owner(&self) -> SigningKey {
        self.owner.clone()
    }

    /// Answers what a hub is asked: registrations, by `unix_s`; lookups, by nothing found. Returns how many
    /// registrations there were.
    pub(crate) fn serve_as_hub(&mut self, hub: usize, unix_s: u64) -> usize {
        let incoming = std::mem::take(&mut self.strangers[hub].incoming);
        let mut registrations = 0;
        for (handle, function) in incoming {
            if function == directory::function::REGISTER {
                registrations += 1;
                let (refusal, devices_max, takes_touches) = (None, None, false);
                let answer = Registered { refusal, unix_s, devices_max, takes_touches };
                self.reply(hub, handle, Some(postcard::to_allocvec(&answer).unwrap()));
            } else {
                self.reply(hub, handle, None);
            }
        }
        registrations
    }

    /// Has a hub answer each call as `answer` says of its function; returns the functions.
    #[cfg(feature = "touches")]
    pub(crate) fn answer_calls(
        &mut self,
        hub: usize,
        mut answer: impl FnMut(&str) -> CallResult,
    ) -> Vec<String> {
        let now = self.now;
        let Stranger { endpoint, incoming, .. } = &mut self.strangers[hub];
        let calls = std::mem::take(incoming);
        for (handle, function) in &calls {
            endpoint.reply(now, *handle, answer(function));
        }
        calls.into_iter().map(|(_, function)| function).collect()
    }

    /// Lets a hub put off whoever calls; returns how many registrations it put off.
    #[cfg(feature = "hub-addresses")]
    pub(crate) fn put_off(&mut self, hub: usize, again_in: Duration) -> usize {
        let now = self.now;
        let Stranger { endpoint, incoming, .. } = &mut self.strangers[hub];
        let calls = std::mem::take(incoming);
        for (handle, _) in &calls {
            endpoint.reply(now, *handle, Err(NoResult::Deferred { again_in }));
        }
        calls.iter().filter(|(_, function)| function == directory::function::REGISTER).count()
    }

    /// Lets the board say for how long it will turn the device off.
    pub(crate) fn will_sleep_for(&mut self, span: Duration) {
        let until = self.now + span;
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        self.node.take(&mut moment, Input::WillSleepUntil(until));
    }

    /// Lets time pass while a stranger answers as the hub; returns how many registrations there were.
    pub(crate) fn pass_with_hub(&mut self, hub: usize, unix_s: u64, span: Duration) -> usize {
        let until = self.now + span;
        let mut registrations = 0;
        while self.now < until {
            self.tick();
            registrations += self.serve_as_hub(hub, unix_s);
        }
        registrations
    }

    /// Lets a stranger be somewhere else from now on.
    pub(crate) fn move_to(&mut self, stranger: usize, address: &str) {
        self.strangers[stranger].address = Address::Udp(address.parse().expect("an address"));
    }

    /// Lets two strangers change places on the network.
    pub(crate) fn swap_addresses(&mut self, one: usize, other: usize) {
        let address = self.strangers[one].address.clone();
        self.strangers[one].address = self.strangers[other].address.clone();
        self.strangers[other].address = address;
    }

    /// Lets time pass as a board does that wakes only when the device said it would, with nobody around;
    /// returns how often it woke.
    pub(crate) fn sleep_through(&mut self, span: Duration) -> u64 {
        let until = self.now + span;
        let mut wakes = 0;
        while self.now < until {
            wakes += 1;
            let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
            let wake = self.node.poll(&mut moment);
            while self.node.transmit().is_some() {}
            self.now = match wake {
                Wake::Now => self.now + Duration::from_micros(10),
                Wake::At(at) => at.min(until),
                Wake::Never => until,
            };
        }
        wakes
    }

    /// Gives a machine another term, by a renewal of that number.
    pub(crate) fn renewal(&self, machine: &str, term: Term, sequence: u64) -> Renew {
        let (device, machine) = (self.node.device_key(), machine.parse().unwrap());
        let renewal = Renewal { device, machine, term, sequence };
        Renew { renewal: renewal.sign(&self.owner).unwrap(), ends_now: false }
    }

    /// Turns the device off after it has fallen asleep, and on again after `span`.
    pub(crate) fn sleep(mut self, span: Duration) -> Self {
        self.fall_asleep().unwrap();
        self.off_for(span)
    }

    /// Lets the device write everything down; what it has to say then, arrives.
    pub(crate) fn fall_asleep(&mut self) -> Result<(), SleepError> {
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        self.node.fall_asleep(&mut moment)?;
        while let Some((to, datagram)) = self.node.transmit() {
            if let Some(there) = self.strangers.iter_mut().find(|one| one.address == to) {
                there.endpoint.receive(self.now, moment.entropy, DEVICE, &datagram);
            }
        }
        Ok(())
    }

    /// Turns the device off as it is, and on again after `span`; others go on meanwhile.
    pub(crate) fn off_for(self, span: Duration) -> Self {
        let until = self.now + span;
        self.off_until(until, until)
    }

    /// The same until the world's clock says `until`, when the device's says `now`.
    pub(crate) fn off_until(self, until: Instant, now: Instant) -> Self {
        let Self {
            node, mut strangers, notices, mut entropy, owner, config, fuse, digests, ..
        } = self;
        let mut parts = node.into_parts();
        for stranger in &mut strangers {
            stranger.attend(until, &mut entropy);
            while stranger.endpoint.transmit().is_some() {}
        }
        fuse.set(None);
        for wired in [&mut parts.store, &mut parts.code, &mut parts.staging] {
            wired.flash.cut_power();
            wired.flash.restore_power();
        }
        let mut moment = Moment { now, unix_time: None, entropy: &mut entropy };
        let node = Node::boot(config.clone(), parts, &mut moment).unwrap();
        Self { now, node, strangers, notices, entropy, owner, config, fuse, digests }
    }

    /// Turns the device off for good; returns its settings and its flash.
    pub(crate) fn off(self) -> (Config, [RamFlash; 3]) {
        let Parts { store, code, staging } = self.node.into_parts();
        (self.config, [store.flash, code.flash, staging.flash])
    }

    /// Turns the device off, changes the bytes of its store, and turns it on again.
    pub(crate) fn with_store_bytes(mut self, change: impl FnOnce(&mut [u8])) -> Self {
        let Self { node, .. } = self;
        let mut parts = node.into_parts();
        change(parts.store.flash.bytes_mut());
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        let node = Node::boot(self.config.clone(), parts, &mut moment).unwrap();
        Self { node, ..self }
    }

    /// Turns the device off, changes what its store holds, and turns it on again.
    pub(crate) fn with_store(mut self, change: impl FnOnce(&mut Store<RamFlash>)) -> Self {
        let Self { node, .. } = self;
        let mut parts = node.into_parts();
        let (mut store, _) = Store::mount(parts.store.flash).unwrap();
        unseal_store(&mut store).unwrap();
        change(&mut store);
        parts.store.flash = store.into_flash();
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        let node = Node::boot(self.config.clone(), parts, &mut moment).unwrap();
        Self { node, ..self }
    }

    /// Sets a secret of a tenant, by a number higher than the last.
    pub(crate) fn set_secret(
        &mut self,
        tenant: &SigningKey,
        name: &str,
        number: u64,
        value: &[u8],
    ) {
        let device = self.node.device_machine();
        let place = (name.parse().unwrap(), number);
        let (key, entropy) = (self.node.device_key(), &mut self.entropy);
        let change =
            SecretChange::set(entropy, &tenant.verifying_key(), (key, &device), place, value);
        let change = change.unwrap().sign(tenant).unwrap();
        let answer = self.call(0, &device, Function::secret_change.name(), Some(&change));
        decode_answer::<()>(&answer.unwrap().unwrap()).unwrap();
    }

    /// Takes the device apart: what its store, its code and its staging flash hold.
    pub(crate) fn into_flash(self) -> [Vec<u8>; 3] {
        let Parts { store, code, staging } = self.node.into_parts();
        [store, code, staging].map(|part| part.flash.mapped().unwrap().to_vec())
    }

    /// Whether a machine's log had such a line.
    pub(crate) fn logged(&self, text: &str) -> usize {
        let is_it =
            |notice: &&Notice| matches!(notice, Notice::Log(line) if line.message.contains(text));
        self.notices.iter().filter(is_it).count()
    }

    /// The digest of the package that a machine was made from.
    pub(crate) fn digest_of(&self, machine: &str) -> Digest {
        self.digests.iter().find(|(name, _)| name == machine).unwrap().1
    }

    /// Lets a stranger call a machine of the device.
    pub(crate) fn start_call(
        &mut self,
        stranger: usize,
        to: &PublicKey,
        function: &str,
        parameter: Option<&[u8]>,
        timeout: Duration,
    ) -> CallHandle {
        let from = &mut self.strangers[stranger];
        let call = OutgoingCall {
            function: function.to_string(),
            parameter: parameter.map(<[u8]>::to_vec),
            deadline: self.now + timeout,
            attempts: 20,
        };
        let own = machine_id(&from.key);
        let (now, entropy) = (self.now, &mut self.entropy);
        from.endpoint.call(now, entropy, &own, to, DEVICE, None, call).unwrap()
    }

    /// Calls and waits for the result.
    pub(crate) fn call(
        &mut self,
        stranger: usize,
        to: &PublicKey,
        function: &str,
        parameter: Option<&[u8]>,
    ) -> CallResult {
        let handle = self.start_call(stranger, to, function, parameter, Duration::from_secs(10));
        loop {
            self.tick();
            if let Some(result) = self.take_result(stranger, handle) {
                return result;
            }
        }
    }

    /// The result of a call, if it is over.
    pub(crate) fn take_result(
        &mut self,
        stranger: usize,
        handle: CallHandle,
    ) -> Option<CallResult> {
        let done = &mut self.strangers[stranger].done;
        let position = done.iter().position(|(one, _)| *one == handle)?;
        Some(done.swap_remove(position).1)
    }

    /// Answers a call that a stranger got.
    pub(crate) fn reply(
        &mut self,
        stranger: usize,
        handle: IncomingCallHandle,
        value: Option<Vec<u8>>,
    ) {
        self.strangers[stranger].endpoint.reply(self.now, handle, Ok(value));
    }

    /// Hands the device something in.
    #[cfg(feature = "hub-addresses")]
    pub(crate) fn take(&mut self, input: Input<'_>) {
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        self.node.take(&mut moment, input);
    }

    /// Lets time pass at once, and then does what is due.
    pub(crate) fn skip(&mut self, span: Duration) {
        self.now = self.now + span;
        self.tick();
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.tick();
        }
    }

    /// One moment: everybody does what is due, and all datagrams arrive.
    pub(crate) fn tick(&mut self) {
        self.now = self.now + TICK;
        let now = self.now;
        let mut moment = Moment { now, unix_time: None, entropy: &mut self.entropy };
        for _ in 0..20 {
            let mut quiet = self.node.poll(&mut moment) != Wake::Now;
            while let Some((to, datagram)) = self.node.transmit() {
                let there = self.strangers.iter_mut().find(|one| one.address == to);
                if let Some(there) = there {
                    there.endpoint.receive(now, moment.entropy, DEVICE, &datagram);
                }
                quiet = false;
            }
            for stranger in &mut self.strangers {
                stranger.attend(now, moment.entropy);
                while let Some((_, datagram)) = stranger.endpoint.transmit() {
                    self.node.receive(&mut moment, stranger.address.clone(), &datagram);
                    quiet = false;
                }
            }
            if quiet {
                break;
            }
        }
        while let Some(notice) = self.node.notice() {
            self.notices.push(notice);
        }
    }
}

impl Stranger {
    fn attend(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        self.endpoint.poll(now, entropy);
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::IncomingCall { handle, function, .. } => {
                    self.incoming.push((handle, function));
                }
                Event::CallDone { handle, result, .. } => self.done.push((handle, result)),
                _ => {}
            }
        }
    }
}
