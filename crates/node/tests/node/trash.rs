//! A removed machine can be fetched back for a while, and costs its tenant the flash that it takes.

use std::time::Duration;

use tenure_hal::Instant;
use tenure_package::Receipt;
use tenure_wire::control::{
    Answer, ControlError, DeviceStatus, Function, ListMachines, MachineList, ReceiptPage,
    ReceiptQuery, Remove, TrashEmpty, TrashRestore, decode_answer,
};
use tenure_wire::{MachineId, PublicKey};

use crate::leases::{Lease, anybody};
use crate::snapshots::ask;
use crate::terms::{KEEPER, trash};
use crate::world::World;

fn install(world: &mut World, name: &str) -> PublicKey {
    world.install_lease(Lease::of(name, KEEPER, anybody()))
}

fn remove(world: &mut World, name: &str, for_good: bool) {
    let remove = Remove { machine: name.parse().unwrap(), for_good };
    ask::<()>(world, Function::remove.name(), &remove).unwrap();
}

fn restore(world: &mut World, machine: MachineId) -> Answer<()> {
    ask(world, Function::trash_restore.name(), &TrashRestore { machine })
}

fn names(world: &mut World) -> Vec<String> {
    let list: MachineList = ask(world, Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    list.machines.iter().map(|machine| machine.name.to_string()).collect()
}

#[test]
fn a_machine_that_was_removed_is_fetched_back_with_its_key_and_what_it_stored() {
    let mut world = World::new(|_| {});
    let key = install(&mut world, "keeper");
    world.call(0, &key, "keep", None).unwrap();
    let waiting = world.start_call(0, &key, "wait", None, Duration::from_secs(900));
    world.pass(Duration::from_secs(1));
    remove(&mut world, "keeper", false);
    world.pass(Duration::from_secs(10));
    assert!(matches!(world.take_result(0, waiting), Some(Err(_))), "its callers are told");
    assert_eq!(names(&mut world), Vec::<String>::new());
    assert!(world.call(0, &key, "kept", None).is_err(), "nobody answers for it");
    let status: DeviceStatus = ask(&mut world, Function::status.name(), &()).unwrap();
    assert_eq!((status.machines, status.trash_machines), (0, 1));
    assert!(status.trash_bytes > 0);

    // Over a restart, and a restart without warning.
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass(Duration::from_secs(1));
    let trashed = trash(&mut world);
    assert_eq!(trashed.len(), 1);
    assert!(trashed[0].stored_bytes > 0 && trashed[0].code_bytes > 0);
    restore(&mut world, trashed[0].id).unwrap();
    assert_eq!(world.call(0, &key, "kept", None), Ok(Some(b"key".to_vec())));
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.call(0, &key, "kept", None), Ok(Some(b"key".to_vec())));
    assert_eq!(trash(&mut world).len(), 0);
}

#[test]
fn a_name_is_free_while_its_machine_is_in_the_trash_which_comes_back_when_it_is_free_again() {
    let mut world = World::new(|_| {});
    let old = install(&mut world, "keeper");
    world.call(0, &old, "keep", None).unwrap();
    remove(&mut world, "keeper", false);
    let again =
        Lease::of("keeper", KEEPER, anybody()).sign(&world.owner(), world.node.device_key());
    let refused = world.try_install(&again.package, &again.placement);
    assert!(matches!(refused, Err(ControlError::Refused(_))), "an old placement doesn't count");
    let mut lease = Lease::of("keeper", KEEPER, anybody());
    lease.sequence = 2;
    let new = world.install_lease(lease);
    assert_ne!(old, new, "another machine");
    assert_eq!(world.call(0, &new, "kept", None), Ok(None));
    let in_trash = trash(&mut world)[0].id;
    assert!(matches!(restore(&mut world, in_trash), Err(ControlError::Refused(_))));
    remove(&mut world, "keeper", true);
    restore(&mut world, in_trash).unwrap();
    assert_eq!(world.call(0, &old, "kept", None), Ok(Some(b"key".to_vec())));
}

#[test]
fn the_trash_is_emptied_by_the_owner_or_after_its_span_and_pays_for_its_flash_until_then() {
    let mut world = World::new(|_| {});
    for name in ["one", "two", "three"] {
        let key = install(&mut world, name);
        world.call(0, &key, "keep", None).unwrap();
        remove(&mut world, name, false);
    }
    let two = trash(&mut world).into_iter().find(|one| one.name.as_str() == "two").unwrap();
    let empty = TrashEmpty { machine: Some(two.id) };
    ask::<()>(&mut world, Function::trash_empty.name(), &empty).unwrap();
    assert_eq!(trash(&mut world).len(), 2);
    let free = |world: &mut World| {
        ask::<DeviceStatus>(world, Function::status.name(), &()).unwrap().code_bytes_free
    };
    let before = free(&mut world);
    world.skip(Duration::from_secs(7 * 24 * 3600 - 60));
    assert_eq!(trash(&mut world).len(), 2);
    let page: ReceiptPage =
        ask(&mut world, Function::receipts.name(), &ReceiptQuery { skip: 0 }).unwrap();
    let paid = page.receipts.iter().map(|bytes| Receipt::verify(bytes).unwrap().0);
    let paid: u64 =
        paid.filter(|one| one.name.as_str() == "one").map(|r| r.usage.code_byte_ms).sum();
    assert!(paid > 6 * 24 * 3_600_000 * 400, "{paid}");
    world.skip(Duration::from_secs(120));
    assert_eq!(trash(&mut world).len(), 0);
    assert!(free(&mut world) > before);
    let gone = two.id;
    assert!(matches!(restore(&mut world, gone), Err(ControlError::Refused(_))));
}

#[test]
fn told_time_deletes_nothing_from_the_trash() {
    let mut world = World::new(|_| {});
    install(&mut world, "keeper");
    remove(&mut world, "keeper", false);
    let told = tenure_wire::control::TellTime { unix_s: 4_000_000_000 };
    ask::<()>(&mut world, Function::time.name(), &told).unwrap();
    world.pass(Duration::from_secs(1));
    assert_eq!(trash(&mut world).len(), 1);
}

#[test]
fn a_power_cut_at_any_write_of_a_removal_leaves_the_machine_whole_or_in_the_trash() {
    for cut in 0.. {
        let mut world = World::new(|_| {});
        let key = install(&mut world, "keeper");
        world.call(0, &key, "keep", None).unwrap();
        world.fuse.set(Some(cut));
        let device = world.node.device_machine();
        let remove = Remove { machine: "keeper".parse().unwrap(), for_good: false };
        let parameter = postcard::to_allocvec(&remove).unwrap();
        let answer =
            world.call(0, &device, Function::remove.name(), Some(&parameter)).unwrap().unwrap();
        let answer: Answer<()> = decode_answer(&answer);
        let was_cut = world.fuse.get() == Some(0);
        let at: Instant = world.now;
        let mut world = world.off_until(at + Duration::from_secs(5), Instant::BOOT);
        world.pass(Duration::from_secs(1));
        let trashed = trash(&mut world);
        if let [machine] = &trashed[..] {
            restore(&mut world, machine.id).unwrap();
        } else {
            assert!(answer.is_err(), "what was acknowledged is kept");
        }
        assert_eq!(names(&mut world), ["keeper"]);
        assert_eq!(world.call(0, &key, "kept", None), Ok(Some(b"key".to_vec())));
        if !was_cut {
            assert!(cut > 3, "the removal writes");
            return;
        }
    }
}
