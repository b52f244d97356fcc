//! The devices on which a rule's condition holds now, by what they reported and when they were heard; and the owners of those
//! whose hub it holds on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_hub::Fullness;
use tenure_package::Tariff;
use tenure_wire::Name;
use tenure_wire::printable::{counted, span};

use super::place::THE_HUB;
use super::rules::{Condition, Rule};
use crate::devices::receipts;
use crate::rollouts::{carries, text_of};
use crate::running::Jump;
use crate::store::audit::seconds;
use crate::store::sql::{self, Connection, Next, Row, params};

/// The most letters of a fault that an alarm tells.
const LAST_LETTERS: u16 = 200;

/// What is known beside the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now<'a> {
    /// The wall clock, in seconds since 1970 UTC.
    pub(super) unix_s: u64,
    /// Since when the hub has heard its devices without a gap, by the same clock.
    pub(super) hears_since_unix_s: u64,
    /// The last jump of the wall clock, within an hour.
    pub(super) jump: Option<Jump>,
    /// How many devices the hub lists, of how many.
    pub(super) listed: Option<Fullness>,
    /// The prices of bills, if there are any.
    pub(super) tariff: Option<&'a Tariff>,
}

/// A device on which a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its name, or [`THE_HUB`].
    pub(super) device: String,
    pub(super) owner: String,
    /// What was seen, in words.
    pub(super) detail: String,
}

/// The devices that a rule is for, as they are found.
struct Found<'a> {
    /// The labels that a device carries, as the database has them; empty for any.
    labels: &'a str,
    devices: Vec<Seen>,
}

impl Found<'_> {
    /// Notes the device in a row that begins with its name, its owner and its labels.
    fn note(&mut self, row: &Row<'_>, detail: String) -> Result<(), sql::Error> {
        let labels: Option<String> = row.get(2)?;
        if self.is_for(labels.as_deref()) {
            self.devices.push(Seen { device: row.get(0)?, owner: row.get(1)?, detail });
        }
        Ok(())
    }

    fn is_for(&self, labels: Option<&str>) -> bool {
        self.labels.is_empty() || labels.is_some_and(|has| carries(has, self.labels))
    }
}

/// The devices on which the condition of `rule` holds; `None` if nobody can know now, as the hub was away until just now or
/// has no prices.
///
/// # Errors
/// The database fails.
pub(super) fn devices(
    connection: &Connection,
    rule: &Rule,
    now: &Now<'_>,
) -> Result<Option<Vec<Seen>>, sql::Error> {
    let labels = text_of(&rule.labels);
    let mut found = Found { labels: &labels, devices: Vec::new() };
    let machine = rule.machine.as_ref().map(Name::as_str);
    match &rule.when {
        Condition::Silent { over_s } => {
            if now.unix_s.saturating_sub(now.hears_since_unix_s) <= *over_s {
                return Ok(None);
            }
            silent(connection, *over_s, now, &mut found)?;
        }
        Condition::Faults { over, within_s } => {
            let since = seconds(now.unix_s.saturating_sub(*within_s));
            faults(
                connection,
                machine,
                (i64::try_from(*over).unwrap_or(i64::MAX), since),
                &mut found,
            )?;
        }
        Condition::Flash { over_percent } => {
            let parts = [("data", 3, 4), ("code", 5, 6)];
            full(connection, &parts, *over_percent, &mut found)?;
        }
        Condition::Memory { over_percent } => {
            full(connection, &[("heap", 7, 8)], *over_percent, &mut found)?;
        }
        Condition::Version { other_than } => {
            versions(connection, machine, other_than, &mut found)?;
        }
        Condition::Bill { over_millionths } => {
            let Some(tariff) = now.tariff else { return Ok(None) };
            bills(connection, machine, (*over_millionths, now.unix_s, tariff), &mut found)?;
        }
        Condition::Clock { over_s } => {
            if let Some(jump) = now.jump.filter(|jump| jump.by_s.unsigned_abs() > *over_s) {
                owners(connection, &jump.words(), &mut found)?;
            }
        }
        Condition::Devices { over_percent } => {
            let Some(listed) = now.listed else { return Ok(None) };
            if is_fuller(&listed, *over_percent) {
                owners(connection, &nearly_full(&listed), &mut found)?;
            }
        }
    }
    Ok(Some(found.devices))
}

