-- What is forgotten, and when. The steady clock goes on only while the hub hears its devices: it begins when the hub heard the last
-- one. `wall` is what the hub's own clock showed when that was stored last.
CREATE TABLE clocks (
    name TEXT PRIMARY KEY NOT NULL,
    unix_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO clocks (name, unix_s)
SELECT c.name, max(d.heard_unix_s) FROM devices d, (SELECT 'steady' AS name UNION ALL SELECT 'wall') c GROUP BY c.name;

-- The steady clock when a device was heard last.
ALTER TABLE devices ADD COLUMN steady_unix_s INTEGER NOT NULL DEFAULT 0;
UPDATE devices SET steady_unix_s = (SELECT max(heard_unix_s) FROM devices);

-- A device that was forgotten has an empty record, and keeps what it reported: its name is free, and it isn't counted.
DROP TRIGGER device_added;
DROP TRIGGER device_gone;
CREATE TRIGGER device_added AFTER INSERT ON devices WHEN length(new.kept) > 0 BEGIN
    UPDATE figures SET value = value + 1 WHERE name = 'devices';
END;
CREATE TRIGGER device_gone AFTER DELETE ON devices WHEN length(old.kept) > 0 BEGIN
    UPDATE figures SET value = value - 1 WHERE name = 'devices';
END;
CREATE TRIGGER device_forgotten AFTER UPDATE OF kept ON devices WHEN length(old.kept) > 0 AND length(new.kept) = 0 BEGIN
    UPDATE figures SET value = value - 1 WHERE name = 'devices';
END;
CREATE TRIGGER device_back AFTER UPDATE OF kept ON devices WHEN length(old.kept) = 0 AND length(new.kept) > 0 BEGIN
    UPDATE figures SET value = value + 1 WHERE name = 'devices';
END;
