//! Snapshots larger than one part: put back, and fetched as they were.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_package::{Entry, SnapshotWriter, ValueKind};
use tenure_wire::control::{
    Answer, ControlError, Function, InstallBegin, InstallChunk, Restore, SnapshotBegin,
    SnapshotInfo, SnapshotRead,
};

use crate::world::World;

pub(crate) fn ask<T: DeserializeOwned>(
    world: &mut World,
    function: &str,
    parameter: &impl Serialize,
) -> Answer<T> {
    let parameter = postcard::to_allocvec(parameter).unwrap();
    let device = world.node.device_machine();
    let answer = world.call(0, &device, function, Some(&parameter)).unwrap().unwrap();
    postcard::from_bytes(&answer).unwrap()
}

fn snapshot(world: &World, values: usize) -> Vec<u8> {
    let name = "keeper".parse().unwrap();
    let package = world.digest_of("keeper");
    let (mut writer, mut bytes) = SnapshotWriter::begin(&name, &package);
    for number in 0..values {
        let (path, value) = (format!("value.{number:03}"), vec![number as u8; 300]);
        bytes.extend(writer.value(&Entry { path: &path, kind: ValueKind::Bytes, value: &value }));
    }
    bytes.extend(writer.finish());
    bytes
}

fn restore(world: &mut World, bytes: &[u8]) -> Answer<()> {
    let begin = InstallBegin { bytes: bytes.len() as u32 };
    ask::<()>(world, Function::install_begin.name(), &begin).unwrap();
    for (number, chunk) in bytes.chunks(4096).enumerate() {
        let part = InstallChunk { offset: number as u32 * 4096, bytes: chunk };
        ask::<()>(world, Function::install_chunk.name(), &part).unwrap();
    }
    ask(world, Function::restore.name(), &Restore { machine: "keeper".parse().unwrap() })
}

#[test]
fn what_is_put_back_is_fetched_as_it_was_part_by_part() {
    let mut world = World::new(|_| {});
    world.install("keeper", 8, "");
    let bytes = snapshot(&world, 40);
    restore(&mut world, &bytes).unwrap();
    let begin = SnapshotBegin { machine: "keeper".parse().unwrap() };
    let info: SnapshotInfo = ask(&mut world, Function::snapshot_begin.name(), &begin).unwrap();
    assert_eq!((info.keys, info.bytes as usize), (40, bytes.len()));
    let mut fetched: Vec<u8> = Vec::new();
    while fetched.len() < bytes.len() {
        let read = SnapshotRead { offset: fetched.len() as u32 };
        fetched.extend::<Vec<u8>>(ask(&mut world, Function::snapshot_read.name(), &read).unwrap());
    }
    assert_eq!(fetched, bytes);
    let read = SnapshotRead { offset: 0 };
    let again: Answer<Vec<u8>> = ask(&mut world, Function::snapshot_read.name(), &read);
    assert_eq!(again, Err(ControlError::Transfer), "it was let go");
}

#[test]
fn a_snapshot_beyond_the_budget_changes_nothing() {
    let mut world = World::new(|_| {});
    world.install("keeper", 8, "");
    let (small, large) = (snapshot(&world, 2), snapshot(&world, 100));
    restore(&mut world, &small).unwrap();
    assert!(matches!(restore(&mut world, &large), Err(ControlError::Full(_))));
    let begin = SnapshotBegin { machine: "keeper".parse().unwrap() };
    let info: SnapshotInfo = ask(&mut world, Function::snapshot_begin.name(), &begin).unwrap();
    assert_eq!(info.keys, 2);
}
