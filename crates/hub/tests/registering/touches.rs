//! Touches: devices that are there by their sessions alone.

use tenure_wire::directory::{Stay, Touch, Touched};
use tenure_wire::hub::function as service;
use tenure_wire::message;

use super::*;

/// How long a record lasts whose device touches.
const LASTS_S: u64 = 22 * 60 * 60;
const LIFE_S: u32 = 60;

impl World {
    /// Has a device say that it stays, with its next record.
    fn stay(&mut self, device: &mut Device) -> Registered {
        device.record.sequence += 1;
        device.record.expires_unix_s = self.unix_s + LASTS_S;
        let stay = Stay { record: device.signed(), life_s: LIFE_S };
        let answer = self.call(device, function::STAY, message::encode(&stay));
        message::decode(&answer.unwrap().unwrap()).unwrap()
    }

    fn touch(&mut self, device: &mut Device) -> Touched {
        let touch = message::encode(&Touch { sequence: device.record.sequence });
        let answer = self.call(device, function::TOUCH, touch);
        message::decode(&answer.unwrap().unwrap()).unwrap()
    }

    /// Lets time pass, in which the hub does what is due by the clock.
    fn pass(&mut self, seconds: u64) {
        self.unix_s += seconds;
        self.now = self.now + Duration::from_secs(seconds);
        let unix_time = UnixTime { seconds: self.unix_s };
        let mut moment = Moment { now: self.now, unix_time, entropy: &mut self.entropy };
        self.hub.poll(&mut moment);
    }

    /// Whether somebody who asks finds that device, by its name, by its machine and in the list.
    fn finds(&mut self, device: &Device) -> bool {
        let mut asking = self.device(2, 99, "asking");
        let Enrolment { device: name, .. } = &device.record.enrolment;
        let machine = device.record.machines[0].1;
        let by_name = self.resolve(&mut asking, &Query::Device(name.clone())).is_some();
        let by_machine = self.resolve(&mut asking, &Query::Key(machine)).is_some();
        let page = postcard::to_allocvec(&ListFrom { skip: 0 }).unwrap();
        let page = self.call(&mut asking, function::LIST, page).unwrap().unwrap();
        let Listing { machines, .. } = postcard::from_bytes(&page).unwrap();
        let in_list = machines.iter().any(|listed| listed.device == *name);
        assert_eq!((by_name, by_machine), (in_list, in_list));
        in_list
    }
}

/// A world with a device that stays.
fn world() -> (World, Device) {
    let mut world = World::new(8);
    let mut attic = world.device(1, 10, "attic");
    assert!(world.register_itself(&mut attic).takes_touches);
    assert_eq!(world.stay(&mut attic).refusal, None);
    (world, attic)
}

#[test]
fn device_is_found_as_long_as_it_touches_and_no_longer() {
    let (mut world, mut attic) = world();
    for _ in 0..10 {
        world.pass(20);
        assert!(world.touch(&mut attic).counts);
        assert!(world.finds(&attic));
    }
    world.pass(u64::from(LIFE_S) - 1);
    assert!(world.finds(&attic));
    world.pass(2);
    assert!(!world.finds(&attic), "its record lasts for hours still");
    assert!(world.touch(&mut attic).counts);
    assert!(world.finds(&attic));
    assert_eq!(world.hub.storage().puts, 2, "its first record, and the one by which it stays");
    assert_eq!((world.hub.counts().touches, world.hub.counts().records), (11, 2));
}

#[test]
fn touch_has_no_signature_verified_and_the_storage_asked_nothing() {
    let (mut world, mut attic) = world();
    let before = world.hub.storage().statements;
    let verified = tenure_crypto::counts::verified();
    for _ in 0..100 {
        assert!(world.touch(&mut attic).counts);
    }
    assert_eq!(world.hub.storage().statements, before);
    assert_eq!(tenure_crypto::counts::verified(), verified);
    // What counts them does so.
    assert_eq!(world.stay(&mut attic).refusal, None);
    assert!(world.hub.storage().statements > before);
    assert!(tenure_crypto::counts::verified() >= verified + 2);
}

