//! The kinds of things that the pages and the API list, each described once: the query, the page, the CSV
//! file and the line of the OpenAPI document all come from one [`Resource`].
//!
//! Invariant: every query is restricted to the rows that belong to the key that asks; texts of a request
//! reach SQLite as bound values alone.

mod reported;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

/// The most rows of a page.
pub(crate) const LIMIT_MAX: u64 = 1_000;
/// The most rows of a list as a file: ten times those of all devices that a hub carries.
pub(crate) const FILE_ROWS_MAX: u64 = 100_000;
/// The most filters of one request: each is a condition of the query, whose depth SQLite bounds.
const FILTERS_MAX: usize = 32;
const LIMIT: u64 = 100;

/// How a column's values are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word.
    Text,
    /// A line to be read whole.
    Line,
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
    sql: &'static str,
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
    from: &'static str,
    /// The condition under which the key `?1` may see a row.
    visible: &'static str,
    /// The order if nothing else is asked for.
    order: &'static str,
}

const fn column(name: &'static str, title: &'static str, kind: Kind, sql: &'static str) -> Column {
    Column { name, title, kind, sql }
}

/// Everything that is listed.
pub(crate) static RESOURCES: [Resource; 14] = [
    DEVICES,
    reported::MACHINES,
    reported::ALARMS,
    reported::FAULTS,
    reported::REPORTS,
    reported::METRICS,
    reported::USE,
    PACKAGES,
    ROLLOUTS,
    ROLLOUT_DEVICES,
    RECEIPTS,
    TENANTS,
    AUDIT,
    PASSES,
];

const DEVICES: Resource = Resource {
    name: "devices",
    title: "Devices",
    about: "The devices that registered here. A device renews its record every 20 seconds.",
    columns: &[
        column("device", "Device", Kind::Device, "name"),
        column(
            "state",
            "State",
            Kind::Text,
            "CASE WHEN expires_unix_s >= unixepoch() THEN 'reachable' ELSE 'silent' END",
        ),
        column("machines", "Machines", Kind::Number, "machines"),
        column(
            "faults",
            "Faults in 24 h",
            Kind::Number,
            "(SELECT count(*) FROM faults f WHERE f.device = devices.name AND f.happened_unix_s > unixepoch() - 86400)",
        ),
        column("version", "Software", Kind::Text, "r.version"),
        column("uptime_s", "Up for (s)", Kind::Number, "r.uptime_s"),
        column(
            "store_percent",
            "Store in use (%)",
            Kind::Number,
            "r.store_bytes_used * 100 / nullif(r.store_bytes_max, 0)",
        ),
        column("labels", "Labels", Kind::Text, "labels"),
        column("address", "Address", Kind::Text, "seen_at"),
        column("reported", "Last report", Kind::Time, "r.taken_unix_s"),
        column("heard", "Last heard", Kind::Time, "heard_unix_s"),
        column("first", "First heard", Kind::Time, "first_unix_s"),
        column("device_key", "Device key", Kind::Text, "device_key"),
    ],
    from: "devices LEFT JOIN reports r ON r.device = devices.name",
    visible: "owner = ?1",
    order: "name",
};

const PACKAGES: Resource = Resource {
    name: "packages",
    title: "Packages",
    about: "Packages that you pushed here, each signed by its tenant. Any client of OCI registries pulls them.",
    columns: &[
        column("repository", "Repository", Kind::Text, "m.repository"),
        column(
            "tags",
            "Tags",
            Kind::Text,
            "(SELECT group_concat(tag, ' ') FROM tags WHERE manifest = m.id)",
        ),
        column("package", "Package", Kind::Text, "m.package"),
        column("version", "Version", Kind::Text, "m.version"),
        column("bytes", "Size (bytes)", Kind::Number, "m.package_bytes"),
        column("pushed", "Pushed", Kind::Time, "m.pushed_unix_s"),
        column("tenant", "Tenant", Kind::Text, "m.tenant"),
        column("package_digest", "Package digest", Kind::Text, "m.package_digest"),
        column("digest", "Manifest digest", Kind::Text, "m.digest"),
    ],
    from: "manifests m",
    visible: "m.who = ?1 AND m.package IS NOT NULL",
    order: "m.id DESC",
};

