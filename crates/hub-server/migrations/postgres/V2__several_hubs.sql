-- What several processes that run one hub know of each other.

-- Who does what is to be done once. The number goes up with each new holder. A holder renews its lease in the transaction
-- in which it acts, so that one that lost it changes nothing any more.
CREATE TABLE leases (
    name TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    ends_at TIMESTAMPTZ NOT NULL
);

-- The transaction that changed or deleted each device last, and the process that did so for its directory. Numbers of
-- transactions don't order their ends: whoever follows the changes reads from the oldest one on that was under way when
-- it read last.
CREATE TABLE device_changes (
    name TEXT COLLATE "C" PRIMARY KEY,
    xact BIGINT NOT NULL,
    process TEXT COLLATE "C" NOT NULL,
    changed_unix_s BIGINT NOT NULL
);
CREATE INDEX device_changes_by_xact ON device_changes (xact);

CREATE FUNCTION note_device() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO device_changes AS c (name, xact, process, changed_unix_s)
    VALUES (
        CASE TG_OP WHEN 'DELETE' THEN old.name ELSE new.name END,
        CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT),
        coalesce(current_setting('tenure.process', true), ''),
        unixepoch()
    )
    ON CONFLICT (name) DO UPDATE SET xact = excluded.xact, process = excluded.process,
        changed_unix_s = excluded.changed_unix_s;
    RETURN NULL;
END $$;
CREATE TRIGGER device_noted AFTER INSERT OR DELETE OR UPDATE OF kept ON devices
FOR EACH ROW EXECUTE FUNCTION note_device();

-- A directory hears of devices that are gone by their changes.
DELETE FROM forgotten_devices;
