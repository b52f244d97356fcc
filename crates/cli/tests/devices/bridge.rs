//! Devices whose topics are bridged to a real broker, Debian's Mosquitto, and its own clients.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;
use tenure_testbed::{find_server, patience, skip_without_tool, wait_until};

use crate::harness::{Process, User, any_address, free_ipv4_address};

const PERIPHERALS: &str = r#"
[lamp]
kind = "lamp"
[temperature]
kind = "thermometer"
period_ms = 20
points = [[0.0, 15.0]]
"#;

/// The name of the tests' own client at the broker.
const WATCHER: &str = "watcher";

/// The broker, killed when dropped.
pub(crate) struct Mosquitto {
    child: Child,
    log: Receiver<String>,
    address: String,
    /// How its clients reach it.
    client: Vec<String>,
}

impl Mosquitto {
    /// Starts the broker in `folder` at `address`, with these lines of configuration; `None` if there is no Mosquitto here.
    pub(crate) fn start(folder: &Path, address: &str, lines: &str) -> Option<Self> {
        let Some(program) = find_server("mosquitto") else {
            skip_without_tool("mosquitto (Debian: mosquitto, mosquitto-clients)");
            return None;
        };
        let (host, port) = address.rsplit_once(':').unwrap();
        let configuration = folder.join("mosquitto.conf");
        // As root it would else become a user who may not read the folder.
        let text = format!("user root\nlistener {port} {host}\nlog_type all\n{lines}\n");
        std::fs::write(&configuration, text).unwrap();
        let mut child = Command::new(program)
            .arg("-c")
            .arg(&configuration)
            .current_dir(folder)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, log) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        let client = ["-h", host, "-p", port].map(String::from).to_vec();
        let broker = Self { child, log, address: address.into(), client };
        broker.wait_for_log("running");
        Some(broker)
    }

    /// Waits until the broker's log has a line that ends so.
    fn wait_for_log(&self, words: &str) {
        let deadline = Instant::now() + patience();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.log.recv_timeout(left) {
                Ok(line) if line.contains(words) => return,
                Ok(_) => {}
                Err(_) => panic!("the broker's log has no `{words}`"),
            }
        }
    }

    /// Lets the broker's own clients speak TLS, and show the certificate `name`, whose files are in `folder`.
    pub(crate) fn show_certificate(&mut self, folder: &Path, authority: &str, name: &str) {
        let whole = |file: &str| folder.join(file).into_os_string().into_string().unwrap();
        let files = [authority, &format!("{name}.pem"), &format!("{name}.key")].map(whole);
        for (option, file) in ["--cafile", "--cert", "--key"].into_iter().zip(files) {
            self.client.extend([option.to_string(), file]);
        }
    }

    fn open(user: &User) -> Option<Self> {
        Self::start(&user.path(""), &free_ipv4_address(), "allow_anonymous true")
    }

    /// Waits until the subscription of this device is acknowledged: a message that comes before is for nobody. A device's name is
    /// its client's; the log has the tests' own clients, too.
    fn wait_until_subscribed(&self, device: &str) {
        self.wait_for_log(&format!("Sending SUBACK to {device}"));
    }

    /// Publishes by the broker's own client.
    pub(crate) fn publish(&self, topic: &str, payload: &str) {
        let mut command = Command::new("mosquitto_pub");
        command.args(&self.client).args(["-q", "2", "-t", topic, "-m", payload]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Publishes each line as a message, by the broker's own client.
    pub(crate) fn publish_lines(&self, topic: &str, lines: &str) {
        let mut command = Command::new("mosquitto_pub");
        command.args(&self.client).args(["-q", "1", "-t", topic, "-l"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// Subscribes by the broker's own client, until so many messages came.
    pub(crate) fn subscribe(&self, filter: &str, count: usize) -> Subscriber {
        let mut command = Command::new("mosquitto_sub");
        command.args(&self.client).args(["-q", "2", "-v", "-i", WATCHER, "-t", filter]);
        command.args(["-C", &count.to_string(), "-W", &patience().as_secs().to_string()]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        self.wait_for_log(&format!("Sending SUBACK to {WATCHER}"));
        Subscriber(child)
    }

    /// The messages that the broker has kept for a filter, at once.
    pub(crate) fn kept(&self, filter: &str) -> String {
        let mut command = Command::new("mosquitto_sub");
        command.args(&self.client).args(["-v", "-W", "1", "--retained-only", "-t", filter]);
        let Output { stdout, .. } = command.output().unwrap();
        String::from_utf8(stdout).unwrap()
    }

    /// Waits until the broker has kept `line` for `filter`.
    pub(crate) fn wait_until_kept(&self, filter: &str, line: &str) {
        wait_until(|| {
            let kept = self.kept(filter);
            if kept.lines().any(|one| one == line) {
                Ok(())
            } else {
                Err(format!("{line}: {kept}"))
            }
        });
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the broker's that waits for messages.
pub(crate) struct Subscriber(Child);

impl Subscriber {
    /// All messages, once they are as many as were wanted: topic and payload.
    pub(crate) fn messages(self) -> Vec<String> {
        let Output { stdout, .. } = self.0.wait_with_output().unwrap();
        String::from_utf8(stdout).unwrap().lines().map(String::from).collect()
    }
}

/// The file of a bridge to `broker` with these rules, and what else it says.
pub(crate) fn bridge(user: &User, broker: &str, more: &str) {
    std::fs::write(user.path("bridge.toml"), format!("broker = \"{broker}\"\n{more}")).unwrap();
}

pub(crate) const LAMP: &str = r#"
[[out]]
topic = "device.lamp"
to = "home/lamp"
qos = 2
retain = true
[[in]]
from = "home/lamp/set"
topic = "command.lamp"
qos = 2
"#;

pub(crate) fn command(user: &User, name: &str, more: &[&str]) -> Command {
    std::fs::write(user.path("peripherals.toml"), PERIPHERALS).unwrap();
    let mut command =
        user.command(&["device", "--data", name, "--listen", any_address(), "--json"]);
    command.args(["--survives", "kill", "--bridge", "bridge.toml"]).args(more);
    command
}

fn device(user: &User) -> Process {
    Process::start(command(user, "attic", &["--peripherals", "peripherals.toml"]))
}

#[test]
fn peripheral_is_read_and_told_by_the_broker_and_nothing_else_crosses() {
    let user = User::new();
    let Some(broker) = Mosquitto::open(&user) else { return };
    bridge(&user, &format!("mqtt://{}", broker.address), LAMP);
    let everything = broker.subscribe("#", 6);
    let mut device = device(&user);
    device.wait_for_log("attic", &format!("bridge: connected to mqtt://{}", broker.address));
    broker.wait_until_kept("home/lamp", "home/lamp off");
    broker.publish("home/lamp/set", "on");
    broker.wait_until_kept("home/lamp", "home/lamp on");
    broker.publish("home/other", "on");
    assert_eq!(device.interrupt().code(), Some(0));
    broker.wait_until_kept("tenure/#", "tenure/attic/status offline");
    let mut messages = everything.messages();
    messages.sort();
    let expected = [
        "home/lamp off",
        "home/lamp on",
        "home/lamp/set on",
        "home/other on",
        "tenure/attic/status offline",
        "tenure/attic/status online",
    ];
    assert_eq!(messages, expected);
}

/// The device's status of its bridge, once it is as it should be.
fn wait_for_status(user: &User, device: &Process, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_until(|| {
        let status = user.json(&["status", "--device", &device.address]);
        let bridge = &status["outside"]["bridge"];
        if is_so(bridge) { Ok(bridge.clone()) } else { Err(bridge.to_string()) }
    })
}

#[test]
fn status_says_whether_the_broker_is_there_and_how_much_waits_for_it() {
    let user = User::new();
    let Some(broker) = Mosquitto::open(&user) else { return };
    let (address, url) = (broker.address.clone(), format!("mqtt://{}", broker.address));
    bridge(&user, &url, "[[out]]\ntopic = \"device.*\"\nto = \"home\"\n");
    let climbing = "[temperature]\nkind = \"thermometer\"\nperiod_ms = 200\n\
                    points = [[0.0, 15.0], [1000.0, 1015.0]]\n";
    std::fs::write(user.path("climbing.toml"), climbing).unwrap();
    let device = Process::start(command(&user, "attic", &["--peripherals", "climbing.toml"]));
    let status = wait_for_status(&user, &device, |bridge| bridge["connected_ms"].is_u64());
    assert_eq!((&status["broker"], &status["reconnections"]), (&url.clone().into(), &0.into()));
    drop(broker);
    let status = wait_for_status(&user, &device, |bridge| {
        bridge["connected_ms"].is_null() && bridge["queued_messages"].as_u64() > Some(1)
    });
    assert!(status["queued_bytes"].as_u64().unwrap() > 2 * 64, "{status}");
    assert!(status["last_error"]["words"].is_string(), "{status}");
    assert_eq!(status["dropped"], 0);
    let text = user.ok(&["status", "--device", &device.address]);
    assert!(
        text.contains(&format!("bridge    not connected to {url}, 0 reconnections; ")),
        "{text}"
    );
    assert!(text.contains("          last error at 2"), "{text}");
    let _broker = Mosquitto::start(&user.path(""), &address, "allow_anonymous true").unwrap();
    let status = wait_for_status(&user, &device, |bridge| {
        bridge["connected_ms"].is_u64() && bridge["queued_messages"] == 0
    });
    assert_eq!(status["reconnections"], 1);
}

#[test]
fn device_that_is_killed_is_offline_by_its_last_will_and_then_online_again() {
    let user = User::new();
    let Some(broker) = Mosquitto::open(&user) else { return };
    bridge(&user, &format!("mqtt://{}", broker.address), LAMP);
    let first = device(&user);
    broker.wait_until_kept("tenure/#", "tenure/attic/status online");
    first.kill();
    broker.wait_until_kept("tenure/#", "tenure/attic/status offline");
    // A message for it waits at the broker meanwhile.
    broker.publish("home/lamp/set", "on");
    let mut second = device(&user);
    second.wait_for_log("attic", "its session goes on");
    broker.wait_until_kept("tenure/#", "tenure/attic/status online");
    broker.wait_until_kept("home/lamp", "home/lamp on");
}

#[test]
fn events_without_a_broker_wait_over_a_kill_and_come_once_and_in_order() {
    let user = User::new();
    let address = free_ipv4_address();
    let rules = "[[out]]\ntopic = \"device.*\"\nto = \"home\"\nqos = 2\n";
    bridge(&user, &format!("mqtt://{address}"), rules);
    // A button tells of no press before the device looked for the first time, which on a busy computer is late.
    let presses: Vec<String> =
        (1..400).map(|number| format!("{:.1}", 0.3 * f64::from(number))).collect();
    let button =
        format!("[button]\nkind = \"button\"\npresses = [{}]\nheld_ms = 100\n", presses.join(", "));
    std::fs::write(user.path("button.toml"), button).unwrap();
    let start = || Process::start(command(&user, "attic", &["--peripherals", "button.toml"]));
    let mut first = start();
    first.wait_for_log("attic", &format!("no connection to {address}"));
    let queued = || -> rusqlite::Result<Vec<String>> {
        let file = rusqlite::Connection::open(user.path("attic/bridge.db"))?;
        let mut rows = file.prepare("SELECT topic, payload FROM outgoing ORDER BY number")?;
        let message = |row: &rusqlite::Row<'_>| {
            let (topic, payload): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
            Ok(format!("{topic} {}", String::from_utf8_lossy(&payload)))
        };
        rows.query_map([], message)?.collect()
    };
    wait_until(|| match queued() {
        Ok(messages) if messages.len() >= 6 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    first.kill();
    let waiting = queued().unwrap();
    let alternate = |pair: &[String]| pair[0] != pair[1];
    assert!(waiting.windows(2).all(alternate), "each press and its release: {waiting:?}");

    let Some(broker) = Mosquitto::start(&user.path(""), &address, "allow_anonymous true") else {
        return;
    };
    let buttons = broker.subscribe("home/button", waiting.len() + 1);
    let _second = start();
    let messages = buttons.messages();
    assert_eq!(messages[..waiting.len()], waiting);
    assert!(
        messages[waiting.len()].starts_with("home/button "),
        "of the second start: {messages:?}"
    );
}

#[test]
fn broker_that_goes_and_comes_again_is_found() {
    let user = User::new();
    let Some(broker) = Mosquitto::open(&user) else { return };
    let address = broker.address.clone();
    bridge(&user, &format!("mqtt://{address}"), LAMP);
    let mut device = device(&user);
    device.wait_for_log("attic", "bridge: connected");
    drop(broker);
    device.wait_for_log("attic", "trying again");
    let broker = Mosquitto::start(&user.path(""), &address, "allow_anonymous true").unwrap();
    device.wait_for_log("attic", "a new session");
    // A broker that forgot the session is asked for everything again.
    wait_until(|| {
        broker.publish("home/lamp/set", "on");
        let kept = broker.kept("home/lamp");
        if kept == "home/lamp on\n" { Ok(()) } else { Err(kept) }
    });
}

/// Makes an authority, a certificate of the broker at `host` and one of a client.
pub(crate) fn certificates(folder: &Path, host: &str) -> bool {
    if Command::new("openssl").arg("version").output().is_err() {
        skip_without_tool("openssl");
        return false;
    }
    let ext = format!(
        "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
         [server]\nsubjectAltName=IP:{host}\nextendedKeyUsage=serverAuth\n\
         [client]\nextendedKeyUsage=clientAuth\nsubjectAltName=DNS:attic\n"
    );
    std::fs::write(folder.join("ext"), ext).unwrap();
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        let output = command.args(arguments.split_whitespace()).current_dir(folder).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    for name in ["ca", "server", "client"] {
        openssl(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {name}.key"));
        openssl(&format!("req -new -key {name}.key -subj /CN={name} -out {name}.csr"));
    }
    openssl("x509 -req -in ca.csr -signkey ca.key -days 9 -extfile ext -extensions ca -out ca.pem");
    for name in ["server", "client"] {
        openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 \
             -extfile ext -extensions {name} -out {name}.pem"
        ));
    }
    true
}

#[test]
fn broker_over_tls_is_judged_and_asks_for_a_certificate_of_the_device() {
    let user = User::new();
    let folder = user.path("");
    let address = free_ipv4_address();
    if !certificates(&folder, address.split(':').next().unwrap()) {
        return;
    }
    let lines = "allow_anonymous true\ncafile ca.pem\ncertfile server.pem\nkeyfile server.key\n\
                 require_certificate true\nuse_identity_as_username true";
    let Some(mut broker) = Mosquitto::start(&folder, &address, lines) else { return };
    broker.show_certificate(&folder, "ca.pem", "client");
    let url = format!("mqtts://{}", broker.address);

    // Without a certificate of its own.
    bridge(&user, &url, &format!("ca = [\"ca.pem\"]\n{LAMP}"));
    let mut stranger = device(&user);
    stranger.wait_for_log("attic", "trying again");
    assert!(!broker.kept("tenure/#").contains("online"));
    drop(stranger);

    // With one, and a broker that an authority of others vouches for.
    let own = "certificate = \"client.pem\"\nkey = \"client.key\"\n";
    bridge(&user, &url, &format!("ca = [\"client.pem\"]\n{own}{LAMP}"));
    let mut careful = device(&user);
    let refused = careful.wait_for_log("attic", "trying again");
    assert!(refused.contains("TLS: "), "{refused}");
    drop(careful);

    bridge(&user, &url, &format!("ca = [\"ca.pem\"]\n{own}{LAMP}"));
    let mut device = device(&user);
    device.wait_for_log("attic", &format!("bridge: connected to {url}"));
    broker.wait_until_subscribed("attic");
    broker.publish("home/lamp/set", "on");
    broker.wait_until_kept("home/lamp", "home/lamp on");
}

#[test]
fn broker_that_refuses_the_password_is_in_the_devices_log_and_the_device_goes_on() {
    let user = User::new();
    std::fs::write(user.path("passwords"), "").unwrap();
    let lines = "allow_anonymous false\npassword_file passwords";
    let Some(broker) = Mosquitto::start(&user.path(""), &free_ipv4_address(), lines) else {
        return;
    };
    let password = user.path("password");
    std::fs::write(&password, "guessed\n").unwrap();
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600)).unwrap();
    let more = format!("user = \"attic\"\npassword_file = \"password\"\n{LAMP}");
    bridge(&user, &format!("mqtt://{}", broker.address), &more);
    let mut device = device(&user);
    device.wait_for_log("attic", "the broker refuses the connection: not authorized");
    let log = user.ok(&["log", "--device", &device.address]);
    assert!(log.contains("bridge: the broker refuses the connection"), "{log}");
    let events = user.json(&["events", "--device", &device.address]);
    let subscriptions = events["subscriptions"].as_array().unwrap();
    let bridge = subscriptions.iter().find(|one| one["subscriber"] == "bridge").unwrap();
    assert_eq!(bridge["topics"], "device.lamp");
}

#[test]
fn entities_appear_in_home_assistant_by_themselves() {
    let user = User::new();
    let Some(broker) = Mosquitto::open(&user) else { return };
    let rules = r#"
discovery = "homeassistant"
[[out]]
topic = "device.*"
to = "home/attic"
retain = true
[[in]]
from = "home/lamp/set"
topic = "command.lamp"
home_assistant = { component = "switch", payload_on = "on", payload_off = "off", state_topic = "home/attic/lamp" }
"#;
    bridge(&user, &format!("mqtt://{}", broker.address), rules);
    let _device = device(&user);
    let config = |topic: &str| -> Value {
        let line = wait_until(|| {
            let kept = broker.kept(topic);
            kept.strip_prefix(topic).map(str::to_string).ok_or(kept)
        });
        serde_json::from_str(line.trim()).unwrap()
    };
    let sensor = config("homeassistant/sensor/attic/device_temperature/config");
    assert_eq!(sensor["state_topic"], "home/attic/temperature");
    assert_eq!(sensor["availability_topic"], "tenure/attic/status");
    let switch = config("homeassistant/switch/attic/command_lamp/config");
    assert_eq!(
        (&switch["command_topic"], &switch["payload_on"]),
        (&"home/lamp/set".into(), &"on".into())
    );
    broker.wait_until_kept("home/attic/temperature", "home/attic/temperature 15.0");
}

#[test]
fn messages_of_a_shared_subscription_come_to_one_device_each() {
    let user = User::new();
    let Some(broker) = Mosquitto::open(&user) else { return };
    let rules = "[[in]]\nfrom = \"jobs/+\"\ntopic = \"jobs\"\nshare = \"workers\"\n";
    bridge(&user, &format!("mqtt://{}", broker.address), rules);
    let start = |name: &str| {
        let mut device = Process::start(command(&user, name, &[]));
        device.wait_for_log(name, "bridge: connected");
        broker.wait_until_subscribed(name);
        device
    };
    let devices = [start("attic"), start("cellar")];
    let came = || -> u64 {
        let published = devices.iter().map(|device| {
            let events = user.json(&["events", "--device", &device.address]);
            let topics = events["topics"].as_array().unwrap().clone();
            let jobs = topics.iter().find(|one| one["topic"] == "jobs");
            jobs.map_or(0, |one| one["published"].as_u64().unwrap())
        });
        published.sum()
    };
    for number in 0..8 {
        broker.publish(&format!("jobs/{number}"), "x");
    }
    wait_until(|| match came() {
        8 => Ok(()),
        count if count < 8 => Err(format!("{count} of 8 came")),
        count => panic!("{count} came of 8"),
    });
}

#[test]
fn run_with_a_bridge_is_recorded_and_repeated_without_a_broker() {
    let user = User::new();
    let Some(broker) = Mosquitto::open(&user) else { return };
    bridge(&user, &format!("mqtt://{}", broker.address), LAMP);
    let more = ["--peripherals", "peripherals.toml", "--record", "tape"];
    let mut device = Process::start(command(&user, "attic", &more));
    device.wait_for_log("attic", "bridge: connected");
    broker.wait_until_subscribed("attic");
    broker.publish("home/lamp/set", "on");
    broker.wait_until_kept("home/lamp", "home/lamp on");
    assert_eq!(device.interrupt().code(), Some(0));
    drop(broker);
    let replayed = user.ok(&["replay", "tape"]);
    assert!(replayed.contains("bridge: connected") && replayed.contains("the same"), "{replayed}");
}
