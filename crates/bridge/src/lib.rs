//! Carries a device's events to a broker of MQTT 5, and a broker's messages to the device, as far as rules of the device's
//! owner say.
//!
//! Invariants:
//! - Topics that no rule names cross in neither direction, and what came from the broker doesn't go back to it.
//! - One thread speaks with the broker. It waits for the device and for the broker at once, so that neither holds the other up:
//!   an event is in the file of the queue whatever the broker does.
//! - A broker that lies, floods, is silent or goes costs a connection and a line in the device's log; the next one is tried
//!   after a pause that doubles.
#![forbid(unsafe_code)]

mod announced;
mod carrier;
mod complaints;
mod discovery;
mod ends;
mod link;
mod local_names;
mod rules;
mod state;
mod store;

use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tenure_mqtt::{Message, QueueLimits};
use tenure_tls_client::Dates;
use tenure_wire::url::Host;
use tenure_wire::{LogLevel, Name, Topic};
use zeroize::Zeroizing;

use carrier::Carrier;
use ends::{FromDevice, ToDevice};
pub use rules::{Entity, Inward, Outward, RuleError, Rules};
use state::SharedState;
pub use state::State;
use store::Store;
pub use store::StoreError;

/// The most events that wait on their way from the device to the thread.
const OUTWARD_MAX: usize = 1024;
/// The most events and lines that wait on their way to the device.
const INWARD_MAX: usize = 256;

/// The payloads of the topic that says whether the device is there: as the device says, and as its will does.
pub const ONLINE: &[u8] = b"online";
/// The other one.
pub const OFFLINE: &[u8] = b"offline";

/// A broker's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its host.
    pub host: Host,
    /// Its port.
    pub port: u16,
    /// Whether it speaks TLS.
    pub is_secure: bool,
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "mqtts" } else { "mqtt" };
        match &self.host {
            Host::Name(name) => write!(f, "{scheme}://{name}:{}", self.port),
            Host::Address(address) => {
                write!(f, "{scheme}://{}", std::net::SocketAddr::new(*address, self.port))
            }
        }
    }
}

/// The certificates of both sides, all in DER.
#[derive(Clone, Default)]
pub struct Certificates {
    /// The authorities' certificates.
    pub authorities: Vec<Vec<u8>>,
    /// The own certificates, the own one first; none if the broker needs none.
    pub chain: Vec<Vec<u8>>,
    /// The private key of the first.
    pub key: Option<Zeroizing<Vec<u8>>>,
}

/// The choices of the owner about a bridge. What proves who this is isn't to be printed: there is no `Debug`.
#[derive(Clone)]
pub struct Settings {
    /// The device, as it is called in Home Assistant.
    pub device: Name,
    /// The broker.
    pub broker: Broker,
    /// For a broker that speaks TLS.
    pub certificates: Certificates,
    /// The name of the session at the broker.
    pub client_id: String,
    /// The user, for brokers that ask.
    pub user: Option<String>,
    /// The password of that user.
    pub password: Option<Zeroizing<Vec<u8>>>,
    /// The longest silence towards the broker, in seconds.
    pub keep_alive_s: u16,
    /// How long the broker keeps the session while the device is away, in seconds.
    pub session_expiry_s: u32,
    /// The last will, which the broker publishes when the device is gone.
    pub will: Option<Message>,
    /// The topic on which the broker has `online` while the device is connected, if the will is its opposite.
    pub status_topic: Option<String>,
    /// The rules that say what crosses.
    pub rules: Rules,
    /// The limits of the queue for the broker.
    pub queue: QueueLimits,
    /// The prefix of Home Assistant's discovery, if entities are to appear there.
    pub discovery: Option<String>,
}

/// Something that the bridge has for the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// An event to publish.
    Event {
        /// Under which topic.
        topic: Topic,
        /// Its payload, no longer than an event's may be.
        payload: Vec<u8>,
    },
    /// A line for the device's log.
    Remark {
        /// How grave.
        level: LogLevel,
        /// The line.
        message: String,
    },
}

