//! Tenants who want more than their share, and devices that lose power or bits at a bad moment.

use std::time::Duration;

use tenure_kernel::{Config, Fault, FaultKind, InstallError, Ran, State};
use tenure_store::{Store, TreeId, ValueKind};
use tenure_vm::TrapKind;
use tenure_wire::Budget;
use tenure_wire::host_call::HostError;

use crate::world::{Device, name, text};

const SLEEPER: &str = r#"(func (export "sleep") (call $sleep_ms (i32.const -1)))
    (func (export "serve") (call $reply_digit (i32.const 1)))"#;
const QUIET: &str = r#"(func (export "serve") (call $reply_digit (i32.const 1)))"#;

fn info(device: &Device, machine: &str) -> (State, usize, u64, Option<Fault>) {
    let wanted = name(machine);
    let info = device.kernel.machines().find(|info| info.record.name == wanted).unwrap();
    (info.state, info.queue_length, info.fuel_used, info.last_fault)
}

#[test]
fn a_machine_that_sleeps_for_weeks_keeps_nobody_waiting_beyond_the_deadline() {
    let mut device = Device::new();
    let sleeper = device.install("sleeper", SLEEPER);
    let calls = [
        device.deliver(sleeper, "sleep", None).unwrap(),
        device.deliver(sleeper, "serve", None).unwrap(),
        device.deliver(sleeper, "serve", None).unwrap(),
    ];
    device.settle(10);
    let Ran::Idle { until: Some(until) } = device.step() else { panic!("something is due") };
    device.now = until;
    device.settle(10);
    for call in calls {
        assert_eq!(device.replies.remove(&call), Some(Err(HostError::Deadline)));
    }
    let (state, queued, ..) = info(&device, "sleeper");
    assert_eq!((state, queued), (State::Waiting, 0), "it sleeps on, with an empty queue");
}

#[test]
fn a_task_whose_local_caller_stopped_waiting_does_not_run() {
    let mut device = Device::new();
    let sleeper = device.install(
        "sleeper",
        r#"
        (func (export "sleep") (call $sleep_ms (i32.const 60000)))
        (func (export "note") (call $log (i32.const 2) (i32.const 0) (i32.const 4)))
        (data (i32.const 0) "late")"#,
    );
    let caller = device.install(
        "caller",
        r#"(data (i32.const 0) "sleepernote")
        (func (export "go") (drop (call $call (i32.const 0) (i32.const 7) (i32.const 7)
            (i32.const 4) (i32.const 0) (i32.const 0) (i32.const 100))))"#,
    );
    device.deliver(sleeper, "sleep", None).unwrap();
    device.settle(10);
    device.deliver(caller, "go", None).unwrap();
    device.settle(10);
    device.pass(Duration::from_millis(100));
    device.settle(10);
    assert_eq!(info(&device, "sleeper").1, 0, "nobody waits for it any more");
    device.pass(Duration::from_secs(60));
    device.settle(10);
    assert!(!device.logged("late"), "{:?}", device.log);
}

#[test]
fn a_budget_beyond_the_device_is_refused_and_takes_nothing_from_the_others() {
    let mut device = Device::new();
    let quiet = device.install("quiet", QUIET);
    for budget in [
        Budget { memory_bytes: u32::MAX, ..Budget::default() },
        Budget { stack_bytes: u32::MAX, ..Budget::default() },
        Budget { memory_bytes: 300 * 1024, stack_bytes: 1024, ..Budget::default() },
    ] {
        let greedy = device.try_install("greedy", QUIET, 1, budget);
        assert_eq!(greedy, Err(InstallError::NoMemory), "{budget:?}");
    }
    assert_eq!(text(device.call(quiet, "serve", None)), "1");
}

#[test]
fn sixteen_machines_with_the_default_budget_fit_the_default_device() {
    let mut device = Device::new();
    for letter in 'a'..='p' {
        device.install(&letter.to_string(), QUIET);
    }
    let more = Budget { memory_bytes: 32 * 1024, ..Budget::default() };
    let update = device.try_install("a", QUIET, 2, more);
    assert_eq!(update, Err(InstallError::NoMemory), "an update is held to the same");
}

