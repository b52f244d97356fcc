//! Flash that is full, damaged, somebody else's or in use.

use crate::harness::{Process, User, any_address, on};

#[test]
fn full_store_refuses_new_values_and_keeps_the_old() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["probe", "counter", "thermostat"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "7"]), "7");
    let filled = user.call(on(&device), &["--timeout", "60", "probe", "fill"]);
    let (count, reason) = filled.split_once(' ').unwrap();
    let count: usize = count.parse().unwrap();
    assert!(count > 400, "the store has room for many: {filled}");
    assert_eq!(reason, "no room left");
    assert_eq!(
        user.call(on(&device), &["counter", "value"]),
        "7",
        "the others keep what they have"
    );
    let refused = user.error(&[
        "install",
        &crate::guests::package("nihilo-a"),
        "--grant",
        "all",
        "--device",
        &device.address,
    ]);
    assert!(
        refused.contains(
            "the device is full: the device's store is full; take off what you don't need (`tenure remove`, `tenure secret remove`), or make it smaller"
        ),
        "{refused}"
    );
    let last =
        user.json(&["tree", "probe", &format!("big.{}", count - 1), "--device", &device.address]);
    let hex = format!("{:02x}", (count - 1) % 256).repeat(2048);
    assert_eq!(last["tree"][format!("big.{}", count - 1)]["hex"], hex);
    device.kill();
    let device = user.device("attic", None);
    assert_eq!(user.call(on(&device), &["counter", "value"]), "7");
    // Not even room for the trash's mark is left, which the refusal says with the way out.
    let full = user.error(&["remove", "probe", "--device", &device.address]);
    assert!(full.contains("remove it for good"), "{full}");
    user.ok(&["remove", "probe", "--for-good", "--device", &device.address]);
    assert_eq!(user.call(on(&device), &["counter", "add"]), "8");
    user.install(&device, &["nihilo-a"]);
}

#[test]
fn damaged_flash_boots_says_what_it_found_and_keeps_what_is_intact() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["probe", "counter", "thermostat"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "7"]), "7");
    assert_eq!(user.call(on(&device), &["thermostat", "set", "19.5"]), "19.5");
    user.call(on(&device), &["thermostat", "set", "23.5"]);
    let keys = user.json(&["key", "--device", &device.address]);
    device.kill();

    // Bits rot in the value that was written last.
    let path = user.path("attic/flash.bin");
    let mut flash = std::fs::read(&path).unwrap();
    assert!(!flash.windows(4).any(|window| window == b"23.5"), "values are sealed");
    let store = &flash[..512 * 4096];
    let path_in_flash = store.windows(6).rposition(|window| window == b"target").unwrap();
    flash[path_in_flash + 10] ^= 0x04;
    std::fs::write(&path, &flash).unwrap();

    let mut device = user.device("attic", None);
    let found = device.wait_for_event("mounted");
    assert_eq!(found["damaged_records"], 1);
    assert_eq!(
        user.call(on(&device), &["thermostat", "read"]),
        "19.5",
        "the value before it holds"
    );
    assert_eq!(user.call(on(&device), &["counter", "value"]), "7", "the others are intact");
    assert_eq!(user.json(&["key", "--device", &device.address]), keys);
}

#[test]
fn damaged_code_stops_its_machine_alone() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["thermostat", "counter"]);
    device.kill();
    // Code flash begins behind the store's 2 MiB; the first image is the thermostat's.
    let path = user.path("attic/flash.bin");
    let mut flash = std::fs::read(&path).unwrap();
    for byte in &mut flash[(2 << 20) + 200..(2 << 20) + 240] {
        *byte ^= 0x55;
    }
    std::fs::write(&path, &flash).unwrap();
    let device = user.device("attic", None);
    assert_eq!(user.call(on(&device), &["counter", "add"]), "1");
    let error = user.call_error(on(&device), &["thermostat", "read"]);
    assert_eq!(error, "`read` failed: its image in flash is damaged");
    let log = user.ok(&["log", "thermostat", "--device", &device.address]);
    assert!(log.contains("fault"), "the owner's log says why: {log}");
    // Installed anew it is as it was.
    user.install(&device, &["thermostat"]);
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "21.0");
}

#[test]
fn folder_that_is_no_devices_is_left_alone() {
    let user = User::new();
    let start = |folder: &str| {
        user.error(&["device", "--data", folder, "--listen", any_address(), "--name", "attic"])
    };
    std::fs::create_dir(user.path("letters")).unwrap();
    std::fs::write(user.path("letters/to-ada.txt"), "Dear Ada").unwrap();
    assert_eq!(
        start("letters"),
        "letters holds other files and is no device's; name a new or empty folder"
    );
    assert_eq!(std::fs::read_dir(user.path("letters")).unwrap().count(), 1);
    let error = start("letters/to-ada.txt");
    assert!(error.contains("letters/to-ada.txt"), "{error}");
    let hub = user.error(&["hub", "--data", "letters", "--open", "--listen", any_address()]);
    assert_eq!(hub, "letters holds other files and is no hub's; name a new or empty folder");
}

#[test]
fn flash_of_something_else_is_left_alone() {
    let user = User::new();
    user.device("attic", None).kill();
    let start = || user.error(&["device", "--data", "attic", "--listen", any_address()]);
    let path = user.path("attic/flash.bin");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, vec![0x5A; whole.len()]).unwrap();
    let foreign = start();
    assert!(foreign.starts_with("attic/flash.bin: the store can't be taken up: "), "{foreign}");
    assert!(
        std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0x5A),
        "nothing is overwritten"
    );
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let short = start();
    assert!(short.contains("attic/flash.bin"), "{short}");
    std::fs::write(&path, &whole).unwrap();
    user.device("attic", None);
}

#[test]
fn folder_in_use_is_refused_and_its_user_goes_on() {
    let user = User::new();
    let device = user.device("attic", None);
    let error = user.error_after(&["device", "--data", "attic", "--listen", any_address()]);
    assert!(error.starts_with("attic/flash.bin is in use by another process"), "{error}");
    // A start that is refused changes nothing for whoever has the folder.
    let (settings, note) = (user.path("attic/device.toml"), user.path("attic/watchdog.bin"));
    let before = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&note, "left by the watchdog").unwrap();
    let other = ["--policy", "weighted-fair", "--listen", any_address()];
    let error = user.error_after(&[&["device", "--data", "attic"][..], &other].concat());
    assert!(error.starts_with("attic/flash.bin is in use by another process"), "{error}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), before);
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "left by the watchdog");
    let hub: Process = user.hub();
    let error = user.error(&["hub", "--data", "hub", "--open", "--listen", any_address()]);
    assert!(error.starts_with("hub/hub.sqlite is in use by another process"), "{error}");
    user.json(&["list", "--device", &device.address]);
    drop(hub);
}

#[test]
fn device_started_while_its_predecessor_ends_waits_for_the_folder_and_says_so() {
    let user = User::new();
    let device = user.device("attic", None);
    let command = ["device", "--data", "attic", "--listen", any_address(), "--json"];
    let mut next = Process::spawn(user.command(&command));
    next.wait_for_event("folder-in-use");
    device.kill();
    let listening = next.wait_for_event("listening");
    user.ok(&["list", "--device", listening["address"].as_str().unwrap()]);
}
