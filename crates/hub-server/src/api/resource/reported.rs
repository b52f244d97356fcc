//! The lists that are made of devices' reports, and the alarms.

use super::{DEVICE_OF, Kind, Resource, column};
use crate::store::sql::Words;

pub(super) const MACHINES: Resource = Resource {
    name: "machines",
    title: "Machines",
    about: "The machines on your devices, as the devices list them and report how they are.",
    columns: &[
        column("machine", "Machine", Kind::Text, "l.name"),
        column("device", "Device", Kind::Device, "l.device"),
        column(
            "state",
            "State",
            Kind::Text,
            "CASE WHEN d.expires_unix_s < unixepoch() THEN 'silent' ELSE coalesce(m.state, \
             CASE d.way WHEN 'nobody' THEN 'shut' ELSE 'reachable' END) END",
        ),
        column("version", "Version", Kind::Text, "m.version"),
        column("repute", "Repute", Kind::Text, "m.repute"),
        column(
            "faults",
            "Faults in 24 h",
            Kind::Number,
            "(SELECT count(*) FROM faults f WHERE f.device = l.device AND f.machine = l.name \
              AND f.happened_unix_s > unixepoch() - 86400)",
        ),
        column("queue", "Calls waiting", Kind::Number, "m.queue"),
        column("calls", "Calls since the boot or update", Kind::Number, "m.calls"),
        column(
            "fuel_per_call",
            "Fuel a call (units)",
            Kind::Number,
            "m.package_fuel / nullif(m.package_calls, 0)",
        ),
        column("waited_us", "Longest wait (µs)", Kind::Number, "m.waited_us"),
        column("memory_bytes", "Memory (bytes)", Kind::Number, "m.memory_bytes"),
        column(
            "memory_bytes_max",
            "Memory, most allowed (bytes)",
            Kind::Number,
            "m.memory_bytes_max",
        ),
        column("stored_bytes", "Stored (bytes)", Kind::Number, "m.stored_bytes"),
        column("reported", "Last told", Kind::Time, "m.taken_unix_s"),
        column("package", "Package", Kind::Key, "m.package"),
        column("id", "Id", Kind::Key, "l.machine"),
        column("key", "Key", Kind::Key, "l.machine_key"),
    ],
    from: Words::alike(
        "machines l JOIN devices d ON d.name = l.device \
           LEFT JOIN machine_reports m ON m.device = l.device AND m.machine = l.name",
    ),
    visible: "d.owner = ?1",
    of_person: None,
    within_s: None,
    // The order of the index by which an owner's devices are found.
    order: "d.name, l.name",
};

pub(super) const REPORTS: Resource = Resource {
    name: "device-reports",
    title: "Reports",
    about: "The last word of each device on itself. Devices report once a minute, and at once what is urgent.",
    columns: &[
        column("device", "Device", Kind::Device, "r.device"),
        column("reported", "Reported", Kind::Time, "r.taken_unix_s"),
        column("version", "Software", Kind::Text, "r.version"),
        column("boot", "Boots", Kind::Number, "r.boot"),
        column("uptime_s", "Up for (s)", Kind::Number, "r.uptime_s"),
        column(
            "memory_bytes_promised",
            "Memory promised (bytes)",
            Kind::Number,
            "r.memory_bytes_promised",
        ),
        column(
            "memory_bytes_max",
            "Memory for machines (bytes)",
            Kind::Number,
            "r.memory_bytes_max",
        ),
        column("heap_bytes_used", "Heap in use (bytes)", Kind::Number, "r.heap_bytes_used"),
        column("heap_bytes_max", "Heap (bytes)", Kind::Number, "r.heap_bytes_max"),
        column("store_bytes_used", "Store in use (bytes)", Kind::Number, "r.store_bytes_used"),
        column("store_bytes_max", "Store (bytes)", Kind::Number, "r.store_bytes_max"),
        column(
            "store_erases",
            "Wear of the store (erases a sector)",
            Kind::Number,
            "r.store_erases",
        ),
        column("code_bytes_used", "Code in use (bytes)", Kind::Number, "r.code_bytes_used"),
        column("code_bytes_max", "Code flash (bytes)", Kind::Number, "r.code_bytes_max"),
        column("neighbours", "Neighbours in the mesh", Kind::Number, "r.neighbours"),
        column("faults_lost", "Faults left out", Kind::Number, "r.faults_lost"),
    ],
    from: Words::alike("reports r JOIN devices d ON d.name = r.device"),
    visible: "d.owner = ?1",
    of_person: None,
    within_s: None,
    order: "r.device",
};

