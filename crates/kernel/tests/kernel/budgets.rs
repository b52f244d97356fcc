use std::time::Duration;

use tenure_kernel::policy::PolicyKind;
use tenure_kernel::{Config, InstallError, MachineInfo, NoResult, Ran};
use tenure_wire::host_call::HostError;
use tenure_wire::{Budget, Share};

use crate::world::{Device, digit, id_of, key, name, text};

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
    assert_eq!(text(device.call(storing, "fill", None)), digit(HostError::StoredBudget));
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
    assert_eq!(device.deliver(storing, "spin", None), Err(NoResult::Busy));
}

#[test]
fn memory_beyond_the_budget_is_a_fault() {
    let mut device = Device::new();
    let reach = r#"(func (export "reach") (i32.store (i32.const 60000) (i32.const 1)))
        (func (export "near") (i32.store (i32.const 8000) (i32.const 1)))"#;
    let small = Budget { memory_bytes: 16 * 1024, ..Budget::default() };
    let machine = device.try_install("reacher", reach, 1, small).unwrap();
    assert_eq!(device.call(machine, "near", None), Ok(None));
    assert_eq!(device.call(machine, "reach", None), Err(HostError::Overspent));
}

#[test]
fn one_machine_too_many_is_refused() {
    let mut device = Device::with(Config { machines_max: 2, ..Config::default() });
    device.install("a", STORING);
    device.install("b", STORING);
    let third = device.try_install("c", STORING, 1, Budget::default());
    assert_eq!(third, Err(InstallError::NoSlot));
}

/// Sends to nobody, a fixed number of times; replies with the last status.
const SENDING: &str = r#"(data (i32.const 0) "nobody@attic") (data (i32.const 64) "echo")
    (func (export "send") (local $left i32) (local $status i32)
      (local.set $left (i32.const 10))
      (loop $again
        (local.set $status (call $queue (i32.const 0) (i32.const 12) (i32.const 64) (i32.const 4)
          (i32.const 4096) (i32.const 1000) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
          (i32.const 1) (i32.const 0)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $again (i32.and (i32.ge_s (local.get $status) (i32.const 0))
          (i32.gt_s (local.get $left) (i32.const 0)))))
      (call $reply_digit (select (i32.const 0) (i32.sub (i32.const 0) (local.get $status))
        (i32.ge_s (local.get $status) (i32.const 0)))))
    (func (export "left") (call $reply_digit (call $budget_left (i32.const 2))))"#;
const SPINNING: &str = r#"(func (export "entry") (loop (br 0)))"#;
const WRITING: &str = r#"(data (i32.const 0) "key")
    (func (export "write") (call $reply_digit (i32.sub (i32.const 0) (call $tree_set
      (i32.const 0) (i32.const 3) (i32.const 0) (i32.const 4096) (i32.const 1000)))))
    (func (export "delete") (call $reply_digit (i32.sub (i32.const 0) (call $tree_delete
      (i32.const 0) (i32.const 3)))))"#;

fn info<'a>(device: &'a Device, machine: &str) -> MachineInfo<'a> {
    let wanted = name(machine);
    device.kernel.machines().find(|info| info.record.name == wanted).unwrap()
}

/// Lets the device burn a million units of fuel a second until `end`.
fn run_until(device: &mut Device, end: Duration) {
    while device.now.since(tenure_hal::Instant::BOOT) < end {
        match device.step() {
            Ran::Slice => {
                let fuel = device.kernel.last_turn().unwrap().fuel;
                device.pass(Duration::from_micros(fuel));
            }
            Ran::Idle { .. } => device.pass(Duration::from_millis(1)),
        }
    }
}

#[test]
fn fuel_by_the_second_is_all_that_a_machine_gets_and_the_others_go_on() {
    let mut device = Device::new();
    let slow = Budget { fuel_per_second: 10_000, ..Budget::default() };
    device.try_install("slow", SPINNING, 1, slow).unwrap();
    device.install("free", SPINNING);
    run_until(&mut device, Duration::from_secs(20));
    let allowed = 22 * 10_000 + Config::default().slice_fuel;
    let used = info(&device, "slow").fuel_used;
    assert!(used <= allowed && used >= 20 * 10_000, "{used} of {allowed}");
    assert!(info(&device, "slow").is_throttled);
    assert!(info(&device, "free").fuel_used > 19_000_000, "the rest is the other one's");
}

#[test]
fn a_device_whose_machines_are_all_throttled_sleeps_until_one_may_run() {
    let mut device = Device::new();
    let slow = Budget { fuel_per_second: 10_000, ..Budget::default() };
    device.try_install("slow", SPINNING, 1, slow).unwrap();
    device.settle(10);
    let Ran::Idle { until: Some(until) } = device.step() else { panic!("it is throttled") };
    device.now = until - Duration::from_micros(2);
    assert!(matches!(device.step(), Ran::Idle { .. }));
    device.now = until;
    assert_eq!(device.step(), Ran::Slice);
}

#[test]
fn messages_and_their_bytes_by_the_second_are_limited_for_the_sender_alone() {
    let by_count = Budget { messages_per_second: 4, queue_length: 99, ..Budget::default() };
    let by_bytes =
        Budget { message_bytes_per_second: 4 * 1004, queue_length: 99, ..Budget::default() };
    for budget in [by_count, by_bytes] {
        let mut device = Device::new();
        let sender = device.try_install("sender", SENDING, 1, budget).unwrap();
        let other = device.install("other", SENDING);
        let _ = other;
        assert_eq!(text(device.call(sender, "send", None)), digit(HostError::MessageBudget));
        assert_eq!(device.effects.len(), 8, "two seconds' worth at once");
        device.pass(Duration::from_secs(1));
        assert_eq!(text(device.call(sender, "send", None)), digit(HostError::MessageBudget));
        assert_eq!(device.effects.len(), 12);
        let other = id_of(&key(b'o'));
        assert_eq!(text(device.call(other, "send", None)), digit(HostError::QueueBudget));
        assert_eq!(device.effects.len(), 12 + usize::from(Budget::default().queue_length));
    }
}

