//! Machines that are pretended, and clients of others: libcoap's `coap-client` and aiocoap.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;
use tenure_coap::{Calls, Coap, Config, Entry, NoAnswer};
use tenure_testbed::{Packages, Watching, patience, skip_without_tool};
use tenure_wire::{Name, NoResult};

/// A machine that stores a text, and tells how it was called.
#[derive(Clone, Default)]
struct House(Arc<Mutex<Vec<u8>>>);

/// Longer than a datagram, and not a text.
fn long() -> Vec<u8> {
    (0..8192_u32).map(|at| (at * 7 / 3) as u8).collect()
}

impl Calls for House {
    async fn call(
        &self,
        machine: Name,
        function: String,
        parameter: Option<Vec<u8>>,
        _: Instant,
    ) -> Result<Option<Vec<u8>>, NoAnswer> {
        assert_eq!(machine.as_str(), "lamp");
        match function.as_str() {
            "read" => Ok(Some(self.0.lock().unwrap().clone())),
            "set" => {
                *self.0.lock().unwrap() = parameter.unwrap_or_default();
                Ok(None)
            }
            "echo" => Ok(parameter),
            "long" => Ok(Some(long())),
            // Beyond the patience of whoever waits for an acknowledgement.
            "slow" => {
                tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
                Ok(Some(b"late".to_vec()))
            }
            _ => Err(NoAnswer::Failed(NoResult::Execution)),
        }
    }
}

fn serve(house: House) -> Coap {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = Config { events: vec!["door.*".parse().unwrap()], secret: [7; 32] };
    let coap = Coap::serve(socket, config, house).unwrap();
    let functions = ["read", "set", "echo", "long", "slow", "fail"].map(String::from).to_vec();
    let lamp = Entry { name: "lamp".parse().unwrap(), functions, is_open: true, publishes: true };
    let safe = Entry { name: "safe".parse().unwrap(), is_open: false, ..lamp.clone() };
    coap.machines(vec![lamp, safe]);
    coap
}

fn uri(address: SocketAddr, path: &str) -> String {
    format!("coap://{address}/{path}")
}

/// The names of libcoap's client, of which Debian has one for each library of TLS.
const COAP_CLIENTS: [&str; 4] =
    ["coap-client", "coap-client-notls", "coap-client-openssl", "coap-client-gnutls"];

/// libcoap's client; none if it isn't there, and then the test counts as skipped.
fn coap_client() -> Option<Command> {
    let is_there = |name: &&&str| Command::new(name).arg("-h").output().is_ok();
    let found = COAP_CLIENTS.iter().find(is_there);
    if found.is_none() {
        skip_without_tool("coap-client (Debian: libcoap3-bin)");
    }
    found.map(Command::new)
}

/// The output of libcoap's client: of a result the payload, of an error its code and text.
fn coap(arguments: &[&str]) -> Option<Vec<u8>> {
    let seconds = patience().as_secs().to_string();
    let output = coap_client()?.args(["-B", &seconds]).args(arguments).output().unwrap();
    Some([output.stdout, output.stderr].concat())
}

#[test]
fn coap_client_calls_functions_and_is_told_of_errors() {
    let server = serve(House::default());
    let at = |path: &str| uri(server.address(), path);
    let text = |arguments: &[&str]| {
        coap(arguments).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_string())
    };
    let Some(empty) = text(&["-m", "post", "-e", "on", &at("m/lamp/set")]) else { return };
    assert_eq!(empty, "");
    assert_eq!(text(&["-m", "get", &at("m/lamp/read")]).unwrap(), "on");
    assert_eq!(text(&["-N", "-m", "get", &at("m/lamp/read")]).unwrap(), "on");
    assert_eq!(text(&["-m", "get", &at("m/lamp/echo?a=1&b=%26")]).unwrap(), "a=1&b=&");
    assert_eq!(text(&["-m", "put", "-e", "x", &at("m/lamp/echo")]).unwrap(), "x");
    assert_eq!(text(&["-A", "50", &at("m/lamp/read")]).unwrap(), "\"on\"");
    assert_eq!(text(&[&at("m/lamp/slow")]).unwrap(), "late");
    for (path, error) in [
        ("m/window/read", "4.04 no machine of that name is here"),
        ("m/lamp/nothing", "4.04 the machine has no such function"),
        ("m/safe/read", "4.03 the machine's lease lets no visitors call it"),
        ("m/lamp/fail", "5.00 the machine failed; its log says why"),
        ("e/safe", "4.04 no topic of that name is open here"),
    ] {
        assert_eq!(text(&[&at(path)]).unwrap(), error, "{path}");
    }
    let deleted = text(&["-m", "delete", &at("m/lamp/read")]).unwrap();
    assert_eq!(deleted, "4.05 a function takes GET, FETCH, POST and PUT");
}

