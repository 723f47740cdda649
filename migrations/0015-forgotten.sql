-- What was forgotten: keyed hashes of the identities of events and sessions, so that an import leaves them out. No text.
CREATE TABLE forgotten (
  hash BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO forgotten(hash) SELECT unhex(substr(key, 11)) FROM meta WHERE key LIKE 'forgotten:%';
DELETE FROM meta WHERE key LIKE 'forgotten:%';

-- The last event that an import stored. No model is asked about units that ended by then, unless a person orders it.
ALTER TABLE sessions ADD COLUMN imported_until INTEGER;

-- Since when pauses that have ended are kept. An import asks about sessions that hooks missed before.
INSERT INTO meta(key, value)
SELECT 'pauses_kept_since', CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE EXISTS (SELECT 1 FROM sessions);
