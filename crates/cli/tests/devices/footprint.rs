//! The memory that a device's process has of its own.

use crate::harness::{Process, User, on};

/// The most that an unoptimised build may take, which needs half of it: less than a copy of the flash (8 MiB) beside that.
const BYTES_MAX: u64 = 11 << 20;

/// The bytes of a process that no file stands for (proc_pid_status(5)).
fn own_bytes(device: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", device.id())).unwrap();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    1024 * anonymous.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

#[test]
fn new_device_keeps_no_copy_of_its_flash_in_memory_and_nor_does_one_that_ran_before() {
    let user = User::new();
    let device = user.device("attic", None);
    assert!(own_bytes(&device) < BYTES_MAX, "{}", own_bytes(&device));
    user.install(&device, &["counter"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "7"]), "7");
    device.kill();
    let device = user.device("attic", None);
    assert_eq!(user.call(on(&device), &["counter", "add", "1"]), "8");
    assert!(own_bytes(&device) < BYTES_MAX, "{}", own_bytes(&device));
}
