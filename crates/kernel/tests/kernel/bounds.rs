//! Each resource of the device that a machine can spend, driven to its bound.

use std::time::Duration;

use tenure_kernel::{Config, IncomingCall, LogLevel, Standing, Ticket};
use tenure_wire::host_call::HostError;
use tenure_wire::{Budget, Topic};

use crate::world::{Device, digit, key, name, text};

/// The most fuel that one of the next turns takes.
fn worst_turn(device: &mut Device, turns: usize) -> u64 {
    let mut worst = 0;
    for _ in 0..turns {
        device.step();
        worst = worst.max(device.kernel.last_turn().map_or(0, |turn| turn.fuel));
    }
    worst
}

/// Subscribes to eight patterns that all mean `a.b.c.d.e.f.g`.
const SUBSCRIBER: &str = r#"
    (data (i32.const 0) "a.b.c.d.e.f.*") (data (i32.const 16) "a.b.c.d.e.*")
    (data (i32.const 32) "a.b.c.d.*") (data (i32.const 48) "a.b.c.*")
    (data (i32.const 64) "a.b.*") (data (i32.const 80) "a.*") (data (i32.const 96) "*")
    (data (i32.const 112) "a.b.c.d.e.f.g")
    (func $to (param $at i32) (param $length i32)
      (drop (call $subscribe (local.get $at) (local.get $length) (i32.const 0) (i32.const 4)
        (i32.const 0) (i32.const 0))))
    (func (export "entry")
      (call $to (i32.const 0) (i32.const 13)) (call $to (i32.const 16) (i32.const 11))
      (call $to (i32.const 32) (i32.const 9)) (call $to (i32.const 48) (i32.const 7))
      (call $to (i32.const 64) (i32.const 5)) (call $to (i32.const 80) (i32.const 3))
      (call $to (i32.const 96) (i32.const 1)) (call $to (i32.const 112) (i32.const 13)))"#;

/// Publishes once under `a.b.c.d.e.f.g`, and replies with the number of queues as two letters.
const PUBLISHER: &str = r#"(data (i32.const 0) "a.b.c.d.e.f.g")
    (func (export "publish") (local $queues i32)
      (local.set $queues (call $publish (i32.const 0) (i32.const 13) (i32.const 64) (i32.const 8)))
      (i32.store8 (i32.const 200) (i32.add (i32.const 48)
        (i32.div_u (local.get $queues) (i32.const 16))))
      (i32.store8 (i32.const 201) (i32.add (i32.const 48)
        (i32.rem_u (local.get $queues) (i32.const 16))))
      (drop (call $reply (i32.const 200) (i32.const 2))))"#;

#[test]
fn a_publication_to_a_hundred_and_twenty_queues_keeps_the_bound_of_a_turn() {
    let small = Budget { memory_bytes: 4096, stack_bytes: 1024, ..Budget::default() };
    let mut device = Device::new();
    for letter in b'a'..b'a' + 15 {
        let name = format!("{}subscriber", char::from(letter));
        device.try_install(&name, SUBSCRIBER, 1, small).unwrap();
    }
    let publisher = device.try_install("zpublisher", PUBLISHER, 1, small).unwrap();
    device.settle(100);
    assert_eq!(device.kernel.events().subscriptions().count(), 120);
    let ticket = device.deliver(publisher, "publish", None).unwrap();
    let promised = device.kernel.turn_fuel_max();
    let worst = worst_turn(&mut device, 50);
    assert!(worst <= promised, "{worst} fuel, promised at most {promised}");
    assert!(worst > promised / 2, "{worst}: handing over costs something");
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "78", "16 times 7, and 8");
    assert!(
        device.kernel.events().subscriptions().all(|one| one.status.queued == 1),
        "each has it once"
    );
    let topic: Topic = "a.b.c.d.e.f.g".parse().unwrap();
    assert_eq!(
        device.kernel.events().topics().0.collect::<Vec<_>>(),
        [(&topic, 1)],
        "it counts as one"
    );
}

