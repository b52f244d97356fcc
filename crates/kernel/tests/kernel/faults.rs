use std::time::Duration;

use tenure_kernel::{Config, State};
use tenure_wire::host_call::HostError;
use tenure_wire::{Budget, LogLevel};

use crate::world::{Device, name, text};

const SPINNER: &str = r#"(func (export "entry") (loop (br 0)))"#;
const COUNTING: &str = r#"(global $count (mut i32) (i32.const 0))
    (func (export "count")
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (call $reply_digit (global.get $count)))
    (func (export "trap") unreachable)
    (func (export "overflow") (call $deeper))
    (func $deeper (call $deeper))
    (func (export "bad_pointer") (drop (call $reply (i32.const 0x7FFFFFF0) (i32.const 64))))
    (func (export "give_up") (call $abort (i32.const 0) (i32.const 4)))
    (data (i32.const 0) "oops")"#;

fn state_of(device: &Device, machine: &str) -> State {
    let wanted = name(machine);
    device.kernel.machines().find(|info| info.record.name == wanted).unwrap().state
}

#[test]
fn a_machine_that_spins_forever_leaves_the_others_their_turns() {
    let mut device = Device::new();
    device.install("spinner", SPINNER);
    let counting = device.install("counting", COUNTING);
    for expected in 1..=5 {
        let ticket = device.deliver(counting, "count", None).unwrap();
        device.settle(4);
        let reply = device.replies.remove(&ticket).expect("an answer within four slices");
        assert_eq!(text(reply), expected.to_string());
    }
    assert_eq!(state_of(&device, "spinner"), State::Ready);
}

#[test]
fn each_kind_of_fault_stops_that_machine_alone() {
    for (function, told) in [
        ("trap", HostError::Execution),
        ("overflow", HostError::Overspent),
        ("bad_pointer", HostError::Execution),
        ("give_up", HostError::Execution),
    ] {
        let mut device = Device::new();
        let counting = device.install("counting", COUNTING);
        let other = device.install("other", COUNTING);
        assert_eq!(device.call(counting, function, None), Err(told), "{function}");
        assert_eq!(state_of(&device, "counting"), State::BackedOff, "{function}");
        assert_eq!(text(device.call(other, "count", None)), "1", "{function}");
        assert!(device.logged(&format!("counting stopped while serving `{function}`")));
    }
}

#[test]
fn a_stopped_machine_starts_afresh_after_its_back_off_and_keeps_its_queue() {
    let mut device = Device::new();
    let counting = device.install("counting", COUNTING);
    assert_eq!(text(device.call(counting, "count", None)), "1");
    device.call(counting, "trap", None).unwrap_err();
    let ticket = device.deliver(counting, "count", None).unwrap();
    device.settle(10);
    assert!(!device.replies.contains_key(&ticket), "it is backed off");
    device.pass(Duration::from_secs(1));
    device.settle(10);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "1", "with fresh globals");
}

#[test]
fn back_off_doubles_with_each_fault_in_a_row() {
    let mut device = Device::new();
    device.install("crasher", r#"(func (export "entry") unreachable)"#);
    let mut waits = Vec::new();
    for _ in 0..5 {
        let before = device.now;
        while let tenure_kernel::Ran::Slice = device.step() {}
        let tenure_kernel::Ran::Idle { until: Some(until) } = device.step() else {
            panic!("it waits for its back-off")
        };
        waits.push(until.since(before).as_secs());
        device.now = until;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16]);
}

#[test]
fn a_task_that_outspends_its_fuel_is_stopped() {
    let mut device = Device::new();
    let budget = tenure_wire::Budget { task_fuel: 100_000, ..tenure_wire::Budget::default() };
    device.try_install("spinner", SPINNER, 1, budget).unwrap();
    device.settle(20);
    assert_eq!(state_of(&device, "spinner"), State::BackedOff);
    assert!(device.logged("more fuel than its budget"), "{:?}", device.log);
}

#[test]
fn a_sleeping_machine_wakes_in_time_and_not_before() {
    let mut device = Device::new();
    device.install(
        "sleeper",
        r#"(data (i32.const 0) "awake") (func (export "entry")
            (call $sleep_ms (i32.const 500)) (call $log (i32.const 2) (i32.const 0) (i32.const 5)))"#,
    );
    device.settle(10);
    device.pass(Duration::from_millis(499));
    device.settle(10);
    assert!(!device.logged("awake"));
    device.pass(Duration::from_millis(1));
    device.settle(10);
    assert!(device.logged("awake"));
}

#[test]
fn log_lines_beyond_what_the_node_takes_are_dropped_and_counted() {
    let mut device = Device::with(Config { effects_max: 8, ..Config::default() });
    device.install(
        "chatterbox",
        r#"(func (export "entry")
            (loop (call $log (i32.const 2) (i32.const 0) (i32.const 1)) (br 0)))"#,
    );
    device.step();
    assert!(device.log.len() <= 8, "{}", device.log.len());
    assert!(device.kernel.logs_dropped() > 0);
}