const ROLLOUTS: Resource = Resource {
    name: "rollouts",
    title: "Rollouts",
    about: "Updates of many devices in stages. `tenure rollout start` begins one; a gate that fails takes it back.",
    columns: &[
        column("id", "Rollout", Kind::Rollout, "r.id"),
        column("machine", "Machine", Kind::Text, "r.machine"),
        column("version", "To version", Kind::Text, "r.version"),
        column("state", "State", Kind::Text, "r.state"),
        column("reason", "Reason", Kind::Text, "r.reason"),
        column("stage", "Stage", Kind::Number, "r.stage + 1"),
        column("stages", "Stages", Kind::Number, "json_array_length(r.stages)"),
        column(
            "devices",
            "Devices",
            Kind::Number,
            "(SELECT sum(devices) FROM rollout_counts WHERE rollout = r.id AND state <> 'held')",
        ),
        column(
            "healthy",
            "Healthy",
            Kind::Number,
            "ifnull((SELECT devices FROM rollout_counts WHERE rollout = r.id AND state = 'healthy'), 0)",
        ),
        column("began", "Began", Kind::Time, "r.began_unix_s"),
        column("ends", "Ends", Kind::Time, "r.ends_unix_s"),
        column("package", "Package", Kind::Text, "r.package_digest"),
    ],
    from: "rollouts r",
    visible: "r.who = ?1",
    order: "r.id DESC",
};

const ROLLOUT_DEVICES: Resource = Resource {
    name: "rollout-devices",
    title: "Devices of rollouts",
    about: "How far each device of each rollout is.",
    columns: &[
        column("rollout", "Rollout", Kind::Rollout, "d.rollout"),
        column("device", "Device", Kind::Device, "d.device"),
        column("state", "State", Kind::Text, "d.state"),
        column("reason", "Reason", Kind::Text, "d.reason"),
        column("faults", "Faults since the update", Kind::Number, "d.faults"),
        column("updated", "Updated", Kind::Time, "d.updated_unix_s"),
        column("tried", "Last tried", Kind::Time, "d.tried_unix_s"),
        column("was", "Package before", Kind::Text, "d.was"),
    ],
    from: "rollout_devices d JOIN rollouts r ON r.id = d.rollout",
    visible: "r.who = ?1",
    order: "d.rollout DESC, d.position",
};

/// The devices' names beside receipts.
const DEVICE_OF: &str = "coalesce(devices.name, r.device_key)";

const RECEIPTS: Resource = Resource {
    name: "receipts",
    title: "Receipts",
    about: "Signed by devices: the use of a machine in one period. They are kept for ever.",
    columns: &[
        column("device", "Device", Kind::Device, DEVICE_OF),
        column("machine", "Machine", Kind::Text, "r.name"),
        column("number", "Number", Kind::Number, "r.number"),
        column("month", "Month", Kind::Text, "r.month"),
        column("ended", "Ended", Kind::Time, "r.ended_unix_s"),
        column("counted_ms", "Counted (ms)", Kind::Number, "r.counted_ms"),
        column("fuel", "Fuel (units)", Kind::Number, "r.fuel"),
        column("run_us", "Run time (µs)", Kind::Number, "r.run_us"),
        column("memory_bytes_peak", "Memory, most (bytes)", Kind::Number, "r.memory_bytes_peak"),
        column("flash_bytes", "Flash written (bytes)", Kind::Number, "r.flash_bytes"),
        column("messages", "Messages", Kind::Number, "r.messages"),
        column("air_bytes", "Sent (bytes)", Kind::Number, "r.air_bytes"),
        column("tier", "Tier", Kind::Number, "r.tier"),
        column("tenant", "Tenant", Kind::Text, "r.tenant"),
        column("package", "Package", Kind::Text, "r.package"),
        column("digest", "Digest", Kind::Text, "r.digest"),
    ],
    from: "receipts r LEFT JOIN devices ON devices.device_key = r.device_key",
    visible: "(r.owner = ?1 OR r.tenant = ?1)",
    order: "r.id DESC",
};

