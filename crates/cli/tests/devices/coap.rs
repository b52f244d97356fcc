//! Devices whose machines and events clients of CoAP ask for: libcoap's `coap-client`.

use std::process::Command;

use tenure_testbed::{Watching, patience, skip_without_tool, wait_until};

use crate::guests::{build_own, package};
use crate::harness::{Process, User, any_address, on};

/// The names of libcoap's client, of which Debian has one for each library of TLS.
const COAP_CLIENTS: [&str; 4] =
    ["coap-client", "coap-client-notls", "coap-client-openssl", "coap-client-gnutls"];

/// A device that speaks CoAP.
struct Device {
    process: Process,
    address: String,
    /// The key of its visitors.
    key: String,
}

impl Device {
    fn start(user: &User, more: &[&str]) -> Self {
        let device = ["device", "--data", "attic", "--listen", any_address(), "--json"];
        let coap = ["--survives", "kill", "--coap", any_address()];
        let mut process = Process::start(user.command(&[&device[..], &coap, more].concat()));
        let announcement = process.wait_for_event("coap");
        let text = |name: &str| announcement[name].as_str().unwrap().to_string();
        Self { process, address: text("address"), key: text("key") }
    }

    /// A command that asks for a resource; none if there is no client here, and then the test counts as skipped.
    fn client(&self, path: &str, arguments: &[&str]) -> Option<Command> {
        let is_there = |name: &&&str| Command::new(name).arg("-h").output().is_ok();
        let Some(name) = COAP_CLIENTS.iter().find(is_there) else {
            skip_without_tool("coap-client (Debian: libcoap3-bin)");
            return None;
        };
        let mut command = Command::new(name);
        command.args(["-B", &patience().as_secs().to_string()]).args(arguments);
        command.arg(format!("coap://{}/{path}", self.address));
        Some(command)
    }

    /// What a client prints: of a result the payload, of an error its code and text.
    fn ask(&self, path: &str, arguments: &[&str]) -> Option<String> {
        let output = self.client(path, arguments)?.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        Some(String::from_utf8(text).unwrap().trim().to_string())
    }

    fn observe(&self, path: &str) -> Option<Watching> {
        let seconds = patience().as_secs().to_string();
        self.client(path, &["-w", "-s", &seconds]).map(Watching::start)
    }
}

/// The package of a machine that publishes what it is told.
fn announcer() -> String {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
    build_own("announcer", &folder, "announcer");
    folder.join("announcer.tenure").into_os_string().into_string().unwrap()
}

#[test]
fn client_of_coap_calls_machines_as_far_as_their_leases_let_it() {
    let user = User::new();
    let device = Device::start(&user, &[]);
    user.install(&device.process, &["thermostat"]);
    let install = ["install", &package("probe"), "--device", &device.process.address];
    user.ok(&[&install[..], &["--grant", "callers=store"]].concat());
    let Some(refused) = device.ask("m/probe/echo?hi", &[]) else { return };
    assert_eq!(refused, "4.03 the machine's lease lets no visitors call it");
    // Devices of this owner alone.
    let refused = device.ask("m/thermostat/read", &[]).unwrap();
    assert_eq!(refused, "4.03 the machine's lease lets no visitors call it");
    assert_eq!(device.ask(".well-known/core", &[]).unwrap(), "");
    let callers = format!("callers=#{}", device.key);
    user.ok(&[&install[..], &["--grant", &callers]].concat());
    wait_until(|| match device.ask("m/probe/echo?hi", &[]).unwrap() {
        text if text == "hi" => Ok(()),
        text => Err(text),
    });
    assert_eq!(device.ask("m/probe/echo", &["-m", "post", "-e", "a b"]).unwrap(), "a b");
    let list = device.ask(".well-known/core", &[]).unwrap();
    assert!(list.starts_with("</m/probe/echo>;rt=\"tenure.function\""), "{list}");
    assert!(!list.contains("thermostat"), "{list}");
    let long = "x".repeat(8192);
    std::fs::write(user.path("long"), &long).unwrap();
    let file = user.path("long");
    let upload = ["-m", "post", "-f", file.to_str().unwrap()];
    assert!(device.ask("m/probe/echo", &upload).unwrap() == long);
    std::fs::write(user.path("long"), long + "x").unwrap();
    let refused = device.ask("m/probe/echo", &upload).unwrap();
    assert_eq!(refused, "4.13 the payload is longer than a parameter");
    let coap = wait_until(|| {
        let status = user.json(&["status", "--device", &device.process.address]);
        let coap = status["outside"]["coap"].clone();
        if coap["refused"].as_u64() >= Some(3) { Ok(coap) } else { Err(status.to_string()) }
    });
    assert_eq!((&coap["address"], &coap["observers"]), (&device.address.clone().into(), &0.into()));
    assert!(coap["requests"].as_u64() > coap["refused"].as_u64(), "{coap}");
    // The key stays over restarts, and with it the lease counts.
    let key = device.key.clone();
    assert_eq!(device.process.interrupt().code(), Some(0));
    let device = Device::start(&user, &[]);
    assert_eq!(device.key, key);
    assert_eq!(device.ask("m/probe/echo?again", &[]).unwrap(), "again");
    user.ok(&["remove", "probe", "--device", &device.process.address]);
    wait_until(|| match device.ask("m/probe/echo?hi", &[]).unwrap() {
        text if text == "4.04 no machine of that name is here" => Ok(()),
        text => Err(text),
    });
}