/// Replies with the status of each kind of call that takes a text of the length in the parameter.
const TEXTS: &str = r#"
    (func $length (result i32)
      (drop (call $parameter_read (i32.const 0) (i32.const 0) (i32.const 4)))
      (i32.load (i32.const 0)))
    (func $status (param i32) (call $reply_digit (i32.sub (i32.const 0) (local.get 0))))
    (func (export "get") (call $status
      (call $tree_get (i32.const 64) (call $length) (i32.const 0) (i32.const 0))))
    (func (export "set") (call $status (call $tree_set
      (i32.const 64) (call $length) (i32.const 0) (i32.const 64) (i32.const 1))))
    (func (export "list") (call $status
      (call $tree_list (i32.const 64) (call $length) (i32.const 0) (i32.const 0))))
    (func (export "delete") (call $status (call $tree_delete (i32.const 64) (call $length))))
    (func (export "publish") (call $status
      (call $publish (i32.const 64) (call $length) (i32.const 64) (i32.const 1))))
    (func (export "subscribe") (call $status (call $subscribe
      (i32.const 64) (call $length) (i32.const 0) (i32.const 4) (i32.const 0) (i32.const 0))))
    (func (export "target") (call $status (call $call (i32.const 64) (call $length)
      (i32.const 64) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0))))
    (func (export "function") (call $status (call $call (i32.const 64) (i32.const 0)
      (i32.const 64) (call $length) (i32.const 0) (i32.const 0) (i32.const 0))))"#;

#[test]
fn a_text_that_is_too_long_is_refused_before_it_is_read() {
    let mut device = Device::new();
    let large = Budget { memory_bytes: 64 * 1024, ..Budget::default() };
    let machine = device.try_install("texts", TEXTS, 1, large).unwrap();
    for function in ["get", "set", "list", "delete", "publish", "subscribe", "target", "function"] {
        let status = text(device.call(machine, function, Some(&60_000_u32.to_le_bytes())));
        assert_eq!(status, digit(HostError::TooLong), "{function}: zeros would be a bad name");
    }
}

#[test]
fn a_longer_text_costs_more_fuel() {
    let mut device = Device::new();
    let machine = device.install("texts", TEXTS);
    let mut fuel_for = |length: u32| {
        let before = device.kernel.machines().next().unwrap().fuel_used;
        device.call(machine, "get", Some(&length.to_le_bytes())).unwrap();
        device.kernel.machines().next().unwrap().fuel_used - before
    };
    // The first call also pays for memory that is reached for the first time.
    fuel_for(4);
    let (short, long, longest) = (fuel_for(4), fuel_for(128), fuel_for(2_000));
    assert_eq!(long - short, (128 - 4) / 4);
    assert_eq!(longest, long, "more than a path has isn't looked at");
}

/// Logs lines of a hundred bytes without end.
const FLOOD: &str = r#"(func (export "flood") (loop $again
      (call $log (i32.const 2) (i32.const 0) (i32.const 100)) (br $again)))"#;
const FAULTY: &str = r#"(func (export "fail") unreachable)"#;

#[test]
fn a_line_of_the_log_that_is_too_long_shows_that_it_was_cut_and_an_empty_one_is_kept() {
    // 300 bytes of two each; one byte before them moves the place of the cut into a character.
    const LONG: &str = r#"(func $fill (local $at i32)
          (loop $again
            (i32.store16 offset=1 (local.get $at) (i32.const 0xA9C3))
            (local.set $at (i32.add (local.get $at) (i32.const 2)))
            (br_if $again (i32.lt_u (local.get $at) (i32.const 300)))))
        (func (export "say")
          (call $fill)
          (call $log (i32.const 2) (i32.const 1) (i32.const 256))
          (call $log (i32.const 2) (i32.const 1) (i32.const 257))
          (i32.store8 (i32.const 0) (i32.const 0x41))
          (call $log (i32.const 2) (i32.const 0) (i32.const 301))
          (call $log (i32.const 2) (i32.const 0) (i32.const 0)))"#;
    let mut device = Device::new();
    let long = device.install("long", LONG);
    device.call(long, "say", None).unwrap();
    let said = |text: String| format!("long {text}");
    let expected = [
        said("installed".into()),
        said("é".repeat(128)),
        said("é".repeat(126) + "…"),
        said("A".to_string() + &"é".repeat(126) + "…"),
        said(String::new()),
    ];
    assert_eq!(device.log, expected);
}