const AUDIT: Resource = Resource {
    name: "audit",
    title: "Audit log",
    about: "Who did what. Each entry's hash covers the one before; `tenure hub verify-audit` checks them all.",
    columns: &[
        column("number", "Number", Kind::Number, "number"),
        column("time", "Time", Kind::Time, "unix_s"),
        column("who", "Who", Kind::Text, "who"),
        column("action", "Action", Kind::Text, "action"),
        column("subject", "Subject", Kind::Text, "subject"),
        column("detail", "Detail", Kind::Text, "detail"),
        column("hash", "Hash", Kind::Text, "lower(hex(hash))"),
    ],
    from: "audit",
    visible: "owner = ?1",
    order: "number DESC",
};

const PASSES: Resource = Resource {
    name: "passes",
    title: "Passes",
    about: "What is signed in with your key: browsers, commands, and tokens for programs.",
    columns: &[
        column("id", "Id", Kind::Number, "id"),
        column("kind", "Kind", Kind::Text, "kind"),
        column("name", "Name", Kind::Text, "name"),
        column("scopes", "Opens", Kind::Text, "scopes"),
        column("made", "Made", Kind::Time, "made_unix_s"),
        column("expires", "Good until", Kind::Time, "expires_unix_s"),
    ],
    from: "passes",
    visible: "who = ?1 AND expires_unix_s > unixepoch()",
    order: "id DESC",
};

const TENANTS: Resource = Resource {
    name: "tenants",
    title: "Tenants",
    about: "The tenants whose machines ran on your devices, by their receipts.",
    columns: &[
        column("tenant", "Tenant", Kind::Text, "t.tenant"),
        column("machines", "Machines", Kind::Number, "t.machines"),
        column("receipts", "Receipts", Kind::Number, "t.receipts"),
        column("fuel", "Fuel (units)", Kind::Number, "t.fuel"),
        column("last", "Last receipt", Kind::Time, "t.last"),
    ],
    from: "(SELECT tenant, count(DISTINCT device_key || machine) AS machines, count(*) AS receipts, \
           CAST(min(total(fuel), 9e18) AS INTEGER) AS fuel, max(taken_unix_s) AS last \
           FROM receipts WHERE owner = ?1 OR tenant = ?1 GROUP BY tenant) t",
    visible: "?1 = ?1",
    order: "t.tenant",
};

/// The resource called `name`.
pub(crate) fn resource(name: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| resource.name == name)
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Text(String),
    Number(i64),
    None,
}

/// A request for rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Rows in which some column contains this.
    pub(crate) words: String,
    /// Rows in which the column with this index has this value.
    pub(crate) filters: Vec<(usize, String)>,
    /// The column to sort by, and whether the largest comes first.
    pub(crate) sort: Option<(usize, bool)>,
    /// How many rows, at most.
    pub(crate) limit: u64,
    /// How many rows to skip.
    pub(crate) skip: u64,
}

/// Rows, and how many to skip for the next ones, if there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Vec<Cell>>,
    pub(crate) next: Option<u64>,
}

