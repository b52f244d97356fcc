-- Alarms by the rules of the operator's file: each of one rule on one device, with its state.
CREATE TABLE rule_alarms (
    id INTEGER PRIMARY KEY,
    rule TEXT NOT NULL,
    -- The rule's condition as it was then, and what was seen.
    condition TEXT NOT NULL,
    owner TEXT NOT NULL,
    device TEXT NOT NULL,
    detail TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('raised', 'acknowledged', 'over')),
    raised_unix_s INTEGER NOT NULL,
    acknowledged_unix_s INTEGER,
    acknowledged_by TEXT,
    acknowledged_word TEXT,
    over_unix_s INTEGER
) STRICT;
CREATE UNIQUE INDEX rule_alarms_open ON rule_alarms (rule, device) WHERE state <> 'over';
CREATE INDEX rule_alarms_of_owner ON rule_alarms (owner, id);
CREATE INDEX rule_alarms_over ON rule_alarms (over_unix_s) WHERE state = 'over';

-- What is to be told of alarms, until a server took it.
CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY,
    -- The server's name in the file, which has its address and secret.
    target TEXT NOT NULL,
    message TEXT NOT NULL,
    owner TEXT NOT NULL,
    body TEXT NOT NULL,
    tries INTEGER NOT NULL,
    next_unix_s INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_of_target ON webhooks (target, id);
CREATE INDEX webhooks_due ON webhooks (next_unix_s, id);
