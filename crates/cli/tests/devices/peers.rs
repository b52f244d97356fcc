//! Peers that are gone, and names that nobody has.

use crate::harness::{User, any_address, by, on};

#[test]
fn call_to_a_peer_that_is_gone_fails_after_the_retries() {
    let user = User::new();
    let mut hub = user.hub();
    let attic = user.device("attic", Some(&hub));
    let mut cellar = user.device("cellar", Some(&hub));
    user.install(&attic, &["thermostat"]);
    user.install(&cellar, &["probe"]);
    hub.wait_until_listed("attic", 1);
    let ask = ["probe", "call", "thermostat@attic read"];
    assert_eq!(user.call(on(&cellar), &ask), "21.0");
    attic.kill();
    let queue = ["probe", "queue", "thermostat@attic read 60000 1"];
    assert_eq!(user.call(on(&cellar), &queue), "queued");
    assert_eq!(cellar.wait_for_log("probe", "failed: "), "failed: unreachable");
    let answer =
        user.call(on(&cellar), &["--timeout", "50", "probe", "call", "thermostat@attic read"]);
    assert_eq!(answer, "unreachable");
    let error = user.call_error(by(&hub), &["thermostat@attic", "read"]);
    assert!(
        error.starts_with("the device of thermostat@attic doesn't answer; is it running?"),
        "{error}"
    );
}

#[test]
fn names_that_nobody_has_are_told_apart() {
    let user = User::new();
    let mut hub = user.hub();
    let device = user.device("attic", Some(&hub));
    let none = user.call_error(on(&device), &["thermostat", "read"]);
    assert_eq!(
        none,
        "no machine `thermostat`: the device has none yet; install one with `tenure install`"
    );
    user.install(&device, &["thermostat"]);
    hub.wait_until_listed("attic", 1);
    let cases = [
        (on(&device), "nobody", "read", "the device has no machine `nobody`; it has: thermostat"),
        (
            by(&hub),
            "nobody@attic",
            "read",
            "the device has no machine `nobody@attic`; it has: thermostat",
        ),
        (
            by(&hub),
            "thermostat@nowhere",
            "read",
            "the hub knows no device `nowhere`; see `tenure devices --hub`",
        ),
        (
            on(&device),
            "thermostat",
            "fly",
            "thermostat has no function `fly`; see what it has with `tenure list`",
        ),
        (
            by(&hub),
            "thermostat@attic",
            "fly",
            "thermostat@attic has no function `fly`; see what it has with `tenure list --device attic`",
        ),
    ];
    for (place, machine, function, message) in cases {
        assert_eq!(user.call_error(place, &[machine, function]), message);
    }
    let error = user.error(&["tree", "nobody", "--device", &device.address]);
    assert_eq!(error, "there is no machine `nobody` on the device; see `tenure list`");
    let error = user.error(&["list", "--device", "nowhere", "--hub", &hub.address]);
    assert_eq!(error, "the hub knows no device `nowhere`; see `tenure devices --hub`");
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "21.0", "nothing is lost");
}

#[test]
fn parameter_that_begins_with_a_hyphen_passes_and_options_count_around_it() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["probe"]);
    for parameter in ["-5", "-0.5", "-x", "- "] {
        let (echo, at) = (["probe", "echo", parameter], ["--device", &device.address]);
        for words in [
            [&["call"], &echo[..], &at].concat(),
            [&["call"], &at[..], &echo].concat(),
            [&["call"], &at[..], &["--"], &echo].concat(),
        ] {
            assert_eq!(user.ok(&words), parameter, "to a pipe as it is");
        }
    }
}

#[test]
fn parameter_over_the_limit_is_refused_and_one_at_the_limit_passes() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["probe"]);
    let most = "x".repeat(8192);
    assert_eq!(user.call(on(&device), &["probe", "echo", &most]), most);
    let error = user.call_error(on(&device), &["probe", "echo", &(most + "x")]);
    assert_eq!(error, "the parameter is over the limit of 8192 bytes; send it in parts");
}

#[test]
fn somebody_elses_device_refuses() {
    let (owner, stranger) = (User::new(), User::new());
    let mut hub = owner.hub();
    let device = owner.device("attic", Some(&hub));
    owner.install(&device, &["thermostat"]);
    hub.wait_until_listed("attic", 1);
    let refused = format!(
        "the device at {}: the device belongs to another owner; use the owner's keys (TENURE_HOME)",
        device.address
    );
    let at = ["--device", &device.address];
    for command in [&["list"][..], &["tree", "thermostat"], &["log"], &["remove", "thermostat"]] {
        assert_eq!(stranger.error(&[command, &at].concat()), refused, "{command:?}");
    }
    let install = ["install", &crate::guests::package("crasher"), "--grant", "all"];
    assert_eq!(stranger.error(&[&install[..], &at].concat()), refused);
    let error = stranger.call_error(by(&hub), &["thermostat@attic", "read"]);
    assert_eq!(error, "`thermostat@attic` is on a device of another owner");
    assert_eq!(owner.call(on(&device), &["thermostat", "read"]), "21.0");
}

#[test]
fn device_name_belongs_to_who_had_it_first() {
    let (owner, stranger) = (User::new(), User::new());
    let mut hub = owner.hub();
    let device = owner.device("attic", Some(&hub));
    owner.install(&device, &["thermostat"]);
    hub.wait_until_listed("attic", 1);
    let mut impostor = crate::harness::Process::start(stranger.command(&[
        "device",
        "--data",
        "attic",
        "--listen",
        any_address(),
        "--hub",
        &hub.address,
        "--json",
    ]));
    let refused = impostor.wait_for_event("refused");
    assert_eq!(refused["reason"], "the name belongs to a device of another owner");
    assert_eq!(owner.call(by(&hub), &["thermostat@attic", "read"]), "21.0");
}
