//! A device with 256 KB of flash and 32 KB of RAM that publishes to a real broker over TLS, with a client key in a secure
//! element.
//!
//! The emulator's network passes what the device sends to an address of loopback on to this computer's.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use tenure_testbed::{skip_without_right, skip_without_tool};

use crate::boards::{PUBLISHER, firmware, xtask};
use crate::bridge::Mosquitto;
use crate::harness::{Process, User, finish, free_ipv4_address, signal};

/// The broker's name.
const NAME: &str = "broker.test";
const EXTENSIONS: &str = "\
[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
[client]\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\nsubjectAltName=DNS:attic\n";
/// A broker that takes whom its authority vouches for, by the name in the certificate.
const LINES: &str = "cafile ca.pem\ncertfile server.pem\nkeyfile server.key\nrequire_certificate true\n\
                     use_identity_as_username true\nmax_queued_messages 0";

/// A folder with an authority, a broker's certificate, the tests' own and the device's.
struct Scene {
    user: User,
    address: String,
}

impl Scene {
    /// `None` if there is no OpenSSL here.
    fn new() -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            skip_without_tool("openssl");
            return None;
        }
        let scene = Self { user: User::new(), address: free_ipv4_address() };
        let host = scene.host();
        let server = format!(
            "[server]\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n\
             subjectAltName=DNS:{NAME},IP:{host}\n"
        );
        std::fs::write(scene.user.path("ext"), format!("{EXTENSIONS}{server}")).unwrap();
        scene.make_authority("ca");
        for (name, section) in [("server", "server"), ("watcher", "client")] {
            scene.make_key(name);
            scene.certify(name, section, "");
        }
        Some(scene)
    }

    fn host(&self) -> &str {
        self.address.split(':').next().unwrap()
    }

    fn port(&self) -> &str {
        self.address.split(':').nth(1).unwrap()
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments.split_whitespace()).current_dir(self.user.path(""));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn make_key(&self, name: &str) {
        let curve = "EC -pkeyopt ec_paramgen_curve:P-256";
        self.openssl(&format!("genpkey -algorithm {curve} -out {name}.key"));
        self.openssl(&format!("req -new -key {name}.key -subj /CN={name} -out {name}.csr"));
    }

    fn make_authority(&self, name: &str) {
        self.make_key(name);
        self.openssl(&format!(
            "x509 -req -in {name}.csr -signkey {name}.key -days 9 -extfile ext -extensions ca -out {name}.pem"
        ));
    }

    /// Has the authority make a certificate with the extensions of `section`.
    fn certify(&self, name: &str, section: &str, more: &str) {
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 {more} \
             -extfile ext -extensions {section} -out {name}.pem"
        ));
    }

    /// The broker; `None` if there is no Mosquitto here.
    fn broker(&self) -> Option<Mosquitto> {
        let mut broker = Mosquitto::start(&self.user.path(""), &self.address, LINES)?;
        broker.show_certificate(&self.user.path(""), "ca.pem", "watcher");
        Some(broker)
    }

    /// The device, with these options of its board.
    fn command(&self, options: &[&str]) -> Command {
        let firmware = firmware(PUBLISHER);
        let fixed = ["board", "qemu-publisher", "--firmware", firmware.to_str().unwrap()];
        xtask(&self.user, &[&fixed[..], &["--data", "attic"], options].concat())
    }

    /// The device's public key, which it shows as long as there is no certificate for it.
    fn shown_key(&self, options: &[&str]) -> String {
        let output = finish(self.command(options));
        let shown = String::from_utf8(output.stdout).unwrap().replace('\r', "");
        assert!(!output.status.success(), "it starts: {shown}");
        let begin = shown.find("-----BEGIN PUBLIC KEY-----").unwrap_or_else(|| panic!("{shown}"));
        let key = shown[begin..].split_inclusive("-----END PUBLIC KEY-----\n").next().unwrap();
        key.to_string()
    }

    /// Makes the device's certificate for the key that its element has made.
    fn certify_device(&self) {
        let key = self.shown_key(&["--broker", &self.address]);
        std::fs::write(self.user.path("attic.pub"), &key).unwrap();
        // The request is signed by another key, as the element's isn't asked to.
        self.make_key("attic");
        self.certify("attic", "client", "-force_pubkey attic.pub");
        assert_eq!(self.shown_key(&[]), key, "the key outlasts a cut of the power");
    }

    /// The device with its certificate, publishing to `broker`.
    fn device(&self, broker: &str, period: &str, more: &[&str]) -> Process {
        let fixed = ["--broker", broker, "--certificate", "attic.pem", "--period", period];
        Process::spawn(self.command(&[&fixed[..], more].concat()))
    }
}

