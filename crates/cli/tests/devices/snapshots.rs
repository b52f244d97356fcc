//! A machine's tree fetched as it is, and put back.

use std::os::unix::fs::PermissionsExt as _;

use crate::guests::package;
use crate::harness::{User, on};

#[test]
fn what_a_machine_stored_is_kept_and_put_back() {
    let user = User::new();
    package("counter");
    let mut device = user.device("attic", None);
    user.install(&device, &["counter", "thermostat"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "41"]), "41");
    let address = device.address.clone();
    let at = ["--device", &address];
    let taken = user.json(&[&["snapshot", "counter", "-o", "kept"], &at[..]].concat());
    assert_eq!(taken["values"], 1);
    assert_eq!(user.call(on(&device), &["counter", "add", "1"]), "42");
    user.ok(&[&["restore", "counter", "kept"], &at[..]].concat());
    device.wait_for_log("counter", "its tree was restored");
    assert_eq!(user.call(on(&device), &["counter", "value"]), "41");

    let error = user.error(&[&["restore", "thermostat", "kept"], &at[..]].concat());
    assert!(error.contains("a snapshot of counter") && error.contains("--of-another"), "{error}");
    let mode = std::fs::metadata(user.path("kept")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "what a machine stores is its owner's alone");

    std::fs::write(user.path("other"), b"something else").unwrap();
    let error = user.error(&[&["restore", "counter", "other"], &at[..]].concat());
    assert!(error.contains("no snapshot"), "{error}");
    let error = user.error(&[&["snapshot", "kettle"], &at[..]].concat());
    assert!(error.contains("no machine `kettle`"), "{error}");
}