#[test]
fn touches_of_a_fleet_are_stored_at_once_before_what_is_stored_ends() {
    let mut world = World::new(32);
    let mut devices: Vec<Device> =
        (0..20).map(|number| world.device(1, 10 + number, &format!("device-{number}"))).collect();
    for device in &mut devices {
        assert_eq!(world.stay(device).refusal, None);
    }
    let puts = world.hub.storage().puts;
    let mut stored: BTreeMap<Name, u64> = BTreeMap::new();
    for _ in 0..15 {
        for device in &mut devices[1..] {
            assert!(world.touch(device).counts);
        }
        for _ in 0..5 {
            world.pass(4);
            for heard in std::mem::take(&mut world.hub.storage().heard) {
                assert_eq!(heard.len(), 19, "all at once");
                stored.extend(heard.into_iter().map(|one| (one.device, one.ends_unix_s)));
            }
            let now = world.unix_s;
            let ended = stored.values().filter(|ends| **ends < now).count();
            assert_eq!(ended, 0, "at {}", now - NOW);
        }
    }
    let silent = devices[0].record.enrolment.device.clone();
    assert!(stored.len() == 19 && !stored.contains_key(&silent), "{stored:?}");
    assert_eq!(world.hub.storage().puts, puts);
}

/// A storage that refuses now, as a disk that is full, has it another time.
#[test]
fn touches_that_could_not_be_stored_are_stored_later() {
    let (mut world, mut attic) = world();
    world.pass(45);
    assert!(world.touch(&mut attic).counts);
    world.hub.storage().fails = true;
    world.pass(5);
    assert!(matches!(world.hub.notice(), Some(Notice::Listed { .. })));
    let notices: Vec<Notice> = std::iter::from_fn(|| world.hub.notice()).collect();
    let is_said = |notice: &Notice| matches!(notice, Notice::NotStored { .. });
    assert!(notices.iter().any(is_said), "{notices:?}");
    assert!(world.touch(&mut attic).counts, "its session is no worse for that");
    world.hub.storage().fails = false;
    world.hub.storage().heard.clear();
    world.pass(3);
    assert_eq!(world.hub.storage().heard.len(), 1);
}

#[test]
fn hub_that_ends_stores_until_when_each_device_is_in_force() {
    let (mut world, mut attic) = world();
    world.pass(30);
    assert!(world.touch(&mut attic).counts);
    assert!(world.hub.storage().heard.is_empty(), "what is stored lasts");
    world.hub.end();
    let heard = world.hub.storage().heard.concat();
    assert_eq!(heard.iter().map(|one| one.ends_unix_s).collect::<Vec<_>>(), [NOW + 90]);
    world.hub.end();
    assert_eq!(world.hub.storage().heard.len(), 1, "it is stored");
}

#[test]
fn device_whose_next_record_could_not_be_stored_is_there_by_the_one_before_as_long_as_it_touches() {
    let (mut world, mut attic) = world();
    world.hub.storage().fails = true;
    attic.record.sequence += 1;
    attic.record.expires_unix_s = world.unix_s + 600;
    assert_eq!(world.register_itself(&mut attic).refusal, Some(Refusal::Full));
    world.hub.storage().fails = false;
    attic.record.sequence -= 1;
    assert!(world.touch(&mut attic).counts);
    world.pass(61);
    assert!(!world.finds(&attic), "its record of before lasts for hours still");
}

