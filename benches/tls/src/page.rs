//! The image that is a client and then a server: it fetches a page from OpenSSL, serves one to curl, and shows its
//! memory, in which no secret may be left.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Server, emulator, figure, free_port};

/// The page that OpenSSL serves: with what stands before it, all that the device waits for.
const PAGE_BYTES: usize = 1_000;
/// The page that the device serves.
const SERVED: &str = "<p>This is the device.\n";
/// The names of what the device prints as it is; figures have others.
const RAW: [&str; 3] = ["page", "connected", "after"];

/// Runs the image in `file` with the certificates in `folder`, and returns its figures.
pub(crate) fn run(folder: &Path, file: &Path) -> Result<Vec<(String, u64)>, String> {
    let page = "0123456789".repeat(PAGE_BYTES / 10);
    std::fs::write(folder.join("page.html"), &page).map_err(|error| error.to_string())?;
    let logs = ["openssl.keys", "curl.keys"].map(|name| folder.join(name));
    for log in &logs {
        // The last run's.
        let _ = std::fs::remove_file(log);
    }
    let server =
        Server::start(folder, &["-WWW", "-keylogfile", "openssl.keys", "-num_tickets", "0"])?;
    let port = free_port()?;
    let device = emulator(file, server.port)
        .args(["-serial", &format!("tcp:127.0.0.1:{port},server=on,wait=off")])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("qemu-system-arm: {error}"))?;
    let curl = Command::new("curl")
        .current_dir(folder)
        .env("SSLKEYLOGFILE", &logs[1])
        .args(["--silent", "--show-error", "--max-time", "300", "--cacert", "root.pem"])
        .args(["--retry", "20", "--retry-delay", "1", "--retry-connrefused"])
        .args(["--resolve", &format!("server.test:{port}:127.0.0.1")])
        .arg(format!("https://server.test:{port}/"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("curl: {error}"))?;
    let said = device.wait_with_output().map_err(|error| error.to_string())?;
    let got = curl.wait_with_output().map_err(|error| error.to_string())?;
    if !said.status.success() {
        return Err(format!("the device failed, {}", said.status));
    }
    if got.stdout != SERVED.as_bytes() {
        let error = String::from_utf8_lossy(&got.stderr);
        return Err(format!("curl got {} bytes of another page: {error}", got.stdout.len()));
    }
    let (figures, raw) = parse(&said.stdout)?;
    let of = |name: &str| raw.get(name).map(Vec::as_slice).unwrap_or_default();
    if find(of("page"), page.as_bytes()).is_none() {
        return Err(format!("the device got {} bytes of another page", of("page").len()));
    }
    let secrets = secrets(&logs)?;
    // The device holds secrets while it is connected, or looking for them means nothing.
    if !secrets.iter().any(|(_, secret)| find(of("connected"), secret).is_some()) {
        return Err("no secret is in the memory of a device that is connected".into());
    }
    for (name, secret) in &secrets {
        if let Some(at) = find(of("after"), secret) {
            return Err(format!("{name} is still in memory, {at:#x} bytes from its start"));
        }
    }
    Ok(figures)
}

type Printed = (Vec<(String, u64)>, BTreeMap<String, Vec<u8>>);

/// Lines with a figure, or with a length and then as many bytes.
fn parse(output: &[u8]) -> Result<Printed, String> {
    let (mut figures, mut raw) = (Vec::new(), BTreeMap::<String, Vec<u8>>::new());
    let mut rest = output;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&rest[..end]);
        let (name, value) = figure(&line).ok_or(format!("the device printed {line}"))?;
        rest = &rest[end + 1..];
        if RAW.contains(&&*name) {
            let (bytes, after) = rest.split_at_checked(value as usize).ok_or("a cut end")?;
            raw.entry(name).or_default().extend(bytes);
            rest = after;
        } else {
            figures.push((name, value));
        }
    }
    Ok((figures, raw))
}

fn find(memory: &[u8], secret: &[u8]) -> Option<usize> {
    memory.windows(secret.len()).position(|window| window == secret)
}

/// The secrets in these `SSLKEYLOGFILE`s by their names, and the keys that follow from them.
fn secrets(logs: &[impl AsRef<Path>]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut secrets = Vec::new();
    for log in logs {
        let log = log.as_ref();
        let text =
            std::fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split(' ');
            let (Some(label), Some(secret)) = (fields.next(), fields.nth(1)) else { continue };
            secrets.push((label.to_string(), bytes_of(secret)?));
            if label.contains("TRAFFIC") {
                secrets.push((format!("the key of {label}"), key_of(secret)?));
            }
        }
    }
    if secrets.len() < 2 * logs.len() {
        return Err("OpenSSL and curl logged no secrets".into());
    }
    Ok(secrets)
}

/// The key of ChaCha20-Poly1305 that follows from the traffic secret in `digits` (RFC 8446 §7.3).
fn key_of(digits: &str) -> Result<Vec<u8>, String> {
    // 32 bytes, the label "tls13 key", no context.
    const INFO: &str = "hexinfo:002009746c733133206b657900";
    let output = Command::new("openssl")
        .args(["kdf", "-keylen", "32", "-kdfopt", "digest:SHA256", "-kdfopt", "mode:EXPAND_ONLY"])
        .args(["-kdfopt", &format!("hexkey:{digits}"), "-kdfopt", INFO, "HKDF"])
        .output()
        .map_err(|error| format!("openssl: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).replace([':', '\n'], "");
    if text.len() != 64 {
        return Err(format!("openssl kdf: {}", String::from_utf8_lossy(&output.stderr)));
    }
    bytes_of(&text)
}

fn bytes_of(digits: &str) -> Result<Vec<u8>, String> {
    let byte = |at: usize| digits.get(at..at + 2).and_then(|it| u8::from_str_radix(it, 16).ok());
    let bytes = (0..digits.len()).step_by(2).map(byte);
    bytes.collect::<Option<_>>().ok_or(format!("{digits} is no secret"))
}
