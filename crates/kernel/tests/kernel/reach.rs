//! Requests to servers outside: granted, billed, logged, and at most once.

use std::time::Duration;

use tenure_kernel::{Ask, CallId, Effect, OutgoingVisit, Visited};
use tenure_wire::capability::PeerPattern;
use tenure_wire::host_call::HostError;
use tenure_wire::{Budget, Capabilities, MachineId, NoResult};

use crate::calls::{forwarder, queuer};
use crate::world::{Device, text};

const URL: &str = "https://a.example/v1/x";

fn reaching(patterns: &[&str]) -> Capabilities {
    Capabilities {
        callers: vec![PeerPattern::Any],
        calls: vec![PeerPattern::Any],
        reach: patterns.iter().map(|text| text.parse().unwrap()).collect(),
        ..Capabilities::default()
    }
}

fn install(device: &mut Device, body: &str, patterns: &[&str]) -> MachineId {
    let grants = reaching(patterns);
    device.install_granted("asker", body, 1, Budget::default(), &grants).unwrap()
}

fn visit(device: &mut Device) -> OutgoingVisit {
    match device.effects.pop() {
        Some(Effect::Visit(visit)) => visit,
        effect => panic!("{effect:?}"),
    }
}

fn complete(
    device: &mut Device,
    id: CallId,
    (result, words): (Result<Option<Vec<u8>>, NoResult>, Vec<u8>),
    traffic: (u64, u64),
) {
    Visited { id, result, words, traffic }.complete(&mut device.kernel, device.now);
}

/// The error that a forwarder tells by one letter.
fn code(told: Result<Option<Vec<u8>>, HostError>) -> i32 {
    i32::from(b'0') - i32::from(text(told).as_bytes()[0])
}

/// The answer to a machine that asks, where it gets no further.
fn told(url: &str, method: &str, patterns: &[&str]) -> Option<i32> {
    let mut device = Device::new();
    let asker = install(&mut device, &forwarder(url, method), patterns);
    let ticket = device.deliver(asker, "forward", Some(b"\r\n")).unwrap();
    device.settle(100);
    let digit = device.replies.remove(&ticket)?;
    Some(code(digit))
}

#[test]
fn request_leaves_the_device_as_far_as_the_lease_grants_it() {
    let not_granted = Some(HostError::NotGranted.code());
    for (patterns, granted) in [
        (&["https://a.example/v1/*"][..], true),
        (&["GET https://a.example/*"], true),
        (&["https://a.example/v1/x"], true),
        (&["https://a.example:443/v1/x"], true),
        (&[], false),
        (&["POST https://a.example/*"], false),
        (&["http://a.example/*"], false),
        (&["https://a.example:8443/*"], false),
        (&["https://b.example/*"], false),
        (&["https://a.example/v1/"], false),
        (&["https://a.example/v2/*", "https://a.example.b.example/*"], false),
    ] {
        let told = told(URL, "GET", patterns);
        assert_eq!(told, if granted { None } else { not_granted }, "{patterns:?}");
    }
    let all = &["https://a.example/*"];
    for (url, method) in [
        ("https://a.example/v1/../x", "GET"),
        ("https://a.example@b.example/", "GET"),
        ("ftp://a.example/", "GET"),
        (URL, "get"),
        (URL, "CONNECT"),
        (URL, "GET /"),
    ] {
        let invalid = Some(HostError::Invalid.code());
        assert_eq!(told(url, method, all), invalid, "{method} {url}");
    }
}

#[test]
fn any_machine_is_not_any_server() {
    assert_eq!(told(URL, "GET", &[]), Some(HostError::NotGranted.code()));
}

