//! Modules with a start function: it runs once, before the first task of each instance.

use std::time::Duration;

use tenure_kernel::InstallError;
use tenure_wire::host_call::HostError;

use crate::world::{Device, name, text};

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

const COUNTING: &str = r#"(data (i32.const 0) "key")
    (func (export "count")
      (i32.store (i32.const 256) (i32.add (i32.load (i32.const 256)) (i32.const 1)))
      (call $reply_digit (i32.load (i32.const 256))))
    (func (export "keep") (drop (call $tree_set (i32.const 0) (i32.const 3) (i32.const 0)
      (i32.const 64) (i32.const 8))))
    (func (export "wait") (call $sleep_ms (i32.const 60000)))"#;

#[test]
fn a_restart_by_the_owner_loses_memory_and_tasks_and_keeps_the_rest() {
    let mut device = Device::new();
    let counting = device.install("counting", COUNTING);
    assert_eq!(text(device.call(counting, "count", None)), "1");
    assert_eq!(text(device.call(counting, "count", None)), "2");
    device.call(counting, "keep", None).unwrap();
    let waiting = device.deliver(counting, "wait", None).unwrap();
    device.settle(10);
    let serves = device.kernel.machines().next().unwrap().serves.unwrap();
    assert_eq!((serves.function, serves.begun), ("wait", device.now));
    let before = device.kernel.machines().next().unwrap();
    let (fuel, stored) = (before.fuel_used, before.stored_bytes);
    let free = device.kernel.code().free_bytes();
    device.kernel.tenancy(device.now).restart(&name("counting")).unwrap();
    device.settle(10);
    assert_eq!(device.replies.remove(&waiting), Some(Err(HostError::Execution)));
    let after = device.kernel.machines().next().unwrap();
    assert_eq!((after.fuel_used, after.stored_bytes, after.serves), (fuel, stored, None));
    assert_eq!(text(device.call(counting, "count", None)), "1");
    assert_eq!(device.kernel.code().free_bytes(), free);
    let usage = device.kernel.take_usage(device.now, counting).unwrap();
    assert!(usage.fuel >= fuel && usage.flash_writes == 1, "what it used before is billed");
}

#[test]
fn a_restart_by_the_owner_lifts_no_ban_and_gives_no_budget_back() {
    let mut device = Device::new();
    let few = tenure_wire::Budget { flash_bytes_per_day: 400, ..tenure_wire::Budget::default() };
    let counting = device.try_install("counting", COUNTING, 1, few).unwrap();
    for _ in 0..5 {
        device.call(counting, "keep", None).unwrap();
        device.kernel.tenancy(device.now).restart(&name("counting")).unwrap();
    }
    let usage = device.kernel.take_usage(device.now, counting).unwrap();
    assert!(usage.flash_writes < 5, "{} writes", usage.flash_writes);
    let nobody = device.kernel.tenancy(device.now).restart(&name("nobody"));
    assert_eq!(nobody, Err(InstallError::NotFound));
}

#[test]
fn longest_wait_outlasts_a_restart_and_begins_at_0_with_an_update() {
    let mut device = Device::new();
    let counting = device.install("counting", COUNTING);
    let busy = device.install("busy", r#"(func (export "run") (loop (br 0)))"#);
    device.deliver(busy, "run", None).unwrap();
    device.settle(10);
    let longest = |device: &Device| {
        let mut machines = device.kernel.machines();
        machines.find(|info| info.id == counting).unwrap().waited_max
    };
    // The busy machine has a turn of that length, during which the call comes.
    let wait = |device: &mut Device, span: Duration| {
        device.settle(1);
        device.deliver(counting, "count", None).unwrap();
        device.pass(span);
        device.settle(10);
    };
    wait(&mut device, Duration::from_secs(3));
    assert_eq!(longest(&device), Duration::from_secs(3));
    device.kernel.tenancy(device.now).restart(&name("counting")).unwrap();
    device.settle(10);
    assert_eq!(longest(&device), Duration::from_secs(3));
    let budget = tenure_wire::Budget::default();
    device.try_install("counting", COUNTING, 2, budget).unwrap();
    assert_eq!(longest(&device), Duration::ZERO);
    wait(&mut device, Duration::from_secs(2));
    assert_eq!(longest(&device), Duration::from_secs(2));
}
