-- What a step of a rollout asks is kept, and not counted: the devices of each rollout by state, and those that wait for
-- something that only their owner can mend (`held`, which is no state) by what that is.
CREATE TABLE rollout_counts (
    rollout INTEGER NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    devices INTEGER NOT NULL,
    PRIMARY KEY (rollout, state)
) STRICT, WITHOUT ROWID;
CREATE TABLE rollout_holds (
    rollout INTEGER NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
    held TEXT NOT NULL,
    devices INTEGER NOT NULL,
    PRIMARY KEY (rollout, held)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollout_holds_by_count ON rollout_holds (rollout, devices);
INSERT INTO rollout_counts (rollout, state, devices)
SELECT rollout, state, count(*) FROM rollout_devices GROUP BY rollout, state;

-- What a device waits for, if only its owner can mend it.
ALTER TABLE rollout_devices ADD COLUMN held TEXT NOT NULL DEFAULT '';
-- When to look next whether the device was heard; NULL while its silence means nothing.
ALTER TABLE rollout_devices ADD COLUMN check_unix_s INTEGER;
UPDATE rollout_devices SET check_unix_s = 0 WHERE state IN ('updating', 'soaking');
CREATE INDEX rollout_devices_by_state ON rollout_devices (rollout, state, tried_unix_s, position);
CREATE INDEX rollout_devices_to_check ON rollout_devices (rollout, check_unix_s) WHERE check_unix_s IS NOT NULL;

-- The first device that may still keep the next stage waiting: those before it don't.
ALTER TABLE rollouts ADD COLUMN awaited_from INTEGER NOT NULL DEFAULT 0;
-- Since when it can't go on until its owner does something; NULL while it can.
ALTER TABLE rollouts ADD COLUMN stuck_unix_s INTEGER;
CREATE INDEX rollouts_open ON rollouts (id) WHERE state IN ('running', 'paused', 'rolling back');

CREATE TRIGGER rollout_device_added AFTER INSERT ON rollout_devices BEGIN
    INSERT INTO rollout_counts (rollout, state, devices) VALUES (new.rollout, new.state, 1)
    ON CONFLICT (rollout, state) DO UPDATE SET devices = devices + 1;
END;
CREATE TRIGGER rollout_device_moved AFTER UPDATE OF state ON rollout_devices WHEN old.state <> new.state BEGIN
    UPDATE rollout_counts SET devices = devices - 1 WHERE rollout = old.rollout AND state = old.state;
    INSERT INTO rollout_counts (rollout, state, devices) VALUES (new.rollout, new.state, 1)
    ON CONFLICT (rollout, state) DO UPDATE SET devices = devices + 1;
END;
CREATE TRIGGER rollout_device_released AFTER UPDATE OF held ON rollout_devices
WHEN old.held <> '' AND old.held <> new.held BEGIN
    UPDATE rollout_counts SET devices = devices - 1 WHERE rollout = old.rollout AND state = 'held';
    UPDATE rollout_holds SET devices = devices - 1 WHERE rollout = old.rollout AND held = old.held;
    DELETE FROM rollout_holds WHERE rollout = old.rollout AND held = old.held AND devices <= 0;
END;
CREATE TRIGGER rollout_device_held AFTER UPDATE OF held ON rollout_devices
WHEN new.held <> '' AND old.held <> new.held BEGIN
    INSERT INTO rollout_counts (rollout, state, devices) VALUES (new.rollout, 'held', 1)
    ON CONFLICT (rollout, state) DO UPDATE SET devices = devices + 1;
    INSERT INTO rollout_holds (rollout, held, devices) VALUES (new.rollout, new.held, 1)
    ON CONFLICT (rollout, held) DO UPDATE SET devices = devices + 1;
END;
CREATE TRIGGER rollout_device_gone AFTER DELETE ON rollout_devices BEGIN
    UPDATE rollout_counts SET devices = devices - 1 WHERE rollout = old.rollout AND state = old.state;
    UPDATE rollout_counts SET devices = devices - 1 WHERE rollout = old.rollout AND state = 'held' AND old.held <> '';
    UPDATE rollout_holds SET devices = devices - 1 WHERE rollout = old.rollout AND held = old.held;
    DELETE FROM rollout_holds WHERE rollout = old.rollout AND held = old.held AND devices <= 0;
END;

-- How many devices are listed, whosever they are.
CREATE TABLE figures (
    name TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO figures (name, value) SELECT 'devices', count(*) FROM devices;
CREATE TRIGGER device_added AFTER INSERT ON devices BEGIN
    UPDATE figures SET value = value + 1 WHERE name = 'devices';
END;
CREATE TRIGGER device_gone AFTER DELETE ON devices BEGIN
    UPDATE figures SET value = value - 1 WHERE name = 'devices';
END;

-- The devices that owners revoked, by the number of the last list of each; and those that are still to be taken out of
-- the directory that runs.
CREATE TABLE revocations (
    owner TEXT PRIMARY KEY NOT NULL,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE revoked_devices (
    device_key TEXT NOT NULL,
    owner TEXT NOT NULL,
    PRIMARY KEY (device_key, owner)
) STRICT, WITHOUT ROWID;
CREATE INDEX revoked_devices_of_owner ON revoked_devices (owner);
CREATE TABLE forgotten_devices (
    name TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;
