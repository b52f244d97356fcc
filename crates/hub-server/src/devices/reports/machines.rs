//! The machines of a report: their last state, what they used, and their metrics.

use rusqlite::{Connection, OptionalExtension as _, params};
use tenure_wire::report::MachineReport;

use super::{NUMBER_MAX, Reporter, WORD_CHARS_MAX, number, words};

/// The spans that use is added up in, and for how long each is kept, in seconds: 5 minutes for 2 days, an hour for
/// 30 days, a day for 2 years.
const SPANS_S: [(i64, i64); 3] =
    [(300, 2 * 24 * 60 * 60), (60 * 60, 30 * 24 * 60 * 60), (24 * 60 * 60, 2 * 365 * 24 * 60 * 60)];
/// How long a machine is kept that isn't told of again, in seconds. Devices tell of each once an hour.
const UNTOLD_S: i64 = 3 * 60 * 60;
/// The most machines of a device that are kept: a device that renames them has no more than that.
const MACHINES_KEPT_MAX: i64 = 64;

/// The counters of a machine, as they were told last.
struct Known {
    boot: u32,
    package: String,
    calls: i64,
    fuel: i64,
    package_unix_s: i64,
    package_calls: i64,
    package_fuel: i64,
    package_waited_us: i64,
}

/// The use of a machine since it was told of before.
#[derive(Default)]
struct Use {
    calls: i64,
    fuel: i64,
    faults: i64,
    memory_bytes: i64,
    queue: i64,
}

/// Takes one machine.
///
/// # Errors
/// SQLite fails.
pub(super) fn take(
    connection: &Connection,
    reporter: &Reporter,
    machine: &MachineReport,
) -> Result<(), rusqlite::Error> {
    let name = machine.name.as_str();
    let (calls, fuel) = (number(machine.tasks_done), number(machine.fuel_used));
    let waited_us = number(machine.waited_max_us);
    let package = machine.package.to_string();
    let known = known(connection, reporter, name)?;
    let same_package = known.as_ref().filter(|known| known.package == package);
    // Counters begin at 0 with each boot and each update.
    let before = same_package
        .filter(|known| known.boot == reporter.boot && known.calls <= calls && known.fuel <= fuel);
    let used = Use {
        calls: calls - before.map_or(0, |before| before.calls),
        fuel: fuel - before.map_or(0, |before| before.fuel),
        faults: 0,
        memory_bytes: machine.memory_bytes.into(),
        queue: machine.queue_length.into(),
    };
    let of_package = match same_package {
        Some(known) => (
            known.package_unix_s,
            known.package_calls.saturating_add(used.calls).min(NUMBER_MAX as i64),
            known.package_fuel.saturating_add(used.fuel).min(NUMBER_MAX as i64),
            known.package_waited_us.max(waited_us),
        ),
        None => (reporter.now, calls, fuel, waited_us),
    };
    let insert = "INSERT OR REPLACE INTO machine_reports (device, machine, boot, taken_unix_s, package, version, \
         state, repute, queue, calls, fuel, waited_us, memory_bytes, memory_bytes_max, stored_bytes, \
         package_unix_s, package_calls, package_fuel, package_waited_us) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
    connection.prepare_cached(insert)?.execute(params![
        reporter.device,
        name,
        reporter.boot,
        reporter.now,
        package,
        machine.version.to_string(),
        words(&machine.state, WORD_CHARS_MAX),
        words(&machine.repute, WORD_CHARS_MAX),
        machine.queue_length,
        calls,
        fuel,
        waited_us,
        machine.memory_bytes,
        machine.memory_bytes_max,
        machine.stored_bytes,
        of_package.0,
        of_package.1,
        of_package.2,
        of_package.3,
    ])?;
    take_metrics(connection, reporter, machine)?;
    add(connection, reporter, name, &used)
}

fn known(
    connection: &Connection,
    reporter: &Reporter,
    machine: &str,
) -> Result<Option<Known>, rusqlite::Error> {
    let query = "SELECT boot, package, calls, fuel, package_unix_s, package_calls, package_fuel, \
         package_waited_us FROM machine_reports WHERE device = ?1 AND machine = ?2";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Known {
            boot: row.get(0)?,
            package: row.get(1)?,
            calls: row.get(2)?,
            fuel: row.get(3)?,
            package_unix_s: row.get(4)?,
            package_calls: row.get(5)?,
            package_fuel: row.get(6)?,
            package_waited_us: row.get(7)?,
        })
    };
    connection.prepare_cached(query)?.query_row([&reporter.device, machine], read).optional()
}

