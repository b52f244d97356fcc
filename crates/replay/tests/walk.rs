//! A machine's way through a recorded run is walked forwards and backwards, from its fault to what caused it.

mod recording;

use std::sync::Arc;
use std::time::Duration;

use tenure_hal::Instant;
use tenure_replay::{History, Position, Remembered, Stopped, Walk, remember};

use recording::{config, record};

/// Divides by what stands at 256: a 7 at first, until `$store` writes a 0 there, long before. In between it calls itself,
/// fills memory in steps, draws random bytes and sleeps.
const MACHINE: &str = r#"(module
  (import "tenure" "random" (func $random (param i32 i32) (result i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (memory (export "memory") 1)
  (global $rounds (mut i32) (i32.const 0))
  (func $store (param $at i32) (param $value i32)
    (i32.store (local.get $at) (local.get $value)))
  (func $sum (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (i32.add (local.get $n) (call $sum (i32.sub (local.get $n) (i32.const 1)))))
      (else (i32.const 0))))
  (func $work (param $times i32)
    (loop $again
      (global.set $rounds (i32.add (global.get $rounds) (i32.const 1)))
      (call $store (i32.const 300) (call $sum (i32.const 9)))
      (i32.store16 (i32.const 304) (local.get $times))
      (local.set $times (i32.sub (local.get $times) (i32.const 1)))
      (br_if $again (local.get $times)))
    (memory.fill (i32.const 1024) (global.get $rounds) (i32.const 40000))
    (drop (call $random (i32.const 512) (i32.const 8)))
    (call $sleep_ms (i32.const 20)))
  (func (export "entry")
    (call $store (i32.const 256) (i32.const 7))
    (call $work (i32.const 90))
    (call $store (i32.const 256) (i32.const 0))
    (call $work (i32.const 200))
    (call $work (i32.const 60))
    (drop (i32.div_u (i32.const 100) (i32.load (i32.const 256))))))"#;

/// Functions of the machine: imports come first.
const STORE: u32 = 2;
const ENTRY: u32 = 5;
/// The bytes by which it divides.
const DIVISOR: std::ops::Range<u32> = 256..260;

const STEP: Duration = Duration::from_millis(10);

/// The record of a second and a half of a device with the machine.
fn recorded() -> Vec<u8> {
    record("divider", MACHINE, STEP, &mut |now, _| {
        now < Instant::BOOT + Duration::from_millis(1500)
    })
}

fn remembered() -> (Remembered, Arc<History>) {
    let remembered = remember(&mut &recorded()[..], &mut config).unwrap();
    assert!(!remembered.is_cut && remembered.replayed.is_complete);
    let history = Arc::clone(&remembered.machines[0]);
    assert_eq!((remembered.machines.len(), history.machine.as_str()), (1, "divider"));
    (remembered, history)
}

fn function(walk: &Walk) -> Option<u32> {
    walk.program().innermost(&walk.history().image(), 1).first().map(|call| call.function)
}

fn divisor(walk: &Walk) -> u8 {
    // Memory that isn't committed yet is zero.
    walk.program().memory().get(DIVISOR.start as usize).copied().unwrap_or(0)
}

#[test]
fn who_wrote_the_zero_is_found_backwards_from_the_division_by_it() {
    let (_, history) = remembered();
    let mut walk = Walk::new(Arc::clone(&history));
    assert_eq!(walk.forward_until(&mut |_| false, &[]), Stopped::Fault);
    assert!(walk.has_failed() && function(&walk) == Some(ENTRY));
    let fault = walk.leg().fault.clone().unwrap();
    assert!(fault.contains("divide by zero"), "{fault}");
    assert!(history.lines.iter().any(|line| line.message == fault));
    assert_eq!(walk.back_until(&mut |_| false, &[DIVISOR]), Stopped::Watched(0));
    assert_eq!((function(&walk), divisor(&walk)), (Some(STORE), 7));
    let image = history.image();
    let frames = walk.program().frames(&image);
    let (call, frame) = frames[0];
    let local = |index| {
        let slot = walk.program().local(&image, call.function, frame, index)?;
        Some(slot as u32)
    };
    assert_eq!((local(0), local(1), local(2)), (Some(256), Some(0), None));
    assert_eq!(frames[1].0.function, ENTRY);
    // Forwards the same instruction is seen from behind.
    let before = walk.position();
    walk.back();
    assert_eq!(walk.forward_until(&mut |_| false, &[DIVISOR]), Stopped::Watched(0));
    assert_eq!(divisor(&walk), 0);
    walk.back();
    assert_eq!(walk.position(), before);
    // The 7 came before, and before that there was nothing.
    assert_eq!(walk.back_until(&mut |_| false, &[DIVISOR]), Stopped::Watched(0));
    assert_eq!(divisor(&walk), 0);
    assert_eq!(walk.back_until(&mut |_| false, &[DIVISOR]), Stopped::Edge);
    assert_eq!(walk.position(), Position::default());
}

#[test]
fn every_call_of_a_function_is_found_in_both_directions() {
    let (_, history) = remembered();
    let image = history.image();
    let entry = image.shape(tenure_vm::FunctionIndex(STORE)).unwrap().code_at;
    let mut at_entry = |walk: &Walk| walk.standing().is_some_and(|it| it.code_at == entry);
    let mut walk = Walk::new(Arc::clone(&history));
    let mut forwards = Vec::new();
    loop {
        match walk.forward_until(&mut at_entry, &[]) {
            Stopped::Here => forwards.push(walk.position()),
            Stopped::Fault => {}
            Stopped::Watched(_) => panic!("nothing is watched"),
            Stopped::Edge => break,
        }
    }
    // Once each round, twice beside; more after a restart.
    assert!(forwards.len() >= 352, "{}", forwards.len());
    let mut backwards = Vec::new();
    loop {
        match walk.back_until(&mut at_entry, &[]) {
            Stopped::Here => backwards.push(walk.position()),
            Stopped::Fault => {}
            Stopped::Watched(_) => panic!("nothing is watched"),
            Stopped::Edge => break,
        }
    }
    backwards.reverse();
    assert_eq!(backwards, forwards);
}

#[test]
fn any_walk_comes_to_the_same_state_as_a_fresh_one() {
    let (_, history) = remembered();
    let end = history.distance(history.end());
    assert!(end > 20_000 && history.legs() > 6, "{end} units on {} legs", history.legs());
    let mut walk = Walk::new(Arc::clone(&history));
    let mut seed = 7_u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..60 {
        match draw(3) {
            0 => {
                for _ in 0..draw(200) {
                    walk.forward();
                }
            }
            1 => {
                for _ in 0..1 + draw(12) {
                    walk.back();
                }
            }
            _ => walk.go(history.position_at(draw(end + 1))),
        }
        let mut fresh = Walk::new(Arc::clone(&history));
        fresh.go(walk.position());
        assert_eq!(fresh.position(), walk.position(), "round {round}");
        assert_eq!(fresh.digest(), walk.digest(), "round {round}, at {:?}", walk.position());
    }
}

#[test]
fn steps_back_are_the_steps_forward_the_other_way_round() {
    let (_, history) = remembered();
    let mut walk = Walk::new(Arc::clone(&history));
    walk.forward_until(&mut |_| false, &[]);
    let fault = walk.position();
    // Filling 40000 bytes is one instruction of 5000 units; this is in the loop before it.
    walk.go(history.position_at(history.distance(fault) - 6500));
    let mut passed = vec![(walk.position(), walk.digest())];
    while walk.position() < fault && walk.forward() {
        passed.push((walk.position(), walk.digest()));
    }
    assert_eq!(walk.position(), fault);
    assert!(passed.len() > 100, "{}", passed.len());
    assert!(passed.is_sorted_by(|one, next| one.0 < next.0));
    for (position, digest) in passed[passed.len() - 100..passed.len() - 1].iter().rev() {
        assert!(walk.back());
        assert_eq!((walk.position(), walk.digest()), (*position, *digest));
    }
}

#[test]
fn record_that_is_cut_anywhere_has_the_history_up_to_there() {
    let record = recorded();
    let (_, whole) = remembered();
    let mut legs = 0;
    for cut in (1..16).map(|part| record.len() * part / 16).chain([record.len() - 1]) {
        let remembered = remember(&mut &record[..cut], &mut config).unwrap();
        assert!(!remembered.replayed.is_complete, "{cut}");
        let Some(history) = remembered.machines.first() else { continue };
        assert!(history.legs() >= legs, "{cut}");
        legs = history.legs();
        let middle = history.position_at(history.distance(history.end()) / 2);
        let [one, other] = [history, &whole].map(|history| {
            let mut walk = Walk::new(Arc::clone(history));
            walk.go(history.end());
            walk.go(middle);
            (walk.position(), walk.digest())
        });
        assert_eq!(one, other, "{cut}");
    }
    assert_eq!(legs, whole.legs());
}
