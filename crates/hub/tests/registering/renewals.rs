//! Renewals at a storage that takes those of a turn at once.

use super::*;

/// Devices that are registered at a hub whose storage others write to as well, and takes renewals at once.
fn fleet<const COUNT: usize>(names: [&str; COUNT]) -> (World, [Device; COUNT]) {
    let mut world = World::new(8);
    world.hub.storage().shared = Some(BTreeMap::new());
    world.hub.storage().renews = true;
    let mut number = 9;
    let mut devices = names.map(|name| {
        number += 1;
        world.device(1, number, name)
    });
    for device in &mut devices {
        assert_eq!(world.register_itself(device).refusal, None);
    }
    assert!(world.hub.storage().renewed.is_empty(), "new devices are put");
    world.hub.storage().puts = 0;
    (world, devices)
}

/// Has devices register in one turn; the answers.
fn register_at_once(
    world: &mut World,
    devices: &mut [Device],
) -> Vec<Result<Registered, NoResult>> {
    for device in &mut *devices {
        let record = postcard::to_allocvec(&device.signed()).unwrap();
        world.begin(device, function::REGISTER, record);
        world.exchange(device);
    }
    let unix_time = UnixTime { seconds: world.unix_s };
    let mut moment = Moment { now: world.now, unix_time, entropy: &mut world.entropy };
    world.hub.poll(&mut moment);
    let mut answers = Vec::new();
    while let Some((to, datagram)) = world.hub.transmit() {
        if let Some(device) = devices.iter_mut().find(|device| device.address == to) {
            device.endpoint.receive(world.now, moment.entropy, HUB, &datagram);
        }
    }
    for device in devices {
        while let Some(event) = device.endpoint.event() {
            if let Event::CallDone { result, .. } = event {
                let read = |bytes: Option<Vec<u8>>| postcard::from_bytes(&bytes.unwrap()).unwrap();
                answers.push(result.map(read));
            }
        }
    }
    answers
}

fn refusals(answers: Vec<Result<Registered, NoResult>>) -> Vec<Option<Refusal>> {
    answers.into_iter().map(|answer| answer.unwrap().refusal).collect()
}

fn renew(device: &mut Device) {
    device.record.sequence += 1;
    device.record.expires_unix_s += 20;
}

#[test]
fn renewals_of_a_turn_are_stored_at_once_and_what_is_no_renewal_as_before() {
    let (mut world, mut devices) = fleet(["attic", "barn", "cellar", "shed"]);
    devices.iter_mut().for_each(renew);
    // It lists another machine.
    devices[3].record.machines[0].1 = PublicKey([99; 32]);
    let answers = register_at_once(&mut world, &mut devices);
    assert_eq!(refusals(answers), [None; 4]);
    let storage = world.hub.storage();
    let renewed: Vec<Name> = ["attic", "barn", "cellar"].map(|name| name.parse().unwrap()).into();
    assert_eq!(storage.renewed, [renewed]);
    assert_eq!(storage.puts, 1, "of the shed");
    let shared = storage.shared.clone().unwrap();
    let [attic, .., shed] = devices.each_ref().map(Device::signed);
    for (name, record) in [("attic", attic), ("shed", shed)] {
        let name: Name = name.parse().unwrap();
        assert_eq!(shared[&name].record, record);
        let found = world.resolve(&mut devices[1], &Query::Device(name)).unwrap();
        assert_eq!(found.record, record);
    }
}

#[test]
fn renewal_that_isnt_compared_with_what_stands_there_is_judged_by_that() {
    let (mut world, mut devices) = fleet(["attic", "barn", "cellar", "shed"]);
    devices.iter_mut().for_each(renew);
    let name: [Name; 4] = ["attic", "barn", "cellar", "shed"].map(|name| name.parse().unwrap());
    let storage = world.hub.storage();
    let shared = storage.shared.as_mut().unwrap();
    // The attic was heard elsewhere since, the barn too, with an older record; the cellar is gone, and the shed revoked.
    shared.insert(name[0].clone(), heard_elsewhere(&mut devices[0], 9));
    devices[0].record.sequence = 2;
    shared.get_mut(&name[1]).unwrap().seen_at = Address::Udp(socket_at(55));
    shared.remove(&name[2]);
    storage.revoked = vec![name[3].clone()];
    let answers = register_at_once(&mut world, &mut devices);
    let expected = [Some(Refusal::Stale), None, None, Some(Refusal::Revoked)];
    assert_eq!(refusals(answers), expected);
    let storage = world.hub.storage();
    assert_eq!((storage.renewed.len(), storage.puts), (1, 2));
    let records = devices.each_ref().map(Device::signed);
    let stored = |at: usize| storage.shared.as_ref().unwrap()[&name[at]].record.clone();
    assert_eq!([stored(1), stored(2)], [records[1].clone(), records[2].clone()]);
    // What it learned is what it compares with from now on.
    storage.revoked.clear();
    devices[0].record.sequence = 9;
    devices.iter_mut().for_each(renew);
    assert_eq!(refusals(register_at_once(&mut world, &mut devices)), [None; 4]);
    assert_eq!(world.hub.storage().puts, 2, "no more");
}

#[test]
fn renewals_that_a_storage_cant_keep_are_put_off_or_refused_and_the_ones_before_stay() {
    let (mut world, mut devices) = fleet(["attic", "barn"]);
    let before = devices[0].signed();
    devices.iter_mut().for_each(renew);
    world.hub.storage().is_away = true;
    let answers = register_at_once(&mut world, &mut devices);
    assert!(answers.iter().all(|answer| matches!(answer, Err(NoResult::Deferred { .. }))));
    world.hub.storage().is_away = false;
    world.hub.storage().fails = true;
    devices.iter_mut().for_each(renew);
    let answers = register_at_once(&mut world, &mut devices);
    assert_eq!(refusals(answers), [Some(Refusal::Full); 2]);
    let found = world.resolve(&mut devices[1], &Query::Device("attic".parse().unwrap())).unwrap();
    assert_eq!(found.record, before);
    world.hub.storage().fails = false;
    devices.iter_mut().for_each(renew);
    assert_eq!(refusals(register_at_once(&mut world, &mut devices)), [None; 2]);
}

#[test]
fn renewal_that_is_compared_again_counts_once() {
    let config = Config { records_per_minute: 2, ..Config::default() };
    let mut world = World::with(config);
    world.hub.storage().shared = Some(BTreeMap::new());
    world.hub.storage().renews = true;
    let mut devices = [world.device(1, 10, "attic")];
    assert_eq!(world.register_itself(&mut devices[0]).refusal, None);
    world.hub.storage().shared.as_mut().unwrap().clear();
    renew(&mut devices[0]);
    assert_eq!(refusals(register_at_once(&mut world, &mut devices)), [None]);
    renew(&mut devices[0]);
    assert_eq!(refusals(register_at_once(&mut world, &mut devices)), [Some(Refusal::TooOften)]);
}
