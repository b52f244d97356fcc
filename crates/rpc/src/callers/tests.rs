//! The memory of callers: the calls that it keeps, and those that it forgets.

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
    assert!(caller.finish(at(1), CallNumber(5), b"reply".to_vec()));
    assert_eq!(take(caller, at(2), 5, b"body"), Verdict::Reply);
    assert_eq!(caller.reply(CallNumber(5)), Some((&b"reply"[..], OVER, at(2))));
    assert!(!caller.finish(at(2), CallNumber(5), b"other".to_vec()), "it is over");
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
    assert!(!caller.finish(at(1), CallNumber(5), b"reply".to_vec()), "nobody wants it");
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
    assert!(caller.finish(at(1), CallNumber(0), vec![0]));
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
    assert!(
        callers.forget_one(&Config::default(), Standing::Stranger).is_none(),
        "a call is running"
    );
    callers.know(at(1), PAIR, 7).finish(at(3), CallNumber(5), vec![0]);
    take(callers.know(at(3), PAIR, 8), at(3), 5, b"body");
    callers.know(at(3), PAIR, 8).finish(at(3), CallNumber(5), vec![0]);
    callers.know(at(4), PAIR, 8).note_finished(&Finished::below(CallNumber(9)));
    let forgotten = callers
        .forget_one(&Config::default(), Standing::Stranger)
        .expect("one that waits for nothing");
    assert_eq!((forgotten.incarnation, forgotten.last_call), (8, Some(at(3))));
    assert_eq!(callers.horizon(), at(3));
    assert_eq!(callers.complete_since(&PAIR, 7), at(0), "known all along");
    assert_eq!(callers.complete_since(&PAIR, 8), at(3));
}

/// Remembers a call of `pair` that was executed at `done_at` with a result of `bytes`.
fn remember_result(callers: &mut Callers, pair: Pair, number: u64, done_at: Instant, bytes: usize) {
    let caller = callers.know(done_at, pair, 7);
    assert!(matches!(take(caller, done_at, number, b"body"), Verdict::Execute(_)));
    assert!(caller.finish(done_at, CallNumber(number), vec![0; bytes]));
}

fn pair_of(peer: u8) -> Pair {
    Pair { peer: PublicKey([peer; 32]), ..PAIR }
}

/// Room for three calls of the greatest length, of which two may be of one kind.
fn tight() -> Config {
    let length = Config::default().body_bytes_max();
    Config { buffer_bytes_max: 3 * length, ..Config::default() }
}

#[test]
fn results_that_nobody_fetches_make_room() {
    let config = tight();
    let length = config.body_bytes_max();
    let mut callers = Callers::new(at(0));
    remember_result(&mut callers, pair_of(1), 0, at(0), length);
    remember_result(&mut callers, pair_of(2), 1, at(1), length);
    let free = config.buffer_bytes_max - callers.bytes_taken();
    let mut room = |now| callers.make_room(&config, now, free + 1, Use::Assembly, false);
    assert!(!room(at(1)), "both are fresh");
    assert!(room(at(2)), "the older isn't any more");
    let told = ReplyBody(Err(NoResult::OutcomeUnknown)).to_bytes().len();
    let mut kept = |peer, number| {
        callers.know(at(2), pair_of(peer), 7).reply(CallNumber(number)).map(|(body, ..)| body.len())
    };
    assert_eq!((kept(1, 0), kept(2, 1)), (Some(told), Some(length)));
}

#[test]
fn results_leave_room_for_one_call_in_parts_and_the_other_way_round() {
    let config = tight();
    let length = config.body_bytes_max();
    let mut callers = Callers::new(at(0));
    for peer in 1..=3 {
        remember_result(&mut callers, pair_of(peer), 0, at(1), length);
        assert!(callers.make_room(&config, at(1), 0, Use::Result, false));
    }
    assert!(callers.bytes_taken() < 2 * length + 10, "the oldest of three made room");
    assert!(callers.make_room(&config, at(1), length, Use::Assembly, false));
}

#[test]
fn result_that_is_asked_for_again_and_again_makes_room_in_the_end() {
    let config = tight();
    let length = config.body_bytes_max();
    let mut callers = Callers::new(at(0));
    remember_result(&mut callers, pair_of(1), 0, at(0), length);
    remember_result(&mut callers, pair_of(2), 0, at(0), length);
    for second in 1..10 {
        for peer in 1..=2 {
            callers.know(at(second), pair_of(peer), 7).query(at(second), OVER, CallNumber(0));
        }
        assert!(!callers.make_room(&config, at(second), length + 1, Use::Assembly, false));
    }
    assert!(callers.make_room(&config, at(10), length + 1, Use::Assembly, false));
}

