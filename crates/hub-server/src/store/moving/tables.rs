//! The tables that a hub's records are in, as they are copied from one database to another.

/// A table, with its columns: those first by which its rows are told apart.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// How many columns its key has.
    pub(super) key: usize,
    columns: &'static str,
}

impl Table {
    /// The columns, as a statement lists them.
    pub(super) fn list(&self) -> &'static str {
        self.columns
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.columns.split(", ")
    }

    /// The columns of the key, as a statement lists them.
    pub(super) fn key_list(&self) -> String {
        self.columns().take(self.key).collect::<Vec<_>>().join(", ")
    }
}

const fn table(name: &'static str, key: usize, columns: &'static str) -> Table {
    Table { name, key, columns }
}

/// Whether rows of the table have numbers that the database gives.
pub(super) const NUMBERED: [&str; 7] =
    ["receipts", "people", "passes", "manifests", "rollouts", "rule_alarms", "webhooks"];

/// All that isn't counted from others, each behind those that it refers to.
pub(super) const TABLES: [Table; 28] = [
    table("identity", 1, "id, seed"),
    table(
        "devices",
        1,
        "name, owner, device_key, machine_key, seen_at, machines, first_unix_s, heard_unix_s, expires_unix_s, kept, labels, steady_unix_s, way",
    ),
    table("clocks", 1, "name, unix_s"),
    table("machines", 2, "device, name, machine, machine_key"),
    table("audit", 1, "number, unix_s, who, action, subject, detail, owner, hash, \"by\""),
    table("revocations", 1, "owner, number"),
    table("revoked_devices", 2, "device_key, owner"),
    table("forgotten_devices", 1, "name"),
    table(
        "receipts",
        1,
        "id, digest, previous, owner, tenant, device_key, machine, name, package, tier, number, began_unix_s, ended_unix_s, taken_unix_s, month, counted_ms, fuel, run_us, memory_bytes_peak, flash_bytes, messages, air_bytes, signed",
    ),
    table(
        "people",
        1,
        "id, owner, name, role, invited_by, invited_unix_s, code_hash, code_ends_unix_s, person_key, joined_unix_s",
    ),
    table(
        "passes",
        1,
        "id, secret_hash, kind, who, name, scopes, made_unix_s, expires_unix_s, person, seen_unix_s, from_network, agent",
    ),
    table("blobs", 2, "who, digest, size, taken_unix_s, bytes"),
    table("uploads", 1, "id, who, repository, began_unix_s"),
    table("upload_parts", 2, "upload, \"offset\", bytes"),
    table(
        "manifests",
        1,
        "id, who, repository, digest, media_type, artifact_type, subject, annotations, bytes, pushed_unix_s, package, package_digest, version, tenant, package_bytes",
    ),
    table("manifest_blobs", 2, "manifest, digest"),
    table("tags", 3, "who, repository, tag, manifest"),
    table("sweeps", 1, "who, swept_unix_s"),
    table(
        "rollouts",
        1,
        "id, who, machine, package_digest, version, plan, signature, state, reason, stages, stage, soak_s, faults_max, failures_max, on_failure, began_unix_s, ends_unix_s, mandate, stage_unix_s, labels, gates, awaited_from, stuck_unix_s",
    ),
    table(
        "rollout_devices",
        2,
        "rollout, position, device, state, reason, was, faults_before, faults, updated_unix_s, tried_unix_s, held, check_unix_s",
    ),
    table(
        "reports",
        1,
        "device, boot, number, taken_unix_s, version, uptime_s, memory_bytes_promised, memory_bytes_max, store_bytes_used, store_bytes_max, store_erases, code_bytes_used, code_bytes_max, heap_bytes_used, heap_bytes_max, neighbours, faults_lost",
    ),
    table(
        "machine_reports",
        2,
        "device, machine, boot, taken_unix_s, package, version, state, repute, queue, calls, fuel, waited_us, memory_bytes, memory_bytes_max, stored_bytes, package_unix_s, package_calls, package_fuel, package_waited_us",
    ),
    table("metrics", 3, "device, machine, name, value, taken_unix_s"),
    table(
        "machine_use",
        4,
        "device, span_s, from_unix_s, machine, calls, fuel, faults, memory_bytes_peak, queue_peak",
    ),
    table(
        "faults",
        3,
        "device, boot, number, machine, happened_unix_s, text, package, version, owner",
    ),
    table("answers", 2, "who, value, request, status, content_type, location, body, made_unix_s"),
    table(
        "rule_alarms",
        1,
        "id, rule, condition, owner, device, detail, state, raised_unix_s, acknowledged_unix_s, acknowledged_by, acknowledged_word, over_unix_s",
    ),
    table("webhooks", 1, "id, target, message, owner, body, tries, next_unix_s"),
];
