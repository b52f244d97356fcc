//! Visits to nginx, as it comes from Debian.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use data_encoding::BASE64_MIME;
use rcgen::KeyPair;
use rustls::pki_types::CertificateDer;
use tenure_reach::{ClientIdentity, Server as Known, ServerTrust, Servers};
use tenure_testbed::{find_server, free_ipv4_address, skip_without_tool, wait_until};
use tenure_wire::NoResult;

use crate::harness::Device;
use crate::tls::certificate;

/// nginx with its files in a folder, over TLS with certificates of clients. It ends with this.
struct Nginx {
    child: Child,
    address: String,
    certificate: CertificateDer<'static>,
    client: (CertificateDer<'static>, KeyPair),
    _folder: tempfile::TempDir,
}

/// A page of which nginx sends the beginning before it knows the length.
const CHUNKED: &str = "before <!--#echo var=\"uri\" --> after\n";

impl Nginx {
    /// `None` where there is no nginx.
    fn start() -> Option<Self> {
        let Some(program) = find_server("nginx") else {
            skip_without_tool("nginx (Debian: nginx-light)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let address = free_ipv4_address();
        let (host, _) = address.split_once(':').unwrap();
        let ((server, key), client) = (certificate(host), certificate("device"));
        write("server.pem", &pem("CERTIFICATE", &server));
        write("server.key", &pem("PRIVATE KEY", &key.serialize_der()));
        write("client.pem", &pem("CERTIFICATE", &client.0));
        std::fs::create_dir(folder.path().join("pages")).unwrap();
        write("pages/long", &long_page());
        write("pages/chunked.html", CHUNKED);
        write("nginx.conf", &configuration(folder.path(), &address));
        let child = Command::new(program)
            .arg("-p")
            .arg(folder.path())
            .args(["-e", "stderr", "-c", "nginx.conf"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Self { child, address, certificate: server, client, _folder: folder };
        wait_until(|| {
            std::net::TcpStream::connect(&nginx.address).map_err(|error| error.to_string())
        });
        Some(nginx)
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A device that trusts it, and shows it this identity.
    fn visitor(&self, identity: Option<ClientIdentity>, granted: &[&str]) -> Device {
        let trust = Some(ServerTrust::Authorities(vec![self.certificate.to_vec()]));
        let known = [(self.url("").parse().unwrap(), Known { trust, identity })];
        Device::with(Servers::new(|| Err("there are none".into())).with(known.into()), granted)
    }

    /// One that it knows.
    fn guest(&self, granted: &[&str]) -> Device {
        let (der, key) = &self.client;
        let identity =
            ClientIdentity { chain: vec![der.to_vec()], key: key.serialize_der().into() };
        self.visitor(Some(identity), granted)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes as PEM (RFC 7468 §2).
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\r\n{}-----END {label}-----\n", BASE64_MIME.encode(der))
}

fn long_page() -> String {
    (0..50_000).map(|number| format!("{number:05}\n")).collect()
}

fn configuration(folder: &Path, address: &str) -> String {
    let folder = folder.display();
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  types {{ text/html html; }}
  gzip_types text/plain; gzip_min_length 1; keepalive_requests 3;
  server {{
    listen {address} ssl; root {folder}/pages;
    ssl_certificate server.pem; ssl_certificate_key server.key; ssl_protocols TLSv1.3;
    ssl_client_certificate client.pem; ssl_verify_client on;
    location = /resumed {{ return 200 $ssl_session_reused; }}
    location = /who {{ return 200 $ssl_client_s_dn; }}
    location = /chunked.html {{ ssi on; }}
    location = /moved {{ return 302 /v1/there; }}
    location = /v1/away {{ return 302 /admin; }}
    location /v1/ {{ return 200 $request_method$uri; }}
    location = /packed {{ gzip on; default_type text/plain; return 200 \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"; }}
  }}
}}
"
    )
}

/// Reads a page to its end, head and body.
fn whole(device: &mut Device, url: &str) -> (String, Vec<u8>) {
    let told = device.told("GET", url);
    let (head, body) = told.split_once("\r\n\r\n").unwrap();
    let (head, mut body) = (head.to_string(), body.as_bytes().to_vec());
    while let Some(part) = device.more().unwrap() {
        body.extend(part);
    }
    (head, body)
}

#[test]
fn nginx_is_visited_with_a_certificate_and_its_pages_come_whole() {
    let Some(nginx) = Nginx::start() else { return };
    let mut device = nginx.guest(&[&nginx.url("/v1/*")]);
    // More often than a connection may be used.
    for _ in 0..5 {
        let (head, body) = whole(&mut device, &nginx.url("/long"));
        assert!(head.contains("content-length: 300000") && head.contains("etag: "), "{head}");
        assert!(body == long_page().as_bytes(), "{} bytes", body.len());
    }
    let (head, body) = whole(&mut device, &nginx.url("/chunked.html"));
    assert!(!head.contains("content-length: 39"), "{head}");
    assert_eq!(String::from_utf8(body).unwrap(), "before /chunked.html after\n");
    assert!(device.told("GET", &nginx.url("/v1/a")).ends_with("GET/v1/a"));
    assert!(device.told("PUT", &nginx.url("/v1/a")).ends_with("PUT/v1/a"));
    assert!(device.told("GET", &nginx.url("/moved")).ends_with("GET/v1/there"));
    assert_eq!(device.failed("GET", &nginx.url("/v1/away")).0, NoResult::Denied);
    let head = device.told("HEAD", &nginx.url("/long"));
    assert!(head.contains("content-length: 300000") && head.ends_with("\r\n\r\n"), "{head}");
    let told = device.told("GET", &nginx.url("/nothing"));
    assert!(told.starts_with("HTTP/1.1 404 "), "{told}");
    let subject = device.told("GET", &nginx.url("/who"));
    assert!(subject.to_lowercase().contains("cn="), "{subject}");
}

#[test]
fn fields_of_a_machine_reach_nginx_and_its_answers_the_machine() {
    let Some(nginx) = Nginx::start() else { return };
    let mut device = nginx.guest(&[]);
    let mut told = |fields: &str, path: &str| {
        let visited = device.ask("GET", &nginx.url(path), Some(&format!("{fields}\r\n\r\n")));
        visited.result.unwrap().unwrap()
    };
    let part = String::from_utf8(told("range: bytes=6-10", "/long")).unwrap();
    assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\n00001"), "{part}");
    let whole = String::from_utf8(told("accept: */*", "/long")).unwrap();
    let tag = whole.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let same = String::from_utf8(told(&format!("if-none-match: {tag}"), "/long")).unwrap();
    assert!(same.starts_with("HTTP/1.1 304 "), "{same}");
    let plain = String::from_utf8(told("accept: */*", "/packed")).unwrap();
    assert!(plain.ends_with(&"a".repeat(32)), "nginx packs nothing for who asks for none: {plain}");
}

#[test]
fn nginx_that_is_shown_no_certificate_or_anothers_serves_nothing() {
    let Some(nginx) = Nginx::start() else { return };
    let (der, key) = certificate("device");
    let stranger = ClientIdentity { chain: vec![der.to_vec()], key: key.serialize_der().into() };
    for identity in [None, Some(stranger)] {
        // It says so in HTTP, not in TLS.
        let told = nginx.visitor(identity, &[]).told("GET", &nginx.url("/v1/a"));
        assert!(told.starts_with("HTTP/1.1 400 ") && !told.contains("GET/v1/a"), "{told}");
    }
}

#[test]
fn connection_to_nginx_that_follows_another_is_resumed() {
    let Some(nginx) = Nginx::start() else { return };
    let mut device = nginx.guest(&[]);
    // It closes each connection after three requests.
    let resumed = |device: &mut Device| device.told("GET", &nginx.url("/resumed"));
    for _ in 0..3 {
        assert!(resumed(&mut device).ends_with("\r\n\r\n."));
    }
    for _ in 0..3 {
        assert!(resumed(&mut device).ends_with("\r\n\r\nr"), "nginx says that it was resumed");
    }
    let state = device.state();
    assert_eq!((state.handshakes, state.resumed), (2, 1));
}
