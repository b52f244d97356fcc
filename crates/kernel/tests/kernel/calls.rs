use std::time::Duration;

use tenure_kernel::{CallId, Effect, NoResult, Ran};
use tenure_wire::Audience;
use tenure_wire::host_call::HostError;

use crate::world::{Device, key, text};

const ECHO: &str = r#"(export "echo" (func $echo)) (func (export "memory_trap") unreachable)"#;

/// Calls `target` at 0, `function` at 64 with its own parameter, and replies with what came back.
pub(crate) fn forwarder(target: &str, function: &str) -> String {
    format!(
        r#"(data (i32.const 0) "{target}") (data (i32.const 64) "{function}")
        (func (export "forward") (local $length i32)
          (local.set $length (call $parameter_length))
          (drop (call $parameter_read (i32.const 0) (i32.const 4096) (local.get $length)))
          (local.set $length (call $call
            (i32.const 0) (i32.const {}) (i32.const 64) (i32.const {})
            (i32.const 4096) (local.get $length) (i32.const 0)))
          (if (i32.lt_s (local.get $length) (i32.const 0))
            (then (call $reply_digit (i32.sub (i32.const 0) (local.get $length))) (return)))
          (drop (call $result_read (i32.const 0) (i32.const 8192) (local.get $length)))
          (drop (call $reply (i32.const 8192) (local.get $length))))"#,
        target.len(),
        function.len()
    )
}

/// Queues a call with callbacks that log what they are called with.
pub(crate) fn queuer(target: &str, retries: u32) -> String {
    format!(
        r#"(data (i32.const 0) "{target}") (data (i32.const 64) "echo")
        (data (i32.const 128) "on_success") (data (i32.const 160) "on_failure")
        (data (i32.const 192) "hello")
        (func (export "go")
          (drop (call $queue (i32.const 0) (i32.const {}) (i32.const 64) (i32.const 4)
            (i32.const 192) (i32.const 5) (i32.const 128) (i32.const 10)
            (i32.const 160) (i32.const 10) (i32.const 5000) (i32.const {retries}))))
        (func $note (param $length i32)
          (drop (call $parameter_read (i32.const 0) (i32.const 4096) (local.get $length)))
          (call $log (i32.const 2) (i32.const 4096) (local.get $length)))
        (func (export "on_success") (call $note (call $parameter_length)))
        (func (export "on_failure") (call $note (call $parameter_length)))"#,
        target.len()
    )
}

#[test]
fn a_call_from_outside_is_answered_with_the_result() {
    let mut device = Device::new();
    let echo = device.install("echo", ECHO);
    assert_eq!(text(device.call(echo, "echo", Some(b"hello"))), "hello");
    assert_eq!(device.call(echo, "echo", None), Ok(None), "a null parameter stays null");
    assert_eq!(text(device.call(echo, "echo", Some(b""))), "", "and an empty one empty");
}

#[test]
fn a_machine_that_calls_another_waits_while_others_run() {
    let mut device = Device::new();
    device.install("echo", ECHO);
    let forward = device.install("forward", &forwarder("echo", "echo"));
    assert_eq!(text(device.call(forward, "forward", Some(b"there and back"))), "there and back");
}

#[test]
fn a_machine_can_call_its_own_functions_by_queue() {
    let mut device = Device::new();
    let body = queuer("", 0) + r#"(func (export "echo") (call $echo))"#;
    let own = device.install("own", &body);
    device.call(own, "go", None).unwrap();
    device.settle(100);
    assert!(device.logged("own hello"), "{:?}", device.log);
}

#[test]
fn a_machine_that_would_wait_for_itself_is_told_so_at_once() {
    let mut device = Device::new();
    for target in ["", "forward"] {
        let forward = device.try_install(
            "forward",
            &forwarder(target, "forward"),
            1 + target.len() as u64,
            tenure_wire::Budget::default(),
        );
        let digit = text(device.call(forward.unwrap(), "forward", Some(b"")));
        assert_eq!(digit, (-HostError::Denied.code()).to_string());
    }
}

