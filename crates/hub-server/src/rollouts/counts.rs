//! How many devices of a rollout are in each state, and why some of them wait.

use super::{DeviceState, Rollout};
use crate::store::sql::{self, Connection, Next};

/// The most reasons to wait that an answer names.
const WAITS_MAX: i64 = 4;

/// How many devices of a rollout are in each state, as steps keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    of_states: [i64; DeviceState::ALL.len()],
    /// Those of the waiting ones that wait for something which only their owner can mend.
    pub(crate) held: i64,
}

impl Counts {
    /// The counts of the rollout number `id`.
    pub(crate) fn of(connection: &Connection, id: i64) -> Result<Self, sql::Error> {
        let query = "SELECT state, devices FROM rollout_counts WHERE rollout = ?1";
        let statement = connection.statement(query);
        let mut counts = Self::default();
        statement.each([id], |row| {
            let (word, devices): (String, i64) = (row.get(0)?, row.get(1)?);
            match DeviceState::ALL.iter().position(|state| state.word() == word) {
                Some(position) => counts.of_states[position] = devices,
                None => counts.held = devices,
            }
            Ok(Next::Row)
        })?;
        Ok(counts)
    }

    /// How many are in that state.
    pub(crate) fn count(&self, state: DeviceState) -> i64 {
        self.all().find(|(one, _)| *one == state).map_or(0, |(_, count)| count)
    }

    /// Each state and how many are in it, in the order in which devices pass them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (DeviceState, i64)> {
        DeviceState::ALL.into_iter().zip(self.of_states)
    }

    /// How many there are.
    pub(super) fn sum(&self) -> i64 {
        self.of_states.iter().sum()
    }

    /// How many wait that may be updated now. Whatever doesn't wait was within the reach before.
    pub(super) fn waiting_within(&self, reach: i64) -> i64 {
        let all = self.sum();
        reach.min(all) - (all - self.count(DeviceState::Waiting))
    }
}

/// Why devices of a rollout wait that its stage reaches: how many for which reason, the most frequent first.
pub(crate) fn waits(
    connection: &Connection,
    rollout: &Rollout,
    counts: &Counts,
) -> Result<Vec<(i64, String)>, sql::Error> {
    let query =
        "SELECT devices, held FROM rollout_holds WHERE rollout = ?1 ORDER BY devices DESC LIMIT ?2";
    let statement = connection.statement(query);
    let mut waits: Vec<(i64, String)> =
        statement.query_map([rollout.id, WAITS_MAX], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let named: i64 = waits.iter().map(|(devices, _)| devices).sum();
    let others = [
        (counts.held - named, "other reasons, which the list of devices names"),
        (counts.waiting_within(rollout.reach()) - counts.held, "not reached, or not asked yet"),
    ];
    let others = others.into_iter().filter(|(devices, _)| *devices > 0 && !rollout.state.is_over());
    waits.extend(others.map(|(devices, reason)| (devices, reason.to_string())));
    Ok(waits)
}

/// Waits in words: `3 wait: counter 1.0.0, which runs there, isn't in the registry: push it`.
pub fn words_of(waits: &[(i64, String)]) -> Vec<String> {
    let words = |(devices, reason): &(i64, String)| match devices {
        1 => format!("1 waits: {reason}"),
        _ => format!("{devices} wait: {reason}"),
    };
    waits.iter().map(words).collect()
}
