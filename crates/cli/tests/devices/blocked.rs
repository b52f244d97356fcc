//! Networks that block UDP: the hub is reached by WebSocket, through a proxy where there is one, and by UDP again once that is let
//! through.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tenure_testbed::wait_until;

use crate::bridge::certificates;
use crate::guests::package;
use crate::harness::{Process, User, any_address, by, complaint, finish, free_ipv4_address, on};
use crate::nat::Nat;

/// The variables by which programs are told of proxies.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"];

/// A user with a hub that has pages over TLS.
struct Scene {
    user: User,
    hub: Process,
    key: String,
    /// Where the pages are.
    pages: String,
    /// Takes whatever is sent to it by UDP, and never answers.
    hole: UdpSocket,
}

impl Scene {
    /// `None` where no certificates can be made.
    fn new() -> Option<Self> {
        let user = User::new();
        let pages = free_ipv4_address();
        let (host, _) = pages.rsplit_once(':').unwrap();
        if !certificates(&user.path(""), host) {
            return None;
        }
        let (hub, key) = hub(&user, any_address(), &pages);
        let hole = UdpSocket::bind(any_address()).unwrap();
        Some(Self { user, hub, key, pages, hole })
    }

    /// The hub as those name it who get no answer from it by UDP.
    fn blocked(&self) -> String {
        self.named_at(&self.hole.local_addr().unwrap().to_string())
    }

    /// The hub, with UDP at that address.
    fn named_at(&self, udp: &str) -> String {
        format!("{udp}#{},wss://{}", self.key, self.pages)
    }

    /// A command that believes the hub's authority, and goes by this proxy.
    fn command(&self, words: &[&str], proxy: Option<&Proxy>) -> Command {
        let mut command = self.user.command(words);
        PROXIES.iter().for_each(|name| _ = command.env_remove(name));
        command.env("SSL_CERT_FILE", "ca.pem");
        if let Some(proxy) = proxy {
            command.env("HTTPS_PROXY", format!("http://{}", proxy.address));
        }
        command
    }

    fn ok(&self, words: &[&str], proxy: Option<&Proxy>) -> String {
        let output = finish(self.command(words, proxy));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tenure {words:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A device that speaks to the hub as it is named, once the hub has listed it.
    fn device(&self, name: &str, hub: &str, proxy: Option<&Proxy>) -> Process {
        let words = ["device", "--data", name, "--listen", any_address(), "--json"];
        let mut command = self.command(&words, proxy);
        command.args(["--survives", "kill", "--hub", hub]);
        let mut device = Process::start(command);
        device.wait_for_event("registered");
        device
    }
}

/// A hub with pages over TLS there, and its key.
fn hub(user: &User, listen: &str, pages: &str) -> (Process, String) {
    let mut command = user.own_hub(listen);
    command.args(["--pages", pages, "--tls-cert", "server.pem", "--tls-key", "server.key"]);
    let mut hub = Process::spawn(command);
    let told = hub.wait_for_event("listening");
    assert_eq!(told["websocket"], format!("wss://{pages}"));
    hub.address = told["address"].as_str().unwrap().to_owned();
    (hub, told["key"].as_str().unwrap().to_owned())
}

fn is_way(line: &Value, way: &Value) -> bool {
    line["event"] == "hub-way" && line["way"] == *way
}

/// Waits until a device says by which way it speaks to its hub.
fn wait_for_way(device: &mut Process, way: &str) -> Value {
    device.wait_for(way, |line| is_way(line, &way.into()))
}

/// A proxy that lets connections through, or refuses them.
struct Proxy {
    address: SocketAddr,
    /// The hosts that it was asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn new(lets_through: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let noted = Arc::clone(&noted);
                std::thread::spawn(move || serve(client, lets_through, &noted));
            }
        });
        Self { address, asked }
    }
}

