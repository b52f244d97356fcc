use super::*;

const AIR: Air = Air { bytes_per_second: 100_000, control_permille: 40 };
const STORM: (ProtocolNumber, u8) = (ProtocolNumber(9), 1);
const HELLO: (ProtocolNumber, u8) = (ProtocolNumber(9), 2);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// The bytes of those that were let pass of messages of 100 bytes, one each `every_ms` from `from_ms` until
/// `until_ms`.
fn offered(budget: &mut Budget, kind: (ProtocolNumber, u8), from_ms: u64, until_ms: u64) -> u64 {
    let passes = |now: &u64| budget.admit(at(*now), kind, Traffic::Control, 100);
    (from_ms..until_ms).filter(passes).count() as u64 * 100
}

#[test]
fn control_traffic_takes_its_part_of_the_air_and_no_more_however_much_is_offered() {
    for neighbours in [0, 1, 7, 63] {
        let mut budget = Budget::new(AIR, 100);
        budget.share(neighbours);
        let part = 4_000 / (neighbours as u64 + 1);
        let sent = offered(&mut budget, STORM, 0, 60_000);
        let most = part * (60 + DEPTH.as_secs());
        assert!(sent <= most && sent + 200 >= part * 60, "{neighbours}: {sent} of {most}");
    }
}

#[test]
fn a_storm_of_one_kind_leaves_air_to_the_others() {
    let mut budget = Budget::new(AIR, 100);
    budget.share(9);
    for now in 0..60_000 {
        budget.admit(at(now), STORM, Traffic::Control, 100);
        // 50 bytes a second, an eighth of the node's 400.
        if now % 2_000 == 1_999 {
            assert!(budget.admit(at(now), HELLO, Traffic::Control, 100), "at {now} ms");
        }
    }
    let [storm, hello] = *budget.accounts() else { panic!("two kinds were sent") };
    assert_eq!((hello.messages, hello.bytes, hello.refused), (30, 3_000, 0));
    assert!(storm.refused > 59_000 && storm.messages > 150);
}

/// The bytes of each of so many kinds that all want more than there is, in 600 s of 400 bytes a second.
fn shares(kinds: u8) -> Vec<u64> {
    let mut budget = Budget::new(AIR, 100);
    budget.share(9);
    for now in 0..600_000 {
        // Those that come first differ from time to time.
        for place in 0..kinds {
            let kind = (u64::from(place) + now % 251) % u64::from(kinds);
            budget.admit(at(now), (ProtocolNumber(kind as u8), 1), Traffic::Control, 50);
        }
    }
    budget.accounts().iter().map(|account| account.bytes).collect()
}

#[test]
fn kinds_that_all_want_more_share_what_there_is() {
    for kinds in [2, 5, 12, 24] {
        let shares = shares(kinds);
        let all = shares.iter().sum::<u64>();
        assert!((400 * 590..=400 * 604).contains(&all), "{kinds}: {shares:?}");
        let least = *shares.iter().min().unwrap();
        assert!(least * 2 >= all / u64::from(kinds), "{kinds}: {shares:?}");
    }
}

#[test]
fn twenty_storms_at_once_leave_air_to_a_kind_that_says_little() {
    let mut budget = Budget::new(AIR, 1232);
    budget.share(9);
    for now in 0..600_000 {
        for storm in 20..40 {
            budget.admit(at(now), (ProtocolNumber(storm), 1), Traffic::Control, 100);
        }
        if now % 5_000 == 4_999 {
            assert!(budget.admit(at(now), HELLO, Traffic::Control, 40), "at {now} ms");
        }
    }
}

#[test]
fn what_carries_for_others_is_counted_and_passes() {
    let mut budget = Budget::new(AIR, 100);
    offered(&mut budget, STORM, 0, 10_000);
    let passes = |now: &u64| budget.admit(at(*now), HELLO, Traffic::Payload, 1_000);
    assert_eq!((10_000..11_000).filter(passes).count(), 1_000);
    assert_eq!(budget.accounts()[1].bytes, 1_000_000);
}

#[test]
fn each_message_fits_into_the_bucket_of_the_slowest_link_and_waits_for_its_part() {
    // A byte in a thousand seconds.
    let mut budget = Budget::new(Air { bytes_per_second: 1, control_permille: 1 }, 100);
    budget.share(0);
    assert!(budget.admit(at(0), STORM, Traffic::Control, 100));
    assert!(!budget.admit(at(0), STORM, Traffic::Control, 100));
    assert!(budget.take(at(0), 100));
    assert!(!budget.take(at(0), 1));
    assert!(budget.take(at(1_000), 1));
    assert!(!budget.take(at(1_000), 1));
}

#[test]
fn the_fastest_link_and_the_longest_pause_overflow_nothing() {
    let air = Air { bytes_per_second: u32::MAX, control_permille: 1000 };
    let mut budget = Budget::new(air, 65_535);
    assert_eq!(offered(&mut budget, STORM, 0, 1_000), 100_000);
    assert!(budget.admit(Instant::from_micros(u64::MAX), STORM, Traffic::Control, 65_535));
    assert!(budget.admit(at(0), STORM, Traffic::Payload, usize::MAX / 2_000_000));
}

#[test]
fn accounts_are_bounded_and_a_clock_that_is_read_late_makes_no_air() {
    let mut budget = Budget::new(AIR, 100);
    for kind in 0..=255 {
        budget.admit(at(5_000), (ProtocolNumber(kind), 1), Traffic::Control, 10);
    }
    assert_eq!(budget.accounts().len(), ACCOUNTS_MAX);
    let before = budget.bucket;
    budget.fill(at(0));
    budget.fill(at(5_000));
    assert_eq!(budget.bucket, before);
}
