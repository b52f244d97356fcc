//! Machines whose instances are in flash instead of RAM, for want of room or in deep sleep.

use std::time::Duration;

use tenure_kernel::{CallId, Effect, Ran};

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
    device.kernel.tenancy(device.now).remove(&"deep".parse().unwrap()).unwrap();
    assert!(device.kernel.code().free_bytes() > free, "and with the machine, all of it");
}

/// Dives by itself, and logs how deep it was.
const DIVER: &str = r#"
  (func $down (param $left i32) (result i32)
    (if (result i32) (local.get $left)
      (then (i32.add (i32.const 1) (call $down (i32.sub (local.get $left) (i32.const 1)))))
      (else (call $sleep_ms (i32.const 500)) (i32.const 0))))
  (func (export "entry")
    (i32.store8 (i32.const 2048) (i32.add (i32.const 48) (call $down (i32.const 7))))
    (call $log (i32.const 2) (i32.const 2048) (i32.const 1)))
  (func (export "on_wake")
    (call $log (i32.const 2) (i32.const 4096)
      (call $parameter_read (i32.const 0) (i32.const 4096) (i32.const 16))))"#;

#[test]
fn a_device_in_deep_sleep_loses_no_stack_and_its_timers_are_right() {
    for (asleep_ms, awake_ms) in [(100, 400), (0, 500)] {
        let mut device = Device::new();
        device.install("diver", DIVER);
        device.settle(100);
        let mut device = device.sleep(Duration::from_millis(asleep_ms), &[]);
        device.settle(100);
        device.pass(Duration::from_millis(awake_ms - 1));
        device.settle(100);
        assert!(!device.logged("diver 7"), "its time has not come");
        device.pass(Duration::from_millis(1));
        device.settle(100);
        assert!(device.logged("diver 7"), "{:?}", device.log);
    }
}

#[test]
fn what_fell_due_in_the_sleep_happens_at_once_after_it() {
    let mut device = Device::new();
    device.install("diver", DIVER);
    device.settle(100);
    let mut device = device.sleep(Duration::from_secs(3_600), &[]);
    device.settle(100);
    assert!(device.logged("diver 7"));
}

#[test]
fn a_call_between_machines_goes_on_after_the_sleep_wherever_it_was() {
    for slices in 0..12 {
        let mut device = Device::new();
        device.install("echo", ECHO);
        let asker = device.install("asker", &ASKER.replace("\"ask\"", "\"entry\""));
        for _ in 0..slices {
            device.step();
        }
        let mut device = device.sleep(Duration::from_secs(1), &[]);
        device.settle(100);
        assert_eq!(device.kernel.machines().filter(|one| one.tasks_done == 1).count(), 2);
        assert!(device.kernel.machines().any(|one| one.id == asker));
    }
}

#[test]
fn a_call_off_the_device_is_sent_again_only_if_nobody_carries_it() {
    let elsewhere = ASKER.replace("\"echo\"", "\"a@bc\"").replace("\"ask\"", "\"entry\"");
    for carried in [false, true] {
        let mut device = Device::new();
        device.install("asker", &elsewhere);
        device.settle(100);
        let Some(Effect::Call(call)) = device.effects.pop() else { panic!("a call") };
        let under_way: &[CallId] = if carried { &[call.id] } else { &[] };
        let mut device = device.sleep(Duration::from_secs(1), under_way);
        device.settle(100);
        assert_eq!(device.effects.len(), usize::from(!carried));
        device.kernel.complete(device.now, call.id, Ok(Some(b"there".to_vec())));
        device.settle(100);
        assert_eq!(device.kernel.machines().next().unwrap().tasks_done, 1);
    }
}

#[test]
fn who_called_from_outside_before_the_sleep_gets_the_answer_after_it() {
    let mut device = Device::new();
    let deep = device.install("deep", DEEP);
    let ticket = device.deliver(deep, "dive", None).unwrap();
    device.settle(100);
    let mut device = device.sleep(Duration::from_secs(1), &[]);
    device.settle(100);
    assert!(device.replies.remove(&ticket).is_some_and(|reply| reply.is_ok()));
}

