//! The clock by which a hub forgets. It goes on only while the hub hears its devices and keeps what they say, so that neither
//! a clock that was set wrong for a while, nor a hub that was off or deaf, takes away what was promised to stay.
//!
//! Invariants:
//! - It is never ahead of the wall clock by which something is judged.
//! - What is over is hidden at once by the wall clock, and deleted by this one.

use super::never;
use super::sql::{self, Connection, Next, params};

/// The longest step of the wall clock in which the hub heard all the time, in seconds.
const STEP_S_MAX: u64 = 10;
/// How often the clock is stored, in seconds of hearing: a process that is killed loses as much at most.
const STORED_EVERY_S: u64 = 600;
/// The most that one process adds at once. Several of them hear at the same time, and one stores.
const ADDED_S_MAX: u64 = 2 * STORED_EVERY_S;
/// From which step on the wall clock was set, or the hub was away, and that is told, in seconds.
const JUMP_S: u64 = 3_600 + STORED_EVERY_S;
/// A step back that leaves records of a time that never came, in seconds: two clocks of one fleet differ by less.
const BACK_S: u64 = 60;
/// How long after it was over something is deleted, in seconds of hearing.
pub(crate) const GRACE_S: i64 = 24 * 60 * 60;

const STEADY: &str = "steady";
const WALL: &str = "wall";

/// The time by which is judged at `unix_s`, both in seconds since 1970 UTC, whether something is to be forgotten.
///
/// # Errors
/// The database fails.
pub(crate) fn unix_s(connection: &Connection, unix_s: i64) -> Result<i64, sql::Error> {
    Ok(stored(connection)?[0].map_or(unix_s, |steady| steady.min(unix_s)))
}

/// The steady and the wall clock as they are stored; none where no hub ever ran.
fn stored(connection: &Connection) -> Result<[Option<i64>; 2], sql::Error> {
    let mut clocks = [None; 2];
    connection.statement("SELECT name, unix_s FROM clocks").each([], |row| {
        let name: String = row.get(0)?;
        clocks[usize::from(name == WALL)] = Some(row.get(1)?);
        Ok(Next::Row)
    })?;
    Ok(clocks)
}

/// The clock of a hub that runs.
#[derive(Debug, Default)]
pub(crate) struct Steady {
    /// The wall clock at the last step; 0 before the first one.
    wall_unix_s: u64,
    /// The steady clock without what was heard since it was stored.
    steady_unix_s: i64,
    /// The seconds that were heard since then.
    heard_s: u64,
}

/// What is to be written after a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    wall_unix_s: i64,
    steady_unix_s: i64,
    /// How far the wall clock went at once, if that is too far for a hub that hears: negative for back.
    pub(crate) jump_s: Option<i64>,
    is_back: bool,
}

