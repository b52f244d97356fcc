-- Passes have scopes; packages are kept as a registry of the OCI keeps them, each key's apart.
CREATE TABLE passes_with_scopes (
    id INTEGER PRIMARY KEY,
    secret_hash BLOB NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('code', 'page', 'token', 'session')),
    who TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    made_unix_s INTEGER NOT NULL,
    expires_unix_s INTEGER NOT NULL
) STRICT;
INSERT INTO passes_with_scopes (id, secret_hash, kind, who, name, scopes, made_unix_s, expires_unix_s)
SELECT id, secret_hash, kind, who, name,
    CASE kind WHEN 'token' THEN 'read receipts passes' ELSE 'read receipts packages rollouts passes' END,
    made_unix_s, expires_unix_s
FROM passes;
DROP TABLE passes;
ALTER TABLE passes_with_scopes RENAME TO passes;
CREATE INDEX passes_of_key ON passes (who, kind);

CREATE TABLE blobs (
    who TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    taken_unix_s INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (who, digest)
) STRICT;

CREATE TABLE uploads (
    id TEXT PRIMARY KEY NOT NULL,
    who TEXT NOT NULL,
    repository TEXT NOT NULL,
    began_unix_s INTEGER NOT NULL
) STRICT;
CREATE INDEX uploads_of_key ON uploads (who);
CREATE TABLE upload_parts (
    upload TEXT NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
    offset INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (upload, offset)
) STRICT;

CREATE TABLE manifests (
    id INTEGER PRIMARY KEY,
    who TEXT NOT NULL,
    repository TEXT NOT NULL,
    digest TEXT NOT NULL,
    media_type TEXT NOT NULL,
    artifact_type TEXT NOT NULL,
    subject TEXT,
    annotations TEXT NOT NULL,
    bytes BLOB NOT NULL,
    pushed_unix_s INTEGER NOT NULL,
    -- Of a package: what its own signed description says.
    package TEXT,
    package_digest TEXT,
    version TEXT,
    tenant TEXT,
    package_bytes INTEGER,
    UNIQUE (who, repository, digest)
) STRICT;
CREATE INDEX manifests_of_subject ON manifests (who, repository, subject);
CREATE INDEX manifests_of_package ON manifests (who, package_digest);
CREATE TABLE manifest_blobs (
    manifest INTEGER NOT NULL REFERENCES manifests (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    PRIMARY KEY (manifest, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX manifest_blobs_by_digest ON manifest_blobs (digest);
CREATE TABLE tags (
    who TEXT NOT NULL,
    repository TEXT NOT NULL,
    tag TEXT NOT NULL,
    manifest INTEGER NOT NULL REFERENCES manifests (id) ON DELETE CASCADE,
    PRIMARY KEY (who, repository, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_of_manifest ON tags (manifest);
