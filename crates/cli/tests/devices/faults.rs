//! One machine's trouble is its own.

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
    assert_eq!(state("spinner"), "ready");
    assert_eq!(state("counter"), "idle");
}

#[test]
fn crasher_stops_alone_comes_back_and_tells_callers_nothing() {
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
        assert_eq!(error, format!("`{way}` failed: execution error; see `tenure log crasher`"));
        let fault = device.wait_for_log("crasher", &format!("stopped while serving `{way}`: "));
        assert!(fault.contains(inside), "the owner's log says why: {fault}");
        assert_eq!(user.call(on(&device), &["counter", "value"]), "0", "the others go on");
        assert_eq!(user.call(on(&device), &["crasher", "ping"]), "pong", "it comes back");
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
