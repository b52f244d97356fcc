//! The settings of a device before its first start: the text in its settings sector.
//!
//! The sector holds lines `key=value` and is erased (`0xFF`) behind them, so that the same firmware
//! image serves every device, and a text editor and any flashing tool suffice to set one up.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;

use tenure_hal::Flash;
use tenure_node::{Hub, Owner, SleepPolicy};
use tenure_wire::{Name, VerifyingKey};

use crate::device::StartError;

#[cfg(test)]
mod tests;

/// The UDP port of devices unless they are told otherwise.
const PORT: u16 = 7370;

/// The settings of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `name`: what the device is called.
    pub name: Name,
    /// `owner`: whose it is, as `tenure key` prints it.
    pub owner: Owner,
    /// `address`: its IPv4 address, with the bits of the network's prefix behind a slash.
    pub address: (Ipv4Addr, u8),
    /// `gateway`: where datagrams to other networks go.
    pub gateway: Option<Ipv4Addr>,
    /// `port`: where it listens.
    pub port: u16,
    /// `hub`: the directory to register with, as `ADDRESS:PORT` or, with the hub's key, as
    /// `ADDRESS:PORT#KEY`.
    pub hub: Option<Hub>,
    /// `deep-sleep-after`: how many seconds nothing must be due for the device to turn itself off; or
    /// `duty-cycle`: how many it runs and how many it sleeps, with a slash between.
    pub sleep: SleepPolicy,
    /// `maker`: whose firmware the device takes beside its owner's.
    pub maker: Option<VerifyingKey>,
    /// `wifi`: the network that a board with a radio joins.
    pub wifi: Option<String>,
    /// `password`: that network's, if it has one.
    pub password: Option<String>,
}

impl Settings {
    /// Reads the settings from their part of flash.
    ///
    /// # Errors
    /// [`StartError`]: the flash fails, or the settings do.
    pub fn read<F: Flash>(flash: &mut F) -> Result<Self, StartError> {
        Self::parse(&contents(flash)?).map_err(StartError::Settings)
    }

    /// Reads the settings sector.
    ///
    /// # Errors
    /// [`SettingsError`] names the line that is wrong or missing.
    pub fn parse(sector: &[u8]) -> Result<Self, SettingsError> {
        let lines = Lines::of(sector, &KEYS)?;
        let (value, need) = (|key| lines.value(key), |key| lines.need(key));
        Ok(Self {
            sleep: lines.sleep()?,
            maker: value("maker").map(|(_, text)| parsed("maker", text)).transpose()?,
            name: parsed("name", need("name")?)?,
            owner: owner(need("owner")?).ok_or(SettingsError::Wrong("owner"))?,
            address: cidr(need("address")?).ok_or(SettingsError::Wrong("address"))?,
            gateway: value("gateway").map(|(_, text)| parsed("gateway", text)).transpose()?,
            port: value("port").map_or(Ok(PORT), |(_, text)| parsed("port", text))?,
            hub: value("hub").map(|(_, text)| hub(text)).transpose()?,
            wifi: value("wifi").map(|(_, text)| text.into()),
            password: value("password").map(|(_, text)| text.into()),
        })
    }
}

const KEYS: [&str; 11] = [
    "name",
    "owner",
    "address",
    "gateway",
    "port",
    "hub",
    "maker",
    "wifi",
    "password",
    "deep-sleep-after",
    "duty-cycle",
];

/// The settings of a device on serial lines alone, which has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSettings {
    /// `name`: what the device is called.
    pub name: Name,
    /// `owner`: whose it is, as `tenure key` prints it.
    pub owner: Owner,
    /// As [`Settings::sleep`].
    pub sleep: SleepPolicy,
    /// `maker`: whose firmware the device takes beside its owner's.
    pub maker: Option<VerifyingKey>,
}

impl LineSettings {
    /// Reads the settings from their part of flash.
    ///
    /// # Errors
    /// [`StartError`]: the flash fails, or the settings do.
    pub fn read<F: Flash>(flash: &mut F) -> Result<Self, StartError> {
        Self::parse(&contents(flash)?).map_err(StartError::Settings)
    }

    /// Reads the settings sector.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    pub fn parse(sector: &[u8]) -> Result<Self, SettingsError> {
        let keys = ["name", "owner", "maker", "deep-sleep-after", "duty-cycle"];
        let lines = Lines::of(sector, &keys)?;
        Ok(Self {
            name: parsed("name", lines.need("name")?)?,
            owner: owner(lines.need("owner")?).ok_or(SettingsError::Wrong("owner"))?,
            sleep: lines.sleep()?,
            maker: lines.value("maker").map(|(_, text)| parsed("maker", text)).transpose()?,
        })
    }
}

/// The settings of a leaf, which are few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafSettings {
    /// `name`: what the device is called.
    pub name: Name,
    /// `owner`: whose it is, as `tenure key` prints it.
    pub owner: Owner,
}

impl LeafSettings {
    /// Reads the settings from their part of flash.
    ///
    /// # Errors
    /// [`StartError`]: the flash fails, or the settings do.
    pub fn read<F: Flash>(flash: &mut F) -> Result<Self, StartError> {
        Self::parse(&contents(flash)?).map_err(StartError::Settings)
    }

