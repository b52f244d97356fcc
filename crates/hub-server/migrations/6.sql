-- What devices report of themselves: the last word of each, its faults, and its use over time.
CREATE TABLE reports (
    device TEXT PRIMARY KEY NOT NULL REFERENCES devices (name) ON DELETE CASCADE,
    -- The boot and the report's number in it: an earlier one of that boot changes nothing.
    boot INTEGER NOT NULL,
    number INTEGER NOT NULL,
    taken_unix_s INTEGER NOT NULL,
    version TEXT NOT NULL,
    uptime_s INTEGER NOT NULL,
    memory_bytes_promised INTEGER NOT NULL,
    memory_bytes_max INTEGER NOT NULL,
    store_bytes_used INTEGER NOT NULL,
    store_bytes_max INTEGER NOT NULL,
    store_erases INTEGER NOT NULL,
    code_bytes_used INTEGER NOT NULL,
    code_bytes_max INTEGER NOT NULL,
    heap_bytes_used INTEGER,
    heap_bytes_max INTEGER,
    neighbours INTEGER,
    faults_lost INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE machine_reports (
    device TEXT NOT NULL REFERENCES devices (name) ON DELETE CASCADE,
    machine TEXT NOT NULL,
    -- The boot of its device that the counters count from.
    boot INTEGER NOT NULL,
    taken_unix_s INTEGER NOT NULL,
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    state TEXT NOT NULL,
    repute TEXT NOT NULL,
    queue INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    fuel INTEGER NOT NULL,
    waited_us INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    memory_bytes_max INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    -- Since when it has that package, and what it used and waited at most since then.
    package_unix_s INTEGER NOT NULL,
    package_calls INTEGER NOT NULL,
    package_fuel INTEGER NOT NULL,
    package_waited_us INTEGER NOT NULL,
    PRIMARY KEY (device, machine)
) STRICT, WITHOUT ROWID;

-- Whole numbers that machines keep in their trees for their owner.
CREATE TABLE metrics (
    device TEXT NOT NULL REFERENCES devices (name) ON DELETE CASCADE,
    machine TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    taken_unix_s INTEGER NOT NULL,
    PRIMARY KEY (device, machine, name)
) STRICT, WITHOUT ROWID;

-- Use in spans of 5 minutes, an hour and a day; shorter ones are forgotten sooner.
CREATE TABLE machine_use (
    device TEXT NOT NULL REFERENCES devices (name) ON DELETE CASCADE,
    span_s INTEGER NOT NULL,
    from_unix_s INTEGER NOT NULL,
    machine TEXT NOT NULL,
    calls INTEGER NOT NULL,
    fuel INTEGER NOT NULL,
    faults INTEGER NOT NULL,
    memory_bytes_peak INTEGER NOT NULL,
    queue_peak INTEGER NOT NULL,
    PRIMARY KEY (device, span_s, from_unix_s, machine)
) STRICT, WITHOUT ROWID;

CREATE TABLE faults (
    device TEXT NOT NULL REFERENCES devices (name) ON DELETE CASCADE,
    boot INTEGER NOT NULL,
    number INTEGER NOT NULL,
    machine TEXT NOT NULL,
    happened_unix_s INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (device, boot, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX faults_by_time ON faults (device, happened_unix_s);

-- Answers to requests with an Idempotency-Key, so that one that is sent again does nothing again.
CREATE TABLE answers (
    who TEXT NOT NULL,
    value TEXT NOT NULL,
    request TEXT NOT NULL,
    status INTEGER NOT NULL,
    content_type TEXT,
    location TEXT,
    body BLOB NOT NULL,
    made_unix_s INTEGER NOT NULL,
    PRIMARY KEY (who, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_by_time ON answers (who, made_unix_s);

-- Gates of rollouts beside faults, as JSON: of fuel a call, of waits, of metrics.
ALTER TABLE rollouts ADD COLUMN gates TEXT NOT NULL DEFAULT '{}';

-- Whatever an owner should look at. Alarms of reports last as long as their reason.
DROP VIEW alarms;
CREATE VIEW alarms AS
SELECT 'missing' AS alarm, r.owner, r.tenant, r.device_key, r.machine, r.name, r.number, r.taken_unix_s,
    'a receipt before this one is missing' AS detail
FROM receipts r
WHERE r.number > 0 AND NOT EXISTS (
    SELECT 1 FROM receipts p
    WHERE p.device_key = r.device_key AND p.machine = r.machine AND p.number = r.number - 1
)
UNION ALL
SELECT 'fork', r.owner, r.tenant, r.device_key, r.machine, r.name, r.number, r.taken_unix_s,
    'two receipts have one number'
FROM receipts r
WHERE EXISTS (
    SELECT 1 FROM receipts o
    WHERE o.device_key = r.device_key AND o.machine = r.machine AND o.number = r.number AND o.id < r.id
)
UNION ALL
SELECT 'broken', r.owner, r.tenant, r.device_key, r.machine, r.name, r.number, r.taken_unix_s,
    'the receipt follows none of those before it'
FROM receipts r
WHERE r.number > 0 AND EXISTS (
    SELECT 1 FROM receipts p
    WHERE p.device_key = r.device_key AND p.machine = r.machine AND p.number = r.number - 1
) AND NOT EXISTS (
    SELECT 1 FROM receipts p
    WHERE p.device_key = r.device_key AND p.machine = r.machine AND p.number = r.number - 1
      AND p.digest = r.previous
)
UNION ALL
SELECT 'silent', d.owner, NULL, d.device_key, NULL, NULL, NULL, d.expires_unix_s,
    'the device missed its heartbeats'
FROM devices d
WHERE d.expires_unix_s < unixepoch() - 120
UNION ALL
SELECT 'banned', d.owner, NULL, d.device_key, NULL, m.machine, NULL, m.taken_unix_s,
    'the machine failed too often and doesn''t run'
FROM machine_reports m JOIN devices d ON d.name = m.device
WHERE m.repute = 'banned'
UNION ALL
SELECT 'faults', d.owner, NULL, d.device_key, NULL, f.machine, NULL, max(f.happened_unix_s),
    count(*) || ' in the last hour; ' || f.text
FROM faults f JOIN devices d ON d.name = f.device
WHERE f.happened_unix_s > unixepoch() - 3600
GROUP BY f.device, f.machine
UNION ALL
SELECT 'memory', d.owner, NULL, d.device_key, NULL, NULL, NULL, r.taken_unix_s,
    'the heap is ' || (r.heap_bytes_used * 100 / r.heap_bytes_max) || ' % full'
FROM reports r JOIN devices d ON d.name = r.device
WHERE r.heap_bytes_max > 0 AND r.heap_bytes_used >= r.heap_bytes_max / 10 * 9
UNION ALL
SELECT 'store', d.owner, NULL, d.device_key, NULL, NULL, NULL, r.taken_unix_s,
    'the store is ' || (r.store_bytes_used * 100 / r.store_bytes_max) || ' % full'
FROM reports r JOIN devices d ON d.name = r.device
WHERE r.store_bytes_max > 0 AND r.store_bytes_used >= r.store_bytes_max / 10 * 9
UNION ALL
SELECT 'wear', d.owner, NULL, d.device_key, NULL, NULL, NULL, r.taken_unix_s,
    'each sector of the store was erased ' || r.store_erases || ' times; flash is good for 100,000'
FROM reports r JOIN devices d ON d.name = r.device
WHERE r.store_erases >= 80000;
