//! The settings that a device's folder remembers, and the errors about a `device.toml` that can't be used.

use crate::harness::User;

#[test]
fn what_a_device_was_told_once_it_remembers() {
    let user = User::new();
    let first = ["device", "--data", "attic", "--listen", "127.0.0.1:0", "--json"];
    let told = ["--policy", "weighted-fair", "--memory-bytes", "300000", "--receipts-every", "6h"];
    let device = crate::harness::Process::start(user.command(&[&first[..], &told].concat()));
    assert_eq!(device.interrupt().code(), Some(0));
    let remembered = std::fs::read_to_string(user.path("attic/device.toml")).unwrap();
    for line in [
        "name = \"attic\"",
        "policy = \"weighted-fair\"",
        "memory_bytes = 300000",
        "receipts_every_s = 21600",
    ] {
        assert!(remembered.contains(line), "{line}: {remembered}");
    }
    let device = user.device("attic", None);
    let list = user.json(&["list", "--device", &device.address]);
    assert_eq!(list["policy"], "weighted-fair");
}

#[test]
fn settings_that_cannot_be_used_are_named_and_left_as_they_are() {
    let user = User::new();
    assert_eq!(user.device("attic", None).interrupt().code(), Some(0));
    let path = user.path("attic/device.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    for (from, to, complaint) in [
        ("name = \"attic\"", "name = \"The Attic\"", "name = `The Attic`"),
        ("policy = \"round-robin\"", "policy = \"lottery\"", "there are round-robin"),
        ("policy = \"round-robin\"", "memory_bytes = -1", "memory_bytes"),
        ("policy = \"round-robin\"", "colour = \"red\"", "colour"),
        ("owner_signing_key = \"", "owner_signing_key = \"x", "the owner's keys"),
        ("name =", "name", "device.toml"),
    ] {
        assert!(good.contains(from), "{good}");
        let bad = good.replacen(from, to, 1);
        std::fs::write(&path, &bad).unwrap();
        let said = user.error(&["device", "--data", "attic", "--listen", "127.0.0.1:0"]);
        assert!(said.contains("device.toml can't be used; mend it"), "{to}: {said}");
        assert!(said.contains(complaint), "{to}: {said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bad, "{to}");
    }
}
