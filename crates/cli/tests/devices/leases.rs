//! Leases whose terms an owner says: at the installation, and later.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::guests::package;
use crate::harness::{Process, User, on};

fn counter(user: &User, device: &Process) -> Value {
    let list = user.json(&["list", "--device", &device.address]);
    let machines = list["machines"].as_array().unwrap();
    let found = machines.iter().find(|machine| machine["name"] == "counter");
    found.unwrap_or_else(|| panic!("{list}")).clone()
}

#[test]
fn a_lease_ends_when_its_owner_says_and_goes_on_when_it_is_renewed() {
    let user = User::new();
    let device = user.device("attic", None);
    let at = ["--device", device.address.as_str()];
    let counter_package = package("counter");
    let install = ["install", &counter_package, "--grant", "all", "--for", "30d", "--grace", "2d"];
    user.ok(&[&install[..], &["--receipts-every", "6h"], &at].concat());
    let term = &counter(&user, &device)["term"];
    let lasts = term["ends_unix_s"].as_u64().unwrap() - term["signed_unix_s"].as_u64().unwrap();
    assert_eq!((lasts, &term["grace_s"]), (30 * 86_400, &(2 * 86_400).into()));
    assert_eq!(term["receipts_every_s"], 6 * 3_600);
    assert_eq!(user.call(on(&device), &["counter", "add"]), "1");
    let text = user.ok(&[&["list"][..], &at].concat());
    assert!(text.contains("counter: its lease ends 20"), "{text}");

    // An end in the past is refused unless it is meant; then it is one at once, and the data stays.
    let yesterday = SystemTime::now() - Duration::from_secs(86_400);
    let yesterday = humantime::format_rfc3339_seconds(yesterday).to_string();
    let refused = user.error(&[&["renew", "counter", "--until", &yesterday][..], &at].concat());
    assert!(refused.contains("is over already"), "{refused}");
    assert_eq!(user.call(on(&device), &["counter", "add"]), "2");
    let ended =
        user.ok(&[&["renew", "counter", "--end-now", "--until", &yesterday][..], &at].concat());
    assert!(ended.contains(&format!("the lease of counter ends {yesterday}")), "{ended}");
    assert_eq!(counter(&user, &device)["state"], "lease over");
    let refused = user.call_error(on(&device), &["counter", "add"]);
    assert!(refused.contains("lease"), "{refused}");

    let renewed = user.json(&[&["renew", "counter", "--no-end"][..], &at].concat());
    assert_eq!(
        (&renewed["renewed"], &renewed["term"]["ends_unix_s"]),
        (&"counter".into(), &Value::Null)
    );
    assert_eq!(renewed["term"]["receipts_every_s"], 6 * 3_600, "what isn't said stays");
    assert_eq!(user.call(on(&device), &["counter", "add"]), "3");

    // Neither a lease nor a start tells of more than it does.
    user.ok(&[&["stop", "counter"][..], &at].concat());
    let renewed = user.ok(&[&["renew", "counter", "--no-end"][..], &at].concat());
    assert!(renewed.ends_with("it stays stopped until `tenure start counter`\n"), "{renewed}");
    user.ok(&[&["renew", "counter", "--end-now"][..], &at].concat());
    let begun = user.ok(&[&["start", "counter"][..], &at].concat());
    assert!(begun.starts_with("took back the stop of counter on attic\n"), "{begun}");
    assert!(begun.ends_with("its lease is over until `tenure renew counter`\n"), "{begun}");
    user.ok(&[&["renew", "counter", "--no-end"][..], &at].concat());
    assert_eq!(user.call(on(&device), &["counter", "value"]), "3");

    user.ok(&[&["remove", "counter"][..], &at].concat());
    let trash = user.json(&[&["trash", "list"][..], &at].concat());
    assert_eq!(trash["trash"][0]["name"], "counter");
    user.ok(&[&["trash", "restore", "counter"][..], &at].concat());
    assert_eq!(user.call(on(&device), &["counter", "add"]), "4");
    user.ok(&[&["remove", "counter", "--for-good"][..], &at].concat());
    let trash = user.json(&[&["trash", "list"][..], &at].concat());
    assert_eq!(trash["trash"], Value::Array(Vec::new()));
}

#[test]
fn a_term_that_says_nothing_or_too_much_is_refused_with_what_to_say() {
    let user = User::new();
    let device = user.device("attic", None);
    let at = ["--device", device.address.as_str()];
    let nothing = user.error(&[&["renew", "counter"][..], &at].concat());
    assert!(nothing.contains("--for 30d"), "{nothing}");
    let nobody = user.error(&[&["renew", "counter", "--no-end"][..], &at].concat());
    assert!(nobody.contains("attic has no machine `counter`"), "{nobody}");
    for term in [
        &["--for", "soon"][..],
        &["--until", "2020-13-01"],
        &["--for", "1d", "--no-end"],
        &["--grace", "long"],
    ] {
        let arguments = [&["renew", "counter"][..], term, &at].concat();
        let output = user.command(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{term:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(term[0]), "{term:?}: {said}");
    }
}
