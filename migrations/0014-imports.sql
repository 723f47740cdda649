-- Files of past sessions that `nmem import` has read: how far, and by which version of the reader. Read by path.
CREATE TABLE imports (
  path        TEXT PRIMARY KEY,
  platform    TEXT NOT NULL,
  version     INTEGER NOT NULL,    -- of the reader
  size        INTEGER NOT NULL,    -- bytes, when it was read
  modified_at INTEGER NOT NULL,
  offset      INTEGER NOT NULL,    -- where reading goes on when the file has grown
  first_line  INTEGER              -- hash of the first line's id: a continued session begins with a copy
) STRICT, WITHOUT ROWID;

-- Files that tasks of subagents name, of the current turn: JSON [[time, path]]. Their starts do not say their tasks.
ALTER TABLE sessions ADD COLUMN task_files TEXT;
