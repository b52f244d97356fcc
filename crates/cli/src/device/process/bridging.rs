//! The bridge of a device's topics to a broker: its file of rules, and its place in the device's loop.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use tenure_board_linux::FileFlash;
use tenure_bridge::{
    Bridge, Broker, Certificates, Entity, Inward, Outward, Published, Rules, Said, Settings,
};
use tenure_mqtt::{Message, Qos, QueueLimits, check_topic};
use tenure_node::{Door as _, Input, Moment};
use tenure_replay::Recorded;
use tenure_tls_client::Dates;
use tenure_wire::{Topic, TopicPattern};
use zeroize::Zeroizing;

use crate::home::private_file;
use crate::tls::files::{self, Authorities};
use crate::written_file;

/// The file in the device's folder with what waits for the broker.
const QUEUE: &str = "bridge.db";
/// How many events of the broker a turn of the device takes, so that a flood leaves machines their turns.
const EVENTS_PER_TURN: usize = 16;
/// The ports of MQTT (§4.2 of the standard, and IANA).
const PORT: u16 = 1883;
const SECURE_PORT: u16 = 8883;
/// The largest queue that can be asked for, in bytes and messages: the session has it in memory, too.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
const QUEUE_MESSAGES_MAX: usize = 65_536;
/// The longest password, in bytes (§3.1.3.6).
const PASSWORD_BYTES_MAX: usize = 65_535;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    broker: String,
    client_id: Option<String>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    #[serde(default)]
    ca: Vec<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(default = "default_keep_alive_s")]
    keep_alive_s: u16,
    #[serde(default = "default_session_expiry_s")]
    session_expiry_s: u32,
    #[serde(default = "default_queue_bytes")]
    queue_bytes: usize,
    #[serde(default = "default_queue_messages")]
    queue_messages: usize,
    status_topic: Option<String>,
    will: Option<Will>,
    discovery: Option<String>,
    #[serde(default)]
    out: Vec<Out>,
    #[serde(default, rename = "in")]
    inward: Vec<In>,
}

fn default_keep_alive_s() -> u16 {
    60
}

fn default_session_expiry_s() -> u32 {
    7 * 24 * 60 * 60
}

fn default_queue_bytes() -> usize {
    1024 * 1024
}

fn default_queue_messages() -> usize {
    4096
}

