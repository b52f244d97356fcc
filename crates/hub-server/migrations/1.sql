-- What the directory knows: the hub's identity, devices with their last record, their machines.
CREATE TABLE identity (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seed BLOB NOT NULL CHECK (length(seed) = 32)
) STRICT;

CREATE TABLE devices (
    name TEXT PRIMARY KEY NOT NULL,
    owner TEXT NOT NULL,
    device_key TEXT NOT NULL,
    machine_key TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    machines INTEGER NOT NULL,
    first_unix_s INTEGER NOT NULL,
    heard_unix_s INTEGER NOT NULL,
    expires_unix_s INTEGER NOT NULL,
    kept BLOB NOT NULL
) STRICT;
CREATE INDEX devices_of_owner ON devices (owner, name);
CREATE INDEX devices_by_machine_key ON devices (machine_key);

CREATE TABLE machines (
    device TEXT NOT NULL REFERENCES devices (name) ON DELETE CASCADE,
    name TEXT NOT NULL,
    machine TEXT NOT NULL,
    machine_key TEXT NOT NULL,
    PRIMARY KEY (device, name)
) STRICT, WITHOUT ROWID;

-- Who did what. Each row's hash covers the row before it.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    unix_s INTEGER NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    owner TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE INDEX audit_of_owner ON audit (owner, number);
