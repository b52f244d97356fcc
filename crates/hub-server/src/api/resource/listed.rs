//! The lists of what the hub itself keeps: devices, packages, rollouts, receipts, tenants, people, passes, the
//! audit log, alarms by rules.

use super::{DEVICE_OF, Kind, Resource, column, column_of_each};
use crate::store::sql::Words;

pub(super) const DEVICES: Resource = Resource {
    name: "devices",
    title: "Devices",
    about: "The devices that registered here. A device renews its record every 20 seconds.",
    columns: &[
        column("device", "Device", Kind::Device, "name"),
        column(
            "state",
            "State",
            Kind::Text,
            "CASE WHEN expires_unix_s < unixepoch() THEN 'silent' WHEN way = 'nobody' THEN 'shut' ELSE 'reachable' END",
        ),
        column("way", "Way", Kind::Text, "nullif(way, '')"),
        column("machines", "Machines", Kind::Number, "machines"),
        column(
            "faults",
            "Faults in 24 h",
            Kind::Number,
            "(SELECT count(*) FROM faults f WHERE f.device = devices.name AND f.happened_unix_s > unixepoch() - 86400)",
        ),
        column("version", "Software", Kind::Text, "r.version"),
        column("uptime_s", "Up for (s)", Kind::Number, "r.uptime_s"),
        column_of_each(
            "store_percent",
            "Store in use (%)",
            Kind::Number,
            "r.store_bytes_used * 100 / nullif(r.store_bytes_max, 0)",
            "percent(r.store_bytes_used, r.store_bytes_max)",
        ),
        column("labels", "Labels", Kind::Text, "labels"),
        column("address", "Address", Kind::Text, "seen_at"),
        column("reported", "Last report", Kind::Time, "r.taken_unix_s"),
        column("heard", "Last heard", Kind::Time, "heard_unix_s"),
        column("first", "First heard", Kind::Time, "first_unix_s"),
        column("device_key", "Device key", Kind::Key, "device_key"),
    ],
    from: Words::alike("devices LEFT JOIN reports r ON r.device = devices.name"),
    // One that was forgotten keeps its history alone.
    visible: "owner = ?1 AND length(kept) > 0",
    of_person: None,
    within_s: None,
    order: "name",
};

pub(super) const PACKAGES: Resource = Resource {
    name: "packages",
    title: "Packages",
    about: "Packages that you pushed here, each signed by its tenant. Any client of OCI registries pulls them.",
    columns: &[
        column("repository", "Repository", Kind::Text, "m.repository"),
        column_of_each(
            "tags",
            "Tags",
            Kind::Text,
            "(SELECT group_concat(tag, ' ') FROM tags WHERE manifest = m.id)",
            "(SELECT string_agg(tag, ' ' ORDER BY tag) FROM tags WHERE manifest = m.id)",
        ),
        column("package", "Package", Kind::Text, "m.package"),
        column("version", "Version", Kind::Text, "m.version"),
        column("bytes", "Size (bytes)", Kind::Number, "m.package_bytes"),
        column("pushed", "Pushed", Kind::Time, "m.pushed_unix_s"),
        column("tenant", "Tenant", Kind::Key, "m.tenant"),
        column("package_digest", "Package digest", Kind::Key, "m.package_digest"),
        column("digest", "Manifest digest", Kind::Key, "m.digest"),
    ],
    from: Words::alike("manifests m"),
    visible: "m.who = ?1 AND m.package IS NOT NULL",
    of_person: None,
    within_s: None,
    order: "m.id DESC",
};

