//! The device's secrets are looked for in everything that leaves it, or that it writes.

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, hkdf_sha256};
use tenure_hal::FlashGeometry;
use tenure_hal::simulated::RamFlash;
use tenure_kernel::{KERNEL_TREE, MachineRecord};
use tenure_node::unseal_store;
use tenure_store::Store;
use tenure_wire::Capabilities;
use tenure_wire::control::{Function, SnapshotBegin, SnapshotInfo, SnapshotRead, decode_answer};

use crate::leases::Lease;
use crate::world::World;

const SECRET: &str = "correct-horse-battery-staple";

/// Has random bytes and its tenant's secret in its memory, the former in its tree as well, and gives the
/// former and all of its memory to whoever asks.
const DIARY: &str = r#"(module
  (import "tenure" "random" (func $random (param i32 i32) (result i32)))
  (import "tenure" "tree_set" (func $tree_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "secret_read" (func $secret_read (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "page") (data (i32.const 32) "wifi")
  (func (export "write")
    (drop (call $random (i32.const 8192) (i32.const 32)))
    (drop (call $tree_set (i32.const 16) (i32.const 4) (i32.const 0)
      (i32.const 8192) (i32.const 32)))
    (drop (call $secret_read (i32.const 32) (i32.const 4) (i32.const 9000) (i32.const 64)))
    (call $log (i32.const 1) (i32.const 16) (i32.const 4))
    (drop (call $reply (i32.const 8192) (i32.const 32))))
  (func (export "low") (drop (call $reply (i32.const 4) (i32.const 8188))))
  (func (export "high") (drop (call $reply (i32.const 8192) (i32.const 8192)))))"#;

fn diary(name: &str) -> Lease {
    let secrets = vec!["wifi".parse().unwrap()];
    Lease::of(name, DIARY, Capabilities { secrets, ..Capabilities::default() })
}

/// Whatever the owner may fetch of a machine, and its log.
fn what_is_told(world: &mut World, machine: &str) -> Vec<u8> {
    let device = world.node.device_machine();
    let begin = SnapshotBegin { machine: machine.parse().unwrap() };
    let begin = postcard::to_allocvec(&begin).unwrap();
    let answer =
        world.call(0, &device, Function::snapshot_begin.name(), Some(&begin)).unwrap().unwrap();
    let info: SnapshotInfo = decode_answer::<_>(&answer).unwrap();
    let mut told = Vec::new();
    while told.len() < info.bytes as usize {
        let read = SnapshotRead { offset: told.len() as u32 };
        let read = postcard::to_allocvec(&read).unwrap();
        let part =
            world.call(0, &device, Function::snapshot_read.name(), Some(&read)).unwrap().unwrap();
        told.extend(decode_answer::<Vec<u8>>(&part).unwrap());
    }
    for (function, parameter) in [
        (Function::receipts_close.name(), &[][..]),
        (Function::receipts.name(), &[0]),
        (Function::log.name(), &[0, 0, 0]),
        (Function::list.name(), &[0]),
        (Function::status.name(), &[]),
    ] {
        told.extend(world.call(0, &device, function, Some(parameter)).unwrap().unwrap());
    }
    told.extend(format!("{:?}", world.notices).bytes());
    told
}

/// The seed, and every key that follows from it here: the device's and its machines'.
fn keys(store: &[u8]) -> Vec<[u8; 32]> {
    let at = store.windows(4).position(|part| part == b"seed").unwrap() + 4;
    let seed: [u8; 32] = store[at..at + 32].try_into().unwrap();
    let geometry = FlashGeometry {
        sector_bytes: 4096,
        sector_count: store.len() as u32 / 4096,
        program_bytes: 4,
    };
    let (mut mounted, _) = Store::mount(RamFlash::with_bytes(geometry, store.to_vec())).unwrap();
    unseal_store(&mut mounted).unwrap();
    let slots = mounted.children(KERNEL_TREE, "machines").unwrap();
    let derive = |salt: &[u8], label: &str| {
        let mut key = [0; 32];
        hkdf_sha256(salt, &seed, &[label.as_bytes()], &mut key);
        key
    };
    let mut keys = vec![seed];
    keys.extend(
        ["agreement", "signing"].map(|what| derive(&[], &format!("tenure 1 device {what}"))),
    );
    for slot in slots {
        let record = mounted.get(KERNEL_TREE, &format!("machines.{slot}")).unwrap().unwrap();
        let record = MachineRecord::from_bytes(&record.bytes).unwrap();
        let of_machine = |what| derive(&record.salt, &format!("tenure 1 machine {what}"));
        keys.extend(["agreement", "tree", "state"].map(of_machine));
        let public = tenure_crypto::StaticSecret::from_bytes(&of_machine("agreement")).public_key();
        assert_eq!(public, record.public_key, "the label is the one in use");
    }
    let signing = Seed::from_bytes(&seed).device_signing_key();
    assert_eq!(*signing.to_bytes(), keys[2], "the label is the one in use");
    keys
}

fn holds(place: &[u8], bytes: &[u8]) -> bool {
    place.windows(bytes.len()).any(|part| part == bytes)
}

#[test]
fn private_keys_secrets_and_what_machines_keep_are_nowhere_in_the_clear() {
    let mut world = World::new(|config| {
        // Two machines fit into memory, so that the third goes to flash.
        config.kernel.memory_bytes_max = 45 * 1024;
        config.kernel.swap_bytes_max = 128 * 1024;
        config.kernel.swap_residence = Duration::from_millis(10);
    });
    let names = ["one", "two", "three"];
    let machines = names.map(|name| world.install_lease(diary(name)));
    world.set_secret(&SigningKey::from_bytes(&[9; 32]), "wifi", 1, SECRET.as_bytes());
    let mut pages = Vec::new();
    for machine in machines.iter().cycle().take(6) {
        pages.push(world.call(0, machine, "write", None).unwrap().unwrap());
        world.pass(Duration::from_millis(20));
    }
    let told: Vec<u8> = names.iter().flat_map(|name| what_is_told(&mut world, name)).collect();
    let mut memory = Vec::new();
    for (machine, part) in machines.iter().flat_map(|one| [(one, "low"), (one, "high")]) {
        memory.extend(world.call(0, machine, part, None).unwrap().unwrap());
        world.pass(Duration::from_millis(20));
    }
    world.fall_asleep().unwrap();
    let [store, code, staging] = world.into_flash();
    let keys = keys(&store);
    assert!(keys.len() >= 3 + 3 * names.len());
    assert!(holds(&memory, SECRET.as_bytes()), "a machine that read it has it");
    assert!(holds(&told, &pages[5]), "the owner reads trees");
    for place in [&code, &staging, &told, &memory] {
        assert!(keys.iter().all(|key| !holds(place, key)));
    }
    // A device without a secure element has nowhere else for its seed; it stands there once.
    assert_eq!(store.windows(32).filter(|part| *part == keys[0]).count(), 1);
    assert!(keys[1..].iter().all(|key| !holds(&store, key)));
    for place in [&store, &code, &staging] {
        assert!(pages.iter().all(|page| !holds(place, page)), "trees and memory are sealed");
    }
    for place in [&store, &code, &staging, &told] {
        assert!(!holds(place, SECRET.as_bytes()) && !holds(place, &SECRET.as_bytes()[..12]));
    }
}
