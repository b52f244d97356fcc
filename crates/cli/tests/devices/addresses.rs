//! Addresses that are taken, wrong, or where nobody listens.

use crate::harness::{User, free_address};

#[test]
fn busy_port_is_refused_with_the_way_out() {
    let user = User::new();
    let device = user.device("attic", None);
    let busy = format!(
        "can't listen at {}: another process listens there; stop that one, or choose another port (port 0 takes a free one)",
        device.address
    );
    let second = ["device", "--data", "cellar", "--listen", &device.address];
    assert_eq!(user.error(&second), busy);
    assert_eq!(user.error(&["hub", "--data", "hub", "--open", "--listen", &device.address]), busy);
    user.json(&["list", "--device", &device.address]);
}

#[test]
fn busy_port_of_pages_is_refused_with_the_way_out_and_leaves_no_folder() {
    let user = User::new();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let pages = busy.local_addr().unwrap().to_string();
    let words = ["hub", "--data", "hub", "--open", "--listen", "127.0.0.1:0", "--pages", &pages];
    let error = user.error(&words);
    assert!(
        error.contains(&format!("can't listen at {pages}: another process listens there")),
        "{error}"
    );
    assert!(!user.path("hub").exists());
}

#[test]
fn address_that_is_none_is_refused() {
    let user = User::new();
    let error = user.error(&["device", "--data", "attic", "--listen", "nowhere.invalid:1"]);
    assert!(error.starts_with("the host `nowhere.invalid` can't be found: "), "{error}");
    let error = user.error(&["list", "--device", "127.0.0.1:notaport"]);
    assert!(error.starts_with("`127.0.0.1:notaport` is no address"), "{error}");
}

#[test]
fn device_and_hub_that_listen_on_ipv6_are_reached_as_those_on_ipv4() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return; // This computer has no IPv6.
    }
    let user = User::new();
    let hub = user.hub_at("[::1]:0");
    let narrow = user.device_at("narrow", "[::1]:0", Some(&hub.address));
    let wide = user.device_at("wide", "[::]:0", Some(&hub.address));
    let port = wide.socket_address().port();
    for address in [&narrow.address, &format!("[::1]:{port}"), &format!("127.0.0.1:{port}")] {
        user.json(&["status", "--device", address]);
    }
    // Whichever family the name stands for first.
    user.json(&["status", "--device", &format!("localhost:{port}")]);
    assert_eq!(
        user.json(&["list", "--device", "narrow", "--hub", &hub.address])["device"],
        "narrow"
    );
    let alone = ["device", "--data", "four", "--listen", "127.0.0.1:0", "--hub", &hub.address];
    let error = user.error(&alone);
    assert!(error.contains("speaks IPv4 alone") && error.contains("listen at [::]:0"), "{error}");
}

#[test]
fn silence_says_how_to_start_what_is_missing() {
    let user = User::new();
    let address = free_address();
    let device = user.error(&["list", "--device", &address]);
    assert_eq!(
        device,
        format!(
            "no device answers at {address}; is it running, and is the address right? Start one with: tenure device --data DIR --listen {address}"
        )
    );
    let hub = user.error(&["list", "--all", "--hub", &address]);
    assert_eq!(
        hub,
        format!(
            "no hub answers at {address}; is it running, and is the address right? Start one with: tenure hub --data DIR --owner own --listen {address}"
        )
    );
    let unnamed = user.error(&["call", "thermostat@attic", "read"]);
    assert!(unnamed.contains("say where the hub is with --hub, or name HOST:PORT"), "{unnamed}");
}

#[test]
fn hub_that_is_taken_for_a_device_and_a_device_for_a_hub_are_named() {
    let user = User::new();
    let (hub, device) = (user.hub(), user.device("attic", None));
    let error = user.error(&["list", "--device", &hub.address]);
    let expected = format!(
        "the device at {}: it can't do that: it is a hub, or a device of another version",
        hub.address
    );
    assert_eq!(error, expected);
    let unknown = "what answers there isn't understood: it is no hub, or a hub of another version";
    for question in [&["list", "--device", "cellar"][..], &["list", "--all"]] {
        assert_eq!(user.error(&[question, &["--hub", &device.address]].concat()), unknown);
    }
}

#[test]
fn device_that_was_met_is_found_by_its_name_though_the_hub_does_not_list_it() {
    let user = User::new();
    let (hub, device) = (user.hub(), user.device("attic", None));
    let by_name = ["list", "--device", "attic", "--hub", &hub.address];
    let unlisted = "the hub knows no device `attic`; see `tenure list --all`";
    assert_eq!(user.error(&by_name), unlisted);
    user.json(&["list", "--device", &device.address]);
    assert_eq!(user.json(&by_name)["device"], "attic");
}
