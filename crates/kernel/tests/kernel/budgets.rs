use tenure_kernel::{Config, DeliverError, InstallError};
use tenure_wire::Budget;
use tenure_wire::host_call::HostError;

use crate::world::{Device, text};

const STORING: &str = r#"(data (i32.const 0) "key")
    (func (export "fill") (local $result i32)
      (local.set $result (call $tree_set (i32.const 0) (i32.const 3) (i32.const 0)
        (i32.const 4096) (i32.const 1500)))
      (call $reply_digit (i32.sub (i32.const 0) (local.get $result))))
    (func (export "spin") (loop (br 0)))"#;

#[test]
fn stored_bytes_beyond_the_budget_are_refused() {
    let mut device = Device::new();
    let budget = Budget { stored_bytes: 1024, ..Budget::default() };
    let storing = device.try_install("storing", STORING, 1, budget).unwrap();
    let digit = text(device.call(storing, "fill", None));
    assert_eq!(digit, (-HostError::Full.code()).to_string());
}

#[test]
fn a_value_can_be_replaced_when_there_is_room_for_one() {
    let mut device = Device::new();
    let budget = Budget { stored_bytes: 2500, ..Budget::default() };
    let storing = device.try_install("storing", STORING, 1, budget).unwrap();
    for _ in 0..20 {
        assert_eq!(text(device.call(storing, "fill", None)), "0");
    }
}

#[test]
fn a_full_queue_refuses_further_calls() {
    let mut device = Device::new();
    let budget = Budget { queue_length: 3, ..Budget::default() };
    let storing = device.try_install("storing", STORING, 1, budget).unwrap();
    let taken = (0..5).filter(|_| device.deliver(storing, "spin", None).is_ok()).count();
    assert_eq!(taken, 3);
    assert_eq!(device.deliver(storing, "spin", None), Err(DeliverError::Busy));
}

#[test]
fn memory_beyond_the_budget_is_a_fault() {
    let mut device = Device::new();
    let reach = r#"(func (export "reach") (i32.store (i32.const 60000) (i32.const 1)))
        (func (export "near") (i32.store (i32.const 8000) (i32.const 1)))"#;
    let small = Budget { memory_bytes: 16 * 1024, ..Budget::default() };
    let machine = device.try_install("reacher", reach, 1, small).unwrap();
    assert_eq!(device.call(machine, "near", None), Ok(None));
    assert_eq!(device.call(machine, "reach", None), Err(HostError::Execution));
}

#[test]
fn one_machine_too_many_is_refused() {
    let mut device = Device::with(Config { machines_max: 2, ..Config::default() });
    device.install("a", STORING);
    device.install("b", STORING);
    let third = device.try_install("c", STORING, 1, Budget::default());
    assert_eq!(third, Err(InstallError::NoSlot));
}
