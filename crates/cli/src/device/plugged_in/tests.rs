//! A made file system with USB devices as Linux shows them.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// Plugs in a USB device that tells `manufacturer` and `product` of itself, with a terminal device of that name.
fn plug(root: &TempDir, terminal: &str, manufacturer: &str, product: &[u8]) {
    let device = root.path().join("sys/devices/usb1").join(terminal);
    let interface = device.join("1-1:1.0");
    let class = interface.join("tty").join(terminal);
    fs::create_dir_all(&class).unwrap();
    fs::write(device.join("manufacturer"), format!("{manufacturer}\n")).unwrap();
    fs::write(device.join("product"), product).unwrap();
    symlink("../..", class.join("device")).unwrap();
    let classes = root.path().join("sys/class/tty");
    fs::create_dir_all(&classes).unwrap();
    symlink(
        format!("../../devices/usb1/{terminal}/1-1:1.0/tty/{terminal}"),
        classes.join(terminal),
    )
    .unwrap();
    fs::create_dir_all(root.path().join("dev")).unwrap();
    fs::write(root.path().join("dev").join(terminal), b"").unwrap();
}

/// Names a terminal device as udev does.
fn name(root: &TempDir, id: &str, terminal: &str) {
    let by_id = root.path().join("dev/serial/by-id");
    fs::create_dir_all(&by_id).unwrap();
    symlink(format!("../../{terminal}"), by_id.join(id)).unwrap();
}

#[track_caller]
fn check(root: &TempDir, expected: &[&str]) {
    let expected: Vec<PathBuf> = expected.iter().map(|line| root.path().join(line)).collect();
    assert_eq!(lines(root.path()), expected);
}

#[test]
fn a_board_is_told_from_other_serial_lines_by_its_descriptor() {
    let root = TempDir::new().unwrap();
    plug(&root, "ttyACM0", "Raspberry Pi", b"Pico\n");
    plug(&root, "ttyACM1", MANUFACTURER, b"Tenure device\n");
    plug(&root, "ttyACM2", "Somebody", b"Tenure device\n");
    // A terminal device that is on no bus, as /dev/tty0.
    fs::create_dir_all(root.path().join("sys/class/tty/tty0")).unwrap();
    check(&root, &["dev/ttyACM1"]);
}

#[test]
fn boards_have_the_names_that_stay_where_there_are_any() {
    let root = TempDir::new().unwrap();
    plug(&root, "ttyACM0", MANUFACTURER, b"Tenure device\n");
    plug(&root, "ttyACM1", MANUFACTURER, b"Tenure device\n");
    name(&root, "usb-Tenure_Tenure_device-if00", "ttyACM1");
    name(&root, "usb-of-one-that-was-unplugged", "ttyACM9");
    check(&root, &["dev/serial/by-id/usb-Tenure_Tenure_device-if00", "dev/ttyACM0"]);
}

#[test]
fn descriptors_that_are_no_text_or_no_tree_at_all_are_nothing() {
    let root = TempDir::new().unwrap();
    check(&root, &[]);
    plug(&root, "ttyACM0", MANUFACTURER, b"\xff\xfeTenure device");
    plug(&root, "ttyACM1", MANUFACTURER, b"");
    plug(&root, "ttyACM2", MANUFACTURER, b"Tenure device\n");
    fs::remove_file(root.path().join("sys/devices/usb1/ttyACM2/product")).unwrap();
    check(&root, &[]);
}