#[test]
fn machines_are_told_how_long_the_sleep_was() {
    let mut device = Device::new();
    device.install("diver", DIVER);
    device.settle(100);
    let mut device = device.sleep(Duration::from_millis(1_234), &[]);
    device.kernel.announce_wake(Duration::from_millis(1_234));
    device.settle(100);
    let (dive, wake) = ("diver 7", "diver 1234");
    let at = |text: &str| device.log.iter().position(|line| line == text);
    assert!(at(dive).unwrap() < at(wake).unwrap(), "after what it was doing: {:?}", device.log);
}

#[test]
fn events_that_wait_are_handled_after_the_sleep() {
    let mut device = Device::new();
    let body = r#"(data (i32.const 0) "door") (data (i32.const 32) "on_door")
      (func (export "entry") (drop (call $subscribe (i32.const 0) (i32.const 4)
        (i32.const 0) (i32.const 4) (i32.const 32) (i32.const 7))))
      (func (export "on_door") (call $log (i32.const 2) (i32.const 4096)
        (call $parameter_read (i32.const 0) (i32.const 4096) (call $parameter_length))))"#;
    device.install("listener", body);
    device.settle(100);
    device.kernel.publish(&"door".parse().unwrap(), b"open").unwrap();
    let mut device = device.sleep(Duration::from_secs(1), &[]);
    device.settle(100);
    assert!(device.logged("listener open"));
    device.kernel.publish(&"door".parse().unwrap(), b"shut").unwrap();
    device.settle(100);
    assert!(device.logged("listener shut"), "the subscription holds on");
}

#[test]
fn a_back_off_goes_on_in_the_sleep() {
    let mut device = Device::new();
    device.install("trap", r#"(func (export "entry") unreachable)"#);
    device.settle(100);
    let mut device = device.sleep(Duration::from_millis(999), &[]);
    device.settle(100);
    assert!(!device.logged("trap stopped"), "the fault before the sleep was another log's");
    device.pass(Duration::from_millis(1));
    device.settle(100);
    assert!(device.logged("trap stopped"));
}

#[test]
fn faults_in_a_row_are_counted_over_the_sleep_and_the_back_off_goes_on_doubling() {
    let mut device = Device::new();
    device.install("trap", r#"(func (export "entry") unreachable)"#);
    let faults = |device: &Device| device.kernel.machines().next().unwrap().faults;
    device.settle(100);
    assert_eq!(faults(&device), 1);
    let mut device = device.sleep(Duration::from_secs(1), &[]);
    assert_eq!(faults(&device), 1, "it was asleep, and isn't forgiven");
    device.settle(100);
    assert_eq!(faults(&device), 2);
    // The second back-off is two seconds, and goes on in the next sleep.
    let mut device = device.sleep(Duration::from_millis(1_999), &[]);
    device.settle(100);
    assert_eq!(faults(&device), 2);
    device.pass(Duration::from_millis(1));
    device.settle(100);
    assert_eq!(faults(&device), 3);
}

#[test]
fn what_is_no_sleeping_kernel_is_refused_and_all_machines_start_afresh() {
    let mut device = Device::new();
    device.install("diver", DIVER);
    device.settle(100);
    let asleep = device.kernel.fall_asleep().unwrap();
    let mut device = device.reboot();
    for length in 0..asleep.len() {
        assert!(device.kernel.wake_up(&asleep[..length], device.now, &[]).is_err());
    }
    device.settle(100);
    device.pass(Duration::from_millis(500));
    device.settle(100);
    assert!(device.logged("diver 7"));
}

#[test]
fn a_machine_that_is_another_after_the_sleep_starts_afresh() {
    let mut device = Device::new();
    device.install("deep", DEEP);
    device.settle(100);
    let asleep = device.kernel.fall_asleep().unwrap();
    device.try_install("deep", ECHO, 2, tenure_wire::Budget::default()).unwrap();
    let mut device = device.reboot();
    device.kernel.wake_up(&asleep, device.now, &[]).unwrap();
    let id = device.kernel.machines().next().unwrap().id;
    assert_eq!(text(device.call(id, "echo", Some(b"new"))), "new");
}
