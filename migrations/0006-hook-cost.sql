-- What each tool use paid for: an index whose condition SQLite checks by making a table of its three words, for every row.
-- Its queries look for commits.
DROP INDEX tool_uses_telling;
CREATE INDEX tool_uses_commits ON tool_uses(session_id, seq) WHERE command_kind = 'commit';

-- Few memories are pinned, and every session is told of them. (For a time it stood in 0005.)
CREATE INDEX IF NOT EXISTS memories_pinned ON memories(project_id) WHERE pinned;
