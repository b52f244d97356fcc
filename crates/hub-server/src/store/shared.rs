//! The knowledge that several processes which run one hub on one database have of each other: who does what is to be done
//! once, which devices others changed, and what time it is.
//!
//! Invariants:
//! - What is done once is done in the transaction that renews the lease for it. A process that stood still loses its
//!   transaction with its connection, and one whose lease another took conflicts with that other's transaction.
//! - A change is told once its transaction is over, whatever the order in which transactions end.
//! - The wall clock of all of them is the database's.

use std::time::{Duration, Instant, UNIX_EPOCH};

use super::sql::{self, Connection, Next, OptionalExtension as _, params};

/// The lease for what is due by the clock: steps of rollouts, and what is to be forgotten.
pub(crate) const CLOCK: &str = "clock";
/// The lease for alarms: looking at the rules, and telling of what was raised.
pub(crate) const ALARMS: &str = "alarms";
/// Whether a lease `l` is over: also where the server's clock was ahead as it was taken.
const IS_OVER: &str =
    "l.ends_at <= clock_timestamp() OR l.ends_at > clock_timestamp() + interval '20 seconds'";
/// How long a process may be without the others' changes before it reads all devices instead.
const FOLLOWED: Duration = Duration::from_secs(60);
/// How long it is kept that a device is gone: longer than anybody follows the changes without reading all, in seconds.
const GONE_KEPT_S: i64 = 600;
/// How often it is looked for that which needn't be kept any more.
const FORGOTTEN_EVERY: Duration = Duration::from_secs(60 * 60);
/// The least difference between two clocks that is corrected, in milliseconds, beyond what a slow answer comes to.
const CLOCKS_DIFFER_MS: i64 = 2_000;

/// The oldest transaction that is under way, and the server's clock in milliseconds since 1970 UTC.
const OLDEST_AND_NOW: &str = "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) AS oldest, \
     CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT) AS now_ms";
const ALL_DEVICES: &str = "LEFT JOIN devices x ON true";
/// The devices that others changed in transactions from `?1` on than the process `?2`.
const CHANGED_DEVICES: &str = "LEFT JOIN (SELECT c.name, d.kept FROM device_changes c \
     LEFT JOIN devices d ON d.name = c.name WHERE c.xact >= ?1 AND c.process <> ?2) x ON true";

/// A process that runs a hub, beside others maybe.
#[derive(Debug)]
pub(crate) struct Process {
    /// The name that tells it from the others, of this computer or another.
    name: String,
    /// How far it follows the others' changes, if it does.
    followed: Option<Followed>,
    /// When it looked last for what needn't be kept any more.
    forgot_at: Option<Instant>,
    /// The number of the lease that it had last.
    pub(super) lease: i64,
}

/// How far a process follows the others' changes.
#[derive(Clone, Copy, Debug)]
struct Followed {
    /// The oldest transaction that was under way then.
    oldest: i64,
    at: Instant,
    /// The number of the connection: another one may be to another server.
    connection: u64,
}

/// Devices with their records as they are stored; none for one that is gone.
pub(crate) type Rows = Vec<(String, Option<Vec<u8>>)>;

/// The news that a process has of the others.
pub(crate) struct Heard {
    /// Whether these are all devices that there are.
    pub(crate) are_all: bool,
    pub(crate) devices: Rows,
    /// How far the database's clock is ahead of this computer's.
    pub(super) clock_ahead: Ahead,
}

/// How far a server's clock is ahead of this computer's, and by how much that may be wrong: both in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    by_ms: i64,
    error_ms: i64,
}

