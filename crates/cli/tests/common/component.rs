//! Components that `wit-component` makes of a core module in text and a world.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The package of host calls, as it is published.
const HOST: &str = include_str!("../../../../sdk/wit/generated/machine.wit");

/// A component of a core module in text, for the world of `wit`.
pub(crate) fn component(wit: &str, text: &str) -> Vec<u8> {
    encoder(wit, text).encode().unwrap()
}

pub(crate) fn encoder(wit: &str, text: &str) -> ComponentEncoder {
    let mut resolve = Resolve::default();
    resolve.push_str("machine.wit", HOST).unwrap();
    let package = resolve.push_str("world.wit", wit).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mut module = wat::parse_str(text).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().validate(true).module(&module).unwrap()
}

/// The functions that the canonical ABI needs of a module: one that gives memory, and the memory.
pub(crate) const MEMORY: &str = "(memory (export \"memory\") 1) (global $free (mut i32) (i32.const 4096)) \
    (func (export \"cabi_realloc\") (param $old i32) (param $had i32) (param $align i32) (param $bytes i32) (result i32) \
     (local $at i32) \
     (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8))) \
     (global.set $free (i32.add (local.get $at) (local.get $bytes))) \
     (memory.copy (local.get $at) (local.get $old) (select (local.get $had) (local.get $bytes) \
      (i32.lt_u (local.get $had) (local.get $bytes)))) \
     (local.get $at))";

/// A part of WASI 0.3, and a program's world.
pub(crate) const LATER: &str = "
package test:later;
world later {
  import wasi:cli/environment@0.3.0;
  import wasi:cli/stdin@0.3.0;
  import wasi:cli/stdout@0.3.0;
  import wasi:clocks/monotonic-clock@0.3.0;
  import wasi:random/random@0.3.0;
  export wasi:cli/run@0.3.0;
}
package wasi:clocks@0.3.0 {
  interface monotonic-clock { now: func() -> u64; wait-for: async func(how-long: u64); }
}
package wasi:random@0.3.0 { interface random { get-random-u64: func() -> u64; } }
package wasi:cli@0.3.0 {
  interface types { enum error-code { io, illegal-byte-sequence, pipe } }
  interface environment { get-arguments: func() -> list<string>; }
  interface stdin {
    use types.{error-code};
    read-via-stream: func() -> tuple<stream<u8>, future<result<_, error-code>>>;
  }
  interface stdout {
    use types.{error-code};
    write-via-stream: func(data: stream<u8>) -> future<result<_, error-code>>;
  }
  interface run { run: async func() -> result; }
}";

