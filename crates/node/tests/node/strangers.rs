//! The costs of strangers and tenants to a device beside the budgets of machines; and its owner is
//! served whatever they do.

use std::time::Duration;

use tenure_crypto::SigningKey;
use tenure_hal::simulated::{Sequence, socket_at};
use tenure_node::Hub;
use tenure_package::SecretChange;
use tenure_wire::control::{
    Answer, ControlError, DeviceStatus, Function, Hello, InstallBegin, InstallChunk, InstallCommit,
    MachineStatus, ReceiptPage, ReceiptQuery, decode_answer,
};
use tenure_wire::directory::SignedRecord;
use tenure_wire::{Address, Capabilities, PublicKey};

use crate::leases::{Lease, anybody};
use crate::snapshots::ask;
use crate::world::World;

const SLEEPER: &str = r#"(func (export "sleep") (call $sleep_ms (i32.const -1)))"#;

fn tenant() -> SigningKey {
    SigningKey::from_bytes(&[9; 32])
}

fn change(world: &World, version: u64) -> Vec<u8> {
    let (device, machine) = (world.node.device_key(), world.node.device_machine());
    let place = ("wifi".parse().unwrap(), version);
    let tenant = tenant();
    let key = tenant.verifying_key();
    let mut entropy = Sequence(version);
    let change = SecretChange::set(&mut entropy, &key, (device, &machine), place, b"value");
    change.unwrap().sign(&tenant).unwrap()
}

fn send_change(world: &mut World, caller: usize, bytes: &[u8]) -> Answer<()> {
    let device = world.node.device_machine();
    let answer = world.call(caller, &device, Function::secret_change.name(), Some(bytes));
    postcard::from_bytes(&answer.unwrap().unwrap()).unwrap()
}

#[test]
fn stranger_who_greets_the_device_learns_its_versions_and_nothing_of_its_functions() {
    let mut world = World::new(|_| {});
    let stranger = world.stranger();
    let device = world.node.device_machine();
    let own = Hello { oldest: 40, newest: 50, software: "9.9".to_string() };
    let mut ask = |function: &str, request: &[u8]| {
        world.call(stranger, &device, function, Some(request)).unwrap().unwrap()
    };
    let answer = ask(Function::hello.name(), &tenure_wire::message::encode(&own));
    let spoken: Hello = decode_answer(&answer).unwrap();
    assert!(spoken.oldest <= spoken.newest);
    assert_eq!(spoken.common(&own), None);
    for function in [Function::status.name(), "fly"] {
        let answer = ask(function, &[]);
        assert_eq!(decode_answer::<()>(&answer), Err(ControlError::NotOwner));
    }
}

