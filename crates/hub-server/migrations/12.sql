-- People of a key, each with a role. What is signed in says whose it is and where; the audit log names the person.
CREATE TABLE people (
    id INTEGER PRIMARY KEY,
    -- The key whose rows they see.
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'owner')),
    -- The person who invited them; empty if it was the key itself.
    invited_by TEXT NOT NULL,
    invited_unix_s INTEGER NOT NULL,
    -- The invitation that is open, as a hash, and its end; NULL once it was opened.
    code_hash BLOB UNIQUE CHECK (length(code_hash) = 32),
    code_ends_unix_s INTEGER,
    -- The key of their own that they sign in with; NULL until the invitation was opened.
    person_key TEXT UNIQUE,
    joined_unix_s INTEGER,
    UNIQUE (owner, name)
) STRICT;

-- NULL where the key itself is signed in.
ALTER TABLE passes ADD COLUMN person INTEGER REFERENCES people (id) ON DELETE CASCADE;
-- The beginning of the hour of its last use; NULL for those of earlier versions.
ALTER TABLE passes ADD COLUMN seen_unix_s INTEGER;
ALTER TABLE passes ADD COLUMN from_network TEXT NOT NULL DEFAULT '';
ALTER TABLE passes ADD COLUMN agent TEXT NOT NULL DEFAULT '';
DROP INDEX passes_of_key;
CREATE INDEX passes_of_key ON passes (who, person, kind);
CREATE INDEX passes_of_person ON passes (person, kind);

-- The person who acted; `who` stays the key. Empty where the key itself did, and in all entries of before.
ALTER TABLE audit ADD COLUMN "by" TEXT NOT NULL DEFAULT '';