#[test]
fn fault_for_want_of_a_budget_names_the_limit() {
    let body = r#"
        (func $deep (export "deep") (call $deep) (call $yield_now))
        (func (export "spin") (loop (br 0)))
        (func (export "beyond") (drop (i32.load (i32.const 32000))))
        (func (export "full") (i32.store (i32.const 16000) (i32.const 1)) unreachable)
        (func (export "empty") unreachable)
        (func (export "small_abort") (call $abort (i32.const 0) (i32.const 1)))"#;
    let budget = Budget {
        memory_bytes: 16_384,
        stack_bytes: 4_096,
        task_fuel: 100_000,
        ..Budget::default()
    };
    let cases = [
        ("deep", "stack_bytes = 4096"),
        ("spin", "task_fuel = 100000"),
        ("beyond", "of memory_bytes = 16384"),
        ("full", "of memory_bytes = 16384"),
    ];
    for (function, limit) in cases {
        let mut device = Device::new();
        let machine = device.try_install("hungry", body, 1, budget).unwrap();
        device.call(machine, function, None).unwrap_err();
        assert!(device.logged(limit), "{function}: {:?}", device.log);
        let fault = device.kernel.machines().next().unwrap().last_fault.unwrap();
        assert!(fault.to_string().contains(limit), "{function}: {fault}");
    }
    for function in ["empty", "small_abort"] {
        let mut device = Device::new();
        let machine = device.try_install("hungry", body, 1, budget).unwrap();
        device.call(machine, function, None).unwrap_err();
        assert!(!device.logged("_bytes = "), "{function}: {:?}", device.log);
    }
}

#[test]
fn fault_names_the_calls_that_led_to_it() {
    let body = r#"
        (func $trap unreachable)
        (func $middle (param i32) (if (local.get 0) (then (call $trap)) (else
            (call $abort (i32.const 0) (i32.const 1)))))
        (func (export "fall") (call $middle (i32.const 1)))
        (func (export "give_up") (call $middle (i32.const 0)))
        (func $spin (export "spin") (loop (br 0)))
        (func (export "wild") (drop (call $reply (i32.const 0x7FFFFFF0) (i32.const 64))))
        (func $deep (export "deep") (call $deep) (call $yield_now))"#;
    let budget = Budget { task_fuel: 100_000, ..Budget::default() };
    // The functions from the place of the fault outwards, counted from `$trap`.
    let endless: &[u32] = &[6; 13];
    let cases: [(&str, &[u32]); 5] = [
        ("fall", &[0, 1, 2]),
        ("give_up", &[1, 3]),
        ("spin", &[4]),
        ("wild", &[5]),
        ("deep", endless),
    ];
    let mut bases = Vec::new();
    for (function, functions) in cases {
        let mut device = Device::new();
        let machine = device.try_install("m", body, 1, budget).unwrap();
        device.call(machine, function, None).unwrap_err();
        let line = device.log.iter().find(|line| line.contains("stopped while")).unwrap();
        let (_, place) = line.split_once("in function ").unwrap();
        let (first, outer) = place.split_once(" at offset 0x").unwrap();
        let outer = outer.split_once(", called from ").map_or("", |(_, outer)| outer);
        let outer = outer.split(", ").filter_map(|site| site.split_once(":0x")).map(|(at, _)| at);
        let named: Vec<u32> =
            core::iter::once(first).chain(outer).map(|at| at.parse().unwrap()).collect();
        let base = named[0] - functions[0];
        bases.push(base);
        let named: Vec<u32> = named.iter().map(|function| function - base).collect();
        assert_eq!(named, functions, "{function}: {line}");
    }
    assert!(bases.windows(2).all(|pair| pair[0] == pair[1]), "{bases:?}");
}

#[test]
fn lines_less_grave_than_the_manifest_wants_are_left_out_and_faults_never_are() {
    let body = r#"(data (i32.const 0) "0123")
        (func (export "say") (local $level i32)
          (loop
            (call $log (local.get $level) (local.get $level) (i32.const 1))
            (local.set $level (i32.add (local.get $level) (i32.const 1)))
            (br_if 0 (i32.lt_u (local.get $level) (i32.const 4)))))
        (func (export "trap") unreachable)"#;
    let cases = [(LogLevel::Debug, "0123"), (LogLevel::Warning, "01"), (LogLevel::Fault, "")];
    for (log_level, said) in cases {
        let mut device = Device::new();
        device.log_level = log_level;
        let machine = device.install("m", body);
        device.call(machine, "say", None).unwrap();
        let lines: String = device
            .log
            .iter()
            .filter_map(|line| line.strip_prefix("m "))
            .filter(|line| *line != "installed")
            .collect();
        assert_eq!(lines, said, "{log_level}");
        device.call(machine, "trap", None).unwrap_err();
        assert!(device.logged("stopped while serving"), "{log_level}");
    }
}
