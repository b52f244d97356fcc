//! A device, and endpoints that speak to it as owners, strangers and hubs do.

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, machine_id};
use tenure_directory::enrol;
use tenure_hal::simulated::RamFlash;
use tenure_hal::{Entropy, EntropyError, FlashGeometry, Instant};
use tenure_node::{Config, Moment, Node, Notice, Owner, Parts, Wake};
use tenure_package::{CodeKind, Engine, Manifest, PackageBuilder, Placement, Version};
use tenure_rpc::{CallHandle, Endpoint, Event, Failure, IncomingCallHandle, OutgoingCall};
use tenure_wire::capability::PeerPattern;
use tenure_wire::directory::Enrolment;
use tenure_wire::{Address, Budget, Capabilities, Name, PublicKey, Share};

/// Where the device is.
const DEVICE: Address = Address::Simulated(0);
/// How far time goes on at a time.
const TICK: Duration = Duration::from_millis(5);

const PRELUDE: &str = r#"
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

/// A fixed sequence that passes for randomness.
struct Sequence(u64);

impl Entropy for Sequence {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
        Ok(())
    }
}

/// How a call ended.
type CallResult = Result<Option<Vec<u8>>, Failure>;

/// Somebody on the network with a key and an address.
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
    pub(crate) node: Node<RamFlash>,
    pub(crate) strangers: Vec<Stranger>,
    pub(crate) notices: Vec<Notice>,
    entropy: Sequence,
    owner: SigningKey,
}

fn flash(sector_count: u32) -> RamFlash {
    RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
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
        let parts = Parts { store: flash(32), code: flash(64), staging: flash(32) };
        let mut node = Node::boot(config, parts, &mut moment).unwrap();
        let enrolment = Enrolment { device: name, device_key: node.device_key(), number: 1 };
        let signature = enrol(&owner, &enrolment);
        node.enrol(enrolment, signature).unwrap();
        let (now, strangers, notices) = (Instant::BOOT, Vec::new(), Vec::new());
        let mut world = Self { now, node, strangers, notices, entropy, owner };
        world.add(owner_secret);
        world
    }

    /// Adds somebody; gives the number.
    pub(crate) fn stranger(&mut self) -> usize {
        let seed = Seed::from_bytes(&[self.strangers.len() as u8 + 100; 32]);
        self.add(seed.device_secret())
    }

    fn add(&mut self, secret: tenure_crypto::StaticSecret) -> usize {
        let number = self.strangers.len();
        let key = secret.public_key();
        let config = tenure_rpc::Config::large();
        let mut endpoint = Endpoint::new(config, self.now, &mut self.entropy).unwrap();
        let own = endpoint.add_machine(secret).unwrap();
        endpoint.identify_as(&own);
        let address = Address::Simulated(number as u32 + 1);
        let (incoming, done) = (Vec::new(), Vec::new());
        self.strangers.push(Stranger { endpoint, address, key, incoming, done });
        number
    }

    /// Installs a machine whose exported functions are all offered to others, and that may call and
    /// be called by anybody.
    pub(crate) fn install(&mut self, machine: &str, queue_length: u16, body: &str) -> PublicKey {
        let anybody = vec![PeerPattern::Any];
        let grants =
            Capabilities { calls: anybody.clone(), callers: anybody, ..Capabilities::default() };
        self.install_granted(machine, queue_length, body, grants)
    }

    /// As [`Self::install`], with these rights only.
    pub(crate) fn install_granted(
        &mut self,
        machine: &str,
        queue_length: u16,
        body: &str,
        grants: Capabilities,
    ) -> PublicKey {
        let wasm = wat::parse_str(format!("(module {PRELUDE} {body})")).unwrap();
        let name: Name = machine.parse().unwrap();
        let exports = body.split("(export \"").skip(1);
        let manifest = Manifest {
            name: name.clone(),
            version: Version { major: 1, minor: 0, patch: 0 },
            description: String::new(),
            exports: exports.map(|rest| rest.split('"').next().unwrap().to_string()).collect(),
            budget: Budget { queue_length, ..Budget::default() },
            capabilities: grants.clone(),
            code: CodeKind::WebAssembly,
            engine: Engine::default(),
        };
        let budget = manifest.budget;
        let tenant = SigningKey::from_bytes(&[9; 32]);
        let package = PackageBuilder::new(manifest, wasm).unwrap().sign(&tenant).unwrap();
        let placement = Placement {
            package: tenure_package::Package::parse(&package).unwrap().digest(),
            device: self.node.device_key(),
            machine: name,
            budget,
            share: Share::default(),
            grants,
            sequence: 1,
        };
        let placement = placement.sign(&self.owner).unwrap();
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        self.node.install(&mut moment, &package, &placement).unwrap().key
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
                Event::CallDone { handle, result } => self.done.push((handle, result)),
                _ => {}
            }
        }
    }
}
