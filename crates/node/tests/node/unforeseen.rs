//! Attacks for which no part was designed: what is harmless by itself is done together, late, or at its limit.

use std::time::Duration;

use tenure_hal::Instant;
use tenure_hal::simulated::socket_at;
use tenure_node::{Hub, Notice};
use tenure_wire::control::{DeviceStatus, Function, ListMachines, MachineList};
use tenure_wire::directory::function;
use tenure_wire::{Address, Term};

use crate::hostile::CALLER;
use crate::leases::{Lease, anybody};
use crate::snapshots::ask;
use crate::terms::KEEPER;
use crate::world::World;

/// The longest reply that an attacker's end sends.
const HUGE_BYTES: usize = 8_000;

/// Eight timers at their shortest period. Each call logs as long a line as it may and then fails.
fn screaming() -> String {
    let timers: String = (0..8)
        .map(|timer| {
            format!(
                r#"(data (i32.const {at}) "tick{timer}")
                (func (export "tick{timer}") (local $line i32)
                  (loop $more
                    (call $log (i32.const 1) (i32.const 1024) (i32.const 200))
                    (br_if $more (i32.lt_u
                      (local.tee $line (i32.add (local.get $line) (i32.const 1)))
                      (i32.const 50))))
                  unreachable)"#,
                at = timer * 8
            )
        })
        .collect();
    let begun: String = (0..8)
        .map(|timer| {
            format!(
                "(drop (call $timer_after (i32.const {at}) (i32.const 5) (i32.const 0) (i32.const 0)
                  (i32.const 10) (i32.const 10)))",
                at = timer * 8
            )
        })
        .collect();
    format!(
        r#"(module
          (import "tenure" "log" (func $log (param i32 i32 i32)))
          (import "tenure" "timer_after"
            (func $timer_after (param i32 i32 i32 i32 i32 i32) (result i32)))
          (memory (export "memory") 1)
          {timers}
          (func (export "begin") {begun}))"#
    )
}

fn status(world: &mut World) -> DeviceStatus {
    ask(world, Function::status.name(), &()).unwrap()
}

