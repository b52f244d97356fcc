//! How many requests a second a machine's page answers, beside nginx's static page of the same bytes.
//!
//! `cargo bench -p tenure-cli --bench pages -- [--json]`. Both are processes of their own on loopback and get the same
//! requests, over connections that are kept; half of the load is this program's. nginx has one worker, as a device has
//! one thread.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tenure_cli::home::Home;
use tenure_package::{Manifest, PackageBuilder, Version};
use tenure_testbed::find_server;
use tenure_wire::Budget;
use tenure_wire::console::{LISTENS_ON, PAGES_LISTEN_ON};

/// Connections at a time: fewer than one host may have.
const CONNECTIONS: [usize; 2] = [1, 8];
/// How long each is measured.
const SPAN: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(10);
/// The machine's name; its page is at `page.bench.localhost`.
const MACHINE: &str = "page";
const DEVICE: &str = "bench";
const PAGE: &str = "<!doctype html><title>21.5</title><p>It is 21.5 degrees.</p>";

fn main() -> Result<()> {
    let json = std::env::args().any(|argument| argument == "--json");
    let folder = tempfile::tempdir()?;
    let report = |subject: &str, metric: &str, value: f64| {
        if json {
            println!(
                "{{\"bench\":\"pages\",\"target\":\"host\",\"subject\":\"{subject}\",\
                 \"metric\":\"{metric}\",\"unit\":\"1/s\",\"value\":{value:.0}}}"
            );
        } else {
            println!("{subject:<8} {metric:<40} {value:>10.0} 1/s");
        }
    };
    let (_device, pages) = device(folder.path())?;
    let nginx = nginx(folder.path())?;
    for connections in CONNECTIONS {
        let metric = format!("requests, {connections} at a time");
        report("tenure", &metric, rate(pages, connections)?);
        match &nginx {
            Some((_nginx, address)) => report("nginx", &metric, rate(*address, connections)?),
            None => eprintln!("nginx isn't here (Debian: nginx-light)"),
        }
    }
    Ok(())
}

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A device with the machine, and the address of its pages.
fn device(folder: &Path) -> Result<(Process, SocketAddr)> {
    let tenure = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.current_dir(folder).env("TENURE_HOME", folder.join("home"));
        command.env_remove("TENURE_HUB").env_remove("TENURE_DEVICE");
        command
    };
    let home = Home::at(folder.join("home"));
    fs::write(folder.join("page.tenure"), package(&home)?)?;
    let mut device = tenure();
    device.args(["device", "--data", DEVICE, "--survives", "kill"]);
    device.args(["--listen", "127.0.0.1:0", "--pages", "127.0.0.1:0"]);
    let mut device = Process(device.stdout(Stdio::piped()).spawn()?);
    let mut lines = BufReader::new(device.0.stdout.take().context("no output")?).lines();
    let mut address_after = |words: &str| {
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, rest)) = line.split_once(words) {
                let address = rest.trim().split([',', ' ']).next().unwrap_or_default();
                return Ok(address.to_string());
            }
        }
        bail!("the device didn't say `{words}`")
    };
    let address = address_after(LISTENS_ON)?;
    let pages = address_after(PAGES_LISTEN_ON)?.parse()?;
    // What it says from now on has to be read by somebody.
    std::thread::spawn(move || lines.for_each(drop));
    let words = ["install", "page.tenure", "--grant", "all", "--device", &address];
    let installed = tenure().args(words).output()?;
    ensure!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    Ok((device, pages))
}

/// A package with a machine that serves the page, whatever it is asked for.
fn package(home: &Home) -> Result<Vec<u8>> {
    let code = format!(
        r#"(module
          (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
          (memory 1)
          (data (i32.const 1024) "{PAGE}")
          (func (export "http") (drop (call $reply (i32.const 1024) (i32.const {}))))))"#,
        PAGE.len()
    );
    let mut manifest = Manifest {
        exports: vec!["http".into()],
        budget: Budget { memory_bytes: 64 * 1024, fuel_per_second: 0, ..Budget::default() },
        ..Manifest::new(MACHINE.parse()?, Version { major: 0, minor: 1, patch: 0 })
    };
    // Visitors come with a key of the device's pages, which isn't the owner's.
    manifest.capabilities.callers = vec!["*".parse()?];
    Ok(PackageBuilder::new(manifest, wat::parse_str(code)?)?.sign(&home.tenant_key()?)?)
}

/// nginx with the page in a file, and its address; none if it isn't here.
fn nginx(folder: &Path) -> Result<Option<(Process, SocketAddr)>> {
    let Some(program) = find_server("nginx") else { return Ok(None) };
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    fs::write(folder.join("index.html"), PAGE)?;
    let folder_shown = folder.display();
    let configuration = format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  types {{ text/html html; }}
  keepalive_requests 100000000;
  server {{ listen {address}; root {folder_shown}; }}
}}
"
    );
    fs::write(folder.join("nginx.conf"), configuration)?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).args(["-e", "stderr", "-c", "nginx.conf"]);
    let process = Process(command.spawn()?);
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        ensure!(begun.elapsed() < PATIENCE, "nginx doesn't listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Some((process, address)))
}

/// Requests a second that are answered at `address`, over so many connections.
fn rate(address: SocketAddr, connections: usize) -> Result<f64> {
    let until = Instant::now() + SPAN;
    let visitors: Vec<_> =
        (0..connections).map(|_| std::thread::spawn(move || visits(address, until))).collect();
    let mut answered = 0;
    for visitor in visitors {
        answered += visitor.join().map_err(|_| anyhow::anyhow!("a visitor panicked"))??;
    }
    Ok(f64::from(answered) / SPAN.as_secs_f64())
}

/// How many requests one connection had answered until then.
fn visits(address: SocketAddr, until: Instant) -> Result<u32> {
    let host = format!("{MACHINE}.{DEVICE}.localhost:{}", address.port());
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let mut answered = 0;
    while Instant::now() < until {
        stream.write_all(request.as_bytes())?;
        let body = answer(&mut answers)?;
        ensure!(body == PAGE.as_bytes(), "another page: {}", String::from_utf8_lossy(&body));
        answered += 1;
    }
    Ok(answered)
}

/// The body of the next answer.
fn answer(stream: &mut impl std::io::BufRead) -> Result<Vec<u8>> {
    let (mut line, mut length) = (String::new(), None);
    stream.read_line(&mut line)?;
    ensure!(line.starts_with("HTTP/1.1 200 "), "the answer is {line}");
    while line != "\r\n" {
        line.clear();
        ensure!(stream.read_line(&mut line)? > 0, "the connection was closed");
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse()?);
        }
    }
    let mut body = vec![0; length.context("an answer without a length")?];
    stream.read_exact(&mut body)?;
    Ok(body)
}