#[test]
fn host_calls_are_paid_in_full_even_at_the_end_of_a_slice() {
    let slice_fuel = 1_000;
    let mut device = Device::with(Config { slice_fuel, ..Config::default() });
    let random = device.install(
        "random",
        r#"(func (export "fill") (drop (call $random (i32.const 4096) (i32.const 4096))))"#,
    );
    device.call(random, "fill", None).unwrap();
    device.call(random, "fill", None).unwrap();
    let used = info(&device, "random").2;
    assert!(used >= 4096 * 8, "the first call was paid for before the second went on: {used}");
}

#[test]
fn a_long_list_costs_more_than_a_short_one() {
    let fuel_for = |names: usize| {
        let mut device = Device::new();
        let lister = device.install(
            "lister",
            r#"(func (export "list") (drop (call $tree_list (i32.const 0) (i32.const 0)
                (i32.const 4096) (i32.const 4))))"#,
        );
        for number in 0..names {
            let path = format!("name{number}");
            device.kernel.store().set(TreeId(1), &path, ValueKind::Text, b"x").unwrap();
        }
        for _ in 0..3 {
            device.call(lister, "list", None).unwrap();
        }
        info(&device, "lister").2
    };
    assert!(fuel_for(200) > fuel_for(2) + 200 * 100);
}

#[test]
fn a_bad_pointer_to_peers_stops_the_machine_at_once() {
    let mut device = Device::new();
    let peers = device.install(
        "peers",
        r#"(func (export "list") (drop (call $peers (i32.const 3)
            (i32.const 0x7FFFFFF0) (i32.const 64))))"#,
    );
    assert_eq!(device.call(peers, "list", None), Err(HostError::Execution));
    assert!(device.effects.is_empty(), "the node isn't even asked");
    let fault = info(&device, "peers").3.unwrap();
    assert_eq!(fault.kind, FaultKind::BadPointer);
    assert_ne!(fault.kind, FaultKind::Trap(TrapKind::Unreachable));
}

#[test]
fn who_calls_a_machine_with_a_damaged_image_is_told_and_not_kept() {
    let mut device = Device::new();
    let hurt = device.install("hurt", QUIET);
    let extent = device.kernel.machines().next().unwrap().record.image;
    let mut draft = tenure_kernel::Draft::new(extent);
    device.kernel.code().append(&mut draft, &[0; 64]).unwrap();
    device.kernel.code().finish(draft).unwrap();
    let mut device = device.reboot();
    let ticket = device.deliver(hurt, "serve", None).unwrap();
    device.settle(10);
    device.pass(Duration::from_secs(5));
    device.settle(10);
    assert_eq!(device.replies.remove(&ticket), Some(Err(HostError::Execution)));
}

#[test]
fn a_removal_cut_at_any_flash_operation_removes_all_or_nothing() {
    let (mut gone, mut there) = (0, 0);
    for operations in 0..100 {
        let mut device = Device::new();
        device.install("machine", QUIET);
        device.kernel.store().set(TreeId(1), "mine", ValueKind::Text, b"yes").unwrap();
        device.kernel.store().flash_mut().cut_power_after(operations, operations);
        let removed = device.kernel.tenancy(device.now).remove(&name("machine")).is_ok();
        let still_on = !device.kernel.store().flash().is_off();
        let mut device = device.reboot();
        let machine = device.kernel.machines().count() == 1;
        let tree = device.kernel.store().get(TreeId(1), "mine").unwrap().is_some();
        assert_eq!(machine, tree, "cut after {operations} operations");
        assert!(!machine || !removed, "acknowledged, then back: {operations} operations");
        *(if machine { &mut there } else { &mut gone }) += 1;
        if still_on {
            break;
        }
    }
    assert!(gone > 0 && there > 0, "the cut fell on both sides: {gone} and {there}");
}

