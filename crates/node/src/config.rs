//! The choices of a board, or of whoever starts it, about a node.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::ResetCause;
use tenure_kernel::Breadcrumb;
use tenure_vm::Limits;
use tenure_wire::control::HeapStatus;
use tenure_wire::{Address, Name, PublicKey, VerifyingKey};

/// The configuration of a node. The limits have strict defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// The device's name.
    pub name: Name,
    /// The device's owner.
    pub owner: Owner,
    /// The directory to register with, if any.
    pub hub: Option<Hub>,
    /// Further addresses of that directory, which runs in several places with one key and one list: the device goes on at
    /// the next one when it is silent.
    #[cfg(feature = "hub-addresses")]
    pub hub_also_at: Vec<Address>,
    /// Where the device can be reached, beside the address that the directory sees.
    pub addresses: Vec<Address>,
    /// The kernel's part. Its device name is set from `name`.
    pub kernel: tenure_kernel::Config,
    /// The sessions' part.
    pub rpc: tenure_rpc::Config,
    /// The limits of wasm modules.
    pub module: Limits,
    /// The most machines elsewhere that are remembered.
    pub peers_max: usize,
    /// The most devices whose directory records are remembered.
    pub records_max: usize,
    /// The most log lines that are kept.
    pub log_lines_max: usize,
    /// Asks how much of the heap is used, where the board knows.
    pub heap: Option<fn() -> HeapUse>,
    /// How many erases the maker of the flash promises for each sector, where the board knows.
    pub flash_erases_rated: Option<u32>,
    /// Whether the board sends the requests of machines to servers outside.
    #[cfg(feature = "reach")]
    pub reaches: bool,
    /// The topics whose events the board carries outside.
    #[cfg(feature = "bridge")]
    pub bridged: Vec<tenure_wire::TopicPattern>,
    /// Whether the owner may make experiments with the device's mesh: it runs the protocols for that then.
    #[cfg(feature = "experiments")]
    pub experiments: bool,
    /// The protocols that the owner's orders may start in experiments.
    #[cfg(feature = "experiments")]
    pub protocols: tenure_protocols::plug_in::Registry,
    /// The labels by which the owner's mandates select it; nobody sets them over a network.
    #[cfg(feature = "rollouts")]
    pub labels: Vec<tenure_wire::Label>,
    /// Whether the hub may show the device's log to its owner; nobody sets it over a network.
    #[cfg(feature = "reports")]
    pub shares_log: bool,
    /// When the device turns itself off, if its board can.
    pub sleep: SleepPolicy,
    /// How often the ledgers are written to flash: what a loss of power can cost the owner.
    pub checkpoint: Duration,
    /// How long a period lasts, as long as the device is on and counts: then there is a receipt.
    pub receipt_period: Duration,
    /// Why the device started.
    pub reset_cause: ResetCause,
    /// The retained memory as it was at the start, if it outlasted that: who was running.
    pub breadcrumb: Option<Breadcrumb>,
    /// How long a machine that was removed, or whose grace is over, stays in the trash, counted while the
    /// device is on.
    pub trash_span: Duration,
    /// How long a record in the directory lasts; it is renewed after a third of it.
    pub record_lifetime: Duration,
}

impl Config {
    /// A node called `name` that `owner` holds, with limits for the smallest class of device.
    pub fn new(name: Name, owner: Owner) -> Self {
        Self {
            name,
            owner,
            hub: None,
            #[cfg(feature = "hub-addresses")]
            hub_also_at: Vec::new(),
            addresses: Vec::new(),
            kernel: tenure_kernel::Config::default(),
            rpc: tenure_rpc::Config::default(),
            module: Limits::default(),
            peers_max: 64,
            records_max: 32,
            log_lines_max: 128,
            heap: None,
            flash_erases_rated: None,
            #[cfg(feature = "reach")]
            reaches: false,
            #[cfg(feature = "bridge")]
            bridged: Vec::new(),
            #[cfg(feature = "experiments")]
            experiments: false,
            #[cfg(feature = "experiments")]
            protocols: tenure_protocols::plug_in::Registry::default(),
            #[cfg(feature = "rollouts")]
            labels: Vec::new(),
            #[cfg(feature = "reports")]
            shares_log: false,
            sleep: SleepPolicy::Never,
            checkpoint: Duration::from_secs(300),
            receipt_period: Duration::from_secs(24 * 60 * 60),
            reset_cause: ResetCause::PowerOn,
            breadcrumb: None,
            trash_span: Duration::from_secs(7 * 24 * 60 * 60),
            record_lifetime: Duration::from_secs(60),
        }
    }
}

/// How much of a heap is used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapUse {
    /// Now.
    pub used_bytes: usize,
    /// At most so far.
    pub peak_bytes: usize,
    /// In all.
    pub total_bytes: usize,
}

impl HeapUse {
    /// The status for its owner, where `board_bytes` were the board's before, and `answers_bytes` are kept.
    pub(crate) fn status(&self, board_bytes: usize, answers_bytes: usize) -> HeapStatus {
        HeapStatus {
            used_bytes: self.used_bytes as u32,
            peak_bytes: self.peak_bytes as u32,
            total_bytes: self.total_bytes as u32,
            board_bytes: board_bytes as u32,
            answers_bytes: answers_bytes as u32,
        }
    }
}

/// The keys of whoever holds a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The key that signs enrolments and placements.
    pub verifying_key: VerifyingKey,
    /// The key that the owner's tool opens sessions with.
    pub machine: PublicKey,
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// Where it is.
    pub address: Address,
    /// Its key, as the device's settings pin it. `None` to keep the first key that registers the
    /// device, until the owner names another one.
    pub key: Option<PublicKey>,
}

impl Hub {
    /// Splits `ADDRESS#KEY`, or `ADDRESS` alone, as settings and command lines name a hub; the
    /// address is left for the caller to read.
    ///
    /// # Errors
    /// [`HubKeyError`] if what follows the `#` is no key.
    pub fn split(text: &str) -> Result<(&str, Option<PublicKey>), HubKeyError> {
        match text.split_once('#') {
            None => Ok((text, None)),
            Some((address, key)) => match key.parse() {
                Ok(key) => Ok((address, Some(key))),
                Err(_) => Err(HubKeyError),
            },
        }
    }
}

/// The text behind the `#` of a hub is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubKeyError;

impl core::fmt::Display for HubKeyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(
            "the hub's key can't be read; write ADDRESS#KEY, with the key that the hub prints",
        )
    }
}

impl core::error::Error for HubKeyError {}

/// When a device turns itself off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SleepPolicy {
    /// Never.
    #[default]
    Never,
    /// Whenever nothing is due for so long, nothing was heard for two seconds, and no machine serves a
    /// call from outside.
    WhenIdle {
        /// The shortest sleep that is worth it.
        at_least: Duration,
    },
    /// It runs and sleeps by turns, whatever machines do. Those that export `on_sleep` are called
    /// before.
    DutyCycle {
        /// How long it runs.
        run: Duration,
        /// How long it sleeps.
        sleep: Duration,
    },
}

/// The flash that a board gives its node, in three parts of any size.
pub struct Parts<F> {
    /// For the store: what devices and machines keep.
    pub store: F,
    /// For images; must be mapped into memory.
    pub code: F,
    /// For a package while it arrives; must be mapped into memory.
    pub staging: F,
}