#[test]
fn a_callee_that_fails_tells_its_caller_nothing_of_its_inside() {
    let mut device = Device::new();
    device.install("echo", ECHO);
    let forward = device.install("forward", &forwarder("echo", "memory_trap"));
    let digit = text(device.call(forward, "forward", Some(b"")));
    assert_eq!(digit, (-HostError::Execution.code()).to_string());
    assert!(device.logged("echo stopped while serving `memory_trap`"));
}

#[test]
fn a_call_that_the_machine_refuses_fails_and_stops_nobody() {
    let mut device = Device::new();
    let refuser = device.install(
        "refuser",
        r#"(func (export "refuse") (call $reply_digit (i32.const 1)) (call $fail)
             (call $reply_digit (i32.const 2)))
           (func (export "serve") (call $reply_digit (i32.const 3)))"#,
    );
    assert_eq!(device.call(refuser, "refuse", None), Err(HostError::Execution));
    assert_eq!(text(device.call(refuser, "serve", None)), "3");
    assert!(!device.logged("stopped"), "{:?}", device.log);
}

#[test]
fn unknown_machines_and_functions_are_told_apart_from_outside() {
    let mut device = Device::new();
    let echo = device.install("echo", ECHO);
    let nobody = crate::world::id_of(&key(77));
    assert_eq!(device.deliver(nobody, "echo", None), Err(NoResult::NoSuchMachine));
    assert_eq!(device.deliver(echo, "nothing", None), Err(NoResult::NoSuchFunction));
    assert_eq!(device.deliver(echo, "memory", None), Err(NoResult::NoSuchFunction));
    let starter = device.install("starter", r#"(func (export "entry"))"#);
    assert_eq!(device.deliver(starter, "entry", None), Err(NoResult::NoSuchFunction));
    let long = vec![0; tenure_wire::limits::PARAMETER_BYTES_MAX + 1];
    assert_eq!(device.deliver(echo, "echo", Some(&long)), Err(NoResult::TooLong));
}

#[test]
fn a_call_off_the_device_becomes_an_effect_and_goes_on_with_its_answer() {
    let mut device = Device::new();
    let forward = device.install("forward", &forwarder("echo@attic", "echo"));
    let ticket = device.deliver(forward, "forward", Some(b"far")).unwrap();
    device.settle(100);
    let Some(Effect::Call(call)) = device.effects.pop() else { panic!("{:?}", device.effects) };
    assert_eq!((call.function.as_str(), call.parameter.as_deref()), ("echo", Some(&b"far"[..])));
    assert_eq!(call.target.to_string(), "echo@attic");
    device.kernel.complete(device.now, call.id, Ok(Some(b"away".to_vec())));
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "away");
    device.kernel.complete(device.now, call.id, Ok(Some(b"twice".to_vec())));
    assert!(matches!(device.step(), Ran::Idle { .. }), "a second answer is dropped");
}

#[test]
fn an_answer_that_does_not_come_in_time_is_a_failure() {
    let mut device = Device::new();
    let forward = device.install("forward", &forwarder("echo@attic", "echo"));
    let ticket = device.deliver(forward, "forward", Some(b"far")).unwrap();
    device.settle(100);
    let Ran::Idle { until: Some(until) } = device.step() else { panic!("nothing waits") };
    device.now = until;
    device.settle(100);
    let digit = text(device.replies.remove(&ticket).unwrap());
    assert_eq!(digit, (-HostError::Deadline.code()).to_string());
}

#[test]
fn callbacks_get_the_result_or_the_reason() {
    let mut device = Device::new();
    device.install("echo", ECHO);
    let good = device.install("good", &queuer("echo", 0));
    let bad = device.install("bad", &queuer("nobody", 0));
    device.call(good, "go", None).unwrap();
    device.call(bad, "go", None).unwrap();
    device.settle(100);
    assert!(device.logged("good hello") && device.logged("bad not found"), "{:?}", device.log);
}

