//! What is remembered of callers, and what is forgotten.

extern crate std;

use core::time::Duration;
use std::vec;

use tenure_wire::{MachineId, PublicKey};

use super::*;

const PAIR: Pair = Pair { local: MachineId([1; 12]), peer: PublicKey([2; 32]) };
const OVER: SessionIndex = SessionIndex(1);
const PLENTY: Allowance = Allowance { may_run: true, may_assemble: true };

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1_000)
}

fn take(caller: &mut Caller, now: Instant, number: u64, body: &[u8]) -> Verdict {
    let config = Config::default();
    let fragment = Fragment::of(body, 100, 0, true).expect("a fragment");
    caller.take_fragment(&config, now, OVER, CallNumber(number), &fragment, PLENTY)
}

#[test]
fn call_is_executed_once_and_answered_as_often_as_asked() {
    let mut callers = Callers::new(at(0));
    let caller = callers.know(at(1), PAIR, 7);
    assert_eq!(take(caller, at(1), 5, b"body"), Verdict::Execute(b"body".to_vec()));
    assert_eq!(take(caller, at(1), 5, b"body"), Verdict::Running);
    assert!(caller.finish(CallNumber(5), b"reply".to_vec()));
    assert_eq!(take(caller, at(2), 5, b"body"), Verdict::Reply);
    assert_eq!(caller.reply(CallNumber(5)), Some((&b"reply"[..], OVER, at(2))));
    assert!(!caller.finish(CallNumber(5), b"other".to_vec()), "it is over");
    caller.note_finished(&Finished::below(CallNumber(6)));
    assert_eq!(take(caller, at(3), 5, b"body"), Verdict::Ignore, "not executed again");
    assert_eq!(caller.query(at(3), OVER, CallNumber(5)), Verdict::Ignore);
}

#[test]
fn call_given_up_while_it_runs_counts_as_running_until_it_ends() {
    let mut callers = Callers::new(at(0));
    let caller = callers.know(at(1), PAIR, 7);
    take(caller, at(1), 5, b"body");
    caller.note_finished(&Finished::below(CallNumber(9)));
    assert_eq!(callers.running(), 1);
    let caller = callers.know(at(1), PAIR, 7);
    assert!(!caller.finish(CallNumber(5), b"reply".to_vec()), "nobody wants it");
    assert_eq!(callers.running(), 0);
}

#[test]
fn calls_beyond_the_limits_are_refused_for_good_or_put_off() {
    let config = Config::default();
    let mut callers = Callers::new(at(0));
    let caller = callers.know(at(1), PAIR, 7);
    for number in 0..config.running_per_caller_max as u64 {
        assert!(matches!(take(caller, at(1), number, b"body"), Verdict::Execute(_)));
    }
    assert_eq!(take(caller, at(1), 50, b"body"), Verdict::Reply, "busy");
    assert!(caller.finish(CallNumber(0), vec![0]));
    assert_eq!(take(caller, at(1), 50, b"body"), Verdict::Reply, "still busy: it was said so");
    for number in 51..80 {
        take(caller, at(1), number, b"body");
    }
    assert_eq!(take(caller, at(1), 80, b"body"), Verdict::Later);
    let long = vec![0; config.body_bytes_max() + 1];
    let number = CallNumber(0);
    caller.note_finished(&Finished::below(CallNumber(100)));
    let fragment = Fragment::of(&long, 1_000, 0, false).expect("a fragment");
    let verdict = caller.take_fragment(&config, at(1), OVER, CallNumber(200), &fragment, PLENTY);
    assert_eq!((verdict, caller.reply(number)), (Verdict::Reply, None), "too long");
}

#[test]
fn forgetting_moves_the_horizon_to_the_last_call() {
    let mut callers = Callers::new(at(0));
    take(callers.know(at(1), PAIR, 7), at(1), 5, b"body");
    assert!(callers.forget_one().is_none(), "a call is running");
    callers.know(at(1), PAIR, 7).finish(CallNumber(5), vec![0]);
    take(callers.know(at(3), PAIR, 8), at(3), 5, b"body");
    callers.know(at(3), PAIR, 8).finish(CallNumber(5), vec![0]);
    callers.know(at(4), PAIR, 8).note_finished(&Finished::below(CallNumber(9)));
    let forgotten = callers.forget_one().expect("one that waits for nothing");
    assert_eq!((forgotten.incarnation, forgotten.last_call), (8, Some(at(3))));
    assert_eq!(callers.horizon(), at(3));
    assert_eq!(callers.complete_since(&PAIR, 7), at(0), "known all along");
    assert_eq!(callers.complete_since(&PAIR, 8), at(3));
}

#[test]
fn results_that_nobody_fetches_make_room() {
    let config = Config { buffer_bytes_max: 1_000, ..Config::default() };
    let mut callers = Callers::new(at(0));
    for number in 0..2 {
        let caller = callers.know(at(number), PAIR, 7);
        take(caller, at(number), number, b"body");
        caller.finish(CallNumber(number), vec![0; 600]);
    }
    assert!(!callers.reclaim(&config, at(1), 0), "both are fresh");
    assert!(callers.reclaim(&config, at(2), 0), "the older isn't any more");
    let caller = callers.know(at(2), PAIR, 7);
    let told = ReplyBody(Err(Declined::Forgotten)).to_bytes();
    assert_eq!(caller.reply(CallNumber(0)).map(|(body, ..)| body.len()), Some(told.len()));
    assert_eq!(caller.reply(CallNumber(1)).map(|(body, ..)| body.len()), Some(600));
}

#[test]
fn fragments_that_stand_still_are_dropped() {
    let config = Config::default();
    let mut callers = Callers::new(at(0));
    let caller = callers.know(at(1), PAIR, 7);
    assert!(matches!(take(caller, at(1), 5, &[0; 300]), Verdict::Missing(_)));
    let expiry = callers.next_expiry(&config).expect("an assembly");
    callers.expire_assemblies(&config, expiry - Duration::from_micros(1));
    assert_eq!(callers.bytes_taken(), 300);
    callers.expire_assemblies(&config, expiry);
    assert_eq!((callers.bytes_taken(), callers.next_expiry(&config)), (0, None));
}
