//! Why a call has no result: every reason, described once.
//!
//! The table below is all that knows a reason's code on the wire, its text, whether the call may have
//! run, and what a machine receives for it. A new reason is a row here, and the place where it arises.

use core::fmt;
use core::time::Duration;

use crate::host_call::HostError;

/// Whether a call without a result may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ran {
    /// It may have run, in part at least, or may yet.
    Perhaps,
    /// It didn't run and won't.
    No,
}

macro_rules! reasons {
    (
        $($(#[doc = $documentation:literal])* $code:literal => $name:ident, $ran:ident, $error:ident, $text:literal;)*
        until:
        $($(#[doc = $until_documentation:literal])* $until_code:literal => $until_name:ident, $until_ran:ident, $until_error:ident, $until_text:literal;)*
    ) => {
        /// Why a call has no result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum NoResult {
            $($(#[doc = $documentation])* $name,)*
            $(
                $(#[doc = $until_documentation])*
                $until_name {
                    /// How long to wait before another call.
                    again_in: Duration,
                },
            )*
            /// A reason of a later version, by its code.
            Other(u8),
        }

        impl NoResult {
            /// Every reason that this version knows; those with a wait have none.
            pub const ALL: &[Self] = &[
                $(Self::$name,)*
                $(Self::$until_name { again_in: Duration::ZERO },)*
            ];

            /// Its code on the wire, 1 or more.
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$name => $code,)*
                    $(Self::$until_name { .. } => $until_code,)*
                    Self::Other(code) => code,
                }
            }

            /// The reason with that code; `again_in` counts where the reason has a wait.
            pub const fn from_code(code: u8, again_in: Duration) -> Self {
                match code {
                    $($code => Self::$name,)*
                    $($until_code => Self::$until_name { again_in },)*
                    code => Self::Other(code),
                }
            }

            /// How long to wait before another call, where that is known.
            pub const fn again_in(self) -> Option<Duration> {
                match self {
                    $(Self::$until_name { again_in } => Some(again_in),)*
                    _ => None,
                }
            }

            /// Whether the call may have run, in part at least, or may yet, though it has no result. A
            /// caller who makes it again may have it done twice.
            pub const fn may_have_run(self) -> bool {
                let ran = match self {
                    $(Self::$name => Ran::$ran,)*
                    $(Self::$until_name { .. } => Ran::$until_ran,)*
                    Self::Other(_) => Ran::Perhaps,
                };
                matches!(ran, Ran::Perhaps)
            }

            /// The error that the machine which made the call receives.
            pub const fn host_error(self) -> HostError {
                match self {
                    $(Self::$name => HostError::$error,)*
                    $(Self::$until_name { .. } => HostError::$until_error,)*
                    Self::Other(_) => HostError::Unknown,
                }
            }

            const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    $(Self::$until_name { .. } => $until_text,)*
                    Self::Other(_) => "the called device has a reason that this version doesn't know",
                }
            }
        }
    };
}

reasons! {
    /// The function was started and failed; the cause is the called device's business alone.
    1 => Execution, Perhaps, Execution, "execution error";
    /// The machine has no such function.
    2 => NoSuchFunction, No, NotFound, "the machine has no such function";
    /// The device has no such machine.
    3 => NoSuchMachine, No, NotFound, "the machine isn't on its device";
    /// The machine doesn't let this caller call that.
    4 => Denied, No, Denied, "the machine doesn't allow that";
    /// The machine, or the way to it, has no room for another call.
    5 => Busy, No, Full, "the machine is busy";
    /// The parameter is longer than the called side takes, or the result than the caller does. In the
    /// latter case the call was executed.
    6 => TooLong, Perhaps, TooLong, "the parameter or the result is too long";
    /// The called device lost its memory, or had to drop the result, before the caller had it.
    7 => OutcomeUnknown, Perhaps, Unknown, "outcome unknown: the device restarted, or had no session left for its caller";
    /// The deadline passed, on either side.
    8 => Deadline, Perhaps, Deadline, "the deadline passed";
    /// The machine failed too often and is stopped until its owner lifts that.
    10 => Banned, No, Banned, "the machine is banned for repeated faults";
    /// The call was stopped because it took more than the machine's budget has.
    11 => Overspent, Perhaps, Overspent, "the call took more than the machine's budget has";
    /// The machine's lease is over. The call was not executed, or was stopped in the middle.
    12 => LeaseOver, Perhaps, LeaseOver, "the machine's lease is over";
    /// The machine's owner has stopped it. The call was not executed, or was stopped in the middle.
    13 => Halted, Perhaps, Halted, "the machine's owner has stopped it";
    /// There was no answer of any kind. If the call was sent, an attacker who holds back its datagram can
    /// let it through for as long as the called device's epoch lasts.
    19 => Unreachable, Perhaps, Unreachable,
        "the machine could not be reached; if the call was sent, it may have run, or may yet";
    /// An answer from the device's address says, twice, that the machine isn't there. Nobody signs that, so
    /// a call that was sent may have been executed.
    14 => AllegedlyGone, Perhaps, Unreachable,
        "somebody at the device's address says that the machine isn't there; if the call was sent, it \
         may have run";
    /// The function's name is empty or too long.
    15 => Invalid, No, Invalid, "the function's name is empty or too long";
    /// The calling device failed.
    16 => Device, No, Device, "the calling device failed";
    /// The name, secret or machine isn't known.
    18 => NotFound, No, NotFound, "not found";
    until:
    /// The machine was stopped for a fault, and starts again too late for this call.
    9 => Stopped, No, Stopped, "the machine was stopped for a fault; it starts again in";
    /// The called device sleeps beyond the deadline. A call that had begun goes on when it wakes.
    17 => Asleep, Perhaps, Asleep, "the device sleeps; it wakes in";
    /// The called device opens others' sessions first, beyond the deadline. Nobody signs that.
    20 => Deferred, Perhaps, Unreachable, "the device is crowded, and has a turn for this one in";
}

impl fmt::Display for NoResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match (self, self.again_in()) {
            (Self::Other(code), _) => write!(f, ": {code}"),
            (_, Some(wait)) => write!(f, " {} s", wait.as_secs_f32()),
            _ => Ok(()),
        }
    }
}

impl core::error::Error for NoResult {}

#[cfg(test)]
mod tests;
