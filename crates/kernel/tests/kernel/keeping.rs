use tenure_kernel::{InstallError, KERNEL_TREE, unreadable};
use tenure_store::ValueKind;
use tenure_wire::Budget;
use tenure_wire::host_call::HostError;

use crate::world::{Device, digit, name, text};

const NOTEBOOK: &str = r#"(data (i32.const 0) "M.N")
    (func (export "write") (local $length i32)
      (local.set $length (call $parameter_length))
      (drop (call $parameter_read (i32.const 0) (i32.const 4096) (local.get $length)))
      (drop (call $tree_set (i32.const 0) (i32.const 3) (i32.const 1)
        (i32.const 4096) (local.get $length))))
    (func (export "read") (local $length i32)
      (local.set $length
        (call $tree_get (i32.const 0) (i32.const 3) (i32.const 4096) (i32.const 1024)))
      (if (i32.ge_s (local.get $length) (i32.const 0))
        (then (drop (call $reply (i32.const 4096) (local.get $length))))))
    (func (export "status")
      (call $reply_digit (i32.sub (i32.const 0)
        (call $tree_get (i32.const 0) (i32.const 3) (i32.const 4096) (i32.const 1024)))))"#;

#[test]
fn what_a_machine_stored_is_there_after_a_loss_of_power() {
    let mut device = Device::new();
    let notebook = device.install("notebook", NOTEBOOK);
    device.call(notebook, "write", Some(b"kept")).unwrap();
    let mut device = device.reboot();
    assert_eq!(text(device.call(notebook, "read", None)), "kept");
    let look = device.kernel.look(&name("notebook"), "").unwrap();
    assert_eq!(look.children, ["M", "born"]);
}

