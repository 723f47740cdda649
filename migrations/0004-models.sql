-- What a language model is asked, and what that costs (DESIGN §2, §6; ADR/0023). Times are Unix milliseconds.

-- Calls of a unit that were answered: two at most. When the last one was, and until when a process is asking: apart from the
-- lease of rules, which wait for no model.
ALTER TABLE work_units ADD COLUMN model_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE work_units ADD COLUMN model_at INTEGER;
ALTER TABLE work_units ADD COLUMN model_until INTEGER;

CREATE TABLE spend (
  id            INTEGER PRIMARY KEY,
  at            INTEGER NOT NULL,
  work_unit_id  INTEGER,
  provider      TEXT NOT NULL,
  model         TEXT NOT NULL,
  purpose       TEXT NOT NULL,        -- checkpoint, closing, redo
  input_tokens  INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  estimated     INTEGER NOT NULL,     -- the provider did not count them
  took          INTEGER NOT NULL,     -- milliseconds
  outcome       TEXT NOT NULL         -- ok, or why there was no answer: timeout, http 429, …
) STRICT;

CREATE INDEX spend_by_time ON spend(at);
