//! Pages of machines, as a browser gets them from `tenure pages`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use tenure_testbed::wait_until;

use crate::guests::package;
use crate::harness::{Process, User, any_address, on};

/// Serves the pages of machines on `device`.
fn pages(user: &User, device: &Process, more: &[&str]) -> Process {
    pages_and_key(user, device, more).0
}

/// The same, with the key of the visitors.
fn pages_and_key(user: &User, device: &Process, more: &[&str]) -> (Process, String) {
    let serve = ["pages", "--json", "--listen", "127.0.0.1:0", "--device", &device.address];
    let mut pages = Process::spawn(user.command(&[&serve[..], more].concat()));
    let announcement = pages.wait_for_event("listening");
    let text = |name: &str| announcement[name].as_str().unwrap().to_string();
    pages.address = text("address");
    (pages, text("key"))
}

/// A visitor's request to the page at `host`, and all that comes back.
fn visit(pages: &Process, host: &str, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(pages.socket_address()).unwrap();
    let form = "content-type: application/x-www-form-urlencoded";
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{form}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn browser_shows_and_sets_a_thermostat_by_the_page_of_a_machine() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["thermostat", "panel"]);
    let pages = pages(&user, &device, &[]);
    let list = visit(&pages, "localhost", "GET /", "");
    assert!(list.contains(">panel</a> on attic") && !list.contains("thermostat</a>"), "{list}");
    for host in ["panel.attic.localhost", "panel.localhost"] {
        let page = visit(&pages, host, "GET /", "");
        assert!(page.contains("<output>21.0 °C</output>"), "{page}");
    }
    let set = visit(&pages, "panel.attic.localhost", "POST /degrees", "degrees=19.5");
    assert!(status(&set) == "303" && set.contains("location: /\r\n"), "{set}");
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "19.5");
    let page = visit(&pages, "panel.attic.localhost", "GET /degrees", "");
    assert!(page.ends_with("\r\n\r\n19.5"), "{page}");
    assert!(pages.interrupt().success());
}

#[test]
fn machine_that_lets_no_visitors_in_is_not_called_in_its_owners_name() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["thermostat"]);
    let install = ["install", &package("panel"), "--device", &device.address];
    user.ok(&[&install[..], &["--grant", "calls=thermostat"]].concat());
    let (serving, key) = pages_and_key(&user, &device, &[]);
    let closed = visit(&serving, "panel.attic.localhost", "GET /", "");
    assert_eq!(status(&closed), "403", "{closed}");
    let callers = format!("callers=#{key}");
    user.ok(&[&install[..], &["--grant", "calls=thermostat", "--grant", &callers]].concat());
    let open = visit(&serving, "panel.attic.localhost", "GET /", "");
    assert_eq!(status(&open), "200", "{open}");
}

#[test]
fn name_that_no_machine_has_is_not_found() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["thermostat"]);
    let pages = pages(&user, &device, &[]);
    for host in ["window.attic.localhost", "window.localhost", "panel.cellar.localhost"] {
        assert_eq!(status(&visit(&pages, host, "GET /", "")), "404", "{host}");
    }
    assert_eq!(status(&visit(&pages, "thermostat.localhost", "GET /", "")), "403");
    assert_eq!(status(&visit(&pages, "panel.attic.evil.example", "GET /", "")), "421");
}

#[test]
fn machine_that_is_installed_anew_and_a_device_that_is_gone_are_told_apart() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["thermostat", "panel"]);
    let at = ["--device", &device.address];
    let pages = pages(&user, &device, &["--machine", "panel"]);
    // a hub may have this address, at another port, and a browser keeps its cookie for the address.
    let moved = visit(&pages, "127.0.0.1:8080", "GET /", "");
    assert!(moved.contains("location: //panel.localhost:8080/\r\n"), "{moved}");
    assert_eq!(status(&visit(&pages, "panel.localhost:8080", "GET /", "")), "200");
    // Another key, under the same name.
    user.ok(&[&["remove", "panel", "--for-good"][..], &at].concat());
    user.install(&device, &["panel"]);
    assert_eq!(status(&visit(&pages, "192.168.1.7", "GET /", "")), "200");
    device.kill();
    let away = visit(&pages, "panel.localhost", "GET /", "");
    assert!(["502", "504"].contains(&status(&away)) && away.contains("retry-after: "), "{away}");
}