#[test]
fn an_old_placement_does_not_bring_a_removed_machine_back() {
    let mut device = Device::new();
    device.try_install("machine", QUIET, 7, Budget::default()).unwrap();
    device.kernel.tenancy(device.now).remove(&name("machine")).unwrap();
    let mut device = device.reboot();
    for old in [6, 7] {
        let again = device.try_install("machine", QUIET, old, Budget::default());
        assert_eq!(again, Err(InstallError::Stale));
    }
    device.try_install("machine", QUIET, 8, Budget::default()).unwrap();
    device.try_install("another", QUIET, 1, Budget::default()).unwrap();
}

#[test]
fn a_machine_can_be_removed_from_a_full_store() {
    let mut device = Device::new();
    device.install("machine", QUIET);
    let filled = (0..).find(|number| {
        let path = format!("fill{number}");
        device.kernel.store().set(TreeId(9), &path, ValueKind::Bytes, &[1; 2000]).is_err()
    });
    assert!(filled.is_some_and(|count| count > 1));
    device.kernel.tenancy(device.now).remove(&name("machine")).unwrap();
    assert_eq!(device.reboot().kernel.machines().count(), 0);
}

#[test]
fn a_record_that_cannot_be_read_is_reported_and_its_tree_is_not_passed_on() {
    let mut device = Device::new();
    let good = device.install("good", QUIET);
    device.install("hurt", QUIET);
    let tree = TreeId(2);
    device.kernel.store().set(tree, "secret", ValueKind::Text, b"mine").unwrap();
    device.kernel.store().set(TreeId(0), "machines.1", ValueKind::Bytes, b"junk").unwrap();
    let mut device = device.reboot();
    device.settle(10);
    assert!(device.logged("the record of machine 1 can't be read"), "{:?}", device.log);
    assert_eq!(text(device.call(good, "serve", None)), "1");
    device.install("next", QUIET);
    let store: &mut Store<_> = device.kernel.store();
    // D-6b: it waits for its owner in its slot, and the newcomer has another one.
    assert_eq!(store.get(tree, "secret").unwrap().unwrap().bytes, b"mine");
    assert_eq!(store.get(TreeId(3), "secret").unwrap(), None);
}

#[test]
fn a_record_of_another_version_is_left_alone_until_a_firmware_comes_that_knows_it() {
    let mut device = Device::new();
    let good = device.install("good", QUIET);
    let kept = device.install("kept", QUIET);
    let store = device.kernel.store();
    let known = store.get(TreeId(0), "machines.1").unwrap().unwrap().bytes;
    let older = [&[known[0] - 1], &known[1..]].concat();
    let longer = [&known[..], &[0]].concat();
    for record in [older, longer, Vec::new()] {
        device.kernel.store().set(TreeId(0), "machines.1", ValueKind::Bytes, &record).unwrap();
        device = device.reboot();
        device.settle(10);
        assert!(device.logged("the record of machine 1 can't be read"), "{:?}", device.log);
        assert_eq!(text(device.call(good, "serve", None)), "1");
        assert_eq!(device.kernel.machines().count(), 1);
    }
    device.kernel.store().set(TreeId(0), "machines.1", ValueKind::Bytes, &known).unwrap();
    let mut device = device.reboot();
    device.settle(10);
    assert_eq!(text(device.call(kept, "serve", None)), "1");
}

#[test]
fn a_machine_with_a_long_queue_leaves_room_for_the_parameters_of_others() {
    let parameter_bytes_max = 64 * 1024;
    let mut device = Device::with(Config { parameter_bytes_max, ..Config::default() });
    let long = Budget { queue_length: u16::MAX, ..Budget::default() };
    let hogs = ["a", "b", "c"].map(|hog| device.try_install(hog, SLEEPER, 1, long).unwrap());
    let quiet = device.install("quiet", QUIET);
    let parameter = [0; 4096];
    let mut taken = 0;
    for hog in hogs {
        device.deliver(hog, "sleep", None).unwrap();
        while device.deliver(hog, "serve", Some(&parameter)).is_ok() {
            taken += parameter.len();
        }
    }
    assert!(taken <= parameter_bytes_max);
    device.settle(20);
    assert_eq!(text(device.call(quiet, "serve", Some(&parameter))), "1");
}
