-- The rollouts of a key that are under way are found without a look at those that are over, and a device in them without a
-- look at those that it was ever in.
CREATE INDEX rollouts_open_of_key ON rollouts (who, id) WHERE state IN ('running', 'paused', 'rolling back');
