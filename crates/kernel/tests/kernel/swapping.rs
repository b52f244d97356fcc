//! Machines that don't fit into RAM together notice nothing of it but time.

use std::time::Duration;

use tenure_kernel::{Config, InstallError, Ran, Repute};
use tenure_wire::{Budget, MachineId};

use crate::calls::forwarder;
use crate::world::{Device, id_of, key, name, text};

/// Counts in a global and in memory, across sleeps in the middle of nested functions.
const COUNTING: &str = r#"(global $count (mut i32) (i32.const 0))
    (func $deeper (param $depth i32)
      (if (local.get $depth)
        (then (call $deeper (i32.sub (local.get $depth) (i32.const 1))))
        (else (call $sleep_ms (i32.const 700)))))
    (func (export "count") (local $kept i32)
      (local.set $kept (i32.add (global.get $count) (i32.const 1)))
      (call $deeper (i32.const 5))
      (global.set $count (local.get $kept))
      (i32.store (i32.const 12000) (i32.add (i32.load (i32.const 12000)) (i32.const 1)))
      (if (i32.ne (global.get $count) (i32.load (i32.const 12000))) (then unreachable))
      (call $reply_digit (global.get $count)))"#;
const ANSWERING: &str = r#"(func (export "answer") (call $reply_digit (i32.const 7)))"#;
const SPINNER: &str = r#"(func (export "entry") (loop (br 0)))"#;

/// Room for two machines of the default budget, and a megabyte of flash of which half is set aside.
fn cramped(swap_bytes_max: u32) -> Config {
    Config {
        memory_bytes_max: 45 * 1024,
        swap_bytes_max,
        swap_residence: Duration::from_millis(100),
        deadline_default: Duration::from_secs(60),
        ..Config::default()
    }
}

fn machines(device: &mut Device, count: u8) -> Vec<MachineId> {
    (0..count).map(|number| device.install(&letter(number), COUNTING)).collect()
}

fn letter(number: u8) -> String {
    char::from(b'a' + number).to_string()
}

/// Lets time jump from event to event until nothing is due.
fn run_dry(device: &mut Device) {
    for _ in 0..10_000 {
        match device.step() {
            Ran::Slice => device.pass(Duration::from_millis(1)),
            Ran::Idle { until: Some(until) } => device.now = until.max(device.now),
            Ran::Idle { until: None } => return,
        }
    }
    panic!("it never ends");
}

#[test]
fn an_installation_is_held_to_memory_and_what_is_set_aside() {
    let mut without = Device::with(cramped(0));
    machines(&mut without, 2);
    let third = without.try_install("c", COUNTING, 1, Budget::default());
    assert_eq!(third, Err(InstallError::NoMemory));
    let mut device = Device::with(cramped(128 * 1024));
    let fitting = (0..10).take_while(|number| {
        device.try_install(&letter(*number), COUNTING, 1, Budget::default()).is_ok()
    });
    assert_eq!(fitting.count(), 6, "two in memory, and the others while one comes in");
    let alone = Budget { memory_bytes: 46 * 1024, ..Budget::default() };
    let large = device.try_install("z", COUNTING, 1, alone);
    assert_eq!(large, Err(InstallError::NoMemory), "the largest must fit by itself");
}

#[test]
fn machines_that_take_turns_in_memory_give_what_they_would_give_there() {
    let mut device = Device::with(cramped(160 * 1024));
    let all = machines(&mut device, 6);
    let mut random = 12345_u64;
    let mut expected = [0; 6];
    for _ in 0..40 {
        let mut asked = Vec::new();
        for (number, machine) in all.iter().enumerate() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if (random >> 60) < 8 && expected[number] < 9 {
                expected[number] += 1;
                asked.push((number, device.deliver(*machine, "count", None).unwrap()));
            }
        }
        run_dry(&mut device);
        for (number, ticket) in asked {
            let counted = text(device.replies.remove(&ticket).expect("an answer"));
            assert_eq!(counted, expected[number].to_string(), "machine {number}");
        }
    }
    assert!(expected.iter().all(|count| *count > 5), "{expected:?}");
    assert!(device.kernel.machines().any(|info| info.is_swapped));
    assert!(device.kernel.machines().all(|info| info.repute == Repute::Good && info.faults == 0));
}

/// Half a minute of residence, and erasures for 49 early swaps after a boot.
fn patient() -> Config {
    Config {
        swap_residence: Duration::from_secs(30),
        swap_erasures_per_day: 400,
        ..cramped(160 * 1024)
    }
}

#[test]
fn machine_at_rest_gives_way_at_once_within_the_budget_of_erasures() {
    let mut device = Device::with(patient());
    let all: Vec<_> = (0..4).map(|number| device.install(&letter(number), ANSWERING)).collect();
    run_dry(&mut device);
    let waits: Vec<Duration> = (0..160)
        .map(|round: usize| {
            let begun = device.now;
            let ticket = device.deliver(all[round % 4], "answer", None).unwrap();
            run_dry(&mut device);
            assert_eq!(text(device.replies.remove(&ticket).expect("an answer")), "7");
            device.now.since(begun)
        })
        .collect();
    let at_once = waits.iter().take_while(|wait| **wait < Duration::from_millis(100)).count();
    assert!((40..60).contains(&at_once), "{at_once}: {waits:?}");
    assert!(waits.iter().all(|wait| *wait <= Duration::from_secs(31)), "{waits:?}");
    let later: Duration = waits[at_once..].iter().sum();
    let mean = later / (waits.len() - at_once) as u32;
    assert!(mean > Duration::from_secs(5), "the flash is spared: {mean:?}");
}