impl Steady {
    /// The clock as it is stored.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn of(connection: &Connection) -> Result<Self, sql::Error> {
        Ok(match stored(connection)? {
            [Some(steady), Some(wall)] => {
                Self { wall_unix_s: wall.unsigned_abs(), steady_unix_s: steady, heard_s: 0 }
            }
            _ => Self::default(),
        })
    }

    /// The steady clock now; the wall clock where there is none.
    pub(crate) fn unix_s(&self, unix_s: i64) -> i64 {
        match self.wall_unix_s {
            0 => unix_s,
            _ => self.steady_unix_s.saturating_add(self.heard_s as i64).min(unix_s),
        }
    }

    /// Goes on to `unix_s`, if the hub `hears`. Returns what is to be written, which comes again until it is
    /// [kept](Self::keep).
    pub(crate) fn step(&mut self, unix_s: u64, hears: bool) -> Option<Step> {
        let is_first = self.wall_unix_s == 0;
        if is_first {
            self.wall_unix_s = unix_s;
            self.steady_unix_s = i64::try_from(unix_s).unwrap_or(i64::MAX);
        }
        let (ahead_s, back_s) =
            (unix_s.saturating_sub(self.wall_unix_s), self.wall_unix_s.saturating_sub(unix_s));
        // Where the wall clock is behind, this one waits for it.
        let is_behind = self.unix_s(i64::MAX) < i64::try_from(unix_s).unwrap_or(i64::MAX);
        if hears && is_behind && back_s == 0 && ahead_s <= STEP_S_MAX {
            self.heard_s = (self.heard_s + ahead_s).min(ADDED_S_MAX);
        }
        let jump_s = ahead_s.max(back_s);
        let is_jump = jump_s > JUMP_S;
        if !is_first && !is_jump && back_s <= BACK_S && self.heard_s < STORED_EVERY_S {
            self.wall_unix_s = unix_s;
            return None;
        }
        let signed = i64::try_from(jump_s).unwrap_or(i64::MAX);
        let wall_unix_s = i64::try_from(unix_s).unwrap_or(i64::MAX);
        let steady_unix_s = self.unix_s(i64::MAX);
        Some(Step {
            wall_unix_s,
            steady_unix_s,
            jump_s: is_jump.then_some(if back_s > 0 { -signed } else { signed }),
            is_back: back_s > BACK_S,
        })
    }

    /// Takes note that a step was written.
    pub(crate) fn keep(&mut self, step: &Step) {
        let Step { wall_unix_s, steady_unix_s, .. } = *step;
        *self = Self { wall_unix_s: wall_unix_s.unsigned_abs(), steady_unix_s, heard_s: 0 };
    }
}

impl Step {
    /// Writes it. Where the clock is back, nothing is of a time that never came.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn write(&self, connection: &Connection) -> Result<(), sql::Error> {
        let upsert = "INSERT INTO clocks (name, unix_s) VALUES (?1, ?2) \
             ON CONFLICT (name) DO UPDATE SET unix_s = excluded.unix_s";
        let upsert = connection.statement(upsert);
        upsert.execute(params![STEADY, self.steady_unix_s])?;
        upsert.execute(params![WALL, self.wall_unix_s])?;
        if self.is_back {
            let latest = self.wall_unix_s.saturating_add(BACK_S as i64);
            never::undo(connection, self.wall_unix_s, latest)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    /// Goes to that time in steps of so many seconds, and stores what is to be stored.
    fn go(steady: &mut Steady, (from, until): (u64, u64), by_s: usize, hears: bool) -> Vec<i64> {
        let mut jumps = Vec::new();
        for at in (from..=until).step_by(by_s) {
            if let Some(step) = steady.step(at, hears) {
                jumps.extend(step.jump_s);
                steady.keep(&step);
            }
        }
        jumps
    }

    #[test]
    fn steady_clock_goes_on_while_the_hub_hears_and_never_ahead_of_the_wall_clock() {
        let hour = 3_600;
        let mut steady = Steady::default();
        go(&mut steady, (NOW, NOW + hour), 2, true);
        let at = |steady: &Steady| steady.unix_s(i64::MAX) - NOW as i64;
        assert_eq!(at(&steady), 3_600);
        go(&mut steady, (NOW + hour, NOW + 2 * hour), 2, false);
        assert_eq!(at(&steady), 3_600, "it was deaf");
        let jumps = go(&mut steady, (NOW + 1_000 * hour, NOW + 1_001 * hour), 2, true);
        assert_eq!((jumps, at(&steady)), (vec![998 * 3_600], 7_200), "it was off");
        let jumps = go(&mut steady, (NOW, NOW + 10), 2, true);
        assert_eq!((jumps, at(&steady)), (vec![-1_001 * 3_600], 7_200), "the clock was wrong");
        assert_eq!(steady.unix_s(NOW as i64), NOW as i64);
        go(&mut steady, (NOW + 10, NOW + 2 * hour), 2, true);
        assert_eq!(at(&steady), 7_200, "it waits for the wall clock");
        go(&mut steady, (NOW + 2 * hour, NOW + 3 * hour), 2, true);
        assert_eq!(at(&steady), 3 * 3_600);
    }
}
