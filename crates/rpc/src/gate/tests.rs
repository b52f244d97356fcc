//! Epochs end when they can no longer be remembered; budgets hold; cookies belong to an address.

extern crate std;

use std::vec;

use tenure_wire::MachineId;
use tenure_wire::datagram::Datagram;

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

const ANYBODY: bool = false;
const SHOWN: bool = true;

fn admit(gate: &mut Gate, now: Instant, from: u32, epoch: &Epoch, is_shown: bool) -> Admission {
    gate.admit(now, &from, epoch, is_shown, || false)
}

fn accept(gate: &mut Gate, now: Instant, from: u32, epoch: Epoch, number: u8) {
    let session = SessionIndex(number.into());
    let echo = Echo([number; 16]);
    gate.accept(now, Acceptance { epoch, echo, from: &from, session, response: vec![number] });
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
        assert_eq!(admit(&mut gate, now, HERE, &epoch, ANYBODY), Admission::Admit);
        accept(&mut gate, now, HERE, epoch, number);
        accepted.push((echo, epoch));
        for (echo, epoch) in &accepted {
            let is_remembered = gate.repeated(&HERE, echo, ANYBODY).is_some();
            let admission = admit(&mut gate, now, HERE, epoch, SHOWN);
            let refused = is_remembered || admission != Admission::Admit;
            assert!(refused, "{echo:?} would be executed again after {number} more");
        }
    }
    let last = gate.repeated(&HERE, &Echo([49; 16]), ANYBODY);
    assert_eq!(last, Some(Repeated::Answer(vec![49])));
}

#[test]
fn epoch_that_is_old_makes_place_and_is_accepted_for_as_long_again() {
    let config = Config::default();
    let mut gate = gate(&config);
    let first = gate.epoch();
    assert_eq!(admit(&mut gate, seconds(119), HERE, &first, ANYBODY), Admission::Admit);
    accept(&mut gate, seconds(119), HERE, first, 1);
    assert_eq!(gate.epoch(), first);
    gate.end_epochs(seconds(120));
    assert_ne!(gate.epoch(), first);
    assert_eq!(admit(&mut gate, seconds(239), HERE, &first, ANYBODY), Admission::Admit);
    accept(&mut gate, seconds(239), HERE, first, 2);
    assert_eq!(gate.accepts_since(), seconds(0), "what names the first is still accepted");
    let second = gate.epoch();
    assert_eq!(admit(&mut gate, seconds(240), HERE, &first, ANYBODY), Admission::Challenge);
    assert_ne!(gate.epoch(), second);
    assert_eq!(gate.accepts_since(), seconds(120));
}

#[test]
fn epochs_that_nobody_used_end_by_time_too() {
    let mut gate = gate(&Config::default());
    let week_old = gate.epoch();
    let now = seconds(7 * 24 * 60 * 60);
    assert_eq!(admit(&mut gate, now, HERE, &week_old, ANYBODY), Admission::Challenge);
    assert_eq!(gate.accepts_since(), now);
}

#[test]
fn one_host_gets_a_share_of_all_handshakes() {
    let mut gate = gate(&Config::default());
    let epoch = gate.epoch();
    let (mut here, mut there) = (0, 0);
    for at in 1..=10 {
        let now = seconds(at);
        for _ in 0..100 {
            let admission = admit(&mut gate, now, HERE, &epoch, SHOWN);
            here += u32::from(admission == Admission::Admit);
        }
        let admission = admit(&mut gate, now, THERE, &epoch, SHOWN);
        there += u32::from(admission == Admission::Admit);
    }
    assert!((40..=56).contains(&here), "half of eight a second and what was saved, not {here}");
    assert!(there >= 9, "nearly all that is asked, not {there}");
}

/// Hosts that take what they can, for a while, with a newcomer each half second, who asks once; how many
/// handshakes the hosts got in a second, and how many newcomers got theirs.
fn besieged(hosts: u32) -> (u32, u32) {
    let mut gate = gate(&Config::default());
    let (mut greedy, mut newcomers) = (0, 0);
    for at in 0..2_000_u32 {
        let now = Instant::from_millis(u64::from(at) * 10);
        let epoch = gate.epoch();
        for turn in 0..hosts {
            let host = 1_000 + (at + turn) % hosts;
            greedy += u32::from(admit(&mut gate, now, host, &epoch, SHOWN) == Admission::Admit);
        }
        if at % 50 == 49 {
            let admission = admit(&mut gate, now, at, &epoch, SHOWN);
            newcomers += u32::from(admission == Admission::Admit);
        }
    }
    (greedy / 20, newcomers)
}

#[test]
fn hosts_that_take_what_they_can_leave_as_much_as_each_has_to_newcomers() {
    for hosts in [1, 2, 3, 6] {
        let (greedy, newcomers) = besieged(hosts);
        let their_part = 8 * hosts / (hosts + 1);
        assert!(greedy <= their_part + 1, "{hosts} hosts get {greedy} of {their_part} a second");
        assert!(greedy + 1 >= their_part, "{hosts} hosts get {greedy} of {their_part} a second");
        assert!(newcomers >= 32, "beside {hosts} hosts {newcomers} of 40 newcomers are admitted");
    }
}

