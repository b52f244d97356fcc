-- The package that a fault is of, and its version; NULL in faults of earlier versions of the hub, and in a device's own.
ALTER TABLE faults ADD COLUMN package TEXT COLLATE "C";
ALTER TABLE faults ADD COLUMN version TEXT COLLATE "C";
-- The owner of its device: a device that changes its owner loses its faults. Empty, and so in no issue, in those that a process of
-- the version before takes beside this one.
ALTER TABLE faults ADD COLUMN owner TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE faults SET owner = d.owner FROM devices d WHERE d.name = faults.device;
-- Issues are made of an owner's newest faults, however many others have.
CREATE INDEX faults_of_owner ON faults (owner, happened_unix_s);
