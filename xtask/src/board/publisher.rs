//! Runs the board that publishes: its settings and certificates in flash, its secure element and its thermometer beside it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};

use super::{Arguments, Board, element, supply};

/// The end of the device's flash: settings, authorities, the own chain, as the firmware's `start.rs` divides it.
const PAPERS: &str = "papers.bin";
const PAPERS_AT: u32 = 0x0003_E000;
const SETTINGS_BYTES: usize = 4096;
const CERTIFICATES_BYTES: usize = 2048;

/// The monitor of the emulator, in the folder of the device.
const MONITOR: &str = "monitor";

/// The papers for the flash of `qemu-publisher`; a device that has some keeps them if `--broker` isn't there.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of qemu-publisher")]
pub(super) struct Options {
    /// The broker.
    #[arg(long, value_name = "HOST[:PORT]")]
    broker: Option<String>,
    /// The certificates of the broker's authorities, in PEM.
    #[arg(long, value_name = "FILE", requires = "broker")]
    authority: Option<PathBuf>,
    /// The device's certificate, and those between it and its authority, in PEM. The device prints the key that it is for.
    #[arg(long, value_name = "FILE", requires = "broker")]
    certificate: Option<PathBuf>,
    /// The broker's public key, in PEM: the device is told no date, and trusts that key alone.
    #[arg(long, value_name = "FILE", requires = "broker")]
    broker_key: Option<PathBuf>,
    /// The resolver of the broker's name, instead of those that DHCP names.
    #[arg(long, value_name = "ADDR", requires = "broker")]
    dns: Option<std::net::Ipv4Addr>,
    /// How often the device publishes, unless it is told otherwise.
    #[arg(long, value_name = "SECONDS", requires = "broker")]
    period: Option<String>,
    /// Let the emulator count instructions: each takes a nanosecond, so that a microsecond awake is a thousand of them.
    #[arg(long)]
    count: bool,
}

/// Runs the device in `data`.
pub(super) fn run(data: &Path, firmware: &Path, arguments: &Arguments) -> Result<()> {
    std::fs::create_dir_all(data)
        .with_context(|| format!("can't make the folder {}", data.display()))?;
    let papers = data.join(PAPERS);
    if let Some(broker) = &arguments.publisher.broker {
        let name = arguments.settings.name_in(data)?;
        let flash = flash_of(&name, broker, &arguments.publisher)?;
        std::fs::write(&papers, flash)
            .with_context(|| format!("cannot write {}", papers.display()))?;
    } else if !papers.exists() {
        bail!("the device in {} has no settings yet; name its --broker", data.display());
    }
    element::play(data)?;
    let firmware = std::path::absolute(firmware).context("no current folder")?;
    let emulator = || emulator(&firmware, data, arguments.publisher.count);
    supply::power(emulator, Board::QemuPublisher.memory(), &data.join("ram.img"))
}

/// The end of the flash of the device `name`.
fn flash_of(name: &str, broker: &str, options: &Options) -> Result<Vec<u8>> {
    let mut text = format!("name={name}\nbroker={broker}\nelement=line\n");
    match &options.broker_key {
        Some(file) => {
            let key = SubjectPublicKeyInfoDer::from_pem_file(file);
            let key = key.with_context(|| format!("{} holds no public key", file.display()))?;
            text += &format!("broker-key={}\n", element::hex(&key));
        }
        None => {
            let date = SystemTime::now().duration_since(UNIX_EPOCH).context("the date is wrong")?;
            text += &format!("date={}\n", date.as_secs());
        }
    }
    let lines =
        [("dns", options.dns.map(|dns| dns.to_string())), ("period", options.period.clone())];
    for (key, value) in lines {
        text += &value.map(|value| format!("{key}={value}\n")).unwrap_or_default();
    }
    let mut flash = text.into_bytes();
    fill(&mut flash, SETTINGS_BYTES).context("the settings")?;
    for file in [&options.authority, &options.certificate] {
        let mut certificates = match file {
            Some(file) => certificates_in(file)?,
            None => Vec::new(),
        };
        fill(&mut certificates, CERTIFICATES_BYTES).context("the certificates")?;
        flash.extend(certificates);
    }
    Ok(flash)
}

/// The certificates of a file, in DER, one behind the other.
fn certificates_in(file: &Path) -> Result<Vec<u8>> {
    let what = || format!("{} holds no certificates", file.display());
    let mut all = Vec::new();
    for certificate in CertificateDer::pem_file_iter(file).with_context(what)? {
        all.extend_from_slice(&certificate.with_context(what)?);
    }
    if all.is_empty() {
        bail!(what());
    }
    Ok(all)
}

/// Fills `bytes` up as erased flash is.
fn fill(bytes: &mut Vec<u8>, length: usize) -> Result<()> {
    // A byte of it stays erased, so that the end is seen.
    if bytes.len() >= length {
        bail!("{} bytes don't fit {length} of the device's flash", bytes.len());
    }
    bytes.resize(length, 0xFF);
    Ok(())
}

fn emulator(firmware: &Path, data: &Path, counts: bool) -> Command {
    let mut command = Command::new("qemu-system-arm");
    command
        .args(["-M", "mps2-an385", "-action", "watchdog=poweroff"])
        .args(["-display", "none", "-monitor"])
        // Paths are those of the folder that it runs in: a socket's is short.
        .arg(format!("unix:{MONITOR},server=on,wait=off"))
        .args(["-serial", "stdio", "-serial"])
        .arg(format!("unix:{}", element::LINE))
        .args(["-nic", "user,model=lan9118"])
        .args(["-device", "tmp105,id=thermometer,address=0x48"])
        // It ends by semihosting.
        .args(["-semihosting-config", "enable=on,target=native"])
        .arg("-device")
        .arg(format!("loader,file={PAPERS},addr={PAPERS_AT:#x},force-raw=on"))
        .arg("-kernel")
        .arg(firmware)
        .current_dir(data);
    if counts {
        command.args(["-icount", "shift=0"]);
    }
    command
}
