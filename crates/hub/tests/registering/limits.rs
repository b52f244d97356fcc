//! Hubs that list as many devices as they may, or more.

use tenure_hub::Fullness;

use super::*;

/// A hub that lists so many devices, and has the sessions of a small device.
fn with_few_sessions(devices_max: usize) -> Config {
    let rpc = tenure_rpc::Config {
        handshakes_per_second: 1_000,
        handshakes_per_second_max: 4_000,
        ..tenure_rpc::Config::default()
    };
    Config { devices_max, rpc, ..Config::default() }
}

/// Devices of before read neither the limit nor what else may stand behind the time.
#[test]
fn device_beyond_the_limit_is_told_how_many_the_hub_lists_and_a_full_disk_is_no_limit() {
    let mut world = World::new(2);
    let (mut attic, mut cellar) = (world.device(1, 10, "attic"), world.device(1, 11, "cellar"));
    for device in [&mut attic, &mut cellar] {
        assert_eq!(world.register_itself(device).refusal, None, "there is a place");
    }
    let mut shed = world.device(1, 12, "shed");
    let registered = world.register_itself(&mut shed);
    assert_eq!((registered.refusal, registered.devices_max), (Some(Refusal::Full), Some(2)));
    let told: Vec<Notice> = std::iter::from_fn(|| world.hub.notice()).collect();
    let refused =
        Notice::Refused { refusal: Refusal::Full, address: shed.address.clone(), ends_in_s: None };
    assert!(told.contains(&refused), "{told:?}");
    let [.., devices] = world.hub.fullness();
    assert_eq!((devices.used, devices.most, devices.times_full), (2, 2, 1));
    world.hub.storage().fails = true;
    attic.record.sequence = 2;
    let registered = world.register_itself(&mut attic);
    assert_eq!((registered.refusal, registered.devices_max), (Some(Refusal::Full), None));
}

#[test]
fn hub_that_is_told_to_list_fewer_than_it_lists_goes_on_with_those_and_takes_no_more() {
    let mut world = World::with(with_few_sessions(3));
    let [Fullness { most: sessions_max, .. }, ..] = world.hub.fullness();
    let numbers = [(10, "attic"), (11, "cellar"), (12, "shed")];
    for (number, name) in numbers {
        let mut device = world.device(1, number, name);
        assert_eq!(world.register_itself(&mut device).refusal, None);
    }
    world.restart(with_few_sessions(3));
    assert_eq!(world.hub.fullness()[0].most, sessions_max);
    world.restart(with_few_sessions(1));
    let [sessions, .., devices] = world.hub.fullness();
    assert!(sessions.most > sessions_max, "there are more than were to have sessions");
    assert_eq!((devices.used, devices.most), (3, 1));
    for (number, name) in numbers {
        let mut device = world.device(1, number, name);
        device.record.sequence = 2;
        assert_eq!(world.register_itself(&mut device).refusal, None, "{name}");
        let query = Query::Device(name.parse().unwrap());
        assert_eq!(world.resolve(&mut device, &query).unwrap().record, device.signed());
    }
    let mut den = world.device(1, 13, "den");
    assert_eq!(world.register_itself(&mut den).devices_max, Some(1));
}

/// Each has the limit that it was told, and serves whatever device comes once another ended.
#[test]
fn devices_that_another_hub_lists_beyond_the_limit_of_this_one_have_their_sessions_here() {
    let mut world = World::with(with_few_sessions(1));
    let [Fullness { most: sessions_max, .. }, ..] = world.hub.fullness();
    let (mut attic, mut barn) = (world.device(1, 10, "attic"), world.device(1, 11, "barn"));
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    assert_eq!(world.register_itself(&mut barn).devices_max, Some(1));
    let name: Name = "barn".parse().unwrap();
    let kept = Kept { record: barn.signed(), seen_at: barn.address.clone() };
    let devices = vec![(name.clone(), Some(kept))];
    world.hub.storage().changes = Changes { are_all: false, devices };
    world.now = world.now + Duration::from_secs(3);
    // The hub's clock ticks while it takes the question.
    world.resolve(&mut attic, &Query::Device(name.clone()));
    let [sessions, .., devices] = world.hub.fullness();
    assert!(sessions.most > sessions_max, "there are more than were to have sessions");
    assert_eq!((devices.used, devices.most), (2, 1));
    for device in [&mut attic, &mut barn] {
        device.record.sequence = 2;
        assert_eq!(world.register_itself(device).refusal, None);
    }
    assert_eq!(world.resolve(&mut attic, &Query::Device(name)).unwrap().record, barn.signed());
    let mut cellar = world.device(1, 12, "cellar");
    assert_eq!(world.register_itself(&mut cellar).devices_max, Some(1));
}

#[test]
fn renewal_at_the_limit_is_stored_like_any_other_and_so_is_a_device_that_another_hub_forgot() {
    let mut world = World::new(1);
    let storage = world.hub.storage();
    storage.shared = Some(BTreeMap::new());
    storage.renews = true;
    let mut attic = world.device(1, 10, "attic");
    for (sequence, renewals, puts) in [(1, 0, 1), (2, 1, 1)] {
        attic.record.sequence = sequence;
        assert_eq!(world.register_itself(&mut attic).refusal, None);
        let storage = world.hub.storage();
        assert_eq!((storage.renewed.len(), storage.puts), (renewals, puts));
    }
    // Its place is free again, and it takes it.
    world.hub.storage().shared = Some(BTreeMap::new());
    attic.record.sequence = 3;
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    assert_eq!(world.hub.storage().puts, 2);
    let [.., devices] = world.hub.fullness();
    assert_eq!((devices.used, devices.times_full), (1, 0));
}
