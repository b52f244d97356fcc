//! The hub by the commands: backups, the audit log, its pages, receipts handed in, packages pushed and pulled.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use tenure_testbed::wait_until;

use crate::guests::package;
use crate::harness::{Process, User, any_address};

/// The answer to a `GET` of `path` at the hub's pages.
pub(crate) fn get(url: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{header}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn hub_is_backed_up_while_it_runs_and_its_audit_log_is_verified() {
    let user = User::new();
    let mut hub = user.hub();
    let _device = user.device("attic", Some(&hub));
    hub.wait_until_listed("attic", 0);
    user.json(&["hub", "backup", "--data", "hub", "--to", "copy.sqlite"]);
    let verified = user.json(&["hub", "verify-audit", "copy.sqlite"]);
    assert_eq!(verified["entries"], 1, "the device was listed");
    let error = user.error(&["hub", "backup", "--data", "hub", "--to", "copy.sqlite"]);
    assert!(error.contains("copy.sqlite"), "{error}");
    let error = user.error(&["hub", "backup", "--data", "attic", "--to", "other.sqlite"]);
    assert!(error.contains("holds no hub"), "{error}");
    let error = user.error(&["hub", "restore", "--data", "hub", "--from", "copy.sqlite"]);
    assert!(error.contains("in use by another process"), "{error}");
    user.json(&["hub", "restore", "--data", "other", "--from", "copy.sqlite"]);
    let verified = user.json(&["hub", "verify-audit", "other/hub.sqlite"]);
    assert_eq!(verified["entries"], 1);
}

#[test]
fn device_beyond_those_that_a_hub_may_list_is_told_so_and_is_listed_once_there_is_a_place() {
    let user = User::new();
    let announced = |command| {
        let mut hub = Process::spawn(command);
        let announcement = hub.wait_for_event("listening");
        hub.address = announcement["address"].as_str().unwrap().to_string();
        let count = |name: &str| announcement[name].as_u64().unwrap();
        (hub, [count("devices"), count("devices_max")])
    };
    let mut command = user.own_hub(any_address());
    command.args(["--devices-max", "1"]);
    let (mut hub, counts) = announced(command);
    assert_eq!(counts, [0, 1]);
    let _attic = user.device("attic", Some(&hub));
    let listen = hub.address.clone();
    let cellar = ["device", "--data", "cellar", "--listen", any_address(), "--hub", &listen];
    let mut cellar = Process::start(user.command(&[&cellar[..], &["--json"]].concat()));
    assert_eq!(cellar.wait_for_event("refused")["devices_max"], 1);
    hub.wait_for("the table of devices", |line| {
        line["event"] == "full" && line["table"] == "devices"
    });
    hub.interrupt();
    let mut command = user.own_hub(&listen);
    command.env("TENURE_DEVICES_MAX", "2");
    let (hub, counts) = announced(command);
    assert_eq!(counts, [1, 2]);
    cellar.wait_for_event("registered");
    hub.interrupt();
    let (_hub, [listed, most]) = announced(user.own_hub(&listen));
    assert!(listed == 2 && (1_000..=100_000).contains(&most), "{listed} of {most}");
    let bad = user.command(&["hub", "--data", "x", "--open", "--devices-max", "0"]).output();
    let bad = bad.unwrap();
    let error = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert!(!bad.status.success() && error.contains("1..=1000000"), "{error}");
}

#[test]
fn owner_signs_in_with_the_key_and_sees_the_fleet_and_its_receipts() {
    let user = User::new();
    std::fs::write(user.path("tariff.toml"), "currency = \"EUR\"\nmemory_kib = 1\n").unwrap();
    let mut command = user.own_hub(any_address());
    command.args(["--pages", any_address(), "--tariff", "tariff.toml"]);
    let mut hub = Process::start(command);
    let device = user.device("attic", Some(&hub));
    user.install(&device, &["counter"]);
    hub.wait_until_listed("attic", 1);
    let handed_in = ["receipts", "--close", "--to-hub", "--device", &device.address];
    user.ok(&[&handed_in[..], &["--hub", &hub.address]].concat());
    let login = ["login", "--hub", &hub.address];
    let signed_in = user.json(&login);
    let (url, address) =
        (signed_in["url"].as_str().unwrap(), signed_in["address"].as_str().unwrap());
    let answer = get(url, address.strip_prefix(url).unwrap(), "");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    let page = get(url, "/", &cookie);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains(">attic<"), "{page}");
    assert!(get(url, "/devices/attic", &cookie).contains("counter"));
    assert!(get(url, "/bills", &cookie).contains("counter"));
    let token = user.json(&[&login[..], &["--token", "prometheus"]].concat());
    let bearer = format!("authorization: Bearer {}", token["token"].as_str().unwrap());
    assert!(get(url, "/metrics", &bearer).contains("\ntenure_receipts 1\n"));
    let stranger = user.error(&[&login[..], &["--tenant", "--token", "x"]].concat());
    // The tenant of the receipts is this user's own tenant key only if it made the package.
    assert!(stranger.contains("owns no device"), "{stranger}");
}

