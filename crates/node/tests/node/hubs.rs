//! The hub that a device believes, the worth of the hub's word, and the device without it.

use std::time::Duration;

use tenure_hal::simulated::socket_at;
use tenure_node::{Config, Hub, Notice, SleepPolicy};
use tenure_wire::control::{
    Answer, ControlError, DeviceStatus, Function, HubStatus, HubTrust, ListMachines, MachineList,
    TrustHub, decode_answer,
};
use tenure_wire::directory::{Refusal, Registered};
use tenure_wire::{Address, PublicKey, Term};

use crate::leases::{Lease, anybody};
use crate::snapshots::ask;
use crate::terms::KEEPER;
use crate::world::World;

const SIGNED: u64 = 1_000_000;
const DAY: u64 = 24 * 60 * 60;

/// The first stranger of a world is its hub.
fn with_hub(key: Option<PublicKey>) -> impl FnOnce(&mut Config) {
    move |config| config.hub = Some(Hub { address: Address::Udp(socket_at(2)), key })
}

/// The key that the first stranger of every world has.
fn key_of_hub() -> PublicKey {
    let mut world = World::new(|_| {});
    let hub = world.stranger();
    world.strangers[hub].key
}

fn install(world: &mut World, lasts_s: u64, grace_s: u64) -> PublicKey {
    let mut lease = Lease::of("keeper", KEEPER, anybody());
    let ends_unix_s = Some(SIGNED + lasts_s);
    lease.term = Term { signed_unix_s: SIGNED, ends_unix_s, grace_s, receipts_every_s: 0 };
    world.install_lease(lease)
}

