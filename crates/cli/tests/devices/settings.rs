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

/// Desk 21: with its mesh and without its address it came up where another device listens.
#[test]
fn device_that_is_started_without_a_word_listens_where_it_did_the_last_time() {
    let user = User::new();
    let listen = crate::harness::free_address();
    let start = ["device", "--data", "attic", "--json", "--listen", &listen];
    for words in [&start[..], &start[..4]] {
        let device = Process::start(user.command(words));
        assert_eq!(device.address, listen);
        assert_eq!(device.interrupt().code(), Some(0));
    }
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

/// Commands refuse the one before from then on, and nobody was told.
#[test]
fn device_that_takes_the_name_of_another_says_so() {
    let user = User::new();
    let first = user.device("attic", None);
    let second = user.device("elsewhere/attic", None);
    let refused = user.error(&["list", "--device", &first.address]);
    assert!(refused.contains("was replaced by"), "{refused}");
    let told = second.interrupt_and_read();
    assert!(told.contains("attic was another device until now, of the key "), "{told}");
    let enrolled = user.command(&["enrol", &first.address]).output().unwrap();
    let told = String::from_utf8(enrolled.stderr).unwrap();
    assert!(told.starts_with("note: attic was another device until now"), "{told}");
    user.ok(&["list", "--device", &first.address]);
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

#[test]
fn device_whose_settings_others_may_write_does_not_start() {
    // B-8: whoever writes device.toml says whose the device is.
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new();
    let words = ["device", "--data", "attic", "--listen", any_address(), "--json"];
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tenure")]).args(words);
    command.current_dir(user.path("")).env("TENURE_HOME", user.home());
    let device = Process::start(command);
    let mode = |place: &str| user.path(place).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("attic"), mode("attic/device.toml")), (0o700, 0o600));
    assert_eq!(device.interrupt().code(), Some(0));
    for (place, exposed, own) in [
        ("attic/device.toml", 0o666, 0o600),
        ("attic/device.toml", 0o602, 0o600),
        ("attic", 0o777, 0o700),
    ] {
        let set = |mode| {
            std::fs::set_permissions(user.path(place), std::fs::Permissions::from_mode(mode))
        };
        set(exposed).unwrap();
        let error = user.error(&words[..5]);
        assert!(error.contains("other users may write") && error.contains("chmod go-w"), "{error}");
        set(own).unwrap();
    }
    // A folder that others may only read is left as it is.
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(user.path("attic"), readable).unwrap();
    assert_eq!(Process::start(user.command(&words)).interrupt().code(), Some(0));
}

#[test]
fn device_whose_settings_belong_to_another_user_does_not_start() {
    // B-8: whoever owns a file may write it, whatever its mode says.
    let user = User::new();
    let words = ["device", "--data", "attic", "--listen", any_address(), "--json"];
    assert_eq!(Process::start(user.command(&words)).interrupt().code(), Some(0));
    let another = 1_234_502;
    for place in ["attic/device.toml", "attic"] {
        let give = |to| std::os::unix::fs::chown(user.path(place), Some(to), None);
        if give(another).is_err() {
            return tenure_testbed::skip_without_right("give a file to another user");
        }
        let error = user.error(&words[..words.len() - 1]);
        assert!(error.contains("other users may write"), "{error}");
        let command = error.split_once("yours alone with: ").unwrap().1.trim();
        assert!(command.starts_with("chown 0 attic attic/device.toml && chmod go-w"), "{error}");
        // The command that it says mends it.
        let run = Command::new("sh").args(["-c", command]).current_dir(user.path("")).status();
        assert!(run.unwrap().success(), "{command}");
        assert_eq!(Process::start(user.command(&words)).interrupt().code(), Some(0), "{place}");
    }
}

#[test]
fn process_of_a_device_is_not_dumpable() {
    // B-12: the files of such a process are root's (proc(5), PR_SET_DUMPABLE), and its memory is nobody else's.
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::process::CommandExt as _;
    let user = User::new();
    let another = 1_234_502;
    let is_root = std::os::unix::fs::chown(user.path(""), Some(another), Some(another)).is_ok();
    if !is_root {
        return tenure_testbed::skip_without_tool("root, to be another user");
    }
    let mut command =
        user.command(&["device", "--data", "attic", "--listen", any_address(), "--json"]);
    command.uid(another).gid(another);
    let device = Process::start(command);
    let memory = std::fs::metadata(format!("/proc/{}/mem", device.id())).unwrap();
    assert_eq!(memory.uid(), 0);
    assert_eq!(device.interrupt().code(), Some(0));
}
