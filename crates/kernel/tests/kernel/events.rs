//! Events between machines, and between machines and the device's peripherals.

use std::time::Duration;

use tenure_kernel::{Driver, Listener, Ran, Slot};
use tenure_wire::capability::PeerPattern;
use tenure_wire::{Budget, Capabilities, Topic, TopicPattern};

use crate::world::{Device, text};

/// Publishes its parameter under `door.front` and replies with how many queues took it.
const PUBLISHER: &str = r#"
  (data (i32.const 0) "door.front")
  (func (export "publish") (local $length i32)
    (local.set $length (call $parameter_length))
    (drop (call $parameter_read (i32.const 0) (i32.const 4096) (local.get $length)))
    (call $reply_digit
      (call $publish (i32.const 0) (i32.const 10) (i32.const 4096) (local.get $length))))"#;

/// Subscribes to `door.*` in its start, and logs each event's topic, payload and losses.
fn handler(policy: u32, depth: u32) -> String {
    format!(
        r#"(data (i32.const 0) "door.*") (data (i32.const 32) "on_door")
        (func (export "entry")
          (drop (call $subscribe (i32.const 0) (i32.const 6)
            (i32.const {policy}) (i32.const {depth}) (i32.const 32) (i32.const 7))))
        (func (export "on_door") (local $at i32)
          (local.set $at (call $event_topic (i32.const 4096) (i32.const 64)))
          (i32.store8 (i32.add (i32.const 4096) (local.get $at)) (i32.const 32))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $at (i32.add (local.get $at) (call $parameter_read (i32.const 0)
            (i32.add (i32.const 4096) (local.get $at)) (call $parameter_length))))
          (i32.store8 (i32.add (i32.const 4096) (local.get $at)) (i32.const 32))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (i32.store8 (i32.add (i32.const 4096) (local.get $at))
            (i32.add (i32.const 48) (call $event_dropped)))
          (call $log (i32.const 2) (i32.const 4096) (i32.add (local.get $at) (i32.const 1))))
        (func (export "memory_trap") unreachable)"#
    )
}

/// Subscribes to `door.front` without a handler; `wait` waits for an event and replies with it, or
/// with the error as a digit.
fn waiter(timeout_ms: u32) -> String {
    format!(
        r#"(data (i32.const 0) "door.front")
        (func (export "entry")
          (drop (call $subscribe (i32.const 0) (i32.const 10)
            (i32.const 0) (i32.const 4) (i32.const 0) (i32.const 0))))
        (func (export "wait") (local $length i32)
          (local.set $length (call $event_next (i32.const {timeout_ms})))
          (if (i32.lt_s (local.get $length) (i32.const 0))
            (then (call $reply_digit (i32.sub (i32.const 0) (local.get $length))) (return)))
          (drop (call $event_read (i32.const 0) (i32.const 4096) (local.get $length)))
          (drop (call $reply (i32.const 4096) (local.get $length))))
        (func (export "leave")
          (call $reply_digit (call $unsubscribe (i32.const 0) (i32.const 10))))"#
    )
}

const DEADLINE: &str = "8";
const NOT_FOUND: &str = "1";

fn topic(text: &str) -> Topic {
    text.parse().unwrap()
}

#[test]
fn an_event_reaches_every_handler_with_its_topic() {
    let mut device = Device::new();
    device.install("first", &handler(0, 4));
    device.install("second", &handler(2, 1));
    let publisher = device.install("publisher", PUBLISHER);
    device.settle(100);
    assert_eq!(text(device.call(publisher, "publish", Some(b"open"))), "2");
    device.settle(100);
    assert!(device.logged("first door.front open 0"), "{:?}", device.log);
    assert!(device.logged("second door.front open 0"), "{:?}", device.log);
}

#[test]
fn a_full_queue_does_as_the_machine_chose_and_tells_what_is_lost() {
    for (policy, depth, expected) in [
        (0, 2, &["c door.front 3 3", "c door.front 4 0"][..]),
        (1, 2, &["c door.front 0 0", "c door.front 1 0"]),
        (2, 2, &["c door.front 4 4"]),
    ] {
        let mut device = Device::new();
        device.install("c", &handler(policy, depth));
        device.settle(100);
        for number in 0..5 {
            let payload = number.to_string();
            device.kernel.publish(&topic("door.front"), payload.as_bytes()).unwrap();
        }
        device.settle(100);
        let lines: Vec<_> = device.log.iter().filter(|line| line.contains("door")).collect();
        assert_eq!(lines, expected, "policy {policy}");
        let subscription = device.kernel.events().subscriptions().next().unwrap().status;
        assert_eq!(subscription.delivered + subscription.dropped, 5);
    }
}

