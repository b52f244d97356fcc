//! `tenure-bench-publisher [--json]`: what the board `qemu-publisher` takes in an emulator that counts instructions: a
//! connection to Mosquitto by TCP, TLS 1.3 and MQTT 5, a reading from the thermometer to the broker's acknowledgment, and
//! the most of heap and stack.
//!
//! While the processor sleeps, for the network or the secure element, it runs no instructions.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

use tenure_bench_report::{Program, Row};

const HELP: &str = "\
Usage: tenure-bench-publisher [--json]

Prints the instructions of a connection and of a published reading of the board qemu-publisher, and the most of its heap
and its stack, against Mosquitto on this computer. Flash and RAM are those of `cargo xtask size qemu-publisher`.

  --json   one object a line: bench, target, subject, metric, unit, value
";

/// The readings of which the middle one is printed.
const READINGS: usize = 9;
/// In the emulator that counts, an instruction takes a nanosecond.
const INSTRUCTIONS_PER_MICROSECOND: f64 = 1_000.0;
/// The host as the emulator's network has it, for its certificate.
const HOST: &str = "10.0.2.2";

fn main() -> ExitCode {
    Program { help: HELP, targets: &["publisher"] }.run(|_, rows| {
        rows.extend(measure()?);
        Ok(())
    })
}

fn measure() -> Result<Vec<Row>, String> {
    let folder = products().join("publisher-bench");
    // What the last run left is none of this one's.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let port = free_port()?;
    make_certificates(&folder)?;
    let place = format!("{HOST}:{port}");
    certify_device(&folder, &place)?;
    let _broker = broker(&folder, port)?;
    let options =
        ["--certificate", "device.pem", "--authority", "ca.pem", "--period", "1", "--count"];
    let mut device = Device::start(&folder, &[&["--broker", &place][..], &options].concat())?;
    let connected = device.wait_for("connected as")?;
    let memory = device.wait_for("memory: ")?;
    // The first is begun before the connection.
    device.wait_for("published; ")?;
    let mut readings = (0..READINGS)
        .map(|_| number_before(&device.wait_for("published; ")?, " us"))
        .collect::<Result<Vec<_>, _>>()?;
    readings.sort_by(f64::total_cmp);
    let heap = number_before(&memory, " of ")?;
    let stack = number_before(memory.split("heap, ").nth(1).unwrap_or_default(), " of ")?;
    let row = |metric: &str, unit, value| Row {
        bench: "publisher".into(),
        target: "thumbv6m".into(),
        subject: "tenure".into(),
        metric: metric.into(),
        unit,
        value,
    };
    let connection = number_before(&connected, " us")?;
    Ok(vec![
        row(
            "connection: TCP, TLS 1.3, MQTT",
            "instructions",
            connection * INSTRUCTIONS_PER_MICROSECOND,
        ),
        row(
            "reading, published and acknowledged",
            "instructions",
            readings[READINGS / 2] * INSTRUCTIONS_PER_MICROSECOND,
        ),
        row("heap at most", "bytes", heap),
        row("stack at most", "bytes", stack),
    ])
}

/// The number in front of `words`.
fn number_before(line: &str, words: &str) -> Result<f64, String> {
    let before = line.split(words).next().unwrap_or_default();
    let number = before.rsplit(' ').next().unwrap_or_default();
    number.parse().map_err(|_| format!("no number in front of `{words}`: {line}"))
}

fn products() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::var("CARGO_TARGET_DIR").map_or(here.join("target"), PathBuf::from)
}