#[test]
fn newcomer_whose_hash_is_a_greedy_hosts_is_admitted_after_the_next_rehash() {
    let mut gate = gate(&Config::default());
    let is_same = |gate: &Gate, now, host: u32| gate.host(now, &host) == gate.host(now, &HERE);
    let unlucky = (THERE..).find(|host| is_same(&gate, seconds(0), *host)).expect("one of many");
    let mut admitted = 0;
    for at in 0..2_400 {
        let (now, epoch) = (Instant::from_millis(at * 10), gate.epoch());
        let _ = admit(&mut gate, now, HERE, &epoch, SHOWN);
        if at % 50 == 49 && !is_same(&gate, now, unlucky) {
            admitted +=
                u32::from(admit(&mut gate, now, unlucky, &epoch, SHOWN) == Admission::Admit);
        }
    }
    assert!(admitted >= 14, "admitted {admitted} times in 24 s");
}

#[test]
fn owner_is_admitted_when_nobody_else_is() {
    let mut gate = gate(&Config::default());
    let (now, epoch) = (seconds(1), gate.epoch());
    for host in 0..100_u32 {
        let _ = admit(&mut gate, now, host, &epoch, SHOWN);
        let _ = admit(&mut gate, now, host, &epoch, ANYBODY);
    }
    assert_eq!(admit(&mut gate, now, HERE, &epoch, ANYBODY), Admission::Challenge);
    let mut owners = || gate.admit(now, &HERE, &epoch, ANYBODY, || true);
    assert_eq!(owners(), Admission::Admit);
    assert_eq!(owners(), Admission::Admit);
    assert_eq!(owners(), Admission::Challenge, "as often a second as anybody");
}

#[test]
fn repeated_initiation_is_answered_elsewhere_only_to_whoever_receives_there() {
    let mut gate = gate(&Config::default());
    let epoch = gate.epoch();
    accept(&mut gate, seconds(1), HERE, epoch, 7);
    let echo = Echo([7; 16]);
    let repeated = |from, is_shown| gate.repeated(&from, &echo, is_shown);
    assert_eq!(repeated(HERE, ANYBODY), Some(Repeated::Answer(vec![7])));
    assert_eq!(repeated(THERE, ANYBODY), Some(Repeated::Challenge));
    let elsewhere = Repeated::AnswerElsewhere(vec![7], SessionIndex(7));
    assert_eq!(repeated(THERE, SHOWN), Some(elsewhere));
}

#[test]
fn initiation_of_another_epoch_is_challenged() {
    let mut gate = gate(&Config::default());
    let old = gate.epoch();
    gate.begin_epoch(seconds(1));
    assert_ne!(gate.epoch(), old);
    assert_eq!(admit(&mut gate, seconds(1), HERE, &old, SHOWN), Admission::Challenge);
}

#[test]
fn handshakes_beyond_the_budget_need_a_cookie_and_then_time() {
    let config =
        Config { handshakes_per_second: 2, handshakes_per_second_max: 6, ..Config::default() };
    let mut gate = gate(&config);
    let (now, epoch) = (seconds(1), gate.epoch());
    let mut admit = |now, is_shown| gate.admit(now, &HERE, &epoch, is_shown, || false);
    assert_eq!(admit(now, ANYBODY), Admission::Admit);
    assert_eq!(admit(now, ANYBODY), Admission::Admit);
    assert_eq!(admit(now, ANYBODY), Admission::Challenge);
    for _ in 0..3 {
        assert_eq!(admit(now, SHOWN), Admission::Admit);
    }
    assert_eq!(admit(now, SHOWN), Admission::Drop, "no more for one host");
    assert_eq!(admit(seconds(2), SHOWN), Admission::Admit, "a second later");
}

/// An initiation with the proof of that cookie.
fn proven(cookie: &Cookie) -> vec::Vec<u8> {
    let header = Initiation::header(&MachineId([1; 12]), SessionIndex(2), &Epoch([3; 8]));
    let noise = [4; 200];
    [&header[..], &proof(&cookie.0, &header, &noise), &noise].concat()
}

fn shows(gate: &Gate, now: Instant, from: u32, bytes: &[u8]) -> bool {
    let Ok(Datagram::Initiation(initiation)) = Datagram::parse(bytes) else {
        panic!("an initiation")
    };
    gate.shows_address(now, &from, &initiation)
}

#[test]
fn cookie_shows_one_address_for_some_minutes_in_one_initiation() {
    let gate = gate(&Config::default());
    let bytes = proven(&gate.cookie(seconds(0), &HERE));
    assert!(shows(&gate, seconds(1), HERE, &bytes));
    assert!(shows(&gate, seconds(200), HERE, &bytes));
    assert!(!shows(&gate, seconds(300), HERE, &bytes), "it is too old");
    assert!(!shows(&gate, seconds(1), THERE, &bytes), "it is another's");
    for at in [0, 1, 13, 25, 41, 100, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= if at == 0 { 0 } else { 1 };
        assert_eq!(shows(&gate, seconds(1), HERE, &changed), at == 0, "byte {at}");
    }
}