#[test]
fn a_machine_waits_for_an_event_in_straight_line_code() {
    let mut device = Device::new();
    let waiter = device.install("waiter", &waiter(1_000));
    let publisher = device.install("publisher", PUBLISHER);
    device.settle(100);
    let ticket = device.deliver(waiter, "wait", None).unwrap();
    device.settle(100);
    assert!(device.replies.is_empty());
    device.call(publisher, "publish", Some(b"opened")).unwrap();
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "opened");
}

#[test]
fn a_wait_for_an_event_ends_in_time_and_not_before() {
    let mut device = Device::new();
    let waiter = device.install("waiter", &waiter(1_000));
    device.settle(100);
    let ticket = device.deliver(waiter, "wait", None).unwrap();
    device.settle(100);
    let deadline = device.now + Duration::from_millis(1_000);
    assert_eq!(device.step(), Ran::Idle { until: Some(deadline) });
    device.pass(Duration::from_millis(999));
    device.settle(100);
    assert!(device.replies.is_empty());
    device.pass(Duration::from_millis(1));
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), DEADLINE);
}

#[test]
fn a_timeout_of_zero_does_not_wait() {
    let mut device = Device::new();
    let waiter = device.install("waiter", &waiter(0));
    device.settle(100);
    assert_eq!(text(device.call(waiter, "wait", None)), DEADLINE);
    device.kernel.publish(&topic("door.front"), b"x").unwrap();
    assert_eq!(text(device.call(waiter, "wait", None)), "x");
    assert_eq!(text(device.call(waiter, "leave", None)), "0");
    assert_eq!(text(device.call(waiter, "wait", None)), NOT_FOUND, "nothing could ever come");
}

#[test]
fn a_wait_for_ever_sets_no_timer() {
    let mut device = Device::new();
    let waiter = device.install("waiter", &waiter(u32::MAX));
    device.settle(100);
    let ticket = device.deliver(waiter, "wait", None).unwrap();
    device.settle(100);
    let deadline = device.now + Duration::from_secs(60);
    assert_eq!(
        device.step(),
        Ran::Idle { until: Some(deadline) },
        "only its caller's patience ends"
    );
    device.kernel.suspend_all().unwrap();
    device.pass(Duration::from_secs(3_600));
    device.settle(100);
    device.replies.remove(&ticket).unwrap().unwrap_err();
    device.kernel.publish(&topic("door.front"), b"late").unwrap();
    device.settle(100);
    assert_eq!(device.step(), Ran::Idle { until: None }, "it went on, and is done");
}

#[test]
fn a_machine_that_never_reads_costs_nobody_else() {
    let mut device = Device::new();
    device.install("hoarder", &waiter(0));
    device.install("reader", &handler(0, 4));
    device.settle(100);
    for number in 0..1_000 {
        let payload = (number % 10).to_string();
        device.kernel.publish(&topic("door.front"), payload.as_bytes()).unwrap();
        device.settle(100);
    }
    let of = |name: &str| {
        let slot = if name == "hoarder" { 0 } else { 1 };
        let mut all = device.kernel.events().subscriptions();
        all.find(|one| one.listener == Listener::Slot(Slot::new(slot).unwrap())).unwrap().status
    };
    assert_eq!((of("reader").delivered, of("reader").dropped), (1_000, 0));
    assert_eq!((of("hoarder").queued, of("hoarder").dropped), (4, 996));
}

#[test]
fn events_take_turns_with_calls_and_leave_the_queue_its_length() {
    let mut device = Device::new();
    let busy = device.install("busy", &handler(0, 8));
    device.settle(100);
    for _ in 0..8 {
        device.kernel.publish(&topic("door.front"), b"x").unwrap();
    }
    for _ in 0..8 {
        device.deliver(busy, "memory_trap", None).unwrap();
    }
    assert!(device.deliver(busy, "memory_trap", None).is_err(), "eight calls fill its queue");
    device.step();
    device.step();
    assert!(device.logged("door.front x"), "the event came first");
    assert!(device.logged("stopped while serving `memory_trap`"), "then a call had its turn");
}

#[test]
fn subscriptions_end_with_the_run_of_the_program_that_made_them() {
    let mut device = Device::new();
    let busy = device.install("busy", &handler(0, 8));
    device.settle(100);
    device.kernel.publish(&topic("door.front"), b"x").unwrap();
    device.deliver(busy, "memory_trap", None).unwrap();
    device.kernel.publish(&topic("door.front"), b"y").unwrap();
    device.settle(2);
    assert_eq!(device.kernel.events().subscriptions().count(), 0);
    device.pass(Duration::from_secs(2));
    device.settle(100);
    assert_eq!(device.kernel.events().subscriptions().count(), 1, "its start has made it anew");
    device.kernel.tenancy(device.now).remove(&"busy".parse().unwrap()).unwrap();
    assert_eq!(device.kernel.events().subscriptions().count(), 0);
}

