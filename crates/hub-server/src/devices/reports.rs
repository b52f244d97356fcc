//! Reports of devices: taken in their sessions, kept as the last word of each, and thinned as they age.
//!
//! Invariants:
//! - A device reports of itself alone: its key in the session says who it is.
//! - A report that is heard twice counts once.
//! - No device fills the database: the rows of each are bounded in number, a row is in length, and a second takes
//!   one report of a device.

mod machines;

use tenure_wire::PublicKey;
use tenure_wire::hub::{Answer, HubRefusal};
use tenure_wire::limits::MACHINES_MAX;
use tenure_wire::printable::printable;
use tenure_wire::report::{FAULTS_MAX, FaultReport, METRICS_MAX, Report, Reported};

use crate::store::audit::seconds;
use crate::store::figures;
use crate::store::space::{self, Keeps};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};
use crate::store::steady;

/// How soon a device reports again, in seconds; and one on which a rollout is under way.
const AGAIN_S: u32 = 60;
const AGAIN_IN_ROLLOUT_S: u32 = 5;
/// How many reports a second the hub wants to take.
const REPORTS_PER_S: i64 = 1_000;
/// The most faults of one device that are kept, and for how long, in seconds: 90 days.
pub(crate) const FAULTS_KEPT_MAX: i64 = 200;
pub(crate) const FAULTS_S: i64 = 90 * 24 * 60 * 60;
/// The longest word and the longest line of a device, in characters.
const WORD_CHARS_MAX: usize = 32;
const LINE_CHARS_MAX: usize = 256;
/// The largest number that is taken from a device: the sum of two of them is one of the database's.
const NUMBER_MAX: u64 = 1 << 61;

/// A listed device and the moment of its report.
struct Reporter {
    device: String,
    boot: u32,
    now: i64,
}

/// Takes a report, in the transaction that is under way.
///
/// # Errors
/// The database fails; or inside, the caller is no device, or the report is none.
pub(crate) fn take(
    connection: &Connection,
    caller: &PublicKey,
    report: &Report,
    unix_s: u64,
) -> Result<Answer<Reported>, sql::Error> {
    let is_within = report.machines.len() <= MACHINES_MAX
        && report.faults.len() <= FAULTS_MAX
        && report.machines.iter().all(|machine| machine.metrics.len() <= METRICS_MAX);
    if !is_within {
        return Ok(Err(HubRefusal::Malformed));
    }
    let device = "SELECT name FROM devices WHERE machine_key = ?1 AND length(kept) > 0";
    let device: Option<String> = connection
        .statement(device)
        .query_row([caller.to_string()], |row| row.get(0))
        .optional()?;
    let Some(device) = device else { return Ok(Err(HubRefusal::Stranger)) };
    let reporter = Reporter { device, boot: report.boot, now: seconds(unix_s) };
    let is_too_soon = "SELECT 1 FROM reports WHERE device = ?1 AND taken_unix_s = ?2 AND \
         (boot <> ?3 OR number < ?4)";
    let row = params![reporter.device, reporter.now, reporter.boot, number(report.number)];
    if connection.statement(is_too_soon).exists(row)? {
        return Ok(Err(HubRefusal::TooMany));
    }
    if !space::is_left(connection, Keeps::History, space::REPORT_BYTES)? {
        return Ok(Err(HubRefusal::Full));
    }
    if !is_known(connection, &reporter, report)? {
        insert(connection, &reporter, report)?;
        for machine in &report.machines {
            machines::take(connection, &reporter, machine)?;
        }
        for fault in &report.faults {
            take_fault(connection, &reporter, fault)?;
        }
        machines::forget(connection, &reporter)?;
    }
    let again_s = pace(connection, &reporter)?;
    Ok(Ok(Reported { again_s, wants_all: machines::are_missing(connection, &reporter)? }))
}

/// Forgets what the device called `device` reported: another one has its name now.
pub(crate) fn forget_device(connection: &Connection, device: &str) -> Result<(), sql::Error> {
    for table in ["reports", "machine_reports", "metrics", "machine_use", "faults"] {
        let delete = format!("DELETE FROM {table} WHERE device = ?1");
        connection.statement(&delete).execute([device])?;
    }
    Ok(())
}

/// Whether this report, or a later one of the same boot, was taken already.
fn is_known(
    connection: &Connection,
    reporter: &Reporter,
    report: &Report,
) -> Result<bool, sql::Error> {
    let known = "SELECT 1 FROM reports WHERE device = ?1 AND boot = ?2 AND number >= ?3";
    let number = number(report.number);
    connection.statement(known).exists(params![reporter.device, reporter.boot, number])
}

