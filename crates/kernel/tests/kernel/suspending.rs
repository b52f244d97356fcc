//! Machines whose instances are in flash instead of RAM.

use std::time::Duration;

use tenure_kernel::Ran;

use crate::world::{Device, text};

const ECHO: &str = r#"(export "echo" (func $echo))"#;

/// Counts nested functions down from its parameter, sleeping in the innermost, and replies with how
/// deep it was when it is back.
const DEEP: &str = r#"
  (func $down (param $left i32) (result i32)
    (if (result i32) (local.get $left)
      (then (i32.add (i32.const 1) (call $down (i32.sub (local.get $left) (i32.const 1)))))
      (else (call $sleep_ms (i32.const 500)) (i32.const 0))))
  (func (export "dive") (call $reply_digit (call $down (i32.const 7))))"#;

/// Calls the machine `echo`, and replies with what it says.
const ASKER: &str = r#"
  (data (i32.const 0) "echo") (data (i32.const 64) "hello")
  (func (export "ask") (local $length i32)
    (local.set $length (call $call (i32.const 0) (i32.const 4) (i32.const 0) (i32.const 4)
      (i32.const 64) (i32.const 5) (i32.const 0)))
    (drop (call $result_read (i32.const 0) (i32.const 8192) (local.get $length)))
    (drop (call $reply (i32.const 8192) (local.get $length))))"#;

#[test]
fn a_machine_suspended_in_nested_functions_goes_on_where_it_was() {
    let mut device = Device::new();
    let deep = device.install("deep", DEEP);
    let ticket = device.deliver(deep, "dive", None).unwrap();
    device.settle(100);
    device.kernel.suspend_all().unwrap();
    let memory = device.kernel.machines().next().unwrap().memory_bytes;
    assert_eq!(memory, 0, "its memory is free for others");
    device.pass(Duration::from_millis(499));
    assert!(matches!(device.step(), Ran::Idle { .. }), "its time has not come");
    device.pass(Duration::from_millis(1));
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "7");
}

#[test]
fn suspending_between_any_two_slices_changes_no_result() {
    let mut device = Device::new();
    device.install("echo", ECHO);
    let asker = device.install("asker", ASKER);
    let ticket = device.deliver(asker, "ask", None).unwrap();
    for _ in 0..100 {
        device.kernel.suspend_all().unwrap();
        device.step();
    }
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "hello");
}

#[test]
fn suspended_machines_give_their_room_in_code_flash_back() {
    let mut device = Device::new();
    let deep = device.install("deep", DEEP);
    let free = device.kernel.code().free_bytes();
    for _ in 0..100 {
        device.deliver(deep, "dive", None).unwrap();
        device.settle(100);
        device.kernel.suspend_all().unwrap();
        device.pass(Duration::from_secs(1));
        device.settle(100);
    }
    assert_eq!(device.kernel.code().free_bytes(), free);
    device.deliver(deep, "dive", None).unwrap();
    device.settle(100);
    device.kernel.suspend_all().unwrap();
    device.kernel.remove(device.now, &"deep".parse().unwrap()).unwrap();
    assert!(device.kernel.code().free_bytes() > free, "and with the machine, all of it");
}