fn take_metrics(
    connection: &Connection,
    reporter: &Reporter,
    machine: &MachineReport,
) -> Result<(), rusqlite::Error> {
    let names = [reporter.device.as_str(), machine.name.as_str()];
    let delete = "DELETE FROM metrics WHERE device = ?1 AND machine = ?2";
    connection.prepare_cached(delete)?.execute(names)?;
    let insert = "INSERT OR REPLACE INTO metrics (device, machine, name, value, taken_unix_s) \
         VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = connection.prepare_cached(insert)?;
    for (name, value) in &machine.metrics {
        insert.execute(params![names[0], names[1], name.as_str(), value, reporter.now])?;
    }
    Ok(())
}

/// Counts a fault in the spans of now.
///
/// # Errors
/// SQLite fails.
pub(super) fn count_fault(
    connection: &Connection,
    reporter: &Reporter,
    machine: &str,
) -> Result<(), rusqlite::Error> {
    add(connection, reporter, machine, &Use { faults: 1, ..Use::default() })
}

/// Adds what a machine used to the spans of now, and forgets the spans that are over when one begins.
fn add(
    connection: &Connection,
    reporter: &Reporter,
    machine: &str,
    used: &Use,
) -> Result<(), rusqlite::Error> {
    let begins = "SELECT NOT EXISTS (SELECT 1 FROM machine_use WHERE device = ?1 AND span_s = ?2 AND from_unix_s = ?3)";
    // A span has as many machines as the device may have: others of a device that renames them aren't counted.
    let upsert = "INSERT INTO machine_use (device, span_s, from_unix_s, machine, calls, fuel, faults, \
         memory_bytes_peak, queue_peak) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 \
         WHERE (SELECT count(*) FROM machine_use WHERE device = ?1 AND span_s = ?2 AND from_unix_s = ?3 \
         AND machine <> ?4) < ?11 ON CONFLICT DO UPDATE SET \
         calls = min(calls + excluded.calls, ?10), fuel = min(fuel + excluded.fuel, ?10), \
         faults = min(faults + excluded.faults, ?10), \
         memory_bytes_peak = max(memory_bytes_peak, excluded.memory_bytes_peak), \
         queue_peak = max(queue_peak, excluded.queue_peak)";
    let delete = "DELETE FROM machine_use WHERE device = ?1 AND span_s = ?2 AND from_unix_s < ?3";
    for (span_s, kept_s) in SPANS_S {
        let from = reporter.now - reporter.now.rem_euclid(span_s);
        let key = params![reporter.device, span_s, from];
        let has_begun: bool =
            connection.prepare_cached(begins)?.query_row(key, |row| row.get(0))?;
        if has_begun {
            let row = params![reporter.device, span_s, reporter.now - kept_s];
            connection.prepare_cached(delete)?.execute(row)?;
        }
        connection.prepare_cached(upsert)?.execute(params![
            reporter.device,
            span_s,
            from,
            machine,
            used.calls,
            used.fuel,
            used.faults,
            used.memory_bytes,
            used.queue,
            NUMBER_MAX as i64,
            MACHINES_KEPT_MAX,
        ])?;
    }
    Ok(())
}

/// Forgets machines that the device tells of no more, and the oldest of too many.
///
/// # Errors
/// SQLite fails.
pub(super) fn forget(connection: &Connection, reporter: &Reporter) -> Result<(), rusqlite::Error> {
    let delete = "DELETE FROM machine_reports WHERE device = ?1 AND (taken_unix_s < ?2 OR machine NOT IN \
         (SELECT machine FROM machine_reports WHERE device = ?1 ORDER BY taken_unix_s DESC LIMIT ?3))";
    let row = params![reporter.device, reporter.now - UNTOLD_S, MACHINES_KEPT_MAX];
    let is_changed = connection.prepare_cached(delete)?.execute(row)? > 0;
    if is_changed {
        let delete = "DELETE FROM metrics WHERE device = ?1 AND NOT EXISTS (SELECT 1 FROM machine_reports m \
             WHERE m.device = metrics.device AND m.machine = metrics.machine)";
        connection.prepare_cached(delete)?.execute([&reporter.device])?;
    }
    Ok(())
}

/// Whether the device lists a machine that it hasn't told of: the hub lost it, or the report had no room.
///
/// # Errors
/// SQLite fails.
pub(super) fn are_missing(
    connection: &Connection,
    reporter: &Reporter,
) -> Result<bool, rusqlite::Error> {
    let query = "SELECT 1 FROM machines l WHERE l.device = ?1 AND NOT EXISTS (SELECT 1 FROM machine_reports m \
         WHERE m.device = l.device AND m.machine = l.name)";
    connection.prepare_cached(query)?.exists([&reporter.device])
}
