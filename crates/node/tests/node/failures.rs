//! The answer to a caller elsewhere when a call has no result: the same whichever clock is first.

use std::time::Duration;

use tenure_rpc::NoResult;
use tenure_wire::PublicKey;
use tenure_wire::control::{Answer, Function, MachineList, Restart, Unban, decode_answer};

use crate::world::{CallResult, World};

/// `serve` does what it is told: nothing, trap, dive too deep, or sleep for longer than anybody waits.
const MACHINE: &str = r#"
  (func $dive (param $left i32) (call $dive (i32.add (local.get $left) (i32.const 1))))
  (func (export "well"))
  (func (export "trap") unreachable)
  (func (export "dive") (call $dive (i32.const 0)))
  (func (export "sleep") (call $sleep_ms (i32.const 20000)))"#;

fn call_within(world: &mut World, to: &PublicKey, what: &str, ms: u64) -> CallResult {
    let handle = world.start_call(0, to, what, None, Duration::from_millis(ms));
    loop {
        world.tick();
        if let Some(result) = world.take_result(0, handle) {
            return result;
        }
    }
}

#[test]
fn a_fault_is_told_as_one_and_a_budget_that_was_too_small_as_that() {
    for (what, failure) in [("trap", NoResult::Execution), ("dive", NoResult::Overspent)] {
        let mut world = World::new(|_| {});
        let machine = world.install("machine", 8, MACHINE);
        assert_eq!(world.call(0, &machine, what, None), Err(failure), "{what}");
    }
}

#[test]
fn who_calls_a_machine_that_was_stopped_waits_if_there_is_time_and_learns_for_how_long_if_not() {
    let mut world = World::new(|_| {});
    let machine = world.install("machine", 8, MACHINE);
    world.call(0, &machine, "trap", None).unwrap_err();
    for ms in [50, 400] {
        let told = call_within(&mut world, &machine, "well", ms);
        let Err(NoResult::Stopped { again_in }) = told else { panic!("within {ms} ms: {told:?}") };
        assert!(again_in <= Duration::from_secs(1), "{again_in:?}");
    }
    assert_eq!(call_within(&mut world, &machine, "well", 5_000), Ok(None));
}

#[test]
fn who_calls_a_banned_machine_is_told_so_until_the_owner_lifts_that() {
    let mut world = World::new(|_| {});
    let machine = world.install("machine", 8, MACHINE);
    let mut faults = 0;
    loop {
        match call_within(&mut world, &machine, "trap", 500) {
            Err(NoResult::Execution) => faults += 1,
            Err(NoResult::Stopped { again_in }) => world.skip(again_in),
            other => break assert_eq!(other, Err(NoResult::Banned)),
        }
    }
    assert_eq!(faults, 12);
    assert_eq!(call_within(&mut world, &machine, "well", 1_000), Err(NoResult::Banned));
    let unban = postcard::to_allocvec(&Unban { machine: "machine".parse().unwrap() }).unwrap();
    let device = world.node.device_machine();
    let answer = world.call(0, &device, Function::unban.name(), Some(&unban)).unwrap().unwrap();
    decode_answer::<()>(&answer).unwrap();
    assert_eq!(call_within(&mut world, &machine, "well", 1_000), Ok(None));
}

#[test]
fn a_deadline_is_one_whether_the_caller_or_the_called_device_sees_it_pass() {
    // A machine that is busy, and one that runs the call: at each distance of the two clocks.
    for ms in 300..320 {
        let mut world = World::new(|_| {});
        let machine = world.install("machine", 8, MACHINE);
        let served = world.start_call(0, &machine, "sleep", None, Duration::from_millis(ms));
        let waiting = world.start_call(0, &machine, "well", None, Duration::from_millis(ms + 7));
        world.pass(Duration::from_secs(1));
        for handle in [served, waiting] {
            assert_eq!(world.take_result(0, handle), Some(Err(NoResult::Deadline)), "{ms} ms");
        }
    }
}

#[test]
fn the_owner_sees_what_a_busy_machine_serves_and_restarts_it() {
    let mut world = World::new(|_| {});
    let machine = world.install("machine", 8, MACHINE);
    let device = world.node.device_machine();
    let served = world.start_call(0, &machine, "sleep", None, Duration::from_secs(15));
    world.pass(Duration::from_secs(3));
    let status = |world: &mut World| {
        let list = world.call(0, &device, Function::list.name(), Some(&[0])).unwrap().unwrap();
        let list: Answer<MachineList> = decode_answer(&list);
        let machine = list.unwrap().machines.remove(0);
        (machine.serves, machine.serves_ms / 1_000)
    };
    assert_eq!(status(&mut world), (Some("sleep".to_string()), 3));
    let restart = postcard::to_allocvec(&Restart { machine: "machine".parse().unwrap() }).unwrap();
    let answer = world.call(0, &device, Function::restart.name(), Some(&restart)).unwrap().unwrap();
    decode_answer::<()>(&answer).unwrap();
    world.pass(Duration::from_secs(1));
    assert_eq!(world.take_result(0, served), Some(Err(NoResult::Execution)));
    assert_eq!(status(&mut world), (None, 0));
    assert_eq!(call_within(&mut world, &machine, "well", 1_000), Ok(None));
}
