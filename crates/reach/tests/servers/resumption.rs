//! Connections that begin by a ticket of an earlier one, with OpenSSL's server.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tenure_kernel::Ask;
use tenure_testbed::{free_ipv4_address, skip_without_tool, wait_until};

use crate::harness::Device;
use crate::nginx::pem;
use crate::tls::certificate;

/// `openssl s_server`, which answers one request a connection, and says how that began. It ends with this.
struct OpenSsl(Child);

impl OpenSsl {
    fn start(folder: &Path, address: &str) -> Self {
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", address, "-www", "-tls1_3"]);
        command.args(["-cert", "server.pem", "-key", "server.key"]).current_dir(folder);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self(child.spawn().unwrap());
        wait_until(|| TcpStream::connect(address).map_err(|error| error.to_string()));
        server
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address, a folder with a certificate for it and its key, and a device that trusts that; `None` without OpenSSL.
fn place() -> Option<(String, TempDir, Device)> {
    if Command::new("openssl").arg("version").output().is_err() {
        skip_without_tool("openssl");
        return None;
    }
    let address = free_ipv4_address();
    let (der, key) = certificate(address.split(':').next().unwrap());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("server.pem"), pem("CERTIFICATE", &der)).unwrap();
    let key = pem("PRIVATE KEY", &key.serialize_der());
    std::fs::write(folder.path().join("server.key"), key).unwrap();
    let device = Device::trusting(vec![der.to_vec()], &[]);
    Some((address, folder, device))
}

/// How the connection of this machine began, in the server's word.
fn began(device: &mut Device, machine: u8, address: &str) -> &'static str {
    let ask = Ask::Request {
        method: "GET".parse().unwrap(),
        url: format!("https://{address}/").parse().unwrap(),
        message: None,
    };
    device.begin(machine, ask);
    let mut page = device.end().result.unwrap().unwrap();
    loop {
        device.begin(machine, Ask::More);
        match device.end().result {
            Ok(Some(part)) => page.extend(part),
            _ => break,
        }
    }
    let page = String::from_utf8_lossy(&page);
    let has = |word: &&&str| page.contains(&format!("\n{word}, TLSv1.3, "));
    ["New", "Reused"].iter().find(has).unwrap_or_else(|| panic!("{page}"))
}

#[test]
fn second_connection_to_a_server_is_resumed_and_another_machines_is_not() {
    let Some((address, folder, mut device)) = place() else { return };
    let _server = OpenSsl::start(folder.path(), &address);
    assert_eq!(began(&mut device, 1, &address), "New");
    for _ in 0..3 {
        assert_eq!(began(&mut device, 1, &address), "Reused");
    }
    assert_eq!(began(&mut device, 2, &address), "New", "each machine has tickets of its own");
    assert_eq!(began(&mut device, 2, &address), "Reused");
    let state = device.state();
    assert_eq!((state.handshakes, state.resumed), (6, 4));
}

#[test]
fn ticket_that_the_server_does_not_know_any_more_leads_to_a_whole_handshake() {
    let Some((address, folder, mut device)) = place() else { return };
    let server = OpenSsl::start(folder.path(), &address);
    assert_eq!(began(&mut device, 1, &address), "New");
    drop(server);
    // The key of its tickets is another.
    let _server = OpenSsl::start(folder.path(), &address);
    assert_eq!(began(&mut device, 1, &address), "New");
    assert_eq!(began(&mut device, 1, &address), "Reused");
}
