//! The machines of a report: their last state, what they used, and their metrics.

use tenure_wire::report::MachineReport;

use super::{NUMBER_MAX, Reporter, WORD_CHARS_MAX, number, words};
use crate::store::sql::{self, Connection, OptionalExtension as _, Words, params};
use crate::store::steady;

/// The spans that use is added up in, and for how long each is kept, in seconds: 5 minutes for 2 days, an hour for
/// 30 days, a day for 2 years.
const SPANS_S: [(i64, i64); 3] =
    [(300, 2 * 24 * 60 * 60), (60 * 60, 30 * 24 * 60 * 60), (24 * 60 * 60, 2 * 365 * 24 * 60 * 60)];
/// How long a machine is kept that isn't told of again, in seconds. Devices tell of each once an hour.
const UNTOLD_S: i64 = 3 * 60 * 60;
/// The most machines of a device that are kept: a device that renames them has no more than that.
const MACHINES_KEPT_MAX: i64 = 64;

/// The smaller and the larger one of two values.
const LEAST: Words = Words::each("min", "least");
const GREATEST: Words = Words::each("max", "greatest");

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
/// The database fails.
pub(super) fn take(
    connection: &Connection,
    reporter: &Reporter,
    machine: &MachineReport,
) -> Result<(), sql::Error> {
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
    let insert = "INSERT INTO machine_reports (device, machine, boot, taken_unix_s, package, version, \
         state, repute, queue, calls, fuel, waited_us, memory_bytes, memory_bytes_max, stored_bytes, \
         package_unix_s, package_calls, package_fuel, package_waited_us) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) \
         ON CONFLICT (device, machine) DO UPDATE SET boot = excluded.boot, taken_unix_s = excluded.taken_unix_s, \
         package = excluded.package, version = excluded.version, state = excluded.state, repute = excluded.repute, \
         queue = excluded.queue, calls = excluded.calls, fuel = excluded.fuel, waited_us = excluded.waited_us, \
         memory_bytes = excluded.memory_bytes, memory_bytes_max = excluded.memory_bytes_max, \
         stored_bytes = excluded.stored_bytes, package_unix_s = excluded.package_unix_s, \
         package_calls = excluded.package_calls, package_fuel = excluded.package_fuel, \
         package_waited_us = excluded.package_waited_us";
    connection.statement(insert).execute(params![
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
) -> Result<Option<Known>, sql::Error> {
    let query = "SELECT boot, package, calls, fuel, package_unix_s, package_calls, package_fuel, \
         package_waited_us FROM machine_reports WHERE device = ?1 AND machine = ?2";
    let read = |row: &sql::Row<'_>| {
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
    connection.statement(query).query_row([&reporter.device, machine], read).optional()
}

fn take_metrics(
    connection: &Connection,
    reporter: &Reporter,
    machine: &MachineReport,
) -> Result<(), sql::Error> {
    let names = [reporter.device.as_str(), machine.name.as_str()];
    let delete = "DELETE FROM metrics WHERE device = ?1 AND machine = ?2";
    connection.statement(delete).execute(names)?;
    let insert = "INSERT INTO metrics (device, machine, name, value, taken_unix_s) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (device, machine, name) DO UPDATE SET value = excluded.value, \
         taken_unix_s = excluded.taken_unix_s";
    let insert = connection.statement(insert);
    for (name, value) in &machine.metrics {
        insert.execute(params![names[0], names[1], name.as_str(), value, reporter.now])?;
    }
    Ok(())
}

/// Counts a fault in the spans of now.
///
/// # Errors
/// The database fails.
pub(super) fn count_fault(
    connection: &Connection,
    reporter: &Reporter,
    machine: &str,
) -> Result<(), sql::Error> {
    add(connection, reporter, machine, &Use { faults: 1, ..Use::default() })
}

/// Adds what a machine used to the spans of now, and forgets the spans that are over when one begins.
fn add(
    connection: &Connection,
    reporter: &Reporter,
    machine: &str,
    used: &Use,
) -> Result<(), sql::Error> {
    let begins = "SELECT NOT EXISTS (SELECT 1 FROM machine_use WHERE device = ?1 AND span_s = ?2 AND from_unix_s = ?3)";
    // A span has as many machines as the device may have: others of a device that renames them aren't counted.
    let (least, most) = (LEAST.of(connection.dialect()), GREATEST.of(connection.dialect()));
    let upsert = format!(
        "INSERT INTO machine_use (device, span_s, from_unix_s, machine, calls, fuel, faults, \
         memory_bytes_peak, queue_peak) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 \
         WHERE (SELECT count(*) FROM machine_use WHERE device = ?1 AND span_s = ?2 AND from_unix_s = ?3 \
         AND machine <> ?4) < ?11 ON CONFLICT (device, span_s, from_unix_s, machine) DO UPDATE SET \
         calls = {least}(machine_use.calls + excluded.calls, ?10), \
         fuel = {least}(machine_use.fuel + excluded.fuel, ?10), \
         faults = {least}(machine_use.faults + excluded.faults, ?10), \
         memory_bytes_peak = {most}(machine_use.memory_bytes_peak, excluded.memory_bytes_peak), \
         queue_peak = {most}(machine_use.queue_peak, excluded.queue_peak)"
    );
    let delete = "DELETE FROM machine_use WHERE device = ?1 AND span_s = ?2 AND from_unix_s < ?3";
    for (span_s, kept_s) in SPANS_S {
        let from = reporter.now - reporter.now.rem_euclid(span_s);
        let key = params![reporter.device, span_s, from];
        let has_begun: bool = connection.statement(begins).query_row(key, |row| row.get(0))?;
        if has_begun {
            let steady = steady::unix_s(connection, reporter.now)?;
            let row = params![reporter.device, span_s, steady - kept_s];
            connection.statement(delete).execute(row)?;
        }
        connection.statement(&upsert).execute(params![
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
/// The database fails.
pub(super) fn forget(connection: &Connection, reporter: &Reporter) -> Result<(), sql::Error> {
    let delete = "DELETE FROM machine_reports WHERE device = ?1 AND (taken_unix_s < ?2 OR machine NOT IN \
         (SELECT machine FROM machine_reports WHERE device = ?1 ORDER BY taken_unix_s DESC LIMIT ?3))";
    let steady = steady::unix_s(connection, reporter.now)?;
    let row = params![reporter.device, steady - UNTOLD_S, MACHINES_KEPT_MAX];
    let is_changed = connection.statement(delete).execute(row)? > 0;
    if is_changed {
        let delete = "DELETE FROM metrics WHERE device = ?1 AND NOT EXISTS (SELECT 1 FROM machine_reports m \
             WHERE m.device = metrics.device AND m.machine = metrics.machine)";
        connection.statement(delete).execute([&reporter.device])?;
    }
    Ok(())
}

/// Whether the device lists a machine that it hasn't told of: the hub lost it, or the report had no room.
///
/// # Errors
/// The database fails.
pub(super) fn are_missing(
    connection: &Connection,
    reporter: &Reporter,
) -> Result<bool, sql::Error> {
    let query = "SELECT 1 FROM machines l WHERE l.device = ?1 AND NOT EXISTS (SELECT 1 FROM machine_reports m \
         WHERE m.device = l.device AND m.machine = l.name)";
    connection.statement(query).exists([&reporter.device])
}