    /// Reads the settings sector.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    pub fn parse(sector: &[u8]) -> Result<Self, SettingsError> {
        let lines = Lines::of(sector, &["name", "owner"])?;
        let name = parsed("name", lines.need("name")?)?;
        let owner = owner(lines.need("owner")?).ok_or(SettingsError::Wrong("owner"))?;
        Ok(Self { name, owner })
    }
}

fn contents<F: Flash>(flash: &mut F) -> Result<Vec<u8>, StartError> {
    let mut sector = vec![0; flash.geometry().bytes() as usize];
    flash.read(0, &mut sector).map_err(StartError::Flash)?;
    Ok(sector)
}

/// The lines of a settings sector, all of which have a known key.
pub(crate) struct Lines<'a>(&'a str);

impl<'a> Lines<'a> {
    pub(crate) fn of(sector: &'a [u8], keys: &[&str]) -> Result<Self, SettingsError> {
        let end = sector.iter().position(|byte| matches!(byte, 0 | 0xFF));
        let text = &sector[..end.unwrap_or(sector.len())];
        let text = core::str::from_utf8(text).map_err(|_| SettingsError::NoText)?;
        if text.trim().is_empty() {
            return Err(SettingsError::Blank);
        }
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let known = line.split_once('=').is_some_and(|(key, _)| keys.contains(&key.trim()));
            if !known && !line.is_empty() && !line.starts_with('#') {
                return Err(SettingsError::Unknown { line: number + 1 });
            }
        }
        Ok(Self(text))
    }

    pub(crate) fn value(&self, wanted: &'static str) -> Option<(&'a str, &'a str)> {
        let lines = self.0.lines().filter_map(|line| line.split_once('='));
        lines.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == wanted)
    }

    fn sleep(&self) -> Result<SleepPolicy, SettingsError> {
        match (self.value("deep-sleep-after"), self.value("duty-cycle")) {
            (Some((_, text)), _) => {
                let at_least = seconds(text).ok_or(SettingsError::Wrong("deep-sleep-after"))?;
                Ok(SleepPolicy::WhenIdle { at_least })
            }
            (None, Some((_, text))) => {
                let spans = text.split_once('/').map(|(run, sleep)| (seconds(run), seconds(sleep)));
                let Some((Some(run), Some(sleep))) = spans else {
                    return Err(SettingsError::Wrong("duty-cycle"));
                };
                Ok(SleepPolicy::DutyCycle { run, sleep })
            }
            (None, None) => Ok(SleepPolicy::Never),
        }
    }

    pub(crate) fn need(&self, key: &'static str) -> Result<&'a str, SettingsError> {
        self.value(key).map(|(_, value)| value).ok_or(SettingsError::Missing(key))
    }
}

pub(crate) fn parsed<T: core::str::FromStr>(
    key: &'static str,
    text: &str,
) -> Result<T, SettingsError> {
    text.parse().map_err(|_| SettingsError::Wrong(key))
}

/// `ADDRESS:PORT`, or `ADDRESS:PORT#KEY`.
fn hub(text: &str) -> Result<Hub, SettingsError> {
    let (address, key) = Hub::split(text).map_err(|_| SettingsError::Wrong("hub"))?;
    let address: SocketAddr = parsed("hub", address)?;
    Ok(Hub { address: address.into(), key })
}

/// `SIGNING-KEY/MACHINE-KEY`.
fn owner(text: &str) -> Option<Owner> {
    let (signing, machine) = text.split_once('/')?;
    Some(Owner { verifying_key: signing.parse().ok()?, machine: machine.parse().ok()? })
}

fn cidr(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let bits = bits.parse().ok().filter(|bits| *bits <= 32)?;
    Some((address.parse().ok()?, bits))
}

/// A number of seconds above zero, with up to three digits behind the point.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let milliseconds = match part.len() {
        1..=3 if part.bytes().all(|digit| digit.is_ascii_digit()) => {
            part.parse::<u64>().ok()? * 10_u64.pow(3 - part.len() as u32)
        }
        _ => return None,
    };
    let span = Duration::from_secs(whole.parse().ok()?) + Duration::from_millis(milliseconds);
    (!span.is_zero()).then_some(span)
}

/// Why there are no settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The sector is erased: nobody has set the device up.
    Blank,
    /// The sector holds no text.
    NoText,
    /// A line is none of `key=value`, or its key isn't known.
    Unknown {
        /// Its number, from 1 on.
        line: usize,
    },
    /// This key has no line.
    Missing(&'static str),
    /// This key's value can't be read.
    Wrong(&'static str),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => {
                f.write_str("the settings sector is blank; write the device's settings there")
            }
            Self::NoText => f.write_str("the settings sector holds something else than settings"),
            Self::Unknown { line } => {
                write!(f, "line {line} of the settings is none that is known")
            }
            Self::Missing(key) => write!(f, "the settings lack `{key}`"),
            Self::Wrong(key) => write!(f, "the settings' `{key}` can't be read"),
        }
    }
}

impl core::error::Error for SettingsError {}
