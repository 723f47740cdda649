-- What a session's agent was given: nothing is said twice, and a person can see whether it was of use (ADR/0031).
CREATE TABLE told (
  session_id INTEGER NOT NULL,
  item       TEXT NOT NULL,           -- as `nmem show` takes it: m12, u3
  moment     TEXT NOT NULL,           -- start, compaction, prompt, file
  at         INTEGER NOT NULL,
  bytes      INTEGER NOT NULL,        -- of the whole text, with the first of its items; 0 with the others
  PRIMARY KEY (session_id, item, moment)
) STRICT, WITHOUT ROWID;
