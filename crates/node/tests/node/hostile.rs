use std::time::Duration;

use tenure_hal::simulated::socket_at;
use tenure_node::{Hub, Notice};
use tenure_rpc::NoResult;
use tenure_wire::control::{Answer, DeviceStatus, Function, decode_answer};
use tenure_wire::directory::Registered;
use tenure_wire::host_call::HostError;
use tenure_wire::{Address, Capabilities, PublicKey};

use crate::world::World;

const SLEEPER: &str = r#"(func (export "sleep") (call $sleep_ms (i32.const -1)))"#;

/// `ask` and `ask_briefly` call `function` of the target that is their parameter and reply with the
/// status; `hog` queues as many such calls as it can.
pub(crate) const CALLER: &str = r#"
  (func $ask_within (param $deadline i32)
    (i32.store (i32.const 2048) (call $call (i32.const 1024) (call $target)
      (i32.const 0) (i32.const 8) (i32.const 0) (i32.const 0) (local.get $deadline)))
    (drop (call $reply (i32.const 2048) (i32.const 4))))
  (func (export "ask") (call $ask_within (i32.const 8000)))
  (func (export "ask_briefly") (call $ask_within (i32.const 1)))
  (func (export "hog") (local $left i32)
    (local.set $left (i32.const 60))
    (loop $more
      (drop (call $queue (i32.const 1024) (call $target)
        (i32.const 0) (i32.const 8) (i32.const 0) (i32.const 0)
        (i32.const 8) (i32.const 0) (i32.const 8) (i32.const 0)
        (i32.const 600000) (i32.const 0)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $more (local.get $left))))"#;

fn target(key: &PublicKey) -> Vec<u8> {
    format!("#{key}").into_bytes()
}

fn status(result: Result<Option<Vec<u8>>, NoResult>) -> i32 {
    i32::from_le_bytes(result.unwrap().unwrap().try_into().unwrap())
}

/// The owner asks the device how it is.
fn ask_status(world: &mut World) -> Result<DeviceStatus, NoResult> {
    let device = world.node.device_machine();
    let answer = world.call(0, &device, Function::status.name(), Some(&[]))?;
    let answer: Answer<DeviceStatus> = decode_answer(&answer.unwrap());
    Ok(answer.unwrap())
}

#[test]
fn a_hub_that_lies_about_the_time_stops_nothing() {
    let hub = Hub { address: Address::Udp(socket_at(2)), key: None };
    let mut world = World::new(|config| config.hub = Some(hub));
    let clock = world.install(
        "clock",
        8,
        r#"(func (export "now")
        (i64.store (i32.const 2048) (call $unix_time_s))
        (drop (call $reply (i32.const 2048) (i32.const 8))))"#,
    );
    let hub = world.stranger();
    for _ in 0..1000 {
        world.tick();
        for (handle, _) in std::mem::take(&mut world.strangers[hub].incoming) {
            let (refusal, devices_max, takes_touches) = (None, None, false);
            let answer = Registered { refusal, unix_s: u64::MAX, devices_max, takes_touches };
            world.reply(hub, handle, Some(postcard::to_allocvec(&answer).unwrap()));
        }
    }
    assert!(world.notices.contains(&Notice::Registered));
    world.pass(Duration::from_secs(2));
    assert!(ask_status(&mut world).is_ok());
    let now = world.call(0, &clock, "now", None).unwrap().unwrap();
    assert_eq!(i64::from_le_bytes(now.try_into().unwrap()), -1, "no time that makes sense");
}

#[test]
fn strangers_who_call_sleeping_machines_do_not_lock_the_owner_out() {
    let mut world = World::new(|_| {});
    let sleepers = [world.install("one", 16, SLEEPER), world.install("two", 16, SLEEPER)];
    for _ in 0..6 {
        let stranger = world.stranger();
        for call in 0..4 {
            let to = sleepers[call % 2];
            world.start_call(stranger, &to, "sleep", None, Duration::from_secs(500));
        }
    }
    world.pass(Duration::from_secs(20));
    assert_eq!(ask_status(&mut world).map(|status| status.machines), Ok(2));
}