#[test]
fn a_machine_is_told_what_it_has_left() {
    let mut device = Device::new();
    let budget = Budget { messages_per_second: 4, queue_length: 99, ..Budget::default() };
    let sender = device.try_install("sender", SENDING, 1, budget).unwrap();
    assert_eq!(text(device.call(sender, "left", None)), "8");
    device.call(sender, "send", None).unwrap();
    assert_eq!(text(device.call(sender, "left", None)), "0");
}

#[test]
fn flash_writes_by_the_day_are_limited_for_the_writer_alone() {
    let mut device = Device::new();
    let budget = Budget { flash_bytes_per_day: 40 * 1024, ..Budget::default() };
    let writer = device.try_install("writer", WRITING, 1, budget).unwrap();
    let other = device.install("other", WRITING);
    let mut written = 0;
    while text(device.call(writer, "write", None)) == "0" {
        written += 1;
        assert_eq!(text(device.call(other, "write", None)), "0");
    }
    assert!((9..=11).contains(&written), "a quarter of a day's at once: {written}");
    assert_eq!(text(device.call(writer, "write", None)), digit(HostError::FlashBudget));
    assert_eq!(text(device.call(writer, "delete", None)), digit(HostError::FlashBudget));
    assert_eq!(text(device.call(other, "write", None)), "0");
    let mut in_a_day = 0;
    for _ in 0..24 * 60 {
        device.pass(Duration::from_secs(60));
        in_a_day += u32::from(text(device.call(writer, "write", None)) == "0");
    }
    assert!((38..=42).contains(&in_a_day), "{in_a_day}");
}

#[test]
fn a_stack_beyond_the_budget_is_a_fault_of_that_machine_alone() {
    let mut device = Device::new();
    let deep = r#"(func $dive (param $left i32)
          (if (local.get $left) (then (call $dive (i32.sub (local.get $left) (i32.const 1))))))
        (func (export "dive") (call $dive (i32.const 100)))"#;
    let small = Budget { stack_bytes: 1024, ..Budget::default() };
    let shallow = device.try_install("shallow", deep, 1, small).unwrap();
    let roomy = device.install("roomy", deep);
    assert_eq!(device.call(shallow, "dive", None), Err(HostError::Overspent));
    assert_eq!(device.call(roomy, "dive", None), Ok(None));
}

/// Spins; `$raise` is called for ever with tier 4 if it is on.
fn raising(on: bool) -> String {
    let call = if on { "(drop (call $raise_tier (i32.const 4) (i32.const 100000)))" } else { "" };
    format!(r#"(func (export "entry") (loop {call} (br 0)))"#)
}

#[test]
fn a_critical_section_has_its_tier_for_a_while_and_no_longer() {
    let policy = PolicyKind::WeightedFair;
    let used = |raises: bool, tier_max: u16| {
        let mut device = Device::with(Config { policy, ..Config::default() });
        let share = Share { tier: 1, tier_max, ..Share::default() };
        let unlimited = Budget { fuel_per_second: 0, ..Budget::default() };
        device.install_with_share("critical", &raising(raises), unlimited, share).unwrap();
        device.try_install("other", SPINNING, 1, unlimited).unwrap();
        run_until(&mut device, Duration::from_secs(8));
        let [one, two] = ["critical", "other"].map(|machine| info(&device, machine).fuel_used);
        one as f64 / two as f64
    };
    let (usual, denied, raised) = (used(false, 4), used(true, 1), used(true, 4));
    assert!((0.95..1.05).contains(&usual) && (0.95..1.05).contains(&denied), "{usual} {denied}");
    // A fifth of its fuel, at four times the tier.
    assert!((1.1..1.4).contains(&raised), "{raised}");
}

#[test]
fn a_reservation_that_does_not_fit_is_refused() {
    let mut device =
        Device::with(Config { policy: PolicyKind::EarliestDeadline, ..Config::default() });
    let half = Share { period_ms: 20, bandwidth_permille: 500, ..Share::default() };
    let budget = Budget::default();
    device.install_with_share("a", SPINNING, budget, half).unwrap();
    let second = device.install_with_share("b", SPINNING, budget, half);
    assert_eq!(second, Err(InstallError::Overbooked));
    device.kernel.tenancy(device.now).remove(&name("a")).unwrap();
    device.install_with_share("b", SPINNING, budget, half).unwrap();
}

#[test]
fn a_restart_gives_back_no_more_of_a_days_flash_than_is_known_not_to_be_written() {
    // A quarter of a day's is there at once: sixteen writes of a thousand bytes and what they take.
    let budget = Budget { flash_bytes_per_day: 64 * 1_000, ..Budget::default() };
    let writes_after = |known: Option<u64>| {
        let mut device = Device::new();
        let writer = device.try_install("writer", WRITING, 1, budget).unwrap();
        let mut device = device.reboot();
        if let Some(bytes) = known {
            device.kernel.recall_flash_use(writer, bytes);
        }
        (0..99).take_while(|_| text(device.call(writer, "write", None)) == "0").count()
    };
    assert_eq!(writes_after(None), 1, "nobody says what it wrote before");
    assert_eq!(writes_after(Some(0)), 16);
    assert_eq!(writes_after(Some(8_000)), 8);
    assert_eq!(writes_after(Some(1 << 40)), 1, "and never nothing");
}
