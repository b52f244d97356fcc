//! Brokers over TLS that prove nothing: none of them is told a byte of the session, with its user and password.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tenure_bridge::{Bridge, Broker, Certificates, Settings};
use tenure_testbed::patience;
use tenure_tls_client::{Date, Dates};
use tenure_wire::LogLevel;
use tenure_wire::control::DateTeller;

use crate::{CONNACK, line, settings};

const PASSWORD: &[u8] = b"a-word-for-the-broker-alone";

/// A certificate for `name` that vouches for itself, and its key.
fn certificate(name: &str) -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec![name.to_string()]).unwrap();
    (parameters.self_signed(&key).unwrap().der().clone(), key)
}

/// A broker that speaks those versions of TLS and shows that certificate, or without one speaks none; and what it is told.
fn broker(
    shown: Option<(&CertificateDer<'static>, &KeyPair)>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> (SocketAddr, Receiver<Vec<u8>>) {
    let config = shown.map(|(der, key)| {
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth();
        Arc::new(builder.with_single_cert(vec![der.clone()], private).unwrap())
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (teller, told) = channel();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            let mut bytes = [0; 4096];
            let Some(config) = &config else {
                let _ = tcp.write_all(&CONNACK);
                while let Ok(length @ 1..) = tcp.read(&mut bytes) {
                    let _ = teller.send(bytes[..length].to_vec());
                }
                continue;
            };
            let mut tls = rustls::ServerConnection::new(Arc::clone(config)).unwrap();
            let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
            while let Ok(length @ 1..) = stream.read(&mut bytes) {
                let _ = teller.send(bytes[..length].to_vec());
            }
        }
    });
    (address, told)
}

/// A bridge to the broker at `address`, which trusts that authority alone.
fn bridge(address: SocketAddr, trusted: &CertificateDer<'static>) -> (Bridge, tempfile::TempDir) {
    let usual = settings(address);
    let settings = Settings {
        broker: Broker { is_secure: true, ..usual.broker.clone() },
        certificates: Certificates {
            authorities: vec![trusted.to_vec()],
            ..Certificates::default()
        },
        user: Some("attic".into()),
        password: Some(PASSWORD.to_vec().into()),
        ..usual
    };
    let dates = Dates::new(|| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(Date { since_1970, teller: DateTeller::Clock })
    });
    let folder = tempfile::tempdir().unwrap();
    let bridge = Bridge::start(settings, dates, &folder.path().join("bridge.db")).unwrap();
    (bridge, folder)
}

fn has_password(bytes: &[u8]) -> bool {
    bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD)
}

#[test]
fn broker_with_a_false_certificate_or_an_older_tls_or_none_is_told_nothing() {
    let (trusted, key) = certificate("127.0.0.1");
    let (of_another_name, key_of_another) = certificate("127.0.0.2");
    let (of_nobody, key_of_nobody) = certificate("127.0.0.1");
    let all = rustls::ALL_VERSIONS;
    let cases = [
        ("another authority", broker(Some((&of_nobody, &key_of_nobody)), all), &trusted),
        ("another name", broker(Some((&of_another_name, &key_of_another)), all), &of_another_name),
        ("TLS 1.2", broker(Some((&trusted, &key)), &[&rustls::version::TLS12]), &trusted),
        ("no TLS", broker(None, all), &trusted),
    ];
    for (what, (address, told), trusted) in cases {
        let (mut bridge, _folder) = bridge(address, trusted);
        let error = line(&mut bridge, LogLevel::Error);
        assert!(error.starts_with("bridge: "), "{what}: {error}");
        drop(bridge);
        let told: Vec<u8> = told.try_iter().flatten().collect();
        assert!(!has_password(&told), "{what}");
        let is_hello = what == "no TLS" && told.first() == Some(&22);
        assert!(is_hello || told.is_empty(), "{what} was told {told:?}");
    }
    // The broker that is meant is told it.
    let (address, told) = broker(Some((&trusted, &key)), all);
    let (_bridge, _folder) = bridge(address, &trusted);
    let mut connect = Vec::new();
    while !has_password(&connect) {
        connect.extend(told.recv_timeout(patience()).expect("more of the session's beginning"));
    }
    assert_eq!(connect.first(), Some(&0x10), "a CONNECT");
}
