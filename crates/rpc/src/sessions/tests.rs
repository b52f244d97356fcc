//! Twice as many sessions as a hub promises, and which of them make room.

extern crate std;

use core::time::Duration;

use tenure_crypto::AeadKey;
use tenure_hal::simulated::Random;
use tenure_wire::frame::Frame;
use tenure_wire::{MachineId, PublicKey};

use super::*;
use crate::noise::Established;
use crate::places::STALE_MAX;
use crate::session::{Opening, Reach};

/// The devices and people that a hub promises to carry.
const PROMISED: u32 = 11_000;

fn at(milliseconds: u64) -> Instant {
    Instant::from_millis(milliseconds)
}

fn peer(number: u32) -> PublicKey {
    let mut key = [7; 32];
    // Spread as keys are.
    key[..8]
        .copy_from_slice(&(u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_le_bytes());
    key[8..12].copy_from_slice(&number.to_le_bytes());
    PublicKey(key)
}

fn pair(number: u32) -> Pair {
    Pair { local: MachineId([1; 12]), peer: peer(number) }
}

/// A session with peer `number` that was opened at that time.
fn session(number: u32, index: u32, opened: Instant) -> Session<u32> {
    let key = || AeadKey::from_bytes(&[3; 32]);
    let mut session = Session::new(
        opened,
        Opening {
            index: SessionIndex(index),
            remote: SessionIndex(1),
            pair: pair(number),
            incarnation: 1,
            opened_here: false,
            route: number,
            reaches: Reach::Shown,
            peer_remembers_since: opened,
            first: Frame::Acknowledge,
            keys: Established { send: key(), receive: key() },
        },
    );
    session.confirmed = true;
    session
}

fn favouring(count: u32, config: Config) -> Config {
    let mut favoured: Vec<PublicKey> = (0..count).map(peer).collect();
    favoured.sort_unstable();
    Config { favoured, ..config }
}

fn make_room(sessions: &mut Sessions<u32>, config: &Config, by: Standing) -> Option<SessionIndex> {
    let index = sessions.least_missed(config, by, |_| Ends::Yes)?;
    sessions.remove(index);
    Some(index)
}

#[test]
fn listed_devices_keep_their_sessions_whatever_strangers_open_and_choosing_takes_few_steps() {
    let config = favouring(PROMISED, Config::for_callers(PROMISED as usize));
    let most = config.sessions_max as u32;
    assert!(most >= 2 * PROMISED, "each has its session and the next");
    let mut sessions = Sessions::new();
    for number in 0..most {
        sessions.add(&config, session(number, number, at(number.into())));
    }
    sessions.least_missed.steps = 0;
    let strangers = PROMISED;
    for number in most..most + strangers {
        let ended = make_room(&mut sessions, &config, Standing::Stranger).expect("a stranger's");
        assert!(ended.0 >= PROMISED, "the session of a listed device ended: {ended:?}");
        sessions.add(&config, session(number, number, at(number.into())));
    }
    // Each listed device's place was found out once, and then each choice is the first one looked at.
    let steps = sessions.least_missed.steps;
    assert!(
        steps <= u64::from(2 * (PROMISED + strangers)),
        "{steps} steps for {strangers} choices"
    );
    let kept = (0..PROMISED).filter(|number| sessions.of_pair(&pair(*number)).count() == 1);
    assert_eq!((kept.count(), sessions.len()), (PROMISED as usize, config.sessions_max));
}

#[test]
fn session_that_makes_room_is_the_one_silent_for_longest_among_those_of_least_standing() {
    let owner = peer(100);
    let config = Config { owner: Some(owner), ..favouring(2, Config::default()) };
    let mut sessions = Sessions::new();
    for (place, number) in [0, 1, 2, 3, 4, 100].into_iter().enumerate() {
        sessions.add(&config, session(number, number, at(place as u64)));
    }
    sessions.get_mut(SessionIndex(2)).unwrap().heard(at(50), &2, 100, true);
    let mut order = Vec::new();
    while let Some(index) = make_room(&mut sessions, &config, Standing::Owner) {
        order.push(index.0);
    }
    assert_eq!(order, [3, 4, 2, 0, 1, 100]);
}

#[test]
fn stranger_gets_no_place_where_all_are_favoured_and_a_favoured_one_does() {
    let config = favouring(3, Config::default());
    let mut sessions = Sessions::new();
    for number in 0..2 {
        sessions.add(&config, session(number, number, at(0)));
    }
    assert_eq!(make_room(&mut sessions, &config, Standing::Stranger), None);
    assert_eq!(make_room(&mut sessions, &config, Standing::Favoured), Some(SessionIndex(0)));
}

#[test]
fn sessions_that_a_call_needs_end_at_worst_or_not_at_all() {
    let config = Config::default();
    let mut sessions = Sessions::new();
    for number in 0..3 {
        sessions.add(&config, session(number, number, at(number.into())));
    }
    let mut choose =
        |ends: fn(&Session<u32>) -> Ends| sessions.least_missed(&config, Standing::Owner, ends);
    let but_the_last = |one: &Session<u32>| if one.index.0 < 2 { Ends::No } else { Ends::Yes };
    assert_eq!(choose(but_the_last), Some(SessionIndex(2)));
    let at_worst = |one: &Session<u32>| if one.index.0 == 0 { Ends::No } else { Ends::AtWorst };
    assert_eq!(choose(at_worst), Some(SessionIndex(1)));
    assert_eq!(choose(|_| Ends::No), None);
    assert_eq!(choose(|_| Ends::Yes), Some(SessionIndex(0)), "nothing was forgotten by asking");
}

#[test]
fn queues_hold_no_more_than_twice_the_sessions_and_old_ones_end_in_their_order() {
    let config = Config { sessions_max: 24, ..Config::default() };
    let mut random = Random::new(8);
    let mut sessions = Sessions::new();
    let mut now = at(0);
    for index in 0..5_000 {
        now = now + Duration::from_secs(random.number() % 60);
        while let Some((ended, _)) = sessions.end_one_over(&config, now) {
            assert!(sessions.get(ended).is_none());
        }
        if sessions.len() >= config.sessions_max {
            let all: Vec<SessionIndex> = sessions.iter().map(|one| one.index).collect();
            sessions.remove(all[random.number() as usize % all.len()]);
        }
        sessions.add(&config, session(random.number() as u32 % 8, index, now));
        let most = 2 * sessions.len() + STALE_MAX;
        assert!(sessions.least_missed.len() <= most);
        assert_eq!(sessions.by_age.len(), sessions.len());
        assert!(sessions.of_peers.len() == sessions.len());
        assert!(sessions.iter().all(|one| !one.is_over(&config, now)));
        let next = sessions.iter().map(|one| one.created + config.session_lifetime).min();
        assert!(sessions.next_over(&config) <= next, "it wakes in time");
    }
}
