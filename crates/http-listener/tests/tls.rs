//! Connections with TLS: the same bounds as without, and the certificate that the files hold at the time.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tenure_http_listener::{Bounds, Certificates, Entrance, serve};
use tenure_testbed::{any_address, wait_until};

const NAME: &str = "hub.example";
const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: hub.example\r\nconnection: close\r\n\r\n";

/// A server with its files.
struct Server {
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl Server {
    fn start(bounds: Bounds) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = paths(&folder);
        renew(&folder);
        let certificates = Some(Certificates::read(&certificate, &key).unwrap());
        let listener = std::net::TcpListener::bind(any_address()).unwrap();
        let answer = |_: Request<Incoming>| async { Response::new("there".to_string()) };
        let entrance = Entrance { listener, certificates };
        let address = serve(entrance, "trial", bounds, answer).unwrap();
        Self { folder, address }
    }

    /// Whether a client is answered that trusts the certificate that the file holds now, and no other.
    fn answers(&self) -> std::io::Result<()> {
        let [certificate, _] = paths(&self.folder);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(NAME).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(self.address)?);
        stream.write_all(ASK)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let is_whole = answer.starts_with("HTTP/1.1 200") && answer.ends_with("there");
        if is_whole { Ok(()) } else { Err(std::io::Error::other(answer)) }
    }
}

fn paths(folder: &tempfile::TempDir) -> [PathBuf; 2] {
    ["certificate.pem", "key.pem"].map(|name| folder.path().join(name))
}

/// Writes a new certificate with its key.
fn renew(folder: &tempfile::TempDir) {
    let made = rcgen::generate_simple_self_signed([NAME.to_string()]).unwrap();
    let [certificate, key] = paths(folder);
    std::fs::write(certificate, made.cert.pem()).unwrap();
    std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
}

#[test]
fn requests_come_by_tls_and_a_certificate_that_is_renewed_is_shown_to_the_next_who_comes() {
    let server = Server::start(Bounds::USUAL);
    server.answers().unwrap();
    renew(&server.folder);
    // The client trusts the new one alone.
    wait_until(|| server.answers());
}

#[test]
fn client_that_says_nothing_or_no_tls_gives_its_place_back() {
    let soon = Duration::from_millis(200);
    let bounds = Bounds { connections: 1, by_host: false, header_timeout: soon, ..Bounds::USUAL };
    let server = Server::start(bounds);
    let silent = TcpStream::connect(server.address).unwrap();
    // There is one place, and it comes back while the silent one is still connected.
    wait_until(|| server.answers());
    drop(silent);
    let mut plain = TcpStream::connect(server.address).unwrap();
    plain.write_all(ASK).unwrap();
    let mut said = Vec::new();
    // A connection that is closed may be reset, too.
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&said));
    wait_until(|| server.answers());
}
