//! The machines that run in the simulator, in WebAssembly text.
//!
//! They tell what they do in log lines of one form: four letters, then bytes in hexadecimal; see
//! [`crate::line`].

use tenure_crypto::SigningKey;
use tenure_package::{Manifest, Package, PackageBuilder, Placement, Version};
use tenure_wire::{Budget, Capabilities, Share, Term, VerifyingKey};

use crate::scenario::{Calling, Role};

/// Imports, memory and helpers that all share. The calls' data stand from address 64 on: 8 bytes of
/// identification, and what belongs to it after that.
const PRELUDE: &str = r#"
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "tree_set" (func $tree_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "tree_get" (func $tree_get (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result_read (param i32 i32 i32) (result i32)))
  (import "tenure" "queue" (func $queue
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (import "tenure" "random" (func $random (param i32 i32) (result i32)))
  (import "tenure" "public_key" (func $public_key (param i32 i32) (result i32)))
  (import "tenure" "abort" (func $abort (param i32 i32)))
  (import "tenure" "subscribe" (func $subscribe (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "event_topic" (func $event_topic (param i32 i32) (result i32)))
  (import "tenure" "secret_read" (func $secret_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "0123456789abcdef")
  (func $hex (param $from i32) (param $length i32) (param $to i32) (local $byte i32)
    (block $end
      (loop $next
        (br_if $end (i32.eqz (local.get $length)))
        (local.set $byte (i32.load8_u (local.get $from)))
        (i32.store8 (local.get $to)
          (i32.load8_u (i32.shr_u (local.get $byte) (i32.const 4))))
        (i32.store8 offset=1 (local.get $to)
          (i32.load8_u (i32.and (local.get $byte) (i32.const 15))))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (local.set $to (i32.add (local.get $to) (i32.const 2)))
        (local.set $length (i32.sub (local.get $length) (i32.const 1)))
        (br $next))))
  ;; Logs four letters, then bytes in hexadecimal.
  (func $say (param $letters i32) (param $from i32) (param $length i32)
    (i32.store (i32.const 512) (local.get $letters))
    (call $hex (local.get $from) (local.get $length) (i32.const 516))
    (call $log (i32.const 2) (i32.const 512)
      (i32.add (i32.const 4) (i32.shl (local.get $length) (i32.const 1)))))
  (func $say_key
    (drop (call $public_key (i32.const 200) (i32.const 32)))
    (call $say 'self' (i32.const 200) (i32.const 32)))
"#;

/// Counts each call in a stored number, and remembers who it was.
const COUNTER: &str = r#"
  (data (i32.const 90) "nr.")
  ;; Stores the status at 300 and stops if a write failed.
  (func $check (param $status i32)
    (if (i32.lt_s (local.get $status) (i32.const 0)) (then
      (i32.store (i32.const 300) (local.get $status))
      (call $say 'errr' (i32.const 300) (i32.const 4))
      (call $abort (i32.const 0) (i32.const 0)))))
  (func $load
    (i32.store (i32.const 72) (i32.const 0))
    (drop (call $tree_get (i32.const 90) (i32.const 1) (i32.const 72) (i32.const 4))))
  (func (export "entry")
    (call $say_key)
    (call $load)
    (call $say 'have' (i32.const 72) (i32.const 4)))
  (func (export "count")
    (drop (call $parameter_read (i32.const 0) (i32.const 64) (i32.const 8)))
    (call $hex (i32.const 64) (i32.const 8) (i32.const 93))
    (if (i32.ge_s (call $tree_get (i32.const 91) (i32.const 18) (i32.const 300) (i32.const 1))
                  (i32.const 0))
      (then (call $say 'twic' (i32.const 64) (i32.const 8))))
    (call $check (call $tree_set (i32.const 91) (i32.const 18) (i32.const 0)
      (i32.const 64) (i32.const 1)))
    (call $load)
    (i32.store (i32.const 72) (i32.add (i32.load (i32.const 72)) (i32.const 1)))
    (call $check (call $tree_set (i32.const 90) (i32.const 1) (i32.const 0)
      (i32.const 72) (i32.const 4)))
    (call $say 'runs' (i32.const 64) (i32.const 12))
    (drop (call $reply (i32.const 64) (i32.const 12))))
"#;

/// Calls again and again, and waits for each result.
const STRAIGHT: &str = r#"
  (func (export "entry") (local $status i32)
    (call $say_key)
    (loop $again
      (call $sleep_ms (i32.const {pause}))
      (drop (call $random (i32.const 64) (i32.const 8)))
      (call $say 'call' (i32.const 64) (i32.const 8))
      (local.set $status (call $call {target} {function} (i32.const 64) (i32.const 8)
        (i32.const {deadline})))
      (i32.store (i32.const 72) (local.get $status))
      (i64.store (i32.const 76) (i64.const 0))
      (i32.store (i32.const 84) (i32.const 0))
      (if (i32.ge_s (local.get $status) (i32.const 0)) (then
        (drop (call $result_read (i32.const 0) (i32.const 76) (i32.const 12)))))
      (call $say 'done' (i32.const 64) (i32.const 24))
      (br $again)))
"#;

/// Writes the number of the next device behind the target's name, and returns how long that is.
const AIM: &str = r#"
  (global $at (mut i32) (i32.const {own}))
  (func $next
    (global.set $at (i32.rem_u (i32.add (global.get $at) (i32.const 1)) (i32.const {count}))))
  (func $aim (result i32) (local $left i32) (local $length i32) (local $place i32)
    (call $next)
    (if (i32.eq (global.get $at) (i32.const {own})) (then (call $next)))
    (local.set $length (i32.const {prefix}))
    (local.set $left (global.get $at))
    (loop $digit
      (local.set $length (i32.add (local.get $length) (i32.const 1)))
      (local.set $left (i32.div_u (local.get $left) (i32.const 10)))
      (br_if $digit (local.get $left)))
    (local.set $left (global.get $at))
    (local.set $place (i32.add (i32.const 1024) (local.get $length)))
    (loop $digit
      (local.set $place (i32.sub (local.get $place) (i32.const 1)))
      (i32.store8 (local.get $place)
        (i32.add (i32.const 48) (i32.rem_u (local.get $left) (i32.const 10))))
      (local.set $left (i32.div_u (local.get $left) (i32.const 10)))
      (br_if $digit (local.get $left)))
    (local.get $length))
"#;

/// Keeps calls in the queue and goes on from their callbacks.
const QUEUEING: &str = r#"
  (data (i32.const 1200) "okayfail")
  (func $step (local $status i32)
    (call $sleep_ms (i32.const {pause}))
    (drop (call $random (i32.const 64) (i32.const 8)))
    (call $say 'queu' (i32.const 64) (i32.const 8))
    (local.set $status (call $queue {target} {function} (i32.const 64) (i32.const 8)
      (i32.const 1200) (i32.const 4) (i32.const 1204) (i32.const 4)
      (i32.const {deadline}) (i32.const {retries})))
    (if (i32.lt_s (local.get $status) (i32.const 0)) (then
      (i32.store (i32.const 72) (local.get $status))
      (call $say 'nope' (i32.const 64) (i32.const 12)))))
  (func (export "entry") (local $left i32)
    (call $say_key)
    (local.set $left (i32.const {width}))
    (loop $again
      (call $step)
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left))))
  (func (export "okay")
    (i64.store (i32.const 64) (i64.const 0))
    (drop (call $parameter_read (i32.const 0) (i32.const 64) (i32.const 12)))
    (call $say 'okay' (i32.const 64) (i32.const 12))
    (call $step))
  (func (export "fail") (local $length i32)
    (local.set $length (call $parameter_read (i32.const 0) (i32.const 64) (i32.const 24)))
    (call $say 'fail' (i32.const 64) (local.get $length))
    (call $step))
"#;

/// Never ends.
const SPINNER: &str = r#"
  (func (export "entry") (call $say_key) (loop $again (br $again)))
"#;

/// Fails in three ways.
const CRASHER: &str = r#"
  (func (export "entry") (call $say_key))
  (func (export "trap") unreachable)
  (func (export "stop") (call $abort (i32.const 0) (i32.const 4)))
  (func (export "stray") (drop (call $reply (i32.const -8) (i32.const 4))))
"#;

/// Says that it runs, at a steady pace.
const TICKER: &str = r#"
  (func (export "entry")
    (call $say_key)
    (loop $again
      (call $sleep_ms (i32.const {pause}))
      (call $say 'tick' (i32.const 0) (i32.const 0))
      (br $again)))
"#;

/// Tells the topic of each event, a zero byte, and the event's first bytes.
const LISTENER: &str = r#"
  (data (i32.const 1200) "device.*hear")
  (func (export "entry")
    (call $say_key)
    (drop (call $subscribe (i32.const 1200) (i32.const 8) (i32.const 0) (i32.const 16)
      (i32.const 1208) (i32.const 4))))
  (func (export "hear") (local $length i32)
    (local.set $length (call $event_topic (i32.const 2048) (i32.const 64)))
    (i32.store8 (i32.add (i32.const 2048) (local.get $length)) (i32.const 0))
    (local.set $length (i32.add (local.get $length) (i32.const 1)))
    (local.set $length (i32.add (local.get $length)
      (call $parameter_read (i32.const 0) (i32.add (i32.const 2048) (local.get $length))
        (i32.const 24))))
    (call $say 'hear' (i32.const 2048) (local.get $length)))
"#;

/// Reads a secret of 32 bytes at most: says that it begins to, and then the status and the value.
const READER: &str = r#"
  (data (i32.const 1200) "{secret}")
  (func (export "entry") (local $status i32)
    (call $say_key)
    (loop $again
      (call $sleep_ms (i32.const {pause}))
      (call $say 'begi' (i32.const 0) (i32.const 0))
      (local.set $status (call $secret_read (i32.const 1200) (i32.const {length})
        (i32.const 1304) (i32.const 32)))
      (i32.store (i32.const 1300) (local.get $status))
      (call $say 'secr' (i32.const 1300) (i32.add (i32.const 4)
        (select (local.get $status) (i32.const 0) (i32.gt_s (local.get $status) (i32.const 0)))))
      (br $again)))
"#;

/// How often a ticker says that it runs, in milliseconds.
pub(crate) const TICK_MS: u32 = 500;

/// The functions of a crasher.
pub(crate) const CRASHES: [&str; 3] = ["trap", "stop", "stray"];

/// A lease that places a package's machine on a device and grants it all that it asks for.
pub(crate) fn placement(
    package: &Package<'_>,
    device: VerifyingKey,
    term: Term,
    sequence: u64,
) -> Placement {
    Placement {
        package: package.digest(),
        device,
        machine: package.manifest().name.clone(),
        budget: package.manifest().budget,
        share: Share::default(),
        grants: package.manifest().capabilities.clone(),
        term,
        sequence,
    }
}

/// A signed package of a machine of this role.
///
/// # Panics
/// If a machine in this file is wrong.
pub(crate) fn package(name: &str, role: &Role, tenant: &SigningKey) -> Vec<u8> {
    let code = wat::parse_str(text(role)).expect("the machines here are well formed");
    let exports = match role {
        Role::Counter => ["count"].as_slice(),
        Role::Crasher => &CRASHES,
        _ => &[],
    };
    let manifest = Manifest {
        exports: exports.iter().map(ToString::to_string).collect(),
        // Counters write as often as they are called, and what a budget refuses isn't a write that is lost.
        budget: Budget {
            stored_bytes: 256 * 1024,
            flash_bytes_per_day: 64 << 20,
            ..Budget::default()
        },
        capabilities: Capabilities {
            calls: vec!["*@*".parse().expect("a pattern")],
            callers: vec!["*@*".parse().expect("a pattern")],
            subscribe: vec!["device.*".parse().expect("a pattern")],
            secrets: match role {
                Role::Reader { secret, .. } => vec![secret.parse().expect("a name")],
                _ => Vec::new(),
            },
            ..Capabilities::default()
        },
        ..Manifest::new(
            name.parse().expect("scenarios use valid names"),
            Version { major: 0, minor: 1, patch: 0 },
        )
    };
    let builder = PackageBuilder::new(manifest, code).expect("the machines here are small");
    builder.sign(tenant).expect("the machines here are small")
}

fn text(role: &Role) -> String {
    let body = match role {
        Role::Counter => COUNTER.to_string(),
        Role::Straight(calling) => addressed(STRAIGHT, calling),
        Role::Round { calling, own, count } => {
            let prefix = calling.target.trim_end_matches('*');
            let aim = AIM
                .replace("{own}", &own.to_string())
                .replace("{count}", &count.to_string())
                .replace("{prefix}", &prefix.len().to_string());
            let body = STRAIGHT.replace("{target}", "(i32.const 1024) (call $aim)");
            aim + &addressed(&body, &Calling { target: prefix.to_string(), ..calling.clone() })
        }
        Role::Queueing { calling, width, retries } => addressed(QUEUEING, calling)
            .replace("{width}", &width.to_string())
            .replace("{retries}", &retries.to_string()),
        Role::Spinner => SPINNER.to_string(),
        Role::Crasher => CRASHER.to_string(),
        Role::Listener => LISTENER.to_string(),
        Role::Reader { secret, pause_ms } => READER
            .replace("{secret}", secret)
            .replace("{length}", &secret.len().to_string())
            .replace("{pause}", &pause_ms.to_string()),
        Role::Ticker => TICKER.replace("{pause}", &TICK_MS.to_string()),
    };
    with_letters(&format!("(module {PRELUDE} {body})"))
}

fn addressed(body: &str, calling: &Calling) -> String {
    let Calling { target, function, deadline_ms, pause_ms } = calling;
    let text = |at: usize, text: &str| format!("(i32.const {at}) (i32.const {})", text.len());
    let data =
        format!("(data (i32.const 1024) \"{target}\") (data (i32.const 1124) \"{function}\")");
    let body = body
        .replace("{target}", &text(1024, target))
        .replace("{function}", &text(1124, function))
        .replace("{deadline}", &deadline_ms.to_string())
        .replace("{pause}", &pause_ms.to_string());
    data + &body
}

/// Replaces four letters in single quotes by the number that they are in memory.
fn with_letters(text: &str) -> String {
    let mut result = String::new();
    let mut parts = text.split('\'');
    while let Some(outside) = parts.next() {
        result += outside;
        if let Some(letters) = parts.next() {
            let bytes: [u8; 4] = letters.as_bytes().try_into().expect("four letters");
            result += &format!("(i32.const {})", u32::from_le_bytes(bytes));
        }
    }
    result
}