/// Begins a call of the greatest length and sends one of its parts of 32 bytes.
fn send_part(callers: &mut Callers, peer: u8, now: Instant, index: usize) {
    let config = Config::default();
    let body = vec![0; config.body_bytes_max() - 100];
    let fragment = Fragment::of(&body, 64, index, true).expect("a fragment");
    let caller = callers.know(now, pair_of(peer), 7);
    caller.take_fragment(&config, now, OVER, CallNumber(1), &fragment, PLENTY);
}

#[test]
fn calls_in_parts_that_hardly_grow_make_room_for_others() {
    let config = tight();
    let mut callers = Callers::new(at(0));
    send_part(&mut callers, 1, at(1), 0);
    send_part(&mut callers, 2, at(1), 0);
    let length = config.body_bytes_max();
    let late = at(1) + Duration::from_millis(600);
    assert!(!callers.make_room(&config, at(1), length, Use::Assembly, false), "both just began");
    send_part(&mut callers, 2, late, 1);
    assert!(callers.make_room(&config, late, length, Use::Assembly, false));
    assert!(callers.know(late, pair_of(1), 7).calls.is_empty(), "it stood still for longest");
    assert_eq!(callers.know(late, pair_of(2), 7).calls.len(), 1);
}

#[test]
fn only_a_new_fragment_lets_a_call_stand_still_longer_and_none_beyond_its_lifetime() {
    let config = Config::default();
    let mut callers = Callers::new(at(0));
    send_part(&mut callers, 1, at(0), 0);
    for second in 1..15 {
        send_part(&mut callers, 1, at(second), 0);
        callers.know(at(second), pair_of(1), 7).query(at(second), OVER, CallNumber(1));
    }
    assert_eq!(callers.next_expiry(&config), Some(at(15)), "the same fragment counts once");
    for second in 14..74 {
        send_part(&mut callers, 2, at(second), second as usize - 14);
        callers.expire_assemblies(&config, at(second));
        assert_eq!(callers.know(at(second), pair_of(2), 7).calls.len(), 1, "after {second} s");
    }
    callers.expire_assemblies(&config, at(74));
    assert!(callers.know(at(74), pair_of(2), 7).calls.is_empty(), "a minute is all it gets");
}

#[test]
fn owner_has_room_whatever_strangers_hold() {
    let owner = pair_of(9);
    let config = Config { owner: Some(owner.peer), ..tight() };
    let length = config.body_bytes_max();
    let mut callers = Callers::new(at(0));
    remember_result(&mut callers, pair_of(1), 0, at(1), length);
    remember_result(&mut callers, pair_of(2), 0, at(1), length);
    send_part(&mut callers, 3, at(1), 0);
    assert!(callers.make_room(&config, at(1), length, Use::Assembly, true));
    remember_result(&mut callers, owner, 0, at(1), length);
    assert!(callers.make_room(&config, at(1), 0, Use::Result, true));
    remember_result(&mut callers, owner, 1, at(1), length);
    assert!(callers.make_room(&config, at(1), 0, Use::Result, true));
    let mut whole = |pair, number| {
        let reply = callers.know(at(1), pair, 7).reply(CallNumber(number));
        reply.is_some_and(|(body, ..)| body.len() == length)
    };
    assert!(whole(owner, 0) && whole(owner, 1) && whole(pair_of(1), 0) && whole(pair_of(2), 0));
    // More than its reserve: now strangers' go, and no stranger's takes the owner's.
    remember_result(&mut callers, owner, 2, at(1), length);
    assert!(callers.make_room(&config, at(1), 0, Use::Result, true));
    assert!(callers.bytes_taken() <= config.buffer_bytes_max + owners_reserve(&config));
    remember_result(&mut callers, pair_of(4), 0, at(1), length);
    callers.make_room(&config, at(1), 0, Use::Result, false);
    let mut whole = |pair, number| {
        let reply = callers.know(at(1), pair, 7).reply(CallNumber(number));
        reply.is_some_and(|(body, ..)| body.len() == length)
    };
    assert!(whole(owner, 0) && whole(owner, 1) && whole(owner, 2));
}

#[test]
fn owners_calls_run_beside_those_of_strangers() {
    let owner = pair_of(9);
    let config = Config { owner: Some(owner.peer), ..Config::default() };
    let mut callers = Callers::new(at(0));
    for peer in 0..3 {
        for number in 0..4 {
            assert!(callers.may_run(&config, &pair_of(peer).peer));
            let caller = callers.know(at(1), pair_of(peer), 7);
            assert!(matches!(take(caller, at(1), number, b"body"), Verdict::Execute(_)));
        }
    }
    assert!(!callers.may_run(&config, &pair_of(4).peer), "twelve run");
    assert!(callers.may_run(&config, &owner.peer));
}

