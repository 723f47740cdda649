-- Knowledge (ADR/0035): decisions and lessons go with the task that they name, and are found by it.
CREATE INDEX memories_by_task ON memories(content ->> '$.task') WHERE kind IN ('decision', 'lesson') AND content ->> '$.task' IS NOT NULL;

-- What goes takes out where it stood in the place of others.
CREATE INDEX memories_superseded ON memories(superseded_by) WHERE superseded_by IS NOT NULL;

-- What was found in the repository itself: JSON {type, languages, frameworks, looked_at}.
ALTER TABLE projects ADD COLUMN about TEXT;
