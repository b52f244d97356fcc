//! A store's flash and a base tree, as this version writes them: a later build finds the values in these bytes,
//! and takes no other version for its own.

use std::convert::Infallible;

use tenure_hal::simulated::RamFlash;
use tenure_hal::{Flash as _, FlashGeometry};
use tenure_store::{
    Base, BaseValue, Change, Hidden, MountError, MountReport, Overlay, Store, TreeId, Value,
    ValueKind, write_base,
};
use tenure_testbed::frozen;

const GEOMETRY: FlashGeometry =
    FlashGeometry { sector_bytes: 512, sector_count: 3, program_bytes: 4 };
const TREE: TreeId = TreeId(7);

fn kept(name: &str, written: &[u8]) -> Vec<u8> {
    frozen(env!("CARGO_MANIFEST_DIR"), name, written)
}

fn mount(bytes: &[u8]) -> Result<(Store<RamFlash>, MountReport), MountError> {
    let mut flash = RamFlash::new(GEOMETRY);
    flash.program(0, bytes).unwrap();
    Store::mount(flash)
}

#[test]
fn store_of_version_1_is_written_and_read() {
    let mut store = Store::format_with_salt(RamFlash::new(GEOMETRY), 0x0403_0201).unwrap();
    let text = |path, value| Change::Set { tree: TREE, path, kind: ValueKind::Text, value };
    store.set(TREE, "lamp.state", ValueKind::Text, b"on").unwrap();
    store.set(TREE, "gone", ValueKind::Bytes, &[1, 2, 3]).unwrap();
    // So many that a sector is reclaimed, and what it still holds is copied.
    for turn in 0..60_u8 {
        store.set(TREE, "turns", ValueKind::Bytes, &[turn]).unwrap();
    }
    store.delete(TREE, "gone").unwrap();
    let gone = Change::Delete { tree: TREE, path: "turns" };
    store.batch(&[text("lamp.state", b"dimmed"), text("lamp.hours", b"12"), gone]).unwrap();
    let bytes = kept("store-1", store.into_flash().bytes());

    let (mut store, report) = mount(&bytes).unwrap();
    assert_eq!((report.damaged_records, report.damaged_headers), (0, 0));
    let mut texts = |path| Some(String::from_utf8(store.get(TREE, path).unwrap()?.bytes).unwrap());
    assert_eq!(texts("lamp.state").as_deref(), Some("dimmed"));
    assert_eq!(texts("lamp.hours").as_deref(), Some("12"));
    assert_eq!((texts("gone"), texts("turns")), (None, None));

    let mut later = bytes;
    for header in later.chunks_mut(512).filter(|header| header.starts_with(b"TNR\x01")) {
        header[3] += 1;
    }
    assert_eq!(mount(&later).err(), Some(MountError::Foreign));
}

#[test]
fn base_tree_of_version_1_is_written_and_read() {
    let text = BaseValue { path: "lamp.state", kind: ValueKind::Text, bytes: b"on" };
    let raw = BaseValue { path: "lamp.curve", kind: ValueKind::Bytes, bytes: &[0, 255] };
    let mut written = Vec::new();
    let Ok(()) = write_base(&mut [text, raw], |part| {
        written.extend_from_slice(part);
        Ok::<(), Infallible>(())
    });
    let bytes = kept("base-1", &written);
    let mut store = Store::format(RamFlash::new(GEOMETRY)).unwrap();
    let base = Base::open(&bytes).unwrap();
    let hidden = &mut Hidden::default();
    let hidden_tree = TreeId(8);
    let mut tree = Overlay { store: &mut store, base, hidden, tree: TREE, hidden_tree };
    let of = |value: BaseValue<'_>| Value { kind: value.kind, bytes: value.bytes.to_vec() };
    assert_eq!(tree.get("lamp.curve"), Ok(Some(of(raw))));
    assert_eq!(tree.get("lamp.state"), Ok(Some(of(text))));

    let mut later = bytes.clone();
    later[3] += 1;
    assert!(Base::open(&later).is_none());
}
