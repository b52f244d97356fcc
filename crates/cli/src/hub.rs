//! `tenure hub`: the directory as a process.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use tenure_board_linux::{Durability, FileFlash, LinuxClock, LinuxEntropy, UdpLink};
use tenure_hal::{Clock as _, Link as _, UnixTime};
use tenure_hub::{Config, Hub, Moment, Notice};
use tenure_wire::{Address, VerifyingKey};

use crate::home::Home;
use crate::network::{DATAGRAMS_PER_TURN, HUB_PORT, address_of};
use crate::output::Output;
use crate::stop::Stop;

/// The flash file of a hub.
const FLASH: &str = "hub.flash";
/// How large it is: room for some ten thousand devices.
const FLASH_BYTES: u32 = 32 * 1024 * 1024;
/// The longest that the loop sleeps. Ctrl-C ends the wait at once, but for one that comes between a look
/// at it and the wait.
const NAP: std::time::Duration = std::time::Duration::from_secs(2);

/// Run a hub: the directory in which devices register and find one another.
///
/// Devices pin its key if they are told ADDR#KEY. Say whose devices it lists: whoever can reach a hub that is
/// open to all can put devices there, within a quota of each owner and each host.
///
/// Example: tenure hub --data hub --owner own --listen 127.0.0.1:7369
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder that holds the hub; made if it isn't there.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where to listen.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7369")]
    listen: String,
    /// List only devices of this owner: a signing key, as `tenure key --own` prints it, or `own` for your own;
    /// may be repeated.
    #[arg(long, value_name = "KEY", required_unless_present = "open")]
    owner: Vec<Whose>,
    /// List anybody's devices.
    #[arg(long, conflicts_with = "owner")]
    open: bool,
    /// With --open, the most devices of one owner, and of one host.
    #[arg(long, value_name = "COUNT", requires = "open")]
    quota: Option<usize>,
}

/// Whose devices a hub lists.
#[derive(Clone, Copy, Debug)]
enum Whose {
    /// Those of the user who starts it.
    Own,
    /// Those of the owner with this key.
    Key(VerifyingKey),
}

impl std::str::FromStr for Whose {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "own" => Ok(Self::Own),
            key => key.parse().map(Self::Key).map_err(|error| format!("`own`, or a key: {error}")),
        }
    }
}

/// Runs `tenure hub` until it is told to stop.
///
/// # Errors
/// The folder isn't a hub's, the address is taken, or the flash fails.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let flash = open_flash(arguments)?;
    let mut link = UdpLink::bind(address_of(&arguments.listen, HUB_PORT)?)?;
    let (clock, mut entropy) = (LinuxClock::start(), LinuxEntropy);
    let config = config(arguments)?;
    let unix_time = || clock.unix_time().unwrap_or(UnixTime { seconds: 0 });
    let mut moment = Moment { now: clock.now(), unix_time: unix_time(), entropy: &mut entropy };
    let mut hub = Hub::open(config, flash, &mut moment)?;
    announce(&hub, &link, output);
    let mut datagram = vec![0; 65_536];
    while !stop.is_requested() {
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some((length, from)) = link.receive(&mut datagram)? else { break };
            let mut moment =
                Moment { now: clock.now(), unix_time: unix_time(), entropy: &mut entropy };
            hub.receive(&mut moment, from.into(), &datagram[..length]);
        }
        let mut moment = Moment { now: clock.now(), unix_time: unix_time(), entropy: &mut entropy };
        hub.poll(&mut moment);
        while let Some((to, datagram)) = hub.transmit() {
            // A datagram that isn't sent is one that is lost: it will be sent again.
            if let Address::Udp(to) = to {
                let _ = link.send(&to, &datagram);
            }
        }
        while let Some(notice) = hub.notice() {
            show(&notice, output);
        }
        let until = hub.poll_at().map_or(NAP, |at| at.since(clock.now()));
        link.wait(until.min(NAP))?;
    }
    output.line("stopped", &serde_json::json!({ "event": "stopped" }));
    Ok(())
}

fn config(arguments: &Arguments) -> anyhow::Result<Config> {
    let key_of = |whose: &Whose| match whose {
        Whose::Own => Ok(Home::from_environment()?.owner_key()?.verifying_key()),
        Whose::Key(key) => Ok(*key),
    };
    let owners = arguments.owner.iter().map(key_of).collect::<anyhow::Result<_>>()?;
    let mut config = Config { owners, ..Config::default() };
    if let Some(quota) = arguments.quota {
        config.devices_per_owner_max = quota;
        config.devices_per_host_max = quota;
    }
    Ok(config)
}

fn open_flash(arguments: &Arguments) -> anyhow::Result<FileFlash> {
    let folder = &arguments.data;
    let path = folder.join(FLASH);
    let holds_something = std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
    if holds_something && !path.exists() {
        bail!("{} holds other files and is no hub's; name a new or empty folder", folder.display());
    }
    std::fs::create_dir_all(folder)
        .with_context(|| format!("can't make the folder {}", folder.display()))?;
    Ok(FileFlash::open_or_create(&path, FLASH_BYTES, Durability::PowerLoss)?)
}

fn announce(hub: &Hub<FileFlash>, link: &UdpLink, output: &Output) {
    let (address, key) = (link.address().to_string(), hub.key().to_string());
    output.line(
        &format!("hub listens on {address}, key {key}\n  for devices: --hub {address}#{key}"),
        &serde_json::json!({ "event": "listening", "address": address, "key": key }),
    );
}

fn show(notice: &Notice, output: &Output) {
    match notice {
        Notice::Listed { device, address, machines } => output.line(
            &format!("lists {device} at {address} with {machines} machines"),
            &serde_json::json!({ "event": "listed", "device": device.as_str(), "address": address.to_string(), "machines": machines }),
        ),
        Notice::Refused { refusal, address } => output.line(
            &format!("refused a record from {address}: {refusal}"),
            &serde_json::json!({ "event": "refused", "reason": refusal.to_string(), "address": address.to_string() }),
        ),
    }
}
