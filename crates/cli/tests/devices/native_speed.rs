//! Machines that ask to be run at native speed: the same machines, another engine.

use tenure_cli::home::Home;
use tenure_package::{CodeKind, Engine, Manifest, Package, PackageBuilder};

use crate::faults::told_of;
use crate::guests::package;
use crate::harness::{Process, User, on};

/// Installs the guest `name` with its package changed to ask for native speed.
fn install_for_speed(user: &User, device: &Process, name: &str) {
    let bytes = std::fs::read(package(name)).unwrap();
    let asked = Package::parse(&bytes).unwrap();
    let manifest = Manifest { engine: Engine::NativeSpeed, ..asked.manifest().clone() };
    let key = Home::at(user.home()).tenant_key().unwrap();
    let changed =
        PackageBuilder::new(manifest, asked.code(CodeKind::WebAssembly).unwrap().to_vec())
            .unwrap()
            .sign(&key)
            .unwrap();
    let path = user.path(&format!("{name}.tenure"));
    std::fs::write(&path, changed).unwrap();
    let path = path.to_str().unwrap();
    user.ok(&["install", path, "--grant", "all", "--device", &device.address]);
}

fn engine_of(user: &User, device: &Process, name: &str) -> String {
    let list = user.json(&["list", "--device", &device.address]);
    let mut machines = list["machines"].as_array().unwrap().iter();
    let machine = machines.find(|machine| machine["name"] == name).unwrap();
    machine["engine"].as_str().unwrap().to_string()
}

#[test]
fn the_compiler_is_started_by_the_first_machine_that_asks_for_it() {
    let user = User::new();
    let device = user.device("attic", None);
    let has_compiler = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", device.id())).unwrap();
        let mut names = tasks.map(|it| std::fs::read_to_string(it.unwrap().path().join("comm")));
        names.any(|name| name.is_ok_and(|name| name.trim() == "compiler"))
    };
    user.install(&device, &["counter"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "7"]), "7");
    assert!(!has_compiler());
    install_for_speed(&user, &device, "probe");
    assert_eq!(user.call(on(&device), &["probe", "call", "counter value"]), "7");
    assert!(has_compiler());
}

#[test]
fn a_machine_at_native_speed_keeps_values_calls_others_and_is_there_after_a_restart() {
    let user = User::new();
    let device = user.device("attic", None);
    install_for_speed(&user, &device, "counter");
    install_for_speed(&user, &device, "probe");
    assert_eq!(user.call(on(&device), &["counter", "add", "7"]), "7");
    assert_eq!(user.call(on(&device), &["probe", "call", "counter value"]), "7");
    assert_eq!(engine_of(&user, &device, "counter"), "native-speed");
    assert_eq!(engine_of(&user, &device, "probe"), "native-speed");
    device.kill();
    let device = user.device("attic", None);
    assert_eq!(user.call(on(&device), &["counter", "add", "1"]), "8");
    assert_eq!(engine_of(&user, &device, "counter"), "native-speed");
}

#[test]
fn a_spinner_at_native_speed_is_preempted_while_others_answer() {
    let user = User::new();
    let mut device = user.device("attic", None);
    install_for_speed(&user, &device, "spinner");
    user.install(&device, &["counter"]);
    device.wait_for_log("spinner", "still spinning");
    for count in 1..=5 {
        assert_eq!(user.call(on(&device), &["counter", "add"]), count.to_string());
    }
    device.wait_for_log("spinner", "still spinning");
    assert_eq!(engine_of(&user, &device, "spinner"), "native-speed");
    assert_eq!(engine_of(&user, &device, "counter"), "vm");
}

#[test]
fn a_crash_at_native_speed_stops_that_machine_alone_and_names_the_place() {
    let user = User::new();
    let mut device = user.device("attic", None);
    install_for_speed(&user, &device, "crasher");
    for (way, inside) in [
        ("unreachable", "unreachable"),
        ("out_of_bounds", "memory"),
        ("stack_overflow", ""),
        ("division", "divi"),
        ("give_up", "aborted"),
    ] {
        let error = user.call_error(on(&device), &["crasher", way]);
        let fault = device.wait_for_log("crasher", &format!("stopped while serving `{way}`: "));
        assert!(error.starts_with(&told_of(way, &fault)), "{error}");
        assert!(fault.contains(inside), "the owner's log says why: {fault}");
        assert!(way == "give_up" || fault.contains(" at module offset 0x"), "{fault}");
        assert_eq!(user.call(on(&device), &["crasher", "ping"]), "pong", "it comes back");
        // Or the next wait would be longer by what was held against it before.
        user.ok(&["unban", "crasher", "--device", &device.address]);
    }
}
