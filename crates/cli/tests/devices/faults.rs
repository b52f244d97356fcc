//! One machine's trouble is its own.

use crate::guests::package;
use crate::harness::{User, on};

#[test]
fn spinner_is_preempted_while_others_answer() {
    let user = User::new();
    let mut device = user.device("attic", None);
    user.install(&device, &["spinner", "counter"]);
    device.wait_for_log("spinner", "still spinning");
    for count in 1..=5 {
        assert_eq!(user.call(on(&device), &["counter", "add"]), count.to_string());
    }
    device.wait_for_log("spinner", "still spinning");
    let list = user.json(&["list", "--device", &device.address]);
    let state = |name| {
        let mut machines = list["machines"].as_array().unwrap().iter();
        machines.find(|machine| machine["name"] == name).unwrap()["state"].clone()
    };
    // On a fast computer it has used up its fuel for this second.
    let spins = state("spinner");
    assert!(spins == "ready" || spins == "throttled", "{spins}");
    assert_eq!(state("counter"), "idle");
}

/// How the owner is told of that fault. A C program's own stack may end before the machine's does.
pub(crate) fn told_of(way: &str, fault: &str) -> String {
    let (_, what) = fault.split_once(&format!("`{way}`: ")).expect("a fault");
    let is_for_budget = fault.contains("call stack exhausted") || fault.contains("budget");
    let what = what.trim_end();
    if is_for_budget {
        format!("`{way}` was stopped: {what}")
    } else if way == "give_up" {
        format!("`{way}` failed: gave up, as it was told: {what}")
    } else {
        format!("`{way}` failed: {what}")
    }
}

#[test]
fn crasher_stops_alone_comes_back_and_tells_its_owner_why() {
    let user = User::new();
    let mut device = user.device("attic", None);
    user.install(&device, &["crasher", "counter"]);
    let ways = [
        ("unreachable", "unreachable"),
        ("out_of_bounds", "memory"),
        ("stack_overflow", ""),
        ("division", "divi"),
        ("give_up", "aborted"),
    ];
    for (way, inside) in ways {
        let error = user.call_error(on(&device), &["crasher", way]);
        let fault = device.wait_for_log("crasher", &format!("stopped while serving `{way}`: "));
        assert!(error.starts_with(&told_of(way, &fault)), "{error}");
        assert!(fault.contains(inside), "the owner's log says why: {fault}");
        assert_eq!(user.call(on(&device), &["counter", "value"]), "0", "the others go on");
        assert_eq!(user.call(on(&device), &["crasher", "ping"]), "pong", "it comes back");
        // Or the next wait would be longer by what was held against it before.
        user.ok(&["unban", "crasher", "--device", &device.address]);
    }
}

#[test]
fn caller_machine_sees_an_execution_error_and_nothing_of_the_callees_inside() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["crasher", "probe"]);
    let answer = user.call(on(&device), &["probe", "call", "crasher give_up"]);
    assert_eq!(answer, "execution error");
}

#[test]
fn log_and_list_name_the_source_line_of_a_fault_if_given_exactly_that_package() {
    let user = User::new();
    let mut device = user.device("attic", None);
    user.install(&device, &["crasher"]);
    user.call_error(on(&device), &["crasher", "stack_overflow"]);
    device.wait_for_log("crasher", "stopped while serving");
    let (place, crasher) = (["--device", &device.address], package("crasher"));
    let with = |command: &[&str], package: &str| {
        let arguments = [command, &place[..], &["--package", package]].concat();
        arguments.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run =
        |arguments: Vec<String>| user.ok(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let log = run(with(&["log", "crasher"], &crasher));
    assert!(log.contains("  in deeper (") && log.contains("src/main.c:2"), "{log}");
    let list = run(with(&["list", "--json"], &crasher));
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["machines"][0]["last_fault_place"]["function"], "deeper", "{list}");
    let arguments = with(&["log"], &package("counter"));
    let error = user.error(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(error.contains("no machine of exactly this build"), "{error}");
}
