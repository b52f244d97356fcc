//! Machines that send requests to servers outside.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use tenure_testbed::wait_until;

use crate::guests::{build, copy};
use crate::harness::{Process, User, on};

/// A server that answers by the request's path, and tells each request.
fn server() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            while let Some(request) = read_request(&mut stream) {
                let answer = match request.split(' ').nth(1).unwrap_or_default() {
                    "/v1/forecast" => answer("200 OK", &"mild\n".repeat(1_000)),
                    "/v1/readings" => answer("201 Created", ""),
                    "/v1/moved" => "HTTP/1.1 302 Found\r\nlocation: /admin\r\n\r\n".to_string(),
                    _ => answer("404 Not Found", "no such thing"),
                };
                let _ = sender.send(request);
                if stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (address, requests)
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8(body).ok()?)
}

/// The package of the courier whose server is at `address`.
fn courier(address: SocketAddr) -> String {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
    let source = folder.join("sources/courier");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/courier"), &source);
    let project = source.join("tenure.toml");
    let text = std::fs::read_to_string(&project).unwrap();
    let text = text.replace("https://api.example.com", &format!("http://{address}"));
    std::fs::write(&project, text).unwrap();
    build(&source, &folder, "courier");
    folder.join("courier.tenure").into_os_string().into_string().unwrap()
}

#[test]
fn machine_fetches_and_sends_what_its_lease_grants_and_pays_for_it() {
    let (address, requests) = server();
    let user = User::new();
    let device = user.device("attic", None);
    let package = courier(address);
    let install = ["install", &package, "--device", &device.address, "--grant", "all"];
    user.ok(&install);
    assert_eq!(user.call(on(&device), &["courier", "fetch", "forecast"]), "mild\n".repeat(1_000));
    let request = requests.recv().unwrap();
    assert!(request.starts_with("GET /v1/forecast HTTP/1.1\r\n"), "{request}");
    assert_eq!(user.call(on(&device), &["courier", "send", "21.5"]), "201");
    let request = requests.recv().unwrap();
    assert!(
        request.ends_with("content-type: application/json\r\n\r\n{\"degrees\":21.5}"),
        "{request}"
    );
    user.ok(&["call", "--device", &device.address, "courier", "send_later", "22"]);
    assert!(requests.recv().unwrap().ends_with("\r\n\r\n22"));

    let failed = |path: &str| user.call_error(on(&device), &["courier", "fetch", path]);
    assert!(failed("nothing").contains("not found"), "{}", failed("nothing"));
    failed("moved");
    failed("../admin");
    let log = user.ok(&["log", "courier", "--device", &device.address]);
    assert!(log.contains("GET http://") && log.contains("which isn't granted"), "{log}");
    let inspect = ["inspect", &package, "--installed", "--device", &device.address];
    let reach = wait_until(|| {
        let status = user.json(&["status", "--device", &device.address]);
        let reach = &status["outside"]["reach"];
        if reach["requests"].as_u64() == reach["answered"].as_u64().map(|it| it + 1) {
            Ok(reach.clone())
        } else {
            Err(status.to_string())
        }
    });
    assert_eq!(reach["failed"]["denied"], 1, "the server led astray: {reach}");
    assert!(
        reach["last_error"]["words"].as_str().unwrap().contains("which isn't granted"),
        "{reach}"
    );
    let text = user.ok(&["status", "--device", &device.address]);
    assert!(text.contains(" answered, 1 denied; 0 names cached"), "{text}");
    let rights = user.ok(&inspect);
    assert!(rights.contains(&format!("http://{address}/v1/*")), "{rights}");
    let receipts = user.ok(&["receipts", "--close", "--json", "--device", &device.address]);
    let receipts = receipts.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sent: u64 = receipts.filter_map(|receipt| receipt["usage"]["air_bytes"].as_u64()).sum();
    assert!(sent > 10_000, "the forecast came and was told, and {sent} bytes are billed");
}

#[test]
fn owner_who_grants_less_or_forbids_servers_is_obeyed() {
    let (address, requests) = server();
    let user = User::new();
    let device = user.device("attic", None);
    let package = courier(address);
    let get = format!("reach=GET http://{address}/v1/forecast");
    user.ok(&[
        "install",
        &package,
        "--device",
        &device.address,
        "--grant",
        &get,
        "--grant",
        "callers=*@*",
    ]);
    assert!(user.call(on(&device), &["courier", "fetch", "forecast"]).starts_with("mild"));
    requests.recv().unwrap();
    user.call_error(on(&device), &["courier", "send", "21.5"]);
    assert!(requests.try_recv().is_err());
    let beyond = "reach=http://127.0.0.1:1/*";
    let error = user.error(&["install", &package, "--device", &device.address, "--grant", beyond]);
    assert!(error.contains("goes beyond what the package asks for"), "{error}");
}

#[test]
fn run_with_visits_to_servers_is_recorded_and_repeated_without_them() {
    let (address, requests) = server();
    let user = User::new();
    let device = ["device", "--data", "attic", "--listen", "127.0.0.1:0", "--json"];
    let record = ["--survives", "kill", "--record", "tape"];
    let device = Process::start(user.command(&[&device[..], &record].concat()));
    let package = courier(address);
    user.ok(&["install", &package, "--device", &device.address, "--grant", "all"]);
    assert_eq!(user.call(on(&device), &["courier", "send", "21.5"]), "201");
    user.call_error(on(&device), &["courier", "fetch", "moved"]);
    assert_eq!(device.interrupt().code(), Some(0));
    let asked = requests.try_iter().count();
    let replayed = user.ok(&["replay", "tape"]);
    assert!(replayed.contains("the same"), "{replayed}");
    assert_eq!((asked, requests.try_iter().count()), (2, 0));
}

#[test]
fn file_of_single_servers_is_kept_for_the_next_start_and_a_bad_one_leaves_no_device_behind() {
    let user = User::new();
    let device = ["device", "--data", "attic", "--listen", "127.0.0.1:0"];
    let with_file = [&device[..], &["--reach-servers", "servers.toml"]].concat();
    let file = user.path("servers.toml");
    let describe = |text: &str| std::fs::write(&file, format!("[[server]]\n{text}")).unwrap();
    describe("url = \"https://a.example\"\npin = [\"none.pem\"]");
    let error = user.error(&with_file);
    assert!(error.contains("servers.toml") && error.contains("none.pem"), "{error}");
    assert!(!user.path("attic").exists());
    describe("url = \"https://a.example\"");
    let started = Process::start(user.command(&[&with_file[..], &["--json"]].concat()));
    assert_eq!(started.interrupt().code(), Some(0));
    std::fs::remove_file(&file).unwrap();
    let error = user.error(&device);
    assert!(error.contains("servers.toml"), "{error}");
}
