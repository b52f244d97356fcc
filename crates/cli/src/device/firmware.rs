//! `tenure firmware`: what a device itself runs, and how it gets another.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::json;
use tenure_boot::Header;
use tenure_package::{FirmwareFile, Release};
use tenure_wire::control::{
    CHUNK_BYTES_MAX, Client as _, FirmwareBegin, FirmwareStatus, InstallChunk, OtherFirmware,
};

use crate::home::Home;
use crate::machine::install::{in_turn, progress};
use crate::reach::client::{Client, Device, OwnerKeys};
use crate::reach::whom::Where;
use crate::terminal::output::Output;
use crate::whole_file;

/// How long beyond its trial a device may take to be heard again.
const STARTING: Duration = Duration::from_secs(30);
/// How often it is asked meanwhile.
const ASKING: Duration = Duration::from_secs(1);

/// See what a device itself runs, and bring it another firmware.
///
/// A new firmware is tried once. It stays if it hears from the network before the watchdog's period is
/// over; else the device goes back to the one before. Machines and what they store stay.
///
/// Example: tenure firmware update board-2.firmware --device attic
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Status(StatusArguments),
    Sign(SignArguments),
    Update(UpdateArguments),
}

/// Show what a device runs, and what stands in its other slot.
#[derive(clap::Args)]
struct StatusArguments {
    #[command(flatten)]
    place: Where,
}

