//! Modules with a start function: it runs once, before the first task of each instance.

use std::time::Duration;

use tenure_wire::host_call::HostError;

use crate::world::{Device, text};

/// Sets a global in its start function, which takes many slices, and replies with it.
const BEGINNER: &str = r#"
  (global $begun (mut i32) (i32.const 0))
  (func $begin (local $i i32)
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 100000))))
    (call $sleep_ms (i32.const 10))
    (global.set $begun (i32.add (global.get $begun) (i32.const 1))))
  (start $begin)
  (func (export "begun") (call $reply_digit (global.get $begun)))
  (func (export "crash") unreachable)"#;

#[test]
fn the_start_function_runs_in_slices_before_the_first_task_and_only_then() {
    let mut device = Device::new();
    let beginner = device.install("beginner", BEGINNER);
    let first = device.deliver(beginner, "begun", None).unwrap();
    let second = device.deliver(beginner, "begun", None).unwrap();
    device.settle(1000);
    device.pass(Duration::from_millis(10));
    device.settle(1000);
    for ticket in [first, second] {
        assert_eq!(text(device.replies.remove(&ticket).unwrap()), "1");
    }
}

#[test]
fn after_a_fault_the_start_function_runs_again() {
    let mut device = Device::new();
    let beginner = device.install("beginner", BEGINNER);
    let crash = device.deliver(beginner, "crash", None).unwrap();
    device.settle(1000);
    device.pass(Duration::from_millis(10));
    device.settle(1000);
    assert_eq!(device.replies.remove(&crash), Some(Err(HostError::Execution)));
    device.pass(Duration::from_secs(1));
    let begun = device.deliver(beginner, "begun", None).unwrap();
    device.settle(1000);
    device.pass(Duration::from_millis(10));
    device.settle(1000);
    assert_eq!(text(device.replies.remove(&begun).unwrap()), "1");
}

#[test]
fn a_start_function_that_traps_is_the_machines_fault() {
    let mut device = Device::new();
    let bad =
        device.install("bad", r#"(func $begin unreachable) (start $begin) (func (export "f"))"#);
    let ticket = device.deliver(bad, "f", None).unwrap();
    device.settle(100);
    assert_eq!(device.replies.remove(&ticket), Some(Err(HostError::Execution)));
    assert!(device.logged("stopped while serving `f`: trap: "));
}