/// An authority, a broker's certificate, and a request for the device's; all keys are of P-256.
fn make_certificates(folder: &Path) -> Result<(), String> {
    let extensions = format!(
        "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
         [broker]\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\nsubjectAltName=IP:{HOST}\n\
         [device]\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\n"
    );
    std::fs::write(folder.join("ext"), extensions).map_err(|error| error.to_string())?;
    for name in ["ca", "broker", "device"] {
        let curve = "EC -pkeyopt ec_paramgen_curve:P-256";
        openssl(folder, &format!("genpkey -algorithm {curve} -out {name}.key"))?;
        openssl(folder, &format!("req -new -key {name}.key -subj /CN={name} -out {name}.csr"))?;
    }
    let signed = "-days 9 -extfile ext -extensions";
    openssl(folder, &format!("x509 -req -in ca.csr -signkey ca.key {signed} ca -out ca.pem"))?;
    certify(folder, "broker", "")
}

fn certify(folder: &Path, name: &str, more: &str) -> Result<(), String> {
    openssl(
        folder,
        &format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial {more} -days 9 -extfile ext \
             -extensions {name} -out {name}.pem"
        ),
    )
}

/// Has the device's element make a key, and the authority a certificate for it.
fn certify_device(folder: &Path, place: &str) -> Result<(), String> {
    let output = board(folder, &["--broker", place]).output().map_err(|error| error.to_string())?;
    let shown = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    let Some(begin) = shown.find("-----BEGIN PUBLIC KEY-----") else {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the device shows no key: {shown}{error}"));
    };
    std::fs::write(folder.join("device.pub"), &shown[begin..])
        .map_err(|error| error.to_string())?;
    certify(folder, "device", "-force_pubkey device.pub")
}

fn openssl(folder: &Path, arguments: &str) -> Result<(), String> {
    let mut command = Command::new("openssl");
    command.args(arguments.split_whitespace()).current_dir(folder);
    let output = command.output().map_err(|error| format!("openssl: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// A process that ends with this one.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Mosquitto, once it listens.
fn broker(folder: &Path, port: u16) -> Result<Running, String> {
    // As root it would else become a user who may not read the folder.
    let configuration = format!(
        "user root\nlistener {port} 127.0.0.1\ncafile ca.pem\ncertfile broker.pem\nkeyfile broker.key\n\
         require_certificate true\nuse_identity_as_username true\n"
    );
    std::fs::write(folder.join("mosquitto.conf"), configuration)
        .map_err(|error| error.to_string())?;
    let start = |program: &str| {
        let mut command = Command::new(program);
        command.args(["-c", "mosquitto.conf"]).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    };
    // Where Debian has servers, which isn't on everybody's path.
    let started = start("mosquitto").or_else(|_| start("/usr/sbin/mosquitto"));
    let mut process = started.map_err(|error| format!("mosquitto: {error}"))?;
    let log = process.stderr.take().ok_or("mosquitto has no log")?;
    let broker = Running(process);
    let mut lines = BufReader::new(log).lines().map_while(Result::ok);
    lines.find(|line| line.ends_with("running")).ok_or("mosquitto does not run")?;
    std::thread::spawn(move || lines.for_each(drop));
    Ok(broker)
}

/// The board's command, in `folder`.
fn board(folder: &Path, options: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["run", "--quiet", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .args(["--package", "xtask", "--", "board", "qemu-publisher", "--data", "device"])
        .args(options)
        .env_remove("CARGO_MANIFEST_DIR")
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

/// The device's console.
struct Device {
    _process: Running,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Device {
    fn start(folder: &Path, options: &[&str]) -> Result<Self, String> {
        let process = board(folder, options).stdout(Stdio::piped()).spawn();
        let mut process = Running(process.map_err(|error| error.to_string())?);
        let console = process.0.stdout.take().ok_or("the device has no console")?;
        Ok(Self { _process: process, lines: BufReader::new(console).lines() })
    }

    /// The next line with these words.
    fn wait_for(&mut self, words: &str) -> Result<String, String> {
        let mut seen = String::new();
        for line in self.lines.by_ref().map_while(Result::ok) {
            if line.contains(words) {
                return Ok(line);
            }
            seen += &format!("{line}\n");
        }
        Err(format!("the device ended before `{words}`: {seen}"))
    }
}

/// A port that nobody listens on.
fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|it| it.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}
