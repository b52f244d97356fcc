//! A device at hubs that take touches, at those that don't, and at those that do so no longer.

use std::time::Duration;

use tenure_hal::simulated::socket_at;
use tenure_node::{Hub, Notice};
use tenure_rpc::NoResult;
use tenure_wire::directory::{Refusal, Registered, Touched, function};
use tenure_wire::{Address, message};

use crate::world::{CallResult, World};

const NOW_S: u64 = 1_800_000_000;

/// A device, and its hub, which it finds by itself.
fn world() -> (World, usize) {
    let hub = Hub { address: Address::Udp(socket_at(2)), key: None };
    let mut world = World::new(|config| config.hub = Some(hub));
    let hub = world.stranger();
    (world, hub)
}

fn registered(refusal: Option<Refusal>, takes_touches: bool) -> CallResult {
    let answer = Registered { refusal, unix_s: NOW_S, devices_max: None, takes_touches };
    Ok(Some(message::encode(&answer)))
}

fn touched(counts: bool) -> CallResult {
    Ok(Some(message::encode(&Touched { unix_s: NOW_S, counts, may_have_work: false })))
}

/// A hub that takes touches.
fn usual(name: &str) -> CallResult {
    match name {
        function::REGISTER | function::STAY => registered(None, true),
        function::TOUCH => touched(true),
        _ => Err(NoResult::NoSuchFunction),
    }
}

/// A hub of before touches, which ends its answer after what it knows.
fn of_before(name: &str) -> CallResult {
    if name != function::REGISTER {
        return Err(NoResult::NoSuchFunction);
    }
    let mut answer = registered(None, false)?.unwrap_or_default();
    answer.truncate(answer.len() - 2);
    Ok(Some(answer))
}

/// The directory's functions that the device calls within that time, and when: in seconds from its begin.
fn calls(
    world: &mut World,
    hub: usize,
    seconds: u64,
    mut answer: impl FnMut(&str) -> CallResult,
) -> Vec<(u64, String)> {
    let began = world.now;
    let mut calls = Vec::new();
    while world.now.since(began) < Duration::from_secs(seconds) {
        world.tick();
        let at = world.now.since(began).as_secs();
        let called = world.answer_calls(hub, &mut answer);
        let of_directory = [function::REGISTER, function::STAY, function::TOUCH];
        let called = called.into_iter().filter(|name| of_directory.contains(&name.as_str()));
        calls.extend(called.map(|name| (at, name)));
    }
    calls
}

fn names(calls: &[(u64, String)]) -> Vec<&str> {
    calls.iter().map(|(_, name)| name.as_str()).collect()
}

#[test]
fn device_at_a_hub_that_takes_touches_sends_records_only_when_something_changes() {
    let (mut world, hub) = world();
    let first = calls(&mut world, hub, 120, usual);
    assert_eq!(names(&first)[..3], [function::REGISTER, function::STAY, function::TOUCH]);
    assert!(names(&first)[2..].iter().all(|name| *name == function::TOUCH), "{first:?}");
    assert!((6..=8).contains(&first.len()), "as often as records before: {first:?}");
    assert!(first.windows(2).all(|pair| pair[1].0 - pair[0].0 <= 21), "{first:?}");
    world.install("new", 4, r#"(func (export "now"))"#);
    let after = calls(&mut world, hub, 40, usual);
    assert_eq!((after[0].0, names(&after)[0]), (0, function::STAY), "{after:?}");
    assert!(names(&after)[1..].iter().all(|name| *name == function::TOUCH), "{after:?}");
    assert!(!world.notices.contains(&Notice::HubSilent));
}

#[test]
fn device_at_a_hub_of_before_renews_its_record_as_before() {
    let (mut world, hub) = world();
    let calls = calls(&mut world, hub, 70, of_before);
    assert!((4..=5).contains(&calls.len()), "{calls:?}");
    assert!(names(&calls).iter().all(|name| *name == function::REGISTER), "{calls:?}");
}

#[test]
fn hub_that_is_put_back_to_a_version_of_before_gets_a_record_as_before_at_once() {
    let (mut world, hub) = world();
    calls(&mut world, hub, 50, usual);
    let mut forgets = true;
    let put_back = |name: &str| match name {
        function::REGISTER => of_before(name),
        // It was started anew, and knows no session of before.
        function::TOUCH if std::mem::take(&mut forgets) => Err(NoResult::OutcomeUnknown),
        _ => Err(NoResult::NoSuchFunction),
    };
    let calls = calls(&mut world, hub, 60, put_back);
    let expected = [function::TOUCH, function::STAY, function::REGISTER];
    assert_eq!(names(&calls)[..3], expected, "{calls:?}");
    assert!(calls[2].0 - calls[0].0 <= 3, "{calls:?}");
    assert!(names(&calls)[3..].iter().all(|name| *name == function::REGISTER), "{calls:?}");
}

#[test]
fn hub_that_has_another_record_is_sent_the_newest_one_and_touched_again() {
    let (mut world, hub) = world();
    calls(&mut world, hub, 25, usual);
    let mut counts = false;
    let calls = calls(&mut world, hub, 50, |name| match name {
        function::TOUCH => touched(std::mem::replace(&mut counts, true)),
        name => usual(name),
    });
    let expected = [function::TOUCH, function::STAY, function::TOUCH];
    assert_eq!(names(&calls)[..3], expected, "{calls:?}");
    assert!(calls[1].0 - calls[0].0 <= 1, "at once: {calls:?}");
}

/// A device whose clock is hours ahead of its hub's is listed by records that last as long as before.
#[test]
fn hub_by_whose_clock_a_record_lasts_too_long_gets_shorter_ones_for_good() {
    let (mut world, hub) = world();
    let answer = |name: &str| match name {
        function::STAY => registered(Some(Refusal::Expired), true),
        name => usual(name),
    };
    let calls = calls(&mut world, hub, 90, answer);
    let expected = [function::REGISTER, function::STAY, function::REGISTER];
    assert_eq!(names(&calls)[..3], expected, "{calls:?}");
    assert!(names(&calls)[3..].iter().all(|name| *name == function::REGISTER), "{calls:?}");
    let refused = world.notices.iter().any(|notice| matches!(notice, Notice::Refused { .. }));
    assert!(!refused, "{:?}", world.notices);
}

#[test]
fn hub_that_says_later_or_nonsense_is_asked_again_no_sooner_and_no_later_than_a_silent_one() {
    let (mut world, hub) = world();
    calls(&mut world, hub, 25, usual);
    let an_hour = Duration::from_secs(3_600);
    let put_off = |name: &str| match name {
        function::TOUCH => Err(NoResult::Deferred { again_in: an_hour }),
        name => usual(name),
    };
    let calls_then = calls(&mut world, hub, 80, put_off);
    assert_eq!(names(&calls_then)[..2], [function::TOUCH, function::STAY], "{calls_then:?}");
    assert!(calls_then[1].0 - calls_then[0].0 <= 51, "{calls_then:?}");
    // Whatever a false hub answers, no more calls than before.
    let nonsense = |name: &str| match name {
        function::TOUCH => Ok(Some(vec![1])),
        name => usual(name),
    };
    let calls_then = calls(&mut world, hub, 100, nonsense);
    assert!(calls_then.len() <= 20, "{calls_then:?}");
    let calls_then = calls(&mut world, hub, 60, usual);
    assert_eq!(names(&calls_then).last(), Some(&function::TOUCH), "{calls_then:?}");
}
