-- Passes that are over are found without a look at those that aren't.
CREATE INDEX passes_by_end ON passes (expires_unix_s);