#[test]
fn strangers_cost_no_unlimited_signatures() {
    let mut world = World::new(|_| {});
    let stranger = world.stranger();
    let device = world.node.device_machine();
    let mut records: Vec<SignedRecord> = Vec::new();
    let began = world.now;
    for _ in 0..100 {
        let answer =
            world.call(stranger, &device, Function::record.name(), Some(&[])).unwrap().unwrap();
        let record: Answer<Option<SignedRecord>> = decode_answer(&answer);
        records.push(record.unwrap().expect("it is enrolled"));
    }
    records.dedup();
    let seconds = world.now.since(began).as_secs() as usize;
    assert!(records.len() <= 1 + seconds / 20, "{} signatures in {seconds} s", records.len());

    world.install("echo", 8, r#"(func (export "echo"))"#);
    let mut forged = change(&world, 1);
    *forged.last_mut().unwrap() ^= 1;
    let began = world.now;
    let verified = (0..100).filter(|_| {
        matches!(send_change(&mut world, stranger, &forged), Err(ControlError::Refused(_)))
    });
    let verified = verified.count();
    let seconds = world.now.since(began).as_secs() as usize;
    assert!(verified <= 32 + 1 + seconds / 2, "{verified} verifications in {seconds} s");
    let right = change(&world, 1);
    assert_eq!(send_change(&mut world, 0, &right), Ok(()), "the owner's path is free");
}

#[test]
fn secrets_do_not_wear_the_flash_beyond_their_number_a_day_and_are_billed() {
    let mut world = World::new(|_| {});
    world.install("echo", 8, r#"(func (export "echo"))"#);
    let mut taken = 0;
    for version in 1..=200 {
        let bytes = change(&world, version);
        match send_change(&mut world, 0, &bytes) {
            Ok(()) => taken += 1,
            Err(ControlError::Full(why)) => assert!(why.contains("too many changes"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(taken, 32);
    world.skip(Duration::from_secs(3600));
    let bytes = change(&world, 500);
    assert_eq!(send_change(&mut world, 0, &bytes), Ok(()), "one more after a while");
    ask::<()>(&mut world, Function::receipts_close.name(), &()).unwrap();
    let page: ReceiptPage =
        ask(&mut world, Function::receipts.name(), &ReceiptQuery { skip: 0 }).unwrap();
    let (receipt, _) = tenure_package::Receipt::verify(&page.receipts[0]).unwrap();
    // And one for the machine's log, which the checkpoint kept.
    assert_eq!(receipt.usage.flash_writes, 34);
    assert!(receipt.usage.flash_bytes >= 33 * 64, "{}", receipt.usage.flash_bytes);
}

#[test]
fn strangers_do_not_set_the_pace_of_registrations() {
    let hub = Hub { address: Address::Udp(socket_at(2)), key: None };
    let mut world = World::new(|config| config.hub = Some(hub));
    let hub = world.stranger();
    world.pass_with_hub(hub, 1_000_000, Duration::from_secs(5));
    let device = world.node.device_machine();
    let mut registrations = 0;
    for _ in 0..60 {
        let stranger = world.stranger();
        world.start_call(
            stranger,
            &device,
            Function::status.name(),
            Some(&[]),
            Duration::from_secs(5),
        );
        registrations += world.pass_with_hub(hub, 1_000_000, Duration::from_millis(500));
    }
    assert!(registrations <= 2, "{registrations} in 30 s, where the pace is one in 20 s");
}

/// Strangers call machines that are slow, and others wait for a directory that is silent.
fn flooded() -> World {
    let mut world = World::new(|config| {
        let (address, key) = (Address::Udp(socket_at(99)), Some(PublicKey([9; 32])));
        config.hub = Some(Hub { address, key });
    });
    let callers = ["*@*"].map(|text| text.parse().unwrap()).to_vec();
    let named = Capabilities { callers, ..Capabilities::default() };
    let asking = world.install_granted("named", 8, r#"(func (export "echo"))"#, named);
    let slow: Vec<PublicKey> = ["one", "two", "three", "four"]
        .iter()
        .map(|name| world.install(name, 16, SLEEPER))
        .collect();
    let mut callers = Vec::new();
    for _ in 0..8 {
        callers.push(world.stranger());
    }
    for round in 0..4 {
        for (number, caller) in callers.iter().enumerate() {
            let timeout = Duration::from_secs(900);
            match number % 3 {
                0 => world.start_call(*caller, &asking, "echo", None, timeout),
                _ => world.start_call(*caller, &slow[(number + round) % 4], "sleep", None, timeout),
            };
        }
        world.pass(Duration::from_millis(700));
    }
    world
}

#[test]
fn strangers_do_not_keep_the_owner_out() {
    let mut world = flooded();
    for _ in 0..10 {
        let device = world.node.device_machine();
        let answer = world.call(0, &device, Function::status.name(), Some(&[]));
        assert!(answer.is_ok(), "{answer:?}");
        world.pass(Duration::from_millis(300));
    }
    let slow = world.install("late", 8, r#"(func (export "echo"))"#);
    assert_eq!(world.call(0, &slow, "echo", None), Ok(None), "nor from a machine");
}

#[test]
fn the_owner_installs_under_the_floods_of_strangers_tenants_and_a_hub_at_once() {
    let mut world = flooded();
    let (flooder, device) = (world.stranger(), world.node.device_machine());
    let mut forged = change(&world, 1);
    *forged.last_mut().unwrap() ^= 1;
    let lease = Lease::of("wanted", r#"(module (memory 1) (func (export "echo")))"#, anybody());
    let signed = lease.sign(&world.owner(), world.node.device_key());
    let flood = |world: &mut World| {
        let timeout = Duration::from_secs(60);
        for function in [Function::record.name(), Function::status.name()] {
            world.start_call(flooder, &device, function, Some(&[]), timeout);
        }
        world.start_call(flooder, &device, Function::secret_change.name(), Some(&forged), timeout);
        let fresh = world.stranger();
        // Of two datagrams, which the device has to put together.
        world.start_call(fresh, &device, Function::secret_change.name(), Some(&[0; 1500]), timeout);
    };
    flood(&mut world);
    let begin = InstallBegin { bytes: signed.package.len() as u32 };
    ask::<()>(&mut world, Function::install_begin.name(), &begin).unwrap();
    for (number, bytes) in signed.package.chunks(512).enumerate() {
        flood(&mut world);
        let part = InstallChunk { offset: number as u32 * 512, bytes };
        ask::<()>(&mut world, Function::install_chunk.name(), &part).unwrap();
    }
    flood(&mut world);
    let commit = InstallCommit { placement: signed.placement };
    let machine: MachineStatus = ask(&mut world, Function::install_commit.name(), &commit).unwrap();
    assert_eq!(world.call(0, &machine.key, "echo", None), Ok(None));
    let status: DeviceStatus = ask(&mut world, Function::status.name(), &()).unwrap();
    assert_eq!(status.machines, 6);
}