#[test]
fn a_driver_is_told_what_machines_publish_for_it() {
    let mut device = Device::new();
    let body =
        PUBLISHER.replace("(i32.const 10)", "(i32.const 12)").replace("door.front", "command.lamp");
    let publisher = device.install("publisher", &body);
    let lamp = Driver(0);
    device.kernel.events_mut().listen(lamp, &topic("command.lamp")).unwrap();
    device.call(publisher, "publish", Some(b"on")).unwrap();
    assert_eq!(
        device.kernel.events_mut().command(lamp),
        Some(("command.lamp".into(), b"on".to_vec()))
    );
    assert_eq!(device.kernel.events_mut().command(lamp), None);
}

#[test]
fn no_machine_speaks_for_the_device() {
    let mut device = Device::new();
    let body = PUBLISHER.replace("door.front", "device.tem");
    let publisher = device.install("publisher", &body);
    assert_eq!(text(device.call(publisher, "publish", Some(b"99"))), "-", "denied");
    assert_eq!(device.kernel.events().topics().0.count(), 0);
}

#[test]
fn events_wait_while_their_machine_is_in_flash() {
    let mut device = Device::new();
    device.install("c", &handler(0, 4));
    device.settle(100);
    device.kernel.suspend_all().unwrap();
    device.kernel.publish(&topic("door.front"), b"knock").unwrap();
    device.settle(100);
    assert!(device.logged("c door.front knock 0"), "{:?}", device.log);
}

#[test]
fn it_takes_a_grant_to_publish_to_subscribe_and_to_command() {
    let topics = |text: &str| vec![text.parse::<TopicPattern>().unwrap()];
    let none = Capabilities { callers: vec![PeerPattern::Any], ..Capabilities::default() };
    let publish = Capabilities { publish: topics("door.*"), ..none.clone() };
    let subscribe = Capabilities { subscribe: topics("door.*"), ..none.clone() };
    let command = PUBLISHER.replace("door.front", "command.ab");
    let lamp = Capabilities { peripherals: vec!["ab".parse().unwrap()], ..none.clone() };
    let any_topic = Capabilities { publish: topics("*"), ..none.clone() };
    for (body, grants, reply) in [
        (PUBLISHER, &none, "-"),
        (PUBLISHER, &subscribe, "-"),
        (PUBLISHER, &publish, "0"),
        (&command, &any_topic, "-"),
        (&command, &lamp, "0"),
    ] {
        let mut device = Device::new();
        let publisher =
            device.install_granted("publisher", body, 1, Budget::default(), grants).unwrap();
        assert_eq!(text(device.call(publisher, "publish", Some(b"x"))), reply);
        assert_eq!(device.logged("not granted"), reply == "-");
    }
    for (grants, subscriptions) in [(&none, 0), (&publish, 0), (&subscribe, 1)] {
        let mut device = Device::new();
        device.install_granted("c", &handler(0, 1), 1, Budget::default(), grants).unwrap();
        device.settle(100);
        assert_eq!(device.kernel.events().subscriptions().count(), subscriptions);
    }
}

#[cfg(feature = "bridge")]
#[test]
fn event_of_the_bridge_comes_to_everybody_else() {
    let mut device = Device::new();
    device.install("hears", &handler(0, 4));
    let publisher = device.install("publisher", PUBLISHER);
    device.settle(100);
    device.kernel.events_mut().bridge(&["door.*".parse().unwrap()]).unwrap();
    let told = tenure_kernel::Bridged { topic: &topic("door.front"), payload: b"told" };
    let published = told.publish(&mut device.kernel).unwrap();
    assert_eq!((published.queued, published.dropped), (1, 0));
    device.settle(100);
    assert!(device.logged("hears door.front told 0"), "{:?}", device.log);
    assert_eq!(device.kernel.events_mut().bridged(), None);

    device.call(publisher, "publish", Some(b"open")).unwrap();
    let bridged = device.kernel.events_mut().bridged();
    assert_eq!(bridged, Some((topic("door.front"), b"open".to_vec())));
    let listeners: Vec<_> =
        device.kernel.events().subscriptions().map(|one| one.listener).collect();
    assert!(listeners.contains(&Listener::Bridge), "{listeners:?}");
    // Rules that changed.
    device.kernel.events_mut().bridge(&["room.*".parse().unwrap()]).unwrap();
    device.call(publisher, "publish", Some(b"open")).unwrap();
    assert_eq!(device.kernel.events_mut().bridged(), None);
}
