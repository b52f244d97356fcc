//! A device for tests: a kernel on RAM flash, machines written in wasm text.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_hal::simulated::RamFlash;
use tenure_hal::{Entropy, EntropyError, FlashGeometry, Instant, UnixTime};
use tenure_kernel::{
    CallId, Config, Draft, Effect, Extent, IncomingCall, InstallError, Installation, Kernel,
    MachineRecord, NativeParts, NoResult, Ran, Standing, Ticket, World, host_functions,
};
use tenure_store::{BaseValue, Store, ValueKind, base_bytes, write_base};
use tenure_vm::{Limits, translate_bound};
use tenure_wire::capability::PeerPattern;
use tenure_wire::host_call::HostError;
use tenure_wire::timer::PackageTimer;
use tenure_wire::{
    Audience, Budget, Capabilities, CodeKind, Digest, LogLevel, MachineId, Name, PublicKey, Share,
    Term, TopicPattern, VerifyingKey,
};

const STORE: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 32, program_bytes: 4 };
const CODE: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 128, program_bytes: 4 };

/// Imports and memory that test machines share; texts stand in the first kilobyte.
const PRELUDE: &str = r#"
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "parameter_length" (func $parameter_length (result i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "tree_set" (func $tree_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "tree_get" (func $tree_get (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "call" (func $call
    (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result_read (param i32 i32 i32) (result i32)))
  (import "tenure" "queue" (func $queue
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (import "tenure" "yield_now" (func $yield_now))
  (import "tenure" "random" (func $random (param i32 i32) (result i32)))
  (import "tenure" "tree_list" (func $tree_list (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "peers" (func $peers (param i32 i32 i32) (result i32)))
  (import "tenure" "raise_tier" (func $raise_tier (param i32 i32) (result i32)))
  (import "tenure" "callback_of" (func $callback_of (result i32)))
  (import "tenure" "budget_left" (func $budget_left (param i32) (result i32)))
  (import "tenure" "tree_delete" (func $tree_delete (param i32 i32) (result i32)))
  (import "tenure" "abort" (func $abort (param i32 i32)))
  (import "tenure" "fail" (func $fail))
  (import "tenure" "publish" (func $publish (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "subscribe" (func $subscribe (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "unsubscribe" (func $unsubscribe (param i32 i32) (result i32)))
  (import "tenure" "event_next" (func $event_next (param i32) (result i32)))
  (import "tenure" "event_topic" (func $event_topic (param i32 i32) (result i32)))
  (import "tenure" "event_read" (func $event_read (param i32 i32 i32) (result i32)))
  (import "tenure" "event_dropped" (func $event_dropped (result i32)))
  (memory (export "memory") 1)
  ;; Replies with the parameter as it came.
  (func $echo (local $length i32)
    (local.set $length (call $parameter_length))
    (if (i32.lt_s (local.get $length) (i32.const 0)) (then (return)))
    (drop (call $parameter_read (i32.const 0) (i32.const 4096) (local.get $length)))
    (drop (call $reply (i32.const 4096) (local.get $length))))
  ;; Replies with a number as one decimal digit, or a minus for what is below zero.
  (func $reply_digit (param $value i32)
    (i32.store8 (i32.const 2048)
      (select (i32.const 45) (i32.add (i32.const 48) (local.get $value))
        (i32.lt_s (local.get $value) (i32.const 0))))
    (drop (call $reply (i32.const 2048) (i32.const 1))))
"#;

/// Randomness that is none.
struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.iter_mut().for_each(|byte| {
            self.0 = self.0.wrapping_add(1);
            *byte = self.0;
        });
        Ok(())
    }
}

/// A device under test.
pub(crate) struct Device {
    pub(crate) kernel: Kernel<RamFlash>,
    pub(crate) now: Instant,
    pub(crate) log: Vec<String>,
    pub(crate) replies: BTreeMap<u64, Result<Option<Vec<u8>>, HostError>>,
    /// The failure of the last machine that answered, in its own words.
    pub(crate) words: Vec<u8>,
    /// The audience for the words of machines that are installed.
    pub(crate) errors: Audience,
    /// The least grave lines that their logs take.
    pub(crate) log_level: LogLevel,
    /// Effects that are neither a log line nor a reply.
    pub(crate) effects: Vec<Effect>,
    /// The tree that installed machines begin with.
    pub(crate) base: Vec<(String, String)>,
    /// The time of day at which the device booted, if it knows the time.
    pub(crate) booted_unix_s: Option<u64>,
    /// The imports of installed machines beside the usual, as wasm text.
    pub(crate) imports: &'static str,
    /// The tenant of machines that are installed.
    pub(crate) tenant: VerifyingKey,
    /// Whether machines that are installed ask for an engine, so that their wasm is kept.
    pub(crate) keeps_wasm: bool,
    /// The timers that packages bring along that are installed.
    pub(crate) package_timers: Vec<PackageTimer>,
    tickets: u64,
}

/// The source of an id here; the kernel doesn't care.
pub(crate) fn id_of(key: &PublicKey) -> MachineId {
    MachineId(key.0[..12].try_into().unwrap())
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn key(number: u8) -> PublicKey {
    PublicKey([number; 32])
}

/// To call anybody and be called by anybody, and all events.
fn open_grants() -> Capabilities {
    let anybody = vec![PeerPattern::Any];
    Capabilities {
        calls: anybody.clone(),
        callers: anybody,
        publish: vec![TopicPattern::All],
        subscribe: vec![TopicPattern::All],
        peripherals: vec![name("lamp")],
        ..Capabilities::default()
    }
}

impl Device {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let mut flash = RamFlash::new(STORE);
        Store::format(&mut flash).unwrap();
        Self::boot(flash, RamFlash::new(CODE), config)
    }

    pub(crate) fn boot(store: RamFlash, code: RamFlash, config: Config) -> Self {
        let (store, _) = Store::mount(store).unwrap();
        let kernel = Kernel::boot(store, code, config, Instant::BOOT, id_of).unwrap();
        Self {
            kernel,
            now: Instant::BOOT,
            log: Vec::new(),
            replies: BTreeMap::new(),
            words: Vec::new(),
            errors: Audience::default(),
            log_level: LogLevel::default(),
            effects: Vec::new(),
            base: vec![("born".into(), "yes".into())],
            booted_unix_s: None,
            imports: "",
            package_timers: Vec::new(),
            tenant: VerifyingKey([1; 32]),
            keeps_wasm: false,
            tickets: 0,
        }
    }

    /// Boots the device again from what its flash holds now, as after a loss of power.
    pub(crate) fn reboot(mut self) -> Self {
        let base = self.base.clone();
        let config = self.kernel.config().clone();
        let store = self.kernel.store().flash().clone();
        let code = self.kernel.code().flash_mut().clone();
        let [store, code] = [store, code].map(|mut flash| {
            flash.cut_power();
            flash.restore_power();
            flash
        });
        Self { base, ..Self::boot(store, code, config) }
    }

    /// Goes into deep sleep, in which `under_way` are the calls that something else carries on, and
    /// wakes after `span`.
    pub(crate) fn sleep(mut self, span: Duration, under_way: &[CallId]) -> Self {
        let asleep = self.kernel.fall_asleep().unwrap();
        let (now, replies) = (self.now + span, std::mem::take(&mut self.replies));
        let mut woken = self.reboot();
        woken.now = now;
        woken.replies = replies;
        woken.tickets = 1_000;
        woken.kernel.wake_up(&asleep, now, under_way).unwrap();
        woken
    }

    /// Installs a machine whose exported functions are all offered to others.
    pub(crate) fn install(&mut self, machine: &str, body: &str) -> MachineId {
        self.try_install(machine, body, 1, Budget::default()).unwrap()
    }

    /// With the right to call and to be called by anybody, to all topics, and to the lamp.
    pub(crate) fn try_install(
        &mut self,
        machine: &str,
        body: &str,
        placement: u64,
        budget: Budget,
    ) -> Result<MachineId, InstallError> {
        self.install_granted(machine, body, placement, budget, &open_grants())
    }

    pub(crate) fn install_granted(
        &mut self,
        machine: &str,
        body: &str,
        placement: u64,
        budget: Budget,
        grants: &Capabilities,
    ) -> Result<MachineId, InstallError> {
        self.install_leased(machine, body, placement, (budget, Share::default()), grants)
    }

    pub(crate) fn install_with_share(
        &mut self,
        machine: &str,
        body: &str,
        budget: Budget,
        share: Share,
    ) -> Result<MachineId, InstallError> {
        self.install_leased(machine, body, 1, (budget, share), &open_grants())
    }

    fn install_leased(
        &mut self,
        machine: &str,
        body: &str,
        placement: u64,
        (budget, share): (Budget, Share),
        grants: &Capabilities,
    ) -> Result<MachineId, InstallError> {
        let wasm = wat::parse_str(format!("(module {} {PRELUDE} {body})", self.imports)).unwrap();
        let digest = Digest([placement as u8; 32]);
        let mut image = Vec::new();
        let functions = host_functions();
        translate_bound(&wasm, &functions, &Limits::default(), &digest.0, &mut image).unwrap();
        let exports = body.split("(export \"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let exports: Vec<&str> = exports.collect();
        let code = (CodeKind::WebAssembly, &image[..], &exports[..]);
        let wasm = self.keeps_wasm.then(|| self.write_code(&wasm));
        self.install_code(machine, code, wasm, placement, (budget, share), grants)
    }

    fn write_code(&mut self, bytes: &[u8]) -> Extent {
        let extent = self.kernel.code().reserve(bytes.len() as u32).unwrap();
        let mut draft = Draft::new(extent);
        self.kernel.code().append(&mut draft, bytes).unwrap();
        self.kernel.code().finish(draft).unwrap()
    }

    /// Installs a machine that is a native binary.
    pub(crate) fn install_native(&mut self, machine: &str, binary: &NativeParts) -> MachineId {
        let exports: Vec<&str> = binary.exports.iter().map(|(name, _)| &**name).collect();
        let image = [&[1; 32], &binary.to_bytes().unwrap()[..]].concat();
        let lease = (Budget::default(), Share::default());
        let code = (binary.kind, &image[..], &exports[..]);
        self.install_code(machine, code, None, 1, lease, &open_grants()).unwrap()
    }

    fn install_code(
        &mut self,
        machine: &str,
        (code, image, exports): (CodeKind, &[u8], &[&str]),
        wasm: Option<Extent>,
        placement: u64,
        (budget, share): (Budget, Share),
        grants: &Capabilities,
    ) -> Result<MachineId, InstallError> {
        let image = self.write_code(image);
        let public_key = key(machine.as_bytes()[0]);
        let exports = exports.iter().filter(|export| !export.starts_with("on_"));
        let record = MachineRecord {
            name: name(machine),
            public_key,
            salt: [0; 16],
            package: Digest([placement as u8; 32]),
            package_name: name(machine),
            package_version: tenure_wire::Version { major: 1, minor: 0, patch: 0 },
            tenant: self.tenant,
            exports: exports.map(ToString::to_string).collect(),
            timers: self.package_timers.clone(),
            budget,
            share,
            grants: grants.clone(),
            errors: self.errors,
            log: self.log_level,
            term: Term::default(),
            placement,
            code,
            image,
            faster: wasm,
            base: Some(self.write_base()),
        };
        let id = id_of(&public_key);
        let installation = Installation { record: record.clone(), id };
        self.kernel.tenancy(self.now).install(installation).inspect_err(|_| {
            self.kernel.code().release_all(record.extents());
        })?;
        Ok(id)
    }

    fn write_base(&mut self) -> Extent {
        let mut values: Vec<_> = self
            .base
            .iter()
            .map(|(path, value)| BaseValue { path, kind: ValueKind::Text, bytes: value.as_bytes() })
            .collect();
        let code = self.kernel.code();
        let mut draft = Draft::new(code.reserve(base_bytes(&values) as u32).unwrap());
        write_base(&mut values, |bytes| code.append(&mut draft, bytes)).unwrap();
        code.finish(draft).unwrap()
    }

    /// Queues a call from outside; its reply will be found under the number given.
    pub(crate) fn deliver(
        &mut self,
        to: MachineId,
        function: &str,
        parameter: Option<&[u8]>,
    ) -> Result<u64, NoResult> {
        self.deliver_until(self.now + Duration::from_secs(60), to, function, parameter)
    }

    /// The same for a caller who isn't the device's owner; returns what it is told of a failure.
    pub(crate) fn words_for_stranger(&mut self, to: MachineId, function: &str) -> String {
        self.words.clear();
        let (caller, standing) = (Some(key(98)), Standing::Stranger);
        let (parameter, deadline) = (None, self.now + Duration::from_secs(60));
        let function = function.to_string();
        let call = IncomingCall { to, caller, standing, function, parameter, deadline };
        self.tickets += 1;
        self.kernel.deliver(self.now, call, Ticket(self.tickets)).unwrap();
        self.settle(1000);
        String::from_utf8(self.words.clone()).unwrap()
    }

    /// The same for a caller who waits until then.
    pub(crate) fn deliver_until(
        &mut self,
        deadline: Instant,
        to: MachineId,
        function: &str,
        parameter: Option<&[u8]>,
    ) -> Result<u64, NoResult> {
        self.tickets += 1;
        let parameter = parameter.map(<[u8]>::to_vec);
        let ticket = Ticket(self.tickets);
        let function = function.to_string();
        let (caller, standing) = (Some(key(99)), Standing::Owner);
        let call = IncomingCall { to, caller, standing, function, parameter, deadline };
        self.kernel.deliver(self.now, call, ticket)?;
        Ok(self.tickets)
    }

    /// One slice; nobody takes what follows from it.
    pub(crate) fn run_untaken(&mut self) -> Ran {
        let mut entropy = Counting(0);
        let since_boot_s = self.now.as_micros() / 1_000_000;
        let seconds = self.booted_unix_s.map(|booted| booted + since_boot_s);
        let unix_time = seconds.map(|seconds| UnixTime { seconds });
        let mut world = World { now: self.now, unix_time, entropy: &mut entropy };
        self.kernel.run(&mut world)
    }

    /// One slice, and what follows from it.
    pub(crate) fn step(&mut self) -> Ran {
        let ran = self.run_untaken();
        while let Some(effect) = self.kernel.effect() {
            match effect {
                Effect::Log(entry) => self.log.push(format!("{} {}", entry.machine, entry.message)),
                Effect::Reply { ticket, result, words } => {
                    self.words = words;
                    let result = result.map_err(|reason| reason.host_error());
                    assert!(self.replies.insert(ticket.0, result).is_none(), "answered twice");
                }
                effect => self.effects.push(effect),
            }
        }
        ran
    }

    /// Runs until nothing is ready, letting `slices` slices pass at most.
    pub(crate) fn settle(&mut self, slices: usize) {
        for _ in 0..slices {
            if self.step() != Ran::Slice {
                return;
            }
        }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Calls and runs until the answer is there.
    pub(crate) fn call(
        &mut self,
        to: MachineId,
        function: &str,
        parameter: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, HostError> {
        let ticket = self.deliver(to, function, parameter).unwrap();
        self.settle(1000);
        self.replies.remove(&ticket).expect("an answer")
    }

    pub(crate) fn logged(&self, text: &str) -> bool {
        self.log.iter().any(|line| line.contains(text))
    }
}

/// The reply of a machine with `$reply_digit` for an error.
pub(crate) fn digit(error: HostError) -> String {
    char::from(b'0' + u8::try_from(-error.code()).unwrap()).to_string()
}

/// The result of a call as text.
pub(crate) fn text(result: Result<Option<Vec<u8>>, HostError>) -> String {
    String::from_utf8(result.unwrap().expect("a result that isn't null")).unwrap()
}