fn state(world: &mut World) -> Option<String> {
    let list: MachineList = ask(world, Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    list.machines.into_iter().next().map(|machine| machine.state)
}

fn hub_status(world: &mut World) -> HubStatus {
    ask::<Option<HubStatus>>(world, Function::hub.name(), &()).unwrap().unwrap()
}

#[test]
fn a_false_hub_does_not_delete_machines() {
    let mut world = World::new(with_hub(None));
    let hub = world.stranger();
    let key = install(&mut world, 500, 100);
    world.call(0, &key, "keep", None).unwrap();
    world.pass_with_hub(hub, 4_000_000_000, Duration::from_secs(30));
    assert!(world.notices.contains(&Notice::Registered));
    assert!(state(&mut world).is_some_and(|state| state != "lease over"));
    assert_eq!(world.call(0, &key, "kept", None), Ok(Some(b"key".to_vec())));
    let status: DeviceStatus = ask(&mut world, Function::status.name(), &()).unwrap();
    assert_eq!(status.unix_s, None, "the owner is asked for the time");
}

#[test]
fn a_pinned_hub_moves_leases_by_a_day_at_most_and_deletes_nothing() {
    let mut world = World::new(with_hub(Some(key_of_hub())));
    let hub = world.stranger();
    let key = install(&mut world, 2 * DAY, 100);
    world.call(0, &key, "keep", None).unwrap();
    world.pass_with_hub(hub, 4_000_000_000, Duration::from_secs(60));
    assert!(state(&mut world).is_some_and(|state| state != "lease over"));
    let late = world.renewal("keeper", Term { ends_unix_s: Some(SIGNED + DAY), ..term() }, 2);
    let answer: Answer<()> = ask(&mut world, Function::renew.name(), &late);
    assert!(matches!(answer, Err(ControlError::Refused(_))), "a day has passed: {answer:?}");

    let mut world = World::new(with_hub(Some(key_of_hub())));
    let hub = world.stranger();
    let key = install(&mut world, DAY / 2, 100);
    world.call(0, &key, "keep", None).unwrap();
    world.pass_with_hub(hub, SIGNED + DAY / 2 + 1, Duration::from_secs(30));
    assert_eq!(state(&mut world).as_deref(), Some("lease over"), "a word that can be true counts");
    let renew = world.renewal("keeper", Term { ends_unix_s: None, ..term() }, 2);
    ask::<()>(&mut world, Function::renew.name(), &renew).unwrap();
    assert_eq!(world.call(0, &key, "kept", None), Ok(Some(b"key".to_vec())));
}

/// Directories of before end their answer after the time.
#[test]
fn device_that_is_one_too_many_says_how_many_its_hub_lists_if_the_hub_says_so() {
    for devices_max in [Some(10_000), None] {
        let mut world = World::new(with_hub(Some(key_of_hub())));
        let hub = world.stranger();
        let refusal = Refusal::Full;
        let (unix_s, takes_touches) = (1_800_000_000, false);
        let told = Registered { refusal: Some(refusal), unix_s, devices_max, takes_touches };
        let mut answer = postcard::to_allocvec(&told).unwrap();
        if devices_max.is_none() {
            answer.truncate(answer.len() - 2);
        }
        for _ in 0..30 {
            world.pass(Duration::from_secs(1));
            for (handle, _) in std::mem::take(&mut world.strangers[hub].incoming) {
                world.reply(hub, handle, Some(answer.clone()));
            }
        }
        let refused = Notice::Refused { refusal, devices_max };
        assert!(world.notices.contains(&refused), "{:?}", world.notices);
    }
}

fn term() -> Term {
    Term { signed_unix_s: SIGNED, ends_unix_s: None, grace_s: 100, receipts_every_s: 0 }
}

#[test]
fn the_first_hub_is_kept_over_restarts_and_changes_by_the_owners_word_alone() {
    let mut world = World::new(with_hub(None));
    let hub = world.stranger();
    let other = world.stranger();
    assert_eq!(hub_status(&mut world).trust, HubTrust::Shown, "its address shows a key");
    world.pass_with_hub(hub, SIGNED, Duration::from_secs(10));
    let first = world.strangers[hub].key;
    let status = hub_status(&mut world);
    assert_eq!((status.key, status.trust), (Some(first), HubTrust::FirstSeen));

    // Another one takes the hub's address, before and after a restart.
    world.swap_addresses(hub, other);
    world.pass_with_hub(other, SIGNED, Duration::from_secs(60));
    let mut world = world.off_for(Duration::from_secs(5));
    assert_eq!(
        world.pass_with_hub(other, SIGNED, Duration::from_secs(60)),
        0,
        "it isn't spoken to"
    );
    let second = world.strangers[other].key;
    let status = hub_status(&mut world);
    assert_eq!((status.key, status.trust), (Some(first), HubTrust::FirstSeen));
    assert_eq!((status.shown, status.is_registered), (Some(second), false));
    assert!(world.notices.contains(&Notice::HubKeyDiffers { key: second }));

    let device = world.node.device_machine();
    let trust = TrustHub { key: Some(second) };
    let parameter = postcard::to_allocvec(&trust).unwrap();
    let answer = world.call(other, &device, Function::trust_hub.name(), Some(&parameter)).unwrap();
    let answer: Answer<()> = decode_answer(&answer.unwrap());
    assert_eq!(answer, Err(ControlError::NotOwner));
    ask::<()>(&mut world, Function::trust_hub.name(), &trust).unwrap();
    assert!(world.pass_with_hub(other, SIGNED, Duration::from_secs(10)) > 0);
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass_with_hub(other, SIGNED, Duration::from_secs(10));
    let status = hub_status(&mut world);
    assert_eq!((status.key, status.trust), (Some(second), HubTrust::Owner));
    assert!(status.is_registered);
}

#[test]
fn settings_that_pin_the_hubs_key_are_not_overruled_by_a_word_over_the_network() {
    let mut world = World::new(with_hub(Some(PublicKey([9; 32]))));
    let hub = world.stranger();
    assert_eq!(world.pass_with_hub(hub, SIGNED, Duration::from_secs(30)), 0);
    let trust = TrustHub { key: Some(world.strangers[hub].key) };
    let answer: Answer<()> = ask(&mut world, Function::trust_hub.name(), &trust);
    assert!(matches!(answer, Err(ControlError::Refused(_))));
}

#[test]
fn a_device_whose_hub_is_gone_wakes_a_few_times_an_hour_for_it() {
    let mut world = World::new(|config| {
        with_hub(None)(config);
        // It saves power, and sleeps for nothing that comes in these weeks.
        config.sleep = SleepPolicy::WhenIdle { at_least: Duration::from_secs(90 * 24 * 3600) };
    });
    // Nobody at the hub's address. The time in which the wait grows isn't counted.
    world.pass(Duration::from_secs(30));
    world.sleep_through(Duration::from_secs(3600));
    let wakes = world.sleep_through(Duration::from_secs(7 * 24 * 3600));
    assert!(wakes >= 7 * 24, "it goes on trying");
    assert!(wakes / (7 * 24) <= 60, "{wakes} wake-ups in a week");
}
