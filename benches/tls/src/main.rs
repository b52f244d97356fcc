//! `tenure-bench-tls [--json] [IMAGE]…`: what a TLS client costs on ARMv6-M under QEMU: flash, RAM, instructions of a
//! full handshake with chain validation, 1 KB out and back, against OpenSSL's server. The image `page` fetches a page
//! instead, serves one to curl, and must have forgotten all secrets then.

mod page;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};
use tenure_bench_report::{Program, Row};

const HELP: &str = "\
Usage: tenure-bench-tls [--json] [ec | rsa-2048 | rsa-4096 | p384 | resumption | page]...

Prints what a TLS client costs on ARMv6-M under QEMU, against `openssl s_server`: exact instruction counts, bytes of
flash and of RAM (stack at its deepest, statics, buffer). `page` has a server too: it fetches a page from OpenSSL,
serves one to curl, and no secret may be found in its memory then. `resumption` connects twice, the second time by the
ticket of the first. Fails if an image exceeds its budget.

  --json   one object a line: bench, target, subject, metric, unit, value
";
const TARGET: &str = "thumbv6m-none-eabi";

/// An image, with what it may take at most.
struct Image {
    name: &'static str,
    /// The parts of TLS that it has.
    features: &'static str,
    /// The kind of all keys of its server's chain, as OpenSSL has it.
    key: &'static str,
    /// The buffer that it lends, in bytes.
    buffer: usize,
    /// In bytes.
    flash_max: u64,
    /// Stack at its deepest, statics and buffer, in bytes.
    ram_max: u64,
    instructions_max: u64,
    /// For a connection as a server, if the image is one.
    server_instructions_max: Option<u64>,
    /// For a second connection by a ticket, if the image makes one.
    resumption_instructions_max: Option<u64>,
}

const IMAGES: [Image; 6] = [
    Image {
        name: "ec",
        features: "p256",
        key: "EC -pkeyopt ec_paramgen_curve:P-256",
        buffer: 2_048,
        flash_max: 60_200,
        ram_max: 9_500,
        instructions_max: 40_000_000,
        server_instructions_max: None,
        resumption_instructions_max: None,
    },
    Image {
        name: "rsa-2048",
        features: "p256,rsa",
        key: "RSA -pkeyopt rsa_keygen_bits:2048",
        buffer: 3_584,
        flash_max: 62_900,
        ram_max: 12_600,
        instructions_max: 27_000_000,
        server_instructions_max: None,
        resumption_instructions_max: None,
    },
    Image {
        name: "rsa-4096",
        features: "p256,rsa",
        key: "RSA -pkeyopt rsa_keygen_bits:4096",
        buffer: 5_632,
        flash_max: 63_400,
        ram_max: 15_900,
        instructions_max: 65_500_000,
        server_instructions_max: None,
        resumption_instructions_max: None,
    },
    Image {
        name: "p384",
        features: "p256,rsa,p384",
        key: "EC -pkeyopt ec_paramgen_curve:P-384",
        buffer: 2_560,
        flash_max: 71_900,
        ram_max: 11_500,
        instructions_max: 98_000_000,
        server_instructions_max: None,
        resumption_instructions_max: None,
    },
    Image {
        name: "resumption",
        features: "p256,resumption",
        key: "EC -pkeyopt ec_paramgen_curve:P-256",
        buffer: 2_048,
        flash_max: 62_200,
        ram_max: 10_500,
        instructions_max: 40_000_000,
        server_instructions_max: None,
        resumption_instructions_max: Some(12_500_000),
    },
    Image {
        name: "page",
        features: "p256,server",
        key: "EC -pkeyopt ec_paramgen_curve:P-256",
        buffer: 2_560,
        flash_max: 74_200,
        ram_max: 9_800,
        instructions_max: 40_500_000,
        server_instructions_max: Some(25_000_000),
        resumption_instructions_max: None,
    },
];