#[test]
fn one_machine_that_hogs_calls_leaves_some_to_the_others() {
    let mut world = World::new(|_| {});
    let hog = world.install("hog", 64, CALLER);
    let other = world.install("other", 8, CALLER);
    let (silent, friend) = (world.stranger(), world.stranger());
    let (silent_key, friend_key) = (world.strangers[silent].key, world.strangers[friend].key);
    world.call(silent, &hog, "hog", Some(&target(&silent_key))).unwrap();
    world.call(friend, &other, "ask_briefly", Some(b"nobody")).unwrap();
    world.pass(Duration::from_secs(1));
    assert!(!world.strangers[silent].incoming.is_empty(), "the hog has calls under way");
    let timeout = Duration::from_secs(8);
    let parameter = target(&friend_key);
    let call = world.start_call(friend, &other, "ask", Some(&parameter), timeout);
    world.pass(Duration::from_secs(2));
    let (asked, _) = world.strangers[friend].incoming.pop().expect("it is asked");
    world.reply(friend, asked, Some(b"four".to_vec()));
    world.pass(Duration::from_secs(1));
    assert_eq!(status(world.take_result(friend, call).unwrap()), 4);
}

#[test]
fn a_tenants_short_deadline_does_not_make_the_device_forget_a_peer() {
    let mut world = World::new(|_| {});
    let caller = world.install("caller", 8, CALLER);
    let friend = world.stranger();
    let parameter = target(&world.strangers[friend].key);
    let brief = world.call(friend, &caller, "ask_briefly", Some(&parameter));
    assert_eq!(status(brief), HostError::Deadline.code());
    world.strangers[friend].incoming.clear();
    let timeout = Duration::from_secs(8);
    let call = world.start_call(friend, &caller, "ask", Some(&parameter), timeout);
    world.pass(Duration::from_secs(2));
    let (asked, _) = world.strangers[friend].incoming.pop().expect("it is asked");
    world.reply(friend, asked, Some(Vec::new()));
    world.pass(Duration::from_secs(1));
    assert_eq!(status(world.take_result(friend, call).unwrap()), 0);
}

#[test]
fn a_stranger_is_told_nothing_by_the_devices_own_machine() {
    let mut world = World::new(|_| {});
    let stranger = world.stranger();
    let device = world.node.device_machine();
    let answer =
        world.call(stranger, &device, Function::status.name(), Some(&[])).unwrap().unwrap();
    let answer: Answer<DeviceStatus> = decode_answer(&answer);
    assert_eq!(answer, Err(tenure_wire::control::ControlError::NotOwner));
}

#[test]
fn a_stranger_calls_what_names_it_alone_and_the_owner_calls_all() {
    let mut world = World::new(|_| ());
    let stranger = world.stranger();
    let by_key = format!("#{}", world.strangers[stranger].key);
    let granting = |callers: &[&str]| Capabilities {
        callers: callers.iter().map(|text| text.parse().unwrap()).collect(),
        ..Capabilities::default()
    };
    let body = r#"(func (export "echo"))"#;
    for (name, callers, expected) in [
        ("closed", &[][..], Err(NoResult::Denied)),
        ("named", &["*@*"], Err(NoResult::Denied)),
        ("keyed", &[&*by_key], Ok(None)),
        ("open", &["*"], Ok(None)),
    ] {
        let machine = world.install_granted(name, 8, body, granting(callers));
        assert_eq!(world.call(stranger, &machine, "echo", None), expected, "{name}");
        assert_eq!(world.call(0, &machine, "echo", None), Ok(None), "{name}");
    }
}

