-- The schema of nmem.db, version 21. Times are Unix milliseconds, booleans are 0 and 1. Every object costs 3 µs at each
-- start of a hook, so each must serve a query. Rules for changes: src/store/migrate.rs.

-- Projects. `share`: with whom memories are shared: team, mine (one person's machines), none; NULL: as the folder rules
-- say. `about`: facts found in the repository, JSON {type, languages, frameworks, looked_at}.
CREATE TABLE projects (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  repo_url   TEXT,                   -- without credentials
  root       TEXT NOT NULL,          -- its last known worktree
  created_at INTEGER NOT NULL,
  domain_id INTEGER,
  about TEXT,
  share TEXT
) STRICT;

-- Identities of a project: name:<given by hand>, repo:<normalised remote>, root:<first commit>, git:<common folder>,
-- dir:<folder>, and under:<folder> for a part that was split off.
CREATE TABLE project_keys (
  key        TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES projects(id)
) STRICT, WITHOUT ROWID;

-- Conversations of an agent. `task_files`: files named in the tasks of the current turn's subagents, JSON [[time, path]].
-- `imported_until`: time of the last event that an import stored; no model is asked about units that ended by then,
-- unless a person orders it. `imported_at`: when the last import stored events; retention counts from it.
CREATE TABLE sessions (
  id                 INTEGER PRIMARY KEY,
  project_id         INTEGER REFERENCES projects(id),  -- NULL in the home folder and in /
  platform           TEXT NOT NULL,
  agent_session_id   TEXT NOT NULL,
  started_at         INTEGER NOT NULL,
  active_at          INTEGER NOT NULL,  -- last start, prompt, stop or end; not each tool use, which would cost an index write
  ended_at           INTEGER,
  end_reason         TEXT,
  start_source       TEXT,              -- last entry: startup, resume, clear, compact, fork
  compactions        INTEGER NOT NULL DEFAULT 0,
  muted              INTEGER NOT NULL DEFAULT 0,  -- 1: the current turn is not recorded
  muted_prompt       TEXT,              -- the platform's id of the last such turn, whose subagents may report late
  cwd                TEXT,
  client_pid         INTEGER,
  client_started     INTEGER,           -- process start in clock ticks since boot
  start_branch       TEXT,
  start_head         TEXT,
  end_branch         TEXT,
  end_head           TEXT,
  prompts            INTEGER NOT NULL DEFAULT 0,
  tool_uses          INTEGER NOT NULL DEFAULT 0,
  failures           INTEGER NOT NULL DEFAULT 0,
  kinds              TEXT NOT NULL DEFAULT '{}',  -- JSON {kind: count}
  last_prompt_id     INTEGER,
  tasks              TEXT,              -- JSON [{id, subject, status}]: the agent's current task list
  transcript_offset  INTEGER NOT NULL DEFAULT 0,
  turn_offset        INTEGER,           -- start of the current turn in the transcript
  transcript_message TEXT,              -- last message counted; more of its blocks may follow
  model              TEXT,
  stop_reason        TEXT,
  input_tokens       INTEGER,
  output_tokens      INTEGER,
  cache_read_tokens  INTEGER,
  cache_write_tokens INTEGER,
  context_tokens     INTEGER,
  cost_usd           REAL,
  domain_id          INTEGER,
  task_files         TEXT,
  imported_until     INTEGER,
  imported_at        INTEGER,
  UNIQUE (agent_session_id, platform)
) STRICT;

-- The last sessions of a project.
CREATE INDEX sessions_by_project ON sessions(project_id, active_at);

-- Messages of the user and the agent.
CREATE TABLE prompts (
  id                 INTEGER PRIMARY KEY,
  session_id         INTEGER NOT NULL REFERENCES sessions(id),
  number             INTEGER NOT NULL,  -- number of the user's prompt in its session; an agent's text has that of the prompt it answers
  source             TEXT NOT NULL,     -- user, agent
  kind               TEXT NOT NULL,     -- prompt, closing, thinking
  platform_prompt_id TEXT,
  agent_id           TEXT,              -- the subagent whose closing text it is
  text               TEXT NOT NULL,
  received_at        INTEGER NOT NULL,
  input_tokens       INTEGER,           -- cost of the turn, with its closing text
  output_tokens      INTEGER,
  cache_read_tokens  INTEGER,
  cache_write_tokens INTEGER,
  project_id         INTEGER            -- of the unit, where it is not the session's project
) STRICT;
CREATE INDEX prompts_by_session ON prompts(session_id, number);
CREATE UNIQUE INDEX prompts_once ON prompts(session_id, platform_prompt_id) WHERE source = 'user' AND platform_prompt_id IS NOT NULL;

-- Tool calls of the agent. `step_id`: the step, and through it the unit, that the call belongs to.
CREATE TABLE tool_uses (
  id           INTEGER PRIMARY KEY,
  session_id   INTEGER NOT NULL REFERENCES sessions(id),
  seq          INTEGER NOT NULL,        -- from 1, without gaps in a session
  prompt_id    INTEGER REFERENCES prompts(id),
  tool_use_id  TEXT,
  received_at  INTEGER NOT NULL,
  cwd          TEXT,                    -- only where it is not the session's
  tool_name    TEXT NOT NULL,
  kind         TEXT NOT NULL,           -- read, search, edit, write, command, fetch, delegate, mcp, other
  command_kind TEXT,                    -- build, test, lint, git, commit, install, other
  path         TEXT,                    -- relative to the worktree's root
  content      TEXT,                    -- command, pattern or path
  input        TEXT,                    -- excerpt
  outcome      TEXT,                    -- excerpt
  succeeded    INTEGER,                 -- NULL: unknown
  source_event TEXT NOT NULL,
  metadata     TEXT,                    -- JSON, see src/model/event.rs
  agent_id     TEXT    GENERATED ALWAYS AS (metadata ->> 'agent_id') VIRTUAL,
  duration_ms  INTEGER GENERATED ALWAYS AS (metadata ->> 'duration_ms') VIRTUAL,
  step_id INTEGER,
  project_id INTEGER                    -- of the repository that it is in, where it is not the session's project
) STRICT;
CREATE UNIQUE INDEX tool_uses_once ON tool_uses(session_id, tool_use_id) WHERE tool_use_id IS NOT NULL;
CREATE UNIQUE INDEX tool_uses_by_seq ON tool_uses(session_id, seq);

-- Full-text indexes (ADR/0028). A query looks into all segments of an index; a session end merges some (ADR/0007).
CREATE VIRTUAL TABLE passage_index USING fts5(text, scope, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE tool_index USING fts5(command, description, path, error, scope, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");

-- Texts whose passages are to be indexed, at the end of a turn or before a search: row * 4 + kind.
CREATE TABLE waiting (
  text INTEGER PRIMARY KEY
) STRICT;

-- Versions and marks of the program, by name. `drained:<uuid>`: a spooled event that was stored, so that a line that is
-- drained twice is stored once.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value
) WITHOUT ROWID;

-- Work units (ADR/0015): runs of steps of one session. `title`: the result in one line. `rules_version`: version of the
-- rules that last distilled it. `model_calls`: answered calls, two at most; `model_until`: lease of the process that is
-- asking, separate from the lease of the rules. `project_id`: the repository of its work, where it is not the session's
-- project.
CREATE TABLE work_units (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,  -- ids are never reused
  session_id    INTEGER NOT NULL REFERENCES sessions(id),
  state         TEXT NOT NULL,        -- open, closed, distilled
  closed_by     TEXT,                 -- boundary, clear, session end, client gone, silence
  started_at    INTEGER NOT NULL,
  ended_at      INTEGER NOT NULL,     -- last prompt, stop or end
  intent        TEXT,                 -- its first meaningful prompt, or a name for its work
  outcome       TEXT,                 -- done, answered, struggling, abandoned, unknown; provisional while open
  evidence      TEXT,                 -- reason for the outcome
  distilled_seq INTEGER,              -- the last tool use that was distilled
  rules_due     INTEGER NOT NULL DEFAULT 1,  -- it has changed since rules last distilled it
  rules_mark    TEXT,                 -- its steps when rules last distilled it: number, last tool use, last prompt
  rules_seq     INTEGER,              -- the last tool use that rules have read
  leased_until  INTEGER,              -- end of the lease of the process that is distilling it
  model_calls INTEGER NOT NULL DEFAULT 0,
  model_at INTEGER,
  model_until INTEGER,
  title TEXT,
  rules_version INTEGER,
  project_id INTEGER
) STRICT;
CREATE INDEX work_units_by_session ON work_units(session_id, id);
CREATE INDEX work_units_elsewhere ON work_units(project_id) WHERE project_id IS NOT NULL;

-- A step is a prompt with the work on it, or a part of that work. It has no foreign key to its unit: a unit that loses all
-- steps is deleted, and SQLite would search all steps for it.
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
  settled      INTEGER NOT NULL DEFAULT 0,  -- 1: the boundary decision here is final
  features     BLOB NOT NULL,         -- input of segmentation: hashes and counts (src/segmentation/step.rs)
  boundary     TEXT                   -- JSON of a start of a unit, also of one that later evidence retracted; see below
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

-- Kinds of work. A row never changes: a session keeps the domain that it started with.
CREATE TABLE domains (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  config     TEXT,                    -- TOML of a domain of the user's own; NULL: the built-in one of that name
  created_at INTEGER NOT NULL
) STRICT;

-- Memories of every kind (ADR/0035). `vector_block`: block with its vector; NULL: none yet, or its text has changed.
CREATE TABLE memories (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid             TEXT NOT NULL UNIQUE,
  kind             TEXT NOT NULL,     -- observation, summary, decision, lesson, tried, open, task
  type             TEXT,              -- of the domain for an observation, else of the kind's own list
  title            TEXT NOT NULL,     -- one line
  subtitle         TEXT,
  body             TEXT,              -- the narrative
  content          TEXT NOT NULL,     -- JSON: facts, and the fields of the kind and of the domain
  project_id       INTEGER,
  session_id       INTEGER,
  work_unit_id     INTEGER,
  prompt_number    INTEGER,           -- of the prompt in its session that it belongs to
  sources          TEXT NOT NULL,     -- JSON ["t12", "p3"]: tool uses and messages
  platform         TEXT,
  provenance       TEXT NOT NULL,     -- user, agent, tool, team: source of its words
  made_by          TEXT NOT NULL,     -- rules, hand, or a model's name
  rule_key         TEXT,              -- key by which its rule finds it again: 'commit:t12'
  discovery_tokens INTEGER,           -- cost of finding it out (ADR/0021)
  tokens_estimated INTEGER NOT NULL DEFAULT 0,
  created_at       INTEGER NOT NULL,  -- time of the events
  pinned           INTEGER NOT NULL DEFAULT 0,
  by_hand          INTEGER NOT NULL DEFAULT 0,  -- 1: a person made or changed it, and no rule or model may change it
  superseded_by    INTEGER,
  vector_block INTEGER,
  concepts         TEXT               -- JSON list in order; NULL: none
) STRICT;

-- Memories of a session; a rule finds its own again.
CREATE UNIQUE INDEX memories_by_rule ON memories(session_id, rule_key);

-- The newest memories of a project.
CREATE INDEX memories_by_project ON memories(project_id, created_at);

CREATE TABLE memory_files (
  memory_id INTEGER NOT NULL,
  path      TEXT NOT NULL,            -- relative to the worktree's root
  modified  INTEGER NOT NULL,         -- 0: read
  hash      TEXT,                     -- SHA-256 of its content after the last edit, first 16 bytes in hex
  PRIMARY KEY (memory_id, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_files_by_path ON memory_files(path);

-- Memories that a person forgot and that rules would create again.
CREATE TABLE dismissed (
  session_id INTEGER NOT NULL,
  rule_key   TEXT NOT NULL,
  PRIMARY KEY (session_id, rule_key)
) STRICT, WITHOUT ROWID;

-- Calls of models and their cost (ADR/0023).
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

-- Words and files of units, for recall (ADR/0027). A word counts three times at most. `files` has a word for each file:
-- `p…` edited, `r…` read, then a hash of the path.
CREATE VIRTUAL TABLE unit_index USING fts5(words, files, scope, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");

-- Commits of a session.
CREATE INDEX tool_uses_commits ON tool_uses(session_id, seq) WHERE command_kind = 'commit';

-- Every session start reads the pinned memories and the open ends of a project, which are few of its memories.
CREATE INDEX memories_at_start ON memories(project_id, created_at) WHERE pinned OR kind = 'open';

-- Items that a session's agent has received, and the text (ADR/0031). `bytes` and `text` belong to the whole text and are
-- stored with its first item; the others have 0 and NULL. `text` is also NULL where part of it may have been forgotten.
CREATE TABLE injections (
  session_id INTEGER NOT NULL,
  item       TEXT NOT NULL,           -- as `nmem show` takes it: m12, u3
  point      TEXT NOT NULL,           -- start, compaction, prompt, file
  at         INTEGER NOT NULL,
  bytes      INTEGER NOT NULL,
  text       TEXT,
  PRIMARY KEY (session_id, item, point)
) STRICT, WITHOUT ROWID;

-- Embeddings of one project and one model, packed (ADR/0033).
CREATE TABLE vectors (
  id         INTEGER PRIMARY KEY,
  project_id INTEGER NOT NULL,
  model      TEXT NOT NULL,
  length     INTEGER NOT NULL,        -- numbers in each vector
  memories   BLOB NOT NULL,           -- their ids, eight bytes each, little endian, in the vectors' order
  data       BLOB NOT NULL            -- of each: its scale (f32), then its numbers (i8)
) STRICT;

-- Decisions and lessons of a task.
CREATE INDEX memories_by_task ON memories(content ->> '$.task') WHERE kind IN ('decision', 'lesson') AND content ->> '$.task' IS NOT NULL;

-- Memories that a deleted memory had superseded.
CREATE INDEX memories_superseded ON memories(superseded_by) WHERE superseded_by IS NOT NULL;

-- Files of past sessions that `nmem import` has read.
CREATE TABLE imports (
  path        TEXT PRIMARY KEY,
  platform    TEXT NOT NULL,
  version     INTEGER NOT NULL,    -- of the reader
  size        INTEGER NOT NULL,    -- bytes, when it was read
  modified_at INTEGER NOT NULL,
  offset      INTEGER NOT NULL,    -- where reading continues when the file has grown
  first_line  INTEGER              -- hash of the first line's id: a continued session begins with a copy
) STRICT, WITHOUT ROWID;

-- Keyed hashes of forgotten events and sessions, so that an import skips them. No text.
CREATE TABLE forgotten (
  hash BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- The newest known change of each shared memory, and memories that must not be shared (ADR/0051).
CREATE TABLE shared (
  uuid          TEXT PRIMARY KEY,    -- of the memory
  counter       INTEGER NOT NULL,    -- logical counter of the newest change; 0: never shared
  machine       INTEGER NOT NULL,    -- who made it; 0: another program, in the RAD tables
  fingerprint   BLOB,                -- of the memory's row when that change was made or applied; NULL: withdrawn or forgotten
  seq           INTEGER,             -- the change's number in this machine's own series; NULL: another machine's change
  own           INTEGER NOT NULL,    -- 1: this machine reports when the memory is gone, because it was made or forgotten here
  private       INTEGER NOT NULL DEFAULT 0,
  author        TEXT,                -- whose words another machine's change consists of: hand, user, agent, tool
  superseded_by TEXT                 -- uuid of the memory that supersedes it, if that one has not arrived yet
) STRICT, WITHOUT ROWID;

-- Machines that share memories (ADR/0051).
CREATE TABLE machines (
  id      INTEGER PRIMARY KEY,
  key     TEXT NOT NULL,             -- Ed25519 public key in hex
  name    TEXT NOT NULL,             -- of the person, as they chose it
  seq     INTEGER NOT NULL,          -- own: the last number given; others: everything up to here is applied
  own     INTEGER NOT NULL DEFAULT 0,
  trusted INTEGER NOT NULL DEFAULT 0,
  seen_at INTEGER NOT NULL           -- when the last change arrived
) STRICT;
