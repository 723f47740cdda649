-- Memories: what is worth remembering of the work, drawn from it by rules, by a model or by hand (DESIGN §3, ADR/0019).
-- What is joined on is a row, not a JSON array. Times are Unix milliseconds.

-- Which kind of work a project or a session is. A row is never changed: a session keeps the domain that it began with.
CREATE TABLE domains (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  config     TEXT,                    -- TOML of a domain of the user's own; NULL: the built-in one of that name
  created_at INTEGER NOT NULL
) STRICT;

ALTER TABLE projects ADD COLUMN domain_id INTEGER;
ALTER TABLE sessions ADD COLUMN domain_id INTEGER;

CREATE TABLE memories (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid             TEXT NOT NULL UNIQUE,
  kind             TEXT NOT NULL,     -- observation, summary, decision, lesson, task
  type             TEXT,              -- of the domain for an observation, else of the kind's own list
  title            TEXT NOT NULL,     -- one line
  subtitle         TEXT,
  body             TEXT,              -- the narrative
  content          TEXT NOT NULL,     -- JSON: facts, and the fields of the kind and of the domain
  project_id       INTEGER,
  session_id       INTEGER,
  work_unit_id     INTEGER,
  prompt_number    INTEGER,           -- of the prompt in its session that it belongs to
  sources          TEXT NOT NULL,     -- JSON ["t12", "p3"]: tool uses and messages that it is drawn from
  platform         TEXT,
  provenance       TEXT NOT NULL,     -- user, agent, tool, team: whose words it is made of
  made_by          TEXT NOT NULL,     -- rules, hand, or a model's name
  rule_key         TEXT,              -- what its rule knows it by, so that it is made once: 'commit:t12'
  discovery_tokens INTEGER,           -- what finding it out cost (ADR/0021)
  tokens_estimated INTEGER NOT NULL DEFAULT 0,
  created_at       INTEGER NOT NULL,  -- when what it tells of happened
  pinned           INTEGER NOT NULL DEFAULT 0,
  by_hand          INTEGER NOT NULL DEFAULT 0,  -- a person made or changed it: no rule and no model touches it again
  superseded_by    INTEGER
) STRICT;

-- Those of a session; a rule finds its own again.
CREATE UNIQUE INDEX memories_by_rule ON memories(session_id, rule_key);
-- The newest of a project.
CREATE INDEX memories_by_project ON memories(project_id, created_at);

CREATE TABLE memory_files (
  memory_id INTEGER NOT NULL,
  path      TEXT NOT NULL,            -- relative to the worktree's root
  modified  INTEGER NOT NULL,         -- 0: read
  hash      TEXT,                     -- SHA-256 of its content after the last edit, first 16 bytes in hex
  PRIMARY KEY (memory_id, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_files_by_path ON memory_files(path);

CREATE TABLE memory_concepts (
  memory_id INTEGER NOT NULL,
  concept   TEXT NOT NULL,
  PRIMARY KEY (memory_id, concept)
) STRICT, WITHOUT ROWID;

-- What a person forgot and rules would make again from what still stands.
CREATE TABLE dismissed (
  session_id INTEGER NOT NULL,
  rule_key   TEXT NOT NULL,
  PRIMARY KEY (session_id, rule_key)
) STRICT, WITHOUT ROWID;
