//! Visits to servers that speak TLS.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, PublicKeyData as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use tenure_reach::{ClientIdentity, Server as Known, ServerTrust, Servers};
use tenure_tls_client::Date;
use tenure_wire::NoResult;
use tenure_wire::control::DateTeller;

use crate::harness::{Device, Server, date_of_today, ok, read_request};

/// A certificate for `name` that vouches for itself, and its key.
pub(crate) fn certificate(name: &str) -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec![name.to_string()]).unwrap();
    (parameters.self_signed(&key).unwrap().der().clone(), key)
}

/// A TLS server with a certificate for `name`, and the certificate.
fn secure_server(
    name: &str,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> (Server, Vec<u8>) {
    let (der, key) = certificate(name);
    (secure_server_with(&der, &key, versions, None), der.to_vec())
}

/// A TLS server with that certificate, which asks for one of `clients`.
fn secure_server_with(
    der: &CertificateDer<'static>,
    key: &KeyPair,
    versions: &[&'static rustls::SupportedProtocolVersion],
    clients: Option<&CertificateDer<'static>>,
) -> Server {
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = match clients {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(client) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(client.clone()).unwrap();
            let builder =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            builder.build().unwrap()
        }
    };
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![der.clone()], private)
        .unwrap();
    let config = Arc::new(config);
    Server::start(move |mut tcp| {
        let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
        while let Some(request) = read_request(&mut stream) {
            let body = request.split(' ').nth(1).unwrap().repeat(5_000);
            if stream.write_all(&ok(&body)).is_err() || stream.flush().is_err() {
                return;
            }
        }
    })
}

