//! The settings of a publisher: lines of text in its flash, as those of other devices.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use tenure_tls::x509::ServerName;
use tenure_wire::Name;

use crate::settings::{Lines, SettingsError, parsed, seconds};

/// The port of MQTT over TLS (IANA).
const PORT: u16 = 8883;
/// How often the sensor is read, unless the settings say otherwise.
const PERIOD: Duration = Duration::from_secs(10);

const KEYS: [&str; 9] =
    ["name", "broker", "dns", "date", "broker-key", "period", "user", "password", "element"];

/// The settings of one publisher. What proves who it is isn't to be printed: there is no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct PublisherSettings {
    /// `name`: what the device is called, also by its broker.
    pub name: Name,
    /// `broker`: the broker's host, as `HOST` or `HOST:PORT`.
    pub host: BrokerHost,
    /// The broker's port.
    pub port: u16,
    /// `dns`: who resolves the broker's name, instead of those that DHCP names.
    pub dns: Option<Ipv4Addr>,
    /// `date`: when the device was set up, in seconds since 1970.
    pub date: Option<u64>,
    /// `broker-key`: the broker's public key (`SubjectPublicKeyInfo` in DER, in hexadecimal digits), which counts while
    /// the date isn't known.
    pub broker_key: Option<Vec<u8>>,
    /// `period`: how often the sensor is read, in seconds.
    pub period: Duration,
    /// `user`: the user, for brokers that ask.
    pub user: Option<String>,
    /// `password`: the password of that user.
    pub password: Option<String>,
    /// `element`: where the secure element is.
    pub element: ElementPlace,
}

/// A broker's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerHost {
    /// By its name in the DNS.
    Name(String),
    /// By its address.
    Address(Ipv4Addr),
}

/// Where a board finds its secure element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ElementPlace {
    /// `i2c`: on its I²C bus.
    #[default]
    I2c,
    /// `line`: at a serial line, behind which an emulator's surroundings play the bus.
    Line,
}

impl PublisherSettings {
    /// Reads the settings sector.
    ///
    /// # Errors
    /// [`SettingsError`] names the line that is wrong or missing.
    pub fn parse(sector: &[u8]) -> Result<Self, SettingsError> {
        let lines = Lines::of(sector, &KEYS)?;
        let value = |key| lines.value(key).map(|(_, text)| text);
        let (host, port) = broker(lines.need("broker")?).ok_or(SettingsError::Wrong("broker"))?;
        let broker_key = value("broker-key").map(|text| from_hex(text).ok_or(text)).transpose();
        let period = value("period").map_or(Some(PERIOD), seconds);
        Ok(Self {
            name: parsed("name", lines.need("name")?)?,
            host,
            port,
            dns: value("dns").map(|text| parsed("dns", text)).transpose()?,
            date: value("date").map(|text| parsed("date", text)).transpose()?,
            broker_key: broker_key.map_err(|_| SettingsError::Wrong("broker-key"))?,
            period: period.ok_or(SettingsError::Wrong("period"))?,
            user: value("user").map(Into::into),
            password: value("password").map(Into::into),
            element: match value("element") {
                None | Some("i2c") => ElementPlace::I2c,
                Some("line") => ElementPlace::Line,
                Some(_) => return Err(SettingsError::Wrong("element")),
            },
        })
    }
}

impl BrokerHost {
    /// The name that the broker's certificate must be for.
    pub(super) fn server_name(&self) -> ServerName<'_> {
        match self {
            Self::Name(name) => ServerName::Dns(name),
            Self::Address(address) => ServerName::Ipv4(address.octets()),
        }
    }
}

impl core::fmt::Display for BrokerHost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// `HOST`, or `HOST:PORT`.
fn broker(text: &str) -> Option<(BrokerHost, u16)> {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse().ok().filter(|port| *port != 0)?),
        None => (text, PORT),
    };
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let host = match host.parse() {
        Ok(address) => BrokerHost::Address(address),
        Err(_) if !host.is_empty() && host.bytes().all(is_of_name) => {
            BrokerHost::Name(host.to_string())
        }
        Err(_) => return None,
    };
    Some((host, port))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect()
}