#[test]
fn coap_client_finds_resources_and_transfers_long_payloads_in_blocks() {
    let server = serve(House::default());
    let at = |path: &str| uri(server.address(), path);
    let Some(list) = coap(&[&at(".well-known/core")]) else { return };
    let list = String::from_utf8(list).unwrap();
    for link in ["</m/lamp/read>;rt=\"tenure.function\";obs", "</m/lamp/long>"] {
        assert!(list.contains(link), "{list}");
    }
    assert!(!list.contains("safe"), "{list}");
    let filtered = coap(&[&at(".well-known/core?href=/m/lamp/r*")]).unwrap();
    assert_eq!(filtered.trim_ascii(), b"</m/lamp/read>;rt=\"tenure.function\";obs");

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (sent, got) = (folder.join("coap-sent"), folder.join("coap-got"));
    std::fs::write(&sent, long()).unwrap();
    let files = ["-o", got.to_str().unwrap()];
    for size in [None, Some("64"), Some("1024")] {
        let block = size.map(|size| ["-b", size]);
        let block = block.as_ref().map(<[_; 2]>::as_slice).unwrap_or_default();
        coap(&[&files[..], block, &[&at("m/lamp/long")]].concat()).unwrap();
        assert!(std::fs::read(&got).unwrap() == long(), "{size:?}");
        let upload = ["-m", "post", "-f", sent.to_str().unwrap()];
        std::fs::remove_file(&got).unwrap();
        coap(&[&upload[..], &files, block, &[&at("m/lamp/echo")]].concat()).unwrap();
        assert!(std::fs::read(&got).unwrap() == long(), "both ways, {size:?}");
    }
}

#[test]
fn coap_client_observes_an_event_and_a_function() {
    let house = House::default();
    let server = serve(house.clone());
    let watch = |path: &str| {
        let mut command = coap_client()?;
        let seconds = patience().as_secs().to_string();
        command.args(["-w", "-s", &seconds, "-B", &seconds, &uri(server.address(), path)]);
        Some(Watching::start(command))
    };
    let door = "door.front".parse().unwrap();
    server.event(&door, b"shut");
    let Some(mut event) = watch("e/door.front") else { return };
    assert_eq!(event.line(), "shut");
    for state in ["open", "ajar"] {
        server.event(&door, state.as_bytes());
        assert_eq!(event.line(), state);
    }
    *house.0.lock().unwrap() = b"off".to_vec();
    let mut function = watch("m/lamp/read").unwrap();
    assert_eq!(function.line(), "off");
    for state in ["on", "off"] {
        *house.0.lock().unwrap() = state.into();
        server.stirred(&"lamp".parse().unwrap());
        assert_eq!(function.line(), state);
    }
}

/// The program that asks by aiocoap.
fn python(arguments: &[&str]) -> Option<Command> {
    let folder = Packages::Aiocoap.of_test(env!("CARGO_TARGET_TMPDIR"))?;
    let mut command = Command::new("python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aiocoap/client.py"));
    command.args(arguments).env("PYTHONPATH", Packages::python(&folder));
    Some(command)
}