/// Sign a board's image with your owner's key, so that devices take it.
///
/// Devices take firmware that is signed by their owner, or by the `maker` in their settings.
///
/// Example: tenure firmware sign board.img --number 2
#[derive(clap::Args)]
struct SignArguments {
    /// The image, as `cargo xtask board BOARD --build-only` makes it.
    image: PathBuf,
    /// Its number: greater than that of what devices run.
    #[arg(long, value_name = "N")]
    number: u32,
    /// Where to put the signed firmware; by default beside the image, as NAME-NUMBER.firmware.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Bring a device a firmware, and wait until it runs or was given up.
#[derive(clap::Args)]
struct UpdateArguments {
    /// The signed firmware, as `tenure firmware sign` makes it.
    firmware: PathBuf,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure firmware`.
///
/// # Errors
/// A file can't be read, or the device refuses or gives the firmware up.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    match &arguments.action {
        Action::Status(arguments) => status(arguments, output),
        Action::Sign(arguments) => sign(arguments, output),
        Action::Update(arguments) => update(arguments, output),
    }
}

fn status(arguments: &StatusArguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let status = ask(&mut client, &device)?;
    let FirmwareStatus { board, number, slot, other, started_by, .. } = &status;
    let trial = if status.on_trial { ", on trial" } else { "" };
    let mut text = format!(
        "{}: {board}, firmware {number} in slot {slot}{trial}; started by {started_by}",
        device.status.name
    );
    if let Some(OtherFirmware { number, fate, .. }) = other {
        text += &format!("\nin the other slot: firmware {number}, {fate}");
    }
    output.line(&text, &object(&device, &status));
    Ok(())
}

fn object(device: &Device, status: &FirmwareStatus) -> serde_json::Value {
    let other = status.other.as_ref();
    json!({
        "device": device.status.name.as_str(),
        "board": status.board,
        "number": status.number,
        "slot": status.slot,
        "on_trial": status.on_trial,
        "other": other.map(
            |it| json!({ "number": it.number, "is_next": it.is_next, "fate": it.fate })
        ),
        "slot_bytes": status.slot_bytes,
        "trial_ms": status.trial_ms,
        "started_by": status.started_by,
        "uptime_ms": status.uptime_ms,
    })
}

fn ask(client: &mut Client, device: &Device) -> anyhow::Result<FirmwareStatus> {
    client.at(&device.route).firmware(())
}

fn sign(arguments: &SignArguments, output: &Output) -> anyhow::Result<()> {
    let path = &arguments.image;
    let image = std::fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    let header = Header::from_bytes(&image).with_context(|| {
        format!(
            "{} is no image of a firmware; make one with `cargo xtask board BOARD --build-only`",
            path.display()
        )
    })?;
    let number = arguments.number;
    let release = Release::new(header.board(), number, header.machine_format, &image);
    let keys = OwnerKeys::of(&Home::from_environment()?)?;
    let file = release.to_file(&image, &keys.signing_key)?;
    let to = arguments.output.clone().unwrap_or_else(|| beside(path, number));
    whole_file::write(&to, file).with_context(|| format!("can't write {}", to.display()))?;
    let (board, signer) = (&release.board, keys.signing_key.verifying_key());
    output.line(
        &format!("signed firmware {number} for {board} as {signer}: {}", to.display()),
        &json!({
            "file": to.display().to_string(),
            "board": board,
            "number": number,
            "bytes": image.len(),
            "digest": release.digest.to_string(),
            "signer": signer.to_string(),
        }),
    );
    Ok(())
}

fn beside(image: &Path, number: u32) -> PathBuf {
    let name = image.file_stem().unwrap_or_default().to_string_lossy();
    image.with_file_name(format!("{name}-{number}.firmware"))
}

fn update(arguments: &UpdateArguments, output: &Output) -> anyhow::Result<()> {
    let path = &arguments.firmware;
    let file = std::fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    let firmware = Release::from_file(&file).with_context(|| path.display().to_string())?;
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let before = ask(&mut client, &device)?;
    transfer(&mut client, &device, &firmware, output)?;
    let number = firmware.release.number;
    let name = &device.status.name;
    output.line(
        &format!("{name} tries firmware {number}"),
        &json!({ "event": "trying", "device": name.as_str(), "number": number }),
    );
    let after = wait(&mut client, &arguments.place, &before, number)?;
    if after.number != number {
        let fate = after.other.as_ref().filter(|other| other.number == number);
        let fate = fate.map_or("not known", |other| &other.fate);
        bail!("{name} gave firmware {number} up and runs {} again: {fate}", after.number);
    }
    output.line(&format!("{name} runs firmware {number}, and keeps it"), &object(&device, &after));
    Ok(())
}

fn transfer(
    client: &mut Client,
    device: &Device,
    firmware: &FirmwareFile<'_>,
    output: &Output,
) -> anyhow::Result<()> {
    let (route, image) = (&device.route, firmware.image);
    let begin = FirmwareBegin { release: firmware.signed.to_vec() };
    in_turn(client, device, |client| client.at(route).firmware_begin(begin.clone()))?;
    for (index, bytes) in image.chunks(CHUNK_BYTES_MAX).enumerate() {
        let offset = (index * CHUNK_BYTES_MAX) as u32;
        let part = InstallChunk { offset, bytes };
        client.at(route).firmware_chunk(part)?;
        progress(output, offset as usize + bytes.len(), image.len());
    }
    client.at(route).firmware_commit(())
}

/// Waits until the device has started anew and the trial has ended, one way or the other.
fn wait(
    client: &mut Client,
    place: &Where,
    before: &FirmwareStatus,
    number: u32,
) -> anyhow::Result<FirmwareStatus> {
    let trial = Duration::from_millis(before.trial_ms.into());
    let deadline = Instant::now() + 2 * trial + STARTING;
    loop {
        std::thread::sleep(ASKING);
        let asked = place.connect(client).and_then(|device| ask(client, &device));
        match asked {
            Ok(status) if !status.on_trial && is_over(&status, number) => return Ok(status),
            // It is starting, or has to hear from us once more.
            Ok(_) => {}
            Err(error) if Instant::now() >= deadline => {
                return Err(error.context("the device hasn't come back yet"));
            }
            Err(_) => {}
        }
        if Instant::now() >= deadline {
            bail!("the device hasn't tried the firmware yet; see `tenure firmware status`");
        }
    }
}

/// Whether the trial of `number` has come to an end.
fn is_over(status: &FirmwareStatus, number: u32) -> bool {
    let other = status.other.as_ref().filter(|other| other.number == number);
    status.number == number || other.is_some_and(|other| !other.is_next)
}
