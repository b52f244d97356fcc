//! Owners who change their keys, hand a device over, and revoke tenants, devices and hubs.

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey};
use tenure_directory::{enrol, open_whenever, succeed};
use tenure_hal::simulated::socket_at;
use tenure_node::{Config, Hub};
use tenure_package::{Revocations, RevokedDevice};
use tenure_wire::control::{
    Answer, ChangeOwner, ControlError, DeviceStatus, Enrol, Function, HubStatus, HubTrust,
    InstallBegin, InstallChunk, InstallCommit, ListMachines, MachineList, MachineStatus, Trash,
    TrashRestore, TrustHub, decode_answer,
};
use tenure_wire::directory::{Enrolment, SignedRecord};
use tenure_wire::ownership::{Succession, SuccessionKind};
use tenure_wire::{Address, PublicKey, VerifyingKey};

use crate::leases::{Lease, anybody};
use crate::terms::KEEPER;
use crate::world::World;

/// The owner is the first one around the device.
const OWNER: usize = 0;
const NEXT: u8 = 17;
const THIEF: u8 = 66;

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn machine_of(key: &SigningKey) -> tenure_crypto::StaticSecret {
    Seed::from_bytes(&key.to_bytes()).device_secret()
}

/// The owner that the settings name.
fn first() -> SigningKey {
    key(7)
}

fn call<T: serde::de::DeserializeOwned>(
    world: &mut World,
    by: usize,
    function: &str,
    parameter: &[u8],
) -> Answer<T> {
    let device = world.node.device_machine();
    let answer = world.call(by, &device, function, Some(parameter)).unwrap().unwrap();
    decode_answer(&answer)
}

fn ask<T: serde::de::DeserializeOwned>(
    world: &mut World,
    by: usize,
    function: &str,
    parameter: &impl serde::Serialize,
) -> Answer<T> {
    call(world, by, function, &postcard::to_allocvec(parameter).unwrap())
}

fn succession(by: &SigningKey, next: &SigningKey, number: u64) -> Succession {
    Succession {
        by: by.verifying_key(),
        next: next.verifying_key(),
        next_machine: machine_of(next).public_key(),
        kind: SuccessionKind::Change,
        device: None,
        number,
    }
}

fn handed_over(world: &World, by: &SigningKey, next: &SigningKey, number: u64) -> Succession {
    let device = Some(world.node.device_key());
    Succession { kind: SuccessionKind::HandOver, device, ..succession(by, next, number) }
}

fn enrolled(world: &World, by: &SigningKey) -> Enrol {
    let device_key = world.node.device_key();
    let enrolment = Enrolment { device: "attic".parse().unwrap(), device_key, number: 2 };
    let signature = enrol(by, &enrolment);
    Enrol { enrolment, signature }
}

/// Hands the device a succession with the new owner's enrolment, as `signer` signed it.
fn tell(world: &mut World, by: usize, signer: &SigningKey, word: &Succession) -> Answer<()> {
    let succession = succeed(signer, word);
    ask(world, by, Function::change_owner.name(), &ChangeOwner { succession, enrol: None })
}

/// Changes the keys of the owner, with the enrolment by the new ones, and returns who calls with these.
fn change(world: &mut World, signer: &SigningKey, next: &SigningKey, number: u64) -> usize {
    let stranger = world.stranger();
    let enrol = Some(enrolled(world, next));
    let succession = succeed(signer, &succession(signer, next, number));
    let change = ChangeOwner { succession, enrol };
    ask::<()>(world, stranger, Function::change_owner.name(), &change).unwrap();
    world.add(machine_of(next))
}

fn keeper(signer: &SigningKey, world: &World, sequence: u64) -> (Vec<u8>, Vec<u8>) {
    let mut lease = Lease::of("keeper", KEEPER, anybody());
    lease.sequence = sequence;
    let signed = lease.sign(signer, world.node.device_key());
    (signed.package, signed.placement)
}

/// Installs it from afar; returns the device's answer.
fn place(world: &mut World, by: usize, signer: &SigningKey, sequence: u64) -> Answer<()> {
    let (package, placement) = keeper(signer, world, sequence);
    carry(world, by, &package)?;
    let commit = InstallCommit { placement };
    ask::<MachineStatus>(world, by, Function::install_commit.name(), &commit).map(drop)
}

