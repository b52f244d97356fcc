//! `tenure netcheck`: the way to a hub that is there, and to those that aren't.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;

use crate::harness::{User, finish, free_address};

/// The findings, and whether the command says that all is well.
fn findings(mut command: Command) -> (Vec<Value>, bool) {
    command.arg("--json");
    let output = finish(command);
    let text = String::from_utf8(output.stdout).unwrap();
    let findings = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (findings, output.status.success())
}

fn about<'a>(findings: &'a [Value], name: &str) -> &'a Value {
    let found = findings.iter().find(|finding| finding["finding"] == name);
    found.unwrap_or_else(|| panic!("{name}: {findings:?}"))
}

#[test]
fn way_to_a_hub_that_answers_is_told_with_all_that_was_found() {
    let user = User::new();
    let hub = user.hub();
    let (found, is_well) = findings(user.command(&["netcheck", "--hub", &hub.address]));
    assert!(is_well && found.iter().all(|finding| finding["ok"] == true), "{found:?}");
    let udp = about(&found, "udp");
    assert_eq!((&udp["address"], &udp["answers"]), (&hub.address.as_str().into(), &true.into()));
    assert!(udp["round_trip_ms"].as_f64().unwrap() > 0.0, "{udp}");
    assert_eq!(about(&found, "name")["addresses"][0], hub.address.as_str());
    let seen = about(&found, "seen");
    let seen_at = seen["seen_at"].as_str().unwrap();
    let (seen_at, here) = (seen_at.parse::<SocketAddr>().unwrap(), hub.socket_address());
    assert!(seen_at.ip() == here.ip() && seen_at.port() != here.port(), "{seen}");
    assert_eq!(seen["nat"], false, "a router is nowhere");
    let clock = about(&found, "clock");
    let [own, hubs] = ["own_unix_s", "hub_unix_s"].map(|name| clock[name].as_u64().unwrap());
    assert!(own > 0 && hubs > 0, "{clock}");
    let interfaces = found.iter().filter(|finding| finding["finding"] == "interface");
    let mut addresses = interfaces.flat_map(|one| one["addresses"].as_array().unwrap());
    assert!(addresses.any(|one| one["address"] == here.ip().to_string()), "{found:?}");
    let text = user.ok(&["netcheck", "--hub", &hub.address]);
    assert!(text.contains("no router on the way translates\nclock "), "{text}");
}

#[test]
fn each_thing_that_stands_between_here_and_the_hub_is_told_with_what_to_do() {
    let user = User::new();
    let hub = user.hub();
    let (nowhere, device) = (free_address(), user.device("attic", None));
    let key = user.json(&["status", "--device", &device.address])["key"].clone();
    let other = format!("{}#{}", hub.address, key.as_str().unwrap());
    for (named, finding, said, todo) in [
        (
            "nohost.invalid",
            "name",
            "the host `nohost.invalid` can't be found",
            "look at its spelling",
        ),
        (&*nowhere, "udp", "no answer from ", "see whether the hub runs"),
        (&*other, "hub", "", "name the hub that you mean, with its key"),
        (
            &*device.address,
            "hub",
            "what answers there isn't understood: it is no hub",
            "name the hub",
        ),
    ] {
        let words = ["netcheck", "--hub", named];
        let (found, is_well) = findings(user.command(&words));
        let wrong = about(&found, finding);
        assert!(!is_well && wrong["ok"] == false, "{named}: {found:?}");
        let [told, way_out] = ["said", "todo"].map(|name| wrong[name].as_str().unwrap());
        assert!(told.starts_with(said) && way_out.starts_with(todo), "{named}: {wrong}");
        assert_eq!(user.error_after(&words), "1 finding to be put right", "{named}");
    }
    let (found, is_well) = findings(user.command(&["netcheck"]));
    assert!(!is_well && about(&found, "hub")["said"] == "none is named", "{found:?}");
}

#[test]
fn proxy_that_the_environment_names_is_told_without_its_password() {
    let user = User::new();
    let mut command = user.command(&["netcheck"]);
    command.env("HTTPS_PROXY", "http://ann:secret@proxy.example:3128");
    let (found, _) = findings(command);
    let proxy = found.iter().find(|finding| finding["variable"] == "HTTPS_PROXY").unwrap();
    assert_eq!((&proxy["proxy"], &proxy["ok"]), (&"proxy.example:3128".into(), &true.into()));
    assert!(!format!("{found:?}").contains("secret"), "{found:?}");
}