#[test]
fn device_serves_the_pages_of_its_machines_itself_and_keeps_its_visitors_key() {
    let user = User::new();
    let serving = || {
        let device = ["device", "--data", "attic", "--listen", "127.0.0.1:0", "--json"];
        let pages = ["--survives", "kill", "--pages", "127.0.0.1:0"];
        let mut device = Process::start(user.command(&[&device[..], &pages].concat()));
        let announcement = device.wait_for_event("pages");
        let text = |name: &str| announcement[name].as_str().unwrap().to_string();
        (device, text("address"), text("key"))
    };
    let (device, address, key) = serving();
    user.install(&device, &["thermostat", "panel"]);
    let get = |address: &str, host: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let list = get(&address, "localhost");
    assert!(list.contains(">panel</a> on attic") && !list.contains("thermostat</a>"), "{list}");
    for host in ["panel.attic.localhost", "panel.localhost"] {
        assert!(get(&address, host).contains("<output>21.0 °C</output>"));
    }
    for host in ["window.localhost", "panel.cellar.localhost"] {
        assert_eq!(status(&get(&address, host)), "404", "{host}");
    }
    assert_eq!(status(&get(&address, "thermostat.localhost")), "403");
    user.ok(&["remove", "panel", "--device", &device.address]);
    // The list counts for two seconds.
    wait_until(|| match get(&address, "localhost") {
        list if list.contains("panel") => {
            Err(format!("it is in the trash, and has a page: {list}"))
        }
        _ => Ok(()),
    });
    assert_eq!(device.interrupt().code(), Some(0));
    let (_device, address, again) = serving();
    assert_eq!(again, key);
    assert_eq!(status(&get(&address, "panel.localhost")), "404");
}

/// Sends a request to the pages of a hub, and returns all that comes back.
fn send(url: &str, line: &str, fields: &[&str], body: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}");
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The value of a header field.
fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let found = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name}: {answer}"))
}

#[test]
fn owner_opens_the_page_of_a_machine_at_the_hub_and_nobody_else_does() {
    let user = User::new();
    let mut command = user.own_hub(any_address());
    command.args(["--pages", any_address(), "--guests"]);
    let mut hub = Process::spawn(command);
    let announcement = hub.wait_for_event("listening");
    let text = |name: &str| announcement[name].as_str().unwrap().to_string();
    hub.address = text("address");
    let (url, owners) = (text("pages"), text("owners"));
    let device = user.device("attic", Some(&hub));
    user.install(&device, &["thermostat"]);
    let install = ["install", &package("panel"), "--device", &device.address];
    let callers = format!("callers=#{owners}");
    user.ok(&[&install[..], &["--grant", "calls=thermostat", "--grant", &callers]].concat());
    hub.wait_until_listed("attic", 2);
    let login = user.json(&["login", "--hub", &hub.address]);
    let code = login["address"].as_str().unwrap().strip_prefix(&url).unwrap();
    let signed_in = send(&url, &format!("GET {code}"), &[], "");
    let cookie = field(&signed_in, "set-cookie").split(';').next().unwrap();
    let cookie = format!("cookie: {cookie}");
    let led = send(&url, "GET /m/panel@attic", &[&cookie], "");
    let page = field(&led, "location");
    let shown = send(&url, &format!("GET {page}"), &[], "");
    assert!(status(&shown) == "200" && shown.contains("<output>21.0 °C</output>"), "{shown}");
    // As a browser sends the form of a page whose origin is nobody's.
    let fields = [
        "content-type: application/x-www-form-urlencoded",
        "origin: null",
        "sec-fetch-site: cross-site",
    ];
    let set = send(&url, &format!("POST {page}degrees"), &fields, "degrees=19.5");
    assert_eq!((status(&set), field(&set, "location")), ("303", page), "{set}");
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "19.5");
    let live = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    write!(&live, "GET {page}live HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(live).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "data: – 19.5"));
    assert_eq!(user.call(on(&device), &["thermostat", "set", "18.0"]), "18.0");
    assert!(lines.any(|line| line == "data: – 18.0"), "the value as it changes");
    // Somebody else is let in as a guest, whom this lease lets call nothing.
    let led = send(&url, "GET /m/panel@attic/", &[], "");
    let refused = send(&url, &format!("GET {}", field(&led, "location")), &[], "");
    assert_eq!(status(&refused), "403", "{refused}");
    for nobody in ["window@attic", "panel@cellar"] {
        let led = send(&url, &format!("GET /m/{nobody}/"), &[&cookie], "");
        let missing = send(&url, &format!("GET {}", field(&led, "location")), &[], "");
        assert_eq!(status(&missing), "404", "{missing}");
    }
    device.kill();
    let away = send(&url, &format!("GET {page}"), &[], "");
    assert!(["502", "504"].contains(&status(&away)) && away.contains("retry-after: "), "{away}");
}
