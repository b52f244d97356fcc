//! The kinds of things that the pages and the API list, each described once: the query, the page, the CSV
//! file and the line of the OpenAPI document all come from one [`Resource`].
//!
//! Invariant: every query is restricted to the rows that belong to the key that asks, and of what people are signed in with
//! to a person's own, unless the pass opens all people's; texts of a request reach the database as bound values alone.

mod listed;
mod query;
mod reported;
mod summed;

use crate::store::sql::Words;

pub(crate) use query::{Cell, Request, Rows};

/// The most rows of a page.
pub(crate) const LIMIT_MAX: u64 = 1_000;
/// How a column's values are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word.
    Text,
    /// A line to be read whole.
    Line,
    /// A key or a digest, of which a few letters are enough to tell it from others.
    Key,
    /// The name of a device.
    Device,
    /// A whole number; the column's title says its unit.
    Number,
    /// Seconds since 1970 UTC.
    Time,
    /// The number of a rollout.
    Rollout,
}

/// A column of a [`Resource`].
#[derive(Debug)]
pub(crate) struct Column {
    /// The name in JSON, CSV and requests.
    pub(crate) name: &'static str,
    /// The heading on a page, with the unit.
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
    /// The expression in SQL.
    sql: Words,
}

/// A kind of thing that is listed.
#[derive(Debug)]
pub(crate) struct Resource {
    /// The name in addresses.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// One sentence for whoever meets it first.
    pub(crate) about: &'static str,
    pub(crate) columns: &'static [Column],
    /// The tables in SQL.
    from: Words,
    /// The condition under which the key `?1` may see a row.
    visible: &'static str,
    /// The column with the person whose row it is, if people see the own ones alone.
    of_person: Option<&'static str>,
    /// For how many seconds back the list looks unless a request says it, if it is made of what happened: `?2` in its tables.
    pub(crate) within_s: Option<i64>,
    /// The order if nothing else is asked for.
    order: &'static str,
}

const fn column(name: &'static str, title: &'static str, kind: Kind, sql: &'static str) -> Column {
    Column { name, title, kind, sql: Words::alike(sql) }
}

/// A column that each engine writes in its own way.
const fn column_of_each(
    name: &'static str,
    title: &'static str,
    kind: Kind,
    sqlite: &'static str,
    postgres: &'static str,
) -> Column {
    Column { name, title, kind, sql: Words::each(sqlite, postgres) }
}

/// The devices' names beside receipts.
const DEVICE_OF: &str = "coalesce(devices.name, r.device_key)";

/// Everything that is listed.
pub(crate) static RESOURCES: [Resource; 20] = [
    listed::DEVICES,
    summed::FLEET_STATES,
    summed::FLEET_VERSIONS,
    reported::MACHINES,
    reported::ALARMS,
    listed::RULE_ALARMS,
    summed::OPEN_ALARMS,
    reported::FAULTS,
    summed::FAULT_ISSUES,
    reported::REPORTS,
    reported::METRICS,
    reported::USE,
    listed::PACKAGES,
    listed::ROLLOUTS,
    listed::ROLLOUT_DEVICES,
    listed::RECEIPTS,
    listed::TENANTS,
    listed::AUDIT,
    listed::PEOPLE,
    listed::PASSES,
];

/// The resource called `name`.
pub(crate) fn resource(name: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| resource.name == name)
}
