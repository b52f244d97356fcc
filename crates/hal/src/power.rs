//! Why a device started, sleep with the power off, and the memory that outlasts it.

use core::fmt;

use crate::Instant;

/// Why a device started.
///
/// A board reads it from its reset controller before anything clears it there. Where the hardware
/// tells less, the board says what it knows: a cold start is [`ResetCause::PowerOn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResetCause {
    /// Power came; nothing but flash was kept.
    PowerOn,
    /// The watchdog bit: whatever ran didn't let the board's loop go on.
    Watchdog,
    /// The software asked for it, to start anew or to start another image.
    Software,
    /// The supply voltage fell too low for a moment.
    BrownOut,
    /// Deep sleep ended; retained memory was kept.
    Wake,
}

impl ResetCause {
    /// The cause in a word or two.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PowerOn => "power on",
            Self::Watchdog => "watchdog",
            Self::Software => "software reset",
            Self::BrownOut => "brown-out",
            Self::Wake => "wake",
        }
    }

    /// The cause as a byte, for registers and flash.
    pub const fn to_byte(self) -> u8 {
        self as u8
    }

    /// The cause that a byte stands for.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::PowerOn,
            1 => Self::Watchdog,
            2 => Self::Software,
            3 => Self::BrownOut,
            4 => Self::Wake,
            _ => return None,
        })
    }

    /// Whether retained memory may hold what was put there: its content has its own checksum.
    pub const fn keeps_retained_memory(self) -> bool {
        !matches!(self, Self::PowerOn | Self::BrownOut)
    }
}

impl fmt::Display for ResetCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Memory that outlasts resets but no loss of power, as far as it is lent out.
pub trait Retained: Send {
    /// Puts `bytes` at its beginning. Done at every turn of a machine, so it must be cheap.
    fn write(&mut self, bytes: &[u8]);
}

/// A board's reset controller, watchdog and deep sleep.
pub trait Power {
    /// Why the device started; the same at every call.
    fn reset_cause(&self) -> ResetCause;

    /// Memory that outlasts deep sleep and resets, but no loss of power; its length never changes.
    /// After [`ResetCause::PowerOn`] and [`ResetCause::BrownOut`] it holds anything.
    fn retained(&mut self) -> &mut [u8];

    /// Tells the watchdog that all is well. Unless it is told again within its period, the device
    /// starts anew with [`ResetCause::Watchdog`].
    fn feed_watchdog(&mut self);

    /// Whether anything but the time wakes the board from deep sleep. One that nothing else wakes stays
    /// awake while no time to wake is known.
    fn wakes_by_event(&self) -> bool {
        true
    }

    /// Powers the device off but for retained memory, until `wake_at` or an event that the board
    /// wakes for; it then starts with [`ResetCause::Wake`]. On hardware it doesn't return; where a
    /// simulator stands for it, the caller ends its loop.
    fn deep_sleep(&mut self, wake_at: Option<Instant>);

    /// Starts the device anew with [`ResetCause::Software`]. Returns as [`Power::deep_sleep`] does.
    fn reset(&mut self);
}