/// Warms the device's thermometer, by the monitor of its emulator.
fn warm(folder: &Path, thousandths: i32) {
    let mut monitor = UnixStream::connect(folder.join("attic/monitor")).unwrap();
    let order =
        format!("qom-set /machine/peripheral/thermometer temperature {thousandths}\nwarmer\n");
    monitor.write_all(order.as_bytes()).unwrap();
    // It has obeyed the first line once it complains about the second.
    let mut shown = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&shown).contains("unknown command") {
        monitor.read_exact(&mut byte).unwrap();
        shown.push(byte[0]);
    }
}

/// Answers each question for the address of a name: `address`. `None` where that port is only root's.
fn resolver(address: Ipv4Addr) -> Option<()> {
    let Ok(socket) = UdpSocket::bind((address, 53)) else {
        skip_without_right("answer questions at the port of the DNS");
        return None;
    };
    std::thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            // RFC 1035 §4.1: a response, without error; one answer, whose name is that of the question.
            let mut answer = bytes[..length].to_vec();
            answer[2..8].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1]);
            answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            answer.extend(address.octets());
            let _ = socket.send_to(&answer, from);
        }
    });
    Some(())
}

#[test]
fn publisher_has_its_elements_key_certified_and_is_heard_by_a_broker_that_it_finds_by_name() {
    let Some(scene) = Scene::new() else { return };
    let Some(broker) = scene.broker() else { return };
    scene.certify_device();
    let host: Ipv4Addr = scene.host().parse().unwrap();
    let (named, dns) = (format!("{NAME}:{}", scene.port()), host.to_string());
    let (place, dns) = match resolver(host) {
        Some(()) => (&named, &["--dns", &dns][..]),
        None => (&scene.address, &[][..]),
    };
    let mut device = scene.device(place, "1", &[&["--authority", "ca.pem"], dns].concat());
    let trust = device.wait_for_words("trusts");
    assert!(trust.contains("the date of its settings"), "{trust}");
    device.wait_for_words("address 10.0.2.15/24, by DHCP");
    device.wait_for_words("connected as attic");
    broker.wait_until_kept("attic/#", "attic/status online");
    warm(&scene.user.path(""), 21_500);
    let readings = broker.subscribe("attic/temperature", 4).messages();
    // The first may have been on its way.
    assert_eq!(readings[1..], ["attic/temperature 21.500"; 3]);
    warm(&scene.user.path(""), -3_500);
    let readings = broker.subscribe("attic/temperature", 2).messages();
    assert_eq!(readings[1], "attic/temperature -3.500");
    device.wait_for_words("published");
    broker.publish("attic/command", "period 1800");
    device.wait_for_words("command `period 1800`: done");
    let asked = broker.subscribe("attic/temperature", 1);
    broker.publish("attic/command", "read");
    device.wait_for_words("command `read`: done");
    assert_eq!(asked.messages(), ["attic/temperature -3.500"]);
    broker.publish("attic/command", "dance\u{1B}[2J");
    let unknown = device.wait_for_words("dance");
    assert!(unknown.contains("not known") && !unknown.contains('\u{1B}'), "{unknown}");
    device.kill();
    broker.wait_until_kept("attic/#", "attic/status offline");
}

