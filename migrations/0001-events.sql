-- What agents did: projects, sessions, prompts, tool uses, and the two text indexes over them (DESIGN §3).
-- Every object costs 3 µs at each open, so there is none that no query asks for. Times are Unix milliseconds.

CREATE TABLE projects (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  repo_url   TEXT,                   -- without credentials
  root       TEXT NOT NULL,          -- the worktree in which it was last seen
  created_at INTEGER NOT NULL
) STRICT;

-- What a project is known by: name:<by hand>, repo:<normalised remote>, root:<first commit>, git:<common folder>,
-- dir:<folder>, and under:<folder> for a part that was split off.
CREATE TABLE project_keys (
  key        TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES projects(id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  id                 INTEGER PRIMARY KEY,
  project_id         INTEGER REFERENCES projects(id),  -- NULL in the home folder and in /
  platform           TEXT NOT NULL,
  agent_session_id   TEXT NOT NULL,
  started_at         INTEGER NOT NULL,
  active_at          INTEGER NOT NULL,  -- last start, prompt, stop or end; not each tool use, which would cost an index write
  ended_at           INTEGER,
  end_reason         TEXT,
  start_source       TEXT,              -- how it was last entered: startup, resume, clear, compact, fork
  compactions        INTEGER NOT NULL DEFAULT 0,
  muted              INTEGER NOT NULL DEFAULT 0,  -- the turn under way is not to be remembered
  muted_prompt       TEXT,              -- the platform's id of the last such turn: its subagents may report late
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
  tasks              TEXT,              -- JSON [{id, subject, status}]: the agent's task list as it stands
  transcript_offset  INTEGER NOT NULL DEFAULT 0,
  turn_offset        INTEGER,           -- where the turn under way begins in the transcript
  transcript_message TEXT,              -- last message counted, whose other blocks may still come
  model              TEXT,
  stop_reason        TEXT,
  input_tokens       INTEGER,
  output_tokens      INTEGER,
  cache_read_tokens  INTEGER,
  cache_write_tokens INTEGER,
  context_tokens     INTEGER,
  cost_usd           REAL,
  UNIQUE (agent_session_id, platform)
) STRICT;

-- The last sessions of a project: context, search without words.
CREATE INDEX sessions_by_project ON sessions(project_id, active_at);

CREATE TABLE prompts (
  id                 INTEGER PRIMARY KEY,
  session_id         INTEGER NOT NULL REFERENCES sessions(id),
  number             INTEGER NOT NULL,  -- of the user's prompt in its session; an agent's text has that of the prompt it answers
  source             TEXT NOT NULL,     -- user, agent
  kind               TEXT NOT NULL,     -- prompt, closing, thinking
  platform_prompt_id TEXT,
  agent_id           TEXT,              -- the subagent whose closing text it is
  text               TEXT NOT NULL,
  received_at        INTEGER NOT NULL,
  input_tokens       INTEGER,           -- what the turn cost, on its closing text
  output_tokens      INTEGER,
  cache_read_tokens  INTEGER,
  cache_write_tokens INTEGER
) STRICT;

-- A session's story in order; also what makes a second delivery of a closing text visible.
CREATE INDEX prompts_by_session ON prompts(session_id, number);
-- A prompt that is told twice is stored once; tool uses find their prompt.
CREATE UNIQUE INDEX prompts_once ON prompts(session_id, platform_prompt_id) WHERE source = 'user' AND platform_prompt_id IS NOT NULL;

CREATE TABLE tool_uses (
  id           INTEGER PRIMARY KEY,
  session_id   INTEGER NOT NULL REFERENCES sessions(id),
  seq          INTEGER NOT NULL,        -- from 1, without gaps in a session
  prompt_id    INTEGER REFERENCES prompts(id),
  tool_use_id  TEXT,
  received_at  INTEGER NOT NULL,
  cwd          TEXT,                    -- only where it isn't the session's
  tool_name    TEXT NOT NULL,
  kind         TEXT NOT NULL,           -- read, search, edit, write, command, fetch, delegate, mcp, other
  command_kind TEXT,                    -- build, test, lint, git, commit, install, other
  path         TEXT,                    -- relative to the worktree's root
  content      TEXT,                    -- command, pattern or path
  input        TEXT,                    -- excerpt
  outcome      TEXT,                    -- excerpt
  succeeded    INTEGER,                 -- NULL: not known yet
  source_event TEXT NOT NULL,
  metadata     TEXT,                    -- JSON, as ADR-009 has it
  agent_id     TEXT    GENERATED ALWAYS AS (metadata ->> 'agent_id') VIRTUAL,
  duration_ms  INTEGER GENERATED ALWAYS AS (metadata ->> 'duration_ms') VIRTUAL
) STRICT;

-- A tool use that is told twice is stored once.
CREATE UNIQUE INDEX tool_uses_once ON tool_uses(session_id, tool_use_id) WHERE tool_use_id IS NOT NULL;
-- A session's tool uses in order.
CREATE UNIQUE INDEX tool_uses_by_seq ON tool_uses(session_id, seq);
-- What a session changed, ran and failed at, without its reads and searches: context.
CREATE INDEX tool_uses_telling ON tool_uses(session_id, seq) WHERE kind IN ('edit', 'write', 'command') OR succeeded = 0;

-- Rows come and go by rowid alone: the text is made by index_text.rs, and kept nowhere twice. `scope` holds one word for
-- the project, so that a search in one project isn't drowned by another.
CREATE VIRTUAL TABLE text_index USING fts5(title, body, scope, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE tool_index USING fts5(command, description, path, error, scope, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");

-- Ids of spooled events that are in the store, kept until the spool's file is seen to be gone.
CREATE TABLE drained (
  event TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value
) WITHOUT ROWID;
