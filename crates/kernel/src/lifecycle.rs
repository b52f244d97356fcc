//! The life of a machine: one table of states and events.
//!
//! ```text
//!             Enqueued              Blocked
//!    Idle ───────────────▶ Ready ───────────────▶ Waiting
//!     ▲  ◀───────────────  ▲ │  ◀───────────────   │
//!     │      Drained       │ │       Woken         │
//!     │                    │ │ Faulted             │ Faulted
//!     │         Restarted  │ ▼                     │
//!     │                   BackedOff ◀──────────────┘
//!     │ Drained               │ Banned
//!     │         Restarted     ▼
//!   Ready ◀────────────── Banned
//!
//!   any ── Ended ──▶ Over ── Renewed ──▶ Idle
//!   any but Over ── Halted ──▶ Halted ── Resumed ──▶ Idle
//! ```

/// The state of a machine.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum State {
    /// It has nothing to do.
    Idle,
    /// It has a task and wants the processor.
    Ready,
    /// It is in the middle of a task and waits for an answer or a time.
    Waiting,
    /// It failed and is kept from running for a while.
    BackedOff,
    /// It failed too often and is kept from running until that is lifted.
    Banned,
    /// Its lease is over.
    Over,
    /// Its owner stopped it.
    Halted,
}

/// The events in a machine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// A task came.
    Enqueued,
    /// It finished its last task.
    Drained,
    /// It asked for something that takes time.
    Blocked,
    /// The event that it waited for is there.
    Woken,
    /// It trapped or overspent.
    Faulted,
    /// Its back-off is over, or its ban was lifted.
    Restarted,
    /// It failed once too often.
    Banned,
    /// Its lease came to its end.
    Ended,
    /// Its lease goes on.
    Renewed,
    /// Its owner stopped it.
    Halted,
    /// Its owner started it again.
    Resumed,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Idle,
        Self::Ready,
        Self::Waiting,
        Self::BackedOff,
        Self::Banned,
        Self::Over,
        Self::Halted,
    ];

    /// The state after `event`, or `None` if the event can't happen in this state.
    pub const fn after(self, event: Event) -> Option<Self> {
        use Event::{
            Banned, Blocked, Drained, Ended, Enqueued, Faulted, Halted, Renewed, Restarted,
            Resumed, Woken,
        };
        Some(match (self, event) {
            (Self::Idle | Self::Ready, Enqueued) => Self::Ready,
            (Self::Ready, Drained) => Self::Idle,
            (Self::Ready, Blocked) => Self::Waiting,
            (Self::Waiting, Woken) => Self::Ready,
            (Self::Waiting, Enqueued) => Self::Waiting,
            (Self::BackedOff, Enqueued) => Self::BackedOff,
            (Self::Idle | Self::Ready | Self::Waiting, Faulted) => Self::BackedOff,
            (Self::BackedOff | Self::Banned, Restarted) => Self::Ready,
            (Self::BackedOff, Banned) => Self::Banned,
            (Self::Over, Renewed) | (Self::Halted, Resumed) => Self::Idle,
            (_, Ended) | (Self::Over, Halted) => Self::Over,
            (_, Halted) => Self::Halted,
            _ => return None,
        })
    }

    /// The state's name in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::BackedOff => "failed",
            Self::Banned => "banned",
            Self::Over => "lease over",
            Self::Halted => "stopped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    #[test]
    fn transition_table_is_as_drawn() {
        use Event::{
            Banned, Blocked, Drained, Ended, Enqueued, Faulted, Halted, Renewed, Restarted,
            Resumed, Woken,
        };
        let mut table = String::new();
        for state in State::ALL {
            for event in [
                Enqueued, Drained, Blocked, Woken, Faulted, Restarted, Banned, Ended, Renewed,
                Halted, Resumed,
            ] {
                if let Some(next) = state.after(event) {
                    table += &format!("{state:?} {event:?} {next:?}\n");
                }
            }
        }
        assert_eq!(
            table,
            "Idle Enqueued Ready\n\
             Idle Faulted BackedOff\n\
             Idle Ended Over\n\
             Idle Halted Halted\n\
             Ready Enqueued Ready\n\
             Ready Drained Idle\n\
             Ready Blocked Waiting\n\
             Ready Faulted BackedOff\n\
             Ready Ended Over\n\
             Ready Halted Halted\n\
             Waiting Enqueued Waiting\n\
             Waiting Woken Ready\n\
             Waiting Faulted BackedOff\n\
             Waiting Ended Over\n\
             Waiting Halted Halted\n\
             BackedOff Enqueued BackedOff\n\
             BackedOff Restarted Ready\n\
             BackedOff Banned Banned\n\
             BackedOff Ended Over\n\
             BackedOff Halted Halted\n\
             Banned Restarted Ready\n\
             Banned Ended Over\n\
             Banned Halted Halted\n\
             Over Ended Over\n\
             Over Renewed Idle\n\
             Over Halted Over\n\
             Halted Ended Over\n\
             Halted Halted Halted\n\
             Halted Resumed Idle\n"
        );
    }
}
