//! Devices that were forgotten: their names are free, and what they reported stays until its own end.
//!
//! Invariants:
//! - A device that was forgotten has an empty record (`kept`). Whatever lists devices leaves it out.
//! - Each is noted in the audit log, and so is the end of its history.

use crate::store::audit;
use crate::store::sql::{self, Connection, OptionalExtension as _, params};
use crate::store::steady::Step;

/// The most devices that are forgotten at once.
const AT_ONCE: i64 = 64;
/// The most devices that were forgotten and whose history is kept, however many the hub lists: it takes room on the disk.
const PAST_MAX: i64 = 10_000;
/// How long the history of such a device is kept, in seconds in which the hub heard: as long as its use by days.
const HISTORY_S: i64 = 2 * 365 * 24 * 60 * 60;
/// The tables of what devices report.
const HISTORY: [&str; 3] = ["reports", "machine_use", "faults"];

/// The devices whose records ended before the first of the times and which weren't heard in as many seconds as the second
/// one says, beyond the life of their record, in which the hub heard.
///
/// # Errors
/// The database fails.
pub(crate) fn forgettable(
    connection: &Connection,
    [over_before, forget_after_s]: [i64; 2],
) -> Result<Vec<String>, sql::Error> {
    let query = "SELECT name FROM devices WHERE length(kept) > 0 AND expires_unix_s < ?1 AND \
         steady_unix_s + expires_unix_s - heard_unix_s + ?2 < \
         (SELECT coalesce(max(unix_s), ?1 + ?2) FROM clocks WHERE name = 'steady') ORDER BY expires_unix_s LIMIT ?3";
    connection.statement(query).query_map([over_before, forget_after_s, AT_ONCE], |row| row.get(0))
}

/// Forgets a device, at the moment `unix_s` and by the `steady` clock, and the oldest history of those that were forgotten.
///
/// # Errors
/// The database fails.
pub(crate) fn forget(
    connection: &Connection,
    device: &str,
    unix_s: u64,
    steady: i64,
) -> Result<(), sql::Error> {
    let query = "SELECT owner, device_key FROM devices WHERE name = ?1";
    let known = connection
        .statement(query)
        .query_row([device], |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?)));
    let Some((owner, key)) = known.optional()? else { return Ok(()) };
    connection.statement("DELETE FROM machines WHERE device = ?1").execute([device])?;
    let forget = "UPDATE devices SET kept = ?2, machines = 0, steady_unix_s = ?3 WHERE name = ?1";
    connection.statement(forget).execute(params![device, Vec::<u8>::new(), steady])?;
    let mut has_history = false;
    for table in HISTORY {
        let some = format!("SELECT 1 FROM {table} WHERE device = ?1");
        has_history |= connection.statement(&some).exists([device])?;
    }
    if !has_history {
        delete(connection, device)?;
    }
    note_about(connection, unix_s, ("forgotten", device), (&key, &owner))?;
    end_of_history(connection, unix_s, steady)
}

/// Deletes the history of devices that were forgotten longest ago, beyond its time and the most that is kept.
fn end_of_history(connection: &Connection, unix_s: u64, steady: i64) -> Result<(), sql::Error> {
    let over = "SELECT name, owner, device_key FROM devices WHERE length(kept) = 0 AND (steady_unix_s < ?1 OR \
         steady_unix_s < (SELECT steady_unix_s FROM devices WHERE length(kept) = 0 \
         ORDER BY steady_unix_s DESC LIMIT 1 OFFSET ?2)) ORDER BY steady_unix_s LIMIT ?3";
    let row = [steady - HISTORY_S, PAST_MAX, AT_ONCE];
    let over: Vec<(String, String, String)> = connection
        .statement(over)
        .query_map(row, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    for (device, owner, key) in over {
        delete(connection, &device)?;
        note_about(connection, unix_s, ("history forgotten", &device), (&key, &owner))?;
    }
    Ok(())
}

/// Deletes a device with all that it reported.
///
/// # Errors
/// The database fails.
pub(crate) fn delete(connection: &Connection, device: &str) -> Result<(), sql::Error> {
    connection.statement("DELETE FROM devices WHERE name = ?1").execute([device]).map(drop)
}

/// Writes the step of the steady clock, and notes a jump of the wall clock.
///
/// # Errors
/// The database fails.
pub(crate) fn note(connection: &Connection, step: &Step, unix_s: u64) -> Result<(), sql::Error> {
    step.write(connection)?;
    let Some(jump_s) = step.jump_s else { return Ok(()) };
    let detail = format!("by {jump_s} s");
    let (who, by, action, subject, owner) = ("hub", "", "clock jumped", "", "");
    let detail = detail.as_str();
    audit::append(connection, &audit::Event { unix_s, who, by, action, subject, detail, owner })
}

fn note_about(
    connection: &Connection,
    unix_s: u64,
    (action, subject): (&str, &str),
    (key, owner): (&str, &str),
) -> Result<(), sql::Error> {
    let (who, by, detail) = ("hub", "", key);
    audit::append(connection, &audit::Event { unix_s, who, by, action, subject, detail, owner })
}