#[test]
fn log_of_a_device_that_was_started_for_it_is_watched_at_the_hub() {
    let user = User::new();
    let mut command = user.own_hub(any_address());
    command.args(["--pages", any_address()]);
    let mut hub = Process::start(command);
    let mut command = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    command.args(["--json", "--survives", "kill", "--hub", &hub.address, "--log-to-hub"]);
    let device = Process::start(command);
    user.install(&device, &["counter"]);
    hub.wait_until_listed("attic", 1);
    let login = ["login", "--hub", &hub.address];
    let token = user.json(&[&login[..], &["--token", "watcher", "--scope", "logs"]].concat());
    let url = user.json(&login)["url"].as_str().unwrap().to_string();
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let secret = token["token"].as_str().unwrap();
    let path = "/v1/devices/attic/log?machine=counter";
    write!(stream, "GET {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {secret}\r\n\r\n")
        .unwrap();
    let line =
        BufReader::new(stream).lines().map(Result::unwrap).find(|line| line.starts_with("data: "));
    let line: serde_json::Value = serde_json::from_str(&line.unwrap()[6..]).unwrap();
    assert_eq!((&line["machine"], &line["message"]), (&"counter".into(), &"installed".into()));
}

#[test]
fn package_is_pushed_and_pulled_in_sessions_and_what_is_no_package_is_not_taken() {
    let user = User::new();
    let hub = Process::start(user.own_hub(any_address()));
    let at = ["--hub", &hub.address];
    let counter = package("counter");
    let push = ["push", &counter, "--to", "house/counter:1"];
    let pushed = user.json(&[&push[..], &at[..]].concat());
    assert!(pushed["wasm"].is_null(), "{pushed}");
    let digest = pushed["digest"].as_str().unwrap();
    let by_digest = format!("house/counter@{digest}");
    for (reference, file) in [("house/counter:1", "one.tenure"), (by_digest.as_str(), "two.tenure")]
    {
        user.ok(&[&["pull", reference, "--to", file], &at[..]].concat());
        assert_eq!(std::fs::read(user.path(file)).unwrap(), std::fs::read(&counter).unwrap());
    }
    // A transfer that broke off, and one of another package.
    let whole = std::fs::read(&counter).unwrap();
    std::fs::write(user.path("three.part"), &whole[..100]).unwrap();
    let pull = [&["pull", "house/counter:1", "--to", "three.tenure"], &at[..]].concat();
    user.ok(&pull);
    assert_eq!(std::fs::read(user.path("three.tenure")).unwrap(), whole);
    std::fs::write(user.path("three.part"), b"another").unwrap();
    assert!(user.error(&pull).contains("pull it again"));
    user.ok(&pull);
    let unknown = [&["pull", "house/counter:2", "--to", "x.tenure"], &at[..]].concat();
    assert!(user.error(&unknown).ends_with("there is no such manifest or tag"));
    // Its WebAssembly by itself is for others: no device takes it.
    let pushed = user.json(&[&push[..], &["--wasm"], &at[..]].concat());
    let wasm = &pushed["wasm"];
    assert_eq!(
        (&pushed["digest"], &wasm["repository"]),
        (&digest.into(), &"house/counter/wasm".into())
    );
    let bare = [&["pull", "house/counter/wasm:1", "--to", "x.tenure"], &at[..]].concat();
    assert!(user.error(&bare).contains("not a package"), "{}", user.error(&bare));
    let tricks = [&["push", &counter, "--to", "../counter:1"], &at[..]].concat();
    assert!(user.error(&tricks).contains("a repository's name"));
    let stranger = [&["push", &counter, "--tenant"], &at[..]].concat();
    assert!(user.error(&stranger).contains("owns no device"));
}