#[test]
fn an_update_keeps_the_tree_and_an_older_placement_is_refused() {
    let mut device = Device::new();
    let notebook = device.install("notebook", NOTEBOOK);
    device.call(notebook, "write", Some(b"kept")).unwrap();
    let updated = format!(r#"{NOTEBOOK} (func (export "more"))"#);
    device.try_install("notebook", &updated, 2, Budget::default()).unwrap();
    assert_eq!(text(device.call(notebook, "read", None)), "kept");
    assert_eq!(device.call(notebook, "more", None), Ok(None));
    let older = device.try_install("notebook", NOTEBOOK, 2, Budget::default());
    assert_eq!(older, Err(InstallError::Stale));
    assert_eq!(device.reboot().kernel.machines().count(), 1);
}

#[test]
fn a_removed_machine_leaves_nothing_to_its_successor() {
    let mut device = Device::new();
    let notebook = device.install("notebook", NOTEBOOK);
    device.call(notebook, "write", Some(b"secret")).unwrap();
    device.kernel.tenancy(device.now).remove(&name("notebook")).unwrap();
    assert_eq!(
        device.kernel.tenancy(device.now).remove(&name("notebook")),
        Err(InstallError::NotFound)
    );
    let successor = device.install("successor", NOTEBOOK);
    assert_eq!(device.call(successor, "read", None), Ok(None));
    assert_eq!(device.reboot().kernel.machines().count(), 1);
}

#[test]
fn a_damaged_image_stops_its_machine_and_no_other() {
    let mut device = Device::new();
    let good = device.install("good", NOTEBOOK);
    device.install("hurt", NOTEBOOK);
    let hurt = name("hurt");
    let extent = {
        let info = device.kernel.machines().find(|info| info.record.name == hurt).unwrap();
        info.record.image
    };
    let mut draft = tenure_kernel::Draft::new(extent);
    device.kernel.code().append(&mut draft, &[0; 64]).unwrap();
    device.kernel.code().finish(draft).unwrap();
    let mut device = device.reboot();
    device.settle(10);
    assert!(device.logged("hurt stopped: its image in flash is damaged"), "{:?}", device.log);
    assert_eq!(device.call(good, "read", None), Ok(None));
}

#[test]
fn an_install_cut_at_any_flash_operation_leaves_all_of_it_or_nothing() {
    let (mut before, mut after) = (0, 0);
    for operations in 0..200 {
        let mut device = Device::new();
        let notebook = device.install("notebook", NOTEBOOK);
        device.call(notebook, "write", Some(b"kept")).unwrap();
        device.kernel.store().flash_mut().cut_power_after(operations, operations);
        let installed = device.try_install("other", NOTEBOOK, 1, Budget::default()).is_ok();
        let still_on = !device.kernel.store().flash().is_off();
        let mut device = device.reboot();
        let there = device.kernel.machines().any(|info| info.record.name == name("other"));
        let born =
            device.kernel.look(&name("other"), "born").is_ok_and(|look| look.value.is_some());
        assert_eq!(there, born, "cut after {operations} operations");
        assert!(there || !installed, "acknowledged, then lost: {operations} operations");
        assert_eq!(text(device.call(notebook, "read", None)), "kept");
        *(if there { &mut after } else { &mut before }) += 1;
        if still_on {
            break;
        }
    }
    assert!(before > 0 && after > 0, "the cut fell on both sides: {before} and {after}");
}

/// D-6b.
#[test]
fn machine_whose_record_rots_keeps_its_slot_and_its_values_beside_newcomers() {
    let record = "machines.0";
    // Its value, and all of it: of a record whose head rotted nothing is left.
    for rot in [Some([0xFF]), None] {
        let mut device = Device::new();
        let notebook = device.install("notebook", NOTEBOOK);
        device.call(notebook, "write", Some(b"kept")).unwrap();
        let store = device.kernel.store();
        let kept = store.get(KERNEL_TREE, record).unwrap().unwrap().bytes;
        match rot {
            Some(value) => store.set(KERNEL_TREE, record, ValueKind::Bytes, &value).unwrap(),
            None => drop(store.delete(KERNEL_TREE, record).unwrap()),
        }
        let mut device = device.reboot();
        assert_eq!(unreadable(&device.kernel).count(), 1);
        device.install("other", NOTEBOOK);
        device.kernel.store().set(KERNEL_TREE, record, ValueKind::Bytes, &kept).unwrap();
        let mut device = device.reboot();
        assert_eq!(unreadable(&device.kernel).count(), 0);
        let look = device.kernel.look(&name("notebook"), "M.N").unwrap();
        assert_eq!(look.value.unwrap().bytes, b"kept");
    }
}

/// D-6b.
#[test]
fn slot_of_an_unreadable_machine_is_cleared_by_its_owner_alone_and_then_free() {
    let mut device = Device::new();
    device.install("notebook", NOTEBOOK);
    device.install("other", NOTEBOOK);
    device.kernel.store().set(KERNEL_TREE, "machines.0", ValueKind::Bytes, &[0xFF]).unwrap();
    let mut device = device.reboot();
    let (slot, _) = unreadable(&device.kernel).next().unwrap();
    let now = device.now;
    let next = tenure_kernel::Slot::new(slot.index() + 1).unwrap();
    assert_eq!(device.kernel.tenancy(now).clear(next), Err(InstallError::NotFound));
    assert_eq!(device.kernel.tenancy(now).clear(slot), Ok(()));
    assert_eq!(unreadable(&device.kernel).count(), 0);
    assert_eq!(device.kernel.store().keys(tenure_store::TreeId(1)), 0);
    device.install("third", NOTEBOOK);
    assert!(device.kernel.store().exists(KERNEL_TREE, "machines.0").unwrap());
}

/// D-10.
#[test]
fn damaged_value_is_told_as_one_to_the_owner_and_to_its_machine_and_hides_no_other() {
    let mut device = Device::new();
    let notebook = device.install("notebook", NOTEBOOK);
    device.call(notebook, "write", Some(b"a value to find")).unwrap();
    let bytes = device.kernel.store().flash_mut().bytes_mut();
    let at = bytes.windows(15).position(|window| window == b"a value to find").unwrap();
    // More than one bit, so that it can't be mended.
    bytes[at] ^= 3;
    let look = device.kernel.look(&name("notebook"), "M.N").unwrap();
    assert_eq!((look.value, look.is_damaged), (None, true));
    assert_eq!(device.kernel.look(&name("notebook"), "").unwrap().children, ["M", "born"]);
    assert!(!device.kernel.look(&name("notebook"), "M").unwrap().is_damaged);
    // 10, the device's failure, as a character.
    assert_eq!(text(device.call(notebook, "status", None)), digit(HostError::Device));
    device.call(notebook, "write", Some(b"again")).unwrap();
    assert_eq!(text(device.call(notebook, "read", None)), "again");
}
