//! The choices of a device about its kernel.

use core::time::Duration;

use tenure_wire::Name;

use crate::policy::PolicyKind;

/// The resources that a device gives its kernel.
#[derive(Clone, Debug)]
pub struct Config {
    /// This device's name, if it has one.
    pub device: Option<Name>,
    /// The most machines at a time, not beyond [`SLOTS_MAX`](crate::policy::SLOTS_MAX).
    pub machines_max: usize,
    /// Linear memory and stacks of all machines together, in bytes. A machine whose budget doesn't
    /// fit into what the others' leave, here or in flash, is not installed, so that nobody's budget is
    /// an empty promise.
    pub memory_bytes_max: usize,
    /// Code flash set aside for machines that don't fit into memory together, in bytes; 0 if they must.
    pub swap_bytes_max: u32,
    /// How long a machine that wants the processor stays in memory at least, once it has come there from flash or new. One at
    /// rest gives way at once, as long as `swap_erasures_per_day` lets it.
    pub swap_residence: Duration,
    /// How often in a day the flash set aside may be erased, all of it once, to let machines in that would wait otherwise. A
    /// quarter of it can be used up at once.
    pub swap_erasures_per_day: u32,
    /// Parameters of tasks and of calls under way, of all machines together, in bytes. No machine
    /// gets more of it than it leaves, so that however many hoard, the next one finds some.
    pub parameter_bytes_max: usize,
    /// The scheduling policy.
    pub policy: PolicyKind,
    /// The fuel of one slice.
    pub slice_fuel: u64,
    /// How much fuel the device burns in a second, as far as is known before it was measured.
    pub fuel_per_second: u64,
    /// How long a call may take whose caller didn't say.
    pub deadline_default: Duration,
    /// The longest deadline that a machine can ask for.
    pub deadline_max: Duration,
    /// The limits of events and of who subscribes to them.
    pub events: tenure_pipeline::Config,
    /// The most log lines that wait for the node; those beyond are dropped and counted. A machine's own
    /// take a quarter of it at most, those of all machines three quarters.
    pub effects_max: usize,
    /// The bytes of log lines that a machine may write in a second, each line 32 beside its text; eight
    /// seconds' worth at once.
    pub log_bytes_per_second: u64,
}

impl Config {
    /// Whether a machine may hold `bytes` more bytes of parameters that holds so many, of all that are
    /// taken: what it holds must not be more than what is left (dynamic thresholds, Choudhury and Hahne
    /// 1998).
    pub(crate) fn has_room_for(&self, bytes: usize, held: usize, taken: usize) -> bool {
        bytes == 0 || held + bytes <= self.parameter_bytes_max.saturating_sub(taken)
    }
}

impl Default for Config {
    /// The configuration for the smallest class of device.
    fn default() -> Self {
        Self {
            device: None,
            machines_max: 16,
            memory_bytes_max: 320 * 1024,
            swap_bytes_max: 0,
            swap_residence: Duration::from_secs(30),
            // 100,000 erasures, as NOR flash bears, last for almost seven years.
            swap_erasures_per_day: 40,
            parameter_bytes_max: 64 * 1024,
            policy: PolicyKind::default(),
            slice_fuel: 20_000,
            fuel_per_second: 10_000_000,
            deadline_default: Duration::from_secs(10),
            deadline_max: Duration::from_secs(600),
            events: tenure_pipeline::Config::default(),
            effects_max: 64,
            log_bytes_per_second: 1024,
        }
    }
}
