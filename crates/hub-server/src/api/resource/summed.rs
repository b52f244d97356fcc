//! The lists that sum a fleet up, for whoever has a moment for it: a few rows, however many devices there are.
//!
//! Each is one pass over an owner's devices with a look into an index for each; issues are made of the owner's newest
//! 20,000 faults, which an index finds however many others have.

use super::{Kind, Resource, column, column_of_each};
use crate::devices::reports::FAULTS_S;
use crate::store::sql::Words;

pub(super) const FAULT_ISSUES: Resource = Resource {
    name: "fault-issues",
    title: "Issues",
    about: "Faults that are alike, by package, version and place, made of the newest 20,000 ones. \
            `tenure faults` shows them with the commands that open them.",
    columns: &[
        // None where it is the device's own fault.
        column("package", "Package", Kind::Text, "coalesce(p.name, i.machine)"),
        column("version", "Version", Kind::Text, "i.version"),
        column("text", "What and where", Kind::Line, "i.text"),
        column("faults", "Faults", Kind::Number, "i.faults"),
        column("devices", "Devices that had it", Kind::Number, "i.devices"),
        column(
            "running",
            "Devices that run the package now",
            Kind::Number,
            "CASE WHEN i.package IS NOT NULL THEN coalesce(r.devices, 0) END",
        ),
        column("last", "Last", Kind::Time, "i.last_unix_s"),
        column("first", "First", Kind::Time, "i.first_unix_s"),
        column_of_each(
            "device",
            "Last on",
            Kind::Device,
            "substr(i.newest, instr(i.newest, '@') + 1)",
            "substr(i.newest, strpos(i.newest, '@') + 1)",
        ),
        column_of_each(
            "machine",
            "Of the machine",
            Kind::Text,
            "nullif(substr(i.newest, instr(i.newest, ' ') + 1, instr(i.newest, '@') - instr(i.newest, ' ') - 1), '')",
            "nullif(substr(i.newest, strpos(i.newest, ' ') + 1, strpos(i.newest, '@') - strpos(i.newest, ' ') - 1), '')",
        ),
        column("digest", "Package digest", Kind::Key, "i.package"),
    ],
    from: Words::alike(
        "(SELECT f.package AS package, max(f.version) AS version, min(f.machine) AS machine, f.text AS text, \
         count(*) AS faults, count(DISTINCT f.device) AS devices, min(f.happened_unix_s) AS first_unix_s, \
         max(f.happened_unix_s) AS last_unix_s, \
         max(CAST(f.happened_unix_s AS TEXT) || ' ' || coalesce(f.machine, '') || '@' || f.device) AS newest \
         FROM (SELECT f.device AS device, f.text AS text, f.happened_unix_s AS happened_unix_s, f.package AS package, \
         f.version AS version, \
         CASE WHEN f.package IS NOT NULL OR f.machine <> f.device THEN f.machine END AS machine \
         FROM faults f CROSS JOIN devices d ON d.name = f.device \
         WHERE f.owner = ?1 AND f.happened_unix_s > unixepoch() - ?2 AND d.owner = ?1 AND length(d.kept) > 0 \
         ORDER BY f.happened_unix_s DESC LIMIT 20000) f \
         GROUP BY f.package, CASE WHEN f.package IS NULL THEN f.machine END, f.text) i \
         LEFT JOIN (SELECT package_digest AS digest, min(package) AS name FROM manifests \
         WHERE who = ?1 AND package IS NOT NULL GROUP BY package_digest) p ON p.digest = i.package \
         LEFT JOIN (SELECT m.package AS package, count(DISTINCT m.device) AS devices \
         FROM machine_reports m JOIN devices d ON d.name = m.device \
         WHERE d.owner = ?1 AND length(d.kept) > 0 GROUP BY m.package) r ON r.package = i.package",
    ),
    visible: "?1 = ?1",
    of_person: None,
    within_s: Some(FAULTS_S),
    order: "i.last_unix_s DESC, i.text, i.package, i.machine",
};