#[test]
fn commands_on_the_page_of_a_device_install_what_was_pushed() {
    let user = User::new();
    let mut command = user.own_hub(any_address());
    command.args(["--pages", any_address()]);
    let mut hub = Process::start(command);
    let _device = user.device("attic", Some(&hub));
    hub.wait_until_listed("attic", 0);
    let at = ["--hub", &hub.address];
    user.ok(&[&["push", &package("counter"), "--to", "house/counter:1"], &at[..]].concat());
    let signed_in = user.json(&[&["login"], &at[..]].concat());
    let (url, address) =
        (signed_in["url"].as_str().unwrap(), signed_in["address"].as_str().unwrap());
    let answer = get(url, address.strip_prefix(url).unwrap(), "");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    let page = get(url, "/devices/attic", &cookie);
    let (_, rest) = page.split_once("<pre><code>").unwrap();
    let (commands, _) = rest.split_once("</code>").unwrap();
    let commands: Vec<&str> = commands.lines().collect();
    let [pull, install] = commands[..] else { panic!("two commands: {commands:?}") };
    for (command, more) in [(pull, &[][..]), (install, &["--grant", "none"][..])] {
        let words: Vec<&str> = command.strip_prefix("tenure ").unwrap().split(' ').collect();
        user.ok(&[&words[..], more, &at[..]].concat());
    }
    hub.wait_until_listed("attic", 1);
}

/// Makes a certificate for an address with its key, as `hub.pem` and `hub.key`.
pub(crate) fn make_certificate(user: &User, address: &str) {
    let name = format!("subjectAltName=IP:{address}");
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -subj /CN=hub \
                 -keyout hub.key -out hub.pem -addext";
    let mut openssl = Command::new("openssl");
    let output =
        openssl.args(words.split_whitespace()).arg(name).current_dir(user.path("")).output();
    let output = output.expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn hub_serves_pages_and_registry_over_tls_of_its_own_and_logs_requests_as_json() {
    let user = User::new();
    let curl = |words: &[&str]| {
        let trusts = ["--silent", "--show-error", "--compressed", "--cacert", "hub.pem"];
        let output =
            Command::new("curl").args(trusts).args(words).current_dir(user.path("")).output();
        let output = output.expect("curl is installed");
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    if Command::new("curl").arg("--version").output().is_err() {
        return tenure_testbed::skip_without_tool("curl");
    }
    make_certificate(&user, "127.0.0.1");
    let mut command = user.own_hub(any_address());
    let tls = ["--pages", "127.0.0.1:0", "--tls-cert", "hub.pem", "--tls-key", "hub.key"];
    command.args(tls).args(["--log", "json"]);
    let hub = Process::start(command);
    let at = ["--hub", &hub.address];
    let signed_in = user.json(&[&["login"][..], &at].concat());
    let url = signed_in["url"].as_str().unwrap();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    // Signing in, and a page by the cookie, which travels by TLS alone.
    let address = signed_in["address"].as_str().unwrap();
    let headers = curl(&["--include", "--cookie-jar", "cookies", address]).unwrap();
    assert!(headers.contains("; Secure; HttpOnly;"), "{headers}");
    let page = curl(&["--cookie", "cookies", url]).unwrap();
    assert!(page.contains("<h1>Devices</h1>"), "{page}");
    let token = [&["login"][..], &at, &["--token", "ci", "--scope", "packages,read"]].concat();
    let token = user.json(&token)["token"].as_str().unwrap().to_string();
    let by_token = format!("ci:{token}");
    let registry = curl(&["--user", &by_token, &format!("{url}/v2/")]).unwrap();
    assert_eq!(registry, "{}");
    assert_eq!(curl(&[&format!("{url}/health")]).unwrap(), "alive\n");
    assert_eq!(curl(&[&format!("{url}/ready")]).unwrap(), "ready\n");
    assert!(curl(&[&url.replace("https", "http")]).is_err(), "no page without TLS");
    // A certificate that is renewed is shown to the next who comes.
    make_certificate(&user, "127.0.0.1");
    wait_until(|| curl(&[&format!("{url}/health")]));
    let log = hub.interrupt_and_read();
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let requests: Vec<_> = lines.filter(|line| line["message"] == "answered").collect();
    let of = |route: &str| requests.iter().find(|line| line["span"]["route"] == route).unwrap();
    assert_eq!((&of("/")["status"], &of("/v2/")["status"]), (&200.into(), &200.into()));
    assert_eq!(of("/v2/")["span"]["host"], "127.0.0.1");
    // The answer and the log have the same id.
    let id = headers.lines().find_map(|line| line.strip_prefix("x-request-id: ")).unwrap().trim();
    assert!(requests.iter().any(|line| line["span"]["id"] == id), "{id}: {log}");
    assert!(of("/")["span"]["who"].as_str().is_some_and(|who| who.contains('-')), "{log}");
    let (_, code) = address.split_once("code=").unwrap();
    assert!(!log.contains(code) && !log.contains(&token), "{log}");
    assert!(log.contains("took a new certificate"), "{log}");
}
