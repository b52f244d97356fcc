-- What is forgotten, and when. The steady clock goes on only while the hub hears its devices: it begins when the hub heard the last
-- one. `wall` is what the database's clock showed when that was stored last.
CREATE TABLE clocks (
    name TEXT COLLATE "C" PRIMARY KEY,
    unix_s BIGINT NOT NULL
);
INSERT INTO clocks (name, unix_s)
SELECT c.name, max(d.heard_unix_s) FROM devices d, (VALUES ('steady'), ('wall')) c (name) GROUP BY c.name;

-- The steady clock when a device was heard last.
ALTER TABLE devices ADD COLUMN steady_unix_s BIGINT NOT NULL DEFAULT 0;
UPDATE devices SET steady_unix_s = (SELECT max(heard_unix_s) FROM devices);

-- A device that was forgotten has an empty record, and keeps what it reported: its name is free, and it isn't counted.
CREATE FUNCTION recount_device() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE figures SET value = value + CASE WHEN length(new.kept) > 0 THEN 1 ELSE -1 END WHERE name = 'devices';
    RETURN NULL;
END $$;
DROP TRIGGER device_counted ON devices;
CREATE TRIGGER device_added AFTER INSERT ON devices FOR EACH ROW
WHEN (length(new.kept) > 0) EXECUTE FUNCTION count_devices();
CREATE TRIGGER device_gone AFTER DELETE ON devices FOR EACH ROW
WHEN (length(old.kept) > 0) EXECUTE FUNCTION count_devices();
CREATE TRIGGER device_forgotten_or_back AFTER UPDATE OF kept ON devices FOR EACH ROW
WHEN ((length(old.kept) = 0) <> (length(new.kept) = 0)) EXECUTE FUNCTION recount_device();
