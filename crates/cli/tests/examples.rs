//! The example machines: each is built, and does what its README says.

mod common;

use std::collections::BTreeSet;

use common::device::{Device, Queued};
use common::{Workbench, repository};
use tenure_wire::PublicKey;
use tenure_wire::host_call::HostError;

/// The examples without a `tests.toml`, and what runs them instead.
const RUN_ELSEWHERE: [(&str, &str); 8] = [
    ("camera", "its own tests"),
    ("climate", "a device with a thermometer, in `devices`"),
    ("doorbell", "a device with a button, in `devices`"),
    ("greenhouse", "the tutorial's commands, in `devices`"),
    ("nihilo-a", "this file, and two devices in `devices`"),
    ("nihilo-b", "this file, and two devices in `devices`"),
    ("spinner", "its neighbours, in `devices`"),
    ("weather", "this file, and devices with thermometers in `devices`"),
];

fn names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(repository().join("examples")).unwrap();
    let folders = entries.map(Result::unwrap).filter(|it| it.file_type().unwrap().is_dir());
    folders.map(|folder| folder.file_name().into_string().unwrap()).collect()
}

#[test]
fn each_example_stands_in_the_readme_with_a_page_and_is_run_by_tests() {
    let folder = repository().join("examples");
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let names = names();
    assert!(names.len() >= 20, "{names:?}");
    for name in &names {
        assert!(index.contains(&format!("[`{name}`]({name}/README.md)")), "{name} has no row");
        let page = std::fs::read_to_string(folder.join(name).join("README.md")).unwrap();
        assert!(page.starts_with(&format!("# {name}\n")), "{name} has no page");
        let has_tests = folder.join(name).join("tests.toml").is_file();
        let elsewhere = RUN_ELSEWHERE.iter().any(|(other, _)| other == name);
        assert!(has_tests != elsewhere, "{name} has tests, or its place in the list");
    }
}

#[test]
fn the_tests_that_examples_bring_pass() {
    let workbench = Workbench::new();
    let folder = repository().join("examples");
    let tested = names().into_iter().filter(|name| folder.join(name).join("tests.toml").is_file());
    for name in tested {
        workbench.copy_example(&name);
        let report = workbench.tenure_ok(&["test", &name]);
        assert!(report.contains(" passed"), "{name}: {report}");
    }
}

#[test]
fn weather_is_the_same_machine_in_each_language() {
    let workbench = Workbench::new();
    workbench.copy_example("weather");
    for language in ["rust", "c", "cpp", "zig", "assemblyscript", "javascript", "lua"] {
        if !workbench.has_language(language) {
            continue;
        }
        let report = workbench.tenure_ok(&["test", &format!("weather/{language}")]);
        assert!(report.contains("2 of 2 tests passed"), "{language}: {report}");
    }
}

fn package(name: &str) -> Vec<u8> {
    Workbench::new().build_example(name)
}

#[test]
fn hello_greets() {
    let mut device = Device::start(&package("hello"));
    assert_eq!(device.call("greet", Some("Ada")), Ok(Some("Hello, Ada!".into())));
    assert_eq!(device.call("greet", None), Ok(Some("Hello, world!".into())));
    assert_eq!(device.world().log, ["hello has started"]);
}

#[test]
fn thermostat_keeps_what_it_is_set_to() {
    let package = package("thermostat");
    let mut device = Device::start(&package);
    assert_eq!(device.call("read", None), Ok(Some("21.0".into())));
    assert_eq!(device.call("set", Some("19.5")), Ok(Some("19.5".into())));
    for nonsense in ["", "x", "4.9", "31", "-3", "19.55", "19.", "300000000000"] {
        assert_eq!(device.call("set", Some(nonsense)), Ok(Some("19.5".into())), "{nonsense}");
    }
    let tree = device.world().tree.clone();
    let mut restarted = Device::with(&package, |world| world.tree = tree);
    assert_eq!(restarted.call("read", None), Ok(Some("19.5".into())));
}

#[test]
fn dashboard_asks_each_room() {
    let mut device = Device::with(&package("dashboard"), |world| {
        let read = |room: &str| (format!("thermostat@{room}"), "read".to_owned());
        world.callees.insert(read("attic"), Ok(Some(b"20.0".to_vec())));
        world.callees.insert(read("cellar"), Err(HostError::Unreachable));
    });
    assert_eq!(device.world().log, ["watching 2 rooms"]);
    let page = "attic: 20.0\ncellar: (unreachable)\n";
    assert_eq!(device.call("show", None), Ok(Some(page.into())));
    assert_eq!(device.call("add", Some("bath thermostat@bath")), Ok(None));
    assert!(device.world().tree.contains_key("rooms.bath"));
    assert!(device.call("add", Some("nonsense")).unwrap_err().contains("not well formed"));
}

#[test]
fn crasher_fails_in_every_way_and_runs_again() {
    let package = package("crasher");
    for (function, reason) in [
        ("unreachable", "unreachable"),
        ("out_of_bounds", "out of bounds"),
        ("stack_overflow", "out of bounds"),
        ("division", "division by zero"),
        ("give_up", "gave up, as it was told"),
    ] {
        let mut device = Device::start(&package);
        let error = device.call(function, None).unwrap_err();
        assert!(error.contains(reason) || error.contains("divide by zero"), "{function}: {error}");
        assert_eq!(Device::start(&package).call("ping", None), Ok(Some("pong".into())));
    }
}

#[test]
fn counter_goes_on_where_it_was() {
    let package = package("counter");
    let mut device = Device::start(&package);
    assert_eq!(device.call("add", None), Ok(Some("1".into())));
    assert_eq!(device.call("add", Some("41")), Ok(Some("42".into())));
    let tree = device.world().tree.clone();
    let mut restarted = Device::with(&package, |world| world.tree = tree);
    assert_eq!(restarted.world().log, ["going on from 42"]);
    assert_eq!(restarted.call("value", None), Ok(Some("42".into())));
}

#[test]
fn spinner_is_small_and_offers_its_entry() {
    let bytes = package("spinner");
    let package = tenure_package::Package::parse(&bytes).unwrap();
    assert_eq!(package.manifest().exports, ["entry"]);
}

#[test]
fn nihilo_a_writes_reads_and_returns() {
    let mut device = Device::start(&package("nihilo-a"));
    assert_eq!(device.call("RPC", None), Ok(Some("hello, world".into())));
    assert_eq!(device.world().tree["M.N"], b"hello, world");
}

#[test]
fn nihilo_b_finds_its_peer_and_logs_the_result() {
    let peer = [9; 32];
    let mut device = Device::with(&package("nihilo-b"), |world| {
        world.local_peers = vec![[1; 32]];
        world.remote_peers = vec![peer, [2; 32]];
    });
    let call = Queued {
        target: format!("#{}", PublicKey(peer)),
        function: "RPC".into(),
        parameter: None,
        on_success: "success".into(),
        on_failure: "fail".into(),
    };
    assert_eq!(device.world().queued, [call]);
    device.call("success", Some("hello, world")).unwrap();
    device.call("fail", None).unwrap();
    assert_eq!(device.world().log, ["success", "hello, world", "failure"]);
}
