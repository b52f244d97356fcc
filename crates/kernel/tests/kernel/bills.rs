//! Bills: what machines are charged, beside what they are known to use.

use std::time::Duration;

use tenure_store::ValueKind;
use tenure_wire::Budget;
use tenure_wire::usage::Usage;

use crate::world::{Device, name};

/// Keeps a value of 100 bytes, sends a message of 20 bytes to nobody, and spins.
const WORKER: &str = r#"
    (data (i32.const 0) "nobody@attic") (data (i32.const 16) "echo") (data (i32.const 24) "key")
    (func (export "keep") (drop (call $tree_set (i32.const 24) (i32.const 3) (i32.const 0)
      (i32.const 64) (i32.const 100))))
    (func (export "send") (drop (call $queue (i32.const 0) (i32.const 12)
      (i32.const 16) (i32.const 4) (i32.const 64) (i32.const 16) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))))
    (func (export "spin") (loop (br 0)))"#;

fn used(device: &mut Device) -> Usage {
    let id = device.kernel.machines().next().unwrap().id;
    device.kernel.take_usage(device.now, id).unwrap()
}

#[test]
fn fuel_is_billed_as_it_is_burnt() {
    let mut device = Device::new();
    let worker = device.install("worker", WORKER);
    device.settle(10);
    used(&mut device);
    device.deliver(worker, "spin", None).unwrap();
    let mut burnt = 0;
    for _ in 0..50 {
        device.step();
        burnt += device.kernel.last_turn().unwrap().fuel;
    }
    assert!(burnt >= 50 * device.kernel.config().slice_fuel);
    assert_eq!(used(&mut device).fuel, burnt);
    assert_eq!(used(&mut device).fuel, 0, "once");
}

#[test]
fn run_time_is_billed_from_the_beginning_of_a_turn_to_the_next_poll() {
    let mut device = Device::new();
    let worker = device.install("worker", WORKER);
    device.settle(10);
    used(&mut device);
    device.deliver(worker, "spin", None).unwrap();
    for _ in 0..20 {
        device.step();
        device.pass(Duration::from_micros(1_234));
    }
    device.step();
    assert_eq!(used(&mut device).run_us, 20 * 1_234);
}

#[test]
fn run_time_is_not_billed_while_a_machine_waits() {
    let mut device = Device::new();
    let worker = device.install("worker", WORKER);
    device.call(worker, "keep", None).unwrap();
    used(&mut device);
    device.pass(Duration::from_secs(3_600));
    device.settle(10);
    assert_eq!(used(&mut device).run_us, 0);
}

#[test]
fn storage_is_billed_by_what_is_stored_and_for_how_long() {
    let mut device = Device::new();
    device.base.clear();
    let worker = device.install("worker", WORKER);
    device.settle(10);
    used(&mut device);
    device.pass(Duration::from_secs(10));
    let code = used(&mut device).code_byte_ms;
    assert!(code > 0 && code.is_multiple_of(10_000), "so many bytes for 10,000 ms");
    device.call(worker, "keep", None).unwrap();
    let stored = device.kernel.machines().next().unwrap().stored_bytes as u64;
    assert!((103..200).contains(&stored), "{stored}: key, value and what keeps them");
    used(&mut device);
    device.pass(Duration::from_secs(10));
    let usage = used(&mut device);
    assert_eq!((usage.stored_byte_ms, usage.code_byte_ms), (stored * 10_000, code));
}

#[test]
fn flash_writes_are_billed_with_what_they_append() {
    let mut device = Device::new();
    let worker = device.install("worker", WORKER);
    device.settle(10);
    used(&mut device);
    for _ in 0..7 {
        device.call(worker, "keep", None).unwrap();
    }
    let usage = used(&mut device);
    let stored = device.kernel.machines().next().unwrap().stored_bytes as u64;
    assert_eq!((usage.flash_writes, usage.flash_bytes), (7, 7 * stored));
}

#[test]
fn a_message_is_billed_once_and_only_if_it_may_be_sent() {
    let mut device = Device::new();
    let few = Budget { messages_per_second: 2, queue_length: 100, ..Budget::default() };
    let worker = device.try_install("worker", WORKER, 1, few).unwrap();
    device.settle(10);
    used(&mut device);
    for _ in 0..9 {
        device.call(worker, "send", None).unwrap();
    }
    assert_eq!(used(&mut device).messages, 4, "two seconds' worth, and five were refused");
    assert_eq!(device.effects.len(), 4);
}

#[test]
fn use_is_billed_once_whatever_empties_and_fills_its_machine() {
    type Refill = fn(&mut Device);
    let restart: Refill =
        |device| device.kernel.tenancy(device.now).restart(&name("worker")).unwrap();
    let restore: Refill = |device| {
        let values = [("key".to_string(), ValueKind::Text, b"1".to_vec())];
        device.kernel.tenancy(device.now).restore(&name("worker"), &values).unwrap();
    };
    let update: Refill =
        |device| _ = device.try_install("worker", WORKER, 2, Budget::default()).unwrap();
    for refill in [restart, restore, update] {
        let mut device = Device::new();
        let worker = device.install("worker", WORKER);
        device.settle(10);
        device.call(worker, "keep", None).unwrap();
        device.pass(Duration::from_secs(5));
        let expected = {
            let mut other = Device::new();
            let worker = other.install("worker", WORKER);
            other.settle(10);
            other.call(worker, "keep", None).unwrap();
            other.pass(Duration::from_secs(5));
            used(&mut other)
        };
        refill(&mut device);
        let usage = used(&mut device);
        let of =
            |usage: &Usage| (usage.fuel, usage.flash_writes, usage.messages, usage.code_byte_ms);
        assert_eq!(of(&usage), of(&expected));
        assert!(usage.fuel > 0 && usage.flash_writes > 0);
        assert_eq!(of(&used(&mut device)), (0, 0, 0, 0), "once");
    }
}

#[test]
fn each_machine_is_billed_for_itself() {
    let mut device = Device::new();
    let worker = device.install("worker", WORKER);
    device.install("other", WORKER);
    device.settle(10);
    let ids: Vec<_> = device.kernel.machines().map(|info| info.id).collect();
    for id in &ids {
        device.kernel.take_usage(device.now, *id).unwrap();
    }
    device.call(worker, "keep", None).unwrap();
    let mut of = |wanted: &str| {
        let wanted = name(wanted);
        let id = device.kernel.machines().find(|info| info.record.name == wanted).unwrap().id;
        device.kernel.take_usage(device.now, id).unwrap()
    };
    assert!(of("worker").fuel > 0);
    let other = of("other");
    assert_eq!((other.fuel, other.flash_bytes, other.messages, other.run_us), (0, 0, 0, 0));
}

#[test]
fn the_most_memory_in_use_is_billed_although_it_is_not_kept() {
    let mut device = Device::new();
    let worker = device.install("worker", WORKER);
    device.call(worker, "keep", None).unwrap();
    let in_use = used(&mut device).memory_bytes_peak;
    assert_ne!(in_use, 0);
    assert_eq!(used(&mut device).memory_bytes_peak, in_use, "it is in use still");
}