/// Serves one client of a proxy.
fn serve(client: TcpStream, lets_through: bool, asked: &Mutex<Vec<String>>) -> Option<()> {
    let lines = BufReader::new(&client).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let host = head.first()?.strip_prefix("CONNECT ")?.strip_suffix(" HTTP/1.1")?.to_owned();
    asked.lock().unwrap().push(host.clone());
    if !lets_through {
        (&client).write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").ok()?;
        return None;
    }
    let server = TcpStream::connect(host).ok()?;
    (&client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    let (mut from, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        to.shutdown(std::net::Shutdown::Both)
    });
    let _ = std::io::copy(&mut &client, &mut &server);
    server.shutdown(std::net::Shutdown::Both).ok()
}

#[test]
fn device_and_command_behind_a_proxy_alone_do_all_that_they_do_by_udp() {
    let Some(mut scene) = Scene::new() else { return };
    let (proxy, named) = (Proxy::new(true), scene.blocked());
    let mut attic = scene.device("attic", &named, Some(&proxy));
    let told = wait_for_way(&mut attic, "websocket");
    let to = format!("wss://{} through the proxy {}", scene.pages, proxy.address);
    assert_eq!(told["to"], to);
    scene.hub.wait_for("attic to be shut", |line| line["event"] == "shut");
    let at = ["--device", "attic", "--hub", &named];
    let install = ["install", &package("probe"), "--grant", "all"];
    scene.ok(&[&install[..], &at].concat(), Some(&proxy));
    scene.hub.wait_until_listed("attic", 1);
    let most = "x".repeat(8192);
    for echoed in ["hello", &most] {
        let call = ["call", "--hub", &named, "probe@attic", "echo", echoed];
        assert_eq!(scene.ok(&call, Some(&proxy)), echoed);
    }
    scene.ok(&[&["log"][..], &at].concat(), Some(&proxy));
    let status = scene.ok(&[&["status"][..], &at].concat(), Some(&proxy));
    assert!(status.contains("its hub's relay, by WebSocket, as UDP is blocked"), "{status}");
    let found = scene.ok(&["netcheck", "--hub", &named], Some(&proxy));
    let said = format!("spoken to by WebSocket, wss://{}, as UDP is blocked", scene.pages);
    assert!(found.contains(&said), "{found}");
    let asked = proxy.asked.lock().unwrap();
    assert!(asked.len() > 5 && asked.iter().all(|host| *host == scene.pages), "{asked:?}");
}

#[test]
fn devices_by_websocket_and_by_udp_call_each_other() {
    let Some(mut scene) = Scene::new() else { return };
    let attic = scene.device("attic", &scene.blocked(), None);
    let cabin = scene.device("cabin", &scene.hub.address, None);
    scene.user.install(&attic, &["probe", "thermostat"]);
    scene.user.install(&cabin, &["probe", "thermostat"]);
    scene.hub.wait_until_listed("attic", 2);
    scene.hub.wait_until_listed("cabin", 2);
    // From outside, too, by UDP.
    assert_eq!(scene.user.call(by(&scene.hub), &["probe@attic", "echo", "hello"]), "hello");
    scene.user.call_until(&attic, &["probe", "call", "thermostat@cabin read"], "21.0");
    scene.user.call_until(&cabin, &["probe", "call", "thermostat@attic read"], "21.0");
    let devices = scene.user.json(&["devices", "--hub", &scene.hub.address]);
    let ways: Vec<&Value> =
        devices["devices"].as_array().unwrap().iter().map(|one| &one["way"]).collect();
    assert!(ways.contains(&&"hub".into()), "{devices}");
    assert!(devices.to_string().contains("127.0.0.1, by WebSocket"), "{devices}");
}

/// Whether the gate of the test below lets UDP through.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

fn gate(_: usize, datagram: &[u8]) -> Vec<Vec<u8>> {
    if IS_OPEN.load(Ordering::Relaxed) { vec![datagram.to_vec()] } else { Vec::new() }
}

