//! Each invariant can fail: the checker is told of a world in which it does.

use tenure_hal::FlashGeometry;
use tenure_hal::simulated::Random;
use tenure_wire::PublicKey;

use super::*;
use crate::scenario::{DevicePlan, MachinePlan};

const CALL: CallId = 0x1122_3344_5566_7788;
const OTHER: CallId = 7;

/// A device with a counter, two callers of it and a ticker.
fn checker() -> Checker {
    let calling = Calling {
        target: "counter@d1".into(),
        function: "count".into(),
        deadline_ms: 1000,
        pause_ms: 100,
    };
    let roles = [
        ("counter", Role::Counter),
        ("caller", Role::Straight(calling.clone())),
        ("queueing", Role::Queueing { calling, width: 1, retries: 0 }),
        ("ticker", Role::Ticker),
    ];
    let machines = roles.map(|(name, role)| MachinePlan { name: name.into(), role });
    let mut scenario = Scenario::draw(1);
    let device = DevicePlan { machines: machines.into(), ..scenario.devices[0].clone() };
    scenario.devices = vec![device];
    let mut checker = Checker::new(scenario);
    checker.started(0, 1, identity(1));
    checker
}

fn identity(number: u8) -> Identity {
    Identity { device: None, machine: PublicKey([number; 32]) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ran(id: CallId, number: u32) -> String {
    format!("runs{}{}", hex(&id.to_le_bytes()), hex(&number.to_le_bytes()))
}

fn called(id: CallId) -> String {
    format!("call{}", hex(&id.to_le_bytes()))
}

fn done(id: CallId, status: i32, answered: CallId, number: u32) -> String {
    let (id, status) = (hex(&id.to_le_bytes()), hex(&status.to_le_bytes()));
    format!("done{id}{status}{}{}", hex(&answered.to_le_bytes()), hex(&number.to_le_bytes()))
}

/// Checks what comes of these lines, each of a machine at a millisecond.
fn check(lines: &[(u64, &str, String)], expected: Option<Invariant>) {
    let mut checker = checker();
    for (at_ms, machine, line) in lines {
        checker.logged(at_ms * 1000, 1, machine, line);
    }
    assert_eq!(checker.violation().map(|violation| violation.invariant), expected);
}

/// A store as a device has it that kept this number and these marks.
fn store(number: u32, marks: &[CallId]) -> RamFlash {
    let geometry = FlashGeometry { sector_bytes: 4096, sector_count: 16, program_bytes: 4 };
    let mut flash = RamFlash::new(geometry);
    Store::format(&mut flash).unwrap();
    let (mut store, _) = Store::mount(&mut flash).unwrap();
    let (tree, kind) = (TreeId(1), tenure_store::ValueKind::Bytes);
    store.set(tree, NUMBER_PATH, kind, &number.to_le_bytes()).unwrap();
    for id in marks {
        store.set(tree, &mark_of(*id), kind, b"1").unwrap();
    }
    flash
}

#[test]
fn a_call_that_runs_once_and_is_answered_is_right() {
    check(
        &[
            (1, "caller", called(CALL)),
            (2, "counter", ran(CALL, 1)),
            (3, "caller", done(CALL, 12, CALL, 1)),
        ],
        None,
    );
}

#[test]
fn a_call_that_runs_twice_is_found() {
    let lines = [(1, "counter", ran(CALL, 1)), (2, "counter", ran(CALL, 2))];
    check(&lines, Some(Invariant::AtMostOnce));
    let twice = format!("twic{}", hex(&CALL.to_le_bytes()));
    check(&[(1, "counter", twice)], Some(Invariant::AtMostOnce));
}

#[test]
fn a_reply_to_another_call_is_found() {
    let lines = [
        (1, "caller", called(CALL)),
        (2, "counter", ran(CALL, 1)),
        (2, "counter", ran(OTHER, 2)),
        (3, "caller", done(CALL, 12, OTHER, 2)),
    ];
    check(&lines, Some(Invariant::ReplyBelongs));
}

#[test]
fn a_reply_with_another_number_is_found() {
    let lines = [
        (1, "caller", called(CALL)),
        (2, "counter", ran(CALL, 1)),
        (3, "caller", done(CALL, 12, CALL, 2)),
    ];
    check(&lines, Some(Invariant::ReplyBelongs));
}

#[test]
fn a_reply_to_nothing_that_ran_is_found() {
    let lines = [(1, "caller", called(CALL)), (3, "caller", done(CALL, 12, CALL, 1))];
    check(&lines, Some(Invariant::ReplyBelongs));
}

#[test]
fn a_run_after_the_word_that_there_was_none_is_found() {
    let not_found = HostError::NotFound.code();
    let lines = [
        (1, "caller", called(CALL)),
        (2, "caller", done(CALL, not_found, 0, 0)),
        (3, "counter", ran(CALL, 1)),
    ];
    check(&lines, Some(Invariant::NotRunIsTrue));
}

#[test]
fn a_number_that_goes_back_is_found() {
    let have = format!("have{}", hex(&4_u32.to_le_bytes()));
    let lines = [(1, "counter", ran(CALL, 5)), (2, "counter", have)];
    check(&lines, Some(Invariant::WritesAreKept));
}

#[test]
fn what_flash_lost_is_found() {
    for (number, marks, kept) in
        [(1, [CALL].as_slice(), true), (0, &[CALL], false), (1, &[OTHER], false)]
    {
        let mut checker = checker();
        checker.logged(1, 1, "counter", &ran(CALL, 1));
        checker.stopped(2, 1, store(number, marks));
        let found = checker.violation().map(|violation| violation.invariant);
        assert_eq!(found, (!kept).then_some(Invariant::WritesAreKept), "{number} {marks:?}");
    }
}

#[test]
fn flash_that_holds_no_store_any_more_is_found() {
    let mut checker = checker();
    let mut flash = store(1, &[]);
    flash.bytes_mut().fill(0);
    checker.stopped(1, 1, flash);
    let found = checker.violation().map(|violation| violation.invariant);
    assert_eq!(found, Some(Invariant::WritesAreKept));
}

#[test]
fn another_identity_is_found() {
    let mut checker = checker();
    checker.started(1, 1, identity(2));
    let found = checker.violation().map(|violation| violation.invariant);
    assert_eq!(found, Some(Invariant::IdentityIsKept));
    let keys = [(1, "caller", format!("self{}", "01".repeat(32)))];
    check(&keys, None);
    let keys = [keys[0].clone(), (2, "caller", format!("self{}", "02".repeat(32)))];
    check(&keys, Some(Invariant::IdentityIsKept));
}

#[test]
fn a_call_without_an_end_is_found() {
    let queued = format!("queu{}", hex(&CALL.to_le_bytes()));
    for (machine, line) in [("caller", called(CALL)), ("queueing", queued)] {
        let mut checker = checker();
        checker.logged(0, 1, machine, &line);
        checker.watch(900_000);
        assert_eq!(checker.violation(), None);
        checker.watch(60_000_000);
        let found = checker.violation().map(|violation| violation.invariant);
        assert_eq!(found, Some(Invariant::EveryCallEnds), "{machine}");
    }
}

#[test]
fn a_sleeper_hears_of_its_call_when_it_has_woken_and_no_later() {
    let mut checker = checker();
    checker.logged(0, 1, "caller", &called(CALL));
    checker.sleeps(500_000, 1);
    checker.slept(60_000_000, 1);
    checker.watch(60_900_000);
    assert_eq!(checker.violation(), None);
    checker.sleeps(60_900_000, 1);
    checker.slept(90_000_000, 1);
    checker.watch(91_900_000);
    let found = checker.violation().map(|violation| violation.invariant);
    assert_eq!(found, Some(Invariant::EveryCallEnds), "awake for 2.8 s since it was due");
}

#[test]
fn a_machine_without_a_turn_is_found() {
    let mut checker = checker();
    checker.logged(0, 1, "ticker", "tick");
    checker.watch(500_000);
    assert_eq!(checker.violation(), None);
    checker.watch(1_500_000);
    let found = checker.violation().map(|violation| violation.invariant);
    assert_eq!(found, Some(Invariant::NobodyStarves));
}

#[test]
fn a_machine_that_is_banned_for_what_others_did_is_found() {
    let mut checker = checker();
    checker.logged(0, 1, "ticker", "banned after repeated faults");
    let found = checker.violation().map(|violation| violation.invariant);
    assert_eq!(found, Some(Invariant::ReputeIsEarned));
}

#[test]
fn a_machine_that_is_off_owes_nothing() {
    let mut checker = checker();
    checker.logged(0, 1, "ticker", "tick");
    checker.logged(0, 1, "caller", &called(CALL));
    checker.stopped(1, 1, store(0, &[]));
    checker.watch(60_000_000);
    assert_eq!(checker.violation(), None);
}

#[test]
fn callers_that_never_succeed_are_found() {
    let mut checker = checker();
    checker.finish(100_000_000);
    let found = checker.violation().map(|violation| violation.invariant);
    assert_eq!(found, Some(Invariant::TroubleEnds));
}

#[test]
fn a_panic_is_found_with_its_place() {
    let caught = crate::panics::catch(|| assert_eq!(Random::new(1).number(), 0));
    assert!(caught.is_err_and(|what| what.contains("tests.rs")));
}
