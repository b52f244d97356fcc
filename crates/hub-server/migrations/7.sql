-- What a key has stored is summed from indexes alone, however much it is.
CREATE INDEX blobs_by_size ON blobs (who, size);
ALTER TABLE manifests ADD COLUMN size INTEGER NOT NULL
    GENERATED ALWAYS AS (length(bytes) + length(CAST(annotations AS BLOB))) VIRTUAL;
CREATE INDEX manifests_by_size ON manifests (who, size);

-- When a key's blobs that no manifest names were last looked for, which takes a look at each.
CREATE TABLE sweeps (
    who TEXT PRIMARY KEY NOT NULL,
    swept_unix_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
