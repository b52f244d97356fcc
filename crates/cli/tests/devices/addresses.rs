//! Addresses that are taken, wrong, or where nobody listens.

use crate::harness::{Process, User, any_address, free_address};

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
fn device_that_starts_before_its_hub_can_be_found_runs_its_machines_and_says_so() {
    let user = User::new();
    let words = [
        "device",
        "--data",
        "attic",
        "--listen",
        "127.0.0.1:0",
        "--hub",
        "nowhere.invalid",
        "--json",
    ];
    let device = Process::start(user.command(&words));
    let said = |event: &&serde_json::Value| event["event"] == "hub-not-found";
    let reason = device.seen().iter().find(said).expect("it says so")["reason"].to_string();
    assert!(reason.contains("the host `nowhere.invalid` can't be found"), "{reason}");
    user.json(&["list", "--device", &device.address]);
}

#[test]
fn device_whose_address_no_interface_has_yet_runs_if_it_was_there_before() {
    let user = User::new();
    // TEST-NET-1 (RFC 5737).
    let away = ["device", "--data", "attic", "--listen", "192.0.2.1:7370", "--json"];
    let error = user.error(&away[..5]);
    assert!(error.contains("no network interface of this computer has that address"), "{error}");
    user.device("attic", None).interrupt();
    let mut device = Process::spawn(user.command(&away));
    device.wait_for_event("address-missing");
    device.wait_for_event("listening");
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

/// A hub that is slow was told to be started (hub 35).
#[test]
fn address_where_somebody_listens_and_says_nothing_is_no_reason_to_start_another() {
    let user = User::new();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let owned = user.error(&["rollout", "status", "1", "--hub", &address]);
    let device = user.error(&["list", "--device", &address]);
    for error in [owned, device] {
        assert!(error.contains(&format!("answered at {address} in time")), "{error}");
        assert!(!error.contains("Start one"), "{error}");
    }
}

/// Endurance 3: each that was gone took three seconds, and those that answer came last.
#[test]
fn devices_that_answer_come_first_however_many_are_gone() {
    let user = User::new();
    let device = user.device("zeta", None);
    user.json(&["status", "--device", &device.address]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let path = user.home().join("known.toml");
    let mut known = std::fs::read_to_string(&path).unwrap();
    let key = known.lines().find(|line| line.starts_with("key = ")).unwrap().to_string();
    let name = "gone-and-a-name-of-32-letters-00";
    for number in 10..50 {
        let name = name.replace("00", &number.to_string());
        known += &format!("\n[devices.{name}]\n{key}\nenrolment = 1\naddress = \"{address}\"\n");
    }
    std::fs::write(&path, known).unwrap();
    let text = user.ok(&["devices"]);
    let listed: Vec<&str> = text.lines().filter(|line| line.contains("127.0.0.1:")).collect();
    assert_eq!(listed.len(), 41, "{text}");
    assert!(listed[0].starts_with("zeta") && listed[0].ends_with("answers"), "{text}");
    assert!(listed[1..].iter().all(|line| line.ends_with("silent, or another is there")), "{text}");
    let columns: Vec<_> = listed.iter().map(|line| line.find("127.0.0.1:")).collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "columns are in line: {text}");
}

#[test]
fn devices_that_a_hub_knows_are_listed_though_no_command_has_met_them() {
    let user = User::new();
    let hub = Process::start(user.own_hub(any_address()));
    let _device = user.device("attic", Some(&hub));
    let listed = user.json(&["devices", "--hub", &hub.address]);
    assert_eq!(listed["devices"][0]["device"], "attic", "{listed}");
    user.ok(&["use", "--hub", &hub.address]);
    // The computer that a device runs on has met it.
    user.ok(&["devices", "--forget", "attic"]);
    let unmet = user.ok(&["devices", "--quiet"]);
    assert!(unmet.contains("`tenure devices --hub` lists those"), "{unmet}");
    let text = user.ok(&["devices", "--hub"]);
    assert!(text.starts_with("attic ") && text.contains("reachable"), "{text}");
    assert!(text.trim_end().ends_with('Z'), "when it was heard: {text}");
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
fn device_that_this_computer_started_is_found_by_its_name_though_the_hub_does_not_list_it() {
    let user = User::new();
    let (hub, _device) = (user.hub(), user.device("attic", None));
    let error = user.error(&["list", "--device", "cellar", "--hub", &hub.address]);
    assert_eq!(error, "the hub knows no device `cellar`; see `tenure devices --hub`");
    let found = user.json(&["list", "--device", "attic", "--hub", &hub.address]);
    assert_eq!(found["device"], "attic");
}
