-- The package that a fault is of, and its version; NULL in faults of earlier versions of the hub, and in a device's own.
ALTER TABLE faults ADD COLUMN package TEXT;
ALTER TABLE faults ADD COLUMN version TEXT;
-- The owner of its device: a device that changes its owner loses its faults.
ALTER TABLE faults ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE faults SET owner = coalesce((SELECT d.owner FROM devices d WHERE d.name = faults.device), '');
-- Issues are made of an owner's newest faults, however many others have.
CREATE INDEX faults_of_owner ON faults (owner, happened_unix_s);
