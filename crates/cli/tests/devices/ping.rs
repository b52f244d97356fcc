//! `tenure ping`: devices that answer, that stop to, and that never do.

use serde_json::{Value, json};

use crate::harness::{Process, User, signal};

/// Words that let a slow computer take its time.
const PATIENT: [&str; 4] = ["--interval", "10ms", "--timeout", "30s"];

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn device_answers_whoever_pings_it_and_each_line_has_the_way_and_the_time() {
    let (owner, stranger) = (User::new(), User::new());
    let device = owner.device("attic", None);
    for user in [&owner, &stranger] {
        let ping = [&["ping", &device.address, "--count", "3"][..], &PATIENT].concat();
        let events = events(&user.ok(&[&ping[..], &["--json"]].concat()));
        let [answers @ .., summary] = &events[..] else { panic!("{events:?}") };
        assert_eq!(answers.len(), 3, "{events:?}");
        for (number, answer) in (1_u64..).zip(answers) {
            assert_eq!((&answer["event"], &answer["number"]), (&"answer".into(), &number.into()));
            assert_eq!(
                (&answer["way"], &answer["address"]),
                (&"direct".into(), &device.address.as_str().into())
            );
            assert!(answer["round_trip_ms"].as_f64().unwrap() > 0.0, "{answer}");
        }
        let counts =
            ["event", "sent", "answered", "lost_percent"].map(|name| summary[name].clone());
        assert_eq!(counts, [json!("summary"), json!(3), json!(3), json!(0.0)]);
        let [min, median, max] =
            ["min_ms", "median_ms", "max_ms"].map(|name| summary[name].as_f64().unwrap());
        assert!(min <= median && median <= max, "{summary}");
        let text = user.ok(&ping);
        let way =
            format!(", directly at {0}\n{0}: 3 calls sent, 3 answered, 0 % lost; ", device.address);
        assert!(text.contains(&way), "{text}");
    }
}

#[test]
fn device_that_was_met_is_pinged_by_its_name() {
    let user = User::new();
    let device = user.device("attic", None);
    user.ok(&["status", "--device", &device.address]);
    let text = user.ok(&[&["ping", "attic", "--count", "1"][..], &PATIENT].concat());
    assert!(text.starts_with("1: attic answered after "), "{text}");
}

#[test]
fn device_that_stops_is_told_with_the_reason_and_ctrl_c_ends_with_the_summary() {
    let user = User::new();
    let device = user.device("attic", None);
    let words = ["ping", &device.address, "--interval", "50ms", "--timeout", "500ms", "--json"];
    let mut ping = Process::spawn(user.command(&words));
    ping.wait_for_event("answer");
    device.kill();
    let is_told = |line: &Value| {
        let reason = line["reason"].as_str().unwrap_or_default();
        line["event"] == "lost" && reason.starts_with("no device answers at ")
    };
    ping.wait_for("a loss with its reason", is_told);
    signal("INT", ping.id());
    let summary = ping.wait_for_event("summary");
    let [sent, answered] = ["sent", "answered"].map(|name| summary[name].as_u64().unwrap());
    assert!(0 < answered && answered < sent, "{summary}");
    assert_eq!(ping.wait().code(), Some(0), "it answered at first");
}

#[test]
fn device_that_never_answers_is_an_error_that_names_the_reason() {
    let user = User::new();
    let device = user.device("attic", None);
    let at = device.address.clone();
    // No answer is there as soon as that.
    let hasty = ["ping", &at, "--count", "2", "--interval", "10ms", "--timeout", "1us"];
    assert_eq!(user.error_after(&hasty), format!("{at} answered none of 2 calls"));
    let refused = user.error(&["ping", &at, "--timeout", "0"]);
    assert_eq!(refused, "--timeout 0 leaves no time for an answer");
    device.kill();
    let error = user.error(&["ping", &at, "--count", "1"]);
    assert!(error.starts_with(&format!("no device answers at {at}; is it running")), "{error}");
    let error = user.error(&["ping", "cellar", "--via", &at]);
    assert!(error.starts_with("the member of the mesh: "), "{error}");
}
