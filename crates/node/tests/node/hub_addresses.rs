//! A hub that runs in two places with one key: the device goes on at the other one when the one that it speaks with is gone.

use std::time::Duration;

use tenure_crypto::Seed;
use tenure_hal::simulated::socket_at;
use tenure_node::{Config, Hub, Input};
use tenure_wire::Address;
use tenure_wire::control::{Function, HubStatus, HubTrust};

use crate::snapshots::ask;
use crate::world::World;

const NOW_S: u64 = 1_000_000;
/// The longest that a device is without a hub while there is one.
const WITHOUT_MAX: Duration = Duration::from_secs(10);

/// A device, and its hub in two places.
fn world() -> (World, [usize; 2]) {
    let at = |number| Address::Udp(socket_at(number));
    world_with(|config| {
        config.hub = Some(Hub { address: at(2), key: None });
        config.hub_also_at = vec![at(3)];
    })
}

/// The same with other settings.
fn world_with(configure: impl FnOnce(&mut Config)) -> (World, [usize; 2]) {
    let mut world = World::new(configure);
    let hubs = [(); 2].map(|()| world.add(Seed::from_bytes(&[200; 32]).device_secret()));
    (world, hubs)
}

/// Lets time pass until the device registers with one of these, which must be within `most`; returns which.
fn registered(world: &mut World, hubs: &[usize], most: Duration) -> usize {
    let began = world.now;
    loop {
        world.tick();
        let mut hubs = hubs.iter();
        if let Some(hub) = hubs.find(|hub| world.serve_as_hub(**hub, NOW_S) > 0) {
            return *hub;
        }
        let span = world.now.since(began);
        assert!(span < most, "no registration within {span:?}");
    }
}

fn status(world: &mut World) -> HubStatus {
    ask::<Option<HubStatus>>(world, Function::hub.name(), &()).unwrap().unwrap()
}

/// Takes one of the places off the network.
fn lose(world: &mut World, hub: usize) {
    world.move_to(hub, &format!("10.99.0.{hub}:1"));
}

#[test]
fn device_goes_on_at_the_other_address_within_ten_seconds_whenever_its_hub_is_gone() {
    // Over more than a registration's period, and some that are under way when the hub is gone.
    for after_ms in (0..22_000).step_by(1_103) {
        let (mut world, [first, second]) = world();
        assert_eq!(registered(&mut world, &[first, second], WITHOUT_MAX), first);
        world.pass_with_hub(first, NOW_S, Duration::from_millis(after_ms));
        lose(&mut world, first);
        assert_eq!(registered(&mut world, &[second], WITHOUT_MAX), second, "after {after_ms} ms");
        world.pass_with_hub(second, NOW_S, Duration::from_secs(30));
        let HubStatus { address, is_registered, key, trust, .. } = status(&mut world);
        assert_eq!((address, is_registered), (Address::Udp(socket_at(3)), true));
        assert_eq!((key, trust), (Some(world.strangers[first].key), HubTrust::FirstSeen));
    }
}

#[test]
fn device_stays_with_a_hub_that_answers_and_comes_back_when_it_is_the_last() {
    let (mut world, [first, second]) = world();
    assert_eq!(registered(&mut world, &[first, second], WITHOUT_MAX), first);
    world.pass_with_hub(first, NOW_S, Duration::from_secs(90));
    assert!(world.strangers[second].incoming.is_empty(), "the other one wasn't called");
    lose(&mut world, first);
    assert_eq!(registered(&mut world, &[second], WITHOUT_MAX), second);
    world.pass_with_hub(second, NOW_S, Duration::from_secs(5));
    world.move_to(first, &socket_at(2).to_string());
    world.pass_with_hub(second, NOW_S, Duration::from_secs(60));
    assert_eq!(status(&mut world).address, Address::Udp(socket_at(3)));
    lose(&mut world, second);
    assert_eq!(registered(&mut world, &[first], WITHOUT_MAX), first);
}

