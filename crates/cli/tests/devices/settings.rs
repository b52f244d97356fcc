//! The settings that a device's folder remembers, and the errors about a `device.toml` that can't be used.

use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Output};

use crate::harness::{Process, User, any_address};

/// Runs a command on a disk that has room for so many kilobytes in one file.
fn with_little_room(user: &User, kilobytes: u32, words: &[&str]) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"", &kilobytes.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_tenure")).args(words);
    command.current_dir(user.path("")).env("TENURE_HOME", user.home());
    command.output().unwrap()
}

#[test]
fn first_start_on_a_full_disk_leaves_nothing_to_mend() {
    let device = ["device", "--data", "deep/attic", "--listen", any_address(), "--json"];
    let hub = ["hub", "--data", "deep/hub", "--owner", "own", "--listen", any_address(), "--json"];
    for (words, rooms) in [(&device[..], [0, 0, 64]), (&hub, [0, 4, 64])] {
        let user = User::new();
        for (start, room) in rooms.into_iter().enumerate() {
            let output = with_little_room(&user, room, words);
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{words:?}, {room} KB: {error}");
            assert!(error.starts_with("{\"error\":"), "{error}");
            let is_left = user.path("deep/attic").exists();
            assert!(room > 0 || !is_left, "a device that has no settings leaves a folder");
            if start == 0 {
                user.ok(&["key", "--own"]);
            }
        }
        let started = Process::start(user.command(words));
        assert_eq!(started.interrupt().code(), Some(0));
    }
}

#[test]
fn port_in_use_leaves_no_folder_behind() {
    let user = User::new();
    let taken = UdpSocket::bind(any_address()).unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    user.error(&["device", "--data", "attic", "--listen", &listen]);
    user.error(&["hub", "--data", "hub", "--owner", "own", "--listen", &listen]);
    let pages = TcpListener::bind(any_address()).unwrap();
    let pages = pages.local_addr().unwrap().to_string();
    let hub = ["hub", "--data", "hub", "--owner", "own", "--listen", any_address()];
    user.error(&[&hub[..], &["--pages", &pages]].concat());
    assert!(!user.path("attic").exists() && !user.path("hub").exists());
}

#[test]
fn what_a_device_was_told_once_it_remembers() {
    let user = User::new();
    let first = ["device", "--data", "attic", "--listen", any_address(), "--json"];
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
        let said = user.error(&["device", "--data", "attic", "--listen", any_address()]);
        assert!(said.contains("device.toml can't be used; mend it"), "{to}: {said}");
        assert!(said.contains(complaint), "{to}: {said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bad, "{to}");
    }
}