#[test]
fn fragments_of_a_reply_are_sent_again_within_a_budget() {
    let mut callers = Callers::new(at(0));
    remember_result(&mut callers, PAIR, 0, at(1), 5_000);
    let caller = callers.know(at(1), PAIR, 7);
    let sent = (0..1_000).filter(|at_| caller.may_send_fragment(at(1), CallNumber(0), at_ % 5));
    assert_eq!(sent.count(), 5 + REPEATS_PER_SECOND as usize);
    assert!(caller.may_send_fragment(at(2), CallNumber(0), 0), "a second later again");
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

/// A key that begins as no other does.
fn key_of_peer(number: u32) -> Pair {
    let mut key = [5; 32];
    key[..4].copy_from_slice(&number.to_be_bytes());
    Pair { peer: PublicKey(key), ..PAIR }
}

#[test]
fn listed_callers_are_remembered_whoever_else_calls_and_choosing_takes_few_steps() {
    const LISTED: u32 = 11_000;
    let mut config = Config::for_callers(LISTED as usize);
    config.favoured = (0..LISTED).map(|number| key_of_peer(number).peer).collect();
    let most = config.callers_max as u32;
    let mut callers = Callers::new(at(0));
    for number in 0..most {
        callers.know(at(1), key_of_peer(number), 7);
    }
    callers.least_missed.steps = 0;
    for number in most..most + LISTED {
        let forgotten = callers.forget_one(&config, Standing::Stranger).expect("a stranger");
        assert!(forgotten.pair.peer >= key_of_peer(LISTED).peer, "a listed one was forgotten");
        callers.know(at(2), key_of_peer(number), 7);
    }
    let steps = callers.least_missed.steps;
    assert!(steps <= u64::from(3 * LISTED), "{steps} steps for {LISTED} choices");
    assert_eq!(callers.len(), config.callers_max);
    assert!((0..LISTED).all(|number| callers.get(&key_of_peer(number), 7).is_some()));
}

#[test]
fn sums_are_those_of_a_recount_after_whatever_happened() {
    let config = Config { callers_max: 6, ..tight() };
    for seed in 0..50 {
        let mut random = tenure_hal::simulated::Random::new(seed);
        let mut callers = Callers::new(at(0));
        for second in 1..400 {
            let now = at(second);
            let pair = pair_of(random.number() as u8 % 5);
            let incarnation = random.number() % 2;
            let number = CallNumber(random.number() % 6);
            match random.number() % 8 {
                0 | 1 => {
                    let body = vec![0; 1 + random.number() as usize % 300];
                    let caller = callers.know(now, pair, incarnation);
                    take(caller, now, number.0, &body);
                }
                2 => {
                    let caller = callers.know(now, pair, incarnation);
                    caller.finish(now, number, vec![0; random.number() as usize % 900]);
                }
                3 => {
                    let finished = Finished::below(number);
                    if let Some(caller) = callers.find(&pair, incarnation) {
                        caller.note_finished(&finished);
                    }
                }
                4 => {
                    callers.forget_one(&config, Standing::Stranger);
                }
                5 => callers.expire_assemblies(&config, now),
                6 => {
                    callers.make_room(&config, now, 4_000, Use::Assembly, false);
                }
                _ => {
                    let rest = callers.rest();
                    let woken = Callers::wake(now, rest);
                    let incomplete = callers.sums().incomplete;
                    assert_eq!(woken.sums().running, callers.sums().running, "seed {seed}");
                    assert_eq!(woken.sums().results, callers.sums().results, "seed {seed}");
                    assert!(incomplete > 0 || woken.sums() == callers.sums(), "seed {seed}");
                }
            }
            let recount = callers.table.iter().map(|(_, one)| one.sums());
            let recount = recount.fold(Sums::default(), Sums::plus);
            assert_eq!(callers.sums(), recount, "seed {seed}, second {second}");
            let expiries = callers.table.iter().flat_map(|(_, one)| &one.calls);
            let next = expiries.filter_map(|call| match &call.state {
                State::Assembling(incoming) => Some(incoming.expires_at(&config)),
                State::Running | State::Done(_) => None,
            });
            assert_eq!(callers.next_expiry(&config), next.min(), "seed {seed}, second {second}");
            assert_eq!(callers.by_key.len(), callers.len());
        }
    }
}
