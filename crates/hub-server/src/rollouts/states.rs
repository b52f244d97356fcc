//! The states of a rollout and of a device in it, what happens to either, and what it is then.
//!
//! Each lifecycle is one table. Whatever isn't in it can't happen.

use crate::store::sql::{FromSql, ToSql, Value};

/// The state of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It goes on by itself.
    Running,
    /// It begins nothing new.
    Paused,
    /// Devices get back what they had before.
    RollingBack,
    /// Each device is through.
    Done,
    /// Each device that could has what it had before.
    RolledBack,
    /// Its owner left all as it was.
    Aborted,
    /// Its time is over, or it couldn't go on.
    Ended,
}

/// An event in the life of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its owner's act.
    Pause,
    /// Its owner's act.
    Resume,
    /// Its owner's act.
    Abort,
    /// Its owner's act.
    RollBack,
    /// More devices fail than may, in a rollout that is rolled back then.
    Fails,
    /// More devices fail than may, in a rollout that pauses then.
    FailsAndWaits,
    /// No device is under way any more, nor to come.
    AllThrough,
    /// Its time is over, and no device is in the middle of its update.
    TimeOver,
    /// It couldn't go on for a while, and only its owner could have changed that.
    Stuck,
    /// No device is on its way back any more.
    AllBack,
}

/// The lifecycle of a rollout.
const ROLLOUT: [(State, Event, State); 18] = [
    (State::Running, Event::Pause, State::Paused),
    (State::Running, Event::Abort, State::Aborted),
    (State::Running, Event::RollBack, State::RollingBack),
    (State::Running, Event::Fails, State::RollingBack),
    (State::Running, Event::FailsAndWaits, State::Paused),
    (State::Running, Event::AllThrough, State::Done),
    (State::Running, Event::TimeOver, State::Ended),
    (State::Running, Event::Stuck, State::Ended),
    (State::Paused, Event::Resume, State::Running),
    (State::Paused, Event::Abort, State::Aborted),
    (State::Paused, Event::RollBack, State::RollingBack),
    (State::Paused, Event::AllThrough, State::Done),
    (State::Paused, Event::TimeOver, State::Ended),
    (State::RollingBack, Event::AllBack, State::RolledBack),
    (State::RollingBack, Event::Abort, State::Aborted),
    (State::Done, Event::RollBack, State::RollingBack),
    (State::Ended, Event::RollBack, State::RollingBack),
    (State::Aborted, Event::RollBack, State::RollingBack),
];

/// The state of a device in a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceState {
    /// Nothing was done there.
    Waiting,
    /// It was asked to update.
    Updating,
    /// It has the package, and is watched.
    Soaking,
    /// It did well.
    Healthy,
    /// It failed a gate, refused, or can't go back.
    Failed,
    /// It is asked to go back.
    Reverting,
    /// It has what it had before.
    Reverted,
}

/// An event in the life of a device in a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceEvent {
    /// It is asked to update, and what it has is written down.
    Begins,
    /// It has the package.
    Updated,
    /// It refuses the package.
    Refuses,
    /// It fails a gate, or is silent for too long.
    Fails,
    /// It soaked for long enough.
    Soaked,
    /// The rollout is rolled back.
    GoesBack,
    /// The rollout is rolled back, and nobody has the package from before.
    CannotGoBack,
    /// It has what it had before.
    IsBack,
    /// Its owner goes on in spite of it.
    Forgiven,
}

