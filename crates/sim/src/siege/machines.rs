//! The machines on a device under siege: honest neighbours, and those of a tenant who attacks from within.

use tenure_crypto::SigningKey;
use tenure_hal::simulated::Random;
use tenure_package::{Manifest, Package, PackageBuilder, Placement, Version};
use tenure_wire::capability::PeerPattern;
use tenure_wire::{Budget, Capabilities, Share, Term, VerifyingKey};

use super::{Cast, UNIX_S_AT_START};

/// The machines of honest tenants: one keeps a count, the other says that it runs.
pub(super) const NEIGHBOURS: [&str; 3] = [KEEPER, TICKER, VAULT];
pub(super) const KEEPER: &str = "keeper";
pub(super) const TICKER: &str = "ticker";
pub(super) const VAULT: &str = "vault";
/// The line that the vault, which nobody may call, says once at its start.
pub(super) const IMPORTANT: &str = "important";
/// The hostile tenant's: one attacks by itself, one has long answers, the others are slow when they are called.
pub(super) const TALKER: &str = "talker";
pub(super) const GUEST: &str = "guest";
pub(super) const NAMED: &str = "named";
pub(super) const SLOW: [&str; 7] =
    [GUEST, "slow-one", "slow-two", "slow-three", "slow-four", "slow-five", "slow-six"];
/// How long after its last word a ticker says something again, in milliseconds.
const TICK_MS: u32 = 500;
/// How long a lease lasts, and its grace, in seconds: longer than any siege.
const TERM_S: u64 = 86_400;
const GRACE_S: u64 = 3_600;

/// A machine to be installed.
pub(super) struct Machine {
    pub(super) name: &'static str,
    text: String,
    callers: Option<PeerPattern>,
}

/// All machines of a device, with the guest that `random` draws.
pub(super) fn all(cast: Cast, random: &mut Random) -> Vec<Machine> {
    let anybody = |name, text: String| Machine { name, text, callers: Some(PeerPattern::Any) };
    let mut all = vec![
        anybody(KEEPER, KEEPER_TEXT.to_string()),
        anybody(TICKER, TICKER_TEXT.replace("{pause}", &TICK_MS.to_string())),
        anybody(GUEST, guest(cast, random)),
    ];
    all.extend(SLOW[1..].iter().map(|name| anybody(*name, SLOW_TEXT.to_string())));
    all.push(anybody(TALKER, TALKER_TEXT.to_string()));
    // Its callers are judged by names that the directory must tell.
    let callers = Some("*@*".parse().expect("a pattern"));
    all.push(Machine { name: NAMED, text: SLOW_TEXT.to_string(), callers });
    all.push(Machine { name: VAULT, text: VAULT_TEXT.to_string(), callers: None });
    all
}