fn main() -> ExitCode {
    let targets = &["ec", "rsa-2048", "rsa-4096", "p384", "resumption", "page"];
    Program { help: HELP, targets }.run(|name, rows| {
        let image = IMAGES.iter().find(|image| image.name == name).ok_or("no such image")?;
        rows.extend(measure(image)?);
        Ok(())
    })
}

fn measure(image: &Image) -> Result<Vec<Row>, String> {
    let folder = products().join(image.name);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    make_chain(&folder, image.key)?;
    let file = build(image, &folder)?;
    let figures = if image.server_instructions_max.is_some() {
        page::run(&folder, &file)?
    } else {
        let resumes = image.resumption_instructions_max.is_some();
        let tickets = if resumes { "1" } else { "0" };
        let server = Server::start(&folder, &["-rev", "-num_tickets", tickets])?;
        let mut emulator = emulator(&file, server.port);
        if resumes {
            // The second connection waits until the server has done with the first.
            emulator.arg("-serial").arg(format!("tcp:127.0.0.1:{}", server.port));
        }
        let output = emulator.output().map_err(|error| format!("qemu-system-arm: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(format!("the client failed, {}: {text}", output.status));
        }
        text.lines().filter_map(figure).collect()
    };
    let mut rows: Vec<Row> =
        figures.iter().map(|(metric, value)| row_of(image, metric, *value)).collect();
    rows.push(row_of(image, "flash", flash_bytes(&file)?));
    check_budget(image, &rows)?;
    Ok(rows)
}

/// QEMU with `file`, whose first UART speaks to `port`.
fn emulator(file: &Path, port: u16) -> Command {
    let mut command = Command::new("qemu-system-arm");
    command
        .args(["-M", "mps2-an385", "-display", "none", "-monitor", "none"])
        .args(["-icount", "shift=0,sleep=off", "-semihosting-config", "enable=on,target=native"])
        .arg("-serial")
        .arg(format!("tcp:127.0.0.1:{port}"))
        .arg("-kernel")
        .arg(file);
    command
}

/// Fails if an image takes more than it may.
fn check_budget(image: &Image, rows: &[Row]) -> Result<(), String> {
    let budgets = [
        ("flash", image.flash_max),
        ("all ram", image.ram_max),
        ("connection instructions", image.instructions_max),
    ];
    let of_server = image.server_instructions_max.map(|max| ("server instructions", max));
    let of_ticket = image.resumption_instructions_max.map(|max| ("resumption instructions", max));
    for (metric, max) in budgets.into_iter().chain(of_server).chain(of_ticket) {
        let found = rows.iter().find(|row| row.metric == metric);
        let value = found.ok_or(format!("{metric} was not measured"))?.value;
        if value > max as f64 {
            return Err(format!("{metric} is {value}, over its budget of {max}"));
        }
    }
    Ok(())
}

fn products() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::var("CARGO_TARGET_DIR").map_or(here.join("target"), PathBuf::from).join("tls-device")
}