#[test]
fn queued_call_that_fails_at_once_leaves_its_place_within_the_turn() {
    let mut device = Device::new();
    let caller = device.install(
        "caller",
        r#"(data (i32.const 0) "nobody") (data (i32.const 64) "echo")
        (func (export "go") (local $refused i32) (local $made i32)
          (loop $again
            (if (i32.lt_s (call $queue (i32.const 0) (i32.const 6) (i32.const 64) (i32.const 4)
                (i32.const 64) (i32.const 4) (i32.const 0) (i32.const 0)
                (i32.const 0) (i32.const 0) (i32.const 5000) (i32.const 0)) (i32.const 0))
              (then (local.set $refused (i32.const 1))))
            (local.set $made (i32.add (local.get $made) (i32.const 1)))
            (br_if $again (i32.lt_s (local.get $made) (i32.const 20))))
          (call $reply_digit (local.get $refused)))"#,
    );
    assert_eq!(text(device.call(caller, "go", None)), "0", "twenty calls, and room for eight");
}

#[test]
fn the_failure_callback_runs_after_the_retries() {
    let mut device = Device::new();
    let caller = device.install("caller", &queuer("nobody", 2));
    device.call(caller, "go", None).unwrap();
    let mut waits = 0;
    while !device.logged("caller not found") {
        let Ran::Idle { until: Some(until) } = device.step() else { continue };
        device.now = until;
        waits += 1;
    }
    assert_eq!(waits, 2, "two retries, then the failure: {:?}", device.log);
}

#[test]
fn a_call_of_a_function_that_its_machine_lacks_is_not_tried_again() {
    let mut device = Device::new();
    device.install("mute", r#"(func (export "listen"))"#);
    let caller = device.install("caller", &queuer("mute", 3));
    device.call(caller, "go", None).unwrap();
    let before = device.now;
    while !device.logged("caller not found") {
        device.step();
    }
    assert_eq!(device.now, before, "nothing was waited for");
}

#[test]
fn a_retry_reaches_a_machine_that_comes_late() {
    let mut device = Device::new();
    let caller = device.install("caller", &queuer("echo", 3));
    device.call(caller, "go", None).unwrap();
    device.settle(100);
    device.install("echo", ECHO);
    device.pass(Duration::from_secs(1));
    device.settle(100);
    assert!(device.logged("caller hello"), "{:?}", device.log);
}

#[test]
fn peers_lists_own_machines_and_those_that_the_node_finds() {
    let mut device = Device::new();
    let lister = device.install(
        "lister",
        r#"(func (export "list") (drop (call $reply (i32.const 4096)
            (call $peers (i32.const 3) (i32.const 4096) (i32.const 1024)))))"#,
    );
    let ticket = device.deliver(lister, "list", None).unwrap();
    device.settle(100);
    let Some(Effect::Peers { id }) = device.effects.pop() else { panic!("{:?}", device.effects) };
    device.kernel.complete(device.now, id, Ok(Some(key(42).0.to_vec())));
    device.settle(100);
    let keys = device.replies.remove(&ticket).unwrap().unwrap().unwrap();
    assert_eq!(keys, [key(b'l').0, key(42).0].concat());
    device.kernel.complete(device.now, CallId(12345), Ok(None));
}

/// Fails with words, gives up with words, traps.
const FAILING: &str = r#"(data (i32.const 8) "too warm") (data (i32.const 16) "later")
    (func (export "fail") (drop (call $reply (i32.const 8) (i32.const 8))) (call $fail)
      (drop (call $reply (i32.const 16) (i32.const 5))))
    (func (export "fail_silently") (call $fail))
    (func (export "give_up") (call $abort (i32.const 8) (i32.const 8)))
    (func (export "trap") unreachable)
    (func (export "long") (drop (call $reply (i32.const 8) (i32.const 600))) (call $fail))"#;

