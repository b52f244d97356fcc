-- The package that a fault is of, and its version; NULL in faults of earlier versions of the hub, and in a device's own.
ALTER TABLE faults ADD COLUMN package TEXT COLLATE "C";
ALTER TABLE faults ADD COLUMN version TEXT COLLATE "C";
-- Issues are made of the newest faults of all devices.
CREATE INDEX faults_by_moment ON faults (happened_unix_s);