/// Strangers of so many hosts, with six keys each, call eight machines that never end a call, and one whose
/// callers a silent directory has to name.
fn hogged_by(hosts: usize) -> World {
    let mut world = World::new(|config| {
        let (address, key) = (Address::Udp(socket_at(99)), Some(PublicKey([9; 32])));
        config.hub = Some(Hub { address, key });
    });
    let callers = ["*@*"].map(|text| text.parse().unwrap()).to_vec();
    let named = Capabilities { callers, ..Capabilities::default() };
    let mut machines = vec![world.install_granted("named", 8, SLEEPER, named)];
    machines.extend((0..8).map(|number| world.install(&format!("slow-{number}"), 8, SLEEPER)));
    for host in 0..hosts {
        for port in 1..=6 {
            let hog = world.stranger();
            world.move_to(hog, &format!("10.0.0.{host}:{port}"));
            for turn in 0..4 {
                let machine = machines[(port + host + turn) % machines.len()];
                let timeout = Duration::from_secs(55);
                world.start_call(hog, &machine, "sleep", None, timeout);
            }
            world.pass(Duration::from_millis(900));
        }
    }
    world
}

#[test]
fn strangers_of_one_or_two_hosts_leave_calls_to_others_however_many_machines_they_hog() {
    for hosts in [1, 2] {
        let mut world = hogged_by(hosts);
        let machine = world.install("open", 8, r#"(func (export "echo"))"#);
        for other in 0..5 {
            let stranger = world.stranger();
            world.move_to(stranger, &format!("10.0.1.{other}:1"));
            let result = world.call(stranger, &machine, "echo", None);
            assert_eq!(result, Ok(None), "caller {other} beside {hosts} hosts");
        }
    }
}

/// A board has 24 sessions. More strangers than that call its machine again and again, from two hosts, so that each
/// session that is idle soon makes room for another.
#[test]
fn neighbour_and_hub_of_a_board_get_through_though_strangers_want_all_of_its_sessions() {
    let hub = Hub { address: Address::Udp(socket_at(2)), key: None };
    let mut world = World::new(|config| config.hub = Some(hub));
    let hub = world.stranger();
    let machine = world.install("open", 8, r#"(func (export "echo"))"#);
    let neighbour = world.stranger();
    world.move_to(neighbour, "10.0.9.1:1");
    let crowd: Vec<usize> = (1..=40)
        .map(|number| {
            let stranger = world.stranger();
            world.move_to(stranger, &format!("10.0.{}.1:{number}", number % 2));
            stranger
        })
        .collect();
    let mut registrations = world.pass_with_hub(hub, 1_000_000, Duration::from_secs(2));
    for round in 0..12 {
        for stranger in &crowd {
            world.start_call(*stranger, &machine, "echo", None, Duration::from_secs(4));
        }
        registrations += world.pass_with_hub(hub, 1_000_000, Duration::from_secs(3));
        let is_answered = (0..3).any(|_| world.call(neighbour, &machine, "echo", None).is_ok());
        assert!(is_answered, "the neighbour in round {round}");
        assert!(ask_status(&mut world).is_ok(), "the owner in round {round}");
    }
    registrations += world.pass_with_hub(hub, 1_000_000, Duration::from_secs(25));
    assert!(registrations >= 2, "{registrations}, the last of them after the crowd had come");
}

#[test]
fn callers_whose_names_are_being_asked_for_lock_nobody_out() {
    let mut world = World::new(|config| {
        let (address, key) = (Address::Udp(socket_at(99)), Some(PublicKey([9; 32])));
        config.hub = Some(Hub { address, key });
    });
    let callers = ["*@*"].map(|text| text.parse().unwrap()).to_vec();
    let grants = Capabilities { callers, ..Capabilities::default() };
    let machine = world.install_granted("named", 8, r#"(func (export "echo"))"#, grants);
    let handles: Vec<_> = (0..12)
        .map(|_| {
            let stranger = world.stranger();
            let timeout = Duration::from_secs(20);
            (stranger, world.start_call(stranger, &machine, "echo", None, timeout))
        })
        .collect();
    world.pass(Duration::from_secs(1));
    let refused = handles.iter().filter(|(stranger, handle)| {
        world.take_result(*stranger, *handle) == Some(Err(NoResult::Busy))
    });
    assert!(refused.count() >= 6, "the silent directory holds up a few alone");
    assert!(ask_status(&mut world).is_ok(), "the owner gets through");
}