/// Nothing of it is stored then: what stands there of its life is what was.
#[test]
fn record_that_is_sent_again_makes_no_life_that_is_not_stored() {
    let (mut world, mut attic) = world();
    world.pass(20);
    let stay = Stay { record: attic.signed(), life_s: LIFE_S };
    let answer = world.call(&mut attic, function::STAY, message::encode(&stay)).unwrap().unwrap();
    assert_eq!(message::decode::<Registered>(&answer).unwrap().refusal, None);
    assert_eq!(world.hub.storage().puts, 2);
    world.pass(22);
    let heard = world.hub.storage().heard.concat();
    assert_eq!(heard.iter().map(|one| one.ends_unix_s).collect::<Vec<_>>(), [NOW + 80]);
}

#[test]
fn hub_that_starts_anew_has_those_who_were_there_for_a_while_and_no_others() {
    let mut world = World::new(8);
    let mut devices = [(10, "attic"), (11, "barn"), (12, "cellar")]
        .map(|(number, name)| world.device(1, number, name));
    for device in &mut devices {
        assert_eq!(world.stay(device).refusal, None);
    }
    let left = |device: &Device, was_there| Left {
        device: device.record.enrolment.device.clone(),
        heard_unix_s: NOW - 5,
        ends_unix_s: NOW + 55,
        was_there,
    };
    // The cellar is as a storage leaves it that knows nothing of touches.
    world.hub.storage().left = vec![left(&devices[0], true), left(&devices[1], false)];
    world.unix_s += 300;
    world.restart(Config::default());
    assert_eq!(devices.each_ref().map(|device| world.finds(device)), [true, false, true]);
    world.pass(61);
    assert_eq!(devices.each_ref().map(|device| world.finds(device)), [false, false, true]);
    // Each comes back by its record, in another session.
    let mut barn = world.device(1, 11, "barn");
    barn.record.sequence = devices[1].record.sequence;
    assert_eq!(world.stay(&mut barn).refusal, None);
    assert!(world.finds(&barn));
}

#[test]
fn touch_counts_for_the_record_that_the_hub_has_from_where_that_came_and_for_nobody_else() {
    let (mut world, mut attic) = world();
    let sequence = attic.record.sequence;
    for other in [0, sequence - 1, sequence + 1, u64::MAX] {
        attic.record.sequence = other;
        assert!(!world.touch(&mut attic).counts);
    }
    attic.record.sequence = sequence;
    let address = std::mem::replace(&mut attic.address, Address::Udp(socket_at(500)));
    assert!(!world.touch(&mut attic).counts, "it moved, and its record with it");
    attic.address = address;
    // A stranger who knows the number, and a device that never said that it stays.
    let mut stranger = world.device(3, 77, "stranger");
    stranger.record.sequence = sequence;
    assert!(!world.touch(&mut stranger).counts);
    let mut barn = world.device(1, 11, "barn");
    assert_eq!(world.register_itself(&mut barn).refusal, None);
    assert!(!world.touch(&mut barn).counts);
    assert_eq!(world.hub.counts().touches, 0);
    assert!(world.touch(&mut attic).counts);
    // One that its owner revoked is gone with the hub's next look.
    world.hub.storage().revoked = vec!["attic".parse().unwrap()];
    world.pass(3);
    assert!(!world.touch(&mut attic).counts);
    assert_eq!(world.stay(&mut attic).refusal, Some(Refusal::Revoked));
}

#[test]
fn touch_that_somebody_repeats_counts_once() {
    let (mut world, mut attic) = world();
    world.pass(50);
    let touch = message::encode(&Touch { sequence: attic.record.sequence });
    world.begin(&mut attic, function::TOUCH, touch);
    let mut datagrams = Vec::new();
    while let Some((_, datagram)) = attic.endpoint.transmit() {
        datagrams.push(datagram);
    }
    let unix_time = UnixTime { seconds: world.unix_s };
    let mut moment = Moment { now: world.now, unix_time, entropy: &mut world.entropy };
    for datagram in datagrams.iter().chain(&datagrams).chain(&datagrams) {
        world.hub.receive(&mut moment, attic.address.clone(), datagram);
    }
    assert_eq!(world.hub.counts().touches, 1);
    world.pass(55);
    let unix_time = UnixTime { seconds: world.unix_s };
    let mut moment = Moment { now: world.now, unix_time, entropy: &mut world.entropy };
    for datagram in &datagrams {
        world.hub.receive(&mut moment, attic.address.clone(), datagram);
    }
    world.pass(6);
    assert_eq!(world.hub.counts().touches, 1);
    assert!(!world.finds(&attic), "nobody else keeps it there");
}

