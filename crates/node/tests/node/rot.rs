//! Bits that rot in a device's store: it stays itself or says that it can't, and no machine takes another's place.

use std::time::Duration;

use tenure_hal::Instant;
use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_kernel::KERNEL_TREE;
use tenure_node::{BootError, Config, Moment, Node, Parts};
use tenure_store::{TreeId, ValueKind};
use tenure_wire::VerifyingKey;
use tenure_wire::control::{
    Answer, ControlError, DeviceStatus, Function, MachineList, Remove, decode_answer,
};

use crate::world::World;

const NODE_TREE: TreeId = TreeId(u16::MAX);
const BODY: &str = r#"(func (export "well"))"#;

fn boot(config: &Config, flash: &mut [RamFlash; 3]) -> Result<VerifyingKey, BootError> {
    let [store, code, staging] = flash;
    let mut entropy = Sequence(9);
    let mut moment = Moment { now: Instant::BOOT, unix_time: None, entropy: &mut entropy };
    let node = Node::boot(config.clone(), Parts { store, code, staging }, &mut moment);
    node.map(|node| node.device_key())
}

fn list(world: &mut World) -> Vec<(String, String)> {
    let device = world.node.device_machine();
    let list = world.call(0, &device, Function::list.name(), Some(&[0])).unwrap().unwrap();
    let list: Answer<MachineList> = decode_answer(&list);
    let list = list.unwrap();
    assert_eq!(list.total as usize, list.machines.len());
    list.machines.into_iter().map(|machine| (machine.name.to_string(), machine.state)).collect()
}

fn remove(world: &mut World, machine: &str, for_good: bool) -> Answer<()> {
    let device = world.node.device_machine();
    let remove = Remove { machine: machine.parse().unwrap(), for_good };
    let remove = postcard::to_allocvec(&remove).unwrap();
    decode_answer(&world.call(0, &device, Function::remove.name(), Some(&remove)).unwrap().unwrap())
}

/// D-5: bits in head, path or value of the seed's record.
#[test]
fn device_whose_seed_rots_is_itself_with_one_bit_of_it_and_refuses_to_start_with_two() {
    let mut world = World::new(|_| {});
    world.install("machine", 8, BODY);
    let key = world.node.device_key();
    let (config, flash) = world.off();
    let at = flash[0].bytes().windows(4).position(|part| part == b"seed").unwrap();
    for offset in [at - 14, at - 13, at - 12, at - 5, at, at + 3, at + 4, at + 35] {
        let mut flash = flash.clone();
        flash[0].bytes_mut()[offset] ^= 0x04;
        assert_eq!(boot(&config, &mut flash), Ok(key), "offset {offset} of {at}");
        flash[0].bytes_mut()[offset] ^= 0x08;
        assert_eq!(boot(&config, &mut flash), Err(BootError::Identity), "offset {offset} of {at}");
        flash[0].bytes_mut()[offset] ^= 0x0C;
        assert_eq!(boot(&config, &mut flash), Ok(key));
    }
}

/// D-5: a value of the node beside its seed.
#[test]
fn kept_keys_of_another_seed_or_damaged_ones_are_computed_again() {
    let mut world = World::new(|_| {});
    let keys = (world.node.device_key(), world.node.device_machine());
    for kept in [&[7; 72][..], &[7; 64], &[]] {
        world = world.with_store(|store| {
            store.set(NODE_TREE, "keys", ValueKind::Bytes, kept).unwrap();
        });
        assert_eq!((world.node.device_key(), world.node.device_machine()), keys);
    }
}

/// D-6b.
#[test]
fn machine_whose_record_cant_be_read_is_listed_and_keeps_its_slot_until_it_is_removed_for_good() {
    let mut world = World::new(|_| {});
    world.install("first", 8, BODY);
    world.install("second", 8, BODY);
    // Of a version that this firmware doesn't know.
    world = world.with_store(|store| {
        store.set(KERNEL_TREE, "machines.0", ValueKind::Bytes, &[0xFF]).unwrap();
    });
    let pair = |name: &str, state: &str| (name.to_string(), state.to_string());
    assert!(list(&mut world).contains(&pair("unreadable-0", "unreadable")));
    world.install("third", 8, BODY);
    let names: Vec<String> = list(&mut world).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["second", "third", "unreadable-0"]);

    assert!(matches!(remove(&mut world, "unreadable-0", false), Err(ControlError::Refused(_))));
    assert!(matches!(
        remove(&mut world, "unreadable-1", true),
        Err(ControlError::NoSuchMachine(_))
    ));
    assert_eq!(remove(&mut world, "unreadable-0", true), Ok(()));
    let names: Vec<String> = list(&mut world).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["second", "third"]);
}

/// D-6: what was acknowledged and can't be read is told by the status and, as a fault is, to the hub.
#[test]
fn lost_change_is_told_by_the_status_and_as_a_fault_of_the_device() {
    let mut world = World::new(|_| {});
    let lost = |world: &mut World| {
        let device = world.node.device_machine();
        // A session with the device of before its restart ends with the first question.
        let mut ask = || world.call(0, &device, Function::status.name(), Some(&[])).ok().flatten();
        let status = (0..5).find_map(|_| ask()).unwrap();
        decode_answer::<DeviceStatus>(&status).unwrap().changes_lost
    };
    for _ in 0..4 {
        world = world.off_for(Duration::from_secs(1));
    }
    assert_eq!(lost(&mut world), 0);
    assert_eq!(world.logged("damaged flash"), 0);
    // More than one bit, so that it can't be mended.
    world = world.with_store_bytes(|store| {
        let mut boots = store.windows(5).enumerate().filter(|(_, path)| *path == b"boots");
        let (at, _) = boots.nth(1).unwrap();
        store[at - 14..at - 8].fill(0);
    });
    assert_eq!(lost(&mut world), 1);
    assert_eq!(
        world.logged("damaged flash: acknowledged changes that can't be read any more: 1"),
        1
    );
}
