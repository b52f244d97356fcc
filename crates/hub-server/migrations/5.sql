-- Rollouts that devices carry out themselves, by their owner's mandate.
ALTER TABLE rollouts ADD COLUMN mandate BLOB;
-- When the stage in force began.
ALTER TABLE rollouts ADD COLUMN stage_unix_s INTEGER NOT NULL DEFAULT 0;
-- The labels that select the devices, as `key=value key=value`; NULL if the plan names them.
ALTER TABLE rollouts ADD COLUMN labels TEXT;
CREATE INDEX rollouts_by_labels ON rollouts (who, id) WHERE labels IS NOT NULL AND state = 'running';
CREATE INDEX rollout_devices_by_name ON rollout_devices (device);
-- What a device says of itself, in the same form; NULL if it said nothing yet.
ALTER TABLE devices ADD COLUMN labels TEXT;
