//! Interoperation with OpenSSL 3, the usual one: its server and our client.

mod common;

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{GROUPS, Seen, client_config, converse, now};
use tempfile::TempDir;
use tenure_crypto::Group;
use tenure_tls::x509::{Anchor, ServerName};
use tenure_tls::{Client, Error, PreSharedKey, Suite, Trust};

fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .output()
        .expect("openssl is installed");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A root, an intermediate and a server's certificate, all with keys of one kind.
fn chain(kind: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let key = match kind.split_once('-') {
        Some(("rsa", bits)) => format!("rsa -pkeyopt rsa_keygen_bits:{bits}"),
        Some(("ec", curve)) => format!("EC -pkeyopt ec_paramgen_curve:{curve}"),
        _ => kind.to_owned(),
    };
    for name in ["root", "middle", "leaf"] {
        openssl(at, &format!("genpkey -algorithm {key} -out {name}.key"));
    }
    std::fs::write(
        at.join("ext"),
        "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
         [leaf]\nbasicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\n\
         extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=DNS:server.test,IP:127.0.0.1\n",
    )
    .expect("a file");
    openssl(at, "req -new -key root.key -subj /CN=root -out root.csr");
    openssl(
        at,
        "x509 -req -in root.csr -signkey root.key -days 9 -extfile ext -extensions ca -out root.pem",
    );
    for (name, issuer, section) in [("middle", "root", "ca"), ("leaf", "middle", "leaf")] {
        openssl(at, &format!("req -new -key {name}.key -subj /CN={name} -out {name}.csr"));
        openssl(
            at,
            &format!(
                "x509 -req -in {name}.csr -CA {issuer}.pem -CAkey {issuer}.key -CAcreateserial \
             -days 9 -extfile ext -extensions {section} -out {name}.pem"
            ),
        );
    }
    openssl(at, "x509 -in root.pem -outform DER -out root.der");
    openssl(at, "pkey -in leaf.key -pubout -outform DER -out leaf.spki");
    folder
}

struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// `openssl s_server` that answers requests for pages, with more arguments.
    fn start(folder: &TempDir, arguments: &[&str]) -> Self {
        // The system finds a port that is free now.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let mut process = Command::new("openssl")
            .args(["s_server", "-accept", &port.to_string(), "-cert", "leaf.pem"])
            .args(["-key", "leaf.key", "-cert_chain", "middle.pem", "-www"])
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is installed");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        while !lines.next().expect("a line").expect("a line").contains("ACCEPT") {}
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, port }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("a server")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

fn is_page(seen: &Seen) -> bool {
    String::from_utf8_lossy(&seen.received).contains("</HTML>")
}

/// The DER of the only certificate that is trusted, which lives as long as the test.
fn root(folder: &TempDir) -> Vec<u8> {
    std::fs::read(folder.path().join("root.der")).expect("a root")
}

#[test]
fn every_suite_and_group_fetches_a_page() {
    let folder = chain("ec-P-256");
    let (root, server) =
        (root(&folder), Server::start(&folder, &["-groups", "X25519:P-256:P-384"]));
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    for suite in Suite::ALL {
        for group in [Group::X25519, Group::Secp256r1, Group::Secp384r1] {
            let mut config = client_config(&anchors);
            let (suites, groups) = ([*suite], [group]);
            config.suites = &suites;
            config.groups = &groups;
            let mut buffer = [0; 20_000];
            let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
            let seen = converse(&mut client, server.connect(), REQUEST, is_page);
            let seen = seen.unwrap_or_else(|error| panic!("{suite:?} {group:?}: {error}"));
            assert!(is_page(&seen), "{suite:?} {group:?}");
            assert_eq!((client.suite(), client.group()), (Some(*suite), Some(group)));
            assert_eq!(seen.certificates, 2);
        }
    }
}

#[test]
fn every_kind_of_certificate_is_verified() {
    for kind in ["ec-P-256", "ec-P-384", "ed25519", "rsa-2048", "rsa-3072", "rsa-4096"] {
        let folder = chain(kind);
        let (root, server) = (root(&folder), Server::start(&folder, &[]));
        let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
        let config = client_config(&anchors);
        let mut buffer = [0; 20_000];
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        let seen = converse(&mut client, server.connect(), REQUEST, is_page);
        assert!(is_page(&seen.unwrap_or_else(|error| panic!("{kind}: {error}"))), "{kind}");
    }
}

#[test]
fn a_server_that_wants_another_group_gets_it_by_a_retry() {
    let folder = chain("ec-P-256");
    let (root, server) = (root(&folder), Server::start(&folder, &["-groups", "P-384"]));
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let config = client_config(&anchors);
    let mut buffer = [0; 20_000];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen));
    assert_eq!(client.group(), Some(Group::Secp384r1));
}

#[test]
fn a_small_buffer_is_kept_to_by_a_fragment_length() {
    let folder = chain("ec-P-256");
    let (root, server) = (root(&folder), Server::start(&folder, &[]));
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let mut config = client_config(&anchors);
    config.groups = &GROUPS[..1];
    let mut buffer = [0; 2_200];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen) && seen.received.len() > 2_200);
}

#[test]
fn a_ticket_resumes() {
    let folder = chain("ec-P-256");
    let root = root(&folder);
    let server = Server::start(&folder, &[]);
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let mut config = client_config(&anchors);
    let mut buffer = [0; 20_000];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, |seen| {
        is_page(seen) && !seen.tickets.is_empty()
    });
    drop(client);
    let ticket = seen.expect("a page").tickets.remove(0);
    config.pre_shared_key = Some(PreSharedKey {
        identity: &ticket.identity,
        key: &ticket.key,
        suite: ticket.suite,
        is_external: false,
        obfuscated_age: ticket.age_add,
        early_data_bytes_max: ticket.early_data_bytes_max,
    });
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen) && client.is_resumed());
    assert_eq!(seen.certificates, 0);
}

#[test]
fn an_external_key_needs_no_certificate() {
    let folder = chain("ec-P-256");
    let arguments = ["-psk", "00112233445566778899aabbccddeeff", "-psk_identity", "device 7"];
    let server = Server::start(&folder, &arguments);
    let mut config = client_config(&[]);
    config.pre_shared_key = Some(PreSharedKey {
        identity: b"device 7",
        key: b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
        suite: Suite::ChaCha20Poly1305Sha256,
        is_external: true,
        obfuscated_age: 0,
        early_data_bytes_max: 0,
    });
    let mut buffer = [0; 20_000];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen) && client.is_resumed());
}

#[test]
fn a_pinned_key_is_trusted_whatever_its_certificate_says() {
    let folder = chain("ec-P-256");
    let server = Server::start(&folder, &[]);
    let key = std::fs::read(folder.path().join("leaf.spki")).expect("a key");
    let mut config = client_config(&[]);
    config.server_name = ServerName::Dns("another.test");
    let mut buffer = [0; 20_000];
    for (keys, outcome) in [([&key[..]], true), ([&key[1..]], false)] {
        let mut config = config;
        config.trust = Trust::Keys(&keys);
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        let seen = converse(&mut client, server.connect(), REQUEST, is_page);
        assert_eq!(seen.is_ok(), outcome);
        if let Err(error) = seen {
            assert!(matches!(error, Error::Certificate(_)));
        }
    }
}