#[test]
fn publisher_finds_its_broker_again_and_brings_the_readings_of_meanwhile() {
    let Some(scene) = Scene::new() else { return };
    let Some(broker) = scene.broker() else { return };
    scene.certify_device();
    let folder = scene.user.path("");
    let mut device = scene.device(&scene.address, "2", &["--authority", "ca.pem"]);
    device.wait_for_words("connected as attic");
    warm(&folder, 12_000);
    device.wait_for_words("published");
    drop(broker);
    let lost = device.wait_for_words("again in");
    assert!(lost.contains(&format!("broker {}: ", scene.address)), "{lost}");
    // Nobody listens there, for at least three seconds, in which it has read the thermometer.
    device.wait_for_words("no connection to");
    device.wait_for_words("no connection to");
    warm(&folder, 30_000);
    // It stands still until somebody listens at the broker who comes again.
    let emulator = std::fs::read_to_string(folder.join("attic/ram.pid")).unwrap();
    let emulator = emulator.trim().parse().unwrap();
    signal("STOP", emulator);
    let broker = scene.broker().unwrap();
    let readings = broker.subscribe("attic/temperature", 9);
    signal("CONT", emulator);
    device.wait_for_words("connected as attic");
    let readings = readings.messages();
    assert_eq!(readings[0], "attic/temperature 12.000");
    assert_eq!(readings[8], "attic/temperature 30.000");
    broker.wait_until_kept("attic/#", "attic/status online");
}

#[test]
fn publisher_that_is_flooded_with_commands_goes_on_within_its_memory() {
    let Some(scene) = Scene::new() else { return };
    let Some(broker) = scene.broker() else { return };
    scene.certify_device();
    let mut device = scene.device(&scene.address, "1", &["--authority", "ca.pem"]);
    device.wait_for_words("connected as attic");
    let long = "x".repeat(900) + "\n";
    // One that is longer than it takes stays at the broker.
    broker.publish_lines("attic/command", &(long.repeat(200) + &"y\n".repeat(800)));
    broker.publish("attic/command", &"z".repeat(2_000));
    broker.publish("attic/command", "period 1800");
    device.wait_for_words("command `period 1800`: done");
    let seen = |command: &str| {
        let words = device.seen().iter().filter_map(|line| line["words"].as_str());
        words.filter(|words| words.starts_with(&format!("command `{command}"))).count()
    };
    assert_eq!([seen("x"), seen("y"), seen("z")], [200, 800, 0]);
}

#[test]
fn publisher_refuses_a_broker_of_another_authority_and_a_certificate_of_another_key() {
    let Some(scene) = Scene::new() else { return };
    let Some(broker) = scene.broker() else { return };
    scene.certify_device();
    scene.make_authority("other");
    let mut device = scene.device(&scene.address, "1", &["--authority", "other.pem"]);
    let refused = device.wait_for_words("again in");
    assert!(refused.contains("TLS: the peer's certificate is refused"), "{refused}");
    device.wait_for_words("again in");
    device.kill();
    assert!(!broker.kept("attic/#").contains("online"));

    // The same broker is taken by its key alone, by a device that isn't told the date.
    scene.openssl("pkey -in server.key -pubout -out server.pub");
    let mut device = scene.device(&scene.address, "1", &["--broker-key", "server.pub"]);
    device.wait_for_words("doesn't know the date");
    device.wait_for_words("connected as attic");
    device.kill();
    scene.openssl("pkey -in other.key -pubout -out other.pub");
    let mut device = scene.device(&scene.address, "1", &["--broker-key", "other.pub"]);
    let refused = device.wait_for_words("again in");
    assert!(refused.contains("TLS: the peer's certificate is refused"), "{refused}");
    device.kill();

    // Its own certificate with another key than the element's.
    let other =
        ["--broker", &scene.address, "--certificate", "watcher.pem", "--authority", "ca.pem"];
    let mut command = scene.command(&other);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("is for another key"), "{shown}");
}