impl Request {
    /// Reads the parameters of an address.
    ///
    /// # Errors
    /// The parameter that isn't known or can't be read, in words.
    pub(crate) fn parse(
        resource: &Resource,
        parameters: &[(String, String)],
    ) -> Result<Self, String> {
        let mut request = Self { limit: LIMIT, ..Self::default() };
        let index_of = |name: &str| resource.columns.iter().position(|column| column.name == name);
        for (name, value) in parameters {
            let number = || value.parse().map_err(|_| format!("`{name}` must be a whole number"));
            match name.as_str() {
                "q" => request.words = value.clone(),
                "limit" => request.limit = number()?,
                "skip" => request.skip = number()?,
                "sort" => {
                    let (name, descending) = match value.strip_prefix('-') {
                        Some(name) => (name, true),
                        None => (value.as_str(), false),
                    };
                    let index = index_of(name).ok_or(format!("no column `{name}` to sort by"))?;
                    request.sort = Some((index, descending));
                }
                name => {
                    let index = index_of(name).ok_or(format!("no parameter `{name}`"))?;
                    request.filters.push((index, value.clone()));
                }
            }
        }
        if request.filters.len() > FILTERS_MAX {
            return Err(format!("there are more than {FILTERS_MAX} filters"));
        }
        if request.limit == 0 || request.limit > LIMIT_MAX {
            return Err(format!("`limit` must be between 1 and {LIMIT_MAX}"));
        }
        Ok(request)
    }
}

impl Resource {
    /// The rows that `who` may see and `request` asks for.
    ///
    /// # Errors
    /// SQLite fails.
    pub(crate) fn rows(
        &self,
        connection: &Connection,
        who: &str,
        request: &Request,
    ) -> Result<Rows, rusqlite::Error> {
        let mut values = vec![Value::from(who.to_string())];
        let mut conditions = vec![format!("({})", self.visible)];
        for (index, value) in &request.filters {
            values.push(value.clone().into());
            let Column { sql, kind, .. } = &self.columns[*index];
            // A column that is text already is compared as it is, so that an index finds its rows.
            let text = match kind {
                Kind::Text | Kind::Line | Kind::Device => (*sql).to_string(),
                Kind::Number | Kind::Time | Kind::Rollout => format!("CAST({sql} AS TEXT)"),
            };
            conditions.push(format!("{text} = ?{}", values.len()));
        }
        if !request.words.is_empty() {
            values.push(request.words.clone().into());
            let number = values.len();
            let contains = |column: &Column| {
                format!(
                    "instr(lower(CAST(ifnull({}, '') AS TEXT)), lower(?{number})) > 0",
                    column.sql
                )
            };
            let any: Vec<String> = self.columns.iter().map(contains).collect();
            conditions.push(format!("({})", any.join(" OR ")));
        }
        let columns: Vec<&str> = self.columns.iter().map(|column| column.sql).collect();
        let order = match request.sort {
            Some((index, true)) => format!("{} DESC, {}", columns[index], self.order),
            Some((index, false)) => format!("{}, {}", columns[index], self.order),
            None => self.order.to_string(),
        };
        let limit = request.limit.min(FILE_ROWS_MAX);
        values.push(Value::from(limit as i64 + 1));
        values.push(Value::from(i64::try_from(request.skip).unwrap_or(i64::MAX)));
        let (columns, conditions) = (columns.join(", "), conditions.join(" AND "));
        let query = format!(
            "SELECT {columns} FROM {} WHERE {conditions} ORDER BY {order} LIMIT ?{} OFFSET ?{}",
            self.from,
            values.len() - 1,
            values.len()
        );
        let mut statement = connection.prepare_cached(&query)?;
        let cells = |row: &rusqlite::Row<'_>| {
            (0..self.columns.len()).map(|index| Ok(cell(row.get_ref(index)?))).collect()
        };
        let rows = statement.query_map(params_from_iter(values), cells)?;
        let mut rows: Vec<Vec<Cell>> = rows.collect::<Result<_, rusqlite::Error>>()?;
        let has_more = rows.len() as u64 > limit;
        rows.truncate(limit as usize);
        Ok(Rows { rows, next: has_more.then(|| request.skip.saturating_add(limit)) })
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::None,
        ValueRef::Integer(number) => Cell::Number(number),
        ValueRef::Real(number) => Cell::Number(number as i64),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Cell::Text(String::from_utf8_lossy(text).into_owned())
        }
    }
}
