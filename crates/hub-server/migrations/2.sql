-- Receipts, kept for ever; passes to the pages and the API.
CREATE TABLE receipts (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    previous TEXT NOT NULL,
    owner TEXT NOT NULL,
    tenant TEXT NOT NULL,
    device_key TEXT NOT NULL,
    machine TEXT NOT NULL,
    name TEXT NOT NULL,
    package TEXT NOT NULL,
    tier INTEGER NOT NULL,
    number INTEGER NOT NULL,
    began_unix_s INTEGER,
    ended_unix_s INTEGER,
    taken_unix_s INTEGER NOT NULL,
    month TEXT NOT NULL,
    counted_ms INTEGER NOT NULL,
    fuel INTEGER NOT NULL,
    run_us INTEGER NOT NULL,
    memory_bytes_peak INTEGER NOT NULL,
    flash_bytes INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    air_bytes INTEGER NOT NULL,
    signed BLOB NOT NULL
) STRICT;
CREATE INDEX receipts_of_chain ON receipts (device_key, machine, number);
CREATE INDEX receipts_of_owner ON receipts (owner, month);
CREATE INDEX receipts_of_tenant ON receipts (tenant, month);
CREATE INDEX receipts_of_day ON receipts (device_key, taken_unix_s);
CREATE INDEX devices_by_key ON devices (device_key);

CREATE TABLE passes (
    id INTEGER PRIMARY KEY,
    secret_hash BLOB NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('code', 'page', 'token')),
    who TEXT NOT NULL,
    name TEXT NOT NULL,
    made_unix_s INTEGER NOT NULL,
    expires_unix_s INTEGER NOT NULL
) STRICT;
CREATE INDEX passes_of_key ON passes (who, kind);

-- Chains that aren't whole: a receipt that is missing before another, two of one number, one that
-- follows none of those before it.
CREATE VIEW alarms AS
SELECT 'missing' AS alarm, r.owner, r.tenant, r.device_key, r.machine, r.name, r.number, r.taken_unix_s
FROM receipts r
WHERE r.number > 0 AND NOT EXISTS (
    SELECT 1 FROM receipts p
    WHERE p.device_key = r.device_key AND p.machine = r.machine AND p.number = r.number - 1
)
UNION ALL
SELECT 'fork', r.owner, r.tenant, r.device_key, r.machine, r.name, r.number, r.taken_unix_s
FROM receipts r
WHERE EXISTS (
    SELECT 1 FROM receipts o
    WHERE o.device_key = r.device_key AND o.machine = r.machine AND o.number = r.number AND o.id < r.id
)
UNION ALL
SELECT 'broken', r.owner, r.tenant, r.device_key, r.machine, r.name, r.number, r.taken_unix_s
FROM receipts r
WHERE r.number > 0 AND EXISTS (
    SELECT 1 FROM receipts p
    WHERE p.device_key = r.device_key AND p.machine = r.machine AND p.number = r.number - 1
) AND NOT EXISTS (
    SELECT 1 FROM receipts p
    WHERE p.device_key = r.device_key AND p.machine = r.machine AND p.number = r.number - 1
      AND p.digest = r.previous
);
