-- Work units: where one piece of work ends and the next begins (DESIGN §4, ADR/0015). A step is a prompt with the work on
-- it, or a part of that work; a unit is a run of steps of one session. What a unit came to is summed over its steps, so that
-- late evidence moves a step by changing one number. Times are Unix milliseconds.

CREATE TABLE work_units (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,  -- a unit that is gone gives its id to no other
  session_id    INTEGER NOT NULL REFERENCES sessions(id),
  state         TEXT NOT NULL,        -- open, closed, distilled
  closed_by     TEXT,                 -- boundary, clear, session end, client gone, silence
  started_at    INTEGER NOT NULL,
  ended_at      INTEGER NOT NULL,     -- last prompt, stop or end; the steps know it to the tool use
  intent        TEXT,                 -- its first prompt that says something, or what its work is called
  outcome       TEXT,                 -- done, answered, struggling, abandoned, unknown; as far as it goes while it is open
  evidence      TEXT,                 -- what the outcome was told by
  distilled_seq INTEGER,              -- the last tool use that was distilled: what came after is its addendum
  rules_due     INTEGER NOT NULL DEFAULT 1,  -- something was said in it, or is said of it, since rules last looked
  rules_mark    TEXT,                 -- its steps as rules last saw them: how many, last tool use, last prompt
  rules_seq     INTEGER,              -- the last tool use that rules have seen
  leased_until  INTEGER               -- a process is distilling it; one that was killed loses it then
) STRICT;

CREATE INDEX work_units_by_session ON work_units(session_id, id);

-- No foreign key to the unit: a unit that late evidence empties goes, and SQLite would look through all steps for it.
CREATE TABLE steps (
  id           INTEGER PRIMARY KEY,
  session_id   INTEGER NOT NULL REFERENCES sessions(id),
  work_unit_id INTEGER NOT NULL,
  prompt_id    INTEGER,               -- NULL: before any prompt that was recorded
  started_at   INTEGER NOT NULL,
  ended_at     INTEGER NOT NULL,
  first_seq    INTEGER,               -- of its tool uses
  last_seq     INTEGER,
  tool_uses    INTEGER NOT NULL DEFAULT 0,
  failures     INTEGER NOT NULL DEFAULT 0,
  settled      INTEGER NOT NULL DEFAULT 0,  -- whether a unit begins here is not asked again
  sketch       BLOB NOT NULL          -- what the detector knows of it: hashes and counts (units/bytes.rs)
) STRICT;

-- A session's last steps; the steps of a prompt.
CREATE INDEX steps_by_session ON steps(session_id, prompt_id);

CREATE TABLE step_files (
  step_id INTEGER NOT NULL,
  path    TEXT NOT NULL,
  reads   INTEGER NOT NULL,
  edits   INTEGER NOT NULL,
  PRIMARY KEY (step_id, path)
) STRICT, WITHOUT ROWID;

-- Where a unit begins, or was once thought to.
CREATE TABLE boundaries (
  step_id    INTEGER PRIMARY KEY,
  reason     TEXT NOT NULL,
  score      REAL,                    -- log-odds; NULL where nothing was weighed (a session's start, /clear)
  signals    TEXT,                    -- JSON {name: {value, weight, adds: what it adds to the score}}
  at_prompt  INTEGER NOT NULL,        -- decided when the prompt came, before its work was known
  standing   INTEGER NOT NULL,        -- 0: late evidence took it back
  history    TEXT NOT NULL            -- JSON [{at, what, score}]: decided, moved, taken back
) STRICT;

CREATE VIEW work_unit_files AS
  SELECT s.work_unit_id, f.path, sum(f.reads) AS reads, sum(f.edits) AS edits
  FROM steps s JOIN step_files f ON f.step_id = s.id GROUP BY s.work_unit_id, f.path;

-- The step, and by it the unit, that a tool use belongs to. NULL for those of before.
ALTER TABLE tool_uses ADD COLUMN step_id INTEGER;
