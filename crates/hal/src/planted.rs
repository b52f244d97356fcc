//! Weaknesses that a hunt of the simulator plants in a build of its own, and what it watches there.
//!
//! Only `--cfg planted` compiles either of them in, which the command `tenure` refuses. In every other build
//! [`is_planted`] is the constant `false`, and nothing is watched. What is planted and what was seen belong
//! to a thread, so that worlds on other threads stay as they are.

#[cfg(planted)]
mod watched;

#[cfg(planted)]
pub use watched::{Seen, is_planted, plant, seen, watch_seal, watch_signing, watch_text};

/// A weakness that an audit found in this system, and that was mended since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weakness {
    /// H1: any hub's word ends leases, and the end of a grace by told time deletes machines.
    FalseHubEndsLeases,
    /// H2: calls of which parts are missing stay for as long as any part of them is repeated.
    HalfSentCallsStay,
    /// H3: the response to an initiation is sent to whoever repeats it, and counts as a proof.
    ResponsesGoAnywhere,
    /// M1: one address may take all handshakes.
    OneHostTakesHandshakes,
    /// M2: strangers have the device sign and verify as much as they like.
    SignaturesWithoutLimit,
    /// M3: tenants change secrets as often as they like.
    SecretsWearFlash,
    /// M4: callers who wait for a name aren't counted, and the owner has no share of his own.
    WaitingCallersUncounted,
    /// M5: texts of machines are read to their end before their length is looked at.
    TextsReadToTheEnd,
    /// M7: machines log as much as they like.
    LogsWithoutLimit,
    /// M8: each denial is a line in the log of the machine that was called.
    DenialsFillLogs,
    /// M9: frames of each start in a mesh are numbered alike.
    FramesNumberedAlike,
    /// M12: epochs end by use alone, so that first messages that were held back run at any later time.
    EpochsNeverEnd,
    /// M15: each new epoch is published at once.
    StrangersSetThePace,
    /// A machine's use since the last count is forgotten when its tree is restored.
    RestoreForgetsUse,
}

/// Whether the hunt has planted that weakness. In a build that isn't for a hunt it never has.
#[cfg(not(planted))]
pub const fn is_planted(_weakness: Weakness) -> bool {
    false
}