pub(super) const FAULTS: Resource = Resource {
    name: "faults",
    title: "Faults",
    about: "Faults of machines, as their devices reported them, for 90 days and up to 200 of a device. \
            `tenure log MACHINE --device DEVICE --package FILE` shows the lines of source, where the package was built.",
    columns: &[
        column("happened", "Happened", Kind::Time, "f.happened_unix_s"),
        column("device", "Device", Kind::Device, "f.device"),
        column("machine", "Machine", Kind::Text, "f.machine"),
        column("text", "What and where", Kind::Line, "f.text"),
        column("boot", "Boot", Kind::Number, "f.boot"),
        column("number", "Line of the log", Kind::Number, "f.number"),
    ],
    from: Words::alike("faults f JOIN devices d ON d.name = f.device"),
    visible: "d.owner = ?1",
    of_person: None,
    within_s: None,
    order: "f.happened_unix_s DESC, f.number DESC",
};

pub(super) const METRICS: Resource = Resource {
    name: "machine-metrics",
    title: "Metrics",
    about: "Whole numbers that machines keep in their trees below `metrics`.",
    columns: &[
        column("device", "Device", Kind::Device, "m.device"),
        column("machine", "Machine", Kind::Text, "m.machine"),
        column("metric", "Metric", Kind::Text, "m.name"),
        column("value", "Value", Kind::Number, "m.value"),
        column("reported", "Told", Kind::Time, "m.taken_unix_s"),
    ],
    from: Words::alike("metrics m JOIN devices d ON d.name = m.device"),
    visible: "d.owner = ?1",
    of_person: None,
    within_s: None,
    order: "m.device, m.machine, m.name",
};

pub(super) const USE: Resource = Resource {
    name: "machine-use",
    title: "Use",
    about: "What machines used, in spans of 5 minutes (kept for 2 days), an hour (30 days) and a day (2 years).",
    columns: &[
        column("device", "Device", Kind::Device, "u.device"),
        column("machine", "Machine", Kind::Text, "u.machine"),
        column("span_s", "Span (s)", Kind::Number, "u.span_s"),
        column("from", "From", Kind::Time, "u.from_unix_s"),
        column("calls", "Calls", Kind::Number, "u.calls"),
        column("fuel", "Fuel (units)", Kind::Number, "u.fuel"),
        column("faults", "Faults", Kind::Number, "u.faults"),
        column("memory_bytes_peak", "Memory, most (bytes)", Kind::Number, "u.memory_bytes_peak"),
        column("queue_peak", "Calls waiting, most", Kind::Number, "u.queue_peak"),
    ],
    from: Words::alike("machine_use u JOIN devices d ON d.name = u.device"),
    visible: "d.owner = ?1",
    of_person: None,
    within_s: None,
    order: "u.from_unix_s DESC, u.span_s, u.machine",
};

pub(super) const ALARMS: Resource = Resource {
    name: "alarms",
    title: "Alarms",
    about: "Devices that are silent, full or worn, machines that fail or are banned, and chains of receipts that aren't \
            whole: one is missing before another, two have one number (a device whose flash was put back), or one \
            follows none of those before it.",
    columns: &[
        column("alarm", "Alarm", Kind::Text, "r.alarm"),
        column("device", "Device", Kind::Device, DEVICE_OF),
        column("machine", "Machine", Kind::Text, "r.name"),
        column("detail", "What happened", Kind::Line, "r.detail"),
        column("taken", "Since", Kind::Time, "r.taken_unix_s"),
        column("number", "At receipt", Kind::Number, "r.number"),
        column("tenant", "Tenant", Kind::Key, "r.tenant"),
    ],
    from: Words::alike(
        "alarms r LEFT JOIN devices ON devices.device_key = r.device_key AND length(devices.kept) > 0",
    ),
    // A device that was forgotten is nobody's alarm any more; chains of receipts stay.
    visible: "(r.owner = ?1 OR r.tenant = ?1) AND (r.machine IS NOT NULL OR devices.name IS NOT NULL)",
    of_person: None,
    within_s: None,
    order: "r.taken_unix_s DESC, r.number NULLS FIRST",
};