/// The lifecycle of a device in a rollout.
const DEVICE: [(DeviceState, DeviceEvent, DeviceState); 18] = [
    (DeviceState::Waiting, DeviceEvent::Begins, DeviceState::Updating),
    (DeviceState::Waiting, DeviceEvent::Refuses, DeviceState::Failed),
    (DeviceState::Updating, DeviceEvent::Begins, DeviceState::Updating),
    (DeviceState::Updating, DeviceEvent::Updated, DeviceState::Soaking),
    (DeviceState::Updating, DeviceEvent::Refuses, DeviceState::Failed),
    (DeviceState::Updating, DeviceEvent::Fails, DeviceState::Failed),
    (DeviceState::Updating, DeviceEvent::GoesBack, DeviceState::Reverting),
    (DeviceState::Updating, DeviceEvent::CannotGoBack, DeviceState::Failed),
    (DeviceState::Soaking, DeviceEvent::Soaked, DeviceState::Healthy),
    (DeviceState::Soaking, DeviceEvent::Fails, DeviceState::Failed),
    (DeviceState::Soaking, DeviceEvent::GoesBack, DeviceState::Reverting),
    (DeviceState::Soaking, DeviceEvent::CannotGoBack, DeviceState::Failed),
    (DeviceState::Healthy, DeviceEvent::GoesBack, DeviceState::Reverting),
    (DeviceState::Healthy, DeviceEvent::CannotGoBack, DeviceState::Failed),
    (DeviceState::Failed, DeviceEvent::GoesBack, DeviceState::Reverting),
    (DeviceState::Failed, DeviceEvent::CannotGoBack, DeviceState::Failed),
    (DeviceState::Failed, DeviceEvent::Forgiven, DeviceState::Healthy),
    (DeviceState::Reverting, DeviceEvent::IsBack, DeviceState::Reverted),
];

impl State {
    /// All of them, in the order of a life.
    pub(crate) const ALL: [Self; 7] = [
        Self::Running,
        Self::Paused,
        Self::RollingBack,
        Self::Done,
        Self::RolledBack,
        Self::Aborted,
        Self::Ended,
    ];

    /// The state after `event`; `None` if that can't happen now.
    pub(crate) fn after(self, event: Event) -> Option<Self> {
        next(&ROLLOUT, self, event)
    }

    /// Whether nothing more happens by itself.
    pub(crate) fn is_over(self) -> bool {
        !matches!(self, Self::Running | Self::Paused | Self::RollingBack)
    }

    /// The word in the database, the API and on pages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::RollingBack => "rolling back",
            Self::Done => "done",
            Self::RolledBack => "rolled back",
            Self::Aborted => "aborted",
            Self::Ended => "ended",
        }
    }
}

impl Event {
    /// The owner's act that the API calls by that name.
    pub(crate) fn of_verb(verb: &str) -> Option<Self> {
        let act = [Self::Pause, Self::Resume, Self::Abort, Self::RollBack];
        act.into_iter().find(|act| act.verb() == Some(verb))
    }

    /// The name of an owner's act in the API.
    pub(crate) fn verb(self) -> Option<&'static str> {
        match self {
            Self::Pause => Some("pause"),
            Self::Resume => Some("resume"),
            Self::Abort => Some("abort"),
            Self::RollBack => Some("roll-back"),
            _ => None,
        }
    }

    /// Whether somebody who asks for this in that state has it already.
    pub(crate) fn is_done_in(self, state: State) -> bool {
        matches!(
            (self, state),
            (Self::Pause, State::Paused)
                | (Self::Resume, State::Running)
                | (Self::Abort, State::Aborted)
                | (Self::RollBack, State::RollingBack | State::RolledBack)
        )
    }
}

impl DeviceState {
    /// All of them, in the order in which a device passes them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Updating,
        Self::Soaking,
        Self::Healthy,
        Self::Failed,
        Self::Reverting,
        Self::Reverted,
    ];

    /// The state after `event`; `None` if that can't happen now.
    pub(crate) fn after(self, event: DeviceEvent) -> Option<Self> {
        next(&DEVICE, self, event)
    }

    /// The word in the database, the API and on pages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Updating => "updating",
            Self::Soaking => "soaking",
            Self::Healthy => "healthy",
            Self::Failed => "failed",
            Self::Reverting => "reverting",
            Self::Reverted => "reverted",
        }
    }
}

impl DeviceEvent {
    /// The states in which this can happen, as a list in SQL.
    pub(crate) fn possible_in(self) -> String {
        let from = DEVICE.iter().filter(|(_, what, _)| *what == self);
        let words: Vec<String> = from.map(|(from, ..)| format!("'{}'", from.word())).collect();
        format!("({})", words.join(", "))
    }

    /// The state after this, in which all lead to one.
    pub(crate) fn outcome(self) -> Option<DeviceState> {
        DEVICE.iter().find(|(_, what, _)| *what == self).map(|(.., to)| *to)
    }
}

/// What `event` leads to in `table` from a state, if it can happen there.
fn next<S: Copy + PartialEq, E: PartialEq>(table: &[(S, E, S)], from: S, event: E) -> Option<S> {
    let found = table.iter().find(|(state, what, _)| *state == from && *what == event);
    found.map(|(.., to)| *to)
}