fn build(image: &Image, folder: &Path) -> Result<PathBuf, String> {
    let date = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let date = date.map_err(|error| error.to_string())?.as_secs();
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("device"))
        .env("CARGO_TARGET_DIR", products())
        .env("TENURE_ANCHOR", folder.join("root.der"))
        .env("TENURE_LEAF", folder.join("leaf.der"))
        .env("TENURE_MIDDLE", folder.join("middle.der"))
        .env("TENURE_KEY", folder.join("leaf.scalar"))
        .env("TENURE_BUFFER", image.buffer.to_string())
        .env("TENURE_DATE", date.to_string())
        // Hashes as a small device wants them: a tenth of the flash, at a third of the speed.
        .env("RUSTFLAGS", "--cfg sha2_backend_soft=\"compact\"")
        .args(["build", "--quiet", "--release", "--target", TARGET, "--no-default-features"])
        .args(["--features", image.features]);
    run(&mut cargo)?;
    Ok(products().join(TARGET).join("release/tenure-tls-device"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// A root, an authority below it and a server's certificate, made by OpenSSL; all keys are of one kind.
fn make_chain(folder: &Path, key: &str) -> Result<(), String> {
    let extensions = "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
                      [leaf]\nbasicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\n\
                      extendedKeyUsage=serverAuth\nsubjectAltName=DNS:server.test\n";
    std::fs::write(folder.join("ext"), extensions).map_err(|error| error.to_string())?;
    let openssl = |arguments: &str| {
        run(Command::new("openssl").args(arguments.split(' ')).current_dir(folder))
    };
    for name in ["root", "middle", "leaf"] {
        openssl(&format!("genpkey -algorithm {key} -out {name}.key"))?;
        openssl(&format!("req -new -key {name}.key -subj /CN={name} -out {name}.csr"))?;
    }
    let sign = "x509 -req -days 9 -extfile ext";
    openssl(&format!("{sign} -in root.csr -signkey root.key -extensions ca -out root.pem"))?;
    for (name, issuer, section) in [("middle", "root", "ca"), ("leaf", "middle", "leaf")] {
        openssl(&format!(
            "{sign} -in {name}.csr -CA {issuer}.pem -CAkey {issuer}.key -CAcreateserial \
             -extensions {section} -out {name}.pem"
        ))?;
    }
    for name in ["root", "middle", "leaf"] {
        openssl(&format!("x509 -in {name}.pem -outform DER -out {name}.der"))?;
    }
    // Of a P-256 key, the scalar: it stands at a fixed place of an ECPrivateKey.
    const SCALAR: std::ops::Range<usize> = 7..39;
    openssl("pkey -in leaf.key -outform DER -traditional -out leaf.key.der")?;
    let key = std::fs::read(folder.join("leaf.key.der")).map_err(|error| error.to_string())?;
    let scalar = key.get(SCALAR).ok_or("a key without a scalar")?;
    std::fs::write(folder.join("leaf.scalar"), scalar).map_err(|error| error.to_string())
}

/// `openssl s_server`.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// A server in `folder` that does what `arguments` say.
    fn start(folder: &Path, arguments: &[&str]) -> Result<Self, String> {
        let port = free_port()?;
        let mut process = Command::new("openssl")
            .args(["s_server", "-accept", &port.to_string(), "-cert", "leaf.pem"])
            .args(arguments)
            .args(["-key", "leaf.key", "-cert_chain", "middle.pem"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("openssl: {error}"))?;
        let output = process.stdout.take().ok_or("openssl has no output")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.find(|line| line.contains("ACCEPT")).ok_or("openssl s_server does not listen")?;
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { process, port })
    }
}

/// A port that nobody listens on.
fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|it| it.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Code, constants and the initial values of variables in a linked program.
fn flash_bytes(file: &Path) -> Result<u64, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let count = || {
        let header = elf::FileHeader32::<Endianness>::parse(&*bytes)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, &*bytes)?;
        Ok::<_, object::read::Error>(
            sections
                .iter()
                .filter(|it| it.sh_flags(endian) & elf::SHF_ALLOC != 0)
                .filter(|it| it.sh_type(endian) != elf::SHT_NOBITS)
                .map(|it| u64::from(it.sh_size(endian)))
                .sum(),
        )
    };
    count().map_err(|error| error.to_string())
}

/// `METRIC VALUE`, in hexadecimal digits.
fn figure(line: &str) -> Option<(String, u64)> {
    let (metric, value) = line.split_once(' ')?;
    Some((metric.into(), u64::from_str_radix(value, 16).ok()?))
}

fn row_of(image: &Image, metric: &str, value: u64) -> Row {
    let unit = if metric.ends_with("instructions") { "instructions" } else { "bytes" };
    Row {
        bench: "tls".into(),
        target: "thumbv6m".into(),
        subject: image.name.into(),
        metric: metric.replace('_', " "),
        unit,
        value: value as f64,
    }
}