fn silent(
    connection: &Connection,
    over_s: u64,
    now: &Now<'_>,
    found: &mut Found<'_>,
) -> Result<(), sql::Error> {
    // A device that said it would be away for long isn't silent while its record is good.
    let query = "SELECT name, owner, labels, heard_unix_s FROM devices \
         WHERE expires_unix_s < ?1 AND heard_unix_s < ?2 AND length(kept) > 0 ORDER BY name";
    let before = seconds(now.unix_s.saturating_sub(over_s));
    connection.statement(query).each([seconds(now.unix_s), before], |row| {
        let heard: i64 = row.get(3)?;
        let silent_s = seconds(now.unix_s).saturating_sub(heard).unsigned_abs();
        let silent = span(Duration::from_secs(silent_s));
        found.note(row, format!("silent for {silent}")).map(|()| Next::Row)
    })
}

fn faults(
    connection: &Connection,
    machine: Option<&str>,
    (over, since): (i64, i64),
    found: &mut Found<'_>,
) -> Result<(), sql::Error> {
    let of_machine = if machine.is_some() { "AND f.machine = ?3" } else { "" };
    let of_last = if machine.is_some() { "AND l.machine = ?3" } else { "" };
    let query = format!(
        "SELECT f.device, d.owner, d.labels, count(*), (SELECT l.machine || ': ' || substr(l.text, 1, {LAST_LETTERS}) \
         FROM faults l WHERE l.device = f.device AND l.happened_unix_s > ?1 {of_last} \
         ORDER BY l.happened_unix_s DESC, l.number DESC LIMIT 1) \
         FROM faults f JOIN devices d ON d.name = f.device \
         WHERE f.happened_unix_s > ?1 {of_machine} GROUP BY f.device, d.owner, d.labels \
         HAVING count(*) > ?2 ORDER BY f.device"
    );
    let mut see = |row: &Row<'_>| {
        let (count, last): (i64, Option<String>) = (row.get(3)?, row.get(4)?);
        let last = last.map_or_else(String::new, |last| format!(", the last of {last}"));
        found.note(row, counted(count, "fault") + &last).map(|()| Next::Row)
    };
    let query = connection.statement(&query);
    match machine {
        Some(machine) => query.each(params![since, over, machine], &mut see),
        None => query.each([since, over], &mut see),
    }
}

/// Devices of which one of `parts` is fuller than `over_percent`: each with its name, and the columns that say how much of it
/// is used and how much there is.
fn full(
    connection: &Connection,
    parts: &[(&str, usize, usize)],
    over_percent: u8,
    found: &mut Found<'_>,
) -> Result<(), sql::Error> {
    let query = "SELECT r.device, d.owner, d.labels, r.store_bytes_used, r.store_bytes_max, r.code_bytes_used, \
         r.code_bytes_max, r.heap_bytes_used, r.heap_bytes_max FROM reports r JOIN devices d ON d.name = r.device AND length(d.kept) > 0 \
         ORDER BY r.device";
    connection.statement(query).each([], |row| {
        let mut details = Vec::new();
        for (part, used, most) in parts {
            let (used, most): (Option<i64>, Option<i64>) = (row.get(*used)?, row.get(*most)?);
            // Whatever numbers a device tells: no product of two of them is beyond 128 bits.
            let most = most.map(i128::from).filter(|most| *most > 0);
            let (Some(used), Some(most)) = (used.map(i128::from), most) else { continue };
            if used * 100 > most * i128::from(over_percent) {
                details.push(format!("{part}: {} % full", used * 100 / most));
            }
        }
        if !details.is_empty() {
            found.note(row, details.join(", "))?;
        }
        Ok(Next::Row)
    })
}

fn versions(
    connection: &Connection,
    machine: Option<&str>,
    other_than: &str,
    found: &mut Found<'_>,
) -> Result<(), sql::Error> {
    let mut see = |row: &Row<'_>| {
        let version: String = row.get(3)?;
        if !is_of(&version, other_than) {
            found.note(row, format!("has version {version}"))?;
        }
        Ok(Next::Row)
    };
    match machine {
        Some(machine) => {
            let query = "SELECT m.device, d.owner, d.labels, m.version FROM machine_reports m \
                 JOIN devices d ON d.name = m.device AND length(d.kept) > 0 WHERE m.machine = ?1 ORDER BY m.device";
            connection.statement(query).each([machine], &mut see)
        }
        None => {
            let query = "SELECT r.device, d.owner, d.labels, r.version FROM reports r \
                 JOIN devices d ON d.name = r.device AND length(d.kept) > 0 ORDER BY r.device";
            connection.statement(query).each([], &mut see)
        }
    }
}