impl Process {
    /// This process.
    pub(crate) fn new() -> Self {
        let mut random = [0; 8];
        // Without randomness the process's number and the time tell it from others, of which few start in one nanosecond.
        let number = match getrandom::fill(&mut random) {
            Ok(()) => u64::from_le_bytes(random),
            Err(_) => UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64),
        };
        let name = format!("{}-{number:016x}", std::process::id());
        Self { name, followed: None, forgot_at: None, lease: 0 }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The devices that others changed since the last call of this; or all that there are, because that was too long ago.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn hear(&mut self, connection: &Connection) -> Result<Heard, sql::Error> {
        let (at, number) = (Instant::now(), connection.number());
        let is_good =
            |followed: &Followed| followed.connection == number && followed.at.elapsed() < FOLLOWED;
        let followed = self.followed.filter(is_good);
        let are_all = followed.is_none();
        // In one statement, which sees the database at one moment.
        let query = format!(
            "SELECT s.oldest, s.now_ms, x.name, x.kept FROM ({OLDEST_AND_NOW}) s {}",
            if are_all { ALL_DEVICES } else { CHANGED_DEVICES }
        );
        let before_ms = here_ms();
        let (mut oldest, mut clock_ahead, mut devices) = (None, Ahead::default(), Vec::new());
        let query = connection.statement(&query);
        let mut see = |row: &sql::Row<'_>| {
            if oldest.is_none() {
                clock_ahead = ahead(before_ms, row.get(1)?, here_ms());
                oldest = Some(row.get(0)?);
            }
            // Without a device the row is there for the clock alone.
            if let Some(name) = row.get::<Option<String>>(2)? {
                devices.push((name, row.get(3)?));
            }
            Ok(Next::Row)
        };
        match followed {
            Some(Followed { oldest, .. }) => query.each(params![oldest, self.name], &mut see)?,
            None => query.each([], &mut see)?,
        }
        let oldest = oldest.ok_or(sql::Error::NoRow)?;
        self.followed = Some(Followed { oldest, at, connection: number });
        Ok(Heard { are_all, devices, clock_ahead })
    }

    /// Whether it is time to look for what needn't be kept any more.
    pub(crate) fn is_to_forget(&self) -> bool {
        self.forgot_at.is_none_or(|at| at.elapsed() >= FORGOTTEN_EVERY)
    }

    /// Forgets that devices are gone of which everybody knows.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn forget(&mut self, connection: &Connection) -> Result<(), sql::Error> {
        let forget = "DELETE FROM device_changes WHERE changed_unix_s < unixepoch() - ?1 \
             AND NOT EXISTS (SELECT 1 FROM devices d WHERE d.name = device_changes.name)";
        connection.statement(forget).execute([GONE_KEPT_S])?;
        self.forgot_at = Some(Instant::now());
        Ok(())
    }

    /// Gives the leases of this process back, as it ends.
    ///
    /// # Errors
    /// The database fails; they end by themselves then.
    pub(crate) fn give_back(&self, connection: &Connection) -> Result<(), sql::Error> {
        let end = "UPDATE leases SET ends_at = clock_timestamp() WHERE holder = ?1";
        connection.statement(end).execute([&self.name]).map(drop)
    }

    /// Whether the lease called `name` may be had: it is this process's, or over.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn may_lease(
        &self,
        connection: &Connection,
        name: &str,
    ) -> Result<bool, sql::Error> {
        let others =
            format!("SELECT 1 FROM leases l WHERE name = ?1 AND holder <> ?2 AND NOT ({IS_OVER})");
        Ok(!connection.statement(&others).exists(params![name, self.name])?)
    }

    /// Takes or renews the lease called `name` in the transaction that is under way, for ten seconds; `false` if
    /// another process has it.
    ///
    /// # Errors
    /// The database fails, or another process takes it at this moment.
    pub(crate) fn lease(
        &mut self,
        connection: &Connection,
        name: &str,
    ) -> Result<bool, sql::Error> {
        let take = format!(
            "INSERT INTO leases AS l (name, holder, number, ends_at) \
             VALUES (?1, ?2, 1, clock_timestamp() + interval '10 seconds') \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at, \
             number = l.number + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 END \
             WHERE l.holder = excluded.holder OR {IS_OVER} RETURNING number"
        );
        let take = connection.statement(&take);
        let number = take.query_row(params![name, self.name], |row| row.get(0)).optional()?;
        let Some(number) = number else { return Ok(false) };
        if self.lease != number {
            tracing::info!(lease = name, number, "this process does now what is done once");
            self.lease = number;
        }
        Ok(true)
    }
}

/// How far the database's clock is ahead of this computer's; nothing for one that is on this computer.
///
/// # Errors
/// The database fails.
pub(super) fn clock_ahead(connection: &Connection) -> Result<Ahead, sql::Error> {
    if !connection.is_shared() {
        return Ok(Ahead::default());
    }
    let before_ms = here_ms();
    let query = connection.statement(OLDEST_AND_NOW);
    query.query_row([], |row| Ok(ahead(before_ms, row.get(1)?, here_ms())))
}

fn here_ms() -> i64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as i64)
}

/// How far a server's clock is ahead that showed `there_ms` somewhere between `before_ms` and `after_ms` here. A process that
/// stood still meanwhile knows little of it.
fn ahead(before_ms: i64, there_ms: i64, after_ms: i64) -> Ahead {
    let error_ms = (after_ms - before_ms) / 2;
    Ahead { by_ms: there_ms - before_ms - error_ms, error_ms: error_ms.max(0) }
}

/// The correction of this computer's clock, in milliseconds, after one of `corrected_ms`: another one only if they differ
/// by more than a slow answer comes to, so that the time goes on evenly.
pub(crate) fn correction_ms(corrected_ms: i64, ahead: Ahead) -> i64 {
    let Ahead { by_ms, error_ms } = ahead;
    if (by_ms - corrected_ms).abs() < CLOCKS_DIFFER_MS + error_ms { corrected_ms } else { by_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_is_corrected_by_what_no_slow_answer_explains_and_stays_so() {
        let at_once = |by_ms| Ahead { by_ms, error_ms: 0 };
        assert_eq!(correction_ms(0, at_once(1_500)), 0);
        assert_eq!(correction_ms(0, at_once(-300_000)), -300_000);
        assert_eq!(correction_ms(-300_000, at_once(-299_000)), -300_000);
        assert_eq!(correction_ms(-300_000, at_once(10)), 10);
    }

    #[test]
    fn process_that_stood_still_while_it_asked_for_the_time_keeps_its_own() {
        let asked = |there_ms| ahead(1_000_000, there_ms, 1_080_000);
        assert_eq!(correction_ms(0, asked(1_000_001)), 0, "it was answered before");
        assert_eq!(correction_ms(0, asked(1_079_999)), 0, "it was answered afterwards");
        let year_ms = 365 * 24 * 60 * 60 * 1_000;
        assert_eq!(correction_ms(0, asked(1_000_000 + year_ms)), year_ms - 40_000);
    }

    #[test]
    fn two_processes_have_two_names() {
        assert_ne!(Process::new().name(), Process::new().name());
    }
}