pub(super) const ROLLOUTS: Resource = Resource {
    name: "rollouts",
    title: "Rollouts",
    about: "Updates of many devices in stages. `tenure rollout start` begins one; a gate that fails takes it back.",
    columns: &[
        column("id", "Rollout", Kind::Rollout, "r.id"),
        column("machine", "Machine", Kind::Text, "r.machine"),
        column("version", "To version", Kind::Text, "r.version"),
        column("state", "State", Kind::Text, "r.state"),
        column("reason", "Reason", Kind::Line, "r.reason"),
        column("stage", "Stage", Kind::Number, "r.stage + 1"),
        column_of_each(
            "stages",
            "Stages",
            Kind::Number,
            "json_array_length(r.stages)",
            "json_array_length(CAST(r.stages AS json))",
        ),
        column(
            "devices",
            "Devices",
            Kind::Number,
            "(SELECT CAST(sum(devices) AS BIGINT) FROM rollout_counts WHERE rollout = r.id AND state <> 'held')",
        ),
        column(
            "healthy",
            "Healthy",
            Kind::Number,
            "coalesce((SELECT devices FROM rollout_counts WHERE rollout = r.id AND state = 'healthy'), 0)",
        ),
        column("began", "Began", Kind::Time, "r.began_unix_s"),
        column("ends", "Ends", Kind::Time, "r.ends_unix_s"),
        column("package", "Package", Kind::Key, "r.package_digest"),
    ],
    from: Words::alike("rollouts r"),
    visible: "r.who = ?1",
    of_person: None,
    within_s: None,
    order: "r.id DESC",
};

pub(super) const ROLLOUT_DEVICES: Resource = Resource {
    name: "rollout-devices",
    title: "Devices of rollouts",
    about: "How far each device of each rollout is.",
    columns: &[
        column("rollout", "Rollout", Kind::Rollout, "d.rollout"),
        column("device", "Device", Kind::Device, "d.device"),
        column("state", "State", Kind::Text, "d.state"),
        column("reason", "Reason", Kind::Line, "d.reason"),
        column("faults", "Faults since the update", Kind::Number, "d.faults"),
        column("updated", "Updated", Kind::Time, "d.updated_unix_s"),
        column("tried", "Last tried", Kind::Time, "d.tried_unix_s"),
        column("was", "Package before", Kind::Key, "d.was"),
    ],
    from: Words::alike("rollout_devices d JOIN rollouts r ON r.id = d.rollout"),
    visible: "r.who = ?1",
    of_person: None,
    within_s: None,
    order: "d.rollout DESC, d.position",
};

pub(super) const RECEIPTS: Resource = Resource {
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
        column("tenant", "Tenant", Kind::Key, "r.tenant"),
        column("package", "Package", Kind::Key, "r.package"),
        column("digest", "Digest", Kind::Key, "r.digest"),
    ],
    from: Words::alike(
        "receipts r LEFT JOIN devices ON devices.device_key = r.device_key AND length(devices.kept) > 0",
    ),
    visible: "(r.owner = ?1 OR r.tenant = ?1)",
    of_person: None,
    within_s: None,
    order: "r.id DESC",
};

pub(super) const AUDIT: Resource = Resource {
    name: "audit",
    title: "Audit log",
    about: "Who did what. Each entry's hash covers the one before; `tenure hub verify-audit` checks them all.",
    columns: &[
        column("number", "Number", Kind::Number, "number"),
        column("time", "Time", Kind::Time, "unix_s"),
        column("who", "Who", Kind::Key, "who"),
        column("by", "Person", Kind::Text, "audit.\"by\""),
        column("action", "Action", Kind::Text, "action"),
        column("subject", "Subject", Kind::Text, "subject"),
        column("detail", "Detail", Kind::Line, "detail"),
        column_of_each("hash", "Hash", Kind::Key, "lower(hex(hash))", "encode(hash, 'hex')"),
    ],
    from: Words::alike("audit"),
    visible: "owner = ?1",
    of_person: None,
    within_s: None,
    order: "number DESC",
};

pub(super) const PASSES: Resource = Resource {
    name: "passes",
    title: "Passes",
    about: "What is signed in: browsers, commands, and tokens for programs. A person sees the own ones.",
    columns: &[
        column("id", "Id", Kind::Number, "s.id"),
        column("kind", "Kind", Kind::Text, "s.kind"),
        column("name", "Name", Kind::Text, "s.name"),
        column("person", "Person", Kind::Text, "p.name"),
        column("agent", "Browser", Kind::Text, "s.agent"),
        column("network", "Network", Kind::Text, "s.from_network"),
        column("scopes", "Opens", Kind::Line, "s.scopes"),
        column("made", "Made", Kind::Time, "s.made_unix_s"),
        column("seen", "Used in the hour from", Kind::Time, "s.seen_unix_s"),
        column("expires", "Good until", Kind::Time, "s.expires_unix_s"),
    ],
    from: Words::alike("passes s LEFT JOIN people p ON p.id = s.person"),
    visible: "s.who = ?1 AND s.expires_unix_s > unixepoch()",
    of_person: Some("s.person"),
    within_s: None,
    order: "s.id DESC",
};