/// A state stands in the database by its word.
macro_rules! stored_by_word {
    ($state:ty) => {
        impl ToSql for $state {
            fn value(&self) -> Value<'_> {
                Value::Text(self.word())
            }
        }

        impl FromSql for $state {
            fn from_value(value: Value<'_>) -> Result<Self, String> {
                let known = |state: &Self| value == Value::Text(state.word());
                let state = Self::ALL.into_iter().find(known);
                state.ok_or_else(|| "no state has that word".into())
            }
        }
    };
}

stored_by_word!(State);
stored_by_word!(DeviceState);

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    /// A lifecycle as the documentation draws it: a line for each event in each state.
    fn drawn<S: Copy, E: Copy>(
        table: &[(S, E, S)],
        word: impl Fn(S) -> &'static str,
        words: impl Fn(E) -> &'static str,
    ) -> String {
        let line = |(from, what, to): &(S, E, S)| {
            format!("{:<13}── {} ──> {}\n", word(*from), words(*what), word(*to))
        };
        table.iter().map(line).collect()
    }

    fn words(event: Event) -> &'static str {
        match event {
            Event::Pause => "its owner pauses it",
            Event::Resume => "its owner resumes it",
            Event::Abort => "its owner aborts it",
            Event::RollBack => "its owner rolls it back",
            Event::Fails => "too many devices failed",
            Event::FailsAndWaits => "too many devices failed, with --pause-on-failure",
            Event::AllThrough => "each device is healthy or failed",
            Event::TimeOver => "its time is over",
            Event::Stuck => "it was stuck for 30 minutes",
            Event::AllBack => "no device is on its way back",
        }
    }

    fn device_words(event: DeviceEvent) -> &'static str {
        match event {
            DeviceEvent::Begins => "asked to update",
            DeviceEvent::Updated => "it has the package",
            DeviceEvent::Refuses => "it refuses the package",
            DeviceEvent::Fails => "it fails a gate, or is silent",
            DeviceEvent::Soaked => "it soaked for long enough",
            DeviceEvent::GoesBack => "the rollout is rolled back",
            DeviceEvent::CannotGoBack => "rolled back, and nobody has its package of before",
            DeviceEvent::IsBack => "it has what it had before",
            DeviceEvent::Forgiven => "its owner resumes the rollout",
        }
    }

    #[test]
    fn documentation_draws_both_lifecycles_as_they_are() {
        let page = include_str!("../../../../docs/hub.md");
        let drawings =
            [drawn(&ROLLOUT, State::word, words), drawn(&DEVICE, DeviceState::word, device_words)];
        for drawing in drawings {
            assert!(page.contains(&drawing), "docs/hub.md doesn't have this:\n{drawing}");
        }
    }

    #[test]
    fn each_event_has_one_outcome_in_each_state() {
        fn check<S: PartialEq + Debug, E: PartialEq + Debug>(table: &[(S, E, S)]) {
            for (at, (from, what, _)) in table.iter().enumerate() {
                let again = table[at + 1..].iter().any(|(f, w, _)| f == from && w == what);
                assert!(!again, "{from:?} {what:?}");
            }
        }
        check(&ROLLOUT);
        check(&DEVICE);
        // An event that is written for many devices at once leads to one state.
        for event in [DeviceEvent::GoesBack, DeviceEvent::CannotGoBack, DeviceEvent::Forgiven] {
            let outcomes = DEVICE.iter().filter(|(_, what, _)| *what == event);
            assert!(outcomes.into_iter().all(|(.., to)| Some(*to) == event.outcome()));
        }
    }

    #[test]
    fn each_rollout_that_goes_on_by_itself_comes_to_an_end_and_each_device_too() {
        let own = |event: Event| event.verb().is_none();
        for state in State::ALL {
            let leads_on = ROLLOUT.iter().any(|(from, what, _)| *from == state && own(*what));
            assert_eq!(leads_on, !state.is_over(), "{state:?}");
        }
        let ends = [DeviceState::Reverted];
        for state in DeviceState::ALL {
            let leads_on = DEVICE.iter().any(|(from, ..)| *from == state);
            assert_eq!(leads_on, !ends.contains(&state), "{state:?}");
        }
    }
}