/// A small machine that the owner installs while the siege goes on.
pub(super) fn newcomer() -> Machine {
    let ballast = "x".repeat(3_000);
    let text =
        format!(r#"(module (memory 1) (data (i32.const 0) "{ballast}") (func (export "echo")))"#);
    Machine { name: "late", text, callers: Some(PeerPattern::Any) }
}

impl Machine {
    pub(super) fn budget(&self) -> Budget {
        Budget {
            memory_bytes: 64 * 1024,
            flash_bytes_per_day: 24 * 1024,
            queue_length: 16,
            ..Budget::default()
        }
    }

    /// The package and its placement.
    pub(super) fn sign(
        &self,
        tenant: &SigningKey,
        owner: &SigningKey,
        device: VerifyingKey,
    ) -> (Vec<u8>, Vec<u8>) {
        self.sign_as(1, tenant, owner, device)
    }

    /// The same with a placement of that number.
    pub(super) fn sign_as(
        &self,
        sequence: u64,
        tenant: &SigningKey,
        owner: &SigningKey,
        device: VerifyingKey,
    ) -> (Vec<u8>, Vec<u8>) {
        let exports = self.text.split("(func (export \"").skip(1);
        let grants = Capabilities {
            callers: self.callers.iter().cloned().collect(),
            publish: vec!["guest.*".parse().expect("a pattern")],
            subscribe: vec!["guest.*".parse().expect("a pattern")],
            ..Capabilities::default()
        };
        let manifest = Manifest {
            exports: exports.filter_map(|rest| rest.split('"').next().map(String::from)).collect(),
            budget: self.budget(),
            capabilities: grants.clone(),
            ..Manifest::new(
                self.name.parse().expect("a name"),
                Version { major: 1, minor: 0, patch: 0 },
            )
        };
        let code = wat::parse_str(&self.text).expect("the machines here are well formed");
        let builder = PackageBuilder::new(manifest, code).expect("the machines here are small");
        let package = builder.sign(tenant).expect("the machines here are small");
        let placement = Placement {
            package: Package::parse(&package).expect("just made").digest(),
            device,
            machine: self.name.parse().expect("a name"),
            budget: self.budget(),
            share: Share::default(),
            grants,
            term: Term {
                signed_unix_s: UNIX_S_AT_START,
                ends_unix_s: Some(UNIX_S_AT_START + TERM_S),
                grace_s: GRACE_S,
                receipts_every_s: 0,
            },
            sequence,
        };
        (package, placement.sign(owner).expect("well formed"))
    }
}

const IMPORTS: &str = r#"
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (import "tenure" "tree_set" (func $tree_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "tree_get" (func $tree_get (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "random" (func $random (param i32 i32) (result i32)))
  (import "tenure" "publish" (func $publish (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "subscribe" (func $subscribe (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
"#;

/// Counts each call in a stored number, which it replies with once that is stored.
const KEEPER_TEXT: &str = r#"(module
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "tree_set" (func $tree_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "tree_get" (func $tree_get (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "number")
  (func $load
    (i32.store (i32.const 64) (i32.const 0))
    (drop (call $tree_get (i32.const 0) (i32.const 6) (i32.const 64) (i32.const 4))))
  (func (export "count")
    (call $load)
    (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
    (if (i32.ge_s (call $tree_set (i32.const 0) (i32.const 6) (i32.const 0)
          (i32.const 64) (i32.const 4)) (i32.const 0))
      (then (drop (call $reply (i32.const 64) (i32.const 4))))))
  (func (export "value") (call $load) (drop (call $reply (i32.const 64) (i32.const 4)))))"#;

const VAULT_TEXT: &str = r#"(module
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1) (data (i32.const 0) "important")
  (func (export "entry") (call $log (i32.const 2) (i32.const 0) (i32.const 9)))
  (func (export "open")))"#;

const TICKER_TEXT: &str = r#"(module
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (memory (export "memory") 1) (data (i32.const 0) "tick")
  (func (export "entry") (loop $again
    (call $sleep_ms (i32.const {pause}))
    (call $log (i32.const 2) (i32.const 0) (i32.const 4))
    (br $again))))"#;

/// Takes a call and never ends it.
const SLOW_TEXT: &str = r#"(module
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (memory (export "memory") 1)
  (func (export "sleep") (call $sleep_ms (i32.const -1))))"#;

/// Replies with as much as it can.
const TALKER_TEXT: &str = r#"(module
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "long") (drop (call $reply (i32.const 1024) (i32.const 8192)))))"#;

/// Deeds of the guest by itself, one after the other.
const DEEDS: [&str; 7] = [LOGS, READS, WRITES, SPINS, PUBLISHES, SUBSCRIBES, FAILS];
const LOGS: &str = "(loop $more
    (call $log (i32.const 2) (i32.const 1024) (i32.const 200))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (i32.gt_s (local.get $left) (i32.const 0))))";
const READS: &str = "(drop (call $tree_get (i32.const 1024) (i32.const 60000)
    (i32.const 0) (i32.const 8)))";
const WRITES: &str = "(drop (call $tree_set (i32.const 0) (i32.const 6) (i32.const 0)
    (i32.const 1024) (i32.const 600)))";
const SPINS: &str = "(loop $more
    (local.set $left (i32.add (local.get $left) (i32.const 1)))
    (br_if $more (i32.lt_s (local.get $left) (i32.const 200000))))";
const PUBLISHES: &str = "(drop (call $publish (i32.const 16) (i32.const 7)
    (i32.const 1024) (i32.const 2000)))";
const SUBSCRIBES: &str = "(drop (call $subscribe (i32.const 16) (i32.const 7)
    (i32.const 0) (i32.const 16) (i32.const 32) (i32.const 4)))";
const FAILS: &str = "unreachable";

/// A machine that attacks its device and neighbours, with deeds that `random` draws. Called, it is slow.
fn guest(cast: Cast, random: &mut Random) -> String {
    let deeds: Vec<&str> = match cast {
        // Failing ends a round, and is worth little more often.
        Cast::Everybody => DEEDS[..DEEDS.len() - 1].to_vec(),
        Cast::Drawn => (0..random.between(3..=10))
            .map(|_| {
                let most = if random.chance(100) { DEEDS.len() } else { DEEDS.len() - 1 };
                DEEDS[random.between(0..=most as u64 - 1) as usize]
            })
            .collect(),
    };
    let mut with_pause = |deed: &str| {
        let pause_ms = random.pick(&[1, 10, 50, 400]);
        format!(
            "(local.set $left (i32.const 60))\n{deed}\n(call $sleep_ms (i32.const {pause_ms}))\n"
        )
    };
    let deeds: String = deeds.into_iter().map(&mut with_pause).collect();
    format!(
        r#"(module {IMPORTS}
  (data (i32.const 0) "spoils") (data (i32.const 16) "guest.a") (data (i32.const 32) "hear")
  (func (export "entry") (local $left i32) (loop $again {deeds} (br $again)))
  (func (export "hear"))
  (func (export "sleep") (call $sleep_ms (i32.const -1))))"#
    )
}