#[test]
fn machine_goes_on_with_the_answer_and_pays_for_it() {
    let mut device = Device::new();
    let patterns = ["https://a.example/*"];
    let asker = install(&mut device, &forwarder(URL, "POST"), &patterns);
    let ticket = device.deliver(asker, "forward", Some(b"\r\nbody")).unwrap();
    device.settle(100);
    let OutgoingVisit { id, from, ask, granted, .. } = visit(&mut device);
    let (method, url) = ("POST".parse().unwrap(), URL.parse().unwrap());
    let message = Some(b"\r\nbody".to_vec());
    assert_eq!((from, ask), (asker, Ask::Request { method, url, message }));
    assert_eq!(granted, reaching(&patterns).reach);
    let result = Ok(Some(b"answer".to_vec()));
    complete(&mut device, id, (result, Vec::new()), (300, 700));
    device.settle(100);
    assert_eq!(text(device.replies.remove(&ticket).unwrap()), "answer");
    let used = device.kernel.take_usage(device.now, asker).unwrap();
    assert_eq!((used.air_bytes, used.messages), (1000, 1));
    let machine = device.kernel.machines().next().unwrap();
    assert_eq!(machine.grants.uses().last().unwrap().used, 1);
}

#[test]
fn failure_is_told_to_the_machine_and_its_log_without_the_query() {
    let mut device = Device::new();
    let url = "https://a.example/v1/x?key=secret";
    let asker = install(&mut device, &forwarder(url, "GET"), &["https://a.example/*"]);
    let ticket = device.deliver(asker, "forward", Some(b"\r\n")).unwrap();
    device.settle(100);
    let id = visit(&mut device).id;
    let result = Err(NoResult::Unreachable);
    complete(&mut device, id, (result, b"no connection".to_vec()), (10, 0));
    device.settle(100);
    let told = code(device.replies.remove(&ticket).unwrap());
    assert_eq!(told, HostError::Unreachable.code());
    assert!(device.logged("asker GET https://a.example/v1/x: no connection"), "{:?}", device.log);
}

#[test]
fn more_of_an_answer_needs_no_grant_of_its_own_and_is_not_queued() {
    let mut device = Device::new();
    let asker = install(&mut device, &forwarder(URL, "more"), &[]);
    device.deliver(asker, "forward", None).unwrap();
    device.settle(100);
    assert_eq!(visit(&mut device).ask, Ask::More);
    let queued = queuer(URL, 0).replace("\"echo\"", "\"more\"");
    let asker = install_queuer(&mut device, &queued);
    device.deliver(asker, "go", None).unwrap();
    device.settle(100);
    assert_eq!(device.effects, []);
}

fn install_queuer(device: &mut Device, body: &str) -> MachineId {
    let grants = reaching(&["https://a.example/*"]);
    device.install_granted("queuer", body, 1, Budget::default(), &grants).unwrap()
}

#[test]
fn queued_request_is_tried_again_only_where_the_server_did_not_get_it() {
    let mut device = Device::new();
    let body = queuer(URL, 2).replace("\"echo\"", "\"POST\"").replace("\"hello\"", "\"\\r\\n...\"");
    let queuer = install_queuer(&mut device, &body);
    device.deliver(queuer, "go", None).unwrap();
    device.settle(100);
    let first = visit(&mut device);
    assert_eq!(first.attempts, 3);
    let result = Err(NoResult::Busy);
    complete(&mut device, first.id, (result, b"full".to_vec()), (0, 0));
    device.now = device.now + Duration::from_secs(1);
    device.settle(100);
    let second = visit(&mut device);
    assert_eq!(second.id, first.id);
    let result = Err(NoResult::Unreachable);
    complete(&mut device, second.id, (result, b"broke off".to_vec()), (0, 0));
    device.now = device.now + Duration::from_secs(1);
    device.settle(100);
    assert_eq!(device.effects, []);
    assert!(device.logged("queuer unreachable: broke off"), "{:?}", device.log);
}

#[test]
fn request_that_changes_something_is_not_sent_again_after_a_sleep() {
    for (method, again) in [("GET", true), ("POST", false), ("more", false)] {
        let mut device = Device::new();
        let body = forwarder(URL, method);
        let asker = install(&mut device, &body, &["https://a.example/*"]);
        let ticket = device.deliver(asker, "forward", Some(b"\r\n")).unwrap();
        device.settle(100);
        visit(&mut device);
        let mut device = device.sleep(Duration::from_secs(1), &[]);
        device.settle(100);
        assert_eq!(device.effects.len(), usize::from(again), "{method}");
        let told = device.replies.remove(&ticket).map(code);
        let unknown = Some(HostError::Unknown.code());
        assert_eq!(told, if again { None } else { unknown }, "{method}");
    }
}