fn names(world: &mut World) -> Vec<String> {
    let list: MachineList = ask(world, Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    list.machines.into_iter().map(|machine| machine.name.to_string()).collect()
}

/// A neighbour's machine, which says that it worked.
const WORKER: &str = r#"(data (i32.const 3000) "worked")
  (func (export "work")
    (call $log (i32.const 2) (i32.const 3000) (i32.const 6))
    (drop (call $reply (i32.const 3000) (i32.const 6))))"#;

#[test]
fn tenant_whose_timers_log_and_fail_without_pause_costs_its_neighbour_and_the_owner_nothing() {
    let mut world = World::new(|_| {});
    let screaming = Lease::of("screaming", &screaming(), anybody());
    let screaming = world.install_lease(screaming);
    let worker = world.install("worker", 8, WORKER);
    world.call(0, &screaming, "begin", None).unwrap();
    let operations = 1_000_000;
    world.fuse.set(Some(operations));
    for second in 1..=60 {
        let asked_at = world.now;
        assert_eq!(status(&mut world).machines, 2);
        assert_eq!(world.call(0, &worker, "work", None), Ok(Some(b"worked".to_vec())));
        assert!(world.now.since(asked_at) < Duration::from_secs(2), "in second {second}");
        world.pass(Duration::from_secs(1));
    }
    assert_eq!(world.logged("worked"), 60, "no line of the neighbour's is lost");
    assert!(world.logged("unreachable") > 0, "the timers fired");
    let spent = operations - world.fuse.get().unwrap();
    assert!(spent < 200, "{spent} operations of the flash in a minute");
}

/// The hub holds each question until its caller is about to give up, and answers with as much nonsense as fits.
#[test]
fn hub_that_answers_late_and_with_nonsense_holds_up_who_asked_it_and_nobody_else() {
    let hub = Hub { address: Address::Udp(socket_at(2)), key: None };
    let mut world = World::new(|config| config.hub = Some(hub));
    let hub = world.stranger();
    let caller = world.install("caller", 16, CALLER);
    let worker = world.install("worker", 8, WORKER);
    let asking: Vec<usize> = (0..4).map(|_| world.stranger()).collect();
    let calls: Vec<_> = asking
        .iter()
        .map(|one| {
            let span = Duration::from_secs(60);
            (*one, world.start_call(*one, &caller, "ask", Some(b"lamp@cellar"), span))
        })
        .collect();
    let nonsense = vec![0xFF; HUGE_BYTES];
    let mut held = Vec::new();
    let (mut looked_up, mut registrations) = (0, 0);
    for _ in 0..60 {
        let asked_at = world.now;
        assert_eq!(status(&mut world).machines, 2);
        assert_eq!(world.call(0, &worker, "work", None), Ok(Some(b"worked".to_vec())));
        assert!(world.now.since(asked_at) < Duration::from_secs(2), "at {asked_at:?}");
        world.pass(Duration::from_secs(1));
        for (handle, name) in std::mem::take(&mut world.strangers[hub].incoming) {
            match name == function::REGISTER {
                true => registrations += 1,
                false => looked_up += 1,
            }
            held.push((world.now + Duration::from_secs(5), handle));
        }
        while let Some(position) = held.iter().position(|(until, _)| *until <= world.now) {
            let (_, handle) = held.swap_remove(position);
            world.reply(hub, handle, Some(nonsense.clone()));
        }
    }
    assert!(looked_up > 0 && registrations > 0, "{looked_up} and {registrations}");
    for (stranger, call) in calls {
        assert!(world.take_result(stranger, call).is_some(), "the call has ended");
    }
    assert!(!world.notices.contains(&Notice::Registered), "nonsense isn't taken for an answer");
    world.pass_with_hub(hub, 1_800_000_000, Duration::from_secs(700));
    assert!(world.notices.contains(&Notice::Registered), "a true answer counts afterwards");
}

/// The device has no clock. It is off for a year, and its hub then says times that cannot be, one after the other.
#[test]
fn device_that_comes_back_after_a_year_to_a_hub_with_a_wrong_clock_has_all_its_machines() {
    const DAY_S: u64 = 86_400;
    let hub = Hub { address: Address::Udp(socket_at(2)), key: None };
    let mut world = World::new(|config| config.hub = Some(hub));
    let hub = world.stranger();
    let unix_s = 1_800_000_000;
    let mut lease = Lease::of("keeper", KEEPER, anybody());
    let ends_unix_s = Some(unix_s + 30 * DAY_S);
    lease.term = Term { signed_unix_s: unix_s, ends_unix_s, grace_s: DAY_S, receipts_every_s: 0 };
    let keeper = world.install_lease(lease);
    world.call(0, &keeper, "keep", None).unwrap();
    assert!(world.pass_with_hub(hub, unix_s, Duration::from_secs(60)) > 0);
    let year = Duration::from_secs(365 * DAY_S);
    let back_at = world.now + year;
    // Its own clock begins at zero.
    let mut world = world.off_until(back_at, Instant::BOOT);
    for lie in [0, 1, u64::from(u32::MAX), u64::MAX / 2, u64::MAX, unix_s - 400 * DAY_S] {
        world.pass_with_hub(hub, lie, Duration::from_secs(90));
        assert_eq!(names(&mut world), ["keeper"], "after {lie}");
    }
    world.pass_with_hub(hub, unix_s + 365 * DAY_S, Duration::from_secs(90));
    assert_eq!(names(&mut world), ["keeper"], "the lease may be over, and deletes nothing");
    let signed_unix_s = unix_s + 365 * DAY_S;
    let ends_unix_s = Some(signed_unix_s + 30 * DAY_S);
    let term = Term { signed_unix_s, ends_unix_s, ..Term::default() };
    let renewal = world.renewal("keeper", term, 2);
    ask::<()>(&mut world, Function::renew.name(), &renewal).unwrap();
    let kept = world.call(0, &keeper, "kept", None);
    assert_eq!(kept, Ok(Some(b"key".to_vec())), "and a renewal brings it back with what it stored");
}
