//! Epochs end when they can no longer be remembered; budgets hold; cookies belong to an address.

extern crate std;

use std::vec;

use super::*;

struct Fixed;

impl Entropy for Fixed {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.fill(9);
        Ok(())
    }
}

const HERE: u32 = 1;
const THERE: u32 = 2;

fn gate(config: &Config) -> Gate {
    Gate::new(config, Instant::BOOT, &mut Fixed).expect("randomness")
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1_000)
}

#[test]
fn accepted_initiation_is_remembered_or_its_epoch_is_over() {
    let config = Config { accepted_initiations_max: 4, ..Config::default() };
    let mut gate = gate(&config);
    let mut accepted: vec::Vec<(Echo, Epoch)> = vec![];
    for number in 0..50 {
        let now = seconds(number.into());
        let (echo, epoch) = (Echo([number; 16]), gate.epoch());
        assert_eq!(gate.admit(now, &HERE, &epoch, &Cookie::NONE), Admission::Admit);
        gate.accept(now, echo, vec![number]);
        accepted.push((echo, epoch));
        for (echo, epoch) in &accepted {
            let admission = gate.admit(now, &HERE, epoch, &gate.cookie(now, &HERE));
            let refused = gate.response(echo).is_some() || admission != Admission::Admit;
            assert!(refused, "{echo:?} would be executed again after {number} more");
        }
    }
    assert_eq!(gate.response(&Echo([49; 16])), Some(&[49][..]));
}

#[test]
fn initiation_of_another_epoch_is_challenged() {
    let mut gate = gate(&Config::default());
    let old = gate.epoch();
    gate.begin_epoch(seconds(1));
    assert_ne!(gate.epoch(), old);
    let cookie = gate.cookie(seconds(1), &HERE);
    assert_eq!(gate.admit(seconds(1), &HERE, &old, &cookie), Admission::Challenge);
}

#[test]
fn handshakes_beyond_the_budget_need_a_cookie_and_then_time() {
    let config =
        Config { handshakes_per_second: 2, handshakes_per_second_max: 5, ..Config::default() };
    let mut gate = gate(&config);
    let (now, epoch) = (seconds(1), gate.epoch());
    let mut admit = |now, from, cookie| gate.admit(now, &from, &epoch, &cookie);
    assert_eq!(admit(now, HERE, Cookie::NONE), Admission::Admit);
    assert_eq!(admit(now, HERE, Cookie::NONE), Admission::Admit);
    assert_eq!(admit(now, HERE, Cookie::NONE), Admission::Challenge);
    assert_eq!(admit(now, HERE, Cookie([3; 16])), Admission::Challenge);
    let cookie = gate.cookie(now, &HERE);
    let mut admit = |now, from, cookie| gate.admit(now, &from, &epoch, &cookie);
    assert_eq!(admit(now, THERE, cookie), Admission::Challenge, "another's cookie");
    for _ in 0..3 {
        assert_eq!(admit(now, HERE, cookie), Admission::Admit);
    }
    assert_eq!(admit(now, HERE, cookie), Admission::Drop, "no more in all");
    assert_eq!(admit(seconds(2), HERE, cookie), Admission::Admit, "a second later");
}

#[test]
fn cookie_expires() {
    let config = Config { handshakes_per_second: 1, ..Config::default() };
    let mut gate = gate(&config);
    let epoch = gate.epoch();
    let cookie = gate.cookie(seconds(0), &HERE);
    let mut check = |at: u64, expected| {
        // The first of two takes what is free for anybody.
        let _ = gate.admit(seconds(at), &THERE, &epoch, &Cookie::NONE);
        assert_eq!(gate.admit(seconds(at), &HERE, &epoch, &cookie), expected, "after {at} s");
    };
    check(1, Admission::Admit);
    check(200, Admission::Admit);
    check(300, Admission::Challenge);
}