pub(super) const PEOPLE: Resource = Resource {
    name: "people",
    title: "People",
    about: "Those who see what your key sees, each as far as the role goes. Without people, the key alone signs in.",
    columns: &[
        column("name", "Name", Kind::Text, "name"),
        column("role", "Role", Kind::Text, "role"),
        column(
            "state",
            "State",
            Kind::Text,
            "CASE WHEN person_key IS NOT NULL THEN 'here' WHEN code_ends_unix_s > unixepoch() THEN 'invited' \
             ELSE 'invitation over' END",
        ),
        column("invited_by", "Invited by", Kind::Text, "invited_by"),
        column("invited", "Invited", Kind::Time, "invited_unix_s"),
        column("joined", "Joined", Kind::Time, "joined_unix_s"),
        column("person_key", "Signs in with the key", Kind::Key, "person_key"),
    ],
    from: Words::alike("people"),
    visible: "owner = ?1",
    of_person: None,
    within_s: None,
    order: "name",
};

pub(super) const TENANTS: Resource = Resource {
    name: "tenants",
    title: "Tenants",
    about: "The tenants whose machines ran on your devices, by their receipts.",
    columns: &[
        column("tenant", "Tenant", Kind::Key, "t.tenant"),
        column("machines", "Machines", Kind::Number, "t.machines"),
        column("receipts", "Receipts", Kind::Number, "t.receipts"),
        column("fuel", "Fuel (units)", Kind::Number, "t.fuel"),
        column("last", "Last receipt", Kind::Time, "t.last"),
    ],
    from: Words::each(
        "(SELECT tenant, count(DISTINCT device_key || machine) AS machines, count(*) AS receipts, \
         CAST(min(total(fuel), 9e18) AS INTEGER) AS fuel, max(taken_unix_s) AS last \
         FROM receipts WHERE owner = ?1 OR tenant = ?1 GROUP BY tenant) t",
        "(SELECT tenant, count(DISTINCT device_key || machine) AS machines, count(*) AS receipts, \
         CAST(least(sum(fuel), 9e18) AS BIGINT) AS fuel, max(taken_unix_s) AS last \
         FROM receipts WHERE owner = ?1 OR tenant = ?1 GROUP BY tenant) t",
    ),
    visible: "?1 = ?1",
    of_person: None,
    within_s: None,
    order: "t.tenant",
};

pub(super) const RULE_ALARMS: Resource = Resource {
    name: "rule-alarms",
    title: "Alarms by rules",
    about: "What the rules of the hub's operator found on your devices: raised, acknowledged by somebody, or over.",
    columns: &[
        column("id", "Number", Kind::Number, "a.id"),
        column("state", "State", Kind::Text, "a.state"),
        column("rule", "Rule", Kind::Text, "a.rule"),
        column("device", "Device", Kind::Device, "a.device"),
        column("condition", "Condition", Kind::Line, "a.condition"),
        column("detail", "What was seen", Kind::Line, "a.detail"),
        column("raised", "Raised", Kind::Time, "a.raised_unix_s"),
        column("acknowledged", "Acknowledged", Kind::Time, "a.acknowledged_unix_s"),
        column("by", "By", Kind::Line, "a.acknowledged_by"),
        column("word", "Word", Kind::Line, "a.acknowledged_word"),
        column("over", "Over", Kind::Time, "a.over_unix_s"),
    ],
    from: Words::alike("rule_alarms a"),
    visible: "a.owner = ?1",
    of_person: None,
    within_s: None,
    order: "CASE a.state WHEN 'raised' THEN 0 WHEN 'acknowledged' THEN 1 ELSE 2 END, a.id DESC",
};