#[test]
fn device_goes_back_to_udp_once_that_is_let_through_and_to_websocket_if_it_is_blocked_again() {
    let Some(mut scene) = Scene::new() else { return };
    let between = Nat::before(scene.hub.socket_address(), gate);
    let mut attic = scene.device("attic", &scene.named_at(&between.hub_address()), None);
    wait_for_way(&mut attic, "websocket");
    scene.user.install(&attic, &["probe"]);
    scene.hub.wait_until_listed("attic", 1);
    let call = ["probe@attic", "echo", "hello"];
    assert_eq!(scene.user.call(by(&scene.hub), &call), "hello");
    IS_OPEN.store(true, Ordering::Relaxed);
    wait_for_way(&mut attic, "udp");
    assert_eq!(scene.user.call(by(&scene.hub), &call), "hello", "while the hub knows the old way");
    IS_OPEN.store(false, Ordering::Relaxed);
    // It notices at its next word to the hub.
    wait_for_way(&mut attic, "websocket");
    scene.user.call_until(&attic, &["probe", "echo", "there"], "there");
    wait_until(|| {
        let words = [&["call", "--hub", &scene.hub.address, "--timeout", "4"][..], &call].concat();
        let output = finish(scene.user.command(&words));
        match output.stdout == b"hello" {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    });
}

#[test]
fn device_by_websocket_finds_its_hub_again_after_a_restart() {
    let Some(scene) = Scene::new() else { return };
    let mut attic = scene.device("attic", &scene.blocked(), None);
    wait_for_way(&mut attic, "websocket");
    scene.user.install(&attic, &["probe"]);
    let Scene { user, hub: before, key, pages, hole } = scene;
    let listen = before.address.clone();
    before.interrupt();
    let lost = attic.wait_for("no way to the hub", |line| is_way(line, &Value::Null));
    assert!(lost["reason"].as_str().unwrap().contains(&pages), "{lost}");
    let (mut after, _) = hub(&user, &listen, &pages);
    wait_for_way(&mut attic, "websocket");
    after.wait_for("attic to be heard", |line| line["event"] == "shut");
    user.call_until(&attic, &["probe", "echo", "hello"], "hello");
    wait_until(|| {
        let words = ["call", "--hub", &listen, "--timeout", "4", "probe@attic", "echo", "hello"];
        let output = finish(user.command(&words));
        match output.stdout == b"hello" {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    });
    drop((key, hole));
}

#[test]
fn what_stands_in_the_way_is_told_by_commands_and_by_the_device() {
    let Some(scene) = Scene::new() else { return };
    let (proxy, named) = (Proxy::new(false), scene.blocked());
    let refused = format!(
        "the hub gives no answer by UDP, and none by wss://{0}: the proxy {1} refuses the way to {0} (403): whoever runs it \
         must let CONNECT through to there",
        scene.pages, proxy.address
    );
    let words = ["devices", "--hub", &named];
    assert_eq!(complaint(finish(scene.command(&words, Some(&proxy))), &words), refused);
    // An authority that nobody here believes.
    let mut command = scene.command(&words, None);
    command.env("SSL_CERT_FILE", "client.pem");
    let error = complaint(finish(command), &words);
    assert!(error.contains(&format!("{} isn't believed: TLS: ", scene.pages)), "{error}");
    let netcheck = ["netcheck", "--hub", &named];
    let output = finish(scene.command(&netcheck, Some(&proxy)));
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && found.contains("refuses the way to"), "{found}");
    assert!(found.contains("put that right, or let UDP through"), "{found}");

    let words = ["device", "--data", "attic", "--listen", any_address(), "--json", "--hub", &named];
    let mut attic = Process::start(scene.command(&words, Some(&proxy)));
    let told = attic.wait_for("no way to the hub", |line| is_way(line, &Value::Null));
    assert!(told["reason"].as_str().unwrap().contains("(403)"), "{told}");
    // It runs all the same.
    let list = scene.user.json(&["list", "--device", &attic.address]);
    assert_eq!(list["machines"], Value::Array(Vec::new()));
    scene.user.install(&attic, &["probe"]);
    assert_eq!(scene.user.call(on(&attic), &["probe", "echo", "hello"]), "hello");
}
