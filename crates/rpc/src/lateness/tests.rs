//! A clock of a session is never believed to show more than it does, whatever held the readings up.

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[test]
fn call_is_late_by_its_receivers_clock_from_the_named_moment_on() {
    let clocks = Clocks::new(at(1_000), false);
    assert_eq!(clocks.late_at_ms(at(3_999), Some(3_000)), None);
    assert_eq!(clocks.late_at_ms(at(4_000), Some(3_000)), Some(3_000));
    assert_eq!(clocks.late_at_ms(at(400_000), Some(3_000)), Some(399_000));
    assert_eq!(clocks.late_at_ms(at(400_000), None), None, "its caller named no moment");
}

#[test]
fn peers_clock_is_believed_to_show_less_and_never_more() {
    // The called end had the session at 500 of its own time, which is 10 s ahead; the response took 300 ms.
    let called = Clocks::new(at(10_500), false);
    let mut caller = Clocks::new(at(800), true);
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
    let mut clocks = Clocks::new(at(0), false);
    assert_eq!(clocks.peers_ms(at(10)), None);
    clocks.peer_has_session(at(1_000));
    clocks.peer_has_session(at(9_000));
    assert_eq!(clocks.peers_ms(at(2_000)), Some(999), "counted from the first word");
}