/// Whether more of the table's places than that are taken.
fn is_fuller(table: &Fullness, over_percent: u8) -> bool {
    let [used, most] = [table.used, table.most].map(|count| count as u128);
    used * 100 > most * u128::from(over_percent)
}

/// How full the table of devices is, and what helps.
fn nearly_full(Fullness { used, most, .. }: &Fullness) -> String {
    let new = if used < most { "beyond that no new one is listed" } else { "no new one is listed" };
    format!(
        "{used} of {most} devices are listed, and {new}: start the hub with a larger --devices-max, or revoke devices that are gone"
    )
}

/// The owners of devices, each told of the hub.
fn owners(connection: &Connection, detail: &str, found: &mut Found<'_>) -> Result<(), sql::Error> {
    let query = "SELECT name, owner, labels FROM devices WHERE length(kept) > 0";
    let mut told = BTreeSet::new();
    connection.statement(query).each([], |row| {
        let (owner, labels): (String, Option<String>) = (row.get(1)?, row.get(2)?);
        if found.is_for(labels.as_deref()) {
            told.insert(owner);
        }
        Ok(Next::Row)
    })?;
    let seen = |owner| Seen { device: THE_HUB.into(), owner, detail: detail.into() };
    found.devices.extend(told.into_iter().map(seen));
    Ok(())
}

/// Whether `version` is that one, or begins with it and a dot.
fn is_of(version: &str, wanted: &str) -> bool {
    let rest = version.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn bills(
    connection: &Connection,
    machine: Option<&str>,
    (over_millionths, unix_s, tariff): (u128, u64, &Tariff),
    found: &mut Found<'_>,
) -> Result<(), sql::Error> {
    let month = receipts::month(unix_s);
    let owners = "SELECT DISTINCT owner FROM devices ORDER BY owner";
    let owners: Vec<String> = connection.statement(owners).query_map([], |row| row.get(0))?;
    for owner in owners {
        let mut prices: BTreeMap<String, u128> = BTreeMap::new();
        for line in receipts::bills(connection, &owner, Some(&month), tariff)? {
            if machine.is_none_or(|machine| machine == line.machine) {
                *prices.entry(line.device).or_default() += line.millionths;
            }
        }
        prices.retain(|_, price| *price > over_millionths);
        // What the owner has as a tenant on others' devices is these others' to look at.
        let own = "SELECT name, owner, labels FROM devices WHERE owner = ?1 ORDER BY name";
        connection.statement(own).each([&owner], |row| {
            if let Some(price) = prices.get(&row.get::<String>(0)?) {
                let (whole, part) = (price / 1_000_000, price % 1_000_000);
                let currency = &tariff.currency;
                found.note(row, format!("{whole}.{part:06} {currency} in {month}"))?;
            }
            Ok(Next::Row)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Fullness, is_fuller, is_of, nearly_full};

    #[test]
    fn version_is_one_of_those_that_begin_with_the_same_numbers() {
        for version in ["1.2", "1.2.0", "1.2.17-rc"] {
            assert!(is_of(version, "1.2"), "{version}");
        }
        for version in ["1.20", "1.1.2", "2.1.2", "1", ""] {
            assert!(!is_of(version, "1.2"), "{version}");
        }
    }

    #[test]
    fn hub_is_fuller_than_a_part_beyond_it_and_however_few_it_may_list() {
        let table = |used, most| Fullness { table: "devices", used, most, times_full: 0 };
        for (used, most, is_over) in
            [(90, 100, false), (91, 100, true), (0, 1, false), (1, 1, true), (120, 100, true)]
        {
            assert_eq!(is_fuller(&table(used, most), 90), is_over, "{used} of {most}");
        }
        assert!(is_fuller(&table(usize::MAX, usize::MAX), 99));
        assert!(nearly_full(&table(91, 100)).contains("91 of 100 devices are listed, and beyond"));
        assert!(nearly_full(&table(120, 100)).contains("listed, and no new one"));
    }
}