#[test]
fn whatever_a_device_asks_in_its_session_shows_that_it_is_there() {
    let (mut world, mut attic) = world();
    for _ in 0..5 {
        world.pass(50);
        world.resolve(&mut attic, &Query::Device("nobody".parse().unwrap()));
        assert!(world.finds(&attic));
    }
    assert_eq!(world.hub.counts().touches, 0);
}

#[test]
fn device_that_registers_as_before_is_there_until_its_record_ends() {
    let (mut world, mut attic) = world();
    attic.record.sequence += 1;
    // As one that goes to sleep for ten minutes, and says so.
    attic.record.expires_unix_s = world.unix_s + 600;
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    assert!(!world.touch(&mut attic).counts);
    world.pass(599);
    assert!(world.finds(&attic));
    world.pass(2);
    assert!(!world.finds(&attic));
}

#[test]
fn hub_of_before_knows_nothing_of_touches_and_says_so() {
    let mut world = World::with(Config { takes_touches: false, ..Config::default() });
    let mut attic = world.device(1, 10, "attic");
    assert!(!world.register_itself(&mut attic).takes_touches);
    let stay = Stay { record: attic.signed(), life_s: LIFE_S };
    for (name, parameter) in [
        (function::STAY, message::encode(&stay)),
        (function::TOUCH, message::encode(&Touch { sequence: 1 })),
    ] {
        let answer = world.call(&mut attic, name, parameter);
        assert_eq!(answer, Err(NoResult::NoSuchFunction));
    }
}

#[test]
fn device_that_another_hub_heard_is_that_ones_until_it_comes_back() {
    let (mut world, mut attic) = world();
    let elsewhere = heard_elsewhere(&mut attic, 9);
    let name = attic.record.enrolment.device.clone();
    world.hub.storage().shared = Some(BTreeMap::from([(name.clone(), elsewhere.clone())]));
    world.hub.storage().changes =
        Changes { are_all: false, devices: vec![(name, Some(elsewhere))] };
    world.pass(3);
    assert!(!world.touch(&mut attic).counts);
    world.pass(120);
    assert!(world.finds(&attic), "who hears it knows whether it is there");
    assert_eq!(world.stay(&mut attic).refusal, None);
    assert!(world.touch(&mut attic).counts);
    world.pass(61);
    assert!(!world.finds(&attic));
}

#[test]
fn device_that_another_hub_hears_is_found_as_long_as_the_storage_says() {
    let (mut world, mut attic) = world();
    let name = attic.record.enrolment.device.clone();
    let elsewhere = heard_elsewhere(&mut attic, 9);
    world.hub.storage().changes =
        Changes { are_all: false, devices: vec![(name.clone(), Some(elsewhere))] };
    world.pass(3);
    let mut barn = world.device(1, 11, "barn");
    let mut looks = |world: &mut World| {
        let before = world.hub.storage().statements;
        let is_found = world.resolve(&mut barn, &Query::Device(name.clone())).is_some();
        (is_found, world.hub.storage().statements - before)
    };
    world.hub.storage().ends = Some(world.unix_s + 30);
    assert_eq!([looks(&mut world), looks(&mut world)], [(true, 1), (true, 0)]);
    world.pass(31);
    assert_eq!([looks(&mut world), looks(&mut world)], [(false, 1), (false, 1)]);
    world.hub.storage().ends = Some(world.unix_s + 60);
    assert_eq!(looks(&mut world), (true, 1));
    // Who asks for it again and again has the storage asked a few times, and so has a hub that is late.
    world.pass(61);
    let asked: usize = (0..100).map(|_| looks(&mut world).1).sum();
    assert!((10..=25).contains(&asked), "{asked} in half a second to a second and a half");
    world.pass(2);
    world.hub.took(Duration::from_secs(2));
    assert_eq!(looks(&mut world), (true, 0));
}