#[test]
fn a_machine_logs_what_its_budget_allows_and_no_more() {
    let mut device = Device::new();
    let flood = device.install("flood", FLOOD);
    device.deliver(flood, "flood", None).unwrap();
    device.settle(500);
    let at_once = device.log.len();
    assert!((16..=62).contains(&at_once), "{at_once}: eight seconds' worth at most");
    for _ in 0..100 {
        device.pass(Duration::from_millis(100));
        device.settle(10);
    }
    let bytes: usize = device.log[at_once..].iter().map(String::len).sum();
    assert!((5 * 1024..=11 * 1024).contains(&bytes), "{bytes} in ten seconds");
    assert!(device.logged("lines were dropped: it may log 1024 bytes a second"));
    assert!(device.kernel.logs_dropped() > 1_000);
}

#[test]
fn a_fault_is_told_of_however_much_another_machine_logs() {
    let mut device = Device::with(Config { log_bytes_per_second: 1_000_000, ..Config::default() });
    let flood = device.install("flood", FLOOD);
    let faulty = device.install("other", FAULTY);
    device.deliver(flood, "flood", None).unwrap();
    device.deliver(faulty, "fail", None).unwrap();
    // The node takes nothing meanwhile.
    for _ in 0..20 {
        device.run_untaken();
    }
    let (mut own, mut faults) = (0, 0);
    while let Some(effect) = device.kernel.effect() {
        if let tenure_kernel::Effect::Log(entry) = effect {
            own += usize::from(entry.machine == name("flood") && entry.level != LogLevel::Fault);
            faults += usize::from(entry.machine == name("other") && entry.level == LogLevel::Fault);
        }
    }
    assert_eq!((own <= 17, faults), (true, 1), "a quarter of the queue: {own}");
}

#[test]
fn a_stranger_that_is_denied_does_not_drown_a_machines_log() {
    let config = Config { device: Some(name("attic")), ..Config::default() };
    let mut device = Device::with(config);
    let none = tenure_wire::Capabilities::default();
    let closed = device
        .install_granted("closed", r#"(export "echo" (func $echo))"#, 1, Budget::default(), &none)
        .unwrap();
    device.settle(10);
    device.log.clear();
    let knock = |device: &mut Device, caller: u8| {
        let call = IncomingCall {
            to: closed,
            caller: Some(key(caller)),
            standing: Standing::Stranger,
            function: "echo".to_string(),
            parameter: None,
            deadline: device.now + Duration::from_secs(1),
        };
        device.kernel.deliver(device.now, call, Ticket(1)).unwrap_err();
        device.settle(1);
    };
    for _ in 0..200 {
        knock(&mut device, 1);
    }
    assert_eq!(device.log.len(), 1, "{:?}", device.log);
    for caller in 0..200 {
        knock(&mut device, caller);
    }
    assert_eq!(device.log.len(), 4, "one line a caller, of four callers: {:?}", device.log);
    assert!(device.log.iter().all(|line| line.starts_with("attic closed: not granted")));
    device.pass(Duration::from_secs(60));
    knock(&mut device, 1);
    assert!(device.logged("(200 times more)"), "{:?}", device.log);
    assert_eq!(device.kernel.machines().next().unwrap().grants.denied(), 401);
}
