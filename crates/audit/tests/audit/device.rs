//! A device for tests: a kernel on RAM flash whose machines are written in wasm text, which keeps a machine's journal,
//! chains it and signs receipts as a node does.

use std::time::Duration;

use tenure_audit::Code;
use tenure_crypto::{SigningKey, sha256};
use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_kernel::{
    Config, Draft, Effect, Extent, IncomingCall, Installation, Kernel, MachineJournals,
    MachineRecord, Ran, Standing, Ticket, World, host_functions,
};
use tenure_package::{
    Commitment, Journal, JournalHead, NO_PAGES, NO_RECEIPT, Receipt, digest_of_receipt,
};
use tenure_store::Store;
use tenure_vm::{Limits, translate_bound};
use tenure_wire::capability::PeerPattern;
use tenure_wire::usage::Usage;
use tenure_wire::{
    Audience, Budget, Capabilities, CodeKind, Digest, LogLevel, MachineId, PublicKey, Share, Term,
    Topic, TopicPattern, VerifyingKey, Version,
};

const STORE: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 64, program_bytes: 4 };
const CODE: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 128, program_bytes: 4 };

/// The fuel that replays may take.
pub(crate) const FUEL_MAX: u64 = 1 << 32;

/// Imports and memory that test machines share.
const PRELUDE: &str = r#"
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "uptime_us" (func $uptime_us (result i64)))
  (import "tenure" "unix_time_s" (func $unix_time_s (result i64)))
  (import "tenure" "caller" (func $caller (param i32 i32) (result i32)))
  (import "tenure" "parameter_length" (func $parameter_length (result i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "tree_set" (func $tree_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "tree_get" (func $tree_get (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "tree_delete" (func $tree_delete (param i32 i32) (result i32)))
  (import "tenure" "tree_list" (func $tree_list (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result_read (param i32 i32 i32) (result i32)))
  (import "tenure" "queue" (func $queue
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (import "tenure" "yield_now" (func $yield_now))
  (import "tenure" "random" (func $random (param i32 i32) (result i32)))
  (import "tenure" "peers" (func $peers (param i32 i32 i32) (result i32)))
  (import "tenure" "budget_left" (func $budget_left (param i32) (result i32)))
  (import "tenure" "callback_of" (func $callback_of (result i32)))
  (import "tenure" "timer_after" (func $timer_after (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "publish" (func $publish (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "subscribe" (func $subscribe (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "event_next" (func $event_next (param i32) (result i32)))
  (import "tenure" "event_topic" (func $event_topic (param i32 i32) (result i32)))
  (import "tenure" "event_read" (func $event_read (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
"#;

/// A device under test, with one machine whose journal it keeps, and perhaps others.
pub(crate) struct Device {
    pub(crate) kernel: Kernel<RamFlash>,
    pub(crate) now: Instant,
    /// Lines of the journaled machine's log.
    pub(crate) log: Vec<String>,
    pub(crate) key: SigningKey,
    pub(crate) journal: Journal,
    pub(crate) receipts: Vec<Vec<u8>>,
    machine: Option<MachineId>,
    pub(crate) wasm: Vec<u8>,
    placement: u64,
    entropy: Sequence,
    tickets: u64,
    counted_from: Instant,
    began: Option<Digest>,
}

fn id_of(key: &PublicKey) -> MachineId {
    MachineId(key.0[..12].try_into().unwrap())
}

/// The code of a machine of that wasm.
pub(crate) fn code_of(wasm: &[u8]) -> Code<'_> {
    Code {
        package: sha256(&[wasm]),
        version: Version { major: 1, minor: 0, patch: 0 },
        wasm,
        exports: Vec::new(),
        tree: Vec::new(),
        code_bytes: wasm.len() as u64,
    }
}

impl Device {
    pub(crate) fn new(slice_fuel: u64) -> Self {
        let mut flash = RamFlash::new(STORE);
        Store::format(&mut flash).unwrap();
        let (store, _) = Store::mount(flash).unwrap();
        let config = Config {
            slice_fuel,
            effects_max: 4096,
            log_bytes_per_second: 1 << 30,
            ..Config::default()
        };
        let kernel =
            Kernel::boot(store, RamFlash::new(CODE), config, Instant::BOOT, id_of).unwrap();
        let key = SigningKey::from_bytes(&[3; 32]);
        let journal = Journal {
            device: key.verifying_key(),
            machine: MachineId([0; 12]),
            previous: NO_PAGES,
            pages: Vec::new(),
            head: Vec::new(),
        };
        Self {
            kernel,
            now: Instant::BOOT,
            log: Vec::new(),
            key,
            journal,
            receipts: Vec::new(),
            machine: None,
            wasm: Vec::new(),
            placement: 0,
            entropy: Sequence(7),
            tickets: 0,
            counted_from: Instant::BOOT,
            began: None,
        }
    }

    /// Installs a machine of that body, which may do anything.
    pub(crate) fn install(&mut self, name: &str, body: &str, budget: Budget) -> MachineId {
        let wasm = wat::parse_str(format!("(module {PRELUDE} {body})")).unwrap();
        let package = sha256(&[&wasm]);
        let mut image = Vec::new();
        let functions = host_functions();
        translate_bound(&wasm, &functions, &Limits::default(), &package.0, &mut image).unwrap();
        let exports = body.split("(export \"").skip(1);
        let exports = exports.map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
        self.placement += 1;
        let public_key = PublicKey([name.as_bytes()[0]; 32]);
        let anybody = vec![PeerPattern::Any];
        let record = MachineRecord {
            name: name.parse().unwrap(),
            public_key,
            salt: [0; 16],
            package,
            package_name: name.parse().unwrap(),
            package_version: Version { major: 1, minor: 0, patch: 0 },
            tenant: VerifyingKey([1; 32]),
            exports,
            timers: Vec::new(),
            budget,
            share: Share::default(),
            grants: Capabilities {
                calls: anybody.clone(),
                callers: anybody,
                publish: vec![TopicPattern::All],
                subscribe: vec![TopicPattern::All],
                ..Capabilities::default()
            },
            errors: Audience::default(),
            log: LogLevel::default(),
            term: Term::default(),
            placement: self.placement,
            code: CodeKind::WebAssembly,
            image: self.keep(&image),
            faster: None,
            base: None,
        };
        let id = id_of(&public_key);
        self.kernel.tenancy(self.now).install(Installation { record, id }).unwrap();
        self.wasm = wasm;
        id
    }

    fn keep(&mut self, bytes: &[u8]) -> Extent {
        let extent = self.kernel.code().reserve(bytes.len() as u32).unwrap();
        let mut draft = Draft::new(extent);
        self.kernel.code().append(&mut draft, bytes).unwrap();
        self.kernel.code().finish(draft).unwrap()
    }

    /// Installs the machine whose journal is kept from now on.
    pub(crate) fn install_journaled(&mut self, body: &str, budget: Budget) -> MachineId {
        let id = self.install("meter", body, budget);
        assert!(MachineJournals::of(&mut self.kernel).keep(id, 0));
        (self.machine, self.journal.machine) = (Some(id), id);
        id
    }

    /// Puts other code, or the same, in the place of the machine whose journal is kept, which goes on.
    pub(crate) fn update(&mut self, body: &str, budget: Budget) {
        let id = self.install("meter", body, budget);
        self.take_pages();
        assert!(MachineJournals::of(&mut self.kernel).keep(id, self.journal.pages.len() as u64));
    }

    /// The code of the machine that was installed last.
    pub(crate) fn code(&self) -> Code<'_> {
        code_of(&self.wasm)
    }

    /// Calls a function; nobody asks for the result.
    pub(crate) fn deliver(&mut self, to: MachineId, function: &str, parameter: Option<&[u8]>) {
        self.tickets += 1;
        let call = IncomingCall {
            to,
            caller: Some(PublicKey([99; 32])),
            standing: Standing::Owner,
            function: function.to_owned(),
            parameter: parameter.map(<[u8]>::to_vec),
            deadline: self.now + Duration::from_secs(60),
        };
        // A queue that is full, or a machine that is stopped, is no matter.
        let _ = self.kernel.deliver(self.now, call, Ticket(self.tickets));
    }

    pub(crate) fn publish(&mut self, topic: &str, payload: &[u8]) {
        let topic: Topic = topic.parse().unwrap();
        self.kernel.publish(&topic, payload).unwrap();
    }

    /// Runs until nothing is ready, for so many turns at most.
    pub(crate) fn settle(&mut self, turns: usize) {
        for _ in 0..turns {
            let unix_time =
                Some(UnixTime { seconds: 1_800_000_000 + self.now.as_micros() / 1_000_000 });
            let mut world = World { now: self.now, unix_time, entropy: &mut self.entropy };
            let ran = self.kernel.run(&mut world);
            self.now = self.now + Duration::from_micros(137);
            while let Some(effect) = self.kernel.effect() {
                match effect {
                    Effect::Log(entry) if entry.machine.as_str() == "meter" => {
                        self.log.push(entry.message);
                    }
                    Effect::Resolve { id, .. } | Effect::Peers { id } => {
                        self.kernel.complete(self.now, id, Ok(Some(vec![5; 64])));
                    }
                    _ => {}
                }
            }
            self.take_pages();
            if ran != Ran::Slice {
                return;
            }
        }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    fn take_pages(&mut self) {
        while let Some(page) = MachineJournals::of(&mut self.kernel).take_page() {
            self.journal.pages.push(page.bytes);
        }
    }

    /// Signs the head of the journal as it is.
    pub(crate) fn sign(&mut self) {
        let head = self.journal.heads().last().copied().unwrap_or(NO_PAGES);
        let pages = self.journal.pages.len() as u64;
        let signed = JournalHead { machine: self.journal.machine, pages, head }.sign(&self.key);
        self.journal.head = signed.unwrap();
    }

    /// Ends the page under way, and returns the journal.
    pub(crate) fn finish(&mut self) -> Journal {
        let id = self.machine.unwrap();
        let state = MachineJournals::of(&mut self.kernel).state(id).map(|state| sha256(&[&state]));
        MachineJournals::of(&mut self.kernel).end_page(id, state, None);
        self.take_pages();
        self.sign();
        let bytes = self.journal.to_bytes().unwrap();
        Journal::parse(&bytes).unwrap()
    }

    /// Ends a period with a receipt of what was used, changed by `lie`.
    pub(crate) fn bill(&mut self, lie: impl FnOnce(&mut Usage)) {
        let id = self.machine.unwrap();
        let mut usage = self.kernel.take_usage(self.now, id).unwrap();
        lie(&mut usage);
        let number = self.receipts.len() as u64;
        let state = MachineJournals::of(&mut self.kernel).state(id).map(|state| sha256(&[&state]));
        MachineJournals::of(&mut self.kernel).end_page(id, state, Some(number));
        self.take_pages();
        let info = self.kernel.machines().find(|info| info.id == id).unwrap();
        let receipt = Receipt {
            owner: VerifyingKey([2; 32]),
            tenant: VerifyingKey([1; 32]),
            machine: id,
            name: info.record.name.clone(),
            package: info.record.package,
            lease: 1,
            tier: 0,
            period_s: 3_600,
            number,
            previous: self.receipts.last().map_or(NO_RECEIPT, |last| digest_of_receipt(last)),
            began_unix_s: None,
            ended_unix_s: None,
            counted_ms: self.now.as_millis() - self.counted_from.as_millis(),
            usage,
        };
        let commitment = Commitment {
            head: self.journal.heads().last().copied().unwrap_or(NO_PAGES),
            pages: self.journal.pages.len() as u64,
            began: self.began,
            ended: state,
        };
        (self.counted_from, self.began) = (self.now, state);
        self.receipts.push(receipt.sign_with(&commitment, &self.key).unwrap());
        self.sign();
    }
}
