//! The tree on flash: format, mount, set, get, delete, list.
#![no_std]
#![no_main]

use tenure_size::{UnknownFlash, keep, probe, unknown_bytes};
use tenure_store::{Store, TreeId, ValueKind};

probe!({
    keep(Store::format(UnknownFlash).is_ok());
    if let Ok((mut store, report)) = Store::mount(UnknownFlash) {
        keep(report);
        let path = core::str::from_utf8(unknown_bytes()).unwrap_or_default();
        keep(store.set(TreeId(1), path, ValueKind::Bytes, unknown_bytes()));
        keep(store.get(TreeId(1), path));
        keep(store.children(TreeId(1), path));
        keep(store.delete(TreeId(1), path));
    }
});