#[test]
fn server_over_tls_is_judged_by_its_certificate() {
    let (server, certificate) = secure_server("127.0.0.1", rustls::ALL_VERSIONS);
    let url = |path: &str| format!("https://{}{path}", server.address);
    let mut device = Device::trusting(vec![certificate.clone()], &[]);
    for path in ["/a", "/b"] {
        let told = device.told("GET", &url(path));
        let mut body = told.split_once("\r\n\r\n").unwrap().1.as_bytes().to_vec();
        while let Some(part) = device.more().unwrap() {
            body.extend(part);
        }
        assert_eq!(body, path.repeat(5_000).as_bytes());
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);

    let (reason, words) = Device::new(&[]).failed("GET", &url("/"));
    assert_eq!(reason, NoResult::Denied, "{words}");
    let (other, its) = secure_server("a.example", rustls::ALL_VERSIONS);
    let mut device = Device::trusting(vec![its], &[]);
    let (reason, words) = device.failed("GET", &format!("https://{}/", other.address));
    assert_eq!(reason, NoResult::Denied, "another name: {words}");
    let (old, its) = secure_server("127.0.0.1", &[&rustls::version::TLS12]);
    let mut device = Device::trusting(vec![its], &[]);
    let (reason, words) = device.failed("GET", &format!("https://{}/", old.address));
    assert_eq!(reason, NoResult::Unreachable, "TLS 1.2: {words}");
    let plain = Server::start(|mut stream| drop(stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n")));
    let (reason, words) = device.failed("GET", &format!("https://{}/", plain.address));
    assert_eq!(reason, NoResult::Unreachable, "no TLS: {words}");
}

/// A certificate for 127.0.0.1 that holds from February 2026 until 2036, and its key.
fn certificate_of_today() -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec!["127.0.0.1".to_string()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2026, 2, 1);
    parameters.not_after = rcgen::date_time_ymd(2036, 1, 1);
    (parameters.self_signed(&key).unwrap().der().clone(), key)
}

#[test]
fn device_that_does_not_know_the_date_judges_no_certificate_and_says_how_it_learns_it() {
    let (der, key) = certificate_of_today();
    let server = secure_server_with(&der, &key, rustls::ALL_VERSIONS, None);
    let url = format!("https://{}/", server.address);
    let today = date_of_today().unwrap().since_1970;
    let device = |date: Option<(Duration, DateTeller)>| {
        let (der, date) =
            (der.to_vec(), date.map(|(since_1970, teller)| Date { since_1970, teller }));
        Device::at(move || date, Servers::new(move || Ok(vec![der.clone()])), &[])
    };
    let (reason, words) = device(None).failed("GET", &url);
    assert_eq!(reason, NoResult::Denied, "{words}");
    assert!(
        words.contains("does not know the time; it learns it by its system's clock"),
        "{words}"
    );
    // A clock that is years off: the error names it, and its teller.
    for (date, teller, expected) in [
        (
            Duration::from_secs(1_767_225_600),
            DateTeller::Clock,
            "not valid yet; by its own clock it is 2026-01-01T00:00:00Z",
        ),
        (
            Duration::from_secs(2_208_988_800),
            DateTeller::Hub,
            "expired; by its hub it is 2040-01-01T00:00:00Z",
        ),
    ] {
        let (reason, words) = device(Some((date, teller))).failed("GET", &url);
        assert_eq!(reason, NoResult::Denied, "{words}");
        assert!(words.ends_with(expected), "{words}");
    }
    let told = device(Some((today, DateTeller::Owner))).told("GET", &url);
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
}

#[test]
fn pinned_key_needs_no_date_and_a_date_that_is_learnt_counts_from_then_on() {
    let (der, key) = certificate_of_today();
    let server = secure_server_with(&der, &key, rustls::ALL_VERSIONS, None);
    let url = format!("https://{}/", server.address);
    let origin = || url.parse::<tenure_wire::Url>().unwrap().origin().clone();
    let trust = Some(ServerTrust::Keys(vec![key.subject_public_key_info()]));
    let known = [(origin(), Known { trust, identity: None })];
    let servers = Servers::new(|| Err("there are none".into())).with(known.into());
    let told = Device::at(|| None, servers, &[]).told("GET", &url);
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");

    let learnt = Arc::new(AtomicBool::new(false));
    let (knows, der) = (Arc::clone(&learnt), der.to_vec());
    let date = move || date_of_today().filter(|_| knows.load(Ordering::SeqCst));
    let mut device = Device::at(date, Servers::new(move || Ok(vec![der.clone()])), &[]);
    assert_eq!(device.failed("GET", &url).0, NoResult::Denied);
    learnt.store(true, Ordering::SeqCst);
    assert!(device.told("GET", &url).starts_with("HTTP/1.1 200"));
}

/// Visits of a device that knows of `server` what `known` says.
fn device_that_knows(server: &Server, known: Known) -> Device {
    let origin = format!("https://{}", server.address).parse().unwrap();
    let servers = Servers::new(|| Err("there are none".into())).with([(origin, known)].into());
    Device::with(servers, &[])
}

#[test]
fn server_with_a_pinned_key_is_trusted_for_that_key_alone() {
    let (der, key) = certificate("a.name.of.no.interest");
    let server = secure_server_with(&der, &key, rustls::ALL_VERSIONS, None);
    let pinned = |key: &KeyPair| Known {
        trust: Some(ServerTrust::Keys(vec![key.subject_public_key_info()])),
        identity: None,
    };
    let url = format!("https://{}/", server.address);
    assert!(device_that_knows(&server, pinned(&key)).told("GET", &url).starts_with("HTTP/1.1 200"));
    let other = KeyPair::generate().unwrap();
    let (reason, words) = device_that_knows(&server, pinned(&other)).failed("GET", &url);
    assert_eq!(reason, NoResult::Denied, "{words}");
    // What is said of one server says nothing of another.
    let elsewhere = secure_server_with(&der, &key, rustls::ALL_VERSIONS, None);
    let url = format!("https://{}/", elsewhere.address);
    let (reason, words) = device_that_knows(&server, pinned(&key)).failed("GET", &url);
    assert_eq!(reason, NoResult::Denied, "{words}");
    assert!(words.contains("there are none"), "{words}");
}

#[test]
fn server_that_asks_who_comes_is_shown_the_devices_certificate() {
    let (client, client_key) = certificate("device");
    let (der, key) = certificate("127.0.0.1");
    let server = secure_server_with(&der, &key, rustls::ALL_VERSIONS, Some(&client));
    let trust = Some(ServerTrust::Authorities(vec![der.to_vec()]));
    let shown = |der: &CertificateDer<'_>, key: &KeyPair| {
        let identity =
            ClientIdentity { chain: vec![der.to_vec()], key: key.serialize_der().into() };
        Known { trust: trust.clone(), identity: Some(identity) }
    };
    let url = format!("https://{}/", server.address);
    let mut device = device_that_knows(&server, shown(&client, &client_key));
    assert!(device.told("GET", &url).starts_with("HTTP/1.1 200"));
    let (other, other_key) = certificate("device");
    let mut device = device_that_knows(&server, shown(&other, &other_key));
    let (reason, words) = device.failed("GET", &url);
    assert_eq!(reason, NoResult::Unreachable, "a stranger's: {words}");
    let mut device = device_that_knows(&server, Known { trust, identity: None });
    let (reason, words) = device.failed("GET", &url);
    assert_eq!(reason, NoResult::Unreachable, "none: {words}");
}