#[test]
fn function_and_event_are_observed_as_a_machine_publishes() {
    let user = User::new();
    let device = Device::start(&user, &["--coap-events", "hall.*"]);
    user.ok(&["install", &announcer(), "--grant", "all", "--device", &device.process.address]);
    let say = |text: &str| {
        let at = ["call", "--device", &device.process.address];
        user.ok(&[&at[..], &["announcer", "say", text]].concat());
    };
    say("one");
    // The device has to know the machine first.
    wait_until(|| match device.ask("m/announcer/said", &[]) {
        Some(text) if text != "one" => Err(text),
        _ => Ok(()),
    });
    let Some(mut function) = device.observe("m/announcer/said") else { return };
    assert_eq!(function.line(), "one");
    let mut event = device.observe("e/hall.board").unwrap();
    assert_eq!(event.line(), "one");
    for text in ["two", "three"] {
        say(text);
        assert_eq!((function.line(), event.line()), (text.to_string(), text.to_string()));
    }
    // Another client of CoAP says it.
    device.ask("m/announcer/say", &["-m", "put", "-e", "four"]).unwrap();
    assert_eq!((function.line(), event.line()), ("four".into(), "four".into()));
    wait_until(|| {
        let status = user.json(&["status", "--device", &device.process.address]);
        if status["outside"]["coap"]["observers"] == 2 { Ok(()) } else { Err(status.to_string()) }
    });
    assert_eq!(device.ask("m/announcer/ponder", &[]).unwrap(), "done", "an answer of its own");
    assert_eq!(device.ask("e/hall.board", &[]).unwrap(), "four");
    let closed = device.ask("e/device.lamp", &[]).unwrap();
    assert_eq!(closed, "4.04 no topic of that name is open here");
    assert_eq!(user.call(on(&device.process), &["announcer", "said"]), "four");
}

#[test]
fn reading_of_a_peripheral_is_observed_and_the_run_is_repeated_from_its_record() {
    let user = User::new();
    let text = "[temperature]\nkind = \"thermometer\"\nperiod_ms = 50\npoints = [[0.0, 15.0], [100.0, 115.0]]\n";
    std::fs::write(user.path("peripherals.toml"), text).unwrap();
    let more = ["--coap-events", "device.temperature", "--peripherals", "peripherals.toml"];
    let device = Device::start(&user, &[&more[..], &["--record", "tape"]].concat());
    let Some(mut watching) = device.observe("e/device.temperature") else { return };
    let mut degrees: Vec<f64> = Vec::new();
    while degrees.len() < 5 {
        if let Ok(read) = watching.line().parse() {
            degrees.push(read);
        }
    }
    assert!(degrees[0] >= 15.0 && degrees.is_sorted(), "{degrees:?}");
    drop(watching);
    assert_eq!(device.process.interrupt().code(), Some(0));
    let replayed = user.ok(&["replay", "tape"]);
    assert!(replayed.contains("the same"), "{replayed}");
}

#[test]
fn coap_that_cannot_be_served_says_why() {
    let user = User::new();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = |more: &[&str]| {
        let device = ["device", "--data", "attic", "--listen", any_address()];
        user.error_after(&[&device[..], more].concat())
    };
    let busy = error(&["--coap", &address]);
    assert!(busy.contains("no CoAP") && busy.contains(&address), "{busy}");
    let unknown = error(&["--coap", "nowhere:x"]);
    assert!(unknown.contains("write HOST:PORT, as 127.0.0.1:5683"), "{unknown}");
    let many: Vec<String> = (0..9).map(|number| format!("--coap-events=room{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let many = error(&[&["--coap"], &many[..]].concat());
    assert!(many.contains("more than 8 patterns"), "{many}");
}
