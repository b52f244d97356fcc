-- Rollouts: each a state machine; what a step decided is written before anybody is told.
CREATE TABLE rollouts (
    id INTEGER PRIMARY KEY,
    who TEXT NOT NULL,
    machine TEXT NOT NULL,
    package_digest TEXT NOT NULL,
    version TEXT NOT NULL,
    -- What the owner signed.
    plan TEXT NOT NULL,
    signature TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'rolling back', 'done', 'rolled back', 'aborted', 'ended')),
    reason TEXT NOT NULL,
    -- How many devices each stage reaches in all, as a JSON list.
    stages TEXT NOT NULL,
    stage INTEGER NOT NULL,
    soak_s INTEGER NOT NULL,
    faults_max INTEGER NOT NULL,
    failures_max INTEGER NOT NULL,
    on_failure TEXT NOT NULL CHECK (on_failure IN ('roll back', 'pause')),
    began_unix_s INTEGER NOT NULL,
    ends_unix_s INTEGER NOT NULL
) STRICT;
CREATE INDEX rollouts_of_key ON rollouts (who, id);

CREATE TABLE rollout_devices (
    rollout INTEGER NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    device TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'updating', 'soaking', 'healthy', 'failed', 'reverting', 'reverted')),
    reason TEXT NOT NULL,
    -- The package that the machine had before.
    was TEXT,
    faults_before INTEGER NOT NULL,
    faults INTEGER NOT NULL,
    updated_unix_s INTEGER,
    tried_unix_s INTEGER,
    PRIMARY KEY (rollout, position),
    UNIQUE (rollout, device)
) STRICT, WITHOUT ROWID;