#[test]
fn machine_that_waits_for_another_gives_way_to_it() {
    let mut device = Device::with(Config { memory_bytes_max: 25 * 1024, ..patient() });
    let asking = device.install("a", &forwarder("b", "answer"));
    device.install("b", ANSWERING);
    run_dry(&mut device);
    let begun = device.now;
    let ticket = device.deliver(asking, "forward", Some(b"x")).unwrap();
    run_dry(&mut device);
    assert_eq!(text(device.replies.remove(&ticket).expect("an answer")), "7");
    assert!(device.now.since(begun) < Duration::from_millis(100), "{:?}", device.now.since(begun));
}

#[test]
fn who_cannot_come_in_because_the_flash_fails_waits_and_is_not_to_blame() {
    let mut device = Device::with(cramped(160 * 1024));
    let all = machines(&mut device, 3);
    run_dry(&mut device);
    device.kernel.code().flash_mut().cut_power_after(0, 1);
    let asked: Vec<_> =
        all.iter().map(|machine| device.deliver(*machine, "count", None).unwrap()).collect();
    for _ in 0..200 {
        device.step();
        device.pass(Duration::from_millis(50));
    }
    assert_eq!(device.replies.len(), 2, "two are in memory, and nobody can leave");
    device.kernel.code().flash_mut().restore_power();
    run_dry(&mut device);
    for ticket in asked {
        assert_eq!(text(device.replies.remove(&ticket).expect("an answer")), "1");
    }
    assert!(device.kernel.machines().all(|info| info.repute == Repute::Good && info.faults == 0));
    let warned = |line: &str| line.contains("to make room for another");
    assert!(device.log.iter().any(|line| warned(line)), "{:?}", device.log);
}

#[test]
fn machines_that_never_rest_take_turns_and_leave_the_flash_in_peace() {
    let mut device =
        Device::with(Config { swap_residence: Duration::from_secs(1), ..cramped(160 * 1024) });
    for number in 0..4 {
        device.install(&letter(number), SPINNER);
    }
    device.kernel.code().flash_mut().reset_counters();
    let begun = device.now;
    while device.now.since(begun) < Duration::from_secs(60) {
        match device.step() {
            Ran::Slice => device.pass(Duration::from_millis(100)),
            Ran::Idle { until } => device.now = until.unwrap(),
        }
    }
    let used: Vec<u64> = device.kernel.machines().map(|info| info.fuel_used).collect();
    let (least, most) = (used.iter().min().unwrap(), used.iter().max().unwrap());
    assert!(least * 3 > *most, "{used:?}");
    let erases = device.kernel.code().flash_mut().counters().erases;
    assert!(erases < 60 * 2 * 8, "two machines a second at most: {erases} sectors");
}

#[test]
fn a_power_cut_in_the_middle_of_swapping_costs_nobody_anything_but_their_memory() {
    for operations in 0..30 {
        let mut device = Device::with(cramped(160 * 1024));
        let all = machines(&mut device, 4);
        device.kernel.code().flash_mut().cut_power_after(operations, operations);
        for machine in &all {
            let _ = device.deliver(*machine, "count", None);
        }
        for _ in 0..60 {
            device.step();
            device.pass(Duration::from_millis(50));
        }
        device.kernel.code().flash_mut().restore_power();
        let mut device = device.reboot();
        device.replies.clear();
        run_dry(&mut device);
        for (number, machine) in all.iter().enumerate() {
            let ticket = device.deliver(*machine, "count", None).unwrap();
            run_dry(&mut device);
            let counted = text(device.replies.remove(&ticket).expect("an answer"));
            assert_eq!(counted, "1", "cut after {operations}, machine {number}");
        }
    }
}

#[test]
fn a_removed_machine_gives_back_what_it_had_in_flash() {
    let mut device = Device::with(cramped(128 * 1024));
    let all = machines(&mut device, 5);
    for round in 0..20 {
        for machine in &all {
            device.deliver(*machine, "count", None).unwrap();
        }
        run_dry(&mut device);
        device.replies.clear();
        let gone = letter(round % 5);
        device.kernel.tenancy(device.now).remove(&name(&gone)).unwrap();
        let placement = 2 + u64::from(round);
        device.try_install(&gone, COUNTING, placement, Budget::default()).unwrap();
        assert_eq!(device.kernel.machines().count(), 5);
        assert_eq!(id_of(&key(b'a' + round % 5)), all[usize::from(round % 5)]);
    }
}

#[test]
fn who_comes_in_pays_for_the_flash_that_makes_room() {
    let mut device = Device::with(cramped(160 * 1024));
    let all = machines(&mut device, 3);
    let written = |device: &mut Device, machine: &MachineId| {
        let usage = device.kernel.take_usage(device.now, *machine).unwrap();
        (usage.flash_writes, usage.flash_bytes)
    };
    for machine in &all[..2] {
        device.deliver(*machine, "count", None).unwrap();
    }
    run_dry(&mut device);
    assert!(all.iter().all(|machine| written(&mut device, machine) == (0, 0)), "there is room");
    device.deliver(all[2], "count", None).unwrap();
    run_dry(&mut device);
    assert_eq!(device.replies.len(), 3);
    let budget = Budget::default();
    let promised = u64::from(budget.memory_bytes) + u64::from(budget.stack_bytes);
    let paid: Vec<_> = all.iter().map(|machine| written(&mut device, machine)).collect();
    assert_eq!(paid, [(0, 0), (0, 0), (1, promised)]);
}
