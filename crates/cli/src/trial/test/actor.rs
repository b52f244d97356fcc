//! Pretended machines: they answer as they are told to, and call whom they are told to.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use tenure_crypto::SigningKey;
use tenure_package::{Manifest, PackageBuilder, Version};
use tenure_wire::capability::PeerPattern;
use tenure_wire::limits::FUNCTION_BYTES_MAX;
use tenure_wire::{Budget, Capabilities, Name};

/// The function by which a pretended machine is told to call another.
pub(super) const CALL: &str = "tenure_test:call";

/// Its code; data with answers and their functions are put in.
///
/// The parameter of [`CALL`] is the lengths of target and function and whether there is a
/// parameter, a byte each, then target, function and parameter. The reply is a status (4 bytes) and
/// the result.
const CODE: &str = r#"(module
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result_read (param i32 i32 i32) (result i32)))
  (memory 1)
  (func (export "{call}") (local $length i32) (local $target i32) (local $function i32)
      (local $rest i32) (local $status i32)
    (local.set $length (call $parameter_read (i32.const 0) (i32.const 40960) (i32.const 8192)))
    (local.set $target (i32.load8_u (i32.const 40960)))
    (local.set $function (i32.load8_u (i32.const 40961)))
    (local.set $rest (i32.add (i32.add (local.get $target) (local.get $function))
      (i32.const 40963)))
    (local.set $status (call $call
      (i32.const 40963) (local.get $target)
      (i32.add (i32.const 40963) (local.get $target)) (local.get $function)
      (select (local.get $rest) (i32.const 0) (i32.load8_u (i32.const 40962)))
      (i32.sub (i32.add (local.get $length) (i32.const 40960)) (local.get $rest))
      (i32.const 10000)))
    (i32.store (i32.const 49152) (local.get $status))
    (if (i32.gt_s (local.get $status) (i32.const 0))
      (then (drop (call $result_read (i32.const 0) (i32.const 49156) (i32.const 8188)))))
    (drop (call $reply (i32.const 49152)
      (select (i32.add (local.get $status) (i32.const 4)) (i32.const 4)
        (i32.gt_s (local.get $status) (i32.const 0))))))
  {answers})"#;
/// Where the answers end at the latest.
const ANSWERS_BYTES_MAX: usize = 40_960;

/// The package of a pretended machine.
pub(super) fn package(name: &Name, answers: &BTreeMap<String, String>) -> anyhow::Result<Vec<u8>> {
    let (mut functions, mut at) = (String::new(), 8);
    for (function, answer) in answers {
        if function.len() > FUNCTION_BYTES_MAX || !function.chars().all(is_plain) {
            bail!("`{function}` is no name of a function");
        }
        let length = answer.len();
        let bytes: String = answer.bytes().map(|byte| format!("\\{byte:02x}")).collect();
        functions += &format!(
            "(data (i32.const {at}) \"{bytes}\") (func (export \"{function}\") \
             (drop (call $reply (i32.const {at}) (i32.const {length}))))\n"
        );
        at += length;
    }
    if at > ANSWERS_BYTES_MAX {
        bail!("its answers are too long");
    }
    let text = CODE.replace("{call}", CALL).replace("{answers}", &functions);
    let code = wat::parse_str(text).context("a pretended machine")?;
    let manifest = Manifest {
        exports: answers.keys().cloned().chain([CALL.to_owned()]).collect(),
        budget: Budget { memory_bytes: 65_536, ..Budget::default() },
        capabilities: anybody(),
        ..Manifest::new(name.clone(), Version { major: 0, minor: 0, patch: 0 })
    };
    // Nobody but the devices in memory ever sees it.
    let key = SigningKey::from_bytes(&[1; 32]);
    Ok(PackageBuilder::new(manifest, code)?.sign(&key)?)
}

/// To call anybody and be called by anybody: the rights of the other side are what is tested.
pub(super) fn anybody() -> Capabilities {
    Capabilities {
        calls: vec![PeerPattern::Any],
        callers: vec![PeerPattern::Any],
        ..Capabilities::default()
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-.:".contains(character)
}