/// The answers that aiocoap gets.
fn ask(arguments: &[&str]) -> Option<Vec<Value>> {
    let output = python(arguments)?.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn aiocoap_calls_functions_in_formats_and_blocks() {
    let server = serve(House::default());
    let at = |path: &str| uri(server.address(), path);
    let ask = |arguments: &[&str]| {
        let answer = ask(arguments)?.remove(0);
        let text = |name: &str| answer[name].as_str().unwrap().to_string();
        Some((text("code"), answer["format"].as_u64(), text("payload_hex")))
    };
    let is = |code: &str, format, payload: &[u8]| (code.to_string(), format, hex(payload));
    let Some(set) = ask(&["POST", &at("m/lamp/set"), "--payload-hex", "6f6e"]) else { return };
    assert_eq!(set, is("2.04", None, b""));
    let read = at("m/lamp/read");
    assert_eq!(ask(&["GET", &read]).unwrap(), is("2.05", Some(0), b"on"));
    assert_eq!(ask(&["GET", &read, "--non"]).unwrap(), is("2.05", Some(0), b"on"));
    assert_eq!(ask(&["GET", &read, "--accept", "50"]).unwrap(), is("2.05", Some(50), b"\"on\""));
    assert_eq!(ask(&["GET", &read, "--accept", "60"]).unwrap(), is("2.05", Some(60), b"bon"));
    let (code, ..) = ask(&["GET", &read, "--accept", "41"]).unwrap();
    assert_eq!(code, "4.06");
    // 21.5 in CBOR.
    let cbor = ["FETCH", &at("m/lamp/echo"), "--format", "60", "--payload-hex", "f94d60"];
    assert_eq!(ask(&cbor).unwrap(), is("2.05", Some(0), b"21.5"));
    assert_eq!(ask(&["GET", &at("m/lamp/slow")]).unwrap(), is("2.05", Some(0), b"late"));
    assert_eq!(ask(&["GET", &at("m/lamp/long")]).unwrap(), is("2.05", Some(42), &long()));
    let sent = hex(&long());
    let both = ask(&["POST", &at("m/lamp/echo"), "--payload-hex", &sent]).unwrap();
    assert_eq!(both, is("2.04", Some(42), &long()));
    let more = hex(&[long(), vec![0]].concat());
    let (code, ..) = ask(&["POST", &at("m/lamp/echo"), "--payload-hex", &more]).unwrap();
    assert_eq!(code, "4.13");
    let (code, format, list) = ask(&["GET", &at(".well-known/core")]).unwrap();
    assert_eq!((code.as_str(), format), ("2.05", Some(40)));
    assert!(list.starts_with(&hex(b"</m/lamp/read>;")));
}

#[test]
fn aiocoap_observes_an_event_and_a_function() {
    let house = House::default();
    let server = serve(house.clone());
    let watch = |path: &str| {
        let uri = uri(server.address(), path);
        python(&["GET", &uri, "--observe", "2"]).map(Watching::start)
    };
    let payload = |watching: &mut Watching| {
        let answer: Value = serde_json::from_str(&watching.line()).unwrap();
        (answer["payload_hex"].as_str().unwrap().to_string(), answer["observe"].as_u64().unwrap())
    };
    let door = "door.front".parse().unwrap();
    let Some(mut event) = watch("e/door.front") else { return };
    let (nothing, mut last) = payload(&mut event);
    assert_eq!(nothing, "");
    // The second one comes in blocks.
    for state in [&b"open"[..], &[b'x'; 2000]] {
        server.event(&door, state);
        let (told, number) = payload(&mut event);
        assert_eq!(told, hex(state));
        assert!(number > last, "{number}");
        last = number;
    }
    *house.0.lock().unwrap() = b"off".to_vec();
    let mut function = watch("m/lamp/read").unwrap();
    assert_eq!(payload(&mut function).0, hex(b"off"));
    for state in ["on", "off"] {
        *house.0.lock().unwrap() = state.into();
        server.stirred(&"lamp".parse().unwrap());
        assert_eq!(payload(&mut function).0, hex(state.as_bytes()));
    }
    assert!(event.wait().success() && function.wait().success());
}