/// An event of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its topic.
    pub topic: Topic,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Whose it is: one number for those who share a part of the queue and of Home Assistant's entities.
    pub publisher: u64,
}

/// A bridge, seen from its device.
pub struct Bridge {
    events: SyncSender<Published>,
    said: Receiver<Said>,
    /// Events that the thread had no room for.
    lost: Arc<AtomicU64>,
    state: SharedState,
    is_over: Arc<AtomicBool>,
    /// Readable when something was said.
    has_said: UnixStream,
    /// Wakes the thread.
    waker: UnixStream,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no bridge.
#[derive(Debug)]
pub enum BridgeError {
    /// The queue's file can't be used.
    Store(StoreError),
    /// The system refuses.
    System(std::io::Error),
}

impl fmt::Display for BridgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "{error}"),
            Self::System(error) => write!(f, "the system has no thread for the bridge: {error}"),
        }
    }
}

impl std::error::Error for BridgeError {}

impl Bridge {
    /// Begins to carry events, with the queue in the file at `queue`, which is made if it isn't there. The broker's certificate is
    /// judged by `dates`.
    ///
    /// # Errors
    /// [`BridgeError`].
    pub fn start(settings: Settings, dates: Dates, queue: &Path) -> Result<Self, BridgeError> {
        let session = format!("{} {}", settings.broker, settings.client_id);
        let (store, kept) = Store::open(queue, &session).map_err(BridgeError::Store)?;
        let (events, coming) = sync_channel(OUTWARD_MAX);
        let (sender, said) = sync_channel(INWARD_MAX);
        let (waker, woken) = pair().map_err(BridgeError::System)?;
        let (teller, has_said) = pair().map_err(BridgeError::System)?;
        let (lost, is_over, state) = (Arc::default(), Arc::default(), SharedState::default());
        let from_device = FromDevice {
            events: coming,
            lost: Arc::clone(&lost),
            is_over: Arc::clone(&is_over),
            woken,
            waker: waker.try_clone().map_err(BridgeError::System)?,
        };
        let to_device = ToDevice::new(sender, teller, state.clone());
        let carrier = Carrier::new((settings, dates), (store, kept), from_device, to_device);
        let thread = std::thread::Builder::new().name("bridge".into());
        let thread = thread.spawn(move || carrier.run()).map_err(BridgeError::System)?;
        Ok(Self { events, said, lost, state, is_over, has_said, waker, thread: Some(thread) })
    }

    /// The state of the bridge.
    pub fn state(&self) -> State {
        self.state.lock().clone()
    }

    /// Hands over an event of the device.
    pub fn publish(&self, event: Published) {
        if self.events.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.wake();
    }

    /// The next thing that the bridge has for the device.
    pub fn said(&mut self) -> Option<Said> {
        let said = self.said.try_recv().ok();
        match said {
            // There is room again.
            Some(_) => self.wake(),
            None => drain(&mut self.has_said),
        }
        // Something may have come between the look and the emptying.
        said.or_else(|| self.said.try_recv().ok())
    }

    fn wake(&self) {
        // A full pipe wakes it anyhow.
        let _ = (&self.waker).write(&[0]);
    }
}

impl AsFd for Bridge {
    /// Readable when the bridge has something for the device.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.has_said.as_fd()
    }
}

impl Drop for Bridge {
    /// Says goodbye to the broker, which takes two seconds at most.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // One that panicked is over, too.
            let _ = thread.join();
        }
    }
}

/// Two ends that wake each other, and don't block.
fn pair() -> std::io::Result<(UnixStream, UnixStream)> {
    let (one, other) = UnixStream::pair()?;
    one.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    Ok((one, other))
}

/// Takes all that woke this end.
fn drain(woken: &mut UnixStream) {
    let mut wakes = [0; 64];
    while woken.read(&mut wakes).is_ok_and(|length| length == wakes.len()) {}
}