fn carry(world: &mut World, by: usize, package: &[u8]) -> Answer<()> {
    let begin = InstallBegin { bytes: package.len() as u32 };
    ask::<()>(world, by, Function::install_begin.name(), &begin)?;
    for (number, bytes) in package.chunks(4096).enumerate() {
        let chunk = InstallChunk { offset: number as u32 * 4096, bytes };
        ask::<()>(world, by, Function::install_chunk.name(), &chunk)?;
    }
    Ok(())
}

fn why<T: core::fmt::Debug>(answer: Answer<T>) -> String {
    match answer {
        Err(ControlError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn machines(world: &mut World, by: usize) -> usize {
    let list: MachineList =
        ask(world, by, Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    list.machines.len()
}

fn trash(world: &mut World, by: usize) -> Trash {
    ask(world, by, Function::trash.name(), &()).unwrap()
}

fn hub_status(world: &mut World) -> HubStatus {
    ask::<Option<HubStatus>>(world, OWNER, Function::hub.name(), &()).unwrap().unwrap()
}

fn list_of(number: u64) -> Revocations {
    Revocations { number, ..Revocations::default() }
}

fn revoke(world: &mut World, by: usize, signer: &SigningKey, list: &Revocations) -> Answer<()> {
    call(world, by, Function::revoke.name(), &list.sign(signer).unwrap())
}

/// Restarts the device; everybody learns by a call that its sessions are gone.
fn restart(world: World) -> World {
    let mut world = world.off_for(Duration::from_secs(1));
    let device = world.node.device_machine();
    for stranger in 0..world.strangers.len() {
        let _ = world.call(stranger, &device, Function::record.name(), None);
    }
    world
}

#[test]
fn keys_that_were_changed_hold_the_device_and_its_machines_over_restarts() {
    let mut world = World::new(|_| {});
    let machine = world.install_lease(Lease::of("keeper", KEEPER, anybody()));
    world.call(OWNER, &machine, "keep", None).unwrap();
    let next = change(&mut world, &first(), &key(NEXT), 1);
    for _ in 0..2 {
        assert_eq!(machines(&mut world, next), 1);
        assert_eq!(world.call(next, &machine, "kept", None), Ok(Some(b"key".to_vec())));
        let status: DeviceStatus = ask(&mut world, next, Function::status.name(), &()).unwrap();
        assert_eq!(status.owner, key(NEXT).verifying_key());
        let record = open_whenever(&status.record.unwrap()).unwrap();
        assert_eq!(record.owner, key(NEXT).verifying_key());
        assert!(record.succession.is_some(), "whoever knows the former owner sees who follows");
        let old: Answer<DeviceStatus> = ask(&mut world, OWNER, Function::status.name(), &());
        assert_eq!(old, Err(ControlError::NotOwner));
        world = restart(world);
    }
    place(&mut world, next, &key(NEXT), 2).unwrap();
    // Settings that name the new key mean the same owner.
    let next = change(&mut world, &key(NEXT), &key(NEXT + 1), 2);
    assert_eq!(machines(&mut world, next), 1);
}

#[test]
fn what_the_old_key_signed_is_refused_by_the_name_of_that_key() {
    let mut world = World::new(|_| {});
    world.install_lease(Lease::of("keeper", KEEPER, anybody()));
    let renewal = world.renewal("keeper", tenure_wire::Term::default(), 2);
    let list = list_of(1);
    let next = change(&mut world, &first(), &key(NEXT), 1);
    let old_key = first().verifying_key().to_string();
    let refusals = [
        why(place(&mut world, next, &first(), 3)),
        why(ask::<()>(&mut world, next, Function::renew.name(), &renewal)),
        why(revoke(&mut world, next, &first(), &list)),
        why(tell(&mut world, next, &first(), &succession(&first(), &key(THIEF), 9))),
    ];
    for refusal in refusals {
        assert!(refusal.contains(&old_key) && refusal.contains("counts no more"), "{refusal}");
    }
    assert!(why(place(&mut world, next, &key(THIEF), 3)).contains("doesn't hold this device"));
    let enrol = enrolled(&world, &first());
    assert!(why(ask::<()>(&mut world, next, Function::enrol.name(), &enrol)).contains("enrolment"));
}

#[test]
fn an_older_succession_and_a_second_one_change_nothing() {
    let mut world = World::new(|_| {});
    let one = succeed(&first(), &succession(&first(), &key(NEXT), 1));
    let other = succession(&first(), &key(THIEF), 1);
    let next = change(&mut world, &first(), &key(NEXT), 1);
    let stranger = world.stranger();
    why(tell(&mut world, stranger, &first(), &other));
    // Back to the first key, by which the first succession counts again but for its number.
    let back = change(&mut world, &key(NEXT), &first(), 2);
    let again = ChangeOwner { succession: one, enrol: None };
    let refusal = why(ask::<()>(&mut world, stranger, Function::change_owner.name(), &again));
    assert!(refusal.contains("number 1") && refusal.contains("number 2"), "{refusal}");
    assert_eq!(machines(&mut world, back), 0);
    let former: Answer<MachineList> =
        ask(&mut world, next, Function::list.name(), &ListMachines { skip: 0 });
    assert_eq!(former, Err(ControlError::NotOwner));
}

#[test]
fn a_succession_that_the_owner_did_not_sign_or_for_another_device_is_refused() {
    let mut world = World::new(|_| {});
    let thief = world.add(machine_of(&key(THIEF)));
    let forged = succession(&first(), &key(THIEF), 1);
    assert!(why(tell(&mut world, thief, &key(THIEF), &forged)).contains("proof"));
    let by_itself = succession(&key(THIEF), &key(THIEF), 1);
    assert!(why(tell(&mut world, thief, &key(THIEF), &by_itself)).contains("doesn't hold"));
    let elsewhere = Succession {
        device: Some(VerifyingKey([5; 32])),
        ..handed_over(&world, &first(), &key(THIEF), 1)
    };
    assert!(why(tell(&mut world, thief, &first(), &elsewhere)).contains("another device"));
    let of_all = Succession { device: None, ..elsewhere };
    let answer = tell(&mut world, thief, &first(), &of_all);
    assert_eq!(answer, Err(ControlError::Malformed), "no hand-over of all devices");
    // An enrolment by somebody else than the new owner takes the whole word down.
    let succession = succeed(&first(), &succession(&first(), &key(NEXT), 1));
    let enrol = Some(enrolled(&world, &key(THIEF)));
    let change = ChangeOwner { succession, enrol };
    why(ask::<()>(&mut world, thief, Function::change_owner.name(), &change));
    assert_eq!(machines(&mut world, OWNER), 0, "the owner is who it was");
}

#[test]
fn new_owner_finds_machines_in_the_trash_and_nothing_else_of_the_former_owners() {
    let mut world = World::new(|config| {
        config.hub = Some(Hub { address: Address::Udp(socket_at(2)), key: None });
    });
    let hub = world.stranger();
    let machine = world.install_lease(Lease::of("keeper", KEEPER, anybody()));
    world.call(OWNER, &machine, "keep", None).unwrap();
    world.pass_with_hub(hub, 1_000_000, Duration::from_secs(5));
    let mut list = list_of(1);
    list.tenants.push(VerifyingKey([3; 32]));
    revoke(&mut world, OWNER, &first(), &list).unwrap();
    assert_eq!(hub_status(&mut world).trust, HubTrust::FirstSeen);
    let word = handed_over(&world, &first(), &key(NEXT), 1);
    tell(&mut world, OWNER, &first(), &word).unwrap();
    let next = world.add(machine_of(&key(NEXT)));
    let mut world = restart(world);
    assert_eq!(machines(&mut world, next), 0);
    let status: DeviceStatus = ask(&mut world, next, Function::status.name(), &()).unwrap();
    assert_eq!((status.revocations, status.record), (0, None), "the new owner enrols it anew");
    let status =
        ask::<Option<HubStatus>>(&mut world, next, Function::hub.name(), &()).unwrap().unwrap();
    assert!(matches!(status.trust, HubTrust::Unknown | HubTrust::Shown), "{status:?}");
    let found = trash(&mut world, next).machines;
    assert_eq!(found.len(), 1);
    let restore = TrashRestore { machine: found[0].id };
    ask::<()>(&mut world, next, Function::trash_restore.name(), &restore).unwrap();
    assert_eq!(world.call(next, &machine, "kept", None), Ok(Some(b"key".to_vec())));
    let mut world = restart(world);
    assert_eq!(machines(&mut world, next), 1, "what the new owner took back stays");
    let enrol = enrolled(&world, &key(NEXT));
    ask::<()>(&mut world, next, Function::enrol.name(), &enrol).unwrap();
    let record: Option<SignedRecord> = ask(&mut world, next, Function::record.name(), &()).unwrap();
    assert_eq!(open_whenever(&record.unwrap()).unwrap().owner, key(NEXT).verifying_key());
}

#[test]
fn a_hand_over_that_a_power_cut_ends_happened_or_did_not() {
    let (mut before, mut after) = (0, 0);
    for operations in 0..60 {
        let mut world = World::new(|_| {});
        world.install_lease(Lease::of("keeper", KEEPER, anybody()));
        let next = world.add(machine_of(&key(NEXT)));
        let word = handed_over(&world, &first(), &key(NEXT), 1);
        let change = ChangeOwner { succession: succeed(&first(), &word), enrol: None };
        let parameter = postcard::to_allocvec(&change).unwrap();
        let device = world.node.device_machine();
        world.fuse.set(Some(operations));
        let patience = Duration::from_secs(1);
        world.start_call(next, &device, Function::change_owner.name(), Some(&parameter), patience);
        world.pass(Duration::from_millis(100));
        let was_cut = world.fuse.get() == Some(0);
        let mut world = restart(world);
        let list: Answer<MachineList> =
            ask(&mut world, next, Function::list.name(), &ListMachines { skip: 0 });
        match list {
            Err(ControlError::NotOwner) => {
                before += 1;
                assert_eq!(machines(&mut world, OWNER), 1, "cut after {operations} operations");
            }
            list => {
                after += 1;
                assert_eq!(list.unwrap().machines.len(), 0, "cut after {operations} operations");
                assert_eq!(trash(&mut world, next).machines.len(), 1);
            }
        }
        if !was_cut {
            break;
        }
    }
    assert!(before > 0 && after > 1, "{before} cuts before, {after} after");
}

#[test]
fn a_revoked_tenants_machines_go_to_the_trash_and_come_back_by_no_way() {
    let mut world = World::new(|_| {});
    let machine = world.install_lease(Lease::of("keeper", KEEPER, anybody()));
    world.call(OWNER, &machine, "keep", None).unwrap();
    // Another version of it is under way meanwhile.
    let (package, placement) = keeper(&first(), &world, 2);
    carry(&mut world, OWNER, &package).unwrap();
    let tenant = key(9).verifying_key();
    let mut list = list_of(1);
    list.tenants.push(tenant);
    // A stranger may bring the list.
    let stranger = world.stranger();
    revoke(&mut world, stranger, &first(), &list).unwrap();
    let commit = InstallCommit { placement };
    let under_way: Answer<MachineStatus> =
        ask(&mut world, OWNER, Function::install_commit.name(), &commit);
    let mut world = restart(world);
    let restore = TrashRestore { machine: trash(&mut world, OWNER).machines[0].id };
    let refusals = [
        why(under_way),
        why(place(&mut world, OWNER, &first(), 3)),
        why(ask::<()>(&mut world, OWNER, Function::trash_restore.name(), &restore)),
    ];
    for refusal in refusals {
        assert!(refusal.contains(&tenant.to_string()) && refusal.contains("revoked"), "{refusal}");
    }
    assert_eq!(machines(&mut world, OWNER), 0);
    revoke(&mut world, OWNER, &first(), &list_of(2)).unwrap();
    ask::<()>(&mut world, OWNER, Function::trash_restore.name(), &restore).unwrap();
    assert_eq!(world.call(OWNER, &machine, "kept", None), Ok(Some(b"key".to_vec())));
}

#[test]
fn a_list_that_is_older_or_made_beside_the_one_in_force_is_refused() {
    let mut world = World::new(|_| {});
    let (one, mut other, newer) = (list_of(4), list_of(4), list_of(5));
    other.tenants.push(VerifyingKey([3; 32]));
    revoke(&mut world, OWNER, &first(), &one).unwrap();
    revoke(&mut world, OWNER, &first(), &one).unwrap();
    assert!(why(revoke(&mut world, OWNER, &first(), &other)).contains("number 4 is in force"));
    revoke(&mut world, OWNER, &first(), &newer).unwrap();
    let mut world = restart(world);
    assert!(why(revoke(&mut world, OWNER, &first(), &one)).contains("number 5 is in force"));
    let in_force: Option<Vec<u8>> = ask(&mut world, OWNER, Function::revoked.name(), &()).unwrap();
    assert_eq!(Revocations::verify(&in_force.unwrap()).unwrap().0, newer);
    // The list outlives the key that signed it, and the next one is signed with the new key.
    let next = change(&mut world, &first(), &key(NEXT), 1);
    let mut world = restart(world);
    let status: DeviceStatus = ask(&mut world, next, Function::status.name(), &()).unwrap();
    assert_eq!(status.revocations, 5);
    revoke(&mut world, next, &key(NEXT), &list_of(6)).unwrap();
}

#[test]
fn older_list_of_an_owner_who_holds_the_device_again_does_not_count() {
    let mut world = World::new(|_| {});
    let (mut older, newer) = (list_of(4), list_of(5));
    older.tenants.push(key(9).verifying_key());
    revoke(&mut world, OWNER, &first(), &newer).unwrap();
    let word = handed_over(&world, &first(), &key(NEXT), 1);
    tell(&mut world, OWNER, &first(), &word).unwrap();
    let next = world.add(machine_of(&key(NEXT)));
    revoke(&mut world, next, &key(NEXT), &list_of(2)).unwrap();
    let word = handed_over(&world, &key(NEXT), &first(), 2);
    tell(&mut world, next, &key(NEXT), &word).unwrap();
    let machine = world.install_lease(Lease::of("keeper", KEEPER, anybody()));
    // Whoever kept a copy brings it.
    let stranger = world.stranger();
    for _ in 0..2 {
        let refusal = why(revoke(&mut world, stranger, &first(), &older));
        assert!(refusal.contains("number 5") && refusal.contains("came back"), "{refusal}");
        assert!(world.call(OWNER, &machine, "keep", None).is_ok(), "its tenant's machine runs on");
        world = restart(world);
    }
    // The owner's last one counts again, under its number.
    revoke(&mut world, stranger, &first(), &newer).unwrap();
    let word = handed_over(&world, &first(), &key(NEXT), 3);
    tell(&mut world, OWNER, &first(), &word).unwrap();
    assert!(why(revoke(&mut world, next, &key(NEXT), &list_of(1))).contains("number 2"));
    revoke(&mut world, next, &key(NEXT), &list_of(3)).unwrap();
}

#[test]
fn word_under_a_number_that_leaves_no_room_for_later_ones_is_refused() {
    let mut world = World::new(|_| {});
    // The one who hands it over would keep its next owner from changing keys, and from handing it over.
    let last = handed_over(&world, &first(), &key(NEXT), u64::MAX);
    assert!(why(tell(&mut world, OWNER, &first(), &last)).contains("too far"));
    // A stolen key's list would outlive the change of that key.
    let refusal = why(revoke(&mut world, OWNER, &first(), &list_of(u64::MAX)));
    assert!(refusal.contains("too far"), "{refusal}");
    assert!(why(revoke(&mut world, OWNER, &first(), &list_of((1 << 32) + 1))).contains("too far"));
    revoke(&mut world, OWNER, &first(), &list_of(1 << 32)).unwrap();
    revoke(&mut world, OWNER, &first(), &list_of((1 << 32) + 1)).unwrap();
    // Milliseconds since 1970, as commands number successions.
    let word = handed_over(&world, &first(), &key(NEXT), 1_800_000_000_000);
    tell(&mut world, OWNER, &first(), &word).unwrap();
}

#[test]
fn list_is_in_force_however_often_keys_change_after_it() {
    let mut world = World::new(|_| {});
    let stranger = world.stranger();
    tell(&mut world, stranger, &first(), &succession(&first(), &key(NEXT), 1)).unwrap();
    revoke(&mut world, stranger, &key(NEXT), &list_of(5)).unwrap();
    for by in NEXT..NEXT + 6 {
        let word = succession(&key(by), &key(by + 1), by.into());
        tell(&mut world, stranger, &key(by), &word).unwrap();
    }
    let last = world.add(machine_of(&key(NEXT + 6)));
    let mut world = restart(world);
    let status: DeviceStatus = ask(&mut world, last, Function::status.name(), &()).unwrap();
    assert_eq!(status.revocations, 5);
}

#[test]
fn a_revoked_devices_calls_are_denied() {
    let mut world = World::new(|_| {});
    let machine = world.install_lease(Lease::of("keeper", KEEPER, anybody()));
    let stolen = world.stranger();
    assert!(world.call(stolen, &machine, "kept", None).is_ok());
    let mut list = list_of(1);
    list.devices.push(RevokedDevice {
        name: "cellar".parse().unwrap(),
        key: VerifyingKey([3; 32]),
        machine: world.strangers[stolen].key,
    });
    revoke(&mut world, OWNER, &first(), &list).unwrap();
    let mut world = restart(world);
    let denied = Err(tenure_wire::NoResult::Denied);
    assert_eq!(world.call(stolen, &machine, "kept", None), denied);
    let device = world.node.device_machine();
    assert_eq!(world.call(stolen, &device, Function::record.name(), None), denied);
}

fn with_hub(key: Option<PublicKey>) -> World {
    let configure = |config: &mut Config| {
        config.hub = Some(Hub { address: Address::Udp(socket_at(2)), key });
    };
    World::new(configure)
}

#[test]
fn a_revoked_hub_that_still_answers_is_not_spoken_to_until_the_owner_names_another() {
    let mut world = with_hub(None);
    let hub = world.stranger();
    let shown = world.strangers[hub].key;
    assert!(world.pass_with_hub(hub, 1_000_000, Duration::from_secs(5)) > 0);
    let mut list = list_of(1);
    list.hubs.push(shown);
    revoke(&mut world, OWNER, &first(), &list).unwrap();
    for _ in 0..2 {
        world.strangers[hub].incoming.clear();
        let heard = world.pass_with_hub(hub, 9_000_000, Duration::from_secs(120));
        assert_eq!(heard, 0, "it isn't spoken to");
        let status = hub_status(&mut world);
        assert_eq!((status.trust, status.is_registered), (HubTrust::Revoked, false));
        world = restart(world);
    }
    let trust = TrustHub { key: Some(shown) };
    let refusal = why(ask::<()>(&mut world, OWNER, Function::trust_hub.name(), &trust));
    assert!(refusal.contains("revoked"), "{refusal}");
    // Another hub at the same address is spoken to as soon as the owner names it.
    let other = world.stranger();
    world.swap_addresses(hub, other);
    assert_eq!(world.pass_with_hub(other, 1_000_000, Duration::from_secs(60)), 0);
    let trust = TrustHub { key: Some(world.strangers[other].key) };
    ask::<()>(&mut world, OWNER, Function::trust_hub.name(), &trust).unwrap();
    assert!(world.pass_with_hub(other, 1_000_000, Duration::from_secs(10)) > 0);
    assert_eq!(hub_status(&mut world).trust, HubTrust::Owner);
}

#[test]
fn a_hub_that_is_revoked_while_it_is_asked_is_believed_nothing() {
    let mut world = with_hub(None);
    let hub = world.stranger();
    world.pass(Duration::from_secs(1));
    let shown = world.strangers[hub].key;
    let mut list = list_of(1);
    list.hubs.push(shown);
    revoke(&mut world, OWNER, &first(), &list).unwrap();
    assert!(!world.strangers[hub].incoming.is_empty(), "a registration is under way");
    world.pass_with_hub(hub, 9_000_000, Duration::from_secs(30));
    let status = hub_status(&mut world);
    assert_eq!((status.trust, status.is_registered), (HubTrust::Revoked, false));
    // Taken back, and it may register the device again.
    revoke(&mut world, OWNER, &first(), &list_of(2)).unwrap();
    assert!(world.pass_with_hub(hub, 1_000_000, Duration::from_secs(60)) > 0);
    assert_eq!(hub_status(&mut world).trust, HubTrust::FirstSeen);
}