#[test]
fn renewal_by_which_a_device_stays_is_stored_with_the_others_of_a_turn() {
    let (mut world, mut attic) = world();
    let name = attic.record.enrolment.device.clone();
    let kept = Kept { record: attic.signed(), seen_at: attic.address.clone() };
    world.hub.storage().shared = Some(BTreeMap::from([(name, kept)]));
    world.hub.storage().renews = true;
    assert_eq!(world.stay(&mut attic).refusal, None);
    assert_eq!(world.hub.storage().renewed.len(), 1);
    assert!(world.touch(&mut attic).counts);
    world.pass(61);
    assert!(!world.finds(&attic));
}

#[test]
fn hub_that_is_late_tells_devices_to_come_later_without_looking_and_hears_their_touches() {
    let (mut world, mut attic) = world();
    let later = |answer: Result<Option<Vec<u8>>, NoResult>| match answer {
        Err(NoResult::Deferred { again_in }) => again_in,
        other => panic!("{other:?}"),
    };
    world.hub.took(Duration::from_millis(600));
    let statements = world.hub.storage().statements;
    for name in [service::WORK, service::PART, service::REPORT, service::LOG] {
        let again_in = later(world.call(&mut attic, name, vec![1; 2_000]));
        assert!((5..=10).contains(&again_in.as_secs()), "{again_in:?}");
    }
    assert_eq!(world.hub.storage().statements, statements);
    assert!(world.touch(&mut attic).counts && world.finds(&attic));
    assert_eq!(world.stay(&mut attic).refusal, None, "records are taken still");
    // A second later they wait, too, but for those that would end.
    world.hub.took(Duration::from_secs(2));
    let record = postcard::to_allocvec(&attic.signed()).unwrap();
    later(world.call(&mut attic, function::REGISTER, record));
    let mut barn = world.device(1, 11, "barn");
    assert_eq!(world.register_itself(&mut barn).refusal, None, "a new one");
    world.pass(35);
    barn.record.sequence += 1;
    barn.record.expires_unix_s = world.unix_s + 60;
    assert_eq!(world.register_itself(&mut barn).refusal, None, "25 s are left to it");
    assert_eq!(world.hub.counts().later, 5);
    attic.address = Address::Udp(socket_at(500));
    assert_eq!(world.stay(&mut attic).refusal, None, "it moved");
    world.hub.took(Duration::from_millis(3));
    let answer = world.call(&mut attic, service::WORK, Vec::new());
    assert_eq!(answer, Err(NoResult::NoSuchFunction), "as this storage says");
}

#[test]
fn hub_says_with_each_touch_whether_there_may_be_work() {
    let (mut world, mut attic) = world();
    assert!(!world.touch(&mut attic).may_have_work);
    world.hub.storage().has_work = true;
    assert!(world.touch(&mut attic).may_have_work);
}

/// Renewals of devices that touch count as heard in time, and those that are silent as overdue.
#[test]
fn touches_count_where_it_is_measured_whether_the_hub_hears() {
    let (mut world, mut attic) = world();
    for _ in 0..5 {
        world.pass(25);
        assert!(world.touch(&mut attic).counts);
        let renewals = world.hub.renewals(world.unix_s);
        assert_eq!((renewals.in_time, renewals.overdue, renewals.listed), (1, 0, 1));
    }
    world.pass(31);
    let renewals = world.hub.renewals(world.unix_s);
    assert_eq!((renewals.in_time, renewals.overdue, renewals.listed), (0, 1, 1));
}