/// Writes to standard output, waits for a second and a half, writes what it reads from standard input, and hears how the
/// output went: each step goes on where an event comes.
const LATER_CODE: &str = r#"
    (import "[export]wasi:cli/run@0.3.0" "[task-return]run" (func $return (param i32)))
    (import "wasi:cli/stdin@0.3.0" "read-via-stream" (func $stdin (param i32)))
    (import "wasi:cli/stdin@0.3.0" "[async-lower][stream-read-0]read-via-stream"
      (func $read (param i32 i32 i32) (result i32)))
    (import "wasi:cli/stdin@0.3.0" "[stream-drop-readable-0]read-via-stream" (func $drop_input (param i32)))
    (import "wasi:cli/stdin@0.3.0" "[future-drop-readable-1]read-via-stream" (func $drop_outcome (param i32)))
    (import "wasi:cli/stdout@0.3.0" "write-via-stream" (func $stdout (param i32) (result i32)))
    (import "wasi:cli/stdout@0.3.0" "[stream-new-0]write-via-stream" (func $new (result i64)))
    (import "wasi:cli/stdout@0.3.0" "[async-lower][stream-write-0]write-via-stream"
      (func $write (param i32 i32 i32) (result i32)))
    (import "wasi:cli/stdout@0.3.0" "[stream-drop-writable-0]write-via-stream" (func $drop_writer (param i32)))
    (import "wasi:cli/stdout@0.3.0" "[async-lower][future-read-1]write-via-stream"
      (func $outcome (param i32 i32) (result i32)))
    (import "wasi:cli/stdout@0.3.0" "[future-drop-readable-1]write-via-stream" (func $drop_future (param i32)))
    (import "wasi:clocks/monotonic-clock@0.3.0" "[async-lower]wait-for" (func $wait_for (param i64) (result i32)))
    (import "wasi:random/random@0.3.0" "get-random-u64" (func $random (result i64)))
    (import "$root" "[waitable-set-new]" (func $set_new (result i32)))
    (import "$root" "[waitable-set-drop]" (func $set_drop (param i32)))
    (import "$root" "[waitable-join]" (func $join (param i32 i32)))
    (import "$root" "[subtask-drop]" (func $subtask_drop (param i32)))
    (data (i32.const 8) "first and then")
    (global $writer (mut i32) (i32.const 0)) (global $future (mut i32) (i32.const 0))
    (global $set (mut i32) (i32.const 0)) (global $subtask (mut i32) (i32.const 0))
    (func $check (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))
    (func $wait (result i32) (i32.or (i32.const 2) (i32.shl (global.get $set) (i32.const 4))))
    (func (export "[async-lift]wasi:cli/run@0.3.0#run") (result i32) (local $ends i64) (local $state i32)
      (local.set $ends (call $new))
      (global.set $writer (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
      ;; Written before anybody reads it.
      (call $check (i32.eq (call $write (global.get $writer) (i32.const 8) (i32.const 6)) (i32.const -1)))
      (global.set $future (call $stdout (i32.wrap_i64 (local.get $ends))))
      (global.set $set (call $set_new))
      (call $join (global.get $writer) (global.get $set))
      (call $wait))
    (func (export "[callback][async-lift]wasi:cli/run@0.3.0#run") (param $event i32) (param $of i32) (param $says i32)
      (result i32) (local $state i32)
      (if (i32.eq (local.get $event) (i32.const 3)) (then ;; the write: six items
        (call $check (i32.eq (local.get $of) (global.get $writer)))
        (call $check (i32.eq (local.get $says) (i32.const 96)))
        (call $join (global.get $writer) (i32.const 0))
        (local.set $state (call $wait_for (i64.const 1500000000)))
        (call $check (i32.eq (i32.and (local.get $state) (i32.const 15)) (i32.const 1)))
        (global.set $subtask (i32.shr_u (local.get $state) (i32.const 4)))
        (call $join (global.get $subtask) (global.get $set))
        (return (call $wait))))
      (if (i32.eq (local.get $event) (i32.const 1)) (then ;; the subtask: returned
        (call $check (i32.eq (local.get $of) (global.get $subtask)))
        (call $check (i32.eq (local.get $says) (i32.const 2)))
        (call $subtask_drop (global.get $subtask))
        (call $check (i32.eq (call $write (global.get $writer) (i32.const 14) (i32.const 8)) (i32.const 128)))
        (call $stdin (i32.const 32))
        (local.set $state (call $read (i32.load (i32.const 32)) (i32.const 64) (i32.const 32)))
        (call $check (i32.eqz (i32.and (local.get $state) (i32.const 15))))
        (drop (call $write (global.get $writer) (i32.const 64) (i32.shr_u (local.get $state) (i32.const 4))))
        (call $check (i32.eq (call $read (i32.load (i32.const 32)) (i32.const 64) (i32.const 32)) (i32.const 1)))
        (call $drop_input (i32.load (i32.const 32)))
        (call $drop_outcome (i32.load (i32.const 36)))
        (i32.store8 (i32.const 40) (i32.const 9))
        (call $check (i32.eq (call $outcome (global.get $future) (i32.const 40)) (i32.const -1)))
        (call $join (global.get $future) (global.get $set))
        (call $drop_writer (global.get $writer))
        (return (call $wait))))
      (call $check (i32.eq (local.get $event) (i32.const 4)))
      (call $check (i32.eq (local.get $of) (global.get $future)))
      (call $check (i32.eqz (i32.or (local.get $says) (i32.load8_u (i32.const 40)))))
      (call $drop_future (global.get $future))
      (call $set_drop (global.get $set))
      (call $return (i64.eqz (call $random)))
      (i32.const 0))
"#;

/// The program of [`LATER`], in text.
pub(crate) fn later_program() -> String {
    format!("(module {LATER_CODE} {MEMORY})")
}