fn default_qos() -> u8 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Will {
    topic: String,
    payload: String,
    #[serde(default = "default_qos")]
    qos: u8,
    #[serde(default)]
    retain: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Out {
    topic: TopicPattern,
    to: String,
    #[serde(default = "default_qos")]
    qos: u8,
    #[serde(default)]
    retain: bool,
    #[serde(default)]
    home_assistant: Entity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct In {
    from: String,
    topic: Topic,
    #[serde(default = "default_qos")]
    qos: u8,
    share: Option<String>,
    #[serde(default)]
    home_assistant: Entity,
}

/// Reads the file with the rules of the device of that name, and the files that it names.
///
/// # Errors
/// One of them can't be read, or describes what can't be.
pub(super) fn load(path: &Path, device: &str) -> anyhow::Result<Settings> {
    let read = || {
        let text = std::fs::read_to_string(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        settings(written_file::parse(&text)?, folder, device)
    };
    read().with_context(|| format!("can't bridge as {} says", path.display()))
}

fn settings(file: Description, folder: &Path, device: &str) -> anyhow::Result<Settings> {
    let broker = broker(&file.broker)?;
    let certificates = certificates(&file, &broker, folder)?;
    let password = file.password_file.as_ref().map(|path| password(&folder.join(path)));
    ensure!(file.password_file.is_none() || file.user.is_some(), "a password needs a `user`");
    ensure!(
        (1..=QUEUE_BYTES_MAX).contains(&file.queue_bytes)
            && (1..=QUEUE_MESSAGES_MAX).contains(&file.queue_messages),
        "a queue has 1 to {QUEUE_BYTES_MAX} bytes and 1 to {QUEUE_MESSAGES_MAX} messages"
    );
    let (will, status_topic) = last_words(file.will, file.status_topic, device)?;
    if let Some(prefix) = &file.discovery {
        check_topic(prefix).with_context(|| format!("discovery = `{prefix}`"))?;
    }
    let out = file.out.into_iter().map(|rule| {
        let Out { topic: topics, to, retain, home_assistant: entity, .. } = rule;
        Ok(Outward { topics, to, qos: qos(rule.qos)?, retain, entity })
    });
    let inward = file.inward.into_iter().map(|rule| {
        let In { from, topic, share, home_assistant: entity, .. } = rule;
        Ok(Inward { from, topic, qos: qos(rule.qos)?, share, entity })
    });
    let out = out.collect::<anyhow::Result<_>>()?;
    let rules = Rules::new(out, inward.collect::<anyhow::Result<_>>()?)?;
    Ok(Settings {
        device: device.parse()?,
        broker,
        certificates,
        client_id: file.client_id.unwrap_or_else(|| device.to_string()),
        user: file.user,
        password: password.transpose()?,
        keep_alive_s: file.keep_alive_s,
        session_expiry_s: file.session_expiry_s,
        will,
        status_topic,
        rules,
        queue: QueueLimits { messages_max: file.queue_messages, bytes_max: file.queue_bytes },
        discovery: file.discovery,
    })
}

/// The broker at `mqtt://HOST:PORT` or `mqtts://HOST:PORT`.
fn broker(url: &str) -> anyhow::Result<Broker> {
    let what =
        || format!("broker = `{url}`; write mqtts://HOST:PORT, or mqtt://HOST:PORT without TLS");
    let (scheme, place) = url.split_once("://").with_context(what)?;
    let (is_secure, usual) = match scheme {
        "mqtt" => (false, PORT),
        "mqtts" => (true, SECURE_PORT),
        _ => bail!(what()),
    };
    let (host, port) = match place.rsplit_once(':') {
        // An address of IPv6 without a port ends in a bracket.
        Some((host, port)) if !place.ends_with(']') => (host, port.parse().with_context(what)?),
        _ => (place, usual),
    };
    Ok(Broker { host: host.parse().with_context(what)?, port, is_secure })
}

fn certificates(
    file: &Description,
    broker: &Broker,
    folder: &Path,
) -> anyhow::Result<Certificates> {
    let Description { ca, certificate, key, .. } = file;
    ensure!(certificate.is_some() == key.is_some(), "`certificate` and `key` go together");
    if !broker.is_secure {
        ensure!(
            ca.is_empty() && key.is_none(),
            "certificates are for TLS; write `broker` as mqtts://HOST:PORT"
        );
        return Ok(Certificates::default());
    }
    let ca: Vec<PathBuf> = ca.iter().map(|path| folder.join(path)).collect();
    let chain = certificate.as_ref().map(|path| files::certificates(&folder.join(path)));
    let key = key.as_ref().map(|path| files::private_key(&folder.join(path)));
    Ok(Certificates {
        authorities: Authorities::load(&ca)?.certificates(),
        chain: chain.transpose()?.unwrap_or_default(),
        key: key.transpose()?,
    })
}

/// The password in a file, without the end of its line.
fn password(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let bytes = private_file::read_secret(path)?;
    let end = bytes.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
    let password = Zeroizing::new(bytes.get(..end).unwrap_or_default().to_vec());
    ensure!(
        (1..=PASSWORD_BYTES_MAX).contains(&password.len()),
        "the password in {} has 1 to {PASSWORD_BYTES_MAX} bytes",
        path.display()
    );
    Ok(password)
}

/// The will, and the topic whose `offline` it is, if the file has no will of its own.
fn last_words(
    will: Option<Will>,
    status_topic: Option<String>,
    device: &str,
) -> anyhow::Result<(Option<Message>, Option<String>)> {
    if let Some(Will { topic, payload, qos: number, retain }) = will {
        ensure!(status_topic.is_none(), "there is one last will: `will` or `status_topic`");
        check_topic(&topic).with_context(|| format!("the will's topic `{topic}`"))?;
        let will = Message { topic, payload: payload.into_bytes(), qos: qos(number)?, retain };
        return Ok((Some(will), None));
    }
    let topic = status_topic.unwrap_or_else(|| format!("tenure/{device}/status"));
    check_topic(&topic).with_context(|| format!("status_topic = `{topic}`"))?;
    let (payload, qos) = (tenure_bridge::OFFLINE.to_vec(), Qos::AtLeastOnce);
    Ok((Some(Message { topic: topic.clone(), payload, qos, retain: true }), Some(topic)))
}

fn qos(number: u8) -> anyhow::Result<Qos> {
    Qos::from_number(number).with_context(|| format!("qos = {number}; there are 0, 1 and 2"))
}

/// The way to the broker.
pub(super) struct Bridging {
    broker: String,
    bridge: Bridge,
}

impl Bridging {
    /// Begins to bridge, with the queue in the device's `folder`; the broker's certificate is judged by `dates`.
    ///
    /// # Errors
    /// The queue can't be used, or the system has no thread.
    pub(super) fn start(settings: Settings, dates: Dates, folder: &Path) -> anyhow::Result<Self> {
        let (queue, broker) = (folder.join(QUEUE), settings.broker.to_string());
        let bridge = Bridge::start(settings, dates, &queue)
            .with_context(|| format!("can't bridge with {}", queue.display()))?;
        Ok(Self { broker, bridge })
    }

    /// The broker, and the state of the bridge to it.
    pub(super) fn state(&self) -> (String, tenure_bridge::State) {
        (self.broker.clone(), self.bridge.state())
    }

    /// Hands in what has come from the broker.
    pub(super) fn receive(&mut self, moment: &mut Moment<'_>, node: &mut Recorded<FileFlash>) {
        for _ in 0..EVENTS_PER_TURN {
            let Some(said) = self.bridge.said() else { break };
            match said {
                Said::Event { topic, payload } => {
                    node.take(moment, Input::Event { topic, payload: &payload });
                }
                Said::Remark { level, message } => {
                    node.take(moment, Input::Remark { level, message: &message });
                }
            }
        }
    }

    /// Hands over what a machine or a peripheral has published.
    pub(super) fn publish(&self, event: Published) {
        self.bridge.publish(event);
    }
}

impl AsFd for Bridging {
    /// Readable when the broker has something for the device.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bridge.as_fd()
    }
}

#[cfg(test)]
mod tests;