pub(super) const FLEET_STATES: Resource = Resource {
    name: "fleet-states",
    title: "The fleet",
    about: "How many of your devices are well, unwell, in a rollout, or not reached, and why. \
            Each counts once, by its gravest reason.",
    columns: &[
        column(
            "state",
            "State",
            Kind::Text,
            "CASE WHEN s.grade <= 3 THEN 'silent' WHEN s.grade = 4 THEN 'shut' WHEN s.grade <= 11 THEN 'unwell' \
             WHEN s.grade = 12 THEN 'updating' ELSE 'well' END",
        ),
        column(
            "reason",
            "Reason",
            Kind::Text,
            "CASE s.grade WHEN 1 THEN 'away-days' WHEN 2 THEN 'away-hours' WHEN 3 THEN 'away' WHEN 4 THEN 'no-relay' \
             WHEN 5 THEN 'lost-changes' WHEN 6 THEN 'damaged-flash' WHEN 7 THEN 'banned' WHEN 8 THEN 'faults' \
             WHEN 9 THEN 'store-full' WHEN 10 THEN 'heap-full' WHEN 11 THEN 'flash-worn' WHEN 12 THEN 'rollout' END",
        ),
        column(
            "detail",
            "In words",
            Kind::Line,
            "CASE s.grade WHEN 1 THEN 'not heard for more than a day' WHEN 2 THEN 'not heard for more than an hour' \
             WHEN 3 THEN 'not heard since its record ended, within the hour' \
             WHEN 4 THEN 'behind a router, and the hub relays nothing' \
             WHEN 5 THEN 'lost changes: its flash is damaged' WHEN 6 THEN 'a part of its flash is damaged' \
             WHEN 7 THEN 'a machine failed too often and is banned' WHEN 8 THEN 'faults in the last 24 hours' \
             WHEN 9 THEN 'its store is 90 % full' WHEN 10 THEN 'its heap is 90 % full' \
             WHEN 11 THEN 'its flash is worn' WHEN 12 THEN 'in the middle of an update or a rollback' END",
        ),
        column("devices", "Devices", Kind::Number, "s.devices"),
        column("device", "One of them", Kind::Device, "s.example"),
    ],
    from: Words::alike(
        "(SELECT g.grade AS grade, count(*) AS devices, min(g.name) AS example FROM (SELECT d.name AS name, CASE \
         WHEN d.expires_unix_s < unixepoch() - 86400 THEN 1 \
         WHEN d.expires_unix_s < unixepoch() - 3600 THEN 2 \
         WHEN d.expires_unix_s < unixepoch() THEN 3 \
         WHEN d.way = 'nobody' THEN 4 \
         WHEN EXISTS (SELECT 1 FROM faults f WHERE f.device = d.name AND f.happened_unix_s > unixepoch() - 86400 \
         AND f.text LIKE 'damaged flash: acknowledged changes%') THEN 5 \
         WHEN EXISTS (SELECT 1 FROM faults f WHERE f.device = d.name AND f.happened_unix_s > unixepoch() - 86400 \
         AND f.text LIKE '%in flash is damaged%') THEN 6 \
         WHEN EXISTS (SELECT 1 FROM machine_reports m WHERE m.device = d.name AND m.repute = 'banned') THEN 7 \
         WHEN EXISTS (SELECT 1 FROM faults f WHERE f.device = d.name AND f.happened_unix_s > unixepoch() - 86400) THEN 8 \
         WHEN r.store_bytes_max > 0 AND r.store_bytes_used >= r.store_bytes_max / 10 * 9 THEN 9 \
         WHEN r.heap_bytes_max > 0 AND r.heap_bytes_used >= r.heap_bytes_max / 10 * 9 THEN 10 \
         WHEN r.store_erases >= 80000 THEN 11 \
         WHEN EXISTS (SELECT 1 FROM rollouts o JOIN rollout_devices u ON u.rollout = o.id WHERE o.who = ?1 \
         AND o.state IN ('running', 'paused', 'rolling back') AND u.device = d.name \
         AND u.state IN ('updating', 'soaking', 'reverting')) THEN 12 \
         ELSE 13 END AS grade FROM devices d LEFT JOIN reports r ON r.device = d.name \
         WHERE d.owner = ?1 AND length(d.kept) > 0) g GROUP BY g.grade) s",
    ),
    visible: "?1 = ?1",
    of_person: None,
    within_s: None,
    order: "s.grade",
};

pub(super) const FLEET_VERSIONS: Resource = Resource {
    name: "fleet-versions",
    title: "Versions",
    about: "How many of your devices have which software, by their reports.",
    columns: &[
        column("version", "Software", Kind::Text, "v.version"),
        column("devices", "Devices", Kind::Number, "v.devices"),
        column("device", "One of them", Kind::Device, "v.example"),
    ],
    from: Words::alike(
        "(SELECT r.version AS version, count(*) AS devices, min(d.name) AS example \
         FROM devices d LEFT JOIN reports r ON r.device = d.name \
         WHERE d.owner = ?1 AND length(d.kept) > 0 GROUP BY r.version) v",
    ),
    visible: "?1 = ?1",
    of_person: None,
    within_s: None,
    order: "v.devices DESC, v.version NULLS FIRST",
};

pub(super) const OPEN_ALARMS: Resource = Resource {
    name: "open-alarms",
    title: "Open alarms",
    about: "How many alarms of each rule are raised, or acknowledged and not over.",
    columns: &[
        column("rule", "Rule", Kind::Text, "o.rule"),
        column("condition", "Condition", Kind::Line, "o.condition"),
        column("state", "State", Kind::Text, "o.state"),
        column("alarms", "Alarms", Kind::Number, "o.alarms"),
        column("device", "One of the devices", Kind::Device, "o.device"),
        column("raised", "The oldest raised", Kind::Time, "o.raised"),
    ],
    from: Words::alike(
        "(SELECT a.rule AS rule, a.condition AS condition, a.state AS state, count(*) AS alarms, \
         min(a.device) AS device, min(a.raised_unix_s) AS raised FROM rule_alarms a \
         WHERE a.owner = ?1 AND a.state <> 'over' GROUP BY a.rule, a.condition, a.state) o",
    ),
    visible: "?1 = ?1",
    of_person: None,
    within_s: None,
    order: "CASE o.state WHEN 'raised' THEN 0 ELSE 1 END, o.alarms DESC, o.rule, o.condition",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Database;

    #[test]
    fn faults_of_issues_are_found_by_their_owner_and_moment() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path().join("hub.sqlite")).unwrap();
        let tables = FAULT_ISSUES.from.of(database.connection.dialect());
        let query = format!("EXPLAIN QUERY PLAN SELECT i.faults FROM {tables}");
        let mut plan = database.connection.sqlite().prepare(&query).unwrap();
        let steps = plan.query_map(rusqlite::params!["owner", 1], |row| row.get(3)).unwrap();
        let steps: Vec<String> = steps.collect::<Result<_, _>>().unwrap();
        let by_index = "f USING INDEX faults_of_owner (owner=? AND happened_unix_s>?)";
        assert!(steps.iter().any(|step| step.contains(by_index)), "{steps:#?}");
    }
}