#[test]
fn failure_is_told_in_the_machines_words_to_the_owner_and_to_callers_that_may_know() {
    let mut device = Device::new();
    let quiet = device.install("quiet", FAILING);
    device.errors = Audience::Callers;
    let open = device.install("open", FAILING);
    for (function, words) in
        [("fail", "too warm"), ("give_up", "too warm: aborted, in function"), ("trap", "trap: ")]
    {
        for (machine, is_owner, is_told) in
            [(quiet, true, true), (quiet, false, false), (open, true, true), (open, false, true)]
        {
            let told = if is_owner {
                device.call(machine, function, None).unwrap_err();
                String::from_utf8(std::mem::take(&mut device.words)).unwrap()
            } else {
                device.words_for_stranger(machine, function)
            };
            let expected = if is_told { words } else { "" };
            assert!(told.starts_with(expected) && told.is_empty() != is_told, "{function}: {told}");
            device.pass(Duration::from_secs(1000));
            device.settle(10);
        }
    }
    device.call(open, "fail_silently", None).unwrap_err();
    assert!(device.words.is_empty());
    device.call(open, "long", None).unwrap_err();
    assert_eq!(device.words.len(), 512);
}

#[test]
fn call_that_is_refused_at_once_tells_nothing_of_the_one_before() {
    let mut device = Device::new();
    device.install("echo", ECHO);
    let asking = device.install(
        "asking",
        r#"(data (i32.const 0) "echo") (data (i32.const 16) "asking")
        (func (export "ask")
          (drop (call $call (i32.const 0) (i32.const 4) (i32.const 0) (i32.const 4)
            (i32.const 0) (i32.const 4) (i32.const 0)))
          (if (i32.ge_s (call $call (i32.const 16) (i32.const 6) (i32.const 16) (i32.const 3)
            (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const 0)) (then (unreachable)))
          (drop (call $reply (i32.const 64)
            (call $result_read (i32.const 0) (i32.const 64) (i32.const 64)))))"#,
    );
    assert_eq!(text(device.call(asking, "ask", None)), "");
}

#[test]
fn words_of_a_failure_reach_the_machine_that_called_here_and_from_elsewhere() {
    for errors in [Audience::Owner, Audience::Callers] {
        let mut device = Device::new();
        device.errors = errors;
        device.install("failing", FAILING);
        let asking = device.install(
            "asking",
            r#"(data (i32.const 0) "failing") (data (i32.const 16) "fail")
            (func (export "ask")
              (drop (call $call (i32.const 0) (i32.const 7) (i32.const 16) (i32.const 4)
                (i32.const 0) (i32.const 0) (i32.const 0)))
              (drop (call $reply (i32.const 64)
                (call $result_read (i32.const 0) (i32.const 64) (i32.const 64)))))"#,
        );
        let told = if errors == Audience::Callers { "too warm" } else { "" };
        assert_eq!(text(device.call(asking, "ask", None)), told, "{errors:?}");
        let queuing = device.install("queuing", &queuer("failing", 0).replace("echo", "fail"));
        device.call(queuing, "go", None).unwrap();
        device.settle(100);
        let words = if told.is_empty() { String::new() } else { format!(": {told}") };
        let line = format!("queuing execution error{words}");
        assert!(device.log.contains(&line), "{errors:?}: {:?}", device.log);
    }
    let mut device = Device::new();
    let forward = device.install("forward", &queuer("echo@attic", 0));
    device.call(forward, "go", None).unwrap();
    device.settle(100);
    let Some(Effect::Call(call)) = device.effects.pop() else { panic!("{:?}", device.effects) };
    let (id, reason) = (call.id, NoResult::Execution);
    device.kernel.complete_failed(device.now, id, reason, b"away".to_vec());
    device.settle(100);
    assert!(device.log.contains(&"forward execution error: away".into()), "{:?}", device.log);
}