fn insert(connection: &Connection, reporter: &Reporter, report: &Report) -> Result<(), sql::Error> {
    let insert = "INSERT INTO reports (device, boot, number, taken_unix_s, version, uptime_s, \
         memory_bytes_promised, memory_bytes_max, store_bytes_used, store_bytes_max, store_erases, \
         code_bytes_used, code_bytes_max, heap_bytes_used, heap_bytes_max, neighbours, faults_lost) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) \
         ON CONFLICT (device) DO UPDATE SET boot = excluded.boot, number = excluded.number, \
         taken_unix_s = excluded.taken_unix_s, version = excluded.version, uptime_s = excluded.uptime_s, \
         memory_bytes_promised = excluded.memory_bytes_promised, memory_bytes_max = excluded.memory_bytes_max, \
         store_bytes_used = excluded.store_bytes_used, store_bytes_max = excluded.store_bytes_max, \
         store_erases = excluded.store_erases, code_bytes_used = excluded.code_bytes_used, \
         code_bytes_max = excluded.code_bytes_max, heap_bytes_used = excluded.heap_bytes_used, \
         heap_bytes_max = excluded.heap_bytes_max, neighbours = excluded.neighbours, \
         faults_lost = excluded.faults_lost";
    let (device, room) = (&report.device, &report.device.room);
    connection.statement(insert).execute(params![
        reporter.device,
        reporter.boot,
        number(report.number),
        reporter.now,
        words(&device.version, WORD_CHARS_MAX),
        number(device.uptime_s),
        number(room.memory_bytes_promised),
        number(room.memory_bytes_max),
        number(room.store_bytes_used),
        number(room.store_bytes_max),
        room.store_erases,
        room.code_bytes_used,
        room.code_bytes_max,
        device.heap.map(|heap| heap.used_bytes),
        device.heap.map(|heap| heap.total_bytes),
        device.neighbours,
        number(report.faults_lost),
    ])?;
    Ok(())
}

/// Keeps a fault, if it is new, and makes room for it.
fn take_fault(
    connection: &Connection,
    reporter: &Reporter,
    fault: &FaultReport,
) -> Result<(), sql::Error> {
    // Its package is the one that the device told last, in this report or before.
    let insert = "INSERT INTO faults (device, boot, number, machine, happened_unix_s, text, package, version, owner) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, \
         (SELECT package FROM machine_reports WHERE device = ?1 AND machine = ?4), \
         (SELECT version FROM machine_reports WHERE device = ?1 AND machine = ?4), \
         (SELECT owner FROM devices WHERE name = ?1)) ON CONFLICT DO NOTHING";
    // A device's clock may be wrong, and a fault that never ages would stay for ever.
    let happened = fault.unix_s.map_or(reporter.now, |unix_s| seconds(unix_s).min(reporter.now));
    let is_new = connection.statement(insert).execute(params![
        reporter.device,
        reporter.boot,
        number(fault.number),
        fault.machine.as_str(),
        happened,
        words(&fault.text, LINE_CHARS_MAX),
    ])? > 0;
    if !is_new {
        return Ok(());
    }
    machines::count_fault(connection, reporter, fault.machine.as_str())?;
    let delete = "DELETE FROM faults WHERE device = ?1 AND (happened_unix_s < ?2 OR happened_unix_s < \
         (SELECT happened_unix_s FROM faults WHERE device = ?1 \
         ORDER BY happened_unix_s DESC LIMIT 1 OFFSET ?3))";
    let steady = steady::unix_s(connection, reporter.now)?;
    let row = params![reporter.device, steady - FAULTS_S, FAULTS_KEPT_MAX - 1];
    connection.statement(delete).execute(row).map(drop)
}

/// How soon a device reports again: soon while a rollout is under way on it, late in a large fleet.
fn pace(connection: &Connection, reporter: &Reporter) -> Result<u32, sql::Error> {
    let is_in_rollout = "SELECT 1 FROM rollout_devices d JOIN rollouts r ON r.id = d.rollout \
         WHERE d.device = ?1 AND r.state IN ('running', 'paused', 'rolling back') \
         AND d.state IN ('updating', 'soaking', 'reverting')";
    if connection.statement(is_in_rollout).exists([&reporter.device])? {
        return Ok(AGAIN_IN_ROLLOUT_S);
    }
    let count = figures::devices(connection)?;
    Ok(AGAIN_S.max(u32::try_from(count / REPORTS_PER_S).unwrap_or(u32::MAX)))
}

/// A number of a device's as the database stores it.
fn number(number: u64) -> i64 {
    number.min(NUMBER_MAX) as i64
}

/// Text of a device, cut, and without what a terminal obeys.
fn words(text: &str, chars_max: usize) -> String {
    printable(text).chars().take(chars_max).collect()
}