#[test]
fn hub_that_puts_the_device_off_again_and_again_is_asked_at_its_other_address() {
    let (mut world, [first, second]) = world();
    assert_eq!(registered(&mut world, &[first, second], WITHOUT_MAX), first);
    let (mut put_off, began) = (0, world.now);
    while world.serve_as_hub(second, NOW_S) == 0 {
        world.tick();
        put_off += world.put_off(first, Duration::from_secs(5));
        assert!(world.now.since(began) < Duration::from_secs(60), "put off {put_off} times");
    }
    assert_eq!(put_off, 3);
    world.pass_with_hub(second, NOW_S, Duration::from_secs(60));
    assert_eq!(status(&mut world).address, Address::Udp(socket_at(3)));
}

#[test]
fn hub_that_is_gone_everywhere_is_found_again_where_it_comes_back() {
    let (mut world, [first, second]) = world();
    registered(&mut world, &[first], WITHOUT_MAX);
    world.pass_with_hub(first, NOW_S, Duration::from_secs(1));
    lose(&mut world, first);
    lose(&mut world, second);
    world.pass(Duration::from_secs(300));
    assert!(!status(&mut world).is_registered);
    world.move_to(second, &socket_at(3).to_string());
    // A round waits five sixths of a record's life, and asks both for four seconds each.
    registered(&mut world, &[second], Duration::from_secs(60));
}

/// Tells the device that its hub's name is found at the addresses of these numbers.
fn find_at(world: &mut World, numbers: &[u32]) {
    let addresses = numbers.iter().map(|number| Address::Udp(socket_at(*number))).collect();
    world.take(Input::HubFound { addresses, key: None });
}

#[test]
fn hub_whose_name_moved_is_found_again_where_the_name_leads_now() {
    let (mut world, [first, second]) = world_with(|config| {
        config.hub = Some(Hub { address: Address::Udp(socket_at(2)), key: None });
    });
    registered(&mut world, &[first], WITHOUT_MAX);
    world.pass_with_hub(first, NOW_S, Duration::from_secs(30));
    find_at(&mut world, &[3]);
    world.pass_with_hub(first, NOW_S, Duration::from_secs(60));
    let at = |world: &mut World| status(world).address;
    assert_eq!(at(&mut world), Address::Udp(socket_at(2)), "a hub that answers isn't left");
    lose(&mut world, first);
    assert_eq!(registered(&mut world, &[second], WITHOUT_MAX), second);
    // What was left isn't gone back to once the name no longer leads there.
    find_at(&mut world, &[3]);
    lose(&mut world, second);
    world.move_to(first, &socket_at(2).to_string());
    world.pass(Duration::from_secs(300));
    assert_eq!(at(&mut world), Address::Udp(socket_at(3)));
}

#[test]
fn hub_that_was_silent_for_long_is_tried_at_once_where_its_name_leads_now() {
    let (mut world, [first, second]) = world_with(|config| {
        config.hub = Some(Hub { address: Address::Udp(socket_at(2)), key: None });
    });
    lose(&mut world, first);
    world.pass(Duration::from_secs(300));
    assert_eq!(world.serve_as_hub(second, NOW_S), 0);
    find_at(&mut world, &[3]);
    registered(&mut world, &[second], WITHOUT_MAX);
}

#[test]
fn device_that_starts_before_names_can_be_looked_up_registers_once_its_hub_is_found() {
    let (mut world, [first, _]) = world_with(|config| config.hub = None);
    world.pass(Duration::from_secs(60));
    find_at(&mut world, &[]);
    assert_eq!(ask::<Option<HubStatus>>(&mut world, Function::hub.name(), &()).unwrap(), None);
    find_at(&mut world, &[2]);
    registered(&mut world, &[first], WITHOUT_MAX);
}

#[test]
fn hub_that_is_found_by_name_is_believed_by_the_key_that_is_pinned_alone() {
    let (mut world, [first, second]) = world_with(|config| config.hub = None);
    let key = Some(world.strangers[second].key);
    world.take(Input::HubFound { addresses: vec![Address::Udp(socket_at(4))], key });
    let other = world.stranger();
    world.pass(Duration::from_secs(60));
    assert_eq!((world.serve_as_hub(other, NOW_S), world.serve_as_hub(first, NOW_S)), (0, 0));
    assert_eq!(status(&mut world).key, key);
    find_at(&mut world, &[3]);
    registered(&mut world, &[second], WITHOUT_MAX);
}
