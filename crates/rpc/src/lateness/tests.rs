//! A clock of a session is never believed to show more than it does, whatever held the readings up.

use tenure_wire::frame::Fragment;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// The clocks of a session with a peer that takes calls that name a moment.
fn clocks(now: Instant, opened_here: bool) -> Clocks {
    Clocks::new(now, opened_here, &FIRST_FRAME)
}

#[test]
fn call_is_late_by_its_receivers_clock_from_the_named_moment_on() {
    let clocks = clocks(at(1_000), false);
    assert_eq!(clocks.late_at_ms(at(3_999), Some(3_000)), None);
    assert_eq!(clocks.late_at_ms(at(4_000), Some(3_000)), Some(3_000));
    assert_eq!(clocks.late_at_ms(at(400_000), Some(3_000)), Some(399_000));
    assert_eq!(clocks.late_at_ms(at(400_000), None), None, "its caller named no moment");
}

#[test]
fn peers_clock_is_believed_to_show_less_and_never_more() {
    // The called end had the session at 500 of its own time, which is 10 s ahead; the response took 300 ms.
    let called = clocks(at(10_500), false);
    let mut caller = clocks(at(800), true);
    for moment in [800, 900, 60_000, 3_600_000] {
        let believed = caller.peers_ms(at(moment)).expect("a reading");
        assert!(u64::from(believed) <= moment - 500, "at {moment}");
        let late_at = called.late_at_ms(at(moment + 10_000), Some(believed));
        assert!(late_at.is_some(), "wanted until {moment}, and taken then");
    }
    // Even if its clock is as slow as it may be.
    let believed = caller.peers_ms(at(1_000_800)).expect("a reading");
    assert_eq!(believed, 999_000);
    assert!(caller.learn(at(1_000_800), 999_900), "it is told better");
    assert_eq!(caller.peers_ms(at(1_000_800)), Some(999_900));
    assert!(!caller.learn(at(1_000_900), 999_950), "a reading that grew old on its way");
    assert!(caller.peers_ms(at(u64::MAX)).is_some());
}

#[test]
fn end_that_was_called_knows_nothing_of_its_peers_clock_before_it_heard_it() {
    let mut clocks = clocks(at(0), false);
    assert_eq!(clocks.peers_ms(at(10)), None);
    clocks.peer_has_session(at(1_000));
    clocks.peer_has_session(at(9_000));
    assert_eq!(clocks.peers_ms(at(2_000)), Some(999), "counted from the first word");
}

#[test]
fn peer_whose_first_message_does_not_say_that_it_takes_moments_is_told_none() {
    let number = CallNumber(7);
    let body = [1; 300];
    let call = |part_bytes: u16| {
        let fragment = Fragment::of(&body, part_bytes, 0, true).expect("the only part");
        Frame::Call { number, until_ms: None, fragment }
    };
    let part_bytes = first_part_bytes(body.len()).expect("a length");
    for first in [FIRST_FRAME, call(part_bytes)] {
        assert!(Clocks::new(at(0), true, &first).peers_ms(at(9)).is_some(), "{first:?}");
    }
    for first in [Frame::Acknowledge, Frame::Later { number }, call(300)] {
        let mut clocks = Clocks::new(at(0), true, &first);
        clocks.peer_has_session(at(5));
        assert_eq!(clocks.peers_ms(at(9)), None, "{first:?}");
    }
}
