//! A flash on which anything may have happened: what can be mounted works on.
//!
//! The input is what differs from a store that has been used.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_hal::FlashGeometry;
use tenure_hal::simulated::RamFlash;
use tenure_store::{Store, TreeId, ValueKind};

const GEOMETRY: FlashGeometry =
    FlashGeometry { sector_bytes: 1024, sector_count: 8, program_bytes: 4 };
const TREE: TreeId = TreeId(1);

fuzz_target!(|bytes: &[u8]| {
    let mut flash = used_store();
    for change in bytes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let held = flash.bytes_mut();
        let at = at % held.len();
        held[at] = change[2];
    }
    let Ok((mut store, _)) = Store::mount(flash) else { return };
    let written = store.set(TREE, "probe.a", ValueKind::Bytes, b"value");
    if written.is_ok() {
        let read = store.get(TREE, "probe.a");
        assert_eq!(read.ok().flatten().map(|value| value.bytes), Some(b"value".to_vec()));
    }
    let trees: Vec<_> = store.trees().collect();
    for tree in trees {
        let _ = store.children(tree, "");
        let _ = store.delete(tree, "");
    }
    assert!(Store::mount(store.into_flash()).is_ok(), "a store that works can be mounted again");
});

fn used_store() -> RamFlash {
    let mut store = Store::format(RamFlash::new(GEOMETRY)).expect("an erased flash");
    for round in 0..40_u8 {
        let path = ["a", "a.b", "a.c.d", "e"][usize::from(round) % 4];
        store.set(TREE, path, ValueKind::Bytes, &[round; 9]).expect("room for a few values");
    }
    store.into_flash()
}
