//! OpenSSL's programs: chains of certificates, and its server.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Runs `openssl` in `folder`.
pub(crate) fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .output()
        .expect("openssl is installed");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A root, an intermediate and a server's certificate, all with keys of one kind.
pub(crate) fn chain(kind: &str) -> TempDir {
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

/// A server of OpenSSL's.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
}

impl Server {
    /// `openssl s_server` that answers requests for pages, with more arguments.
    pub(crate) fn start(folder: &TempDir, arguments: &[&str]) -> Self {
        let mut process = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-cert", "leaf.pem"])
            .args(["-key", "leaf.key", "-cert_chain", "middle.pem", "-www"])
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is installed");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        // It says which port the system gave it: `ACCEPT 127.0.0.1:40455`.
        let port = loop {
            let line = lines.next().expect("a line").expect("a line");
            if let Some(address) = line.strip_prefix("ACCEPT ") {
                break address.rsplit(':').next().and_then(|port| port.parse().ok());
            }
        };
        let port = port.expect("a port");
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, port }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("a server")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The DER of the only certificate that is trusted, which lives as long as the test.
pub(crate) fn root(folder: &TempDir) -> Vec<u8> {
    std::fs::read(folder.path().join("root.der")).expect("a root")
}
